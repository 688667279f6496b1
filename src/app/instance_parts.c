/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_parts.c - tenants' instances, put together on the driver that the settings name.
 *
 * Each driver is a row of the table, with the functions that open and close it.
 */
#include "app/instance_parts.h"
#include "app/aws_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "app/config/config.h"
#include "app/parts.h"
#include "app/store/stores.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "providers/aws/instances/instances.h"
#include "providers/local/local.h"
#include "providers/sim/cloud.h"

enum { DAY_MS = 86400000 };

static enum rc open_sim(struct parts *p, struct instance_driver **ret, struct err *e UNUSED)
{
	*ret = sim_cloud_driver(p->sim);
	return RC_OK;
}

/* Real WordPress sites on this machine; its folder must be absolute, since the servers it starts live elsewhere. */
static enum rc open_local(struct parts *p, struct instance_driver **ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *named = config_text(p->config, CONFIG_INSTANCE_FOLDER);
	struct str    folder = str_format(&a, "%s%s", named ? named : config_text(p->config, CONFIG_DATA),
                                       named ? "" : "/instances");
	char         *path = mkdir(folder.p, 0711) == 0 || errno == EEXIST ? realpath(folder.p, NULL) : NULL;
	struct local *local;
	enum rc       rc;

	if (!path)
		rc = err_set(e, RC_UNAVAILABLE, "%s: the folder %s cannot be made: %s",
		             config_name(CONFIG_INSTANCE_FOLDER), folder.p, strerror(errno));
	else if (!(rc = local_open(&(struct local_options){ .folder = path,
	                                                    .router = config_text(p->config, CONFIG_INSTANCE_ROUTER) },
	                           &local, e)))
		*ret = local_driver(local);
	free(path);
	return rc;
}

static void check_local(const struct config *c, struct buf *problems)
{
	const char *name = config_name(CONFIG_INSTANCE_DRIVER);

	if (config_number(c, CONFIG_STORE) != APP_SQLITE)
		buf_addf(problems, "%s: sites of 'local' belong to one machine; right is %s=sqlite\n", name,
		         config_name(CONFIG_STORE));
	if (config_number(c, CONFIG_TIME_SCALE) != 1)
		buf_addf(problems, "%s: the sites of 'local' are real and take their time; right is %s=1\n", name,
		         config_name(CONFIG_TIME_SCALE));
}

struct aws_instances_options instance_parts_aws(const struct config *c, struct aws_callers *callers)
{
	return (struct aws_instances_options){ .callers = callers,
		                               .env = config_str(c, CONFIG_TENANT_ENV),
		                               .cluster = config_str(c, CONFIG_ECS_CLUSTER),
		                               .file_system = config_str(c, CONFIG_EFS_ID),
		                               .vpc = config_str(c, CONFIG_VPC_ID),
		                               .subnets = config_str(c, CONFIG_SUBNETS),
		                               .security_groups = config_str(c, CONFIG_SECURITY_GROUPS),
		                               .listener = config_str(c, CONFIG_LISTENER),
		                               .execution_role = config_str(c, CONFIG_EXECUTION_ROLE),
		                               .task_role = config_str(c, CONFIG_SITE_ROLE),
		                               .image = config_str(c, CONFIG_SITE_IMAGE),
		                               .versions = config_text(c, CONFIG_SITE_VERSIONS),
		                               .domain = config_str(c, CONFIG_SITE_DOMAIN),
		                               .bucket = config_str(c, CONFIG_ARCHIVE_BUCKET),
		                               .db_host = config_str(c, CONFIG_DB_HOST),
		                               .db_admin = config_str(c, CONFIG_DB_ADMIN),
		                               .db_ca_file = config_text(c, CONFIG_DB_CA) };
}

static enum rc open_aws(struct parts *p, struct instance_driver **ret, struct err *e)
{
	struct aws_instances_options o = instance_parts_aws(p->config, p->aws->callers);

	return aws_instances_open(&o, ret, e);
}

/* Some become parts of names, rules and requests: what they are of is said here, once. */
static void check_aws(const struct config *c, struct buf *problems)
{
	static const struct {
		enum setting id;
		const char  *set, *form;
	} rows[] = {
		{ CONFIG_TENANT_ENV, "a-z0-9-", "small letters, digits and dashes" },
		{ CONFIG_ECS_CLUSTER, "a-zA-Z0-9:/_-", "a name or an ARN" },
		{ CONFIG_EFS_ID, "a-z0-9-", "an id such as fs-0123456789abcdef0" },
		{ CONFIG_VPC_ID, "a-z0-9-", "an id such as vpc-0123456789abcdef0" },
		{ CONFIG_SUBNETS, "a-z0-9, -", "ids such as subnet-0123456789abcdef0, with commas" },
		{ CONFIG_SECURITY_GROUPS, "a-z0-9, -", "ids such as sg-0123456789abcdef0, with commas" },
		{ CONFIG_LISTENER, "a-zA-Z0-9:/_-", "an ARN" },
		{ CONFIG_EXECUTION_ROLE, "a-zA-Z0-9:/_+=,.@-", "an ARN" },
		{ CONFIG_SITE_ROLE, "a-zA-Z0-9:/_+=,.@-", "an ARN" },
		{ CONFIG_SITE_IMAGE, "a-zA-Z0-9:/_.@{}-", "the name of an image" },
		{ CONFIG_SITE_VERSIONS, "0-9. ", "versions such as 6.5, with blanks between them" },
		{ CONFIG_SITE_DOMAIN, "a-z0-9.-", "a domain's name" },
		{ CONFIG_ARCHIVE_BUCKET, "a-z0-9.-", "a bucket's name" },
		{ CONFIG_DB_HOST, "a-zA-Z0-9.:-", "HOST or HOST:PORT" },
		{ CONFIG_DB_ADMIN, "a-zA-Z0-9:/_+=,.@!-", "a secret's name or ARN" },
	};

	if (config_number(c, CONFIG_TIME_SCALE) != 1)
		buf_addf(problems, "%s: AWS takes its time; right is %s=1\n", config_name(CONFIG_INSTANCE_DRIVER),
		         config_name(CONFIG_TIME_SCALE));
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct str value = config_str(c, rows[i].id);

		if (!value.n || !str_is_of(value, rows[i].set))
			buf_addf(problems, "%s: %s=aws needs it; right is %s\n", config_name(rows[i].id),
			         config_name(CONFIG_INSTANCE_DRIVER), rows[i].form);
	}
}

bool instance_parts_is_aws(const struct config *c)
{
	return str_eq(config_str(c, CONFIG_INSTANCE_DRIVER), STR("aws"));
}

void instance_parts_stop(struct instance_parts *p)
{
	if (p && str_eq(str_from(p->world.driver->ops->name), STR("aws")))
		aws_instances_stop(p->world.driver);
}

static const struct {
	const char *name;
	enum rc (*open)(struct parts *p, struct instance_driver **ret, struct err *e);
	void (*close)(struct instance_driver *d);                    /* NULL: the cloud does it */
	void (*check)(const struct config *c, struct buf *problems); /* its settings; may be NULL */
} drivers[] = {
	{ "sim", open_sim, NULL, NULL },
	{ "local", open_local, local_close_driver, check_local },
	{ "aws", open_aws, aws_instances_close, check_aws },
};

static size_t find_driver(const char *name)
{
	size_t i = 0;

	while (i < ARRAY_LEN(drivers) && !str_eq(str_from(drivers[i].name), str_from(name)))
		i++;
	return i;
}

const char *instance_parts_driver(const struct config *c, bool is_dev)
{
	const char *name = config_text(c, CONFIG_INSTANCE_DRIVER);

	if (!name)
		return is_dev ? "sim" : NULL;
	return str_eq(str_from(name), STR("off")) ? NULL : name;
}

bool instance_parts_is_sim(const struct config *c, bool is_dev)
{
	const char *name = instance_parts_driver(c, is_dev);

	return name && str_eq(str_from(name), STR("sim"));
}

void instance_parts_check(const struct config *c, struct buf *problems)
{
	const char *name = instance_parts_driver(c, false);
	size_t      row = name ? find_driver(name) : 0;

	if (name && row < ARRAY_LEN(drivers) && drivers[row].check)
		drivers[row].check(c, problems);
	if (!name || row < ARRAY_LEN(drivers))
		return;
	buf_addf(problems, "%s: there is no driver '%s'; there are:", config_name(CONFIG_INSTANCE_DRIVER), name);
	for (size_t i = 0; i < ARRAY_LEN(drivers); i++)
		buf_addf(problems, " %s", drivers[i].name);
	buf_addf(problems, ", or off\n");
}

enum rc instance_parts_new(struct parts *p, struct err *e)
{
	const struct config    *c = p->config;
	const char             *name = instance_parts_driver(c, p->is_dev);
	size_t                  row = name ? find_driver(name) : ARRAY_LEN(drivers);
	struct instance_driver *driver;
	struct instance_parts  *i;
	enum rc                 rc;

	if (!name)
		return RC_OK;
	if (row == ARRAY_LEN(drivers))
		return err_set(e, RC_INVALID, "%s: there is no driver '%s'", config_name(CONFIG_INSTANCE_DRIVER), name);
	if ((rc = drivers[row].open(p, &driver, e)))
		return err_wrap(e, rc, "the instance driver %s", name);
	i = p->instances = mem_new(struct instance_parts);
	i->world = (struct instance_world){ .store = p->store.store,
		                            .driver = driver,
		                            .archive_ms = config_number(c, CONFIG_ARCHIVE_DAYS) * DAY_MS,
		                            .metrics = p->metrics };
	instance_kinds(&i->world, i->kinds);
	return RC_OK;
}

void instance_parts_free(struct instance_parts *p)
{
	size_t row = p ? find_driver(p->world.driver->ops->name) : 0;

	if (p && drivers[row].close)
		drivers[row].close(p->world.driver);
	free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stores.c - from settings to a store.
 *
 * The embedded store belongs to one writing process: app_take_folder() ensures that for the whole folder, and the store
 * locks its own file. A store is made only on request: an empty folder may be one whose disk is not mounted. DynamoDB
 * is shared by everybody who has the credentials; its time limits are parts of the one deadline of a transaction.
 */
#include "app/store/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config.h"
#include "base/arena.h"
#include "net/aws.h"
#include "net/aws_endpoint.h"
#include "service/services.h"
#include "store/sqlite/sqlite_file.h"
#include "store/store.h"

#define STORE_NAME "leasehold.db"

enum { ATTEMPTS_MAX = 4, WAIT_MAX_MS = 250 };

static struct str in_folder(struct arena *a, const char *folder, const char *name)
{
	return str_format(a, "%s/%s", folder, name);
}

enum rc app_look_for_store(const char *folder, bool may_init, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *lock = in_folder(&a, folder, "lock").p;
	enum rc                          rc = sqlite_file_look(in_folder(&a, folder, STORE_NAME).p, e);

	if (rc != RC_NOT_FOUND)
		return rc;
	err_clear(e);
	if (access(lock, F_OK) == 0)
		return err_set(e, RC_CORRUPT,
		               "%s/" STORE_NAME " is missing, but there is its lock: restore a backup "
		               "(docs/runbook.md), or, for a new store, remove %s",
		               folder, lock);
	if (may_init)
		return RC_OK;
	return err_set(e, RC_NOT_FOUND,
	               "there is no store at %s/" STORE_NAME
	               ": is its disk mounted, is --data right? 'leasehold init' makes a new one",
	               folder);
}

/* Who may write into the folder may replace the store and everything that is kept beside it. */
static enum rc check_mode(const char *folder, struct err *e)
{
	struct stat st;

	if (stat(folder, &st) != 0)
		return err_set(e, RC_UNAVAILABLE, "the data folder %s cannot be looked at: %s", folder,
		               strerror(errno));
	if (st.st_mode & S_IWOTH)
		return err_set(e, RC_DENIED,
		               "everybody may write into the data folder %s (mode %o); right is: chmod 700 %s", folder,
		               (unsigned)st.st_mode & 07777, folder);
	return RC_OK;
}

enum rc app_take_folder(const char *folder, int *ret_fd, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc;

	*ret_fd = -1;
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_set(e, RC_UNAVAILABLE, "the data folder %s cannot be made: %s", folder, strerror(errno));
	if ((rc = check_mode(folder, e)))
		return rc;
	*ret_fd = open(in_folder(&a, folder, "lock").p, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		rc = err_set(e, RC_UNAVAILABLE, "the data folder %s cannot be written: %s", folder, strerror(errno));
	else if (flock(*ret_fd, LOCK_EX | LOCK_NB) != 0)
		rc = err_set(e, RC_UNAVAILABLE,
		             "another leasehold uses the data folder %s; stop it or use another --data", folder);
	return rc;
}

struct sqlite_options app_sqlite_options(const struct config *c, const char *folder, const struct clock *clock,
                                         struct arena *a)
{
	return (struct sqlite_options){
		.path = in_folder(a, folder, STORE_NAME).p,
		.types = service_types,
		.type_count = service_type_count,
		.clock = clock,
		.cache_mb = (int)config_number(c, CONFIG_SQLITE_CACHE),
	};
}

enum rc app_open_sqlite(const struct config *c, struct app_sqlite *how, struct app_store *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct sqlite_options            options = app_sqlite_options(c, how->folder, how->clock, &a);
	enum rc                          rc = RC_OK;

	*ret = (struct app_store){ .kind = APP_SQLITE };
	options.is_owned = !how->is_shared;
	options.ret_has_lost = how->accepts_loss ? &how->has_lost : NULL;
	if (how->may_init && access(options.path, F_OK) != 0)
		rc = sqlite_make(&options, e);
	if (!rc)
		rc = store_sqlite_open(&options, &ret->store, e);
	return rc;
}

const char *app_env(const char *name)
{
	return getenv(name);
}

struct aws_identity *app_identity(void)
{
	return aws_identity_new(&(struct aws_identity_options){ .env = app_env, .clock = &clock_real });
}

enum rc app_ddb_endpoint(const struct config *c, struct arena *a, const char **ret, struct err *e)
{
	*ret = config_text(c, CONFIG_DDB_ENDPOINT);
	return *ret ? RC_OK : aws_endpoint(app_env, "DYNAMODB", a, ret, e);
}

/* The document's table of tenants is kept where a driver is named that has tenants. */
static const char *tenant_table(const struct config *c, struct app_store *s)
{
	struct str  driver = config_str(c, CONFIG_INSTANCE_DRIVER);
	const char *name = config_text(c, CONFIG_TENANT_TABLE);

	if (!driver.n || str_eq(driver, STR("off")))
		return NULL;
	(void)snprintf(s->tenant_table, sizeof(s->tenant_table), name ? "%s" : "%s-tenant-resources",
	               name ? name : config_text(c, CONFIG_TENANT_ENV)); /* both are limited */
	return s->tenant_table;
}

struct ddb_options app_ddb_options(const struct config *c, struct app_store *s)
{
	return (struct ddb_options){
		.client = s->client,
		.pool_table = config_text(c, CONFIG_DDB_TABLE),
		.kernel_table = config_text(c, CONFIG_DDB_KERNEL),
		.tenant_table = tenant_table(c, s),
		.gsi = { config_text(c, CONFIG_DDB_GSI1), config_text(c, CONFIG_DDB_GSI2),
		         config_text(c, CONFIG_DDB_GSI3) },
		.types = service_types,
		.type_count = service_type_count,
		.clock = &clock_real,
		.workers = (unsigned)config_number(c, CONFIG_STORE_WORKERS),
		.candidates = (size_t)config_number(c, CONFIG_K_CANDIDATES),
		.slices = (unsigned)config_number(c, CONFIG_DDB_SLICES),
		.backoff_base_ms = (int)config_number(c, CONFIG_BACKOFF_BASE),
		.backoff_max_ms = (int)config_number(c, CONFIG_BACKOFF_MAX),
		.deadline_ms = (int)config_number(c, CONFIG_STORE_DEADLINE),
	};
}

/* Signatures keep the machine's date. */
void app_open_dynamodb(const struct config *c, const struct clock *clock, struct app_store *ret)
{
	long                      deadline_ms = (long)config_number(c, CONFIG_STORE_DEADLINE);
	struct aws_client_options client = {
		.region = config_text(c, CONFIG_AWS_REGION),
		.service = "dynamodb",
		.clock = &clock_real,
		.connect_timeout_ms = deadline_ms / 3,
		.attempt_timeout_ms = deadline_ms / 2,
		.total_timeout_ms = deadline_ms - deadline_ms / 10,
		.attempts_max = ATTEMPTS_MAX,
		.wait_max_ms = WAIT_MAX_MS, /* or who came first waits longest where many are throttled */
	};
	struct ddb_options               options;
	CLEANUP(arena_fini) struct arena a = { 0 };

	rc_ignore(app_ddb_endpoint(c, &a, &client.endpoint, NULL)); /* the settings were checked */
	*ret = (struct app_store){ .kind = APP_DYNAMODB, .identity = app_identity() };
	client.identity = ret->identity;
	ret->client = aws_client_new(&client);
	options = app_ddb_options(c, ret);
	options.clock = clock;
	ret->store = store_dynamodb_open(&options);
}

enum rc app_open_alone(const struct config *c, const struct clock *clock, struct app_store *ret, struct err *e)
{
	struct app_sqlite how = { .folder = config_text(c, CONFIG_DATA), .clock = clock, .may_init = true };
	int               lock_fd; /* kept until the process ends */
	enum rc           rc;

	if (config_number(c, CONFIG_STORE) == APP_DYNAMODB) {
		app_open_dynamodb(c, clock, ret);
		return RC_OK;
	}
	rc = app_take_folder(how.folder, &lock_fd, e);
	return rc ? rc : app_open_sqlite(c, &how, ret, e);
}

void app_store_close(struct app_store *s)
{
	store_close(s->store);
	aws_client_free(s->client);
	aws_identity_free(s->identity);
}

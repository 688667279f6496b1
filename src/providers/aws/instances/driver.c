/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - opens and closes the driver; what its resources have in common.
 *
 * Nothing is kept here: a tenant's resources are found by name, and their tag leasehold:key, the instance's id, says
 * whose they are. So any node can go on where another has stopped.
 *
 * Always true:
 *   1. What carries another instance's key is never taken over.                                [site_make_once()]
 *   2. After a lost reply we look what is there before anything is made again.                 [site_make_once()]
 *   3. No answer of the driver, and no error, has a secret in it, but for get_secret.
 */
#include <sodium.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/mem.h"
#include "providers/aws/instances/content.h"
#include "providers/aws/instances/cognito.h"
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/instances/alb.h"
#include "providers/aws/instances/ecs.h"
#include "providers/aws/instances/sql.h"

/* --- a call about a tenant --- */

static struct aws_instances *of(struct instance_driver *d)
{
	return CONTAINER_OF(d, struct aws_instances, driver);
}

/* RC_INVALID: no tenant's id. */
static enum rc site_init(struct site *s, struct instance_driver *d, struct str tenant, const struct instance_spec *spec,
                         struct arena *a, struct err *e)
{
	if (!tenant_id_is_ok(tenant))
		return err_set(e, RC_INVALID, "'%.*s' is not the id of a tenant", STR_ARG(tenant));
	if (spec &&
	    (!spec->instance.n || spec->instance.n > INSTANCE_ID_MAX || !str_is_of(spec->instance, "a-zA-Z0-9_-")))
		return err_set(e, RC_INVALID, "'%.*s' is not the id of an instance", STR_ARG(spec->instance));
	*s = (struct site){ .x = of(d), .a = a, .tenant = tenant, .spec = spec };
	instance_short_name(tenant, s->t);
	snprintf(s->h, sizeof(s->h), "%.*s", SITE_HASH_SIZE - 1, hash_sha256_hex(a, tenant).p);
	return RC_OK;
}

struct str site_token(const struct site *s, const char *what)
{
	struct str text = str_format(s->a, "%.*s %s", STR_ARG(s->spec->instance), what);

	return str_of(hash_sha256_hex(s->a, text).p, SITE_TOKEN_SIZE - 1);
}

enum rc site_do(struct site *s, const struct aws_op *op, struct str body, json_t **ret, struct err *e)
{
	return aws_do_within(s->x->caller, op, SITE_CALL_MS, body, s->a, ret, e);
}

/* Tenants, instances and the environment have only letters, digits and dashes: nothing to escape. */
static struct str write_tags(const struct site *s, const char *before, const char *between, const char *after,
                             const char *more, struct str text)
{
	const struct {
		const char *name;
		struct str  value;
	} tags[] = { { TAG_TENANT, s->tenant },
		     { TAG_MANAGED_BY, STR(MANAGED_BY) },
		     { TAG_ENVIRONMENT, s->x->o.env },
		     { TAG_KEY, s->spec ? s->spec->instance : STR("") },
		     { more, text } };
	struct str all = STR("");

	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (tags[i].name && tags[i].value.n)
			all = str_format(s->a, "%.*s%s%s\"%s\"%s\"%.*s\"%s", STR_ARG(all), all.n ? "," : "", before,
			                 tags[i].name, between, STR_ARG(tags[i].value), after);
	return all;
}

struct str site_tag_list(const struct site *s, const char *name, const char *value, const char *more, struct str text)
{
	struct str before = str_format(s->a, "{\"%s\":", name), between = str_format(s->a, ",\"%s\":", value);

	return str_format(s->a, "[%s]", write_tags(s, before.p, between.p, "}", more, text).p);
}

struct str site_tag_map(const struct site *s)
{
	return str_format(s->a, "{%s}", write_tags(s, "", ":", "", NULL, STR("")).p);
}

/* --- making what is not there --- */

enum rc site_make_once(struct site *s, enum instance_resource kind, site_find_fn *find, site_find_fn *make,
                       struct found *ret, struct err *e)
{
	struct err why = { 0 };
	enum rc    made = RC_OK, rc = find(s, ret, e);

	if (rc)
		return rc;
	if (!ret->is_there) {
		made = make(s, ret, &why);
		if (made == RC_TIMEOUT || made == RC_CONFLICT) {
			if ((rc = find(s, ret, e)))
				return rc;
			made = ret->is_there ? RC_OK : made == RC_CONFLICT ? RC_UNAVAILABLE : made;
		}
		if (made)
			return err_pass(e, made, &why);
	}
	if (!str_eq(ret->key, s->spec->instance))
		return err_set(e, RC_CONFLICT, "tenant %.*s has the %s of %s%.*s", STR_ARG(s->tenant),
		               instance_resource_names[kind], ret->key.n ? "another instance, " : "somebody else",
		               STR_ARG(ret->key));
	return RC_OK;
}

/* --- waiting --- */

bool site_wait(struct site *s, long ms)
{
	struct aws_instances *x = s->x;
	int64_t               until_ms = mono_now().ms + ms;

	LOCKED(&x->lock);
	while (!x->is_stopped && cond_wait_until(&x->changed, &x->lock, until_ms))
		;
	return !x->is_stopped;
}

enum rc site_wait_for(struct site *s, enum rc (*is_done)(struct site *s, bool *ret, struct err *e), const char *what,
                      struct err *e)
{
	struct mono began = mono_now();
	bool        done = false;
	enum rc     rc;

	while (!(rc = is_done(s, &done, e)) && !done && mono_now().ms - began.ms < SITE_WAIT_MS)
		if (!site_wait(s, SITE_POLL_MS))
			return err_set(e, RC_UNAVAILABLE, "%s: the program is stopping", what);
	if (!rc && !done)
		return err_set(e, RC_UNAVAILABLE, "%s: not yet, after %d s", what, SITE_WAIT_MS / 1000);
	return rc;
}

/* --- the port: create, check, delete --- */

static const struct {
	site_make_fn  *make;
	site_check_fn *check;
	site_fn       *remove;
} resources[INSTANCE_RESOURCE_COUNT] = {
	[INSTANCE_STORAGE] = { efs_make, efs_check, efs_remove },
	[INSTANCE_DATABASE] = { rds_make, rds_check, rds_remove },
	[INSTANCE_SECRET] = { vault_make, vault_check, vault_remove },
	[INSTANCE_ROUTE] = { alb_make, alb_check, alb_remove },
	[INSTANCE_WORKERS] = { ecs_make, ecs_check, ecs_remove },
	[INSTANCE_IDENTITY] = { cognito_make, cognito_check, cognito_remove },
};

static enum rc create(struct instance_driver *d, const struct instance_spec *spec, enum instance_resource kind,
                      struct arena *a, struct str *ret_outputs, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, spec->tenant, spec, a, e);

	return rc ? rc : resources[kind].make(&s, ret_outputs, e);
}

static enum rc check(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct arena *a,
                     bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct site s;
	struct str  outputs = STR("");
	bool        exists = false;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	if (rc || (rc = resources[kind].check(&s, &exists, &outputs, e)))
		return rc;
	*ret_exists = exists;
	*ret_outputs = exists ? outputs : STR("");
	return RC_OK;
}

/* A call whose only answer is whether it worked. */
static enum rc change(struct instance_driver *d, struct str tenant, const struct instance_spec *spec, site_fn *run,
                      struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, spec, &a, e);

	return rc ? rc : run(&s, e);
}

static enum rc delete_resource(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct err *e)
{
	return change(d, tenant, NULL, resources[kind].remove, e);
}

/* --- the port: the rest --- */

static enum rc scale(struct instance_driver *d, struct str tenant, int64_t desired, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, NULL, &a, e);

	return rc ? rc : ecs_scale(&s, desired, e);
}

static enum rc tasks(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_tasks *ret,
                     struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : ecs_count(&s, ret, e);
}

static enum rc set_route(struct instance_driver *d, struct str tenant, enum instance_route to, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, NULL, &a, e);

	return rc ? rc : alb_set(&s, to, e);
}

static enum rc configure(struct instance_driver *d, const struct instance_spec *spec, struct err *e)
{
	return change(d, spec->tenant, spec, content_configure, e);
}

static enum rc archive(struct instance_driver *d, struct str tenant, struct str name, struct arena *a,
                       struct str *ret_outputs, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : content_archive(&s, name, ret_outputs, e);
}

static enum rc restore(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, NULL, &a, e);

	return rc ? rc : content_restore(&s, name, e);
}

static enum rc drop_archive(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, NULL, &a, e);

	return rc ? rc : content_drop(&s, name, e);
}

static enum rc rotate(struct instance_driver *d, struct str tenant, struct err *e)
{
	return change(d, tenant, NULL, content_rotate, e);
}

static enum rc get_secret(struct instance_driver *d, struct str tenant, struct arena *a, struct str *ret_user,
                          struct str *ret_password, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : vault_read(&s, vault_name(&s, SECRET_ADMIN), ret_user, ret_password, e);
}

static enum rc add_person(struct instance_driver *d, struct str tenant, struct str email, struct str name,
                          struct arena *a, bool *ret_is_new, struct str *ret_password, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : people_add(&s, email, name, ret_is_new, ret_password, e);
}

static enum rc people(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_person **ret,
                      size_t *ret_count, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : people_read(&s, ret, ret_count, e);
}

static enum rc remove_person(struct instance_driver *d, struct str tenant, struct str email, bool *ret_was_there,
                             struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                      s;
	enum rc                          rc = site_init(&s, d, tenant, NULL, &a, e);

	return rc ? rc : people_remove(&s, email, ret_was_there, e);
}

static enum rc logs(struct instance_driver *d, struct str tenant, int64_t from_ms, int64_t to_ms, size_t max,
                    struct arena *a, struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, tenant, NULL, a, e);

	return rc ? rc : logs_read(&s, STR(""), from_ms, to_ms, max, ret, ret_count, e);
}

static enum rc list(struct instance_driver *d, struct arena *a, struct instance_thing **ret, size_t *ret_count,
                    struct err *e)
{
	struct site s;
	enum rc     rc = site_init(&s, d, STR("tenant-all"), NULL, a, e); /* of none; the names are not used */

	return rc ? rc : scan(&s, ret, ret_count, e);
}

/* --- opening and closing --- */

static const struct instance_driver_ops driver_ops = {
	.name = "aws",
	.php = "8.2",
	.create = create,
	.check = check,
	.delete = delete_resource,
	.scale = scale,
	.tasks = tasks,
	.set_route = set_route,
	.configure = configure,
	.archive = archive,
	.restore = restore,
	.drop_archive = drop_archive,
	.rotate = rotate,
	.get_secret = get_secret,
	.add_person = add_person,
	.people = people,
	.remove_person = remove_person,
	.logs = logs,
	.list = list,
};

enum rc aws_instances_open(const struct aws_instances_options *o, struct instance_driver **ret, struct err *e)
{
	struct aws_instances *x;
	enum rc rc = sodium_init() < 0 ? err_set(e, RC_INTERNAL, "libsodium cannot be used") : sql_begin(e);

	if (rc)
		return rc;
	x = mem_new(struct aws_instances);
	x->o = *o;
	x->ops = driver_ops;
	x->ops.versions = o->versions;
	x->driver.ops = &x->ops;
	x->caller = aws_caller_of(o->callers, AWS_OWN);
	cond_init(&x->changed);
	pthread_mutex_init(&x->lock, NULL);
	*ret = &x->driver;
	return RC_OK;
}

void aws_instances_stop(struct instance_driver *d)
{
	struct aws_instances *x = of(d);

	LOCKED(&x->lock);
	x->is_stopped = true;
	pthread_cond_broadcast(&x->changed);
}

void aws_instances_close(struct instance_driver *d)
{
	struct aws_instances *x = of(d);

	pthread_cond_destroy(&x->changed);
	pthread_mutex_destroy(&x->lock);
	free(x);
}

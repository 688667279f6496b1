/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - the instance driver of the simulated cloud: one record for each kind of resource that a tenant has, one
 * for each archive.
 *
 * What a real cloud would keep inside is in the records too: how many tasks shall run, what the route answers, whether
 * WordPress is installed (and with that data of the tenant), the administrator's password. Tasks run as soon as they
 * shall.
 */
#include "base/json.h"
#include "domain/instance.h"
#include "providers/sim/cloud_private.h"

enum { SHOWN_MAX = 1000, ARCHIVE_BYTES = 2200000 };

static const char *const id_forms[INSTANCE_RESOURCE_COUNT] = {
	[INSTANCE_STORAGE] = "fsap-", [INSTANCE_DATABASE] = "db-",     [INSTANCE_SECRET] = "secret-",
	[INSTANCE_ROUTE] = "rule-",   [INSTANCE_WORKERS] = "service-", [INSTANCE_IDENTITY] = "pool-",
};

struct resource_call {
	struct sim_cloud      *cloud;
	struct str             tenant, name; /* name: of an archive */
	enum instance_resource kind;
	struct str             key;     /* the instance's id */
	int64_t                desired; /* or what the route shall answer */
	uint64_t               number;  /* of a new one's id */
	uint64_t               secret;  /* of its password */

	struct str          outputs; /* the answer; empty: there is none */
	struct sim_resource found;
	bool                is_there;
};

static struct sim_cloud *cloud_of(struct instance_driver *d)
{
	return CONTAINER_OF(d, struct sim_cloud, driver);
}

static struct resource_call call_of(struct instance_driver *d, struct str tenant, enum instance_resource kind)
{
	return (struct resource_call){ .cloud = cloud_of(d), .tenant = tenant, .kind = kind };
}

static enum rc perform(struct resource_call *r, enum world_call call, txn_fn *run, struct arena *a, struct err *e)
{
	enum rc rc = sim_check_text("tenant", r->tenant, CLOUD_NAME_MAX, e);

	if (!rc && r->name.n)
		rc = sim_check_text("name", r->name, CLOUD_NAME_MAX, e);
	return rc ? rc : sim_call_of(r->cloud, (struct sim_about){ call, 1 + r->kind }, run, r, a, e);
}

enum rc sim_find_resource(struct session *s, struct str tenant, enum instance_resource kind, struct sim_resource *ret,
                          bool *ret_is_there, struct err *e)
{
	struct str id = str_format(session_arena(s), "%.*s#%d", STR_ARG(tenant), (int)kind);
	enum rc    rc = session_find(s, &sim_resource_type, id, ret, ret_is_there, e);

	if (!*ret_is_there)
		*ret = (struct sim_resource){ .id = id, .tenant = tenant, .kind = kind };
	return rc;
}

/* The record of the call's own kind, as a transaction. */
static enum rc run_find(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;

	return sim_find_resource(s, r->tenant, r->kind, &r->found, &r->is_there, e);
}

/* One of this kind, which must be there. */
static enum rc need(struct session *s, struct resource_call *r, enum instance_resource kind, struct err *e)
{
	enum rc rc = sim_find_resource(s, r->tenant, kind, &r->found, &r->is_there, e);

	if (!rc && !r->is_there)
		return err_set_code(e, RC_NOT_FOUND, "ResourceNotFoundException", "tenant %.*s has no %s",
		                    STR_ARG(r->tenant), instance_resource_names[kind]);
	return rc;
}

/* --- create, check, delete --- */

static struct str write_outputs(struct arena *a, const struct resource_call *r)
{
	struct str id = str_format(a, "%s%016llx", id_forms[r->kind], (unsigned long long)r->number);
	struct str name = instance_resource_name(r->tenant, r->kind, a);
	struct str endpoint = str_format(a, "http://127.0.0.1/tenant/%.*s/", STR_ARG(r->tenant));

	return JSON_OF(a, member_str("id", id), member_str("name", name),
	               member_if(r->kind == INSTANCE_ROUTE, member_str("endpoint", endpoint)));
}

static enum rc run_create(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	enum rc               rc = run_find(s, r, e);

	if (rc)
		return rc;
	if (r->is_there && !str_eq(r->found.key, r->key))
		return err_set_code(e, RC_CONFLICT, "ResourceAlreadyExistsException",
		                    "tenant %.*s has its %s already, of another instance", STR_ARG(r->tenant),
		                    instance_resource_names[r->kind]);
	if (!r->is_there) {
		r->found.key = r->key;
		r->found.outputs = write_outputs(session_arena(s), r);
		r->found.desired = r->desired;
		r->found.started_ms = session_now(s).ms;
		if (r->kind == INSTANCE_SECRET)
			r->found.secret = str_format(session_arena(s), "Sim-%016llx", (unsigned long long)r->secret);
		session_put(s, &sim_resource_type, &r->found);
	}
	r->outputs = r->found.outputs;
	return RC_OK;
}

static enum rc create(struct instance_driver *d, const struct instance_spec *spec, enum instance_resource kind,
                      struct arena *a, struct str *ret_outputs, struct err *e)
{
	struct resource_call r = call_of(d, spec->tenant, kind);
	enum rc              rc = sim_check_text("instance", spec->instance, CLOUD_KEY_MAX, e);

	r.key = spec->instance;
	r.desired = kind == INSTANCE_WORKERS ? spec->desired_count : 0;
	r.number = sim_faults_random(r.cloud->faults);
	r.secret = sim_faults_random(r.cloud->faults);
	if (!rc && !(rc = perform(&r, WORLD_CREATE_RESOURCE, run_create, a, e)))
		*ret_outputs = r.outputs;
	return rc;
}

static enum rc check(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct arena *a,
                     bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct resource_call r = call_of(d, tenant, kind);
	enum rc              rc = perform(&r, WORLD_CHECK_RESOURCE, run_find, a, e);

	if (rc)
		return rc;
	*ret_exists = r.is_there;
	*ret_outputs = r.is_there ? r.found.outputs : STR("");
	return RC_OK;
}

static enum rc run_delete(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	enum rc               rc = run_find(s, r, e);

	if (!rc && r->is_there)
		session_delete(s, &sim_resource_type, r->found.id);
	return rc;
}

/* A call whose only answer is whether it worked. */
static enum rc change(struct resource_call r, enum world_call call, txn_fn *run, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };

	return perform(&r, call, run, &a, e);
}

static enum rc delete_resource(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = change(call_of(d, tenant, kind), WORLD_DELETE_RESOURCE, run_delete, e);

	if (!rc && kind == INSTANCE_IDENTITY)
		rc = sim_forget_people(cloud_of(d), tenant, &a, e);
	return rc;
}

/* --- what is changed of a resource --- */

/* How many tasks shall run, or what the route shall answer. */
static enum rc run_set(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	enum rc               rc = need(s, r, r->kind, e);

	if (rc)
		return rc;
	if (r->kind == INSTANCE_ROUTE) {
		r->found.route = r->desired;
	} else {
		r->found.desired = r->desired;
		r->found.started_ms = session_now(s).ms;
	}
	session_put(s, &sim_resource_type, &r->found);
	return RC_OK;
}

static enum rc run_configure(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	enum rc               rc;

	if ((rc = need(s, r, INSTANCE_DATABASE, e)) || (rc = need(s, r, INSTANCE_SECRET, e)) ||
	    (rc = need(s, r, INSTANCE_STORAGE, e)))
		return rc;
	if (!r->found.content)
		r->found.content = (int64_t)(r->number >> 1 | 1);
	session_put(s, &sim_resource_type, &r->found);
	return RC_OK;
}

static enum rc scale(struct instance_driver *d, struct str tenant, int64_t desired, struct err *e)
{
	return change((struct resource_call){ cloud_of(d), tenant, .kind = INSTANCE_WORKERS, .desired = desired },
	              WORLD_SCALE_WORKERS, run_set, e);
}

static enum rc set_route(struct instance_driver *d, struct str tenant, enum instance_route to, struct err *e)
{
	return change((struct resource_call){ cloud_of(d), tenant, .kind = INSTANCE_ROUTE, .desired = to },
	              WORLD_SET_ROUTE, run_set, e);
}

static enum rc configure(struct instance_driver *d, const struct instance_spec *spec, struct err *e)
{
	struct resource_call r = call_of(d, spec->tenant, INSTANCE_WORKERS);

	r.number = sim_faults_random(r.cloud->faults);
	return change(r, WORLD_CONFIGURE, run_configure, e);
}

static enum rc run_need(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;

	return need(s, r, r->kind, e);
}

static enum rc rotate(struct instance_driver *d, struct str tenant, struct err *e)
{
	return change(call_of(d, tenant, INSTANCE_SECRET), WORLD_ROTATE, run_need, e);
}

/* --- what is read --- */

static enum rc tasks(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_tasks *ret,
                     struct err *e)
{
	struct resource_call r = call_of(d, tenant, INSTANCE_WORKERS);
	enum rc              rc = perform(&r, WORLD_LIST_TASKS, run_find, a, e);

	if (rc)
		return rc;
	*ret = (struct instance_tasks){ .is_healthy = true };
	ret->desired = ret->running = r.is_there ? r.found.desired : 0;
	for (int64_t i = 0; i < ret->running && i < INSTANCE_TASKS_MAX; i++)
		ret->items[ret->count++] = (struct instance_task){ str_format(a, "task-%lld", (long long)i + 1), true,
			                                           true, r.found.started_ms };
	return RC_OK;
}

static enum rc get_secret(struct instance_driver *d, struct str tenant, struct arena *a, struct str *ret_user,
                          struct str *ret_password, struct err *e)
{
	struct resource_call r = call_of(d, tenant, INSTANCE_SECRET);
	enum rc              rc = perform(&r, WORLD_GET_SECRET, run_need, a, e);

	if (rc)
		return rc;
	*ret_user = STR("admin");
	*ret_password = r.found.secret;
	return RC_OK;
}

/* Each task logs that it started. */
static enum rc logs(struct instance_driver *d, struct str tenant, int64_t from_ms, int64_t to_ms, size_t max,
                    struct arena *a, struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct resource_call r = call_of(d, tenant, INSTANCE_WORKERS);
	enum rc              rc = perform(&r, WORLD_READ_LOGS, run_find, a, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, INSTANCE_TASKS_MAX * sizeof(**ret));
	*ret_count = 0;
	for (int64_t i = r.found.desired > (int64_t)max ? r.found.desired - (int64_t)max : 0;
	     r.is_there && i < r.found.desired && i < INSTANCE_TASKS_MAX; i++)
		if (r.found.started_ms >= from_ms && r.found.started_ms < to_ms)
			(*ret)[(*ret_count)++] = (struct instance_log_line){
				r.found.started_ms, str_format(a, "task-%lld", (long long)i + 1),
				STR("ready to handle connections")
			};
	return RC_OK;
}

static enum rc list(struct instance_driver *d, struct arena *a, struct instance_thing **ret, size_t *ret_count,
                    struct err *e)
{
	struct query q = { .type = &sim_resource_type, .index = QUERY_ALL };
	struct page  page;
	enum rc      rc = sim_list(cloud_of(d), WORLD_LIST_RESOURCES, &q, a, &page, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, (page.count + 1) * sizeof(**ret));
	for (*ret_count = 0; *ret_count < page.count; (*ret_count)++) {
		const struct sim_resource *x = page_record(&page, &sim_resource_type, *ret_count);

		(*ret)[*ret_count] = (struct instance_thing){ x->tenant, x->key, (enum instance_resource)x->kind };
	}
	return RC_OK;
}

/* --- archives --- */

static enum rc find_archive(struct session *s, const struct resource_call *r, struct sim_archive *ret,
                            bool *ret_is_there, struct err *e)
{
	*ret = (struct sim_archive){ .id = str_format(session_arena(s), "%.*s#%.*s", STR_ARG(r->tenant),
		                                      STR_ARG(r->name)),
		                     .tenant = r->tenant,
		                     .name = r->name };
	return session_find(s, &sim_archive_type, ret->id, ret, ret_is_there, e);
}

static enum rc run_archive(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	struct sim_archive    x;
	bool                  is_there;
	enum rc               rc = find_archive(s, r, &x, &is_there, e);

	if (!rc && !is_there) {
		if ((rc = need(s, r, INSTANCE_DATABASE, e)) || (rc = need(s, r, INSTANCE_STORAGE, e)))
			return rc;
		x.at_ms = session_now(s).ms;
		x.content = r->found.content;
		session_put(s, &sim_archive_type, &x);
	}
	r->outputs = JSON_OF(session_arena(s), member_str("id", r->name), member_int("bytes", ARCHIVE_BYTES),
	                     member_raw("parts", STR("[\"database\",\"files\"]")));
	return rc;
}

static enum rc archive(struct instance_driver *d, struct str tenant, struct str name, struct arena *a,
                       struct str *ret_outputs, struct err *e)
{
	struct resource_call r = { cloud_of(d), tenant, name, INSTANCE_STORAGE };
	enum rc              rc = perform(&r, WORLD_ARCHIVE, run_archive, a, e);

	if (!rc)
		*ret_outputs = r.outputs;
	return rc;
}

static enum rc run_restore(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	struct sim_archive    x;
	bool                  is_there;
	enum rc               rc = find_archive(s, r, &x, &is_there, e);

	if (!rc && !is_there)
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no archive %.*s", STR_ARG(r->tenant),
		               STR_ARG(r->name));
	if (rc || (rc = need(s, r, INSTANCE_STORAGE, e)))
		return rc;
	r->found.content = x.content;
	session_put(s, &sim_resource_type, &r->found);
	return RC_OK;
}

static enum rc restore(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	return change((struct resource_call){ cloud_of(d), tenant, name, INSTANCE_STORAGE }, WORLD_RESTORE, run_restore,
	              e);
}

static enum rc run_drop(struct session *s, void *arg, struct err *e)
{
	struct sim_archive x;
	bool               is_there;
	enum rc            rc = find_archive(s, arg, &x, &is_there, e);

	if (!rc && is_there)
		session_delete(s, &sim_archive_type, x.id);
	return rc;
}

static enum rc drop_archive(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	return change((struct resource_call){ cloud_of(d), tenant, name, INSTANCE_STORAGE }, WORLD_DROP_ARCHIVE,
	              run_drop, e);
}

const struct instance_driver_ops sim_driver_ops = {
	.name = "sim",
	.versions = "6.5 6.4 6.1",
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
	.add_person = sim_add_person,
	.people = sim_people,
	.remove_person = sim_remove_person,
	.logs = logs,
	.list = list,
};

/* --- showing them --- */

/* The keys begin with the tenant: in their order those of one are together. */
static void put_by_tenant(struct json_out *o, const struct page *page)
{
	struct str last = STR("");

	json_put_array(o, "tenants");
	for (size_t i = 0; i < page->count; i++) {
		const struct sim_resource *x = page_record(page, &sim_resource_type, i);

		if (!str_eq(last, x->tenant)) {
			if (last.n)
				JSON_PUT(o, member_list_end(), member_end());
			JSON_PUT(o, member_object(NULL), member_str("tenant", x->tenant), member_list("resources"));
		}
		last = x->tenant;
		JSON_PUT(o, member_object(NULL), member_word("resource", instance_resource_names[x->kind]),
		         member_str("instance", x->key), member_raw("outputs", x->outputs),
		         member_if(x->kind == INSTANCE_WORKERS, member_int("tasks", x->desired)), member_end());
	}
	if (last.n)
		JSON_PUT(o, member_list_end(), member_end());
	json_close_array(o);
}

enum rc sim_put_tenants(struct session *s, struct json_out *o, struct err *e)
{
	struct query q = { .type = &sim_resource_type, .index = QUERY_KEYS, .limit = SHOWN_MAX };
	struct page  page;
	int64_t      archives;
	enum rc      rc;

	if ((rc = session_query(s, &q, &page, e)) ||
	    (rc = session_count(s, &sim_archive_type, QUERY_ALL, value_int(0), &archives, e)))
		return rc;
	put_by_tenant(o, &page);
	json_put_int(o, "archives", archives);
	return RC_OK;
}

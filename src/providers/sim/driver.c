/* SPDX-License-Identifier: Apache-2.0 */
/* driver.c - the resources of tenants' instances: one record for each kind that a tenant has. Names are those of the instance contract. */
#include "base/buf.h"
#include "base/json.h"
#include "providers/sim/cloud_ops.h"

/* How the cloud calls it: before and after the tenant's name, and how its id begins. */
static const struct {
	const char *before, *after, *id;
} names[CLOUD_RESOURCE_COUNT] = {
	[CLOUD_STORAGE] = { "/tenant-", "", "fsap-" },
	[CLOUD_DATABASE] = { "tenant_", "_db", "db-" },
	[CLOUD_SECRET] = { "leasehold/tenant-", "/db", "secret-" },
	[CLOUD_WORKERS] = { "tenant-", "-wordpress", "service-" },
	[CLOUD_ROUTE] = { "/tenant/", "/*", "rule-" },
	[CLOUD_IDENTITY] = { "tenant-", "-users", "pool-" },
};

struct resource_call {
	struct str          tenant;
	enum cloud_resource kind;
	struct str          key;
	uint64_t            number; /* of a new one's id */

	struct str outputs; /* the answer; empty: there is none */
};

static struct str write_outputs(struct arena *a, const struct resource_call *r)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, CLOUD_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "id", str_format(a, "%s%016llx", names[r->kind].id, (unsigned long long)r->number));
	json_put_str(&o, "name",
	             str_format(a, "%s%.*s%s", names[r->kind].before, STR_ARG(r->tenant), names[r->kind].after));
	json_close_object(&o);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

static struct str record_id(struct session *s, const struct resource_call *r)
{
	return str_format(session_arena(s), "%.*s#%d", STR_ARG(r->tenant), (int)r->kind);
}

static enum rc run_create(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	struct sim_resource   x = { .id = record_id(s, r), .tenant = r->tenant, .kind = r->kind, .key = r->key }, old;
	bool                  found;
	enum rc               rc = sim_find(s, &sim_resource_type, x.id, &old, &found, e);

	if (rc)
		return rc;
	if (!found) {
		r->outputs = x.outputs = write_outputs(session_arena(s), r);
		session_put(s, &sim_resource_type, &x);
		return RC_OK;
	}
	if (!str_eq(old.key, r->key))
		return err_set_code(e, RC_CONFLICT, "ResourceAlreadyExistsException",
		                    "tenant %.*s has its %s already, made with another key", STR_ARG(r->tenant),
		                    cloud_resource_names[r->kind]);
	r->outputs = old.outputs;
	return RC_OK;
}

static enum rc run_check(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	struct sim_resource   x;
	bool                  found;
	enum rc               rc = sim_find(s, &sim_resource_type, record_id(s, r), &x, &found, e);

	if (!rc)
		r->outputs = found ? x.outputs : STR("");
	return rc;
}

static enum rc run_delete(struct session *s, void *arg, struct err *e)
{
	struct resource_call *r = arg;
	struct sim_resource   x;
	bool                  found;
	enum rc               rc = sim_find(s, &sim_resource_type, record_id(s, r), &x, &found, e);

	if (!rc && found)
		session_delete(s, &sim_resource_type, x.id);
	return rc;
}

static struct sim_cloud *cloud_of(struct instance_driver *d)
{
	return CONTAINER_OF(d, struct sim_cloud, driver);
}

static enum rc create(struct instance_driver *d, struct str tenant, enum cloud_resource kind, struct str key,
                      struct arena *a, struct str *ret_outputs, struct err *e)
{
	struct sim_cloud    *c = cloud_of(d);
	struct resource_call r = { .tenant = tenant, .kind = kind, .key = key };
	enum rc              rc;

	if ((rc = sim_check_text("tenant", tenant, CLOUD_NAME_MAX, e)) ||
	    (rc = sim_check_text("key", key, CLOUD_KEY_MAX, e)))
		return rc;
	r.number = sim_faults_random(c->faults);
	rc = sim_call(c, WORLD_CREATE_RESOURCE, run_create, &r, a, e);
	if (!rc)
		*ret_outputs = r.outputs;
	return rc;
}

static enum rc check(struct instance_driver *d, struct str tenant, enum cloud_resource kind, struct arena *a,
                     bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct resource_call r = { .tenant = tenant, .kind = kind };
	enum rc              rc = sim_call(cloud_of(d), WORLD_CHECK_RESOURCE, run_check, &r, a, e);

	if (rc)
		return rc;
	*ret_exists = r.outputs.n > 0;
	*ret_outputs = r.outputs;
	return RC_OK;
}

static enum rc delete_resource(struct instance_driver *d, struct str tenant, enum cloud_resource kind, struct err *e)
{
	struct resource_call r = { .tenant = tenant, .kind = kind };
	struct arena         a = { 0 };
	enum rc              rc = sim_call(cloud_of(d), WORLD_DELETE_RESOURCE, run_delete, &r, &a, e);

	arena_fini(&a);
	return rc;
}

struct counting {
	struct str tenant;
	int64_t    count;
};

static enum rc count_run(struct session *s, void *arg, struct err *e)
{
	struct counting *c = arg;

	return session_count(s, &sim_resource_type, SIM_RESOURCE_BY_TENANT, value_text(c->tenant), &c->count, e);
}

enum rc sim_cloud_count_resources(struct sim_cloud *c, struct str tenant, int64_t *ret, struct err *e)
{
	struct counting counting = { .tenant = tenant };
	struct arena    a = { 0 };
	enum rc         rc = store_read(c->options.store, count_run, &counting, &a, e);

	arena_fini(&a);
	if (!rc)
		*ret = counting.count;
	return rc;
}

const struct instance_driver_ops sim_driver_ops = { create, check, delete_resource };

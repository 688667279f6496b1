/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.c - the people of the simulated cloud's identity pools: a record for each. They are removed with their pool.
 *
 * Nobody signs in here, so a password only looks like one.
 */
#include "domain/lease.h"
#include "providers/sim/cloud_private.h"

enum { FORGOTTEN_AT_ONCE = 50 }; /* of a transaction */

struct person_call {
	struct sim_cloud *cloud;
	struct str        tenant, email, name;

	bool        is_there; /* the answer: they were there before */
	struct page page;
};

static struct person_call call_of(struct instance_driver *d, struct str tenant, struct str email)
{
	return (struct person_call){ .cloud = CONTAINER_OF(d, struct sim_cloud, driver),
		                     .tenant = tenant,
		                     .email = email };
}

static enum rc perform(struct person_call *c, enum world_call call, txn_fn *run, struct arena *a, struct err *e)
{
	struct sim_about about = { call, 1 + INSTANCE_IDENTITY };
	enum rc          rc = sim_check_text("tenant", c->tenant, CLOUD_NAME_MAX, e);

	return rc ? rc : sim_call_of(c->cloud, about, run, c, a, e);
}

static enum rc need_pool(struct session *s, const struct person_call *c, struct err *e)
{
	struct sim_resource pool;
	bool                is_there;
	enum rc             rc = sim_find_resource(s, c->tenant, INSTANCE_IDENTITY, &pool, &is_there, e);

	if (!rc && !is_there)
		return err_set_code(e, RC_NOT_FOUND, "ResourceNotFoundException", "tenant %.*s has no identity pool",
		                    STR_ARG(c->tenant));
	return rc;
}

static enum rc find(struct session *s, struct person_call *c, struct sim_person *ret, struct err *e)
{
	struct arena *a = session_arena(s);

	*ret = (struct sim_person){ .tenant = c->tenant, .email = c->email, .at_ms = session_now(s).ms };
	ret->id = str_format(a, "%.*s#%.*s", STR_ARG(c->tenant), STR_ARG(email_key(c->email, a)));
	return session_find(s, &sim_person_type, ret->id, ret, &c->is_there, e);
}

static enum rc run_add(struct session *s, void *arg, struct err *e)
{
	struct person_call *c = arg;
	struct sim_person   who;
	int64_t             count;
	enum rc             rc;

	if ((rc = need_pool(s, c, e)) || (rc = find(s, c, &who, e)) ||
	    (rc = session_count(s, &sim_person_type, SIM_PERSON_BY_TENANT, value_text(c->tenant), &count, e)))
		return rc;
	if (!c->is_there && count >= INSTANCE_PEOPLE_MAX)
		return err_set(e, RC_CONFLICT, "the identity pool of tenant %.*s is full: it has %lld people",
		               STR_ARG(c->tenant), (long long)count);
	who.name = c->name;
	session_put(s, &sim_person_type, &who);
	return RC_OK;
}

enum rc sim_add_person(struct instance_driver *d, struct str tenant, struct str email, struct str name, struct arena *a,
                       bool *ret_is_new, struct str *ret_password, struct err *e)
{
	struct person_call c = call_of(d, tenant, email);
	enum rc            rc;

	c.name = name;
	if ((rc = perform(&c, WORLD_ADD_PERSON, run_add, a, e)))
		return rc;
	*ret_is_new = !c.is_there;
	*ret_password = str_format(a, "Sim-%016llx", (unsigned long long)sim_faults_random(c.cloud->faults));
	return RC_OK;
}

static enum rc run_list(struct session *s, void *arg, struct err *e)
{
	struct person_call *c = arg;
	struct query q = query_of(&sim_person_type, SIM_PERSON_BY_TENANT, value_text(c->tenant), INSTANCE_PEOPLE_MAX);
	enum rc      rc = need_pool(s, c, e);

	return rc ? rc : session_query(s, &q, &c->page, e);
}

enum rc sim_people(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_person **ret,
                   size_t *ret_count, struct err *e)
{
	struct person_call c = call_of(d, tenant, STR(""));
	enum rc            rc = perform(&c, WORLD_LIST_PEOPLE, run_list, a, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, (c.page.count + 1) * sizeof(**ret));
	*ret_count = c.page.count;
	for (size_t i = 0; i < c.page.count; i++) {
		const struct sim_person *p = page_record(&c.page, &sim_person_type, i);

		(*ret)[i] = (struct instance_person){ p->email, p->name, p->at_ms };
	}
	return RC_OK;
}

static enum rc run_remove(struct session *s, void *arg, struct err *e)
{
	struct person_call *c = arg;
	struct sim_person   who;
	enum rc             rc;

	if ((rc = need_pool(s, c, e)) || (rc = find(s, c, &who, e)))
		return rc;
	if (c->is_there)
		session_delete(s, &sim_person_type, who.id);
	return RC_OK;
}

enum rc sim_remove_person(struct instance_driver *d, struct str tenant, struct str email, bool *ret_was_there,
                          struct err *e)
{
	struct person_call               c = call_of(d, tenant, email);
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = perform(&c, WORLD_REMOVE_PERSON, run_remove, &a, e);

	*ret_was_there = c.is_there && (!rc || rc == RC_TIMEOUT); /* which is simulated after it has happened */
	return rc;
}

static enum rc forget_some(struct session *s, void *arg, struct err *e)
{
	struct person_call *c = arg;
	struct query q = query_of(&sim_person_type, SIM_PERSON_BY_TENANT, value_text(c->tenant), FORGOTTEN_AT_ONCE);
	enum rc      rc = session_query(s, &q, &c->page, e);

	for (size_t i = 0; !rc && i < c->page.count; i++) {
		const struct sim_person *p = page_record(&c->page, &sim_person_type, i);

		session_delete(s, &sim_person_type, p->id);
	}
	return rc;
}

enum rc sim_forget_people(struct sim_cloud *c, struct str tenant, struct arena *a, struct err *e)
{
	struct person_call p = { .cloud = c, .tenant = tenant };
	enum rc            rc;

	do
		rc = store_run(c->options.store, forget_some, &p, a, e);
	while (!rc && p.page.count);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* access.c - who may do what in which account. An assignment is one record whose key says all of it, so both changes are safe to repeat. */
#include "providers/sim/cloud_ops.h"

struct change {
	struct cloud_assignment assignment;
	bool                    is_grant;
};

static enum rc apply(struct session *s, void *arg, struct err *e)
{
	const struct change           *ch = arg;
	const struct cloud_assignment *x = &ch->assignment;
	struct sim_member              member;
	struct sim_assignment          old, record = { .account_id = x->account_id,
		                                       .kind = x->kind,
		                                       .principal = x->principal,
		                                       .permission_set = x->permission_set };
	bool                           found;
	enum rc                        rc;

	record.key = str_format(session_arena(s), "%.*s#%d#%.*s#%.*s", STR_ARG(x->account_id), (int)x->kind,
	                        STR_ARG(x->principal), STR_ARG(x->permission_set));
	rc = sim_find(s, &sim_assignment_type, record.key, &old, &found, e);
	if (rc || found == ch->is_grant)
		return rc; /* it is so already */
	if (!ch->is_grant) {
		session_delete(s, &sim_assignment_type, record.key);
		return RC_OK;
	}
	if ((rc = sim_get_member(s, x->account_id, &member, e)))
		return rc;
	session_put(s, &sim_assignment_type, &record);
	return RC_OK;
}

static enum rc change(struct access *base, const struct cloud_assignment *x, bool is_grant, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, access);
	struct change     ch = { *x, is_grant };
	struct arena      a = { 0 };
	enum rc           rc;

	if ((rc = sim_check_account(x->account_id, e)) ||
	    (rc = sim_check_text("principal", x->principal, CLOUD_NAME_MAX, e)) ||
	    (rc = sim_check_text("permission set", x->permission_set, CLOUD_NAME_MAX, e)))
		return rc;
	rc = sim_call(c, is_grant ? WORLD_GRANT : WORLD_REVOKE, apply, &ch, &a, e);
	arena_fini(&a);
	return rc;
}

static enum rc grant(struct access *x, const struct cloud_assignment *assignment, struct err *e)
{
	return change(x, assignment, true, e);
}

static enum rc revoke(struct access *x, const struct cloud_assignment *assignment, struct err *e)
{
	return change(x, assignment, false, e);
}

struct listing {
	struct str  account_id;
	struct page page;
};

static enum rc read_assignments(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;
	struct query    q = { .type = &sim_assignment_type,
		              .index = SIM_ASSIGNMENT_BY_ACCOUNT,
		              .hash = value_text(l->account_id) };

	return sim_read_all(s, q, &l->page, e);
}

static enum rc list(struct access *base, struct str account_id, struct arena *a, struct cloud_assignment **ret,
                    size_t *ret_count, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, access);
	struct listing    l = { .account_id = account_id };
	enum rc           rc = sim_call(c, WORLD_LIST_ASSIGNMENTS, read_assignments, &l, a, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, (l.page.count + 1) * sizeof(**ret));
	for (size_t i = 0; i < l.page.count; i++) {
		const struct sim_assignment *x = page_record(&l.page, &sim_assignment_type, i);

		(*ret)[i] = (struct cloud_assignment){ x->account_id, (enum cloud_principal)x->kind, x->principal,
			                               x->permission_set };
	}
	*ret_count = l.page.count;
	return RC_OK;
}

const struct access_ops sim_access_ops = { grant, revoke, list };

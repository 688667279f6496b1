/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - who may do what in which account: assignments, and temporary credentials.
 *
 * An assignment is one record whose key says all of it, so both changes are safe to repeat. An account has one secret,
 * made and stored here. As with a secret manager, callers learn its name only; its owner reads it with their own
 * rights.
 */
#include "base/id.h"
#include "providers/sim/cloud_private.h"

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
	rc = session_find(s, &sim_assignment_type, record.key, &old, &found, e);
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

static enum rc set(struct access *base, const struct cloud_assignment *x, bool is_granted, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, access);
	struct change     ch = { *x, is_granted };
	enum rc           rc;

	if ((rc = sim_check_account(x->account_id, e)) ||
	    (rc = sim_check_text("principal", x->principal, CLOUD_NAME_MAX, e)) ||
	    (rc = sim_check_text("permission set", x->permission_set, CLOUD_NAME_MAX, e)))
		return rc;
	return sim_call(c, is_granted ? WORLD_GRANT : WORLD_REVOKE, apply, &ch, NULL, e);
}

static enum rc list(struct access *base, struct str account_id, struct arena *a, struct cloud_assignment **ret,
                    size_t *ret_count, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, access);
	struct query      q = query_of(&sim_assignment_type, SIM_ASSIGNMENT_BY_ACCOUNT, value_text(account_id), 0);
	struct page       page;
	enum rc           rc = sim_list(c, WORLD_LIST_ASSIGNMENTS, &q, a, &page, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, (page.count + 1) * sizeof(**ret));
	for (size_t i = 0; i < page.count; i++) {
		const struct sim_assignment *x = page_record(&page, &sim_assignment_type, i);

		(*ret)[i] = (struct cloud_assignment){ x->account_id, (enum cloud_principal)x->kind, x->principal,
			                               x->permission_set };
	}
	*ret_count = page.count;
	return RC_OK;
}

const struct access_ops sim_access_ops = { set, list };

/* --- credentials --- */

struct issue {
	struct sim_secret secret;
	bool              found;
};

static enum rc apply_issue(struct session *s, void *arg, struct err *e)
{
	struct issue     *i = arg;
	struct sim_member member;
	struct sim_secret old;
	bool              found;
	enum rc           rc = sim_get_member(s, i->secret.account_id, &member, e);

	if (rc || (rc = session_find(s, &sim_secret_type, i->secret.account_id, &old, &found, e)))
		return rc;
	if (found && str_eq(old.name, i->secret.name) && str_eq(old.principal, i->secret.principal))
		return RC_OK; /* it is so already */
	i->secret.version = found ? old.version : 0;
	session_put(s, &sim_secret_type, &i->secret);
	return RC_OK;
}

static enum rc issue(struct credentials *base, const struct cloud_secret *x, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, credentials);
	char              value[ID_UUID_SIZE];
	struct issue      i = { .secret = { x->account_id, x->name, x->principal } };
	enum rc           rc;

	if ((rc = sim_check_account(x->account_id, e)) ||
	    (rc = sim_check_text("principal", x->principal, CLOUD_NAME_MAX, e)) ||
	    (rc = sim_check_text("name of a secret", x->name, CLOUD_NAME_MAX, e)))
		return rc;
	id_uuid(value);
	i.secret.value = str_from(value);
	return sim_call(c, WORLD_ISSUE, apply_issue, &i, NULL, e);
}

static enum rc drop_secret(struct session *s, void *arg, struct err *e)
{
	const struct str *account_id = arg;

	return session_drop(s, &sim_secret_type, *account_id, NULL, e);
}

static enum rc withdraw(struct credentials *base, struct str account_id, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, credentials);
	enum rc           rc = sim_check_account(account_id, e);

	return rc ? rc : sim_call(c, WORLD_WITHDRAW, drop_secret, &account_id, NULL, e);
}

static enum rc read_secret(struct session *s, void *arg, struct err *e)
{
	struct issue *i = arg;

	return session_find(s, &sim_secret_type, i->secret.account_id, &i->secret, &i->found, e);
}

static enum rc find(struct credentials *base, struct str account_id, struct arena *a, struct cloud_secret *ret,
                    bool *ret_found, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, credentials);
	struct issue      i = { .secret = { .account_id = account_id } };
	enum rc           rc = sim_check_account(account_id, e);

	if (rc || (rc = sim_call(c, WORLD_FIND_SECRET, read_secret, &i, a, e)))
		return rc;
	*ret_found = i.found;
	*ret = (struct cloud_secret){ account_id, i.secret.name, i.secret.principal };
	return RC_OK;
}

const struct credentials_ops sim_credentials_ops = { issue, withdraw, find };

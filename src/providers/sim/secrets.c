/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.c - temporary credentials, and the place where they are kept: one secret for an account.
 *
 * The secret itself is made here, stored here, and never leaves: callers get to know its name alone, as of a secret manager, where the person
 * whose it is reads it with his own rights.
 */
#include "base/id.h"
#include "providers/sim/cloud_ops.h"

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

	if (rc || (rc = sim_find(s, &sim_secret_type, i->secret.account_id, &old, &found, e)))
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
	struct arena      a = { 0 };
	enum rc           rc;

	if ((rc = sim_check_account(x->account_id, e)) ||
	    (rc = sim_check_text("principal", x->principal, CLOUD_NAME_MAX, e)) ||
	    (rc = sim_check_text("name of a secret", x->name, CLOUD_NAME_MAX, e)))
		return rc;
	id_uuid(value);
	i.secret.value = str_from(value);
	rc = sim_call(c, WORLD_ISSUE, apply_issue, &i, &a, e);
	arena_fini(&a);
	return rc;
}

static enum rc apply_withdraw(struct session *s, void *arg, struct err *e)
{
	struct issue *i = arg;
	enum rc       rc = sim_find(s, &sim_secret_type, i->secret.account_id, &i->secret, &i->found, e);

	if (!rc && i->found)
		session_delete(s, &sim_secret_type, i->secret.account_id);
	return rc;
}

static enum rc withdraw(struct credentials *base, struct str account_id, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, credentials);
	struct issue      i = { .secret = { .account_id = account_id } };
	struct arena      a = { 0 };
	enum rc           rc = sim_check_account(account_id, e);

	if (!rc)
		rc = sim_call(c, WORLD_WITHDRAW, apply_withdraw, &i, &a, e);
	arena_fini(&a);
	return rc;
}

static enum rc read_secret(struct session *s, void *arg, struct err *e)
{
	struct issue *i = arg;

	return sim_find(s, &sim_secret_type, i->secret.account_id, &i->secret, &i->found, e);
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

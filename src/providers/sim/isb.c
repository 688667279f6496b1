/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isb.c - a simulated Innovation Sandbox: a table of accounts, and a program that moves first and writes later.
 *
 * It has what a guard beside the real one has to live with: the order of its two writes, and that the second one is
 * made without a condition, from a copy that may be old.
 */
#include "providers/sim/cloud_private.h"

struct change {
	struct str account, name;
	struct str expected, status; /* empty: whatever it is; gone */

	struct sim_isb_account found; /* the answer */
	bool                   exists;
};

static struct sim_cloud *cloud_of(struct account_table *t)
{
	return CONTAINER_OF(t, struct sim_cloud, isb_table);
}

/* --- the port --- */

static enum rc read_account(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;

	return session_find(s, &sim_isb_account_type, c->account, &c->found, &c->exists, e);
}

static enum rc get(struct account_table *t, struct str account, struct arena *a, struct table_account *ret,
                   struct err *e)
{
	struct change ch = { .account = account };
	enum rc       rc = sim_call(cloud_of(t), WORLD_TABLE_GET, read_account, &ch, a, e);

	if (rc)
		return rc;
	if (!ch.exists)
		return err_set(e, RC_NOT_FOUND, "the account table has no account %.*s", STR_ARG(account));
	*ret = (struct table_account){ .status = ch.found.status, .name = ch.found.name };
	return RC_OK;
}

static enum rc change_as_expected(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;
	enum rc        rc = read_account(s, c, e);

	if (rc)
		return rc;
	if (!c->exists || !str_eq(c->found.status, c->expected))
		return err_set_code(e, RC_CONFLICT, "ConditionalCheckFailedException",
		                    "account %.*s is not %.*s in the account table", STR_ARG(c->account),
		                    STR_ARG(c->expected));
	if (!c->status.n) {
		session_delete(s, &sim_isb_account_type, c->account);
		return RC_OK;
	}
	c->found.status = c->status;
	session_put(s, &sim_isb_account_type, &c->found);
	return RC_OK;
}

static enum rc set_status(struct account_table *t, struct str account, struct str expected, struct str status,
                          struct err *e)
{
	struct change ch = { .account = account, .expected = expected, .status = status };

	return sim_call(cloud_of(t), WORLD_TABLE_SET, change_as_expected, &ch, NULL, e);
}

static enum rc delete_account(struct account_table *t, struct str account, struct str expected, struct err *e)
{
	struct change ch = { .account = account, .expected = expected };

	return sim_call(cloud_of(t), WORLD_TABLE_DELETE, change_as_expected, &ch, NULL, e);
}

const struct account_table_ops sim_isb_table_ops = { get, set_status, delete_account };

/* --- its first accounts --- */

/* What the table knows stays as it is. */
static enum rc add_account(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;
	enum rc        rc = read_account(s, c, e);

	if (rc || c->exists)
		return rc;
	c->found = (struct sim_isb_account){ c->account, c->name, c->status, session_now(s).ms };
	session_put(s, &sim_isb_account_type, &c->found);
	return RC_OK;
}

static enum rc seed_ou(struct sim_cloud *c, enum sim_ou_name ou, struct arena *a, struct err *e)
{
	struct organisation      *o = &c->organisation;
	struct cloud_account_page page = { 0 };
	enum rc                   rc;

	do {
		rc = o->ops->list_accounts(o, c->ou_ids[ou], page.next, a, &page, e);
		for (size_t i = 0; !rc && i < page.count; i++) {
			struct change ch = { .account = page.items[i].id,
				             .name = page.items[i].name,
				             .status = str_from(sim_ou_names[ou]) };

			rc = store_run(c->options.store, add_account, &ch, NULL, e);
		}
	} while (!rc && page.next.n);
	return rc;
}

enum rc sim_isb_seed(struct sim_cloud *c, struct err *e)
{
	static const enum sim_ou_name    ous[] = { SIM_OU_AVAILABLE, SIM_OU_ACTIVE, SIM_OU_FROZEN, SIM_OU_CLEANUP,
		                                   SIM_OU_QUARANTINE };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(ous); i++)
		rc = seed_ou(c, ous[i], &a, e);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isb.c - a simulated Innovation Sandbox: a table of accounts, and a program that moves first and writes later.
 *
 * Of the real one it has what a guard beside it has to live with: the order of its two writes, and that the second one is made without a
 * condition, from a copy that may be old.
 */
#include "providers/sim/isb.h"

#include <stdlib.h>

#include "base/mem.h"
#include "providers/sim/cloud_ops.h"

struct sim_isb {
	struct account_table table;
	struct sim_cloud    *cloud;
};

struct change {
	struct str account, name;
	struct str expected, status; /* empty: whatever it is; gone */

	struct sim_isb_account found; /* the answer */
	bool                   exists;
};

static struct sim_isb *isb_of(struct account_table *t)
{
	return CONTAINER_OF(t, struct sim_isb, table);
}

/* --- the port --- */

static enum rc read_account(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;

	return sim_find(s, &sim_isb_account_type, c->account, &c->found, &c->exists, e);
}

static enum rc get(struct account_table *t, struct str account, struct arena *a, struct table_account *ret,
                   struct err *e)
{
	struct change c = { .account = account };
	enum rc       rc = sim_call(isb_of(t)->cloud, WORLD_TABLE_GET, read_account, &c, a, e);

	if (rc)
		return rc;
	if (!c.exists)
		return err_set(e, RC_NOT_FOUND, "the account table has no account %.*s", STR_ARG(account));
	*ret = (struct table_account){ .status = c.found.status, .name = c.found.name };
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
	struct change c = { .account = account, .expected = expected, .status = status };
	struct arena  a = { 0 };
	enum rc       rc = sim_call(isb_of(t)->cloud, WORLD_TABLE_SET, change_as_expected, &c, &a, e);

	arena_fini(&a);
	return rc;
}

static enum rc delete_account(struct account_table *t, struct str account, struct str expected, struct err *e)
{
	struct change c = { .account = account, .expected = expected };
	struct arena  a = { 0 };
	enum rc       rc = sim_call(isb_of(t)->cloud, WORLD_TABLE_DELETE, change_as_expected, &c, &a, e);

	arena_fini(&a);
	return rc;
}

static const struct account_table_ops ops = { get, set_status, delete_account };

struct sim_isb *sim_isb_new(struct sim_cloud *c)
{
	struct sim_isb *isb = mem_new(struct sim_isb);

	isb->table.ops = &ops;
	isb->cloud = c;
	return isb;
}

void sim_isb_free(struct sim_isb *isb)
{
	free(isb);
}

struct account_table *sim_isb_table(struct sim_isb *isb)
{
	return &isb->table;
}

/* --- what it does itself --- */

static enum rc write_account(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;
	enum rc        rc = read_account(s, c, e);

	if (rc)
		return rc;
	if (!c->exists)
		c->found = (struct sim_isb_account){ .id = c->account, .name = c->name };
	c->found.status = c->status;
	c->found.edited_ms = session_now(s).ms;
	session_put(s, &sim_isb_account_type, &c->found);
	return RC_OK;
}

static enum rc add_unknown(struct session *s, void *arg, struct err *e)
{
	struct change *c = arg;
	enum rc        rc = read_account(s, c, e);

	return rc || c->exists ? rc : write_account(s, c, e);
}

static enum rc run(struct sim_isb *isb, txn_fn *fn, struct change *c, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc = store_run(isb->cloud->options.store, fn, c, &a, e);

	arena_fini(&a);
	return rc;
}

enum rc sim_isb_write(struct sim_isb *isb, struct str account, struct str status, struct err *e)
{
	struct change c = { .account = account, .status = status };

	return run(isb, write_account, &c, e);
}

enum rc sim_isb_move(struct sim_isb *isb, struct str account, enum sim_ou_name to, struct err *e)
{
	struct sim_truth truth;
	enum rc          rc = sim_cloud_inspect(isb->cloud, account, &truth, e);

	if (rc)
		return rc;
	return sim_world_ops.move(&isb->cloud->world, account, isb->cloud->ou_ids[truth.ou], isb->cloud->ou_ids[to], e);
}

enum rc sim_isb_change(struct sim_isb *isb, struct str account, enum sim_ou_name to, struct err *e)
{
	enum rc rc = sim_isb_move(isb, account, to, e);

	return rc ? rc : sim_isb_write(isb, account, str_from(sim_ou_names[to]), e);
}

static enum rc seed_ou(struct sim_isb *isb, enum sim_ou_name ou, struct arena *a, struct err *e)
{
	struct organisation      *o = &isb->cloud->organisation;
	struct cloud_account_page page = { 0 };
	enum rc                   rc;

	do {
		rc = o->ops->list_accounts(o, isb->cloud->ou_ids[ou], page.next, a, &page, e);
		for (size_t i = 0; !rc && i < page.count; i++) {
			struct change c = { .account = page.items[i].id,
				            .name = page.items[i].name,
				            .status = str_from(sim_ou_names[ou]) };

			rc = run(isb, add_unknown, &c, e);
		}
	} while (!rc && page.next.n);
	return rc;
}

enum rc sim_isb_seed(struct sim_isb *isb, struct err *e)
{
	static const enum sim_ou_name ous[] = { SIM_OU_AVAILABLE, SIM_OU_ACTIVE, SIM_OU_FROZEN, SIM_OU_CLEANUP,
		                                SIM_OU_QUARANTINE };
	struct arena                  a = { 0 };
	enum rc                       rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(ous); i++)
		rc = seed_ou(isb, ous[i], &a, e);
	arena_fini(&a);
	return rc;
}

enum rc sim_isb_status(struct sim_isb *isb, struct str account, struct arena *a, struct str *ret, struct err *e)
{
	struct change c = { .account = account };
	enum rc       rc = store_read(isb->cloud->options.store, read_account, &c, a, e);

	if (!rc)
		*ret = c.exists ? c.found.status : STR("");
	return rc;
}

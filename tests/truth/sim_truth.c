/* SPDX-License-Identifier: Apache-2.0 */
/* sim_truth.c - looks into the records of the simulated cloud, beside its ports. */
#include "truth/sim_truth.h"

#include "providers/sim/cloud_private.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS, RESOURCES_MAX = 1000 };

struct look {
	struct sim_cloud *cloud;
	struct str        id; /* of an account or a tenant */
	int64_t           from_ms, to_ms;
	struct str        status; /* to write */

	struct sim_truth        account; /* the answer */
	struct sim_tenant_truth tenant;
	int64_t                 micro_usd;
	struct sim_isb_account  record;
	bool                    exists;
};

/* --- accounts --- */

static enum rc inspect(struct session *s, void *arg, struct err *e)
{
	struct look      *l = arg;
	struct sim_member m;
	enum rc           rc = sim_get_member(s, l->id, &m, e);
	bool              is_clean = !rc && m.clean_at_ms && m.clean_at_ms <= session_now(s).ms;

	if (!rc)
		l->account = (struct sim_truth){ sim_find_ou(l->cloud, m.ou_id), is_clean ? 0 : m.dirty, m.rate,
			                         m.moves };
	return rc;
}

enum rc sim_cloud_inspect(struct sim_cloud *c, struct str account_id, struct sim_truth *ret, struct err *e)
{
	struct look l = { .cloud = c, .id = account_id };
	enum rc     rc = store_read(c->options.store, inspect, &l, NULL, e);

	if (!rc)
		*ret = l.account;
	return rc;
}

/* Rate times duration, rounded down for each day, as on a bill. */
static int64_t cost_of(const struct page *rates, int64_t from_ms, int64_t to_ms)
{
	int64_t sum = 0;

	for (size_t i = 0; i < rates->count; i++) {
		const struct sim_rate *r = page_record(rates, &sim_rate_type, i);
		const struct sim_rate *next = i + 1 < rates->count ? page_record(rates, &sim_rate_type, i + 1) : NULL;
		int64_t                begin = r->at_ms > from_ms ? r->at_ms : from_ms;
		int64_t                end = next && next->at_ms < to_ms ? next->at_ms : to_ms;

		sum += begin < end ? r->rate * (end - begin) : 0;
	}
	return sum / HOUR_MS;
}

static enum rc add_up(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;
	struct query q = query_of(&sim_rate_type, SIM_RATE_BY_ACCOUNT, value_text(l->id), 0);
	int64_t      to_ms = l->to_ms < session_now(s).ms ? l->to_ms : session_now(s).ms;
	struct page  rates;
	enum rc      rc = sim_read_all(s, q, &rates, e);

	l->micro_usd = 0;
	for (int64_t at = l->from_ms, end; !rc && at < to_ms; at = end) {
		end = at / DAY_MS * DAY_MS + DAY_MS;
		l->micro_usd += cost_of(&rates, at, end < to_ms ? end : to_ms);
	}
	return rc;
}

enum rc sim_cloud_true_spend(struct sim_cloud *c, struct str account_id, int64_t from_ms, int64_t to_ms,
                             int64_t *ret_micro_usd, struct err *e)
{
	struct look l = { .cloud = c, .id = account_id, .from_ms = from_ms, .to_ms = to_ms };
	enum rc     rc = store_read(c->options.store, add_up, &l, NULL, e);

	if (!rc)
		*ret_micro_usd = l.micro_usd;
	return rc;
}

/* --- tenants --- */

static enum rc inspect_tenant(struct session *s, void *arg, struct err *e)
{
	struct look             *l = arg;
	struct sim_tenant_truth *t = &l->tenant;
	struct value             hash = value_text(l->id);
	struct query             q = query_of(&sim_resource_type, SIM_RESOURCE_BY_TENANT, hash, RESOURCES_MAX);
	struct page              page;
	enum rc                  rc;

	*t = (struct sim_tenant_truth){ 0 };
	if ((rc = session_query(s, &q, &page, e)) ||
	    (rc = session_count(s, &sim_archive_type, SIM_ARCHIVE_BY_TENANT, hash, &t->archives, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct sim_resource *x = page_record(&page, &sim_resource_type, i);

		t->resources++;
		t->kinds |= 1u << x->kind;
		t->owners += !str_eq(t->instance, x->key);
		t->instance = x->key;
		t->desired += x->desired;
		t->route = x->kind == INSTANCE_ROUTE ? x->route : t->route;
		t->is_configured |= x->content != 0;
	}
	return RC_OK;
}

enum rc sim_cloud_inspect_tenant(struct sim_cloud *c, struct str tenant, struct arena *a, struct sim_tenant_truth *ret,
                                 struct err *e)
{
	struct look l = { .cloud = c, .id = tenant };
	enum rc     rc = store_read(c->options.store, inspect_tenant, &l, a, e);

	if (!rc)
		*ret = l.tenant;
	return rc;
}

/* --- the other system --- */

static enum rc read_account(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;

	return session_find(s, &sim_isb_account_type, l->id, &l->record, &l->exists, e);
}

static enum rc write_account(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;
	enum rc      rc = read_account(s, l, e);

	if (rc)
		return rc;
	if (!l->exists)
		l->record = (struct sim_isb_account){ .id = l->id };
	l->record.status = l->status;
	l->record.edited_ms = session_now(s).ms;
	session_put(s, &sim_isb_account_type, &l->record);
	return RC_OK;
}

enum rc sim_isb_write(struct sim_cloud *c, struct str account, struct str status, struct err *e)
{
	struct look l = { .id = account, .status = status };

	return store_run(c->options.store, write_account, &l, NULL, e);
}

enum rc sim_isb_move(struct sim_cloud *c, struct str account, enum sim_ou_name to, struct err *e)
{
	struct sim_truth truth;
	enum rc          rc = sim_cloud_inspect(c, account, &truth, e);

	return rc ? rc : sim_move(c, account, c->ou_ids[truth.ou], c->ou_ids[to], true, e);
}

enum rc sim_isb_change(struct sim_cloud *c, struct str account, enum sim_ou_name to, struct err *e)
{
	enum rc rc = sim_isb_move(c, account, to, e);

	return rc ? rc : sim_isb_write(c, account, str_from(sim_ou_names[to]), e);
}

enum rc sim_isb_status(struct sim_cloud *c, struct str account, struct arena *a, struct str *ret, struct err *e)
{
	struct look l = { .id = account };
	enum rc     rc = store_read(c->options.store, read_account, &l, a, e);

	if (!rc)
		*ret = l.exists ? l.record.status : STR("");
	return rc;
}

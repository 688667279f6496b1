/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ledger.c - what accounts cost, and when the bill knows.
 *
 * Whenever an account comes into use, goes out of use or changes its rate, a sim_rate record says what an hour costs
 * from then on. An amount is rate times duration over these records: nothing is added up in the background.
 *
 * An account is in use in Active and in Frozen: freezing takes access away, not the machines. The figures of an hour
 * become visible some time after its end. That delay follows from the account and the UTC day, so two days may become
 * visible in the wrong order, as with Cost Explorer; an early answer is too low, never too high.
 *
 * A day's amount is split over a few services, in parts that follow from the account. The first one gets what rounding
 * leaves, so the parts of a day always add up.
 */
#include "providers/sim/cloud_private.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS, PARTS = 1000 };

static const struct str services[] = {
	STR_INIT("Amazon Elastic Compute Cloud - Compute"),
	STR_INIT("Amazon Relational Database Service"),
	STR_INIT("Amazon Simple Storage Service"),
	STR_INIT("AWS Lambda"),
	STR_INIT("AmazonCloudWatch"),
};
enum { SERVICES = sizeof(services) / sizeof(services[0]) };

bool sim_is_billed(enum sim_ou_name ou)
{
	return ou == SIM_OU_ACTIVE || ou == SIM_OU_FROZEN;
}

enum rc sim_note_rate(struct session *s, struct str account_id, int64_t rate, struct err *e)
{
	int64_t         now_ms = session_now(s).ms;
	struct str      key = str_format(session_arena(s), "%.*s#%015lld", STR_ARG(account_id), (long long)now_ms);
	struct sim_rate r;
	enum rc         rc = session_find_or_new(s, &sim_rate_type, key, &r, e);

	if (rc)
		return rc;
	r.account_id = account_id;
	r.at_ms = now_ms;
	r.rate = rate;
	session_put(s, &sim_rate_type, &r);
	return RC_OK;
}

/* Cost of [from, to), at most a day, in millionths of a dollar. */
static int64_t cost_of(const struct page *rates, int64_t from_ms, int64_t to_ms)
{
	int64_t sum = 0; /* rate times ms: a day at WORLD_RATE_MAX_USD fits a hundred times */

	for (size_t i = 0; i < rates->count; i++) {
		const struct sim_rate *r = page_record(rates, &sim_rate_type, i);
		const struct sim_rate *next = i + 1 < rates->count ? page_record(rates, &sim_rate_type, i + 1) : NULL;
		int64_t                begin = r->at_ms > from_ms ? r->at_ms : from_ms;
		int64_t                end = next && next->at_ms < to_ms ? next->at_ms : to_ms;

		if (begin < end)
			sum += r->rate * (end - begin);
	}
	return sum / HOUR_MS;
}

/* Up to when this day's hours are visible. */
static int64_t visible_until(const struct sim_cloud_options *o, struct str account_id, int64_t day, int64_t now_ms)
{
	int64_t spread = o->cost_delay_max_ms - o->cost_delay_min_ms + 1;
	int64_t delay = o->cost_delay_min_ms + (int64_t)(str_hash(account_id, (uint64_t)day) % (uint64_t)spread);

	return (now_ms - delay) / HOUR_MS * HOUR_MS;
}

struct bill {
	const struct sim_cloud_options *options;
	struct str                      account_id;
	int64_t                         from_ms, to_ms;
	bool                            is_itemised; /* by service */

	struct cloud_bill bill;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* How many thousandths of its costs the account spends on this service: the first has what is left. */
static int64_t parts_of(struct str account_id, size_t service)
{
	int64_t parts = PARTS;

	if (service)
		return (int64_t)(str_hash(account_id, service) % (PARTS / SERVICES));
	for (size_t i = 1; i < SERVICES; i++)
		parts -= parts_of(account_id, i);
	return parts;
}

static void add_items(struct cloud_bill *bill, struct str account_id, int64_t day_ms, int64_t micro_usd)
{
	int64_t left = micro_usd;

	for (size_t i = SERVICES; i-- > 0;) {
		int64_t amount = i ? micro_usd / PARTS * parts_of(account_id, i) : left;

		left -= amount;
		if (amount)
			bill->items[bill->count++] = (struct cloud_cost){ services[i], day_ms, amount };
	}
}

static void add_up(struct bill *b, const struct page *rates, int64_t now_ms)
{
	b->bill.count = 0;
	b->bill.spend = (struct cloud_spend){ .complete_until_ms = b->to_ms };
	for (int64_t day = b->from_ms / DAY_MS; day * DAY_MS < b->to_ms; day++) {
		int64_t begin = day * DAY_MS > b->from_ms ? day * DAY_MS : b->from_ms;
		int64_t end = smaller((day + 1) * DAY_MS, b->to_ms);
		int64_t shown = visible_until(b->options, b->account_id, day, now_ms);
		int64_t cost;

		shown = smaller(end, shown > begin ? shown : begin);
		if (shown < end)
			b->bill.spend.complete_until_ms = smaller(b->bill.spend.complete_until_ms, shown);
		cost = cost_of(rates, begin, shown);
		b->bill.spend.micro_usd += cost;
		if (b->is_itemised)
			add_items(&b->bill, b->account_id, day * DAY_MS, cost);
	}
}

static enum rc make_bill(struct session *s, void *arg, struct err *e)
{
	struct bill *b = arg;
	struct query q = query_of(&sim_rate_type, SIM_RATE_BY_ACCOUNT, value_text(b->account_id), 0);
	struct page  rates;
	size_t       days = (size_t)((b->to_ms - b->from_ms) / DAY_MS + 2); /* one may be cut at each end */
	enum rc      rc;

	q.has_sort_max = true;
	q.sort_max = b->to_ms;
	rc = sim_read_all(s, q, &rates, e);
	if (b->is_itemised)
		b->bill.items = arena_alloc(session_arena(s), days * SERVICES * sizeof(b->bill.items[0]));
	if (!rc)
		add_up(b, &rates, session_now(s).ms);
	return rc;
}

static enum rc run_bill(struct sim_cloud *c, struct bill *b, struct arena *a, struct err *e)
{
	enum rc rc;

	b->options = &c->options;
	if (b->from_ms < 0 || b->from_ms > b->to_ms || b->to_ms - b->from_ms > CLOUD_SPEND_DAYS * (int64_t)DAY_MS)
		return err_set_code(e, RC_INVALID, "ValidationException",
		                    "spend from %lld to %lld ms: must be forward in time and at most %d days",
		                    (long long)b->from_ms, (long long)b->to_ms, CLOUD_SPEND_DAYS);
	rc = sim_check_account(b->account_id, e);
	return rc ? rc : sim_call(c, WORLD_SPEND, make_bill, b, a, e);
}

static enum rc spend(struct costs *base, struct str account_id, int64_t from_ms, int64_t to_ms, struct cloud_spend *ret,
                     struct err *e)
{
	struct bill b = { .account_id = account_id, .from_ms = from_ms, .to_ms = to_ms };
	enum rc     rc = run_bill(CONTAINER_OF(base, struct sim_cloud, costs), &b, NULL, e);

	if (!rc)
		*ret = b.bill.spend;
	return rc;
}

static enum rc itemise(struct costs *base, struct str account_id, int64_t from_ms, int64_t to_ms, struct arena *a,
                       struct cloud_bill *ret, struct err *e)
{
	struct bill b = { .account_id = account_id, .from_ms = from_ms, .to_ms = to_ms, .is_itemised = true };
	enum rc     rc = run_bill(CONTAINER_OF(base, struct sim_cloud, costs), &b, a, e);

	if (!rc)
		*ret = b.bill;
	return rc;
}

const struct costs_ops sim_costs_ops = { spend, itemise };

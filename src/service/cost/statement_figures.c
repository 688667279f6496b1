/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement_figures.c - from a cloud's bill to the figures of a statement.
 *
 * The bill comes by service and day. The statement keeps both sums: by service, the dearest first, and by day. Each
 * adds up to the total, to the last millionth. A service without a usable name, and all beyond STATEMENT_SERVICES_MAX,
 * are one row that comes last. A window of more days than rows are kept has rows of several days.
 */
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "domain/ports/cloud.h"
#include "service/cost/cost_report.h"
#include "service/cost/statement.h"

enum { DATE_LENGTH = 10, ASK_DAYS = 90 };

struct service_sum {
	struct str name;
	int64_t    micro_usd;
};

struct figures {
	struct service_sum services[STATEMENT_SERVICES_MAX + 1]; /* the last place is for all others */
	size_t             count;
	int64_t           *days; /* one for each day of the window */
	int64_t            total;
};

/* --- adding up --- */

static struct service_sum *find_service(struct figures *f, struct str name, struct arena *a)
{
	bool is_usable = name.n > 0 && name.n <= CLOUD_SERVICE_MAX && !str_eq(name, STR(STATEMENT_OTHERS));

	for (size_t i = 0; is_usable && i < f->count; i++)
		if (str_eq(f->services[i].name, name))
			return &f->services[i];
	if (!is_usable || f->count == STATEMENT_SERVICES_MAX)
		return &f->services[STATEMENT_SERVICES_MAX];
	f->services[f->count].name = str_dup(a, name);
	return &f->services[f->count++];
}

static enum rc add_bill(const struct statement *st, const struct cloud_bill *bill, struct figures *f, struct arena *a,
                        struct err *e)
{
	for (size_t i = 0; i < bill->count; i++) {
		const struct cloud_cost *item = &bill->items[i];
		int64_t                  day = (item->day_ms - st->from_ms) / DAY_MS;

		if (item->day_ms < st->from_ms || item->day_ms >= st->to_ms)
			return err_set(e, RC_CORRUPT, "the bill of account %.*s has a day that was not asked for",
			               STR_ARG(st->account_id));
		if (__builtin_add_overflow(f->total, item->micro_usd, &f->total))
			return err_set(e, RC_TOO_LARGE, "the costs are more than can be counted");
		f->days[day] += item->micro_usd;
		find_service(f, item->service, a)->micro_usd += item->micro_usd;
	}
	return RC_OK;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static enum rc ask(struct statement *st, const struct statement_asking *how, struct figures *f, struct arena *a,
                   struct err *e)
{
	st->complete_until_ms = st->to_ms;
	for (int64_t from_ms = st->from_ms; from_ms < st->to_ms; from_ms += ASK_DAYS * (int64_t)DAY_MS) {
		int64_t           to_ms = smaller(from_ms + ASK_DAYS * (int64_t)DAY_MS, st->to_ms);
		struct cloud_bill bill;
		enum rc           rc;

		if (how->go_on && !how->go_on(how->go_on_arg))
			return err_set(e, RC_UNAVAILABLE, "the statement was interrupted");
		if ((rc = how->costs->ops->itemise(how->costs, st->account_id, from_ms, to_ms, a, &bill, e)) ||
		    (rc = add_bill(st, &bill, f, a, e)))
			return err_wrap(e, rc, "costs of account %.*s", STR_ARG(st->account_id));
		if (bill.spend.complete_until_ms < to_ms)
			st->complete_until_ms = smaller(st->complete_until_ms, bill.spend.complete_until_ms);
	}
	return RC_OK;
}

/* --- rows --- */

static int by_cost(const void *a, const void *b)
{
	const struct service_sum *x = a, *y = b;

	if (x->micro_usd != y->micro_usd)
		return x->micro_usd > y->micro_usd ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* One more row of the JSON array that the buffer has. */
static void add_row(struct buf *b, struct str row)
{
	buf_add_char(b, b->n ? ',' : '[');
	buf_add_str(b, row);
}

static struct str end_rows(struct buf *b, struct arena *a)
{
	buf_add_text(b, b->n ? "]" : "[]");
	return buf_take(b, a);
}

static struct str service_rows(struct figures *f, struct arena *a)
{
	struct service_sum *others = &f->services[STATEMENT_SERVICES_MAX];
	struct buf          b = BUF(STATEMENT_TEXT_MAX);

	qsort(f->services, f->count, sizeof(f->services[0]), by_cost);
	for (size_t i = 0; i < f->count; i++)
		add_row(&b, JSON_OF(a, member_str("service", f->services[i].name),
		                    member_micro("usd", f->services[i].micro_usd)));
	if (others->micro_usd)
		add_row(&b,
		        JSON_OF(a, member_word("service", STATEMENT_OTHERS), member_micro("usd", others->micro_usd)));
	return end_rows(&b, a);
}

static struct str day_rows(const struct statement *st, const struct figures *f, struct arena *a)
{
	int64_t    days = (st->to_ms - st->from_ms) / DAY_MS;
	int64_t    step = (days + STATEMENT_ROWS_MAX - 1) / STATEMENT_ROWS_MAX;
	struct buf b = BUF(STATEMENT_TEXT_MAX);

	for (int64_t day = 0; day < days; day += step) {
		int64_t    sum = 0, count = smaller(step, days - day);
		char       text[ISO_TIME_SIZE];
		struct str from = iso_time((st->from_ms + day * DAY_MS) / 1000, text);

		for (int64_t i = 0; i < count; i++)
			sum += f->days[day + i];
		if (sum)
			add_row(&b, JSON_OF(a, member_str("from", str_of(from.p, DATE_LENGTH)),
			                    member_int("days", count), member_micro("usd", sum)));
	}
	return end_rows(&b, a);
}

/* --- all of it --- */

static struct str hash_of(const struct statement *st, struct arena *a)
{
	struct str text = str_format(a, "%.*s %.*s %lld %lld %lld %.*s %.*s", STR_ARG(st->uuid),
	                             STR_ARG(st->account_id), (long long)st->from_ms, (long long)st->to_ms,
	                             (long long)st->total, STR_ARG(st->rows), STR_ARG(st->days));

	return hash_sha256_hex(a, text);
}

enum rc statement_ask(struct statement *st, const struct statement_asking *how, struct arena *a,
                      int64_t **ret_day_costs, struct err *e)
{
	struct figures *f = arena_alloc(a, sizeof(*f));
	size_t          days = st->to_ms > st->from_ms ? (size_t)((st->to_ms - st->from_ms) / DAY_MS) : 0;
	enum rc         rc;

	f->days = arena_alloc(a, days * sizeof(f->days[0]));
	if ((rc = ask(st, how, f, a, e)))
		return rc;
	st->total = f->total;
	st->rows = service_rows(f, a);
	st->days = day_rows(st, f, a);
	st->hash = hash_of(st, a);
	*ret_day_costs = f->days;
	return RC_OK;
}

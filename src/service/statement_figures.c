/* SPDX-License-Identifier: Apache-2.0 */
/*
 * statement_figures.c - from a cloud's bill to the figures of a statement.
 *
 * The bill comes by service and day. The statement keeps both sums: by service, the dearest first, and by day. Each adds up to the total, to
 * the last millionth. A service without a usable name, and all beyond STATEMENT_SERVICES_MAX, are one row that comes last. A window of
 * more days than rows are kept has rows of several days.
 */
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "domain/cloud.h"
#include "service/cost_report.h"
#include "service/statement.h"

enum { HASH_BYTES = 32, HASH_HEX = 64, DATE_LENGTH = 10, ASK_DAYS = 90 };

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

/* An object at the end of the array that the buffer has. */
static struct json_out open_row(struct buf *b)
{
	struct json_out o;

	if (b->n > 1)
		buf_add_char(b, ',');
	json_out_init(&o, b);
	json_open_object(&o);
	return o;
}

static void add_service(struct buf *b, const struct service_sum *sum)
{
	struct json_out o = open_row(b);

	json_put_str(&o, "service", sum->name);
	json_put_real(&o, "usd", (double)sum->micro_usd / 1e6);
	json_close_object(&o);
}

static struct str service_rows(struct figures *f, struct arena *a)
{
	struct service_sum *others = &f->services[STATEMENT_SERVICES_MAX];
	struct buf          b;
	struct str          rows;

	qsort(f->services, f->count, sizeof(f->services[0]), by_cost);
	buf_init(&b, STATEMENT_TEXT_MAX);
	buf_add_char(&b, '[');
	for (size_t i = 0; i < f->count; i++)
		add_service(&b, &f->services[i]);
	others->name = STR(STATEMENT_OTHERS);
	if (others->micro_usd)
		add_service(&b, others);
	buf_add_char(&b, ']');
	rows = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return rows;
}

static void add_days(struct buf *b, int64_t from_ms, int64_t days, int64_t micro_usd)
{
	struct json_out o = open_row(b);
	char            text[ISO_TIME_SIZE];

	json_put_str(&o, "from", str_of(iso_time(from_ms / 1000, text).p, DATE_LENGTH));
	json_put_int(&o, "days", days);
	json_put_real(&o, "usd", (double)micro_usd / 1e6);
	json_close_object(&o);
}

static struct str day_rows(const struct statement *st, const struct figures *f, struct arena *a)
{
	int64_t    days = (st->to_ms - st->from_ms) / DAY_MS;
	int64_t    step = (days + STATEMENT_ROWS_MAX - 1) / STATEMENT_ROWS_MAX;
	struct buf b;
	struct str rows;

	buf_init(&b, STATEMENT_TEXT_MAX);
	buf_add_char(&b, '[');
	for (int64_t day = 0; day < days; day += step) {
		int64_t sum = 0, count = smaller(step, days - day);

		for (int64_t i = 0; i < count; i++)
			sum += f->days[day + i];
		if (sum)
			add_days(&b, st->from_ms + day * DAY_MS, count, sum);
	}
	buf_add_char(&b, ']');
	rows = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return rows;
}

/* --- all of it --- */

static struct str hash_of(const struct statement *st, struct arena *a)
{
	struct str    text = str_format(a, "%.*s %.*s %lld %lld %lld %.*s %.*s", STR_ARG(st->uuid),
	                                STR_ARG(st->account_id), (long long)st->from_ms, (long long)st->to_ms,
	                                (long long)st->total, STR_ARG(st->rows), STR_ARG(st->days));
	unsigned char digest[EVP_MAX_MD_SIZE];
	char          hex[HASH_HEX + 1];

	if (!EVP_Digest(text.p, text.n, digest, NULL, EVP_sha256(), NULL))
		abort(); /* fails only without memory */
	for (int i = 0; i < HASH_BYTES; i++)
		(void)snprintf(hex + (ptrdiff_t)2 * i, 3, "%02x", digest[i]); /* two digits */
	return str_dup(a, str_of(hex, HASH_HEX));
}

enum rc statement_ask(struct statement *st, const struct statement_asking *how, struct arena *a,
                      int64_t **ret_day_costs, struct err *e)
{
	struct figures *f = arena_alloc(a, sizeof(*f));
	size_t          days = (size_t)((st->to_ms - st->from_ms) / DAY_MS);
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

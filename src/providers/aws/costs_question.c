/* SPDX-License-Identifier: Apache-2.0 */
/* costs_question.c - see costs_question.h. */
#include "providers/aws/costs_question.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "domain/ports/cloud.h"
#include "providers/aws/call.h"

#define NEXT "NextPageToken"
enum {
	CALL_MS = 90000,
	ATTEMPT_MS = 40000, /* a long answer takes its time, and each attempt may cost a cent */
	FILTER_MAX = 16384,
	WORDS_MAX = 4096
};

static const struct aws_error_row errors[] = {
	{ "LimitExceededException", RC_LIMITED },
	{ "DataUnavailableException", RC_UNAVAILABLE },
	{ "BillExpirationException", RC_INVALID },
	{ "InvalidNextTokenException", RC_CONFLICT },
	{ "RequestChangedException", RC_CONFLICT },
	{ "BillingViewHealthStatusException", RC_DENIED },
	{ NULL, RC_OK },
};
static const struct aws_op get_cost_and_usage = { .service = &aws_services[AWS_COST_EXPLORER],
	                                          .name = "GetCostAndUsage",
	                                          .permission = "ce:GetCostAndUsage",
	                                          .errors = errors,
	                                          .pace = AWS_PACE_COSTS };

int64_t cost_day_count(struct cost_days days)
{
	return (days.end_ms - days.first_ms) / COST_DAY_MS;
}

struct cost_cell *cost_question_cell(const struct cost_question *q, size_t account, int64_t day_ms)
{
	return &q->cells[(int64_t)account * cost_day_count(q->days) + (day_ms - q->days.first_ms) / COST_DAY_MS];
}

/* The list of a setting, as JSON. */
static struct str json_list(struct str rest, struct arena *a)
{
	struct buf      b = BUF(WORDS_MAX);
	struct json_out o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_list("Values"));
	while (rest.n) {
		struct str word = str_trim(str_cut(&rest, ','));

		if (word.n)
			json_add_str(&o, word);
	}
	JSON_PUT(&o, member_list_end(), member_str("Key", STR("RECORD_TYPE")),
	         member_raw("MatchOptions", STR("[\"EQUALS\"]")), member_end());
	return buf_take(&b, a);
}

static struct str make_filter(const struct cost_question *q, struct arena *a)
{
	struct buf      b = BUF(FILTER_MAX);
	struct json_out o = JSON_OUT(&b);
	struct str      accounts, leave_out = q->leave_out;

	JSON_PUT(&o, member_object(NULL), member_str("Key", STR("LINKED_ACCOUNT")));
	json_put_texts(&o, "Values", q->accounts, q->count);
	json_close_object(&o);
	accounts = JSON_OF(a, member_raw("Dimensions", buf_take(&b, a)));
	if (!leave_out.n)
		return accounts;
	leave_out = JSON_OF(a, member_object("Not"), member_raw("Dimensions", json_list(leave_out, a)), member_end());
	return JSON_OF(a, member_raw("And", str_format(a, "[%.*s,%.*s]", STR_ARG(accounts), STR_ARG(leave_out))));
}

static struct str make_request(const struct cost_question *q, struct arena *a)
{
	char from[16], to[16];

	return JSON_OF(a, member_object("TimePeriod"), member_str("Start", cost_day_text(q->days.first_ms, from)),
	               member_str("End", cost_day_text(q->days.end_ms, to)), member_end(),
	               member_word("Granularity", "DAILY"), member_raw("Metrics", STR("[\"UnblendedCost\"]")),
	               member_raw("Filter", make_filter(q, a)),
	               member_raw("GroupBy", STR("[{\"Type\":\"DIMENSION\",\"Key\":\"LINKED_ACCOUNT\"},"
	                                         "{\"Type\":\"DIMENSION\",\"Key\":\"SERVICE\"}]")));
}

static struct cost_cell *find_cell(const struct cost_question *q, struct str account, int64_t day_ms)
{
	for (size_t i = 0; day_ms >= q->days.first_ms && day_ms < q->days.end_ms && i < q->count; i++)
		if (str_eq(q->accounts[i], account))
			return cost_question_cell(q, i, day_ms);
	return NULL;
}

static bool add_item(struct cost_cell *cell, struct str service, int64_t units, struct arena *a)
{
	struct cost_item **at = &cell->items, *item;

	service = utf8_clip(service, CLOUD_SERVICE_MAX);
	while (*at && str_cmp((*at)->service, service) < 0)
		at = &(*at)->next;
	if (!*at || !str_eq((*at)->service, service)) {
		item = arena_alloc(a, sizeof(*item));
		*item = (struct cost_item){ str_dup(a, service), 0, *at };
		*at = item;
	}
	return !__builtin_add_overflow((*at)->units, units, &(*at)->units) &&
	       !__builtin_add_overflow(cell->units, units, &cell->units);
}

static enum rc take_group(struct cost_question *q, int64_t day_ms, const json_t *group, struct err *e)
{
	const json_t     *keys = json_object_get(group, "Keys");
	const json_t     *cost = json_object_get(json_object_get(group, "Metrics"), "UnblendedCost");
	struct str        account = str_from(json_string_value(json_array_get(keys, 0)));
	struct str        service = str_from(json_string_value(json_array_get(keys, 1))), amount, unit;
	struct cost_cell *cell = find_cell(q, account, day_ms);
	int64_t           units;

	if (!cell) /* nobody asked for it */
		return RC_OK;
	if (!service.n || !json_get_text(cost, "Amount", &amount) || !json_get_text(cost, "Unit", &unit) ||
	    !cost_amount(amount, &units))
		return err_set(e, RC_CORRUPT, "a cost of account %.*s cannot be read", STR_ARG(account));
	if (!str_eq(unit, STR("USD")))
		return err_set(e, RC_CORRUPT, "costs of account %.*s are in '%.*s', not in USD", STR_ARG(account),
		               STR_ARG(unit));
	if (units && !add_item(cell, service, units, q->arena))
		return err_set(e, RC_CORRUPT, "the costs of account %.*s are more than can be counted",
		               STR_ARG(account));
	return RC_OK;
}

static enum rc take_page(void *arg, const json_t *page, struct err *e)
{
	struct cost_question *q = arg;
	const json_t         *result, *group;
	struct str            more;
	size_t                i, k;
	enum rc               rc = RC_OK;

	q->pages++;
	q->is_cut = q->pages_max && q->pages >= q->pages_max && json_get_text(page, NEXT, &more) && more.n;
	if (q->is_cut)
		return err_set(e, RC_LIMITED, "the answer has more than the %lld pages that may be read in this hour",
		               (long long)q->pages_max);
	json_array_foreach(json_object_get(page, "ResultsByTime"), i, result)
	{
		struct str start;
		int64_t    day_ms;

		if (!json_get_text(json_object_get(result, "TimePeriod"), "Start", &start) ||
		    !cost_day_read(start, &day_ms))
			return err_set(e, RC_CORRUPT, "a cost has no day");
		json_array_foreach(json_object_get(result, "Groups"), k, group)
		{
			if ((rc = take_group(q, day_ms, group, e)))
				return rc;
		}
	}
	return RC_OK;
}

enum rc cost_question_ask(struct cost_question *q, struct err *e)
{
	struct aws_paging paging = { .call = { .op = &get_cost_and_usage,
		                               .body = make_request(q, q->arena),
		                               .ms = CALL_MS,
		                               .attempt_ms = ATTEMPT_MS },
		                     .token = NEXT,
		                     .each = take_page,
		                     .arg = q };
	size_t            size = q->count * (size_t)cost_day_count(q->days) * sizeof(*q->cells);
	enum rc           rc = RC_CONFLICT;

	for (int i = 0; rc == RC_CONFLICT && i < 2; i++) {
		err_clear(e);
		q->cells = arena_alloc(q->arena, size + 1);
		rc = aws_pages(q->caller, &paging, e);
	}
	if (rc != RC_CONFLICT)
		return rc;
	err_clear(e);
	return err_set(e, RC_UNAVAILABLE, "the figures changed twice while the pages were read");
}

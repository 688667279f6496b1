/* SPDX-License-Identifier: Apache-2.0 */
/* aws_lending.c - see aws_lending.h. The jobs are those of every other pass: one node has them, they are seen, paused
 * and asked for as all are. */
#include "app/aws_lending.h"

#include "app/aws_parts.h"
#include "app/parts.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/metrics.h"
#include "providers/aws/costs.h"
#include "providers/aws/credentials.h"
#include "providers/aws/directory.h"
#include "service/jobs/jobs.h"
#include "service/record/lease_records.h"
#include "store/walk.h"

enum { POOL_PAGE = 500, POOL_MAX = 100000 };

/* --- the pool --- */

struct pool {
	struct arena *arena;
	struct str   *ids;
	size_t        count, room;
};

static enum rc add_accounts(const struct page *page, struct arena *ignored UNUSED, void *arg, struct err *e)
{
	struct pool *p = arg;

	if (p->count + page->count > POOL_MAX)
		return err_set(e, RC_TOO_LARGE, "there are more than %d accounts", POOL_MAX);
	for (size_t i = 0; i < page->count; i++) {
		const struct account *account = page_record(page, &account_type, i);

		p->ids = arena_grow(p->arena, p->ids, p->count, &p->room, sizeof(*p->ids));
		p->ids[p->count++] = str_dup(p->arena, account->id);
	}
	return RC_OK;
}

enum rc aws_lending_pool(void *arg, struct arena *a, struct str **ret, size_t *ret_count, struct err *e)
{
	struct query q = query_of(&account_type, QUERY_ALL, value_int(0), POOL_PAGE);
	struct pool  p = { .arena = a };
	enum rc      rc = store_read_pages(arg, &q, add_accounts, &p, e);

	*ret = p.ids;
	*ret_count = p.count;
	return rc;
}

/* --- jobs --- */

static void tell_costs(struct aws_parts *x, const struct aws_costs_done *done)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct aws_costs_state           state;

	metrics_add(x->p->metrics, METRIC_CE_PAGES, "", done->pages);
	if (aws_costs_look(aws_cloud_costs(x->cloud), &a, &state, NULL) == RC_OK && state.complete_until_ms)
		metrics_set(x->p->metrics, METRIC_COSTS_BEHIND,
		            (double)(clock_now(&x->p->clock).ms - state.complete_until_ms) / 1000);
}

static enum rc refresh_costs(void *arg, bool was_asked, struct pass_result *ret, struct err *e)
{
	struct aws_parts     *x = arg;
	struct aws_costs_done done;
	enum rc               rc = aws_costs_refresh(aws_cloud_costs(x->cloud), was_asked, &done, e);

	tell_costs(x, &done);
	pass_count(ret, "accounts", done.accounts, METRIC__COUNT);
	pass_count(ret, "questions", done.questions, METRIC__COUNT);
	pass_count(ret, "pages", done.pages, METRIC__COUNT);
	pass_count(ret, "changed_days", done.changed_days, METRIC__COUNT);
	pass_count(ret, "waiting", done.waiting, METRIC__COUNT);
	return rc;
}

static enum rc refresh_directory(void *arg, bool was_asked UNUSED, struct pass_result *ret, struct err *e)
{
	struct aws_parts         *x = arg;
	struct aws_directory_done done;
	enum rc                   rc = aws_directory_refresh(aws_cloud_directory(x->cloud), &done, e);

	if (!rc)
		metrics_set(x->p->metrics, METRIC_DIRECTORY_PEOPLE, (double)done.members);
	pass_count(ret, "people", done.members, METRIC__COUNT);
	pass_count(ret, "described", done.described, METRIC__COUNT);
	pass_count(ret, "changed", done.changed, METRIC__COUNT);
	return rc;
}

static enum rc renew_credentials(void *arg, bool was_asked UNUSED, struct pass_result *ret, struct err *e)
{
	struct aws_parts *x = arg;
	int64_t           renewed = 0;
	enum rc           rc = aws_credentials_renew(aws_cloud_credentials(x->cloud), &renewed, e);

	pass_count(ret, "renewed", renewed, METRIC__COUNT);
	return rc;
}

void aws_lending_jobs(struct aws_parts *x, struct jobs_options *o)
{
	const struct {
		enum job_id id;
		enum rc (*run)(void *arg, bool was_asked, struct pass_result *ret, struct err *e);
		const void *what; /* NULL: it is not there */
		int64_t     interval_sec;
	} rows[] = {
		{ JOB_COST_REFRESH, refresh_costs, x->cloud ? aws_cloud_costs(x->cloud) : NULL, AWS_COSTS_LOOK_SEC },
		{ JOB_DIRECTORY_REFRESH, refresh_directory, x->cloud ? aws_cloud_directory(x->cloud) : NULL,
		  AWS_DIRECTORY_REFRESH_SEC },
		{ JOB_CREDENTIAL_RENEWAL, renew_credentials, x->cloud ? aws_cloud_credentials(x->cloud) : NULL,
		  AWS_CREDENTIALS_RENEW_SEC },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].what) {
			o->refresh[rows[i].id - JOB_COST_REFRESH] = (struct pass_refresh){ rows[i].run, x };
			o->interval_sec[rows[i].id] = rows[i].interval_sec;
		}
}

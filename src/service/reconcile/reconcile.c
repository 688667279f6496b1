/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconcile.c - the comparison that does not wait for events.
 *
 *     open holds -> has each its timer?
 *     organisation's listing + records -> discrepancy_judge() -> the records' own repair, which decides again
 *     what was found -> facts -> alarms
 *
 * Always true:
 *   1. Nothing is concluded from an incomplete listing.                                             [reconcile_run()]
 *   2. A repair is decided in the transaction that makes it; the comparison only says where to look. [rearm()]
 *   3. Nothing here makes an account free. An overdue hold gets its timer back, and the timer does the rest.
 *   4. The facts say what the last complete pass has found, at most DISCREPANCIES_MAX.                [keep_facts()]
 *
 * A crash in between leaves what was healed healed; the next pass finds the rest.
 *
 * Not here: what is wrong (domain/discrepancy.c), how records are put right (reconcile_native.c).
 */
#include "service/reconcile/reconcile.h"

#include "base/attr.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/records.h"
#include "service/hold/holds.h"
#include "store/session.h"
#include "store/walk.h"

enum { HOLDS_PAGE = 100, FACTS_PAGE = 1000, FACTS_AT_ONCE = 40, DEMAND_PAGES = 10 };

struct pass_state {
	const struct pass       *pass;
	struct pool_records     *records;
	bool                     is_dry_run;
	struct reconcile_report *report;
	struct pool_listing      listing;
	int64_t                  started_ms;
	int64_t                  heard_ms;   /* when the trail last spoke; 0: never */
	int64_t                  unheard;    /* cleanups since then, long enough ago */
	int64_t                  first_ms;   /* the first of them */
	struct str               unreadable; /* why an account was left alone; in the report's arena */
};

static void report_add(struct reconcile_report *report, enum discrepancy kind, struct str account, struct str text,
                       bool is_healed)
{
	report->found++;
	report->healed += is_healed;
	if (report->count == DISCREPANCIES_MAX)
		return;
	report->items[report->count++] = (struct reconcile_item){ .kind = kind,
		                                                  .account = str_dup(&report->arena, account),
		                                                  .text = str_dup(&report->arena, text),
		                                                  .is_healed = is_healed };
}

void reconcile_report_fini(struct reconcile_report *r)
{
	arena_fini(&r->arena);
}

/* --- timers of holds --- */

/* Of these holds: which has no timer, and should have one? */
struct timer_look {
	const struct page *holds;
	bool               is_missing[HOLDS_PAGE]; /* the answer */
};

static enum rc look_at_timer(struct session *s, struct str id, struct hold *ret, bool *ret_is_missing, struct err *e)
{
	struct timer timer;
	bool         is_there;
	enum rc      rc = session_find(s, &hold_type, id, ret, &is_there, e);

	*ret_is_missing = false;
	if (rc || !is_there || !hold_is_forgotten(ret, session_now(s)))
		return rc;
	rc = session_find(s, &timer_type, hold_schedule_name(ret, session_arena(s)), &timer, &is_there, e);
	*ret_is_missing = !rc && !is_there;
	return rc;
}

static enum rc look_at_timers(struct session *s, void *arg, struct err *e)
{
	struct timer_look *l = arg;
	enum rc            rc = RC_OK;

	for (size_t i = 0; !rc && i < l->holds->count; i++) {
		const struct hold *h = page_record(l->holds, &hold_type, i);
		struct hold        again;

		rc = look_at_timer(s, h->id, &again, &l->is_missing[i], e);
	}
	return rc;
}

struct rearming {
	struct str id; /* of the hold */
	bool       is_missing;
};

static enum rc rearm(struct session *s, void *arg, struct err *e)
{
	struct rearming *x = arg;
	struct hold      h;
	enum rc          rc = look_at_timer(s, x->id, &h, &x->is_missing, e);

	return rc || !x->is_missing ? rc : hold_arm(s, &h, h.due_ms, e);
}

static enum rc mend_timer(struct pass_state *p, const struct hold *h, struct arena *a, struct err *e)
{
	struct rearming x = { .id = h->id, .is_missing = true };
	char            text[ISO_TIME_SIZE];
	struct str      due = iso_time(h->due_ms / 1000, text);
	enum rc         rc = p->is_dry_run ? RC_OK : store_run(p->pass->store, rearm, &x, a, e);

	if (!rc && x.is_missing)
		report_add(p->report, DISCREPANCY_NO_TIMER, h->account,
		           str_format(a, "hold %.*s of account %.*s, due %.*s, has no timer", STR_ARG(h->id),
		                      STR_ARG(h->account), STR_ARG(due)),
		           !p->is_dry_run);
	return rc;
}

static enum rc check_timers(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct pass_state *p = arg;
	struct timer_look  l = { .holds = page };
	enum rc            rc = store_read(p->pass->store, look_at_timers, &l, a, e);

	for (size_t i = 0; !rc && i < page->count; i++) {
		p->report->holds++;
		if (l.is_missing[i])
			rc = mend_timer(p, page_record(page, &hold_type, i), a, e);
	}
	return rc ? rc : pass_go_on(p->pass, e);
}

/* --- accounts --- */

static enum rc check_account(struct pass_state *p, const struct pool_view *v, struct arena *a, struct err *e)
{
	struct pool_records      *records = p->records;
	const struct pool_member *m = pool_find(&p->listing, v->id);
	struct pool_repair        x = { records, p->started_ms, v->id, m ? m->ou : STR(""), DISCREPANCY_NONE };
	bool                      heals;
	enum rc                   rc = RC_OK;

	x.found = discrepancy_judge(v, x.ou);
	heals = discrepancy_heals[x.found] && !p->is_dry_run;
	p->report->accounts++;
	if (v->cleaned_ms > p->heard_ms && p->started_ms - v->cleaned_ms >= SILENT_HOURS * HOLD_HOUR_MS) {
		p->unheard++; /* the trail should have told of its move out of CleanUp */
		if (!p->first_ms || v->cleaned_ms < p->first_ms)
			p->first_ms = v->cleaned_ms;
	}
	if (x.found && heals)
		rc = records->ops->heal(&x, e);
	if (!rc && x.found)
		report_add(p->report, x.found, v->id, discrepancy_text(x.found, v, x.ou, a),
		           heals && discrepancy_heals[x.found]);
	return rc;
}

enum rc pool_leave_alone(struct pool_view *v, enum rc rc, struct arena *a, struct str *ret_unreadable, struct err *e)
{
	if (rc != RC_CORRUPT)
		return rc;
	v->is_busy = true;
	*ret_unreadable = str_format(a, "account %.*s: %s", STR_ARG(v->id), e->msg);
	err_clear(e);
	return RC_OK;
}

static enum rc check_accounts(struct pass_state *p, struct err *e)
{
	struct pool_records *records = p->records;
	struct pool_views    views = { .started_ms = p->started_ms };
	enum rc              rc;

	do {
		CLEANUP(arena_fini) struct arena a = { 0 };

		rc = records->ops->list(records, &p->listing, &views, &a, e);
		if (!rc && views.unreadable.n && !p->unreadable.n)
			p->unreadable = str_dup(&p->report->arena, views.unreadable);
		for (size_t i = 0; !rc && i < views.count; i++)
			rc = check_account(p, &views.items[i], &a, e);
		if (!rc)
			rc = pass_go_on(p->pass, e);
		views.cursor = rc ? STR("") : str_dup(&p->report->arena, views.next);
	} while (!rc && views.cursor.n);
	return rc;
}

/* --- events --- */

/* A trail that has never spoken counts as absent, unless the records rely on it. */
static enum rc read_trail(struct session *s, void *arg, struct err *e)
{
	struct pass_state *p = arg;
	struct fact        fact;
	enum rc            rc = session_find_or_new(s, &fact_type, STR(FACT_CLOUDTRAIL), &fact, e);

	if (!rc)
		p->heard_ms = fact.at_ms || p->records->needs_events ? fact.at_ms : INT64_MAX;
	return rc;
}

static void judge_trail(struct pass_state *p)
{
	char text[ISO_TIME_SIZE];

	if (p->unheard < SILENT_CLEANUPS)
		return;
	report_add(p->report, DISCREPANCY_EVENTS_SILENT, STR(""),
	           str_format(&p->report->arena,
	                      "%lld accounts were cleaned, the first %.*s, and no event of the trail told of it",
	                      (long long)p->unheard, STR_ARG(iso_time(p->first_ms / 1000, text))),
	           false);
}

/* --- facts --- */

/* What becomes of the facts: all that were found are stored, and those that are found no more are gone. */
struct fact_changes {
	const struct reconcile_report *report;
	struct str                     names[DISCREPANCIES_MAX + FACTS_PAGE]; /* the report's first */
	size_t                         count, from;                           /* from: changed up to here */
};

static enum rc find_changes(struct session *s, void *arg, struct err *e)
{
	struct fact_changes *c = arg;
	struct records stored = { .query = query_of(&fact_type, QUERY_KEYS, value_int(0), FACTS_PAGE), .pages_max = 1 };
	const struct fact *fact;
	enum rc            rc;

	stored.query.sort_prefix = STR(FACT_DISCREPANCY);
	for (c->count = 0; c->count < c->report->count; c->count++) {
		const struct reconcile_item *i = &c->report->items[c->count];

		c->names[c->count] = str_format(session_arena(s), FACT_DISCREPANCY "%s/%.*s",
		                                discrepancy_names[i->kind], STR_ARG(i->account));
	}
	while ((fact = session_next(s, &stored, &rc, e))) {
		size_t j = 0;

		while (j < c->report->count && !str_eq(c->names[j], fact->name))
			j++;
		if (j == c->report->count)
			c->names[c->count++] = fact->name;
	}
	return rc;
}

static enum rc change_facts(struct session *s, void *arg, struct err *e)
{
	const struct fact_changes *c = arg;

	for (size_t i = c->from; i < c->count && i < c->from + FACTS_AT_ONCE; i++) {
		const struct reconcile_item *item = i < c->report->count ? &c->report->items[i] : NULL;
		struct fact                  fact;
		enum rc                      rc = session_find_or_new(s, &fact_type, c->names[i], &fact, e);

		if (rc)
			return rc;
		if (item) {
			fact.value = item->is_healed;
			fact.text = utf8_line(session_arena(s), item->text, ERROR_MAX);
			fact.at_ms = session_now(s).ms;
			fact.since_ms = fact.since_ms ? fact.since_ms : fact.at_ms;
			session_put(s, &fact_type, &fact);
		} else if (fact.at_ms) {
			session_delete(s, &fact_type, c->names[i]);
		}
	}
	return RC_OK;
}

static enum rc keep_facts(const struct pass_state *p, struct err *e)
{
	struct fact_changes              c = { .report = p->report };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = store_read(p->pass->store, find_changes, &c, &a, e);

	for (; !rc && c.from < c.count; c.from += FACTS_AT_ONCE)
		rc = store_run(p->pass->store, change_facts, &c, &a, e);
	return rc;
}

/* --- demand --- */

/* One read after the other, until all were seen or it is enough to say "many". */
static enum rc count_demand(const struct pass_state *p, int64_t *ret, struct err *e)
{
	struct event_list l = { .type = STR("LeaseApproved"),
		                .since_ms = p->started_ms - DEMAND_DAYS * 24 * HOLD_HOUR_MS,
		                .limit = EVENT_PAGE_MAX };
	enum rc           rc = RC_OK;

	*ret = 0;
	for (int i = 0; !rc && i < DEMAND_PAGES && (i == 0 || l.cursor.n); i++) {
		CLEANUP(arena_fini) struct arena a = { 0 };

		if (!(rc = store_read(p->pass->store, event_list, &l, &a, e))) {
			*ret += (int64_t)l.count;
			l.cursor = str_dup(&p->report->arena, l.next);
		}
	}
	return rc;
}

static enum rc put_demand(struct session *s, void *arg, struct err *e)
{
	const int64_t *count = arg;
	struct fact    fact;
	enum rc        rc = session_find_or_new(s, &fact_type, STR(FACT_DEMAND), &fact, e);

	if (rc || (fact.at_ms && fact.value == *count))
		return rc;
	fact.value = *count;
	fact.since_ms = fact.at_ms = session_now(s).ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

/* --- throttling --- */

/* How many passes in a row the organisation has refused because it was asked too much. */
static enum rc note_streak(struct session *s, void *arg, struct err *e)
{
	const bool *is_throttled = arg;
	struct fact fact;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_THROTTLED), &fact, e);

	if (rc || (!*is_throttled && !fact.value))
		return rc;
	fact.value = *is_throttled ? fact.value + 1 : 0;
	fact.text = STR("the organisation answers that it is asked too often");
	fact.at_ms = session_now(s).ms;
	if (fact.value <= 1)
		fact.since_ms = fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

static enum rc list_pool(struct pass_state *p, struct err *e)
{
	const struct pass *pass = p->pass;
	enum rc            kept = RC_OK;
	enum rc            rc = pool_list(pass, pass->reconcile->organisation, p->records->below, &p->listing, e);
	bool               is_throttled = rc == RC_LIMITED;

	if (!p->is_dry_run && (!rc || is_throttled))
		kept = store_run(pass->store, note_streak, &is_throttled, NULL, rc ? NULL : e);
	return rc ? rc : kept;
}

static enum rc keep_all(const struct pass_state *p, struct err *e)
{
	struct pool_records *records = p->records;
	int64_t              demand;
	enum rc              rc = keep_facts(p, e);

	if (!rc && records->ops->remember)
		rc = records->ops->remember(records, &p->listing, p->started_ms, e);
	if (!rc)
		rc = count_demand(p, &demand, e);
	return rc ? rc : store_run(p->pass->store, put_demand, &demand, NULL, e);
}

enum rc reconcile_run(const struct pass *pass, bool is_dry_run, struct reconcile_report *ret, struct err *e)
{
	struct pass_state p = { .pass = pass,
		                .records = pass->reconcile->records,
		                .is_dry_run = is_dry_run,
		                .report = ret,
		                .started_ms = clock_now(pass->clock).ms };
	struct query      open_holds = query_of(&hold_type, HOLD_OPEN_ONES, value_int(1), HOLDS_PAGE);
	enum rc           rc = store_read_pages(pass->store, &open_holds, check_timers, &p, e);

	if (!rc && !(rc = list_pool(&p, e)) && !(rc = store_read(pass->store, read_trail, &p, NULL, e)) &&
	    !(rc = check_accounts(&p, e))) {
		judge_trail(&p);
		rc = is_dry_run ? RC_OK : keep_all(&p, e);
	}
	if (!rc && p.unreadable.n) /* told when all others were looked after, by the alarm job-failing */
		rc = err_set(e, RC_CORRUPT, "%.*s", STR_ARG(p.unreadable));
	arena_fini(&p.listing.arena);
	return rc;
}

enum rc pass_reconcile(const struct pass *p, struct pass_result *ret, struct err *e)
{
	struct reconcile_report report = { .count = 0 };
	enum rc                 rc = reconcile_run(p, false, &report, e);

	pass_count(ret, "accounts", report.accounts, METRIC__COUNT);
	pass_count(ret, "holds", report.holds, METRIC__COUNT);
	pass_count(ret, "found", report.found, METRIC__COUNT);
	pass_count(ret, "healed", report.healed, METRIC__COUNT);
	reconcile_report_fini(&report);
	return rc;
}

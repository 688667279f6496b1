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
 *   2. A repair is decided in the transaction that makes it; the comparison only says where to look.   [native_heal(), rearm()]
 *   3. Nothing here makes an account free. A hold whose time is over is given its timer back, and the timer does the rest.
 *   4. The facts say what the last complete pass has found, at most DISCREPANCIES_MAX.                [keep_facts()]
 *
 * A crash in between leaves what was healed healed; the next pass finds the rest.
 *
 * Not here: what is wrong (domain/discrepancy.c), how records are put right (reconcile_native.c).
 */
#include "service/reconcile.h"

#include "base/attr.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/records.h"
#include "kernel/timer.h"
#include "service/holds.h"
#include "service/pool_listing.h"
#include "store/session.h"
#include "store/store.h"

enum { HOLDS_PAGE = 100, FACTS_PAGE = 1000, FACTS_AT_ONCE = 40, DEMAND_PAGES = 10 };

struct pass_state {
	const struct reconcile  *terms;
	struct reconcile_report *report;
	struct pool_listing      listing;
	int64_t                  started_ms;
	int64_t                  heard_ms; /* when the trail last spoke; 0: never */
	int64_t                  unheard;  /* cleanups since then, long enough ago */
	int64_t                  first_ms; /* the first of them */
};

static bool may_go_on(const struct reconcile *r)
{
	return !r->go_on || r->go_on(r->go_on_arg);
}

static enum rc is_stopped(struct err *e)
{
	return err_set(e, RC_UNAVAILABLE, "the pass was stopped");
}

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

struct timer_look {
	struct str id; /* of the hold */
	bool       is_missing;
};

static enum rc look_at_timer(struct session *s, struct str id, struct hold *ret, bool *ret_is_missing, struct err *e)
{
	struct timer timer;
	enum rc      rc = session_get(s, &hold_type, id, ret, NULL);

	*ret_is_missing = false;
	if (rc == RC_NOT_FOUND || (!rc && !hold_is_forgotten(ret, session_now(s))))
		return RC_OK;
	if (!rc)
		rc = session_get(s, &timer_type, hold_schedule_name(ret, session_arena(s)), &timer, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the timer of hold %.*s cannot be read", STR_ARG(id));
	*ret_is_missing = rc == RC_NOT_FOUND;
	return RC_OK;
}

static enum rc rearm(struct session *s, void *arg, struct err *e)
{
	struct timer_look *l = arg;
	struct hold        h;
	enum rc            rc = look_at_timer(s, l->id, &h, &l->is_missing, e);

	return rc || !l->is_missing ? rc : hold_rearm(s, &h, e);
}

struct hold_page {
	struct hold_list list;
	bool             is_missing[HOLDS_PAGE]; /* the timer of this one */
};

static enum rc read_holds(struct session *s, void *arg, struct err *e)
{
	struct hold_page *p = arg;
	enum rc           rc = hold_list(s, &p->list, e);

	for (size_t i = 0; !rc && i < p->list.page.count; i++) {
		const struct hold *h = page_record(&p->list.page, &hold_type, i);
		struct hold        again;

		rc = look_at_timer(s, h->id, &again, &p->is_missing[i], e);
	}
	return rc;
}

static enum rc mend_timer(struct pass_state *p, const struct hold *h, struct err *e)
{
	struct timer_look l = { .id = h->id, .is_missing = true };
	struct arena      a = { 0 };
	char              text[ISO_TIME_SIZE];
	struct str        due = iso_time(h->due_ms / 1000, text);
	enum rc           rc = p->terms->is_dry_run ? RC_OK : store_run(p->terms->store, rearm, &l, &a, e);

	if (!rc && l.is_missing)
		report_add(p->report, DISCREPANCY_NO_TIMER, h->account,
		           str_format(&a, "hold %.*s of account %.*s, due %.*s, has no timer", STR_ARG(h->id),
		                      STR_ARG(h->account), STR_ARG(due)),
		           !p->terms->is_dry_run);
	arena_fini(&a);
	return rc;
}

static enum rc check_timers(struct pass_state *p, struct err *e)
{
	struct hold_page page = { .list = { .limit = HOLDS_PAGE } };
	enum rc          rc;

	do {
		struct arena a = { 0 };

		rc = store_read(p->terms->store, read_holds, &page, &a, e);
		for (size_t i = 0; !rc && i < page.list.page.count; i++) {
			p->report->holds++;
			if (page.is_missing[i])
				rc = mend_timer(p, page_record(&page.list.page, &hold_type, i), e);
		}
		if (!rc && !may_go_on(p->terms))
			rc = is_stopped(e);
		page.list.cursor = rc ? STR("") : str_dup(&p->report->arena, page.list.page.next);
		arena_fini(&a);
	} while (!rc && page.list.cursor.n);
	return rc;
}

/* --- accounts --- */

/* The trail should have told of its move out of CleanUp. */
static void count_unheard(struct pass_state *p, const struct pool_view *v)
{
	if (v->cleaned_ms <= p->heard_ms || p->started_ms - v->cleaned_ms < SILENT_HOURS * HOLD_HOUR_MS)
		return;
	p->unheard++;
	if (!p->first_ms || v->cleaned_ms < p->first_ms)
		p->first_ms = v->cleaned_ms;
}

static enum rc check_account(struct pass_state *p, const struct pool_view *v, struct arena *a, struct err *e)
{
	struct pool_records      *records = p->terms->records;
	const struct pool_member *m = pool_find(&p->listing, v->id);
	struct str                ou = m ? m->ou : STR("");
	enum discrepancy          d = discrepancy_judge(v, ou);
	bool                      heals = discrepancy_heals[d] && !p->terms->is_dry_run;
	enum rc                   rc = RC_OK;

	p->report->accounts++;
	if (v->cleaned_ms)
		count_unheard(p, v);
	if (d && heals)
		rc = records->ops->heal(records, p->started_ms, v->id, ou, &d, e);
	if (!rc && d)
		report_add(p->report, d, v->id, discrepancy_text(d, v, ou, a), heals && discrepancy_heals[d]);
	return rc;
}

static enum rc check_accounts(struct pass_state *p, struct err *e)
{
	struct pool_records *records = p->terms->records;
	struct str           cursor = STR("");
	enum rc              rc;

	do {
		struct arena      a = { 0 };
		struct pool_views views = { 0 };

		rc = records->ops->list(records, &p->listing, p->started_ms, cursor, &a, &views, e);
		for (size_t i = 0; !rc && i < views.count; i++)
			rc = check_account(p, &views.items[i], &a, e);
		if (!rc && !may_go_on(p->terms))
			rc = is_stopped(e);
		cursor = rc ? STR("") : str_dup(&p->report->arena, views.next);
		arena_fini(&a);
	} while (!rc && cursor.n);
	return rc;
}

/* --- events --- */

static enum rc read_fact(struct session *s, void *arg, struct err *e)
{
	struct fact *fact = arg;
	struct str   name = fact->name;
	enum rc      rc = session_get(s, &fact_type, name, fact, NULL);

	if (rc == RC_NOT_FOUND)
		*fact = (struct fact){ .name = name };
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "fact %.*s cannot be read", STR_ARG(name)) : RC_OK;
}

/* A trail that has never spoken is nobody's, unless somebody relies on it. */
static enum rc read_trail(struct pass_state *p, struct err *e)
{
	struct fact  fact = { .name = STR(FACT_CLOUDTRAIL) };
	struct arena a = { 0 };
	enum rc      rc = store_read(p->terms->store, read_fact, &fact, &a, e);

	p->heard_ms = fact.at_ms || p->terms->records->needs_events ? fact.at_ms : INT64_MAX;
	arena_fini(&a);
	return rc;
}

static void judge_trail(struct pass_state *p)
{
	char text[ISO_TIME_SIZE];

	if (p->unheard >= SILENT_CLEANUPS)
		report_add(
		        p->report, DISCREPANCY_EVENTS_SILENT, STR(""),
		        str_format(&p->report->arena,
		                   "%lld accounts were cleaned, the first %.*s, and no event of the trail told of it",
		                   (long long)p->unheard, STR_ARG(iso_time(p->first_ms / 1000, text))),
		        false);
}

/* --- facts --- */

static struct str fact_name(const struct reconcile_item *i, struct arena *a)
{
	return str_format(a, FACT_DISCREPANCY "%s/%.*s", discrepancy_names[i->kind], STR_ARG(i->account));
}

struct fact_change {
	const struct reconcile_report *report;
	size_t                         from; /* these of its items are stored */
	struct str                     gone[FACTS_PAGE];
	size_t                         gone_count, gone_from;
};

static enum rc put_fact(struct session *s, const struct reconcile_item *i, struct err *e)
{
	struct fact fact = { .name = fact_name(i, session_arena(s)) };
	enum rc     rc = read_fact(s, &fact, e);

	if (rc)
		return rc;
	fact.value = i->is_healed;
	fact.text = utf8_line(session_arena(s), i->text, ERROR_MAX);
	fact.at_ms = session_now(s).ms;
	fact.since_ms = fact.since_ms ? fact.since_ms : fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

static enum rc put_facts(struct session *s, void *arg, struct err *e)
{
	const struct fact_change *c = arg;
	enum rc                   rc = RC_OK;

	for (size_t i = c->from; !rc && i < c->report->count && i < c->from + FACTS_AT_ONCE; i++)
		rc = put_fact(s, &c->report->items[i], e);
	return rc;
}

static enum rc drop_facts(struct session *s, void *arg, struct err *e)
{
	const struct fact_change *c = arg;

	for (size_t i = c->gone_from; i < c->gone_count && i < c->gone_from + FACTS_AT_ONCE; i++) {
		struct fact fact = { .name = c->gone[i] };
		enum rc     rc = read_fact(s, &fact, e);

		if (rc)
			return rc;
		if (fact.at_ms)
			session_delete(s, &fact_type, c->gone[i]);
	}
	return RC_OK;
}

static bool is_still_so(const struct reconcile_report *report, struct str name, struct arena *a)
{
	for (size_t i = 0; i < report->count; i++)
		if (str_eq(fact_name(&report->items[i], a), name))
			return true;
	return false;
}

static enum rc find_gone(struct session *s, void *arg, struct err *e)
{
	struct fact_change *c = arg;
	struct query        q = {
		       .type = &fact_type, .index = QUERY_KEYS, .sort_prefix = STR(FACT_DISCREPANCY), .limit = FACTS_PAGE
	};
	struct page page;
	enum rc     rc = session_query(s, &q, &page, e);

	c->gone_count = 0;
	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct fact *fact = page_record(&page, &fact_type, i);

		if (!is_still_so(c->report, fact->name, session_arena(s)))
			c->gone[c->gone_count++] = fact->name;
	}
	return rc;
}

static enum rc keep_facts(const struct pass_state *p, struct err *e)
{
	struct fact_change c = { .report = p->report };
	struct arena       a = { 0 };
	enum rc            rc = store_read(p->terms->store, find_gone, &c, &a, e);

	for (; !rc && c.from < c.report->count; c.from += FACTS_AT_ONCE)
		rc = store_run(p->terms->store, put_facts, &c, &a, e);
	for (; !rc && c.gone_from < c.gone_count; c.gone_from += FACTS_AT_ONCE)
		rc = store_run(p->terms->store, drop_facts, &c, &a, e);
	arena_fini(&a);
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
	for (int i = 0; !rc && i < DEMAND_PAGES; i++) {
		struct arena a = { 0 };

		rc = store_read(p->terms->store, event_list, &l, &a, e);
		*ret += rc ? 0 : (int64_t)l.count;
		l.cursor = rc ? STR("") : str_dup(&p->report->arena, l.next);
		arena_fini(&a);
		if (!l.cursor.n)
			break;
	}
	return rc;
}

static enum rc put_demand(struct session *s, void *arg, struct err *e)
{
	const int64_t *count = arg;
	struct fact    fact = { .name = STR(FACT_DEMAND) };
	enum rc        rc = read_fact(s, &fact, e);

	if (rc || (fact.at_ms && fact.value == *count))
		return rc;
	fact.value = *count;
	fact.since_ms = fact.at_ms = session_now(s).ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

static enum rc note_demand(const struct pass_state *p, struct err *e)
{
	struct arena a = { 0 };
	int64_t      count;
	enum rc      rc = count_demand(p, &count, e);

	if (!rc)
		rc = store_run(p->terms->store, put_demand, &count, &a, e);
	arena_fini(&a);
	return rc;
}

/* --- throttling --- */

struct streak {
	bool is_throttled;
};

/* How many passes in a row the organisation has refused because it was asked too much. */
static enum rc note_streak(struct session *s, void *arg, struct err *e)
{
	const struct streak *streak = arg;
	struct fact          fact = { .name = STR(FACT_THROTTLED) };
	enum rc              rc = read_fact(s, &fact, e);

	if (rc || (!streak->is_throttled && !fact.value))
		return rc;
	fact.value = streak->is_throttled ? fact.value + 1 : 0;
	fact.text = STR("the organisation answers that it is asked too often");
	fact.at_ms = session_now(s).ms;
	if (fact.value <= 1)
		fact.since_ms = fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

static enum rc list_pool(struct pass_state *p, struct err *e)
{
	const struct reconcile *r = p->terms;
	struct arena            a = { 0 };
	enum rc                 rc = pool_list(r->organisation, r->go_on, r->go_on_arg, &p->listing, e);
	struct streak           streak = { .is_throttled = rc == RC_LIMITED };

	if (!r->is_dry_run && (!rc || rc == RC_LIMITED)) {
		enum rc kept = store_run(r->store, note_streak, &streak, &a, rc ? NULL : e);

		rc = rc ? rc : kept;
	}
	arena_fini(&a);
	return rc;
}

static enum rc keep_all(const struct pass_state *p, struct err *e)
{
	struct pool_records *records = p->terms->records;
	enum rc              rc = keep_facts(p, e);

	if (!rc && records->ops->remember)
		rc = records->ops->remember(records, &p->listing, p->started_ms, e);
	return rc ? rc : note_demand(p, e);
}

enum rc reconcile_run(const struct reconcile *r, struct reconcile_report *ret, struct err *e)
{
	struct pass_state p = { .terms = r,
		                .report = ret,
		                .listing = { .below = r->records->below },
		                .started_ms = clock_now(r->clock).ms };
	enum rc           rc = check_timers(&p, e);

	if (!rc && !(rc = list_pool(&p, e)) && !(rc = read_trail(&p, e)) && !(rc = check_accounts(&p, e))) {
		judge_trail(&p);
		rc = r->is_dry_run ? RC_OK : keep_all(&p, e);
	}
	pool_listing_fini(&p.listing);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * costs.c - what accounts cost, from Cost Explorer.
 *
 * A page of Cost Explorer costs a cent, and its figures change a few times a day. So we ask rarely, for all accounts
 * together, and store the answer by account and day, with the services of each day; the port answers from there.
 *
 * Always true:
 *   1. Amounts are exact (1e-10) until an answer is rounded, once. Its items add up to its sum.            [bill_add()]
 *   2. An answer is stored after all its pages were read: a question that fails changes nothing.            [ask_for()]
 *   3. An account's record says from which day on everything is stored; it is written after the days.         [apply()]
 *   4. A day whose sum has changed is incomplete again, until two refreshes at least 8 h apart agree.      [note_day()]
 *   5. No more pages are read in an hour than struct cost_budget has. While an account waits for the next hour, or for
 *      Cost Explorer to come back, the answer is what is stored, and says until when that is complete.    [find_days()]
 *
 * A process that dies in the middle of a refresh has stored some accounts; the next one asks for the others.
 *
 * Not here: when it is asked (a job of one node), what is complete (costs_rule.c).
 */
#include "providers/aws/costs.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/ports/cloud.h"
#include "providers/aws/costs_question.h"
#include "service/record/aws_records.h"
#include "store/session.h"
#include "store/store.h"
#include "store/walk.h"

enum {
	ACCOUNT_DIGITS = 12,
	CHUNK_DAYS = 80,   /* days in one transaction */
	KEEP_DAYS = 40,    /* an account that nobody asks for is refreshed for so long */
	YOUNG_DAYS = 4,    /* of a new account nothing is complete yet, and that is no delay */
	AGAIN_MS = 600000, /* after a failure, days that are missing are not asked for again for so long */
	ACCOUNTS_MAX = 100000,
};
#define OTHERS "Other services"

struct aws_costs {
	struct costs             base;
	struct aws_costs_options o;
	pthread_mutex_t          asking;    /* one question at a time */
	_Atomic int64_t          failed_ms; /* of the last question; 0: it was answered */
};

/* --- what is stored --- */

static struct str day_key(struct str account, int64_t day_ms, struct arena *a)
{
	char text[16];

	return str_format(a, "%.*s#%s", STR_ARG(account), cost_day_text(day_ms, text).p);
}

/* The account's days in this time, at their places; NULL: there is none. */
static enum rc read_days(struct session *s, struct str account, struct cost_days days, struct aws_cost_day **ret,
                         struct err *e)
{
	struct records all = { .query = query_until(&aws_cost_day_type, AWS_COST_DAY_BY_ACCOUNT, value_text(account),
		                                    days.end_ms - COST_DAY_MS, QUERY_LIMIT_MAX) };
	struct aws_cost_day *day;
	enum rc              rc = RC_OK;

	all.query.is_descending = true;
	if (days.end_ms - days.first_ms < QUERY_LIMIT_MAX * (int64_t)COST_DAY_MS)
		all.query.limit = (size_t)cost_day_count(days) + 1;
	while ((day = session_next(s, &all, &rc, e)) && day->day_ms >= days.first_ms)
		ret[(day->day_ms - days.first_ms) / COST_DAY_MS] = day;
	return day ? RC_OK : rc;
}

static struct str items_text(const struct cost_cell *cell, struct arena *a)
{
	struct buf      b = BUF(AWS_COST_ITEMS_MAX);
	struct json_out o = JSON_OUT(&b);
	int64_t         others = 0;

	json_open_object(&o);
	for (const struct cost_item *i = cell->items; i; i = i->next)
		if (b.n + 8 * CLOUD_SERVICE_MAX < AWS_COST_ITEMS_MAX) /* escaped, a byte has six */
			json_put_int(&o, str_dup(a, i->service).p, i->units);
		else
			others += i->units;
	if (others)
		json_put_int(&o, OTHERS, others);
	json_close_object(&o);
	return buf_take(&b, a);
}

enum kind { ASK_RECENT, ASK_WHOLE, ASK_OLDER };

struct apply {
	const struct cost_question *q;
	size_t                      account;
	struct cost_days            days; /* of these, in this transaction */
	bool                        is_last;
	enum kind                   kind;
	int64_t                     now_ms;

	int64_t changed; /* the answer */
};

/* known: as it is stored, NULL: it is not; becomes what it is from now on. */
static enum rc note_day(struct session *s, struct apply *ap, int64_t day_ms, struct aws_cost_day **known, struct err *e)
{
	const struct cost_cell *cell = cost_question_cell(ap->q, ap->account, day_ms);
	struct aws_cost_day    *day = *known;
	struct str              items = items_text(cell, session_arena(s));
	bool                    is_same = day ? day->units == cell->units : !cell->units;
	bool    settles = day && is_same && !day->is_settled && ap->now_ms - day->seen_ms >= COST_APART_MS;
	enum rc rc;

	if (is_same && !settles && (day ? str_eq(day->items, items) : !cell->items))
		return RC_OK;
	day = arena_alloc(session_arena(s), sizeof(*day));
	if ((rc = session_find_or_new(s, &aws_cost_day_type,
	                              day_key(ap->q->accounts[ap->account], day_ms, session_arena(s)), day, e)))
		return rc;
	day->account_id = ap->q->accounts[ap->account];
	day->day_ms = day_ms;
	if (!day->seen_ms || day->units != cell->units) {
		day->seen_ms = ap->now_ms;
		day->is_settled = false;
		ap->changed++;
	}
	day->is_settled = day->is_settled || settles;
	day->units = cell->units;
	day->items = items;
	session_put(s, &aws_cost_day_type, day);
	*known = day;
	return RC_OK;
}

/* The first of these days that is not complete, or their end. */
static int64_t complete_until(const struct aws_cost_account *account, struct cost_days days,
                              struct aws_cost_day *const *records, int64_t now_ms)
{
	struct cost_known known = { account->from_ms, account->first_ms, account->recent_ms, account->whole_ms };

	for (int64_t day_ms = days.first_ms; day_ms < days.end_ms; day_ms += COST_DAY_MS) {
		const struct aws_cost_day *day = records[(day_ms - days.first_ms) / COST_DAY_MS];
		bool                       is_settled = day && day->is_settled;

		if (!cost_is_complete(&known, day_ms, day ? &is_settled : NULL, now_ms))
			return day_ms;
	}
	return days.end_ms;
}

static enum rc note_account(struct session *s, const struct apply *ap, struct aws_cost_day *const *records,
                            struct err *e)
{
	struct aws_cost_account account;
	enum rc rc = session_find_or_new(s, &aws_cost_account_type, ap->q->accounts[ap->account], &account, e);

	if (rc)
		return rc;
	if (!account.first_ms) {
		account.first_ms = ap->now_ms;
		account.asked_ms = cost_day(ap->now_ms);
	}
	if (!account.from_ms || ap->q->days.first_ms < account.from_ms)
		account.from_ms = ap->q->days.first_ms;
	if (ap->kind != ASK_OLDER) {
		account.recent_ms = ap->now_ms;
		account.whole_ms = ap->kind == ASK_RECENT ? account.whole_ms : ap->now_ms;
		account.complete_ms = complete_until(&account, ap->days, records, ap->now_ms);
	}
	session_put(s, &aws_cost_account_type, &account);
	return RC_OK;
}

static enum rc apply(struct session *s, void *arg, struct err *e)
{
	struct apply        *ap = arg;
	struct aws_cost_day *records[CHUNK_DAYS] = { NULL };
	enum rc              rc = read_days(s, ap->q->accounts[ap->account], ap->days, records, e);

	ap->changed = 0;
	for (int64_t day_ms = ap->days.first_ms; !rc && day_ms < ap->days.end_ms; day_ms += COST_DAY_MS)
		rc = note_day(s, ap, day_ms, &records[(day_ms - ap->days.first_ms) / COST_DAY_MS], e);
	return rc || !ap->is_last ? rc : note_account(s, ap, records, e);
}

static enum rc store_answer(struct aws_costs *c, const struct cost_question *q, enum kind kind, int64_t now_ms,
                            int64_t *changed, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < q->count; i++)
		for (int64_t at_ms = q->days.first_ms; !rc && at_ms < q->days.end_ms;) {
			int64_t      end_ms = at_ms + CHUNK_DAYS * (int64_t)COST_DAY_MS;
			bool         is_last = end_ms >= q->days.end_ms;
			struct apply ap = { .q = q,
				            .account = i,
				            .days = { at_ms, is_last ? q->days.end_ms : end_ms },
				            .is_last = is_last,
				            .kind = kind,
				            .now_ms = now_ms };

			rc = store_run(c->o.store, apply, &ap, NULL, e);
			*changed += ap.changed;
			at_ms = ap.days.end_ms;
		}
	return rc;
}

/* --- pages are money --- */

struct pages {
	const struct cost_question *q;
	int64_t                     now_ms;
};

static struct cost_budget budget_of(const struct aws_cost_book *book)
{
	return (struct cost_budget){ book->accounts, book->last_page_ms, book->hour_pages, book->rate };
}

static enum rc note_pages(struct session *s, void *arg, struct err *e)
{
	const struct pages  *p = arg;
	struct aws_cost_book book;
	struct cost_budget   budget;
	char                 day[16];
	struct str           month = str_of(cost_day_text(p->now_ms, day).p, strlen("2026-11"));
	enum rc              rc = session_find_or_new(s, &aws_cost_book_type, STR(AWS_COST_BOOK), &book, e);

	if (rc)
		return rc;
	if (!str_eq(book.month, month)) {
		book.month = str_dup(session_arena(s), month);
		book.pages = 0;
	}
	book.pages += p->q->pages;
	budget = budget_of(&book);
	cost_budget_note(&budget, (int64_t)p->q->count * cost_day_count(p->q->days), p->q->pages, p->q->is_cut,
	                 p->now_ms);
	book.last_page_ms = budget.last_ms;
	book.hour_pages = budget.pages;
	book.rate = budget.rate;
	session_put(s, &aws_cost_book_type, &book);
	return RC_OK;
}

static enum rc read_budget(struct aws_costs *c, struct cost_budget *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct aws_cost_book             book = { 0 };
	bool                             is_there;
	enum rc rc = store_find(c->o.store, &aws_cost_book_type, STR(AWS_COST_BOOK), &a, &book, &is_there, e);

	*ret = budget_of(&book);
	return rc;
}

static int64_t now_of(const struct aws_costs *c)
{
	return clock_now(c->o.clock).ms;
}

/* About as many of these accounts as the pages of this hour are enough for. q->count becomes how many that was: 0 is
 * RC_LIMITED. */
static enum rc ask_for(struct aws_costs *c, struct cost_question *q, enum kind kind, struct aws_costs_done *done,
                       struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct pages                     pages = { .q = q, .now_ms = now_of(c) };
	struct cost_budget               budget;
	int64_t                          left, fits;
	enum rc                          rc = read_budget(c, &budget, e);

	if (rc)
		return rc;
	left = cost_budget_left(&budget, pages.now_ms);
	fits = cost_budget_fits(&budget, left, cost_day_count(q->days));
	if (left == cost_budget_whole(&budget) && fits < 1)
		fits = 1;
	if (fits < (int64_t)q->count)
		q->count = (size_t)fits;
	if ((done->is_spent = !q->count))
		return err_set(e, RC_LIMITED, "Cost Explorer: the pages of this hour are used up (%lld of %lld)",
		               (long long)(cost_budget_whole(&budget) - left), (long long)cost_budget_whole(&budget));
	q->pages_max = q->count == 1 && left == cost_budget_whole(&budget) ? 0 : left; /* less cannot be asked for */
	q->caller = c->o.caller;
	q->leave_out = c->o.leave_out;
	q->arena = &a; /* cppcheck-suppress autoVariables ; until we return */
	rc = cost_question_ask(q, e);
	c->failed_ms = rc && !q->is_cut ? pages.now_ms : 0;
	if (q->pages) /* what cannot be counted now is a cent or two */
		rc_ignore(store_run(c->o.store, note_pages, &pages, NULL, NULL));
	if (!rc)
		rc = store_answer(c, q, kind, pages.now_ms, &done->changed_days, e);
	done->is_spent = q->is_cut;
	done->questions++;
	done->pages += q->pages;
	done->accounts += rc ? 0 : (int64_t)q->count;
	q->arena = NULL;
	return err_wrap(e, rc, "Cost Explorer");
}

static int64_t days_ago(int64_t now_ms, int64_t days)
{
	return cost_day(now_ms) - days * COST_DAY_MS;
}

/* --- refresh --- */

struct due {
	struct str id;
	int64_t    recent_ms, whole_ms; /* 0: it is new */
};

struct due_list {
	struct due *items;
	size_t      count, room;
};

static void add_due(struct due_list *l, struct due due, struct arena *a)
{
	if (l->count == ACCOUNTS_MAX)
		return;
	l->items = arena_grow(a, l->items, l->count, &l->room, sizeof(*l->items));
	due.id = str_dup(a, due.id);
	l->items[l->count++] = due;
}

struct gather {
	struct arena   *arena;
	int64_t         since_ms; /* asked for since then */
	int64_t         young_ms; /* what is younger is not due */
	struct due_list known, wanted;
};

static enum rc gather_page(const struct page *page, struct arena *ignored UNUSED, void *arg, struct err *e UNUSED)
{
	struct gather *g = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct aws_cost_account *account = page_record(page, &aws_cost_account_type, i);
		struct due                     due = { account->account_id, account->recent_ms, account->whole_ms };

		add_due(&g->known, due, g->arena);
		if (account->asked_ms >= g->since_ms)
			add_due(&g->wanted, due, g->arena);
	}
	return RC_OK;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp(((const struct due *)a)->id, ((const struct due *)b)->id);
}

/* The one that waited longest first. */
static int by_age(const void *a, const void *b)
{
	const struct due *x = a, *y = b;

	return x->recent_ms == y->recent_ms ? by_id(a, b)
	                                    : (x->recent_ms > y->recent_ms) - (x->recent_ms < y->recent_ms);
}

/* Those that are stored; of the pool's, those that are not. */
static enum rc gather(struct aws_costs *c, struct gather *g, struct due_list *ret_new, struct err *e)
{
	struct query q = query_of(&aws_cost_account_type, QUERY_ALL, value_int(0), QUERY_LIMIT_MAX);
	struct str  *pool = NULL;
	size_t       count = 0;
	enum rc      rc = store_read_pages(c->o.store, &q, gather_page, g, e);

	if (!rc && c->o.list)
		rc = c->o.list(c->o.list_arg, g->arena, &pool, &count, e);
	if (rc)
		return rc;
	if (g->known.count)
		qsort(g->known.items, g->known.count, sizeof(struct due), by_id);
	for (size_t i = 0; i < count; i++) {
		struct due due = { .id = pool[i] };

		if (!g->known.count || !bsearch(&due, g->known.items, g->known.count, sizeof(due), by_id))
			add_due(ret_new, due, g->arena);
	}
	return RC_OK;
}

/* Where a refresh begins: so many days ago; earlier when there was none for so long that days would be left out. */
static int64_t begin_at(int64_t now_ms, int64_t last_ms, int64_t days)
{
	int64_t wanted_ms = days_ago(now_ms, days), missed_ms = days_ago(last_ms, COST_RECENT_DAYS);
	int64_t least_ms = days_ago(now_ms, CLOUD_SPEND_DAYS);

	if (!last_ms || missed_ms > wanted_ms)
		return wanted_ms;
	return missed_ms < least_ms ? least_ms : missed_ms;
}

/* Asks for the first of these, about their last days; *ret: how many of them. */
static enum rc ask_some(struct aws_costs *c, const struct due *due, size_t count, enum kind kind, size_t *ret,
                        struct aws_costs_done *done, struct err *e)
{
	int64_t              now_ms = now_of(c), oldest_ms = 0;
	struct str           ids[COST_ACCOUNTS_MAX];
	struct cost_question q = { .accounts = ids };
	enum rc              rc;

	for (; q.count < count && q.count < COST_ACCOUNTS_MAX; q.count++) {
		ids[q.count] = due[q.count].id;
		if (!oldest_ms) /* they are in this order, and new ones have none */
			oldest_ms = due[q.count].recent_ms;
	}
	q.days = (struct cost_days){ begin_at(now_ms, oldest_ms,
		                              kind == ASK_RECENT ? COST_RECENT_DAYS : COST_WHOLE_DAYS),
		                     days_ago(now_ms, -1) };
	rc = ask_for(c, &q, kind, done, e);
	*ret = rc ? 0 : q.count;
	return rc;
}

/* As many of these as may be asked for in this hour. */
static enum rc ask_all(struct aws_costs *c, const struct due_list *l, enum kind kind, struct aws_costs_done *done,
                       struct err *e)
{
	size_t  at = 0, asked;
	enum rc rc = RC_OK;

	while (!rc && at < l->count) {
		rc = ask_some(c, &l->items[at], l->count - at, kind, &asked, done, e);
		at += asked;
	}
	done->waiting += (int64_t)(l->count - at);
	if (!done->is_spent)
		return rc;
	err_clear(e);
	return RC_OK;
}

struct finish {
	int64_t now_ms, accounts;
	bool    is_all;
};

static enum rc note_refresh(struct session *s, void *arg, struct err *e)
{
	const struct finish *f = arg;
	struct aws_cost_book book;
	enum rc              rc = session_find_or_new(s, &aws_cost_book_type, STR(AWS_COST_BOOK), &book, e);

	if (rc)
		return rc;
	book.accounts = f->accounts;
	if (f->is_all)
		book.refreshed_ms = f->now_ms;
	session_put(s, &aws_cost_book_type, &book);
	return RC_OK;
}

/* Sorted out: those whose last weeks are due, which is once a day, and those whose last days are. */
static void sort_out(const struct gather *g, int64_t now_ms, struct due_list ret[2])
{
	for (size_t i = 0; i < g->wanted.count; i++) {
		const struct due *due = &g->wanted.items[i];

		if (cost_day(due->whole_ms) != cost_day(now_ms))
			add_due(&ret[ASK_WHOLE], *due, g->arena);
		else if (now_ms - due->recent_ms >= g->young_ms)
			add_due(&ret[ASK_RECENT], *due, g->arena);
	}
	for (enum kind kind = ASK_RECENT; kind <= ASK_WHOLE; kind++)
		if (ret[kind].count)
			qsort(ret[kind].items, ret[kind].count, sizeof(struct due), by_age);
}

static enum rc refresh(struct aws_costs *c, struct gather *g, struct aws_costs_done *done, struct err *e)
{
	struct finish   f = { .now_ms = now_of(c) };
	struct due_list lists[2] = { 0 };
	enum rc         rc;

	g->since_ms = days_ago(f.now_ms, KEEP_DAYS);
	if ((rc = gather(c, g, &g->wanted, e)))
		return rc;
	f.accounts = (int64_t)g->wanted.count;
	if ((rc = store_run(c->o.store, note_refresh, &f, NULL, e))) /* the budget of what comes */
		return rc;
	sort_out(g, f.now_ms, lists);
	if ((rc = ask_all(c, &lists[ASK_WHOLE], ASK_WHOLE, done, e)) ||
	    (rc = ask_all(c, &lists[ASK_RECENT], ASK_RECENT, done, e)))
		return rc;
	f.is_all = !done->waiting;
	return f.is_all ? store_run(c->o.store, note_refresh, &f, NULL, e) : RC_OK;
}

enum rc aws_costs_refresh(struct aws_costs *c, bool is_wanted, struct aws_costs_done *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct gather                    g = { .arena = &a, .young_ms = is_wanted ? 0 : c->o.refresh_ms };

	*ret = (struct aws_costs_done){ 0 };
	LOCKED(&c->asking);
	return refresh(c, &g, ret, e);
}

/* --- the port --- */

struct look {
	struct str       account;
	struct cost_days days;
	int64_t          now_ms;

	bool                    is_there, is_spent; /* the account; the pages of this hour */
	struct aws_cost_account known;
	struct aws_cost_day   **records; /* by day */
};

/* Nobody asked for it for so long that it was not refreshed: days may be missing. */
static bool has_gap(const struct look *l)
{
	return l->is_there && l->known.recent_ms < days_ago(l->now_ms, COST_RECENT_DAYS);
}

static enum rc look(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;
	enum rc      rc = session_find(s, &aws_cost_account_type, l->account, &l->known, &l->is_there, e);

	l->records = arena_alloc(session_arena(s),
	                         ((size_t)cost_day_count(l->days) + 1) * sizeof(struct aws_cost_day *));
	return rc || !l->is_there ? rc : read_days(s, l->account, l->days, l->records, e);
}

static enum rc touch(struct session *s, void *arg, struct err *e)
{
	const struct look      *l = arg;
	struct aws_cost_account account;
	bool                    is_there;
	enum rc                 rc = session_find(s, &aws_cost_account_type, l->account, &account, &is_there, e);

	if (rc || !is_there)
		return rc;
	account.asked_ms = l->known.asked_ms;
	session_put(s, &aws_cost_account_type, &account);
	return RC_OK;
}

/* An account that is new, together with others of the pool that are; the days before those that are stored of a known
 * one; or those behind. */
static enum rc ask_new(struct aws_costs *c, struct look *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct gather                    g = { .arena = &a };
	struct due_list                  fresh = { 0 };
	struct aws_costs_done            done = { 0 };
	int64_t                          now_ms = now_of(c), whole_ms = days_ago(now_ms, COST_WHOLE_DAYS);
	struct str                       ids[COST_ACCOUNTS_MAX] = { l->account };
	struct cost_question             q = { .accounts = ids, .count = 1, .days = l->days };
	enum rc                          rc = RC_OK;

	if (has_gap(l)) {
		q.days = (struct cost_days){ begin_at(now_ms, l->known.recent_ms, COST_WHOLE_DAYS),
			                     days_ago(now_ms, -1) };
	} else if (l->is_there) {
		q.days.end_ms = l->known.from_ms;
	} else {
		q.days = (struct cost_days){ l->days.first_ms < whole_ms ? l->days.first_ms : whole_ms,
			                     days_ago(now_ms, -1) };
		rc = gather(c, &g, &fresh, e);
	}
	for (size_t i = 0; i < fresh.count && q.count < COST_ACCOUNTS_MAX; i++)
		if (!str_eq(fresh.items[i].id, l->account))
			ids[q.count++] = fresh.items[i].id;
	if (!rc)
		rc = ask_for(c, &q, has_gap(l) || !l->is_there ? ASK_WHOLE : ASK_OLDER, &done, e);
	l->is_spent = done.is_spent;
	return rc;
}

static bool must_ask(const struct aws_costs *c, const struct look *l)
{
	bool is_covered = l->is_there && l->known.from_ms <= l->days.first_ms && !has_gap(l);

	return !is_covered && !(l->is_there && now_of(c) - c->failed_ms < AGAIN_MS);
}

static bool is_away(enum rc rc)
{
	return rc == RC_UNAVAILABLE || rc == RC_TIMEOUT || rc == RC_LIMITED || rc == RC_DENIED;
}

static enum rc find_days(struct aws_costs *c, struct look *l, struct arena *a, struct err *e)
{
	int64_t today_ms = cost_day(l->now_ms);
	enum rc rc = store_read(c->o.store, look, l, a, e);

	if (!rc && must_ask(c, l)) {
		pthread_mutex_lock(&c->asking);
		rc = store_read(c->o.store, look, l, a, e);          /* it may have been asked for meanwhile */
		for (int i = 0; !rc && must_ask(c, l) && i < 2; i++) /* behind and before, at most */
			if (!(rc = ask_new(c, l, e)))
				rc = store_read(c->o.store, look, l, a, e);
		pthread_mutex_unlock(&c->asking);
		if (l->is_spent || (l->is_there && is_away(rc))) { /* what is stored says until when it is complete */
			err_clear(e);
			rc = RC_OK;
		}
	}
	if (!rc && l->known.asked_ms < today_ms) {
		l->known.asked_ms = today_ms;
		rc_ignore(store_run(c->o.store, touch, l, NULL, NULL)); /* comes again */
	}
	return rc;
}

static enum rc check(struct str account_id, int64_t from_ms, int64_t to_ms, struct err *e)
{
	if (!str_is_digits(account_id, ACCOUNT_DIGITS))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(account_id));
	if (from_ms < 0 || from_ms > to_ms || to_ms - from_ms > CLOUD_SPEND_DAYS * (int64_t)COST_DAY_MS)
		return err_set_code(e, RC_INVALID, "ValidationException",
		                    "spend from %lld to %lld ms: must be forward in time and at most %d days",
		                    (long long)from_ms, (long long)to_ms, CLOUD_SPEND_DAYS);
	return RC_OK;
}

/* A day's items behind those before. Each has what the sum grows by when it is added, so that the items are the sum,
 * and none is off by more than a millionth. */
static enum rc bill_add(struct cloud_bill *bill, size_t *room, const struct aws_cost_day *day, int64_t *units,
                        struct arena *a, struct err *e)
{
	CLEANUP(json_freep) json_t *items = NULL;
	const char                 *service;
	json_t                     *value;
	enum rc                     rc = json_parse(day->items, &items, e);

	if (rc)
		return err_wrap(e, rc, "the stored costs %.*s", STR_ARG(day->key));
	json_object_foreach(items, service, value)
	{
		int64_t before = cost_micro(*units), micro;

		if (__builtin_add_overflow(*units, json_integer_value(value), units))
			return err_set(e, RC_CORRUPT, "the costs are more than can be counted");
		if (!(micro = cost_micro(*units) - before))
			continue;
		bill->items = arena_grow(a, bill->items, bill->count, room, sizeof(*bill->items));
		bill->items[bill->count++] = (struct cloud_cost){ str_dup(a, str_from(service)), day->day_ms, micro };
	}
	return RC_OK;
}

static enum rc make_bill(struct aws_costs *c, struct look *l, int64_t to_ms, struct arena *a, struct cloud_bill *ret,
                         struct err *e)
{
	struct cloud_bill bill = { 0 };
	int64_t           units = 0;
	size_t            room = 0;
	enum rc           rc = find_days(c, l, a, e);

	for (int64_t i = 0; !rc && i < cost_day_count(l->days); i++)
		if (l->records[i])
			rc = bill_add(&bill, &room, l->records[i], &units, a, e);
	if (rc)
		return rc;
	bill.spend = (struct cloud_spend){ cost_micro(units),
		                           complete_until(&l->known, l->days, l->records, now_of(c)) };
	if (bill.spend.complete_until_ms > to_ms)
		bill.spend.complete_until_ms = to_ms;
	*ret = bill;
	return RC_OK;
}

static enum rc itemise(struct costs *base, struct str account_id, int64_t from_ms, int64_t to_ms, struct arena *a,
                       struct cloud_bill *ret, struct err *e)
{
	struct aws_costs *c = CONTAINER_OF(base, struct aws_costs, base);
	struct look       l = { .account = account_id, .days = cost_days_of(from_ms, to_ms), .now_ms = now_of(c) };
	enum rc           rc = check(account_id, from_ms, to_ms, e);

	return rc ? rc : make_bill(c, &l, to_ms, a, ret, e);
}

static enum rc spend(struct costs *base, struct str account_id, int64_t from_ms, int64_t to_ms, struct cloud_spend *ret,
                     struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct cloud_bill                bill;
	enum rc                          rc = itemise(base, account_id, from_ms, to_ms, &a, &bill, e);

	if (!rc)
		*ret = bill.spend;
	return rc;
}

static const struct costs_ops ops = { spend, itemise };

/* --- state and life --- */

struct sum_up {
	struct aws_costs_state *state;
	struct arena           *arena;
	int64_t                 since_ms, young_ms;
};

static enum rc sum_up(const struct page *page, struct arena *ignored UNUSED, void *arg, struct err *e UNUSED)
{
	struct sum_up *x = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct aws_cost_account *account = page_record(page, &aws_cost_account_type, i);
		int64_t                       *until_ms = &x->state->complete_until_ms;

		if (account->asked_ms < x->since_ms)
			continue;
		x->state->accounts++;
		if (account->first_ms > x->young_ms || (*until_ms && account->complete_ms >= *until_ms))
			continue;
		*until_ms = account->complete_ms;
		x->state->behind = str_dup(x->arena, account->account_id);
	}
	return RC_OK;
}

enum rc aws_costs_look(struct aws_costs *c, struct arena *a, struct aws_costs_state *ret, struct err *e)
{
	struct query           q = query_of(&aws_cost_account_type, QUERY_ALL, value_int(0), QUERY_LIMIT_MAX);
	struct aws_costs_state state = { 0 };
	int64_t                now_ms = now_of(c);
	struct sum_up          x = { &state, a, days_ago(now_ms, KEEP_DAYS), days_ago(now_ms, YOUNG_DAYS) };
	struct aws_cost_book   book = { 0 };
	char                   day[16];
	bool                   is_there;
	enum rc rc = store_find(c->o.store, &aws_cost_book_type, STR(AWS_COST_BOOK), a, &book, &is_there, e);

	if (rc || (rc = store_read_pages(c->o.store, &q, sum_up, &x, e)))
		return rc;
	state.refreshed_ms = book.refreshed_ms;
	if (str_starts_with(cost_day_text(now_ms, day), book.month))
		state.pages_this_month = book.pages;
	*ret = state;
	return RC_OK;
}

struct aws_costs *aws_costs_new(const struct aws_costs_options *o)
{
	struct aws_costs *c = mem_new(struct aws_costs);

	c->base.ops = &ops;
	c->o = *o;
	pthread_mutex_init(&c->asking, NULL);
	return c;
}

void aws_costs_free(struct aws_costs *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->asking);
	free(c);
}

struct costs *aws_costs_port(struct aws_costs *c)
{
	return &c->base;
}

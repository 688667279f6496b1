/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_fill.c - see lease_fill.h.
 *
 * Records are written straight into the stores, many in a transaction: asking for 100,000 leases one by one would take
 * longer than all that is measured. What the service keeps beside a lease is there too: its account, its timers and
 * sagas, the count of its owner's leases, and the account's place and rate in the simulated cloud. So a server that
 * starts on the folder finds nothing to put right.
 *
 * Ended leases ended within the last FILL_DAYS days: none is old enough to be purged.
 */
#include "lease_fill.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "kernel/records.h"
#include "providers/sim/cloud.h"
#include "providers/sim/records.h"
#include "service/account/account_follow.h"
#include "service/lease/lease_private.h"
#include "service/record/lease_records.h"
#include "store/session.h"
#include "store/store.h"

enum {
	ENDED_PER_TXN = 30, /* a lease and two sagas each */
	AT_ONCE = 16,
	IN_USE_PER_TXN = 15, /* a lease, an account, a count and two timers each */
	FILL_DAYS = 28,
	USE_DAYS = 20, /* in use since, at most */
	TTL_DAYS = 30,
	PEOPLE = 10000,
	CLASS_EVERY = 50,
	QUIET_RATE = 10000,    /* millionths of a dollar an hour: 4.80 in USE_DAYS */
	CROSSING_RATE = 40000, /* 10 within eleven days */
};

static const int64_t day_ms = (int64_t)DAY_SEC * 1000;

struct str fill_person(struct arena *a, int64_t number)
{
	return str_format(a, "person-%05lld@example.com", (long long)number);
}

/* Spread as real ones are: an index of them is filled in no order. */
struct str fill_uuid(struct arena *a, int64_t number)
{
	uint64_t mixed = ((uint64_t)number + 1) * 0x9e3779b97f4a7c15ull;

	return str_format(a, "%08x-%04x-4%03x-a000-%012llx", (unsigned)(mixed >> 32), (unsigned)(mixed >> 16 & 0xffff),
	                  (unsigned)(mixed & 0xfff), (unsigned long long)number);
}

/* What leases of all groups have. */
static struct lease make_lease(struct arena *a, int64_t number, struct str email, int64_t created_ms)
{
	return (struct lease){
		.uuid = fill_uuid(a, number),
		.user_email = email,
		.user_key = email,
		.status = LEASE_PENDING_APPROVAL,
		.template_uuid = STR("0b7d6c1e-5c59-4c4e-9d0b-3f0f6d3d2a10"),
		.template_name = STR("Project"),
		.comments = STR("To try out the new queue before we decide about it."),
		.created_by = email,
		.max_spend = (int64_t)50 * LEASE_USD,
		.budget_thresholds = STR("[{\"dollarsSpent\":10,\"action\":\"ALERT\"},"
		                         "{\"dollarsSpent\":40,\"action\":\"FREEZE_ACCOUNT\"}]"),
		.duration_ms = 60 * day_ms,
		.duration_thresholds = STR("[{\"hoursRemaining\":24,\"action\":\"ALERT\"}]"),
		.cost_group = STR("research"),
		.ttl_days = TTL_DAYS,
		.created_ms = created_ms,
		.edited_ms = created_ms,
	};
}

static void begin_lease(struct lease *l, enum lease_status status, struct str account_id)
{
	l->status = status;
	l->account_id = account_id;
	l->approved_by = STR("manager@example.com");
	l->start_ms = l->last_checked_ms = l->created_ms;
	l->expires_ms = l->start_ms + l->duration_ms;
}

/* --- many at once --- */

/* Several transactions are under way at once, so that they share a commit: most of the time would be the disk's. */
struct run {
	struct store   *store;
	txn_fn         *add;
	const void     *arg;
	int64_t         per_txn, all;
	pthread_mutex_t lock;
	pthread_cond_t  is_over;
	int64_t         next;
	int             under_way;
	enum rc         rc; /* the first failure */
	struct err     *e;
};

struct job {
	struct run      *run;
	struct txn       txn;
	struct arena     arena;
	struct fill_some some;
};

static void on_added(struct txn *t, enum rc rc, const struct err *e);

/* The next of them, or the end of this job. With the lock. */
static void add_next(struct job *j)
{
	struct run *run = j->run;
	int64_t     left = run->all - run->next;

	if (left <= 0 || run->rc) {
		if (--run->under_way == 0)
			pthread_cond_signal(&run->is_over);
		return;
	}
	j->some = (struct fill_some){ run->next, left < run->per_txn ? left : run->per_txn, run->all, run->arg };
	run->next += j->some.count;
	arena_reset(&j->arena);
	j->txn = (struct txn){ .run = run->add, .arg = &j->some, .arena = &j->arena, .done = on_added };
	store_submit(run->store, &j->txn);
}

static void on_added(struct txn *t, enum rc rc, const struct err *e)
{
	struct job *j = CONTAINER_OF(t, struct job, txn);
	struct run *run = j->run;

	pthread_mutex_lock(&run->lock);
	if (rc && !run->rc)
		run->rc = err_set(run->e, rc, "%s", e->msg);
	add_next(j);
	pthread_mutex_unlock(&run->lock);
}

enum rc fill_many(struct store *store, txn_fn *add, const void *arg, int64_t count, int64_t per_txn, struct err *e)
{
	struct job jobs[AT_ONCE] = { 0 };
	struct run run = {
		.store = store, .add = add, .arg = arg, .per_txn = per_txn, .all = count, .e = e, .under_way = AT_ONCE
	};

	pthread_mutex_init(&run.lock, NULL);
	pthread_cond_init(&run.is_over, NULL);
	pthread_mutex_lock(&run.lock);
	for (int i = 0; i < AT_ONCE; i++) {
		jobs[i].run = &run;
		add_next(&jobs[i]);
	}
	while (run.under_way)
		pthread_cond_wait(&run.is_over, &run.lock);
	pthread_mutex_unlock(&run.lock);
	for (int i = 0; i < AT_ONCE; i++)
		arena_fini(&jobs[i].arena);
	pthread_cond_destroy(&run.is_over);
	pthread_mutex_destroy(&run.lock);
	return run.rc;
}

/* --- ended ones --- */

static void end_lease(struct lease *l, int64_t number)
{
	static const enum lease_status statuses[] = { LEASE_EXPIRED, LEASE_BUDGET_EXCEEDED, LEASE_MANUALLY_TERMINATED };

	l->status = statuses[number % (int64_t)ARRAY_LEN(statuses)];
	l->end_ms = l->start_ms + day_ms / 2;
	l->cost = number % 40 * LEASE_USD;
	l->ttl_sec = l->end_ms / 1000 + (int64_t)TTL_DAYS * DAY_SEC;
	l->ended_by = STR("monitor");
	l->end_reason = STR("{\"type\":\"Expired\"}");
}

/* What its account did for it: became the owner's, and went to be cleaned. */
static void add_sagas(struct session *s, const struct lease *l, int64_t number)
{
	struct arena *a = session_arena(s);

	for (int64_t i = 0; i < 2; i++) {
		int64_t     at_ms = i ? l->end_ms : l->start_ms;
		struct saga saga = { .kind = STR(ACCOUNT_FOLLOW),
			             .subject = str_format(a, "account/%.*s", STR_ARG(l->account_id)),
			             .state = SAGA_DONE,
			             .step = 5,
			             .marks = STR("ddddd"),
			             .input = STR("{\"to\":\"Active\"}"),
			             .started_ms = at_ms,
			             .step_since_ms = at_ms,
			             .ended_ms = at_ms,
			             .due_ms = at_ms,
			             .actor = l->user_email };

		saga.id = str_format(a, ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(l->account_id),
		                     (long long)(2 * number + i));
		session_add(s, &saga_type, &saga);
	}
}

static enum rc add_ended(struct session *s, void *arg, struct err *e)
{
	const struct fill_some *some = arg;
	struct arena           *a = session_arena(s);
	int64_t                 begin_ms = session_now(s).ms - FILL_DAYS * day_ms;

	(void)e;
	for (int64_t i = some->first; i < some->first + some->count; i++) {
		struct str   email = i % CLASS_EVERY ? fill_person(a, i % PEOPLE) : STR(FILL_CLASS);
		struct lease l = make_lease(a, i, email, begin_ms + i * (FILL_DAYS - 1) * day_ms / some->all);

		begin_lease(&l, LEASE_ACTIVE, str_format(a, "%012lld", (long long)(i % PEOPLE)));
		end_lease(&l, i);
		session_add(s, &lease_type, &l);
		add_sagas(s, &l, i);
	}
	return RC_OK;
}

/* --- accounts, and the leases on them --- */

struct some_accounts {
	const struct fill *fill;
	int64_t            first; /* number of the first of them */
	struct page        members;
	struct str         cursor;
};

static bool is_in_use(const struct some_accounts *some, size_t i)
{
	return some->first + (int64_t)i < some->fill->in_use;
}

static bool is_frozen(const struct some_accounts *some, size_t i)
{
	return (some->first + (int64_t)i) % FILL_FROZEN_EVERY == 1;
}

/* Longest in use first. */
static int64_t used_since(const struct some_accounts *some, size_t i, int64_t now_ms)
{
	return now_ms - USE_DAYS * day_ms + (some->first + (int64_t)i) * day_ms / some->fill->in_use;
}

static void add_rate(struct session *s, const struct some_accounts *some, size_t i, const struct sim_member *m)
{
	struct sim_rate rate = { .account_id = m->id,
		                 .at_ms = used_since(some, i, session_now(s).ms),
		                 .rate = m->rate };

	rate.key = str_format(session_arena(s), "%.*s#%015lld", STR_ARG(m->id), (long long)rate.at_ms);
	session_add(s, &sim_rate_type, &rate);
}

/* In the cloud, they are where their leases want them. */
static enum rc place_members(struct session *s, void *arg, struct err *e)
{
	struct some_accounts *some = arg;
	struct query          q = {
		         .type = &sim_member_type, .index = QUERY_ALL, .limit = IN_USE_PER_TXN, .cursor = some->cursor
	};
	enum rc rc = session_query(s, &q, &some->members, e);

	for (size_t i = 0; !rc && i < some->members.count && is_in_use(some, i); i++) {
		struct sim_member m;

		rc = session_get(s, &sim_member_type,
		                 ((struct sim_member *)page_record(&some->members, &sim_member_type, i))->id, &m, e);
		if (rc)
			break;
		m.ou_id = sim_cloud_ou(some->fill->cloud, is_frozen(some, i) ? SIM_OU_FROZEN : SIM_OU_ACTIVE);
		m.rate = (some->first + (int64_t)i) % FILL_CROSSING_EVERY == 0 ? CROSSING_RATE : QUIET_RATE;
		session_put(s, &sim_member_type, &m);
		add_rate(s, some, i, &m);
	}
	return rc;
}

static struct account make_account(const struct sim_member *m, int64_t number, int64_t now_ms)
{
	return (struct account){ .id = m->id,
		                 .name = m->name,
		                 .email = m->email,
		                 .status = ACCOUNT_AVAILABLE,
		                 .placed_ou = STR("Available"),
		                 .cleaned_ms = now_ms - (FILL_DAYS + 2) * day_ms + number,
		                 .rested_ms = now_ms - (FILL_DAYS + 2) * day_ms + number,
		                 .created_ms = now_ms - (FILL_DAYS + 2) * day_ms,
		                 .edited_ms = now_ms };
}

static enum rc lend(struct session *s, const struct some_accounts *some, size_t i, struct account *account,
                    struct err *e)
{
	int64_t      number = some->first + (int64_t)i;
	struct str   email = fill_person(session_arena(s), number);
	struct lease l = make_lease(session_arena(s), some->fill->ended + number, email,
	                            used_since(some, i, session_now(s).ms));
	enum rc      rc = lessee_add(s, &l, INT64_MAX, e);

	begin_lease(&l, is_frozen(some, i) ? LEASE_FROZEN : LEASE_ACTIVE, account->id);
	account->status = is_frozen(some, i) ? ACCOUNT_FROZEN : ACCOUNT_ACTIVE;
	account->placed_ou = str_from(account_status_names[account->status]);
	account->lease_uuid = l.uuid;
	if (!is_frozen(some, i))
		account->holder = account->granted = email;
	session_add(s, &lease_type, &l);
	return rc ? rc : lease_arm(s, &l, e);
}

static enum rc add_accounts(struct session *s, void *arg, struct err *e)
{
	struct some_accounts *some = arg;

	for (size_t i = 0; i < some->members.count; i++) {
		struct account account = make_account(page_record(&some->members, &sim_member_type, i),
		                                      some->first + (int64_t)i, session_now(s).ms);
		enum rc        rc = is_in_use(some, i) ? lend(s, some, i, &account, e) : RC_OK;

		if (rc)
			return rc;
		assert(account_ok(&account));
		session_add(s, &account_type, &account);
	}
	return RC_OK;
}

static enum rc fill_accounts(const struct fill *f, struct arena *a, struct err *e)
{
	struct some_accounts some = { .fill = f };
	char                 cursor[CURSOR_MAX];
	enum rc              rc = RC_OK;

	do {
		arena_reset(a);
		if ((rc = store_run(f->sim_store, place_members, &some, a, e)) ||
		    (rc = store_run(f->store, add_accounts, &some, a, e)))
			return rc;
		some.first += (int64_t)some.members.count;
		if (some.members.next.n) /* it lives in the arena, which begins anew */
			memcpy(cursor, some.members.next.p, some.members.next.n);
		some.cursor = str_of(cursor, some.members.next.n);
	} while (some.cursor.n);
	return some.first == f->in_use + f->spare ? RC_OK
	                                          : err_set(e, RC_INVALID, "the cloud has %lld accounts, not %lld",
	                                                    (long long)some.first, (long long)(f->in_use + f->spare));
}

/* --- pending ones --- */

static enum rc add_pending(struct session *s, void *arg, struct err *e)
{
	const struct fill_some *some = arg;
	struct arena           *a = session_arena(s);

	for (int64_t i = 0; i < some->count; i++) {
		struct lease l = make_lease(a, some->all + some->first + i, fill_person(a, some->first + i),
		                            session_now(s).ms);
		enum rc      rc = lessee_add(s, &l, INT64_MAX, e);

		if (rc)
			return rc;
		session_add(s, &lease_type, &l);
	}
	return RC_OK;
}

static enum rc fill_pending(const struct fill *f, struct arena *a, struct err *e)
{
	enum rc rc = RC_OK;

	for (int64_t i = 0; !rc && i < f->pending; i += IN_USE_PER_TXN) {
		int64_t          left = f->pending - i;
		struct fill_some some = { i, left < IN_USE_PER_TXN ? left : IN_USE_PER_TXN, f->ended + f->in_use,
			                  NULL };

		arena_reset(a);
		rc = store_run(f->store, add_pending, &some, a, e);
	}
	return rc;
}

enum rc fill_all(const struct fill *f, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc = fill_many(f->store, add_ended, NULL, f->ended, ENDED_PER_TXN, e);

	if (!rc)
		rc = fill_accounts(f, &a, e);
	if (!rc)
		rc = fill_pending(f, &a, e);
	arena_fini(&a);
	return rc;
}

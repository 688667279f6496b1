/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_clean.c - a cleanup, from the request to its result.
 *
 * A cleanup is several runs of the cleaner: so many successes in a row make an account clean, so many failures in all
 * give it up. Nothing waits in memory: between two stages there is only the timer "cleanup/ID", whose event says what
 * is next:
 *
 *     CleanAccountRequest -> slot? -> start a run -> ask in 30 s -> ... -> succeeded: again after a wait, or clean
 *                             |                                        -> failed:    again after a wait, or given up
 *                             no: wait for its turn
 *
 * The queue's call only asks the cleaner (start or check); settling decides, in the transaction that removes the
 * delivery. A process that dies in between asks again; the key of a run names account, cleanup and attempt, so it is
 * the same run.
 *
 * Always true:
 *   1. A cleanup ends with AccountCleanupSucceeded or AccountCleanupFailed, at the latest after CLEAN_LIMIT_MS.
 *      [next()]
 *   2. An account leaves CleanUp for its rest only by note_success().
 *   3. A stage of a cleanup that is not the account's present one changes nothing. [is_present()]
 *
 * A cleaner that cannot be reached is neither a success nor a failure: it is asked again later, within the limits.
 *
 * Not here: how an account is emptied (providers/), who may ask for it (accounts.c).
 */
#include "service/pool/accounts.h"
#include "service/pool/account_clean.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "service/account/account_follow.h"
#include "service/account/account_report.h"
#include "service/pool/account_slots.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "store/walk.h"

#define SOURCE "account-cleaner" /* also the actor */

enum {
	TRIES = 1000,             /* calls never fail: only the store does, or the process ends */
	TURN_WAIT_MS = 600000,    /* whoever waits is woken; this is for the case that nobody does */
	STUCK_AFTER_MS = 3600000, /* beyond the limit */
	WORDS_MAX = 2048,         /* of one run, in the log and the events */
};

/* What is next in a cleanup: the detail of CleanupDue. Without a cleanup: begin one, if it is the account's turn. */
struct stage {
	struct str cleanup;
	int64_t    attempt;  /* from 1 */
	struct str run;      /* the cleaner's; empty: to be started */
	int64_t    since_ms; /* it runs since */
};

/* What the cleaner said. */
struct answer {
	bool             was_asked;
	enum rc          rc;
	struct str       words;
	struct cloud_run run;
	struct str       run_id;
};

bool account_clean_is_running(const struct account *a, struct wall now)
{
	return a->status == ACCOUNT_CLEANUP && a->clean_run.n &&
	       now.ms - a->clean_started_ms < CLEAN_LIMIT_MS + STUCK_AFTER_MS;
}

static bool is_present(const struct account *a, const struct stage *st)
{
	return a->status == ACCOUNT_CLEANUP && a->clean_run.n && str_eq(a->clean_run, st->cleanup);
}

/* --- events --- */

/* The lease that this cleanup is the end of: its owner is told. None when the account was clean since. */
static enum rc find_lessee(struct session *s, const struct account *a, struct str *ret_json, struct err *e)
{
	struct lease l;
	bool         is_there = false;
	enum rc      rc = a->last_lease.n ? session_find(s, &lease_type, a->last_lease, &l, &is_there, e) : RC_OK;

	if (!rc && is_there && l.end_ms > a->cleaned_ms)
		*ret_json = JSON_OF(session_arena(s), member_str("userEmail", l.user_email),
		                    member_str("uuid", l.uuid));
	return rc;
}

/* As the contract has it; `error` is ours. */
static enum rc tell_result(struct session *s, const char *type, const struct account *a, struct str error,
                           struct err *e)
{
	struct arena *arena = session_arena(s);
	struct str    run = JSON_OF(arena, member_str("stateMachineExecutionArn", a->clean_run),
	                            member_time("stateMachineExecutionStartTime", a->clean_started_ms));
	struct event  event = { .type = str_from(type),
		                .source = STR(SOURCE),
		                .actor = STR(SOURCE),
		                .subject = account_subject(s, a->id) };
	struct str    lease = STR("");
	enum rc       rc = find_lessee(s, a, &lease, e);

	if (rc)
		return rc;
	event.detail = JSON_OF(arena, member_str("accountId", a->id), member_raw("cleanupExecutionContext", run),
	                       member_if_any(member_raw("leaseId", lease)), member_str("reason", a->clean_reason),
	                       member_if_any(member_str("error", error)));
	return session_emit(s, &event, e);
}

/* --- stages --- */

static struct str id_of(const struct event *event)
{
	struct str rest = event->subject;

	(void)str_cut(&rest, '/'); /* "account" */
	return rest;
}

/* What makes no sense is an invitation to begin, which does nothing when there is nothing to begin. */
static struct stage read_stage(const struct event *event, struct arena *a)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct stage                st = { 0 };

	if (!str_eq(event->type, STR(EVENT_CLEANUP_DUE)) || json_parse(event->detail, &o, NULL))
		return st;
	if (!json_take_text(o, "cleanup", a, &st.cleanup) || !json_get_number(o, "attempt", 1, &st.attempt) ||
	    !json_take_text(o, "run", a, &st.run) || !json_get_number(o, "since", 0, &st.since_ms))
		return (struct stage){ 0 };
	return st;
}

static enum rc arm(struct session *s, struct str id, const struct stage *st, int64_t wait_ms, struct err *e)
{
	struct arena *a = session_arena(s);
	struct str    detail = JSON_OF(a, member_str("cleanup", st->cleanup), member_int("attempt", st->attempt),
	                               member_str("run", st->run), member_int("since", st->since_ms));

	return account_arm(s, str_format(a, "cleanup/%.*s", STR_ARG(id)), session_now(s).ms + wait_ms,
	                   EVENT_CLEANUP_DUE, id, st->cleanup.n ? detail : STR("{}"), e);
}

/* Its slot is free: whoever is next begins. */
static enum rc leave_slot(struct session *s, struct str id, struct err *e)
{
	struct str next;
	enum rc    rc = account_slots_leave(s, id, &next, e);

	return rc || !next.n ? rc : arm(s, next, &(struct stage){ 0 }, 0, e);
}

static enum rc begin(struct session *s, const struct account_clean_options *o, struct account *a, struct err *e)
{
	struct stage first = { .attempt = 1 };
	bool         has_slot;
	enum rc      rc;

	if (a->status != ACCOUNT_CLEANUP || a->is_following || account_clean_is_running(a, session_now(s)))
		return RC_OK;
	if ((rc = account_slots_enter(s, a->id, o->at_once ? o->at_once : CLEAN_AT_ONCE, &has_slot, e)))
		return rc;
	if (!has_slot)
		return arm(s, a->id, &(struct stage){ 0 }, TURN_WAIT_MS, e);
	a->clean_run = first.cleanup = kernel_new_id(s, STR(""));
	a->clean_started_ms = session_now(s).ms;
	a->clean_successes = a->clean_failures = 0;
	a->clean_log = STR("");
	session_put(s, &account_type, a);
	return arm(s, a->id, &first, 0, e);
}

/* --- asking the cleaner: on a worker, without a transaction --- */

static enum rc ask(struct call *c, struct str id, const struct stage *st, struct answer *ret, struct err *e)
{
	const struct account_clean_options *o = c->arg;
	struct str                          key;

	if (st->run.n)
		return o->cleaner->ops->check(o->cleaner, st->run, c->arena, &ret->run, e);
	key = str_format(c->arena, "%.*s/%.*s/%lld", STR_ARG(id), STR_ARG(st->cleanup), (long long)st->attempt);
	return o->cleaner->ops->start(o->cleaner, id, key, c->arena, &ret->run_id, e);
}

static enum rc call(struct call *c, struct err *e)
{
	const struct account_clean_options *o = c->arg;
	const struct event                 *event = &c->delivery->event;
	struct stage                        stage = read_stage(event, c->arena);
	struct str                          id = id_of(event);
	struct answer                      *answer = arena_alloc(c->arena, sizeof(*answer));
	struct err                          why = { 0 };
	struct account                      a;
	bool                                is_there;
	enum rc                             rc;

	c->result = answer;
	if (!stage.cleanup.n)
		return RC_OK;
	if ((rc = store_find(o->store, &account_type, id, c->arena, &a, &is_there, e)) || !is_there ||
	    !is_present(&a, &stage))
		return rc;
	answer->was_asked = true;
	answer->rc = ask(c, id, &stage, answer, &why);
	answer->words = answer->rc ? str_dup(c->arena, str_from(why.msg[0] ? why.msg : rc_text(answer->rc)))
	                           : answer->run.text;
	return RC_OK;
}

/* --- deciding: in the transaction that removes the delivery --- */

struct cleanup {
	struct session          *s;
	const struct policy     *policy;
	const struct hold_rules *rules;
	struct account          *a;
	struct stage             stage;
};

/* Its own words, one line for each attempt; the oldest go when there are too many. */
static void note(const struct cleanup *c, const char *outcome, struct str words)
{
	struct str line = str_format(session_arena(c->s), "attempt %lld %s%s%.*s\n", (long long)c->stage.attempt,
	                             outcome, words.n ? ": " : "", STR_ARG(words));
	struct str old = c->a->clean_log;

	while (old.n + line.n > CLEAN_LOG_MAX)
		(void)str_cut(&old, '\n'); /* the line that goes */
	c->a->clean_log = str_format(session_arena(c->s), "%.*s%.*s", STR_ARG(old), STR_ARG(line));
}

static enum rc give_up(const struct cleanup *c, struct str why, struct err *e)
{
	struct str reason = str_format(session_arena(c->s), "the cleanup failed: %.*s", STR_ARG(why));
	enum rc    rc = tell_result(c->s, "AccountCleanupFailed", c->a, why, e);

	if (rc || (rc = leave_slot(c->s, c->a->id, e)))
		return rc;
	return account_lock_away(c->s, c->a, HOLD_FAILED_CLEANUP, reason, STR(SOURCE), STR(""), e);
}

/* On to this stage, unless all of it has taken too long. */
static enum rc next(const struct cleanup *c, const struct stage *st, int64_t wait_ms, struct err *e)
{
	int64_t left_ms = c->a->clean_started_ms + CLEAN_LIMIT_MS - session_now(c->s).ms;

	if (left_ms <= 0)
		return give_up(c,
		               str_format(session_arena(c->s), "not clean within %d h, after %lld attempts",
		                          CLEAN_LIMIT_MS / 3600000, (long long)c->stage.attempt),
		               e);
	session_put(c->s, &account_type, c->a);
	return arm(c->s, c->a->id, st, wait_ms < left_ms ? wait_ms : left_ms, e);
}

static enum rc try_again(const struct cleanup *c, int64_t wait_sec, struct err *e)
{
	struct stage st = { .cleanup = c->stage.cleanup, .attempt = c->stage.attempt + 1 };

	return next(c, &st, wait_sec * 1000, e);
}

static enum rc note_failure(const struct cleanup *c, struct str words, struct err *e)
{
	note(c, "failed", words);
	c->a->clean_failures++;
	c->a->clean_successes = 0;
	if (c->a->clean_failures < c->policy->clean_failures_max)
		return try_again(c, c->policy->clean_retry_wait_sec, e);
	return give_up(c,
	               str_format(session_arena(c->s), "%lld attempts failed, the last one because: %.*s",
	                          (long long)c->a->clean_failures, STR_ARG(words)),
	               e);
}

static enum rc note_success(const struct cleanup *c, struct str words, struct err *e)
{
	enum rc rc;

	note(c, "succeeded", words);
	c->a->clean_successes++;
	if (c->a->clean_successes < c->policy->clean_successes)
		return try_again(c, c->policy->clean_rerun_wait_sec, e);
	if ((rc = tell_result(c->s, "AccountCleanupSucceeded", c->a, STR(""), e)) ||
	    (rc = leave_slot(c->s, c->a->id, e)))
		return rc;
	return hold_rest(c->s, c->rules, c->a, STR(SOURCE), e);
}

static enum rc note_running(const struct cleanup *c, struct err *e)
{
	if (session_now(c->s).ms - c->stage.since_ms < CLEAN_RUN_LIMIT_MS)
		return next(c, &c->stage, CLEAN_POLL_MS, e);
	return note_failure(c,
	                    str_format(session_arena(c->s), "run %.*s did not end within %d min", STR_ARG(c->stage.run),
	                               CLEAN_RUN_LIMIT_MS / 60000),
	                    e);
}

static enum rc judge(struct cleanup *c, const struct answer *answer, struct err *e)
{
	struct str words = utf8_line(session_arena(c->s), answer->words, WORDS_MAX);
	enum rc    rc = answer->rc;

	if (!answer->was_asked || rc == RC_UNAVAILABLE || rc == RC_TIMEOUT || rc == RC_LIMITED)
		return c->stage.run.n ? note_running(c, e) : next(c, &c->stage, CLEAN_POLL_MS, e);
	if (rc)
		return note_failure(c, words, e);
	if (!c->stage.run.n) {
		c->stage.run = str_dup(session_arena(c->s), answer->run_id);
		c->stage.since_ms = session_now(c->s).ms;
		return next(c, &c->stage, CLEAN_POLL_MS, e);
	}
	if (answer->run.report && (rc = account_report_note(c->s, c->a, answer->run.report, e)))
		return rc;
	switch (answer->run.state) {
	case CLOUD_RUNNING: return note_running(c, e);
	case CLOUD_SUCCEEDED: return note_success(c, words, e);
	case CLOUD_FAILED: return note_failure(c, words, e);
	case CLOUD_RUN_STATE_COUNT: break;
	}
	return err_set(e, RC_INTERNAL, "the cleaner's answer has an unknown state");
}

static enum rc settle(struct session *s, const struct call *call_made, struct err *e)
{
	const struct account_clean_options *o = call_made->arg;
	const struct event                 *event = &call_made->delivery->event;
	struct account                      a;
	struct cleanup c = { .s = s, .policy = o->policy(o->policy_arg), .rules = o->rules, .a = &a };
	struct str     id = id_of(event);
	bool           is_there;
	enum rc        rc = session_find(s, &account_type, id, &a, &is_there, e);

	if (rc)
		return rc;
	if (!is_there)
		return leave_slot(s, id, e);
	c.stage = read_stage(event, session_arena(s));
	if (!c.stage.cleanup.n)
		return begin(s, o, &a, e);
	if (is_present(&a, &c.stage))
		return judge(&c, call_made->result, e);
	return account_clean_is_running(&a, session_now(s)) ? RC_OK : leave_slot(s, id, e);
}

struct queue account_clean_queue(struct account_clean_options *o)
{
	if (o->at_once > CLEAN_AT_ONCE_MAX)
		o->at_once = CLEAN_AT_ONCE_MAX;
	return (struct queue){ .name = CLEANUP_QUEUE,
		               .call = call,
		               .settle = settle,
		               .arg = o,
		               .tries = TRIES,
		               .concurrency = o->at_once ? o->at_once : CLEAN_AT_ONCE };
}

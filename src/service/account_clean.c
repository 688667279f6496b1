/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_clean.c - a cleanup, from the request to its result.
 *
 * A cleanup is several runs of the cleaner: so many successes in a row make an account clean, so many failures in all give it up. Nothing
 * waits in memory: between two stages there is only the timer "cleanup/ID", whose event says what is next:
 *
 *     CleanAccountRequest -> slot? -> start a run -> ask in 30 s -> ... -> succeeded: again after a wait, or clean
 *                             |                                        -> failed:    again after a wait, or given up
 *                             no: wait for its turn
 *
 * The queue's call asks the cleaner (start or check) and decides nothing; settling decides, in the transaction that removes the delivery.
 * A process that dies in between asks again: a run is started with a key that names account, cleanup and attempt, so it is the same run.
 *
 * Always true:
 *   1. A cleanup ends with AccountCleanupSucceeded or AccountCleanupFailed, at the latest after CLEAN_LIMIT_MS.   [next()]
 *   2. An account leaves CleanUp for its rest only by account_cleaned().
 *   3. A stage of a cleanup that is not the account's present one changes nothing.                                [is_present()]
 *
 * A cleaner that cannot be reached is neither a success nor a failure: it is asked again later, within the limits.
 *
 * Not here: how an account is emptied (providers/), who may ask for it (accounts.c).
 */
#include "service/account_clean.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "service/account_follow.h"
#include "service/account_report.h"
#include "service/account_slots.h"
#include "service/holds.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"
#include "store/store.h"

#define SOURCE "account-cleaner" /* also the actor */

enum {
	TRIES = 1000, /* the calls themselves never fail: what is tried again is the store's failure, or a process that ended */
	TURN_WAIT_MS = 600000,    /* whoever waits is woken; this is for the case that nobody does */
	STUCK_AFTER_MS = 3600000, /* beyond the limit */
	WORDS_MAX = 2048,         /* of one run, in the log and the events */
	DETAIL_TEXT_MAX = 16384,
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

static struct str take_text(struct session *s, struct buf *b)
{
	struct str text = str_dup(session_arena(s), buf_str(b));

	buf_fini(b);
	return text;
}

enum rc account_clean_ask(struct session *s, const struct account *a, struct str actor, struct err *e)
{
	struct str detail = str_format(session_arena(s), "{\"accountId\":\"%.*s\",\"reason\":\"%.*s\"}", STR_ARG(a->id),
	                               STR_ARG(a->clean_reason));

	return account_emit(s, EVENT_CLEAN_REQUEST, a, actor, STR(""), detail, e);
}

/* The result, as the contract has it; `error` is the seed's. */
static enum rc tell_result(struct session *s, const char *type, const struct account *a, struct str error,
                           struct err *e)
{
	char            time[ISO_TIME_SIZE];
	struct event    event = { .type = str_from(type),
		                  .source = STR(SOURCE),
		                  .actor = STR(SOURCE),
		                  .subject = account_subject(s, a->id) };
	struct json_out o;
	struct buf      b;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "accountId", a->id);
	json_put_object(&o, "cleanupExecutionContext");
	json_put_str(&o, "stateMachineExecutionArn", a->clean_run);
	json_put_str(&o, "stateMachineExecutionStartTime", iso_time(a->clean_started_ms / 1000, time));
	json_close_object(&o);
	json_put_str(&o, "reason", a->clean_reason);
	if (error.n)
		json_put_str(&o, "error", error);
	json_close_object(&o);
	event.detail = take_text(s, &b);
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
	if (!json_get_text(o, "cleanup", &st.cleanup) || !json_get_number(o, "attempt", 1, &st.attempt) ||
	    !json_get_text(o, "run", &st.run) || !json_get_number(o, "since", 0, &st.since_ms))
		return (struct stage){ 0 };
	st.cleanup = str_dup(a, st.cleanup);
	st.run = str_dup(a, st.run);
	return st;
}

static enum rc arm(struct session *s, struct str id, const struct stage *st, int64_t wait_ms, struct err *e)
{
	struct timer    timer = { .name = str_format(session_arena(s), "cleanup/%.*s", STR_ARG(id)),
		                  .due_ms = session_now(s).ms + wait_ms,
		                  .type = STR(EVENT_CLEANUP_DUE),
		                  .subject = account_subject(s, id) };
	struct json_out o;
	struct buf      b;

	buf_init(&b, DETAIL_TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	if (st->cleanup.n) {
		json_put_str(&o, "cleanup", st->cleanup);
		json_put_int(&o, "attempt", st->attempt);
		json_put_str(&o, "run", st->run);
		json_put_int(&o, "since", st->since_ms);
	}
	json_close_object(&o);
	timer.detail = take_text(s, &b);
	return session_arm(s, &timer, e);
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
	char         id[KERNEL_ID_SIZE];
	struct stage first = { .attempt = 1 };
	bool         has_slot;
	enum rc      rc;

	if (a->status != ACCOUNT_CLEANUP || a->is_following || account_clean_is_running(a, session_now(s)))
		return RC_OK;
	if ((rc = account_slots_enter(s, a->id, o->at_once ? o->at_once : CLEAN_AT_ONCE, &has_slot, e)))
		return rc;
	if (!has_slot)
		return arm(s, a->id, &(struct stage){ 0 }, TURN_WAIT_MS, e);
	kernel_id(kernel_of(s), session_now(s).ms, id);
	a->clean_run = first.cleanup = str_dup(session_arena(s), str_from(id));
	a->clean_started_ms = session_now(s).ms;
	a->clean_successes = a->clean_failures = 0;
	a->clean_log = STR("");
	session_put(s, &account_type, a);
	return arm(s, a->id, &first, 0, e);
}

/* --- asking the cleaner: on a worker, without a transaction --- */

struct look {
	struct str   id;
	struct stage stage;
	bool         is_present;
};

static enum rc look(struct session *s, void *arg, struct err *e)
{
	struct look   *l = arg;
	struct account a;
	enum rc        rc = session_get(s, &account_type, l->id, &a, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(l->id));
	l->is_present = !rc && is_present(&a, &l->stage);
	return RC_OK;
}

static enum rc ask(struct call *c, const struct look *l, struct answer *ret, struct err *e)
{
	const struct account_clean_options *o = c->arg;
	const struct stage                 *st = &l->stage;
	struct str                          key;

	if (st->run.n)
		return o->cleaner->ops->check(o->cleaner, st->run, c->arena, &ret->run, e);
	key = str_format(c->arena, "%.*s/%.*s/%lld", STR_ARG(l->id), STR_ARG(st->cleanup), (long long)st->attempt);
	return o->cleaner->ops->start(o->cleaner, l->id, key, c->arena, &ret->run_id, e);
}

static enum rc call(struct call *c, struct err *e)
{
	const struct account_clean_options *o = c->arg;
	const struct event                 *event = &c->delivery->event;
	struct look                         l = { .id = id_of(event), .stage = read_stage(event, c->arena) };
	struct answer                      *answer = arena_alloc(c->arena, sizeof(*answer));
	struct err                          why = { 0 };
	enum rc                             rc;

	c->result = answer;
	if (!l.stage.cleanup.n)
		return RC_OK;
	if ((rc = store_read(o->store, look, &l, c->arena, e)) || !l.is_present)
		return rc;
	answer->was_asked = true;
	answer->rc = ask(c, &l, answer, &why);
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
	note(c, "succeeded", words);
	c->a->clean_successes++;
	if (c->a->clean_successes < c->policy->clean_successes)
		return try_again(c, c->policy->clean_rerun_wait_sec, e);
	return account_cleaned(c->s, c->rules, c->a, STR(SOURCE), e);
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

static enum rc note_started(struct cleanup *c, struct str run, struct err *e)
{
	c->stage.run = str_dup(session_arena(c->s), run);
	c->stage.since_ms = session_now(c->s).ms;
	return next(c, &c->stage, CLEAN_POLL_MS, e);
}

static bool is_for_later(enum rc rc)
{
	return rc == RC_UNAVAILABLE || rc == RC_TIMEOUT || rc == RC_LIMITED;
}

static enum rc judge(struct cleanup *c, const struct answer *answer, struct err *e)
{
	struct str words = utf8_line(session_arena(c->s), answer->words, WORDS_MAX);
	enum rc    rc;

	if (!answer->was_asked || is_for_later(answer->rc))
		return c->stage.run.n ? note_running(c, e) : next(c, &c->stage, CLEAN_POLL_MS, e);
	if (answer->rc)
		return note_failure(c, words, e);
	if (!c->stage.run.n)
		return note_started(c, answer->run_id, e);
	if (answer->run.report && (rc = account_report_note(c->s, c->a, answer->run.report, e)))
		return rc;
	switch (answer->run.state) {
	case CLOUD_RUNNING: return note_running(c, e);
	case CLOUD_SUCCEEDED: return note_success(c, words, e);
	case CLOUD_FAILED: return note_failure(c, words, e);
	case CLOUD_RUN_STATE_COUNT: break;
	}
	return err_set(e, RC_INTERNAL, "the cleaner's answer has a state that there is not");
}

static enum rc settle(struct session *s, const struct call *call_made, struct err *e)
{
	const struct account_clean_options *o = call_made->arg;
	const struct event                 *event = &call_made->delivery->event;
	struct account                      a;
	struct cleanup c = { .s = s, .policy = o->policy(o->policy_arg), .rules = o->rules, .a = &a };
	struct str     id = id_of(event);
	enum rc        rc = session_get(s, &account_type, id, &a, NULL);

	if (rc == RC_NOT_FOUND)
		return leave_slot(s, id, e);
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(id));
	c.stage = read_stage(event, session_arena(s));
	if (!c.stage.cleanup.n)
		return begin(s, o, &a, e);
	if (is_present(&a, &c.stage))
		return judge(&c, call_made->result, e);
	return account_clean_is_running(&a, session_now(s)) ? RC_OK : leave_slot(s, id, e);
}

enum rc account_cleaned(struct session *s, const struct hold_rules *rules, struct account *a, struct str actor,
                        struct err *e)
{
	enum rc rc = tell_result(s, "AccountCleanupSucceeded", a, STR(""), e);

	if (rc || (rc = leave_slot(s, a->id, e)))
		return rc;
	return hold_rest(s, rules, a, actor, e);
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

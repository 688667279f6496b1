/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - holds of accounts that another system owns.
 *
 * The other system cleans an account, moves it from CleanUp to Available, and lends it again. CloudTrail tells of the
 * move; we look at it, and move the account on to Quarantine until its holds are over.
 *
 *     event -> look() outside, without a transaction
 *           -> settle() decides, in one commit: the holds with their timers, the mark, the saga
 *
 * Always true:
 *   1. The holds, with their release timers, are stored before anything is moved: no account is in Quarantine by us
 *      without a time at which it leaves it.                                                                  [hold()]
 *   2. An event is decided once; one that is older than what was seen already changes nothing.             [see_own()]
 *   3. A look that fails is an error, and the event comes again; only a tag then counts as absent, and the account is
 *      held.                                                                                                  [look()]
 *   4. An account leaves Quarantine by its last open hold alone.                                          [end_hold()]
 *
 * Between the other system's move and ours the account can be lent; a guard cannot prevent that. We then see the lease,
 * leave the account alone and report it.
 *
 * An event that cannot be read is a dead letter at once; one that cannot be checked outside is tried for about an hour.
 *
 * Not here: the rules (domain/guard.c), what is done outside (guard_steps.c), what follows from it (guard_saga.c).
 */
#include "service/guard/guard.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/guard.h"
#include "domain/move_event.h"
#include "service/account/account_follow.h"
#include "service/guard/guard_private.h"
#include "service/hold/holds.h"

/* About an hour of tries for an event: an outage of the organisation loses none. */
enum { TRIES = 30, DEFER_MS = 600000, WHO_MAX = 254, AHEAD_MS = 3600000 };

struct guard *guard_new(const struct guard_options *o)
{
	struct guard *g = mem_new(struct guard);

	g->options = *o;
	g->ous = account_ous_new(o->cloud.organisation, o->sandbox_ou, o->store);
	return g;
}

void guard_free(struct guard *g)
{
	if (!g)
		return;
	account_ous_free(g->ous);
	free(g);
}

/* --- looking, outside --- */

/* What was seen of a move. */
struct sight {
	struct move_event    event;
	struct guard_facts   facts;
	struct table_account found;
	struct str           tag_value, tag_error;
	bool                 is_untagged; /* the tag was looked for, and is not there */
	struct str           corrected;   /* confirming: what the table said instead of Quarantine */
};

static bool knows(const struct guard_facts *f, struct str ou)
{
	return str_eq(ou, f->cleanup) || str_eq(ou, f->available) || str_eq(ou, f->quarantine);
}

/* Ids of OUs are remembered; an event about one that we do not know may mean that they have changed. */
static enum rc see_ous(struct guard *g, struct arena *a, struct guard_facts *f, struct err *e)
{
	for (int i = 0; i < 2; i++) {
		enum rc rc = account_ous_find(g->ous, STR("CleanUp"), a, &f->cleanup, e);

		if (rc || (rc = account_ous_find(g->ous, STR("Available"), a, &f->available, e)) ||
		    (rc = account_ous_find(g->ous, STR("Quarantine"), a, &f->quarantine, e)) ||
		    (knows(f, f->source) && knows(f, f->destination)))
			return rc;
		if (i == 0)
			account_ous_forget(g->ous);
	}
	return RC_OK;
}

/* A look that fails leaves the account without a tag: it is held, which does no harm. */
static void see_tag(struct guard *g, struct arena *a, struct sight *ret)
{
	struct organisation *o = g->options.cloud.organisation;
	struct cloud_tag    *tags;
	size_t               count = 0;
	struct err           e = { 0 };

	if (o->ops->get_tags(o, ret->event.account, a, &tags, &count, &e)) {
		ret->tag_error = str_dup(a, str_from(e.msg));
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (str_eq(tags[i].name, STR(HOLD_BYPASS_TAG))) {
			ret->facts.is_tagged = true;
			ret->tag_value = tags[i].value;
		}
	ret->is_untagged = !ret->facts.is_tagged;
}

/* An answer from outside that makes no sense may be due to a wrong setting: it is tried again. Only an event that makes
 * no sense is given up at once. */
static enum rc outside(enum rc rc, struct err *e)
{
	if (rc != RC_INVALID && rc != RC_CORRUPT)
		return rc;
	if (e)
		e->rc = RC_UNAVAILABLE;
	return RC_UNAVAILABLE;
}

static enum rc look_at_move(struct guard *g, const struct event *event, struct arena *a, struct sight *ret,
                            struct err *e)
{
	struct guard_facts *f = &ret->facts;
	struct move_problem problem;
	enum rc             rc = move_event_parse(event->detail, a, &ret->event, &problem);

	if (rc)
		return err_set(e, rc, "%s (%s): %s", problem.action, move_problem_names[problem.kind], problem.details);
	*f = (struct guard_facts){ .source = ret->event.source,
		                   .destination = ret->event.destination,
		                   .has_failed = ret->event.error_code.n > 0,
		                   .ejects = g->options.rules->ejects };
	if (f->has_failed)
		return RC_OK;
	if ((rc = outside(see_ous(g, a, f, e), e)))
		return err_wrap(e, rc, "move of account %.*s", STR_ARG(ret->event.account));
	if (guard_needs_table(f)) {
		rc = outside(guard_read_table(g, ret->event.account, a, &ret->found, &f->is_tracked, e), e);
		f->status = ret->found.status;
	}
	if (!rc && guard_needs_tag(f))
		see_tag(g, a, ret);
	return rc;
}

static enum rc read_member(const struct event *event, const char *name, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  text;

	if (json_parse(event->detail, &o, e) || !json_get_text(o, name, &text) || !text.n)
		return err_set(e, RC_CORRUPT, "the detail of a %.*s has no %s", STR_ARG(event->type), name);
	*ret = str_dup(a, text);
	return RC_OK;
}

struct held_look {
	struct str account;
	bool       is_held;
};

/* Only what our hold has brought there is ours to put right. */
static enum rc see_if_held(struct session *s, void *arg, struct err *e)
{
	struct held_look *l = arg;
	struct holds      open;
	enum rc           rc = hold_list_open(s, l->account, &open, e);

	l->is_held = false;
	for (size_t i = 0; !rc && i < open.count; i++)
		l->is_held = l->is_held || str_eq(open.items[i].placement, STR(PLACE_HELD));
	return rc;
}

static enum rc confirm(struct guard *g, const struct event *event, struct arena *a, struct sight *ret, struct err *e)
{
	struct held_look l = { 0 };
	enum rc          rc = read_member(event, "accountId", a, &l.account, e);

	if (rc || (rc = store_read(g->options.store, see_if_held, &l, a, e)) || !l.is_held)
		return rc;
	return outside(guard_correct_table(g, l.account, a, &ret->corrected, e), e);
}

static enum rc look(struct call *c, struct err *e)
{
	const struct event *event = &c->delivery->event;
	struct sight       *sight = arena_alloc(c->arena, sizeof(*sight));

	c->result = sight;
	if (str_eq(event->type, STR(EVENT_GUARD_RETRY)))
		return RC_OK;
	if (str_eq(event->type, STR(EVENT_GUARD_CONFIRM)))
		return confirm(c->arg, event, c->arena, sight, e);
	return look_at_move(c->arg, event, c->arena, sight, e);
}

/* --- deciding, in a transaction --- */

struct decision {
	struct session     *s;
	const struct guard *guard;
	const struct sight *sight;
	struct guard_facts  facts;
	enum guard_outcome  outcome;
	struct guard_mark   mark;
	struct holds        open;
	struct str          by, why; /* of its holds; empty: the guard, and the outcome's reason */
};

/* The facts that are in our own records. */
static enum rc see_own(struct decision *d, struct err *e)
{
	const struct move_event *event = &d->sight->event;
	enum rc                  rc = session_find_or_new(d->s, &guard_mark_type, event->account, &d->mark, e);

	if (rc || (rc = hold_list_open(d->s, event->account, &d->open, e)))
		return rc;
	d->facts = d->sight->facts;
	d->facts.has_open_hold = d->open.count > 0;
	d->facts.is_repeat = str_eq(d->mark.event_id, event->id);
	/* One from the future was told by a clock that was ahead: nothing is old because of it. */
	d->facts.is_old = event->time_ms && event->time_ms < d->mark.event_ms &&
	                  d->mark.event_ms <= session_now(d->s).ms + AHEAD_MS;
	if (d->sight->is_untagged) /* whoever took it away: the next one is another */
		d->mark.untag = STR("");
	if (d->mark.untag.n)
		d->facts.is_tagged = false;
	return RC_OK;
}

static void note_event(struct decision *d)
{
	const struct move_event *event = &d->sight->event;

	if (d->outcome == GUARD_FAILED_CALL || d->outcome == GUARD_REPEAT || d->outcome == GUARD_OLD)
		return;
	d->mark.event_id = event->id;
	if (event->time_ms > d->mark.event_ms || d->mark.event_ms > session_now(d->s).ms + AHEAD_MS)
		d->mark.event_ms = event->time_ms;
	d->mark.outcome = str_from(guard_outcome_actions[d->outcome]);
	d->mark.at_ms = session_now(d->s).ms;
	session_put(d->s, &guard_mark_type, &d->mark);
}

static enum rc tell_outcome(struct decision *d, struct str hold_id, struct str more, struct err *e)
{
	const struct move_event *event = &d->sight->event;
	enum guard_outcome       x = d->outcome;
	struct str               reason = more.n ? more : str_from(guard_outcome_reasons[x]);

	return guard_tell(d->s, guard_outcome_actions[x], event->account,
	                  JSON_MEMBERS(member_str("reason", reason), member_str("holdId", hold_id),
	                               member_str("sourceParentId", event->source),
	                               member_str("destinationParentId", event->destination),
	                               member_str("eventId", event->id), member_str("eventTime", event->time),
	                               member_str("movedBy", event->by), member_str("currentStatus", d->facts.status),
	                               member_if(x == GUARD_NOT_FROM_CLEANUP,
	                                         member_str("cleanUpOuId", d->facts.cleanup)),
	                               member_str("errorCode", event->error_code),
	                               member_if(x == GUARD_EJECT, member_word("mode", "eject")),
	                               member_if(x == GUARD_BYPASS, member_word("tag", HOLD_BYPASS_TAG))),
	                  e);
}

static struct hold new_hold(const struct decision *d)
{
	return (struct hold){ .account = d->sight->event.account,
		              .reason = HOLD_BILLING,
		              .mode = HOLD_GUARD,
		              .created_by = d->by.n ? d->by : STR(GUARD_ACTOR),
		              .note = d->why.n ? d->why : str_from(guard_outcome_reasons[d->outcome]),
		              .source_event = d->sight->event.id };
}

/* --- hold --- */

static enum rc open_by_rules(struct decision *d, struct str *ret_first, struct err *e)
{
	struct arena *a = session_arena(d->s);

	*ret_first = STR("");
	for (int reason = HOLD_BILLING; reason <= HOLD_QUOTA; reason++) {
		int64_t     hours = hold_hours(d->guard->options.rules, d->sight->found.name, (enum hold_reason)reason);
		struct hold h = new_hold(d);
		enum rc     rc;

		if (hours <= 0)
			continue;
		h.reason = (enum hold_reason)reason;
		h.due_ms = session_now(d->s).ms + hours * HOLD_HOUR_MS;
		h.placement = STR(PLACE_INTENDED);
		if ((rc = hold_make(d->s, &h, HOLD_OPEN, e)))
			return rc;
		rc = guard_tell(d->s, "SCHEDULER_CREATED", h.account,
		                JSON_MEMBERS(member_str("schedulerName", hold_schedule_name(&h, a)),
		                             member_time("scheduleTime", h.due_ms),
		                             member_str("quarantineDurationHours",
		                                        str_format(a, "%lld", (long long)hours)),
		                             member_word("holdReason", hold_reason_names[reason]),
		                             member_str("holdId", h.id)),
		                e);
		if (rc)
			return rc;
		if (!ret_first->n)
			*ret_first = h.id;
	}
	return RC_OK;
}

/* No cooldown is configured: an account that comes from its cleanup has none. One that was found in Quarantine stays
 * there until a person releases it: a comparison makes nothing free. */
static enum rc hold_without_rules(struct decision *d, struct str *ret_id, struct err *e)
{
	struct hold h = new_hold(d);
	enum rc     rc;

	if (d->by.n) {
		h.placement = STR(PLACE_INTENDED);
		rc = hold_make(d->s, &h, HOLD_OPEN, e);
		*ret_id = h.id;
		return rc;
	}
	h.note = STR("no cooldown is configured");
	rc = hold_make(d->s, &h, HOLD_EXEMPT, e);
	return rc ? rc : guard_tell(d->s, "QUARANTINE_SKIP", h.account, JSON_MEMBERS(member_str("reason", h.note)), e);
}

static enum rc hold(struct decision *d, struct err *e)
{
	struct guard_task task = { .account = d->sight->event.account };
	enum rc           rc = open_by_rules(d, &task.hold, e);

	if (!rc && !task.hold.n)
		rc = hold_without_rules(d, &task.hold, e);
	if (rc || !task.hold.n || (rc = guard_start(d->s, &d->mark, GUARD_HOLD_SAGA, &task, e)))
		return rc;
	return tell_outcome(d, task.hold, d->why, e);
}

/* Nobody knows since when it is there, so for the whole time from now on. */
enum rc guard_hold_found(struct session *s, const struct guard *g, struct str account, struct str name, struct str by,
                         struct str why, struct err *e)
{
	struct str      id = str_format(session_arena(s), "%.*s/%.*s/%lld", STR_ARG(by), STR_ARG(account),
	                                (long long)session_now(s).ms);
	struct sight    sight = { .event = { .account = account, .id = id }, .found = { .name = name } };
	struct decision d = { .s = s, .guard = g, .sight = &sight, .outcome = GUARD_HOLD, .by = by, .why = why };
	enum rc         rc = session_find_or_new(s, &guard_mark_type, account, &d.mark, e);

	return rc ? rc : hold(&d, e);
}

/* --- bypass, eject, lock --- */

/* "ann@example.com: a new account" says who and why; any other value is only why. */
static void read_tag(const struct decision *d, struct hold *h)
{
	struct str rest = d->sight->tag_value;
	struct str who = str_trim(str_cut(&rest, ':'));

	h->closed_by = STR("tag " HOLD_BYPASS_TAG);
	h->closed_why = str_trim(d->sight->tag_value);
	if (rest.n && who.n && who.n <= WHO_MAX && memchr(who.p, '@', who.n)) {
		h->closed_by = who;
		h->closed_why = str_trim(rest);
	}
	if (!h->closed_why.n)
		h->closed_why = STR("the tag has no value that says why");
}

static enum rc bypass(struct decision *d, struct err *e)
{
	struct hold       h = new_hold(d);
	struct guard_task task = { .account = h.account };
	enum rc           rc;

	read_tag(d, &h);
	if ((rc = hold_make(d->s, &h, HOLD_BYPASSED, e)))
		return rc;
	task.hold = h.id;
	d->mark.untag = h.id;
	session_put(d->s, &guard_mark_type, &d->mark);
	rc = guard_start_untag(d->s, &task, e);
	return rc ? rc : tell_outcome(d, h.id, h.closed_why, e);
}

static enum rc eject(struct decision *d, struct err *e)
{
	struct hold       h = new_hold(d);
	struct guard_task task = { .account = h.account };
	enum rc           rc;

	h.placement = STR(PLACE_EJECTING);
	if ((rc = hold_make(d->s, &h, HOLD_EJECTED, e)))
		return rc;
	task.hold = h.id;
	rc = guard_start(d->s, &d->mark, GUARD_EJECT_SAGA, &task, e);
	return rc ? rc : tell_outcome(d, h.id, STR(""), e);
}

/* Our other holds end in their time; this one keeps the account where the other system has put it. */
static enum rc lock(struct decision *d, struct err *e)
{
	struct hold h = new_hold(d);
	enum rc     rc;

	h.locks = 1;
	h.reason = str_eq(d->sight->event.source, d->facts.cleanup) ? HOLD_FAILED_CLEANUP : HOLD_DRIFT;
	h.placement = STR(PLACE_HELD);
	for (size_t i = 0; i < d->open.count; i++)
		if (d->open.items[i].locks)
			return tell_outcome(d, d->open.items[i].id, STR(""), e);
	rc = hold_make(d->s, &h, HOLD_OPEN, e);
	return rc ? rc : tell_outcome(d, h.id, STR(""), e);
}

/* --- settling --- */

static enum rc carry_out(struct decision *d, struct err *e)
{
	enum guard_outcome x = d->outcome;
	enum rc            rc = RC_OK;

	if (x == GUARD_HOLD || x == GUARD_BYPASS || x == GUARD_EJECT || x == GUARD_CLEANED_AGAIN)
		/* what was open before is about a cleanup that is no longer the last one */
		rc = hold_close_all(d->s, d->sight->event.account, x == GUARD_EJECT ? HOLD_EJECTED : HOLD_CLEANED_AGAIN,
		                    STR(GUARD_ACTOR), str_from(guard_outcome_reasons[GUARD_CLEANED_AGAIN]), e);
	if (rc)
		return rc;
	switch (x) {
	case GUARD_HOLD: return hold(d, e);
	case GUARD_BYPASS: return bypass(d, e);
	case GUARD_EJECT: return eject(d, e);
	case GUARD_LOCKED: return lock(d, e);
	default: return tell_outcome(d, STR(""), STR(""), e);
	}
}

static enum rc settle_move(struct session *s, const struct call *c, struct err *e)
{
	struct decision d = { .s = s, .guard = c->arg, .sight = c->result };
	enum rc         rc = see_own(&d, e);

	if (rc)
		return rc;
	d.outcome = guard_decide(&d.facts);
	note_event(&d);
	if (d.sight->tag_error.n)
		rc = guard_tell(s, "TAG_CHECK_FAILED", d.sight->event.account,
		                JSON_MEMBERS(member_word("tag", HOLD_BYPASS_TAG),
		                             member_str("error", d.sight->tag_error)),
		                e);
	return rc ? rc : carry_out(&d, e);
}

static enum rc settle_confirm(struct session *s, const struct call *c, struct err *e)
{
	const struct sight *sight = c->result;
	bool                is_leased = guard_is_leased(sight->corrected);
	struct str          account;
	enum rc             rc;

	if (!sight->corrected.n)
		return RC_OK;
	if ((rc = read_member(&c->delivery->event, "accountId", session_arena(s), &account, e)) ||
	    (rc = guard_arm_confirm(s, account, e)))
		return rc;
	return guard_tell(s, is_leased ? "QUARANTINE_FLAGGED" : "QUARANTINE_CORRECTED", account,
	                  JSON_MEMBERS(member_str("currentStatus", sight->corrected),
	                               member_word("expectedStatus", "Quarantine")),
	                  e);
}

static enum rc settle(struct session *s, const struct call *c, struct err *e)
{
	const struct event *event = &c->delivery->event;
	struct str          saga_id;
	enum rc             rc;

	if (str_eq(event->type, STR(EVENT_GUARD_CONFIRM)))
		return settle_confirm(s, c, e);
	if (!str_eq(event->type, STR(EVENT_GUARD_RETRY)))
		return settle_move(s, c, e);
	rc = read_member(event, "sagaId", session_arena(s), &saga_id, e);
	return rc ? rc : guard_retry(s, saga_id, e);
}

void guard_queues(struct guard *g, struct queue ret[GUARD_QUEUES])
{
	ret[0] = (struct queue){
		.name = GUARD_QUEUE, .call = look, .settle = settle, .arg = g, .tries = TRIES, .buries_nonsense = true
	};
	ret[1] = (struct queue){
		.name = GUARD_LOG_QUEUE, .handle = guard_write_line, .arg = g->options.metrics, .is_heard = true
	};
}

/* --- the end of a hold --- */

static enum rc begin_release(struct session *s, struct hold *h, struct guard_mark *mark, enum hold_state how,
                             struct str by, struct str why, struct err *e)
{
	struct arena     *a = session_arena(s);
	struct guard_task task = { h->account, h->id, str_from(hold_state_names[how]), by,
		                   utf8_line(a, why, HOLD_NOTE_MAX) };
	enum rc           rc;

	h->placement = STR(PLACE_RELEASING);
	session_put(s, &hold_type, h);
	rc = guard_start(s, mark, GUARD_RELEASE_SAGA, &task, e);
	return rc ? rc
	          : guard_tell(s, "UNQUARANTINE_START", h->account,
	                       JSON_MEMBERS(member_time("quarantinedAt", h->created_ms),
	                                    member_str("schedulerName", hold_schedule_name(h, a)),
	                                    member_str("holdId", h->id)),
	                       e);
}

static enum rc end_hold(struct session *s, struct hold *h, enum hold_state how, struct str by, struct str why,
                        struct err *e)
{
	bool              is_by_timer = how == HOLD_RELEASED, is_busy;
	struct guard_mark mark;
	struct holds      open;
	enum rc           rc = hold_list_open(s, h->account, &open, e);

	if (rc || (rc = session_find_or_new(s, &guard_mark_type, h->account, &mark, e)) ||
	    (rc = saga_is_under_way(s, mark.saga_id, &is_busy, e)))
		return rc;
	if (h->state != HOLD_OPEN || open.count > 1)
		return hold_end(s, h, how, by, why, e);
	if (str_eq(h->placement, STR(PLACE_RELEASING)))
		return is_by_timer ? RC_OK
		                   : err_set(e, RC_CONFLICT, "hold %.*s is being released already", STR_ARG(h->id));
	if (is_busy)
		return is_by_timer ? hold_arm(s, h, session_now(s).ms + DEFER_MS, e) /* it comes again */
		                   : err_set(e, RC_CONFLICT,
		                             "account %.*s is still on its way to Quarantine; try again in a minute",
		                             STR_ARG(h->account));
	return begin_release(s, h, &mark, how, by, why, e);
}

const struct hold_mode_ops guard_hold_mode = { .end = end_hold };

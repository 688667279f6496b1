/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - lanes: how a delivery comes, is tried, and goes.
 *
 * A lane holds what one queue has to deliver for one subject (and addressee). Only its head is ever tried, so order per subject needs
 * nothing else, and a head that keeps failing holds up nobody but its own lane, until it is dead. The lane's record is read by its key
 * in every transaction that changes it; the index by due time only says where to look.
 *
 * Always true:
 *   1. A delivery leaves its lane in the transaction that has its effect on the store, or that stores it as a dead letter.
 *                                                                                      [advance(), bury()]
 *   2. What was claimed is settled only while the claim stands: same owner, same fence, same event.    [is_ours()]
 *   3. A try is counted before a call is made, so that a message that ends the process is not tried for ever. [lane_claim()]
 */
#include "kernel/queue.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_ops.h"
#include "kernel/lane.h"
#include "kernel/work_ops.h"

enum {
	DEFAULT_TRIES = 3,
	DEFAULT_BACKOFF_MS = 1000,
	DEFAULT_BACKOFF_MAX_MS = 300000,
	DEFAULT_VISIBILITY_MS = 120000,
};

int64_t queue_tries(const struct queue *q)
{
	return q->tries ? q->tries : DEFAULT_TRIES;
}

int64_t queue_visibility_ms(const struct queue *q)
{
	return q->visibility_ms ? q->visibility_ms : DEFAULT_VISIBILITY_MS;
}

/* --- in --- */

/* "queue#subject", or "queue#target|subject". Made for every event and queue, so not with a format. */
static struct str lane_key(struct session *s, const struct queue *queue, struct str target, struct str subject)
{
	size_t name = strlen(queue->name), size = name + 1 + (target.n ? target.n + 1 : 0) + subject.n;
	char  *key = arena_alloc(session_arena(s), size + 1), *at = key;

	memcpy(at, queue->name, name);
	at += name;
	*at++ = '#';
	if (target.n) {
		memcpy(at, target.p, target.n);
		at += target.n;
		*at++ = '|';
	}
	memcpy(at, subject.p, subject.n);
	return str_of(key, size);
}

static struct str waiting_key(struct session *s, const struct lane *lane, int64_t number)
{
	return str_format(session_arena(s), "%.*s#%012lld", STR_ARG(lane->key), (long long)number);
}

/* One that is not from the log, because it is replayed, takes its envelope along. */
static struct str envelope_of(struct session *s, const struct event *event)
{
	return event->version ? STR("") : event_to_json(kernel_of(s), event, session_arena(s));
}

static void open_lane(struct session *s, struct lane *lane, const struct event *event)
{
	lane->event_id = event->id;
	lane->event = envelope_of(s, event);
	lane->head = lane->tail = 1;
	lane->since_ms = lane->due_ms = session_now(s).ms;
	/* Another number than that of an earlier lane of this name: whoever claimed that one must not settle this one. */
	lane->fence = (int64_t)(kernel_random(kernel_of(s)) >> 2);
}

static void join_lane(struct session *s, struct lane *lane, const struct event *event)
{
	struct waiting behind = { .key = waiting_key(s, lane, ++lane->tail),
		                  .event_id = event->id,
		                  .event = envelope_of(s, event),
		                  .at_ms = session_now(s).ms };

	session_add(s, &waiting_type, &behind);
}

/* A handler has said no, and what it wrote is kept: what must never happen. */
static enum rc settle_anyhow(struct session *s, void *arg, struct err *e)
{
	enum rc rc = work_settle(s, arg, e);

	return HAS_DEFECT(KEEP_REFUSED) ? RC_OK : rc;
}

static void count_delivery(void *arg)
{
	work_count(arg);
}

/* A lane that this transaction has opened and that needs no call may as well be emptied by it. Else, and when that fails, it is found as all
 * others are. */
static bool deliver_at_once(struct session *s, const struct queue *queue, struct str key)
{
	struct kernel *k = kernel_of(s);
	struct follow *f;
	struct work   *w;

	if (!kernel_options(k)->is_eager || !queue->handle || queue->is_heard || HAS_DEFECT(REMOVE_BEFORE_EFFECT))
		return false;
	w = arena_alloc(session_arena(s), sizeof(*w));
	w->kernel = k;
	w->kind = WORK_LANE;
	w->queue = queue;
	w->key = key;
	f = arena_alloc(session_arena(s), sizeof(*f));
	*f = (struct follow){ .run = HAS_DEFECT(KEEP_REFUSED) ? settle_anyhow : work_settle,
		              .done = count_delivery,
		              .arg = w };
	return session_follow(s, f);
}

enum rc queue_put(struct session *s, const struct queue *queue, const struct event *event, struct str target,
                  struct err *e)
{
	struct lane lane = { .key = lane_key(s, queue, target, event->subject) };
	struct str  key = lane.key;
	enum rc     rc = session_get(s, &lane_type, key, &lane, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lane %.*s cannot be read", STR_ARG(key));
	if (rc) {
		lane = (struct lane){
			.key = key, .queue = str_from(queue->name), .subject = event->subject, .target = target
		};
		open_lane(s, &lane, event);
		if (!event->version || !deliver_at_once(s, queue, key)) /* a replayed one is first seen to be back */
			session_poke(s, NEWS_TO_DO);
	} else {
		join_lane(s, &lane, event);
	}
	session_put(s, &lane_type, &lane);
	return RC_OK;
}

/* --- out --- */

/* The head is done with: the next one moves up, or the lane ends. Its handler may have put something behind it meanwhile. */
static enum rc advance(struct session *s, struct lane *lane, bool *ret_has_more, struct err *e)
{
	struct lane    now;
	struct waiting next;
	enum rc        rc = session_get(s, &lane_type, lane->key, &now, NULL);

	if (rc)
		return err_set(e, rc, "lane %.*s cannot be read", STR_ARG(lane->key));
	if (now.tail > lane->tail)
		lane->tail = now.tail;
	*ret_has_more = lane->head < lane->tail;
	if (!*ret_has_more) {
		session_delete(s, &lane_type, lane->key);
		return RC_OK;
	}
	rc = session_get(s, &waiting_type, waiting_key(s, lane, ++lane->head), &next, NULL);
	if (rc == RC_NOT_FOUND)
		return err_set(e, RC_CORRUPT, "lane %.*s: delivery %lld is missing", STR_ARG(lane->key),
		               (long long)lane->head);
	if (rc)
		return err_set(e, rc, "lane %.*s cannot be read", STR_ARG(lane->key));
	session_delete(s, &waiting_type, next.key);
	lane->event_id = next.event_id;
	lane->event = next.event;
	lane->since_ms = lane->due_ms = session_now(s).ms;
	lane->tries = 0;
	lane->owner = lane->last_error = STR("");
	session_put(s, &lane_type, lane);
	session_poke(s, NEWS_TO_DO);
	return RC_OK;
}

static struct str shortened(struct str text)
{
	return text.n > ERROR_MAX ? str_of(text.p, ERROR_MAX) : text;
}

static enum rc tell_of_death(struct session *s, const struct dead *dead, struct err *e)
{
	struct event event = {
		.type = STR(EVENT_DEAD_LETTERED),
		.subject = dead->subject,
		.actor = str_format(session_arena(s), "queue/%.*s", STR_ARG(dead->queue)),
		.detail = dead_to_detail(dead, STR(""), session_arena(s)),
	};

	return session_emit(s, &event, e);
}

/* Give the head up: it becomes a dead letter with all that is known about it. */
static enum rc bury(struct session *s, struct lane *lane, const struct event *event, struct str why, bool *ret_has_more,
                    struct err *e)
{
	char        id[KERNEL_ID_SIZE];
	struct dead dead = { .queue = lane->queue,
		             .subject = lane->subject,
		             .target = lane->target,
		             .event_id = lane->event_id,
		             .tries = lane->tries,
		             .error = str_dup(session_arena(s), shortened(why)),
		             .since_ms = lane->since_ms,
		             .died_ms = session_now(s).ms };
	enum rc     rc;

	if (!HAS_DEFECT(DROP_AFTER_TRIES)) {
		kernel_id(kernel_of(s), session_now(s).ms, id);
		dead.id = str_dup(session_arena(s), str_from(id));
		if (event)
			dead.event = event_to_json(kernel_of(s), event, session_arena(s));
		session_add(s, &dead_type, &dead);
		if ((rc = tell_of_death(s, &dead, e)))
			return rc;
	}
	return advance(s, lane, ret_has_more, e);
}

/* The head failed and steps behind the others: what must never happen. */
static void step_back(struct session *s, struct lane *lane)
{
	struct event again = { .id = lane->event_id, .version = 1 };

	join_lane(s, lane, &again);
}

static int64_t draw_backoff(struct work *w, const struct lane *lane)
{
	const struct queue *q = w->queue;

	return kernel_backoff(w->kernel, q->backoff_ms ? q->backoff_ms : DEFAULT_BACKOFF_MS,
	                      q->backoff_max_ms ? q->backoff_max_ms : DEFAULT_BACKOFF_MAX_MS, lane->tries - 1);
}

static bool is_hopeless(const struct work *w, const struct lane *lane)
{
	bool is_nonsense = w->failure.rc == RC_INVALID || w->failure.rc == RC_CORRUPT;

	return lane->tries >= queue_tries(w->queue) || (w->queue->buries_nonsense && is_nonsense);
}

/* A try has failed: later again, or never. */
static enum rc note_failure(struct session *s, struct work *w, struct lane *lane, struct err *e)
{
	struct str why = str_dup(session_arena(s), str_from(w->failure.msg));

	w->outcome = is_hopeless(w, lane) ? "dead" : "failed";
	if (is_hopeless(w, lane))
		return bury(s, lane, &w->delivery.event, why, &w->has_more, e);
	if (HAS_DEFECT(SKIP_LANE_ORDER) && lane->head < lane->tail) {
		step_back(s, lane);
		return advance(s, lane, &w->has_more, e);
	}
	lane->owner = STR("");
	lane->last_error = shortened(why);
	lane->due_ms = session_now(s).ms + kernel_span_ms(w->kernel, draw_backoff(w, lane));
	session_put(s, &lane_type, lane);
	session_poke(s, NEWS_TO_DO); /* whoever sleeps until something is due has something new to consider */
	return RC_OK;
}

/* --- stages --- */

enum rc lane_find(struct session *s, struct work_finder *f, struct err *e)
{
	const struct kernel_options *o = kernel_options(f->kernel);

	for (size_t i = 0; i < o->queue_count; i++) {
		struct work  w = { .kernel = f->kernel,
			           .kind = WORK_LANE,
			           .queue = &o->queues[i],
			           .needs_call = o->queues[i].call != NULL };
		struct query q = { .type = &lane_type,
			           .index = LANE_DUE,
			           .hash = value_text(str_from(o->queues[i].name)) };
		enum rc      rc = work_query_due(s, f, &q, LANE_F_DUE, &w, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

/* The lane as it is now; is_lost when there is nothing to do with it at this moment. */
static enum rc load_due(struct session *s, struct work *w, struct lane *ret, struct err *e)
{
	enum rc rc = session_get(s, &lane_type, w->key, ret, NULL);

	w->is_lost = rc == RC_NOT_FOUND || (!rc && ret->due_ms > session_now(s).ms);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lane %.*s cannot be read", STR_ARG(w->key));
	return RC_OK;
}

/* What the handler is given. *ret_is_gone: the event is not in the log. */
static enum rc load_delivery(struct session *s, struct work *w, const struct lane *lane, bool *ret_is_gone,
                             struct err *e)
{
	enum rc rc = session_get(s, &event_type, lane->event_id, &w->delivery.event, NULL);

	if (rc == RC_NOT_FOUND && lane->event.n)
		rc = event_from_json(lane->event, session_arena(s), &w->delivery.event, NULL);
	*ret_is_gone = rc == RC_NOT_FOUND;
	w->delivery.queue = w->queue;
	w->delivery.target = lane->target;
	w->delivery.tries = lane->tries;
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "event %.*s cannot be read", STR_ARG(lane->event_id));
	return RC_OK;
}

/* By the kernel's clock. */
static int64_t visibility_of(const struct work *w)
{
	return kernel_span_ms(w->kernel, queue_visibility_ms(w->queue));
}

static bool go_on(struct call *c)
{
	struct work *w = CONTAINER_OF(c, struct work, call);
	int64_t      now_ms = clock_now(c->clock).ms;

	if (w->is_lost || (w->may_go_on && !w->may_go_on(w->may_go_on_arg)))
		return false;
	if (now_ms < w->claimed_until_ms - visibility_of(w) / 2)
		return true;
	/* A store that cannot be reached is no reason to stop: the claim stands until it runs out. */
	if (work_keep(w, NULL))
		return now_ms < w->claimed_until_ms;
	return !w->is_lost;
}

enum rc lane_claim(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone;
	enum rc     rc = load_due(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	if ((rc = load_delivery(s, w, &lane, &is_gone, e)))
		return rc;
	if (is_gone || lane.tries >= queue_tries(w->queue)) {
		w->is_lost = true;
		w->outcome = "dead";
		return bury(s, &lane, is_gone ? NULL : &w->delivery.event,
		            is_gone ? STR("the event is no longer in the log")
		                    : STR("the process ended during the last try"),
		            &w->has_more, e);
	}
	w->delivery.tries = ++lane.tries;
	w->fence = ++lane.fence;
	lane.owner = kernel_options(w->kernel)->node;
	w->claimed_until_ms = lane.due_ms = session_now(s).ms + visibility_of(w);
	w->call = (struct call){ .delivery = &w->delivery,
		                 .arena = &w->arena,
		                 .clock = kernel_options(w->kernel)->clock,
		                 .arg = w->queue->arg,
		                 .go_on = go_on };
	session_put(s, &lane_type, &lane);
	w->is_claimed = true;
	if (HAS_DEFECT(REMOVE_BEFORE_EFFECT))
		return advance(s, &lane, &w->has_more, e);
	return RC_OK;
}

void lane_perform(struct work *w)
{
	enum rc rc;

	err_clear(&w->failure);
	rc = w->queue->call(&w->call, &w->failure);
	w->has_failed = rc != RC_OK;
	if (rc)
		rc_ignore(err_set(&w->failure, rc, "%s", rc_text(rc))); /* for one that fails without a word */
}

static bool is_ours(const struct work *w, const struct lane *lane)
{
	return str_eq(lane->owner, kernel_options(w->kernel)->node) && lane->fence == w->fence &&
	       str_eq(lane->event_id, w->delivery.event.id);
}

/* RC_OK and is_lost when the claim no longer stands. */
static enum rc load_claimed(struct session *s, struct work *w, struct lane *ret, struct err *e)
{
	enum rc rc = session_get(s, &lane_type, w->key, ret, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "lane %.*s cannot be read", STR_ARG(w->key));
	w->is_lost = rc == RC_NOT_FOUND || (!is_ours(w, ret) && !HAS_DEFECT(IGNORE_FENCE));
	return RC_OK;
}

/* A handler has said no; its words are noted in e. */
static enum rc refuse(struct work *w, enum rc rc, const struct err *e)
{
	w->is_refused = true;
	w->failure = *e;
	if (!w->failure.rc)
		rc_ignore(err_set(&w->failure, rc, "%s", rc_text(rc))); /* noted there */
	return rc;
}

static enum rc settle_call(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	enum rc     rc = load_claimed(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	if (w->has_failed)
		return note_failure(s, w, &lane, e);
	if (w->queue->settle && (rc = w->queue->settle(s, &w->call, e)))
		return refuse(w, rc, e);
	w->outcome = "delivered";
	return advance(s, &lane, &w->has_more, e);
}

static enum rc handle(struct session *s, struct work *w, struct err *e)
{
	enum rc rc = w->queue->handle(s, &w->delivery, w->queue->arg, e);

	return rc ? refuse(w, rc, e) : RC_OK;
}

/* Of a queue without calls: everything in one transaction. */
static enum rc settle_alone(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone;
	enum rc     rc = load_due(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	if ((rc = load_delivery(s, w, &lane, &is_gone, e)))
		return rc;
	if (is_gone) {
		w->outcome = "dead";
		return bury(s, &lane, NULL, STR("the event is no longer in the log"), &w->has_more, e);
	}
	w->delivery.tries = ++lane.tries;
	if ((rc = handle(s, w, e)))
		return rc;
	w->outcome = "delivered";
	return advance(s, &lane, &w->has_more, e);
}

/* The effect in a second transaction, after the removal: what must never happen. */
static enum rc settle_torn(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone, has_next;
	enum rc     rc;

	if (w->is_claimed)
		return handle(s, w, e);
	rc = load_due(s, w, &lane, e);
	if (rc || w->is_lost)
		return rc;
	if ((rc = load_delivery(s, w, &lane, &is_gone, e)))
		return rc;
	w->is_claimed = w->has_more = true;
	return advance(s, &lane, &has_next, e);
}

enum rc lane_settle(struct session *s, struct work *w, struct err *e)
{
	if (HAS_DEFECT(REMOVE_BEFORE_EFFECT) && !w->needs_call)
		return settle_torn(s, w, e);
	return w->needs_call ? settle_call(s, w, e) : settle_alone(s, w, e);
}

enum rc lane_refuse(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	enum rc     rc = w->needs_call ? load_claimed(s, w, &lane, e) : load_due(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	w->is_lost = !str_eq(lane.event_id, w->delivery.event.id); /* somebody else was luckier */
	if (w->is_lost)
		return RC_OK;
	if (!w->needs_call)
		lane.tries++;
	return note_failure(s, w, &lane, e);
}

enum rc lane_extend(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	enum rc     rc = load_claimed(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	w->claimed_until_ms = lane.due_ms = session_now(s).ms + visibility_of(w);
	session_put(s, &lane_type, &lane);
	return RC_OK;
}

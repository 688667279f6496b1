/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - lanes: how a delivery comes, is tried, and goes.
 *
 * A lane holds what one queue has to deliver for one subject (and addressee). Only its head is ever tried, so order per
 * subject needs nothing else, and a head that keeps failing holds up nobody but its own lane, until it is dead. The
 * lane's record is read by its key in every transaction that changes it; the index by due time only says where to look.
 *
 * Always true:
 *   1. A delivery leaves its lane in the transaction that has its effect on the store, or that stores it as a dead
 *      letter. [advance(), bury()]
 *   2. What was claimed is settled only while the claim stands: same owner, same fence, same event.    [load_claimed()]
 *   3. A try is counted before a call is made, so that a message that ends the process is not tried for ever.
 *      [lane_claim()]
 */
#include "kernel/queue.h"

#include "base/arena.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/work_private.h"

enum {
	DEFAULT_TRIES = 3,
	DEFAULT_BACKOFF_MS = 1000,
	DEFAULT_BACKOFF_MAX_MS = 300000,
	DEFAULT_VISIBILITY_MS = 120000,
	REARM_MARGIN_MS = 600000, /* clocks of nodes may differ */
	REARM_MAX = 50,
	TARGETS_MAX = 128,    /* addressees of a queue in one look */
	TARGET_LOOKS_MAX = 8, /* pages of one of them */
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

static void join_lane(struct session *s, struct lane *lane, const struct event *event)
{
	struct waiting behind = { .key = waiting_key(s, lane, ++lane->tail),
		                  .event_id = event->id,
		                  .event = envelope_of(s, event),
		                  .at_ms = session_now(s).ms };

	session_add(s, &waiting_type, &behind);
}

/* A defect: the handler has refused, and what it wrote is kept. */
static enum rc settle_anyhow(struct session *s, void *arg, struct err *e)
{
	enum rc rc = work_settle(s, arg, e);

	return HAS_DEFECT(KEEP_REFUSED) ? RC_OK : rc;
}

/* A lane that this transaction has opened and that needs no call can be emptied by it. Otherwise, and when that fails,
 * it is found like any other. */
static bool deliver_at_once(struct session *s, const struct queue *queue, struct str key)
{
	struct kernel *k = kernel_of(s);
	struct follow *f;
	struct work   *w;

	if (!kernel_options(k)->is_eager || !queue->handle || queue->is_heard || HAS_DEFECT(REMOVE_BEFORE_EFFECT))
		return false;
	w = arena_alloc(session_arena(s), sizeof(*w));
	*w = (struct work){ .kernel = k, .kind = WORK_LANE, .queue = queue, .key = key };
	f = arena_alloc(session_arena(s), sizeof(*f));
	*f = (struct follow){ HAS_DEFECT(KEEP_REFUSED) ? settle_anyhow : work_settle, .done = work_count, .arg = w };
	return session_follow(s, f);
}

enum rc queue_put(struct session *s, const struct queue *queue, const struct event *event, struct str target,
                  struct err *e)
{
	struct lane lane = { .key = lane_key(s, queue, target, event->subject) };
	struct str  key = lane.key;
	bool        is_there;
	enum rc     rc = session_find(s, &lane_type, key, &lane, &is_there, e);

	if (rc)
		return rc;
	if (!is_there) {
		/* A new fence: a claim on an earlier lane of this name must not settle this one. */
		lane = (struct lane){ .key = key,
			              .queue = str_from(queue->name),
			              .subject = event->subject,
			              .target = target,
			              .event_id = event->id,
			              .event = envelope_of(s, event),
			              .head = 1,
			              .tail = 1,
			              .since_ms = session_now(s).ms,
			              .due_ms = session_now(s).ms,
			              .fence = (int64_t)(kernel_random(kernel_of(s)) >> 2) };
		if (!event->version ||
		    !deliver_at_once(s, queue, key)) /* a replayed one must be seen in its lane first */
			session_poke(s, NEWS_TO_DO);
	} else {
		join_lane(s, &lane, event);
	}
	session_put(s, &lane_type, &lane);
	return RC_OK;
}

const struct queue *queue_for(const struct kernel *k, const struct event *event, const char *usual, const char *alarms)
{
	bool                is_alarm = str_starts_with(event->type, STR("Alarm"));
	const struct queue *first = is_alarm ? kernel_queue(k, str_from(alarms)) : NULL;

	return first ? first : kernel_queue(k, str_from(usual));
}

/* --- out --- */

/* The head is done: the next one moves up, or the lane ends. Its handler may have queued more meanwhile. */
static enum rc advance(struct session *s, struct lane *lane, bool *ret_has_more, struct err *e)
{
	struct lane    now;
	struct waiting next;
	bool           is_there;
	enum rc        rc = session_get(s, &lane_type, lane->key, &now, e);

	if (rc)
		return rc;
	if (now.tail > lane->tail)
		lane->tail = now.tail;
	*ret_has_more = lane->head < lane->tail;
	if (!*ret_has_more) {
		session_delete(s, &lane_type, lane->key);
		return RC_OK;
	}
	if ((rc = session_find(s, &waiting_type, waiting_key(s, lane, ++lane->head), &next, &is_there, e)))
		return rc;
	if (!is_there)
		return err_set(e, RC_CORRUPT, "lane %.*s: delivery %lld is missing", STR_ARG(lane->key),
		               (long long)lane->head);
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

/* Give the head up: it becomes a dead letter with all that is known about it. */
static enum rc bury(struct session *s, struct lane *lane, const struct event *event, struct str why, bool *ret_has_more,
                    struct err *e)
{
	struct arena *a = session_arena(s);
	struct dead   dead = { .queue = lane->queue,
		               .subject = lane->subject,
		               .target = lane->target,
		               .event_id = lane->event_id,
		               .tries = lane->tries,
		               .error = why,
		               .since_ms = lane->since_ms,
		               .died_ms = session_now(s).ms };
	struct event  death = { .type = STR(EVENT_DEAD_LETTERED), .subject = dead.subject };
	enum rc       rc;

	if (!HAS_DEFECT(DROP_AFTER_TRIES)) {
		dead.id = kernel_new_id(s, STR(""));
		if (event)
			dead.event = event_to_json(kernel_of(s), event, a);
		session_add(s, &dead_type, &dead);
		death.actor = str_format(a, "queue/%.*s", STR_ARG(dead.queue));
		death.detail = dead_to_detail(&dead, STR(""), a);
		if ((rc = session_emit(s, &death, e)))
			return rc;
	}
	return advance(s, lane, ret_has_more, e);
}

static void put_off(struct session *s, struct work *w, struct lane *lane, struct str why, int64_t wait_ms)
{
	lane->owner = STR("");
	lane->last_error = why;
	lane->due_ms = session_now(s).ms + kernel_span_ms(w->kernel, wait_ms);
	session_put(s, &lane_type, lane);
	session_poke(s, NEWS_TO_DO); /* it may be due before what the finder sleeps for */
}

/* A try has failed: later again, or never. */
static enum rc note_failure(struct session *s, struct work *w, struct lane *lane, struct err *e)
{
	const struct queue *q = w->queue;
	struct str          why = str_dup(session_arena(s), str_from(w->failure.msg));
	bool                is_nonsense = w->failure.rc == RC_INVALID || w->failure.rc == RC_CORRUPT;
	bool                is_hopeless = lane->tries >= queue_tries(q) || (q->buries_nonsense && is_nonsense);
	int64_t             wait_ms;

	w->outcome = is_hopeless ? "dead" : "failed";
	if (is_hopeless)
		return bury(s, lane, &w->delivery.event, why, &w->has_more, e);
	if (HAS_DEFECT(SKIP_LANE_ORDER) && lane->head < lane->tail) {
		/* A defect: the head goes behind the others. */
		join_lane(s, lane, &(struct event){ .id = lane->event_id, .version = 1 });
		return advance(s, lane, &w->has_more, e);
	}
	wait_ms = kernel_backoff(w->kernel, q->backoff_ms ? q->backoff_ms : DEFAULT_BACKOFF_MS,
	                         q->backoff_max_ms ? q->backoff_max_ms : DEFAULT_BACKOFF_MAX_MS, lane->tries - 1);
	put_off(s, w, lane, why, wait_ms);
	return RC_OK;
}

/* --- finding --- */

static bool skips_any_of(const struct work_finder *f, const struct queue *queue)
{
	for (size_t i = 0; i < f->skips.count; i++) {
		struct str prefix = f->skips.prefixes[i];

		if (str_eq(str_cut(&prefix, '#'), str_from(queue->name)))
			return true;
	}
	return false;
}

/* What is due of one addressee: lanes with this prefix, in the order of their keys. */
static enum rc find_of_target(struct session *s, struct work_finder *f, const struct work *form, struct str prefix,
                              struct err *e)
{
	struct records all = { { .type = &lane_type, .index = QUERY_KEYS, .sort_prefix = prefix, .limit = f->limit },
		               .pages_max = TARGET_LOOKS_MAX };
	size_t         most = f->count + f->limit;
	const struct lane *lane;
	enum rc            rc = RC_OK;

	while (f->count < most && (lane = session_next(s, &all, &rc, e))) {
		struct work w = *form;

		w.key = lane->key;
		w.due_ms = lane->due_ms;
		if (lane->due_ms <= session_now(s).ms + f->lead_ms)
			work_found(f, &w);
	}
	return rc;
}

/* Addressee by addressee, by the lanes' keys. One jump passes all lanes of one: '|' + 1 is '}', '#' + 1 is '$'. */
static enum rc find_by_target(struct session *s, struct work_finder *f, const struct work *form, struct err *e)
{
	struct arena *a = session_arena(s);
	struct query  q = { .type = &lane_type,
		            .index = QUERY_KEYS,
		            .sort_from = str_format(a, "%s#", form->queue->name),
		            .sort_to = str_format(a, "%s$", form->queue->name),
		            .limit = 1 };

	for (int i = 0; i < TARGETS_MAX; i++) {
		struct page page;
		struct str  key, prefix;
		enum rc     rc = session_query(s, &q, &page, e);
		const char *end;

		if (rc || !page.count)
			return rc;
		key = ((struct lane *)page_record(&page, &lane_type, 0))->key;
		end = memchr(key.p, '|', key.n);
		if (!end)
			return RC_OK; /* a queue without addressees */
		prefix = str_of(key.p, (size_t)(end - key.p) + 1);
		if (!str_is_among(prefix, f->skips.prefixes, f->skips.count) &&
		    (rc = find_of_target(s, f, form, prefix, e)))
			return rc;
		q.sort_from = str_format(a, "%.*s}", (int)prefix.n - 1, prefix.p);
	}
	return RC_OK;
}

static enum rc lane_find(struct session *s, struct work_finder *f, struct err *e)
{
	const struct kernel_options *o = kernel_options(f->kernel);

	for (size_t i = 0; i < o->queue_count; i++) {
		struct work  w = { .kernel = f->kernel,
			           .kind = WORK_LANE,
			           .queue = &o->queues[i],
			           .needs_call = o->queues[i].call != NULL };
		struct query q = query_of(&lane_type, LANE_DUE, value_text(str_from(o->queues[i].name)), 1);
		size_t       before = f->count;
		enum rc      rc = work_query_due(s, f, &q, &w, e);

		if (!rc && f->count - before >= f->limit && skips_any_of(f, w.queue)) {
			f->count = before;
			rc = find_by_target(s, f, &w, e);
		}
		if (rc)
			return rc;
	}
	return RC_OK;
}

/* --- after a clock that was wrong --- */

static int64_t longest_wait_ms(const struct kernel *k, const struct queue *q)
{
	int64_t backoff_ms = q->backoff_max_ms ? q->backoff_max_ms : DEFAULT_BACKOFF_MAX_MS;

	if (q->backoff_ms > backoff_ms)
		backoff_ms = q->backoff_ms;
	if (q->call && CALL_WAIT_MAX_MS > backoff_ms)
		backoff_ms = CALL_WAIT_MAX_MS;
	return kernel_span_ms(k, REARM_MARGIN_MS +
	                                 (queue_visibility_ms(q) > backoff_ms ? queue_visibility_ms(q) : backoff_ms));
}

enum rc queue_rearm(struct session *s, void *arg, struct err *e)
{
	const struct kernel         *k = arg;
	const struct kernel_options *o = kernel_options(k);
	size_t                       put = 0;

	for (size_t i = 0; i < o->queue_count && put < REARM_MAX; i++) {
		struct value name = value_text(str_from(o->queues[i].name));
		struct query q = query_of(&lane_type, LANE_DUE, name, REARM_MAX - put);
		int64_t      latest_ms = session_now(s).ms + longest_wait_ms(k, &o->queues[i]);
		struct page  page;
		enum rc      rc;

		q.is_descending = true;
		rc = session_query(s, &q, &page, e);
		for (size_t j = 0; !rc && j < page.count; j++) {
			const struct lane *seen = page_record(&page, &lane_type, j);
			struct lane        lane;
			bool               is_there;

			if (seen->due_ms <= latest_ms)
				break;
			rc = session_find(s, &lane_type, seen->key, &lane, &is_there, e);
			if (rc || !is_there || lane.due_ms <= latest_ms) /* an index that lags */
				continue;
			lane.due_ms = session_now(s).ms;
			session_put(s, &lane_type, &lane);
			session_poke(s, NEWS_TO_DO);
			put++;
		}
		if (rc)
			return err_set(e, rc, "queue %s cannot be read", o->queues[i].name);
	}
	return RC_OK;
}

/* --- stages --- */

/* The lane as it is now; is_lost when there is nothing to do with it at this moment. */
static enum rc load_due(struct session *s, struct work *w, struct lane *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &lane_type, w->key, ret, &is_there, e);

	w->is_lost = !is_there || ret->due_ms > session_now(s).ms;
	return rc;
}

/* The same, and what the handler is given. *ret_is_gone: the event is not in the log. */
static enum rc load_delivery(struct session *s, struct work *w, struct lane *lane, bool *ret_is_gone, struct err *e)
{
	bool    is_there;
	enum rc rc = load_due(s, w, lane, e);

	if (rc || w->is_lost)
		return rc;
	rc = session_find(s, &event_type, lane->event_id, &w->delivery.event, &is_there, e);
	*ret_is_gone = !rc && !is_there && !lane->event.n;
	if (!rc && !is_there && lane->event.n)
		rc = event_from_json(lane->event, session_arena(s), &w->delivery.event, e);
	w->delivery.queue = w->queue;
	w->delivery.target = lane->target;
	w->delivery.tries = lane->tries;
	return rc;
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

static enum rc lane_claim(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone;
	enum rc     rc = load_delivery(s, w, &lane, &is_gone, e);

	if (rc || w->is_lost)
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

static void lane_perform(struct work *w)
{
	enum rc rc;

	err_clear(&w->failure);
	rc = w->queue->call(&w->call, &w->failure);
	w->has_failed = rc != RC_OK;
	if (rc)
		rc_ignore(err_set(&w->failure, rc, "%s", rc_text(rc))); /* for one that fails without a message */
}

/* RC_OK and is_lost when the claim no longer stands. */
static enum rc load_claimed(struct session *s, struct work *w, struct lane *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &lane_type, w->key, ret, &is_there, e);
	bool    is_ours = is_there && str_eq(ret->owner, kernel_options(w->kernel)->node) && ret->fence == w->fence &&
	               str_eq(ret->event_id, w->delivery.event.id);

	w->is_lost = !is_there || (!is_ours && !HAS_DEFECT(IGNORE_FENCE));
	return rc;
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
	session_carry(s, w->delivery.event.trace);
	if (w->has_failed && w->call.wait_ms) {
		/* The far side takes nothing for now: that says nothing about this delivery, so it was no try. */
		lane.tries--;
		w->outcome = "failed";
		put_off(s, w, &lane, str_dup(session_arena(s), str_from(w->failure.msg)), w->call.wait_ms);
		return RC_OK;
	}
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

	if (!rc || session_has_store_failed(s, rc))
		return rc;
	return refuse(w, rc, e);
}

/* Of a queue without calls: everything in one transaction. */
static enum rc settle_alone(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone;
	enum rc     rc = load_delivery(s, w, &lane, &is_gone, e);

	if (rc || w->is_lost)
		return rc;
	if (is_gone) {
		w->outcome = "dead";
		return bury(s, &lane, NULL, STR("the event is no longer in the log"), &w->has_more, e);
	}
	w->delivery.tries = ++lane.tries;
	session_carry(s, w->delivery.event.trace);
	if ((rc = handle(s, w, e)))
		return rc;
	w->outcome = "delivered";
	return advance(s, &lane, &w->has_more, e);
}

/* A defect: the effect in a second transaction, after the removal. */
static enum rc settle_torn(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	bool        is_gone, has_next;
	enum rc     rc;

	if (w->is_claimed)
		return handle(s, w, e);
	rc = load_delivery(s, w, &lane, &is_gone, e);
	if (rc || w->is_lost)
		return rc;
	w->is_claimed = w->has_more = true;
	return advance(s, &lane, &has_next, e);
}

static enum rc lane_settle(struct session *s, struct work *w, struct err *e)
{
	if (HAS_DEFECT(REMOVE_BEFORE_EFFECT) && !w->needs_call)
		return settle_torn(s, w, e);
	return w->needs_call ? settle_call(s, w, e) : settle_alone(s, w, e);
}

static enum rc lane_refuse(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	enum rc     rc = w->needs_call ? load_claimed(s, w, &lane, e) : load_due(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	w->is_lost = !str_eq(lane.event_id, w->delivery.event.id); /* somebody else has delivered it */
	if (w->is_lost)
		return RC_OK;
	if (!w->needs_call)
		lane.tries++;
	return note_failure(s, w, &lane, e);
}

static enum rc lane_extend(struct session *s, struct work *w, struct err *e)
{
	struct lane lane;
	enum rc     rc = load_claimed(s, w, &lane, e);

	if (rc || w->is_lost)
		return rc;
	w->claimed_until_ms = lane.due_ms = session_now(s).ms + visibility_of(w);
	session_put(s, &lane_type, &lane);
	return RC_OK;
}

const struct work_ops lane_work = { .find = lane_find,
	                            .claim = lane_claim,
	                            .perform = lane_perform,
	                            .settle = lane_settle,
	                            .refuse = lane_refuse,
	                            .extend = lane_extend };

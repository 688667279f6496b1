/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_queue_api.c - the routes of queues and dead letters.
 *
 * Replaying all letters of a queue is many transactions: one that reads a page of ids, then one for each letter, so that a letter
 * that cannot be replayed does not keep the others. A call does one page; its answer says how many are left, and the caller decides
 * whether to call again.
 */
#include "base/json.h"
#include "http/ops.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"

/* --- queues --- */

static void put_queue(struct json_out *o, const struct queue *q, const struct queue_count *c, int64_t now_ms)
{
	json_put_str(o, "name", str_from(q->name));
	json_put_int(o, "lanes", c->lanes);
	if (c->oldest_ms)
		json_put_int(o, "oldest_age_sec", now_ms > c->oldest_ms ? (now_ms - c->oldest_ms) / 1000 : 0);
	else
		json_put_null(o, "oldest_age_sec");
	json_put_int(o, "failing", c->failing);
	json_put_int(o, "dead", c->dead);
	json_put_int(o, "tries", queue_tries(q));
	json_put_int(o, "visibility_sec", queue_visibility_ms(q) / 1000);
}

static void on_counted(struct request *r)
{
	const struct kernel_options *k = kernel_options(ops_kernel(r));
	const struct queue_counts   *c = r->arg;
	struct json_out              o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "queues");
	for (size_t i = 0; i < k->queue_count; i++) {
		json_open_object(&o);
		put_queue(&o, &k->queues[i], &c->counts[i], ops_now_ms(r));
		json_close_object(&o);
	}
	json_close_array(&o);
	reply_send(r, 200);
}

void handle_queue_list(struct request *r)
{
	struct queue_counts *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->kernel = ops_kernel(r);
	r->arg = c;
	request_submit(r, queue_counts, c, true, on_counted);
}

/* RC_NOT_FOUND that names those there are. */
static enum rc check_queue(struct request *r, struct str name, struct err *e)
{
	const struct kernel_options *k = kernel_options(ops_kernel(r));
	struct str                   known = STR("");

	if (kernel_queue(ops_kernel(r), name))
		return RC_OK;
	if (name.n > QUEUE_NAME_MAX)
		name.n = QUEUE_NAME_MAX;
	for (size_t i = 0; i < k->queue_count; i++)
		known = str_format(&r->call->arena, "%.*s%s%s", STR_ARG(known), i ? ", " : "", k->queues[i].name);
	return err_set(e, RC_NOT_FOUND, "there is no queue '%.*s'; there are: %.*s", STR_ARG(name), STR_ARG(known));
}

static const char *lane_state(const struct lane *l, int64_t now_ms)
{
	if (l->owner.n && l->due_ms > now_ms)
		return "in_flight";
	return l->due_ms > now_ms ? "waiting" : "ready";
}

static void put_lane(struct json_out *o, const struct lane *l, int64_t now_ms)
{
	json_put_str(o, "subject", l->subject);
	ops_put_text(o, "target", l->target);
	json_put_str(o, "event_id", l->event_id);
	json_put_str(o, "state", str_from(lane_state(l, now_ms)));
	json_put_int(o, "behind", l->tail - l->head);
	ops_put_time(o, "since_at", l->since_ms);
	ops_put_time(o, "due_at", l->due_ms);
	json_put_int(o, "tries", l->tries);
	ops_put_text(o, "owner", l->owner);
	ops_put_text(o, "last_error", l->last_error);
}

static const char *lanes_name(struct request *r, const struct lane_list *l)
{
	return ops_list_name(r, "lanes", &l->queue, 1);
}

static void on_lanes(struct request *r)
{
	struct lane_list *l = r->arg;
	struct json_out   o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "lanes");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_lane(&o, page_record(&l->page, &lane_type, i), ops_now_ms(r));
		json_close_object(&o);
	}
	ops_send_list(r, &o, lanes_name(r, l), l->page.count, l->page.next);
}

void handle_queue_lanes(struct request *r)
{
	struct lane_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err        e = { 0 };

	l->queue = r->params[0];
	r->arg = l;
	if (check_queue(r, l->queue, &e) || ops_read_page(r, lanes_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, lane_list, l, true, on_lanes);
}

/* --- dead letters --- */

/* What happened, so that a list says more than whom it was about; null when the event cannot be read. */
static void put_event_type(struct json_out *o, struct str event)
{
	struct str type = STR("");
	json_t    *envelope = NULL;

	if (event.n && json_parse(event, &envelope, NULL) == RC_OK)
		(void)json_get_text(envelope, "detail-type", &type); /* stays empty, then */
	ops_put_text(o, "type", type);
	json_decref(envelope);
}

static void put_dead(struct json_out *o, const struct dead *d)
{
	json_put_str(o, "id", d->id);
	json_put_str(o, "queue", d->queue);
	json_put_str(o, "subject", d->subject);
	ops_put_text(o, "target", d->target);
	json_put_str(o, "event_id", d->event_id);
	put_event_type(o, d->event);
	json_put_int(o, "tries", d->tries);
	ops_put_text(o, "error", d->error);
	ops_put_time(o, "since_at", d->since_ms);
	ops_put_time(o, "died_at", d->died_ms);
}

static const char *dead_name(struct request *r, const struct dead_list *l)
{
	return ops_list_name(r, "dead", &l->queue, 1);
}

static void on_dead_listed(struct request *r)
{
	struct dead_list *l = r->arg;
	struct json_out   o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_array(&o, "dead_letters");
	for (size_t i = 0; i < l->page.count; i++) {
		json_open_object(&o);
		put_dead(&o, page_record(&l->page, &dead_type, i));
		json_close_object(&o);
	}
	ops_send_list(r, &o, dead_name(r, l), l->page.count, l->page.next);
}

void handle_dead_list(struct request *r)
{
	struct dead_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct err        e = { 0 };

	r->arg = l;
	if (ops_read_text(r, "queue", QUEUE_NAME_MAX, &l->queue, &e) || (l->queue.n && check_queue(r, l->queue, &e)) ||
	    ops_read_page(r, dead_name(r, l), &l->limit, &l->cursor, &e))
		request_fail(r, &e);
	else
		request_submit(r, dead_list, l, true, on_dead_listed);
}

static void on_dead_shown(struct request *r)
{
	const struct dead *d = r->arg;
	struct json_out    o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	put_dead(&o, d);
	ops_put_json(&o, "event", d->event);
	reply_send(r, 200);
}

void handle_dead_show(struct request *r)
{
	struct dead *d = arena_alloc(&r->call->arena, sizeof(*d));
	struct err   e = { 0 };

	r->arg = d;
	if (ops_read_id(r, "dead letter", &d->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, dead_get, d, true, on_dead_shown);
}

static void reply_dead(struct request *r, const char *status)
{
	const struct dead_call *c = r->arg;
	struct json_out         o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_str(&o, "status", str_from(status));
	put_dead(&o, &c->dead);
	reply_send(r, 200);
}

static void on_replayed(struct request *r)
{
	reply_dead(r, "replayed");
}

static void on_dropped(struct request *r)
{
	reply_dead(r, "dropped");
}

static struct dead_call *dead_call_new(struct request *r)
{
	struct dead_call *c = arena_alloc(&r->call->arena, sizeof(*c));

	c->actor = r->actor;
	c->request_id = str_from(r->id);
	r->arg = c;
	return c;
}

void handle_dead_replay(struct request *r)
{
	struct dead_call *c = dead_call_new(r);
	struct err        e = { 0 };

	if (ops_read_id(r, "dead letter", &c->id, &e))
		request_fail(r, &e);
	else
		request_submit(r, dead_replay, c, false, on_replayed);
}

void handle_dead_drop(struct request *r)
{
	struct dead_call *c = dead_call_new(r);
	struct err        e = { 0 };

	if (ops_read_id(r, "dead letter", &c->id, &e) || ops_read_reason(r, &c->reason, &e))
		request_fail(r, &e);
	else
		request_submit(r, dead_drop, c, false, on_dropped);
}

/* --- all letters of a queue --- */

struct replay_all {
	struct dead_list list;
	struct dead_call call;
	struct arena     letter; /* what the transaction of one letter needs */
	size_t           at;     /* number of the letter in the page */
	int64_t          replayed, left;
};

static enum rc count_left(struct session *s, void *arg, struct err *e)
{
	struct replay_all *all = arg;

	return session_count(s, &dead_type, DEAD_BY_QUEUE, value_text(all->list.queue), &all->left, e);
}

static void on_left_counted(struct request *r)
{
	const struct replay_all *all = r->arg;
	struct json_out          o;

	if (ops_failed(r))
		return;
	o = reply_begin(r);
	json_put_int(&o, "replayed", all->replayed);
	json_put_int(&o, "left", all->left);
	reply_send(r, 200);
}

static void replay_next(struct request *r);

static void on_one_replayed(struct request *r)
{
	struct replay_all *all = r->arg;

	if (!r->txn.rc)
		all->replayed++;
	if (rc_is_retryable(r->txn.rc)) { /* the store is unwell: what was replayed stays so */
		arena_fini(&all->letter);
		request_fail(r, &r->txn.e);
		return;
	}
	replay_next(r);
}

static void replay_next(struct request *r)
{
	struct replay_all *all = r->arg;
	const struct dead *d;

	arena_reset(&all->letter);
	if (all->at == all->list.page.count) {
		arena_fini(&all->letter);
		request_submit(r, count_left, all, true, on_left_counted);
		return;
	}
	d = page_record(&all->list.page, &dead_type, all->at++);
	all->call = (struct dead_call){ .id = d->id, .actor = r->actor, .request_id = str_from(r->id) };
	request_submit_in(r, &all->letter, dead_replay, &all->call, false, on_one_replayed);
}

static void on_letters(struct request *r)
{
	if (!ops_failed(r))
		replay_next(r);
}

void handle_dead_replay_all(struct request *r)
{
	struct replay_all *all = arena_alloc(&r->call->arena, sizeof(*all));
	struct err         e = { 0 };

	r->arg = all;
	all->list.limit = OPS_LIMIT_MAX;
	if (ops_read_text(r, "queue", QUEUE_NAME_MAX, &all->list.queue, &e) ||
	    (!all->list.queue.n && err_set(&e, RC_INVALID, "queue is required: whose letters?")) ||
	    check_queue(r, all->list.queue, &e))
		request_fail(r, &e);
	else
		request_submit(r, dead_list, &all->list, true, on_letters);
}

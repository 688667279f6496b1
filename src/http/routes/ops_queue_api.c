/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops_queue_api.c - the routes of queues and dead letters.
 *
 * Replaying all letters of a queue is many transactions: one that reads a page of ids, then one for each letter, so
 * that a letter that cannot be replayed does not stop the others. A call does one page; its answer says how many are
 * left, and the caller decides whether to call again.
 */
#include "base/json.h"
#include "http/api/ops.h"
#include "kernel/kernel.h"
#include "kernel/queue.h"

enum { TYPE_AT_MAX = 200 }; /* bytes of an envelope before its type: version and id */

/* --- queues --- */

static void put_queues(struct json_out *o, struct request *r, const void *thing)
{
	const struct kernel_options *k = kernel_options(r->api->options.kernel);
	const struct queue_count    *c = ((const struct queue_counts *)thing)->counts;
	int64_t                      now_ms = ops_now_ms(r);

	json_put_array(o, "queues");
	for (const struct queue *q = k->queues; q < k->queues + k->queue_count; q++, c++) {
		int64_t age_sec = now_ms > c->oldest_ms ? (now_ms - c->oldest_ms) / 1000 : 0;

		JSON_PUT(o, member_object(NULL), member_word("name", q->name), member_int("lanes", c->lanes),
		         c->oldest_ms ? member_int("oldest_age_sec", age_sec) : member_raw("oldest_age_sec", STR("")),
		         member_int("failing", c->failing), member_int("dead", c->dead),
		         member_int("tries", queue_tries(q)),
		         member_int("visibility_sec", queue_visibility_ms(q) / 1000), member_end());
	}
	json_close_array(o);
}

void handle_queue_list(struct request *r)
{
	struct queue_counts *c = NEW_OF(r, struct queue_counts);

	c->kernel = r->api->options.kernel;
	view_submit(r, queue_counts, c, READS, 200, put_queues);
}

static enum rc check_queue(struct request *r, struct str name, struct err *e)
{
	if (kernel_queue(r->api->options.kernel, name))
		return RC_OK;
	if (name.n > QUEUE_NAME_MAX)
		name.n = QUEUE_NAME_MAX;
	return err_set(e, RC_NOT_FOUND, "there is no queue '%.*s'", STR_ARG(name));
}

static void put_lane(struct json_out *o, struct request *r, const void *thing)
{
	const struct lane *l = thing;
	bool               is_later = l->due_ms > ops_now_ms(r);
	const char        *state = !is_later ? "ready" : l->owner.n ? "in_flight" : "waiting";

	JSON_PUT(o, member_str("subject", l->subject), member_text("target", l->target),
	         member_str("event_id", l->event_id), member_word("state", state),
	         member_int("behind", l->tail - l->head), member_sec("since_at", l->since_ms),
	         member_sec("due_at", l->due_ms), member_int("tries", l->tries), member_text("owner", l->owner),
	         member_text("last_error", l->last_error));
}

static enum rc read_lane_filter(struct request *r, struct listing *v, struct err *e)
{
	struct lane_list *l = v->list;

	l->queue = r->params[0];
	v->name = ops_list_name(r, "lanes", &l->queue, 1);
	return check_queue(r, l->queue, e);
}

static const struct listing lanes = { "lanes",         NULL, &lane_type, put_lane, lane_list, LIST_OF(struct lane_list),
	                              read_lane_filter };
HANDLER(queue_lanes, view_list(r, &lanes))

/* --- dead letters --- */

/* The event's type, so that a list says what happened; empty when it is not where event_write_json() puts it, among
 * the first members. A type has no character that needs an escape. */
static struct str type_of(struct str event)
{
	static const struct str name = STR_INIT("\"detail-type\":\"");
	size_t                  within = event.n < TYPE_AT_MAX ? event.n : TYPE_AT_MAX;
	const char             *at = within ? memmem(event.p, within, name.p, name.n) : NULL;
	struct str              rest = at ? str_skip(event, (size_t)(at - event.p) + name.n) : STR("");
	struct str              type = str_cut(&rest, '"');

	return type.n <= EVENT_TYPE_MAX ? type : STR("");
}

PUT_OF(put_dead, struct dead, d, member_str("id", d->id), member_str("queue", d->queue),
       member_str("subject", d->subject), member_text("target", d->target), member_str("event_id", d->event_id),
       member_text("type", type_of(d->event)), member_int("tries", d->tries), member_text("error", d->error),
       member_sec("since_at", d->since_ms), member_sec("died_at", d->died_ms))

static enum rc read_dead_filter(struct request *r, struct listing *v, struct err *e)
{
	struct dead_list *l = v->list;
	enum rc           rc = ops_read_text(r, "queue", QUEUE_NAME_MAX, &l->queue, e);

	v->name = ops_list_name(r, "dead", &l->queue, 1);
	return rc || !l->queue.n ? rc : check_queue(r, l->queue, e);
}

static const struct listing letters = { "dead_letters",  NULL,      &dead_type,
	                                put_dead,        dead_list, LIST_OF(struct dead_list),
	                                read_dead_filter };
HANDLER(dead_list, view_list(r, &letters))

static void put_whole_dead(struct json_out *o, struct request *r, const void *thing)
{
	put_dead(o, r, thing);
	JSON_PUT(o, member_raw("event", ((const struct dead *)thing)->event));
}

HANDLER(dead_show, ops_show(r, "dead letter", sizeof(struct dead), offsetof(struct dead, id), dead_get, put_whole_dead))

static void submit_dead(struct request *r, txn_fn *run, bool has_reason, const char *done)
{
	struct dead_call *c = NEW_OF(r, struct dead_call);

	*c = (struct dead_call){ .actor = r->actor, .request_id = str_from(r->id) };
	r->done = done;
	r->shown = &c->dead;
	if (request_is_good(r, ops_read_id(r, "dead letter", &c->id, &r->e) ||
	                               (has_reason && ops_read_reason(r, true, &c->reason, &r->e))))
		view_submit(r, run, c, WRITES, 200, put_dead);
}

HANDLER(dead_replay, submit_dead(r, dead_replay, false, "replayed"))
HANDLER(dead_drop, submit_dead(r, dead_drop, true, "dropped"))

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

PUT_OF(put_replayed, struct replay_all, all, member_int("replayed", all->replayed), member_int("left", all->left))

static void replay_next(struct request *r);

static void on_one_replayed(struct request *r)
{
	struct replay_all *all = r->arg;

	if (!r->txn.rc)
		all->replayed++;
	if (rc_is_retryable(r->txn.rc)) { /* the store fails: what was replayed stays replayed */
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
		view_submit(r, count_left, all, READS, 200, put_replayed);
		return;
	}
	d = page_record(&all->list.page, &dead_type, all->at++);
	all->call = (struct dead_call){ .id = d->id, .actor = r->actor, .request_id = str_from(r->id) };
	request_submit_in(r, &all->letter, dead_replay, &all->call, false, on_one_replayed);
}

static void on_letters(struct request *r)
{
	if (!request_failed(r))
		replay_next(r);
}

void handle_dead_replay_all(struct request *r)
{
	struct replay_all *all = arena_alloc(&r->call->arena, sizeof(*all));

	r->arg = all;
	all->list.limit = OPS_LIMIT_MAX;
	if (request_is_good(r, ops_read_text(r, "queue", QUEUE_NAME_MAX, &all->list.queue, &r->e) ||
	                               (!all->list.queue.n &&
	                                err_set(&r->e, RC_INVALID, "queue is required: whose letters?")) ||
	                               check_queue(r, all->list.queue, &r->e)))
		request_submit(r, dead_list, &all->list, true, on_letters);
}

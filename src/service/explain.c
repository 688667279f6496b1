/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - from a question about one thing to an answer in words.
 *
 * The answer is made in three parts: what the thing itself says (explain_account.c, explain_lease.c, explain_sandbox.c), what the kernel
 * has under way about it (explain_kernel.c), and which events led there (explain_events.c). It is all one read-only transaction, so it is
 * one moment.
 *
 * Always true:
 *   1. Nothing is read but by key or by an index, and of each list no more than a stated number.
 *   2. What is offered is a row of EXPLAIN_ORDERS, and a test compares each with the commands and the routes that there are.
 *   3. A user is told of his lease and nothing of the server's insides.                         [explain_problem()]
 *
 * A thing that is gone is still explained by its events, for as long as the log keeps them.
 */
#include "service/explain.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "service/explain_ops.h"

enum { TEXT_MAX = 1048576, LINE_MAX_BYTES = 1000, NOTE_MAX_BYTES = 300 };

const struct explain_order explain_orders[EXPLAIN_ORDER_COUNT] = {
#define X(name, what, command, method, path, roles) [CAN_##name] = { what, command, method, path, roles },
	EXPLAIN_ORDERS(X)
#undef X
};

/* --- filling --- */

static void add(struct situation *x, struct explain_lines *lines, struct str line)
{
	if (line.n && lines->count < EXPLAIN_LINES)
		lines->items[lines->count++] = utf8_line(x->a, line, LINE_MAX_BYTES);
}

void explain_why(struct situation *x, struct str line)
{
	add(x, &x->why, line);
}

void explain_problem(struct situation *x, struct str line)
{
	if (!x->is_for_user)
		add(x, &x->problems, line);
}

void explain_next(struct situation *x, int64_t at_ms, struct str what, struct str by)
{
	for (size_t i = 0; i < x->next_count; i++)
		if (x->next[i].at_ms == at_ms && str_eq(x->next[i].what, what))
			return; /* two things that are wrong may wait for the same job */
	if (x->next_count < EXPLAIN_LINES)
		x->next[x->next_count++] = (struct explain_step){ .what = what, .by = by, .at_ms = at_ms };
}

/* Is it for the one who asks? An operator sees all of it. */
static bool may_do(const struct situation *x, enum explain_order_id order)
{
	const struct caller *by = x->ask->by;

	return !by || (explain_orders[order].roles & by->roles);
}

static bool is_offered(const struct situation *x, enum explain_order_id order, struct str id)
{
	for (size_t i = 0; i < x->can_count; i++)
		if (x->can[i].order == order && str_eq(x->can[i].id, id))
			return true;
	return false;
}

void explain_can_lease(struct situation *x, enum explain_order_id order, struct str uuid, struct str long_id)
{
	if (is_offered(x, order, uuid))
		return;
	if (x->can_count < EXPLAIN_CANS && may_do(x, order))
		x->can[x->can_count++] = (struct explain_can){ .order = order, .id = uuid, .path_id = long_id };
}

/* Ids have no character that means something in a path, except the slash. */
static struct str escaped(struct arena *a, struct str id)
{
	struct str rest = id, out = STR("");

	while (memchr(rest.p, '/', rest.n)) {
		struct str part = str_cut(&rest, '/');

		out = str_format(a, "%.*s%.*s%%2F", STR_ARG(out), STR_ARG(part));
	}
	return out.n ? str_format(a, "%.*s%.*s", STR_ARG(out), STR_ARG(rest)) : id;
}

void explain_can(struct situation *x, enum explain_order_id order, struct str id)
{
	explain_can_lease(x, order, id, escaped(x->a, id));
}

const char *explain_time(struct situation *x, int64_t ms)
{
	char       text[ISO_TIME_SIZE];
	struct str iso = iso_time(ms / 1000, text);

	return str_format(x->a, "%.10s %.5s UTC", iso.p, iso.p + 11).p;
}

enum rc explain_find(struct situation *x, const struct record_type *type, struct str key, void *ret, bool *ret_is_there,
                     struct err *e)
{
	enum rc rc = key.n ? session_get(x->s, type, key, ret, NULL) : RC_NOT_FOUND;

	*ret_is_there = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "%s %.*s cannot be read", type->name, STR_ARG(key)) : RC_OK;
}

/* --- writing --- */

static void put_time(struct json_out *o, const char *name, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	if (ms)
		json_put_str(o, name, iso_time(ms / 1000, text));
	else
		json_put_null(o, name);
}

static void put_text(struct json_out *o, const char *name, struct str text)
{
	if (text.n)
		json_put_str(o, name, text);
	else
		json_put_null(o, name);
}

static void put_lines(struct json_out *o, const char *name, const struct explain_lines *lines)
{
	json_put_array(o, name);
	for (size_t i = 0; i < lines->count; i++)
		json_add_str(o, lines->items[i]);
	json_close_array(o);
}

/* What people and far sides wrote: one line, and not all of it when it is long. */
static void put_note(struct json_out *o, const struct situation *x, const char *name, struct str text)
{
	put_text(o, name, utf8_line(x->a, text, NOTE_MAX_BYTES));
}

static void put_hold(struct json_out *o, const struct situation *x, const struct hold *h)
{
	json_open_object(o);
	json_put_str(o, "id", h->id);
	json_put_str(o, "reason", str_from(hold_reason_names[h->reason]));
	json_put_str(o, "state", str_from(hold_state_names[h->state]));
	json_put_bool(o, "locks", h->locks);
	put_time(o, "since", h->created_ms);
	put_time(o, "due", h->due_ms);
	put_text(o, "createdBy", h->created_by);
	put_note(o, x, "note", h->note);
	put_text(o, "leaseUuid", h->lease_uuid);
	json_put_int(o, "attempts", h->attempts);
	put_note(o, x, "lastError", h->last_error);
	put_time(o, "closed", h->closed_ms);
	put_text(o, "closedBy", h->closed_by);
	put_note(o, x, "closedWhy", h->closed_why);
	json_close_object(o);
}

static void put_holds(struct json_out *o, const struct situation *x)
{
	json_put_array(o, "holds");
	for (size_t i = 0; i < x->hold_count; i++)
		put_hold(o, x, &x->holds[i]);
	json_close_array(o);
}

static void put_events(struct json_out *o, const struct situation *x)
{
	json_put_array(o, "events");
	for (size_t i = 0; i < x->event_count; i++) {
		const struct event *event = &x->events[i];

		json_open_object(o);
		json_put_str(o, "id", event->id);
		put_time(o, "time", event->time_ms);
		json_put_str(o, "type", event->type);
		put_text(o, "actor", event->actor);
		json_put_str(o, "text", explain_event(event, x->a));
		json_close_object(o);
	}
	json_close_array(o);
}

/* What is due comes first, what nobody can say the time of last; else in the order in which it was found. */
static void sort_next(struct situation *x)
{
	for (size_t i = 1; i < x->next_count; i++)
		for (size_t j = i; j > 0; j--) {
			struct explain_step *a = &x->next[j - 1], *b = &x->next[j];
			struct explain_step  swap = *a;

			if (!b->at_ms || (a->at_ms && a->at_ms <= b->at_ms))
				break;
			*a = *b;
			*b = swap;
		}
}

static void put_next(struct json_out *o, struct situation *x)
{
	sort_next(x);
	json_put_array(o, "next");
	for (size_t i = 0; i < x->next_count; i++) {
		json_open_object(o);
		json_put_str(o, "what", x->next[i].what);
		put_time(o, "at", x->next[i].at_ms);
		put_text(o, "by", x->next[i].by);
		json_close_object(o);
	}
	json_close_array(o);
}

/* The pattern with {id} and {base} put in. */
static struct str filled(struct arena *a, const char *pattern, struct str id, struct str base)
{
	struct str rest = str_from(pattern), out = STR("");

	while (rest.n) {
		struct str before = str_cut(&rest, '{'), name, value = STR("");

		if (rest.p && rest.n) {
			name = str_cut(&rest, '}');
			value = str_eq(name, STR("base")) ? base : id;
		}
		out = str_format(a, "%.*s%.*s%.*s", STR_ARG(out), STR_ARG(before), STR_ARG(value));
	}
	return out;
}

/* The lowest role that may; whoever has more may too. */
static const char *role_name(unsigned roles)
{
	return roles & ROLE_USER      ? "User"
	       : roles & ROLE_MANAGER ? "Manager"
	       : roles & ROLE_ADMIN   ? "Admin"
	                              : "operator";
}

static void put_can(struct json_out *o, const struct situation *x)
{
	json_put_array(o, "can");
	for (size_t i = 0; i < x->can_count; i++) {
		const struct explain_can   *can = &x->can[i];
		const struct explain_order *order = &explain_orders[can->order];
		struct str                  base = x->ask->base_path;
		struct str                  command = filled(x->a, order->command, can->id, base);

		json_open_object(o);
		json_put_str(o, "do", filled(x->a, order->what, can->id, base));
		json_put_str(o, "command", str_format(x->a, "leasehold %.*s", STR_ARG(command)));
		json_put_str(o, "method", str_from(order->method));
		json_put_str(o, "path", filled(x->a, order->path, can->path_id, base));
		json_put_str(o, "role", str_from(role_name(order->roles)));
		json_close_object(o);
	}
	json_close_array(o);
}

static struct str to_json(struct situation *x)
{
	CLEANUP(buf_fini) struct buf b;
	struct json_out              o;

	buf_init(&b, TEXT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "subject", x->subject);
	json_put_str(&o, "kind", x->kind);
	json_put_str(&o, "id", x->id);
	json_put_str(&o, "where", x->where);
	put_time(&o, "since", x->since_ms);
	json_put_str(&o, "summary", x->summary);
	put_lines(&o, "why", &x->why);
	put_holds(&o, x);
	put_events(&o, x);
	put_next(&o, x);
	put_can(&o, x);
	put_lines(&o, "problems", &x->problems);
	json_close_object(&o);
	assert(!b.is_full); /* every list and every text in it has a limit */
	return str_dup(x->a, buf_str(&b));
}

/* --- the question --- */

static const struct {
	const char *kind;
	enum rc (*explain)(struct situation *x, struct err *e);
} kinds[] = {
	{ "account", explain_account },
	{ "lease", explain_lease },
	{ "sandbox", explain_sandbox },
};

static enum rc describe(struct situation *x, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(x->kind, str_from(kinds[i].kind)))
			return kinds[i].explain(x, e);
	if (str_eq(x->kind, STR("instance")))
		return err_set(
		        e, RC_NOT_FOUND,
		        "this server has no instances yet: what it can explain are accounts, leases and sandboxes");
	return err_set(e, RC_INVALID, "'%.*s' cannot be explained; right are account, lease, sandbox and instance",
	               STR_ARG(x->kind));
}

/* There is no record, but there was. */
static enum rc describe_gone(struct situation *x, struct err *e)
{
	struct str last;

	if (!x->event_count || x->ask->by)
		return err_set(e, RC_NOT_FOUND, "there is no %.*s %.*s, and no event tells of one", STR_ARG(x->kind),
		               STR_ARG(x->id));
	last = explain_event(&x->events[0], x->a);
	x->where = STR("gone");
	x->since_ms = x->events[0].time_ms;
	x->summary = str_format(x->a,
	                        "There is no record of %.*s %.*s any more; the last that is known is of %s: %.*s.",
	                        STR_ARG(x->kind), STR_ARG(x->id), explain_time(x, x->since_ms), STR_ARG(last));
	return RC_OK;
}

enum rc explain(struct session *s, void *arg, struct err *e)
{
	struct explain   *ask = arg;
	struct situation *x = arena_alloc(session_arena(s), sizeof(*x));
	enum rc           rc;

	*x = (struct situation){ .s = s,
		                 .a = session_arena(s),
		                 .now_ms = session_now(s).ms,
		                 .ask = ask,
		                 .is_for_user = ask->by && caller_is_only_user(ask->by),
		                 .kind = ask->kind,
		                 .id = ask->id };
	if ((rc = describe(x, e)))
		return rc;
	x->subject = str_format(x->a, "%.*s/%.*s", STR_ARG(x->kind), STR_ARG(x->id));
	if ((rc = explain_read_events(x, e)))
		return rc;
	if (x->is_gone && (rc = describe_gone(x, e)))
		return rc;
	if (!x->is_for_user && ((rc = explain_deliveries(x, e)) || (rc = explain_alarms(x, e))))
		return rc;
	ask->json = to_json(x);
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.c - from a question about one thing to an answer in words.
 *
 * The answer is made in three parts: what the thing itself says (explain_account.c, explain_lease.c,
 * explain_sandbox.c), what the kernel has under way about it (explain_kernel.c), and which events led there
 * (explain_events.c). It is all one read-only transaction, so it is one moment. A failure of the store is kept in the
 * situation [explain_find()]; whoever fills it goes on, and there is no answer at the end.
 *
 * Always true:
 *   1. Nothing is read but by key or by an index, and of each list no more than a stated number.
 *   2. What is offered is a row of EXPLAIN_ACTIONS; a test finds the command and the route of each.
 *   3. A user is told of his lease and nothing of the server's insides.                         [explain_say()]
 *
 * A thing that is gone is still explained by its events, for as long as the log keeps them.
 */
#include "service/explain/explain.h"

#include <stdarg.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/utf8.h"
#include "service/explain/explain_private.h"

enum { TEXT_MAX = 1048576, LINE_MAX_BYTES = 1000, NOTE_MAX_BYTES = 300 };

const struct explain_action explain_actions[EXPLAIN_ACTION_COUNT] = {
#define X(name, what, command, route) [CAN_##name] = { what, command, #route },
	EXPLAIN_ACTIONS(X)
#undef X
};

/* --- filling --- */

void explain_say(struct situation *x, enum explain_part part, const char *fmt, ...)
{
	struct explain_lines *lines = part == WHY ? &x->why : &x->problems;
	va_list               args;
	struct str            text;

	va_start(args, fmt);
	text = str_vformat(x->a, fmt, args);
	va_end(args);
	if (part == SUMMARY)
		x->summary = text;
	else if (lines->count < EXPLAIN_LINES && !(part == PROBLEM && x->is_for_user))
		lines->items[lines->count++] = utf8_line(x->a, text, LINE_MAX_BYTES);
}

void explain_next(struct situation *x, int64_t at_ms, struct str what, struct str by)
{
	for (size_t i = 0; i < x->next_count; i++)
		if (x->next[i].at_ms == at_ms && str_eq(x->next[i].what, what))
			return; /* two things that are wrong may wait for the same job */
	if (x->next_count < EXPLAIN_LINES)
		x->next[x->next_count++] = (struct explain_step){ .what = what, .by = by, .at_ms = at_ms };
}

void explain_can_lease(struct situation *x, enum explain_action_id action, struct str uuid, struct str long_id)
{
	const struct caller *by = x->ask->by; /* NULL: an operator, who sees all of it */
	struct explain_route route = x->ask->route(explain_actions[action].route);

	for (size_t i = 0; i < x->can_count; i++)
		if (x->can[i].action == action && str_eq(x->can[i].id, uuid))
			return;
	if (x->can_count < EXPLAIN_CANS && (!by || (route.roles & by->roles)))
		x->can[x->can_count++] = (struct explain_can){ action, route, uuid, long_id };
}

void explain_can(struct situation *x, enum explain_action_id action, struct str id)
{
	struct str rest = id, escaped = STR("");

	/* Ids have no character that means something in a path, except the slash. */
	while (memchr(rest.p, '/', rest.n)) {
		struct str part = str_cut(&rest, '/');

		escaped = str_format(x->a, "%.*s%.*s%%2F", STR_ARG(escaped), STR_ARG(part));
	}
	explain_can_lease(x, action, id, str_format(x->a, "%.*s%.*s", STR_ARG(escaped), STR_ARG(rest)));
}

bool explain_find(struct situation *x, const struct record_type *type, struct str key, void *ret)
{
	bool is_there = false;

	if (key.n && !x->rc)
		x->rc = session_find(x->s, type, key, ret, &is_there, x->e);
	return is_there;
}

/* --- writing --- */

/* Of what people and far sides wrote one line, and not all of it when it is long. */
static void put_hold(struct json_out *o, const struct situation *x, const struct hold *h)
{
	JSON_PUT(o, member_object(NULL), member_str("id", h->id), member_word("reason", hold_reason_names[h->reason]),
	         member_word("state", hold_state_names[h->state]), member_bool("locks", h->locks),
	         member_at("since", h->created_ms), member_at("due", h->due_ms),
	         member_text("createdBy", h->created_by), member_text("note", utf8_line(x->a, h->note, NOTE_MAX_BYTES)),
	         member_text("leaseUuid", h->lease_uuid), member_int("attempts", h->attempts),
	         member_text("lastError", utf8_line(x->a, h->last_error, NOTE_MAX_BYTES)),
	         member_at("closed", h->closed_ms), member_text("closedBy", h->closed_by),
	         member_text("closedWhy", utf8_line(x->a, h->closed_why, NOTE_MAX_BYTES)), member_end());
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

/* The pattern with {base} and the id, which has any name, put in. */
static struct str filled(struct arena *a, const char *pattern, struct str id, struct str base)
{
	struct str rest = str_from(pattern), out = STR("");

	while (rest.n) {
		struct str before = str_cut(&rest, '{'), name, value = STR("");

		if (rest.p && rest.n) {
			name = str_cut(&rest, '}');
			value = str_eq(name, STR("base"))       ? base
			        : str_eq(name, STR("tenantId")) ? STR("-") /* whosever it is */
			                                        : id;
		}
		out = str_format(a, "%.*s%.*s%.*s", STR_ARG(out), STR_ARG(before), STR_ARG(value));
	}
	return out;
}

static void put_can(struct json_out *o, const struct situation *x, const struct explain_can *can)
{
	const struct explain_action *action = &explain_actions[can->action];
	struct str                   base = x->ask->base_path;
	struct str                   command = filled(x->a, action->command, can->id, base);
	unsigned                     roles = can->route.roles;
	const char                  *lowest = roles & ROLE_USER      ? "User" /* whoever has more may too */
	                                      : roles & ROLE_MANAGER ? "Manager"
	                                      : roles & ROLE_ADMIN   ? "Admin"
	                                                             : "operator";

	JSON_PUT(o, member_object(NULL), member_str("do", filled(x->a, action->what, can->id, base)),
	         member_str("command", str_format(x->a, "leasehold %.*s", STR_ARG(command))),
	         member_word("method", can->route.method),
	         member_str("path", filled(x->a, can->route.path, can->path_id, base)), member_word("role", lowest),
	         member_end());
}

static void put_lists(struct json_out *o, struct situation *x)
{
	json_put_array(o, "holds");
	for (size_t i = 0; i < x->hold_count; i++)
		put_hold(o, x, &x->holds[i]);
	JSON_PUT(o, member_list_end(), member_list("events"));
	for (size_t i = 0; i < x->event_count; i++) {
		const struct event *event = &x->events[i];

		JSON_PUT(o, member_object(NULL), member_str("id", event->id), member_at("time", event->time_ms),
		         member_str("type", event->type), member_text("actor", event->actor),
		         member_str("text", explain_event(event, x->a)), member_end());
	}
	json_close_array(o);
	sort_next(x);
	json_put_array(o, "next");
	for (size_t i = 0; i < x->next_count; i++)
		JSON_PUT(o, member_object(NULL), member_str("what", x->next[i].what), member_at("at", x->next[i].at_ms),
		         member_text("by", x->next[i].by), member_end());
	JSON_PUT(o, member_list_end(), member_list("can"));
	for (size_t i = 0; i < x->can_count; i++)
		put_can(o, x, &x->can[i]);
	json_close_array(o);
}

static struct str to_json(struct situation *x)
{
	CLEANUP(buf_fini) struct buf b = BUF(TEXT_MAX);
	struct json_out              o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_str("subject", x->subject), member_str("kind", x->ask->kind),
	         member_str("id", x->id), member_str("where", x->where), member_at("since", x->since_ms),
	         member_str("summary", x->summary));
	json_put_texts(&o, "why", x->why.items, x->why.count);
	put_lists(&o, x);
	json_put_texts(&o, "problems", x->problems.items, x->problems.count);
	json_close_object(&o);
	if (b.is_full)
		x->rc = err_set(x->e, RC_TOO_LARGE, "what there is to say about %.*s has more than %d bytes",
		                STR_ARG(x->subject), TEXT_MAX);
	return str_dup(x->a, buf_str(&b));
}

/* --- the question --- */

static void describe(struct situation *x)
{
	if (str_eq(x->ask->kind, STR("account")))
		explain_account(x);
	else if (str_eq(x->ask->kind, STR("lease")))
		explain_lease(x);
	else if (str_eq(x->ask->kind, STR("sandbox")))
		explain_sandbox(x);
	else if (str_eq(x->ask->kind, STR("instance")))
		explain_instance(x);
	else
		x->rc = err_set(x->e, RC_INVALID,
		                "'%.*s' cannot be explained; right are account, lease, sandbox and instance",
		                STR_ARG(x->ask->kind));
}

/* There is no record, but there was. */
static void describe_gone(struct situation *x)
{
	struct str kind = x->ask->kind, last;

	if (!x->event_count || x->ask->by) {
		x->rc = err_set(x->e, RC_NOT_FOUND, "there is no %.*s %.*s, and no event tells of one", STR_ARG(kind),
		                STR_ARG(x->id));
		return;
	}
	last = explain_event(&x->events[0], x->a);
	x->where = STR("gone");
	x->since_ms = x->events[0].time_ms;
	explain_say(x, SUMMARY, "There is no record of %.*s %.*s any more; the last that is known is of %s: %.*s.",
	            STR_ARG(kind), STR_ARG(x->id), explain_time(x, x->since_ms), STR_ARG(last));
}

enum rc explain(struct session *s, void *arg, struct err *e)
{
	struct explain   *ask = arg;
	struct situation *x = arena_alloc(session_arena(s), sizeof(*x));

	*x = (struct situation){ .s = s,
		                 .e = e,
		                 .a = session_arena(s),
		                 .now_ms = session_now(s).ms,
		                 .ask = ask,
		                 .is_for_user = ask->by && caller_is_only_user(ask->by),
		                 .id = ask->id };
	describe(x);
	x->subject = str_format(x->a, "%.*s/%.*s", STR_ARG(ask->kind), STR_ARG(x->id));
	explain_read_events(x);
	if (!x->rc && x->is_gone)
		describe_gone(x);
	if (!x->is_for_user) {
		explain_deliveries(x);
		explain_alarms(x);
	}
	if (!x->rc)
		ask->json = to_json(x);
	return x->rc;
}

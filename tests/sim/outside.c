/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outside.c - somebody outside sends events, and sends each one again until it is acknowledged.
 *
 * A body has one event or several, sometimes a bad one among them, and comes as a list or as a queue wraps it. Events
 * overtake each other; those that were acknowledged come again now and then.
 *
 * Promises checked here:
 *   an outside event is taken in once           at every commit     [outside_check_event()]
 *   what was acknowledged is stored             after each body     [note_verdict()]
 *   a bad record never fails its neighbours     after each body     [note_verdict()]
 */
#include "outside.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/edge/intake.h"
#include "model.h"
#include "sim.h"

enum {
	EVENTS_MAX = 4096,
	BODY_EVENTS_MAX = 4,
	SUBJECTS = 5,
	OPEN_MAX = 8,
	REPEAT_MS = 12 * HOUR_MS,
	BODY_TEXT_MAX = 8192,
	BAD = -1
};

struct outside {
	int     sent;                    /* the first so many numbers have been used */
	bool    is_given_up[EVENTS_MAX]; /* nobody sends for ever */
	bool    is_acknowledged[EVENTS_MAX];
	int     taken[EVENTS_MAX]; /* how often it has become an event of ours */
	int64_t sent_ms[EVENTS_MAX];
	int     first_open; /* all before it are acknowledged */
};

/* What one body holds: numbers of events, or BAD. */
struct parcel {
	int numbers[BODY_EVENTS_MAX];
	int count;
};

void outside_open(struct sim *sim)
{
	sim->outside = arena_alloc(&sim->arena, sizeof(*sim->outside));
}

/* --- what must be so --- */

/* "out-17" is number 17. */
static int number_of(struct str id)
{
	int64_t number = BAD;

	(void)str_cut(&id, '-');
	return str_to_int(id, 0, EVENTS_MAX - 1, &number) ? (int)number : BAD;
}

void outside_check_event(struct sim *sim, struct session *s, const struct event *event)
{
	struct str key;
	int        number;

	if (!str_starts_with(event->type, STR("world:")))
		return;
	key = event->detail; /* {"id":"out-17",...} */
	(void)str_cut(&key, '-');
	number = number_of(str_format(s->arena, "-%.*s", (int)strspn(key.p, "0123456789"), key.p));
	if (number == BAD)
		sim_broken(sim, "no event is invented", "%.*s was never sent", STR_ARG(event->detail));
	else if (++sim->outside->taken[number] > 1)
		sim_broken(sim, "an outside event is taken in once", "event out-%d is taken in again", number);
}

/* On to the first event that is still to be sent. */
static void skip_closed(struct sim *sim)
{
	struct outside *o = sim->outside;

	while (o->first_open < o->sent) {
		if (!o->is_acknowledged[o->first_open] && sim_now(sim) < o->sent_ms[o->first_open] + REPEAT_MS)
			return;
		o->is_given_up[o->first_open] = !o->is_acknowledged[o->first_open];
		o->first_open++;
	}
}

static void note_verdict(struct sim *sim, int number, enum rc rc, const struct intake_record *record)
{
	struct outside *o = sim->outside;

	if (number == BAD) {
		if (record->verdict != INTAKE_REJECTED)
			sim_broken(sim, "a bad record is rejected", "a record without a detail-type is taken");
		return;
	}
	if (record->verdict == INTAKE_REJECTED)
		sim_broken(sim, "a bad record never fails its neighbours", "event out-%d is rejected: %s", number,
		           record->e.msg);
	if (rc)
		return; /* to be sent again */
	o->is_acknowledged[number] = true;
	if (!o->taken[number])
		sim_broken(sim, "what was answered is stored", "event out-%d was acknowledged, and is not stored",
		           number);
	skip_closed(sim);
}

void outside_check_quiet(struct sim *sim)
{
	for (int i = 0; i < sim->outside->sent; i++)
		if (sim->outside->taken[i] != 1 && !sim->outside->is_given_up[i])
			sim_broken(sim, "an outside event is taken in once", "event out-%d was taken in %d times", i,
			           sim->outside->taken[i]);
}

/* --- sending --- */

static struct str write_event(struct arena *a, int number)
{
	if (number == BAD)
		return STR("{\"id\":\"out-0\",\"detail\":{}}");
	return str_format(
	        a, "{\"id\":\"out-%d\",\"detail-type\":\"Happened\",\"subject\":\"outside/%d\",\"detail\":{\"n\":%d}}",
	        number, number % SUBJECTS, number);
}

/* As a list of events, or as a queue wraps them: each one as text in a record. */
static struct str write_body(struct arena *a, const struct parcel *parcel, bool is_wrapped)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, BODY_TEXT_MAX);
	buf_add_text(&b, is_wrapped ? "{\"Records\":[" : "[");
	for (int i = 0; i < parcel->count; i++) {
		struct str event = write_event(a, parcel->numbers[i]);

		if (i)
			buf_add_char(&b, ',');
		if (!is_wrapped) {
			buf_add_str(&b, event);
			continue;
		}
		o = JSON_OUT(&b);
		json_open_object(&o);
		json_put_str(&o, "body", event);
		json_close_object(&o);
	}
	buf_add_text(&b, is_wrapped ? "]}" : "]");
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

static void send(struct sim_node *n, const struct parcel *parcel)
{
	struct sim           *sim = n->sim;
	struct arena          a = { 0 };
	struct str            body = write_body(&a, parcel, chance_is(&sim->chance, 500));
	struct intake_record *records = NULL;
	struct err            e = { 0 };
	size_t                count = 0;
	enum rc               rc = intake_parse(STR("world"), body, &a, &records, &count, &e);

	if (rc || count != (size_t)parcel->count) {
		sim_broken(sim, "a body is read record by record", "%zu of %d: %s", count, parcel->count, e.msg);
		count = 0;
	}
	for (size_t i = 0; i < count; i++) {
		struct intake_call call = { .source = STR("world"), .record = &records[i] };

		err_clear(&e);
		rc = node_run(n, intake_store, &call, &a, &e);
		sim_trace(sim, n, "outside sends event %d: %s", parcel->numbers[i],
		          rc                                       ? e.msg
		          : records[i].verdict == INTAKE_ACCEPTED  ? "accepted"
		          : records[i].verdict == INTAKE_DUPLICATE ? "duplicate"
		                                                   : "rejected");
		note_verdict(sim, parcel->numbers[i], rc, &records[i]);
	}
	arena_fini(&a);
}

/* Any event that is new, not acknowledged yet, or sent before. */
static int choose(struct sim *sim)
{
	struct outside *o = sim->outside;
	int             open, again;

	skip_closed(sim);
	open = o->sent - o->first_open;
	if (sim_fault(sim, SIM_EVENT_BAD, sim->profile.outside / 4))
		return BAD;
	again = o->sent ? (int)chance_below(&sim->chance, o->sent) : BAD;
	if (again != BAD && sim_now(sim) < o->sent_ms[again] + REPEAT_MS &&
	    sim_fault(sim, SIM_EVENT_REPEATED, sim->profile.outside))
		return again;
	if (open >= OPEN_MAX || o->sent == EVENTS_MAX)
		return open ? o->first_open : BAD;
	if (open && !sim_fault(sim, SIM_EVENT_REORDERED, sim->profile.outside))
		return o->first_open;
	o->sent_ms[o->sent] = sim_now(sim);
	return o->sent++;
}

void outside_send(struct sim_node *n)
{
	struct sim   *sim = n->sim;
	struct parcel parcel = { .count = (int)chance_from_to(&sim->chance, 1, BODY_EVENTS_MAX) };

	for (int i = 0; i < parcel.count; i++)
		parcel.numbers[i] = choose(sim);
	send(n, &parcel);
}

bool outside_send_rest(struct sim_node *n)
{
	struct outside *o = n->sim->outside;

	skip_closed(n->sim);
	if (o->first_open == o->sent)
		return false;
	send(n, &(struct parcel){ .numbers = { o->first_open }, .count = 1 });
	return !n->sim->has_failed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_kernel.c - events, queues and timers on the memory store, with a clock that the test moves. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "kernel/event.h"
#include "kernel/timer.h"
#include "kernel_rig.h"
#include "service/broker/records.h"
#include "store/session.h"

enum { HEARD_MAX = 64 };

/* What handlers and calls have heard, in order. */
struct heard {
	char list[HEARD_MAX][160];
	int  count;
	int  echoes;     /* so often a handler answers a "ThingAsked" with one more event of the same subject */
	char poison[64]; /* subjects that begin with this fail */
	int  calls;
};

static void hear(struct heard *h, const struct delivery *d)
{
	CHECK(h->count < HEARD_MAX);
	snprintf(h->list[h->count++], sizeof(h->list[0]), "%.*s %.*s %.*s", STR_ARG(d->event.type),
	         STR_ARG(d->event.subject), STR_ARG(d->event.detail));
}

static bool is_poisoned(const struct heard *h, const struct delivery *d)
{
	return h->poison[0] && str_starts_with(d->event.subject, str_from(h->poison));
}

/* Into the lane from which it comes. */
static enum rc echo(struct session *s, struct heard *h, const struct delivery *d, struct err *e)
{
	struct event event = { .type = d->event.type, .subject = d->event.subject };

	if (h->echoes <= 0)
		return RC_OK;
	h->echoes--;
	event.detail = str_format(session_arena(s), "{\"echo\":%d}", h->echoes);
	return session_emit(s, &event, e);
}

/* Leaves a mark in the store as well: a fact with the event's id, of which the store takes none when the subject is
 * "fat". */
static enum rc handle_event(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	static const char fat[2 * ERROR_MAX];
	struct heard     *h = arg;
	struct fact       fact = { 0 };
	enum rc           rc = session_get(s, &fact_type, d->event.id, &fact, NULL);

	CHECK(!rc || rc == RC_NOT_FOUND);
	fact.name = d->event.id;
	fact.value++;
	if (str_eq(d->event.subject, STR("fat")))
		fact.text = str_of(fat, sizeof(fat));
	session_put(s, &fact_type, &fact);
	if (is_poisoned(h, d))
		return err_set(e, RC_INVALID, "this one is poison");
	hear(h, d);
	return str_eq(d->event.type, STR("ThingAsked")) ? echo(s, h, d, e) : RC_OK;
}

static enum rc settle_with_echo(struct session *s, const struct call *c, struct err *e)
{
	return echo(s, c->arg, c->delivery, e);
}

static enum rc call_out(struct call *c, struct err *e)
{
	struct heard *h = c->arg;

	h->calls++;
	if (str_eq(c->delivery->event.subject, STR("mute")))
		return RC_UNAVAILABLE;
	if (is_poisoned(h, c->delivery))
		return err_set(e, RC_UNAVAILABLE, "far side is down");
	hear(h, c->delivery);
	return RC_OK;
}

struct rig {
	struct kernel_rig base;
	struct heard      inside, outside;
	struct queue      queues[2];
	struct route      routes[2];
};

static void prepare_rig(struct rig *r)
{
	*r = (struct rig){ 0 };
	r->queues[0] = (struct queue){ .name = "inside", .handle = handle_event, .arg = &r->inside };
	r->queues[1] = (struct queue){ .name = "outside", .call = call_out, .arg = &r->outside };
	r->routes[0] = (struct route){ "Thing*", "inside" };
	r->routes[1] = (struct route){ "ThingSold", "outside" };
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 2, .routes = r->routes, .route_count = 2
	};
}

static void open_rig(struct rig *r)
{
	prepare_rig(r);
	rig_open(&r->base);
}

/* One in which only the queue that calls out hears of anything. */
static void open_outside(struct rig *r)
{
	prepare_rig(r);
	r->routes[0].pattern = "Nothing";
	rig_open(&r->base);
}

struct emission {
	const char *type, *subject;
	int         number;
	bool        fails;
};

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	struct emission *m = arg;
	struct event     event = { .type = str_from(m->type),
		                   .subject = str_from(m->subject),
		                   .actor = STR("admin"),
		                   .detail = str_format(session_arena(s), "{\"n\":%d}", m->number) };
	enum rc          rc = session_emit(s, &event, e);

	return rc ? rc : m->fails ? err_set(e, RC_CONFLICT, "changed my mind") : RC_OK;
}

static void emit_one(struct rig *r, const char *type, const char *subject, int number)
{
	rig_run(&r->base, emit, &(struct emission){ type, subject, number, false });
}

struct counted {
	const struct record_type *type;
	int64_t                   count;
};

static enum rc count_all(struct session *s, void *arg, struct err *e)
{
	struct counted *c = arg;

	return session_count(s, c->type, QUERY_ALL, value_int(0), &c->count, e);
}

static int64_t count_records(struct rig *r, const struct record_type *type)
{
	struct counted c = { .type = type };

	rig_run(&r->base, count_all, &c);
	return c.count;
}

static bool has_heard(const struct heard *h, int at, const char *text)
{
	if (at < h->count && strcmp(h->list[at], text) == 0)
		return true;
	print_error("heard %d: %s\n", at, at < h->count ? h->list[at] : "nothing");
	return false;
}

TEST(an_event_reaches_the_queues_of_its_routes_and_no_other)
{
	struct rig r;

	open_rig(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	emit_one(&r, "ThingMade", "thing/1", 2);
	emit_one(&r, "Other", "thing/1", 3);
	rig_turn(&r.base);
	CHECK(r.inside.count == 2);
	CHECK(has_heard(&r.inside, 0, "ThingSold thing/1 {\"n\":1}"));
	CHECK(has_heard(&r.inside, 1, "ThingMade thing/1 {\"n\":2}"));
	CHECK(r.outside.count == 1);
	CHECK(has_heard(&r.outside, 0, "ThingSold thing/1 {\"n\":1}"));
	CHECK(count_records(&r, &event_type) == 3);
	CHECK(count_records(&r, &lane_type) == 0);
	CHECK(count_records(&r, &waiting_type) == 0);
	rig_close(&r.base);
}

TEST(a_transaction_that_fails_has_told_nobody)
{
	struct rig r;

	open_rig(&r);
	CHECK(rig_try(&r.base, emit, &(struct emission){ "ThingSold", "thing/1", 1, true }, NULL) == RC_CONFLICT);
	CHECK(count_records(&r, &event_type) == 0);
	CHECK(count_records(&r, &lane_type) == 0);
	CHECK(rig_turn(&r.base) == 0);
	rig_close(&r.base);
}

TEST(a_subject_is_told_in_order_also_after_failures)
{
	struct rig r;

	open_rig(&r);
	snprintf(r.outside.poison, sizeof(r.outside.poison), "thing/1");
	for (int i = 1; i <= 4; i++)
		emit_one(&r, "ThingSold", "thing/1", i);
	rig_turn(&r.base);
	CHECK(r.outside.count == 0);
	CHECK(r.outside.calls == 1);
	r.outside.poison[0] = 0;
	rig_pass(&r.base, 60000);
	CHECK(r.outside.count == 4);
	CHECK(has_heard(&r.outside, 0, "ThingSold thing/1 {\"n\":1}"));
	CHECK(has_heard(&r.outside, 3, "ThingSold thing/1 {\"n\":4}"));
	CHECK(count_records(&r, &dead_type) == 0);
	rig_close(&r.base);
}

TEST(a_poisoned_subject_dies_after_its_tries_and_holds_up_nobody)
{
	struct rig r;

	open_rig(&r);
	snprintf(r.inside.poison, sizeof(r.inside.poison), "thing/bad");
	emit_one(&r, "ThingMade", "thing/bad", 1);
	emit_one(&r, "ThingMade", "thing/good", 2);
	rig_turn(&r.base);
	CHECK(r.inside.count == 1);
	CHECK(has_heard(&r.inside, 0, "ThingMade thing/good {\"n\":2}"));
	CHECK(count_records(&r, &dead_type) == 0);
	rig_pass(&r.base, 600000);
	CHECK(count_records(&r, &dead_type) == 1);
	CHECK(count_records(&r, &lane_type) == 0);
	CHECK(count_records(&r, &fact_type) == 1); /* what a refused handler wrote is not there */
	rig_close(&r.base);
}

static enum rc first_dead(struct session *s, void *arg, struct err *e)
{
	struct dead_list l = { .limit = 10 };
	enum rc          rc = dead_list(s, &l, e);

	CHECK(!rc && l.page.count == 1);
	record_copy(&dead_type, arg, page_record(&l.page, &dead_type, 0), session_arena(s));
	return RC_OK;
}

static struct dead bury_one(struct rig *r)
{
	struct dead dead;

	snprintf(r->inside.poison, sizeof(r->inside.poison), "thing/bad");
	emit_one(r, "ThingMade", "thing/bad", 1);
	rig_pass(&r->base, 600000);
	rig_run(&r->base, first_dead, &dead);
	return dead;
}

static enum rc read_a_fact(struct session *s, const struct delivery *d UNUSED, void *arg, struct err *e)
{
	struct fact fact;
	bool        is_there;
	enum rc     rc = session_find(s, &fact_type, STR("a fact"), &fact, &is_there, e);

	*(int *)arg += rc == RC_OK;
	return rc;
}

/* Each failed read was a try, and a store out of reach for some seconds made dead letters. */
TEST(what_the_store_cannot_read_for_a_handler_is_no_try)
{
	struct rig        r;
	struct fault_plan faults = { .next = FAULT_READ, .read = 3 }; /* behind the lane and the event */
	int               done = 0;

	prepare_rig(&r);
	r.queues[0] = (struct queue){ .name = "inside", .handle = read_a_fact, .arg = &done };
	r.base.faults = &faults;
	rig_open(&r.base);
	emit_one(&r, "ThingMade", "thing/1", 1);
	faults.count = 20;
	rig_pass(&r.base, 600000);
	CHECK(faults.injected > 3 && faults.count == 0 && done == 1);
	CHECK(count_records(&r, &dead_type) == 0 && count_records(&r, &lane_type) == 0);
	rig_close(&r.base);
}

TEST(what_the_store_does_not_take_from_a_handler_is_given_up_too)
{
	struct rig  r;
	struct dead dead;

	open_rig(&r);
	emit_one(&r, "ThingMade", "fat", 1);
	rig_pass(&r.base, 600000);
	CHECK(count_records(&r, &lane_type) == 0);
	CHECK(count_records(&r, &fact_type) == 0);
	rig_run(&r.base, first_dead, &dead);
	CHECK(dead.tries == 3);
	CHECK(str_starts_with(dead.error, STR("fact.text has")));
	rig_close(&r.base);
}

TEST(a_dead_letter_has_the_last_error_and_the_whole_payload)
{
	struct rig                  r;
	struct dead                 dead;
	CLEANUP(json_freep) json_t *event = NULL;

	open_rig(&r);
	dead = bury_one(&r);
	CHECK(str_eq(dead.queue, STR("inside")));
	CHECK(str_eq(dead.error, STR("this one is poison")));
	CHECK(dead.tries == 3);
	CHECK(json_parse(dead.event, &event, NULL) == RC_OK);
	CHECK(json_integer_value(json_object_get(json_object_get(event, "detail"), "n")) == 1);
	CHECK(strcmp(json_string_value(json_object_get(event, "detail-type")), "ThingMade") == 0);
	rig_close(&r.base);
}

TEST(a_replayed_dead_letter_is_delivered_and_audited)
{
	struct rig       r;
	struct dead      dead;
	struct dead_call call = { .actor = STR("admin") };

	open_rig(&r);
	dead = bury_one(&r);
	call.id = dead.id;
	r.inside.poison[0] = 0;
	rig_run(&r.base, dead_replay, &call);
	rig_turn(&r.base);
	CHECK(has_heard(&r.inside, 0, "ThingMade thing/bad {\"n\":1}"));
	CHECK(count_records(&r, &dead_type) == 0);
	CHECK(count_records(&r, &event_type) == 3); /* made, died, replayed */
	CHECK(rig_try(&r.base, dead_replay, &call, NULL) == RC_NOT_FOUND);
	rig_close(&r.base);
}

TEST(a_dead_letter_can_be_replayed_when_its_event_is_too_old_for_the_log)
{
	struct rig         r;
	struct dead        dead;
	struct dead_call   call = { .actor = STR("admin") };
	struct event_prune prune;

	open_rig(&r);
	dead = bury_one(&r);
	prune.before_ms = r.base.clock.test_ms + 1;
	rig_run(&r.base, event_prune, &prune);
	CHECK(prune.removed == 2);
	call.id = dead.id;
	rig_run(&r.base, dead_replay, &call); /* it dies once more, and is whole all the same */
	rig_pass(&r.base, 600000);
	rig_run(&r.base, first_dead, &dead);
	call.id = dead.id;
	r.inside.poison[0] = 0;
	rig_run(&r.base, dead_replay, &call);
	rig_turn(&r.base);
	CHECK(has_heard(&r.inside, 0, "ThingMade thing/bad {\"n\":1}"));
	rig_close(&r.base);
}

static enum rc emit_too_much(struct session *s, void *arg, struct err *e)
{
	static const char text[64];
	struct event      event = { .type = STR("ThingMade"), .subject = STR("thing/1") };
	struct buf        b;

	(void)arg;
	buf_init(&b, sizeof(text) - 1);
	buf_add(&b, text, sizeof(text));
	event.detail = event_detail(&b, session_arena(s));
	buf_fini(&b);
	return session_emit(s, &event, e);
}

TEST(a_detail_that_did_not_fit_is_refused_and_nothing_is_written)
{
	struct rig r;
	struct err e = { 0 };

	open_rig(&r);
	CHECK(rig_try(&r.base, emit_too_much, NULL, &e) == RC_TOO_LARGE);
	CHECK(strstr(e.msg, "ThingMade about thing/1"));
	CHECK(count_records(&r, &event_type) == 0);
	rig_close(&r.base);
}

/* As somebody could have edited it. */
static enum rc swell_dead(struct session *s, void *arg, struct err *e)
{
	struct dead dead = { .id = *(struct str *)arg };
	enum rc     rc = dead_get(s, &dead, e);

	dead.event = str_format(session_arena(s),
	                        "{\"id\":\"1\",\"detail-type\":\"ThingMade\",\"time\":\"2026-01-01T00:00:00Z\","
	                        "\"subject\":\"%0100000d\"}",
	                        1);
	if (!rc)
		session_put(s, &dead_type, &dead);
	return rc;
}

TEST(a_stored_envelope_that_breaks_the_limits_of_an_event_is_refused)
{
	struct rig       r;
	struct dead      dead;
	struct dead_call call = { .actor = STR("admin") };
	struct err       e = { 0 };

	open_rig(&r);
	dead = bury_one(&r);
	call.id = dead.id;
	rig_run(&r.base, swell_dead, &call.id);
	CHECK(rig_try(&r.base, dead_replay, &call, &e) == RC_CORRUPT);
	CHECK(strstr(e.msg, "event.subject"));
	CHECK(count_records(&r, &dead_type) == 1);
	rig_close(&r.base);
}

TEST(a_dead_letter_is_dropped_only_with_a_reason)
{
	struct rig       r;
	struct dead      dead;
	struct dead_call call = { .actor = STR("admin") };

	open_rig(&r);
	dead = bury_one(&r);
	call.id = dead.id;
	CHECK(rig_try(&r.base, dead_drop, &call, NULL) == RC_INVALID);
	CHECK(count_records(&r, &dead_type) == 1);
	call.reason = STR("made up");
	rig_run(&r.base, dead_drop, &call);
	CHECK(count_records(&r, &dead_type) == 0);
	CHECK(count_records(&r, &event_type) == 3);
	rig_close(&r.base);
}

/* The first work that is due. */
static struct work *take_work(struct rig *r)
{
	struct arena     a = { 0 };
	struct work_list list;
	struct work     *w = mem_new(struct work);

	CHECK(work_find(r->base.kernel, 10, (struct work_skips){ 0 }, &a, &list, NULL) == RC_OK);
	CHECK(list.count >= 1);
	work_copy(w, &list.items[0]);
	arena_fini(&a);
	return w;
}

static void drop_work(struct work *w)
{
	work_fini(w);
	free(w);
}

TEST(who_was_too_slow_does_not_settle_what_another_has_taken_over)
{
	struct rig   r;
	struct work *slow;

	open_outside(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	emit_one(&r, "ThingSold", "thing/1", 2);
	slow = take_work(&r);
	rig_run(&r.base, work_claim, slow);
	CHECK(slow->is_claimed);
	CHECK(rig_turn(&r.base) == 0); /* in flight: nobody else's */
	r.base.clock.test_ms += 121000;
	rig_turn(&r.base);
	CHECK(r.outside.count == 2);
	work_perform(slow);
	rig_run(&r.base, work_settle, slow);
	CHECK(slow->is_lost);
	CHECK(count_records(&r, &lane_type) == 0);
	drop_work(slow);
	rig_close(&r.base);
}

TEST(where_time_is_scaled_a_claim_lasts_as_long_on_the_machine)
{
	struct rig   r;
	struct work *w;

	open_outside(&r);
	r.base.clock.scale = 3600;
	emit_one(&r, "ThingSold", "thing/1", 1);
	w = take_work(&r);
	rig_run(&r.base, work_claim, w);
	CHECK(w->is_claimed);
	r.base.clock.test_ms += (int64_t)119000 * 3600;
	CHECK(rig_turn(&r.base) == 0);
	r.base.clock.test_ms += (int64_t)2000 * 3600;
	CHECK(rig_turn(&r.base) > 0);
	CHECK(r.outside.count == 1);
	drop_work(w);
	rig_close(&r.base);
}

TEST(a_call_that_ends_the_process_each_time_is_given_up)
{
	struct rig   r;
	struct work *last;

	open_outside(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	for (int i = 0; i < 3; i++) {
		struct work *w = take_work(&r);

		rig_run(&r.base, work_claim, w);
		CHECK(w->is_claimed);
		drop_work(w); /* and with it the process */
		r.base.clock.test_ms += 121000;
	}
	last = take_work(&r);
	rig_run(&r.base, work_claim, last);
	CHECK(!last->is_claimed && last->outcome && strcmp(last->outcome, "dead") == 0);
	drop_work(last);
	CHECK(r.outside.calls == 0);
	CHECK(count_records(&r, &dead_type) == 1);
	rig_close(&r.base);
}

/* A call that lasts for more than half of what its claim does, and asks twice whether to go on. */
struct slow {
	struct kernel_rig *rig;
	enum fault         fault; /* of the next transaction, which extends the claim */
	int                went_on;
};

static enum rc call_slowly(struct call *c, struct err *e UNUSED)
{
	struct slow *slow = c->arg;

	slow->rig->clock.test_ms += 61000;
	slow->rig->faults->next = slow->fault;
	slow->rig->faults->read = 1;
	slow->rig->faults->count = 1;
	for (int i = 0; i < 2; i++)
		slow->went_on += c->go_on(c);
	return RC_OK;
}

TEST(a_call_goes_on_when_the_store_fails_once_while_its_claim_is_extended)
{
	static const enum fault faults[] = { FAULT_READ, FAULT_BEFORE, FAULT_AFTER };

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		struct fault_plan plan = { 0 };
		struct rig        r;
		struct slow       slow = { .rig = &r.base, .fault = faults[i] };

		prepare_rig(&r);
		r.base.faults = &plan;
		r.queues[1].call = call_slowly;
		r.queues[1].arg = &slow;
		rig_open(&r.base);
		emit_one(&r, "ThingSold", "thing/1", 1);
		(void)rig_turn(&r.base);
		CHECK(plan.injected == 1);
		CHECK(slow.went_on == 2);
		CHECK(count_records(&r, &lane_type) == 0);
		rig_close(&r.base);
	}
}

TEST(a_call_that_fails_without_a_word_still_has_an_error)
{
	struct rig  r;
	struct dead dead;

	open_outside(&r);
	emit_one(&r, "ThingSold", "mute", 1);
	rig_pass(&r.base, 600000);
	rig_run(&r.base, first_dead, &dead);
	CHECK(str_eq(dead.error, STR("store or far side cannot serve now")));
	rig_close(&r.base);
}

/* --- timers --- */

static enum rc arm(struct session *s, void *arg, struct err *e)
{
	struct timer timer = *(struct timer *)arg;

	return session_arm(s, &timer, e);
}

static enum rc disarm(struct session *s, void *arg, struct err *e)
{
	return session_disarm(s, *(struct str *)arg, e);
}

static void arm_at(struct rig *r, const char *name, int64_t in_ms)
{
	rig_run(&r->base, arm,
	        &(struct timer){ .name = str_from(name),
	                         .type = STR("ThingDue"),
	                         .subject = str_from(name),
	                         .due_ms = r->base.clock.test_ms + in_ms,
	                         .detail = STR("{}") });
}

TEST(timers_fire_at_their_time_in_due_order_and_never_before)
{
	struct rig r;

	open_rig(&r);
	arm_at(&r, "b", 2000);
	arm_at(&r, "a", 1000);
	arm_at(&r, "c", 3000);
	r.base.clock.test_ms += 999;
	CHECK(rig_turn(&r.base) == 0);
	r.base.clock.test_ms += 1;
	rig_turn(&r.base);
	CHECK(r.inside.count == 1);
	CHECK(has_heard(&r.inside, 0, "ThingDue a {}"));
	rig_pass(&r.base, 5000);
	CHECK(r.inside.count == 3);
	CHECK(has_heard(&r.inside, 1, "ThingDue b {}"));
	CHECK(has_heard(&r.inside, 2, "ThingDue c {}"));
	CHECK(count_records(&r, &timer_type) == 0);
	rig_close(&r.base);
}

TEST(a_timer_that_is_set_anew_or_cancelled_does_not_fire_as_before)
{
	struct rig r;

	open_rig(&r);
	arm_at(&r, "later", 1000);
	arm_at(&r, "never", 1000);
	arm_at(&r, "later", 9000);
	rig_run(&r.base, disarm, &STR("never"));
	rig_run(&r.base, disarm, &STR("not there"));
	rig_pass(&r.base, 8000);
	CHECK(r.inside.count == 0);
	rig_pass(&r.base, 2000);
	CHECK(r.inside.count == 1);
	CHECK(has_heard(&r.inside, 0, "ThingDue later {}"));
	rig_close(&r.base);
}

TEST(a_timer_found_due_and_set_anew_before_it_fires_stays_armed)
{
	struct rig   r;
	struct work *w;

	open_rig(&r);
	arm_at(&r, "t", 1000);
	r.base.clock.test_ms += 1000;
	w = take_work(&r);
	arm_at(&r, "t", 60000);
	rig_run(&r.base, work_settle, w);
	CHECK(w->is_lost);
	CHECK(count_records(&r, &timer_type) == 1);
	CHECK(count_records(&r, &event_type) == 0);
	drop_work(w);
	rig_close(&r.base);
}

TEST(overdue_timers_fire_at_a_bounded_rate)
{
	struct rig r;
	char       name[16];

	r = (struct rig){ 0 };
	r.base.options.timers_per_sec = 10;
	rig_open(&r.base);
	for (int i = 0; i < 25; i++) {
		snprintf(name, sizeof(name), "t%02d", i);
		arm_at(&r, name, 1000);
	}
	r.base.clock.test_ms += 100000;
	CHECK(rig_turn(&r.base) == 10);
	r.base.clock.test_ms += 999;
	CHECK(rig_turn(&r.base) == 0);
	r.base.clock.test_ms += 1;
	CHECK(rig_turn(&r.base) == 10);
	r.base.clock.test_ms += 1000;
	CHECK(rig_turn(&r.base) == 5);
	rig_close(&r.base);
}

/* --- the log --- */

static size_t list_events(struct rig *r, struct event_list *l)
{
	rig_run(&r->base, event_list, l);
	return l->count;
}

TEST(the_log_is_queried_by_type_subject_actor_and_time)
{
	struct rig r;
	int64_t    middle;

	open_rig(&r);
	emit_one(&r, "ThingMade", "thing/1", 1);
	emit_one(&r, "ThingMade", "thing/2", 2);
	r.base.clock.test_ms += 5000;
	middle = r.base.clock.test_ms;
	emit_one(&r, "ThingSold", "thing/1", 3);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10 }) == 3);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .subject = STR("thing/1") }) == 2);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("ThingMade") }) == 2);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("Thing*") }) == 3);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .actor = STR("admin") }) == 3);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .actor = STR("nobody") }) == 0);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .since_ms = middle }) == 1);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .until_ms = middle }) == 2);
	CHECK(list_events(&r, &(struct event_list){
	                              .limit = 10, .subject = STR("thing/1"), .type = STR("ThingSold") }) == 1);
	rig_close(&r.base);
}

TEST(the_log_is_read_page_by_page_and_from_an_event_on)
{
	struct rig        r;
	struct event_list l = { .limit = 2, .is_newest_first = true };
	struct event_list after = { .limit = 10 };

	open_rig(&r);
	for (int i = 1; i <= 5; i++)
		emit_one(&r, "ThingMade", "thing/1", i);
	CHECK(list_events(&r, &l) == 2);
	CHECK(str_eq(l.events[0].detail, STR("{\"n\":5}")));
	l.cursor = l.next;
	CHECK(list_events(&r, &l) == 2);
	CHECK(str_eq(l.events[1].detail, STR("{\"n\":2}")));
	after.after_id = l.events[1].id;
	CHECK(list_events(&r, &after) == 3);
	CHECK(str_eq(after.events[0].detail, STR("{\"n\":3}")));
	l.cursor = l.next;
	CHECK(list_events(&r, &l) == 1);
	CHECK(l.next.n == 0);
	rig_close(&r.base);
}

TEST(ids_grow_also_when_the_clock_goes_back_and_after_a_restart)
{
	struct rig r;
	char       before[KERNEL_ID_SIZE], after[KERNEL_ID_SIZE];

	open_rig(&r);
	kernel_id(r.base.kernel, 1700000005000, before);
	for (int i = 0; i < 10000; i++) {
		kernel_id(r.base.kernel, 1700000000000, after);
		CHECK(strcmp(before, after) < 0);
		memcpy(before, after, sizeof(before));
	}
	r.base.clock.test_ms = 1800000000000;
	emit_one(&r, "ThingMade", "thing/1", 1);
	kernel_free(r.base.kernel);
	r.base.clock.test_ms = 1700000000000;
	r.base.kernel = kernel_new(&r.base.options);
	CHECK(kernel_prime(r.base.kernel, NULL) == RC_OK);
	kernel_id(r.base.kernel, r.base.clock.test_ms, after);
	CHECK(strcmp(after, "01a") > 0); /* 1800000000000 is 0x1a3185c5000 */
	rig_close(&r.base);
}

TEST(after_a_crash_of_the_only_node_its_claims_are_free_at_once)
{
	struct rig   r;
	struct work *w;

	open_outside(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	w = take_work(&r);
	rig_run(&r.base, work_claim, w);
	drop_work(w);
	CHECK(rig_turn(&r.base) == 0);
	CHECK(kernel_recover(r.base.kernel, NULL) == RC_OK);
	rig_turn(&r.base);
	CHECK(r.outside.count == 1);
	rig_close(&r.base);
}

static enum rc put_off(struct session *s, void *arg, struct err *e)
{
	struct query q = { .type = &lane_type, .index = QUERY_KEYS, .limit = 1 };
	struct page  page;
	struct lane *lane;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	CHECK(page.count == 1);
	lane = page_record(&page, &lane_type, 0);
	lane->due_ms = session_now(s).ms + *(const int64_t *)arg;
	session_put(s, &lane_type, lane);
	return RC_OK;
}

TEST(what_a_wrong_clock_has_put_off_for_a_day_is_due_again_and_a_back_off_is_not)
{
	static const struct {
		int64_t wait_ms;
		bool    is_due;
	} rows[] = { { 300000, false }, { 86400000, true } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t    wait_ms = rows[i].wait_ms;
		struct rig r;

		open_outside(&r);
		emit_one(&r, "ThingSold", "thing/1", 1);
		rig_run(&r.base, put_off, &wait_ms);
		CHECK(rig_turn(&r.base) == 0);
		rig_run(&r.base, queue_rearm, r.base.kernel);
		rig_turn(&r.base);
		CHECK(r.outside.count == rows[i].is_due);
		rig_close(&r.base);
	}
}

TEST(two_routes_to_one_queue_are_one_delivery)
{
	struct rig r;

	open_rig(&r);
	r.routes[1] = (struct route){ "ThingSold", "inside" };
	emit_one(&r, "ThingSold", "thing/1", 1);
	rig_turn(&r.base);
	CHECK(r.inside.count == 1);
	rig_close(&r.base);
}

TEST(routine_events_are_found_by_type_as_all_others_are)
{
	struct rig r;

	r = (struct rig){ 0 };
	r.base.options.routine = STR("ThingMade,Other*");
	rig_open(&r.base);
	emit_one(&r, "ThingMade", "thing/1", 1);
	emit_one(&r, "ThingSold", "thing/1", 2);
	emit_one(&r, "ThingMade", "thing/2", 3);
	emit_one(&r, "Otherwise", "thing/2", 4);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("ThingMade") }) == 2);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("ThingSold") }) == 1);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("Otherwise") }) == 1);
	CHECK(list_events(&r, &(struct event_list){ .limit = 10, .type = STR("Thing*") }) == 3);
	rig_close(&r.base);
}

TEST(who_was_too_slow_does_not_settle_what_another_has_in_hand)
{
	struct rig   r;
	struct work *slow, *other;

	open_outside(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	slow = take_work(&r);
	rig_run(&r.base, work_claim, slow);
	r.base.clock.test_ms += 121000;
	other = take_work(&r);
	rig_run(&r.base, work_claim, other);
	CHECK(other->is_claimed);
	work_perform(slow);
	rig_run(&r.base, work_settle, slow);
	CHECK(slow->is_lost && count_records(&r, &lane_type) == 1);
	work_perform(other);
	rig_run(&r.base, work_settle, other);
	CHECK(!other->is_lost && count_records(&r, &lane_type) == 0);
	drop_work(slow);
	drop_work(other);
	rig_close(&r.base);
}

/* --- to itself --- */

TEST(a_handler_may_emit_into_its_own_lane)
{
	struct rig r;

	open_rig(&r);
	r.inside.echoes = 2;
	emit_one(&r, "ThingAsked", "thing/1", 1);
	rig_turn(&r.base);
	CHECK(r.inside.count == 3 && has_heard(&r.inside, 1, "ThingAsked thing/1 {\"echo\":1}"));
	CHECK(has_heard(&r.inside, 2, "ThingAsked thing/1 {\"echo\":0}"));
	CHECK(count_records(&r, &lane_type) == 0 && count_records(&r, &waiting_type) == 0);
	rig_close(&r.base);
}

TEST(what_settles_a_call_may_emit_into_its_own_lane)
{
	struct rig r;

	open_rig(&r);
	r.queues[1].settle = settle_with_echo;
	r.outside.echoes = 1;
	emit_one(&r, "ThingSold", "thing/1", 1);
	emit_one(&r, "ThingSold", "thing/1", 2);
	rig_turn(&r.base);
	CHECK(r.outside.count == 3 && has_heard(&r.outside, 1, "ThingSold thing/1 {\"n\":2}"));
	CHECK(has_heard(&r.outside, 2, "ThingSold thing/1 {\"echo\":0}"));
	CHECK(count_records(&r, &lane_type) == 0 && count_records(&r, &waiting_type) == 0);
	rig_close(&r.base);
}

/* --- at once --- */

static void open_eager(struct rig *r)
{
	open_rig(r);
	rig_close(&r->base);
	r->base = (struct kernel_rig){ .options = { .queues = r->queues,
		                                    .queue_count = 2,
		                                    .routes = r->routes,
		                                    .route_count = 2,
		                                    .is_eager = true } };
	rig_open(&r->base);
}

TEST(a_handler_may_run_with_the_commit_of_its_event)
{
	struct rig r;

	open_eager(&r);
	emit_one(&r, "ThingSold", "thing/1", 1);
	CHECK(r.inside.count == 1 && has_heard(&r.inside, 0, "ThingSold thing/1 {\"n\":1}"));
	CHECK(count_records(&r, &fact_type) == 1);
	CHECK(count_records(&r, &lane_type) == 1 && r.outside.count == 0); /* a call is never made inside */
	CHECK(rig_turn(&r.base) == 1);
	CHECK(r.inside.count == 1 && r.outside.count == 1);
	rig_close(&r.base);
}

TEST(one_that_refuses_at_once_has_all_its_tries_and_leaves_nothing)
{
	struct rig r;

	open_eager(&r);
	snprintf(r.inside.poison, sizeof(r.inside.poison), "thing/1");
	emit_one(&r, "ThingMade", "thing/1", 1);
	CHECK(count_records(&r, &event_type) == 1 && count_records(&r, &fact_type) == 0);
	CHECK(count_records(&r, &lane_type) == 1);
	emit_one(&r, "ThingMade", "thing/1", 2);
	emit_one(&r, "ThingMade", "thing/2", 3);
	CHECK(r.inside.count == 1 && has_heard(&r.inside, 0, "ThingMade thing/2 {\"n\":3}"));
	r.inside.poison[0] = '\0';
	emit_one(&r, "ThingMade", "thing/1", 4); /* there is something before it */
	CHECK(r.inside.count == 1);
	rig_turn(&r.base);
	CHECK(has_heard(&r.inside, 1, "ThingMade thing/1 {\"n\":1}") &&
	      has_heard(&r.inside, 2, "ThingMade thing/1 {\"n\":2}"));
	CHECK(has_heard(&r.inside, 3, "ThingMade thing/1 {\"n\":4}"));
	CHECK(count_records(&r, &dead_type) == 0 && count_records(&r, &lane_type) == 0);
	rig_close(&r.base);
}

TEST(what_the_store_does_not_take_from_a_handler_fails_the_handler_alone)
{
	struct rig r;

	open_eager(&r);
	emit_one(&r, "ThingMade", "fat", 1);
	CHECK(count_records(&r, &event_type) == 1 && count_records(&r, &lane_type) == 1);
	CHECK(count_records(&r, &fact_type) == 0);
	rig_close(&r.base);
}

TEST(what_is_heard_outside_waits_until_its_event_is_durable)
{
	struct rig r;

	open_eager(&r);
	r.queues[0].is_heard = true;
	emit_one(&r, "ThingMade", "thing/1", 1);
	CHECK(r.inside.count == 0);
	rig_turn(&r.base);
	CHECK(r.inside.count == 1);
	rig_close(&r.base);
}

TEST(a_transaction_that_fails_has_run_no_handler)
{
	struct rig r;

	open_eager(&r);
	CHECK(rig_try(&r.base, emit, &(struct emission){ "ThingMade", "thing/1", 1, true }, NULL) == RC_CONFLICT);
	CHECK(r.inside.count == 0 && count_records(&r, &fact_type) == 0);
	rig_close(&r.base);
}

TEST(a_handler_that_runs_at_once_may_emit_into_its_own_lane)
{
	struct rig r;

	open_eager(&r);
	r.inside.echoes = 2;
	emit_one(&r, "ThingAsked", "thing/1", 1);
	rig_turn(&r.base);
	CHECK(r.inside.count == 3 && has_heard(&r.inside, 2, "ThingAsked thing/1 {\"echo\":0}"));
	CHECK(count_records(&r, &lane_type) == 0 && count_records(&r, &waiting_type) == 0);
	rig_close(&r.base);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_saga.c - sagas on the memory store, in a small world that fails when told to, and crashes between stages. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kernel/event.h"
#include "kernel/saga.h"
#include "kernel_rig.h"
#include "store/session.h"

enum { STEPS = 3, LEASE_MS = 60000, HOUR_MS = 3600000, TRIES = 3, DEADLINE_MS = 2 * HOUR_MS };

/* --- the world --- */

struct world {
	int     effects[STEPS]; /* how often its effect is there */
	int     fails[STEPS];   /* so many acts from now fail, */
	enum rc rc[STEPS];      /* with this; */
	bool    happens[STEPS]; /* but have their effect */
	int     undo_fails[STEPS];
	enum rc undo_rc;
	enum rc check_rc;
	int     end_refusals; /* so many from now */
	enum rc end_rc;
	int     ends[SAGA_STATE_COUNT];
	char    log[512]; /* "+0 ?1 -0": act, check, undo */
	char    keys[STEPS][64];
	bool    gives_bad_data;
};

static void note(struct world *w, char what, int64_t step)
{
	size_t n = strlen(w->log);

	CHECK(n + 4 < sizeof(w->log));
	(void)snprintf(w->log + n, sizeof(w->log) - n, "%s%c%d", n ? " " : "", what, (int)step); /* fits */
}

static enum rc act(struct saga_call *c, struct err *e)
{
	struct world *w = c->world;
	int64_t       i = c->saga->step;
	bool          fails = w->fails[i] > 0;

	note(w, '+', i);
	CHECK(!w->keys[i][0] || str_eq(str_from(w->keys[i]), c->key));
	(void)snprintf(w->keys[i], sizeof(w->keys[i]), "%.*s", STR_ARG(c->key)); /* fits */
	if (!fails || w->happens[i])
		w->effects[i]++;
	if (fails) {
		w->fails[i]--;
		return err_set(e, w->rc[i], "act %d says no", (int)i);
	}
	c->data = w->gives_bad_data ? STR("nonsense") : str_format(c->arena, "{\"last\":%d}", (int)i);
	return RC_OK;
}

static enum rc check(struct saga_call *c, bool *ret, struct err *e)
{
	struct world *w = c->world;

	note(w, '?', c->saga->step);
	*ret = w->effects[c->saga->step] > 0;
	return w->check_rc ? err_set(e, w->check_rc, "nobody knows") : RC_OK;
}

static enum rc undo(struct saga_call *c, struct err *e)
{
	struct world *w = c->world;
	int64_t       i = c->saga->step;

	note(w, '-', i);
	if (w->undo_fails[i] > 0) {
		w->undo_fails[i]--;
		return err_set(e, w->undo_rc, "undo %d says no", (int)i);
	}
	w->effects[i] = 0;
	return RC_OK;
}

static struct world *world_of(struct session *s);

static enum rc on_end(struct session *s, const struct saga *saga, struct err *e)
{
	struct world *w = world_of(s);
	struct fact   fact = { 0 };
	enum rc       rc = session_find_or_new(s, &fact_type, STR("ends"), &fact, e);

	if (rc)
		return rc;
	fact.value++;
	session_put(s, &fact_type, &fact);
	if (w->end_refusals > 0) {
		w->end_refusals--;
		return err_set(e, w->end_rc, "the lease says no");
	}
	w->ends[saga->state]++;
	return RC_OK;
}

/* --- the desk --- */

struct desk {
	struct kernel_rig       rig;
	struct world            world;
	struct saga_step        steps[STEPS];
	struct saga_kind        kind;
	const struct saga_kind *kinds[1];
};

static struct world *world_of(struct session *s)
{
	return kernel_saga(kernel_of(s), STR("three"))->world;
}

static void desk_open_with(struct desk *d, struct fault_plan *faults)
{
	static const char *const names[STEPS] = { "first", "second", "third" };

	*d = (struct desk){ .rig = { .faults = faults, .options = { .lease_ms = LEASE_MS } } };
	for (int i = 0; i < STEPS; i++)
		d->steps[i] = (struct saga_step){
			.name = names[i], .act = act, .check = check, .undo = undo, .tries = TRIES
		};
	d->kind = (struct saga_kind){ .name = "three",
		                      .steps = d->steps,
		                      .step_count = STEPS,
		                      .deadline_ms = DEADLINE_MS,
		                      .on_end = on_end,
		                      .world = &d->world };
	d->kinds[0] = &d->kind;
	d->rig.options.sagas = d->kinds;
	d->rig.options.saga_count = 1;
	rig_open(&d->rig);
}

static void desk_open(struct desk *d)
{
	desk_open_with(d, NULL);
}

static void desk_close(struct desk *d)
{
	rig_close(&d->rig);
}

struct start {
	const char *kind;
	struct str  id, subject, input, actor;
};

static enum rc start(struct session *s, void *arg, struct err *e)
{
	const struct start *a = arg;

	return session_start(s, a->kind, a->id, a->subject, a->input, a->actor, e);
}

static void begin(struct desk *d)
{
	struct start a = { "three", STR("s1"), STR("lease/1"), STR("{\"who\":\"ann\"}"), STR("admin") };

	rig_run(&d->rig, start, &a);
}

static struct saga now_is(struct desk *d)
{
	struct saga saga = { .id = STR("s1") };

	rig_run(&d->rig, saga_get, &saga);
	return saga;
}

static bool is_marked(struct desk *d, enum saga_state state, const char *marks)
{
	struct saga saga = now_is(d);

	return saga.state == state && str_eq(saga.marks, str_from(marks));
}

static size_t count_events(struct desk *d, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = 100 };

	rig_run(&d->rig, event_list, &l);
	return l.count;
}

/* The one event of this type. */
static struct event told(struct desk *d, const char *type)
{
	struct event_list l = { .type = str_from(type), .limit = 2 };

	rig_run(&d->rig, event_list, &l);
	CHECK(l.count == 1);
	CHECK(str_eq(l.events[0].subject, STR("lease/1")));
	return l.events[0];
}

static bool effects_are(const struct desk *d, int a, int b, int c)
{
	return d->world.effects[0] == a && d->world.effects[1] == b && d->world.effects[2] == c;
}

/* --- work by hand --- */

/* The saga's work when it is due; to be dropped with drop(). */
static struct work *find(struct kernel *k)
{
	struct arena     a = { 0 };
	struct work_list list;
	struct work     *found = NULL;

	CHECK(work_find(k, 10, (struct work_skips){ 0 }, &a, &list, NULL) == RC_OK);
	if (list.count) {
		found = mem_new(struct work);
		work_copy(found, &list.items[0]);
	}
	arena_fini(&a);
	return found;
}

static void drop(struct work *w)
{
	work_fini(w);
	free(w);
}

static struct work *claim(struct desk *d, struct kernel *k)
{
	struct work *w = find(k);

	CHECK(w != NULL);
	rig_run(&d->rig, work_claim, w);
	CHECK(w->is_claimed);
	return w;
}

/* Run so many stages, then crash. True when there was nothing left to crash. */
static bool run_and_crash(struct desk *d, int stages)
{
	struct work *w = find(d->rig.kernel);
	int          stage = 0;

	if (!w)
		return true;
	while (stages-- > 0) {
		if (stage == 0) {
			rig_run(&d->rig, work_claim, w);
		} else if (stage % 2) {
			work_perform(w);
		} else {
			rig_run(&d->rig, work_settle, w);
			if (!w->has_more)
				break;
		}
		stage++;
	}
	drop(w);
	d->rig.clock.test_ms += 3 * LEASE_MS;
	return stages >= 0;
}

/* --- forward --- */

TEST(a_saga_does_its_steps_in_order_and_is_done)
{
	struct desk  d;
	struct saga  saga;
	struct event event;

	desk_open(&d);
	begin(&d);
	CHECK(is_marked(&d, SAGA_RUNNING, "..."));
	CHECK(rig_turn(&d.rig) == 1);
	saga = now_is(&d);
	CHECK(saga.state == SAGA_DONE && str_eq(saga.marks, STR("ddd")) && saga.ended_ms == d.rig.clock.test_ms);
	CHECK(str_eq(saga.data, STR("{\"last\":2}")) && saga.owner.n == 0 && saga.leftovers.n == 0);
	CHECK(strcmp(d.world.log, "+0 +1 +2") == 0 && effects_are(&d, 1, 1, 1));
	CHECK(strcmp(d.world.keys[1], "s1/second") == 0);
	CHECK(d.world.ends[SAGA_DONE] == 1);
	event = told(&d, "SagaStarted");
	CHECK(str_eq(event.actor, STR("admin")) && text_has(event.detail, "\"step\":\"first\""));
	event = told(&d, "SagaDone");
	CHECK(text_has(event.detail, "\"sagaId\":\"s1\",\"kind\":\"three\"") && str_eq(event.actor, STR("saga/three")));
	desk_close(&d);
}

TEST(a_step_that_fails_for_now_is_tried_again_later)
{
	struct desk d;
	struct saga saga;

	desk_open(&d);
	begin(&d);
	d.world.fails[1] = 2;
	d.world.rc[1] = RC_UNAVAILABLE;
	rig_turn(&d.rig);
	saga = now_is(&d);
	CHECK(is_marked(&d, SAGA_RUNNING, "di.") && saga.tries == 1 && saga.owner.n == 0 && saga.step == 1);
	CHECK(str_eq(saga.last_error, STR("act 1 says no")));
	CHECK(saga.due_ms >= d.rig.clock.test_ms && saga.due_ms <= d.rig.clock.test_ms + 1000);
	rig_pass(&d.rig, 60000);
	CHECK(is_marked(&d, SAGA_DONE, "ddd") && effects_are(&d, 1, 1, 1));
	CHECK(strcmp(d.world.log, "+0 +1 ?1 +1 ?1 +1 +2") == 0);
	desk_close(&d);
}

TEST(after_a_time_out_the_check_finds_what_happened)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.fails[1] = 1;
	d.world.rc[1] = RC_TIMEOUT;
	d.world.happens[1] = true;
	rig_pass(&d.rig, 60000);
	CHECK(strcmp(d.world.log, "+0 +1 ?1 +2") == 0 && effects_are(&d, 1, 1, 1));
	CHECK(is_marked(&d, SAGA_DONE, "ddd"));
	desk_close(&d);
}

TEST(a_check_that_cannot_tell_uses_up_tries_and_nothing_else)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.fails[1] = 1;
	d.world.rc[1] = RC_TIMEOUT;
	d.world.check_rc = RC_DENIED;
	rig_pass(&d.rig, 600000);
	CHECK(strcmp(d.world.log, "+0 +1 ?1 ?1 -1 -0") == 0);
	CHECK(is_marked(&d, SAGA_UNDONE, "xx.") && effects_are(&d, 0, 0, 0));
	CHECK(str_eq(now_is(&d).reason,
	             STR("step second failed 3 times: cannot tell whether it has happened: nobody knows")));
	desk_close(&d);
}

TEST(a_step_that_gives_back_no_object_is_undone)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.gives_bad_data = true;
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_UNDONE, "x..") && effects_are(&d, 0, 0, 0) && text_has(now_is(&d).reason, "data"));
	CHECK(str_eq(now_is(&d).data, STR("{}")));
	desk_close(&d);
}

/* A step's call may last 30 s; of a minute's lease, more than that must be left: see saga_run.c. */
TEST(a_call_is_not_made_when_the_lease_could_run_out_under_it)
{
	static const struct {
		const char *label;
		int64_t     wall_ms, mono_ms;
		bool        is_made;
	} cases[] = {
		{ "enough of the lease is left", 27500, 27500, true },
		{ "less than that is left", 27501, 27501, false },
		{ "nothing is left", 3 * LEASE_MS, 3 * LEASE_MS, false },
		{ "nothing is left, and the clock was set back", -LEASE_MS, 3 * LEASE_MS, false },
		{ "the clock was set forward", 3 * LEASE_MS, 0, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct desk  d;
		struct work *w;

		CASE(cases[i].label);
		desk_open(&d);
		begin(&d);
		w = claim(&d, d.rig.kernel);
		d.rig.clock.test_ms += cases[i].wall_ms;
		d.rig.clock.test_mono_ms += cases[i].mono_ms;
		work_perform(w);
		CHECK(w->has_failed == !cases[i].is_made && (d.world.log[0] != '\0') == cases[i].is_made);
		drop(w);
		desk_close(&d);
	}
}

/* --- crashes --- */

/* One crash after so many stages, and another after so many more; then all goes well. */
static bool crash_twice(struct desk *d, int first, int second)
{
	bool is_over = run_and_crash(d, first);

	(void)run_and_crash(d, second);
	rig_pass(&d->rig, HOUR_MS);
	return is_over;
}

TEST(a_crash_between_any_two_stages_leaves_every_effect_once)
{
	for (int second = 0; second < 8; second++)
		for (int first = 0, is_over = 0; !is_over; first++) {
			struct desk d;
			char        label[64];

			(void)snprintf(label, sizeof(label), "after %d and %d stages", first, second); /* fits */
			CASE(label);
			CHECK(first < 20);
			desk_open(&d);
			begin(&d);
			is_over = crash_twice(&d, first, second);
			CHECK(is_marked(&d, SAGA_DONE, "ddd") && effects_are(&d, 1, 1, 1));
			CHECK(d.world.ends[SAGA_DONE] == 1 && count_events(&d, "SagaDone") == 1);
			desk_close(&d);
		}
}

TEST(a_crash_on_the_way_back_leaves_nothing)
{
	for (int second = 0; second < 8; second++)
		for (int first = 0, is_over = 0; !is_over; first++) {
			struct desk d;
			char        label[64];

			(void)snprintf(label, sizeof(label), "after %d and %d stages", first, second); /* fits */
			CASE(label);
			CHECK(first < 30);
			desk_open(&d);
			begin(&d);
			d.world.fails[2] = 10;
			d.world.rc[2] = RC_DENIED;
			d.world.happens[2] = true;
			is_over = crash_twice(&d, first, second);
			CHECK(now_is(&d).state == SAGA_UNDONE || now_is(&d).state == SAGA_DONE);
			if (now_is(&d).state == SAGA_UNDONE)
				CHECK(is_marked(&d, SAGA_UNDONE, "xxx") && effects_are(&d, 0, 0, 0));
			else /* it crashed behind the effect, and the check found it */
				CHECK(effects_are(&d, 1, 1, 1));
			desk_close(&d);
		}
}

/* --- back --- */

TEST(a_failure_for_good_undoes_in_reverse_what_was_done)
{
	static const char *const logs[STEPS] = { "+0 -0", "+0 +1 -1 -0", "+0 +1 +2 -2 -1 -0" };
	static const char *const marks[STEPS] = { "x..", "xx.", "xxx" };

	for (int i = 0; i < STEPS; i++) {
		struct desk  d;
		struct event event;

		CASE(logs[i]);
		desk_open(&d);
		begin(&d);
		d.world.fails[i] = 1;
		d.world.rc[i] = RC_DENIED;
		d.world.happens[i] = i == 1;
		rig_turn(&d.rig);
		CHECK(is_marked(&d, SAGA_UNDONE, marks[i]) && effects_are(&d, 0, 0, 0));
		CHECK(strcmp(d.world.log, logs[i]) == 0 && d.world.ends[SAGA_UNDONE] == 1);
		event = told(&d, "SagaUndone");
		CHECK(text_has(event.detail, "says no") && text_has(now_is(&d).reason, d.steps[i].name));
		desk_close(&d);
	}
}

TEST(an_undo_that_fails_parks_the_saga_with_its_leftovers)
{
	struct desk  d;
	struct saga  saga;
	struct event event;

	desk_open(&d);
	begin(&d);
	d.world.fails[2] = 1;
	d.world.rc[2] = RC_DENIED;
	d.world.undo_fails[1] = 2 * TRIES;
	d.world.undo_rc = RC_UNAVAILABLE;
	rig_pass(&d.rig, HOUR_MS);
	saga = now_is(&d);
	CHECK(saga.state == SAGA_PARKED && saga.is_back == 1 && str_eq(saga.marks, STR("dux")));
	CHECK(str_eq(saga.leftovers, STR("[\"first\",\"second\"]")) &&
	      text_has(saga.reason, "second cannot be undone"));
	CHECK(d.world.ends[SAGA_PARKED] == 1);
	event = told(&d, "SagaParked");
	CHECK(text_has(event.detail, "\"leftovers\":[\"first\",\"second\"]") &&
	      text_has(event.detail, "\"step\":\"second\""));
	CHECK(strcmp(d.world.log, "+0 +1 +2 -2 -1 -1 -1 -1 -1 -1") == 0);
	desk_close(&d);
}

TEST(over_its_deadline_a_saga_goes_back)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.fails[1] = 1;
	d.world.rc[1] = RC_TIMEOUT;
	rig_turn(&d.rig);
	d.rig.clock.test_ms += DEADLINE_MS + 1;
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_UNDONE, "xx.") && strcmp(d.world.log, "+0 +1 -1 -0") == 0);
	CHECK(str_eq(now_is(&d).reason, STR("not done within 7200 s, at step second")));
	desk_close(&d);

	CASE("also when nobody came to begin it");
	desk_open(&d);
	begin(&d);
	d.rig.clock.test_ms += DEADLINE_MS + 1;
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_UNDONE, "...") && d.world.log[0] == '\0' && d.world.ends[SAGA_UNDONE] == 1);
	desk_close(&d);
}

TEST(a_step_that_ends_too_late_is_the_last_one)
{
	struct desk  d;
	struct work *w;

	desk_open(&d);
	begin(&d);
	w = claim(&d, d.rig.kernel);
	work_perform(w);
	d.rig.clock.test_ms += DEADLINE_MS + 1;
	rig_run(&d.rig, work_settle, w);
	CHECK(w->has_more && is_marked(&d, SAGA_UNDOING, "u.."));
	work_perform(w);
	rig_run(&d.rig, work_settle, w);
	CHECK(!w->has_more && is_marked(&d, SAGA_UNDONE, "x..") && strcmp(d.world.log, "+0 -0") == 0);
	drop(w);
	desk_close(&d);
}

/* --- whoever keeps the records may refuse the end --- */

static enum rc read_ends(struct session *s, void *arg, struct err *e)
{
	return session_get(s, &fact_type, STR("ends"), arg, e);
}

TEST(an_end_that_is_refused_for_now_is_tried_again)
{
	struct desk d;
	struct fact fact;

	desk_open(&d);
	begin(&d);
	d.world.end_refusals = 1;
	d.world.end_rc = RC_UNAVAILABLE;
	rig_pass(&d.rig, 60000);
	CHECK(is_marked(&d, SAGA_DONE, "ddd") && effects_are(&d, 1, 1, 1));
	CHECK(d.world.ends[SAGA_DONE] == 1 && count_events(&d, "SagaDone") == 1);
	rig_run(&d.rig, read_ends, &fact);
	CHECK(fact.value == 1); /* what was refused has left nothing */
	desk_close(&d);
}

/* Each failed read was a try, and a store out of reach for some seconds left a saga to a person. */
TEST(what_the_store_cannot_read_for_an_end_is_no_try_of_it)
{
	struct desk       d;
	struct fault_plan faults = { .next = FAULT_READ, .read = 2 }; /* behind the saga */

	desk_open_with(&d, &faults);
	begin(&d);
	faults.count = 20;
	rig_pass(&d.rig, HOUR_MS);
	CHECK(faults.injected > TRIES && faults.count == 0);
	CHECK(is_marked(&d, SAGA_DONE, "ddd") && effects_are(&d, 1, 1, 1));
	CHECK(d.world.ends[SAGA_DONE] == 1 && count_events(&d, "SagaParked") == 0);
	desk_close(&d);
}

TEST(an_end_that_is_refused_for_good_is_parked)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.end_refusals = 9;
	d.world.end_rc = RC_CONFLICT;
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_PARKED, "ddi") && effects_are(&d, 1, 1, 1) && now_is(&d).is_back == 0);
	CHECK(str_eq(now_is(&d).reason, STR("the done end of it was refused: the lease says no")));
	CHECK(count_events(&d, "SagaDone") == 0 && count_events(&d, "SagaParked") == 1);
	desk_close(&d);
}

/* --- owners --- */

TEST(the_outcome_of_a_slow_owner_is_refused)
{
	struct desk    d;
	struct work   *slow, *quick;
	struct kernel *other;

	desk_open(&d);
	d.rig.options.node = STR("node-2");
	other = kernel_new(&d.rig.options);
	begin(&d);
	slow = claim(&d, d.rig.kernel);
	CHECK(str_eq(now_is(&d).owner, STR("node-1")) && find(other) == NULL);
	work_perform(slow);
	d.rig.clock.test_ms += LEASE_MS;
	quick = claim(&d, other);
	CHECK(now_is(&d).fence == 2);

	rig_run(&d.rig, work_settle, slow);
	CHECK(slow->is_lost && !slow->has_more && is_marked(&d, SAGA_RUNNING, "i.."));
	rig_run(&d.rig, work_extend, slow);
	CHECK(slow->is_lost && str_eq(now_is(&d).owner, STR("node-2")));

	work_perform(quick);
	rig_run(&d.rig, work_settle, quick);
	CHECK(!quick->is_lost && quick->has_more && is_marked(&d, SAGA_RUNNING, "di."));
	CHECK(strcmp(d.world.log, "+0 ?0") == 0 && effects_are(&d, 1, 0, 0));
	drop(slow);
	drop(quick);
	kernel_free(other);
	desk_close(&d);
}

TEST(only_one_of_two_who_found_it_gets_it)
{
	struct desk  d;
	struct work *a, *b;

	desk_open(&d);
	begin(&d);
	a = find(d.rig.kernel);
	b = find(d.rig.kernel);
	rig_run(&d.rig, work_claim, a);
	rig_run(&d.rig, work_claim, b);
	CHECK(a->is_claimed && !b->is_claimed && b->is_lost);
	drop(a);
	drop(b);
	desk_close(&d);
}

TEST(an_owner_can_keep_it_for_longer)
{
	struct desk  d;
	struct work *w;

	desk_open(&d);
	begin(&d);
	w = claim(&d, d.rig.kernel);
	CHECK(w->claimed_until_ms == d.rig.clock.test_ms + LEASE_MS);
	d.rig.clock.test_ms += LEASE_MS - 1;
	rig_run(&d.rig, work_extend, w);
	CHECK(!w->is_lost && w->claimed_until_ms == d.rig.clock.test_ms + LEASE_MS);
	d.rig.clock.test_ms += LEASE_MS - 1;
	CHECK(find(d.rig.kernel) == NULL);
	drop(w);
	desk_close(&d);
}

/* --- orders --- */

static struct saga_action order(const char *reason)
{
	return (struct saga_action){
		.id = STR("s1"), .actor = STR("ops/ann"), .request_id = STR("req-1"), .reason = str_from(reason)
	};
}

static void check_audit(struct desk *d, const char *type, const char *reason)
{
	struct event event = told(d, type);

	CHECK(str_eq(event.actor, STR("ops/ann")) && str_eq(event.request_id, STR("req-1")));
	CHECK(!reason || text_has(event.detail, reason));
}

static void park(struct desk *d)
{
	begin(d);
	d->world.fails[2] = 1;
	d->world.rc[2] = RC_DENIED;
	d->world.undo_fails[1] = 1;
	d->world.undo_rc = RC_DENIED;
	rig_turn(&d->rig);
	CHECK(is_marked(d, SAGA_PARKED, "dux"));
}

TEST(a_parked_saga_goes_on_when_it_is_retried)
{
	struct desk        d;
	struct saga_action o = order("");

	desk_open(&d);
	park(&d);
	rig_run(&d.rig, saga_retry, &o);
	CHECK(o.saga.state == SAGA_UNDOING && o.saga.leftovers.n == 0);
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_UNDONE, "xxx") && effects_are(&d, 0, 0, 0));
	check_audit(&d, "SagaRetried", "\"step\":\"second\"");
	desk_close(&d);
}

TEST(a_waiting_saga_does_not_wait_when_it_is_retried)
{
	struct desk        d;
	struct saga_action o = order("");

	desk_open(&d);
	d.steps[0].backoff_ms = d.steps[0].backoff_max_ms = HOUR_MS;
	begin(&d);
	d.world.fails[0] = 1;
	d.world.rc[0] = RC_LIMITED;
	rig_turn(&d.rig);
	CHECK(now_is(&d).due_ms > d.rig.clock.test_ms);
	rig_run(&d.rig, saga_retry, &o);
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_DONE, "ddd"));
	CHECK(rig_try(&d.rig, saga_retry, &o, NULL) == RC_CONFLICT);
	desk_close(&d);
}

TEST(a_step_is_skipped_with_a_reason)
{
	struct desk        d;
	struct saga_action o = order("");

	desk_open(&d);
	park(&d);
	CHECK(rig_try(&d.rig, saga_skip, &o, NULL) == RC_INVALID && is_marked(&d, SAGA_PARKED, "dux"));
	o = order("cleaned by hand");
	rig_run(&d.rig, saga_skip, &o);
	CHECK(is_marked(&d, SAGA_UNDOING, "dxx") && o.saga.step == 0);
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_UNDONE, "xxx") && effects_are(&d, 0, 1, 0));
	check_audit(&d, "SagaSkipped", "\"step\":\"second\",\"state\":\"undoing\",\"reason\":\"cleaned by hand\"");
	desk_close(&d);
}

TEST(skipping_the_last_step_ends_the_saga)
{
	struct desk        d;
	struct saga_action o = order("not needed");

	desk_open(&d);
	begin(&d);
	d.world.fails[2] = 1;
	d.world.rc[2] = RC_LIMITED;
	rig_turn(&d.rig);
	rig_run(&d.rig, saga_skip, &o);
	CHECK(is_marked(&d, SAGA_DONE, "dds") && d.world.ends[SAGA_DONE] == 1 && count_events(&d, "SagaDone") == 1);
	CHECK(rig_turn(&d.rig) == 0);
	desk_close(&d);
}

TEST(an_aborted_saga_undoes_also_the_call_under_way)
{
	struct desk        d;
	struct saga_action o = order("wrong person");
	struct work       *w;

	desk_open(&d);
	begin(&d);
	w = claim(&d, d.rig.kernel);
	rig_run(&d.rig, saga_abort, &o);
	CHECK(is_marked(&d, SAGA_UNDOING, "i..") && o.saga.fence == 2);
	CHECK(rig_turn(&d.rig) == 0); /* the call may still happen */
	work_perform(w);
	rig_run(&d.rig, work_settle, w);
	CHECK(w->is_lost && effects_are(&d, 1, 0, 0));
	rig_pass(&d.rig, LEASE_MS);
	CHECK(is_marked(&d, SAGA_UNDONE, "x..") && effects_are(&d, 0, 0, 0));
	CHECK(str_eq(now_is(&d).reason, STR("aborted by ops/ann: wrong person")));
	check_audit(&d, "SagaAborted", "wrong person");
	CHECK(rig_try(&d.rig, saga_abort, &o, NULL) == RC_CONFLICT);
	drop(w);
	desk_close(&d);
}

static void check_freed(struct desk *d, enum saga_state state)
{
	drop(claim(d, d->rig.kernel)); /* and the process is gone */
	CHECK(now_is(d).state == state && now_is(d).owner.n && find(d->rig.kernel) == NULL);
	CHECK(kernel_recover(d->rig.kernel, NULL) == RC_OK);
	CHECK(now_is(d).state == state && !now_is(d).owner.n);
}

TEST(after_a_crash_of_the_only_node_its_sagas_are_free_at_once)
{
	struct desk        d;
	struct saga_action o = order("wrong person");

	desk_open(&d);
	begin(&d);
	check_freed(&d, SAGA_RUNNING);
	rig_run(&d.rig, saga_abort, &o);
	check_freed(&d, SAGA_UNDOING);
	desk_close(&d);
}

TEST(an_order_for_nobody_is_not_found)
{
	struct desk        d;
	struct saga_action o = order("why not");

	desk_open(&d);
	CHECK(rig_try(&d.rig, saga_retry, &o, NULL) == RC_NOT_FOUND);
	CHECK(rig_try(&d.rig, saga_skip, &o, NULL) == RC_NOT_FOUND);
	CHECK(rig_try(&d.rig, saga_abort, &o, NULL) == RC_NOT_FOUND);
	CHECK(count_events(&d, "*") == 0);
	desk_close(&d);
}

/* --- starting and seeing --- */

TEST(a_start_that_makes_no_sense_is_refused)
{
	static char        long_text[SAGA_DATA_MAX + 3];
	const struct start good = { "three", STR("s1"), STR("lease/1"), STR("{}"), STR("admin") };
	struct desk        d;
	struct start       a;
	struct err         e = { 0 };

	memset(long_text, ' ', sizeof(long_text));
	memcpy(long_text, "{}", 2);
	desk_open(&d);
	a = good;
	a.kind = "four";
	CHECK(rig_try(&d.rig, start, &a, &e) == RC_INVALID && strstr(e.msg, "four"));
	a = good;
	a.id = STR("");
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_INVALID);
	a.id = str_of(long_text, 201);
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_INVALID);
	a = good;
	a.subject = STR("");
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_INVALID);
	a = good;
	a.input = STR("[1]");
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_INVALID);
	a.input = STR("{");
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_INVALID);
	a.input = str_of(long_text, SAGA_DATA_MAX + 1);
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_TOO_LARGE);
	CHECK(count_events(&d, "*") == 0);

	CASE("a second one with the same id");
	a = good;
	rig_run(&d.rig, start, &a);
	a.subject = STR("lease/2");
	CHECK(rig_try(&d.rig, start, &a, NULL) == RC_CONFLICT && count_events(&d, "*") == 1);
	desk_close(&d);
}

TEST(a_saga_of_an_unknown_kind_is_parked)
{
	struct desk d;

	desk_open(&d);
	begin(&d);
	d.world.fails[1] = 1;
	d.world.rc[1] = RC_TIMEOUT;
	rig_turn(&d.rig);
	d.kind.name = "renamed";
	rig_pass(&d.rig, 60000);
	CHECK(is_marked(&d, SAGA_PARKED, "di.") && text_has(now_is(&d).reason, "'three'"));
	CHECK(str_eq(now_is(&d).leftovers, STR("[\"step 1\",\"step 2\"]")) && count_events(&d, "SagaParked") == 1);

	CASE("and goes on when the program knows it again");
	CHECK(rig_try(&d.rig, saga_skip, &(struct saga_action){ .id = STR("s1"), .reason = STR("x") }, NULL) ==
	      RC_CONFLICT);
	d.kind.name = "three";
	rig_run(&d.rig, saga_retry, &(struct saga_action){ .id = STR("s1"), .actor = STR("ops") });
	rig_turn(&d.rig);
	CHECK(is_marked(&d, SAGA_DONE, "ddd") && effects_are(&d, 1, 1, 1));
	desk_close(&d);
}

TEST(sagas_are_listed_by_state_and_by_subject_and_counted)
{
	struct desk      d;
	struct start     a = { "three", STR("s0"), STR("lease/1"), STR("{}"), STR("admin") };
	struct saga_list l = { .has_state = true, .state = SAGA_DONE, .limit = 10 };
	int64_t          counts[SAGA_STATE_COUNT] = { [SAGA_DONE] = -1 };

	desk_open(&d);
	rig_run(&d.rig, start, &a);
	rig_turn(&d.rig);
	d.rig.clock.test_ms += 1000;
	begin(&d);
	rig_run(&d.rig, saga_list, &l);
	CHECK(l.page.count == 1 && str_eq(((struct saga *)page_record(&l.page, &saga_type, 0))->id, STR("s0")));
	l = (struct saga_list){ .subject = STR("lease/1"), .limit = 10 };
	rig_run(&d.rig, saga_list, &l);
	CHECK(l.page.count == 2 && str_eq(((struct saga *)page_record(&l.page, &saga_type, 0))->id, STR("s1")));
	l = (struct saga_list){ .limit = 10 };
	rig_run(&d.rig, saga_list, &l);
	CHECK(l.page.count == 2);
	rig_run(&d.rig, saga_count, counts);
	CHECK(counts[SAGA_RUNNING] == 1 && counts[SAGA_PARKED] == 0 && counts[SAGA_DONE] == -1);
	desk_close(&d);
}

/* --- retention --- */

static size_t prune(struct desk *d, int64_t before_ms)
{
	struct saga_prune p = { .before_ms = before_ms };

	rig_run(&d->rig, saga_prune, &p);
	return p.removed;
}

static bool is_there(struct desk *d)
{
	struct saga saga = { .id = STR("s1") };

	return rig_try(&d->rig, saga_get, &saga, NULL) == RC_OK;
}

TEST(a_saga_that_ended_is_removed_when_it_is_old)
{
	for (int is_undone = 0; is_undone < 2; is_undone++) {
		struct desk d;
		int64_t     ended_ms;

		CASE(is_undone ? "undone" : "done");
		desk_open(&d);
		begin(&d);
		d.world.fails[0] = is_undone;
		d.world.rc[0] = RC_DENIED;
		CHECK(prune(&d, d.rig.clock.test_ms + DEADLINE_MS) == 0);
		rig_turn(&d.rig);
		ended_ms = now_is(&d).ended_ms;
		d.rig.clock.test_ms += DEADLINE_MS;
		CHECK(prune(&d, ended_ms - 1) == 0 && is_there(&d));
		CHECK(prune(&d, ended_ms) == 1 && !is_there(&d));
		CHECK(prune(&d, ended_ms) == 0);
		desk_close(&d);
	}
}

TEST(a_parked_saga_is_never_too_old)
{
	struct desk d;

	desk_open(&d);
	park(&d);
	CHECK(prune(&d, INT64_MAX) == 0 && is_there(&d));
	desk_close(&d);
}

static enum rc add_done(struct session *s, void *arg, struct err *e)
{
	const struct str *id = arg;
	struct saga       saga = { .id = *id,
		                   .kind = STR("three"),
		                   .subject = STR("lease/1"),
		                   .state = SAGA_DONE,
		                   .marks = STR("ddd"),
		                   .started_ms = 1,
		                   .ended_ms = 2,
		                   .due_ms = 2 };

	(void)e;
	session_add(s, &saga_type, &saga);
	return RC_OK;
}

TEST(many_old_sagas_are_removed_a_page_at_a_time)
{
	enum { MANY = 90 };
	struct desk d;
	size_t      removed = 0, pages = 0, count;

	desk_open(&d);
	for (int i = 0; i < MANY; i++) {
		struct str id = str_format(&d.rig.arena, "s-%d", i);

		rig_run(&d.rig, add_done, &id);
	}
	while ((count = prune(&d, 2))) {
		CHECK(count < MANY);
		removed += count;
		pages++;
	}
	CHECK(removed == MANY && pages > 1);
	desk_close(&d);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_saga_rule.c - a saga's decisions: the whole table, each rule at its edges, and what holds for any row of
 * outcomes. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/saga.h"
#include "kernel/saga_rule.h"

enum { NOW = 1000000, LEASE = 60000, BACKOFF = 700, STEP_DEADLINE = 90000, DEADLINE = 600000, TRIES = 2 };

static enum rc never_called(struct saga_call *c, struct err *e)
{
	(void)c;
	return err_set(e, RC_INTERNAL, "the rules call nobody");
}

static enum rc never_checked(struct saga_call *c, bool *ret, struct err *e)
{
	*ret = false;
	return never_called(c, e);
}

/* clang-format off */
static const struct saga_step steps[] = {
	/* name      act           check          undo          timeout tries  backoff  deadline */
	{ "account", never_called, never_checked, never_called, 10000,  TRIES, 0, 0,    STEP_DEADLINE },
	{ "note",    never_called, NULL,          NULL,         0,      TRIES, 0, 0,    0             },
	{ "access",  never_called, never_checked, never_called, 40000,  TRIES, 0, 0,    0             },
};
/* clang-format on */
static const struct saga_kind kind = {
	.name = "grant", .steps = steps, .step_count = ARRAY_LEN(steps), .deadline_ms = DEADLINE
};

struct desk {
	struct arena     arena;
	struct saga      saga;
	struct saga_rule rule;
};

static void desk_open(struct desk *d, enum saga_state state, int64_t step, const char *marks, int64_t tries)
{
	*d = (struct desk){ .saga = { .id = STR("s1"),
		                      .kind = STR("grant"),
		                      .subject = STR("lease/1"),
		                      .state = state,
		                      .step = step,
		                      .marks = str_from(marks),
		                      .data = STR("{}"),
		                      .started_ms = NOW,
		                      .step_since_ms = NOW,
		                      .deadline_ms = NOW + DEADLINE,
		                      .due_ms = NOW + LEASE,
		                      .tries = tries,
		                      .owner = STR("node-a"),
		                      .fence = 7 } };
	d->rule = (struct saga_rule){ .kind = &kind,
		                      .saga = &d->saga,
		                      .now_ms = NOW,
		                      .lease_ms = LEASE,
		                      .backoff_ms = BACKOFF,
		                      .arena = &d->arena };
}

static void desk_close(struct desk *d)
{
	arena_fini(&d->arena);
}

/* --- the table --- */

#define R SAGA_RUNNING
#define U SAGA_UNDOING
#define P SAGA_PARKED
#define D SAGA_DONE
#define X SAGA_UNDONE

/* clang-format off */
static const struct {
	const char     *label;
	enum saga_state state; int64_t step; const char *marks; int64_t tries; enum rc rc; int64_t late_ms;
	enum saga_state to; int64_t to_step; const char *to_marks; int64_t to_tries; enum saga_next next;
} settled[] = {
	{ "a step that is done leads to the next",        R, 0, "i..", 1, RC_OK,          0,             R, 1, "d..", 0, SAGA_NEXT_CALL },
	{ "the last one done is the end",                 R, 2, "ddi", 0, RC_OK,          0,             D, 2, "ddd", 0, SAGA_NEXT_END  },
	{ "skipped steps count as done",                  R, 1, "sis", 0, RC_OK,          0,             D, 1, "sds", 0, SAGA_NEXT_END  },
	{ "the last one done is done, even late",         R, 2, "ddi", 0, RC_OK,          DEADLINE + 1,  D, 2, "ddd", 0, SAGA_NEXT_END  },
	{ "unavailable: later again",                     R, 0, "i..", 0, RC_UNAVAILABLE, 0,             R, 0, "i..", 1, SAGA_NEXT_WAIT },
	{ "timed out: later again",                       R, 0, "i..", 0, RC_TIMEOUT,     0,             R, 0, "i..", 1, SAGA_NEXT_WAIT },
	{ "limited: later again",                         R, 0, "i..", 0, RC_LIMITED,     0,             R, 0, "i..", 1, SAGA_NEXT_WAIT },
	{ "the last try turns it back",                   R, 0, "i..", 1, RC_TIMEOUT,     0,             U, 0, "i..", 0, SAGA_NEXT_CALL },
	{ "a refusal turns it back at once",              R, 2, "ddi", 0, RC_DENIED,      0,             U, 2, "ddi", 0, SAGA_NEXT_CALL },
	{ "a step without undo is passed by",             R, 1, "di.", 0, RC_DENIED,      0,             U, 0, "dx.", 0, SAGA_NEXT_CALL },
	{ "nothing to undo: undone at once",              R, 1, "si.", 0, RC_DENIED,      0,             X, 1, "sx.", 0, SAGA_NEXT_END  },
	{ "in time for the step's deadline",              R, 0, "i..", 0, RC_TIMEOUT,     STEP_DEADLINE, R, 0, "i..", 1, SAGA_NEXT_WAIT },
	{ "over the step's deadline",                     R, 0, "i..", 0, RC_TIMEOUT,     STEP_DEADLINE + 1, U, 0, "i..", 0, SAGA_NEXT_CALL },
	{ "in time for the whole deadline",               R, 2, "ddi", 0, RC_TIMEOUT,     DEADLINE,      R, 2, "ddi", 1, SAGA_NEXT_WAIT },
	{ "over the whole deadline",                      R, 2, "ddi", 0, RC_TIMEOUT,     DEADLINE + 1,  U, 2, "ddi", 0, SAGA_NEXT_CALL },
	{ "one undone: on to the one below",              U, 2, "ddu", 3, RC_OK,          0,             U, 0, "dxx", 0, SAGA_NEXT_CALL },
	{ "a skipped step is not undone",                 U, 2, "sdu", 0, RC_OK,          0,             X, 2, "sxx", 0, SAGA_NEXT_END  },
	{ "the first undone is the end",                  U, 0, "u..", 0, RC_OK,          0,             X, 0, "x..", 0, SAGA_NEXT_END  },
	{ "one left by an operator is not met again",     U, 0, "u.u", 0, RC_OK,          0,             X, 0, "x.u", 0, SAGA_NEXT_END  },
	{ "undoing has twice the tries",                  U, 2, "ddu", 2, RC_TIMEOUT,     0,             U, 2, "ddu", 3, SAGA_NEXT_WAIT },
	{ "and no deadline",                              U, 2, "ddu", 0, RC_TIMEOUT,     2 * DEADLINE,  U, 2, "ddu", 1, SAGA_NEXT_WAIT },
	{ "after them it is parked",                      U, 2, "ddu", 3, RC_TIMEOUT,     0,             P, 2, "ddu", 4, SAGA_NEXT_END  },
	{ "an undo that is refused is parked at once",    U, 0, "uxx", 0, RC_DENIED,      0,             P, 0, "uxx", 1, SAGA_NEXT_END  },
	{ "there was nothing to undo, and no call",       U, 1, "s..", 0, RC_OK,          0,             X, 1, "s..", 0, SAGA_NEXT_END  },
};

static const struct {
	const char     *label;
	enum saga_state state; int64_t step; const char *marks; int64_t late_ms;
	enum saga_state to; int64_t to_step; const char *to_marks; enum saga_todo todo;
} intended[] = {
	{ "the first time: act",                         R, 0, "...", 0,                 R, 0, "i..", SAGA_TODO_ACT     },
	{ "intended before: check first",                R, 0, "i..", 0,                 R, 0, "i..", SAGA_TODO_CHECK   },
	{ "intended before, no check: repeat",           R, 1, "di.", 0,                 R, 1, "di.", SAGA_TODO_ACT     },
	{ "done before: undo",                           U, 2, "ddd", 0,                 U, 2, "ddu", SAGA_TODO_UNDO    },
	{ "may have happened: undo",                     U, 2, "ddi", 0,                 U, 2, "ddu", SAGA_TODO_UNDO    },
	{ "undo intended before: repeat",                U, 2, "ddu", 0,                 U, 2, "ddu", SAGA_TODO_UNDO    },
	{ "over the whole deadline: back",               R, 2, "dd.", DEADLINE + 1,      U, 0, "ux.", SAGA_TODO_UNDO    },
	{ "at it: not yet",                              R, 2, "dd.", DEADLINE,          R, 2, "ddi", SAGA_TODO_ACT     },
	{ "over it before anything began",               R, 0, "...", DEADLINE + 1,      U, 0, "...", SAGA_TODO_NOTHING },
	{ "over the step's deadline: back",              R, 0, "i..", STEP_DEADLINE + 1, U, 0, "u..", SAGA_TODO_UNDO    },
	{ "a step's time begins with its first intent",  R, 0, "...", STEP_DEADLINE + 1, R, 0, "i..", SAGA_TODO_ACT     },
};
/* clang-format on */

TEST(every_outcome_does_what_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(settled); i++) {
		struct desk         d;
		struct saga_outcome o = { .has_failed = settled[i].rc != RC_OK,
			                  .rc = settled[i].rc,
			                  .error = STR("it said no"),
			                  .data = STR("{\"n\":1}") };
		enum saga_next      next;
		int64_t             now = NOW + settled[i].late_ms;

		CASE(settled[i].label);
		desk_open(&d, settled[i].state, settled[i].step, settled[i].marks, settled[i].tries);
		d.rule.now_ms = now;
		next = saga_rule_settle(&d.rule, &o);
		CHECK(next == settled[i].next && d.saga.state == settled[i].to && d.saga.step == settled[i].to_step);
		CHECK(str_eq(d.saga.marks, str_from(settled[i].to_marks)) && d.saga.tries == settled[i].to_tries);
		CHECK((next == SAGA_NEXT_END) == (d.saga.ended_ms == now));
		CHECK((next == SAGA_NEXT_CALL) == str_eq(d.saga.owner, STR("node-a")));
		CHECK(next != SAGA_NEXT_WAIT || (d.saga.due_ms == now + BACKOFF && d.saga.last_error.n));
		CHECK((settled[i].state == d.saga.state) || d.saga.state == SAGA_DONE || d.saga.state == SAGA_UNDONE ||
		      d.saga.reason.n);
		desk_close(&d);
	}
}

TEST(a_patient_step_waits_for_a_right_that_it_lacks)
{
	struct saga_step    patient[ARRAY_LEN(steps)];
	struct saga_kind    waiting = kind;
	struct saga_outcome denied = { .has_failed = true, .rc = RC_DENIED, .error = STR("no right") };
	struct desk         d;

	memcpy(patient, steps, sizeof(steps));
	patient[0].is_patient = true;
	waiting.steps = patient;
	desk_open(&d, R, 0, "i..", 0);
	d.rule.kind = &waiting;
	CHECK(saga_rule_settle(&d.rule, &denied) == SAGA_NEXT_WAIT && d.saga.state == R && d.saga.tries == 1);
	CHECK(saga_rule_settle(&d.rule, &denied) == SAGA_NEXT_CALL && d.saga.state == U);
	desk_close(&d);
}

TEST(every_claim_notes_its_intent_as_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(intended); i++) {
		struct desk    d;
		enum saga_todo todo;

		CASE(intended[i].label);
		desk_open(&d, intended[i].state, intended[i].step, intended[i].marks, 0);
		d.rule.now_ms = NOW + intended[i].late_ms;
		todo = saga_rule_intend(&d.rule);
		CHECK(todo == intended[i].todo);
		CHECK(d.saga.state == intended[i].to && d.saga.step == intended[i].to_step);
		CHECK(str_eq(d.saga.marks, str_from(intended[i].to_marks)));
		CHECK(d.saga.due_ms == d.rule.now_ms + saga_rule_lease(&d.rule, todo));
		desk_close(&d);
	}
}

TEST(the_lease_outlives_the_calls)
{
	struct desk d;

	desk_open(&d, SAGA_RUNNING, 0, "i..", 0);
	CHECK(saga_rule_lease(&d.rule, SAGA_TODO_CHECK) == LEASE);
	d.saga.step = 2;
	CHECK(saga_rule_lease(&d.rule, SAGA_TODO_ACT) == LEASE);
	CHECK(saga_rule_lease(&d.rule, SAGA_TODO_CHECK) == 80000 + SAGA_LEASE_MARGIN_MS);
	d.rule.lease_ms = 1;
	CHECK(saga_rule_lease(&d.rule, SAGA_TODO_UNDO) == 40000 + SAGA_LEASE_MARGIN_MS);
	d.saga.step = 1;
	CHECK(saga_rule_lease(&d.rule, SAGA_TODO_ACT) == SAGA_TIMEOUT_MS + SAGA_LEASE_MARGIN_MS);
	desk_close(&d);
}

TEST(only_a_success_keeps_what_the_step_found_out)
{
	struct desk         d;
	struct saga_outcome o = { .data = STR("{\"id\":5}") };

	desk_open(&d, SAGA_RUNNING, 0, "i..", 0);
	(void)saga_rule_settle(&d.rule, &o);
	CHECK(str_eq(d.saga.data, STR("{\"id\":5}")));
	o = (struct saga_outcome){ .has_failed = true, .rc = RC_TIMEOUT, .error = STR("slow"), .data = STR("{}") };
	(void)saga_rule_settle(&d.rule, &o);
	CHECK(str_eq(d.saga.data, STR("{\"id\":5}")) && str_eq(d.saga.last_error, STR("slow")));
	desk_close(&d);
}

TEST(a_parked_saga_says_why_and_what_is_left)
{
	struct desk         d;
	struct saga_outcome refused = { .has_failed = true, .rc = RC_DENIED, .error = STR("not allowed") };

	desk_open(&d, SAGA_RUNNING, 2, "ddi", 0);
	(void)saga_rule_settle(&d.rule, &refused);
	CHECK(str_eq(d.saga.reason, STR("step access: not allowed")));
	(void)saga_rule_intend(&d.rule);
	refused.error = STR("no key");
	CHECK(saga_rule_settle(&d.rule, &refused) == SAGA_NEXT_END);
	CHECK(d.saga.state == SAGA_PARKED && d.saga.is_back == 1);
	CHECK(str_eq(d.saga.reason, STR("step access cannot be undone: no key; it went back because: "
	                                "step access: not allowed")));
	CHECK(str_eq(d.saga.leftovers, STR("[\"account\",\"note\",\"access\"]")));

	CASE("parked a second time, the first reason is still there, once");
	CHECK(saga_rule_retry(&d.rule, NULL) == RC_OK && d.saga.leftovers.n == 0 && d.saga.ended_ms == 0);
	(void)saga_rule_intend(&d.rule);
	refused.error = STR("still no key");
	(void)saga_rule_settle(&d.rule, &refused);
	CHECK(str_eq(d.saga.reason, STR("step access cannot be undone: still no key; it went back because: "
	                                "step access: not allowed")));
	desk_close(&d);
}

TEST(long_texts_are_cut_between_characters)
{
	struct desk         d;
	char                error[2 * ERROR_MAX];
	struct saga_outcome o = { .has_failed = true, .rc = RC_TIMEOUT };

	memset(error, 'e', sizeof(error));
	memcpy(error + ERROR_MAX - 1, "\xc3\xa4", 2);
	o.error = str_of(error, sizeof(error));
	desk_open(&d, SAGA_RUNNING, 0, "i..", 0);
	(void)saga_rule_settle(&d.rule, &o);
	CHECK(d.saga.last_error.n == ERROR_MAX - 1);
	desk_close(&d);
}

TEST(a_record_of_another_program_does_not_fit)
{
	struct desk d;
	struct err  e = { 0 };

	desk_open(&d, SAGA_RUNNING, 0, "i..", 0);
	CHECK(saga_rule_fits(&d.saga, &kind, &e) == RC_OK);
	CHECK(saga_rule_fits(&d.saga, NULL, &e) == RC_CORRUPT && strstr(e.msg, "'grant'"));
	d.saga.marks = STR("i.");
	CHECK(saga_rule_fits(&d.saga, &kind, NULL) == RC_CORRUPT);
	d.saga.marks = STR("i?.");
	CHECK(saga_rule_fits(&d.saga, &kind, NULL) == RC_CORRUPT);
	d.saga.marks = STR("i..");
	d.saga.step = 3;
	CHECK(saga_rule_fits(&d.saga, &kind, NULL) == RC_CORRUPT);
	d.saga.step = -1;
	CHECK(saga_rule_fits(&d.saga, &kind, NULL) == RC_CORRUPT);
	d.rule.kind = NULL;
	d.saga.step = 0;
	saga_rule_park(&d.rule, STR("unknown"));
	CHECK(d.saga.state == SAGA_PARKED && d.saga.is_back == 0 && str_eq(d.saga.leftovers, STR("[\"step 1\"]")));
	desk_close(&d);
}

/* --- operators --- */

enum { RETRY, SKIP, ABORT };
enum { FREE, OWNED }; /* has an owner whose lease runs */

/* clang-format off */
static const struct {
	const char     *label;
	int             order, owned;
	enum saga_state state; int64_t step; const char *marks; int64_t is_back;
	enum rc         rc;
	enum saga_state to; int64_t to_step; const char *to_marks; int64_t to_fence; bool is_due;
} ordered[] = {
	{ "a waiting one is retried now",              RETRY, FREE,  R, 0, "i..", 0, RC_OK,       R, 0, "i..", 7, true  },
	{ "one that is called is not",                 RETRY, OWNED, R, 0, "i..", 0, RC_CONFLICT, R, 0, "i..", 7, false },
	{ "a parked one goes on forward",              RETRY, FREE,  P, 1, "d..", 0, RC_OK,       R, 1, "d..", 7, true  },
	{ "or back",                                   RETRY, FREE,  P, 2, "ddu", 1, RC_OK,       U, 2, "ddu", 7, true  },
	{ "what is done is not retried",               RETRY, FREE,  D, 2, "ddd", 0, RC_CONFLICT, D, 2, "ddd", 7, false },
	{ "what is undone is not retried",             RETRY, FREE,  X, 0, "x..", 0, RC_CONFLICT, X, 0, "x..", 7, false },
	{ "a failing step is skipped",                 SKIP,  FREE,  R, 0, "i..", 0, RC_OK,       R, 1, "s..", 8, true  },
	{ "also before it has begun",                  SKIP,  FREE,  R, 1, "d..", 0, RC_OK,       R, 2, "ds.", 8, true  },
	{ "the last one skipped is the end",           SKIP,  FREE,  R, 2, "ddi", 0, RC_OK,       D, 2, "dds", 8, true  },
	{ "a call under way may still happen",         SKIP,  OWNED, R, 0, "i..", 0, RC_OK,       R, 1, "i..", 8, true  },
	{ "also of the last step",                     SKIP,  OWNED, R, 2, "ddi", 0, RC_OK,       D, 2, "ddi", 8, true  },
	{ "an undo is skipped",                        SKIP,  FREE,  U, 2, "ddu", 0, RC_OK,       U, 0, "dxx", 8, true  },
	{ "an undo under way may still happen",        SKIP,  OWNED, U, 2, "ddu", 0, RC_OK,       U, 0, "dxu", 8, true  },
	{ "also of the first step",                    SKIP,  OWNED, U, 0, "uxx", 0, RC_OK,       X, 0, "uxx", 8, true  },
	{ "parked on the way back",                    SKIP,  FREE,  P, 2, "ddu", 1, RC_OK,       U, 0, "dxx", 8, true  },
	{ "parked on the way forward",                 SKIP,  FREE,  P, 0, "i..", 0, RC_OK,       R, 1, "s..", 8, true  },
	{ "what is done skips nothing",                SKIP,  FREE,  D, 2, "ddd", 0, RC_CONFLICT, D, 2, "ddd", 7, false },
	{ "what is undone skips nothing",              SKIP,  FREE,  X, 0, "x..", 0, RC_CONFLICT, X, 0, "x..", 7, false },
	{ "aborted while it waits",                    ABORT, FREE,  R, 2, "ddi", 0, RC_OK,       U, 2, "ddi", 8, true  },
	{ "aborted before anything happened",          ABORT, FREE,  R, 0, "...", 0, RC_OK,       X, 0, "...", 8, true  },
	{ "aborted during a call: undone after it",    ABORT, OWNED, R, 0, "i..", 0, RC_OK,       U, 0, "i..", 8, false },
	{ "aborted when parked",                       ABORT, FREE,  P, 1, "d..", 0, RC_OK,       U, 0, "d..", 8, true  },
	{ "aborted when parked on the way back",       ABORT, FREE,  P, 2, "ddu", 1, RC_OK,       U, 2, "ddu", 8, true  },
	{ "what goes back is not aborted",             ABORT, FREE,  U, 2, "ddu", 0, RC_CONFLICT, U, 2, "ddu", 7, false },
	{ "what is done is not aborted",               ABORT, FREE,  D, 2, "ddd", 0, RC_CONFLICT, D, 2, "ddd", 7, false },
	{ "what is undone is not aborted",             ABORT, FREE,  X, 0, "x..", 0, RC_CONFLICT, X, 0, "x..", 7, false },
};
/* clang-format on */

TEST(an_aborted_call_under_way_is_not_hurried)
{
	struct desk    d;
	struct err     e = { 0 };
	enum saga_next next;

	desk_open(&d, SAGA_RUNNING, 0, "i..", 1);
	CHECK(saga_rule_abort(&d.rule, STR("changed our mind"), &next, &e) == RC_OK);
	CHECK(saga_rule_retry(&d.rule, &e) == RC_CONFLICT);
	d.rule.now_ms = d.saga.due_ms; /* the lease is over */
	CHECK(saga_rule_retry(&d.rule, &e) == RC_OK);
	desk_close(&d);
}

TEST(every_order_does_what_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(ordered); i++) {
		struct desk    d;
		struct saga    before;
		struct err     e = { 0 };
		enum saga_next next = SAGA_NEXT_WAIT;
		enum rc        rc = RC_INTERNAL;

		CASE(ordered[i].label);
		desk_open(&d, ordered[i].state, ordered[i].step, ordered[i].marks, 1);
		d.saga.is_back = ordered[i].is_back;
		if (ordered[i].owned == FREE)
			d.saga.owner = STR("");
		before = d.saga;
		switch (ordered[i].order) {
		case RETRY: rc = saga_rule_retry(&d.rule, &e); break;
		case SKIP: rc = saga_rule_skip(&d.rule, &next, &e); break;
		case ABORT: rc = saga_rule_abort(&d.rule, STR("changed our mind"), &next, &e); break;
		}
		CHECK(rc == ordered[i].rc && d.saga.state == ordered[i].to && d.saga.step == ordered[i].to_step);
		CHECK(str_eq(d.saga.marks, str_from(ordered[i].to_marks)) && d.saga.fence == ordered[i].to_fence);
		CHECK((d.saga.due_ms == NOW) == ordered[i].is_due);
		if (rc) {
			CHECK(memcmp(&before, &d.saga, sizeof(before)) == 0);
			CHECK(strstr(e.msg, saga_state_names[ordered[i].state]) != NULL);
		} else {
			/* Who is at it stays named until the lease is over: see saga_rule_abort(). */
			CHECK((d.saga.owner.n > 0) == (ordered[i].order == ABORT && ordered[i].owned == OWNED));
			CHECK((next == SAGA_NEXT_END) == (ordered[i].to == SAGA_DONE || ordered[i].to == SAGA_UNDONE));
			CHECK(ordered[i].order != ABORT || text_has(d.saga.reason, "changed our mind"));
		}
		desk_close(&d);
	}
}

TEST(a_step_that_was_left_to_itself_is_undone_later)
{
	struct desk         d;
	enum saga_next      next;
	struct saga_outcome refused = { .has_failed = true, .rc = RC_DENIED, .error = STR("no") };
	struct saga_outcome done = { .data = STR("{}") };

	desk_open(&d, SAGA_RUNNING, 0, "i..", 0);
	CHECK(saga_rule_skip(&d.rule, &next, NULL) == RC_OK);
	(void)saga_rule_intend(&d.rule);
	CHECK(saga_rule_settle(&d.rule, &refused) == SAGA_NEXT_CALL && d.saga.step == 0);
	CHECK(saga_rule_intend(&d.rule) == SAGA_TODO_UNDO);
	CHECK(saga_rule_settle(&d.rule, &done) == SAGA_NEXT_END && d.saga.state == SAGA_UNDONE);

	desk_close(&d);

	CASE("an undo that was left to itself is named at the end");
	desk_open(&d, SAGA_UNDOING, 0, "uxx", 0);
	CHECK(saga_rule_skip(&d.rule, &next, NULL) == RC_OK && d.saga.state == SAGA_UNDONE);
	CHECK(str_eq(d.saga.leftovers, STR("[\"account\"]")));
	desk_close(&d);
}

/* --- any row of outcomes --- */

static uint64_t draw(uint64_t *seed) /* splitmix64 */
{
	uint64_t z = (*seed += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static enum rc draw_outcome(uint64_t *seed)
{
	static const enum rc some[] = { RC_OK, RC_OK, RC_OK, RC_OK, RC_TIMEOUT, RC_UNAVAILABLE, RC_LIMITED, RC_DENIED };

	return some[draw(seed) % ARRAY_LEN(some)];
}

/* Which steps' effects are there, as the marks promise it: what is in the world must be marked so. */
struct world {
	bool is_there[ARRAY_LEN(steps)];
};

static bool marks_tell_all(const struct saga *saga, const struct world *world)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++)
		if (world->is_there[i] && steps[i].undo && !strchr("idu", saga->marks.p[i]))
			return false;
	return true;
}

/* One call in the world: it may have its effect and say otherwise. */
static enum rc call_world(struct world *world, const struct saga *saga, enum saga_todo todo, uint64_t *seed)
{
	enum rc rc = draw_outcome(seed);
	bool    happens = rc == RC_OK || (rc == RC_TIMEOUT && draw(seed) % 2);

	if (todo == SAGA_TODO_NOTHING)
		return RC_OK;
	if (happens)
		world->is_there[saga->step] = todo != SAGA_TODO_UNDO;
	return rc;
}

static void run_one(uint64_t seed)
{
	struct desk  d;
	struct world world = { 0 };
	int          rounds = 0;

	desk_open(&d, SAGA_RUNNING, 0, "...", 0);
	while (d.saga.state == SAGA_RUNNING || d.saga.state == SAGA_UNDOING) {
		enum saga_todo      todo;
		struct saga_outcome o = { .error = STR("drawn"), .data = STR("{}") };

		CHECK(++rounds < 100);
		d.rule.now_ms += (int64_t)(draw(&seed) % 20000);
		todo = saga_rule_intend(&d.rule);
		CHECK(saga_rule_fits(&d.saga, &kind, NULL) == RC_OK);
		o.rc = call_world(&world, &d.saga, todo, &seed);
		o.has_failed = o.rc != RC_OK;
		CHECK(marks_tell_all(&d.saga, &world));
		if (draw(&seed) % 4 == 0)
			continue; /* a crash: the outcome is never stored */
		(void)saga_rule_settle(&d.rule, &o);
		CHECK(marks_tell_all(&d.saga, &world));
	}
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		CHECK(d.saga.state != SAGA_DONE || world.is_there[i]);
		CHECK(d.saga.state != SAGA_UNDONE || !steps[i].undo || !world.is_there[i]);
		CHECK(d.saga.state != SAGA_PARKED || !world.is_there[i] || !steps[i].undo ||
		      text_has(d.saga.leftovers, steps[i].name));
	}
	desk_close(&d);
}

TEST(where_time_is_scaled_leases_tries_and_deadlines_are_the_machines)
{
	struct saga_outcome late = { .has_failed = true, .rc = RC_TIMEOUT, .error = STR("late") };
	struct desk         d;

	desk_open(&d, SAGA_RUNNING, 0, "...", 0);
	d.rule.scale = 3600;
	saga_rule_start(&d.rule);
	CHECK(d.saga.deadline_ms == NOW + (int64_t)DEADLINE * 3600);
	(void)saga_rule_intend(&d.rule);
	CHECK(d.saga.due_ms == NOW + (int64_t)LEASE * 3600);
	d.rule.now_ms = NOW + (int64_t)STEP_DEADLINE * 3600;
	CHECK(saga_rule_settle(&d.rule, &late) == SAGA_NEXT_WAIT);
	CHECK(d.saga.due_ms == d.rule.now_ms + (int64_t)BACKOFF * 3600);
	desk_close(&d);
}

TEST(whatever_happens_the_marks_tell_of_every_effect)
{
	for (uint64_t seed = 1; seed <= 5000; seed++) {
		char label[32];

		(void)snprintf(label, sizeof(label), "seed %llu", (unsigned long long)seed); /* fits */
		CASE(label);
		run_one(seed);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <stdlib.h>

#include "base/breaker.h"

enum { THRESHOLD = 3, TIMEOUT_MS = 1000, STEPS_MAX = 10, CALLS_MAX = 10 };

/* One thing that happens, some time after the one before. */
struct step {
	int  after_ms;
	char what;    /* a, r: a call is allowed, refused; O, B: the oldest call ends well, badly; o, b: the newest */
	bool is_open; /* after the step */
};

/* clang-format off */
static const struct {
	const char *label;
	struct step steps[STEPS_MAX];
} cases[] = {
	{ "success after success stays closed", { {0,'a',0}, {0,'O',0}, {5,'a',0}, {0,'O',0} } },
	{ "failures below the threshold do not open it",
	  { {0,'a',0}, {0,'B',0}, {1,'a',0}, {0,'B',0}, {1,'a',0} } },
	{ "one success forgets the failures before it",
	  { {0,'a',0}, {0,'B',0}, {0,'a',0}, {0,'B',0}, {0,'a',0}, {0,'O',0},
	    {0,'a',0}, {0,'B',0}, {0,'a',0}, {0,'B',0} } },
	{ "the threshold opens it and calls are refused",
	  { {0,'a',0}, {0,'B',0}, {0,'a',0}, {0,'B',0}, {0,'a',0}, {0,'B',1}, {0,'r',1}, {999,'r',1} } },
	{ "after the time-out exactly one call is allowed",
	  { {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'B',0}, {0,'B',0},
	    {0,'B',1}, {1000,'a',1}, {0,'r',1}, {5000,'r',1} } },
	{ "a probe that succeeds closes it",
	  { {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'B',0}, {0,'B',0}, {0,'B',1}, {1000,'a',1}, {0,'O',0}, {0,'a',0} } },
	{ "a probe that fails opens it for a whole time-out again",
	  { {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'B',0}, {0,'B',0}, {0,'B',1},
	    {1000,'a',1}, {50,'B',1}, {999,'r',1}, {1,'a',1} } },
	{ "a late success from before does not close it",
	  { {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'b',0}, {0,'b',0}, {0,'b',1}, {0,'O',1}, {1,'r',1} } },
	{ "a late failure from before does not end a probe",
	  { {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'a',0}, {0,'b',0}, {0,'b',0},
	    {0,'b',1}, {1000,'a',1}, {0,'B',1}, {2000,'r',1} } },
	{ "a clock set back does not keep it open",
	  { {5000,'a',0}, {0,'a',0}, {0,'a',0}, {0,'B',0}, {0,'B',0}, {0,'B',1}, {-1,'a',1}, {0,'O',0} } },
};
/* clang-format on */

/* The calls under way, oldest first. */
struct calls {
	uint64_t tickets[CALLS_MAX];
	size_t   count;
};

static uint64_t take_call(struct calls *c, bool is_oldest)
{
	uint64_t ticket;

	CHECK(c->count > 0);
	ticket = c->tickets[is_oldest ? 0 : c->count - 1];
	c->count--;
	if (is_oldest)
		memmove(c->tickets, c->tickets + 1, c->count * sizeof(c->tickets[0]));
	return ticket;
}

static void play(struct breaker *b, struct calls *calls, const struct step *s, struct wall now)
{
	uint64_t ticket;

	switch (s->what) {
	case 'a':
		CHECK(breaker_allows(b, now, &ticket));
		calls->tickets[calls->count++] = ticket;
		break;
	case 'r': CHECK(!breaker_allows(b, now, &ticket)); break;
	case 'O':
	case 'o': breaker_note(b, take_call(calls, s->what == 'O'), true, now); break;
	case 'B':
	case 'b': breaker_note(b, take_call(calls, s->what == 'B'), false, now); break;
	}
	CHECK(b->is_open == s->is_open);
}

TEST(the_breaker_follows_its_states)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct breaker b = { .threshold = THRESHOLD, .timeout_ms = TIMEOUT_MS };
		struct calls   calls = { .count = 0 };
		struct wall    now = { 100000 };

		CASE(cases[i].label);
		for (size_t k = 0; k < STEPS_MAX && cases[i].steps[k].what; k++) {
			now.ms += cases[i].steps[k].after_ms;
			play(&b, &calls, &cases[i].steps[k], now);
		}
	}
}

TEST(the_next_probe_is_due_one_timeout_after_opening)
{
	struct breaker b = { .threshold = 1, .timeout_ms = TIMEOUT_MS };
	uint64_t       ticket;

	CHECK(breaker_retry_at(&b).ms == 0);
	CHECK(breaker_allows(&b, (struct wall){ 500 }, &ticket));
	breaker_note(&b, ticket, false, (struct wall){ 700 });
	CHECK(breaker_retry_at(&b).ms == 1700);
	CHECK(breaker_allows(&b, (struct wall){ 1700 }, &ticket));
	breaker_note(&b, ticket, true, (struct wall){ 1800 });
	CHECK(breaker_retry_at(&b).ms == 0);
}

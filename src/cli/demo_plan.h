/* demo_plan.h - a day of life: who does what when, drawn from a seed. Knows no server. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
	DEMO_STUDENTS = 260,
	DEMO_BORROWERS = 18,
	DEMO_PEOPLE = 12,
	DEMO_DEEDS_MAX = 2 * DEMO_STUDENTS + 6 * DEMO_BORROWERS + 8,
	DEMO_DAY_MIN = 24 * 60,
	DEMO_DAWN_MIN = 8 * 60 /* the hour at which a day begins */
};

/* What somebody does: X(name, words). */
/* clang-format off */
#define DEMO_DEEDS(X)                                                     \
	X(CLAIM,         "claims a sandbox")                              \
	X(GIVE_BACK,     "gives the sandbox back")                        \
	X(REQUEST,       "asks for a lease")                              \
	X(APPROVE,       "approves the lease of")                         \
	X(DENY,          "denies the lease of")                           \
	X(FREEZE,        "freezes the lease of")                          \
	X(UNFREEZE,      "unfreezes the lease of")                        \
	X(END,           "ends the lease")                                \
	X(WITHDRAW,      "takes the request back")                        \
	X(OVERSPEND,     "starts something expensive")                    \
	X(FAIL_CLEANUPS, "leaves something that no cleanup can remove")   \
	X(RETRY_CLEANUP, "tries the failed cleanup again, of the account of") \
	X(REGISTER,      "takes a new account into the pool")             \
	X(BREAK_WEBHOOK, "adds a webhook that nobody answers")
/* clang-format on */

enum demo_kind {
#define X(name, words) DEMO_##name,
	DEMO_DEEDS(X)
#undef X
};

extern const char *const demo_words[];

/* Who borrows accounts, each with the email NAME@example.com; a development server knows them. */
extern const char *const demo_people[DEMO_PEOPLE];

struct demo_deed {
	int64_t        at_ms; /* since the day began */
	enum demo_kind kind;
	size_t         who; /* a student or a borrower; which, the kind says */
};

struct demo_plan {
	struct demo_deed deeds[DEMO_DEEDS_MAX]; /* in order */
	size_t           count;
	struct {
		const char *name, *lab;
	} students[DEMO_STUDENTS];
	struct {
		const char *name, *template, *comments;
	} borrowers[DEMO_BORROWERS];
};

/* The same seed is the same day. */
void demo_plan_make(struct demo_plan *p, uint64_t seed);

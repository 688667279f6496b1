/* demo_plan.h - a day of life: who does what when, drawn from a seed. Knows no server. */
#pragma once

#include "base/str.h"

enum { DEMO_STUDENTS = 260, DEMO_BORROWERS = 18, DEMO_PEOPLE = 12, DEMO_TENANTS = 6 };
enum { DEMO_ACTIONS_MAX = 2 * DEMO_STUDENTS + 6 * DEMO_BORROWERS + 6 * DEMO_TENANTS + 8 };
enum { DEMO_DAY_MIN = 24 * 60, DEMO_DAWN_MIN = 8 * 60 /* the hour at which a day begins */ };

/* What somebody does. Of two at the same time the smaller comes first. */
/* clang-format off */
enum demo_kind {
	DEMO_CLAIM, DEMO_GIVE_BACK,
	DEMO_REQUEST, DEMO_APPROVE, DEMO_DENY, DEMO_FREEZE, DEMO_UNFREEZE, DEMO_END, DEMO_WITHDRAW,
	DEMO_OVERSPEND, DEMO_FAIL_CLEANUPS, DEMO_RETRY_CLEANUP, DEMO_REGISTER, DEMO_BREAK_WEBHOOK,
	DEMO_FAIL_TENANT, DEMO_PROVISION, DEMO_SCALE, DEMO_SUSPEND, DEMO_RESUME, DEMO_PARK, DEMO_UNPARK, DEMO_BACK_UP,
	DEMO_REMOVE
};
/* clang-format on */

/* Who borrows accounts, each with the email NAME@example.com; a development server knows them. */
extern const char *const demo_people[DEMO_PEOPLE];

struct demo_action {
	int64_t        at_ms; /* since the day began */
	enum demo_kind kind;
	size_t         who; /* a student, a borrower or a tenant; which, the kind says */
};

struct demo_plan {
	struct demo_action actions[DEMO_ACTIONS_MAX]; /* in order */
	size_t             count;
	struct {
		const char *name, *lab;
	} students[DEMO_STUDENTS];
	struct {
		const char *name, *template, *comments;
	} borrowers[DEMO_BORROWERS];
	struct {
		const char *id, *organization;
	} tenants[DEMO_TENANTS];
};

/* The same seed is the same day. */
void demo_plan_make(struct demo_plan *p, uint64_t seed);

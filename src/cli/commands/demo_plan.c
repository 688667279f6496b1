/* SPDX-License-Identifier: Apache-2.0 */
/*
 * demo_plan.c - draws a day.
 *
 * Students come by the hour, as the weights say, and twice a day a class begins and all come at once. Each has a
 * sandbox for a while and gives it back; some forget to. Borrowers ask for leases, a few right at the start so that
 * there is something to see, and what becomes of each is a row of the table; so do tenants' instances. Nothing here
 * depends on what a server answers: that is what makes a seed the same day.
 */
#include "cli/commands/demo_plan.h"

#include <assert.h>
#include <stdlib.h>

enum { MINUTE_MS = 60000, CLASS_SIZE = 30, FORGETFUL_PERCENT = 6, EARLY_BORROWERS = 9 };

const char *const demo_people[DEMO_PEOPLE] = { "astrid", "bruno", "chiara", "dmitri", "elif",  "farid",
	                                       "greta",  "hanna", "ivan",   "joana",  "kenji", "lena" };

static const char *const names[] = { "ada",  "ben",  "cleo", "dara", "emil", "finn", "gita", "hugo", "ines",
	                             "jon",  "kaya", "leo",  "mira", "nils", "olga", "paul", "quin", "rosa",
	                             "sven", "tara", "umut", "vera", "wim",  "xeni", "yuri", "zoe" };
static const char *const courses[] = { "dns-basics", "firewalls", "kubernetes-intro", "networking-101", "zero-trust" };
static const char *const aims[] = { "course of this week", "trying a new service", "proof of concept",
	                            "workshop on Friday", "a customer's question" };

/* By the hour from dawn on. */
static const int weights[24] = { 6, 12, 14, 10, 6, 12, 14, 10, 8, 4, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 3 };

enum { FATE_MAX = 4 };

/* An action and when, in minutes after what began it all. */
struct later {
	enum demo_kind kind;
	int            min, max;
};

/* What becomes of a lease: actions up to the first that is never. */
struct fate {
	const char *template;
	struct later actions[FATE_MAX];
};

/* What becomes of a tenant's instance. */
struct tenant_fate {
	const char  *id, *organization;
	int          min, max; /* when it is asked for */
	struct later actions[FATE_MAX];
};

/* clang-format off */
static const struct fate fates[] = {
	{ "Project",    { { DEMO_APPROVE, 3, 12 }, { DEMO_OVERSPEND, 20, 30 } } },
	{ "Playground", { { DEMO_FAIL_CLEANUPS, 22, 22 }, { DEMO_END, 23, 23 }, { DEMO_RETRY_CLEANUP, 500, 700 } } },
	{ "Project",    { { 0, 0, 0 } } },
	{ "Playground", { { DEMO_END, 60, 120 } } },
	{ "Project",    { { DEMO_APPROVE, 3, 12 }, { DEMO_FREEZE, 40, 80 }, { DEMO_UNFREEZE, 500, 800 } } },
	{ "Project",    { { DEMO_DENY, 8, 20 } } },
	{ "Playground", { { 0, 0, 0 } } },
	{ "Playground", { { DEMO_END, 120, 400 } } },
	{ "Project",    { { DEMO_WITHDRAW, 10, 30 } } },
};

/* The one that fails does so between the cleanups that fail: the simulated cloud has one list of faults. */
static const struct tenant_fate tenant_fates[DEMO_TENANTS] = {
	{ "tenant-acorn",  "Acorn Books",       2,   6, { { DEMO_SCALE, 60, 200 } } },
	{ "tenant-birch",  "Birch Dental",      4,  10, { { DEMO_SUSPEND, 80, 160 }, { DEMO_RESUME, 500, 600 } } },
	{ "tenant-clover", "Clover Travel",     6,  14, { { DEMO_PARK, 90, 200 }, { DEMO_UNPARK, 700, 800 } } },
	{ "tenant-dune",   "Dune Surf School",  8,  20, { { DEMO_BACK_UP, 60, 90 }, { DEMO_REMOVE, 200, 400 } } },
	{ "tenant-ember",  "Ember Kitchens",   59,  60, { { DEMO_FAIL_TENANT, -1, -1 },
	                                                  { DEMO_PROVISION, 400, 600 } } },
	{ "tenant-fern",   "Fern Architects", 200, 500, { { DEMO_BACK_UP, 100, 300 } } },
};
/* clang-format on */

static uint64_t draw(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* From min to max, both included. */
static int64_t draw_between(uint64_t *state, int64_t min, int64_t max)
{
	return min + (int64_t)(draw(state) % (uint64_t)(max - min + 1));
}

static void add(struct demo_plan *p, int64_t at_ms, enum demo_kind kind, size_t who)
{
	assert(p->count < DEMO_ACTIONS_MAX);
	if (at_ms < (int64_t)DEMO_DAY_MIN * MINUTE_MS)
		p->actions[p->count++] = (struct demo_action){ at_ms, kind, who };
}

static int64_t draw_arrival(uint64_t *state)
{
	int64_t sum = 0, at;
	int     hour = 0;

	for (size_t i = 0; i < ARRAY_LEN(weights); i++)
		sum += weights[i];
	at = draw_between(state, 0, sum - 1);
	while (at >= weights[hour])
		at -= weights[hour++];
	return ((int64_t)hour * 60) * MINUTE_MS + draw_between(state, 0, 60 * MINUTE_MS - 1);
}

static void add_student(struct demo_plan *p, uint64_t *state, size_t who)
{
	int64_t at = draw_arrival(state), stay = draw_between(state, 15, 150) * MINUTE_MS;

	p->students[who].name = names[draw(state) % ARRAY_LEN(names)];
	p->students[who].lab = courses[draw(state) % ARRAY_LEN(courses)];
	if (who < CLASS_SIZE) /* at nine */
		at = 60 * MINUTE_MS + draw_between(state, 0, 3 * MINUTE_MS);
	else if (who < 2 * CLASS_SIZE) /* at two */
		at = 6 * 60 * MINUTE_MS + draw_between(state, 0, 3 * MINUTE_MS);
	add(p, at, DEMO_CLAIM, who);
	if (draw_between(state, 1, 100) > FORGETFUL_PERCENT)
		add(p, at + stay, DEMO_GIVE_BACK, who);
}

static void add_later(struct demo_plan *p, uint64_t *state, const struct later *actions, int64_t at, size_t who)
{
	for (size_t i = 0; i < FATE_MAX && actions[i].max; i++)
		add(p, (at + draw_between(state, actions[i].min, actions[i].max)) * MINUTE_MS, actions[i].kind, who);
}

static void add_borrower(struct demo_plan *p, uint64_t *state, size_t first, size_t who)
{
	const struct fate *fate = &fates[who % ARRAY_LEN(fates)];
	int64_t at = who < EARLY_BORROWERS ? draw_between(state, 1, 25) : draw_between(state, 60, DEMO_DAY_MIN / 2);

	p->borrowers[who].name = demo_people[(first + who) % DEMO_PEOPLE];
	p->borrowers[who].template = fate->template;
	p->borrowers[who].comments = aims[draw(state) % ARRAY_LEN(aims)];
	add(p, at * MINUTE_MS, DEMO_REQUEST, who);
	add_later(p, state, fate->actions, at, who);
}

static void add_tenant(struct demo_plan *p, uint64_t *state, size_t who)
{
	const struct tenant_fate *fate = &tenant_fates[who];
	int64_t                   at = draw_between(state, fate->min, fate->max);

	p->tenants[who].id = fate->id;
	p->tenants[who].organization = fate->organization;
	add(p, at * MINUTE_MS, DEMO_PROVISION, who);
	add_later(p, state, fate->actions, at, who);
}

/* Of actions at the same time, the one of the smaller kind: a request before its approval. */
static int compare(const void *a, const void *b)
{
	const struct demo_action *x = a, *y = b;

	if (x->at_ms != y->at_ms)
		return x->at_ms < y->at_ms ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->who < y->who ? -1 : x->who > y->who;
}

void demo_plan_make(struct demo_plan *p, uint64_t seed)
{
	uint64_t state = seed;
	size_t   first = draw(&state) % DEMO_PEOPLE;

	*p = (struct demo_plan){ .count = 0 };
	add(p, 0, DEMO_BREAK_WEBHOOK, 0);
	add(p, draw_between(&state, 240, 300) * MINUTE_MS, DEMO_REGISTER, 0);
	for (size_t who = 0; who < DEMO_STUDENTS; who++)
		add_student(p, &state, who);
	for (size_t who = 0; who < DEMO_BORROWERS; who++)
		add_borrower(p, &state, first, who);
	for (size_t who = 0; who < DEMO_TENANTS; who++)
		add_tenant(p, &state, who);
	qsort(p->actions, p->count, sizeof(p->actions[0]), compare);
}

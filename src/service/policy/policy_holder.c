/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_holder.c - the policy in force in this process.
 *
 * There are many readers, which must not wait, and few writers. So a policy never changes: a new one takes its place,
 * and the old one stays for POLICY_VALID_MS, for those who are still reading it. A generation has the texts of all
 * documents, because its policy is read from all of them.
 *
 * Always true: versions only grow, and there are at most POLICY_GENERATIONS_MAX generations. A text that cannot be read
 * changes nothing. If none before it could be read, the careful choice is in force, so that nothing is lent under rules
 * that nobody made [lock_down()]: the defaults in maintenance, or a person is asked about every request.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/approval.h"
#include "service/policy/policy_store.h"
#include "store/session.h"

struct generation {
	struct policy      policy;
	struct str         texts[DOCUMENT_KIND_COUNT]; /* empty: the defaults */
	uint64_t           versions[DOCUMENT_KIND_COUNT];
	bool               is_locked[DOCUMENT_KIND_COUNT]; /* there is one, but it cannot be read */
	struct arena       arena;
	struct mono        replaced; /* once there is a newer one */
	struct generation *older;
};

struct policy_holder {
	struct store                *store;
	const struct clock          *clock;
	int64_t                      rest_ms;
	_Atomic(struct generation *) current;
	pthread_mutex_t              lock; /* of those who replace it */
};

static const struct approval_rule   ask_rule = { .id = STR_INIT("unreadable-document"), .then = APPROVAL_ASK };
static const struct approval_policy ask_always = { &ask_rule, 1 };

static void generation_free(struct generation *g)
{
	while (g) {
		struct generation *older = g->older;

		arena_fini(&g->arena);
		free(g);
		g = older;
	}
}

struct policy_holder *policy_holder_new(struct store *store, const struct clock *clock)
{
	struct policy_holder *h = mem_new(struct policy_holder);
	struct generation    *g = mem_new(struct generation);

	h->store = store;
	h->clock = clock;
	pthread_mutex_init(&h->lock, NULL);
	policy_defaults(&g->policy);
	atomic_store(&h->current, g);
	return h;
}

void policy_holder_set_rest(struct policy_holder *h, int64_t rest_ms)
{
	h->rest_ms = rest_ms;
	atomic_load(&h->current)->policy.rest_ms = rest_ms;
}

void policy_holder_free(struct policy_holder *h)
{
	if (!h)
		return;
	generation_free(atomic_load(&h->current));
	pthread_mutex_destroy(&h->lock);
	free(h);
}

const struct policy *policy_current(const struct policy_holder *h)
{
	return &atomic_load(&h->current)->policy;
}

/* Drop those that nobody reads any more; how many are left. */
static size_t prune(struct policy_holder *h)
{
	struct generation *g = atomic_load(&h->current);
	int64_t            now_ms = clock_mono(h->clock).ms;
	size_t             count = 1;

	while (g->older && now_ms - g->older->replaced.ms <= POLICY_VALID_MS) {
		g = g->older;
		count++;
	}
	generation_free(g->older);
	g->older = NULL;
	return count;
}

/* What its documents say; where one cannot be read, the careful choice instead. */
static enum rc read_policy(struct generation *g, struct err *e)
{
	struct problems problems = { .arena = &g->arena };

	policy_defaults(&g->policy);
	g->policy.is_maintenance = g->is_locked[DOCUMENT_GLOBAL];
	if (g->is_locked[DOCUMENT_APPROVAL])
		g->policy.approval = &ask_always;
	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++)
		if (g->versions[i] && !policy_read((enum document_kind)i, g->texts[i], &g->policy, &problems))
			return err_set(e, RC_CORRUPT, "document %s, version %llu: %.*s: %.*s", document_names[i],
			               (unsigned long long)g->versions[i], STR_ARG(problems.items[0].field),
			               STR_ARG(problems.items[0].message));
	g->policy.version = g->versions[DOCUMENT_GLOBAL];
	return RC_OK;
}

static struct generation *copy_of(const struct generation *current)
{
	struct generation *g = mem_new(struct generation);

	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++) {
		g->texts[i] = str_dup(&g->arena, current->texts[i]);
		g->versions[i] = current->versions[i];
		g->is_locked[i] = current->is_locked[i];
	}
	return g;
}

static void put_in_place(struct policy_holder *h, struct generation *next)
{
	struct generation *current = atomic_load(&h->current);

	current->replaced = clock_mono(h->clock);
	next->older = current;
	next->policy.rest_ms = h->rest_ms;
	atomic_store(&h->current, next);
}

/* A document cannot be read, and none before it was in force: an admin can still sign in and correct it. */
static void lock_down(struct policy_holder *h, enum document_kind kind)
{
	struct generation *current = atomic_load(&h->current), *next;

	if (current->versions[kind] || current->is_locked[kind])
		return;
	next = copy_of(current);
	next->is_locked[kind] = true;
	if (read_policy(next, NULL)) /* it was read before */
		generation_free(next);
	else
		put_in_place(h, next);
}

static enum rc replace(struct policy_holder *h, enum document_kind kind, const struct document *d, struct err *e)
{
	struct generation *current = atomic_load(&h->current), *next;
	enum rc            rc;

	if (d->version <= current->versions[kind])
		return RC_OK;
	if (prune(h) == POLICY_GENERATIONS_MAX)
		return err_set(e, RC_LIMITED, "the policy changed %d times in a minute; this change is taken up later",
		               POLICY_GENERATIONS_MAX);
	next = copy_of(current);
	next->texts[kind] = str_dup(&next->arena, d->text);
	next->versions[kind] = d->version;
	next->is_locked[kind] = false;
	if ((rc = read_policy(next, e))) {
		generation_free(next);
		lock_down(h, kind);
		return rc;
	}
	put_in_place(h, next);
	return RC_OK;
}

enum rc policy_holder_take(struct policy_holder *h, enum document_kind kind, const struct document *d, struct err *e)
{
	LOCKED(&h->lock);
	return replace(h, kind, d, e);
}

static enum rc read_documents(struct session *s, void *arg, struct err *e)
{
	struct document *documents = arg;

	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++) {
		enum rc rc = session_find_or_new(s, &document_type, str_from(document_names[i]), &documents[i], e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

enum rc policy_holder_refresh(struct policy_holder *h, struct err *e)
{
	struct document                  documents[DOCUMENT_KIND_COUNT];
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = store_read(h->store, read_documents, documents, &a, e);
	bool                             has_read = rc == RC_OK;

	for (int i = 0; has_read && i < DOCUMENT_KIND_COUNT; i++) {
		enum rc taken = policy_holder_take(h, (enum document_kind)i, &documents[i], rc ? NULL : e);

		rc = rc ? rc : taken; /* one that cannot be read keeps none of the others away */
	}
	return rc;
}

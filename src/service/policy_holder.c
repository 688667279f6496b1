/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_holder.c - the policy in force in this process.
 *
 * Readers are many and must not wait, writers are a person now and then. So a policy never changes: a new one is made beside it and
 * takes its place, and the old one stays where it is for POLICY_VALID_MS, for those who are still reading it. A generation has the texts
 * of both documents, because each of its policies is read from both.
 *
 * Always true: versions only grow; a text that cannot be read changes nothing, or, when there was none before it that could, leads to
 * the defaults in maintenance, so that nobody is lent anything under rules that nobody made [lock_down()]; there are never more than
 * POLICY_GENERATIONS_MAX generations.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "service/policy_store.h"
#include "store/session.h"

struct generation {
	struct policy      policy;
	struct str         texts[DOCUMENT_KIND_COUNT]; /* empty: the defaults */
	uint64_t           versions[DOCUMENT_KIND_COUNT];
	struct arena       arena;
	struct mono        replaced; /* once there is a newer one */
	struct generation *older;
};

struct policy_holder {
	struct store                *store;
	const struct clock          *clock;
	_Atomic(struct generation *) current;
	pthread_mutex_t              lock; /* of those who replace it */
};

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

/* The current one with another document in it. */
static enum rc make_next(const struct generation *current, enum document_kind kind, const struct document *d,
                         struct generation *ret, struct err *e)
{
	struct problems problems = { .arena = &ret->arena };

	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++) {
		ret->texts[i] = str_dup(&ret->arena, i == (int)kind ? d->text : current->texts[i]);
		ret->versions[i] = i == (int)kind ? d->version : current->versions[i];
	}
	policy_defaults(&ret->policy);
	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++)
		if (ret->versions[i] && !policy_read((enum document_kind)i, ret->texts[i], &ret->policy, &problems))
			return err_set(e, RC_CORRUPT, "document %s, version %llu: %.*s: %.*s", document_names[i],
			               (unsigned long long)ret->versions[i], STR_ARG(problems.items[0].field),
			               STR_ARG(problems.items[0].message));
	ret->policy.version = ret->versions[DOCUMENT_GLOBAL];
	return RC_OK;
}

static void put_in_place(struct policy_holder *h, struct generation *next)
{
	struct generation *current = atomic_load(&h->current);

	current->replaced = clock_mono(h->clock);
	next->older = current;
	atomic_store(&h->current, next);
}

/* There is a configuration, but we cannot read it: an admin may come in and put it right. */
static void lock_down(struct policy_holder *h)
{
	struct generation *next;

	if (policy_current(h)->is_maintenance)
		return;
	next = mem_new(struct generation);
	policy_defaults(&next->policy);
	next->policy.is_maintenance = true;
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
	next = mem_new(struct generation);
	if ((rc = make_next(current, kind, d, next, e))) {
		generation_free(next);
		if (kind == DOCUMENT_GLOBAL && !current->versions[kind])
			lock_down(h);
		return rc;
	}
	put_in_place(h, next);
	return RC_OK;
}

enum rc policy_holder_take(struct policy_holder *h, enum document_kind kind, const struct document *d, struct err *e)
{
	enum rc rc;

	pthread_mutex_lock(&h->lock);
	rc = replace(h, kind, d, e);
	pthread_mutex_unlock(&h->lock);
	return rc;
}

static enum rc read_documents(struct session *s, void *arg, struct err *e)
{
	struct document *documents = arg;

	for (int i = 0; i < DOCUMENT_KIND_COUNT; i++) {
		enum rc rc;

		documents[i] = (struct document){ 0 };
		rc = session_get(s, &document_type, str_from(document_names[i]), &documents[i], NULL);
		if (rc && rc != RC_NOT_FOUND)
			return err_set(e, rc, "document %s cannot be read from the store", document_names[i]);
	}
	return RC_OK;
}

enum rc policy_holder_refresh(struct policy_holder *h, struct err *e)
{
	struct document documents[DOCUMENT_KIND_COUNT];
	struct arena    a = { 0 };
	enum rc         rc = store_read(h->store, read_documents, documents, &a, e);

	for (int i = 0; !rc && i < DOCUMENT_KIND_COUNT; i++)
		rc = policy_holder_take(h, (enum document_kind)i, &documents[i], e);
	arena_fini(&a);
	return rc;
}

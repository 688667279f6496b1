/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard.c - one circuit breaker for all calls to the CSP, listing and deleting together.
 *
 * Every failure but a refusal (RC_DENIED) counts against the CSP: a refusal is an answer of someone who works. While
 * the circuit is open nothing is sent and the caller gets RC_UNAVAILABLE with CSP_GUARD_CODE and the time to wait.
 *
 * The lock is held around the breaker only, never around a call, so a slow delete does not hold up a list.
 *
 * State is in memory: after a restart the first calls find out anew whether the CSP works.
 */
#include "providers/csp/guard.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/breaker.h"
#include "domain/csp.h"

struct csp_guard {
	struct csp          csp;
	struct csp         *inner;
	const struct clock *clock;
	pthread_mutex_t     lock;
	struct breaker      breaker; /* under the lock */
};

/* Whole seconds until the next probe, at least 1. */
static int64_t seconds_to_wait(const struct breaker *b, struct wall now)
{
	int64_t ms = breaker_retry_at(b).ms - now.ms;

	return ms > 1000 ? (ms + 999) / 1000 : 1;
}

static enum rc enter(struct csp_guard *g, const char *what, uint64_t *ret_ticket, struct err *e)
{
	struct wall now = clock_now(g->clock);
	int64_t     wait_sec;
	bool        is_allowed;

	pthread_mutex_lock(&g->lock);
	is_allowed = breaker_allows(&g->breaker, now, ret_ticket);
	wait_sec = seconds_to_wait(&g->breaker, now);
	pthread_mutex_unlock(&g->lock);
	if (is_allowed)
		return RC_OK;
	return err_set_code(e, RC_UNAVAILABLE, CSP_GUARD_CODE,
	                    "%s: not tried, the CSP failed too often; next try in %" PRId64 " s", what, wait_sec);
}

static void leave(struct csp_guard *g, uint64_t ticket, enum rc rc)
{
	struct wall now = clock_now(g->clock);

	pthread_mutex_lock(&g->lock);
	breaker_note(&g->breaker, ticket, rc == RC_OK || rc == RC_DENIED, now);
	pthread_mutex_unlock(&g->lock);
}

static enum rc guarded_list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_guard *g = CONTAINER_OF(c, struct csp_guard, csp);
	uint64_t          ticket;
	enum rc           rc = enter(g, "list of accounts", &ticket, e);

	if (rc)
		return rc;
	rc = csp_list(g->inner, a, ret, ret_count, e);
	leave(g, ticket, rc);
	return rc;
}

static enum rc guarded_delete(struct csp *c, struct str external_id, struct err *e)
{
	struct csp_guard *g = CONTAINER_OF(c, struct csp_guard, csp);
	uint64_t          ticket;
	enum rc           rc = enter(g, "delete account", &ticket, e);

	if (rc)
		return rc;
	rc = csp_delete(g->inner, external_id, e);
	leave(g, ticket, rc);
	return rc;
}

static void close_guard(struct csp *c)
{
	struct csp_guard *g = CONTAINER_OF(c, struct csp_guard, csp);

	csp_close(g->inner);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static const struct csp_ops ops = {
	.name = "guard", .list = guarded_list, .delete = guarded_delete, .close = close_guard
};

struct csp *csp_guard_open(struct csp *inner, const struct csp_guard_options *options)
{
	struct csp_guard *g = mem_new(struct csp_guard);

	assert(options->threshold > 0 && options->timeout_ms > 0);
	g->csp.ops = &ops;
	g->inner = inner;
	g->clock = options->clock;
	g->breaker = (struct breaker){ .threshold = options->threshold, .timeout_ms = options->timeout_ms };
	pthread_mutex_init(&g->lock, NULL);
	return &g->csp;
}

bool csp_guard_is_open(struct csp *guard, struct wall *ret_until)
{
	struct csp_guard *g = CONTAINER_OF(guard, struct csp_guard, csp);
	bool              is_open;

	assert(guard->ops == &ops);
	pthread_mutex_lock(&g->lock);
	is_open = breaker_is_open(&g->breaker);
	if (ret_until)
		*ret_until = breaker_retry_at(&g->breaker);
	pthread_mutex_unlock(&g->lock);
	return is_open;
}

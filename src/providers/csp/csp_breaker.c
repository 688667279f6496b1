/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csp_breaker.c - one circuit breaker for all calls to the CSP, listing and deleting together.
 *
 * Every failure but a refusal (RC_DENIED) counts against the CSP: a refusal is an answer of someone who works. While
 * the circuit is open nothing is sent and the caller gets RC_UNAVAILABLE with CSP_BREAKER_CODE and the time to wait.
 *
 * The lock is held around the breaker only, never around a call, so a slow delete does not hold up a list.
 *
 * State is in memory: after a restart the first calls find out anew whether the CSP works.
 */
#include "providers/csp/csp_breaker.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/mem.h"
#include "base/breaker.h"
#include "domain/ports/csp.h"

struct csp_breaker {
	struct csp          csp;
	struct csp         *inner;
	const struct clock *clock;
	pthread_mutex_t     lock;
	struct breaker      breaker; /* under the lock */
};

static enum rc enter(struct csp_breaker *b, const char *what, uint64_t *ret_ticket, struct err *e)
{
	struct wall now = clock_now(b->clock);
	int64_t     wait_ms;
	bool        is_allowed;

	pthread_mutex_lock(&b->lock);
	is_allowed = breaker_allows(&b->breaker, now, ret_ticket);
	wait_ms = breaker_retry_at(&b->breaker).ms - now.ms;
	pthread_mutex_unlock(&b->lock);
	if (is_allowed)
		return RC_OK;
	return err_set_code(e, RC_UNAVAILABLE, CSP_BREAKER_CODE,
	                    "%s: not tried, the CSP failed too often; next try in %" PRId64 " s", what,
	                    wait_ms > 1000 ? (wait_ms + 999) / 1000 : 1);
}

static void leave(struct csp_breaker *b, uint64_t ticket, enum rc rc)
{
	struct wall now = clock_now(b->clock);

	LOCKED(&b->lock);
	breaker_note(&b->breaker, ticket, rc == RC_OK || rc == RC_DENIED, now);
}

static enum rc list_through(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	struct csp_breaker *b = CONTAINER_OF(c, struct csp_breaker, csp);
	uint64_t            ticket;
	enum rc             rc = enter(b, "list of accounts", &ticket, e);

	if (rc)
		return rc;
	rc = csp_list(b->inner, a, ret, ret_count, e);
	leave(b, ticket, rc);
	return rc;
}

static enum rc delete_through(struct csp *c, struct str external_id, struct err *e)
{
	struct csp_breaker *b = CONTAINER_OF(c, struct csp_breaker, csp);
	uint64_t            ticket;
	enum rc             rc = enter(b, "delete account", &ticket, e);

	if (rc)
		return rc;
	rc = csp_delete(b->inner, external_id, e);
	leave(b, ticket, rc);
	return rc;
}

static void close_both(struct csp *c)
{
	struct csp_breaker *b = CONTAINER_OF(c, struct csp_breaker, csp);

	csp_close(b->inner);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

static const struct csp_ops ops = {
	.name = "breaker", .list = list_through, .delete = delete_through, .close = close_both
};

struct csp *csp_breaker_open(struct csp *inner, const struct csp_breaker_options *options)
{
	struct csp_breaker *b = mem_new(struct csp_breaker);

	assert(options->threshold > 0 && options->timeout_ms > 0);
	b->csp.ops = &ops;
	b->inner = inner;
	b->clock = options->clock;
	b->breaker = (struct breaker){ .threshold = options->threshold, .timeout_ms = options->timeout_ms };
	pthread_mutex_init(&b->lock, NULL);
	return &b->csp;
}

bool csp_breaker_is_open(struct csp *breaker, struct wall *ret_until)
{
	struct csp_breaker *b = CONTAINER_OF(breaker, struct csp_breaker, csp);
	bool                is_open;

	assert(breaker->ops == &ops);
	LOCKED(&b->lock);
	is_open = b->breaker.is_open;
	if (ret_until)
		*ret_until = breaker_retry_at(&b->breaker);
	return is_open;
}

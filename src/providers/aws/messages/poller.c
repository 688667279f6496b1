/* SPDX-License-Identifier: Apache-2.0 */
/*
 * poller.c - from a queue of SQS to an inbox.
 *
 *     receive (waits up to 20 s) -> each message alone: read, store -> delete what is stored
 *
 * Always true:
 *   1. A message is deleted after the commit that has all of it, and for no other reason. A crash in between brings
 *      it again, and it is known then. [take_all()]
 *   2. A message that makes no sense is left to the queue, which puts it among its dead letters after some receives;
 *      its neighbours are taken.
 *   3. While the store fails nothing is deleted, and nothing is asked for. [take_all()]
 *   4. There is no busy loop: a queue that is gone, that refuses us, or that answers at once with nothing is asked
 *      again after a wait, longer each time. [rest()]
 *   5. poller_stop() ends a long poll: the thread is watched (fetch_watch()).
 *
 * The commit is the hand-over, so a message is ours for milliseconds. Only when storing a batch takes more than a
 * third of the queue's visibility (a store that is slow) is it kept for longer. [keep_rest()]
 */
#include "providers/aws/messages/poller.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/fetch.h"

enum {
	REST_MS = 1000, /* after the first failure; doubles */
	REST_MAX_MS = 60000,
	EMPTY_MIN_MS = 1000, /* an empty answer that came sooner was no long poll */
	VISIBILITY_SEC = 30, /* SQS's own default, until the queue has told */
	DOUBLINGS_MAX = 6,
};

struct poller {
	struct poller_options o;
	pthread_t             thread;
	pthread_mutex_t       lock;
	pthread_cond_t        is_changed;
	bool                  is_stopping;
	struct poller_state   state;
	unsigned              failures;       /* in a row; the thread's own, as what follows */
	int64_t               visibility_sec; /* of a message that was received; 0: not known yet */
};

static bool may_go_on(void *arg)
{
	struct poller *p = arg;

	LOCKED(&p->lock);
	return !p->is_stopping;
}

/* --- whether it works --- */

static void log_once(const struct poller *p, enum log_level level, const char *what, const char *why)
{
	struct log_field fields[] = { LOG_STR("inbox", str_from(p->o.name)), LOG_STR("queue", p->o.queue.url),
		                      LOG_STR("why", str_from(why)) };

	log_write(level, "sqs", fields, ARRAY_LEN(fields), "%s", what);
}

static void note_failure(struct poller *p, const struct err *e)
{
	bool is_new;

	pthread_mutex_lock(&p->lock);
	is_new = !p->state.is_failing;
	if (is_new)
		p->state.since_ms = clock_now(&clock_real).ms;
	p->state.is_failing = true;
	(void)snprintf(p->state.text, sizeof(p->state.text), "%s", e->msg); /* a cut text is still one */
	pthread_mutex_unlock(&p->lock);
	p->failures++;
	if (is_new)
		log_once(p, LOG_WARNING, "the queue cannot be read; we keep trying", e->msg);
}

static void note_success(struct poller *p)
{
	bool was_failing;

	pthread_mutex_lock(&p->lock);
	was_failing = p->state.is_failing;
	p->state = (struct poller_state){ 0 };
	pthread_mutex_unlock(&p->lock);
	p->failures = 0;
	if (was_failing)
		log_once(p, LOG_INFO, "the queue can be read again", "");
}

void poller_look(struct poller *p, struct poller_state *ret)
{
	LOCKED(&p->lock);
	*ret = p->state;
}

/* Between one half and all of 1 s, 2 s, 4 s ... 60 s; ends at once when it is stopped. */
static void rest(struct poller *p)
{
	unsigned doublings = p->failures > 1 ? p->failures - 1 : 0;
	int64_t  most_ms = (int64_t)REST_MS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
	int64_t  until_ms;

	if (most_ms > REST_MAX_MS)
		most_ms = REST_MAX_MS;
	until_ms = mono_now().ms + most_ms / 2 + (int64_t)(id_fast_random() % (uint64_t)(most_ms / 2 + 1));
	LOCKED(&p->lock);
	while (!p->is_stopping && cond_wait_until(&p->is_changed, &p->lock, until_ms))
		;
}

/* --- one batch --- */

/* If the store is slow, the messages that wait for it must not go to another node meanwhile. If this fails, no harm is
 * done: they come again, and are known. */
static void keep_rest(struct poller *p, const struct sqs_message *rest, size_t count, int64_t *since_ms,
                      struct arena *a)
{
	int64_t visibility_sec = p->visibility_sec ? p->visibility_sec : VISIBILITY_SEC;

	if (mono_now().ms - *since_ms < visibility_sec * 1000 / 3)
		return;
	rc_ignore(sqs_keep(&p->o.queue, rest, count, visibility_sec, a, NULL));
	*since_ms = mono_now().ms;
}

/* Each alone. Those that are stored are put together at the front; RC_OK unless the store fails. */
static enum rc take_all(struct poller *p, struct sqs_message *messages, size_t count, struct arena *a,
                        size_t *ret_stored, struct err *e)
{
	int64_t since_ms = mono_now().ms;

	*ret_stored = 0;
	for (size_t i = 0; i < count; i++) {
		struct err why = { 0 };
		enum rc    rc;

		keep_rest(p, messages + i, count - i, &since_ms, a);
		rc = intake_take(&p->o.way, messages[i].body, a, &why);
		if (rc && !rc_is_retryable(rc) && rc != RC_CORRUPT && rc != RC_INTERNAL) {
			struct log_field fields[] = { LOG_STR("inbox", str_from(p->o.name)),
				                      LOG_STR("messageId", messages[i].id),
				                      LOG_NUM("receives", messages[i].receives),
				                      LOG_STR("why", str_from(why.msg)) };

			log_write(LOG_WARNING, "sqs", fields, ARRAY_LEN(fields),
			          "a message makes no sense, and is left to the queue's dead letters");
			continue;
		}
		if (rc)
			return err_set(e, rc, "%s", why.msg);
		messages[(*ret_stored)++] = messages[i];
	}
	return RC_OK;
}

static enum rc delete_stored(struct poller *p, const struct sqs_message *messages, size_t count, struct arena *a,
                             struct err *e)
{
	struct err why = { 0 };
	size_t     failed;
	enum rc    rc;

	if (!count)
		return RC_OK;
	if ((rc = sqs_delete(&p->o.queue, messages, count, a, &failed, &why)))
		return err_set(e, rc, "%s", why.msg);
	if (failed)
		log_once(p, LOG_WARNING,
		         "messages that are stored could not be deleted; they come again, and are known then", why.msg);
	return RC_OK;
}

/* One long poll and what it brought. */
static enum rc poll_once(struct poller *p, struct arena *a, bool *ret_was_early, struct err *e)
{
	struct sqs_message messages[SQS_BATCH_MAX];
	int64_t            began_ms = mono_now().ms;
	struct err         why = { 0 };
	size_t             count, stored;
	enum rc            rc = sqs_receive(&p->o.queue, a, messages, &count, e), deleted;

	if (rc)
		return rc;
	*ret_was_early = !count && mono_now().ms - began_ms < EMPTY_MIN_MS;
	rc = take_all(p, messages, count, a, &stored, e);
	deleted = delete_stored(p, messages, stored, a, &why);
	return rc || !deleted ? rc : err_set(e, deleted, "%s", why.msg);
}

static void *poll_loop(void *arg)
{
	struct poller                   *p = arg;
	CLEANUP(arena_fini) struct arena a = { 0 };

	fetch_watch(may_go_on, p);
	while (may_go_on(p)) {
		struct err e = { 0 };
		bool       was_early = false;
		enum rc    rc = poll_once(p, &a, &was_early, &e);

		if (rc && may_go_on(p))
			note_failure(p, &e);
		else if (!rc)
			note_success(p);
		if (!rc && !p->visibility_sec && sqs_visibility(&p->o.queue, &a, &p->visibility_sec, NULL) == RC_DENIED)
			p->visibility_sec = VISIBILITY_SEC; /* if we may not ask, SQS's default has to do */
		if (rc || was_early)
			rest(p);
		arena_reset(&a);
	}
	return NULL;
}

/* --- start and stop --- */

struct poller *poller_start(const struct poller_options *o)
{
	struct poller *p = mem_new(struct poller);

	p->o = *o;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->is_changed);
	mem_must(pthread_create(&p->thread, NULL, poll_loop, p) == 0, "a thread");
	return p;
}

void poller_stop(struct poller *p)
{
	if (!p)
		return;
	LOCKED(&p->lock);
	p->is_stopping = true;
	pthread_cond_broadcast(&p->is_changed);
}

void poller_free(struct poller *p)
{
	if (!p)
		return;
	poller_stop(p);
	pthread_join(p->thread, NULL);
	pthread_cond_destroy(&p->is_changed);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

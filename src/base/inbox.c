/* SPDX-License-Identifier: Apache-2.0 */
/* inbox.c - a mutex, a list, a condition. Senders signal only when a receiver sleeps. */
#include "base/inbox.h"

#include <stddef.h>

void inbox_init(struct inbox *q)
{
	*q = (struct inbox){ 0 };
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->is_filled, NULL);
}

void inbox_fini(struct inbox *q)
{
	pthread_cond_destroy(&q->is_filled);
	pthread_mutex_destroy(&q->lock);
}

bool inbox_put_list(struct inbox *q, struct inbox_item *first, struct inbox_item *last)
{
	bool was_empty, must_wake;

	last->next = NULL;
	pthread_mutex_lock(&q->lock);
	was_empty = !q->first;
	*(was_empty ? &q->first : &q->last->next) = first;
	q->last = last;
	must_wake = q->waiting > 0;
	pthread_mutex_unlock(&q->lock);
	if (must_wake)
		pthread_cond_signal(&q->is_filled);
	return was_empty;
}

bool inbox_put(struct inbox *q, struct inbox_item *item)
{
	return inbox_put_list(q, item, item);
}

static struct inbox_item *take(struct inbox *q, bool waits, bool is_all)
{
	struct inbox_item *taken;

	pthread_mutex_lock(&q->lock);
	while (waits && !q->first && !q->is_closed) {
		q->waiting++;
		pthread_cond_wait(&q->is_filled, &q->lock);
		q->waiting--;
	}
	taken = q->first;
	q->first = taken && !is_all ? taken->next : NULL;
	if (!q->first)
		q->last = NULL;
	pthread_mutex_unlock(&q->lock);
	if (taken && !is_all)
		taken->next = NULL;
	return taken;
}

struct inbox_item *inbox_take_all(struct inbox *q)
{
	return take(q, false, true);
}

struct inbox_item *inbox_wait_all(struct inbox *q)
{
	return take(q, true, true);
}

struct inbox_item *inbox_wait_one(struct inbox *q)
{
	return take(q, true, false);
}

void inbox_close(struct inbox *q)
{
	pthread_mutex_lock(&q->lock);
	q->is_closed = true;
	pthread_mutex_unlock(&q->lock);
	pthread_cond_broadcast(&q->is_filled);
}

/* inbox.h - hands work from any thread to one thread, in order. How our threads meet. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Embedded in whatever is handed over. */
struct inbox_item {
	struct inbox_item *next;
};

struct inbox {
	pthread_mutex_t    lock;
	pthread_cond_t     is_filled;
	struct inbox_item *first;
	struct inbox_item *last;
	unsigned           waiting; /* receivers that sleep */
	bool               is_closed;
};

void inbox_init(struct inbox *q);
void inbox_fini(struct inbox *q);

/* Put an item at the end. True when the inbox was empty before, so that a receiver who polls can be woken once. */
bool inbox_put(struct inbox *q, struct inbox_item *item);

/* The same with a whole list: the receiver gets all of it, or nothing yet. */
bool inbox_put_list(struct inbox *q, struct inbox_item *first, struct inbox_item *last);

/* Take everything, oldest first, without waiting. NULL when empty. */
struct inbox_item *inbox_take_all(struct inbox *q);

/* Wait until there is something, then take everything (or, with _one, the oldest). NULL when closed and empty. */
struct inbox_item *inbox_wait_all(struct inbox *q);
struct inbox_item *inbox_wait_one(struct inbox *q);

/* No more waiting: receivers get what is left, then NULL. */
void inbox_close(struct inbox *q);

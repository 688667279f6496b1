/* sqlite_hot.h - an index of the sqlite back end that is kept in memory: rows with one value, in order. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "store/record.h"
#include "store/session.h"

struct arena;

struct hot_text {
	size_t n;
	char   p[];
};

struct hot_entry {
	int64_t seq;
	union {
		int64_t          number;
		struct hot_text *text;
	} sort;
};

enum { HOT_CHUNK = 128 };
struct hot_chunk {
	size_t           from, count;
	struct hot_entry entries[HOT_CHUNK];
};

/* The rows with one hash value. No chunk is empty. */
struct hot_list {
	struct hot_chunk **chunks;
	size_t             chunk_count, room;
	int64_t            rows;
	int64_t            committed; /* how many rows as of the last commit */
};

/* A row that has left its list, in the commit of this number or one that is not durable yet. */
struct hot_gone {
	struct hot_entry entry;
	size_t           list;
	uint64_t         commit;
};

struct hot_index {
	const struct record_type *type;
	int                       index;
	bool                      is_text; /* what orders it */
	pthread_mutex_t           lock;    /* the writer changes it, the reader looks */
	struct hot_list          *lists;   /* one for each value of the hash field, an enum */
	size_t                    list_count;
	struct hot_gone          *gone; /* what the reader may still have to find */
	size_t                    gone_count, gone_room;
	uint64_t                  commits; /* made so far */
	bool                      is_read; /* the reader has a transaction that began after commit `read_since` */
	uint64_t                  read_since;
};

/* Where a list goes on: behind this row. Its text is the caller's. */
struct hot_place {
	int64_t      seq;
	struct value sort;
};

void hot_init(struct hot_index *h, const struct record_type *type, int index);
void hot_fini(struct hot_index *h);

/* Have the rows of another one instead, which has been made from the file. */
void hot_replace(struct hot_index *h, struct hot_index *fresh);

/* A row has changed, come or gone (NULL: not there). False: it was not where it should be: somebody else wrote to the
 * file. */
MUST_CHECK bool hot_note(struct hot_index *h, int64_t seq, const void *before, const void *after);

/* What was noted is durable. */
void hot_commit(struct hot_index *h);

/* The reader's transaction begins (before its snapshot is taken), and ends. In between it finds every row that its
 * snapshot has; also some that it has not, or elsewhere: who reads a row looks whether it is what was asked for. */
void hot_begin_read(struct hot_index *h);
void hot_end_read(struct hot_index *h);

/* The first rows of the query behind a place (NULL: from the beginning), at most `max`, texts in the arena. For the
 * reader also those that may be gone. */
size_t hot_find(struct hot_index *h, const struct query *q, const struct hot_place *behind, bool is_reader,
                struct arena *a, struct hot_place *ret, size_t max);

/* How many rows have the value, with what is not durable yet or without. */
int64_t hot_count(struct hot_index *h, int64_t hash, bool is_durable_only);

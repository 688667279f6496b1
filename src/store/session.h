/* session.h - what a transaction function can do. Reads see the session's own writes; writes wait until it succeeds. */
#pragma once

#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/record.h"

struct session;

/* The smallest back end sets the limit: DynamoDB takes 100 actions in one transaction. A changed record counts one,
 * plus one for each unique value that it takes or gives up; one that was read by key and stays as it is counts one. */
enum { SESSION_ACTIONS_MAX = 100, QUERY_LIMIT_MAX = 1000, CURSOR_MAX = 256 };

/* Instead of an index: all records of the type, by age (DynamoDB: by key); all of them in the order of their keys. A
 * type with a key_prefix has no such order: only QUERY_ALL, and not descending. */
enum { QUERY_ALL = -1, QUERY_KEYS = -2 };

/* The time of this transaction. */
struct wall   session_now(const struct session *s);
struct arena *session_arena(struct session *s);

/* For whose request it is done, see base/trace.h: its caller's, unless what it does was ordered by another. */
struct str session_trace(const struct session *s);
void       session_carry(struct session *s, struct str trace);

/* One record by key. RC_NOT_FOUND; the error says which record, and why it cannot be read. */
MUST_CHECK enum rc session_get(struct session *s, const struct record_type *type, struct str key, void *ret,
                               struct err *e);

/* The same for one that may be missing: then RC_OK, and *ret is left as it is. */
MUST_CHECK enum rc session_find(struct session *s, const struct record_type *type, struct str key, void *ret,
                                bool *ret_is_there, struct err *e);

/* The same, but a missing one is made: all zeroes but for its key, and not stored yet. */
MUST_CHECK enum rc session_find_or_new(struct session *s, const struct record_type *type, struct str key, void *ret,
                                       struct err *e);

/* Of the records of a query, only those that are wanted: decided by these fields alone (bit n: field n), before
 * anything else of a record is read. No more than `looks` of them are looked at for one page. */
struct query_filter {
	bool (*wants)(const void *record,
	              const void *arg); /* sees no other fields; their texts are gone when it returns */
	const void *arg;
	uint64_t    fields;
	size_t      looks;
};

/* Records of one index (not a unique one) with one hash value, in its order, or of QUERY_ALL or QUERY_KEYS. What
 * matches only by the session's own writes comes last. */
struct query {
	const struct record_type *type;
	int                       index;
	struct value              hash;
	struct str                sort_prefix;  /* TEXT sort field: only values that begin with it */
	bool                      has_sort_max; /* INT sort field: only values up to sort_max */
	int64_t                   sort_max;
	struct str sort_from, sort_to; /* TEXT sort field: only from here on, and only before; empty: no limit */
	bool       is_descending;
	size_t     limit;   /* 1 to QUERY_LIMIT_MAX */
	bool       is_last; /* of a page that is not empty: where the next one begins will not be asked */
	size_t bytes_max;   /* a page ends after the record that brings it to this size (record_bytes()); 0: no limit */
	const struct query_filter *filter; /* NULL: all are wanted. Not for claims */
	struct str                 cursor; /* page.next of the page before, or empty */
};

static inline struct query query_of(const struct record_type *type, int index, struct value hash, size_t limit)
{
	return (struct query){ .type = type, .index = index, .hash = hash, .limit = limit };
}

/* The same, of an INT sort field only what is up to this. */
static inline struct query query_until(const struct record_type *type, int index, struct value hash, int64_t most,
                                       size_t limit)
{
	return (struct query){
		.type = type, .index = index, .hash = hash, .has_sort_max = true, .sort_max = most, .limit = limit
	};
}

struct page {
	char      *records; /* count structs, one after the other, in the session's arena */
	size_t     count;
	struct str next; /* empty when this was the last page; with a filter, an empty page may not be the last */
};

/* RC_INVALID when the cursor does not belong to this query. */
MUST_CHECK enum rc session_query(struct session *s, const struct query *q, struct page *ret, struct err *e);

static inline void *page_record(const struct page *p, const struct record_type *type, size_t i)
{
	return p->records + i * type->size;
}

/* All records of a query in one session, page by page, as far as pages_max (0: to the end). All else is private. */
struct records {
	struct query query;
	int          pages_max;

	struct page page;
	size_t      at;
	int         pages;
};

/* The next of them, in the session's arena; NULL: that was the last one, or it failed, which *ret_rc tells. */
void *session_next(struct session *s, struct records *r, enum rc *ret_rc, struct err *e);

/* How many records have this hash value (QUERY_ALL: how many there are). Does not see the session's own writes. */
MUST_CHECK enum rc session_count(struct session *s, const struct record_type *type, int index, struct value hash,
                                 int64_t *ret, struct err *e);

/* The same for each of the first n values of an enum. */
MUST_CHECK enum rc session_count_each(struct session *s, const struct record_type *type, int index, int n, int64_t *ret,
                                      struct err *e);

/* Hand me one record of this query that I am about to change: the first, or on a store with many writers any of the
 * first few. RC_EXHAUSTED when there is none. */
MUST_CHECK enum rc session_claim(struct session *s, const struct query *q, void *ret, struct err *e);

/* The record with this value in a unique index. Only for transactions that may write: a promise between writers. */
MUST_CHECK enum rc session_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                                       void *ret, struct err *e);

/* Store the record as it is now, and give it its new version. Its texts must live as long as the session's arena. It
 * must have been read (found or not) in this session: only so can the store tell whether somebody else changed it. */
void session_put(struct session *s, const struct record_type *type, void *record);
void session_delete(struct session *s, const struct record_type *type, struct str key);

/* Reads the record, and deletes it if it is there. ret_was_there may be NULL. */
MUST_CHECK enum rc session_drop(struct session *s, const struct record_type *type, struct str key, bool *ret_was_there,
                                struct err *e);

/* The same for a record that is certainly new, because its key was just made up: not read before. RC_CONFLICT at the
 * commit when it is not new after all. */
void session_add(struct session *s, const struct record_type *type, void *record);

/* A function that was called in this session ends with rc: because the store could not read for it, and so by no fault
 * of its own? */
bool session_has_store_failed(const struct session *s, enum rc rc);

/* What store_set_context() was given. */
void *session_context(const struct session *s);

/* Something that a transaction of its own would do later may as well be done by this one, behind its function: then
 * it is durable with it. When it fails, or what it writes breaks a limit or meets a conflict, it is undone as if it
 * had not been asked for, and NEWS_TO_DO is told: there must be another way to it. It sees what the session has
 * written. In the session's arena; false: there are too many. */
enum { FOLLOWS_MAX = 8 };
struct follow {
	enum rc (*run)(struct session *s, void *arg, struct err *e);
	void (*done)(void *arg); /* when durable; on a thread of the store, before the transaction's own; may be NULL */
	void *arg;

	struct follow *next; /* private */
	bool           is_kept;
};
bool session_follow(struct session *s, struct follow *f);

/* Have the store's on_news called when this transaction is durable: something to do, or only something to see. */
enum { NEWS_TO_SEE = 1, NEWS_TO_DO = 2 };
void session_poke(struct session *s, unsigned news);

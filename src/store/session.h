/* session.h - what a transaction function can do. Reads see the session's own writes; writes wait until it succeeds. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/err.h"
#include "store/record.h"

struct arena;
struct session;

/* The smallest back end sets the limit: DynamoDB takes 100 actions in one transaction. A record that is changed counts one,
 * plus one for each unique value that it takes or gives up; one that was read by key and stays as it is counts one. */
enum { SESSION_ACTIONS_MAX = 100, QUERY_LIMIT_MAX = 1000, CURSOR_MAX = 256 };

/* Instead of an index: all records of the type, by age (DynamoDB: by key); all of them in the order of their keys. A type with a
 * key_prefix has no such order: only QUERY_ALL, and not descending. */
enum { QUERY_ALL = -1, QUERY_KEYS = -2 };

/* The time of this transaction. */
struct wall   session_now(const struct session *s);
struct arena *session_arena(struct session *s);

/* One record by key. RC_NOT_FOUND. */
MUST_CHECK enum rc session_get(struct session *s, const struct record_type *type, struct str key, void *ret,
                               struct err *e);

/* Records of one index (not a unique one) with one hash value, in its order, or of QUERY_ALL or QUERY_KEYS. What matches only by
 * the session's own writes comes last. */
struct query {
	const struct record_type *type;
	int                       index;
	struct value              hash;
	struct str                sort_prefix;  /* TEXT sort field: only values that begin with it */
	bool                      has_sort_max; /* INT sort field: only values up to sort_max */
	int64_t                   sort_max;
	struct str sort_from, sort_to; /* TEXT sort field: only from here on, and only before; empty: no limit */
	bool       is_descending;
	size_t     limit;  /* 1 to QUERY_LIMIT_MAX */
	struct str cursor; /* page.next of the page before, or empty */
};

struct page {
	char      *records; /* count structs, one after the other, in the session's arena */
	size_t     count;
	struct str next; /* empty when this was the last page */
};

/* RC_INVALID when the cursor does not belong to this query. */
MUST_CHECK enum rc session_query(struct session *s, const struct query *q, struct page *ret, struct err *e);

static inline void *page_record(const struct page *p, const struct record_type *type, size_t i)
{
	return p->records + i * type->size;
}

/* How many records have this hash value (QUERY_ALL: how many there are). Does not see the session's own writes. */
MUST_CHECK enum rc session_count(struct session *s, const struct record_type *type, int index, struct value hash,
                                 int64_t *ret, struct err *e);

/* Hand me one record of this query that I am about to change: the first, or on a store with many writers any of the
 * first few. RC_EXHAUSTED when there is none. */
MUST_CHECK enum rc session_claim(struct session *s, const struct query *q, void *ret, struct err *e);

/* The record that has this value in a unique index. Only for transactions that may write: uniqueness is a promise between
 * writers. RC_NOT_FOUND. */
MUST_CHECK enum rc session_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                                       void *ret, struct err *e);

/* Store the record as it is now, and give it its new version. Its texts must live as long as the session's arena. The
 * record must have been read (found or not) in this session: only so the store can tell whether somebody else changed it. */
void session_put(struct session *s, const struct record_type *type, void *record);
void session_delete(struct session *s, const struct record_type *type, struct str key);

/* The same for a record that is certainly new, because its key was just made up: not read before. RC_CONFLICT at the commit when
 * it is not new after all. */
void session_add(struct session *s, const struct record_type *type, void *record);

/* What store_set_context() was given. */
void *session_context(const struct session *s);

/* Something that a transaction of its own would do later may as well be done by this one, behind its function: then it is durable with it.
 * When it fails, or what it writes breaks a limit or meets a conflict, it is undone as if it had not been asked for, and NEWS_TO_DO is told:
 * there must be another way to it. It sees what the session has written. In the session's arena; false: there are too many. */
enum { FOLLOWS_MAX = 8 };
struct follow {
	enum rc (*run)(struct session *s, void *arg, struct err *e);
	void (*done)(
	        void *arg); /* when it is durable; on a thread of the store, before the transaction's own done(); may be NULL */
	void *arg;

	struct follow *next; /* private */
	bool           is_kept;
};
bool session_follow(struct session *s, struct follow *f);

/* When this transaction is durable, have the store's on_news called: there is something to do, or only something to see. */
enum { NEWS_TO_SEE = 1, NEWS_TO_DO = 2 };
void session_poke(struct session *s, unsigned news);

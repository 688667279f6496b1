/* store_ops.h - the back end's side of the store. Nobody else includes this. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "store/record.h"
#include "store/session.h"
#include "store/store.h"

/* One record that the session has read or written. */
struct session_entry {
	struct session_entry     *next;
	const struct record_type *type;
	struct str                key;
	const void               *before; /* as stored; NULL: was not there */
	const void               *after;  /* as it shall be; NULL: shall not be there */
	bool                      is_changed;
	bool                      is_decisive; /* read by key: what the session decides may depend on it */
	uint64_t                  changes;     /* the fields in which after differs from before, when both are there */
	int64_t                   handle;      /* the back end's own: finds the stored record again */
};

struct session {
	struct store         *store;
	struct arena         *arena;
	struct wall           now;
	struct str            trace;
	bool                  is_read_only;
	void                 *connection; /* the back end's own */
	struct session_entry *first, *last;
	unsigned              writes;
	unsigned              news;
	struct follow        *follows, *last_follow;
	unsigned              follow_count;
	bool                  has_failed; /* a read of it */
};

/* One record as a back end hands it out. */
struct stored {
	void   *record; /* in the session's arena */
	int64_t handle;
};

struct stored_page {
	struct stored *items;
	size_t         count;
	struct str     next;
};

/* Queue the transactions; run each with session_execute(); make it durable; call store_tell(). */
typedef void store_submit_fn(struct store *s, struct txn *const *txns, size_t count);

/* Do what was submitted, for back ends without a thread of their own; nothing for the others. */
typedef void store_turn_fn(struct store *s);
typedef void store_close_fn(struct store *s);

/* What is stored, without the session's own writes (the session puts those on top). RC_NOT_FOUND. */
typedef enum rc session_get_fn(struct session *s, const struct record_type *type, struct str key, struct stored *ret,
                               struct err *e);
typedef enum rc session_query_fn(struct session *s, const struct query *q, struct stored_page *ret, struct err *e);
typedef enum rc session_find_unique_fn(struct session *s, const struct record_type *type, int index, struct value v,
                                       struct stored *ret, struct err *e);
typedef enum rc session_count_fn(struct session *s, const struct record_type *type, int index, struct value hash,
                                 int64_t *ret, struct err *e);

/* A stored record that the query finds and nobody is known to have claimed: a candidate. RC_EXHAUSTED: none. */
typedef enum rc session_claim_fn(struct session *s, const struct query *q, struct stored *ret, struct err *e);

/* Write the changed entries, all or none. RC_CONFLICT: somebody else changed what the session has read. Another
 * failure makes the back end undo the whole commit. */
typedef enum rc session_apply_fn(struct session *s, struct err *e);

struct store_ops {
	const char             *name; /* shown in logs and /readyz */
	store_submit_fn        *submit;
	store_turn_fn          *turn;
	store_close_fn         *close;
	session_get_fn         *get;
	session_query_fn       *query;
	session_find_unique_fn *find_unique;
	session_count_fn       *count;
	session_claim_fn       *claim;
	session_apply_fn       *apply;
};

struct store { /* first member of every back end */
	const struct store_ops *ops;
	const struct clock     *clock;
	void                   *context;
	void (*on_news)(void *context, unsigned news);
	atomic_uint_fast64_t commits, failed_commits, transactions, conflicts, checkpoints;
	atomic_int_fast64_t  slowest_ms;    /* the longest writing transaction since store_take_slowest_ms() */
	atomic_int_fast64_t  busy_since_ms; /* monotonic: when the commit under way began; 0: none */
	pthread_mutex_t      health_lock;
	struct err           health;  /* of the last commit */
	struct err           failure; /* the last one there was */
};

void store_init(struct store *s, const struct store_ops *ops, const struct clock *clock);
void store_fini(struct store *s);

/* For those with threads of their own. */
store_turn_fn store_turn_nothing;

/* After each commit: how it went, and with how many transactions. A commit without writes proves nothing about the
 * disk, so it does not end a failure. */
void store_note_commit(struct store *s, enum rc rc, const struct err *e, uint64_t transactions, bool has_written);

/* The end of transactions: tell their callers, and the context when there is news. */
void store_tell(struct store *s, struct txn *const *txns, size_t count);

/* Which field orders the query; NO_FIELD: age. */
int query_sort_field(const struct query *q);

/* Run the function on a fresh session, check its writes, apply them. On failure nothing was applied, unless
 * *ret_is_torn: then the back end must undo its commit. */
enum rc session_execute(struct session *s, struct txn *t, bool *ret_is_torn);

/* How many stored records are looked at for one page. */
size_t query_looks(const struct query *q);

/* Is the page full, with so many records looked at and so many bytes in it? */
bool query_is_full(const struct query *q, const struct stored_page *page, size_t looked, size_t bytes);

/* Does the filter, if there is one, want the record? */
bool query_wants(const struct query *q, const void *record);

/* Does the record belong to what the query asks for? Cursor and limit aside. */
bool query_matches(const struct query *q, const void *record);

/* A cursor where each record has its own number: "number:sort value" of the last one looked at. RC_INVALID. */
struct str query_make_cursor(struct arena *a, const struct query *q, int64_t seq, const void *record);
enum rc    query_read_cursor(const struct query *q, int64_t *ret_seq, struct value *ret_sort, struct err *e);

/* The claim of a store with one writer: the query's first record. */
session_claim_fn session_claim_first;

/* The first changed entry after `previous` (NULL: the first of all) that makes a difference. NULL: no more. */
const struct session_entry *session_next_change(const struct session *s, const struct session_entry *previous);

/* Forget all reads and writes, as before a function is run again. */
void session_reset(struct session *s);

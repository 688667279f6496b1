/* ddb_private.h - shared by the files of the dynamodb back end; nobody else includes this. */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/breaker.h"
#include "base/buf.h"
#include "base/json.h"
#include "store/dynamodb/dynamodb.h"
#include "store/store_ops.h"

enum { DDB_BODY_MAX = 4 * 1024 * 1024, DDB_CANDIDATES_MAX = 100, DDB_KERNEL_GSI_MAX = 3, DDB_NUMBER_SIZE = 21 };

/* Free records, read ahead for claims. */
struct ddb_candidates {
	pthread_mutex_t           lock;
	struct arena              arena;
	const struct record_type *type; /* of what is there; NULL: nothing */
	int                       index;
	int64_t                   hash;
	struct stored             items[DDB_CANDIDATES_MAX];
	size_t                    count, next;
	struct mono               read_at;
};

struct ddb_store {
	struct store          base;
	struct ddb_options    options;
	struct inbox          work;
	pthread_t            *workers;
	pthread_mutex_t       breaker_lock;
	struct breaker        breaker;
	struct ddb_candidates candidates;
	atomic_uint           slices;    /* as far as known here; 0: not asked yet */
	atomic_int_fast64_t   looked_at; /* monotonic: when that was read */
};

/* What the session knows of the marker of a unique value. */
struct ddb_marker {
	struct ddb_marker        *next;
	const struct record_type *type;
	int                       index;
	struct value              value;
	struct str                key; /* of the record that has the value; empty: nobody */
};

/* session->connection of a session here. */
struct ddb_session {
	struct ddb_store *store;
	struct mono       end; /* when its transaction should have been answered; zero: whenever */
	unsigned          calls;
	bool              may_assume; /* a unique value that was not read may be taken for free: the commit will tell */
	bool              has_assumed; /* and that was done */
	bool is_taken; /* the commit failed only because a record that had to be new was there: no rerun helps */
	struct ddb_marker *markers;
};

static inline struct ddb_session *ddb_session(struct session *s)
{
	return s->connection;
}

/* The same record in another arena. */
static inline struct stored ddb_copy(const struct record_type *type, const struct stored *from, struct arena *a)
{
	struct stored copy = { arena_alloc(a, type->size), from->handle };

	record_copy(type, copy.record, from->record, a);
	return copy;
}

/* Call an operation, such as "GetItem". The first FEW_CALLS of a session share its time, each has at least
 * LAST_CALL_MS; those of long transactions, for which nobody waits, have the client's time each. The reply is yours
 * (json_decref) when RC_OK. RC_CONFLICT: a condition failed or another transaction was in the way; the reply is
 * yours too, and says which. RC_UNAVAILABLE: no answer, throttled to the last, circuit open, table missing. */
MUST_CHECK enum rc ddb_call(struct ddb_session *session, const char *operation, const struct buf *body, struct arena *a,
                            json_t **ret, struct err *e);

/* --- items (ddb_item.c) --- */

const char *ddb_table(const struct ddb_store *d, const struct record_type *type);

/* The beginning of a request about a table. */
void ddb_begin(struct buf *body, struct json_out *o, const char *table);

/* "PK" and "SK" members of a record's key, into the open object; PK alone, under another name. */
void ddb_put_key(struct json_out *o, const struct record_type *type, unsigned slice, struct str key);
void ddb_put_slice(struct json_out *o, const char *name, const struct record_type *type, unsigned slice);
void ddb_put_marker_key(struct json_out *o, const struct record_type *type, int index, struct value v);

/* {"S": ...} or {"N": ...} under a name. */
void ddb_put_text(struct json_out *o, const char *name, struct str text);
void ddb_put_number(struct json_out *o, const char *name, int64_t number);
void ddb_put_value(struct json_out *o, const char *name, const struct record_field *field, struct value v);

/* A secondary index of our own table: its name, and the attributes that are its keys. Any type may use it. */
struct ddb_own_index {
	const char *name, *hash, *sort;
};
extern const struct ddb_own_index ddb_own_indexes[DDB_KERNEL_GSI_MAX];

/* The one that serves the index; NULL: none, or the type is kept in the documents' table. */
const struct ddb_own_index *ddb_own_index(const struct record_type *type, const struct record_index *index);

/* Which field orders it there: without one of its own, the key. And its value as text in the same order. */
int        ddb_sort_field(const struct record_type *type, const struct record_index *index);
struct str ddb_sort_text(enum field_kind kind, struct value v, char number[DDB_NUMBER_SIZE]);

/* The attributes that place a record in those it belongs into, with a prefix; the first of them alone. */
void ddb_put_places(struct json_out *o, const struct record_type *type, unsigned slice, const void *record,
                    const char *prefix);
void ddb_put_own_hash(struct json_out *o, const char *name, const struct record_type *type, unsigned slice,
                      const struct record_index *index, struct value v);

/* All attributes of a record, key, version and places in secondary indexes included. */
void ddb_put_item(struct json_out *o, const struct record_type *type, unsigned slice, const void *record);

/* True when the field has an attribute although it is absent: it orders an index. */
bool ddb_is_kept(const struct record_type *type, int field);

/* An item as a record; handle 0: another program wrote it, else 1 + its slice. RC_CORRUPT. */
MUST_CHECK enum rc ddb_read_item(const struct record_type *type, const json_t *item, struct arena *a,
                                 struct stored *ret, struct err *e);

/* The key of an item without its prefix; empty when it is not one of the type's. */
struct str ddb_item_key(const struct record_type *type, const json_t *item);

/* --- slices (ddb_slice.c) --- */

/* How many there are; 1 for what is not sliced. They are read from the table at first and now and then. */
MUST_CHECK enum rc ddb_slices(struct ddb_session *session, const struct record_type *type, unsigned *ret,
                              struct err *e);

/* Read again how many there are. *ret_is_news: more than was known here. */
MUST_CHECK enum rc ddb_learn_slices(struct ddb_session *session, bool *ret_is_news, struct err *e);

/* The slice that a key belongs to. */
unsigned ddb_slice_of(struct str key, unsigned slices);

/* --- the session calls --- */

session_get_fn         ddb_get;
session_query_fn       ddb_query;
session_find_unique_fn ddb_find_unique;
session_count_fn       ddb_count;
session_claim_fn       ddb_claim;
session_apply_fn       ddb_apply;

/* Somebody else was faster: what was read ahead a while ago may be gone too. */
void ddb_doubt_candidates(struct ddb_store *d);

/* Read a marker and remember it; find what is known of one. */
MUST_CHECK enum rc ddb_read_marker(struct session *s, const struct record_type *type, int index, struct value v,
                                   struct ddb_marker **ret, struct err *e);
struct ddb_marker *ddb_known_marker(struct session *s, const struct record_type *type, int index, struct value v);

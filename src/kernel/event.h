/* event.h - tell the world, in the same transaction as the change; read what was told. */
#pragma once

#include <stdint.h>

#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

struct buf;
struct json_out;
struct kernel;

/* Write the event and one delivery for each matching queue, when and only when this transaction commits. The caller
 * sets type, subject, actor, detail and what else it knows; id, time, source and schema are filled in when they are
 * empty. Texts must live as long as the session's arena. Costs one action, and up to two for each matching queue. */
MUST_CHECK enum rc session_emit(struct session *s, struct event *event, struct err *e);

/* The same for an event of which there is no more to say than this. */
MUST_CHECK enum rc session_tell(struct session *s, const char *type, struct str subject, struct str actor,
                                struct str request_id, struct str detail, struct err *e);

/* What was written into b as a detail, in the arena. One that did not fit is refused by session_emit(). */
struct str event_detail(const struct buf *b, struct arena *a);

/* The envelope as members of the open JSON object: version, id, detail-type, source, account, time, region,
 * resources, detail, and ours: subject, actor, requestId, schemaVersion, traceparent. Empty texts of ours are left
 * out. */
void event_write_json(const struct kernel *k, const struct event *event, struct json_out *o);

/* The same as one text in the arena. The event keeps the limits of its fields: it was read or emitted. */
struct str event_to_json(const struct kernel *k, const struct event *event, struct arena *a);

/* Which events to list. Read-only transaction. Looks at no more than EVENT_LOOKS records, of those only that are
 * wanted at more than type and actor, and ends when it has EVENT_BYTES of them; so a page can be short, or empty,
 * and not the last. (The events of a subject that has a chain of its own: EVENT_CHAIN_MAX.) */
enum { EVENT_PAGE_MAX = 1000, EVENT_LOOKS = 500, EVENT_BYTES = 1 << 20, EVENT_CHAIN_MAX = 5000 };
struct event_list {
	struct str type, subject, actor; /* exact; empty: any. A type may end in '*' */
	int64_t    since_ms, until_ms;   /* 0: no limit */
	struct str after_id;             /* only newer than this one; for streams */
	bool (*hides)(struct str type);  /* leaves out those of such types; NULL: nothing */
	bool       is_newest_first;
	size_t     limit;
	struct str cursor;

	struct event *events; /* the answer */
	size_t        count;
	struct str    next;
};
txn_fn event_list;

/* One event by id: arg is a struct event with its id set. Read-only. */
txn_fn event_get;

/* Remove events and traces of outside events that are older than this, at most one transaction's worth. */
struct event_prune {
	int64_t before_ms;

	size_t removed; /* the answer: 0: nothing left to remove */
};
txn_fn event_prune;

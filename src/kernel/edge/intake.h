/* intake.h - events from outside: taken in once each, buffered in a queue, answered before they are handled. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

enum {
	INTAKE_RECORDS_MAX = 100,
	INTAKE_WRAPPED_MAX = 10 /* as many as a queue hands out */,
	INTAKE_BODY_MAX = 1048576,
	INTAKE_DEPTH_MAX = JSON_DEPTH_MAX - 8 /* of a detail: envelopes and replies around it are read again */
};

/* Is it neither too long nor too deep for an event's detail? RC_INVALID; `what` is it. */
MUST_CHECK enum rc intake_check_detail(struct str detail, const char *what, struct err *e);

/* One record of a body, and what became of it. */
enum intake_verdict { INTAKE_ACCEPTED, INTAKE_DUPLICATE, INTAKE_REJECTED };

struct intake_record {
	struct str          id; /* the event's own */
	struct event        event;
	enum intake_verdict verdict;
	struct err          e; /* rejected: why */
};

/* A body is one event, a list of events, or as queues wrap them: a record whose "body" is an event as text, or
 * {"Records": [...]} of such. RC_INVALID only when none of it can be read; a bad record is rejected alone. */
MUST_CHECK enum rc intake_parse(struct str source, struct str body, struct arena *a, struct intake_record **ret,
                                size_t *ret_count, struct err *e);

/* Store one record: a transaction each, so that none fails its neighbours. arg is a struct intake_call. */
struct intake_call {
	struct str            source; /* of the inbox, such as "cloudtrail" */
	struct str            request_id;
	struct intake_record *record;
};
txn_fn intake_store;

/* How the messages of a queue come in: the inbox's name, and who reads their bodies. */
typedef enum rc intake_parse_fn(struct str source, struct str body, struct arena *a, struct intake_record **ret,
                                size_t *ret_count, struct err *e);
struct inbox_way {
	struct store    *store;
	struct str       source;
	intake_parse_fn *parse; /* such as intake_parse() */
};

/* One message. RC_OK: all of its records are stored now, or were before. RC_INVALID, RC_TOO_LARGE: one of them makes no
 * sense (the others are stored); any other failure is the store's, and the message has to come again. Blocks. */
MUST_CHECK enum rc intake_take(const struct inbox_way *way, struct str body, struct arena *a, struct err *e);

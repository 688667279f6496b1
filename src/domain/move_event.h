/* move_event.h - an account was moved: the event that CloudTrail makes of the call MoveAccount, read exactly. Pure.
 *
 * The wrapping of queues (records with a body) is taken off before, in kernel/edge/intake.c. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* The first five are what others read of it too. */
struct move_event {
	struct str account; /* 12 digits */
	struct str source;  /* id of an OU or a root */
	struct str destination;
	struct str time; /* as it came */
	struct str id;   /* CloudTrail's own: the same in every copy of the event */

	int64_t    time_ms;    /* 0: its time is not in a form that we know */
	struct str error_code; /* the call failed, and nothing was moved; empty: it did not */
	struct str by;         /* who called: an ARN, or empty */
};

/* What is wrong with an event, by kind. */
#define MOVE_PROBLEMS(X)        \
	X(NOT_JSON, "not-json") \
	X(MISSING, "missing") X(OTHER_EVENT, "other-event") X(BAD_ID, "bad-id")

enum move_problem_kind {
#define X(name, text) MOVE_##name,
	MOVE_PROBLEMS(X)
#undef X
	        MOVE_PROBLEM_COUNT
};
extern const char *const move_problem_names[MOVE_PROBLEM_COUNT];

#define MOVE_PARSE_ERROR "PARSE_ERROR"

struct move_problem {
	enum move_problem_kind kind;
	const char            *action; /* of the log line: MOVE_PARSE_ERROR unless it was said otherwise */
	char                   details[200];
};

/* Note a problem; action NULL is MOVE_PARSE_ERROR. */
void move_problem_set(struct move_problem *p, enum move_problem_kind kind, const char *action, const char *fmt, ...)
        PRINTF_LIKE(4, 5);

/* One event as it is on the bus. Texts are copied into the arena. RC_INVALID: see *ret_problem, which may be NULL. */
MUST_CHECK enum rc move_event_parse(struct str text, struct arena *a, struct move_event *ret,
                                    struct move_problem *ret_problem);

/* ou-{4,32}-{8,32}; r-{4,32} or an OU. Lower case only. */
bool move_is_ou(struct str id);
bool move_is_parent(struct str id);

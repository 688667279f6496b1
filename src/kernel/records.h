/* records.h - what the kernel keeps: events, deliveries, dead letters, timers, sagas, alarms, webhooks. Times in ms. */
#pragma once

#include "base/str.h"
#include "base/trace.h"
#include "store/record.h"

enum {
	EVENT_TYPE_MAX = 64,
	SUBJECT_MAX = 200,
	ACTOR_MAX = 160,
	DETAIL_MAX = 65536,
	QUEUE_NAME_MAX = 32,
	TARGET_MAX = 320, /* a mail address */
	ERROR_MAX = 512,
	LANE_KEY_MAX = QUEUE_NAME_MAX + TARGET_MAX + SUBJECT_MAX + 2,
	SAGA_STEPS_MAX = 24,
	SAGA_DATA_MAX = 8192,
};

/* Types that come all the time are found by looking at the log itself; all others have an index. */
enum event_volume { EVENT_NOTABLE, EVENT_ROUTINE, EVENT_VOLUME_COUNT };

/* How the events of a subject lead to this one: by the index, or only by the one after it (its `previous`) or the
 * subject's own record, see kernel_options.last_event. */
enum event_reach { EVENT_INDEXED, EVENT_CHAINED, EVENT_REACH_COUNT };

/* Something that happened. Never changed, removed only by age. */
struct event {
	struct str        id;   /* UUID version 7: the order of ids is the order of time */
	struct str        type; /* "detail-type" */
	struct str        source;
	struct str        account, region; /* empty: ours */
	int64_t           time_ms;
	struct str        resources; /* JSON array, or empty */
	struct str        subject;   /* what it is about, such as "sandbox/2f0c…" */
	struct str        actor;     /* who did it, such as "track/student-1", "admin", "job/expiry" */
	struct str        request_id;
	int64_t           schema; /* version of the detail's form; from 1 */
	struct str        detail; /* JSON object */
	enum event_volume volume;
	struct str        previous; /* id of the subject's event before this one; empty: none, or not known */
	enum event_reach  reach;
	struct str        trace; /* for whose request, see base/trace.h */
	uint64_t          version;
};
#define EVENT_FIELDS(X)                                                                \
	X(EVENT_F_ID, TEXT(event, id, ID_MAX))                                         \
	X(EVENT_F_TYPE, TEXT(event, type, EVENT_TYPE_MAX))                             \
	X(EVENT_F_SOURCE, TEXT_OR_NONE(event, source, 128))                            \
	X(EVENT_F_ACCOUNT, TEXT_OR_NONE(event, account, 64))                           \
	X(EVENT_F_REGION, TEXT_OR_NONE(event, region, 64))                             \
	X(EVENT_F_TIME, INT(event, time_ms))                                           \
	X(EVENT_F_RESOURCES, TEXT_OR_NONE(event, resources, 4096))                     \
	X(EVENT_F_SUBJECT, TEXT(event, subject, SUBJECT_MAX))                          \
	X(EVENT_F_ACTOR, TEXT_OR_NONE(event, actor, ACTOR_MAX))                        \
	X(EVENT_F_REQUEST_ID, TEXT_OR_NONE(event, request_id, 64))                     \
	X(EVENT_F_SCHEMA, INT(event, schema))                                          \
	X(EVENT_F_DETAIL, TEXT_OR_NONE(event, detail, DETAIL_MAX))                     \
	X(EVENT_F_VOLUME, ENUM(event, volume, event_volume_names, EVENT_VOLUME_COUNT)) \
	X(EVENT_F_PREVIOUS, TEXT_OR_NONE(event, previous, ID_MAX))                     \
	X(EVENT_F_REACH, ENUM(event, reach, event_reach_names, EVENT_REACH_COUNT))     \
	X(EVENT_F_TRACE, TEXT_OR_NONE(event, trace, TRACE_TEXT_MAX))
enum { EVENT_FIELDS(RECORD_FIELD_ID) };
enum event_index { EVENT_BY_SUBJECT, EVENT_BY_TYPE };
extern const struct record_type event_type;

/* The deliveries of one queue for one subject (and target), first come first served. The record is the one at the
 * head; those behind it are `waiting` records. Exists while there is anything to deliver. */
struct lane {
	struct str key; /* queue#subject, or queue#target|subject */
	struct str queue, subject;
	struct str target;     /* queues with addressees: which webhook, which mailbox */
	struct str event_id;   /* of the head */
	int64_t    head, tail; /* numbers of the first and the last delivery */
	int64_t    since_ms;   /* the head is due since */
	int64_t    due_ms;     /* not before this: back-off, or the visibility deadline while it is in flight */
	int64_t    tries;      /* of the head */
	struct str owner;      /* in flight at this node; empty: nobody */
	int64_t    fence;      /* number of the last claim */
	struct str last_error;
	struct str event; /* the head's envelope, when it was replayed: the log may have forgotten it */
	uint64_t   version;
};
#define LANE_FIELDS(X)                                                  \
	X(LANE_F_KEY, TEXT(lane, key, LANE_KEY_MAX))                    \
	X(LANE_F_QUEUE, TEXT(lane, queue, QUEUE_NAME_MAX))              \
	X(LANE_F_SUBJECT, TEXT(lane, subject, SUBJECT_MAX))             \
	X(LANE_F_TARGET, TEXT_OR_NONE(lane, target, TARGET_MAX))        \
	X(LANE_F_EVENT_ID, TEXT(lane, event_id, ID_MAX))                \
	X(LANE_F_HEAD, INT(lane, head))                                 \
	X(LANE_F_TAIL, INT(lane, tail))                                 \
	X(LANE_F_SINCE, INT(lane, since_ms))                            \
	X(LANE_F_DUE, INT(lane, due_ms))                                \
	X(LANE_F_TRIES, INT(lane, tries))                               \
	X(LANE_F_OWNER, TEXT_OR_NONE(lane, owner, 64))                  \
	X(LANE_F_FENCE, INT(lane, fence))                               \
	X(LANE_F_LAST_ERROR, TEXT_OR_NONE(lane, last_error, ERROR_MAX)) \
	X(LANE_F_EVENT, TEXT_OR_NONE(lane, event, 2 * DETAIL_MAX))
enum { LANE_FIELDS(RECORD_FIELD_ID) };
enum lane_index { LANE_DUE }; /* of one queue, by due_ms */
extern const struct record_type lane_type;

struct waiting {
	struct str key; /* the lane's key, '#', number with 12 digits */
	struct str event_id;
	int64_t    at_ms;
	struct str event; /* as of a lane */
	uint64_t   version;
};
#define WAITING_FIELDS(X)                                       \
	X(WAITING_F_KEY, TEXT(waiting, key, LANE_KEY_MAX + 13)) \
	X(WAITING_F_EVENT_ID, TEXT(waiting, event_id, ID_MAX))  \
	X(WAITING_F_AT, INT(waiting, at_ms))                    \
	X(WAITING_F_EVENT, TEXT_OR_NONE(waiting, event, 2 * DETAIL_MAX))
enum { WAITING_FIELDS(RECORD_FIELD_ID) };
extern const struct record_type waiting_type;

/* A delivery that was given up, whole, so that it can be understood and tried again. */
struct dead {
	struct str id, queue, subject, target, event_id;
	struct str event; /* the envelope as JSON */
	int64_t    tries;
	struct str error;
	int64_t    since_ms, died_ms;
	uint64_t   version;
};
#define DEAD_FIELDS(X)                                             \
	X(DEAD_F_ID, TEXT(dead, id, ID_MAX))                       \
	X(DEAD_F_QUEUE, TEXT(dead, queue, QUEUE_NAME_MAX))         \
	X(DEAD_F_SUBJECT, TEXT(dead, subject, SUBJECT_MAX))        \
	X(DEAD_F_TARGET, TEXT_OR_NONE(dead, target, TARGET_MAX))   \
	X(DEAD_F_EVENT_ID, TEXT(dead, event_id, ID_MAX))           \
	X(DEAD_F_EVENT, TEXT_OR_NONE(dead, event, 2 * DETAIL_MAX)) \
	X(DEAD_F_TRIES, INT(dead, tries))                          \
	X(DEAD_F_ERROR, TEXT_OR_NONE(dead, error, ERROR_MAX))      \
	X(DEAD_F_SINCE, INT(dead, since_ms))                       \
	X(DEAD_F_DIED, INT(dead, died_ms))
enum { DEAD_FIELDS(RECORD_FIELD_ID) };
enum dead_index { DEAD_BY_QUEUE }; /* by died_ms */
extern const struct record_type dead_type;

enum timer_state { TIMER_ARMED, TIMER_STATE_COUNT };

/* When its time has come, the timer is removed and an event of this type, subject and detail emitted, in one commit. */
struct timer {
	struct str       name;
	enum timer_state state;
	int64_t          due_ms;
	struct str       type, subject, detail;
	int64_t          armed_ms;
	uint64_t         version;
};
#define TIMER_FIELDS(X)                                                            \
	X(TIMER_F_NAME, TEXT(timer, name, TIMER_NAME_MAX))                         \
	X(TIMER_F_STATE, ENUM(timer, state, timer_state_names, TIMER_STATE_COUNT)) \
	X(TIMER_F_DUE, INT(timer, due_ms))                                         \
	X(TIMER_F_TYPE, TEXT(timer, type, EVENT_TYPE_MAX))                         \
	X(TIMER_F_SUBJECT, TEXT(timer, subject, SUBJECT_MAX))                      \
	X(TIMER_F_DETAIL, TEXT_OR_NONE(timer, detail, 4096))                       \
	X(TIMER_F_ARMED, INT(timer, armed_ms))
enum { TIMER_FIELDS(RECORD_FIELD_ID) };
enum timer_index { TIMER_DUE }; /* all armed ones, by due_ms */
extern const struct record_type timer_type;

enum saga_state {
	SAGA_RUNNING,
	SAGA_UNDOING,
	SAGA_PARKED, /* needs a person */
	SAGA_DONE,
	SAGA_UNDONE,
	SAGA_STATE_COUNT,
	SAGA_OPEN_STATES = SAGA_DONE, /* those before it have not ended */
};

struct saga {
	struct str      id, kind, subject;
	enum saga_state state;
	int64_t         step;    /* the one under way; the first is 0 */
	struct str      marks;   /* one letter per step, see enum saga_mark */
	int64_t         is_back; /* parked: it was undoing */
	struct str      input;   /* JSON object */
	struct str      data;    /* JSON object: what the steps have found out */
	int64_t         started_ms, step_since_ms, ended_ms;
	int64_t         deadline_ms; /* for all of it; 0: none */
	int64_t         due_ms;      /* not before this: back-off, or the end of the owner's lease */
	int64_t         tries;       /* of the step under way, in this direction */
	struct str      owner;
	int64_t         fence;
	struct str      last_error;
	struct str      reason;    /* why it goes back, or is parked */
	struct str      leftovers; /* JSON array: steps whose effect may still be there */
	struct str      actor;     /* who started it */
	struct str      trace;     /* and with which request, see base/trace.h */
	uint64_t        version;
};
#define SAGA_FIELDS(X)                                                         \
	X(SAGA_F_ID, TEXT(saga, id, SAGA_ID_MAX))                              \
	X(SAGA_F_KIND, TEXT(saga, kind, 64))                                   \
	X(SAGA_F_SUBJECT, TEXT(saga, subject, SUBJECT_MAX))                    \
	X(SAGA_F_STATE, ENUM(saga, state, saga_state_names, SAGA_STATE_COUNT)) \
	X(SAGA_F_STEP, INT(saga, step))                                        \
	X(SAGA_F_MARKS, TEXT(saga, marks, SAGA_STEPS_MAX))                     \
	X(SAGA_F_IS_BACK, INT(saga, is_back))                                  \
	X(SAGA_F_INPUT, TEXT_OR_NONE(saga, input, SAGA_DATA_MAX))              \
	X(SAGA_F_DATA, TEXT_OR_NONE(saga, data, SAGA_DATA_MAX))                \
	X(SAGA_F_STARTED, INT(saga, started_ms))                               \
	X(SAGA_F_STEP_SINCE, INT(saga, step_since_ms))                         \
	X(SAGA_F_ENDED, INT_OR_NONE(saga, ended_ms))                           \
	X(SAGA_F_DEADLINE, INT_OR_NONE(saga, deadline_ms))                     \
	X(SAGA_F_DUE, INT(saga, due_ms))                                       \
	X(SAGA_F_TRIES, INT(saga, tries))                                      \
	X(SAGA_F_OWNER, TEXT_OR_NONE(saga, owner, 64))                         \
	X(SAGA_F_FENCE, INT(saga, fence))                                      \
	X(SAGA_F_LAST_ERROR, TEXT_OR_NONE(saga, last_error, ERROR_MAX))        \
	X(SAGA_F_REASON, TEXT_OR_NONE(saga, reason, ERROR_MAX))                \
	X(SAGA_F_LEFTOVERS, TEXT_OR_NONE(saga, leftovers, 2048))               \
	X(SAGA_F_ACTOR, TEXT_OR_NONE(saga, actor, ACTOR_MAX))                  \
	X(SAGA_F_TRACE, TEXT_OR_NONE(saga, trace, TRACE_TEXT_MAX))
enum { SAGA_FIELDS(RECORD_FIELD_ID) };
enum saga_index { SAGA_BY_STATE, /* by due_ms */ SAGA_BY_SUBJECT /* by started_ms */ };
extern const struct record_type saga_type;
extern const char *const        saga_state_names[SAGA_STATE_COUNT];

enum alarm_state { ALARM_PENDING, ALARM_RAISED, ALARM_STATE_COUNT };
enum alarm_severity { ALARM_WARNING, ALARM_PAGE, ALARM_SEVERITY_COUNT };

/* A condition that holds. There while it does. */
struct alarm {
	struct str          name; /* rule, or rule#instance */
	struct str          rule;
	enum alarm_state    state;
	enum alarm_severity severity;
	struct str          evidence; /* one sentence */
	int64_t             value, since_ms, raised_ms;
	int64_t             checked_ms; /* by the check that wrote the record: when it last changed */
	uint64_t            version;
};
#define ALARM_FIELDS(X)                                                                        \
	X(ALARM_F_NAME, TEXT(alarm, name, 240))                                                \
	X(ALARM_F_RULE, TEXT(alarm, rule, 64))                                                 \
	X(ALARM_F_STATE, ENUM(alarm, state, alarm_state_names, ALARM_STATE_COUNT))             \
	X(ALARM_F_SEVERITY, ENUM(alarm, severity, alarm_severity_names, ALARM_SEVERITY_COUNT)) \
	X(ALARM_F_EVIDENCE, TEXT_OR_NONE(alarm, evidence, ERROR_MAX))                          \
	X(ALARM_F_VALUE, INT(alarm, value))                                                    \
	X(ALARM_F_SINCE, INT(alarm, since_ms))                                                 \
	X(ALARM_F_RAISED, INT_OR_NONE(alarm, raised_ms))                                       \
	X(ALARM_F_CHECKED, INT(alarm, checked_ms))
enum { ALARM_FIELDS(RECORD_FIELD_ID) };
extern const struct record_type alarm_type;
extern const char *const        alarm_state_names[ALARM_STATE_COUNT];
extern const char *const        alarm_severity_names[ALARM_SEVERITY_COUNT];

struct webhook {
	struct str id, url;
	struct str filter; /* event type patterns, comma-separated; "*" is all */
	struct str secret; /* never shown again after it was made */
	struct str description;
	int64_t    is_paused, created_ms;
	struct str created_by;
	uint64_t   version;
};
#define WEBHOOK_FIELDS(X)                                                 \
	X(WEBHOOK_F_ID, TEXT(webhook, id, ID_MAX))                        \
	X(WEBHOOK_F_URL, TEXT(webhook, url, 2048))                        \
	X(WEBHOOK_F_FILTER, TEXT(webhook, filter, 1024))                  \
	X(WEBHOOK_F_SECRET, TEXT(webhook, secret, 128))                   \
	X(WEBHOOK_F_DESCRIPTION, TEXT_OR_NONE(webhook, description, 256)) \
	X(WEBHOOK_F_PAUSED, INT(webhook, is_paused))                      \
	X(WEBHOOK_F_CREATED, INT(webhook, created_ms))                    \
	X(WEBHOOK_F_CREATED_BY, TEXT_OR_NONE(webhook, created_by, ACTOR_MAX))
enum { WEBHOOK_FIELDS(RECORD_FIELD_ID) };
extern const struct record_type webhook_type;

/* An outside event that was taken in, so that the same one is not taken twice. */
enum { SEEN_KEY_MAX = 240 };
struct seen {
	struct str key; /* source#id */
	struct str event_id;
	int64_t    lot; /* always 1: one index of all, by age */
	int64_t    at_ms;
	uint64_t   version;
};
#define SEEN_FIELDS(X)                                   \
	X(SEEN_F_KEY, TEXT(seen, key, SEEN_KEY_MAX))     \
	X(SEEN_F_EVENT_ID, TEXT(seen, event_id, ID_MAX)) \
	X(SEEN_F_LOT, INT(seen, lot))                    \
	X(SEEN_F_AT, INT(seen, at_ms))
enum { SEEN_FIELDS(RECORD_FIELD_ID) };
enum seen_index { SEEN_BY_AGE };
extern const struct record_type seen_type;

/* A running process says that it is alive, and how its store does. */
struct node {
	struct str id;
	int64_t    started_ms, beat_ms;
	int64_t    slowest_ms;     /* the longest transaction between the last two beats */
	int64_t    failed_commits; /* since the last beat but one */
	uint64_t   version;
};
#define NODE_FIELDS(X)                           \
	X(NODE_F_ID, TEXT(node, id, 64))         \
	X(NODE_F_STARTED, INT(node, started_ms)) \
	X(NODE_F_BEAT, INT(node, beat_ms))       \
	X(NODE_F_SLOWEST, INT(node, slowest_ms)) \
	X(NODE_F_FAILED, INT(node, failed_commits))
enum { NODE_FIELDS(RECORD_FIELD_ID) };
extern const struct record_type node_type;

/* Something about the world that only a process can see and everybody should know, such as an open circuit. */
struct fact {
	struct str name; /* "circuit/csp" */
	int64_t    value;
	struct str text;
	int64_t    since_ms, at_ms; /* has this value since; was seen last */
	uint64_t   version;
};
#define FACT_FIELDS(X)                                      \
	X(FACT_F_NAME, TEXT(fact, name, 128))               \
	X(FACT_F_VALUE, INT(fact, value))                   \
	X(FACT_F_TEXT, TEXT_OR_NONE(fact, text, ERROR_MAX)) \
	X(FACT_F_SINCE, INT(fact, since_ms))                \
	X(FACT_F_AT, INT(fact, at_ms))
enum { FACT_FIELDS(RECORD_FIELD_ID) };
extern const struct record_type fact_type;

/* All of them, for opening a store: KERNEL_TYPES is a list for an initialiser. */
#define KERNEL_TYPES                                                                                             \
	&event_type, &lane_type, &waiting_type, &dead_type, &timer_type, &saga_type, &alarm_type, &webhook_type, \
	        &seen_type, &node_type, &fact_type

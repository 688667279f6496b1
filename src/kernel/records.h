/* records.h - what the kernel keeps: events, deliveries, dead letters, timers, sagas, alarms, webhooks. Times are in ms. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
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

/* How the events of a subject lead to this one: by the index, or only by the one after it (its `previous`) or the subject's own record,
 * see kernel_options.last_event. */
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
	uint64_t          version;
};
enum {
	EVENT_F_ID,
	EVENT_F_TYPE,
	EVENT_F_SOURCE,
	EVENT_F_ACCOUNT,
	EVENT_F_REGION,
	EVENT_F_TIME,
	EVENT_F_RESOURCES,
	EVENT_F_SUBJECT,
	EVENT_F_ACTOR,
	EVENT_F_REQUEST_ID,
	EVENT_F_SCHEMA,
	EVENT_F_DETAIL,
	EVENT_F_VOLUME,
	EVENT_F_PREVIOUS,
	EVENT_F_REACH
};
enum event_index { EVENT_BY_SUBJECT, EVENT_BY_TYPE };
extern const struct record_type event_type;

/* The deliveries of one queue for one subject (and target), first come first served. The record is the one at the head; those
 * behind it are `waiting` records. There while anything is to be delivered. */
struct lane {
	struct str key; /* queue#subject, or queue#target|subject */
	struct str queue;
	struct str subject;
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
enum {
	LANE_F_KEY,
	LANE_F_QUEUE,
	LANE_F_SUBJECT,
	LANE_F_TARGET,
	LANE_F_EVENT_ID,
	LANE_F_HEAD,
	LANE_F_TAIL,
	LANE_F_SINCE,
	LANE_F_DUE,
	LANE_F_TRIES,
	LANE_F_OWNER,
	LANE_F_FENCE,
	LANE_F_LAST_ERROR,
	LANE_F_EVENT
};
enum lane_index { LANE_DUE }; /* of one queue, by due_ms */
extern const struct record_type lane_type;

struct waiting {
	struct str key; /* the lane's key, '#', number with 12 digits */
	struct str event_id;
	int64_t    at_ms;
	struct str event; /* as of a lane */
	uint64_t   version;
};
enum { WAITING_F_KEY, WAITING_F_EVENT_ID, WAITING_F_AT, WAITING_F_EVENT };
extern const struct record_type waiting_type;

/* A delivery that was given up, whole, so that it can be understood and tried again. */
struct dead {
	struct str id;
	struct str queue, subject, target, event_id;
	struct str event; /* the envelope as JSON */
	int64_t    tries;
	struct str error;
	int64_t    since_ms, died_ms;
	uint64_t   version;
};
enum {
	DEAD_F_ID,
	DEAD_F_QUEUE,
	DEAD_F_SUBJECT,
	DEAD_F_TARGET,
	DEAD_F_EVENT_ID,
	DEAD_F_EVENT,
	DEAD_F_TRIES,
	DEAD_F_ERROR,
	DEAD_F_SINCE,
	DEAD_F_DIED
};
enum dead_index { DEAD_BY_QUEUE }; /* by died_ms */
extern const struct record_type dead_type;

enum timer_state { TIMER_ARMED, TIMER_STATE_COUNT };

/* When its time has come, the timer is removed and an event of this type, subject and detail is emitted, in one commit. */
struct timer {
	struct str       name;
	enum timer_state state;
	int64_t          due_ms;
	struct str       type, subject, detail;
	int64_t          armed_ms;
	uint64_t         version;
};
enum { TIMER_F_NAME, TIMER_F_STATE, TIMER_F_DUE, TIMER_F_TYPE, TIMER_F_SUBJECT, TIMER_F_DETAIL, TIMER_F_ARMED };
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
	struct str      id;
	struct str      kind;
	struct str      subject;
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
	uint64_t        version;
};
enum {
	SAGA_F_ID,
	SAGA_F_KIND,
	SAGA_F_SUBJECT,
	SAGA_F_STATE,
	SAGA_F_STEP,
	SAGA_F_MARKS,
	SAGA_F_IS_BACK,
	SAGA_F_INPUT,
	SAGA_F_DATA,
	SAGA_F_STARTED,
	SAGA_F_STEP_SINCE,
	SAGA_F_ENDED,
	SAGA_F_DEADLINE,
	SAGA_F_DUE,
	SAGA_F_TRIES,
	SAGA_F_OWNER,
	SAGA_F_FENCE,
	SAGA_F_LAST_ERROR,
	SAGA_F_REASON,
	SAGA_F_LEFTOVERS,
	SAGA_F_ACTOR
};
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
	int64_t             value;
	int64_t             since_ms, raised_ms, checked_ms;
	uint64_t            version;
};
enum {
	ALARM_F_NAME,
	ALARM_F_RULE,
	ALARM_F_STATE,
	ALARM_F_SEVERITY,
	ALARM_F_EVIDENCE,
	ALARM_F_VALUE,
	ALARM_F_SINCE,
	ALARM_F_RAISED,
	ALARM_F_CHECKED
};
extern const struct record_type alarm_type;
extern const char *const        alarm_state_names[ALARM_STATE_COUNT];
extern const char *const        alarm_severity_names[ALARM_SEVERITY_COUNT];

struct webhook {
	struct str id;
	struct str url;
	struct str filter; /* event type patterns, comma-separated; "*" is all */
	struct str secret; /* never shown again after it was made */
	struct str description;
	int64_t    is_paused;
	int64_t    created_ms;
	struct str created_by;
	uint64_t   version;
};
enum {
	WEBHOOK_F_ID,
	WEBHOOK_F_URL,
	WEBHOOK_F_FILTER,
	WEBHOOK_F_SECRET,
	WEBHOOK_F_DESCRIPTION,
	WEBHOOK_F_PAUSED,
	WEBHOOK_F_CREATED,
	WEBHOOK_F_CREATED_BY
};
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
enum { SEEN_F_KEY, SEEN_F_EVENT_ID, SEEN_F_LOT, SEEN_F_AT };
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
enum { NODE_F_ID, NODE_F_STARTED, NODE_F_BEAT, NODE_F_SLOWEST, NODE_F_FAILED };
extern const struct record_type node_type;

/* Something about the world that only a process can see and everybody should know, such as an open circuit. */
struct fact {
	struct str name; /* "circuit/csp" */
	int64_t    value;
	struct str text;
	int64_t    since_ms, at_ms; /* has this value since; was seen last */
	uint64_t   version;
};
enum { FACT_F_NAME, FACT_F_VALUE, FACT_F_TEXT, FACT_F_SINCE, FACT_F_AT };
extern const struct record_type fact_type;

/* All of them, for opening a store: KERNEL_TYPES is a list for an initialiser. */
#define KERNEL_TYPES                                                                                             \
	&event_type, &lane_type, &waiting_type, &dead_type, &timer_type, &saga_type, &alarm_type, &webhook_type, \
	        &seen_type, &node_type, &fact_type

/* explain_private.h - what the files of the explanations share; nobody else includes this (but the test of the table of
 * actions).
 *
 * A situation is filled piece by piece, each piece by the file that knows about it, and written as JSON at the end.
 * Lists that are full take no more: they are long enough for all that one thing can have. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/hold.h"
#include "domain/ports/caller.h"
#include "kernel/records.h"
#include "service/explain/explain.h"
#include "store/session.h"

struct account;

enum { EXPLAIN_EVENTS = 20, EXPLAIN_CLOSED_HOLDS = 5, EXPLAIN_LINES = 40, EXPLAIN_CANS = 64 };
enum { EXPLAIN_HOLDS = HOLDS_OPEN_MAX + EXPLAIN_CLOSED_HOLDS };

/* What somebody can do: what it does, the command behind "leasehold", the route of the API. {id} is put in. */
/* clang-format off */
#define EXPLAIN_ACTIONS(X) \
	X(CLEAN_AGAIN,    "empty it again; its cooldown follows, as after any cleanup", \
	  "account retry-cleanup {id}", account_clean) \
	X(EJECT,          "take it out of the pool as it is", "account eject {id}", account_eject) \
	X(LOCK_AWAY,      "put it in quarantine, which ends a lease on it", \
	  "account quarantine {id} --reason \"WHY\"", account_quarantine) \
	X(RELEASE_HOLD,   "release the hold {id} early", "hold release {id} --reason \"WHY\"", hold_release) \
	X(EXTEND_HOLD,    "change when the hold {id} ends", "hold extend {id} --until TIME", hold_extend) \
	X(APPROVE,        "approve it", "lease approve {id}", lease_review) \
	X(DENY,           "deny it", "lease deny {id} --reason \"WHY\"", lease_review) \
	X(WITHDRAW,       "withdraw the request, which only its owner can do", "lease withdraw {id}", lease_withdraw) \
	X(FREEZE,         "suspend access; the account stays as it is", "lease freeze {id}", lease_freeze) \
	X(UNFREEZE,       "restore access", "lease unfreeze {id}", lease_unfreeze) \
	X(EXTEND,         "give it more time", "lease extend {id} --hours 24", lease_change) \
	X(TERMINATE,      "end it now; the account is emptied", "lease terminate {id}", lease_terminate) \
	X(STATEMENT,      "see what it cost, day by day", "report statement {id}", statement_show) \
	X(RETRY_DELETION, "try the deletion again", "sandbox retry-deletion {id}", retry_deletion) \
	X(SET_ASIDE,      "put it in quarantine, so that nobody gets it", \
	  "sandbox quarantine {id} --reason \"WHY\"", quarantine) \
	X(RELEASE,        "end its quarantine", "sandbox release {id}", release) \
	X(SUSPEND,        "suspend it: its tasks are stopped, its pages answer 503", \
	  "instance suspend {id} --reason \"WHY\"", instance_status_set) \
	X(RESUME,         "resume it", "instance resume {id}", instance_status_set) \
	X(SCALE,          "change the number of its tasks", "instance scale {id} --count 4", instance_size) \
	X(PARK,           "park it: its tasks are released, its data stays", \
	  "instance park {id} --reason \"WHY\"", instance_status_set) \
	X(UNPARK,         "rebuild what was released", "instance unpark {id}", instance_status_set) \
	X(RECOVER,        "check that everything is there, start it, and open it again", \
	  "instance recover {id}", instance_status_set) \
	X(REMOVE,         "remove it: closed, stopped, archived, then deleted", \
	  "instance delete {id}", instance_delete) \
	X(SAGA_RETRY,     "retry {id} now", "saga retry {id}", saga_retry) \
	X(SAGA_SKIP,      "count the step of {id} as done, if you have done it by hand", \
	  "saga skip {id} --reason \"WHY\"", saga_skip) \
	X(SAGA_ABORT,     "have {id} rolled back", "saga abort {id} --reason \"WHY\"", saga_abort) \
	X(DEAD_REPLAY,    "deliver the dead letter {id} again", "dlq replay {id}", dead_replay) \
	X(DOCTOR,         "compare organisation, records and holds now, and repair what is safe", \
	  "doctor --fix", doctor_fix) \
	X(JOB_RUN,        "run the job {id} now", "job run {id}", job_run) \
	X(JOB_RESUME,     "resume the schedule of the job {id}", "job resume {id}", job_resume)
/* clang-format on */

enum explain_action_id {
#define X(name, what, command, route) CAN_##name,
	EXPLAIN_ACTIONS(X)
#undef X
	        EXPLAIN_ACTION_COUNT
};

struct explain_action {
	const char *what, *command, *route;
};
extern const struct explain_action explain_actions[EXPLAIN_ACTION_COUNT];

struct explain_step {
	struct str what, by;
	int64_t    at_ms; /* 0: nobody can say */
};

struct explain_can {
	enum explain_action_id action;
	struct explain_route   route;
	struct str             id, path_id; /* paths of leases have the API's long id */
};

struct explain_lines {
	struct str items[EXPLAIN_LINES];
	size_t     count;
};

struct situation {
	struct session       *s;
	struct arena         *a;
	int64_t               now_ms;
	const struct explain *ask;
	bool                  is_for_user; /* what is inside the server is none of his business */
	bool                  is_gone;     /* there is no such record */

	enum rc     rc; /* the first failure of the store: nothing is read after it, and there is no answer */
	struct err *e;

	struct str           id, subject; /* 111122223333, account/111122223333 */
	const char          *who;         /* as the subject of a sentence: "Account 111122223333" */
	struct str           where, summary;
	int64_t              since_ms; /* 0: not known */
	struct explain_lines why, problems;
	struct explain_step  next[EXPLAIN_LINES];
	size_t               next_count;
	struct explain_can   can[EXPLAIN_CANS];
	size_t               can_count;
	struct hold          holds[EXPLAIN_HOLDS]; /* the open ones first */
	size_t               hold_count;
	struct event         events[EXPLAIN_EVENTS]; /* the newest first, without those that say nothing */
	size_t               event_count;
};

/* --- filling it (explain.c) --- */

/* One sentence; what is longer than a sentence should be is cut. Problems are not for users. */
enum explain_part { SUMMARY, WHY, PROBLEM };
void explain_say(struct situation *x, enum explain_part part, const char *fmt, ...) PRINTF_LIKE(3, 4);

void explain_next(struct situation *x, int64_t at_ms, struct str what, struct str by);
void explain_can(struct situation *x, enum explain_action_id action, struct str id);
void explain_can_lease(struct situation *x, enum explain_action_id action, struct str uuid, struct str long_id);

/* "2026-11-18 10:00 UTC" in the arena. */
const char *explain_time(struct situation *x, int64_t ms);

/* A record by key. False: it is not there, or the store failed. */
bool explain_find(struct situation *x, const struct record_type *type, struct str key, void *ret);

/* --- the three kinds; they set is_gone when there is no record --- */

void explain_account(struct situation *x);
void explain_lease(struct situation *x);
void explain_sandbox(struct situation *x);
void explain_instance(struct situation *x);

/* --- what the kernel has under way (explain_kernel.c) --- */

/* The saga that moves the account: how far it is, what it waits for, what can be done. Nothing when it has ended well
 * or is not there. True: it goes on by itself. */
bool explain_follow(struct situation *x, const struct account *account);

/* The same of any saga, by its id. */
bool explain_saga(struct situation *x, struct str id);

/* Deliveries about the subject that fail, wait for long or were given up. */
void explain_deliveries(struct situation *x);

/* Alarms that are raised about it. */
void explain_alarms(struct situation *x);

/* A timer, as something that will happen. False: it is not armed. */
bool explain_timer(struct situation *x, struct str name, struct str what);

/* The next run of a job, and what it will do here; that it is paused is a problem. */
void explain_job(struct situation *x, const char *name, const char *what);

/* --- events in words (explain_events.c) --- */

/* One line about an event, in the arena. Empty: it says nothing that is worth telling. */
struct str explain_event(const struct event *event, struct arena *a);

/* The newest events of the subject. */
void explain_read_events(struct situation *x);

/* A reason object of a lease, such as why it was frozen: a part of a sentence; empty when it says no more than its
 * type. */
struct str explain_reason(struct str json, struct arena *a);

/* "12.50 USD" of millionths. */
const char *explain_usd(struct arena *a, int64_t micro_usd);

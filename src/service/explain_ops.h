/* explain_ops.h - what the files of the explanations share; nobody else includes this (but the test of the table of orders).
 *
 * A situation is filled piece by piece, each piece by the file that knows about it, and written as JSON at the end. Lists that are full take
 * no more: they are long enough for all that one thing can have. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"
#include "domain/hold.h"
#include "kernel/records.h"
#include "service/explain.h"
#include "store/session.h"

enum {
	EXPLAIN_EVENTS = 20,
	EXPLAIN_CLOSED_HOLDS = 5,
	EXPLAIN_HOLDS = HOLDS_OPEN_MAX + EXPLAIN_CLOSED_HOLDS,
	EXPLAIN_LINES = 40,
	EXPLAIN_CANS = 64,
};

/* What somebody can do: what it does, the command behind "leasehold", method and path of the API, and who may. {id} is put in; paths of
 * leases have the API's long id. Roles: 0 is the operator's. */
/* clang-format off */
#define EXPLAIN_ORDERS(X)                                                                                                                             \
	X(CLEAN_AGAIN,    "empty it again; it then rests like after any cleanup",                                                                     \
	  "account retry-cleanup {id}", "POST", "/api/accounts/{id}/retryCleanup", ROLE_ADMIN)                                                        \
	X(EJECT,          "take it out of the pool as it is",                                                                                         \
	  "account eject {id}", "POST", "/api/accounts/{id}/eject", ROLE_ADMIN)                                                                       \
	X(LOCK_AWAY,      "lock it away, which ends a lease on it",                                                                                   \
	  "account quarantine {id} --reason \"WHY\"", "POST", "/api/accounts/{id}/quarantine", ROLE_ADMIN)                                            \
	X(RELEASE_HOLD,   "end the hold {id} before its time",                                                                                        \
	  "hold release {id} --reason \"WHY\"", "POST", "{base}/ops/holds/{id}/release", 0)                                                           \
	X(EXTEND_HOLD,    "have the hold {id} last until another time",                                                                               \
	  "hold extend {id} --until TIME", "POST", "{base}/ops/holds/{id}/extend", 0)                                                                 \
	X(APPROVE,        "approve it",                                                                                                               \
	  "lease approve {id}", "POST", "/api/leases/{id}/review", ROLE_MANAGER | ROLE_ADMIN)                                                         \
	X(DENY,           "deny it",                                                                                                                  \
	  "lease deny {id} --reason \"WHY\"", "POST", "/api/leases/{id}/review", ROLE_MANAGER | ROLE_ADMIN)                                           \
	X(WITHDRAW,       "take the request back, which only its owner can",                                                                          \
	  "lease withdraw {id}", "POST", "/api/leases/{id}/withdraw", ROLE_USER | ROLE_MANAGER | ROLE_ADMIN)                                          \
	X(FREEZE,         "take access away; the account stays as it is",                                                                             \
	  "lease freeze {id}", "POST", "/api/leases/{id}/freeze", ROLE_MANAGER | ROLE_ADMIN)                                                          \
	X(UNFREEZE,       "give access back",                                                                                                         \
	  "lease unfreeze {id}", "POST", "/api/leases/{id}/unfreeze", ROLE_MANAGER | ROLE_ADMIN)                                                      \
	X(EXTEND,         "give it more time",                                                                                                        \
	  "lease extend {id} --hours 24", "PATCH", "/api/leases/{id}", ROLE_MANAGER | ROLE_ADMIN)                                                     \
	X(TERMINATE,      "end it now; the account is emptied",                                                                                       \
	  "lease terminate {id}", "POST", "/api/leases/{id}/terminate", ROLE_USER | ROLE_MANAGER | ROLE_ADMIN)                                        \
	X(STATEMENT,      "see what it cost, day by day",                                                                                             \
	  "report statement {id}", "GET", "{base}/ops/leases/{id}/statement", 0)                                                                      \
	X(RETRY_DELETION, "try the deletion again",                                                                                                   \
	  "sandbox retry-deletion {id}", "POST", "{base}/admin/sandboxes/{id}/retry-deletion", 0)                                                     \
	X(SET_ASIDE,      "set it aside, so that nobody gets it",                                                                                     \
	  "sandbox quarantine {id} --reason \"WHY\"", "POST", "{base}/admin/sandboxes/{id}/quarantine", 0)                                            \
	X(RELEASE,        "end its quarantine",                                                                                                       \
	  "sandbox release {id}", "POST", "{base}/admin/sandboxes/{id}/release", 0)                                                                   \
	X(SAGA_RETRY,     "go on with {id} now",                                                                                                      \
	  "saga retry {id}", "POST", "{base}/ops/sagas/{id}/retry", 0)                                                                                \
	X(SAGA_SKIP,      "count the step of {id} as done, when it was done by hand",                                                                 \
	  "saga skip {id} --reason \"WHY\"", "POST", "{base}/ops/sagas/{id}/skip", 0)                                                                 \
	X(SAGA_ABORT,     "have {id} undo what it did",                                                                                               \
	  "saga abort {id} --reason \"WHY\"", "POST", "{base}/ops/sagas/{id}/abort", 0)                                                               \
	X(DEAD_REPLAY,    "deliver the dead letter {id} again",                                                                                       \
	  "dlq replay {id}", "POST", "{base}/ops/dead-letters/{id}/replay", 0)                                                                        \
	X(DOCTOR,         "compare organisation, records and holds now, and put right what is safe",                                                  \
	  "doctor --fix", "POST", "{base}/ops/doctor", 0)                                                                                             \
	X(JOB_RUN,        "have the job {id} run now",                                                                                                \
	  "job run {id}", "POST", "{base}/admin/jobs/{id}/run", 0)                                                                                    \
	X(JOB_RESUME,     "start the schedule of the job {id} again",                                                                                 \
	  "job resume {id}", "POST", "{base}/admin/jobs/{id}/resume", 0)
/* clang-format on */

enum explain_order_id {
#define X(name, what, command, method, path, roles) CAN_##name,
	EXPLAIN_ORDERS(X)
#undef X
	        EXPLAIN_ORDER_COUNT
};

struct explain_order {
	const char *what, *command, *method, *path;
	unsigned    roles;
};
extern const struct explain_order explain_orders[EXPLAIN_ORDER_COUNT];

struct explain_step {
	struct str what, by;
	int64_t    at_ms; /* 0: nobody can say */
};

struct explain_can {
	enum explain_order_id order;
	struct str            id, path_id;
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

	struct str           kind, id, subject; /* account, 111122223333, account/111122223333 */
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

/* Each one sentence; what is longer than a sentence should be is cut. Problems are not for users. */
void explain_why(struct situation *x, struct str line);
void explain_problem(struct situation *x, struct str line);
void explain_next(struct situation *x, int64_t at_ms, struct str what, struct str by);
void explain_can(struct situation *x, enum explain_order_id order, struct str id);
void explain_can_lease(struct situation *x, enum explain_order_id order, struct str uuid, struct str long_id);

/* "2026-11-18 10:00 UTC" in the arena. */
const char *explain_time(struct situation *x, int64_t ms);

/* A record by key: RC_OK also when it is not there. */
MUST_CHECK enum rc explain_find(struct situation *x, const struct record_type *type, struct str key, void *ret,
                                bool *ret_is_there, struct err *e);

/* --- the three kinds; they set is_gone when there is no record --- */

MUST_CHECK enum rc explain_account(struct situation *x, struct err *e);
MUST_CHECK enum rc explain_lease(struct situation *x, struct err *e);
MUST_CHECK enum rc explain_sandbox(struct situation *x, struct err *e);

/* --- what holds an account (explain_holds.c) --- */

struct holds;

/* The open ones into *ret and, with the last closed ones, into the situation. */
MUST_CHECK enum rc explain_read_holds(struct situation *x, struct holds *ret, struct err *e);

/* Why it is held, as the end of a sentence. */
struct str explain_purpose(struct situation *x, const struct hold *h);

/* The one that lasts longest: until a person, or the latest due. NULL: there is none. */
const struct hold *explain_longest(const struct holds *open);
bool               explain_is_overdue(const struct situation *x, const struct hold *h);

/* What each does, when it ends, what stands against that. */
MUST_CHECK enum rc explain_holds(struct situation *x, const struct holds *open, struct err *e);

/* Who puts right what has gone wrong with an account or, where somebody does, with a hold of it; and when. */
MUST_CHECK enum rc explain_reconciler(struct situation *x, bool is_about_hold, struct err *e);

/* --- what the kernel has under way (explain_kernel.c) --- */

/* This saga: how far it is, what it waits for, what can be done. Nothing when it has ended well or is not there; *ret_is_moving: it goes on
 * by itself. */
MUST_CHECK enum rc explain_saga(struct situation *x, struct str id, bool *ret_is_moving, struct err *e);

/* Deliveries about the subject that fail, wait for long or were given up. */
MUST_CHECK enum rc explain_deliveries(struct situation *x, struct err *e);

/* Alarms that are raised about it. */
MUST_CHECK enum rc explain_alarms(struct situation *x, struct err *e);

/* A timer, as something that will happen. *ret_is_armed may be NULL. */
MUST_CHECK enum rc explain_timer(struct situation *x, struct str name, struct str what, bool *ret_is_armed,
                                 struct err *e);

/* The next run of a job, and what it will do here; that it is paused is a problem. */
MUST_CHECK enum rc explain_job(struct situation *x, const char *name, struct str what, struct err *e);

/* --- events in words (explain_events.c) --- */

/* One line about an event, in the arena. Empty: it says nothing that is worth telling. */
struct str explain_event(const struct event *event, struct arena *a);

/* The newest events of the subject. */
MUST_CHECK enum rc explain_read_events(struct situation *x, struct err *e);

/* A reason object of a lease, such as why it was frozen: a part of a sentence; empty when it says no more than its type. */
struct str explain_reason(struct str json, struct arena *a);

/* "12.50 USD" of millionths. */
const char *explain_usd(struct arena *a, int64_t micro_usd);

/* world.h - a simulated cloud from above: what goes wrong in it, and what outsiders do. For development and tests. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct buf;
struct world;

/* Every call that can be disturbed: X(name, text, does it change anything?). */
/* clang-format off */
#define WORLD_CALLS(X)                                  \
	X(LIST_OUS,         "list-ous",         false)  \
	X(FIND_PARENT,      "find-parent",      false)  \
	X(MOVE,             "move",             true)   \
	X(LIST_ACCOUNTS,    "list-accounts",    false)  \
	X(DESCRIBE,         "describe",         false)  \
	X(GET_TAGS,         "get-tags",         false)  \
	X(SET_TAGS,         "set-tags",         true)   \
	X(REMOVE_TAG,       "remove-tag",       true)   \
	X(GRANT,            "grant",            true)   \
	X(REVOKE,           "revoke",           true)   \
	X(LIST_ASSIGNMENTS, "list-assignments", false)  \
	X(ISSUE,            "issue",            true)   \
	X(WITHDRAW,         "withdraw",         true)   \
	X(FIND_SECRET,      "find-secret",      false)  \
	X(SPEND,            "spend",            false)  \
	X(CLEAN,            "clean",            true)   \
	X(CHECK_RUN,        "check-run",        false)  \
	X(CREATE_RESOURCE,  "create-resource",  true)   \
	X(CHECK_RESOURCE,   "check-resource",   false)  \
	X(DELETE_RESOURCE,  "delete-resource",  true)   \
	X(TABLE_GET,        "table-get",        false)  \
	X(TABLE_SET,        "table-set",        true)   \
	X(TABLE_DELETE,     "table-delete",     true)   \
	X(CSP_LIST,         "csp-list",         false)  \
	X(CSP_DELETE,       "csp-delete",       true)   \
	X(SCALE_WORKERS,    "scale-workers",    true)   \
	X(LIST_TASKS,       "list-tasks",       false)  \
	X(SET_ROUTE,        "set-route",        true)   \
	X(CONFIGURE,        "configure",        true)   \
	X(ARCHIVE,          "archive",          true)   \
	X(RESTORE,          "restore",          true)   \
	X(DROP_ARCHIVE,     "drop-archive",     true)   \
	X(ROTATE,           "rotate",           true)   \
	X(GET_SECRET,       "get-secret",       false)  \
	X(READ_LOGS,        "read-logs",        false)  \
	X(LIST_RESOURCES,   "list-resources",   false)  \
	X(ADD_PERSON,       "add-person",       true)   \
	X(LIST_PEOPLE,      "list-people",      false)  \
	X(REMOVE_PERSON,    "remove-person",    true)

/* What can go wrong: X(name, text, does it happen to a call?). */
#define WORLD_FAULTS(X)                                 \
	X(OUTAGE,           "outage",           true)   \
	X(THROTTLE,         "throttle",         true)   \
	X(LATENCY,          "latency",          true)   \
	X(TIMEOUT_BEFORE,   "timeout-before",   true)   \
	X(TIMEOUT_AFTER,    "timeout-after",    true)   \
	X(CLEAN_FAILS,      "clean-fails",      false)  \
	X(CLEAN_LIES,       "clean-lies",       false)  \
	X(DUPLICATE_EVENTS, "duplicate-events", false)  \
	X(REORDER_EVENTS,   "reorder-events",   false)  \
	X(LOSE_EVENTS,      "lose-events",      false) /* sent again later */
/* clang-format on */

enum world_call {
#define X(name, text, is_change) WORLD_##name,
	WORLD_CALLS(X)
#undef X
	        WORLD_CALL_COUNT,
	WORLD_ANY_CALL = WORLD_CALL_COUNT
};

enum world_fault {
#define X(name, text, is_of_call) WORLD_##name,
	WORLD_FAULTS(X)
#undef X
	        WORLD_FAULT_COUNT
};

extern const char *const world_call_names[WORLD_CALL_COUNT];
extern const char *const world_fault_names[WORLD_FAULT_COUNT];
extern const bool        world_call_changes[WORLD_CALL_COUNT];
extern const bool        world_fault_is_of_call[WORLD_FAULT_COUNT];

enum { WORLD_RULES_MAX = 32, WORLD_LATENCY_MAX_MS = 60000, WORLD_ADD_MAX = 1000, WORLD_RATE_MAX_USD = 1000 };

/* One switch. */
struct world_rule {
	enum world_fault fault;
	enum world_call  call;       /* or WORLD_ANY_CALL */
	int64_t          per_mille;  /* of the calls (moves, runs) that it happens to */
	int64_t          count;      /* it happens this often, then no more; 0: no such limit */
	int64_t          until_ms;   /* and not after this; 0: no such limit */
	int64_t          latency_ms; /* WORLD_LATENCY only */
	int64_t          resource;   /* of calls for a tenant's instance: 1 + an enum instance_resource; 0: any call */
};

struct world_rules {
	struct world_rule rules[WORLD_RULES_MAX];
	size_t            count;
};

/* Since the start of the process. */
struct world_counts {
	uint64_t calls[WORLD_CALL_COUNT];
	uint64_t refused[WORLD_CALL_COUNT]; /* by the world's own rules */
	uint64_t faults[WORLD_FAULT_COUNT]; /* done to us */
	uint64_t latency_ms;
};

struct world_ops {
	/* The world at a glance, as one JSON object. */
	enum rc (*show)(struct world *w, struct buf *ret, struct err *e);

	/* These rules and no others, from now on. */
	void (*set_rules)(struct world *w, const struct world_rules *rules);

	/* New accounts, in Entry. RC_INVALID: over WORLD_ADD_MAX. */
	enum rc (*add_accounts)(struct world *w, int64_t count, struct err *e);

	/* As if an outsider did it in the console: an event tells of it, no fault disturbs it. OUs by id or by name. */
	enum rc (*move)(struct world *w, struct str account_id, struct str from, struct str to, struct err *e);

	/* Millionths of a dollar an hour, from now on, while it is in use. RC_NOT_FOUND. */
	enum rc (*set_rate)(struct world *w, struct str account_id, int64_t micro_usd, struct err *e);
};

struct world { /* first member of every implementation. Any thread; all but set_rules may block. */
	const struct world_ops *ops;
};

/* instance.h - a tenant's WordPress: its states, the rule for each change, what may be asked for, what its parts are
 * called. Pure: no store, no clock. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "domain/ports/instance.h"

/* X(name, is it an end of what is under way?). The fine value, provisioningState; status is the coarse view of it.
 * New ones go at the end: the number is what is stored. */
#define INSTANCE_STATES(X)               \
	X(PENDING_PROVISIONING, false)   \
	X(PROVISIONING_EFS, false)       \
	X(PROVISIONING_RDS, false)       \
	X(PROVISIONING_ECS, false)       \
	X(CONFIGURING_ALB, false)        \
	X(PROVISIONING_COGNITO, false)   \
	X(CONFIGURING_WORDPRESS, false)  \
	X(ACTIVE, true)                  \
	X(SUSPENDING, false)             \
	X(SUSPENDED, true)               \
	X(RESUMING, false)               \
	X(PARKING, false)                \
	X(PARKED, true)                  \
	X(UNPARKING, false)              \
	X(PENDING_DEPROVISIONING, false) \
	X(DEPROVISIONING, false)         \
	X(DEPROVISIONED, true)           \
	X(FAILED, true)                  \
	X(SCALING, false)

enum instance_state {
#define X(name, is_rest) INSTANCE_##name,
	INSTANCE_STATES(X)
#undef X
	        INSTANCE_STATE_COUNT,
	INSTANCE_NONE = INSTANCE_STATE_COUNT /* not stored: the tenant has no instance yet */
};
extern const char *const instance_state_names[INSTANCE_STATE_COUNT];

/* X(name, who or what causes it, the word of a command, or ""). */
#define INSTANCE_TRIGGERS(X)                                                   \
	X(CREATE, "POST or START_CLUSTER_CREATION", "create")                  \
	X(BEGIN, "the saga takes it", "")                                      \
	X(STORAGE_READY, "storage verified", "")                               \
	X(DATABASE_READY, "database and secret verified", "")                  \
	X(STABLE, "service stable", "")                                        \
	X(ROUTED, "health passes through the rule", "")                        \
	X(IDENTITY_READY, "pool, client and domain exist", "")                 \
	X(CONFIGURED, "installed, sign-in configured, rule made public", "")   \
	X(ROLLED_BACK, "step error or deadline, after rollback", "")           \
	X(RETRY, "POST again for the same tenant", "create")                   \
	X(DELETE, "DELETE or START_CLUSTER_DELETION", "delete")                \
	X(SCALE, "PUT size or START_CLUSTER_SCALE", "scale")                   \
	X(SCALED, "running equals desired", "")                                \
	X(SCALE_FAILED, "start impaired or deadline", "")                      \
	X(SUSPEND, "suspend, with a reason", "suspend")                        \
	X(DRAINED, "zero tasks", "")                                           \
	X(DRAIN_FAILED, "drain failed, compensated", "")                       \
	X(RESUME, "resume", "resume")                                          \
	X(RESUMED, "stable at the stored count", "")                           \
	X(RESUME_FAILED, "did not stabilise, compensated", "")                 \
	X(PARK, "park, with a reason", "park")                                 \
	X(RELEASED, "compute released", "")                                    \
	X(UNPARK, "unpark", "unpark")                                          \
	X(REBUILT, "compute rebuilt, healthy", "")                             \
	X(REBUILD_FAILED, "rebuild failed, compensated", "")                   \
	X(RELEASE_FAILED, "release failed, compensated", "")                   \
	X(REMOVE, "the saga takes it", "")                                     \
	X(REMOVED, "every check passes", "")                                   \
	X(REMOVE_FAILED, "a step failed; it goes on from there", "")           \
	X(BREAK, "circuit breaker, or start impaired and nothing answers", "") \
	X(RECOVER, "steady state or recover, all resources present", "recover")

enum instance_trigger {
#define X(name, text, word) INSTANCE_ON_##name,
	INSTANCE_TRIGGERS(X)
#undef X
	        INSTANCE_TRIGGER_COUNT
};
extern const char *const instance_trigger_texts[INSTANCE_TRIGGER_COUNT];
extern const char *const instance_trigger_words[INSTANCE_TRIGGER_COUNT];

/* One row of the contract's table. */
struct instance_step {
	uint32_t              from; /* bit n: state n, INSTANCE_NONE too */
	enum instance_trigger on;
	enum instance_state   to;
	const char           *guard; /* what else must be so; "" */
};
enum { INSTANCE_STEPS = 33 };
extern const struct instance_step instance_steps[INSTANCE_STEPS];

enum instance_tier { TIER_STANDARD, TIER_PROFESSIONAL, TIER_ENTERPRISE, TIER_COUNT };
extern const char *const instance_tier_names[TIER_COUNT];

enum instance_deployment {
	DEPLOYMENT_NONE,
	DEPLOYMENT_IN_PROGRESS,
	DEPLOYMENT_COMPLETED,
	DEPLOYMENT_FAILED,
	DEPLOYMENT_COUNT
};
extern const char *const instance_deployment_names[DEPLOYMENT_COUNT];

enum {
	INSTANCE_ID_MAX = 64,
	INSTANCE_OPERATION_MAX = 64,
	TENANT_ID_MIN = 3,
	TENANT_ID_MAX = 63,
	INSTANCE_ORGANIZATION_MIN = 2,
	INSTANCE_ORGANIZATION_MAX = 100, /* characters */
	INSTANCE_EMAIL_MAX = 254,
	INSTANCE_VERSION_MAX = 16,
	INSTANCE_LABEL_MAX = 64,
	INSTANCE_REASON_MAX = 400, /* bytes */
	INSTANCE_ERROR_MAX = 1024,
	INSTANCE_ENDPOINT_MAX = 200,
	INSTANCE_COUNT_MIN = 2,
	INSTANCE_COUNT_MAX = INSTANCE_TASKS_MAX,
	INSTANCE_KEY_MAX = 128, /* of an Idempotency-Key, or a correlationId */
	INSTANCE_NAME_SIZE =
	        21, /* of instance_short_name(): MySQL's users have 32 characters, "tenant_" and "_user" take 12 */
};

/* Times are in ms; 0 means "not yet". */
struct instance {
	struct str               id, tenant, organization, contact_email, opportunity_id;
	enum instance_tier       tier;
	struct str               wordpress_version;
	enum instance_state      state;
	int64_t                  desired_count, previous_count;
	int64_t                  running_count; /* as last seen */
	enum instance_deployment deployment;
	struct str               outputs[INSTANCE_RESOURCE_COUNT]; /* JSON of what was made; empty: it is not there */
	struct str               endpoint;
	struct str               reason;     /* why it is suspended, parked or removed */
	struct str               last_error; /* JSON object: code, message, step, leftovers, at */
	struct str               operation;  /* under way, or parked; empty: none */
	struct str               correlation_id, requested_by;
	int64_t                  created_ms, updated_ms, started_ms, activated_ms, removed_ms;
	int64_t                  below_since_ms; /* fewer tasks run than should, since then */
	struct str               archive;        /* name of the last of all */
	int64_t                  archive_until_ms;
	struct str               last_ecs_event; /* JSON object */
	int64_t                  last_ecs_ms;    /* the sender's time of it */
	int64_t                  has_data;       /* 1: it was active, so there may be something of the tenant in it */
	uint64_t                 version;
};

const char *instance_state_name(enum instance_state state); /* also of INSTANCE_NONE */
bool        instance_state_parse(struct str name, enum instance_state *ret);

/* The coarse view: the seven steps of provisioning are PROVISIONING. */
const char *instance_status(enum instance_state state);

/* Nothing is under way in it. */
bool instance_state_is_rest(enum instance_state state);

/* The tenant cannot have another beside one in this state. */
bool instance_state_is_live(enum instance_state state);

/* The row for this trigger in this state; NULL when it is not allowed. */
const struct instance_step *instance_step(enum instance_state from, enum instance_trigger on);

/* The commands that are allowed in this state, as a JSON array of their words. */
void instance_put_allowed(struct json_out *o, const char *name, enum instance_state from);

/* The table as text, one line per row. */
void instance_print_table(struct buf *b);

/* True when it keeps its own rules. */
bool instance_ok(const struct instance *i);

/* The only writer of state. RC_UNFIT with INVALID_STATUS_TRANSITION, or OPERATION_IN_PROGRESS where something is
 * under way. */
MUST_CHECK enum rc instance_apply(struct instance *i, enum instance_trigger on, int64_t now_ms, struct err *e);

/* --- what may be asked for --- */

/* Everything that is wrong with a body. */
struct instance_problem {
	const char *field, *code;
	struct str  message;
};
enum { INSTANCE_PROBLEMS_MAX = 16 };
struct instance_problems {
	struct arena           *arena;
	struct instance_problem items[INSTANCE_PROBLEMS_MAX];
	size_t                  count;
};
void instance_problem(struct instance_problems *p, const char *field, const char *code, const char *fmt, ...)
        PRINTF_LIKE(4, 5);

/* What a body wants. What is not given is empty, 0 or -1. */
struct instance_want {
	struct str organization, contact_email, opportunity_id, wordpress_version;
	int        tier; /* -1: not given */
	int64_t    desired_count;
	struct str reason, backup_id, action;
	struct str email, name; /* of a person */
};

/* The members that a body may have, of a command or a route; those that are required are in capitals here. */
enum instance_body { BODY_CREATE, BODY_CHANGE, BODY_STATUS, BODY_SIZE, BODY_DELETE, BODY_RESTORE, BODY_PERSON };
void instance_want_read(const json_t *body, enum instance_body kind, struct instance_want *ret,
                        struct instance_problems *p);

bool tenant_id_is_ok(struct str id); /* ^[a-z0-9][a-z0-9-]{2,62}$ */

/* CPU units and MB of a task. */
void instance_tier_size(enum instance_tier tier, int64_t *ret_cpu_units, int64_t *ret_memory_mb);

/* "latest", empty, or one of a driver's versions, which have blanks between them. Empty: it has no such one. */
struct str instance_version(struct str wanted, const char *versions);

/* --- names --- */

/* What its parts are called after: the tenant's id without "tenant-"; with a hash of the id where that is too long,
 * or where another tenant's would be the same. No two tenants have the same one. */
void instance_short_name(struct str tenant, char ret[INSTANCE_NAME_SIZE]);

/* The name of a resource, in the arena: "/tenant-NAME", "tenant_NAME_db" (with '_' for '-'), and so on. */
struct str instance_resource_name(struct str tenant, enum instance_resource kind, struct arena *a);

/* A name for a GRANT, where '_' would stand for any character: "tenant\_acme\_db". */
struct str instance_granted_name(struct str name, struct arena *a);

/* --- failures --- */

/* PROV-001 to 009: what could not be done. */
const char *instance_step_code(struct str step);

/* instance_records.h - what is kept of instances: the instances, who has which, operations, archives, what was asked
 * for before. */
#pragma once

#include "domain/instance.h"
#include "store/record.h"

enum instance_index { INSTANCE_BY_TENANT, INSTANCE_BY_STATE };
extern const struct record_type instance_type;

/* A tenant's instance, so that it has one live one at most. */
struct tenant_slot {
	struct str tenant;
	struct str instance; /* the last one */
	uint64_t   version;
};
extern const struct record_type tenant_slot_type;

/* X(name, the word, the event of its completion). */
#define INSTANCE_OPERATIONS(X)                             \
	X(CREATE, "create", "CLUSTER_CREATION_COMPLETE")   \
	X(SCALE, "scale", "CLUSTER_SCALE_COMPLETE")        \
	X(SUSPEND, "suspend", "CLUSTER_SUSPEND_COMPLETE")  \
	X(RESUME, "resume", "CLUSTER_RESUME_COMPLETE")     \
	X(PARK, "park", "CLUSTER_PARK_COMPLETE")           \
	X(UNPARK, "unpark", "CLUSTER_UNPARK_COMPLETE")     \
	X(UPDATE, "update", "CLUSTER_UPDATE_COMPLETE")     \
	X(BACKUP, "backup", "CLUSTER_BACKUP_COMPLETE")     \
	X(RESTORE, "restore", "CLUSTER_RESTORE_COMPLETE")  \
	X(ROTATE, "rotate", "CLUSTER_ROTATION_COMPLETE")   \
	X(RECOVER, "recover", "CLUSTER_RECOVERY_COMPLETE") \
	X(DELETE, "delete", "CLUSTER_DELETION_COMPLETE")

enum instance_op {
#define X(name, word, event) OP_##name,
	INSTANCE_OPERATIONS(X)
#undef X
	        OP_COUNT
};
extern const char *const instance_op_names[OP_COUNT];
extern const char *const instance_op_events[OP_COUNT];

enum operation_state {
	OPERATION_RUNNING,
	OPERATION_SUCCEEDED,
	OPERATION_FAILED,
	OPERATION_CANCELLED,
	OPERATION_STATE_COUNT
};
extern const char *const operation_state_names[OPERATION_STATE_COUNT];

/* Its id is that of its saga. */
struct operation {
	struct str           id, instance, tenant;
	enum instance_op     kind;
	enum operation_state state;
	struct str           requested_by, correlation_id, reason;
	int64_t              started_ms, ended_ms;
	struct str           error; /* JSON object, as an instance's last_error */
	struct str           backup;
	uint64_t             version;
};
enum operation_index { OPERATION_BY_INSTANCE }; /* by time */
extern const struct record_type operation_type;

enum backup_kind { BACKUP_BY_HAND, BACKUP_FINAL, BACKUP_BEFORE_RESTORE, BACKUP_KIND_COUNT };
enum backup_state { BACKUP_MAKING, BACKUP_KEPT, BACKUP_REMOVED, BACKUP_BROKEN, BACKUP_STATE_COUNT };
extern const char *const backup_kind_names[BACKUP_KIND_COUNT];
extern const char *const backup_state_names[BACKUP_STATE_COUNT];

/* Both data sets of an instance, kept by the driver under this id. */
struct backup {
	struct str        id, instance, tenant;
	enum backup_kind  kind;
	enum backup_state state;
	int64_t           created_ms, until_ms;
	struct str        outputs; /* JSON object */
	uint64_t          version;
};
enum backup_index { BACKUP_BY_INSTANCE }; /* by time */
extern const struct record_type backup_type;

/* A request that has been answered: the same key gets the same answer. */
struct once {
	struct str key;  /* tenant#key */
	int64_t    body; /* hash of what was asked for */
	struct str instance, operation;
	int64_t    lot; /* always 1: one index of all, by at_ms */
	int64_t    at_ms;
	uint64_t   version;
};
enum once_index { ONCE_BY_AGE };
extern const struct record_type once_type;

/* What the last scan for orphans has found. */
struct instance_scan_result {
	struct str name; /* "last" */
	int64_t    at_ms, orphans, missing, healed;
	struct str findings; /* JSON array */
	uint64_t   version;
};
enum { SCAN_FINDINGS_MAX = 16384 };
extern const struct record_type instance_scan_type;

/* Instances as the document's table {env}-tenant-resources has them: of a struct instance. (instance_table.c) */
record_items_fn instance_items;

/* instances.h - what can be done with tenants' instances: transaction functions, each with its argument, and the sagas,
 * queues and passes behind them.
 *
 * A command is one transaction: it changes the record by the domain's table, stores the operation, and starts the saga
 * that does the work outside. The end of the saga changes the record again, and emits one event. What
 * sagas do with the driver is in instance_steps.c. */
#pragma once

#include "base/str.h"
#include "domain/instance.h"
#include "kernel/edge/intake.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "service/instance/instance_records.h"
#include "service/pass/pass.h"
#include "store/session.h"
#include "store/store.h"

#define EVENT_INSTANCE_STARTED   "InstanceOperationStarted"
#define EVENT_INSTANCE_CLEARED   "InstanceLeftoversRemoved"
#define EVENT_INSTANCE_SECRET    "InstanceSecretShown"
#define EVENT_INSTANCE_ECS       "InstanceServiceEvent"
#define EVENT_PERSON_ADDED       "InstancePersonAdded"
#define EVENT_PERSON_PASSWORD    "InstancePersonPassword"
#define EVENT_PERSON_REMOVED     "InstancePersonRemoved"
#define EVENT_ARCHIVE_DUE        "InstanceArchiveDue"
#define EVENT_ARCHIVE_REMOVED    "InstanceArchiveRemoved"
#define EVENT_REMOVAL_DUE        "InstanceRemovalDue"
#define INSTANCE_COMPLETE_EVENTS "CLUSTER_*"
#define INSTANCE_COMMANDS        "instances" /* the inbox */
#define INSTANCE_ECS             "ecs"
#define INSTANCE_COMMAND_EVENTS  INSTANCE_COMMANDS ":*"
#define INSTANCE_COMMANDS_QUEUE  "instance-commands"
#define INSTANCE_ECS_QUEUE       "instance-ecs"
#define INSTANCE_ARCHIVES_QUEUE  "instance-archives"
#define INSTANCE_REMOVALS_QUEUE  "instance-removals"
#define INSTANCE_FIGURES_QUEUE   "instance-figures"
#define INSTANCE_ECS_EVENTS      INSTANCE_ECS ":*"

enum { INSTANCE_TIMED_QUEUES = 2, INSTANCE_QUEUES = 5, ONCE_KEPT_DAYS = 30 };

/* Where instances are made. What it points to stays the caller's. */
struct instance_world {
	struct store           *store;
	struct instance_driver *driver;
	int64_t                 archive_ms; /* how long archives are kept */
	struct metrics         *metrics;    /* may be NULL */
};

/* --- commands: each answers with the instance as it is then, and the operation that began --- */

struct instance_call {
	const struct instance_world *world;
	struct str           tenant, id; /* id: empty for create, and for commands that mean the tenant's live one */
	struct instance_want want;
	struct str           actor, request_id, correlation_id;
	struct str           once; /* Idempotency-Key, or empty */
	int64_t              body; /* hash of the body, for that */

	struct instance     instance; /* the answer */
	struct operation    operation;
	struct saga         saga;      /* of the operation under way; id is empty: none */
	enum instance_state refused;   /* RC_UNFIT: the state it is in */
	enum instance_op    requested; /* RC_UNFIT: what was asked for */
	bool                is_repeat;
};

/* RC_CONFLICT: the tenant has a live one, or the key was used for another body; RC_INVALID: a version that the driver
 * does not have. One that FAILED is provisioned again with the same id. */
txn_fn instance_create;

/* RC_NOT_FOUND with INSTANCE_NOT_FOUND; RC_UNFIT: not in this state, or another operation is under way. */
txn_fn instance_scale;   /* want.desired_count */
txn_fn instance_suspend; /* want.reason */
txn_fn instance_resume;
txn_fn instance_park; /* want.reason */
txn_fn instance_unpark;
txn_fn instance_recover;
txn_fn instance_update; /* want.tier, wordpress_version, contact_email */
txn_fn instance_backup;
txn_fn instance_restore; /* want.backup_id; RC_NOT_FOUND: there is none */
txn_fn instance_rotate;
txn_fn instance_delete; /* also clears what a failed rollback left, and goes on with a removal that failed */

/* The one for the word of PUT status, or NULL. */
txn_fn *instance_action(struct str word);

/* --- reading --- */

txn_fn instance_get; /* an instance_call: instance, and the operation under way with its saga */
struct operation_get {
	struct str tenant, instance, id;

	struct operation operation; /* the answer */
	struct saga      saga;
};
txn_fn operation_get;

/* A page: of one tenant the newest first, or of all by age. Statuses are the coarse ones; "": all. */
struct instance_list {
	struct str tenant, status;
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct instance records */
};
txn_fn instance_list;

struct backup_list {
	struct str instance;
	size_t     limit;
	struct str cursor;

	struct page page;
};
txn_fn backup_list;

/* The password of the site's administrator was shown to somebody: audited. */
txn_fn instance_note_secret; /* an instance_call */

/* --- people of its identity pool --- */

/* An instance_call: the instance, which has a pool; to change who is in it: and no operation under way. RC_NOT_FOUND
 * with POOL_NOT_FOUND; RC_UNFIT. */
txn_fn instance_find_pool;
txn_fn instance_enter_pool;

/* Tells what was done. */
struct person_note {
	const struct instance_call *call;
	const char                 *event;
	struct str                  email;
};
txn_fn instance_note_person;

/* --- wiring --- */

/* The kinds of sagas, OP_COUNT of them. */
void instance_kinds(struct instance_world *w, struct saga_kind ret[OP_COUNT]);

/* Archives whose time is over; removals to be tried again; commands from the inbox; the container service's events;
 * figures. In this order, with the events that each hears. Timers go on where no driver is set (w is NULL): the first
 * INSTANCE_TIMED_QUEUES hear them there too, and have what is due wait for a driver. */
void instance_queues(struct instance_world *w, struct queue ret[INSTANCE_QUEUES],
                     const char *ret_events[INSTANCE_QUEUES]);

/* A body of commands, as intake_parse() reads one of events; to be stored with intake_store(). RC_INVALID only when
 * the whole of it cannot be read. */
MUST_CHECK enum rc instance_intake(struct str body, struct arena *a, struct intake_record **ret, size_t *ret_count,
                                   struct err *e);

/* The name of the step that a saga of instances is at, or was at when it failed; "": none. */
const char *instance_saga_step(const struct saga *saga);
int64_t     instance_saga_steps(const struct saga *saga); /* how many there are */

/* --- passes --- */

/* Look at the tasks of all that should run. */
struct instance_watch {
	int64_t active, looked, below, failed;
};
MUST_CHECK enum rc instance_watch(const struct instance_world *w, struct instance_watch *ret, struct err *e);
pass_fn            pass_watch_instances; /* counts: looked at, with too few tasks, could not be asked */

/* What becomes of an orphan: a tenant's resources that are no live instance's. */
#define ORPHAN_VERDICTS(X)              \
	X(REMOVABLE, "removable")       \
	X(YOUNG, "young")               \
	X(UNARCHIVABLE, "unarchivable") \
	X(REMOVED, "removed")

enum orphan_verdict {
#define X(name, text) ORPHAN_##name,
	ORPHAN_VERDICTS(X)
#undef X
	        ORPHAN_VERDICT_COUNT
};
extern const char *const orphan_verdict_names[ORPHAN_VERDICT_COUNT];

/* Compare what the driver holds with the records. SCAN_KEEPS stores what it found, for the alarm and for the next scan.
 * SCAN_REMOVES also removes orphans that were seen an hour ago, with an archive; SCAN_REMOVES_UNARCHIVED also those
 * whose data cannot be archived. */
enum instance_scan_mode { SCAN_LOOKS, SCAN_KEEPS, SCAN_REMOVES, SCAN_REMOVES_UNARCHIVED };
MUST_CHECK enum rc instance_scan(const struct instance_world *w, enum instance_scan_mode mode, struct str actor,
                                 struct arena *a, struct instance_scan_result *ret, struct err *e);
pass_fn            pass_find_orphan_resources; /* keeps what it found; counts: orphans, missing */

/* instance_private.h - what the files of service/instance share; nobody else includes this. */
#pragma once

#include "service/instance/instances.h"

struct arena;

/* What a saga of an instance has to bring about: its input. */
struct instance_job {
	struct str       instance, tenant;
	enum instance_op op;
	int64_t          count, count_before; /* scale */
	struct str       version_before;      /* update */
	struct str       contact_before;
	int64_t          tier_before;
	struct str       backup, safety; /* backup, restore, delete: names of archives */
	int64_t          archive_ms;
};
struct str         instance_job_write(const struct instance_job *j, struct arena *a);
MUST_CHECK enum rc instance_job_read(struct str input, struct arena *a, struct instance_job *ret, struct err *e);

const char *instance_kind_name(enum instance_op op);

/* Of the table of its kind; "": there is none. */
const char *instance_step_name(enum instance_op op, size_t step);
saga_end_fn instance_on_end;

/* What steps do, and what takes it back: X(name). */
/* clang-format off */
#define INSTANCE_ACTS(X) \
	X(begin_creation) X(create_part) X(wait_stable) X(check_health) X(configure) X(open_route) X(start_tasks) \
	X(stop_tasks) X(wait_drained) X(suspend_route) X(park_route) X(delete_part) X(archive_by_hand) \
	X(archive_before_restore) X(archive_all) X(restore) X(rotate) X(check_resources) X(begin_removal) X(check_none)
#define INSTANCE_UNDOS(X) \
	X(remove_rest) X(remove_part) X(create_again) X(start_again) X(stop_tasks) X(configure_back) X(open_route) \
	X(close_route) X(suspend_route) X(park_route)
/* clang-format on */

#define X(name) saga_step_fn instance_act_##name;
INSTANCE_ACTS(X)
#undef X
#define X(name) saga_step_fn instance_undo_##name;
INSTANCE_UNDOS(X)
#undef X

/* The queue of the container service's events. */
queue_call_fn   instance_call_ecs;
queue_settle_fn instance_settle_ecs;

struct str         instance_subject(struct session *s, struct str id);
MUST_CHECK enum rc instance_emit(struct session *s, const char *type, const struct instance *i, struct str actor,
                                 struct str request_id, struct str detail, struct err *e);

/* The completion of an operation. error: JSON, or empty. */
MUST_CHECK enum rc instance_tell_end(struct session *s, const struct instance *i, const struct operation *o,
                                     struct err *e);

/* The error of an instance as it is stored. leftovers: a JSON array, or empty. */
struct str instance_error(struct arena *a, const char *code, struct str message, struct str step, struct str leftovers,
                          int64_t now_ms);

/* A removal that failed goes on by itself. */
struct str         instance_removal_timer(struct session *s, struct str id);
MUST_CHECK enum rc instance_arm_removal(struct session *s, const struct instance *i, struct err *e);

/* Keep an archive until then. */
MUST_CHECK enum rc instance_keep_backup(struct session *s, struct backup *b, int64_t archive_ms, struct err *e);

/* guard_private.h - the inside of the guard, shared by the files guard*.c; nobody else includes this. */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "service/account/account_ous.h"
#include "service/guard/guard.h"
#include "service/hold/holds.h"

#define GUARD_HOLD_SAGA    "guard-hold" /* an id is KIND/ACCOUNT/NUMBER */
#define GUARD_RELEASE_SAGA "guard-release"
#define GUARD_EJECT_SAGA   "guard-eject"
#define GUARD_UNTAG_SAGA   "guard-untag" /* KIND/HOLD */
#define GUARD_ACTOR        "guard"

/* How far the move outside is, in hold.placement. The last two are of holds that were never open. */
#define PLACE_INTENDED  "intended"
#define PLACE_HELD      "held"
#define PLACE_RELEASING HOLD_RELEASING
#define PLACE_RELEASED  "released"
#define PLACE_EJECTING  "ejecting"
#define PLACE_EJECTED   "ejected"

enum { GUARD_RETRY_MS = 300000, GUARD_CONFIRM_MS = 120000 };

struct guard {
	struct guard_options options;
	struct account_ous  *ous;
};

/* --- guard_log.c --- */

/* Say what was done: an event, and by it a log line and a count. The fields are JSON_MEMBERS(); empty ones are left
 * out. */
MUST_CHECK enum rc guard_tell(struct session *s, const char *action, struct str account,
                              const struct json_member *fields, size_t count, struct err *e);
queue_handle_fn    guard_write_line; /* arg is the guard's struct metrics, or NULL */

/* --- guard.c --- */

/* Hold an account that was found in Quarantine without a hold: the holds of the rules with their release times, and
 * the saga after which the table says Quarantine. */
MUST_CHECK enum rc guard_hold_found(struct session *s, const struct guard *g, struct str account, struct str name,
                                    struct str by, struct str why, struct err *e);

/* --- guard_saga.c --- */

/* What a saga is to do; its input. */
struct guard_task {
	struct str account;
	struct str hold;         /* the one it is for */
	struct str how, by, why; /* release: how it is closed then */
};

MUST_CHECK enum rc guard_task_read(const struct saga *saga, struct arena *a, struct guard_task *ret, struct err *e);

/* What its steps have found out; its data. */
struct guard_finding {
	struct str note;       /* there is nothing to do, because of this; empty: there is */
	struct str status;     /* in the other system's table */
	struct str ou_id;      /* where it was moved to */
	int64_t    is_flagged; /* a lease has it: somebody should look */
};

MUST_CHECK enum rc guard_finding_read(struct str data, struct arena *a, struct guard_finding *ret, struct err *e);
struct str         guard_finding_write(const struct guard_finding *f, struct arena *a);

/* Start the account's next saga; the mark is stored with it, and the one before is over for us. */
MUST_CHECK enum rc guard_start(struct session *s, struct guard_mark *mark, const char *kind,
                               const struct guard_task *task, struct err *e);

/* The saga that takes the tag away: beside the account's other ones. */
MUST_CHECK enum rc guard_start_untag(struct session *s, const struct guard_task *task, struct err *e);

/* The timer of a saga that failed: the same again, unless another one was started since. */
MUST_CHECK enum rc guard_retry(struct session *s, struct str saga_id, struct err *e);

/* How far the account's last saga is. */
struct guard_progress {
	bool is_busy;  /* at work, or will be tried again */
	bool is_stuck; /* wanted, and neither */
};
MUST_CHECK enum rc guard_look_at_progress(struct session *s, const struct guard_mark *mark, const struct holds *open,
                                          struct guard_progress *ret, struct err *e);

/* Go on with what is stuck. */
MUST_CHECK enum rc guard_unstick(struct session *s, struct guard_mark *mark, struct holds *open, struct err *e);

/* Have the table looked at in two minutes. */
MUST_CHECK enum rc guard_arm_confirm(struct session *s, struct str account, struct err *e);

extern saga_end_fn guard_hold_ends, guard_release_ends, guard_eject_ends, guard_untag_ends;

/* --- guard_steps.c --- */

/* What the other system's table says; all empty, and not tracked, when it does not have the account. */
MUST_CHECK enum rc guard_read_table(const struct guard *g, struct str account, struct arena *a,
                                    struct table_account *ret, bool *ret_is_tracked, struct err *e);

/* The table says that it can be lent, or is being cleaned, while it is held in Quarantine: have it say Quarantine.
 * For what the other system writes late. RC_OK also when there is nothing to put right. */
MUST_CHECK enum rc guard_correct_table(struct guard *g, struct str account, struct arena *a, struct str *ret_was,
                                       struct err *e);

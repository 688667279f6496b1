/* account_follow.h - brings the organisation and the access grants behind an account's record, by one saga at a time.
 *
 * Wiring:
 *
 *     world = account_world_new(&options);
 *     kind = account_follow_kind(world);           into kernel_options.sagas
 *     ...
 *     account_world_free(world);                   after the pump has stopped */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/hold.h"
#include "domain/lease.h"
#include "kernel/saga.h"
#include "store/session.h"

#define ACCOUNT_FOLLOW "account-follow" /* the kind; an id is "account-follow/ACCOUNT/NUMBER" */

/* Copied; what it points to stays the caller's, and is there as long as the world. */
struct account_world_options {
	struct store *store;
	struct cloud  cloud;            /* organisation and access are used, and credentials where there are */
	struct str    user_permissions; /* permission set that the owner of a lease gets */
	int64_t access_ms; /* how long a change of access may take until another node may take over; 0: as any call */

	/* Get access to what comes from Entry, and lose it at the exit. Empty: no such group. */
	struct str manager_group, manager_permissions, admin_group, admin_permissions;
};

/* What happens to the lease and the line when an account gets somewhere, or cannot; registered by those above. All
 * inside the transaction in which it happened; what does not concern them they leave alone. */
#define ACCOUNT_HOOKS "account"
struct account_hooks {
	/* It is Active, and its owner has access. */
	enum rc (*ready)(struct session *s, const struct account *account, struct err *e);
	/* It could not be made ready for the lease that waits for it. */
	enum rc (*failed)(struct session *s, const struct account *account, struct str why, struct err *e);
	/* It is being quarantined or ejected: its live lease ends without a cleanup. */
	enum rc (*lost)(struct session *s, const struct account *account, enum lease_event event, struct str comment,
	                struct str actor, struct err *e);
	/* It became free. */
	enum rc (*freed)(struct session *s, struct err *e);
	/* Nobody knows where it is: set it aside, and have the world follow. */
	enum rc (*lock_away)(struct session *s, struct account *account, enum hold_reason kind, struct str reason,
	                     struct str actor, struct str request_id, struct err *e);
};
const struct account_hooks *account_hooks(const struct session *s);

struct account_world *account_world_new(const struct account_world_options *o);
void                  account_world_free(struct account_world *w);
struct account_ous   *account_world_ous(struct account_world *w); /* borrowed */
struct saga_kind      account_follow_kind(struct account_world *w);

/* Store an account that this transaction has read, with what it should be from now on, and have the world follow: a
 * saga starts, or will after the one under way. When the world is there already, what comes after an arrival happens at
 * once: the lease hears that it is ready, the cleanup is asked for, the line is served, or the record goes (Exit). */
MUST_CHECK enum rc account_save(struct session *s, struct account *account, struct str actor, struct err *e);

/* Under which name an account's temporary credentials are kept. */
struct str account_secret_name(struct str account_id, struct arena *a);

/* "account/ID". */
struct str account_subject(struct session *s, struct str id);

/* Emit with that subject; detail is JSON text. */
MUST_CHECK enum rc account_emit(struct session *s, const char *type, struct str account, struct str actor,
                                struct str request_id, struct str detail, struct err *e);

/* Arm a timer with that subject; detail is JSON text. */
MUST_CHECK enum rc account_arm(struct session *s, struct str name, int64_t due_ms, const char *type, struct str account,
                               struct str detail, struct err *e);

/* Emitted when an account that has to be cleaned is where it can be. While a cleanup runs, nothing follows from it. */
#define EVENT_CLEAN_REQUEST "CleanAccountRequest"

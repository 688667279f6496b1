/* account_follow.h - brings the organisation and the access grants behind an account's record, by a saga: one at a time for an account.
 *
 * Wiring:
 *
 *     world = account_world_new(&options);
 *     kind = account_follow_kind(world);           into kernel_options.sagas
 *     ...
 *     account_world_free(world);                   after the pump has stopped
 */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/account.h"
#include "domain/cloud.h"
#include "kernel/saga.h"
#include "store/session.h"

struct account_world;
struct store;

#define ACCOUNT_FOLLOW "account-follow" /* the kind; an id is "account-follow/ACCOUNT/NUMBER" */

/* Copied; what it points to stays the caller's, and is there as long as the world. */
struct account_world_options {
	struct store *store;
	struct cloud  cloud;            /* organisation and access are used, and credentials where there are */
	struct str    user_permissions; /* permission set that the owner of a lease gets */

	/* Get access to what comes from Entry, and lose it at the exit. Empty: no such group. */
	struct str manager_group, manager_permissions;
	struct str admin_group, admin_permissions;
};

struct account_world *account_world_new(const struct account_world_options *o);
void                  account_world_free(struct account_world *w);
struct saga_kind      account_follow_kind(struct account_world *w);

/* Store an account that this transaction has read, with what it should be from now on, and have the world follow: a saga starts, or the one
 * under way will be followed by another. When the world is there already, what comes after an arrival happens at once: the lease hears
 * that it is ready, the cleanup is asked for, the line is served, or the record is gone (Exit). */
MUST_CHECK enum rc account_save(struct session *s, struct account *account, struct str actor, struct err *e);

/* Under which name an account's temporary credentials are kept. */
struct str account_secret_name(struct str account_id, struct arena *a);

/* "account/ID". */
struct str account_subject(struct session *s, struct str id);

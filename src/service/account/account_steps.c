/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_steps.c - what the saga that follows an account does outside: revoke, move, grant, issue credentials.
 *
 * In this order nobody ever has access to an account in the wrong OU: access ends before a move and begins after it.
 * Temporary credentials, if configured, are issued after the grant and withdrawn before it is revoked. We only know
 * their name.
 *
 * Always true:
 *   1. An account is moved only from where the record says it is; otherwise somebody else has moved it, and that is for
 *      a person to judge. Quarantine and Exit are reached from anywhere. [move()]
 *   2. What was revoked is not given back when the saga goes back: then the account is quarantined anyway.
 *   3. On the way to Quarantine or Exit nothing is undone: the saga is parked instead.              [begin_undo()]
 *   4. A saga that is no longer the account's newest does nothing, also when an operator has it tried again.  [begin()]
 *
 * Not here: when a saga starts and what follows from its end (account_follow.c).
 */
#include "service/account/account_steps.h"

#include "base/json.h"
#include "service/account/account_ous.h"
#include "service/record/lease_records.h"
#include "store/walk.h"

enum { TRIES = 30, BACKOFF_MAX_MS = 120000, WANTED_MAX = 3 };

/* --- the target --- */

static bool is_named(struct str ou, enum account_status status)
{
	return str_eq(ou, str_from(account_ou_names[status]));
}

struct account_target account_target_of(const struct account *a)
{
	bool ends_access = a->status != ACCOUNT_AVAILABLE && a->status != ACCOUNT_ACTIVE;

	return (struct account_target){ .account = a->id,
		                        .number = a->follow_number,
		                        .from = a->placed_ou,
		                        .to = str_from(account_ou_names[a->status]),
		                        .holder = a->holder,
		                        .revokes = ends_access ||
		                                   (a->granted.n && !str_eq_nocase(a->granted, a->holder)),
		                        .groups = str_eq(a->placed_ou, STR(OU_ENTRY)) && a->status != ACCOUNT_EXIT };
}

bool account_target_is_final(const struct account_target *w)
{
	return is_named(w->to, ACCOUNT_QUARANTINE) || is_named(w->to, ACCOUNT_EXIT);
}

struct str account_target_write(const struct account_target *w, struct arena *a)
{
	return JSON_OF(a, member_str("account", w->account), member_int("number", w->number),
	               member_str("fromOu", w->from), member_str("toOu", w->to), member_str("holder", w->holder),
	               member_int("revoke", w->revokes), member_int("groups", w->groups));
}

enum rc account_target_read(struct str input, struct arena *a, struct account_target *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct account_target       w;
	enum rc                     rc = json_parse(input, &o, e);

	if (rc)
		return err_wrap(e, rc, "the input of a saga that follows an account");
	if (!json_take_text(o, "account", a, &w.account) || !json_get_number(o, "number", 0, &w.number) ||
	    !json_take_text(o, "fromOu", a, &w.from) || !json_take_text(o, "toOu", a, &w.to) ||
	    !json_take_text(o, "holder", a, &w.holder) || !json_get_number(o, "revoke", 0, &w.revokes) ||
	    !json_get_number(o, "groups", 0, &w.groups) || !w.account.n || !w.to.n)
		return err_set(e, RC_CORRUPT, "the input of a saga that follows an account lacks its account or OU");
	*ret = w;
	return RC_OK;
}

/* --- the beginning of each call --- */

struct step {
	struct account_world *world;
	struct arena         *arena;
	struct account_target target;
	struct access        *access;
	struct credentials   *credentials; /* NULL: there are none to issue */
	bool                  is_stale;    /* another saga follows the account by now, or it is gone */
};

static enum rc begin(struct saga_call *c, struct step *ret, struct err *e)
{
	struct account_world *w = c->world;
	struct account        account;
	bool                  is_there;
	enum rc               rc;

	*ret = (struct step){ .world = w, .arena = c->arena, .access = w->options.cloud.access };
	if ((rc = account_target_read(c->saga->input, c->arena, &ret->target, e)) ||
	    (rc = store_find(w->options.store, &account_type, ret->target.account, c->arena, &account, &is_there, e)))
		return rc;
	ret->is_stale = !is_there || account.follow_number != ret->target.number;
	if (ret->target.holder.n)
		ret->credentials = w->options.cloud.credentials;
	return RC_OK;
}

/* The same for an act, which must not happen late. */
static enum rc begin_act(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc = begin(c, ret, e);

	if (rc || !ret->is_stale)
		return rc;
	return err_set(e, RC_CONFLICT, "account %.*s is followed by another saga by now, or is gone",
	               STR_ARG(ret->target.account));
}

/* The same for an undo: of a stale one there is nothing to take back. */
static enum rc begin_undo(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc = begin(c, ret, e);

	if (rc || ret->is_stale || !account_target_is_final(&ret->target))
		return rc;
	return err_set(e, RC_CONFLICT, "account %.*s is on its way to %.*s and is not brought back",
	               STR_ARG(ret->target.account), STR_ARG(ret->target.to));
}

/* --- credentials --- */

struct str account_secret_name(struct str account_id, struct arena *a)
{
	return str_format(a, "leasehold/%.*s", STR_ARG(account_id));
}

static enum rc withdraw_credentials(const struct step *st, struct err *e)
{
	struct credentials *c = st->world->options.cloud.credentials;
	enum rc             rc = c ? c->ops->withdraw(c, st->target.account, e) : RC_OK;

	return err_wrap(e, rc, "credentials of account %.*s", STR_ARG(st->target.account));
}

static enum rc issue(struct saga_call *c, struct err *e)
{
	struct step         st;
	struct cloud_secret secret;
	enum rc             rc = begin_act(c, &st, e);

	if (rc || !st.credentials)
		return rc;
	secret = (struct cloud_secret){ st.target.account, account_secret_name(st.target.account, st.arena),
		                        st.target.holder };
	rc = st.credentials->ops->issue(st.credentials, &secret, e);
	return err_wrap(e, rc, "credentials of %.*s for account %.*s", STR_ARG(secret.principal),
	                STR_ARG(secret.account_id));
}

static enum rc is_issued(struct saga_call *c, bool *ret, struct err *e)
{
	struct step         st;
	struct cloud_secret found;
	bool                is_there;
	enum rc             rc = begin(c, &st, e);

	*ret = true;
	if (rc || !st.credentials)
		return rc;
	rc = st.credentials->ops->find(st.credentials, st.target.account, st.arena, &found, &is_there, e);
	if (!rc)
		*ret = is_there && str_eq_nocase(found.principal, st.target.holder);
	return rc;
}

static enum rc take_credentials_away(struct saga_call *c, struct err *e)
{
	struct step st;
	enum rc     rc = begin_undo(c, &st, e);

	return rc || st.is_stale ? rc : withdraw_credentials(&st, e);
}

/* --- revoke --- */

static enum rc list_access(const struct step *st, struct cloud_assignment **ret, size_t *ret_count, struct err *e)
{
	enum rc rc = st->access->ops->list(st->access, st->target.account, st->arena, ret, ret_count, e);

	return err_wrap(e, rc, "access to account %.*s", STR_ARG(st->target.account));
}

static bool may_stay(const struct step *st, const struct cloud_assignment *x)
{
	if (x->kind == CLOUD_GROUP)
		return !is_named(st->target.to, ACCOUNT_EXIT);
	return st->target.holder.n && str_eq_nocase(x->principal, st->target.holder) &&
	       str_eq(x->permission_set, st->world->options.user_permissions);
}

static enum rc revoke(struct saga_call *c, struct err *e)
{
	struct step              st;
	struct cloud_assignment *list;
	size_t                   count;
	enum rc                  rc = begin_act(c, &st, e);

	if (rc || !st.target.revokes || (rc = withdraw_credentials(&st, e)) ||
	    (rc = list_access(&st, &list, &count, e)))
		return rc;
	for (size_t i = 0; i < count; i++)
		if (!may_stay(&st, &list[i]) && (rc = st.access->ops->set(st.access, &list[i], false, e)))
			return err_wrap(e, rc, "access of %.*s to account %.*s", STR_ARG(list[i].principal),
			                STR_ARG(st.target.account));
	return RC_OK;
}

static enum rc keep_revoked(struct saga_call *c, struct err *e)
{
	struct step st;

	return begin_undo(c, &st, e);
}

/* --- move --- */

/* Where it is, and between which OUs it is moved, by id: to a final one from wherever it is. */
static enum rc locate(const struct step *st, struct str *ret_here, struct ou_pair *ret, struct err *e)
{
	struct account_ous *ous = st->world->ous;
	struct ou_pair      names = { st->target.from, st->target.to };
	enum rc             rc = account_ous_locate(ous, st->target.account, st->arena, ret_here, e);

	if (rc)
		return rc;
	if (!account_target_is_final(&st->target))
		return account_ous_route(ous, *ret_here, names, st->arena, ret, e);
	ret->from = *ret_here;
	return account_ous_find(ous, names.to, st->arena, &ret->to, e);
}

static enum rc move(struct saga_call *c, struct err *e)
{
	struct step    st;
	struct ou_pair ids;
	struct str     here;
	enum rc        rc = begin_act(c, &st, e);

	if (rc || (rc = locate(&st, &here, &ids, e)) || str_eq(here, ids.to))
		return rc;
	if (str_eq(here, ids.from))
		return account_ous_move(st.world->ous, st.target.account, ids, e);
	return err_set(e, RC_CONFLICT, "account %.*s is in %.*s, but should be in %.*s: somebody else has moved it",
	               STR_ARG(st.target.account), STR_ARG(account_ous_name(st.world->ous, here, st.arena)),
	               STR_ARG(st.target.from));
}

static enum rc is_moved(struct saga_call *c, bool *ret, struct err *e)
{
	struct step    st;
	struct ou_pair ids;
	struct str     here;
	enum rc        rc = begin(c, &st, e);

	if (rc || (rc = locate(&st, &here, &ids, e)))
		return rc;
	*ret = str_eq(here, ids.to);
	return RC_OK;
}

/* From where we have put it; wherever else it is, it is not there by us. */
static enum rc move_back(struct saga_call *c, struct err *e)
{
	struct step    st;
	struct ou_pair ids;
	struct str     here;
	enum rc        rc = begin_undo(c, &st, e);

	if (rc || st.is_stale || (rc = locate(&st, &here, &ids, e)) || !str_eq(here, ids.to))
		return rc;
	return account_ous_move(st.world->ous, st.target.account, (struct ou_pair){ ids.to, ids.from }, e);
}

/* --- grant --- */

static size_t list_wanted(const struct step *st, struct cloud_assignment ret[WANTED_MAX])
{
	const struct account_world_options *o = &st->world->options;
	struct str                          id = st->target.account;
	size_t                              n = 0;

	if (st->target.groups && o->manager_group.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_GROUP, o->manager_group, o->manager_permissions };
	if (st->target.groups && o->admin_group.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_GROUP, o->admin_group, o->admin_permissions };
	if (st->target.holder.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_USER, st->target.holder, o->user_permissions };
	return n;
}

static enum rc grant(struct saga_call *c, struct err *e)
{
	struct cloud_assignment wanted[WANTED_MAX];
	struct step             st;
	enum rc                 rc = begin_act(c, &st, e);
	size_t                  count = rc ? 0 : list_wanted(&st, wanted);

	for (size_t i = 0; i < count; i++)
		if ((rc = st.access->ops->set(st.access, &wanted[i], true, e)))
			return err_wrap(e, rc, "access of %.*s to account %.*s", STR_ARG(wanted[i].principal),
			                STR_ARG(st.target.account));
	return rc;
}

static bool has(const struct cloud_assignment *list, size_t count, const struct cloud_assignment *x)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].kind == x->kind && str_eq_nocase(list[i].principal, x->principal) &&
		    str_eq(list[i].permission_set, x->permission_set))
			return true;
	return false;
}

static enum rc is_granted(struct saga_call *c, bool *ret, struct err *e)
{
	struct cloud_assignment  wanted[WANTED_MAX];
	struct cloud_assignment *list;
	struct step              st;
	size_t                   count;
	enum rc                  rc = begin(c, &st, e);

	if (rc || (rc = list_access(&st, &list, &count, e)))
		return rc;
	*ret = true;
	for (size_t i = 0, n = list_wanted(&st, wanted); i < n; i++)
		*ret = *ret && has(list, count, &wanted[i]);
	return RC_OK;
}

/* The groups keep what they have: they look after quarantined accounts too. */
static enum rc take_away(struct saga_call *c, struct err *e)
{
	struct cloud_assignment wanted[WANTED_MAX];
	struct step             st;
	enum rc                 rc = begin_undo(c, &st, e);
	size_t                  count = rc || st.is_stale ? 0 : list_wanted(&st, wanted);

	for (size_t i = 0; !rc && i < count; i++)
		if (wanted[i].kind == CLOUD_USER)
			rc = st.access->ops->set(st.access, &wanted[i], false, e);
	return rc;
}

/* An outage of half an hour is survived; what lasts longer is for a person. */
#define STEP(text, do_it, has_happened, undo_it)                                                    \
	{                                                                                           \
		.name = text, .act = do_it, .check = has_happened, .undo = undo_it, .tries = TRIES, \
		.backoff_max_ms = BACKOFF_MAX_MS, .is_patient = true                                \
	}
enum { STEP_REVOKE, STEP_MOVE, STEP_GRANT, STEP_CREDENTIALS };
static const struct saga_step steps[ACCOUNT_STEP_COUNT] = {
	[STEP_REVOKE] = STEP("revoke", revoke, NULL, keep_revoked),
	[STEP_MOVE] = STEP("move", move, is_moved, move_back),
	[STEP_GRANT] = STEP("grant", grant, is_granted, take_away),
	[STEP_CREDENTIALS] = STEP("credentials", issue, is_issued, take_credentials_away),
};

void account_steps_init(struct saga_step ret[ACCOUNT_STEP_COUNT], int64_t access_ms)
{
	memcpy(ret, steps, sizeof(steps));
	ret[STEP_REVOKE].timeout_ms = ret[STEP_GRANT].timeout_ms = access_ms;
}

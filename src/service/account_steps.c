/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_steps.c - what the saga that follows an account does outside: revoke, move, grant, issue credentials.
 *
 * In this order nobody ever has access to an account in an OU where he should have none: access ends before a move and begins after it.
 * Temporary credentials, where the operator wants them, begin after the grant and end before it is revoked. We give them a name and
 * never see them.
 *
 * Always true:
 *   1. An account is moved only from where the record says it is; otherwise somebody else has moved it, and that is for a person to
 *      judge. Quarantine and Exit are reached from anywhere.                                        [move()]
 *   2. What was revoked is not given back when the saga goes back: then the account is quarantined anyway.
 *   3. On the way to Quarantine or Exit nothing is undone: the saga is parked instead.              [begin_undo()]
 *   4. A saga that is no longer the account's newest does nothing, also when an operator has it tried again.  [begin()]
 *
 * Not here: when a saga starts and what follows from its end (account_follow.c).
 */
#include "service/account_steps.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "service/account_ous.h"
#include "service/lease_records.h"
#include "store/store.h"

enum { WISH_MAX = 4096, TRIES = 30, BACKOFF_MAX_MS = 120000, WANTED_MAX = 3 };

/* --- the wish --- */

static bool is_named(struct str ou, enum account_status status)
{
	return str_eq(ou, str_from(account_ou_names[status]));
}

struct account_wish account_wish_of(const struct account *a)
{
	bool ends_access = a->status != ACCOUNT_AVAILABLE && a->status != ACCOUNT_ACTIVE;

	return (struct account_wish){ .account = a->id,
		                      .number = a->follow_number,
		                      .from = a->placed_ou,
		                      .to = str_from(account_ou_names[a->status]),
		                      .holder = a->holder,
		                      .revokes = ends_access || (a->granted.n && !str_eq_nocase(a->granted, a->holder)),
		                      .groups = str_eq(a->placed_ou, STR(OU_ENTRY)) && a->status != ACCOUNT_EXIT };
}

bool account_wish_is_final(const struct account_wish *w)
{
	return is_named(w->to, ACCOUNT_QUARANTINE) || is_named(w->to, ACCOUNT_EXIT);
}

struct str account_wish_write(const struct account_wish *w, struct arena *a)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, WISH_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "account", w->account);
	json_put_int(&o, "number", w->number);
	json_put_str(&o, "fromOu", w->from);
	json_put_str(&o, "toOu", w->to);
	json_put_str(&o, "holder", w->holder);
	json_put_int(&o, "revoke", w->revokes);
	json_put_int(&o, "groups", w->groups);
	json_close_object(&o);
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
}

enum rc account_wish_read(struct str input, struct arena *a, struct account_wish *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct account_wish         w;
	enum rc                     rc = json_parse(input, &o, e);

	if (rc)
		return err_wrap(e, rc, "the input of a saga that follows an account");
	if (!json_get_text(o, "account", &w.account) || !json_get_number(o, "number", 0, &w.number) ||
	    !json_get_text(o, "fromOu", &w.from) || !json_get_text(o, "toOu", &w.to) ||
	    !json_get_text(o, "holder", &w.holder) || !json_get_number(o, "revoke", 0, &w.revokes) ||
	    !json_get_number(o, "groups", 0, &w.groups) || !w.account.n || !w.to.n)
		return err_set(e, RC_CORRUPT, "the input of a saga that follows an account lacks its account or OU");
	w.account = str_dup(a, w.account);
	w.from = str_dup(a, w.from);
	w.to = str_dup(a, w.to);
	w.holder = str_dup(a, w.holder);
	*ret = w;
	return RC_OK;
}

/* --- the beginning of each call --- */

struct step {
	struct account_world *world;
	struct arena         *arena;
	struct account_wish   wish;
	bool                  is_stale; /* another saga follows the account by now, or it is gone */
};

static enum rc see_if_stale(struct session *s, void *arg, struct err *e)
{
	struct step   *step = arg;
	struct account account;
	enum rc        rc = session_get(s, &account_type, step->wish.account, &account, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(step->wish.account));
	step->is_stale = rc == RC_NOT_FOUND || account.follow_number != step->wish.number;
	return RC_OK;
}

static enum rc begin(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc;

	*ret = (struct step){ .world = c->world, .arena = c->arena };
	if ((rc = account_wish_read(c->saga->input, c->arena, &ret->wish, e)))
		return rc;
	return store_read(ret->world->options.store, see_if_stale, ret, c->arena, e);
}

/* The same for an act, which must not happen late. */
static enum rc begin_act(struct saga_call *c, struct step *ret, struct err *e)
{
	enum rc rc = begin(c, ret, e);

	if (!rc && ret->is_stale)
		return err_set(e, RC_CONFLICT, "account %.*s is followed by another saga by now, or is gone",
		               STR_ARG(ret->wish.account));
	return rc;
}

/* The same for an undo. *ret_has_work is false when there is nothing to take back. */
static enum rc begin_undo(struct saga_call *c, struct step *ret, bool *ret_has_work, struct err *e)
{
	enum rc rc = begin(c, ret, e);

	*ret_has_work = false;
	if (rc || ret->is_stale)
		return rc;
	if (account_wish_is_final(&ret->wish))
		return err_set(e, RC_CONFLICT, "account %.*s is on its way to %.*s and is not brought back",
		               STR_ARG(ret->wish.account), STR_ARG(ret->wish.to));
	*ret_has_work = true;
	return RC_OK;
}

/* --- credentials --- */

struct str account_secret_name(struct str account_id, struct arena *a)
{
	return str_format(a, "leasehold/%.*s", STR_ARG(account_id));
}

static enum rc withdraw_credentials(const struct step *st, struct err *e)
{
	struct credentials *c = st->world->options.cloud.credentials;
	enum rc             rc = c ? c->ops->withdraw(c, st->wish.account, e) : RC_OK;

	return rc ? err_wrap(e, rc, "credentials of account %.*s", STR_ARG(st->wish.account)) : RC_OK;
}

static struct cloud_secret secret_of(const struct step *st)
{
	return (struct cloud_secret){ st->wish.account, account_secret_name(st->wish.account, st->arena),
		                      st->wish.holder };
}

static bool has_credentials(const struct step *st)
{
	return st->world->options.cloud.credentials && st->wish.holder.n;
}

static enum rc issue(struct saga_call *c, struct err *e)
{
	struct step         st;
	struct credentials *credentials;
	struct cloud_secret secret;
	enum rc             rc = begin_act(c, &st, e);

	if (rc || !has_credentials(&st))
		return rc;
	credentials = st.world->options.cloud.credentials;
	secret = secret_of(&st);
	rc = credentials->ops->issue(credentials, &secret, e);
	return rc ? err_wrap(e, rc, "credentials of %.*s for account %.*s", STR_ARG(secret.principal),
	                     STR_ARG(secret.account_id))
	          : RC_OK;
}

static enum rc is_issued(struct saga_call *c, bool *ret, struct err *e)
{
	struct step         st;
	struct credentials *credentials;
	struct cloud_secret found;
	bool                is_there;
	enum rc             rc = begin(c, &st, e);

	*ret = true;
	if (rc || !has_credentials(&st))
		return rc;
	credentials = st.world->options.cloud.credentials;
	rc = credentials->ops->find(credentials, st.wish.account, st.arena, &found, &is_there, e);
	if (!rc)
		*ret = is_there && str_eq_nocase(found.principal, st.wish.holder);
	return rc;
}

static enum rc take_credentials_away(struct saga_call *c, struct err *e)
{
	struct step st;
	bool        has_work;
	enum rc     rc = begin_undo(c, &st, &has_work, e);

	return rc || !has_work ? rc : withdraw_credentials(&st, e);
}

/* --- revoke --- */

static enum rc list_access(const struct step *st, struct cloud_assignment **ret, size_t *ret_count, struct err *e)
{
	struct access *x = st->world->options.cloud.access;
	enum rc        rc = x->ops->list(x, st->wish.account, st->arena, ret, ret_count, e);

	return rc ? err_wrap(e, rc, "access to account %.*s", STR_ARG(st->wish.account)) : RC_OK;
}

static bool may_stay(const struct step *st, const struct cloud_assignment *x)
{
	if (x->kind == CLOUD_GROUP)
		return !is_named(st->wish.to, ACCOUNT_EXIT);
	return st->wish.holder.n && str_eq_nocase(x->principal, st->wish.holder) &&
	       str_eq(x->permission_set, st->world->options.user_permissions);
}

static enum rc revoke(struct saga_call *c, struct err *e)
{
	struct step              st;
	struct access           *access;
	struct cloud_assignment *list;
	size_t                   count;
	enum rc                  rc = begin_act(c, &st, e);

	if (rc || !st.wish.revokes)
		return rc;
	access = st.world->options.cloud.access;
	if ((rc = withdraw_credentials(&st, e)))
		return rc;
	rc = list_access(&st, &list, &count, e);
	for (size_t i = 0; !rc && i < count; i++)
		if (!may_stay(&st, &list[i]) && (rc = access->ops->revoke(access, &list[i], e)))
			return err_wrap(e, rc, "access of %.*s to account %.*s", STR_ARG(list[i].principal),
			                STR_ARG(st.wish.account));
	return rc;
}

static enum rc keep_revoked(struct saga_call *c, struct err *e)
{
	struct step st;
	bool        has_work;

	return begin_undo(c, &st, &has_work, e);
}

/* --- move --- */

struct whereabouts {
	struct str here, from, to; /* ids of OUs */
};

static enum rc locate_once(const struct step *st, struct whereabouts *ret, struct err *e)
{
	struct organisation *o = st->world->options.cloud.organisation;
	enum rc              rc = o->ops->find_parent(o, st->wish.account, st->arena, &ret->here, e);

	if (!rc)
		rc = account_ous_find(st->world->ous, st->wish.to, st->arena, &ret->to, e);
	if (!rc && !account_wish_is_final(&st->wish))
		rc = account_ous_find(st->world->ous, st->wish.from, st->arena, &ret->from, e);
	return rc;
}

static bool is_where_expected(const struct whereabouts *w)
{
	return str_eq(w->here, w->to) || str_eq(w->here, w->from);
}

/* An account in an unexpected OU may also mean that we know the OUs' ids no longer. */
static enum rc locate(const struct step *st, struct whereabouts *ret, struct err *e)
{
	enum rc rc;

	*ret = (struct whereabouts){ 0 };
	rc = locate_once(st, ret, e);
	if (rc || is_where_expected(ret) || account_wish_is_final(&st->wish))
		return rc;
	account_ous_forget(st->world->ous);
	return locate_once(st, ret, e);
}

static enum rc move_to(const struct step *st, struct str from, struct str to, struct err *e)
{
	struct organisation *o = st->world->options.cloud.organisation;
	enum rc              rc = o->ops->move(o, st->wish.account, from, to, e);

	if (rc == RC_NOT_FOUND)
		account_ous_forget(st->world->ous);
	/* Somebody was faster, or an OU is another by now: the next try looks again, and knows. */
	if (rc == RC_CONFLICT || rc == RC_NOT_FOUND) {
		rc = RC_UNAVAILABLE;
		if (e)
			e->rc = rc;
	}
	return rc;
}

static enum rc move(struct saga_call *c, struct err *e)
{
	struct step        st;
	struct whereabouts w;
	struct str         here;
	enum rc            rc = begin_act(c, &st, e);

	if (rc || (rc = locate(&st, &w, e)) || str_eq(w.here, w.to))
		return rc;
	here = account_ous_name(st.world->ous, w.here, st.arena);
	if (!is_where_expected(&w) && !account_wish_is_final(&st.wish))
		return err_set(e, RC_CONFLICT,
		               "account %.*s is in %.*s, but should be in %.*s: somebody else has moved it",
		               STR_ARG(st.wish.account), STR_ARG(here), STR_ARG(st.wish.from));
	return move_to(&st, w.here, w.to, e);
}

static enum rc is_moved(struct saga_call *c, bool *ret, struct err *e)
{
	struct step        st;
	struct whereabouts w;
	enum rc            rc = begin(c, &st, e);

	if (!rc)
		rc = locate(&st, &w, e);
	if (!rc)
		*ret = str_eq(w.here, w.to);
	return rc;
}

/* From where we have put it; wherever else it is, it is not there by us. */
static enum rc move_back(struct saga_call *c, struct err *e)
{
	struct step        st;
	struct whereabouts w;
	bool               has_work;
	enum rc            rc = begin_undo(c, &st, &has_work, e);

	if (rc || !has_work || (rc = locate(&st, &w, e)) || !str_eq(w.here, w.to))
		return rc;
	return move_to(&st, w.to, w.from, e);
}

/* --- grant --- */

static size_t list_wanted(const struct step *st, struct cloud_assignment ret[WANTED_MAX])
{
	const struct account_world_options *o = &st->world->options;
	struct str                          id = st->wish.account;
	size_t                              n = 0;

	if (st->wish.groups && o->manager_group.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_GROUP, o->manager_group, o->manager_permissions };
	if (st->wish.groups && o->admin_group.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_GROUP, o->admin_group, o->admin_permissions };
	if (st->wish.holder.n)
		ret[n++] = (struct cloud_assignment){ id, CLOUD_USER, st->wish.holder, o->user_permissions };
	return n;
}

static enum rc grant(struct saga_call *c, struct err *e)
{
	struct cloud_assignment wanted[WANTED_MAX];
	struct step             st;
	struct access          *access;
	enum rc                 rc = begin_act(c, &st, e);
	size_t                  count = rc ? 0 : list_wanted(&st, wanted);

	access = st.world->options.cloud.access;
	for (size_t i = 0; i < count; i++)
		if ((rc = access->ops->grant(access, &wanted[i], e)))
			return err_wrap(e, rc, "access of %.*s to account %.*s", STR_ARG(wanted[i].principal),
			                STR_ARG(st.wish.account));
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
	bool                     has_all = true;
	enum rc                  rc = begin(c, &st, e);

	if (rc || (rc = list_access(&st, &list, &count, e)))
		return rc;
	for (size_t i = 0, n = list_wanted(&st, wanted); i < n; i++)
		has_all = has_all && has(list, count, &wanted[i]);
	*ret = has_all;
	return RC_OK;
}

/* The groups keep what they have: they look after quarantined accounts too. */
static enum rc take_away(struct saga_call *c, struct err *e)
{
	struct cloud_assignment wanted[WANTED_MAX];
	struct step             st;
	struct access          *access;
	bool                    has_work;
	enum rc                 rc = begin_undo(c, &st, &has_work, e);
	size_t                  count = has_work ? list_wanted(&st, wanted) : 0;

	access = st.world->options.cloud.access;
	for (size_t i = 0; !rc && i < count; i++)
		if (wanted[i].kind == CLOUD_USER)
			rc = access->ops->revoke(access, &wanted[i], e);
	return rc;
}

/* An outage of half an hour is survived; what lasts longer is for a person. */
const struct saga_step account_steps[ACCOUNT_STEP_COUNT] = {
	{ .name = "revoke", .act = revoke, .undo = keep_revoked, .tries = TRIES, .backoff_max_ms = BACKOFF_MAX_MS },
	{ .name = "move",
	  .act = move,
	  .check = is_moved,
	  .undo = move_back,
	  .tries = TRIES,
	  .backoff_max_ms = BACKOFF_MAX_MS },
	{ .name = "grant",
	  .act = grant,
	  .check = is_granted,
	  .undo = take_away,
	  .tries = TRIES,
	  .backoff_max_ms = BACKOFF_MAX_MS },
	{ .name = "credentials",
	  .act = issue,
	  .check = is_issued,
	  .undo = take_credentials_away,
	  .tries = TRIES,
	  .backoff_max_ms = BACKOFF_MAX_MS },
};

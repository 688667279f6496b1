/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_ous.c - which OU is called what, and which one an account is in.
 *
 * OUs hardly ever change, and listing them is slow and throttled, so the ids of the pool's OUs are kept in memory, if
 * the list is complete. The lock is not held while the organisation is asked: two callers may ask, and store the same.
 */
#include "service/account/account_ous.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/mem.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

enum { OU_COUNT = ACCOUNT_STATUS_COUNT + 1, PEACE_MS = 3600000 };

struct account_ous {
	struct organisation *organisation;
	struct store        *store;
	char                 parent[CLOUD_ID_MAX + 1]; /* empty: wherever they are */
	pthread_mutex_t      lock;                     /* of all below */
	bool                 is_known;
	char                 ids[OU_COUNT][CLOUD_ID_MAX + 1];
};

struct account_ous *account_ous_new(struct organisation *o, struct str below, struct store *store)
{
	struct account_ous *ous = mem_new(struct account_ous);

	assert(below.n <= CLOUD_ID_MAX);
	ous->organisation = o;
	ous->store = store;
	if (below.n)
		memcpy(ous->parent, below.p, below.n);
	pthread_mutex_init(&ous->lock, NULL);
	return ous;
}

void account_ous_free(struct account_ous *o)
{
	if (!o)
		return;
	pthread_mutex_destroy(&o->lock);
	free(o);
}

static struct str ou_name(int i)
{
	return i < ACCOUNT_STATUS_COUNT ? str_from(account_ou_names[i]) : STR(OU_ENTRY);
}

/* The ids in the order of the table; RC_NOT_FOUND when one is missing. */
static enum rc ask(struct account_ous *ous, struct arena *a, char ret[OU_COUNT][CLOUD_ID_MAX + 1], struct err *e)
{
	struct organisation *o = ous->organisation;
	struct cloud_ou     *list;
	size_t               count;
	enum rc              rc = o->ops->list_ous(o, a, &list, &count, e);

	if (rc)
		return err_wrap(e, rc, "the organisation's OUs");
	for (int i = 0; i < OU_COUNT; i++) {
		struct str name = ou_name(i);
		size_t     j = 0;

		while (j < count && !(str_eq(list[j].name, name) && list[j].id.n <= CLOUD_ID_MAX &&
		                      (!ous->parent[0] || str_eq(list[j].parent_id, str_from(ous->parent)))))
			j++;
		if (j == count)
			return err_set(
			        e, RC_NOT_FOUND,
			        "the organisation has no OU '%.*s'; the pool needs one for each status, and " OU_ENTRY,
			        STR_ARG(name));
		memcpy(ret[i], list[j].id.p, list[j].id.n);
		ret[i][list[j].id.n] = '\0';
	}
	return RC_OK;
}

static bool recall(struct account_ous *o, int number, struct arena *a, struct str *ret)
{
	bool is_known;

	LOCKED(&o->lock);
	is_known = o->is_known;
	if (is_known)
		*ret = str_dup(a, str_from(o->ids[number]));
	return is_known;
}

enum rc account_ous_find(struct account_ous *o, struct str name, struct arena *a, struct str *ret_id, struct err *e)
{
	char    ids[OU_COUNT][CLOUD_ID_MAX + 1];
	int     number = 0;
	enum rc rc;

	while (number < OU_COUNT && !str_eq(ou_name(number), name))
		number++;
	if (number == OU_COUNT)
		return err_set(e, RC_NOT_FOUND, "'%.*s' is not an OU of the pool", STR_ARG(name));
	if (recall(o, number, a, ret_id))
		return RC_OK;
	if ((rc = ask(o, a, ids, e)))
		return rc;
	*ret_id = str_dup(a, str_from(ids[number]));
	LOCKED(&o->lock);
	memcpy(o->ids, ids, sizeof(ids));
	o->is_known = true;
	return RC_OK;
}

struct str account_ous_name(struct account_ous *o, struct str id, struct arena *a)
{
	struct str name = id;

	LOCKED(&o->lock);
	for (int i = 0; o->is_known && i < OU_COUNT; i++)
		if (str_eq(str_from(o->ids[i]), id))
			name = ou_name(i);
	return str_dup(a, name);
}

void account_ous_forget(struct account_ous *o)
{
	LOCKED(&o->lock);
	o->is_known = false;
}

/* --- where an account is, and moving it --- */

enum rc account_ous_locate(struct account_ous *o, struct str account, struct arena *a, struct str *ret_id,
                           struct err *e)
{
	enum rc rc = o->organisation->ops->find_parent(o->organisation, account, a, ret_id, e);

	return rc ? err_wrap(e, rc, "where account %.*s is", STR_ARG(account)) : RC_OK;
}

enum rc account_ous_route(struct account_ous *o, struct str here, struct ou_pair names, struct arena *a,
                          struct ou_pair *ret_ids, struct err *e)
{
	for (int i = 0; i < 2; i++) {
		enum rc rc = account_ous_find(o, names.from, a, &ret_ids->from, e);

		if (rc || (rc = account_ous_find(o, names.to, a, &ret_ids->to, e)) || str_eq(here, ret_ids->from) ||
		    str_eq(here, ret_ids->to))
			return rc;
		if (i == 0)
			account_ous_forget(o);
	}
	return RC_OK;
}

enum rc account_look_again(enum rc rc, struct err *e)
{
	if (rc != RC_CONFLICT && rc != RC_NOT_FOUND)
		return rc;
	if (e)
		e->rc = RC_UNAVAILABLE;
	return RC_UNAVAILABLE;
}

static enum rc note_throttled(struct session *s, void *arg UNUSED, struct err *e)
{
	struct fact fact;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_MOVES_THROTTLED), &fact, e);

	if (rc)
		return rc;
	if (session_now(s).ms - fact.at_ms > PEACE_MS)
		fact.value = 0;
	fact.at_ms = session_now(s).ms;
	if (fact.value++ == 0)
		fact.since_ms = fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

enum rc account_ous_move(struct account_ous *o, struct str account, struct ou_pair ids, struct err *e)
{
	enum rc rc = o->organisation->ops->move(o->organisation, account, ids.from, ids.to, e);

	if (rc == RC_NOT_FOUND)
		account_ous_forget(o);
	if (rc == RC_LIMITED)
		rc_ignore(store_run(o->store, note_throttled, NULL, NULL, NULL)); /* the move's failure counts */
	return account_look_again(rc, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_ous.c - which OU is called what.
 *
 * OUs hardly ever change, and listing them is slow and throttled, so the ids of the pool's OUs are kept in memory. Only a complete list
 * is kept. Nobody waits for the lock while the organisation is asked: two who find nothing both ask, and store the same.
 */
#include "service/account_ous.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "domain/account.h"
#include "domain/cloud.h"

enum { OU_COUNT = ACCOUNT_STATUS_COUNT + 1 };

struct account_ous {
	struct organisation *organisation;
	char                 parent[CLOUD_ID_MAX + 1]; /* empty: wherever they are */
	pthread_mutex_t      lock;                     /* of all below */
	bool                 is_known;
	char                 ids[OU_COUNT][CLOUD_ID_MAX + 1];
};

struct account_ous *account_ous_new(struct organisation *o)
{
	struct account_ous *ous = mem_new(struct account_ous);

	ous->organisation = o;
	pthread_mutex_init(&ous->lock, NULL);
	return ous;
}

void account_ous_below(struct account_ous *o, struct str parent_id)
{
	assert(parent_id.n <= CLOUD_ID_MAX);
	if (parent_id.n)
		memcpy(o->parent, parent_id.p, parent_id.n);
	o->parent[parent_id.n] = '\0';
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

static int find_number(struct str name)
{
	int i = 0;

	while (i < OU_COUNT && !str_eq(ou_name(i), name))
		i++;
	return i;
}

static bool is_wanted(const struct account_ous *o, const struct cloud_ou *ou, struct str name)
{
	return str_eq(ou->name, name) && ou->id.n <= CLOUD_ID_MAX &&
	       (!o->parent[0] || str_eq(ou->parent_id, str_from(o->parent)));
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

		while (j < count && !is_wanted(ous, &list[j], name))
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

	pthread_mutex_lock(&o->lock);
	is_known = o->is_known;
	if (is_known)
		*ret = str_dup(a, str_from(o->ids[number]));
	pthread_mutex_unlock(&o->lock);
	return is_known;
}

enum rc account_ous_find(struct account_ous *o, struct str name, struct arena *a, struct str *ret_id, struct err *e)
{
	char    ids[OU_COUNT][CLOUD_ID_MAX + 1];
	int     number = find_number(name);
	enum rc rc;

	if (number == OU_COUNT)
		return err_set(e, RC_NOT_FOUND, "'%.*s' is not an OU of the pool", STR_ARG(name));
	if (recall(o, number, a, ret_id))
		return RC_OK;
	if ((rc = ask(o, a, ids, e)))
		return rc;
	*ret_id = str_dup(a, str_from(ids[number]));
	pthread_mutex_lock(&o->lock);
	memcpy(o->ids, ids, sizeof(ids));
	o->is_known = true;
	pthread_mutex_unlock(&o->lock);
	return RC_OK;
}

struct str account_ous_name(struct account_ous *o, struct str id, struct arena *a)
{
	struct str name = id;

	pthread_mutex_lock(&o->lock);
	for (int i = 0; o->is_known && i < OU_COUNT; i++)
		if (str_eq(str_from(o->ids[i]), id))
			name = ou_name(i);
	pthread_mutex_unlock(&o->lock);
	return str_dup(a, name);
}

void account_ous_forget(struct account_ous *o)
{
	pthread_mutex_lock(&o->lock);
	o->is_known = false;
	pthread_mutex_unlock(&o->lock);
}

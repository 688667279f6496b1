/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_listing.c - the pool's OUs, listed to the end.
 *
 * The OUs of the pool are those with the name of a status, and Entry. An account that is moved during the listing may
 * be seen twice, or not at all: those who compare leave alone what was changed since the listing began.
 */
#include "service/reconcile/reconcile.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "service/account/account_ous.h"

enum { MEMBERS_MAX = 1000000 };

static bool is_of_pool(const struct cloud_ou *ou, struct str below)
{
	if (below.n && !str_eq(ou->parent_id, below))
		return false;
	for (int i = 0; i < ACCOUNT_STATUS_COUNT; i++)
		if (str_eq(ou->name, str_from(account_ou_names[i])))
			return true;
	return str_eq(ou->name, STR(OU_ENTRY));
}

static void add(struct pool_listing *l, const struct cloud_account *account, struct str ou)
{
	l->members = arena_grow(&l->arena, l->members, l->count, &l->room, sizeof(*l->members));
	l->members[l->count++] = (struct pool_member){
		.id = account->id, .name = account->name, .email = account->email, .ou = ou
	};
}

static enum rc list_ou(const struct pass *p, struct organisation *o, const struct cloud_ou *ou, struct pool_listing *l,
                       struct err *e)
{
	struct cloud_account_page page = { 0 };

	do {
		enum rc rc = o->ops->list_accounts(o, ou->id, page.next, &l->arena, &page, e);

		if (rc)
			return err_wrap(e, rc, "the accounts in %.*s", STR_ARG(ou->name));
		if ((rc = pass_go_on(p, e)))
			return rc;
		if (l->count + page.count > MEMBERS_MAX)
			return err_set(e, RC_TOO_LARGE, "the pool has more than %d accounts", MEMBERS_MAX);
		for (size_t i = 0; i < page.count; i++)
			add(l, &page.items[i], ou->name);
	} while (page.next.n);
	return RC_OK;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp(((const struct pool_member *)a)->id, ((const struct pool_member *)b)->id);
}

enum rc pool_list(const struct pass *p, struct organisation *o, struct str below, struct pool_listing *ret,
                  struct err *e)
{
	struct cloud_ou *ous;
	size_t           count;
	enum rc          rc = o->ops->list_ous(o, &ret->arena, &ous, &count, e);

	if (rc)
		return err_wrap(e, rc, "the organisation's OUs");
	for (size_t i = 0; i < count; i++)
		if (is_of_pool(&ous[i], below) && (rc = list_ou(p, o, &ous[i], ret, e)))
			return rc;
	if (ret->count)
		qsort(ret->members, ret->count, sizeof(*ret->members), by_id);
	return RC_OK;
}

struct pool_member *pool_find(const struct pool_listing *l, struct str id)
{
	struct pool_member key = { .id = id };

	return l->count ? bsearch(&key, l->members, l->count, sizeof(key), by_id) : NULL;
}

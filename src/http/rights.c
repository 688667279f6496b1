/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.c - the role matrix of /api, and the door that every handler there goes through.
 *
 * Always true:
 *   1. A route that has no row is closed to everybody.                                  [rights_of()]
 *   2. In maintenance nobody but an admin comes in, except to read the configuration.   [rights_check()]
 *
 * What depends on whose lease it is cannot stand in the table: the handlers of leases ask rights_own_only().
 *
 * Not here: who the caller is (session.h), what a transaction allows (service/).
 */
#include "http/rights.h"

#include "domain/policy.h"
#include "http/api.h"
#include "http/session.h"
#include "service/policy_store.h"

enum {
	U = ROLE_USER,
	M = ROLE_MANAGER,
	A = ROLE_ADMIN,
};

/* clang-format off */
static const struct {
	const char *route;
	unsigned    roles;
	bool        is_open_in_maintenance;
} rights[] = {
	{ "lease_list",           U | M | A, false }, /* only-User: his own */
	{ "lease_create",         U | M | A, false }, /* only-User: for himself */
	{ "lease_show",           U | M | A, false }, /* only-User: his own */
	{ "lease_explain",        U | M | A, false }, /* only-User: his own, and less of it */
	{ "lease_change",             M | A, false },
	{ "lease_review",             M | A, false },
	{ "lease_review_patch",       M | A, false },
	{ "lease_freeze",             M | A, false },
	{ "lease_unfreeze",           M | A, false },
	{ "lease_terminate",      U | M | A, false }, /* only-User: his own */
	{ "lease_withdraw",       U | M | A, false }, /* everybody: his own */
	{ "lease_statement",      U | M | A, false }, /* only-User: his own */
	{ "template_list",        U | M | A, false }, /* only-User: without private ones */
	{ "template_show",        U | M | A, false }, /* only-User: no private one */
	{ "template_create",          M | A, false },
	{ "template_replace",         M | A, false },
	{ "template_remove",          M | A, false },
	{ "configuration_show",   U | M | A, true  },
	{ "account_list",                 A, false },
	{ "account_show",                 A, false },
	{ "account_unregistered",         A, false },
	{ "account_register",             A, false },
	{ "account_quarantine",           A, false },
	{ "account_eject",                A, false },
	{ "account_clean",                A, false },
	{ "blueprint_list",           M | A, false },
	{ "blueprint_show",           M | A, false },
	{ "blueprint_stack_sets",     M | A, false },
	{ "blueprint_create",             A, false },
	{ "blueprint_change",             A, false },
	{ "blueprint_remove",             A, false },
	{ "session_costs",                A, false },
};
/* clang-format on */

static size_t find_row(const char *route)
{
	size_t i = 0;

	while (i < ARRAY_LEN(rights) && strcmp(rights[i].route, route) != 0)
		i++;
	return i;
}

unsigned rights_of(const char *route)
{
	size_t row = find_row(route);

	return row < ARRAY_LEN(rights) ? rights[row].roles : 0;
}

const struct policy *rights_policy(struct request *r)
{
	return policy_current(api_options(r->api)->policy);
}

enum rc rights_check(const struct api_route *route, const struct caller *c, const struct policy *p, struct err *e)
{
	size_t   row = find_row(route->name);
	unsigned roles = rights_of(route->name);

	if (!(c->roles & roles))
		return err_set(e, RC_DENIED, "%s %s is for %sadmins; ask one of them, or for the role", route->method,
		               route->path, roles & ROLE_MANAGER ? "managers and " : "");
	if (p->is_maintenance && !(c->roles & ROLE_ADMIN) && !rights[row].is_open_in_maintenance)
		return err_set(e, RC_DENIED, "maintenance is under way: until it ends only admins can do this");
	return RC_OK;
}

/* A node that guards the accounts of others has none of its own to lend. */
static enum rc find_leases(struct request *r, struct err *e)
{
	if (api_options(r->api)->policy)
		return RC_OK;
	return err_set(e, RC_NOT_FOUND, "there are no leases here; see LEASEHOLD_QUARANTINE");
}

bool rights_enter(struct request *r, struct caller *ret)
{
	struct err e = { 0 };

	if (session_caller(r, ret, &e) || find_leases(r, &e) || rights_check(r->route, ret, rights_policy(r), &e)) {
		request_fail(r, &e);
		return false;
	}
	ret->request_id = str_from(r->id);
	return true;
}

bool rights_is_own(const struct caller *c, struct str email)
{
	return str_eq_nocase(c->email, email);
}

bool rights_own_only(struct request *r, const struct caller *c, struct str email)
{
	struct err e = { 0 };

	if (!caller_is_only_user(c) || rights_is_own(c, email))
		return true;
	rc_ignore(err_set(
	        &e, RC_DENIED,
	        "this belongs to somebody else; with the role User you can reach only your own")); /* noted in e */
	request_fail(r, &e);
	return false;
}

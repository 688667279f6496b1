/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rights.c - the door of /api: which roles may pass is in routes.def.
 *
 * In maintenance nobody but an admin comes in, except to read the configuration. [rights_check()]
 *
 * What depends on whose lease it is cannot stand in the table: the handlers of leases ask rights_own_only().
 *
 * Not here: who the caller is (session.h), what a transaction allows (service/).
 */
#include "http/api/rights.h"

#include <assert.h>

#include "domain/lease.h"
#include "domain/policy.h"
#include "http/api/api.h"
#include "http/api/auth.h"
#include "http/api/view.h"
#include "service/policy/policy_store.h"

struct explain_route rights_route(const char *name)
{
	size_t i = 0;

	while (i + 1 < api_route_count && strcmp(api_routes[i].name, name) != 0)
		i++;
	assert(strcmp(api_routes[i].name, name) == 0);
	return (struct explain_route){ api_routes[i].method, api_routes[i].path, api_routes[i].roles };
}

const struct policy *rights_policy(struct request *r)
{
	return policy_current(r->api->options.policy);
}

enum rc rights_check(const struct api_route *route, const struct caller *c, const struct policy *p, struct err *e)
{
	if (!(c->roles & route->roles))
		return err_set(e, RC_DENIED, "this needs the role %sAdmin, which an administrator can give to you: %s",
		               route->roles & ROLE_MANAGER ? "Manager or " : "", route->summary);
	if (p->is_maintenance && !(c->roles & ROLE_ADMIN) && !(route->roles & RIGHTS_IN_MAINTENANCE))
		return err_set(e, RC_DENIED, "maintenance is in progress: until it ends, only admins can do this");
	return RC_OK;
}

/* A node that guards the accounts of others has none of its own to lend, and so no policy. */
enum rc rights_enter(struct request *r, struct err *e)
{
	enum rc rc = auth_caller(r, &r->by, e);

	if (rc)
		return rc;
	if (!r->api->options.policy)
		return err_set(e, RC_NOT_FOUND, "there are no leases here; see LEASEHOLD_QUARANTINE");
	return rights_check(r->route, &r->by, rights_policy(r), e);
}

bool rights_own_only(struct request *r, struct str email)
{
	if (!caller_is_only_user(&r->by) || caller_is(&r->by, email))
		return true;
	request_refuse(r, RC_DENIED, "this belongs to someone else; with the role User you can access only your own");
	return false;
}

bool rights_own_lease(struct request *r, struct str *ret_owner, struct str *ret_uuid)
{
	return request_is_good(r, lease_id_parse(r->params[0], &r->call->arena, ret_owner, ret_uuid, &r->e)) &&
	       rights_own_only(r, *ret_owner);
}

/* rights.h - who may do what under /api. Loop thread only. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "service/explain/explain.h"

struct api_route;
struct request;

/* Of the roles of a route: it stays open in maintenance. */
enum { RIGHTS_IN_MAINTENANCE = 8 };

/* How explanations find a route: by its name, which must be one. */
explain_route_fn rights_route;

/* May he call this route under this policy? RC_DENIED. */
MUST_CHECK enum rc rights_check(const struct api_route *route, const struct caller *c, const struct policy *p,
                                struct err *e);

/* Before the handler of a route with roles: who is it (r->by), has he one of them, are we in maintenance? */
MUST_CHECK enum rc rights_enter(struct request *r, struct err *e);

/* Who is only a user touches nothing but his own. False: it has been answered. */
bool rights_own_only(struct request *r, struct str email);

/* The owner and the uuid of the lease that the path names, when it is one that he may reach. False: it has been
 * answered. */
bool rights_own_lease(struct request *r, struct str *ret_owner, struct str *ret_uuid);

/* The policy in force. */
const struct policy *rights_policy(struct request *r);

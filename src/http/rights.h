/* rights.h - who may do what under /api: one table. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"

struct api_route;
struct policy;
struct request;

/* The roles that may call the route with this name; 0: nobody, it has no row. */
unsigned rights_of(const char *route);

/* May he call this route under this policy? RC_DENIED. */
MUST_CHECK enum rc rights_check(const struct api_route *route, const struct caller *c, const struct policy *p,
                                struct err *e);

/* First thing in a handler: who is it, has he the role for this route, are we in maintenance? False: it has been answered. */
bool rights_enter(struct request *r, struct caller *ret);

/* Is it his own? Emails compare without case. */
bool rights_is_own(const struct caller *c, struct str email);

/* Who is only a user touches nothing but his own. False: it has been answered. */
bool rights_own_only(struct request *r, const struct caller *c, struct str email);

/* The policy in force. */
const struct policy *rights_policy(struct request *r);

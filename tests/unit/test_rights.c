/* SPDX-License-Identifier: Apache-2.0 */
/* test_rights.c - who may do what under /api: the table is complete, and maintenance closes all but one route to
 * everybody but admins. */
#include "test.h"

#include <string.h>

#include "domain/policy.h"
#include "http/api/api.h"
#include "http/spec/apispec.h"
#include "http/api/rights.h"

enum { NOBODY = 0, EVERYBODY = ROLE_USER | ROLE_MANAGER | ROLE_ADMIN };

/* Sign-in needs no role, and its routes none of this. */
static bool is_ours(const struct api_route *route)
{
	return route->scope == SCOPE_SESSION && strncmp(route->path, "/api/auth/", 10) != 0;
}

static bool may(const struct api_route *route, unsigned roles, bool is_maintenance)
{
	struct policy policy = { .is_maintenance = is_maintenance };
	struct caller caller = { .roles = roles };
	struct err    e = { 0 };
	enum rc       rc = rights_check(route, &caller, &policy, &e);

	CHECK(rc == RC_OK || (rc == RC_DENIED && e.msg[0]));
	return rc == RC_OK;
}

TEST(every_route_has_roles_and_an_admin_may_all)
{
	size_t count = 0;

	for (size_t i = 0; i < api_route_count; i++) {
		if (!is_ours(&api_routes[i]))
			continue;
		count++;
		CASE(api_routes[i].name);
		CHECK(api_routes[i].roles & ROLE_ADMIN);
		CHECK(may(&api_routes[i], ROLE_ADMIN, false));
		CHECK(!may(&api_routes[i], NOBODY, false));
	}
	CHECK(count > 20);
}

TEST(what_has_no_roles_is_for_nobody)
{
	const struct api_route route = { .name = "unheard_of", .method = "GET", .path = "/api/unheard" };

	CHECK(!may(&route, EVERYBODY, false));
}

TEST(in_maintenance_only_admins_come_in_and_the_configuration_stays_readable)
{
	for (size_t i = 0; i < api_route_count; i++) {
		const struct api_route *route = &api_routes[i];
		bool                    is_open = strcmp(route->name, "configuration_show") == 0;

		if (!is_ours(route))
			continue;
		CASE(route->name);
		CHECK(may(route, ROLE_ADMIN, true));
		CHECK(may(route, ROLE_USER | ROLE_ADMIN, true));
		CHECK(may(route, ROLE_USER, true) == is_open);
		CHECK(may(route, ROLE_MANAGER, true) == is_open);
		CHECK(may(route, ROLE_USER | ROLE_MANAGER, true) == is_open);
	}
}

TEST(emails_compare_without_case)
{
	const struct caller caller = { .email = STR_INIT("Ann@Example.com") };

	CHECK(caller_is(&caller, STR("ann@example.COM")));
	CHECK(!caller_is(&caller, STR("anna@example.com")));
	CHECK(!caller_is(&caller, STR("")));
}

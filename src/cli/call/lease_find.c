/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_find.c - from what somebody typed to the id that the API wants.
 *
 * That id is long, because it contains the owner, so people use the uuid or a part of it: its beginning, or its end,
 * which lists show because many uuids begin alike (with the time). The server does not look leases up by those, so the
 * whole list is searched: a part that fits two leases must not end the wrong one. People who see only their own leases
 * ask for those only.
 */

#include <stdio.h>

#include "base/json.h"
#include "cli/call/call.h"
#include "cli/term/show.h"

enum { PAGE = 1000 };

int lease_caller(struct remote *remote, struct lease_caller *ret)
{
	CLEANUP(answer_free) struct answer answer = { .json = NULL };
	const json_t                      *user, *roles;
	int                                code = remote_get(remote, REMOTE_PERSON, STR("/auth/login/status"), &answer);

	*ret = (struct lease_caller){ .is_only_user = false };
	if (code != CLI_EXIT_OK)
		return code;
	user = json_object_get(json_object_get(answer.json, "session"), "user");
	roles = json_object_get(user, "roles");
	ret->email = show_member(&remote->arena, user, "email", (struct wall){ 0 });
	for (size_t i = 0; i < json_array_size(roles); i++) {
		struct str role = str_from(json_string_value(json_array_get(roles, i)));

		ret->is_only_user = json_array_size(roles) == 1 && str_eq(role, STR("User"));
		ret->is_admin = ret->is_admin || str_eq(role, STR("Admin"));
		ret->sees_accounts = ret->sees_accounts || str_is_word_of(role, "Manager Admin");
	}
	return CLI_EXIT_OK;
}

bool lease_is_mere_person(struct remote *remote)
{
	struct lease_caller caller;
	struct str          token;
	struct err          e = { 0 };

	if (remote_token(remote, REMOTE_ADMIN, &token, &e))
		return remote_token(remote, REMOTE_PERSON, &token, &e) == RC_OK;
	return str_starts_with(token, STR("eyJ")) && lease_caller(remote, &caller) == CLI_EXIT_OK && !caller.is_admin;
}

struct call_pages lease_pages(struct remote *remote, struct str user)
{
	static const struct call list = { .scope = REMOTE_PERSON,
		                          .items = "result",
		                          .waiting_for = "looking up leases" };
	struct call_pages        p = { .list = &list, .path = STR("/leases"), .limit = PAGE };
	struct lease_caller      caller;

	p.code = lease_caller(remote, &caller);
	if (!user.n && caller.is_only_user)
		user = caller.email;
	if (user.n)
		p.path = compose_path(remote, "/leases?userEmail={}", user);
	return p;
}

/* The id of the last lease that fits, and how many do; two are enough. */
static int search(struct remote *remote, struct str part, struct str *ret_id, size_t *ret_count)
{
	CLEANUP(call_pages_end) struct call_pages pages = lease_pages(remote, STR(""));
	struct str                                uuid, id;
	json_t                                   *leases;

	while (call_next(remote, &pages, &leases))
		for (size_t i = 0; i < json_array_size(leases); i++) {
			const json_t *lease = json_array_get(leases, i);

			if (!json_get_text(lease, "uuid", &uuid) || !json_get_text(lease, "leaseId", &id) || !id.n ||
			    !id_fits(uuid, part))
				continue;
			*ret_id = str_dup(&remote->arena, id);
			if (++*ret_count == 2 || part.n == UUID_LENGTH)
				return CLI_EXIT_OK;
		}
	return pages.code;
}

int lease_find(struct remote *remote, struct str typed, struct str *ret_id)
{
	size_t count = 0;
	int    code;

	*ret_id = typed;
	if (str_starts_with(typed, STR("eyJ"))) /* base64 of "{\"": the API's own */
		return CLI_EXIT_OK;
	if (!id_may_be_uuid(typed))
		return remote_misused(remote,
		                      "ID must be a lease's uuid, 4 or more characters of its beginning or end, or its "
		                      "long id; see: leasehold lease list");
	code = search(remote, typed, ret_id, &count);
	if (code != CLI_EXIT_OK || count == 1)
		return code;
	if (count > 1)
		return remote_misused(remote, "several leases start or end with this: use the last 8 characters, as "
		                              "'leasehold lease list' shows them");
	fprintf(remote->io->err, "leasehold: %s: no lease you can see starts or ends with %.*s\n",
	        remote->args->command->name, STR_ARG(typed));
	fprintf(remote->io->err, "List them all: leasehold lease list --all\n");
	return CLI_EXIT_NOT_FOUND;
}

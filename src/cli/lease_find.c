/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_find.c - from what somebody typed to the id that the API wants.
 *
 * That id is long, because it has the owner in it, so people use the uuid or its beginning. The server does not look leases up by those:
 * the list is gone through, all of it, because a beginning that fits two leases must not end the wrong one. Who sees only his own leases
 * is asked for those.
 */
#include "cli/lease.h"

#include <ctype.h>
#include <stdio.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { UUID_LENGTH = 36, PREFIX_MIN = 4, PAGE = 1000, PAGES_MAX = 1000 };

int lease_asker(struct remote *remote, struct lease_asker *ret)
{
	struct remote_request req = { .method = "GET", .path = STR("/auth/login/status"), .scope = REMOTE_PERSON };
	CLEANUP(json_freep) json_t *document = NULL;
	const json_t               *user, *roles;
	struct fetch_reply          reply;
	int                         code = remote_call(remote, &req, &reply, &document);

	*ret = (struct lease_asker){ .is_only_user = false };
	if (code != CLI_EXIT_OK)
		return code;
	user = json_object_get(json_object_get(document, "session"), "user");
	roles = json_object_get(user, "roles");
	ret->email = show_member(&remote->arena, user, "email", (struct wall){ 0 });
	for (size_t i = 0; i < json_array_size(roles); i++) {
		struct str role = str_from(json_string_value(json_array_get(roles, i)));

		ret->is_only_user = json_array_size(roles) == 1 && str_eq(role, STR("User"));
		ret->is_admin = ret->is_admin || str_eq(role, STR("Admin"));
	}
	return CLI_EXIT_OK;
}

struct search {
	struct str beginning;
	struct str id; /* of the last that fits */
	size_t     count;
};

/* False: that is enough. */
static bool look_at(struct remote *remote, const json_t *lease, struct search *s)
{
	struct str uuid, id;

	if (!json_get_text(lease, "uuid", &uuid) || !json_get_text(lease, "leaseId", &id) || !id.n ||
	    uuid.n < s->beginning.n || !str_eq_nocase(str_of(uuid.p, s->beginning.n), s->beginning))
		return true;
	s->id = str_dup(&remote->arena, id);
	s->count++;
	return s->beginning.n < UUID_LENGTH && s->count < 2;
}

/* One page; *cursor is where the next begins, empty at the end or when that is enough. */
static int search_page(struct remote *remote, const char *path, struct search *s, struct str *cursor)
{
	struct remote_request       req = { .method = "GET",
		                            .path = ask_api_query(remote, path, NULL, 0, PAGE, *cursor),
		                            .scope = REMOTE_PERSON,
		                            .waiting_for = "looking for the lease" };
	CLEANUP(json_freep) json_t *document = NULL;
	const json_t               *data, *leases;
	struct fetch_reply          reply;
	struct str                  next;
	int                         code = remote_call(remote, &req, &reply, &document);

	if (code != CLI_EXIT_OK)
		return code;
	data = json_object_get(document, "data");
	leases = json_object_get(data, "result");
	if (!json_get_text(data, "nextPageIdentifier", &next))
		next = STR("");
	for (size_t i = 0; i < json_array_size(leases); i++)
		if (!look_at(remote, json_array_get(leases, i), s)) {
			next = STR("");
			break;
		}
	*cursor = str_dup(&remote->arena, next);
	return CLI_EXIT_OK;
}

static int search_all(struct remote *remote, struct search *s)
{
	const char        *path = "/leases";
	struct str         cursor = STR("");
	struct lease_asker asker;
	int                code = lease_asker(remote, &asker), pages = 0;

	if (code != CLI_EXIT_OK)
		return code;
	if (asker.is_only_user)
		path = ask_path_of(remote, "/leases?userEmail=", asker.email, "").p;
	do {
		code = search_page(remote, path, s, &cursor);
	} while (code == CLI_EXIT_OK && cursor.n && ++pages < PAGES_MAX);
	return code;
}

static bool is_beginning(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (!isxdigit((unsigned char)text.p[i]) && text.p[i] != '-')
			return false;
	return text.n >= PREFIX_MIN && text.n <= UUID_LENGTH;
}

int lease_find(struct remote *remote, struct str *ret_id)
{
	struct str    typed = str_from(remote->args->operands[0]);
	struct search s = { .beginning = typed };
	int           code;

	*ret_id = typed;
	if (str_starts_with(typed, STR("eyJ"))) /* base64 of "{\"": the API's own */
		return CLI_EXIT_OK;
	if (!is_beginning(typed))
		return remote_misused(remote,
		                      "ID must be a lease's uuid, 4 or more characters of its beginning, or its "
		                      "long id; see: leasehold lease list");
	code = search_all(remote, &s);
	if (code != CLI_EXIT_OK)
		return code;
	*ret_id = s.id;
	if (s.count == 1)
		return CLI_EXIT_OK;
	if (s.count > 1)
		return remote_misused(remote, "more than one lease begins so: give more of its uuid; 'leasehold lease "
		                              "list --json' has them whole");
	fprintf(remote->io->err, "leasehold: %s: no lease that you may see begins with %.*s\n",
	        remote->args->command->name, STR_ARG(typed));
	fprintf(remote->io->err, "See what there is: leasehold lease list --all\n");
	return CLI_EXIT_NOT_FOUND;
}

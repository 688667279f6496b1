/* SPDX-License-Identifier: Apache-2.0 */
/* person_api.c - the operators' routes of people: who is in the directory, and how somebody leaves it. */
#include "base/json.h"
#include "domain/lease.h"
#include "domain/ports/identity.h"
#include "http/api/auth.h"
#include "http/api/ops.h"
#include "service/people/people.h"

static void put_entry(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct directory_entry *p = thing;

	JSON_PUT(o, member_str("email", p->caller.email), member_text("display_name", p->caller.display_name),
	         member_text("user_name", p->caller.user_name), member_list("roles"));
	for (unsigned i = 0; jwt_role_name(i); i++)
		if (p->caller.roles & 1u << i)
			json_add_str(o, str_from(jwt_role_name(i)));
	JSON_PUT(o, member_list_end(), member_str("source", p->source), member_sec("first_signed_in_at", p->first_ms),
	         member_sec("signed_in_at", p->signed_in_ms));
}

static const struct listing people_listing = { .member = "people", .name = "people", .put = put_entry };

/* From memory: one more than the page has is asked for, to know whether there are more. */
void handle_person_list(struct request *r)
{
	struct identity        *people = people_identity(r->api->options.auth->o.people);
	struct arena           *a = &r->call->arena;
	struct directory_entry *found;
	struct str              after;
	size_t                  limit, count;

	if (!request_is_good(r, ops_read_page(r, people_listing.name, &limit, &after, &r->e)))
		return;
	found = arena_alloc(a, (limit + 1) * sizeof(*found));
	count = people->ops->list(people, ROLE_USER | ROLE_MANAGER | ROLE_ADMIN, after, a, found, limit + 1);
	if (count <= limit)
		view_reply_list(r, &people_listing, found, sizeof(*found), count, STR(""));
	else
		view_reply_list(r, &people_listing, found, sizeof(*found), limit,
		                email_key(found[limit - 1].caller.email, a));
}

static void put_removed(struct json_out *o, struct request *r, const void *thing)
{
	const struct person   *p = &((const struct person_removal *)thing)->person;
	struct directory_entry entry = { .caller = { p->shown, p->display_name, p->user_name, 0, STR("") },
		                         .source = p->source,
		                         .first_ms = p->first_ms,
		                         .signed_in_ms = p->signed_in_ms };

	people_note(r->api->options.auth->o.people, p);
	put_entry(o, r, &entry);
}

void handle_person_remove(struct request *r)
{
	struct person_removal *removal = arena_alloc(&r->call->arena, sizeof(*removal));

	removal->people = r->api->options.auth->o.people;
	removal->actor = (struct actor){ r->actor, str_from(r->id) };
	if (request_is_good(r, ops_read_id(r, "person", &removal->email, &r->e)))
		view_submit(r, person_remove, removal, WRITES, 200, put_removed);
}

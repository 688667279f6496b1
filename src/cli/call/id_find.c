/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id_find.c - from the part of an id that somebody typed to the id.
 *
 * The server knows whole ids only, so its list is searched: a part that fits two must not mean the wrong one. What fits
 * nothing stays as it is, for the server to refuse. Leases are found in lease_find.c.
 */

#include <string.h>

#include "base/json.h"
#include "cli/call/call.h"

enum { PAGE = 100 };

/* clang-format off */
/* What stands for the id in the paths of calls.c, the member of the list's items that has it, and the list. */
static const struct kind {
	const char *mark, *id;
	struct call list;
} kinds[] = {
	{ "{sandbox}", "sandbox_id", { .scope = REMOTE_ADMIN, .path = "/admin/sandboxes?q={}", .items = "sandboxes",
		.has_pages = true, .waiting_for = "looking for the sandbox" } },
	{ "{webhook}", "id", { .scope = REMOTE_ADMIN, .path = "/ops/webhooks", .items = "webhooks" } },
};
/* clang-format on */

bool id_may_be_uuid(struct str typed)
{
	return typed.n >= ID_PART_MIN && typed.n <= UUID_LENGTH && str_is_of(typed, "0-9a-fA-F-");
}

bool id_may_be_part(struct str typed)
{
	return typed.n < UUID_LENGTH && id_may_be_uuid(typed);
}

bool id_fits(struct str id, struct str part)
{
	return part.n >= ID_PART_MIN && part.n <= id.n &&
	       (str_eq_nocase(str_of(id.p, part.n), part) || str_eq_nocase(str_of(id.p + id.n - part.n, part.n), part));
}

/* How well an item fits what was typed: 3 means its id, 0 not at all. Only sandboxes have the other members. */
static int fits(struct remote *remote, const json_t *one, struct str id, struct str typed)
{
	if (str_eq(id, typed))
		return 3;
	if (str_eq(cell_text(remote, one, "name"), typed) || str_eq(cell_text(remote, one, "external_id"), typed) ||
	    (str_eq(cell_text(remote, one, "allocated_to_track"), typed) &&
	     str_eq(cell_text(remote, one, "status"), STR("allocated"))))
		return 2;
	return id_fits(id, typed);
}

static int search(struct remote *remote, const struct kind *kind, struct str typed, struct str *ret_id)
{
	struct str path = compose_path(remote, kind->list.path, typed), id;
	int        best = 0, count = 0;
	json_t    *page;

	CLEANUP(call_pages_end) struct call_pages pages = { &kind->list, path, PAGE };

	*ret_id = typed;
	while (best < 3 && call_next(remote, &pages, &page))
		for (size_t i = 0; i < json_array_size(page); i++) {
			const json_t *one = json_array_get(page, i);
			int           how = fits(remote, one, id = cell_text(remote, one, kind->id), typed);

			if (how && how >= best) {
				*ret_id = str_dup(&remote->arena, id);
				count = how > best ? 1 : count + 1;
				best = how;
			}
		}
	if (!pages.code && count > 1)
		return remote_failed(remote, RC_INVALID, "several fit %.*s: give the whole id", STR_ARG(typed));
	return pages.code;
}

int sandbox_find(struct remote *remote, struct str typed, struct str *ret_id)
{
	return search(remote, &kinds[0], typed, ret_id);
}

int id_find(struct remote *remote, const char *path, struct str typed, struct str *ret_id)
{
	*ret_id = typed;
	if (strstr(path, "{lease}"))
		return lease_find(remote, typed, ret_id);
	for (size_t i = 0; i < ARRAY_LEN(kinds) && id_may_be_part(typed); i++)
		if (strstr(path, kinds[i].mark))
			return search(remote, &kinds[i], typed, ret_id);
	return CLI_EXIT_OK;
}

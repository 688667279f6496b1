/* SPDX-License-Identifier: Apache-2.0 */
/*
 * accounts.c - reads what the vendor lists.
 *
 * One account that makes no sense must not keep a thousand others from being lent: it is skipped and counted. A
 * document that makes no sense is refused as a whole, because an empty answer would make the pool stale.
 *
 * Always true of a returned account:
 *   1. sandbox_id is 1 to 128 characters of [A-Za-z0-9._:/-] and no other account of the listing has it.
 *   2. external_id has a last path part, so the account can be deleted; no other account of the listing has it either,
 *      or one account would be lent twice.
 *   3. Nothing is longer than a sandbox's record takes.
 */
#include "providers/csp/accounts.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "domain/ports/csp.h"
#include "domain/sandbox.h"

enum { ACCOUNTS_MAX = 1000000 };

/* Ids seen so far: open addressing, at most half full. */
struct id_set {
	struct str *slots;
	size_t      mask;
	uint64_t    seed;
};

struct seen {
	struct id_set sandbox_ids, external_ids;
};

static void id_set_init(struct id_set *set, struct arena *a, size_t count)
{
	size_t size = 16;

	while (size < count * 2)
		size *= 2;
	set->slots = arena_alloc(a, size * sizeof(set->slots[0]));
	set->mask = size - 1;
	set->seed = id_fast_random();
}

/* Where it is, or belongs. */
static struct str *id_set_slot(const struct id_set *set, struct str id)
{
	size_t at = (size_t)str_hash(id, set->seed) & set->mask;

	while (set->slots[at].p && !str_eq(set->slots[at], id))
		at = (at + 1) & set->mask;
	return &set->slots[at];
}

/* False when one before has either id; then nothing is noted of this one. */
static bool note_ids(struct seen *seen, const struct csp_account *account)
{
	struct str *sandbox_id = id_set_slot(&seen->sandbox_ids, account->sandbox_id);
	struct str *external_id = id_set_slot(&seen->external_ids, account->external_id);

	if (sandbox_id->p || external_id->p)
		return false;
	*sandbox_id = account->sandbox_id;
	*external_id = account->external_id;
	return true;
}

/* A member that is text or a whole number, as text in the arena; empty when missing or null. */
static bool get_text(const json_t *account, const char *name, struct arena *a, struct str *ret)
{
	const json_t *member = json_object_get(account, name);

	*ret = STR("");
	if (!member || json_is_null(member))
		return true;
	if (json_is_integer(member)) {
		*ret = str_format(a, "%" PRId64, (int64_t)json_integer_value(member));
		return true;
	}
	if (!json_is_string(member))
		return false;
	*ret = str_dup(a, str_of(json_string_value(member), json_string_length(member)));
	return true;
}

static int64_t created_at(const json_t *account)
{
	struct str text;
	int64_t    sec;

	return json_get_text(account, "created_at", &text) && iso_time_parse(text, &sec) ? sec : 0;
}

/* NULL when *ret is filled, else what is wrong with the account. */
static const char *read_account(const json_t *account, struct arena *a, struct csp_account *ret)
{
	struct csp_account got = { .created_at = created_at(account) };

	if (!get_text(account, "id", a, &got.external_id) || got.external_id.n == 0)
		return "id must be text or a number";
	if (got.external_id.n > SANDBOX_EXTERNAL_ID_MAX || got.external_id.p[got.external_id.n - 1] == '/')
		return "id must be at most 512 bytes and not end with a slash";
	if (!get_text(account, "csp_id", a, &got.sandbox_id))
		return "csp_id must be text or a number";
	if (got.sandbox_id.n == 0)
		got.sandbox_id = got.external_id;
	if (!sandbox_is_id(got.sandbox_id))
		return "csp_id (or id, without one) must be 1 to 128 characters of A-Z a-z 0-9 . _ : - /";
	if (!get_text(account, "name", a, &got.name))
		return "name must be text";
	if (got.name.n == 0)
		got.name = str_format(a, "sandbox-%.*s", STR_ARG(got.external_id));
	if (got.name.n > SANDBOX_NAME_MAX)
		return "name must be at most 256 bytes";
	if (!get_text(account, "sfdc_account_id", a, &got.sfdc_account_id) || got.sfdc_account_id.n > SANDBOX_NAME_MAX)
		return "sfdc_account_id must be text of at most 256 bytes";
	*ret = got;
	return NULL;
}

static void add_account(struct csp_listing *l, struct seen *seen, const json_t *account, size_t index, struct arena *a)
{
	struct csp_account *next = &l->accounts[l->count];
	const char         *problem = json_is_object(account) ? NULL : "must be an object";
	struct str          type, state;

	if (!problem && (!json_get_text(account, "account_type", &type) || !str_eq(type, STR("sandbox")) ||
	                 !json_get_text(account, "state", &state) || !str_eq(state, STR("active"))))
		return; /* not one to lend */
	if (!problem)
		problem = read_account(account, a, next);
	if (problem) {
		if (l->malformed++ == 0)
			l->first_problem = str_format(a, "results[%zu]: %s", index, problem);
		return;
	}
	if (note_ids(seen, next))
		l->count++;
	else
		l->duplicates++;
}

enum rc csp_read_accounts(struct str json, struct arena *a, struct csp_listing *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct csp_listing          listing = { 0 };
	const json_t               *results;
	struct seen                 seen;
	size_t                      count;

	if (json_parse(json, &document, e) != RC_OK)
		return err_wrap(e, RC_CORRUPT, "list of accounts");
	results = json_object_get(document, "results");
	if (!json_is_array(results))
		return err_set(e, RC_CORRUPT, "list of accounts: must be an object with an array \"results\"");
	count = json_array_size(results);
	if (count > ACCOUNTS_MAX)
		return err_set(e, RC_CORRUPT, "list of accounts: %zu of them, at most %d are read", count,
		               ACCOUNTS_MAX);

	id_set_init(&seen.sandbox_ids, a, count);
	id_set_init(&seen.external_ids, a, count);
	listing.accounts = arena_alloc(a, (count + 1) * sizeof(listing.accounts[0]));
	for (size_t i = 0; i < count; i++)
		add_account(&listing, &seen, json_array_get(results, i), i, a);
	*ret = listing;
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.c - who is in a tenant's identity pool; php/pool.php keeps them, a file for each.
 *
 * The password that a person is added with is good for one sign-in within a week, at which the person chooses another:
 * see php/identity.php.
 *
 * Always true: somebody who was removed is no longer signed in to the site. The tenant's own database user ends the
 * sessions, because what is in the database is up to the tenant. [end_sessions()]
 */
#include "base/json.h"
#include "base/password.h"
#include "providers/local/local_private.h"

static bool says(const json_t *answer, const char *name)
{
	return json_is_true(json_object_get(answer, name));
}

static enum rc ask_pool(struct local *l, const struct site *s, const char *what, const struct instance_person *who,
                        struct str password, struct arena *a, json_t **ret, struct err *e)
{
	struct str out;
	enum rc    rc = pool_run(l,
	                         JSON_OF(a, member_word("do", what), member_str("folder", pool_folder(l, s, a)),
	                                 member_str("email", who->email), member_str("name", who->name),
	                                 member_str("password", password), member_int("most", INSTANCE_PEOPLE_MAX)),
	                         a, &out, e);

	if (rc || (rc = json_parse(out, ret, e)))
		return rc;
	return says(*ret, "isNone") ? err_set(e, RC_NOT_FOUND, "tenant %s has no identity pool", s->tenant) : RC_OK;
}

enum rc local_add_person(struct instance_driver *d, struct str tenant, struct str email, struct str name,
                         struct arena *a, bool *ret_is_new, struct str *ret_password, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(json_freep) json_t       *answer = NULL;
	CLEANUP(site_leavep) struct site *s = NULL;
	struct instance_person            who = { email, name, 0 };
	struct str                        password = password_new(a);
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc || (rc = ask_pool(l, s, "person", &who, password, a, &answer, e)))
		return rc;
	if (says(answer, "isNoAddress"))
		return err_set(e, RC_INVALID, "%.*s is no e-mail address for the identity pool", STR_ARG(email));
	if (says(answer, "isFull"))
		return err_set(e, RC_CONFLICT, "the identity pool of tenant %.*s is full: it has %d people",
		               STR_ARG(tenant), INSTANCE_PEOPLE_MAX);
	*ret_is_new = says(answer, "isNew");
	*ret_password = password;
	return RC_OK;
}

static enum rc read_people(const json_t *list, struct arena *a, struct instance_person **ret, size_t *ret_count,
                           struct err *e)
{
	size_t count = json_array_size(list);

	*ret = arena_alloc(a, (count + 1) * sizeof(**ret));
	for (size_t i = 0; i < count; i++) {
		struct instance_person *p = &(*ret)[i];
		const json_t           *one = json_array_get(list, i);

		if (!json_take_text(one, "email", a, &p->email) || !json_take_text(one, "name", a, &p->name) ||
		    !json_get_number(one, "added", 0, &p->added_ms))
			return err_set(e, RC_CORRUPT, "the identity pool has a person that cannot be read");
		p->added_ms *= 1000;
	}
	*ret_count = count;
	return RC_OK;
}

/* Looks without the lock, as a look at tasks does: a person's file changes as a whole. */
enum rc local_people(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_person **ret,
                     size_t *ret_count, struct err *e)
{
	struct local               *l = local_of(d);
	CLEANUP(json_freep) json_t *answer = NULL;
	struct site                *s;
	enum rc                     rc = site_find(l, tenant, &s, e);

	if (!rc && !s)
		return err_set(e, RC_NOT_FOUND, "there is nothing of tenant %.*s here", STR_ARG(tenant));
	if (!rc)
		rc = ask_pool(l, s, "people", &(struct instance_person){ STR(""), STR(""), 0 }, STR(""), a, &answer, e);
	return rc ? rc : read_people(json_object_get(answer, "people"), a, ret, ret_count, e);
}

static enum rc end_sessions(struct local *l, struct site *s, struct str email, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(buf_fini) struct buf     sql = BUF(4096);

	buf_add_text(&sql, "DELETE FROM wp_usermeta WHERE meta_key = 'session_tokens' AND user_id IN (SELECT ID FROM "
	                   "wp_users WHERE user_email = _utf8mb4 X'");
	for (size_t i = 0; i < email.n; i++)
		buf_addf(&sql, "%02x", (unsigned char)email.p[i]);
	buf_add_text(&sql, "');\n");
	return database_run_as(l, s, buf_str(&sql), &a, e);
}

/* Ends sessions even if the person was not there: an earlier try may have stopped in between. */
enum rc local_remove_person(struct instance_driver *d, struct str tenant, struct str email, bool *ret_was_there,
                            struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(json_freep) json_t       *answer = NULL;
	CLEANUP(arena_fini) struct arena  a = { 0 };
	CLEANUP(site_leavep) struct site *s = NULL;
	struct instance_person            who = { .email = email };
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc || (rc = ask_pool(l, s, "remove", &who, STR(""), &a, &answer, e)))
		return rc;
	*ret_was_there = says(answer, "wasThere");
	rc = end_sessions(l, s, email, e);
	return err_wrap(e, rc, "%.*s is out of the pool, but may still be signed in; try again", STR_ARG(email));
}

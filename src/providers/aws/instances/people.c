/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - who may sign in to a tenant's site: the users of its identity pool, named by their addresses. */
#include <stdlib.h>

#include "base/password.h"
#include "providers/aws/instances/cognito.h"
#include "providers/aws/instances/tasks.h"

enum { PAGE = 60 };

static const struct aws_op create_user = COGNITO_OP("AdminCreateUser", true, true),
                           set_password = COGNITO_OP("AdminSetUserPassword", true, true),
                           delete_user = COGNITO_OP("AdminDeleteUser", true, false),
                           sign_out = COGNITO_OP("AdminUserGlobalSignOut", true, false),
                           list_users = COGNITO_OP("ListUsers", false, false);

/* --- all of them --- */

struct list {
	struct site            *s;
	struct instance_person *items;
	size_t                  count;
};

static enum rc take_user(void *arg, const json_t *user, struct err *e UNUSED)
{
	struct list            *l = arg;
	const json_t           *attributes = json_object_get(user, "Attributes");
	struct instance_person *p = &l->items[l->count];

	if (l->count == INSTANCE_PEOPLE_MAX)
		return RC_OK;
	*p = (struct instance_person){ .email = aws_get_tag(attributes, "Name", "Value", "email", l->s->a),
		                       .name = aws_get_tag(attributes, "Name", "Value", "name", l->s->a) };
	(void)aws_get_time(user, "UserCreateDate", &p->added_ms); /* stays 0 without one */
	l->count += p->email.n > 0;
	return RC_OK;
}

static int by_email(const void *a, const void *b)
{
	return str_cmp(((const struct instance_person *)a)->email, ((const struct instance_person *)b)->email);
}

enum rc people_read(struct site *s, struct instance_person **ret, size_t *ret_count, struct err *e)
{
	struct list       l = { .s = s, .items = arena_alloc(s->a, INSTANCE_PEOPLE_MAX * sizeof(*l.items)) };
	struct aws_paging paging = { .call = { .op = &list_users, .ms = SITE_CALL_MS },
		                     .token = "PaginationToken",
		                     .list = "Users",
		                     .each = take_user,
		                     .arg = &l };
	struct str        pool;
	enum rc           rc = cognito_pool(s, &pool, e);

	if (rc)
		return rc;
	paging.call.body = JSON_OF(s->a, member_str("UserPoolId", pool), member_int("Limit", PAGE));
	if ((rc = aws_pages(s->x->caller, &paging, e)))
		return rc;
	qsort(l.items, l.count, sizeof(*l.items), by_email);
	*ret = l.items;
	*ret_count = l.count;
	return RC_OK;
}

/* --- one of them --- */

static struct str about(struct site *s, struct str pool, struct str email, struct json_member a, struct json_member b,
                        struct json_member c)
{
	return JSON_OF(s->a, member_str("UserPoolId", pool), member_str("Username", email), a, b, c);
}
#define NO_MEMBER ((struct json_member){ 0 })

/* The name is left out if there is none. */
static struct str attributes_of(struct site *s, struct str email, struct str name)
{
	struct str list = JSON_OF(s->a, member_list("l"), member_object(NULL), member_word("Name", "email"),
	                          member_str("Value", email), member_end(), member_object(NULL),
	                          member_word("Name", "email_verified"), member_word("Value", "true"), member_end(),
	                          member_if(name.n > 0, member_object(NULL)),
	                          member_if(name.n > 0, member_word("Name", "name")),
	                          member_if(name.n > 0, member_str("Value", name)), member_if(name.n > 0, member_end()),
	                          member_list_end());

	return str_of(list.p + 5, list.n - 6); /* the list alone */
}

static bool is_among(const struct instance_person *items, size_t count, struct str email, struct arena *a)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(str_lower(a, items[i].email), str_lower(a, email)))
			return true;
	return false;
}

static enum rc make_person(struct site *s, struct str pool, struct str email, struct str name, struct str password,
                           struct err *e)
{
	return site_do(s, &create_user,
	               about(s, pool, email, member_raw("UserAttributes", attributes_of(s, email, name)),
	                     member_str("TemporaryPassword", password), member_word("MessageAction", "SUPPRESS")),
	               NULL, e);
}

/* If the answer to an addition was lost, setting the password again tells whether it happened: it fails for a user who
 * was not added. */
enum rc people_add(struct site *s, struct str email, struct str name, bool *ret_is_new, struct str *ret_password,
                   struct err *e)
{
	struct instance_person *items;
	struct str              pool, password = password_new(s->a);
	struct err              why = { 0 }, other = { 0 };
	size_t                  count;
	bool                    is_known;
	enum rc                 rc;

	if ((rc = people_read(s, &items, &count, e)) || (rc = cognito_pool(s, &pool, e)))
		return rc;
	is_known = is_among(items, count, email, s->a);
	if (!is_known && count >= INSTANCE_PEOPLE_MAX)
		return err_set(e, RC_CONFLICT, "the pool has %d people", INSTANCE_PEOPLE_MAX);
	rc = is_known ? RC_CONFLICT : make_person(s, pool, email, name, password, &why);
	if (rc == RC_CONFLICT || rc == RC_TIMEOUT) {
		struct str body = about(s, pool, email, member_str("Password", password),
		                        member_bool("Permanent", false), NO_MEMBER);
		enum rc    given = site_do(s, &set_password, body, NULL, &other);

		if (given == RC_NOT_FOUND)
			return err_set_code(e, RC_UNAVAILABLE, why.code, "%s", why.msg[0] ? why.msg : other.msg);
		rc = given;
		why = other;
	}
	if (rc)
		return err_pass(e, rc, &why);
	*ret_is_new = !is_known;
	*ret_password = password;
	return RC_OK;
}

/* If the answer to it was lost, deleting the user again tells whether it happened. */
static enum rc delete_person(struct site *s, struct str body, bool *ret_was_there, struct err *e)
{
	struct err why = { 0 };
	enum rc    rc = site_do(s, &delete_user, body, NULL, &why);
	bool       is_lost = rc == RC_TIMEOUT;

	if (is_lost) {
		err_clear(&why);
		rc = site_do(s, &delete_user, body, NULL, &why);
	}
	*ret_was_there = !rc || (is_lost && rc == RC_NOT_FOUND);
	return rc == RC_NOT_FOUND ? RC_OK : err_pass(e, rc, &why);
}

/* Removes the user from the pool; a task then ends the user's sessions in the site. The task is also started for a user
 * who is gone already: an earlier try may have stopped between the two. */
enum rc people_remove(struct site *s, struct str email, bool *ret_was_there, struct err *e)
{
	struct str        pool, id, body;
	struct task_order order = { .family = FAMILY_INSTALL,
		                    .what = "signout",
		                    .name = str_lower(s->a, email),
		                    .is_started = true,
		                    .texts = { { "LEASEHOLD_PERSON", email } } };
	enum rc           rc = cognito_pool(s, &pool, e);

	if (rc)
		return rc;
	body = about(s, pool, email, NO_MEMBER, NO_MEMBER, NO_MEMBER);
	rc = site_do(s, &sign_out, body, NULL, e);
	rc = rc ? err_forgive(e, rc, RC_NOT_FOUND) : delete_person(s, body, ret_was_there, e);
	return rc ? rc : task_run(s, &order, &id, e);
}

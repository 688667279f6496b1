/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory_read.c - reads the identity store: who is in our groups, and who they are.
 *
 * A refresh lists the members of the groups, describes those who are new (once a day everybody; many of them by
 * ListUsers), stores those who have changed, and then the record that says so. Roles need no description: they come
 * from the lists.
 *
 * Always true:
 *   1. Nothing is stored before everything was read: a refresh that fails changes nothing.          [refresh()]
 *   2. Somebody who has left is kept for LEFT_DAYS without roles.                                   [store_all()]
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/lease.h"
#include "providers/aws/call.h"
#include "providers/aws/centre.h"
#include "providers/aws/directory_private.h"
#include "store/session.h"
#include "store/store.h"
#include "store/walk.h"

enum {
	HOUR_MS = 3600000,
	DAY_MS = 86400000,
	LEFT_DAYS = 90,
	DESCRIBE_MAX = 500, /* more are listed */
	BATCH = 40,         /* people in one transaction */
	NAME_BYTES = 1024,
};

static const struct aws_error_row errors[] = { { "ResourceNotFoundException", RC_NOT_FOUND }, { NULL, RC_OK } };

#define STORE_OP(operation)                                                                           \
	{                                                                                             \
		.service = &aws_services[AWS_IDENTITY_STORE], .name = operation,                      \
		.permission = "identitystore:" operation, .errors = errors, .pace = AWS_PACE_IDC_READ \
	}
static const struct aws_op get_user_id = STORE_OP("GetUserId"), get_group_id = STORE_OP("GetGroupId"),
                           describe_user = STORE_OP("DescribeUser"), list_users = STORE_OP("ListUsers"),
                           list_memberships = STORE_OP("ListGroupMemberships"),
                           list_memberships_of = STORE_OP("ListGroupMembershipsForMember");

static const unsigned group_roles[AWS_GROUPS] = {
	[AWS_GROUP_USER] = ROLE_USER, [AWS_GROUP_MANAGER] = ROLE_MANAGER, [AWS_GROUP_ADMIN] = ROLE_ADMIN
};

static struct aws_caller *caller_of(const struct aws_directory *d)
{
	return aws_centre_caller(d->o.centre);
}

/* --- by a name --- */

/* {"IdentityStoreId", "AlternateIdentifier": ...}; member is what the answer has. */
static enum rc get_id(struct aws_directory *d, const struct aws_op *op, const char *path, struct str name,
                      const char *member, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct aws_instance         instance;
	struct str                  body;
	enum rc                     rc = aws_centre_get(d->o.centre, &instance, e);

	if (rc)
		return rc;
	body = JSON_OF(a, member_str("IdentityStoreId", instance.store_id), member_object("AlternateIdentifier"),
	               member_object("UniqueAttribute"), member_word("AttributePath", path),
	               member_str("AttributeValue", name), member_end(), member_end());
	if ((rc = aws_do(caller_of(d), op, body, a, &reply, e)))
		return rc;
	if (!json_take_text(reply, member, a, ret) || !ret->n || ret->n > AWS_USER_ID_MAX)
		return err_set(e, RC_CORRUPT, "%s: the answer has no %s", op->name, member);
	return RC_OK;
}

static bool find_group(struct aws_directory *d, struct str name, struct str id, struct arena *a,
                       struct directory_group *ret)
{
	bool is_there = false;

	LOCKED(&d->lock);
	if (clock_now(d->o.clock).ms - d->groups_ms > HOUR_MS)
		d->group_count = 0;
	for (size_t i = 0; !is_there && i < d->group_count; i++)
		if ((is_there = str_eq(d->groups[i].name, name) || str_eq(d->groups[i].id, id)))
			*ret = (struct directory_group){ str_dup(a, d->groups[i].name), str_dup(a, d->groups[i].id) };
	return is_there;
}

static void note_group(struct aws_directory *d, struct str name, struct str id)
{
	LOCKED(&d->lock);
	if (!d->group_count) {
		arena_reset(&d->group_arena);
		d->groups_ms = clock_now(d->o.clock).ms;
	}
	if (d->group_count < AWS_GROUPS)
		d->groups[d->group_count++] = (struct directory_group){ str_dup(&d->group_arena, name),
			                                                str_dup(&d->group_arena, id) };
}

void aws_directory_forget_groups(struct aws_directory *d)
{
	LOCKED(&d->lock);
	d->group_count = 0;
}

enum rc aws_directory_group_id(struct aws_directory *d, struct str name, struct arena *a, struct str *ret,
                               struct err *e)
{
	struct directory_group known;
	enum rc                rc;

	if (find_group(d, name, STR("-"), a, &known)) {
		*ret = known.id;
		return RC_OK;
	}
	if ((rc = get_id(d, &get_group_id, "displayName", name, "GroupId", a, ret, e)))
		return err_wrap(e, rc, "group %.*s", STR_ARG(name));
	note_group(d, name, *ret);
	return RC_OK;
}

bool aws_directory_group_name(struct aws_directory *d, struct str group_id, struct arena *a, struct str *ret)
{
	struct directory_group known;
	struct str             id;

	for (int i = 0; i < AWS_GROUPS; i++) /* those that are not known yet */
		if (d->o.groups[i].n)
			rc_ignore(aws_directory_group_id(d, d->o.groups[i], a, &id, NULL));
	if (!find_group(d, STR(""), group_id, a, &known))
		return false;
	*ret = known.name;
	return true;
}

/* --- members --- */

struct member {
	struct str        id;
	unsigned          roles;
	bool              is_described;
	struct aws_person person; /* if so */
};

struct reading {
	struct aws_directory *d;
	struct arena          arena;
	struct str            store_id;
	unsigned              role;    /* of the group that is being read */
	struct member        *members; /* sorted by id, when all groups were read */
	size_t                count, room;
};

static enum rc add_member(struct reading *r, struct str id, struct err *e)
{
	if (r->count == DIRECTORY_PEOPLE_MAX)
		return err_set(e, RC_TOO_LARGE, "the groups have more than %d members", DIRECTORY_PEOPLE_MAX);
	if (r->count == r->room) {
		r->room = r->room ? 2 * r->room : 256;
		r->members = mem_resize(r->members, r->room * sizeof(*r->members));
	}
	r->members[r->count++] = (struct member){ .id = str_dup(&r->arena, id), .roles = r->role };
	return RC_OK;
}

static enum rc take_membership(void *arg, const json_t *item, struct err *e)
{
	struct str id;

	if (!json_get_text(json_object_get(item, "MemberId"), "UserId", &id) || id.n > AWS_USER_ID_MAX)
		return err_set(e, RC_CORRUPT, "ListGroupMemberships: a member has no id that can be read");
	return id.n ? add_member(arg, id, e) : RC_OK;
}

static int by_id(const void *a, const void *b)
{
	return str_cmp(((const struct member *)a)->id, ((const struct member *)b)->id);
}

static void merge_roles(struct reading *r)
{
	size_t kept = 0;

	if (r->count)
		qsort(r->members, r->count, sizeof(*r->members), by_id);
	for (size_t i = 0; i < r->count; i++)
		if (kept && str_eq(r->members[kept - 1].id, r->members[i].id))
			r->members[kept - 1].roles |= r->members[i].roles;
		else
			r->members[kept++] = r->members[i];
	r->count = kept;
}

static struct member *find_member(const struct reading *r, struct str id)
{
	struct member key = { .id = id };

	return r->count ? bsearch(&key, r->members, r->count, sizeof(key), by_id) : NULL;
}

static enum rc read_group(struct reading *r, struct str name, struct err *e)
{
	struct aws_paging paging = { .call = { .op = &list_memberships },
		                     .token = "NextToken",
		                     .list = "GroupMemberships",
		                     .each = take_membership,
		                     .arg = r };
	struct str        group;
	enum rc           rc = aws_directory_group_id(r->d, name, &r->arena, &group, e);

	if (rc)
		return rc;
	paging.call.body = JSON_OF(&r->arena, member_str("IdentityStoreId", r->store_id), member_str("GroupId", group),
	                           member_int("MaxResults", 100));
	return err_wrap(e, aws_pages(caller_of(r->d), &paging, e), "group %.*s", STR_ARG(name));
}

/* Of the three; missing: names of those that are not there. */
static enum rc read_groups(struct reading *r, struct aws_directory_record *head, struct err *e)
{
	int found = 0;

	for (int i = 0; i < AWS_GROUPS; i++) {
		struct str name = r->d->o.groups[i];
		size_t     before = r->count;
		struct err why = { 0 };
		enum rc    rc = RC_NOT_FOUND;

		r->role = group_roles[i];
		for (int try = 0; name.n && rc == RC_NOT_FOUND && try < 2; try++) { /* its id may be an old one */
			r->count = before;
			err_clear(&why);
			if (try)
				aws_directory_forget_groups(r->d);
			rc = read_group(r, name, &why);
		}
		if (rc && rc != RC_NOT_FOUND)
			return err_pass(e, rc, &why);
		if (rc && name.n)
			head->missing = str_format(&r->arena, "%.*s%s%.*s", STR_ARG(head->missing),
			                           head->missing.n ? ", " : "", STR_ARG(name));
		found += !rc;
	}
	if (!found)
		return err_set(e, RC_NOT_FOUND, "none of the groups is in Identity Center: %.*s",
		               STR_ARG(head->missing));
	merge_roles(r);
	return RC_OK;
}

/* --- who they are --- */

static struct str get_name(const json_t *user, const char *member, struct arena *a)
{
	struct str text;

	return json_get_text(user, member, &text) ? utf8_line(a, text, NAME_BYTES) : STR("");
}

static struct aws_person read_user(const json_t *user, struct arena *a)
{
	const json_t     *email = json_array_get(json_object_get(user, "Emails"), 0);
	struct aws_person p = { .display_name = get_name(user, "DisplayName", a),
		                .user_name = get_name(user, "UserName", a) };
	struct str        status;

	if (json_take_text(user, "UserId", a, &p.id) && json_take_text(email, "Value", a, &p.email) &&
	    (p.email.n > EMAIL_MAX || str_has_control(p.email)))
		p.email = STR("");
	p.is_disabled = json_get_text(user, "UserStatus", &status) && str_eq(status, STR("DISABLED"));
	return p;
}

static enum rc note_user(void *arg, const json_t *user, struct err *e UNUSED)
{
	struct reading *r = arg;
	struct str      id;
	struct member  *m = json_get_text(user, "UserId", &id) ? find_member(r, id) : NULL;

	if (m) {
		m->person = read_user(user, &r->arena);
		m->is_described = true;
	}
	return RC_OK;
}

static enum rc describe(struct reading *r, struct str id, json_t **ret, struct err *e)
{
	struct str body = JSON_OF(&r->arena, member_str("IdentityStoreId", r->store_id), member_str("UserId", id));

	return aws_do(caller_of(r->d), &describe_user, body, &r->arena, ret, e);
}

/* Somebody who is deleted in between stays undescribed, and is not stored. */
static enum rc describe_each(struct reading *r, const struct directory_copy *known, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < r->count; i++) {
		CLEANUP(json_freep) json_t *reply = NULL;

		if (directory_copy_find(known, r->members[i].id))
			continue;
		if (!(rc = describe(r, r->members[i].id, &reply, e)))
			rc = note_user(r, reply, e);
		rc = err_forgive(e, rc, RC_NOT_FOUND);
	}
	return rc;
}

/* known: those who need not be described. */
static enum rc describe_new(struct reading *r, const struct directory_copy *known, struct err *e)
{
	struct str body = JSON_OF(&r->arena, member_str("IdentityStoreId", r->store_id), member_int("MaxResults", 100));
	struct aws_paging paging = { .call = { .op = &list_users, .body = body },
		                     .token = "NextToken",
		                     .list = "Users",
		                     .each = note_user,
		                     .arg = r };
	size_t            count = 0;

	for (size_t i = 0; i < r->count; i++)
		count += !directory_copy_find(known, r->members[i].id);
	return count > DESCRIBE_MAX ? aws_pages(caller_of(r->d), &paging, e) : describe_each(r, known, e);
}

/* --- storing --- */

struct storing {
	struct aws_person people[BATCH];
	size_t            count;
	int64_t           now_ms;
	int64_t           changed; /* the answer */
};

static enum rc store_people(struct session *s, void *arg, struct err *e)
{
	struct storing *st = arg;

	st->changed = 0;
	for (size_t i = 0; i < st->count; i++) {
		struct aws_person known, fresh = st->people[i];
		enum rc           rc = session_find_or_new(s, &aws_person_type, fresh.id, &known, e);

		if (rc)
			return rc;
		fresh.version = known.version;
		if (known.version && !record_changes(&aws_person_type, &known, &fresh))
			continue;
		if (fresh.left_ms && st->now_ms - fresh.left_ms > LEFT_DAYS * (int64_t)DAY_MS)
			session_delete(s, &aws_person_type, fresh.id);
		else
			session_put(s, &aws_person_type, &fresh);
		st->changed++;
	}
	return RC_OK;
}

static enum rc flush(struct aws_directory *d, struct storing *st, int64_t *changed, struct err *e)
{
	enum rc rc = st->count ? store_run(d->o.store, store_people, st, NULL, e) : RC_OK;

	*changed += rc || !st->count ? 0 : st->changed;
	st->count = 0;
	return rc;
}

/* Everybody in a group as they are now, and those who have left. */
static enum rc store_all(struct reading *r, const struct directory_copy *known, struct aws_directory_record *head,
                         int64_t *changed, struct err *e)
{
	struct storing st = { .now_ms = head->read_ms };
	enum rc        rc = RC_OK;

	for (size_t i = 0; !rc && i < r->count; i++) {
		const struct member     *m = &r->members[i];
		const struct aws_person *old = directory_copy_find(known, m->id);
		struct aws_person        p = m->is_described ? m->person : old ? *old : (struct aws_person){ 0 };

		if (!p.id.n)
			continue;
		p.roles = p.is_disabled || !p.email.n ? 0 : m->roles;
		p.left_ms = 0;
		head->members += p.roles != 0;
		head->disabled += p.is_disabled;
		head->without_email += !p.is_disabled && !p.email.n;
		st.people[st.count++] = p;
		if (st.count == BATCH)
			rc = flush(r->d, &st, changed, e);
	}
	for (size_t i = 0; !rc && known && i < known->count; i++) {
		struct aws_person p = known->people[i];

		if (find_member(r, p.id))
			continue;
		p.roles = 0;
		if (!p.left_ms)
			p.left_ms = st.now_ms;
		else if (st.now_ms - p.left_ms <= LEFT_DAYS * (int64_t)DAY_MS)
			continue;
		st.people[st.count++] = p;
		if (st.count == BATCH)
			rc = flush(r->d, &st, changed, e);
	}
	return rc ? rc : flush(r->d, &st, changed, e);
}

static enum rc store_head(struct session *s, void *arg, struct err *e)
{
	struct aws_directory_record *fresh = arg, known;
	enum rc                      rc = session_find_or_new(s, &aws_directory_type, fresh->name, &known, e);

	if (rc)
		return rc;
	fresh->version = known.version;
	if (fresh->read_ms <= known.read_ms) /* a clock that was set back: nodes look whether it is another */
		fresh->read_ms = known.read_ms + 1;
	session_put(s, &aws_directory_type, fresh);
	return RC_OK;
}

/* --- refresh --- */

static enum rc refresh(struct reading *r, struct aws_directory_done *done, struct err *e)
{
	CLEANUP(directory_copy_freep) struct directory_copy *known = NULL;
	struct aws_directory                                *d = r->d;
	int64_t                                              now_ms = clock_now(d->o.clock).ms;
	struct aws_directory_record head = { 0 }, fresh = { .name = STR(AWS_DIRECTORY), .read_ms = now_ms };
	struct aws_instance         instance;
	bool                        is_there, is_whole;
	enum rc                     rc;

	if ((rc = aws_centre_get(d->o.centre, &instance, e)) ||
	    (rc = store_find(d->o.store, &aws_directory_type, STR(AWS_DIRECTORY), &r->arena, &head, &is_there, e)) ||
	    (rc = directory_copy_read(d->o.store, &known, e)))
		return rc;
	r->store_id = instance.store_id;
	is_whole = now_ms - head.whole_ms >= DAY_MS;
	fresh.whole_ms = is_whole ? now_ms : head.whole_ms;
	if ((rc = read_groups(r, &fresh, e)) || (rc = describe_new(r, is_whole ? NULL : known, e)) ||
	    (rc = store_all(r, known, &fresh, &done->changed, e)) ||
	    (rc = store_run(d->o.store, store_head, &fresh, NULL, e)))
		return rc;
	done->members = fresh.members;
	for (size_t i = 0; i < r->count; i++)
		done->described += r->members[i].is_described;
	return directory_reload(d, fresh.read_ms, e);
}

enum rc aws_directory_refresh(struct aws_directory *d, struct aws_directory_done *ret, struct err *e)
{
	struct reading r = { .d = d };
	enum rc        rc;

	*ret = (struct aws_directory_done){ 0 };
	pthread_mutex_lock(&d->refreshing);
	rc = refresh(&r, ret, e);
	pthread_mutex_unlock(&d->refreshing);
	free(r.members);
	arena_fini(&r.arena);
	return rc;
}

/* --- one person --- */

static enum rc take_group(void *arg, const json_t *item, struct err *e UNUSED)
{
	struct reading *r = arg;
	struct str      group, id;

	for (int k = 0; json_get_text(item, "GroupId", &group) && k < AWS_GROUPS; k++)
		if (r->d->o.groups[k].n &&
		    aws_directory_group_id(r->d, r->d->o.groups[k], &r->arena, &id, NULL) == RC_OK && str_eq(id, group))
			r->members[0].roles |= group_roles[k];
	return RC_OK;
}

/* The id, the groups, the names; then the person is stored as by a refresh. */
static enum rc look_up(struct reading *r, struct str email, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct aws_directory       *d = r->d;
	struct storing              st = { .count = 1, .now_ms = clock_now(d->o.clock).ms };
	struct aws_person          *p = &st.people[0];
	struct aws_paging           paging = { .call = { .op = &list_memberships_of },
		                               .token = "NextToken",
		                               .list = "GroupMemberships",
		                               .each = take_group,
		                               .arg = r };
	struct aws_instance         instance;
	struct str                  id;
	enum rc                     rc;

	if ((rc = get_id(d, &get_user_id, "emails.value", email, "UserId", &r->arena, &id, e)) ||
	    (rc = aws_centre_get(d->o.centre, &instance, e)))
		return rc;
	r->store_id = instance.store_id;
	paging.call.body = JSON_OF(&r->arena, member_str("IdentityStoreId", r->store_id), member_object("MemberId"),
	                           member_str("UserId", id), member_end(), member_int("MaxResults", 100));
	if ((rc = add_member(r, id, e)) || (rc = aws_pages(caller_of(d), &paging, e)) ||
	    (rc = describe(r, id, &reply, e)))
		return rc;
	*p = read_user(reply, &r->arena);
	if (!p->id.n || !p->email.n)
		return err_set(e, RC_NOT_FOUND, "the user of %.*s has no email", STR_ARG(email));
	p->roles = p->is_disabled ? 0 : r->members[0].roles;
	p->left_ms = r->members[0].roles ? 0 : st.now_ms;
	if ((rc = store_run(d->o.store, store_people, &st, NULL, e)))
		return rc;
	return directory_reload(d, aws_directory_read_ms(d), e);
}

enum rc directory_look_up(struct aws_directory *d, struct str email, struct err *e)
{
	struct reading r = { .d = d };
	enum rc        rc;

	if (!email.n || email.n > EMAIL_MAX || str_has_control(email))
		return err_set(e, RC_NOT_FOUND, "there is no such email");
	rc = look_up(&r, email, e);
	free(r.members);
	arena_fini(&r.arena);
	return rc;
}

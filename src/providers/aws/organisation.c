/* SPDX-License-Identifier: Apache-2.0 */
/*
 * organisation.c - the organisation port on AWS Organizations.
 *
 * Always true:
 *   1. Before a move we look where the account is: a move to where it is already, or from the wrong place, fails at AWS
 *      in other ways than the port promises.                                                        [do_move()]
 *   2. If the answer to a move was lost, another look decides what happened, never the error of a repeated request.
 *                                                                                                   [look_after()]
 *   3. AWS's lists lag behind: if an account that we just moved seems to be where it was, we ask again, up to
 *      STALE_ASKS times.                                                                            [find_place()]
 *   4. AWS's page tokens, which may have 100,000 characters, stay here; a cursor is the short name of one. Only the
 *      newest CURSORS_KEPT are kept; an older one is RC_INVALID: begin again.
 *
 * OUs: the root, the sandbox OU and those directly below it; the rest of the tree does not matter. They are cached for
 * OUS_KEPT_MS, and forgotten when AWS no longer knows one of them.
 */
#include "providers/aws/organisation.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"

enum {
	OUS_MAX = 1002,
	OUS_KEPT_MS = 5 * 60 * 1000,
	MOVES_KEPT = 64,
	MOVE_FRESH_MS = 15 * 1000,
	STALE_ASKS = 5,
	STALE_MS = 1000,
	CURSORS_KEPT = 64,
	CURSOR_ID_MAX = 24,
	POOL_CONFIG_MAX = 8192,
	/* A step of a saga, which looks and then moves, has 30 s. */
	LOOK_MS = 8000,
	MOVE_LOOK_MS = 5000,
	MOVE_MS = 12000,
	LAST_LOOK_MS = 3000,
	TAGS_LIMIT = 1000,
};

/* --- operations --- */

#define ORG  &aws_services[AWS_ORGANIZATIONS]
#define READ AWS_PACE_ORG_READ

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "AccountNotFoundException",           RC_NOT_FOUND },
	{ "ChildNotFoundException",             RC_NOT_FOUND },
	{ "TargetNotFoundException",            RC_NOT_FOUND },
	{ "DestinationParentNotFoundException", RC_NOT_FOUND },
	{ "ParentNotFoundException",            RC_NOT_FOUND },
	{ "SourceParentNotFoundException",      RC_CONFLICT },
	{ "DuplicateAccountException",          RC_CONFLICT },
	{ "InvalidInputException",              RC_INVALID },
	{ "ConstraintViolationException",       RC_TOO_LARGE }, /* of tags: over 50 */
	{ "AWSOrganizationsNotInUseException",  RC_DENIED },
	{ NULL, RC_OK },
};
static const struct aws_error_row parameter_errors[] = {
	{ "ParameterNotFound",        RC_NOT_FOUND },
	{ "ParameterVersionNotFound", RC_NOT_FOUND },
	{ "InvalidKeyId",             RC_DENIED },
	{ NULL, RC_OK },
};

#define ORG_OP(name, does_write, its_pace) { ORG, name, "organizations:" name, does_write, NULL, NULL, errors, its_pace, false }
static const struct aws_op aws_list_roots       = ORG_OP("ListRoots", false, READ);
static const struct aws_op aws_list_parents     = ORG_OP("ListParents", false, READ);
static const struct aws_op aws_list_ous         = ORG_OP("ListOrganizationalUnitsForParent", false, READ);
static const struct aws_op aws_list_accounts    = ORG_OP("ListAccountsForParent", false, READ);
static const struct aws_op aws_describe_account = ORG_OP("DescribeAccount", false, READ);
static const struct aws_op aws_list_tags        = ORG_OP("ListTagsForResource", false, READ);
static const struct aws_op aws_move_account     = ORG_OP("MoveAccount", true, AWS_PACE_ORG_WRITE);
static const struct aws_op aws_tag              = ORG_OP("TagResource", true, AWS_PACE_ORG_WRITE);
static const struct aws_op aws_untag            = ORG_OP("UntagResource", true, AWS_PACE_ORG_WRITE);
static const struct aws_op aws_get_parameter    = { &aws_services[AWS_SSM], "GetParameter", "ssm:GetParameter", false, NULL, NULL, parameter_errors, AWS_PACE_NONE, false };
/* clang-format on */

/* --- the object --- */

struct moved {
	char        account[16], from[CLOUD_ID_MAX + 1];
	struct mono at; /* zero: none */
};

struct cursor {
	char  id[CURSOR_ID_MAX + 1];
	char  ou[CLOUD_ID_MAX + 1];
	char *token;
};

struct aws_organisation {
	struct organisation             port;
	struct aws_organisation_options o;
	struct arena                    arena; /* of the options' texts */

	pthread_mutex_t  lock; /* all that follows */
	struct arena     ous_arena;
	struct cloud_ou *ous;
	size_t           ou_count; /* 0: unknown */
	struct mono      ous_at;
	struct moved     moved[MOVES_KEPT];
	size_t           moves;
	struct cursor    cursors[CURSORS_KEPT];
	uint64_t         cursor_count;
};

static struct aws_organisation *of(struct organisation *port)
{
	return CONTAINER_OF(port, struct aws_organisation, port);
}

static bool fits(struct str text, size_t most)
{
	return text.n > 0 && text.n <= most;
}

static enum rc unreadable(const struct aws_op *op, struct err *e)
{
	return err_set(e, RC_CORRUPT, "%s: the answer lacks what was asked for", op->permission);
}

/* What AWS does not know any more may be a cached OU. */
static enum rc forget_if_gone(struct aws_organisation *o, enum rc rc)
{
	if (rc != RC_NOT_FOUND)
		return rc;
	LOCKED(&o->lock);
	o->ou_count = 0;
	return rc;
}

/* --- OUs --- */

struct ou_list {
	struct arena    *arena;
	struct str       parent;
	struct cloud_ou *ous; /* OUS_MAX */
	size_t           count;
};

static enum rc add_ou(void *arg, const json_t *from, struct err *e)
{
	struct ou_list  *l = arg;
	struct cloud_ou *ou = &l->ous[l->count];

	if (l->count == OUS_MAX)
		return err_set(e, RC_TOO_LARGE, "more than %d OUs", OUS_MAX);
	if (!json_take_text(from, "Id", l->arena, &ou->id) || !json_take_text(from, "Name", l->arena, &ou->name) ||
	    !fits(ou->id, CLOUD_ID_MAX))
		return err_set(e, RC_CORRUPT, "an OU without an id");
	ou->parent_id = l->parent;
	l->count++;
	return RC_OK;
}

/* parent empty: the roots. */
static enum rc list_below(struct aws_organisation *o, struct str parent, struct ou_list *l, struct err *e)
{
	struct aws_paging p = { .call = { .op = parent.n ? &aws_list_ous : &aws_list_roots,
		                          .body = JSON_OF(l->arena, member_if_any(member_str("ParentId", parent))),
		                          .ms = LOOK_MS },
		                .token = "NextToken",
		                .list = parent.n ? "OrganizationalUnits" : "Roots",
		                .each = add_ou,
		                .arg = l };

	l->parent = parent;
	return aws_pages(o->o.management, &p, e);
}

struct parent {
	struct arena *arena;
	struct str    id;
	bool          is_known;
};

static enum rc take_parent(void *arg, const json_t *from, struct err *e)
{
	struct parent *p = arg;

	p->is_known = json_take_text(from, "Id", p->arena, &p->id) && fits(p->id, CLOUD_ID_MAX);
	return p->is_known ? RC_OK : unreadable(&aws_list_parents, e);
}

/* There is one; as with every list, the page with it may come behind an empty one. */
static enum rc ask_parent(struct aws_organisation *o, struct str child, long ms, struct arena *a, struct str *ret,
                          struct err *e)
{
	struct parent     parent = { .arena = a };
	struct aws_paging p = {
		.call = { .op = &aws_list_parents, .body = JSON_OF(a, member_str("ChildId", child)), .ms = ms },
		.token = "NextToken",
		.list = "Parents",
		.each = take_parent,
		.arg = &parent,
		.is_over = &parent.is_known
	};
	enum rc rc = aws_pages(o->o.management, &p, e);

	if (rc)
		return rc;
	*ret = parent.id;
	return parent.is_known ? RC_OK : unreadable(&aws_list_parents, e);
}

/* The sandbox OU itself, unless it is the root. */
static enum rc add_sandbox_ou(struct aws_organisation *o, struct ou_list *l, struct err *e)
{
	struct cloud_ou *ou = &l->ous[l->count];
	enum rc          rc;

	for (size_t i = 0; i < l->count; i++)
		if (str_eq(l->ous[i].id, o->o.sandbox_ou))
			return RC_OK;
	if ((rc = ask_parent(o, o->o.sandbox_ou, LOOK_MS, l->arena, &ou->parent_id, e)))
		return err_wrap(e, rc, "the sandbox OU %.*s", STR_ARG(o->o.sandbox_ou));
	ou->id = o->o.sandbox_ou;
	ou->name = STR("sandbox");
	l->count++;
	return RC_OK;
}

/* The ids in the parameter's JSON, under the names that the pool has for them. */
static enum rc read_pool_config(const json_t *ids, struct aws_organisation *o, struct ou_list *l, struct err *e)
{
	static const struct {
		const char *member, *name;
	} rows[] = { { "availableOuId", "Available" },
		     { "activeOuId", "Active" },
		     { "frozenOuId", "Frozen" },
		     { "cleanupOuId", "CleanUp" },
		     { "quarantineOuId", "Quarantine" },
		     { "entryOuId", "Entry" },
		     { "exitOuId", "Exit" } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct cloud_ou *ou = &l->ous[l->count];

		if (!json_take_text(ids, rows[i].member, l->arena, &ou->id) || !fits(ou->id, CLOUD_ID_MAX))
			return err_set(e, RC_CORRUPT, "%.*s must be JSON with the id of an OU as %s",
			               STR_ARG(o->o.pool_config_param), rows[i].member);
		ou->name = str_from(rows[i].name);
		ou->parent_id = o->o.sandbox_ou;
		l->count++;
	}
	return RC_OK;
}

static enum rc ask_pool_config(struct aws_organisation *o, struct ou_list *l, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL, *ids = NULL;
	struct str                  value, body = JSON_OF(l->arena, member_str("Name", o->o.pool_config_param),
	                                                  member_bool("WithDecryption", true));
	enum rc                     rc = aws_do(o->o.own, &aws_get_parameter, body, l->arena, &answer, e);

	if (rc)
		return err_wrap(e, rc, "%.*s", STR_ARG(o->o.pool_config_param));
	if (!json_get_text(json_object_get(answer, "Parameter"), "Value", &value) || !fits(value, POOL_CONFIG_MAX))
		return unreadable(&aws_get_parameter, e);
	if ((rc = json_parse(value, &ids, e)))
		return err_wrap(e, RC_CORRUPT, "%.*s", STR_ARG(o->o.pool_config_param));
	return read_pool_config(ids, o, l, e);
}

static enum rc ask_all_ous(struct aws_organisation *o, struct ou_list *l, struct err *e)
{
	enum rc rc;

	if ((rc = list_below(o, STR(""), l, e)) || (rc = add_sandbox_ou(o, l, e)))
		return rc;
	return o->o.pool_config_param.n ? ask_pool_config(o, l, e) : list_below(o, o->o.sandbox_ou, l, e);
}

static void copy_ous(const struct cloud_ou *from, size_t count, struct arena *a, struct cloud_ou **ret)
{
	struct cloud_ou *to = arena_alloc(a, (count + 1) * sizeof(*to));

	for (size_t i = 0; i < count; i++)
		to[i] = (struct cloud_ou){ str_dup(a, from[i].id), str_dup(a, from[i].parent_id),
			                   str_dup(a, from[i].name) };
	*ret = to;
}

static bool recall_ous(struct aws_organisation *o, struct arena *a, struct cloud_ou **ret, size_t *ret_count)
{
	bool is_known;

	LOCKED(&o->lock);
	is_known = o->ou_count && clock_mono(o->o.clock).ms - o->ous_at.ms < OUS_KEPT_MS;
	if (is_known) {
		copy_ous(o->ous, o->ou_count, a, ret);
		*ret_count = o->ou_count;
	}
	return is_known;
}

static enum rc list_ous(struct organisation *port, struct arena *a, struct cloud_ou **ret, size_t *ret_count,
                        struct err *e)
{
	struct aws_organisation *o = of(port);
	struct ou_list           l = { .arena = a };
	enum rc                  rc;

	if (recall_ous(o, a, ret, ret_count))
		return RC_OK;
	l.ous = arena_alloc(a, (OUS_MAX + 8) * sizeof(*l.ous));
	if ((rc = ask_all_ous(o, &l, e)))
		return rc;
	pthread_mutex_lock(&o->lock);
	arena_reset(&o->ous_arena);
	copy_ous(l.ous, l.count, &o->ous_arena, &o->ous);
	o->ou_count = l.count;
	o->ous_at = clock_mono(o->o.clock);
	pthread_mutex_unlock(&o->lock);
	*ret = l.ous;
	*ret_count = l.count;
	return RC_OK;
}

/* --- where an account is --- */

static void note_move(struct aws_organisation *o, struct str account, struct str from)
{
	struct moved *m;

	LOCKED(&o->lock);
	m = &o->moved[o->moves++ % MOVES_KEPT];
	*m = (struct moved){ .at = mono_now() };
	(void)snprintf(m->account, sizeof(m->account), "%.*s", STR_ARG(account));
	(void)snprintf(m->from, sizeof(m->from), "%.*s", STR_ARG(from));
}

/* Did we move it away from there a moment ago? Only its newest move counts: it may have been moved back. */
static bool is_stale(struct aws_organisation *o, struct str account, struct str place)
{
	const struct moved *newest = NULL;

	LOCKED(&o->lock);
	for (size_t i = 0; i < MOVES_KEPT && i < o->moves; i++) {
		const struct moved *m = &o->moved[(o->moves - 1 - i) % MOVES_KEPT];

		if (!newest && str_eq(str_from(m->account), account))
			newest = m;
	}
	return newest && mono_now().ms - newest->at.ms < MOVE_FRESH_MS && str_eq(str_from(newest->from), place);
}

static enum rc find_place(struct aws_organisation *o, struct str account, long ms, struct arena *a, struct str *ret,
                          struct err *e)
{
	struct mono end = { mono_now().ms + ms };
	enum rc     rc;

	for (int asks = 1;; asks++) {
		long left = (long)(end.ms - mono_now().ms);

		if ((rc = ask_parent(o, account, left > 1 ? left : 1, a, ret, e)))
			return rc;
		if (asks == STALE_ASKS || !is_stale(o, account, *ret) || end.ms - mono_now().ms <= o->o.stale_ms)
			return RC_OK;
		mono_sleep(o->o.stale_ms);
	}
}

static enum rc find_parent(struct organisation *port, struct str account_id, struct arena *a, struct str *ret_ou_id,
                           struct err *e)
{
	return find_place(of(port), account_id, LOOK_MS, a, ret_ou_id, e);
}

/* --- moving --- */

static enum rc refuse_place(struct str account, struct str place, struct str from, struct str to, struct err *e)
{
	if (str_eq(place, to))
		return err_set_code(e, RC_CONFLICT, "DuplicateAccountException", "account %.*s is in %.*s already",
		                    STR_ARG(account), STR_ARG(to));
	return err_set_code(e, RC_CONFLICT, "SourceParentNotFoundException", "account %.*s is in %.*s, not in %.*s",
	                    STR_ARG(account), STR_ARG(place), STR_ARG(from));
}

/* It may have happened. */
static enum rc look_after(struct aws_organisation *o, struct str account, struct str from, struct str to,
                          struct arena *a, const struct err *why, struct err *e)
{
	struct str place;

	if (ask_parent(o, account, LAST_LOOK_MS, a, &place, NULL) || str_eq(place, from))
		return err_set(e, RC_TIMEOUT, "%s", why->msg);
	return str_eq(place, to) ? RC_OK : refuse_place(account, place, from, to, e);
}

static enum rc do_move(struct aws_organisation *o, struct str account, struct str from, struct str to, struct arena *a,
                       struct err *e)
{
	struct str place;
	struct str body = JSON_OF(a, member_str("AccountId", account), member_str("SourceParentId", from),
	                          member_str("DestinationParentId", to));
	struct err why = { 0 };
	enum rc    rc = find_place(o, account, MOVE_LOOK_MS, a, &place, e);

	if (rc)
		return rc;
	if (str_eq(place, to) || !str_eq(place, from))
		return refuse_place(account, place, from, to, e);
	rc = aws_do_within(o->o.management, &aws_move_account, MOVE_MS, body, a, NULL, &why);
	rc = rc == RC_TIMEOUT ? look_after(o, account, from, to, a, &why, e) : err_pass(e, rc, &why);
	if (!rc)
		note_move(o, account, from);
	return rc;
}

static enum rc move(struct organisation *port, struct str account_id, struct str from_ou_id, struct str to_ou_id,
                    struct err *e)
{
	struct aws_organisation         *o = of(port);
	CLEANUP(arena_fini) struct arena a = { 0 };

	return forget_if_gone(o, do_move(o, account_id, from_ou_id, to_ou_id, &a, e));
}

/* --- accounts --- */

/* State; before 2026-09 it was called Status. */
static bool is_active(const json_t *account)
{
	struct str state = STR("");

	if ((!json_get_text(account, "State", &state) || !state.n) && !json_get_text(account, "Status", &state))
		return false;
	return !state.n || str_eq(state, STR("ACTIVE"));
}

static bool read_account(const json_t *from, struct arena *a, struct cloud_account *ret)
{
	*ret = (struct cloud_account){ .joined_ms = 0 };
	if (!aws_get_time(from, "JoinedTimestamp", &ret->joined_ms))
		ret->joined_ms = 0;
	return json_take_text(from, "Id", a, &ret->id) && str_is_digits(ret->id, 12) &&
	       json_take_text(from, "Name", a, &ret->name) && json_take_text(from, "Email", a, &ret->email);
}

static struct str keep_token(struct aws_organisation *o, struct str ou, struct str token, struct arena *a)
{
	char           random[ID_UUID_SIZE];
	struct cursor *c;

	if (!token.n)
		return STR("");
	id_uuid(random);
	LOCKED(&o->lock);
	c = &o->cursors[o->cursor_count++ % CURSORS_KEPT];
	free(c->token);
	c->token = mem_alloc(token.n + 1);
	memcpy(c->token, token.p, token.n);
	(void)snprintf(c->id, sizeof(c->id), "%.*s", CURSOR_ID_MAX, random);
	(void)snprintf(c->ou, sizeof(c->ou), "%.*s", STR_ARG(ou));
	return str_dup(a, str_from(c->id));
}

static enum rc recall_token(struct aws_organisation *o, struct str ou, struct str cursor, struct arena *a,
                            struct str *ret, struct err *e)
{
	*ret = STR("");
	if (!cursor.n)
		return RC_OK;
	LOCKED(&o->lock);
	for (size_t i = 0; i < CURSORS_KEPT; i++)
		if (o->cursors[i].token && str_eq(str_from(o->cursors[i].id), cursor) &&
		    str_eq(str_from(o->cursors[i].ou), ou))
			*ret = str_dup(a, str_from(o->cursors[i].token));
	return ret->n ? RC_OK
	              : err_set(e, RC_INVALID, "the listing of %.*s cannot go on from here; begin again", STR_ARG(ou));
}

static enum rc read_page(const json_t *answer, struct str ou, struct arena *a, struct cloud_account_page *ret,
                         struct err *e)
{
	const json_t *items = json_object_get(answer, "Accounts"), *item;
	size_t        i;

	ret->items = arena_alloc(a, (json_array_size(items) + 1) * sizeof(*ret->items));
	ret->count = 0;
	json_array_foreach(items, i, item)
	{
		struct cloud_account *account = &ret->items[ret->count];

		if (!is_active(item))
			continue;
		if (!read_account(item, a, account))
			return unreadable(&aws_list_accounts, e);
		account->parent_id = str_dup(a, ou);
		ret->count++;
	}
	return RC_OK;
}

static enum rc list_accounts(struct organisation *port, struct str ou_id, struct str cursor, struct arena *a,
                             struct cloud_account_page *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct aws_organisation    *o = of(port);
	struct str                  token, next;
	enum rc                     rc = recall_token(o, ou_id, cursor, a, &token, e);

	if (rc)
		return rc;
	rc = aws_do(o->o.management, &aws_list_accounts,
	            JSON_OF(a, member_str("ParentId", ou_id), member_int("MaxResults", CLOUD_ACCOUNT_PAGE),
	                    member_if_any(member_str("NextToken", token))),
	            a, &answer, e);
	if (rc)
		return forget_if_gone(o, rc);
	if (!json_get_text(answer, "NextToken", &next))
		return unreadable(&aws_list_accounts, e);
	if ((rc = read_page(answer, ou_id, a, ret, e)))
		return rc;
	ret->next = keep_token(o, ou_id, next, a);
	return RC_OK;
}

static enum rc describe(struct organisation *port, struct str account_id, struct arena *a, struct cloud_account *ret,
                        struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct aws_organisation    *o = of(port);
	const json_t               *account;
	enum rc rc = aws_do(o->o.management, &aws_describe_account, JSON_OF(a, member_str("AccountId", account_id)), a,
	                    &answer, e);

	if (rc)
		return rc;
	account = json_object_get(answer, "Account");
	if (!read_account(account, a, ret))
		return unreadable(&aws_describe_account, e);
	if (!is_active(account))
		return err_set(e, RC_CONFLICT, "account %.*s is not active: AWS has suspended it or is closing it",
		               STR_ARG(account_id));
	return find_place(o, account_id, LOOK_MS, a, &ret->parent_id, e);
}

/* --- tags --- */

struct tag_list {
	struct arena     *arena;
	struct cloud_tag *tags; /* TAGS_LIMIT */
	size_t            count;
};

static enum rc add_tag(void *arg, const json_t *item, struct err *e)
{
	struct tag_list  *l = arg;
	struct cloud_tag *tag = &l->tags[l->count];

	if (l->count == TAGS_LIMIT || !json_take_text(item, "Key", l->arena, &tag->name) ||
	    !json_take_text(item, "Value", l->arena, &tag->value))
		return unreadable(&aws_list_tags, e);
	l->count++;
	return RC_OK;
}

static enum rc get_tags(struct organisation *port, struct str account_id, struct arena *a, struct cloud_tag **ret,
                        size_t *ret_count, struct err *e)
{
	struct tag_list   l = { .arena = a, .tags = arena_alloc(a, TAGS_LIMIT * sizeof(*l.tags)) };
	struct str        body = JSON_OF(a, member_str("ResourceId", account_id));
	struct aws_paging p = { .call = { .op = &aws_list_tags, .body = body },
		                .token = "NextToken",
		                .list = "Tags",
		                .each = add_tag,
		                .arg = &l };
	enum rc           rc = aws_pages(of(port)->o.management, &p, e);

	if (rc)
		return rc;
	*ret = l.tags;
	*ret_count = l.count;
	return RC_OK;
}

static enum rc set_tags(struct organisation *port, struct str account_id, const struct cloud_tag *tags, size_t count,
                        struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       list = STR("");

	if (count > CLOUD_TAGS_MAX)
		return err_set_code(e, RC_TOO_LARGE, "ConstraintViolationException", "%zu tags at once; at most %d",
		                    count, CLOUD_TAGS_MAX);
	for (size_t i = 0; i < count; i++) {
		struct str tag = JSON_OF(&a, member_str("Key", tags[i].name), member_str("Value", tags[i].value));

		list = str_format(&a, "%.*s%s%.*s", STR_ARG(list), i ? "," : "", STR_ARG(tag));
	}
	return aws_do(of(port)->o.management, &aws_tag,
	              JSON_OF(&a, member_str("ResourceId", account_id),
	                      member_raw("Tags", str_format(&a, "[%.*s]", STR_ARG(list)))),
	              &a, NULL, e);
}

static enum rc remove_tag(struct organisation *port, struct str account_id, struct str name, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(buf_fini) struct buf     body = BUF(JSON_OF_MAX);
	struct json_out                  out = JSON_OUT(&body);

	JSON_PUT(&out, member_object(NULL), member_str("ResourceId", account_id));
	json_put_texts(&out, "TagKeys", &name, 1);
	json_close_object(&out);
	return aws_do(of(port)->o.management, &aws_untag, buf_str(&body), &a, NULL, e);
}

/* --- open and close --- */

static const struct organisation_ops ops = {
	list_ous, find_parent, move, list_accounts, describe, get_tags, set_tags, remove_tag,
};

struct aws_organisation *aws_organisation_new(const struct aws_organisation_options *o)
{
	struct aws_organisation *made = mem_new(struct aws_organisation);

	made->port.ops = &ops;
	made->o = *o;
	made->o.sandbox_ou = str_dup(&made->arena, o->sandbox_ou);
	made->o.pool_config_param = str_dup(&made->arena, o->pool_config_param);
	if (!made->o.stale_ms)
		made->o.stale_ms = STALE_MS;
	pthread_mutex_init(&made->lock, NULL);
	return made;
}

void aws_organisation_free(struct aws_organisation *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < CURSORS_KEPT; i++)
		free(o->cursors[i].token);
	pthread_mutex_destroy(&o->lock);
	arena_fini(&o->ous_arena);
	arena_fini(&o->arena);
	free(o);
}

struct organisation *aws_organisation_port(struct aws_organisation *o)
{
	return &o->port;
}

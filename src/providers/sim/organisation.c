/* SPDX-License-Identifier: Apache-2.0 */
/*
 * organisation.c - OUs, accounts, moves, tags.
 *
 * Always true:
 *   1. An account is in exactly one OU: its record names it.
 *   2. A move that is reported as done was done once, and one event tells of it; a move that was refused changed nothing, and one
 *      event with an errorCode tells of that. Account and event are one commit.                   [sim_move_run()]
 *   3. Whoever says where an account is and is wrong is refused, and so is a move to where it is already.
 *
 * OUs are made with the world and never change, so they are served from memory.
 */
#include <stdlib.h>

#include "base/json.h"
#include "providers/sim/cloud_ops.h"

enum { EVENT_SPREAD_MS = 300000, RESEND_MS = 900000, DIRT_MAX = 9 };

static struct sim_cloud *cloud_of(struct organisation *o)
{
	return CONTAINER_OF(o, struct sim_cloud, organisation);
}

static enum rc list_ous(struct organisation *o, struct arena *a, struct cloud_ou **ret, size_t *ret_count,
                        struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	struct cloud_ou  *ous = arena_alloc(a, SIM_OU_COUNT * sizeof(*ous));
	enum rc           rc = sim_call(c, WORLD_LIST_OUS, NULL, NULL, a, e);

	if (rc)
		return rc;
	for (int i = 0; i < SIM_OU_COUNT; i++)
		ous[i] = (struct cloud_ou){ .id = c->ou_ids[i],
			                    .parent_id = i ? c->ou_ids[SIM_ROOT] : STR(""),
			                    .name = str_from(sim_ou_names[i]) };
	*ret = ous;
	*ret_count = SIM_OU_COUNT;
	return RC_OK;
}

/* --- moves --- */

void sim_move_init(struct sim_move *m, struct sim_cloud *c, struct str account_id, struct str from, struct str to)
{
	int64_t delay = c->options.event_delay_ms;

	*m = (struct sim_move){ .cloud = c, .account_id = account_id, .from = from, .to = to };
	sim_faults_uuid(c->faults, m->event_id);
	sim_faults_uuid(c->faults, m->trail_id);
	sim_faults_uuid(c->faults, m->request_id);
	m->is_twice = sim_faults_hit(c->faults, WORLD_DUPLICATE_EVENTS);
	if (sim_faults_hit(c->faults, WORLD_REORDER_EVENTS))
		delay += (int64_t)(sim_faults_random(c->faults) % EVENT_SPREAD_MS);
	if (sim_faults_hit(c->faults, WORLD_LOSE_EVENTS))
		delay += RESEND_MS;
	m->delays[0] = delay;
	m->delays[1] = delay + (m->is_twice ? (int64_t)(sim_faults_random(c->faults) % EVENT_SPREAD_MS) : 0);
}

/* Is it refused? Then why. */
static enum rc judge(struct sim_move *m, const struct sim_member *member)
{
	struct err *e = &m->refusal;

	if (!member)
		return err_set_code(e, RC_NOT_FOUND, "AccountNotFoundException", "there is no account %.*s",
		                    STR_ARG(m->account_id));
	if (sim_find_ou(m->cloud, m->to) == SIM_OU_COUNT)
		return err_set_code(e, RC_NOT_FOUND, "DestinationParentNotFoundException", "there is no OU %.*s",
		                    STR_ARG(m->to));
	if (str_eq(member->ou_id, m->to))
		return err_set_code(e, RC_CONFLICT, "DuplicateAccountException", "account %.*s is in %.*s already",
		                    STR_ARG(m->account_id), STR_ARG(m->to));
	if (!str_eq(member->ou_id, m->from))
		return err_set_code(e, RC_CONFLICT, "SourceParentNotFoundException",
		                    "account %.*s is in %.*s, not in %.*s", STR_ARG(m->account_id),
		                    STR_ARG(member->ou_id), STR_ARG(m->from));
	return RC_OK;
}

static enum rc apply_move(struct session *s, struct sim_move *m, struct sim_member *member, struct err *e)
{
	enum sim_ou_name to = sim_find_ou(m->cloud, m->to);
	bool             was_billed = sim_is_billed(sim_find_ou(m->cloud, member->ou_id));

	member->ou_id = m->to;
	member->moves++;
	if (to == SIM_OU_ACTIVE) { /* whoever gets it begins to use it */
		if (member->clean_at_ms && member->clean_at_ms <= session_now(s).ms)
			member->dirty = 0;
		member->clean_at_ms = 0;
		member->dirty += 1 + (int64_t)(str_hash(member->id, (uint64_t)member->moves) % DIRT_MAX);
	}
	session_put(s, &sim_member_type, member);
	if (was_billed == sim_is_billed(to))
		return RC_OK;
	return sim_note_rate(s, member->id, was_billed ? 0 : member->rate, e);
}

enum rc sim_move_run(struct session *s, void *arg, struct err *e)
{
	struct sim_move  *m = arg;
	struct sim_member member;
	bool              found;
	enum rc           rc = sim_find(s, &sim_member_type, m->account_id, &member, &found, e);

	if (rc)
		return rc;
	err_clear(&m->refusal);
	if (judge(m, found ? &member : NULL) == RC_OK && (rc = apply_move(s, m, &member, e)))
		return rc;
	sim_trail_add(s, m);
	return RC_OK;
}

static enum rc move(struct organisation *o, struct str account_id, struct str from, struct str to, struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	struct arena      a = { 0 };
	struct sim_move   m;
	enum rc           rc;

	if ((rc = sim_check_account(account_id, e)) || (rc = sim_check_text("source", from, CLOUD_ID_MAX, e)) ||
	    (rc = sim_check_text("destination", to, CLOUD_ID_MAX, e)) ||
	    (rc = sim_faults_before(c->faults, WORLD_MOVE, e)))
		return rc;
	sim_move_init(&m, c, account_id, from, to);
	rc = store_run(c->options.store, sim_move_run, &m, &a, e);
	arena_fini(&a);
	if (!rc && (rc = m.refusal.rc) && e)
		*e = m.refusal;
	return sim_faults_after(c->faults, WORLD_MOVE, rc, e);
}

/* --- reading --- */

struct account_call {
	struct str           id;
	struct cloud_account account;
	struct str           tags;
};

static struct cloud_account show_member(const struct sim_member *m)
{
	return (struct cloud_account){
		.id = m->id, .name = m->name, .email = m->email, .parent_id = m->ou_id, .joined_ms = m->joined_ms
	};
}

static enum rc read_account(struct session *s, void *arg, struct err *e)
{
	struct account_call *call = arg;
	struct sim_member    member;
	enum rc              rc = sim_get_member(s, call->id, &member, e);

	if (rc)
		return rc;
	call->account = show_member(&member);
	call->tags = member.tags;
	return RC_OK;
}

static enum rc describe(struct organisation *o, struct str account_id, struct arena *a, struct cloud_account *ret,
                        struct err *e)
{
	struct account_call call = { .id = account_id };
	enum rc             rc = sim_call(cloud_of(o), WORLD_DESCRIBE, read_account, &call, a, e);

	if (!rc)
		*ret = call.account;
	return rc;
}

static enum rc find_parent(struct organisation *o, struct str account_id, struct arena *a, struct str *ret_ou_id,
                           struct err *e)
{
	struct account_call call = { .id = account_id };
	enum rc             rc = sim_call(cloud_of(o), WORLD_FIND_PARENT, read_account, &call, a, e);

	if (!rc)
		*ret_ou_id = call.account.parent_id;
	return rc;
}

struct listing {
	struct str  ou_id, cursor;
	struct page page;
};

static enum rc read_ou(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;
	struct query    q = { .type = &sim_member_type,
		              .index = SIM_MEMBER_BY_OU,
		              .hash = value_text(l->ou_id),
		              .limit = CLOUD_ACCOUNT_PAGE,
		              .cursor = l->cursor };

	return session_query(s, &q, &l->page, e);
}

static enum rc list_accounts(struct organisation *o, struct str ou_id, struct str cursor, struct arena *a,
                             struct cloud_account_page *ret, struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	struct listing    l = { .ou_id = ou_id, .cursor = cursor };
	enum rc           rc;

	if (sim_find_ou(c, ou_id) == SIM_OU_COUNT)
		return err_set_code(e, RC_NOT_FOUND, "ParentNotFoundException", "there is no OU %.*s", STR_ARG(ou_id));
	rc = sim_call(c, WORLD_LIST_ACCOUNTS, read_ou, &l, a, e);
	if (rc)
		return rc;
	ret->items = arena_alloc(a, (l.page.count + 1) * sizeof(*ret->items));
	ret->count = l.page.count;
	ret->next = l.page.next;
	for (size_t i = 0; i < l.page.count; i++)
		ret->items[i] = show_member(page_record(&l.page, &sim_member_type, i));
	return RC_OK;
}

/* --- tags: one JSON object in the account's record --- */

static enum rc parse_tags(struct str text, json_t **ret, struct err *e)
{
	if (text.n)
		return json_parse(text, ret, e);
	*ret = json_object();
	return RC_OK;
}

static enum rc get_tags(struct organisation *o, struct str account_id, struct arena *a, struct cloud_tag **ret,
                        size_t *ret_count, struct err *e)
{
	CLEANUP(json_freep) json_t *tags = NULL;
	struct account_call         call = { .id = account_id };
	const char                 *name;
	json_t                     *value;
	size_t                      count = 0;
	enum rc                     rc = sim_call(cloud_of(o), WORLD_GET_TAGS, read_account, &call, a, e);

	if (rc || (rc = parse_tags(call.tags, &tags, e)))
		return rc;
	*ret = arena_alloc(a, (json_object_size(tags) + 1) * sizeof(**ret));
	json_object_foreach(tags, name, value)
	{
		struct str text = str_of(json_string_value(value), json_string_length(value));

		(*ret)[count++] = (struct cloud_tag){ str_dup(a, str_from(name)), str_dup(a, text) };
	}
	*ret_count = count;
	return RC_OK;
}

struct tagging {
	struct str              id;
	const struct cloud_tag *tags;
	size_t                  count;
};

static enum rc write_tags(struct session *s, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *all = NULL;
	const struct tagging       *t = arg;
	struct sim_member           member;
	char                       *text;
	enum rc                     rc;

	if ((rc = sim_get_member(s, t->id, &member, e)) || (rc = parse_tags(member.tags, &all, e)))
		return rc;
	for (size_t i = 0; i < t->count; i++)
		if (json_object_setn_new(all, t->tags[i].name.p, t->tags[i].name.n,
		                         json_stringn(t->tags[i].value.p, t->tags[i].value.n)))
			return err_set_code(e, RC_INVALID, "InvalidInputException", "a tag is not UTF-8");
	if (json_object_size(all) > CLOUD_TAGS_MAX)
		return err_set_code(e, RC_INVALID, "ConstraintViolationException",
		                    "account %.*s would have %zu tags, at most %d are allowed", STR_ARG(t->id),
		                    json_object_size(all), CLOUD_TAGS_MAX);
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	member.tags = str_dup(session_arena(s), str_from(text));
	free(text);
	session_put(s, &sim_member_type, &member);
	return RC_OK;
}

static enum rc set_tags(struct organisation *o, struct str account_id, const struct cloud_tag *tags, size_t count,
                        struct err *e)
{
	struct tagging t = { account_id, tags, count };
	struct arena   a = { 0 };
	enum rc        rc;

	for (size_t i = 0; i < count; i++)
		if ((rc = sim_check_text("a tag's name", tags[i].name, CLOUD_TAG_MAX / 2, e)) ||
		    (tags[i].value.n && (rc = sim_check_text("a tag's value", tags[i].value, CLOUD_TAG_MAX, e))))
			return rc;
	rc = sim_call(cloud_of(o), WORLD_SET_TAGS, write_tags, &t, &a, e);
	arena_fini(&a);
	return rc;
}

struct untagging {
	struct str id, name;
};

static enum rc remove_one_tag(struct session *s, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *all = NULL;
	const struct untagging     *u = arg;
	struct sim_member           member;
	char                       *text;
	enum rc                     rc;

	if ((rc = sim_get_member(s, u->id, &member, e)) || (rc = parse_tags(member.tags, &all, e)))
		return rc;
	if (json_object_deln(all, u->name.p, u->name.n))
		return RC_OK; /* it has no such tag */
	text = json_dumps(all, JSON_COMPACT | JSON_SORT_KEYS);
	member.tags = str_dup(session_arena(s), str_from(text));
	free(text);
	session_put(s, &sim_member_type, &member);
	return RC_OK;
}

static enum rc remove_tag(struct organisation *o, struct str account_id, struct str name, struct err *e)
{
	struct untagging u = { account_id, name };
	struct arena     a = { 0 };
	enum rc          rc = sim_check_text("a tag's name", name, CLOUD_TAG_MAX / 2, e);

	if (!rc)
		rc = sim_call(cloud_of(o), WORLD_REMOVE_TAG, remove_one_tag, &u, &a, e);
	arena_fini(&a);
	return rc;
}

const struct organisation_ops sim_organisation_ops = {
	list_ous, find_parent, move, list_accounts, describe, get_tags, set_tags, remove_tag,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * organisation.c - OUs, accounts, moves, tags; and CloudTrail, an outbox of events about moves.
 *
 * Always true:
 *   1. An account is in exactly one OU: its record names it.
 *   2. A move that is reported as done was done once, and one event tells of it; a move that was refused changed
 *      nothing, and one event with an errorCode tells of that. Account and event are one commit. [run_move()]
 *   3. A move from where the account is not is refused, and so is one to where it is already.
 *
 * The event is written in the transaction that moved the account, so there is one for each effect. It waits until it is
 * due and is handed out until it is acknowledged. A duplicate has the same event id, but its own place in the outbox. A
 * lost event is one that comes very late: it is sent again.
 *
 * OUs are made with the world and never change, so they are served from memory.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "providers/sim/cloud_private.h"

enum { EVENT_SPREAD_MS = 300000, RESEND_MS = 900000, DIRT_MAX = 9 };

static struct sim_cloud *cloud_of(struct organisation *o)
{
	return CONTAINER_OF(o, struct sim_cloud, organisation);
}

static enum rc list_ous(struct organisation *o, struct arena *a, struct cloud_ou **ret, size_t *ret_count,
                        struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	enum rc           rc = sim_call(c, WORLD_LIST_OUS, NULL, NULL, a, e);

	if (rc)
		return rc;
	*ret = arena_alloc(a, SIM_OU_COUNT * sizeof(**ret));
	*ret_count = SIM_OU_COUNT;
	for (int i = 0; i < SIM_OU_COUNT; i++)
		(*ret)[i] = (struct cloud_ou){ .id = c->ou_ids[i],
			                       .parent_id = i ? c->ou_ids[SIM_ROOT] : STR(""),
			                       .name = str_from(sim_ou_names[i]) };
	return RC_OK;
}

/* --- events --- */

/* Of our own calls, and of others' in the console. */
static const struct role {
	const char *id, *name, *session, *agent;
} ours = { "AROASIMLEASEHOLD0001", "LeaseholdOrganisation", "leasehold", "leasehold" },
  outsiders = { "AROASIMOUTSIDER00001", "AWSReservedSSO_AdministratorAccess", "outsider", "console.amazonaws.com" };

static struct str identity_of(struct arena *a, struct str account, const struct role *role, int64_t now_ms)
{
	struct str issuer = str_format(a, "arn:aws:iam::%.*s:role/%s", STR_ARG(account), role->name);
	struct str session = str_format(a, "arn:aws:sts::%.*s:assumed-role/%s/%s", STR_ARG(account), role->name,
	                                role->session);
	struct str context = JSON_OF(a,
	                             member_raw("sessionIssuer",
	                                        JSON_OF(a, member_word("type", "Role"),
	                                                member_word("principalId", role->id), member_str("arn", issuer),
	                                                member_str("accountId", account),
	                                                member_word("userName", role->name))),
	                             member_raw("attributes", JSON_OF(a, member_word("mfaAuthenticated", "false"),
	                                                              member_time("creationDate", now_ms))));

	return JSON_OF(a, member_word("type", "AssumedRole"),
	               member_str("principalId", str_format(a, "%s:%s", role->id, role->session)),
	               member_str("arn", session), member_str("accountId", account),
	               member_raw("sessionContext", context));
}

static struct str detail_of(struct arena *a, const struct sim_move *m, int64_t now_ms)
{
	const struct sim_cloud_options *options = &m->cloud->options;
	const struct role              *role = m->is_outsider ? &outsiders : &ours;
	struct str                      caller = m->is_outsider ? options->management_account : options->hub_account;
	struct str                      parameters = JSON_OF(a, member_str("accountId", m->account_id),
	                                                     member_str("sourceParentId", m->from),
	                                                     member_str("destinationParentId", m->to));

	return JSON_OF(a, member_word("eventVersion", "1.08"),
	               member_raw("userIdentity", identity_of(a, caller, role, now_ms)),
	               member_time("eventTime", now_ms), member_word("eventSource", "organizations.amazonaws.com"),
	               member_word("eventName", "MoveAccount"), member_word("awsRegion", "us-east-1"),
	               member_word("sourceIPAddress", "192.0.2.1"), member_word("userAgent", role->agent),
	               member_if(m->refusal.rc, member_word("errorCode", m->refusal.code)),
	               member_if(m->refusal.rc, member_word("errorMessage", m->refusal.msg)),
	               member_raw("requestParameters", parameters), member_raw("responseElements", STR("null")),
	               member_word("requestID", m->request_id), member_word("eventID", m->trail_id),
	               member_bool("readOnly", false), member_word("eventType", "AwsApiCall"),
	               member_bool("managementEvent", true),
	               member_str("recipientAccountId", options->management_account),
	               member_word("eventCategory", "Management"));
}

static void add_event(struct session *s, const struct sim_move *m)
{
	struct arena *a = session_arena(s);
	int64_t       now_ms = session_now(s).ms;
	struct str    body = JSON_OF(a, member_word("version", "0"), member_word("id", m->event_id),
	                             member_word("detail-type", "AWS API Call via CloudTrail"),
	                             member_word("source", "aws.organizations"),
	                             member_str("account", m->cloud->options.management_account),
	                             member_time("time", now_ms), member_word("region", "us-east-1"),
	                             member_raw("resources", STR("[]")), member_raw("detail", detail_of(a, m, now_ms)));

	for (int copy = 0; copy < (m->is_twice ? 2 : 1); copy++) {
		struct sim_event event = { .key = str_format(a, "%s#%d", m->event_id, copy),
			                   .lot = 1,
			                   .due_ms = now_ms + m->delays[copy],
			                   .body = body };

		session_add(s, &sim_event_type, &event);
	}
}

/* By the store's clock, which wrote the due times. */
static enum rc find_due(struct session *s, void *arg, struct err *e)
{
	struct sim_listing *l = arg;
	struct query        q = *l->q;

	q.has_sort_max = true;
	q.sort_max = session_now(s).ms;
	return session_query(s, &q, &l->page, e);
}

enum rc sim_cloud_take_events(struct sim_cloud *c, size_t max, struct arena *a, struct sim_due_event **ret,
                              size_t *ret_count, struct err *e)
{
	struct query       q = query_of(&sim_event_type, SIM_EVENT_DUE, value_int(1), max);
	struct sim_listing l = { .q = &q };
	enum rc            rc;

	assert(max > 0 && max <= SIM_EVENTS_MAX);
	rc = store_read(c->options.store, find_due, &l, a, e);
	if (rc)
		return rc;
	*ret = arena_alloc(a, (l.page.count + 1) * sizeof(**ret));
	*ret_count = l.page.count;
	for (size_t i = 0; i < l.page.count; i++) {
		const struct sim_event *event = page_record(&l.page, &sim_event_type, i);

		(*ret)[i] = (struct sim_due_event){ event->key, event->body };
	}
	return RC_OK;
}

struct dropping {
	const struct sim_due_event *events;
	size_t                      count;
};

static enum rc drop(struct session *s, void *arg, struct err *e)
{
	const struct dropping *d = arg;
	enum rc                rc = RC_OK;

	for (size_t i = 0; !rc && i < d->count; i++)
		rc = session_drop(s, &sim_event_type, d->events[i].key, NULL, e);
	return rc;
}

enum rc sim_cloud_drop_events(struct sim_cloud *c, const struct sim_due_event *events, size_t count, struct err *e)
{
	assert(count <= SIM_EVENTS_MAX);
	return store_run(c->options.store, drop, &(struct dropping){ events, count }, NULL, e);
}

/* --- moves --- */

/* Its ids, and when its event comes. */
static void draw(struct sim_move *m, struct sim_cloud *c)
{
	int64_t delay = c->options.event_delay_ms;

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
	if (to == SIM_OU_ACTIVE) { /* its new holder begins to use it */
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

/* RC_OK also when it was refused: the event of the refusal must be committed. */
static enum rc run_move(struct session *s, void *arg, struct err *e)
{
	struct sim_move  *m = arg;
	struct sim_member member;
	bool              found;
	enum rc           rc = session_find(s, &sim_member_type, m->account_id, &member, &found, e);

	if (rc)
		return rc;
	err_clear(&m->refusal);
	if (judge(m, found ? &member : NULL) == RC_OK && (rc = apply_move(s, m, &member, e)))
		return rc;
	add_event(s, m);
	return RC_OK;
}

enum rc sim_move(struct sim_cloud *c, struct str account_id, struct str from, struct str to, bool is_outsider,
                 struct err *e)
{
	struct sim_move m = {
		.cloud = c, .account_id = account_id, .from = from, .to = to, .is_outsider = is_outsider
	};
	enum rc rc;

	draw(&m, c);
	rc = store_run(c->options.store, run_move, &m, NULL, e);
	if (!rc && (rc = m.refusal.rc) && e)
		*e = m.refusal;
	return rc;
}

static enum rc move(struct organisation *o, struct str account_id, struct str from, struct str to, struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	enum rc           rc;

	if ((rc = sim_check_account(account_id, e)) || (rc = sim_check_text("source", from, CLOUD_ID_MAX, e)) ||
	    (rc = sim_check_text("destination", to, CLOUD_ID_MAX, e)) ||
	    (rc = sim_faults_before(c->faults, WORLD_MOVE, e)))
		return rc;
	rc = sim_move(c, account_id, from, to, false, e);
	return sim_faults_after(c->faults, WORLD_MOVE, rc, e);
}

/* --- reading --- */

struct account_call {
	struct str        id;
	struct sim_member member;
};

static struct cloud_account show_member(const struct sim_member *m)
{
	return (struct cloud_account){
		.id = m->id, .name = m->name, .email = m->email, .parent_id = m->ou_id, .joined_ms = m->joined_ms
	};
}

static enum rc read_member(struct session *s, void *arg, struct err *e)
{
	struct account_call *call = arg;

	return sim_get_member(s, call->id, &call->member, e);
}

static enum rc describe(struct organisation *o, struct str account_id, struct arena *a, struct cloud_account *ret,
                        struct err *e)
{
	struct account_call call = { .id = account_id };
	enum rc             rc = sim_call(cloud_of(o), WORLD_DESCRIBE, read_member, &call, a, e);

	if (!rc)
		*ret = show_member(&call.member);
	return rc;
}

static enum rc find_parent(struct organisation *o, struct str account_id, struct arena *a, struct str *ret_ou_id,
                           struct err *e)
{
	struct account_call call = { .id = account_id };
	enum rc             rc = sim_call(cloud_of(o), WORLD_FIND_PARENT, read_member, &call, a, e);

	if (!rc)
		*ret_ou_id = call.member.ou_id;
	return rc;
}

static enum rc list_accounts(struct organisation *o, struct str ou_id, struct str cursor, struct arena *a,
                             struct cloud_account_page *ret, struct err *e)
{
	struct sim_cloud *c = cloud_of(o);
	struct query      q = query_of(&sim_member_type, SIM_MEMBER_BY_OU, value_text(ou_id), CLOUD_ACCOUNT_PAGE);
	struct page       page;
	enum rc           rc;

	q.cursor = cursor;
	if (sim_find_ou(c, ou_id) == SIM_OU_COUNT)
		return err_set_code(e, RC_NOT_FOUND, "ParentNotFoundException", "there is no OU %.*s", STR_ARG(ou_id));
	if ((rc = sim_list(c, WORLD_LIST_ACCOUNTS, &q, a, &page, e)))
		return rc;
	ret->items = arena_alloc(a, (page.count + 1) * sizeof(*ret->items));
	ret->count = page.count;
	ret->next = page.next;
	for (size_t i = 0; i < page.count; i++)
		ret->items[i] = show_member(page_record(&page, &sim_member_type, i));
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
	enum rc                     rc = sim_call(cloud_of(o), WORLD_GET_TAGS, read_member, &call, a, e);

	if (rc || (rc = parse_tags(call.member.tags, &tags, e)))
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
	bool                    is_removal; /* of the only one */
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
	if (t->is_removal && json_object_deln(all, t->tags[0].name.p, t->tags[0].name.n))
		return RC_OK; /* it has no such tag */
	for (size_t i = 0; !t->is_removal && i < t->count; i++)
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
	struct tagging t = { account_id, tags, count, false };
	enum rc        rc;

	for (size_t i = 0; i < count; i++)
		if ((rc = sim_check_text("a tag's name", tags[i].name, CLOUD_TAG_MAX / 2, e)) ||
		    (tags[i].value.n && (rc = sim_check_text("a tag's value", tags[i].value, CLOUD_TAG_MAX, e))))
			return rc;
	return sim_call(cloud_of(o), WORLD_SET_TAGS, write_tags, &t, NULL, e);
}

static enum rc remove_tag(struct organisation *o, struct str account_id, struct str name, struct err *e)
{
	struct tagging t = { account_id, &(struct cloud_tag){ .name = name }, 1, true };
	enum rc        rc = sim_check_text("a tag's name", name, CLOUD_TAG_MAX / 2, e);

	return rc ? rc : sim_call(cloud_of(o), WORLD_REMOVE_TAG, write_tags, &t, NULL, e);
}

const struct organisation_ops sim_organisation_ops = {
	list_ous, find_parent, move, list_accounts, describe, get_tags, set_tags, remove_tag,
};

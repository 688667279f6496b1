/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trail.c - CloudTrail: an outbox of events about moves.
 *
 * The event is written in the transaction that moved the account, so there is one for each effect. It waits until it is due and is
 * handed out until whoever takes it says that it has it. A duplicate has the same event id, but a place of its own in the outbox.
 * A lost event is one that comes very late: it is sent again.
 */
#include <assert.h>

#include "base/buf.h"
#include "base/json.h"
#include "providers/sim/cloud_ops.h"

/* Of our own calls, and of others' in the console. */
static const struct role {
	const char *id, *name, *session, *agent;
} ours = { "AROASIMLEASEHOLD0001", "LeaseholdOrganisation", "leasehold", "leasehold" },
  outsiders = { "AROASIMOUTSIDER00001", "AWSReservedSSO_AdministratorAccess", "outsider", "console.amazonaws.com" };

static void put_identity(struct json_out *o, struct arena *a, struct str account, const struct role *role,
                         struct str time)
{
	json_put_object(o, "userIdentity");
	json_put_str(o, "type", STR("AssumedRole"));
	json_put_str(o, "principalId", str_format(a, "%s:%s", role->id, role->session));
	json_put_str(o, "arn",
	             str_format(a, "arn:aws:sts::%.*s:assumed-role/%s/%s", STR_ARG(account), role->name,
	                        role->session));
	json_put_str(o, "accountId", account);
	json_put_object(o, "sessionContext");
	json_put_object(o, "sessionIssuer");
	json_put_str(o, "type", STR("Role"));
	json_put_str(o, "principalId", str_from(role->id));
	json_put_str(o, "arn", str_format(a, "arn:aws:iam::%.*s:role/%s", STR_ARG(account), role->name));
	json_put_str(o, "accountId", account);
	json_put_str(o, "userName", str_from(role->name));
	json_close_object(o);
	json_put_object(o, "attributes");
	json_put_str(o, "mfaAuthenticated", STR("false"));
	json_put_str(o, "creationDate", time);
	json_close_object(o);
	json_close_object(o);
	json_close_object(o);
}

static void put_detail(struct json_out *o, struct arena *a, const struct sim_move *m, struct str time)
{
	const struct sim_cloud_options *options = &m->cloud->options;
	const struct role              *role = m->is_outsider ? &outsiders : &ours;

	json_put_object(o, "detail");
	json_put_str(o, "eventVersion", STR("1.08"));
	put_identity(o, a, m->is_outsider ? options->management_account : options->hub_account, role, time);
	json_put_str(o, "eventTime", time);
	json_put_str(o, "eventSource", STR("organizations.amazonaws.com"));
	json_put_str(o, "eventName", STR("MoveAccount"));
	json_put_str(o, "awsRegion", STR("us-east-1"));
	json_put_str(o, "sourceIPAddress", STR("192.0.2.1"));
	json_put_str(o, "userAgent", str_from(role->agent));
	if (m->refusal.rc) {
		json_put_str(o, "errorCode", str_from(m->refusal.code));
		json_put_str(o, "errorMessage", str_from(m->refusal.msg));
	}
	json_put_object(o, "requestParameters");
	json_put_str(o, "accountId", m->account_id);
	json_put_str(o, "sourceParentId", m->from);
	json_put_str(o, "destinationParentId", m->to);
	json_close_object(o);
	json_put_null(o, "responseElements");
	json_put_str(o, "requestID", str_from(m->request_id));
	json_put_str(o, "eventID", str_from(m->trail_id));
	json_put_bool(o, "readOnly", false);
	json_put_str(o, "eventType", STR("AwsApiCall"));
	json_put_bool(o, "managementEvent", true);
	json_put_str(o, "recipientAccountId", options->management_account);
	json_put_str(o, "eventCategory", STR("Management"));
	json_close_object(o);
}

static struct str write_body(struct arena *a, const struct sim_move *m, struct wall now)
{
	char            text[ISO_TIME_SIZE];
	struct str      time = iso_time(wall_sec(now), text);
	struct json_out o;
	struct buf      b;
	struct str      body;

	buf_init(&b, SIM_EVENT_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "version", STR("0"));
	json_put_str(&o, "id", str_from(m->event_id));
	json_put_str(&o, "detail-type", STR("AWS API Call via CloudTrail"));
	json_put_str(&o, "source", STR("aws.organizations"));
	json_put_str(&o, "account", m->cloud->options.management_account);
	json_put_str(&o, "time", time);
	json_put_str(&o, "region", STR("us-east-1"));
	json_put_array(&o, "resources");
	json_close_array(&o);
	put_detail(&o, a, m, time);
	json_close_object(&o);
	assert(!b.is_full);
	body = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return body;
}

void sim_trail_add(struct session *s, const struct sim_move *m)
{
	struct str body = write_body(session_arena(s), m, session_now(s));

	for (int copy = 0; copy < (m->is_twice ? 2 : 1); copy++) {
		struct sim_event event = { .key = str_format(session_arena(s), "%s#%d", m->event_id, copy),
			                   .lot = 1,
			                   .due_ms = session_now(s).ms + m->delays[copy],
			                   .body = body };

		session_add(s, &sim_event_type, &event);
	}
}

struct taking {
	size_t      max;
	struct page page;
};

static enum rc find_due(struct session *s, void *arg, struct err *e)
{
	struct taking *t = arg;
	struct query   q = { .type = &sim_event_type,
		             .index = SIM_EVENT_DUE,
		             .hash = value_int(1),
		             .has_sort_max = true,
		             .sort_max = session_now(s).ms,
		             .limit = t->max };

	return session_query(s, &q, &t->page, e);
}

enum rc sim_cloud_take_events(struct sim_cloud *c, size_t max, struct arena *a, struct sim_due_event **ret,
                              size_t *ret_count, struct err *e)
{
	struct taking         t = { .max = max };
	struct sim_due_event *events;
	enum rc               rc;

	assert(max > 0 && max <= SIM_EVENTS_MAX);
	rc = store_read(c->options.store, find_due, &t, a, e);
	if (rc)
		return rc;
	events = arena_alloc(a, (t.page.count + 1) * sizeof(*events));
	for (size_t i = 0; i < t.page.count; i++) {
		const struct sim_event *event = page_record(&t.page, &sim_event_type, i);

		events[i] = (struct sim_due_event){ event->key, event->body };
	}
	*ret = events;
	*ret_count = t.page.count;
	return RC_OK;
}

struct dropping {
	const struct sim_due_event *events;
	size_t                      count;
};

static enum rc drop(struct session *s, void *arg, struct err *e)
{
	const struct dropping *d = arg;
	struct sim_event       event;

	for (size_t i = 0; i < d->count; i++) {
		bool    found;
		enum rc rc = sim_find(s, &sim_event_type, d->events[i].key, &event, &found, e);

		if (rc)
			return rc;
		if (found)
			session_delete(s, &sim_event_type, d->events[i].key);
	}
	return RC_OK;
}

enum rc sim_cloud_drop_events(struct sim_cloud *c, const struct sim_due_event *events, size_t count, struct err *e)
{
	struct dropping d = { events, count };
	struct arena    a = { 0 };
	enum rc         rc;

	assert(count <= SIM_EVENTS_MAX);
	rc = store_run(c->options.store, drop, &d, &a, e);
	arena_fini(&a);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intake.c - events from outside become events of ours, once each.
 *
 * An inbox has a name, its source, such as "cloudtrail". What comes in is an event in the envelope of EventBridge
 * (version, id, detail-type, source, account, time, region, resources, detail); id and detail-type are required, all
 * else may be missing. Of it we keep:
 *
 *   type      SOURCE:NAME, so that the routing table can say "cloudtrail:*" or "cloudtrail:MoveAccount", and no
 *             outsider can make an event that looks like one of our own. NAME is the detail-type; for calls that
 *             CloudTrail reports it is the name of the call, and ".Failed" is added when the call had an error, so that
 *             a failed MoveAccount is not taken for a move.
 *   subject   account/ID for MoveAccount, so that all moves of one account are handled in order; else what the event's
 *             own "subject" says; else source/id
 *   detail    the whole outside event as it came, its own id, time and detail included: nothing is lost
 *   source, account, region, resources   as they came; the inbox's name when there is no source
 *   actor     inbox/SOURCE
 *
 * The time is ours, the time of arrival: an outsider's clock does not decide how long an event is kept or where it
 * stands in the log.
 *
 * Always true:
 *   1. The trace of an outside event (`seen`, by source and id) and our event are one commit: it is taken once, or not
 *      yet. [intake_store()]
 *   2. A bad record is rejected alone and says why; its neighbours are taken. [read_record()]
 *   3. Everything from outside has a limit: bytes, records, depth, each text.
 *
 * Not here: who may send (http/), what an event means (the handlers of the queues it is routed to).
 */
#include "kernel/edge/intake.h"

#include "base/arena.h"
#include "base/json.h"
#include "kernel/defect.h"
#include "kernel/event.h"

enum {
	SOURCE_MAX = 32,
	OUTSIDE_ID_MAX = 128,
	OUTSIDE_SOURCE_MAX = 128,
	PLACE_MAX = 64,
	RESOURCES_MAX = 4096,
	ACCOUNT_DIGITS = 12
};

/* What one body is read with. */
struct reader {
	struct str    source;
	struct arena *arena;
};

/* --- texts --- */

static bool is_visible(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] <= ' ' || text.p[i] == 0x7f)
			return false;
	return true;
}

/* A member that may be missing; visible characters only. */
static enum rc read_text(const json_t *object, const char *name, size_t max, struct str *ret, struct err *e)
{
	if (!json_get_text(object, name, ret) || ret->n > max || !is_visible(*ret))
		return err_set(e, RC_INVALID,
		               "%s: must be text of at most %zu bytes without blanks and control characters", name,
		               max);
	return RC_OK;
}

enum rc intake_check_detail(struct str detail, const char *what, struct err *e)
{
	int depth = json_depth(detail);

	if (detail.n > DETAIL_MAX)
		return err_set(e, RC_INVALID, "%s has %zu bytes; at most %d are accepted", what, detail.n, DETAIL_MAX);
	if (depth > INTAKE_DEPTH_MAX)
		return err_set(e, RC_INVALID, "%s is nested %d levels deep; at most %d are accepted", what, depth,
		               INTAKE_DEPTH_MAX);
	return RC_OK;
}

/* --- one event --- */

/* MoveAccount for a call that CloudTrail reports, the detail-type for all else. */
static enum rc read_name(const json_t *event, struct arena *a, struct str *ret, struct err *e)
{
	const json_t *detail = json_object_get(event, "detail");
	const json_t *error = json_object_get(detail, "errorCode");
	struct str    name, call;

	if (!json_get_text(event, "detail-type", &name) || !name.n)
		return err_set(e, RC_INVALID, "detail-type: is required, a text that says what happened");
	if (str_starts_with(name, STR("AWS API Call via CloudTrail")) && json_get_text(detail, "eventName", &call) &&
	    call.n) {
		name = call;
		if (error && !json_is_null(error))
			name = str_format(a, "%.*s.Failed", STR_ARG(call));
	}
	*ret = name;
	return RC_OK;
}

static enum rc read_type(const struct reader *r, const json_t *event, struct str *ret, struct err *e)
{
	struct str name;
	enum rc    rc = read_name(event, r->arena, &name, e);

	if (rc)
		return rc;
	if (r->source.n + 1 + name.n > EVENT_TYPE_MAX || !str_is_of(name, "a-zA-Z0-9 ._:/()-") || name.p[0] == ' ' ||
	    name.p[name.n - 1] == ' ')
		return err_set(
		        e, RC_INVALID,
		        "detail-type: must be at most %zu bytes of letters, digits, blanks and ._-:/(), as must the "
		        "name of a call",
		        EVENT_TYPE_MAX - r->source.n - 1);
	*ret = str_format(r->arena, "%.*s:%.*s", STR_ARG(r->source), STR_ARG(name));
	return RC_OK;
}

/* The account that a MoveAccount is about, or nothing. */
static struct str moved_account(const json_t *event)
{
	const json_t *detail = json_object_get(event, "detail");
	struct str    name, account;

	if (!json_get_text(detail, "eventName", &name) || !str_eq(name, STR("MoveAccount")))
		return STR("");
	if (!json_get_text(json_object_get(detail, "requestParameters"), "accountId", &account) ||
	    !str_is_digits(account, ACCOUNT_DIGITS))
		return STR("");
	return account;
}

static enum rc read_subject(const struct reader *r, const json_t *event, struct intake_record *ret, struct err *e)
{
	struct str account = moved_account(event), subject;
	enum rc    rc = read_text(event, "subject", SUBJECT_MAX, &subject, e);

	if (rc)
		return rc;
	if (account.n)
		ret->event.subject = str_format(r->arena, "account/%.*s", STR_ARG(account));
	else if (subject.n)
		ret->event.subject = str_dup(r->arena, subject);
	else
		ret->event.subject = str_format(r->arena, "%.*s/%.*s", STR_ARG(r->source), STR_ARG(ret->id));
	return RC_OK;
}

static enum rc read_places(const struct reader *r, const json_t *event, struct event *ret, struct err *e)
{
	const json_t *resources = json_object_get(event, "resources");
	struct str    source, account, region;
	enum rc       rc;

	if ((rc = read_text(event, "source", OUTSIDE_SOURCE_MAX, &source, e)) ||
	    (rc = read_text(event, "account", PLACE_MAX, &account, e)) ||
	    (rc = read_text(event, "region", PLACE_MAX, &region, e)))
		return rc;
	if (resources && !json_is_null(resources) && !json_is_array(resources))
		return err_set(e, RC_INVALID, "resources: must be a list");
	ret->source = source.n ? str_dup(r->arena, source) : r->source;
	ret->account = str_dup(r->arena, account);
	ret->region = str_dup(r->arena, region);
	if (json_array_size(resources))
		ret->resources = json_dump(r->arena, resources);
	if (ret->resources.n > RESOURCES_MAX)
		return err_set(e, RC_INVALID, "resources: must be at most %d bytes", RESOURCES_MAX);
	return RC_OK;
}

static enum rc read_id(const struct reader *r, const json_t *event, struct str *ret, struct err *e)
{
	struct str id;

	if (!json_get_text(event, "id", &id) || !id.n || id.n > OUTSIDE_ID_MAX || !is_visible(id))
		return err_set(e, RC_INVALID, "id: is required, 1 to %d bytes without blanks and control characters",
		               OUTSIDE_ID_MAX);
	*ret = str_dup(r->arena, id);
	return RC_OK;
}

static enum rc read_event(const struct reader *r, const json_t *event, struct intake_record *ret, struct err *e)
{
	const json_t *detail = json_object_get(event, "detail");
	enum rc       rc;

	if (!json_is_object(event))
		return err_set(e, RC_INVALID, "an event must be an object with id, detail-type and detail");
	if ((rc = read_id(r, event, &ret->id, e)) || (rc = read_type(r, event, &ret->event.type, e)) ||
	    (rc = read_subject(r, event, ret, e)) || (rc = read_places(r, event, &ret->event, e)))
		return rc;
	if (detail && !json_is_null(detail) && !json_is_object(detail))
		return err_set(e, RC_INVALID, "detail: must be an object");
	ret->event.actor = str_format(r->arena, "inbox/%.*s", STR_ARG(r->source));
	ret->event.detail = json_dump(r->arena, event);
	return intake_check_detail(ret->event.detail, "the event", e);
}

/* --- a body --- */

/* As a queue wraps it: the body is the event as text. Until the event's own id is known, messageId identifies it. */
static enum rc read_wrapped(const struct reader *r, const json_t *record, struct intake_record *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *event = NULL;
	struct str                  body;
	enum rc                     rc;

	if (!json_is_object(record) || !json_get_text(record, "body", &body) || !body.n)
		return err_set(e, RC_INVALID, "body: is required, an event as JSON text");
	if ((rc = read_text(record, "messageId", OUTSIDE_ID_MAX, &ret->id, e)))
		return rc;
	ret->id = str_dup(r->arena, ret->id);
	if ((rc = json_parse(body, &event, e)))
		return err_wrap(e, rc, "body");
	return read_event(r, event, ret, e);
}

static void read_record(const struct reader *r, const json_t *record, bool is_wrapped, struct intake_record *ret)
{
	*ret = (struct intake_record){ .verdict = INTAKE_ACCEPTED };
	if (is_wrapped ? read_wrapped(r, record, ret, &ret->e) : read_event(r, record, ret, &ret->e))
		ret->verdict = INTAKE_REJECTED;
}

static enum rc read_list(const struct reader *r, const json_t *list, bool is_wrapped, struct intake_record **ret,
                         size_t *ret_count, struct err *e)
{
	size_t count = json_array_size(list), most = is_wrapped ? INTAKE_WRAPPED_MAX : INTAKE_RECORDS_MAX;
	struct intake_record *records;

	if (count < 1 || count > most)
		return err_set(e, RC_INVALID, "there are %zu events in the body; send 1 to %zu", count, most);
	records = arena_alloc(r->arena, count * sizeof(*records));
	for (size_t i = 0; i < count; i++)
		read_record(r, json_array_get(list, i), is_wrapped, &records[i]);
	*ret = records;
	*ret_count = count;
	return RC_OK;
}

static enum rc read_body(const struct reader *r, const json_t *body, struct intake_record **ret, size_t *ret_count,
                         struct err *e)
{
	const json_t *records = json_object_get(body, "Records");

	if (json_is_array(body))
		return read_list(r, body, false, ret, ret_count, e);
	if (json_is_array(records))
		return read_list(r, records, true, ret, ret_count, e);
	if (!json_is_object(body) || records)
		return err_set(
		        e, RC_INVALID,
		        "the body must be an event, a list of events, a queue's record, or {\"Records\": [...]}");
	*ret = arena_alloc(r->arena, sizeof(**ret));
	*ret_count = 1;
	read_record(r, body, json_object_get(body, "body") && !json_object_get(body, "detail-type"), *ret);
	return RC_OK;
}

enum rc intake_parse(struct str source, struct str body, struct arena *a, struct intake_record **ret, size_t *ret_count,
                     struct err *e)
{
	CLEANUP(json_freep) json_t *parsed = NULL;
	struct reader               r = { str_dup(a, source), a };
	enum rc                     rc;

	if (!source.n || source.n > SOURCE_MAX || !str_is_of(source, "a-zA-Z0-9._-"))
		return err_set(e, RC_INVALID, "the inbox's name must be 1 to %d letters, digits and ._-", SOURCE_MAX);
	if (body.n > INTAKE_BODY_MAX)
		return err_set(e, RC_TOO_LARGE, "the body has %zu bytes; at most %d are accepted", body.n,
		               INTAKE_BODY_MAX);
	if ((rc = json_parse(body, &parsed, e)))
		return rc;
	return read_body(&r, parsed, ret, ret_count, e);
}

/* --- store --- */

enum rc intake_store(struct session *s, void *arg, struct err *e)
{
	struct intake_call   *call = arg;
	struct intake_record *record = call->record;
	struct event          event = record->event;
	struct seen           seen = { 0 };
	struct str key = str_format(session_arena(s), "%.*s#%.*s", STR_ARG(call->source), STR_ARG(record->id));
	bool       is_there;
	enum rc    rc;

	if (record->verdict == INTAKE_REJECTED)
		return RC_OK;
	rc = session_find(s, &seen_type, key, &seen, &is_there, e);
	if (rc)
		return rc;
	record->verdict = is_there ? INTAKE_DUPLICATE : INTAKE_ACCEPTED;
	if (is_there && !HAS_DEFECT(NO_DEDUP))
		return RC_OK;

	event.request_id = call->request_id;
	if ((rc = session_emit(s, &event, e)))
		return rc;
	seen.key = key;
	seen.event_id = event.id;
	seen.lot = 1;
	seen.at_ms = session_now(s).ms;
	session_put(s, &seen_type, &seen);
	return RC_OK;
}

enum rc intake_take(const struct inbox_way *way, struct str body, struct arena *a, struct err *e)
{
	struct intake_record *records;
	size_t                count;
	enum rc               rc = way->parse(way->source, body, a, &records, &count, e), bad = RC_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		struct intake_call call = { .source = way->source, .record = &records[i] };

		if (records[i].verdict == INTAKE_REJECTED)
			bad = err_set(e, RC_INVALID, "%s", records[i].e.msg);
		else
			rc = store_run(way->store, intake_store, &call, a, e);
	}
	return rc ? rc : bad;
}

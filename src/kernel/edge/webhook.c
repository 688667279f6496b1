/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook.c - the records of webhooks, and which of them an event is for.
 *
 * The queue "webhook" gets each event once. Its handler, webhook_fan_out(), puts the event into the queue "webhook-out"
 * once for each webhook whose filter matches, with the webhook's id as target: from there on each one has its own
 * order, tries and dead letters, so a receiver that is down holds up nobody else.
 *
 * Always true:
 *   1. There are at most WEBHOOKS_MAX, so one event's fan-out fits into one transaction. Two nodes may each make the
 *      last one at the same moment; the few more are delivered to as well. [READ_MAX]
 *   2. A secret is told once, to the caller of webhook_create(). No event has it, nor the query of a URL.   [tell()]
 *   3. A WebhookTest goes to the one it names and to no other. [webhook_fan_out()]
 *
 * A webhook that is removed or paused leaves its deliveries where they are; the sender drops them when their turn
 * comes.
 *
 * Not here: sending and signing (providers/notify/webhook_out.c).
 */
#include "kernel/edge/webhook.h"

#include <assert.h>

#include "base/id.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

enum { READ_MAX = WEBHOOKS_MAX + 8, FILTER_MAX = 1024, PATTERNS_MAX = 32, SECRET_MAX = 128, DESCRIPTION_MAX = 256 };

/* --- what is allowed --- */

/* The patterns without blanks around them. Each is an event type, or the beginning of one and '*'. */
static enum rc check_filter(struct str filter, struct arena *a, struct str *ret, struct err *e)
{
	struct str rest = filter, tidy = STR("");

	if (filter.n > FILTER_MAX)
		return err_set(e, RC_INVALID, "filter: must be at most %d bytes long", FILTER_MAX);
	for (int count = 0; rest.n; count++) {
		struct str pattern = str_trim(str_cut(&rest, ','));

		if (!pattern.n || pattern.n > EVENT_TYPE_MAX || str_has_control(pattern) ||
		    memchr(pattern.p, '*', pattern.n - 1) || count >= PATTERNS_MAX)
			return err_set(
			        e, RC_INVALID,
			        "filter: must be 1 to %d event types with commas between them, each up to %d bytes; "
			        "'*' at the end of one stands for anything",
			        PATTERNS_MAX, EVENT_TYPE_MAX);
		tidy = str_format(a, "%.*s%s%.*s", STR_ARG(tidy), count ? "," : "", STR_ARG(pattern));
	}
	*ret = tidy;
	return RC_OK;
}

/* Take over what the call says; what it leaves empty stays. */
static enum rc apply_fields(struct session *s, const struct webhook_call *call, struct webhook *hook, struct err *e)
{
	const struct webhook *given = &call->fields;
	enum rc               rc;

	if (given->url.n && (rc = webhook_url_check(given->url, call->allows_private, e)))
		return rc;
	if (given->filter.n && (rc = check_filter(given->filter, session_arena(s), &hook->filter, e)))
		return rc;
	if (given->secret.n &&
	    (given->secret.n < WEBHOOK_SECRET_MIN || given->secret.n > SECRET_MAX || str_has_control(given->secret)))
		return err_set(
		        e, RC_INVALID,
		        "secret: must be %d to %d bytes without control characters; leave it out to have one made",
		        WEBHOOK_SECRET_MIN, SECRET_MAX);
	if (given->description.n > DESCRIPTION_MAX || str_has_control(given->description))
		return err_set(e, RC_INVALID, "description: must be one line of at most %d bytes", DESCRIPTION_MAX);
	if (given->url.n)
		hook->url = given->url;
	if (given->secret.n)
		hook->secret = given->secret;
	if (given->description.n)
		hook->description = given->description;
	if (call->sets_paused)
		hook->is_paused = given->is_paused != 0;
	return RC_OK;
}

/* --- audit --- */

/* The names of the fields that differ, as a JSON array. */
static struct str changes_of(const struct webhook *before, const struct webhook *after, struct arena *a)
{
	uint64_t   changes = record_changes(&webhook_type, before, after);
	struct str names = STR("");

	for (int field = 0; field < webhook_type.field_count; field++)
		if (changes & (uint64_t)1 << field)
			names = str_format(a, "%.*s%s\"%s\"", STR_ARG(names), names.n ? "," : "",
			                   webhook_type.fields[field].name);
	return str_format(a, "[%.*s]", STR_ARG(names));
}

/* before: NULL unless it was changed. */
static enum rc tell(struct session *s, const struct webhook_call *call, const char *type, const struct webhook *before,
                    const struct webhook *after, struct err *e)
{
	struct arena *a = session_arena(s);

	return session_tell(s, type, str_format(a, "webhook/%.*s", STR_ARG(after->id)), call->actor, call->request_id,
	                    JSON_OF(a, member_str("webhook", after->id),
	                            member_str("url", webhook_url_shown(after->url)),
	                            member_str("filter", after->filter), member_str("description", after->description),
	                            member_bool("isPaused", after->is_paused != 0),
	                            member_if_any(
	                                    member_raw("changed", before ? changes_of(before, after, a) : STR("")))),
	                    e);
}

/* --- the calls --- */

static enum rc read_all(struct session *s, size_t limit, struct page *ret, struct err *e)
{
	struct query q = { .type = &webhook_type, .index = QUERY_KEYS, .limit = limit };

	return session_query(s, &q, ret, e);
}

/* The answer of everything but create. */
static void answer_without_secret(struct webhook_call *call, const struct webhook *hook)
{
	call->webhook = *hook;
	call->webhook.secret = STR("");
}

static enum rc load(struct session *s, struct webhook_call *call, struct webhook *ret, struct err *e)
{
	enum rc rc = session_get(s, &webhook_type, call->id, ret, e);

	if (!rc)
		answer_without_secret(call, ret);
	return rc;
}

enum rc webhook_create(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	char                 secret[ID_TOKEN_SIZE];
	struct webhook       hook = { .id = kernel_new_id(s, STR("")),
		                      .filter = STR("*"),
		                      .created_ms = session_now(s).ms,
		                      .created_by = call->actor };
	struct page          others;
	enum rc              rc;

	id_token(secret);
	hook.secret = str_dup(session_arena(s), str_from(secret));
	if (!call->fields.url.n)
		return err_set(e, RC_INVALID, "url: is required, such as https://example.org/hooks/leasehold");
	if ((rc = apply_fields(s, call, &hook, e)) || (rc = read_all(s, WEBHOOKS_MAX, &others, e)))
		return rc;
	if (others.count >= WEBHOOKS_MAX)
		return err_set(e, RC_CONFLICT, "there are %d webhooks, and no more are allowed; remove one first",
		               WEBHOOKS_MAX);
	session_add(s, &webhook_type, &hook);
	call->webhook = hook;
	if ((rc = tell(s, call, "WebhookCreated", NULL, &hook, e)))
		return rc;
	kernel_note_webhooks(kernel_of(s)); /* at once: what the next transaction emits is for it */
	return RC_OK;
}

enum rc webhook_change(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       before, hook;
	enum rc              rc;

	if ((rc = session_get(s, &webhook_type, call->id, &before, e)))
		return rc;
	hook = before;
	if ((rc = apply_fields(s, call, &hook, e)))
		return rc;
	answer_without_secret(call, &hook);
	if (record_changes(&webhook_type, &before, &hook) == 0)
		return RC_OK;
	session_put(s, &webhook_type, &hook);
	return tell(s, call, "WebhookChanged", &before, &hook, e);
}

enum rc webhook_remove(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook;
	enum rc              rc = load(s, call, &hook, e);

	if (rc)
		return rc;
	session_delete(s, &webhook_type, hook.id);
	return tell(s, call, "WebhookRemoved", NULL, &hook, e);
}

enum rc webhook_test(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook;
	enum rc              rc = load(s, call, &hook, e);

	if (rc)
		return rc;
	if (hook.is_paused)
		return err_set(e, RC_CONFLICT, "webhook %.*s is paused; resume it, then test it", STR_ARG(hook.id));
	return tell(s, call, "WebhookTest", NULL, &hook, e);
}

enum rc webhook_get(struct session *s, void *arg, struct err *e)
{
	struct webhook hook;

	return load(s, arg, &hook, e);
}

enum rc webhook_list(struct session *s, void *arg, struct err *e)
{
	struct page *page = arg;
	enum rc      rc = read_all(s, READ_MAX, page, e);

	for (size_t i = 0; !rc && i < page->count; i++)
		((struct webhook *)page_record(page, &webhook_type, i))->secret = STR("");
	return rc;
}

/* --- fan-out --- */

static enum rc has_any(struct session *s, void *arg, struct err *e)
{
	struct page page;
	enum rc     rc = read_all(s, 1, &page, e);

	if (!rc)
		*(bool *)arg = page.count > 0;
	return rc;
}

enum rc webhook_refresh(struct kernel *k, struct err *e)
{
	bool    found = false;
	enum rc rc = kernel_has_webhooks(k) ? RC_OK : store_read(kernel_options(k)->store, has_any, &found, NULL, e);

	if (rc)
		return err_wrap(e, rc, "the webhooks cannot be read");
	if (found)
		kernel_note_webhooks(k);
	return RC_OK;
}

/* The webhook that a WebhookTest names; empty for any other event. */
static enum rc read_only(struct session *s, const struct event *event, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  id = STR("");
	enum rc                     rc;

	*ret = STR("");
	if (!str_eq(event->type, STR("WebhookTest")))
		return RC_OK;
	if ((rc = json_parse(event->detail, &detail, e)))
		return rc;
	if (!json_get_text(detail, "webhook", &id) || !id.n)
		return err_set(e, RC_CORRUPT, "event %.*s: a WebhookTest must name its webhook", STR_ARG(event->id));
	*ret = str_dup(session_arena(s), id);
	return RC_OK;
}

enum rc webhook_fan_out(struct session *s, const struct delivery *d, void *arg UNUSED, struct err *e)
{
	const struct queue *out = queue_for(kernel_of(s), &d->event, "webhook-out", "webhook-alarm");
	struct str          only;
	struct page         page;
	enum rc             rc;

	assert(out);
	if ((rc = read_only(s, &d->event, &only, e)) || (rc = read_all(s, READ_MAX, &page, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct webhook *hook = page_record(&page, &webhook_type, i);
		bool is_meant = only.n ? str_eq(hook->id, only) : kernel_matches(hook->filter, d->event.type);

		if (is_meant && !hook->is_paused && (rc = queue_put(s, out, &d->event, hook->id, e)))
			return rc;
	}
	return RC_OK;
}

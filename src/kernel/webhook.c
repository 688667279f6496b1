/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook.c - the webhooks' records, and who of them an event is for.
 *
 * The queue "webhook" gets each event once. Its handler, webhook_fan_out(), puts the event into the queue "webhook-out" once for each
 * webhook whose filter matches, with the webhook's id as target: from there on each one has its own order, tries and dead letters, so a
 * receiver that is down holds up nobody else.
 *
 * Always true:
 *   1. There are at most WEBHOOKS_MAX, so one event's fan-out fits into one transaction. Two nodes may each make the last one at the
 *      same moment; the few more are delivered to as well.                                                  [READ_MAX]
 *   2. A secret is told once, to the caller of webhook_create(). No event has it, nor the query of a URL.   [tell()]
 *   3. A WebhookTest goes to the one it names and to no other.                                              [is_for()]
 *
 * A webhook that is removed or paused leaves its deliveries where they are; the sender drops them when their turn comes.
 *
 * Not here: sending and signing (providers/notify/webhook_out.c).
 */
#include "kernel/webhook.h"

#include <assert.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/webhook_url.h"

enum {
	READ_MAX = WEBHOOKS_MAX + 8,
	FILTER_MAX = 1024,
	PATTERNS_MAX = 32,
	SECRET_MAX = 128,
	DESCRIPTION_MAX = 256,
	EVENT_DETAIL_MAX = 16384,
};

/* --- what is allowed --- */

static bool is_printable(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
			return false;
	return true;
}

/* An event type, or the beginning of one and '*'. */
static bool is_pattern(struct str pattern)
{
	if (pattern.n == 0 || pattern.n > EVENT_TYPE_MAX || !is_printable(pattern))
		return false;
	return memchr(pattern.p, '*', pattern.n - 1) == NULL;
}

/* The patterns without blanks around them. */
static enum rc check_filter(struct str filter, struct arena *a, struct str *ret, struct err *e)
{
	struct str rest = filter, tidy = STR("");

	if (filter.n > FILTER_MAX)
		return err_set(e, RC_INVALID, "filter: must be at most %d bytes long", FILTER_MAX);
	for (int count = 0; rest.n; count++) {
		struct str pattern = str_trim(str_cut(&rest, ','));

		if (!is_pattern(pattern) || count >= PATTERNS_MAX)
			return err_set(
			        e, RC_INVALID,
			        "filter: must be 1 to %d event types with commas between them, each up to %d bytes; '*' at "
			        "the end of one stands for anything",
			        PATTERNS_MAX, EVENT_TYPE_MAX);
		tidy = str_format(a, "%.*s%s%.*s", STR_ARG(tidy), count ? "," : "", STR_ARG(pattern));
	}
	*ret = tidy;
	return RC_OK;
}

static enum rc check_secret(struct str secret, struct err *e)
{
	if (secret.n >= WEBHOOK_SECRET_MIN && secret.n <= SECRET_MAX && is_printable(secret))
		return RC_OK;
	return err_set(e, RC_INVALID,
	               "secret: must be %d to %d bytes without control characters; leave it out to have one made",
	               WEBHOOK_SECRET_MIN, SECRET_MAX);
}

static enum rc check_description(struct str description, struct err *e)
{
	if (description.n <= DESCRIPTION_MAX && is_printable(description))
		return RC_OK;
	return err_set(e, RC_INVALID, "description: must be one line of at most %d bytes", DESCRIPTION_MAX);
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
	if (given->secret.n && (rc = check_secret(given->secret, e)))
		return rc;
	if ((rc = check_description(given->description, e)))
		return rc;
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

static void write_changes(struct json_out *o, const struct webhook *before, const struct webhook *after)
{
	uint64_t changes = record_changes(&webhook_type, before, after);

	json_put_array(o, "changed");
	for (int field = 0; field < webhook_type.field_count; field++)
		if (changes & (uint64_t)1 << field)
			json_add_str(o, str_from(webhook_type.fields[field].name));
	json_close_array(o);
}

static struct str describe(struct session *s, const struct webhook *before, const struct webhook *after)
{
	struct json_out o;
	struct buf      b;
	struct str      text;

	buf_init(&b, EVENT_DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "webhook", after->id);
	json_put_str(&o, "url", webhook_url_shown(after->url));
	json_put_str(&o, "filter", after->filter);
	json_put_str(&o, "description", after->description);
	json_put_bool(&o, "isPaused", after->is_paused != 0);
	if (before)
		write_changes(&o, before, after);
	json_close_object(&o);
	assert(!b.is_full);
	text = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return text;
}

/* before: NULL unless it was changed. */
static enum rc tell(struct session *s, const struct webhook_call *call, struct str type, const struct webhook *before,
                    const struct webhook *after, struct err *e)
{
	struct event event = { .type = type,
		               .subject = str_format(session_arena(s), "webhook/%.*s", STR_ARG(after->id)),
		               .actor = call->actor,
		               .request_id = call->request_id,
		               .detail = describe(s, before, after) };

	return session_emit(s, &event, e);
}

/* --- the calls --- */

static enum rc read_all(struct session *s, size_t limit, struct page *ret, struct err *e)
{
	struct query q = { .type = &webhook_type, .index = QUERY_KEYS, .limit = limit };

	return session_query(s, &q, ret, e);
}

static enum rc find(struct session *s, struct str id, struct webhook *ret, struct err *e)
{
	enum rc rc = session_get(s, &webhook_type, id, ret, NULL);

	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "there is no webhook %.*s", STR_ARG(id));
	return rc ? err_set(e, rc, "webhook %.*s cannot be read", STR_ARG(id)) : RC_OK;
}

/* The answer of everything but create. */
static void answer_without_secret(struct webhook_call *call, const struct webhook *hook)
{
	call->webhook = *hook;
	call->webhook.secret = STR("");
}

static enum rc check_room(struct session *s, struct err *e)
{
	struct page page;
	enum rc     rc = read_all(s, WEBHOOKS_MAX, &page, e);

	if (rc)
		return rc;
	if (page.count >= WEBHOOKS_MAX)
		return err_set(e, RC_CONFLICT, "there are %d webhooks, and no more are allowed; remove one first",
		               WEBHOOKS_MAX);
	return RC_OK;
}

static struct webhook blank_webhook(struct session *s, const struct webhook_call *call)
{
	char id[KERNEL_ID_SIZE], secret[ID_TOKEN_SIZE];

	kernel_id(kernel_of(s), session_now(s).ms, id);
	id_token(secret);
	return (struct webhook){ .id = str_dup(session_arena(s), str_from(id)),
		                 .filter = STR("*"),
		                 .secret = str_dup(session_arena(s), str_from(secret)),
		                 .created_ms = session_now(s).ms,
		                 .created_by = call->actor };
}

enum rc webhook_create(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook = blank_webhook(s, call);
	enum rc              rc;

	if (!call->fields.url.n)
		return err_set(e, RC_INVALID, "url: is required, such as https://example.org/hooks/leasehold");
	if ((rc = apply_fields(s, call, &hook, e)) || (rc = check_room(s, e)))
		return rc;
	session_add(s, &webhook_type, &hook);
	call->webhook = hook;
	return tell(s, call, STR("WebhookCreated"), NULL, &hook, e);
}

enum rc webhook_change(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       before, hook;
	enum rc              rc;

	if ((rc = find(s, call->id, &before, e)))
		return rc;
	hook = before;
	if ((rc = apply_fields(s, call, &hook, e)))
		return rc;
	answer_without_secret(call, &hook);
	if (record_changes(&webhook_type, &before, &hook) == 0)
		return RC_OK;
	session_put(s, &webhook_type, &hook);
	return tell(s, call, STR("WebhookChanged"), &before, &hook, e);
}

enum rc webhook_remove(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook;
	enum rc              rc = find(s, call->id, &hook, e);

	if (rc)
		return rc;
	session_delete(s, &webhook_type, hook.id);
	answer_without_secret(call, &hook);
	return tell(s, call, STR("WebhookRemoved"), NULL, &hook, e);
}

enum rc webhook_test(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook;
	enum rc              rc = find(s, call->id, &hook, e);

	if (rc)
		return rc;
	if (hook.is_paused)
		return err_set(e, RC_CONFLICT, "webhook %.*s is paused; resume it, then test it", STR_ARG(hook.id));
	answer_without_secret(call, &hook);
	return tell(s, call, STR("WebhookTest"), NULL, &hook, e);
}

enum rc webhook_get(struct session *s, void *arg, struct err *e)
{
	struct webhook_call *call = arg;
	struct webhook       hook;
	enum rc              rc = find(s, call->id, &hook, e);

	if (!rc)
		answer_without_secret(call, &hook);
	return rc;
}

enum rc webhook_list(struct session *s, void *arg, struct err *e)
{
	struct webhook_list *list = arg;
	enum rc              rc = read_all(s, READ_MAX, &list->page, e);

	for (size_t i = 0; !rc && i < list->page.count; i++)
		((struct webhook *)page_record(&list->page, &webhook_type, i))->secret = STR("");
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
	struct arena a = { 0 };
	bool         found = false;
	enum rc      rc = store_read(kernel_options(k)->store, has_any, &found, &a, e);

	arena_fini(&a);
	if (rc)
		return err_wrap(e, rc, "the webhooks cannot be read");
	kernel_set_has_webhooks(k, found);
	return RC_OK;
}

/* only: the one that is meant; empty: all. */
static bool is_for(const struct webhook *hook, const struct event *event, struct str only)
{
	if (hook->is_paused)
		return false;
	return only.n ? str_eq(hook->id, only) : kernel_matches(hook->filter, event->type);
}

/* The webhook that a WebhookTest names. */
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

enum rc webhook_fan_out(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	const struct queue *out = kernel_queue(kernel_of(s), STR("webhook-out"));
	struct str          only;
	struct page         page;
	enum rc             rc;

	(void)arg;
	assert(out);
	if ((rc = read_only(s, &d->event, &only, e)) || (rc = read_all(s, READ_MAX, &page, e)))
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct webhook *hook = page_record(&page, &webhook_type, i);

		if (is_for(hook, &d->event, only) && (rc = queue_put(s, out, &d->event, hook->id, e)))
			return rc;
	}
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bus.c - events to EventBridge, several in one request.
 *
 * The kernel delivers one event at a time, on several workers at once. Whoever comes while nobody is sending sends,
 * and takes along what others have put there meanwhile: up to ten entries, less than 256 KB. Each of them gets the
 * answer about its own entry, so that one that is refused is tried again, or is dead, alone: tries, order and dead
 * letters stay the kernel's.
 *
 * Always true:
 *   1. An entry counts as sent only when the answer has an id at its position. [bus_read_answer()]
 *   2. Only what failed is sent again.
 *   3. What no try can help (a detail that is refused, one that is too long) is RC_INVALID, all else comes again.
 *
 * EventBridge may show an event twice, and so may we: where the names are ours, the detail has the event's own id.
 */
#include "providers/aws/messages/bus.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "kernel/kernel.h"
#include "kernel/records.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"

enum { TIME_BYTES = 14, REQUEST_MAX = 4 * BUS_BYTES_MAX };

#define CLEANUP_RESULTS "AccountCleanupSucceeded,AccountCleanupFailed"

static const struct aws_error_row errors[] = { { "InternalException", RC_UNAVAILABLE }, { NULL, RC_OK } };

static const struct aws_op put_events_op = { .service = &aws_services[AWS_EVENTBRIDGE],
	                                     .name = "PutEvents",
	                                     .permission = "events:PutEvents",
	                                     .writes = true,
	                                     .errors = errors };

struct bus {
	struct bus_options o;
	struct arena       arena;
	const char        *region; /* of its ARN; NULL: the caller's */
	pthread_mutex_t    lock;
	pthread_cond_t     is_changed;
	bool               is_sending;
	struct bus_entry  *first, *last; /* to be sent */
};

struct bus *bus_new(const struct bus_options *o)
{
	struct bus *b = mem_new(struct bus);

	b->o = *o;
	b->region = arn_region(o->bus, &b->arena);
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->is_changed, NULL);
	return b;
}

void bus_free(struct bus *b)
{
	if (!b)
		return;
	pthread_cond_destroy(&b->is_changed);
	pthread_mutex_destroy(&b->lock);
	arena_fini(&b->arena);
	free(b);
}

/* --- one entry --- */

static struct str source_of(const struct bus_options *o, const struct event *event, struct arena *a)
{
	if (o->names == BUS_GUARD)
		return STR("leasehold");
	if (kernel_matches(STR(CLEANUP_RESULTS), event->type))
		return STR("account-cleaner");
	if (o->names == BUS_OURS)
		return o->source;
	return str_format(a, "InnovationSandbox-%.*s", STR_ARG(o->isb_namespace));
}

/* Ours says which event it is, so that whoever gets it twice can tell. */
static struct str detail_of(const struct bus_options *o, const struct event *event, struct arena *a)
{
	CLEANUP(json_freep) json_t *detail = NULL, *ours = NULL;
	struct str                  about = JSON_OF(a, member_str("eventId", event->id),
	                                            member_if_any(member_str("subject", event->subject)),
	                                            member_if_any(member_str("actor", event->actor)),
	                                            member_if_any(member_str("requestId", event->request_id)),
	                                            member_int("schemaVersion", event->schema));

	if (o->names == BUS_ISB || (event->detail.n && json_parse(event->detail, &detail, NULL)))
		return event->detail.n ? event->detail : STR("{}");
	if (!detail)
		detail = json_object();
	if (json_parse(about, &ours, NULL) || json_object_set(detail, "leasehold", ours))
		return event->detail;
	return json_dump(a, detail);
}

enum rc bus_write_entry(const struct bus_options *o, const struct event *event, struct arena *a, struct bus_entry *ret,
                        struct err *e)
{
	struct str source = source_of(o, event, a), detail = detail_of(o, event, a);
	struct str time = str_format(a, "%lld.%03d", (long long)(event->time_ms / 1000), (int)(event->time_ms % 1000));

	*ret = (struct bus_entry){ .bytes = TIME_BYTES + source.n + event->type.n + detail.n };
	if (ret->bytes >= BUS_BYTES_MAX)
		return err_set(e, RC_INVALID, "the event has %zu bytes; a bus takes less than %d", ret->bytes,
		               BUS_BYTES_MAX);
	ret->json = JSON_OF(a, member_str("EventBusName", o->bus), member_str("Source", source),
	                    member_str("DetailType", event->type), member_str("Detail", detail),
	                    member_raw("Time", time));
	return RC_OK;
}

/* --- one request --- */

size_t bus_fitting(const struct bus_entry *first)
{
	size_t count = 0, bytes = 0;

	for (const struct bus_entry *x = first; x && count < BUS_ENTRIES_MAX; x = x->next) {
		bytes += x->bytes;
		if (count && bytes >= BUS_BYTES_MAX)
			break;
		count++;
	}
	return count;
}

struct str bus_write_request(const struct bus_entry *first, size_t count, struct arena *a)
{
	struct buf b = BUF(REQUEST_MAX);

	buf_add_text(&b, "{\"Entries\":[");
	for (size_t i = 0; i < count; i++, first = first->next) {
		if (i)
			buf_add_char(&b, ',');
		buf_add_str(&b, first->json);
	}
	buf_add_text(&b, "]}");
	return buf_take(&b, a);
}

static enum rc judge(const json_t *said, struct err *e)
{
	static const struct str passing[] = { STR_INIT("InternalFailure"), STR_INIT("ThrottlingException"),
		                              STR_INIT("InternalException") };
	struct str              code = STR(""), text = STR(""), id = STR("");
	enum rc                 rc;

	if (!json_get_text(said, "ErrorCode", &code) || !json_get_text(said, "ErrorMessage", &text) ||
	    !json_get_text(said, "EventId", &id))
		return err_set(e, RC_UNAVAILABLE, "the answer about the entry makes no sense");
	if (!code.n)
		return id.n ? RC_OK : err_set(e, RC_UNAVAILABLE, "the answer has nothing about the entry");
	rc = str_is_among(code, passing, ARRAY_LEN(passing)) ? RC_UNAVAILABLE : RC_INVALID;
	return err_set(e, rc, "the bus refused the entry, %.*s: %.*s", STR_ARG(code), STR_ARG(text));
}

void bus_read_answer(const json_t *answer, struct bus_entry *first, size_t count)
{
	const json_t *entries = json_object_get(answer, "Entries");

	for (size_t i = 0; i < count; i++, first = first->next)
		first->rc = judge(json_array_get(entries, i), &first->e);
}

static void send_request(struct bus *b, struct bus_entry *first, size_t count)
{
	CLEANUP(json_freep) json_t      *answer = NULL;
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct aws_call                  call = { .op = &put_events_op,
		                                  .body = bus_write_request(first, count, &a),
		                                  .region = b->region,
		                                  .ms = SINK_MS,
		                                  .attempts = SINK_ATTEMPTS };
	struct err                       e = { 0 };
	enum rc                          rc = sink_rc(aws_do_call(b->o.caller, &call, &a, &answer, &e), &e);

	if (!rc)
		bus_read_answer(answer, first, count);
	for (size_t i = 0; rc && i < count; i++, first = first->next) {
		first->rc = rc;
		first->e = e;
	}
}

/* --- together --- */

/* With the lock held, which is let go while it sends: the first ones of the list. */
static void send_first(struct bus *b)
{
	struct bus_entry *first = b->first, *x = first;
	size_t            count = bus_fitting(first);

	for (size_t i = 0; i < count; i++)
		x = x->next;
	b->first = x;
	if (!x)
		b->last = NULL;
	b->is_sending = true;
	pthread_mutex_unlock(&b->lock);
	send_request(b, first, count);
	pthread_mutex_lock(&b->lock);
	b->is_sending = false;
	for (struct bus_entry *next; count--; first = next) {
		next = first->next; /* whoever waits for it may be gone after this */
		first->is_done = true;
	}
	pthread_cond_broadcast(&b->is_changed);
}

static void send_together(struct bus *b, struct bus_entry *own)
{
	LOCKED(&b->lock);
	if (b->last)
		b->last->next = own;
	else
		b->first = own;
	b->last = own;
	while (!own->is_done)
		if (b->is_sending)
			pthread_cond_wait(&b->is_changed, &b->lock);
		else
			send_first(b);
}

enum rc bus_call(struct call *c, struct err *e)
{
	struct bus      *b = c->arg;
	struct bus_entry own;
	enum rc          rc = bus_write_entry(&b->o, &c->delivery->event, c->arena, &own, e);

	if (rc)
		return rc;
	send_together(b, &own);
	return own.rc ? err_set(e, own.rc, "%s", own.e.msg) : RC_OK;
}

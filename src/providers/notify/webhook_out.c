/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_out.c - one POST of one event to one webhook.
 *
 * The body is the event's envelope. Headers say which event and which try it is, and carry the signature over body and
 * time: a receiver that refuses old times cannot be sent an old body again. A receiver may get an event more than once
 * and recognises it by its id; those of one subject come in their order.
 *
 * Always true:
 *   1. The webhook is read just before: a changed URL or secret counts at once; a removed or paused one is not called.
 *   2. 2xx is success. Anything else is a failed try, redirects too: a signature is made for one address.
 *   3. Link-local and metadata addresses are never called, private ones only if allowed, whatever a name resolves to.
 *   4. No message has the secret or the URL's query.
 *
 * Not here: who is told (kernel/edge/webhook.c), when to try again (kernel/queue.c).
 */
#include "providers/notify/webhook_out.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/records.h"
#include "net/fetch.h"
#include "store/session.h"
#include "store/store.h"

enum { CONNECT_TIMEOUT_MS = 5000, TOTAL_TIMEOUT_MS = 15000, ANSWER_MAX = 65536, SHOWN_MAX = 200 };

struct str sign_body(struct str secret, int64_t now_sec, struct str body, struct arena *a)
{
	struct hash hash;

	hash_hmac(secret, str_format(a, "%" PRId64 ".%.*s", now_sec, STR_ARG(body)), &hash);
	return str_format(a, "t=%" PRId64 ",v1=%s", now_sec, hash_hex(a, &hash).p);
}

/* What is read before the call. */
struct addressee {
	struct str     id;
	bool           is_there;
	struct webhook webhook;
};

static enum rc read_webhook(struct session *s, void *arg, struct err *e)
{
	struct addressee *to = arg;

	return session_find(s, &webhook_type, to->id, &to->webhook, &to->is_there, e);
}

/* Event types and ids come from our own log, but a header must be one line whatever is in there. */
static const char *header(struct arena *a, const char *name, struct str value)
{
	struct str line = utf8_line(a, value, EVENT_TYPE_MAX);

	return str_format(a, "%s: %.*s", name, STR_ARG(line)).p;
}

static enum rc post(struct call *c, const struct webhook *hook, struct fetch_reply *ret, struct err *e)
{
	const struct webhook_out *out = c->arg;
	const struct delivery    *d = c->delivery;
	struct arena             *a = c->arena;
	struct str                body = event_to_json(out->kernel, &d->event, a);
	struct str                signature = sign_body(hook->secret, wall_sec(clock_now(c->clock)), body, a);
	struct fetch_request      req = {
		     .method = "POST",
		     .url = str_dup(a, hook->url).p,
		     .headers = { "Content-Type: application/json", "User-Agent: leasehold/" LEASEHOLD_VERSION,
		                  header(a, "Leasehold-Event-Id", d->event.id),
		                  header(a, "Leasehold-Event-Type", d->event.type),
		                  str_format(a, "Leasehold-Delivery-Try: %lld", (long long)d->tries).p,
		                  str_format(a, "Leasehold-Signature: %.*s", STR_ARG(signature)).p },
		     .body = body,
		     .connect_timeout_ms = CONNECT_TIMEOUT_MS,
		     .total_timeout_ms = TOTAL_TIMEOUT_MS,
		     .max_bytes = ANSWER_MAX,
		     .ca_file = out->ca_file,
		     .reach = out->allows_private ? FETCH_NOT_FORBIDDEN : FETCH_PUBLIC,
	};

	return fetch(&req, a, ret, e);
}

enum rc webhook_out_call(struct call *c, struct err *e)
{
	const struct webhook_out *out = c->arg;
	struct addressee          to = { .id = c->delivery->target };
	struct fetch_reply        reply = { 0 };
	struct str                said;
	enum rc                   rc;

	if (!to.id.n)
		return err_set(e, RC_CORRUPT, "the delivery says no webhook");
	if ((rc = store_read(kernel_options(out->kernel)->store, read_webhook, &to, c->arena, e)))
		return rc;
	if (!to.is_there || to.webhook.is_paused) {
		struct str       why = to.is_there ? STR("the webhook is paused") : STR("the webhook was removed");
		struct log_field fields[] = { LOG_STR("webhook", to.id), LOG_STR("event", c->delivery->event.id),
			                      LOG_STR("type", c->delivery->event.type), LOG_STR("why", why) };

		log_write(LOG_INFO, "webhook", fields, ARRAY_LEN(fields), "not sent");
		return RC_OK;
	}
	if ((rc = post(c, &to.webhook, &reply, e)))
		return rc;
	if (reply.status >= 200 && reply.status < 300)
		return RC_OK;
	said = str_trim(utf8_line(c->arena, reply.body, SHOWN_MAX));
	return err_set(e, RC_UNAVAILABLE, "the receiver answered %d: %.*s", reply.status, STR_ARG(said));
}

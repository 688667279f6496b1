/* webhook.h - webhooks: their records, and which of them an event is for. providers/notify sends. */
#pragma once

#include "base/err.h"
#include "kernel/queue.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

enum { WEBHOOKS_MAX = 32, WEBHOOK_SECRET_MIN = 16, WEBHOOK_URL_MAX = 2048 };

/* Make or change one; audited. A secret is made when none is given. RC_INVALID names the field that is wrong. */
struct webhook_call {
	struct str id; /* of an existing one */
	struct webhook
	           fields; /* url, filter, secret, description, is_paused; empty texts: unchanged (create: defaults) */
	bool       sets_paused;
	bool       allows_private; /* the URL may name this machine or a private network */
	struct str actor, request_id;

	struct webhook webhook; /* the answer; its secret only after create */
};
txn_fn webhook_create;
txn_fn webhook_change;
txn_fn webhook_remove; /* what waits for it is dropped when its turn comes */
txn_fn webhook_test;   /* emits WebhookTest for this one alone */
txn_fn webhook_get;    /* read-only */

txn_fn webhook_list; /* arg is a struct page: struct webhook records; read-only */

/* Read whether there are any, and tell the kernel, unless it knows. At the start, and every now and then for those
 * that other nodes have made. Blocks. */
MUST_CHECK enum rc webhook_refresh(struct kernel *k, struct err *e);

/* Handler of the queue "webhook": passes the event on to the queue "webhook-out", once for each webhook it is for. */
queue_handle_fn webhook_fan_out;

/* Which URLs a webhook may have. RC_INVALID: not http:// or https:// with a host, with a user or a password, or with an
 * address that a webhook may not call. What a host name resolves to is seen only when it is called. */
MUST_CHECK enum rc webhook_url_check(struct str url, bool allows_private, struct err *e);

/* As others may see it: without the query, where people put tokens. */
struct str webhook_url_shown(struct str url);

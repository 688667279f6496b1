/* webhook_out.h - sends an event to a webhook, for the queue "webhook-out". The lane's target is the webhook's id. */
#pragma once

#include <stdbool.h>

#include "kernel/queue.h"

/* The queue's argument. */
struct webhook_out {
	struct kernel *kernel;
	bool           allows_private; /* may call this machine and private networks */
	const char    *ca_file;        /* NULL: the system's */
};

/* Proves that a body is ours, and how old it is: "t=SECONDS,v1=HEX", where HEX is HMAC-SHA256 with the secret over
 * "SECONDS.BODY". "v1" leaves room for another algorithm. */
struct str sign_body(struct str secret, int64_t now_sec, struct str body, struct arena *a);

/* RC_OK: the receiver answered 2xx, or there is nobody to tell any more (the webhook is gone or paused). */
queue_call_fn webhook_out_call;

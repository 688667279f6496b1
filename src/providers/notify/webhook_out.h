/* webhook_out.h - sends an event to a webhook: what the queue "webhook-out" calls. The lane's target is the webhook's id. */
#pragma once

#include <stdbool.h>

#include "kernel/queue.h"

struct kernel;

/* The queue's argument. */
struct webhook_out {
	struct kernel *kernel;
	bool           allows_private; /* may call this machine and private networks */
	const char    *ca_file;        /* NULL: the system's */
};

/* RC_OK: the receiver answered 2xx, or there is nobody to tell any more (the webhook is gone or paused). */
queue_call_fn webhook_out_call;

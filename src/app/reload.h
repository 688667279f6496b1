/* reload.h - tokens, secrets, people and certificates are read again while the server runs. Loop thread only. */
#pragma once

#include <pthread.h>
#include <uv.h>

#include "app/config/config.h"
#include "base/buf.h"
#include "http/api/api.h"

struct reload {
	uv_loop_t          *loop;
	const struct parts *parts;
	struct api         *api;
	struct http_server *http, *probe; /* probe: may be NULL */

	/* private */
	uv_timer_t    timer;
	uv_async_t    is_read;
	pthread_t     thread;
	bool          is_reading, is_stopped;
	bool          is_wanted; /* again, as soon as what is being read now has been taken over */
	struct config held;      /* what is in force */

	/* private, and the thread's while it reads */
	bool                 is_whole; /* everything; else only what Secrets Manager keeps */
	struct config        fresh;
	struct buf           problems;
	struct api_tokens    tokens; /* texts are those of fresh */
	struct tls_identity *tls[2]; /* for http and probe; NULL: nothing to take over */
};

/* The first members are set, and the server serves with parts->config. From now on secrets are read again every
 * LEASEHOLD_SECRETS_REFRESH_SEC. What is borrowed outlives the loop. */
void reload_start(struct reload *r);

/* Read everything again. Answers at once; what became of it is logged. */
void reload_begin(struct reload *r);

/* What is being read is not taken over any more, and nothing of it keeps the loop. */
void reload_stop(struct reload *r);

/* The loop has ended: wait until nothing is read any more. Before that, libraries it uses must not be ended. */
void reload_end(struct reload *r);

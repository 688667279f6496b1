/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocking.c - what a handler leaves to a thread.
 *
 *   1. The request is held: its arena, texts and connection's memory stay until it is answered, even if the client
 *      leaves.
 *   2. It is counted as in flight, so the server does not end before it is answered.               [api_hold()]
 *   3. A kind has as many threads as its row says, and never uses another's.                       [start_waiting()]
 *   4. If the client leaves before its turn, run() is not called, and the answer goes nowhere.
 *
 * The code of run()'s error is left out of the reply: clouds have codes of their own, ours are a closed list.
 */
#include "http/api/blocking.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#include "base/clock.h"
#include "base/mem.h"
#include "http/api/api.h"

struct blocking {
	uv_work_t          work;
	struct request    *request;
	enum blocking_kind kind;
	blocking_fn       *run;
	void (*answer)(struct request *r);
	void            *arg;
	enum rc          rc;
	struct err       e;
	bool             is_gone;
	struct blocking *next;
};

static const struct {
	unsigned    threads, waiting;
	const char *text;
} kinds[] = {
#define X(name, threads, waiting, text) { threads, waiting, text },
	BLOCKING_KINDS(X)
#undef X
};

static void start_waiting(struct api *a, enum blocking_kind kind);

static void work_on(uv_work_t *work)
{
	struct blocking *b = CONTAINER_OF(work, struct blocking, work);
	struct trace     before = trace_enter(str_from(b->request->trace.text));

	b->rc = b->run(b->request, b->arg, &b->e);
	trace_return(&before);
}

static void end(struct blocking *b)
{
	struct request *r = b->request;

	r->call->on_gone = NULL;
	r->arg = b->arg;
	if (b->rc)
		request_refuse(r, b->rc, "%s", b->e.msg);
	else
		b->answer(r);
	free(b);
}

static void after(uv_work_t *work, int status UNUSED)
{
	struct blocking   *b = CONTAINER_OF(work, struct blocking, work);
	enum blocking_kind kind = b->kind;
	struct api        *a = b->request->api; /* the request may be gone after the answer */
	const char        *what = b->request->route->name;
	struct loop_span   span = loop_span_begin(&a->watch, mono_ns());

	assert(status == 0); /* nobody cancels it */
	a->blocking[kind].running--;
	end(b);
	(void)loop_span_end(&a->watch, &span, what);
	start_waiting(a, kind);
	api_release(a);
}

static void start_waiting(struct api *a, enum blocking_kind kind)
{
	struct block_line *line = &a->blocking[kind];

	while (line->first && line->running < kinds[kind].threads) {
		struct blocking *b = line->first;

		line->first = b->next;
		line->waiting--;
		if (!b->is_gone) {
			line->running++;
			if (uv_queue_work(a->options.loop, &b->work, work_on, after))
				abort(); /* fails only without a callback */
			continue;
		}
		request_drop(b->request);
		free(b);
		api_release(a);
	}
}

static void on_gone(struct http_call *call)
{
	((struct blocking *)((struct request *)call->user)->arg)->is_gone = true;
}

bool blocking_is_full(const struct api *a, enum blocking_kind kind)
{
	return a->blocking[kind].waiting >= kinds[kind].waiting;
}

void blocking_start(struct request *r, enum blocking_kind kind, blocking_fn *run, void (*answer)(struct request *r),
                    void *arg)
{
	struct api        *a = r->api;
	struct block_line *line = &a->blocking[kind];
	struct blocking   *b;

	if (blocking_is_full(a, kind)) {
		request_refuse(r, RC_UNAVAILABLE, "too many %s are in progress; try again later", kinds[kind].text);
		return;
	}
	b = mem_new(struct blocking);
	b->request = r;
	b->kind = kind;
	b->run = run;
	b->answer = answer;
	b->arg = arg;
	r->arg = b;
	r->call->on_gone = on_gone;
	*(line->first ? &line->last->next : &line->first) = b;
	line->last = b;
	line->waiting++;
	api_hold(a);
	start_waiting(a, kind);
}

void blocking_prepare(void)
{
	unsigned threads = 0;
	char     text[16];

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		threads += kinds[i].threads;
	(void)snprintf(text, sizeof(text), "%u", threads); /* fits */
	mem_must(!uv_os_setenv("UV_THREADPOOL_SIZE", text), "a variable of the environment");
}

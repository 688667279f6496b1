/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inbox_api.c - the route by which events come in from outside.
 *
 * A body has many records, and each gets a transaction of its own, one after the other: a bad one is named in the
 * answer and does not keep its neighbours. Only when the store fails the whole call fails (503); the sender then
 * repeats it, and what was stored already is recognised as a duplicate.
 *
 * Answered means stored, not handled: that is the queues' business.
 */
#include "base/json.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"
#include "kernel/edge/intake.h"
#include "service/instance/instances.h"

enum { PARSED_AT_ONCE_MAX = 4096 }; /* bytes of a body that is read on the loop */

struct inbox_call {
	struct intake_call    call;
	struct intake_record *records;
	size_t                count, at;
};

/* RC_NOT_FOUND that names those there are. */
static enum rc check_source(struct request *r, struct str source, struct err *e)
{
	const struct api_options *o = &r->api->options;
	struct str                known = STR("");

	for (size_t i = 0; i < o->inbox_count; i++) {
		if (str_eq(source, str_from(o->inboxes[i])))
			return RC_OK;
		known = str_format(&r->call->arena, "%.*s%s%s", STR_ARG(known), i ? ", " : "", o->inboxes[i]);
	}
	if (source.n > 40)
		source.n = 40;
	return err_set(e, RC_NOT_FOUND, "there is no inbox for '%.*s'; there are: %.*s", STR_ARG(source),
	               STR_ARG(known));
}

static int64_t count_verdicts(const struct inbox_call *c, enum intake_verdict verdict)
{
	int64_t count = 0;

	for (size_t i = 0; i < c->count; i++)
		count += c->records[i].verdict == verdict;
	return count;
}

static void reply_verdicts(struct request *r)
{
	const struct inbox_call *c = r->arg;
	struct json_out          o = reply_begin(r);

	JSON_PUT(&o, member_int("accepted", count_verdicts(c, INTAKE_ACCEPTED)),
	         member_int("duplicates", count_verdicts(c, INTAKE_DUPLICATE)), member_list("rejected"));
	for (size_t i = 0; i < c->count; i++) {
		if (c->records[i].verdict != INTAKE_REJECTED)
			continue;
		JSON_PUT(&o, member_object(NULL), member_int("index", (int64_t)i), member_text("id", c->records[i].id),
		         member_word("error", c->records[i].e.msg), member_end());
	}
	json_close_array(&o);
	reply_send(r, 202);
}

static void store_next(struct request *r);

static void on_stored(struct request *r)
{
	struct inbox_call    *c = r->arg;
	struct intake_record *record = c->call.record;

	if (rc_is_retryable(r->txn.rc) || rc_http_status(r->txn.rc) == 500) {
		request_refuse(r, RC_UNAVAILABLE, "record %zu could not be stored: %s", c->at - 1, r->txn.e.msg);
		return; /* the sender repeats all of it */
	}
	if (r->txn.rc) {
		record->verdict = INTAKE_REJECTED;
		record->e = r->txn.e;
	}
	store_next(r);
}

static void store_next(struct request *r)
{
	struct inbox_call *c = r->arg;

	while (c->at < c->count && c->records[c->at].verdict == INTAKE_REJECTED)
		c->at++;
	if (c->at == c->count) {
		reply_verdicts(r);
		return;
	}
	c->call.record = &c->records[c->at++];
	request_submit(r, intake_store, &c->call, false, on_stored);
}

/* --- reading --- */

static enum rc parse(struct request *r, void *arg, struct err *e)
{
	struct inbox_call *c = arg;

	if (str_eq(c->call.source, STR(INSTANCE_COMMANDS)))
		return instance_intake(r->call->req.body, &r->call->arena, &c->records, &c->count, e);
	return intake_parse(c->call.source, r->call->req.body, &r->call->arena, &c->records, &c->count, e);
}

/* A body whose reading takes longer than the loop has time is left to a thread. */
void handle_inbox(struct request *r)
{
	struct inbox_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	bool               is_long = r->call->req.body.n > PARSED_AT_ONCE_MAX;

	r->arg = c;
	c->call.source = r->params[0];
	c->call.request_id = str_from(r->id);
	if (!request_is_good(r, check_source(r, c->call.source, &r->e) || (!is_long && parse(r, c, &r->e))))
		return;
	if (is_long)
		blocking_start(r, BLOCKING_INBOX, parse, store_next, c);
	else
		store_next(r);
}

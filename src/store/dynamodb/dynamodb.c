/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dynamodb.c - the back end for many nodes.
 *
 * Workers take transactions as they come and run each optimistically: the function reads, decides, and its changes are
 * committed by one conditional write (ddb_write.c). When somebody else was faster the function is run again, after a
 * short random wait, a bounded number of times and within a deadline. There is no lock and no leader; any number of
 * processes may do this on the same tables.
 *
 * Always true:
 *   1. done(RC_OK) of a writing transaction comes after DynamoDB acknowledged its write.
 *   2. What a function decided from records read by key holds at the moment of the commit.      [ddb_write.c]
 *   3. A transaction of a few records is answered within about deadline_ms, whatever the service does: its calls share
 *      that time, waiting ones are turned away, and after some failures in a row nothing is tried for a moment (the
 *      breaker).
 *
 * After a lost answer nobody knows whether the write happened. The caller is told RC_UNAVAILABLE; asking again finds
 * out.
 */
#include "store/dynamodb/dynamodb.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/id.h"
#include "base/lock.h"
#include "base/mem.h"
#include "net/aws.h"
#include "store/dynamodb/ddb_private.h"

enum { TRIES_MAX = 24, BREAKER_THRESHOLD = 5, BREAKER_OPEN_MS = 500, FEW_CALLS = 10, LAST_CALL_MS = 90 };

/* --- calls --- */

static enum rc ask_breaker(struct ddb_store *d, uint64_t *ret_ticket, struct err *e)
{
	LOCKED(&d->breaker_lock);
	if (breaker_allows(&d->breaker, (struct wall){ mono_now().ms }, ret_ticket))
		return RC_OK;
	return err_set(e, RC_UNAVAILABLE, "DynamoDB did not answer a moment ago; it is not asked again yet");
}

static void tell_breaker(struct ddb_store *d, uint64_t ticket, bool is_ok)
{
	LOCKED(&d->breaker_lock);
	breaker_note(&d->breaker, ticket, is_ok, (struct wall){ mono_now().ms });
}

/* A partition key has used up its share for now. */
static bool is_throttle(struct str code)
{
	return str_eq(code, STR("ThrottlingError")) || str_eq(code, STR("ProvisionedThroughputExceeded")) ||
	       str_eq(code, STR("RequestLimitExceeded"));
}

/* Cancelled for throttling alone: the same request can be repeated, with the same token. */
static bool is_throttled(const struct aws_reply *answer)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	const json_t               *reasons, *reason;
	int                         throttles = 0;

	if (!str_eq(answer->error_type, STR("TransactionCanceledException")) || json_parse(answer->body, &reply, NULL))
		return false;
	reasons = json_object_get(reply, "CancellationReasons");
	for (size_t i = 0; (reason = json_array_get(reasons, i)); i++) {
		struct str code;

		if (!json_get_text(reason, "Code", &code) || str_eq(code, STR("None")))
			continue;
		if (!is_throttle(code))
			return false;
		throttles++;
	}
	return throttles > 0;
}

/* Why a transaction was cancelled: only conditions and other transactions are worth another run. */
static enum rc read_cancellation(const json_t *reply, const struct aws_reply *answer, struct err *e)
{
	const json_t *reasons = json_object_get(reply, "CancellationReasons"), *reason;
	bool          is_conflict = false;

	for (size_t i = 0; (reason = json_array_get(reasons, i)); i++) {
		struct str code;

		if (!json_get_text(reason, "Code", &code) || str_eq(code, STR("None")) || is_throttle(code))
			continue;
		if (str_eq(code, STR("ConditionalCheckFailed")) || str_eq(code, STR("TransactionConflict")))
			is_conflict = true;
		else if (str_eq(code, STR("ValidationError")) || str_eq(code, STR("ItemCollectionSizeLimitExceeded")))
			return err_set(e, RC_INTERNAL, "DynamoDB refused a transaction: %.*s",
			               STR_ARG(answer->error_message));
		else
			return err_set(e, RC_UNAVAILABLE, "DynamoDB cancelled a transaction: %.*s", STR_ARG(code));
	}
	return is_conflict ? err_set(e, RC_CONFLICT, "somebody else was faster")
	                   : err_set(e, RC_UNAVAILABLE, "DynamoDB cancelled a transaction without a reason");
}

static enum rc read_refusal(struct ddb_store *d, const json_t *reply, const struct aws_reply *answer, struct err *e)
{
	struct str type = answer->error_type;

	if (str_eq(type, STR("ConditionalCheckFailedException")) || str_eq(type, STR("TransactionConflictException")))
		return err_set(e, RC_CONFLICT, "somebody else was faster");
	if (str_eq(type, STR("TransactionCanceledException")))
		return read_cancellation(reply, answer, e);
	if (str_eq(type, STR("ResourceNotFoundException")) ||
	    str_starts_with(answer->error_message, STR("The table does not have the specified index")))
		return err_set(e, RC_UNAVAILABLE,
		               "a table or index is missing (%s, %s): 'leasehold store create-tables'",
		               d->options.pool_table, d->options.kernel_table);
	if (str_starts_with(answer->error_message, STR("Cannot read from backfilling global secondary index")))
		return err_set(e, RC_UNAVAILABLE, "an index of the tables (%s, %s) is new, and still being filled",
		               d->options.pool_table, d->options.kernel_table);
	if (str_eq(type, STR("ValidationException")))
		return err_set(e, RC_INTERNAL, "DynamoDB refused a request: %.*s", STR_ARG(answer->error_message));
	return err_set(e, RC_UNAVAILABLE, "DynamoDB answered %.*s: %.*s", STR_ARG(type),
	               STR_ARG(answer->error_message));
}

/* 0: the client's. */
static long time_for_call(struct ddb_session *session)
{
	int64_t left = session->end.ms - mono_now().ms;

	if (!session->end.ms || session->calls++ >= FEW_CALLS)
		return 0;
	return left > LAST_CALL_MS ? (long)left : LAST_CALL_MS;
}

enum rc ddb_call(struct ddb_session *session, const char *operation, const struct buf *body, struct arena *a,
                 json_t **ret, struct err *e)
{
	struct ddb_store           *d = session->store;
	struct aws_request          req = { .type = STR("application/x-amz-json-1.0"),
		                            .body = buf_str(body),
		                            .total_ms = time_for_call(session),
		                            .is_patient = true,
		                            .is_slow = is_throttled };
	CLEANUP(json_freep) json_t *reply = NULL;
	struct aws_reply            answer;
	char                        target[64];
	uint64_t                    ticket;
	enum rc                     rc = ask_breaker(d, &ticket, e);

	if (rc)
		return rc;
	(void)snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation); /* fits */
	req.target = str_from(target);
	req.shown = target;
	rc = aws_send(d->options.client, &req, a, &answer, e);
	tell_breaker(d, ticket, rc == RC_OK || answer.throttles); /* "slow down" is an answer */
	if (rc && e)
		e->code = NULL; /* of the way there; codes are for what a function decides: see is_away() */
	if (rc == RC_TIMEOUT || rc == RC_LIMITED) { /* for our callers the same: the store cannot serve now */
		if (e)
			e->rc = RC_UNAVAILABLE;
		return RC_UNAVAILABLE;
	}
	if (rc)
		return rc;
	if (json_parse(answer.body, &reply, NULL))
		return err_set(e, RC_UNAVAILABLE, "DynamoDB's answer to %s cannot be understood", operation);
	if (answer.status != 200)
		rc = read_refusal(d, reply, &answer, e);
	if (!rc || rc == RC_CONFLICT)
		*ret = TAKE(reply);
	return rc;
}

/* --- transactions --- */

static void wait_a_little(const struct ddb_store *d, struct mono end, int tries)
{
	int64_t         longest = (int64_t)d->options.backoff_base_ms << (tries < 10 ? tries - 1 : 10);
	int64_t         left = end.ms - mono_now().ms;
	int64_t         ns;
	struct timespec t;

	if (longest > d->options.backoff_max_ms)
		longest = d->options.backoff_max_ms;
	if (longest > left)
		longest = left > 0 ? left : 0;
	ns = (int64_t)(id_fast_random() % (uint64_t)(longest * 1000000 + 1));
	t = (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	nanosleep(&t, NULL);
}

/* Records are read one after the other, and somebody may change both in between: then a function sees a state that
 * never existed, and may find a contradiction in it. A commit would notice; a refusal has none, so it counts only when
 * the function says the same again. */
static bool is_doubtful(const struct session *s, const struct txn *t, const struct err *before)
{
	int reads = 0;

	for (const struct session_entry *entry = s->first; entry; entry = entry->next)
		reads += entry->is_decisive;
	return t->rc == RC_CONFLICT && !t->is_read_only && reads > 1 &&
	       !(before->rc == t->rc && strcmp(before->msg, t->e.msg) == 0);
}

/* The store itself cannot serve; a function's own refusal has a code, such as CLAIMS_PAUSED. */
static bool is_away(const struct txn *t)
{
	return t->rc == RC_UNAVAILABLE && !t->e.code;
}

/* True when the outcome stands; false: run it again. */
static bool try_once(struct ddb_store *d, struct txn *t, struct mono end, int tries)
{
	struct ddb_session ddb = { .store = d, .end = end, .may_assume = tries == 0 && !t->is_read_only };
	struct session     s = { .store = &d->base,
		                 .arena = t->arena,
		                 .now = clock_now(d->base.clock),
		                 .is_read_only = t->is_read_only,
		                 .connection = &ddb };
	struct err         before = t->e; /* of the try before */
	bool               was_applying;

	err_clear(&t->e);
	(void)session_execute(&s, t, &was_applying); /* kept in the transaction */
	if (t->rc == RC_OK || is_away(t))
		return true;
	if (was_applying && t->rc == RC_CONFLICT && !ddb.is_taken) {
		atomic_fetch_add(&d->base.conflicts, 1);
		ddb_doubt_candidates(d);
		return false;
	}
	if (!was_applying && is_doubtful(&s, t, &before))
		return false;
	return !ddb.has_assumed; /* a refusal that rests on an assumption does not count */
}

static void run_txn(struct ddb_store *d, struct txn *t)
{
	struct mono end = { t->submitted.ms + d->options.deadline_ms };

	for (int tries = 0; !try_once(d, t, end, tries); tries++) {
		if (tries + 1 >= TRIES_MAX || mono_now().ms >= end.ms) {
			err_clear(&t->e);
			t->rc = err_set(&t->e, RC_UNAVAILABLE, "too many others change the same records; try again");
			break;
		}
		if (tries > 0)
			wait_a_little(d, end, tries);
	}
	store_note_commit(&d->base, is_away(t) ? t->rc : RC_OK, &t->e, 1, true);
}

static void *work(void *arg)
{
	struct ddb_store  *d = arg;
	struct inbox_item *item;

	while ((item = inbox_wait_one(&d->work))) {
		struct txn *t = CONTAINER_OF(item, struct txn, item);

		if (mono_now().ms - t->submitted.ms >= d->options.deadline_ms)
			t->rc = err_set(&t->e, RC_UNAVAILABLE, "the store is too slow for what is asked of it");
		else
			run_txn(d, t);
		store_tell(&d->base, &t, 1);
	}
	return NULL;
}

static void submit(struct store *base, struct txn *const *txns, size_t count)
{
	struct ddb_store *d = CONTAINER_OF(base, struct ddb_store, base);

	for (size_t i = 0; i < count; i++) /* each may wake a worker */
		(void)inbox_put(&d->work, &txns[i]->item);
}

static void close_store(struct store *base)
{
	struct ddb_store *d = CONTAINER_OF(base, struct ddb_store, base);

	inbox_close(&d->work);
	for (unsigned i = 0; i < d->options.workers; i++)
		pthread_join(d->workers[i], NULL);
	free(d->workers);
	inbox_fini(&d->work);
	arena_fini(&d->candidates.arena);
	pthread_mutex_destroy(&d->candidates.lock);
	pthread_mutex_destroy(&d->breaker_lock);
	store_fini(base);
	free(d);
}

static const struct store_ops ops = {
	.name = "dynamodb",
	.submit = submit,
	.turn = store_turn_nothing,
	.close = close_store,
	.get = ddb_get,
	.query = ddb_query,
	.find_unique = ddb_find_unique,
	.count = ddb_count,
	.claim = ddb_claim,
	.apply = ddb_apply,
};

struct store *store_dynamodb_open(const struct ddb_options *o)
{
	struct ddb_store *d = mem_new(struct ddb_store);

	assert(o->candidates >= 1 && o->candidates <= DDB_CANDIDATES_MAX && o->workers >= 1);
	store_init(&d->base, &ops, o->clock);
	d->options = *o;
	d->breaker = (struct breaker){ .threshold = BREAKER_THRESHOLD, .timeout_ms = BREAKER_OPEN_MS };
	inbox_init(&d->work);
	pthread_mutex_init(&d->breaker_lock, NULL);
	pthread_mutex_init(&d->candidates.lock, NULL);
	d->workers = mem_new_array(pthread_t, o->workers);
	for (unsigned i = 0; i < o->workers; i++)
		mem_must(!pthread_create(&d->workers[i], NULL, work, d), "a thread");
	return &d->base;
}

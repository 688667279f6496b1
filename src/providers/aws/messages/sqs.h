/* sqs.h - one queue of SQS: receive, keep, delete, send. Blocks. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/queue.h"

/* Texts are borrowed. */
struct sqs_queue {
	struct aws_caller *caller;
	struct str         url;
	const char        *region; /* sqs_region() of the URL */
};

/* The region in a queue's URL, in the arena; NULL: it names none, and the caller's counts. */
const char *sqs_region(struct str url, struct arena *a);

/* RC_INVALID says what a queue's URL looks like. */
MUST_CHECK enum rc sqs_check_url(struct str url, struct err *e);

enum { SQS_BATCH_MAX = 10, SQS_WAIT_SEC = 20, SQS_LIMIT_MS = 25000 };

struct sqs_message {
	struct str id, receipt, body;
	int64_t    receives; /* this one included; 0: not told */
};

/* Wait up to SQS_WAIT_SEC for messages; none is fine. One attempt: whoever polls comes again. RC_NOT_FOUND: there is
 * no such queue. Texts are in the arena; ret has room for SQS_BATCH_MAX. */
MUST_CHECK enum rc sqs_receive(const struct sqs_queue *q, struct arena *a, struct sqs_message *ret, size_t *ret_count,
                               struct err *e);

/* Those that could not be deleted are counted, and the first of them is in e (which is then set although the answer
 * is RC_OK): they come again. One whose receipt has run out is not counted: it comes again for certain, and is known
 * then. */
MUST_CHECK enum rc sqs_delete(const struct sqs_queue *q, const struct sqs_message *messages, size_t count,
                              struct arena *a, size_t *ret_failed, struct err *e);

/* Hide them from everybody else for this long from now on. */
MUST_CHECK enum rc sqs_keep(const struct sqs_queue *q, const struct sqs_message *messages, size_t count,
                            int64_t seconds, struct arena *a, struct err *e);

/* For how many seconds a received message is hidden from everybody else. */
MUST_CHECK enum rc sqs_visibility(const struct sqs_queue *q, struct arena *a, int64_t *ret_sec, struct err *e);

/* Call of a kernel queue: the event's detail is the message. arg is a struct sqs_queue. RC_INVALID: no try will help.
 */
queue_call_fn sqs_send_call;

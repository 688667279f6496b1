/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqs.c - the calls of SQS, each a row.
 *
 * What is said about a message of a batch is found by its position, which is its id there: receipts are long, ids of
 * messages are not ours.
 */
#include "providers/aws/messages/sqs.h"

#include "base/buf.h"
#include "base/json.h"
#include "kernel/records.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"

enum { URL_MAX = 2000, REQUEST_MAX = 65536, VISIBILITY_MAX = 43200, RECEIVES_MAX = 1000000 };

static const struct aws_error_row errors[] = {
	{ "QueueDoesNotExist", RC_NOT_FOUND }, { "AWS.SimpleQueueService.NonExistentQueue", RC_NOT_FOUND },
	{ "InvalidAddress", RC_NOT_FOUND },    { "KmsAccessDenied", RC_DENIED },
	{ "KmsDisabled", RC_DENIED },          { "KmsNotFound", RC_DENIED },
	{ "KmsInvalidState", RC_DENIED },      { NULL, RC_OK }
};

/* Sending: what is not there for the queue will not be there for the next try. */
static const struct aws_error_row send_errors[] = { { "QueueDoesNotExist", RC_INVALID },
	                                            { "AWS.SimpleQueueService.NonExistentQueue", RC_INVALID },
	                                            { "InvalidMessageContents", RC_INVALID },
	                                            { NULL, RC_OK } };

/* clang-format off */
#define SQS_OP(operation, its_permission, writing, rows) \
	{ .service = &aws_services[AWS_SQS], .name = operation, .permission = "sqs:" its_permission, .writes = writing, .errors = rows }
static const struct aws_op
	receive_op    = SQS_OP("ReceiveMessage", "ReceiveMessage", false, errors),
	delete_op     = SQS_OP("DeleteMessageBatch", "DeleteMessage", true, errors),
	keep_op       = SQS_OP("ChangeMessageVisibilityBatch", "ChangeMessageVisibility", true, errors),
	attributes_op = SQS_OP("GetQueueAttributes", "GetQueueAttributes", false, errors),
	send_op       = SQS_OP("SendMessage", "SendMessage", true, send_errors);
/* clang-format on */

/* --- the URL --- */

/* sqs.eu-west-1.amazonaws.com, or eu-west-1.queue.amazonaws.com as it used to be. */
const char *sqs_region(struct str url, struct arena *a)
{
	struct str host = url, first, second;

	(void)str_cut(&host, '/');
	(void)str_cut(&host, '/');
	host = str_cut(&host, '/');
	if (!str_has(host, STR(".amazonaws.com")))
		return NULL;
	first = str_cut(&host, '.');
	second = str_cut(&host, '.');
	if (str_eq(first, STR("sqs")) && memchr(second.p, '-', second.n))
		return str_dup(a, second).p;
	return str_eq(second, STR("queue")) ? str_dup(a, first).p : NULL;
}

enum rc sqs_check_url(struct str url, struct err *e)
{
	bool       is_http = str_starts_with(url, STR("https://")) || str_starts_with(url, STR("http://"));
	struct str rest = url;
	int        slashes = 0;

	while (memchr(rest.p, '/', rest.n)) {
		(void)str_cut(&rest, '/');
		slashes++;
	}
	if (is_http && slashes >= 4 && rest.n && url.n <= URL_MAX && !str_has_control(url) &&
	    !memchr(url.p, ' ', url.n))
		return RC_OK;
	return err_set(e, RC_INVALID,
	               "must be the URL of a queue, such as https://sqs.us-east-1.amazonaws.com/123456789012/NAME");
}

/* --- requests --- */

static struct aws_call call_of(const struct sqs_queue *q, const struct aws_op *op, struct str body)
{
	return (struct aws_call){
		.op = op, .body = body, .region = q->region, .ms = SINK_MS, .attempts = SINK_ATTEMPTS
	};
}

static enum rc ask(const struct sqs_queue *q, const struct aws_op *op, struct str body, struct arena *a, json_t **ret,
                   struct err *e)
{
	struct aws_call call = call_of(q, op, body);

	return aws_do_call(q->caller, &call, a, ret, e);
}

/* {"QueueUrl": ..., "Entries": [{"Id": "0", "ReceiptHandle": ...}]} */
static struct str write_batch(const struct sqs_queue *q, const struct sqs_message *messages, size_t count,
                              int64_t seconds, struct arena *a)
{
	struct buf      b = BUF(REQUEST_MAX);
	struct json_out o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_str("QueueUrl", q->url), member_list("Entries"));
	for (size_t i = 0; i < count; i++)
		JSON_PUT(&o, member_object(NULL), member_str("Id", str_format(a, "%zu", i)),
		         member_str("ReceiptHandle", messages[i].receipt),
		         member_if_any(member_int("VisibilityTimeout", seconds)), member_end());
	JSON_PUT(&o, member_list_end(), member_end());
	return buf_take(&b, a);
}

/* --- receive --- */

static void read_message(const json_t *o, struct arena *a, struct sqs_message *ret)
{
	const json_t *attributes = json_object_get(o, "Attributes");
	struct str    receives = STR("");

	*ret = (struct sqs_message){ 0 };
	if (!json_take_text(o, "MessageId", a, &ret->id) || !json_take_text(o, "ReceiptHandle", a, &ret->receipt) ||
	    !json_take_text(o, "Body", a, &ret->body))
		*ret = (struct sqs_message){ 0 };
	if (json_get_text(attributes, "ApproximateReceiveCount", &receives) &&
	    !str_to_int(receives, 0, RECEIVES_MAX, &ret->receives))
		ret->receives = 0;
}

enum rc sqs_receive(const struct sqs_queue *q, struct arena *a, struct sqs_message *ret, size_t *ret_count,
                    struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	const json_t               *list;
	struct str                  names = STR("[\"ApproximateReceiveCount\"]");
	struct str body = JSON_OF(a, member_str("QueueUrl", q->url), member_int("MaxNumberOfMessages", SQS_BATCH_MAX),
	                          member_int("WaitTimeSeconds", SQS_WAIT_SEC),
	                          member_raw("MessageSystemAttributeNames", names));
	struct aws_call call = call_of(q, &receive_op, body);
	enum rc         rc;

	call.ms = call.attempt_ms = SQS_LIMIT_MS;
	call.attempts = 1;
	if ((rc = aws_do_call(q->caller, &call, a, &answer, e)))
		return rc;
	list = json_object_get(answer, "Messages");
	*ret_count = 0;
	for (size_t i = 0; i < json_array_size(list) && *ret_count < SQS_BATCH_MAX; i++) {
		read_message(json_array_get(list, i), a, &ret[*ret_count]);
		*ret_count += ret[*ret_count].receipt.n > 0;
	}
	return RC_OK;
}

/* --- delete, keep --- */

enum rc sqs_delete(const struct sqs_queue *q, const struct sqs_message *messages, size_t count, struct arena *a,
                   size_t *ret_failed, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	const json_t               *failed;
	enum rc                     rc = ask(q, &delete_op, write_batch(q, messages, count, 0, a), a, &answer, e);

	*ret_failed = 0;
	if (rc)
		return rc;
	failed = json_object_get(answer, "Failed");
	for (size_t i = 0; i < json_array_size(failed); i++) {
		struct str code = STR(""), text = STR("");

		if (!json_get_text(json_array_get(failed, i), "Code", &code) ||
		    !json_get_text(json_array_get(failed, i), "Message", &text))
			code = STR("an entry that makes no sense");
		if (str_eq(code, STR("ReceiptHandleIsInvalid")))
			continue;
		++*ret_failed;
		rc_ignore(
		        err_set(e, RC_UNAVAILABLE, "%.*s: %.*s", STR_ARG(code), STR_ARG(text))); /* the first is kept */
	}
	return RC_OK;
}

enum rc sqs_keep(const struct sqs_queue *q, const struct sqs_message *messages, size_t count, int64_t seconds,
                 struct arena *a, struct err *e)
{
	return ask(q, &keep_op, write_batch(q, messages, count, seconds, a), a, NULL, e);
}

enum rc sqs_visibility(const struct sqs_queue *q, struct arena *a, int64_t *ret_sec, struct err *e)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	struct str                  names = STR("[\"VisibilityTimeout\"]"), text = STR("");
	struct str body = JSON_OF(a, member_str("QueueUrl", q->url), member_raw("AttributeNames", names));
	enum rc    rc = ask(q, &attributes_op, body, a, &answer, e);

	if (rc)
		return rc;
	if (!json_get_text(json_object_get(answer, "Attributes"), "VisibilityTimeout", &text) ||
	    !str_to_int(text, 0, VISIBILITY_MAX, ret_sec))
		return err_set(e, RC_CORRUPT, "the queue does not tell its VisibilityTimeout");
	return RC_OK;
}

/* --- send --- */

enum rc sqs_send_call(struct call *c, struct err *e)
{
	const struct sqs_queue *q = c->arg;
	struct str              body = JSON_OF(c->arena, member_str("QueueUrl", q->url),
	                                       member_str("MessageBody", c->delivery->event.detail));

	return sink_rc(ask(q, &send_op, body, c->arena, NULL, e), e);
}

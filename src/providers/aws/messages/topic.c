/* SPDX-License-Identifier: Apache-2.0 */
/* topic.c - one alarm, raised, changed or cleared, in the words of our mails, to the topic's subscribers. */
#include "providers/aws/messages/topic.h"

#include "base/arena.h"
#include "kernel/records.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"
#include "providers/notify/message.h"

static const struct aws_error_row errors[] = { { "NotFound", RC_INVALID },
	                                       { "AuthorizationError", RC_INVALID },
	                                       { "InvalidParameter", RC_INVALID },
	                                       { "ParameterValueInvalid", RC_INVALID },
	                                       { "EndpointDisabled", RC_INVALID },
	                                       { "InternalError", RC_UNAVAILABLE },
	                                       { NULL, RC_OK } };

static const struct aws_op publish_op = { .service = &aws_services[AWS_SNS],
	                                  .name = "Publish",
	                                  .permission = "sns:Publish",
	                                  .writes = true,
	                                  .errors = errors };

struct str topic_subject(struct str text, struct arena *a)
{
	char  *copy = arena_copy(a, text.p, text.n);
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < TOPIC_SUBJECT_MAX; i++) {
		bool is_inside = ((unsigned char)copy[i] & 0xc0) == 0x80; /* of a character of several bytes */

		if (!is_inside)
			copy[n++] = copy[i] >= ' ' && copy[i] <= '~' ? copy[i] : '?';
	}
	return str_of(copy, n);
}

enum rc topic_call(struct call *c, struct err *e)
{
	const struct topic *t = c->arg;
	const struct event *event = &c->delivery->event;
	struct aws_call     call = { .op = &publish_op, .region = t->region, .ms = SINK_MS, .attempts = SINK_ATTEMPTS };

	call.body = AWS_PAIRS(c->arena, { "TopicArn", t->arn },
	                      { "Subject", topic_subject(message_subject(event, c->arena), c->arena) },
	                      { "Message", message_text(event, c->arena) });
	return sink_rc(aws_do_call(t->caller, &call, c->arena, NULL, e), e);
}

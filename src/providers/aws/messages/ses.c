/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ses.c - one mail to one person by SES v2.
 *
 * Three kinds of refusal. A message or a sender that SES does not take: dead at once, with its words. Sending that is
 * paused, suspended or over the day's quota: nothing is wrong with the mail, so it waits for 15 minutes without a try
 * being counted, and nobody asks SES meanwhile [note_pause()]; an alarm tells. All else is tried again as the queue
 * says.
 *
 * A mail whose answer is lost is sent again: whoever gets it twice sees the event's id at its end.
 */
#include "providers/aws/messages/ses.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "kernel/records.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"
#include "providers/notify/message.h"

enum { WHY_SIZE = 240 };

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "MessageRejected",                    RC_INVALID },
	{ "MailFromDomainNotVerifiedException", RC_INVALID },
	{ "BadRequestException",                RC_INVALID },
	{ "NotFoundException",                  RC_INVALID },
	{ "SendingPausedException",             RC_UNFIT },
	{ "AccountSuspendedException",          RC_UNFIT },
	{ "LimitExceededException",             RC_UNFIT },
	{ "ThrottlingException",                RC_UNFIT, "quota exceeded" }, /* of the day; else one mail came too soon */
	{ "TooManyRequestsException",           RC_UNFIT, "quota exceeded" },
	{ NULL, RC_OK },
};
/* clang-format on */

static const struct aws_op send_op = { .service = &aws_services[AWS_SES],
	                               .name = "SendEmail",
	                               .permission = "ses:SendEmail",
	                               .writes = true,
	                               .method = "POST",
	                               .path = "/v2/email/outbound-emails",
	                               .errors = errors };

struct ses {
	struct aws_caller *caller;
	struct str         from;
	pthread_mutex_t    lock;
	struct mono        until; /* no mail before this */
	char               why[WHY_SIZE];
};

struct ses *ses_new(struct aws_caller *caller, struct str from)
{
	struct ses *s = mem_new(struct ses);

	s->caller = caller;
	s->from = from;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void ses_free(struct ses *s)
{
	if (!s)
		return;
	pthread_mutex_destroy(&s->lock);
	free(s);
}

/* --- the pause --- */

static int64_t pause_left(struct ses *s, char *why, size_t size)
{
	int64_t left_ms;

	LOCKED(&s->lock);
	left_ms = s->until.ms - mono_now().ms;
	(void)snprintf(why, size, "%s", s->why); /* a cut text is still one */
	return left_ms > 0 ? left_ms : 0;
}

bool ses_is_paused(struct ses *s, char *why, size_t size)
{
	return pause_left(s, why, size) > 0;
}

static void note_pause(struct ses *s, const struct err *e)
{
	LOCKED(&s->lock);
	s->until.ms = mono_now().ms + SES_PAUSE_MS;
	(void)snprintf(s->why, sizeof(s->why), "%s", e->msg); /* the same */
}

/* --- sending --- */

static struct str write_request(const struct ses *s, const struct delivery *d, struct arena *a)
{
	struct str to = str_format(a, "[\"%.*s\"]", STR_ARG(d->target)); /* an address: nothing in it needs an escape */
	struct str charset = STR("UTF-8");

	return JSON_OF(a, member_str("FromEmailAddress", s->from), member_object("Destination"),
	               member_raw("ToAddresses", to), member_end(), member_object("Content"), member_object("Simple"),
	               member_object("Subject"), member_str("Data", message_subject(&d->event, a)),
	               member_str("Charset", charset), member_end(), member_object("Body"), member_object("Text"),
	               member_str("Data", message_text(&d->event, a)), member_str("Charset", charset), member_end(),
	               member_end(), member_end(), member_end());
}

enum rc ses_call(struct call *c, struct err *e)
{
	struct ses     *s = c->arg;
	struct aws_call call = { .op = &send_op, .ms = SINK_MS, .attempts = SINK_ATTEMPTS };
	char            why[WHY_SIZE];
	enum rc         rc;

	if (!message_is_address(c->delivery->target))
		return err_set(e, RC_INVALID, "\"%.*s\" is not a mail address of the form name@example.org",
		               STR_ARG(c->delivery->target));
	if ((c->wait_ms = pause_left(s, why, sizeof(why))))
		return err_set(e, RC_LIMITED, "%s", why);
	call.body = write_request(s, c->delivery, c->arena);
	rc = sink_rc(aws_do_call(s->caller, &call, c->arena, NULL, e), e);
	if (rc == RC_UNFIT) {
		note_pause(s, e);
		c->wait_ms = SES_PAUSE_MS;
	}
	return rc;
}

/* messages.h - what comes from AWS's queues and goes to its bus, topics, mail and scheduler, put together as the
 * settings want it. */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "providers/aws/messages/bell.h"
#include "providers/aws/messages/bus.h"
#include "providers/aws/messages/emf.h"
#include "providers/aws/messages/poller.h"
#include "providers/aws/messages/ses.h"
#include "providers/aws/messages/sqs.h"
#include "providers/aws/messages/topic.h"

struct config;

enum { MESSAGES_INBOXES = 5 };

/* What is not wanted is NULL, or has no text. app/subscriptions.c gives the sinks to the kernel. */
struct messages {
	const struct parts *p;
	struct arena        arena;
	struct aws_callers *callers; /* borrowed */
	struct bus         *bus;
	struct topic        topic; /* no arn: none */
	struct ses         *ses;
	struct sqs_queue    tenant; /* no url: none */
	struct bell         bell;
	bool                has_bell, has_emf;
	struct emf          emf;

	struct poller_options inboxes[MESSAGES_INBOXES];
	size_t                inbox_count;
	struct poller        *pollers[MESSAGES_INBOXES];                 /* while it runs */
	bool                  was_failing[MESSAGES_INBOXES], was_paused; /* as it was stated last */
};

/* In the order of the words of LEASEHOLD_MAIL and LEASEHOLD_WAKE. */
enum { MAIL_BY_SMTP, MAIL_BY_SES };
enum { WAKE_NONE, WAKE_SCHEDULER };

/* Is any of it wanted? */
bool messages_is_wanted(const struct config *c);

/* What is wrong with the settings, one problem a line. */
void messages_check(const struct config *c, bool is_dev, struct buf *problems);

/* Fills p->messages. After the pools and the instances. Nothing is called yet. */
void messages_new(struct parts *p);
void messages_free(struct messages *m);

/* Queues are read from now on; stop ends that, and messages_end() waits for it. */
void messages_start(struct messages *m);
void messages_stop(struct messages *m);
void messages_end(struct messages *m);

/* Arm what has to be armed. Blocks; repeat it when it fails. */
MUST_CHECK enum rc messages_arm(struct messages *m, struct err *e);

/* For the pulse, with each beat: state what only this process sees. And once a minute: the line of figures. */
void messages_tell(struct messages *m);
void messages_write_figures(struct messages *m);

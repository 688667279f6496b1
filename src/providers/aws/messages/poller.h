/* poller.h - a thread that takes what comes into a queue of SQS to an inbox of ours: stored first, deleted then. */
#pragma once

#include "kernel/edge/intake.h"
#include "providers/aws/messages/sqs.h"

/* Borrowed for as long as the poller lives. */
struct poller_options {
	const char      *name; /* of the inbox, in logs and alarms: "guard" */
	struct sqs_queue queue;
	struct inbox_way way;
};

struct poller *poller_start(const struct poller_options *o);

/* Nothing new is received; a long poll under way is given up within about a second. poller_free() waits for its end. */
void poller_stop(struct poller *p);
void poller_free(struct poller *p);

/* Whether it works. Any thread. */
struct poller_state {
	bool    is_failing;
	int64_t since_ms; /* by the machine's date; failing since, or 0 */
	char    text[240];
};
void poller_look(struct poller *p, struct poller_state *ret);

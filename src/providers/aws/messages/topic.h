/* topic.h - alarms to a topic of SNS: what the queue "sns" calls. */
#pragma once

#include "base/str.h"
#include "kernel/queue.h"

/* What the queue hears. */
#define TOPIC_EVENTS "AlarmRaised,AlarmChanged,AlarmCleared"

/* Borrowed. */
struct topic {
	struct aws_caller *caller;
	struct str         arn;
	const char        *region; /* arn_region() of it */
};

enum { TOPIC_SUBJECT_MAX = 99 }; /* SNS: "less than 100 characters" */

/* ASCII without control characters, at most TOPIC_SUBJECT_MAX. */
struct str topic_subject(struct str text, struct arena *a);

/* arg is a struct topic. RC_INVALID: no try will help. */
queue_call_fn topic_call;

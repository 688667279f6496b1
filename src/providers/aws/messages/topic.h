/* topic.h - alarms to a topic of SNS: what the queue "sns" calls. */
#pragma once

#include "base/str.h"
#include "kernel/queue.h"

struct aws_caller;

/* What the queue hears. */
#define TOPIC_EVENTS "AlarmRaised,AlarmChanged,AlarmCleared"

/* Borrowed. */
struct topic {
	struct aws_caller *caller;
	struct str         arn;
	const char        *region; /* topic_region() of the ARN */
};

/* The region that an ARN names, in the arena; NULL: none. */
const char *topic_region(struct str arn, struct arena *a);

enum { TOPIC_SUBJECT_MAX = 100 };

/* ASCII without control characters, at most TOPIC_SUBJECT_MAX. */
struct str topic_subject(struct str text, struct arena *a);

/* arg is a struct topic. RC_INVALID: no try will help. */
queue_call_fn topic_call;

/* ses.h - mail by SES: what the queues "mail-out" and "mail-alarm" call instead of a mail server. */
#pragma once

#include "base/str.h"
#include "kernel/queue.h"

struct aws_caller;

enum { SES_PAUSE_MS = 900000 };

/* Borrowed. */
struct ses *ses_new(struct aws_caller *caller, struct str from);
void        ses_free(struct ses *s);

/* One mail to the lane's target. arg is a struct ses. RC_INVALID: no try will help. While SES accepts no mail from us
 * at all, the delivery waits and no tries are counted. */
queue_call_fn ses_call;

/* Does SES refuse all mail from us? Then why, for an alarm. Any thread. */
bool ses_is_paused(struct ses *s, char *why, size_t size);

/* cloudtrail.h - what comes in from the organisation's audit trail. */
#pragma once

#include "kernel/queue.h"

/* Handler of the queue "cloudtrail": notes that the trail is alive and when it last said something, as the fact "inbox/cloudtrail". */
queue_handle_fn cloudtrail_note;

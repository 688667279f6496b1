/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sink.c - events as log lines, for machines that collect the log anyway.
 *
 * The line is written inside the transaction that removes the delivery. When that is run again, so is this: a line may
 * be there twice, with the same event id, but is never missing. The detail is a text that holds JSON, so that its
 * members are not confused with the line's own; a long one is cut.
 */
#include "providers/notify/log_sink.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "kernel/kernel.h"
#include "store/session.h"

enum { DETAIL_SHOWN_MAX = 4096 };

/* Somebody has to look, or will want to know why it happened. */
#define WARNINGS "AlarmRaised,AlarmChanged,SagaParked,SandboxExpired,SandboxDeletionFailed"

enum rc log_sink_handle(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	const struct event *event = &d->event;
	char                time[ISO_TIME_SIZE];
	struct log_field    fields[] = {
		   LOG_STR("event", event->id),
		   LOG_STR("type", event->type),
		   LOG_STR("subject", event->subject),
		   LOG_STR("actor", event->actor),
		   LOG_STR("source", event->source),
		   LOG_STR("account", event->account),
		   LOG_STR("region", event->region),
		   LOG_STR("time", iso_time(event->time_ms / 1000, time)),
		   LOG_STR("requestId", event->request_id),
		   LOG_NUM("schemaVersion", event->schema),
		   LOG_STR("resources", event->resources),
		   LOG_STR("detail", utf8_line(session_arena(s), event->detail, DETAIL_SHOWN_MAX)),
	};

	(void)arg, (void)e;
	log_write(kernel_matches(STR(WARNINGS), event->type) ? LOG_WARNING : LOG_INFO, "event", fields,
	          ARRAY_LEN(fields), "event");
	return RC_OK;
}

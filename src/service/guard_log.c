/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_log.c - the guard's own account of what it does: events, log lines, counts.
 *
 * The event is in the commit of what it tells about; the line and the count follow by a queue. So a line is never about something that was
 * not done, and may be there twice after a conflict, with the same event id. The names of actions and fields are those that operators of
 * the tool before us have in their searches.
 */
#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel/event.h"
#include "service/account_follow.h"
#include "service/guard_parts.h"

enum { LINE_MAX = 8192, FIELDS_MAX = 20 };

enum rc guard_tell(struct session *s, const char *action, struct str account, const struct guard_field *fields,
                   size_t count, struct err *e)
{
	struct event    event = { .type = str_format(session_arena(s), EVENT_GUARD_PREFIX "%s", action),
		                  .subject = account_subject(s, account),
		                  .actor = STR(GUARD_ACTOR) };
	struct json_out o;
	struct buf      b;

	buf_init(&b, LINE_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "action", str_from(action));
	json_put_str(&o, "accountId", account);
	for (size_t i = 0; i < count; i++)
		if (fields[i].text.n)
			json_put_str(&o, fields[i].name, fields[i].text);
	json_close_object(&o);
	event.detail = str_dup(session_arena(s), buf_str(&b));
	buf_fini(&b);
	return session_emit(s, &event, e);
}

/* What somebody should look at. */
static enum log_level level_of(struct str action)
{
	static const struct str loud[] = { STR_INIT("HANDLER_ERROR"), STR_INIT("QUARANTINE_FLAGGED"),
		                           STR_INIT("TAG_CHECK_FAILED"), STR_INIT("TAG_REMOVAL_FAILED"),
		                           STR_INIT("QUARANTINE_CORRECTED") };

	for (size_t i = 0; i < ARRAY_LEN(loud); i++)
		if (str_eq(action, loud[i]))
			return LOG_WARNING;
	return LOG_INFO;
}

enum rc guard_write_line(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct metrics             *metrics = arg;
	struct log_field            fields[FIELDS_MAX];
	size_t                      count = 0;
	struct str                  action;
	const char                 *name;
	json_t                     *value;

	if (json_parse(d->event.detail, &detail, e) || !json_get_text(detail, "action", &action))
		return err_set(e, RC_CORRUPT, "the detail of a %.*s makes no sense", STR_ARG(d->event.type));
	json_object_foreach(detail, name, value)
	{
		if (count < FIELDS_MAX - 1)
			fields[count++] = LOG_STR(name, str_of(json_string_value(value), json_string_length(value)));
	}
	fields[count++] = LOG_STR("event", d->event.id);
	action = str_dup(session_arena(s), action);
	log_write(level_of(action), "guard", fields, count, "%s", action.p);
	if (metrics)
		metrics_add(metrics, METRIC_GUARD, action.p, 1);
	return RC_OK;
}

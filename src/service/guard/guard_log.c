/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_log.c - the guard's own account of what it does: events, log lines, counts.
 *
 * The event is in the commit of what it tells about; a queue then writes the line and the count. So a line is never
 * about something that was not done, but may be there twice after a conflict, with the same event id. Actions and
 * fields have the names that operators of the previous tool use in their searches.
 *
 * Events of the organisation's audit trail are only counted here, because such trails fail by going silent.
 */
#include <assert.h>

#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel/event.h"
#include "service/account/account_follow.h"
#include "service/guard/guard_private.h"
#include "service/reconcile/reconcile.h"

enum { FIELDS_MAX = 20 };

enum rc guard_tell(struct session *s, const char *action, struct str account, const struct json_member *fields,
                   size_t count, struct err *e)
{
	struct json_member all[FIELDS_MAX] = { member_word("action", action), member_str("accountId", account) };

	assert(count + 2 < FIELDS_MAX);
	for (size_t i = 0; i < count; i++)
		all[i + 2] = member_if_any(fields[i]);
	return session_tell(s, str_format(session_arena(s), EVENT_GUARD_PREFIX "%s", action).p,
	                    account_subject(s, account), STR(GUARD_ACTOR), STR(""),
	                    json_of(session_arena(s), all, count + 2), e);
}

/* What somebody should look at. */
#define LOUD "HANDLER_ERROR QUARANTINE_FLAGGED TAG_CHECK_FAILED TAG_REMOVAL_FAILED QUARANTINE_CORRECTED"

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
	log_write(str_is_word_of(action, LOUD) ? LOG_WARNING : LOG_INFO, "guard", fields, count, "%s", action.p);
	if (metrics)
		metrics_add(metrics, METRIC_GUARD, action.p, 1);
	return RC_OK;
}

enum rc cloudtrail_note(struct session *s, const struct delivery *d, void *arg UNUSED, struct err *e)
{
	struct fact fact;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_CLOUDTRAIL), &fact, e);

	if (rc)
		return rc;
	fact.value++;
	fact.text = d->event.type;
	fact.at_ms = session_now(s).ms;
	fact.since_ms = fact.since_ms ? fact.since_ms : fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

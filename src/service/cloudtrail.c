/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloudtrail.c - events of the organisation's audit trail.
 *
 * They are in the log, each under its account; what follows from a move is for the services that own accounts. Here it is only counted,
 * because silence is what such trails fail with.
 */
#include "service/cloudtrail.h"

#include "kernel/records.h"

enum rc cloudtrail_note(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	struct fact fact = { 0 };
	enum rc     rc = session_get(s, &fact_type, STR("inbox/cloudtrail"), &fact, NULL);

	(void)arg;
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "fact inbox/cloudtrail cannot be read");
	fact.name = STR("inbox/cloudtrail");
	fact.value++;
	fact.text = d->event.type;
	fact.at_ms = session_now(s).ms;
	if (!fact.since_ms)
		fact.since_ms = fact.at_ms;
	session_put(s, &fact_type, &fact);
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_alarms.c - the alarms about tenants' instances, read from their records and from what the last scan has
 * found.
 *
 * Of each state, PAGES_MAX pages are read: 20,000 instances.
 *
 * Provisioning takes the machine's time, also where the world's is scaled; so do these limits.
 */

#include "service/alarms/alarms.h"
#include "base/json.h"
#include "kernel/kernel.h"
#include "service/instance/instance_records.h"

enum { PAGES_MAX = 20, WARN_MS = 15 * 60000, PAGE_MS = 20 * 60000, BELOW_MS = 5 * 60000 };

static struct records in_state(int state)
{
	struct query q = query_of(&instance_type, INSTANCE_BY_STATE, value_int(state), QUERY_LIMIT_MAX);

	return (struct records){ .query = q, .pages_max = PAGES_MAX };
}

/* The code and the message of a stored error. */
static struct str words_of(struct session *s, struct str error)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  code = STR(""), message = STR("");

	if (!error.n || json_parse(error, &o, NULL) || !json_get_text(o, "code", &code) ||
	    !json_get_text(o, "message", &message))
		return STR("no reason is known");
	return str_format(session_arena(s), "%.*s, %.*s", STR_ARG(code), STR_ARG(message));
}

enum rc alarm_instance_failed(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct records         all = in_state(INSTANCE_FAILED);
	const struct instance *i;
	enum rc                rc;

	while ((i = session_next(s, &all, &rc, e))) {
		struct str why = words_of(s, i->last_error);

		findings_add(ret, i->tenant, ALARM_PAGE, i->updated_ms,
		             "instance %.*s of tenant %.*s has failed since %s: %.*s", STR_ARG(i->id),
		             STR_ARG(i->tenant), alarm_time(s, i->updated_ms), STR_ARG(why));
	}
	return rc;
}

enum rc alarm_instance_slow(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	int64_t now_ms = session_now(s).ms;
	enum rc rc = RC_OK;

	for (int state = INSTANCE_PENDING_PROVISIONING; !rc && state <= INSTANCE_CONFIGURING_WORDPRESS; state++) {
		struct records         all = in_state(state);
		const struct instance *i;

		while ((i = session_next(s, &all, &rc, e))) {
			int64_t age = now_ms - i->started_ms;

			if (age > kernel_span_ms(kernel_of(s), WARN_MS))
				findings_add(ret, i->tenant,
				             age > kernel_span_ms(kernel_of(s), PAGE_MS) ? ALARM_PAGE : ALARM_WARNING,
				             i->started_ms,
				             "instance %.*s of tenant %.*s has been provisioning since %s and is at %s",
				             STR_ARG(i->id), STR_ARG(i->tenant), alarm_time(s, i->started_ms),
				             instance_state_name(i->state));
		}
	}
	return rc;
}

enum rc alarm_instance_below(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct records         all = in_state(INSTANCE_ACTIVE);
	const struct instance *i;
	enum rc                rc;

	while ((i = session_next(s, &all, &rc, e)))
		if (i->below_since_ms &&
		    session_now(s).ms - i->below_since_ms >= kernel_span_ms(kernel_of(s), BELOW_MS))
			findings_add(ret, i->tenant, ALARM_PAGE, i->running_count,
			             "instance %.*s of tenant %.*s has run %lld of %lld tasks since %s", STR_ARG(i->id),
			             STR_ARG(i->tenant), (long long)i->running_count, (long long)i->desired_count,
			             alarm_time(s, i->below_since_ms));
	return rc;
}

/* It is tried again without anybody's help, but something prevents it. */
enum rc alarm_instance_removal(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct records         all = in_state(INSTANCE_PENDING_DEPROVISIONING);
	const struct instance *i;
	enum rc                rc;

	while ((i = session_next(s, &all, &rc, e))) {
		struct str why = words_of(s, i->last_error);

		if (i->last_error.n && !i->operation.n)
			findings_add(ret, i->tenant, ALARM_WARNING, i->updated_ms,
			             "instance %.*s of tenant %.*s could not be removed, last %s: %.*s", STR_ARG(i->id),
			             STR_ARG(i->tenant), alarm_time(s, i->updated_ms), STR_ARG(why));
	}
	return rc;
}

enum rc alarm_instance_orphans(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct instance_scan_result r;
	bool                        is_there;
	enum rc                     rc = session_find(s, &instance_scan_type, STR("last"), &r, &is_there, e);

	if (!rc && is_there && r.orphans - r.healed + r.missing > 0)
		findings_add(
		        ret, STR(""), ALARM_WARNING, r.orphans - r.healed + r.missing,
		        "the scan of %s found resources of %lld tenants that no instance has (%lld of them are being "
		        "removed), and %lld instances without one of theirs",
		        alarm_time(s, r.at_ms), (long long)r.orphans, (long long)r.healed, (long long)r.missing);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_instance.c - a tenant's instance in words: what it is doing, why it failed, what is left, what happens next,
 * how long its data are kept.
 */
#include "base/json.h"
#include "service/explain/explain_private.h"
#include "service/instance/instances.h"

/* What is wrong with it, as far as it is known; and what a rollback may have left. */
static void tell_error(struct situation *x, const struct instance *i)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  code = STR(""), message = STR(""), step = STR("");
	const json_t               *left;

	if (!i->last_error.n)
		return;
	rc_ignore(json_parse(i->last_error, &o, NULL)); /* what cannot be read is not told */
	(void)json_get_text(o, "code", &code);
	(void)json_get_text(o, "message", &message);
	(void)json_get_text(o, "step", &step);
	explain_say(x, PROBLEM, "%.*s%s%.*s: %.*s.", STR_ARG(code), step.n ? " at the step " : "", STR_ARG(step),
	            STR_ARG(message));
	left = json_object_get(o, "leftovers");
	for (size_t n = 0; n < json_array_size(left); n++)
		if (json_is_string(json_array_get(left, n)))
			explain_say(x, PROBLEM, "May be left over: %s.", json_string_value(json_array_get(left, n)));
}

static void tell_operation(struct situation *x, const struct instance *i)
{
	struct operation op;

	if (!i->operation.n || !explain_find(x, &operation_type, i->operation, &op))
		return;
	explain_say(x, WHY, "Operation %s (%.*s) was requested by %.*s at %s.", instance_op_names[op.kind],
	            STR_ARG(op.id), STR_ARG(op.requested_by), explain_time(x, op.started_ms));
	explain_saga(x, op.id);
}

static void summarise(struct situation *x, const struct instance *i)
{
	bool        is_gone = i->state == INSTANCE_DEPROVISIONED;
	const char *state = is_gone ? "removed" : instance_state_name(i->state);
	struct str  is = str_format(x->a, "%s %s%s%.*s", is_gone ? "was" : "is", state, i->reason.n ? ": " : "",
	                            STR_ARG(i->reason));

	if (i->state == INSTANCE_ACTIVE)
		is = str_format(x->a, "is active: %lld of %lld tasks run%s%.*s", (long long)i->running_count,
		                (long long)i->desired_count, i->endpoint.n ? ", at " : "", STR_ARG(i->endpoint));
	if (i->state == INSTANCE_FAILED)
		is = i->has_data ? STR("has failed; its data are there") : STR("has failed before it ever ran");
	explain_say(x, SUMMARY, "Instance %.*s of tenant %.*s (%.*s) %.*s.", STR_ARG(i->id), STR_ARG(i->tenant),
	            STR_ARG(i->organization), STR_ARG(is));
}

static void tell_archive(struct situation *x, const struct instance *i)
{
	struct backup b;
	bool          is_removed;

	if (!i->archive.n) {
		if (i->state == INSTANCE_DEPROVISIONED)
			explain_say(x, WHY, "It was never active, so there was no data to archive.");
		return;
	}
	is_removed = explain_find(x, &backup_type, i->archive, &b) && b.state == BACKUP_REMOVED;
	explain_say(x, WHY, "Its data %s kept in archive %.*s until %s, then removed for good.",
	            is_removed ? "was" : "is", STR_ARG(i->archive), explain_time(x, i->archive_until_ms));
	(void)explain_timer(x, str_format(x->a, "instance-archive/%.*s", STR_ARG(i->archive)),
	                    STR("its archive is removed for good"));
}

static void offer(struct situation *x, const struct instance *i)
{
	static const struct {
		enum instance_trigger  on;
		enum explain_action_id action;
	} offers[] = {
		{ INSTANCE_ON_SUSPEND, CAN_SUSPEND }, { INSTANCE_ON_RESUME, CAN_RESUME },
		{ INSTANCE_ON_SCALE, CAN_SCALE },     { INSTANCE_ON_PARK, CAN_PARK },
		{ INSTANCE_ON_UNPARK, CAN_UNPARK },   { INSTANCE_ON_DELETE, CAN_REMOVE },
	};

	if (i->operation.n && i->state != INSTANCE_FAILED && instance_state_is_rest(i->state))
		return; /* one operation at a time; what has FAILED may have one that is parked */
	for (size_t n = 0; n < ARRAY_LEN(offers); n++)
		if (instance_step(i->state, offers[n].on))
			explain_can(x, offers[n].action, i->id);
	if (i->state == INSTANCE_FAILED && i->has_data)
		explain_can(x, CAN_RECOVER, i->id);
	if (i->state == INSTANCE_FAILED && !i->has_data)
		explain_say(x, WHY, "When the cause is gone, 'leasehold instance create %.*s ...' provisions it again.",
		            STR_ARG(i->tenant));
	if (i->state == INSTANCE_PENDING_DEPROVISIONING && !i->operation.n)
		explain_can(x, CAN_REMOVE, i->id);
}

void explain_instance(struct situation *x)
{
	struct tenant_slot slot;
	struct instance    i;

	if (!str_starts_with(x->id, STR("inst-")) && explain_find(x, &tenant_slot_type, x->id, &slot))
		x->id = slot.instance; /* the last one of that tenant */
	x->is_gone = !explain_find(x, &instance_type, x->id, &i);
	if (x->is_gone)
		return;
	x->where = str_from(instance_state_name(i.state));
	x->since_ms = i.updated_ms;
	summarise(x, &i);
	tell_error(x, &i);
	tell_operation(x, &i);
	tell_archive(x, &i);
	if (i.state == INSTANCE_ACTIVE && i.below_since_ms)
		explain_say(x, PROBLEM, "%lld of %lld tasks run since %s.", (long long)i.running_count,
		            (long long)i.desired_count, explain_time(x, i.below_since_ms));
	(void)explain_timer(x, str_format(x->a, "instance-removal/%.*s", STR_ARG(i.id)),
	                    STR("the removal that failed goes on"));
	offer(x, &i);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_people.c - who may sign in to a tenant's site, as far as we keep it: the pool itself is the driver's, here
 * is only whether it can be changed now, and the event of it.
 *
 * The event is stored before the caller hears of the change, so nobody has a password that nothing tells of. It comes
 * behind the change: after a crash between them somebody may have been added without it, and nobody knows his password.
 */
#include "base/json.h"
#include "service/instance/instance_private.h"

enum rc instance_find_pool(struct session *s, void *arg, struct err *e)
{
	struct instance_call *c = arg;
	enum rc               rc = instance_get(s, c, e);

	if (!rc && !c->instance.outputs[INSTANCE_IDENTITY].n)
		return err_set_code(e, RC_NOT_FOUND, "POOL_NOT_FOUND", "instance %.*s has no identity pool: it is %s",
		                    STR_ARG(c->instance.id), instance_state_name(c->instance.state));
	return rc;
}

enum rc instance_enter_pool(struct session *s, void *arg, struct err *e)
{
	struct instance_call *c = arg;
	enum rc               rc = instance_find_pool(s, c, e);

	if (!rc && c->instance.operation.n)
		return err_set_code(e, RC_UNFIT, "OPERATION_IN_PROGRESS",
		                    "operation %.*s of instance %.*s is under way: try again when it has ended",
		                    STR_ARG(c->instance.operation), STR_ARG(c->instance.id));
	return rc;
}

enum rc instance_note_person(struct session *s, void *arg, struct err *e)
{
	const struct person_note *n = arg;
	const struct instance    *i = &n->call->instance;

	return instance_emit(s, n->event, i, n->call->actor, n->call->request_id,
	                     JSON_OF(session_arena(s), member_str("instanceId", i->id),
	                             member_str("tenantId", i->tenant), member_str("email", n->email)),
	                     e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_intake.c - commands for instances as they arrive: bare, in a list, wrapped by a queue, or in the envelope of
 * EventBridge.
 *
 * A command is accepted once, whatever id the queue gave the message: tenant, type and correlation id identify it. The
 * commands of one tenant run in order.
 */
#include "base/arena.h"
#include "base/json.h"
#include "service/instance/instances.h"

enum { TYPE_MAX = 40 }; /* with the longest tenant it is an id of at most 128 bytes */

static enum rc read_command(const json_t *command, struct arena *a, struct intake_record *ret, struct err *e)
{
	struct str type, tenant, correlation;

	if (!json_is_object(command))
		return err_set(e, RC_INVALID, "a command must be an object with eventType, tenantId and correlationId");
	if (!json_take_text(command, "eventType", a, &type) || !type.n || type.n > TYPE_MAX || !str_is_of(type, "A-Z_"))
		return err_set(e, RC_INVALID, "eventType: is required, such as START_CLUSTER_CREATION");
	if (!json_take_text(command, "tenantId", a, &tenant) || !tenant_id_is_ok(tenant))
		return err_set(e, RC_INVALID,
		               "tenantId: is required, 3 to 63 of a to z, 0 to 9 and -, the first not -");
	if (!json_take_text(command, "correlationId", a, &correlation) || !correlation.n ||
	    correlation.n > INSTANCE_KEY_MAX || str_has_control(correlation))
		return err_set(e, RC_INVALID,
		               "correlationId: is required, 1 to %d bytes: a command is taken once for each",
		               INSTANCE_KEY_MAX);
	ret->id = str_format(a, "%.*s|%.*s|%016llx", STR_ARG(tenant), STR_ARG(type),
	                     (unsigned long long)str_hash(correlation, 0));
	ret->event = (struct event){ .type = str_format(a, INSTANCE_COMMANDS ":%.*s", STR_ARG(type)),
		                     .source = STR(INSTANCE_COMMANDS),
		                     .subject = str_format(a, "tenant/%.*s", STR_ARG(tenant)),
		                     .actor = STR("inbox/" INSTANCE_COMMANDS),
		                     .detail = JSON_OF(a, member_str("id", ret->id), member_str("detail-type", type),
		                                       member_raw("detail", json_dump(a, command))) };
	return intake_check_detail(ret->event.detail, "the command", e);
}

/* A message of a queue has the command as text. */
static enum rc read_one(const json_t *record, struct arena *a, struct intake_record *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *wrapped = NULL;
	struct str                  body;
	enum rc                     rc;

	if (json_is_string(json_object_get(record, "body"))) {
		rc_ignore(json_get_text(record, "body", &body) ? RC_OK : RC_INVALID); /* it is a text */
		if ((rc = json_parse(body, &wrapped, e)))
			return err_wrap(e, rc, "body");
		record = wrapped;
	}
	if (json_is_object(json_object_get(record, "detail")))
		record = json_object_get(record, "detail");
	return read_command(record, a, ret, e);
}

enum rc instance_intake(struct str body, struct arena *a, struct intake_record **ret, size_t *ret_count, struct err *e)
{
	CLEANUP(json_freep) json_t *parsed = NULL;
	const json_t               *list;
	size_t                      count;
	enum rc                     rc;

	if (body.n > INTAKE_BODY_MAX)
		return err_set(e, RC_TOO_LARGE, "the body has %zu bytes; at most %d are taken", body.n,
		               INTAKE_BODY_MAX);
	if ((rc = json_parse(body, &parsed, e)))
		return rc;
	list = json_is_array(parsed) ? parsed : json_object_get(parsed, "Records");
	count = json_is_array(list) ? json_array_size(list) : 1;
	if (count < 1 || count > INTAKE_RECORDS_MAX)
		return err_set(e, RC_INVALID, "there are %zu commands in the body; there must be 1 to %d", count,
		               INTAKE_RECORDS_MAX);
	*ret = arena_alloc(a, count * sizeof(**ret));
	*ret_count = count;
	for (size_t i = 0; i < count; i++) {
		struct intake_record *r = &(*ret)[i];

		r->verdict = read_one(json_is_array(list) ? json_array_get(list, i) : parsed, a, r, &r->e)
		                     ? INTAKE_REJECTED
		                     : INTAKE_ACCEPTED;
	}
	return RC_OK;
}

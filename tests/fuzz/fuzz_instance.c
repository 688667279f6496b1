/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_instance.c - whatever comes in about instances: an accepted command can be stored, and a wish that was read
 * keeps its limits. */
#include "fuzz.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "kernel/edge/intake.h"
#include "service/instance/instances.h"

static void check_commands(struct str body, struct arena *a)
{
	struct err            e = { 0 };
	struct intake_record *records = NULL;
	size_t                count = 0;
	enum rc               rc = instance_intake(body, a, &records, &count, &e);

	must(rc ? e.msg[0] && !count : count >= 1 && count <= INTAKE_RECORDS_MAX);
	for (size_t i = 0; i < count; i++) {
		struct event event = records[i].event;

		if (records[i].verdict != INTAKE_ACCEPTED) {
			must(records[i].e.msg[0]);
			continue;
		}
		event.id = STR("00000000-0000-7000-8000-000000000000");
		event.time_ms = event.schema = 1;
		must(records[i].id.n > 0 && records[i].id.n <= 128);
		must(record_check(&event_type, &event, NULL) == RC_OK);
	}
}

static void check_wish(const json_t *body, enum instance_body kind, struct arena *a)
{
	struct instance_problems p = { .arena = a };
	struct instance_want     w;

	instance_want_read(body, kind, &w, &p);
	must(p.count <= INSTANCE_PROBLEMS_MAX);
	must(w.desired_count == 0 || (w.desired_count >= INSTANCE_COUNT_MIN && w.desired_count <= INSTANCE_COUNT_MAX));
	must(w.organization.n <= 4 * INSTANCE_ORGANIZATION_MAX && w.contact_email.n <= INSTANCE_EMAIL_MAX);
	must(w.email.n <= INSTANCE_EMAIL_MAX && w.name.n <= INSTANCE_LABEL_MAX);
	must(w.reason.n <= INSTANCE_REASON_MAX && w.wordpress_version.n <= INSTANCE_VERSION_MAX);
}

/* Names of resources fit where they have to, whatever the tenant. */
static void check_names(struct str tenant, struct arena *a)
{
	char name[INSTANCE_NAME_SIZE];

	if (!tenant_id_is_ok(tenant))
		return;
	must(tenant.n >= TENANT_ID_MIN && tenant.n <= TENANT_ID_MAX);
	instance_short_name(tenant, name);
	must(name[0] && memchr(name, '\0', sizeof(name)));
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		must(instance_resource_name(tenant, (enum instance_resource)kind, a).n <= 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   bytes = str_of((const char *)data, size);
	json_t      *body = NULL;

	check_names(bytes, &a);
	check_commands(bytes, &a);
	check_commands(str_format(&a, "{\"eventType\":\"SUSPEND_CLUSTER\",\"tenantId\":\"tenant-a\",%.*s}",
	                          STR_ARG(bytes)),
	               &a);
	if (json_parse(bytes, &body, NULL) == RC_OK)
		for (int kind = BODY_CREATE; kind <= BODY_PERSON; kind++)
			check_wish(body, (enum instance_body)kind, &a);
	json_decref(body);
	arena_fini(&a);
	return 0;
}

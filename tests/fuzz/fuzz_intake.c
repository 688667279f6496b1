/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_intake.c - whatever comes into an inbox, an accepted record can be stored, and a rejected one says why. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/json.h"
#include "kernel/edge/intake.h"

static void check_accepted(const struct intake_record *record)
{
	struct event event = record->event;
	json_t      *detail = NULL;

	must(record->id.n > 0);
	must(str_starts_with(event.type, STR("inbox:")));
	must(json_parse(event.detail, &detail, NULL) == RC_OK && json_is_object(detail));
	json_decref(detail);
	event.id = STR("00000000-0000-7000-8000-000000000000");
	event.time_ms = 1;
	event.schema = 1;
	must(record_check(&event_type, &event, NULL) == RC_OK);
}

static void check_body(struct str body)
{
	struct arena          a = { 0 };
	struct err            e = { 0 };
	struct intake_record *records = NULL;
	size_t                count = 0;
	enum rc               rc = intake_parse(STR("inbox"), body, &a, &records, &count, &e);

	must(rc ? e.msg[0] && !count : count >= 1 && count <= INTAKE_RECORDS_MAX);
	for (size_t i = 0; i < count; i++) {
		if (records[i].verdict == INTAKE_ACCEPTED)
			check_accepted(&records[i]);
		else
			must(records[i].verdict == INTAKE_REJECTED && records[i].e.msg[0]);
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   bytes = str_of((const char *)data, size);

	check_body(bytes);
	/* The same as the members of one event, so that more inputs come that far. */
	check_body(str_format(&a, "[{\"id\":\"1\",\"detail-type\":\"AWS API Call via CloudTrail\",%.*s}]",
	                      STR_ARG(bytes)));
	arena_fini(&a);
	return 0;
}

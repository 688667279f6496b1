/* SPDX-License-Identifier: Apache-2.0 */
/* run_alarm.c - the "alarm" command. */
#include "cli/list.h"
#include "cli/run.h"

#include "base/attr.h"

int run_alarm_list(struct remote *remote)
{
	static const struct list_column columns[] = {
		{ "SEVERITY", list_text, "severity", 8 },  { "STATE", list_text, "state", 7 },
		{ "SINCE", list_age, "since_at", 5 },      { "NAME", list_text, "name", 24 },
		{ "EVIDENCE", list_text, "evidence", 48 },
	};
	static const struct list alarms = {
		.path = "/ops/alarms", .items = "alarms", .columns = columns, .column_count = ARRAY_LEN(columns)
	};

	return list_run(remote, &alarms);
}

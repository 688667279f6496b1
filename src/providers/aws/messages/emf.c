/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emf.c - the metrics that operators of the tools before us have in their dashboards, from our own counters.
 *
 * Counts are those since the line before, so that their sum over all nodes and minutes is right; when a process ends,
 * up to a minute of them is lost. A share or a mean of what ended in the minute is left out if nothing has ended.
 */
#include "providers/aws/messages/emf.h"

#include "base/buf.h"
#include "base/json.h"

enum { LINE_MAX_BYTES = 8192 };

/* How a row's value comes about from what was counted since the last line. */
enum how {
	COUNT,
	GAUGE,   /* is handed in */
	PERCENT, /* of this and the next row */
	MEAN,
};

static const struct row {
	bool        is_guards; /* else the instances' */
	const char *name, *unit;
	enum how    how;
	enum metric id;
	const char *labels;
} rows[EMF_ROWS] = {
	{ true, "QuarantineSuccessCount", "Count", COUNT, METRIC_GUARD, "QUARANTINE_COMPLETE" },
	{ true, "QuarantineBypassTagCount", "Count", COUNT, METRIC_GUARD, "QUARANTINE_BYPASS_TAG" },
	{ true, "EjectSuccessCount", "Count", COUNT, METRIC_GUARD, "EJECT_COMPLETE" },
	{ true, "UnquarantineSuccessCount", "Count", COUNT, METRIC_GUARD, "UNQUARANTINE_COMPLETE" },
	{ true, "AccountsInQuarantineOverThreshold", "Count", GAUGE, METRIC_GUARD, "" },
	{ false, "ProvisioningSuccess", "Percent", PERCENT, METRIC_INSTANCE_OPERATIONS, "create,success" },
	{ false, "ProvisioningFailures", "Count", COUNT, METRIC_INSTANCE_OPERATIONS, "create,failure" },
	{ false, "RollbackCount", "Count", COUNT, METRIC_INSTANCE_ROLLBACKS, "" },
	{ false, "ProvisioningDuration", "Seconds", MEAN, METRIC_INSTANCE_DURATION, "create" },
};

/* --- values --- */

/* False: there is none. */
static bool value_of(const struct metric_reading *since, int row, int64_t gauge, double *ret)
{
	int64_t count = since[row].count, all;

	switch (rows[row].how) {
	case COUNT: *ret = (double)count; return true;
	case GAUGE: *ret = (double)gauge; return true;
	case PERCENT:
		all = count + since[row + 1].count;
		*ret = all ? 100.0 * (double)count / (double)all : 0;
		return all > 0;
	case MEAN: *ret = count ? since[row].sum / (double)count : 0; return count > 0;
	}
	return false;
}

static void read_since(struct emf *e, struct metric_reading *ret)
{
	for (int i = 0; i < EMF_ROWS; i++) {
		struct metric_reading now = metrics_read(e->metrics, rows[i].id, rows[i].labels);

		ret[i] = (struct metric_reading){ now.count - e->before[i].count, now.sum - e->before[i].sum };
		e->before[i] = now;
	}
}

/* --- the line --- */

static void put_namespace(struct json_out *o, bool is_guards, const struct metric_reading *since, int64_t gauge)
{
	double value;

	JSON_PUT(o, member_object(NULL),
	         member_str("Namespace", is_guards ? STR("ISB/BillingSeparator") : STR("BBWS/Instance")),
	         member_raw("Dimensions", STR("[[]]")), member_list("Metrics"));
	for (int i = 0; i < EMF_ROWS; i++) {
		if (rows[i].is_guards != is_guards || !value_of(since, i, gauge, &value))
			continue;
		JSON_PUT(o, member_object(NULL), member_word("Name", rows[i].name), member_word("Unit", rows[i].unit),
		         member_end());
	}
	JSON_PUT(o, member_list_end(), member_end());
}

static void put_values(struct json_out *o, const struct emf *e, const struct metric_reading *since, int64_t gauge)
{
	double value;

	for (int i = 0; i < EMF_ROWS; i++)
		if ((rows[i].is_guards ? e->has_guard : e->has_instances) && value_of(since, i, gauge, &value))
			json_put_real(o, rows[i].name, value);
}

struct str emf_line(struct emf *e, int64_t now_ms, int64_t over_threshold, struct arena *a)
{
	struct metric_reading since[EMF_ROWS];
	struct buf            b = BUF(LINE_MAX_BYTES);
	struct json_out       o = JSON_OUT(&b);

	read_since(e, since);
	if (!e->has_guard && !e->has_instances)
		return STR("");
	JSON_PUT(&o, member_object(NULL), member_object("_aws"), member_int("Timestamp", now_ms),
	         member_list("CloudWatchMetrics"));
	if (e->has_guard)
		put_namespace(&o, true, since, over_threshold);
	if (e->has_instances)
		put_namespace(&o, false, since, over_threshold);
	JSON_PUT(&o, member_list_end(), member_end());
	put_values(&o, e, since, over_threshold);
	json_close_object(&o);
	return buf_take(&b, a);
}

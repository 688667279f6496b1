/* lease_form.h - leases and templates as the JSON of /api: what both have in common, in and out. */
#pragma once

#include "base/json.h"
#include "domain/lease.h"
#include "http/api/body.h"

#define MICROS_PER_DOLLAR 1e6
#define MS_PER_HOUR       3600000.0

/* The largest that are taken: far above any real one, far below what 64 bits hold. */
#define DOLLARS_MOST 1e9
#define HOURS_MOST   1e6

/* --- in --- */

/* A list of thresholds as it was sent. A share of the budget becomes an amount when the budget is known. */
struct threshold_form {
	struct {
		int64_t amount; /* millionths of a dollar, or milliseconds */
		double  percentage;
		int     action;
	} items[THRESHOLDS_MAX];
	size_t count;
	bool   has_percentage;
};

/* The names of one kind of threshold. */
struct threshold_kind {
	const char *list, *words, *own, *alias;
	double      scale, most, alias_most;
	bool        is_share; /* the alias */
};
extern const struct threshold_kind budget_kind, duration_kind;

enum given part_thresholds(const struct part *at, const struct threshold_kind *kind, struct threshold_form *ret);

/* The stored form. Shares are of max_spend, which must be above 0 when there are any. */
struct str thresholds_text(const struct threshold_kind *kind, const struct threshold_form *f, int64_t max_spend,
                           struct arena *a);

/* --- out --- */

/* "leaseDurationInHours", to a millionth: finer is noise of the division. Left out while it is 0. */
struct json_member member_duration(int64_t ms);

void form_put_meta(struct json_out *o, int64_t created_ms, int64_t edited_ms, int64_t schema_version);

/* A lease's members into the open object: those that its status has, and its id. */
void form_put_lease(struct json_out *o, const struct lease *l, struct arena *a);

/* emf.h - figures for CloudWatch, in the form that it finds in a log (embedded metric format): one line a minute. */
#pragma once

#include "base/metrics.h"
#include "base/str.h"

enum { EMF_ROWS = 9 };

struct emf {
	struct metrics       *metrics;
	bool                  has_guard, has_instances; /* which namespaces there are */
	struct metric_reading before[EMF_ROWS];         /* as they were at the last line */
};

/* What was counted since the last line. over_threshold: accounts that are in Quarantine for too long. Empty: there is
 * nothing to report. There are no dimensions: each account and tenant would become a metric of its own. */
struct str emf_line(struct emf *e, int64_t now_ms, int64_t over_threshold, struct arena *a);

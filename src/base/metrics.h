/* metrics.h - counters, gauges and histograms in Prometheus' text format. Families are one table, in metrics.def. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

/* READ_COUNTER: a counter that is kept elsewhere and set, like a gauge, when it is read. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_READ_COUNTER };

enum metric {
#define METRIC(id, kind, name, labels, buckets, help) METRIC_##id,
#include "base/metrics.def"
#undef METRIC
	METRIC__COUNT
};

/* One line of a family: its label values chosen. Lives as long as the metrics. Any thread may feed it. */
struct metric_series;

struct metrics *metrics_new(void);
void            metrics_free(struct metrics *m);

/* The series with these label values, comma-separated in the family's order ("" when it has no labels). Made at first
 * use; callers on a hot path keep the pointer. At most METRIC_SERIES_MAX a family; further ones share an "other". */
enum { METRIC_SERIES_MAX = 512 };
struct metric_series *metrics_series(struct metrics *m, enum metric id, const char *label_values);

void metric_set(struct metric_series *s, double value);     /* gauge */
void metric_observe(struct metric_series *s, double value); /* histogram, seconds */

/* Shorthands that look the series up. */
void metrics_add(struct metrics *m, enum metric id, const char *label_values, int64_t by); /* counter */
void metrics_set(struct metrics *m, enum metric id, double value);
void metrics_observe(struct metrics *m, enum metric id, const char *label_values, double value);

/* What a series has counted, and what it has summed up (of a gauge: its value); zeros while nobody has used it. */
struct metric_reading {
	int64_t count;
	double  sum;
};
struct metric_reading metrics_read(struct metrics *m, enum metric id, const char *label_values);

/* All families as one log line, without labels: of a family with labels the sum of its series, of durations that are
 * gauges the longest; of histograms NAME_count and NAME_sum. */
void metrics_log(struct metrics *m);

/* All families as text. */
void metrics_write(struct metrics *m, struct buf *b);

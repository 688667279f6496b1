/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.c - the numbers that /metrics shows.
 *
 * A family is a row of metrics.def; a series is a family with its label values. Series are made under a lock, linked in
 * whole and never go away: to find one and to feed it needs no lock, from any thread. The number of series of a
 * family is bounded: label values come from our own tables, and the bound makes a mistake there harmless.
 */
#include "base/metrics.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"

enum { BUCKETS_MAX = 12, NAME_MAX_BYTES = 64 };

struct metric_series {
	struct metric_series *_Atomic next;
	const struct bounds          *bounds;
	char                         *label_values;
	atomic_int_fast64_t           count;
	_Atomic double                value; /* gauge value, or the histogram's sum */
	atomic_int_fast64_t           buckets[BUCKETS_MAX];
};

struct bounds {
	double upper[BUCKETS_MAX];
	size_t count;
};

struct metrics {
	pthread_mutex_t lock;
	struct {
		struct metric_series *_Atomic first;
		struct metric_series         *last;
		size_t                        count;
		struct bounds                 bounds;
	} family[METRIC__COUNT];
};

static const struct {
	enum metric_kind kind;
	const char      *name;
	const char      *labels;
	const char      *buckets;
	const char      *help;
} families[METRIC__COUNT] = {
#define METRIC(id, kind, name, labels, buckets, help) { METRIC_##kind, name, labels, buckets, help },
#include "base/metrics.def"
#undef METRIC
};

static void parse_bounds(const char *text, struct bounds *ret)
{
	char *end;

	for (double upper = strtod(text, &end); end != text; upper = strtod(text, &end)) {
		assert(ret->count < BUCKETS_MAX);
		ret->upper[ret->count++] = upper;
		text = end;
	}
}

struct metrics *metrics_new(void)
{
	struct metrics *m = mem_new(struct metrics);

	pthread_mutex_init(&m->lock, NULL);
	for (int id = 0; id < METRIC__COUNT; id++) {
		parse_bounds(families[id].buckets, &m->family[id].bounds);
		if (families[id].labels[0] == '\0')
			(void)metrics_series(m, (enum metric)id, ""); /* shows 0 before its first use */
	}
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (int id = 0; id < METRIC__COUNT; id++)
		for (struct metric_series *s = m->family[id].first, *next; s; s = next) {
			next = s->next;
			free(s->label_values);
			free(s);
		}
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static struct metric_series *find_series(struct metrics *m, enum metric id, const char *label_values)
{
	struct metric_series *s = atomic_load_explicit(&m->family[id].first, memory_order_acquire);

	while (s && strcmp(s->label_values, label_values) != 0)
		s = atomic_load_explicit(&s->next, memory_order_acquire);
	return s;
}

static struct metric_series *add_series(struct metrics *m, enum metric id, const char *label_values)
{
	struct metric_series *s = mem_new(struct metric_series);

	s->label_values = mem_strdup(label_values);
	s->bounds = &m->family[id].bounds;
	*(m->family[id].last ? &m->family[id].last->next : &m->family[id].first) = s;
	m->family[id].last = s;
	m->family[id].count++;
	return s;
}

struct metric_series *metrics_series(struct metrics *m, enum metric id, const char *label_values)
{
	struct metric_series *s = find_series(m, id, label_values);

	if (s)
		return s;
	LOCKED(&m->lock);
	s = find_series(m, id, label_values); /* another thread may have been first */
	if (!s && m->family[id].count < METRIC_SERIES_MAX)
		s = add_series(m, id, label_values);
	if (!s && !(s = find_series(m, id, "other")))
		s = add_series(m, id, "other");
	return s;
}

void metric_set(struct metric_series *s, double value)
{
	atomic_store_explicit(&s->value, value, memory_order_relaxed);
}

static void add_to_sum(_Atomic double *sum, double value)
{
	double old = atomic_load_explicit(sum, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(sum, &old, old + value, memory_order_relaxed,
	                                              memory_order_relaxed))
		;
}

void metric_observe(struct metric_series *s, double value)
{
	size_t i = 0;

	while (i < s->bounds->count && value > s->bounds->upper[i])
		i++;
	if (i < s->bounds->count)
		atomic_fetch_add_explicit(&s->buckets[i], 1, memory_order_relaxed);
	add_to_sum(&s->value, value);
	atomic_fetch_add_explicit(&s->count, 1, memory_order_relaxed);
}

void metrics_add(struct metrics *m, enum metric id, const char *label_values, int64_t by)
{
	atomic_fetch_add_explicit(&metrics_series(m, id, label_values)->count, by, memory_order_relaxed);
}

void metrics_set(struct metrics *m, enum metric id, double value)
{
	metric_set(metrics_series(m, id, ""), value);
}

void metrics_observe(struct metrics *m, enum metric id, const char *label_values, double value)
{
	metric_observe(metrics_series(m, id, label_values), value);
}

struct metric_reading metrics_read(struct metrics *m, enum metric id, const char *label_values)
{
	struct metric_reading ret = { 0 };
	struct metric_series *s = find_series(m, id, label_values);

	if (s)
		ret = (struct metric_reading){ s->count, s->value };
	return ret;
}

/* name="value" pairs of a series; extra is one more pair or NULL. */
static void write_labels(struct buf *b, const char *labels, const char *values, const char *extra)
{
	struct str names = str_from(labels), rest = str_from(values);
	bool       is_first = true;

	if (names.n == 0 && !extra)
		return;
	buf_add_char(b, '{');
	while (names.n) {
		struct str name = str_cut(&names, ','), value = str_cut(&rest, ',');

		buf_addf(b, "%s%.*s=\"%.*s\"", is_first ? "" : ",", STR_ARG(name), STR_ARG(value));
		is_first = false;
	}
	if (extra)
		buf_addf(b, "%s%s", is_first ? "" : ",", extra);
	buf_add_char(b, '}');
}

static void write_histogram(struct buf *b, enum metric id, struct metric_series *s)
{
	int64_t total = 0;
	char    bound[40];

	for (size_t i = 0; i < s->bounds->count; i++) {
		total += s->buckets[i];
		(void)snprintf(bound, sizeof(bound), "le=\"%g\"", s->bounds->upper[i]); /* short numbers */
		buf_addf(b, "%s_bucket", families[id].name);
		write_labels(b, families[id].labels, s->label_values, bound);
		buf_addf(b, " %" PRId64 "\n", total);
	}
	buf_addf(b, "%s_bucket", families[id].name);
	write_labels(b, families[id].labels, s->label_values, "le=\"+Inf\"");
	buf_addf(b, " %" PRId64 "\n%s_sum", (int64_t)s->count, families[id].name);
	write_labels(b, families[id].labels, s->label_values, NULL);
	buf_addf(b, " %.9g\n%s_count", (double)s->value, families[id].name);
	write_labels(b, families[id].labels, s->label_values, NULL);
	buf_addf(b, " %" PRId64 "\n", (int64_t)s->count);
}

static void write_series(struct buf *b, enum metric id, struct metric_series *s)
{
	if (families[id].kind == METRIC_HISTOGRAM) {
		write_histogram(b, id, s);
		return;
	}
	buf_add_text(b, families[id].name);
	write_labels(b, families[id].labels, s->label_values, NULL);
	if (families[id].kind == METRIC_COUNTER)
		buf_addf(b, " %" PRId64 "\n", (int64_t)s->count);
	else
		buf_addf(b, " %.15g\n", (double)s->value);
}

/* One number for a family. */
static double sum_up(const struct metrics *m, int id, bool wants_count)
{
	bool   is_duration = strstr(families[id].name, "_seconds") && families[id].kind == METRIC_GAUGE;
	double sum = 0;

	for (const struct metric_series *s = m->family[id].first; s; s = s->next) {
		double value = wants_count ? (double)s->count : s->value;

		if (!is_duration)
			sum += value;
		else if (value > sum)
			sum = value;
	}
	return sum;
}

void metrics_log(struct metrics *m)
{
	struct log_field fields[2 * METRIC__COUNT];
	char             names[METRIC__COUNT][2][NAME_MAX_BYTES];
	size_t           count = 0;

	pthread_mutex_lock(&m->lock);
	for (int id = 0; id < METRIC__COUNT; id++) {
		if (families[id].kind != METRIC_HISTOGRAM) {
			fields[count++] = LOG_NUM(families[id].name,
			                          sum_up(m, id, families[id].kind == METRIC_COUNTER));
			continue;
		}
		(void)snprintf(names[id][0], NAME_MAX_BYTES, "%s_count", families[id].name); /* both fit */
		(void)snprintf(names[id][1], NAME_MAX_BYTES, "%s_sum", families[id].name);
		fields[count++] = LOG_NUM(names[id][0], sum_up(m, id, true));
		fields[count++] = LOG_NUM(names[id][1], sum_up(m, id, false));
	}
	pthread_mutex_unlock(&m->lock);
	log_write(LOG_INFO, "metrics", fields, count, "figures");
}

void metrics_write(struct metrics *m, struct buf *b)
{
	static const char *const kinds[] = { "counter", "gauge", "histogram", "counter" };

	LOCKED(&m->lock);
	for (int id = 0; id < METRIC__COUNT; id++) {
		buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", families[id].name, families[id].help, families[id].name,
		         kinds[families[id].kind]);
		for (struct metric_series *s = m->family[id].first; s; s = s->next)
			write_series(b, (enum metric)id, s);
	}
}

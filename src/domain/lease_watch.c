/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_watch.c - what follows from a new spend figure, or from the time alone, for one lease.
 *
 * A crossing is seen by comparing with what was known before: the cost and the time of the last check, both kept in the lease. A budget
 * threshold is crossed when the cost reaches it, a duration threshold when that little time is left.
 *
 * Always true:
 *   1. First match wins: over budget, then expired, then thresholds and the projection.
 *   2. A crossing is told once: lease_watch() writes the new figures into the lease, and the time of the last check never goes back.
 *   3. Whoever is Frozen is not frozen again, but goes on being watched: his account still costs money.
 *   4. Everything that follows from an end needs only the end: a lease may have one without an agreed duration.
 *
 * The projection continues the average of about a day. One earlier observation is kept; when it gets older than RATE_WINDOW_MS it moves
 * along the line to the newest one, so that old spending fades.                                            [move_rate()]
 *
 * Not here: where figures come from, who is told, and how (service/).
 */
#include <assert.h>
#include <math.h>

#include "base/json.h"
#include "domain/lease.h"

enum {
	DAY_MS = 24 * LEASE_HOUR_MS,
	RATE_WINDOW_MS = DAY_MS,
	RATE_SPAN_MIN_MS = LEASE_HOUR_MS, /* less tells nothing: figures come in lumps */
	PROJECTION_HYSTERESIS = 10,       /* below the budget by a tenth: it no longer passes */
};

/* A thousand million dollars, or a hundred thousand years: more than any, and far from overflow. */
static const double stored_max = 4e15;

const char *const threshold_action_names[THRESHOLD_ACTION_COUNT] = { "ALERT", "FREEZE_ACCOUNT" };

static bool read_threshold(const json_t *item, const char *name, int64_t unit, int64_t *ret,
                           enum threshold_action *ret_action)
{
	double     value = json_number_value(json_object_get(item, name)) * (double)unit;
	struct str action;

	if (!(value >= 1) || value > stored_max || !json_get_text(item, "action", &action))
		return false;
	for (int i = 0; i < THRESHOLD_ACTION_COUNT; i++)
		if (str_eq(action, str_from(threshold_action_names[i]))) {
			*ret = llround(value);
			*ret_action = (enum threshold_action)i;
			return true;
		}
	return false;
}

static void parse_budget(struct str text, struct thresholds *ret)
{
	CLEANUP(json_freep) json_t *list = NULL;

	if (text.n == 0 || json_parse(text, &list, NULL))
		return;
	for (size_t i = 0; i < json_array_size(list) && ret->budget_count < THRESHOLDS_MAX; i++) {
		struct budget_threshold *t = &ret->budget[ret->budget_count];

		if (read_threshold(json_array_get(list, i), "dollarsSpent", LEASE_USD, &t->micro_usd, &t->action))
			ret->budget_count++;
	}
}

static void parse_duration(struct str text, struct thresholds *ret)
{
	CLEANUP(json_freep) json_t *list = NULL;

	if (text.n == 0 || json_parse(text, &list, NULL))
		return;
	for (size_t i = 0; i < json_array_size(list) && ret->duration_count < THRESHOLDS_MAX; i++) {
		struct duration_threshold *t = &ret->duration[ret->duration_count];

		if (read_threshold(json_array_get(list, i), "hoursRemaining", LEASE_HOUR_MS, &t->remaining_ms,
		                   &t->action))
			ret->duration_count++;
	}
}

void thresholds_parse(struct str budget_json, struct str duration_json, struct thresholds *ret)
{
	ret->budget_count = ret->duration_count = 0;
	parse_budget(budget_json, ret);
	parse_duration(duration_json, ret);
}

static void watch_budget(struct lease_watch *w, const struct thresholds *all)
{
	const struct budget_threshold *largest = NULL;

	for (size_t i = 0; i < all->budget_count; i++) {
		const struct budget_threshold *t = &all->budget[i];

		if (t->micro_usd <= w->lease->cost || t->micro_usd > w->cost)
			continue;
		if (!largest || t->micro_usd > largest->micro_usd)
			largest = t;
		if (t->action == THRESHOLD_FREEZE && !w->freezes && w->lease->status == LEASE_ACTIVE) {
			w->freezes = w->freezes_by_budget = true;
			w->freeze_budget = *t;
		}
	}
	if (largest && largest->action == THRESHOLD_ALERT) {
		w->alerts_budget = true;
		w->alert_budget = *largest;
	}
}

static void watch_duration(struct lease_watch *w, const struct thresholds *all)
{
	const struct duration_threshold *smallest = NULL;

	for (size_t i = 0; i < all->duration_count; i++) {
		const struct duration_threshold *t = &all->duration[i];
		int64_t                          moment = w->lease->expires_ms - t->remaining_ms;

		if (moment <= w->lease->last_checked_ms || moment > w->now.ms)
			continue;
		if (!smallest || t->remaining_ms < smallest->remaining_ms)
			smallest = t;
		if (t->action == THRESHOLD_FREEZE && !w->freezes && w->lease->status == LEASE_ACTIVE) {
			w->freezes = true;
			w->freeze_duration = *t;
		}
	}
	if (smallest && smallest->action == THRESHOLD_ALERT) {
		w->alerts_duration = true;
		w->alert_duration = *smallest;
	}
}

/* Dollars (millionths) per millisecond since the earlier observation; negative when it cannot be told. */
static double spend_rate(const struct lease_watch *w)
{
	const struct lease *l = w->lease;
	int64_t             from_ms = l->rate_from_ms > 0 ? l->rate_from_ms : l->start_ms;
	int64_t             from_cost = l->rate_from_ms > 0 ? l->rate_from_cost : 0;

	if (w->cost_at_ms - from_ms < RATE_SPAN_MIN_MS || w->cost < from_cost)
		return -1;
	return (double)(w->cost - from_cost) / (double)(w->cost_at_ms - from_ms);
}

static void move_rate(struct lease_watch *w, double rate)
{
	struct lease *l = w->lease;

	if (l->rate_from_ms == 0) {
		l->rate_from_ms = l->start_ms; /* then it had spent nothing */
		l->rate_from_cost = 0;
	}
	if (w->cost < l->rate_from_cost) {
		l->rate_from_ms = w->cost_at_ms; /* the figures were corrected: begin again */
		l->rate_from_cost = w->cost;
	} else if (rate >= 0 && w->cost_at_ms - l->rate_from_ms > RATE_WINDOW_MS) {
		l->rate_from_ms = w->cost_at_ms - RATE_WINDOW_MS;
		l->rate_from_cost = w->cost - llround(rate * RATE_WINDOW_MS);
	}
}

static int64_t project(const struct lease_watch *w, double rate)
{
	int64_t end_ms = w->lease->expires_ms > 0 ? w->lease->expires_ms : w->now.ms + DAY_MS;
	double  spend = (double)w->cost;

	if (end_ms > w->cost_at_ms)
		spend += rate * (double)(end_ms - w->cost_at_ms);
	return llround(fmin(spend, stored_max));
}

static void watch_projection(struct lease_watch *w)
{
	struct lease *l = w->lease;
	double        rate = spend_rate(w);

	if (rate >= 0 && w->cost < stored_max) {
		w->projected = project(w, rate);
		if (l->max_spend == 0 || w->projected < l->max_spend - l->max_spend / PROJECTION_HYSTERESIS)
			l->projected_ms = 0;
		if (w->projects && l->max_spend > 0 && w->projected >= l->max_spend && l->projected_ms == 0) {
			w->alerts_projection = true;
			l->projected_ms = w->now.ms;
		}
	}
	move_rate(w, rate);
}

static void note_figures(struct lease_watch *w)
{
	w->lease->cost = w->cost;
	w->lease->cost_at_ms = w->cost_at_ms;
	if (w->now.ms > w->lease->last_checked_ms)
		w->lease->last_checked_ms = w->now.ms;
}

static bool is_watched(const struct lease *l)
{
	return l->status == LEASE_ACTIVE || l->status == LEASE_FROZEN;
}

static void forget_what_followed(struct lease_watch *w)
{
	*w = (struct lease_watch){
		.lease = w->lease,
		.cost = w->cost,
		.cost_at_ms = w->cost_at_ms,
		.now = w->now,
		.projects = w->projects,
	};
}

void lease_watch(struct lease_watch *w)
{
	struct lease     *l = w->lease;
	struct thresholds all;

	forget_what_followed(w);
	if (!is_watched(l))
		return;
	if (l->max_spend > 0 && w->cost >= l->max_spend) {
		w->is_over_budget = true;
	} else if (l->expires_ms > 0 && l->expires_ms < w->now.ms) {
		w->is_expired = true;
	} else {
		thresholds_parse(l->budget_thresholds, l->duration_thresholds, &all);
		watch_budget(w, &all);
		if (l->expires_ms > 0)
			watch_duration(w, &all);
		watch_projection(w);
	}
	note_figures(w);
}

int64_t lease_next_moment_ms(const struct lease *l, struct wall now)
{
	struct thresholds all;
	int64_t           next;

	if (!is_watched(l) || l->expires_ms == 0)
		return 0;
	next = l->expires_ms + 1; /* at its end it may still be used, and it has expired when that is past */
	thresholds_parse(STR(""), l->duration_thresholds, &all);
	for (size_t i = 0; i < all.duration_count; i++) {
		int64_t moment = l->expires_ms - all.duration[i].remaining_ms;

		if (moment > now.ms && moment < next)
			next = moment;
	}
	return next;
}

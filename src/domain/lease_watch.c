/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_watch.c - what follows from a new spend figure, or from the time alone, for one lease.
 *
 * A crossing is seen by comparing with what was known before: the cost and the time of the last check, both kept in the
 * lease. A budget threshold is crossed when the cost reaches it, a duration threshold when that little time is left.
 *
 * Always true:
 *   1. First match wins: over budget, then expired, then what the forecast ends, then thresholds and what the forecast
 *      freezes.
 *   2. A crossing is told once: lease_watch() writes the new figures into the lease, and the time of the last check
 *      never goes back.
 *   3. A Frozen lease is not frozen again, but goes on being watched: its account still costs money.
 *   4. Everything that follows from an end needs only the end: a lease may have one without an agreed duration.
 *
 * The forecast continues the average of about a day. What it ends or freezes it does whenever it says so, not only when
 * it begins to: a lease that is thawed without a larger budget is frozen again.
 *
 * For the rate one earlier observation is kept; when it gets older than RATE_WINDOW_MS it moves along the line to the
 * newest one, so that old spending fades. [move_rate()]
 *
 * Not here: where figures come from, who is told, and how (service/).
 */
#include <math.h>

#include "base/json.h"
#include "domain/lease.h"

enum {
	DAY_MS = 24 * LEASE_HOUR_MS,
	RATE_WINDOW_MS = DAY_MS,
	RATE_SPAN_MIN_MS = LEASE_HOUR_MS, /* less says nothing: figures come in lumps */
	PROJECTION_HYSTERESIS = 10,       /* below the budget by a tenth: it no longer passes */
};

/* A thousand million dollars, or a hundred thousand years: more than any, and far from overflow. */
static const double stored_max = 4e15;

const char *const threshold_action_names[THRESHOLD_ACTION_COUNT] = { "ALERT", "FREEZE_ACCOUNT" };
const char *const overrun_action_names[OVERRUN_ACTION_COUNT] = { "alert", "freeze", "end" };

static bool read_threshold(const json_t *item, const char *name, int64_t unit, struct threshold *ret)
{
	double     value = json_number_value(json_object_get(item, name)) * (double)unit;
	struct str action;

	if (!(value >= 1) || value > stored_max || !json_get_text(item, "action", &action))
		return false;
	ret->at = llround(value);
	ret->action = (enum threshold_action)str_word(action, threshold_action_names, THRESHOLD_ACTION_COUNT);
	return ret->action != THRESHOLD_ACTION_COUNT;
}

static void parse_list(struct str text, const char *name, int64_t unit, struct threshold_list *ret)
{
	CLEANUP(json_freep) json_t *list = NULL;

	ret->count = 0;
	if (text.n == 0 || json_parse(text, &list, NULL))
		return;
	for (size_t i = 0; i < json_array_size(list) && ret->count < THRESHOLDS_MAX; i++)
		ret->count += read_threshold(json_array_get(list, i), name, unit, &ret->items[ret->count]);
}

void thresholds_parse(struct str budget_json, struct str duration_json, struct thresholds *ret)
{
	parse_list(budget_json, "dollarsSpent", LEASE_USD, &ret->budget);
	parse_list(duration_json, "hoursRemaining", LEASE_HOUR_MS, &ret->duration);
}

/* Which of them were crossed since the last look; of several, the last is reported. NULL: nothing to report. */
static const struct threshold *watch_list(struct lease_watch *w, const struct threshold_list *list, bool is_budget)
{
	int64_t                 before = is_budget ? w->lease->cost : w->lease->last_checked_ms;
	int64_t                 now = is_budget ? w->cost : w->now.ms, last_at = before;
	const struct threshold *last = NULL;

	for (size_t i = 0; i < list->count; i++) {
		const struct threshold *t = &list->items[i];
		int64_t                 at = is_budget ? t->at : w->lease->expires_ms - t->at;

		if (at <= before || at > now)
			continue;
		if (at > last_at) {
			last = t;
			last_at = at;
		}
		if (t->action == THRESHOLD_FREEZE && !w->freezes && w->lease->status == LEASE_ACTIVE) {
			w->freezes = true;
			w->freezes_by_budget = is_budget;
			w->freeze = *t;
		}
	}
	return last && last->action == THRESHOLD_ALERT ? last : NULL;
}

static void watch_thresholds(struct lease_watch *w)
{
	const struct threshold *alert;
	struct thresholds       all;

	thresholds_parse(w->lease->budget_thresholds, w->lease->duration_thresholds, &all);
	if ((alert = watch_list(w, &all.budget, true))) {
		w->alerts_budget = true;
		w->alert_budget = *alert;
	}
	if (w->lease->expires_ms > 0 && (alert = watch_list(w, &all.duration, false))) {
		w->alerts_duration = true;
		w->alert_duration = *alert;
	}
}

/* Dollars (millionths) per millisecond since the earlier observation; negative when it cannot be told. */
static double spend_rate(const struct lease *l)
{
	int64_t from_ms = l->rate_from_ms > 0 ? l->rate_from_ms : l->start_ms;
	int64_t from_cost = l->rate_from_ms > 0 ? l->rate_from_cost : 0;

	if (l->cost_at_ms - from_ms < RATE_SPAN_MIN_MS || l->cost < from_cost || (double)l->cost >= stored_max)
		return -1;
	return (double)(l->cost - from_cost) / (double)(l->cost_at_ms - from_ms);
}

static void move_rate(struct lease *l)
{
	double rate = spend_rate(l);

	if (l->rate_from_ms == 0) {
		l->rate_from_ms = l->start_ms; /* then it had spent nothing */
		l->rate_from_cost = 0;
	}
	if (l->cost < l->rate_from_cost) {
		l->rate_from_ms = l->cost_at_ms; /* the figures were corrected: begin again */
		l->rate_from_cost = l->cost;
	} else if (rate >= 0 && l->cost_at_ms - l->rate_from_ms > RATE_WINDOW_MS) {
		l->rate_from_ms = l->cost_at_ms - RATE_WINDOW_MS;
		l->rate_from_cost = l->cost - llround(rate * RATE_WINDOW_MS);
	}
}

/* What it will have cost by then. */
static int64_t cost_at(const struct lease *l, double rate, int64_t ms)
{
	int64_t left_ms = ms > l->cost_at_ms ? ms - l->cost_at_ms : 0;

	return llround(fmin((double)l->cost + rate * (double)left_ms, stored_max));
}

void lease_forecast(const struct lease *l, struct lease_forecast *ret)
{
	int64_t end_ms = l->expires_ms > 0 ? l->expires_ms : l->last_checked_ms + DAY_MS;
	double  rate = spend_rate(l);
	int64_t late, over;

	*ret = (struct lease_forecast){ .is_known = rate >= 0 };
	if (!ret->is_known)
		return;
	ret->per_hour = llround(fmin(rate * LEASE_HOUR_MS, stored_max));
	ret->estimated = cost_at(l, rate, l->last_checked_ms);
	ret->projected = cost_at(l, rate, end_ms > l->last_checked_ms ? end_ms : l->last_checked_ms);
	late = ret->estimated - (l->cost < l->max_spend ? l->cost : l->max_spend);
	over = ret->projected - l->max_spend;
	if (l->max_spend > 0 && over > 0)
		ret->overrun = late < over ? late : over;
}

/* Of the lease with its new figures. */
static void watch_forecast(struct lease_watch *w)
{
	struct lease                *l = w->lease;
	const struct lease_forecast *f = &w->forecast;
	bool is_projected = f->projected >= l->max_spend, is_estimated = f->estimated >= l->max_spend;

	if (!f->is_known)
		return;
	if (l->max_spend == 0 || f->projected < l->max_spend - l->max_spend / PROJECTION_HYSTERESIS)
		l->projected_ms = 0;
	if (l->max_spend == 0)
		return;
	if (w->projects && is_projected && l->projected_ms == 0) {
		w->alerts_projection = true;
		l->projected_ms = w->now.ms;
	}
	if (!w->freezes && l->status == LEASE_ACTIVE &&
	    ((is_projected && w->on_projected == OVERRUN_FREEZE) ||
	     (is_estimated && w->on_estimated == OVERRUN_FREEZE)))
		w->freezes = w->is_by_forecast = true;
}

/* The lease as it will be stored. */
static void take_figures(struct lease_watch *w)
{
	struct lease *l = w->lease;

	l->cost = w->cost;
	l->cost_at_ms = w->cost_at_ms;
	if (w->now.ms > l->last_checked_ms)
		l->last_checked_ms = w->now.ms;
	lease_forecast(l, &w->forecast);
	move_rate(l);
}

static bool is_watched(const struct lease *l)
{
	return l->status == LEASE_ACTIVE || l->status == LEASE_FROZEN;
}

void lease_watch(struct lease_watch *w)
{
	const struct lease_forecast *f = &w->forecast;
	struct lease                *l = w->lease;
	bool                         is_spent = l->max_spend > 0 && w->cost >= l->max_spend;
	bool                         is_past = l->expires_ms > 0 && l->expires_ms < w->now.ms;

	*w = (struct lease_watch){ .lease = l,
		                   .cost = w->cost,
		                   .cost_at_ms = w->cost_at_ms,
		                   .now = w->now,
		                   .projects = w->projects,
		                   .on_projected = w->on_projected,
		                   .on_estimated = w->on_estimated };
	if (!is_watched(l))
		return;
	if (!is_spent && !is_past)
		watch_thresholds(w); /* compares with the figures before */
	take_figures(w);
	if (is_spent || is_past) {
		w->is_over_budget = is_spent;
		w->is_expired = !is_spent;
	} else if (f->is_known && l->max_spend > 0 &&
	           ((w->on_projected == OVERRUN_END && f->projected >= l->max_spend) ||
	            (w->on_estimated == OVERRUN_END && f->estimated >= l->max_spend))) {
		*w = (struct lease_watch){
			.lease = l, .forecast = w->forecast, .is_over_budget = true, .is_by_forecast = true
		};
	} else {
		watch_forecast(w);
	}
}

int64_t lease_next_moment_ms(const struct lease *l, struct wall now)
{
	struct thresholds all;
	int64_t           next;

	if (!is_watched(l) || l->expires_ms == 0)
		return 0;
	next = l->expires_ms + 1; /* at its end it may still be used, and it has expired when that is past */
	thresholds_parse(STR(""), l->duration_thresholds, &all);
	for (size_t i = 0; i < all.duration.count; i++) {
		int64_t moment = l->expires_ms - all.duration.items[i].at;

		if (moment > now.ms && moment < next)
			next = moment;
	}
	return next;
}

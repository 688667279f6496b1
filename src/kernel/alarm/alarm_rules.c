/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarm_rules.c - what can be wrong with the kernel, read from its own records.
 *
 * Each rule looks at stored facts only: two nodes that look at the same moment find the same, and a restart changes
 * nothing. An evidence names times, not ages, so it stays the same text while nothing changes, and is stored once. Each
 * look is bounded: where there are more records than a rule reads, it reads those first that are wrong for the longest.
 *
 * Not here: for how long something must be wrong before anybody is told (the table of rules), the services' own rules.
 */
#include "kernel/alarm/alarm.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "kernel/kernel.h"
#include "kernel/alarm/node.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "kernel/edge/webhook.h"

enum {
	DEAD_PAGE_FROM = 3,
	QUEUE_STUCK_MS = 600000,
	TIMER_OVERDUE_MS = 60000,
	TIMER_PAGE_MS = 600000,
	STORE_SLOW_MS = 1000,
	BEHIND_MS = 120000,
	BEHIND_PAGE = 200,
	SAGA_PAGE = 200,
	SAGA_SCAN_MAX = 2000,
};

/* "or more" when there are more than fit on one page. */
static const char *or_more(const struct page *page)
{
	return page->next.n ? " or more" : "";
}

/* This much of the machine's time ago. */
static int64_t ago(struct session *s, int64_t machine_ms)
{
	return session_now(s).ms - kernel_span_ms(kernel_of(s), machine_ms);
}

/* --- queues --- */

typedef enum rc queue_judge_fn(struct session *s, const struct queue *queue, struct findings *ret, struct err *e);

static enum rc each_queue(struct session *s, queue_judge_fn *judge, struct findings *ret, struct err *e)
{
	const struct kernel_options *o = kernel_options(kernel_of(s));
	enum rc                      rc = RC_OK;

	for (size_t i = 0; i < o->queue_count && !rc; i++)
		rc = judge(s, &o->queues[i], ret, e);
	return rc;
}

static enum rc find_dead(struct session *s, const struct queue *queue, struct findings *ret, struct err *e)
{
	struct value       name = value_text(str_from(queue->name));
	struct query       q = { .type = &dead_type, .index = DEAD_BY_QUEUE, .hash = name, .limit = 1 };
	const struct dead *oldest;
	struct page        page;
	int64_t            count;
	enum rc            rc;

	if ((rc = session_query(s, &q, &page, e)) || page.count == 0)
		return rc;
	if ((rc = session_count(s, &dead_type, DEAD_BY_QUEUE, name, &count, e)))
		return rc;
	oldest = page_record(&page, &dead_type, 0);
	if (count == 0) /* an index that lags: there is at least the one just read */
		count = 1;
	findings_add(ret, name.text, count >= DEAD_PAGE_FROM ? ALARM_PAGE : ALARM_WARNING, count,
	             "queue %s has %lld dead letter%s; the oldest, %.*s of %.*s, died %s after %lld tries: %.*s",
	             queue->name, (long long)count, count == 1 ? "" : "s", STR_ARG(oldest->id),
	             STR_ARG(oldest->subject), alarm_time(s, oldest->died_ms), (long long)oldest->tries,
	             STR_ARG(oldest->error));
	return RC_OK;
}

ALARM_RULE(alarm_dead_letters, each_queue(s, find_dead, ret, e))

/* What is in flight, or waits for its next try, is due later: only what nobody takes is stuck. */
static enum rc find_stuck(struct session *s, const struct queue *queue, struct findings *ret, struct err *e)
{
	struct query       q = query_until(&lane_type, LANE_DUE, value_text(str_from(queue->name)),
	                                   ago(s, QUEUE_STUCK_MS) - 1, QUERY_LIMIT_MAX);
	const struct lane *first;
	struct page        page;
	enum rc            rc = session_query(s, &q, &page, e);

	if (rc || page.count == 0)
		return rc;
	first = page_record(&page, &lane_type, 0);
	/* Where there are addressees, one that hangs may be the cause; webhook-behind then reports it too. */
	findings_add(ret, q.hash.text, queue->addressees ? ALARM_WARNING : ALARM_PAGE, (int64_t)page.count,
	             "queue %s: what has been due for more than %d minutes is not taken, %zu%s subject%s; the first is "
	             "%.*s, due since %s",
	             queue->name, QUEUE_STUCK_MS / 60000, page.count, or_more(&page), page.count == 1 ? "" : "s",
	             STR_ARG(first->subject), alarm_time(s, first->due_ms));
	return RC_OK;
}

ALARM_RULE(alarm_queue_stuck, each_queue(s, find_stuck, ret, e))

/* What waits for one webhook, tried or not: the head of a lane since a while ago. Alarms themselves go another way. */
static enum rc find_behind(struct session *s, const struct webhook *hook, struct findings *ret, struct err *e)
{
	struct query       q = { .type = &lane_type,
		                 .index = QUERY_KEYS,
		                 .sort_prefix = str_format(session_arena(s), "webhook-out#%.*s|", STR_ARG(hook->id)),
		                 .limit = BEHIND_PAGE };
	const struct lane *oldest = NULL;
	struct page        page;
	struct str         url = webhook_url_shown(hook->url);
	enum rc            rc = session_query(s, &q, &page, e);

	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct lane *lane = page_record(&page, &lane_type, i);

		if (!oldest || lane->since_ms < oldest->since_ms)
			oldest = lane;
	}
	if (rc || !oldest || oldest->since_ms >= ago(s, BEHIND_MS))
		return rc;
	findings_add(
	        ret, hook->id, ALARM_WARNING, (int64_t)page.count,
	        "webhook %.*s (%.*s) does not accept what is sent: the oldest that waits is about %.*s, since %s%s%.*s",
	        STR_ARG(hook->id), STR_ARG(url), STR_ARG(oldest->subject), alarm_time(s, oldest->since_ms),
	        oldest->last_error.n ? ": " : "", STR_ARG(oldest->last_error));
	return RC_OK;
}

enum rc alarm_webhook_behind(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct page hooks;
	enum rc     rc = webhook_list(s, &hooks, e);

	for (size_t i = 0; !rc && i < hooks.count; i++) {
		const struct webhook *hook = page_record(&hooks, &webhook_type, i);

		if (!hook->is_paused)
			rc = find_behind(s, hook, ret, e);
	}
	return rc;
}

/* --- sagas --- */

/* Adds what is wrong with a saga, if anything. */
typedef void saga_judge_fn(struct session *s, const struct saga *saga, struct findings *ret);

static enum rc each_saga(struct session *s, enum saga_state state, saga_judge_fn *judge, struct findings *ret,
                         struct err *e)
{
	struct records all = {
		.query = { .type = &saga_type, .index = SAGA_BY_STATE, .hash = value_int(state), .limit = SAGA_PAGE },
		.pages_max = SAGA_SCAN_MAX / SAGA_PAGE
	};
	const struct saga *saga;
	enum rc            rc;

	while ((saga = session_next(s, &all, &rc, e)))
		judge(s, saga, ret);
	return rc;
}

/* The step's name, or its number when the kind is not of this program. */
static struct str step_name(struct session *s, const struct saga *saga)
{
	const struct saga_kind *kind = kernel_saga(kernel_of(s), saga->kind);

	if (kind && saga->step >= 0 && (size_t)saga->step < kind->step_count)
		return str_from(kind->steps[saga->step].name);
	return str_format(session_arena(s), "%lld", (long long)saga->step + 1);
}

static void judge_parked(struct session *s, const struct saga *saga, struct findings *ret)
{
	struct str reason = saga->reason.n ? saga->reason : saga->last_error;
	struct str step = step_name(s, saga);

	findings_add(ret, saga->id, ALARM_WARNING, saga->step + 1, "saga %.*s of %.*s is parked %s step %.*s: %.*s",
	             STR_ARG(saga->kind), STR_ARG(saga->subject), saga->is_back ? "while undoing" : "at", STR_ARG(step),
	             STR_ARG(reason));
}

ALARM_RULE(alarm_saga_parked, each_saga(s, SAGA_PARKED, judge_parked, ret, e))

static void judge_deadline(struct session *s, const struct saga *saga, struct findings *ret)
{
	struct str step = step_name(s, saga);

	if (!saga->deadline_ms || saga->deadline_ms >= session_now(s).ms)
		return;
	findings_add(ret, saga->id, ALARM_WARNING, saga->step + 1,
	             "saga %.*s of %.*s is still %s, at step %.*s; its deadline was %s", STR_ARG(saga->kind),
	             STR_ARG(saga->subject), saga_state_names[saga->state], STR_ARG(step),
	             alarm_time(s, saga->deadline_ms));
}

enum rc alarm_saga_overdue(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	enum rc rc = each_saga(s, SAGA_RUNNING, judge_deadline, ret, e);

	return rc ? rc : each_saga(s, SAGA_UNDOING, judge_deadline, ret, e);
}

/* --- timers --- */

enum rc alarm_timer_overdue(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct query q = query_until(&timer_type, TIMER_DUE, value_int(TIMER_ARMED), ago(s, TIMER_OVERDUE_MS) - 1,
	                             QUERY_LIMIT_MAX);
	const struct timer *oldest;
	struct page         page;
	enum rc             rc = session_query(s, &q, &page, e);

	if (rc || page.count == 0)
		return rc;
	oldest = page_record(&page, &timer_type, 0);
	findings_add(ret, STR(""), oldest->due_ms < ago(s, TIMER_PAGE_MS) ? ALARM_PAGE : ALARM_WARNING,
	             (int64_t)page.count, "%zu%s timer%s overdue for more than a minute; the oldest, %.*s, was due %s",
	             page.count, or_more(&page), page.count == 1 ? " is" : "s are", STR_ARG(oldest->name),
	             alarm_time(s, oldest->due_ms));
	return RC_OK;
}

/* --- what the nodes say --- */

typedef void fact_judge_fn(struct session *s, const struct fact *fact, struct str name, struct findings *ret);

/* Facts that hold and were stated a moment ago. A process with an open circuit keeps restating it; one that
 * has ended cannot say that it has closed. */
static enum rc each_fact(struct session *s, struct str prefix, fact_judge_fn *judge, struct findings *ret,
                         struct err *e)
{
	struct query   q = { .type = &fact_type, .index = QUERY_KEYS, .sort_prefix = prefix, .limit = QUERY_LIMIT_MAX };
	struct records all = { .query = q, .pages_max = 1 };
	const struct fact *fact;
	enum rc            rc;

	while ((fact = session_next(s, &all, &rc, e)))
		if (fact->value && fact->at_ms >= ago(s, NODE_SILENT_MS))
			judge(s, fact, str_skip(fact->name, prefix.n), ret);
	return rc;
}

static void judge_circuit(struct session *s, const struct fact *fact, struct str name, struct findings *ret)
{
	if (fact->value == 1)
		findings_add(ret, name, ALARM_WARNING, 1, "the circuit to %.*s has been open since %s%s%.*s",
		             STR_ARG(name), alarm_time(s, fact->since_ms), fact->text.n ? ": " : "",
		             STR_ARG(fact->text));
}

ALARM_RULE(alarm_circuit_open, each_fact(s, STR("circuit/"), judge_circuit, ret, e))

static void judge_inbox(struct session *s, const struct fact *fact, struct str name, struct findings *ret)
{
	findings_add(ret, name, ALARM_PAGE, fact->value,
	             "the queue of the inbox %.*s has been unreadable since %s%s%.*s", STR_ARG(name),
	             alarm_time(s, fact->since_ms), fact->text.n ? ": " : "", STR_ARG(fact->text));
}

ALARM_RULE(alarm_inbox_silent, each_fact(s, STR("inbox/"), judge_inbox, ret, e))

static void judge_refusal(struct session *s, const struct fact *fact, struct str name, struct findings *ret)
{
	findings_add(ret, name, ALARM_PAGE, 1, "%.*s has been refused since %s: %.*s", STR_ARG(name),
	             alarm_time(s, fact->since_ms), STR_ARG(fact->text));
}

ALARM_RULE(alarm_refused, each_fact(s, STR(FACT_REFUSED), judge_refusal, ret, e))

static void judge_throttles(struct session *s, const struct fact *fact, struct str name, struct findings *ret)
{
	findings_add(ret, name, ALARM_WARNING, fact->value,
	             "calls of class %.*s were throttled %lld times or more within 5 minutes, since %s", STR_ARG(name),
	             (long long)fact->value, alarm_time(s, fact->since_ms));
}

ALARM_RULE(alarm_throttled, each_fact(s, STR(FACT_THROTTLES), judge_throttles, ret, e))

static void judge_clock(struct session *s, const struct fact *fact, struct str name, struct findings *ret)
{
	findings_add(ret, name, ALARM_PAGE, fact->value,
	             "the machine's date has jumped by about %lld minutes since %s; it is not followed",
	             (long long)fact->value, alarm_time(s, fact->since_ms));
}

ALARM_RULE(alarm_clock_differs, each_fact(s, STR("clock/"), judge_clock, ret, e))

static bool is_silent(struct session *s, const struct node *node)
{
	return node->beat_ms < ago(s, NODE_SILENT_MS);
}

/* The last beat of a node that is silent says nothing about now. */
enum rc alarm_store_trouble(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct page nodes;
	enum rc     rc = node_list(s, &nodes, e);

	for (size_t i = 0; !rc && i < nodes.count; i++) {
		const struct node *node = page_record(&nodes, &node_type, i);

		if (is_silent(s, node))
			continue;
		if (node->failed_commits > 0)
			findings_add(ret, node->id, ALARM_PAGE, node->failed_commits,
			             "the store refused %lld commits of node %.*s; its slowest took %lld ms",
			             (long long)node->failed_commits, STR_ARG(node->id), (long long)node->slowest_ms);
		else if (node->slowest_ms > STORE_SLOW_MS)
			findings_add(ret, node->id, ALARM_WARNING, node->slowest_ms,
			             "a transaction of node %.*s took %lld ms; the limit is %d", STR_ARG(node->id),
			             (long long)node->slowest_ms, STORE_SLOW_MS);
	}
	return rc;
}

/* A node that started after this one was last heard of replaces it; each replaces one only. */
static bool is_replaced(const struct page *nodes, const struct node *silent, bool *is_taken)
{
	size_t best = nodes->count;

	for (size_t i = 0; i < nodes->count; i++) {
		const struct node *node = page_record(nodes, &node_type, i);
		const struct node *other = best < nodes->count ? page_record(nodes, &node_type, best) : NULL;

		if (node != silent && !is_taken[i] && node->started_ms >= silent->beat_ms &&
		    (!other || node->started_ms < other->started_ms))
			best = i;
	}
	if (best < nodes->count)
		is_taken[best] = true;
	return best < nodes->count;
}

static int by_beat(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	return (x->beat_ms > y->beat_ms) - (x->beat_ms < y->beat_ms);
}

enum rc alarm_node_silent(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e)
{
	struct page nodes;
	bool       *is_taken;
	enum rc     rc = node_list(s, &nodes, e);

	if (rc || !nodes.count)
		return rc;
	is_taken = arena_alloc(session_arena(s), nodes.count * sizeof(*is_taken));
	qsort(nodes.records, nodes.count, sizeof(struct node), by_beat);
	for (size_t i = 0; i < nodes.count; i++) {
		const struct node *node = page_record(&nodes, &node_type, i);

		if (is_silent(s, node) && !is_replaced(&nodes, node, is_taken))
			findings_add(ret, node->id, ALARM_WARNING, node->beat_ms,
			             "node %.*s went silent without signing off; its last beat was %s",
			             STR_ARG(node->id), alarm_time(s, node->beat_ms));
	}
	return RC_OK;
}

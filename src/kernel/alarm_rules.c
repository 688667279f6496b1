/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarm_rules.c - what can be wrong with the kernel, read from its own records.
 *
 * Each rule looks at stored facts only: two nodes that look at the same moment find the same, and a restart changes nothing. An
 * evidence names times, not ages, so it stays the same text while nothing changes, and is stored once. Each look is bounded: where
 * there are more records than a rule reads, it reads those first that are wrong for the longest.
 *
 * Not here: for how long something must be wrong before anybody is told (the table of rules), the services' own rules.
 */
#include "kernel/alarm.h"

#include "base/clock.h"
#include "kernel/kernel.h"
#include "kernel/node.h"
#include "kernel/queue.h"
#include "kernel/saga.h"

enum {
	DEAD_PAGE_FROM = 3,
	QUEUE_STUCK_MS = 600000,
	TIMER_OVERDUE_MS = 60000,
	TIMER_PAGE_MS = 600000,
	STORE_SLOW_MS = 1000,
	SAGA_PAGE = 200,
	SAGA_SCAN_MAX = 2000,
};

/* A moment as people read it, in the session's arena. */
static const char *at(struct session *s, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	return str_dup(session_arena(s), iso_time(ms / 1000, text)).p;
}

/* "or more" when there are more than one page holds. */
static const char *or_more(const struct page *page)
{
	return page->next.n ? " or more" : "";
}

/* --- queues --- */

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
	findings_add(ret,
	             &(struct finding){
	                     .instance = name.text,
	                     .severity = count >= DEAD_PAGE_FROM ? ALARM_PAGE : ALARM_WARNING,
	                     .value = count,
	                     .evidence =
	                             str_format(session_arena(s),
	                                        "queue %s has %lld dead letter%s; the oldest, %.*s of %.*s, died %s "
	                                        "after %lld tries: %.*s",
	                                        queue->name, (long long)count, count == 1 ? "" : "s",
	                                        STR_ARG(oldest->id), STR_ARG(oldest->subject), at(s, oldest->died_ms),
	                                        (long long)oldest->tries, STR_ARG(oldest->error)) });
	return RC_OK;
}

enum rc alarm_dead_letters(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct kernel_options *o = kernel_options(kernel_of(s));
	enum rc                      rc = RC_OK;

	(void)arg;
	for (size_t i = 0; i < o->queue_count && !rc; i++)
		rc = find_dead(s, &o->queues[i], ret, e);
	return rc;
}

/* Before so much of the machine's time. */
static int64_t ago(struct session *s, int64_t machine_ms)
{
	return session_now(s).ms - kernel_span_ms(kernel_of(s), machine_ms);
}

/* What is in flight, or waits for its next try, is due later: only what nobody takes is stuck. */
static enum rc find_stuck(struct session *s, const struct queue *queue, struct findings *ret, struct err *e)
{
	struct query       q = { .type = &lane_type,
		                 .index = LANE_DUE,
		                 .hash = value_text(str_from(queue->name)),
		                 .has_sort_max = true,
		                 .sort_max = ago(s, QUEUE_STUCK_MS) - 1,
		                 .limit = QUERY_LIMIT_MAX };
	const struct lane *first;
	struct page        page;
	enum rc            rc = session_query(s, &q, &page, e);

	if (rc || page.count == 0)
		return rc;
	first = page_record(&page, &lane_type, 0);
	findings_add(ret,
	             &(struct finding){
	                     .instance = q.hash.text,
	                     .severity = ALARM_PAGE,
	                     .value = (int64_t)page.count,
	                     .evidence =
	                             str_format(session_arena(s),
	                                        "queue %s: nobody takes what is due for more than %d minutes, %zu%s "
	                                        "subject%s; the first is %.*s, due since %s",
	                                        queue->name, QUEUE_STUCK_MS / 60000, page.count, or_more(&page),
	                                        page.count == 1 ? "" : "s", STR_ARG(first->subject),
	                                        at(s, first->due_ms)) });
	return RC_OK;
}

enum rc alarm_queue_stuck(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct kernel_options *o = kernel_options(kernel_of(s));
	enum rc                      rc = RC_OK;

	(void)arg;
	for (size_t i = 0; i < o->queue_count && !rc; i++)
		rc = find_stuck(s, &o->queues[i], ret, e);
	return rc;
}

/* --- sagas --- */

/* What a saga is wrong about, or nothing. */
typedef void saga_judge_fn(struct session *s, const struct saga *saga, struct findings *ret);

static enum rc each_saga(struct session *s, enum saga_state state, saga_judge_fn *judge, struct findings *ret,
                         struct err *e)
{
	struct query q = { .type = &saga_type, .index = SAGA_BY_STATE, .hash = value_int(state), .limit = SAGA_PAGE };
	struct page  page;

	for (size_t seen = 0; seen < SAGA_SCAN_MAX; seen += SAGA_PAGE) {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < page.count; i++)
			judge(s, page_record(&page, &saga_type, i), ret);
		if (page.next.n == 0)
			break;
		q.cursor = page.next;
	}
	return RC_OK;
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

	findings_add(ret, &(struct finding){ .instance = saga->id,
	                                     .severity = ALARM_WARNING,
	                                     .value = saga->step + 1,
	                                     .evidence = str_format(session_arena(s),
	                                                            "saga %.*s of %.*s is parked %s step %.*s: %.*s",
	                                                            STR_ARG(saga->kind), STR_ARG(saga->subject),
	                                                            saga->is_back ? "while undoing" : "at",
	                                                            STR_ARG(step), STR_ARG(reason)) });
}

enum rc alarm_saga_parked(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	(void)arg;
	return each_saga(s, SAGA_PARKED, judge_parked, ret, e);
}

static void judge_deadline(struct session *s, const struct saga *saga, struct findings *ret)
{
	struct str step = step_name(s, saga);

	if (!saga->deadline_ms || saga->deadline_ms >= session_now(s).ms)
		return;
	findings_add(ret,
	             &(struct finding){
	                     .instance = saga->id,
	                     .severity = ALARM_WARNING,
	                     .value = saga->step + 1,
	                     .evidence = str_format(session_arena(s),
	                                            "saga %.*s of %.*s is still %s, at step %.*s; its deadline was %s",
	                                            STR_ARG(saga->kind), STR_ARG(saga->subject),
	                                            saga_state_names[saga->state], STR_ARG(step),
	                                            at(s, saga->deadline_ms)) });
}

enum rc alarm_saga_overdue(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	enum rc rc = each_saga(s, SAGA_RUNNING, judge_deadline, ret, e);

	(void)arg;
	return rc ? rc : each_saga(s, SAGA_UNDOING, judge_deadline, ret, e);
}

/* --- timers --- */

enum rc alarm_timer_overdue(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct query        q = { .type = &timer_type,
		                  .index = TIMER_DUE,
		                  .hash = value_int(TIMER_ARMED),
		                  .has_sort_max = true,
		                  .sort_max = ago(s, TIMER_OVERDUE_MS) - 1,
		                  .limit = QUERY_LIMIT_MAX };
	const struct timer *oldest;
	struct page         page;
	enum rc             rc = session_query(s, &q, &page, e);

	(void)arg;
	if (rc || page.count == 0)
		return rc;
	oldest = page_record(&page, &timer_type, 0);
	findings_add(ret,
	             &(struct finding){
	                     .severity = oldest->due_ms < ago(s, TIMER_PAGE_MS) ? ALARM_PAGE : ALARM_WARNING,
	                     .value = (int64_t)page.count,
	                     .evidence =
	                             str_format(session_arena(s),
	                                        "%zu%s timer%s overdue for more than a minute; the oldest, %.*s, was "
	                                        "due %s",
	                                        page.count, or_more(&page), page.count == 1 ? " is" : "s are",
	                                        STR_ARG(oldest->name), at(s, oldest->due_ms)) });
	return RC_OK;
}

/* --- what the nodes say --- */

/* Whoever has an open circuit says so again and again. A process that ended with one cannot say that it has closed. */
static bool is_open(struct session *s, const struct fact *fact)
{
	return fact->value == 1 && fact->at_ms >= ago(s, NODE_SILENT_MS);
}

enum rc alarm_circuit_open(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct str   prefix = STR("circuit/");
	struct query q = { .type = &fact_type, .index = QUERY_KEYS, .sort_prefix = prefix, .limit = QUERY_LIMIT_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	(void)arg;
	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct fact *fact = page_record(&page, &fact_type, i);
		struct str         name = str_of(fact->name.p + prefix.n, fact->name.n - prefix.n);

		if (is_open(s, fact))
			findings_add(ret,
			             &(struct finding){
			                     .instance = name,
			                     .severity = ALARM_WARNING,
			                     .value = 1,
			                     .evidence = str_format(session_arena(s),
			                                            "the circuit to %.*s is open since %s%s%.*s",
			                                            STR_ARG(name), at(s, fact->since_ms),
			                                            fact->text.n ? ": " : "", STR_ARG(fact->text)) });
	}
	return RC_OK;
}

static bool is_silent(struct session *s, const struct node *node)
{
	return node->beat_ms < ago(s, NODE_SILENT_MS);
}

static struct finding store_finding(struct session *s, const struct node *node)
{
	struct finding f = { .instance = node->id };

	if (node->failed_commits > 0) {
		f.severity = ALARM_PAGE;
		f.value = node->failed_commits;
		f.evidence = str_format(session_arena(s),
		                        "the store refused %lld commits of node %.*s; its slowest took %lld ms",
		                        (long long)node->failed_commits, STR_ARG(node->id),
		                        (long long)node->slowest_ms);
	} else {
		f.severity = ALARM_WARNING;
		f.value = node->slowest_ms;
		f.evidence = str_format(session_arena(s), "a transaction of node %.*s took %lld ms; %d are the limit",
		                        STR_ARG(node->id), (long long)node->slowest_ms, STORE_SLOW_MS);
	}
	return f;
}

/* The last beat of a node that is silent says nothing about now. */
enum rc alarm_store_trouble(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct node_list list;
	enum rc          rc = node_list(s, &list, e);

	(void)arg;
	if (rc)
		return rc;
	for (size_t i = 0; i < list.page.count; i++) {
		const struct node *node = page_record(&list.page, &node_type, i);
		struct finding     f;

		if (is_silent(s, node) || (node->failed_commits <= 0 && node->slowest_ms <= STORE_SLOW_MS))
			continue;
		f = store_finding(s, node);
		findings_add(ret, &f);
	}
	return RC_OK;
}

enum rc alarm_node_silent(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct node_list list;
	enum rc          rc = node_list(s, &list, e);

	(void)arg;
	if (rc)
		return rc;
	for (size_t i = 0; i < list.page.count; i++) {
		const struct node *node = page_record(&list.page, &node_type, i);

		if (is_silent(s, node))
			findings_add(ret,
			             &(struct finding){
			                     .instance = node->id,
			                     .severity = ALARM_WARNING,
			                     .value = node->beat_ms,
			                     .evidence =
			                             str_format(session_arena(s),
			                                        "node %.*s did not say good-bye; its last beat was %s",
			                                        STR_ARG(node->id), at(s, node->beat_ms)) });
	}
	return RC_OK;
}

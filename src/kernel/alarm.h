/* alarm.h - conditions computed from stored facts: raised after they hold, cleared when they stop, each change told once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

struct kernel;

/* One thing that is wrong. */
struct finding {
	struct str          instance; /* tells several of one rule apart: a queue, a job; empty: there is only one */
	enum alarm_severity severity;
	int64_t             value;
	struct str          evidence; /* one sentence: what, how many, since when. In the session's arena */
};

struct findings; /* where a rule puts them */
void findings_add(struct findings *f, const struct finding *finding);

/* Looks at stored records only; read-only session. */
typedef enum rc alarm_rule_fn(struct session *s, void *arg, struct findings *ret, struct err *e);

struct alarm_rule {
	const char    *name;
	alarm_rule_fn *find;
	int64_t        hold_ms; /* raised when it was so for this long */
	const char    *runbook; /* section of docs/runbook.md */
	const char    *summary;
};

enum { FINDINGS_MAX = 32 };

/* Compute all rules and store what changed; AlarmRaised, AlarmCleared and AlarmChanged (severity) are emitted with it. A rule that cannot
 * be computed changes nothing of its own and keeps no other from being computed; the answer is then the first such failure, and the
 * counts are set all the same. Blocks. */
struct alarm_check {
	struct kernel           *kernel;
	const struct alarm_rule *rules;
	size_t                   rule_count;
	void                    *arg; /* for the rules */

	int64_t raised, cleared, failed; /* the answer */
};
MUST_CHECK enum rc alarm_check(struct alarm_check *c, struct err *e);

/* All that hold, raised or pending; read-only. */
struct alarm_list {
	struct page page; /* the answer: struct alarm records, at most 1,000 */
};
txn_fn alarm_list;

/* --- the kernel's own rules; arg is unused --- */

alarm_rule_fn alarm_dead_letters; /* one finding a queue: warning from 1, page from 3 */
alarm_rule_fn alarm_queue_stuck;  /* the oldest head of a queue is due for more than 10 minutes */
alarm_rule_fn alarm_saga_parked;
alarm_rule_fn alarm_saga_overdue;  /* over its deadline and not ended */
alarm_rule_fn alarm_timer_overdue; /* due for more than a minute */
alarm_rule_fn alarm_circuit_open;  /* facts "circuit/...", to be stated again within NODE_SILENT_MS while they are so */
alarm_rule_fn alarm_store_trouble; /* a node's beat says slow or failed commits */
alarm_rule_fn alarm_node_silent;   /* a node without a beat and without a good-bye */

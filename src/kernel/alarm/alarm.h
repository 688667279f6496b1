/* alarm.h - conditions computed from stored facts: raised when they last, cleared when they end, each told once. */
#pragma once

#include "base/err.h"
#include "kernel/records.h"
#include "store/session.h"
#include "store/store.h"

/* Where a rule puts what is wrong. The instance tells several of one rule apart: a queue, a job; empty: there is
 * only one. The evidence is one sentence: what, how many, since when. */
struct findings;
void findings_add(struct findings *f, struct str instance, enum alarm_severity severity, int64_t value,
                  const char *evidence, ...) PRINTF_LIKE(5, 6);

/* A moment as people read it, in the session's arena. */
const char *alarm_time(struct session *s, int64_t ms);

/* Looks at stored records only; read-only session. */
typedef enum rc alarm_rule_fn(struct session *s, void *arg, struct findings *ret, struct err *e);

/* One that is a single call, of s, ret and e. */
#define ALARM_RULE(name, call)                                                                 \
	enum rc name(struct session *s, void *arg UNUSED, struct findings *ret, struct err *e) \
	{                                                                                      \
		return call;                                                                   \
	}

struct alarm_rule {
	const char    *name;
	alarm_rule_fn *find;
	int64_t        hold_ms; /* raised when it was so for this long */
	const char    *runbook; /* section of docs/runbook.md */
	const char    *summary;
};

enum { FINDINGS_MAX = 32 };

#define FACT_REFUSED   "refused/"
#define FACT_THROTTLES "throttled/"

/* Compute all rules and store what changed; AlarmRaised, AlarmCleared and AlarmChanged (severity) are emitted with
 * it. A rule that cannot be computed changes nothing of its own and keeps no other from being computed; the answer
 * is then the first such failure, and the counts are set nevertheless. Blocks. */
struct alarm_check {
	struct kernel           *kernel;
	const struct alarm_rule *rules;
	size_t                   rule_count;
	void                    *arg; /* for the rules */

	int64_t raised, cleared, failed; /* the answer */
};
MUST_CHECK enum rc alarm_check(struct alarm_check *c, struct err *e);

/* All that hold, raised or pending; read-only. arg is a struct page: struct alarm records, at most 1,000. */
txn_fn alarm_list;

/* --- the kernel's own rules; arg is unused --- */

alarm_rule_fn alarm_dead_letters;   /* one finding a queue: warning from 1, page from 3 */
alarm_rule_fn alarm_queue_stuck;    /* the oldest head of a queue has been due for more than 10 minutes */
alarm_rule_fn alarm_webhook_behind; /* one finding a webhook: something has waited for it for more than 2 minutes */
alarm_rule_fn alarm_saga_parked;
alarm_rule_fn alarm_saga_overdue;  /* over its deadline and not ended */
alarm_rule_fn alarm_timer_overdue; /* overdue for more than a minute */
alarm_rule_fn alarm_circuit_open;  /* facts "circuit/...", to be stated again within NODE_SILENT_MS while they are so */
alarm_rule_fn alarm_inbox_silent;  /* facts "inbox/...": a queue that cannot be read; the same */
alarm_rule_fn alarm_refused;       /* facts FACT_REFUSED...: a far side says that we lack a right; the same */
alarm_rule_fn alarm_throttled;     /* facts FACT_THROTTLES...: a far side says "slow down" too often; the same */
alarm_rule_fn alarm_clock_differs; /* facts "clock/...", the same */
alarm_rule_fn alarm_store_trouble; /* a node's beat says slow or failed commits */
alarm_rule_fn alarm_node_silent;   /* a node that stopped beating without signing off */

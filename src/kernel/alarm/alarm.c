/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alarm.c - compares what is wrong now with what was wrong before, and tells the difference.
 *
 * A check takes each rule by itself. A read-only transaction lists the rule's stored alarms and lets the rule find what
 * is wrong; both together are the candidates. Those that seem to have changed are then settled in transactions of their
 * own, which read the alarm again by its key and decide from that. What the first transaction saw may be old: it only
 * says where to look.
 *
 *     nothing ──found──> pending ──held for hold_ms──> raised ──not found──> nothing
 *                           └──────not found──> nothing (nobody was told, so nobody is told)
 *
 * Always true:
 *   1. A change is stored and told in one commit, so each is told once however many nodes check at the same time.
 *      [settle()]
 *   2. A record is there while its condition holds, and only then. [decide()]
 *   3. A rule that fails leaves its own alarms as they are, and the other rules alone. [alarm_check()]
 *   4. A rule has no more than FINDINGS_MAX alarms. Those that are stored come first, so that a flood of new conditions
 *      never makes an old one look cleared. [drop_overflow()]
 *
 * After a crash the next check goes on from what is stored. Not here: what is wrong (alarm_rules.c and the services),
 * who is told (the routes of the events).
 */
#include "kernel/alarm/alarm.h"

#include <stdarg.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

/* An alarm costs one action, its event up to eleven with five queues: eight of them stay below SESSION_ACTIONS_MAX. */
enum { SETTLE_MAX = 8, ALARM_NAME_MAX = 240 };

/* An alarm that is stored, or found, or both. */
struct candidate {
	struct str          name;
	const struct alarm *stored; /* as the first transaction saw it; NULL: not there */
	bool                is_found;
	enum alarm_severity severity; /* and so on: what was found */
	int64_t             value;
	struct str          evidence;
};

/* One rule's part of a check. */
struct findings {
	const struct alarm_rule *rule;
	void                    *arg;
	struct arena            *arena;
	int64_t                  now_ms;
	struct candidate        *items; /* the stored ones first */
	size_t                   count, stored_count;
	enum rc                  rc; /* of findings_add() */
	struct err               e;
};

/* --- what a rule finds --- */

const char *alarm_time(struct session *s, int64_t ms)
{
	char text[ISO_TIME_SIZE];

	return str_dup(session_arena(s), iso_time(ms / 1000, text)).p;
}

void findings_add(struct findings *f, struct str instance, enum alarm_severity severity, int64_t value,
                  const char *evidence, ...)
{
	struct str        rule = str_from(f->rule->name), name = rule;
	struct candidate *c = NULL;
	va_list           args;

	if (instance.n)
		name = str_format(f->arena, "%.*s#%.*s", STR_ARG(rule), STR_ARG(instance));
	if (name.n > ALARM_NAME_MAX) {
		f->rc = err_set(&f->e, RC_INVALID, "alarm '%.60s...' has %zu bytes in its name; the limit is %d",
		                name.p, name.n, ALARM_NAME_MAX);
		return;
	}
	for (size_t i = 0; i < f->count && !c; i++)
		if (str_eq(f->items[i].name, name))
			c = &f->items[i];
	if (!c && f->count < f->stored_count + FINDINGS_MAX) {
		c = &f->items[f->count++];
		c->name = name;
	}
	if (!c || c->is_found)
		return;
	c->is_found = true;
	c->severity = severity;
	c->value = value;
	va_start(args, evidence);
	c->evidence = utf8_clip(str_vformat(f->arena, evidence, args), ERROR_MAX);
	va_end(args);
}

static void drop_overflow(struct findings *f)
{
	size_t found = 0, room;

	for (size_t i = 0; i < f->stored_count; i++)
		found += f->items[i].is_found;
	room = found < FINDINGS_MAX ? FINDINGS_MAX - found : 0;
	if (f->count > f->stored_count + room)
		f->count = f->stored_count + room;
}

/* The rule's alarms as candidates. Names of other rules may begin with the name of this one. */
static enum rc list_stored(struct session *s, struct findings *f, struct err *e)
{
	struct str   rule = str_from(f->rule->name);
	struct query q = { .type = &alarm_type, .index = QUERY_KEYS, .sort_prefix = rule, .limit = QUERY_LIMIT_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	f->items = arena_alloc(f->arena, (page.count + FINDINGS_MAX) * sizeof(*f->items));
	for (size_t i = 0; i < page.count; i++) {
		const struct alarm *alarm = page_record(&page, &alarm_type, i);

		if (str_eq(alarm->rule, rule))
			f->items[f->count++] = (struct candidate){ .name = alarm->name, .stored = alarm };
	}
	f->stored_count = f->count;
	return RC_OK;
}

static enum rc look(struct session *s, void *arg, struct err *e)
{
	struct findings *f = arg;
	enum rc          rc;

	*f = (struct findings){
		.rule = f->rule, .arg = f->arg, .arena = session_arena(s), .now_ms = session_now(s).ms
	};
	if ((rc = list_stored(s, f, e)) || (rc = f->rule->find(s, f->arg, f, e)))
		return rc;
	if (f->rc)
		return err_set(e, f->rc, "%s", f->e.msg);
	drop_overflow(f);
	return RC_OK;
}

/* --- what becomes of an alarm --- */

enum change {
	CHANGE_NONE,
	CHANGE_QUIET, /* stored, nobody is told */
	CHANGE_FORGOTTEN,
	CHANGE_RAISED,
	CHANGE_SEVERITY,
	CHANGE_CLEARED,
	CHANGE_COUNT
};

static const char *const change_events[CHANGE_COUNT] = {
	[CHANGE_RAISED] = "AlarmRaised", [CHANGE_SEVERITY] = "AlarmChanged", [CHANGE_CLEARED] = "AlarmCleared"
};

/* Pure. *ret is the alarm as it shall be; for one that goes, as it was. */
static enum change decide(const struct alarm *old, const struct candidate *c, const struct alarm_rule *rule,
                          int64_t hold_ms, int64_t now_ms, struct alarm *ret)
{
	struct alarm next = { .name = c->name, .rule = str_from(rule->name), .since_ms = now_ms };
	enum change  change = CHANGE_NONE;

	if (old)
		next = *old;
	*ret = next;
	if (!c->is_found && !old)
		return CHANGE_NONE;
	if (!c->is_found)
		return old->state == ALARM_RAISED ? CHANGE_CLEARED : CHANGE_FORGOTTEN;

	next.severity = c->severity;
	next.evidence = c->evidence;
	next.value = c->value;
	next.checked_ms = now_ms;
	if (next.state == ALARM_PENDING && now_ms - next.since_ms >= hold_ms) {
		next.state = ALARM_RAISED;
		next.raised_ms = now_ms;
		change = CHANGE_RAISED;
	} else if (!old) {
		change = CHANGE_QUIET;
	} else if (old->severity != next.severity) {
		change = next.state == ALARM_RAISED ? CHANGE_SEVERITY : CHANGE_QUIET;
	} else if (old->value != next.value || !str_eq(old->evidence, next.evidence)) {
		change = CHANGE_QUIET;
	}
	*ret = next;
	return change;
}

static enum rc tell(struct session *s, const struct alarm *alarm, const struct alarm_rule *rule, enum change change,
                    struct err *e)
{
	struct arena *a = session_arena(s);

	return session_tell(s, change_events[change],
	                    utf8_clip(str_format(a, "alarm/%.*s", STR_ARG(alarm->name)), SUBJECT_MAX), STR("alarms"),
	                    STR(""),
	                    JSON_OF(a, member_str("name", alarm->name), member_str("rule", alarm->rule),
	                            member_word("severity", alarm_severity_names[alarm->severity]),
	                            member_time("since", alarm->since_ms), member_str("evidence", alarm->evidence),
	                            member_int("value", alarm->value), member_word("runbook", rule->runbook)),
	                    e);
}

static enum rc settle(struct session *s, const struct candidate *c, const struct alarm_rule *rule, enum change *ret,
                      struct err *e)
{
	struct alarm old, next;
	bool         is_there;
	enum rc      rc = session_find(s, &alarm_type, c->name, &old, &is_there, e);

	if (rc)
		return rc;
	*ret = decide(is_there ? &old : NULL, c, rule, kernel_span_ms(kernel_of(s), rule->hold_ms), session_now(s).ms,
	              &next);
	if (*ret == CHANGE_NONE)
		return RC_OK;
	if (*ret == CHANGE_CLEARED || *ret == CHANGE_FORGOTTEN)
		session_delete(s, &alarm_type, c->name);
	else
		session_put(s, &alarm_type, &next);
	return change_events[*ret] ? tell(s, &next, rule, *ret, e) : RC_OK;
}

/* Some candidates of one rule, in one transaction. */
struct batch {
	const struct alarm_rule *rule;
	const struct candidate  *items[SETTLE_MAX];
	size_t                   count;

	int64_t raised, cleared; /* the answer */
};

static enum rc settle_batch(struct session *s, void *arg, struct err *e)
{
	struct batch *b = arg;

	b->raised = b->cleared = 0;
	for (size_t i = 0; i < b->count; i++) {
		enum change change = CHANGE_NONE;
		enum rc     rc = settle(s, b->items[i], b->rule, &change, e);

		if (rc)
			return rc;
		b->raised += change == CHANGE_RAISED;
		b->cleared += change == CHANGE_CLEARED;
	}
	return RC_OK;
}

/* --- a check --- */

static enum rc run_batch(struct alarm_check *c, struct batch *b, struct err *e)
{
	enum rc rc = b->count ? store_run(kernel_options(c->kernel)->store, settle_batch, b, NULL, e) : RC_OK;

	if (b->count && !rc) {
		c->raised += b->raised;
		c->cleared += b->cleared;
	}
	b->count = 0;
	return rc;
}

static enum rc settle_all(struct alarm_check *c, const struct findings *f, struct err *e)
{
	struct batch b = { .rule = f->rule };
	int64_t      hold_ms = kernel_span_ms(c->kernel, f->rule->hold_ms);
	struct alarm next;
	enum rc      rc = RC_OK;

	for (size_t i = 0; i < f->count && !rc; i++) {
		if (decide(f->items[i].stored, &f->items[i], f->rule, hold_ms, f->now_ms, &next) == CHANGE_NONE)
			continue;
		b.items[b.count++] = &f->items[i];
		if (b.count == SETTLE_MAX)
			rc = run_batch(c, &b, e);
	}
	return rc ? rc : run_batch(c, &b, e);
}

enum rc alarm_check(struct alarm_check *c, struct err *e)
{
	enum rc first = RC_OK;

	c->raised = c->cleared = c->failed = 0;
	for (size_t i = 0; i < c->rule_count; i++) {
		CLEANUP(arena_fini) struct arena a = { 0 };
		struct findings                  f = { .rule = &c->rules[i], .arg = c->arg };
		struct err                       why = { 0 };
		enum rc                          rc = store_read(kernel_options(c->kernel)->store, look, &f, &a, &why);

		if (!rc)
			rc = settle_all(c, &f, &why);
		c->failed += rc != RC_OK;
		if (rc && !first)
			first = err_set(e, rc, "alarm rule %s: %s", c->rules[i].name, why.msg);
	}
	return first;
}

enum rc alarm_list(struct session *s, void *arg, struct err *e)
{
	struct query q = { .type = &alarm_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX };

	return session_query(s, &q, arg, e);
}

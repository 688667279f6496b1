/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - the records by which processes know of each other, and the facts that only one of them can see.
 *
 * A node that ends in order removes its record; one that dies leaves it behind, and its last beat says since when it is
 * missing. Nobody else writes a node's record, except to remove it after NODE_FORGET_MS.
 *
 * A fact is stated as often as its process likes; it is told only when its value is another than before, in the same
 * commit. A fact that was never stated before is told too. Not here: what the facts and the beats mean (alarm_rules.c).
 */
#include "kernel/alarm/node.h"

#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

enum { FORGET_AT_ONCE_MAX = 50 };

enum rc node_list(struct session *s, void *arg, struct err *e)
{
	struct query q = { .type = &node_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX };

	return session_query(s, &q, arg, e);
}

static enum rc forget_silent(struct session *s, struct err *e)
{
	int64_t     before_ms = session_now(s).ms - kernel_span_ms(kernel_of(s), NODE_FORGET_MS);
	struct page page;
	int         forgotten = 0;
	enum rc     rc = node_list(s, &page, e);

	for (size_t i = 0; !rc && i < page.count && forgotten < FORGET_AT_ONCE_MAX; i++) {
		const struct node *node = page_record(&page, &node_type, i);

		if (node->beat_ms >= before_ms)
			continue;
		session_delete(s, &node_type, node->id);
		forgotten++;
	}
	return rc;
}

enum rc node_beat(struct session *s, void *arg, struct err *e)
{
	const struct node *beat = arg;
	struct node        node = *beat, old;
	bool               is_there;
	enum rc            rc = session_find(s, &node_type, beat->id, &old, &is_there, e);

	if (rc)
		return rc;
	node.beat_ms = session_now(s).ms;
	session_put(s, &node_type, &node);
	return forget_silent(s, e);
}

enum rc node_leave(struct session *s, void *arg, struct err *e)
{
	const struct node *leaving = arg;

	return session_drop(s, &node_type, leaving->id, NULL, e);
}

enum rc fact_state(struct session *s, void *arg, struct err *e)
{
	const struct fact *stated = arg;
	struct fact        fact = *stated, old;
	struct arena      *a = session_arena(s);
	bool               is_there;
	enum rc            rc = session_find(s, &fact_type, stated->name, &old, &is_there, e);

	if (rc)
		return rc;
	is_there = is_there && old.value == stated->value;
	fact.at_ms = session_now(s).ms;
	fact.since_ms = is_there ? old.since_ms : fact.at_ms;
	session_put(s, &fact_type, &fact);
	if (is_there)
		return RC_OK;
	return session_tell(s, "FactChanged", str_format(a, "fact/%.*s", STR_ARG(fact.name)), STR("facts"), STR(""),
	                    JSON_OF(a, member_str("name", fact.name), member_int("value", fact.value),
	                            member_str("text", fact.text)),
	                    e);
}

enum rc fact_get(struct session *s, void *arg, struct err *e)
{
	struct fact *fact = arg;

	return session_get(s, &fact_type, fact->name, fact, e);
}

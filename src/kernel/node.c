/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.c - the records by which processes know of each other, and the facts that only one of them can see.
 *
 * A node that ends in order removes its record; one that dies leaves it behind, and its last beat says since when it is missing.
 * Nobody else writes a node's record, except to remove it after NODE_FORGET_MS.
 *
 * A fact is stated as often as its process likes; it is told only when its value is another than before, in the same commit. A
 * fact that was never stated before is told too. Not here: what the facts and the beats mean (alarm_rules.c).
 */
#include "kernel/node.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"

enum { FORGET_AT_ONCE_MAX = 50, FACT_DETAIL_MAX = 8192 };

static enum rc find_nodes(struct session *s, struct page *ret, struct err *e)
{
	struct query q = { .type = &node_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX };

	return session_query(s, &q, ret, e);
}

static enum rc forget_silent(struct session *s, struct err *e)
{
	int64_t     before_ms = session_now(s).ms - kernel_span_ms(kernel_of(s), NODE_FORGET_MS);
	struct page page;
	int         forgotten = 0;
	enum rc     rc = find_nodes(s, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count && forgotten < FORGET_AT_ONCE_MAX; i++) {
		const struct node *node = page_record(&page, &node_type, i);

		if (node->beat_ms >= before_ms)
			continue;
		session_delete(s, &node_type, node->id);
		forgotten++;
	}
	return RC_OK;
}

enum rc node_beat(struct session *s, void *arg, struct err *e)
{
	const struct node *beat = arg;
	struct node        node = *beat, old;
	enum rc            rc = session_get(s, &node_type, beat->id, &old, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "node %.*s cannot be read", STR_ARG(beat->id));
	node.beat_ms = session_now(s).ms;
	session_put(s, &node_type, &node);
	return forget_silent(s, e);
}

enum rc node_leave(struct session *s, void *arg, struct err *e)
{
	const struct node *leaving = arg;
	struct node        old;
	enum rc            rc = session_get(s, &node_type, leaving->id, &old, NULL);

	if (rc == RC_NOT_FOUND)
		return RC_OK;
	if (rc)
		return err_set(e, rc, "node %.*s cannot be read", STR_ARG(leaving->id));
	session_delete(s, &node_type, leaving->id);
	return RC_OK;
}

enum rc node_list(struct session *s, void *arg, struct err *e)
{
	struct node_list *list = arg;

	return find_nodes(s, &list->page, e);
}

static enum rc tell_fact(struct session *s, const struct fact *fact, struct err *e)
{
	struct arena   *a = session_arena(s);
	struct json_out o;
	struct buf      b;
	struct event    event = { .type = STR("FactChanged"),
		                  .subject = str_format(a, "fact/%.*s", STR_ARG(fact->name)),
		                  .actor = STR("facts") };

	buf_init(&b, FACT_DETAIL_MAX);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "name", fact->name);
	json_put_int(&o, "value", fact->value);
	json_put_str(&o, "text", fact->text);
	json_close_object(&o);
	event.detail = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return session_emit(s, &event, e);
}

enum rc fact_state(struct session *s, void *arg, struct err *e)
{
	const struct fact *stated = arg;
	struct fact        fact = *stated, old;
	int64_t            now_ms = session_now(s).ms;
	enum rc            rc = session_get(s, &fact_type, stated->name, &old, NULL);
	bool               is_changed;

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "fact %.*s cannot be read", STR_ARG(stated->name));
	is_changed = rc == RC_NOT_FOUND || old.value != stated->value;
	fact.since_ms = is_changed ? now_ms : old.since_ms;
	fact.at_ms = now_ms;
	session_put(s, &fact_type, &fact);
	return is_changed ? tell_fact(s, &fact, e) : RC_OK;
}

enum rc fact_get(struct session *s, void *arg, struct err *e)
{
	struct fact *fact = arg;

	return session_get(s, &fact_type, fact->name, fact, e);
}

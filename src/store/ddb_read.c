/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_read.c - what a session reads from DynamoDB.
 *
 * By key: strongly consistent, and so good for decisions. By index: secondary indexes lag behind, so what they say is a
 * candidate; the condition of the commit decides. A page is filled by as many requests as it takes, because DynamoDB may
 * answer with fewer items than asked for, or none, and still have more.
 *
 * A unique value is looked up by its marker item. On the first try the session may do without and take the value for free:
 * the commit puts the marker only if it is not there, and a failure runs the function again with a real look. So a claim
 * by somebody who has nothing, the common case, costs no read for it.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/log.h"
#include "store/ddb_ops.h"

enum { CANDIDATES_FRESH_MS = 2000, CANDIDATES_SURE_MS = 50 };

static struct ddb_session *of(struct session *s)
{
	return s->connection;
}

static void begin(struct buf *body, struct json_out *o, const char *table)
{
	buf_init(body, DDB_BODY_MAX);
	json_out_init(o, body);
	json_open_object(o);
	json_put_str(o, "TableName", str_from(table));
}

/* --- by key --- */

static enum rc get_item(struct session *s, struct buf *body, json_t **ret, struct err *e)
{
	json_t *reply = NULL;
	enum rc rc = ddb_call(of(s)->store, "GetItem", body, s->arena, &reply, e);

	buf_fini(body);
	if (rc)
		return rc;
	*ret = json_incref(json_object_get(reply, "Item"));
	json_decref(reply);
	return *ret ? RC_OK : RC_NOT_FOUND;
}

enum rc ddb_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *item = NULL;
	struct json_out             o;
	struct buf                  body;
	enum rc                     rc;

	begin(&body, &o, ddb_table(of(s)->store, type));
	json_put_bool(&o, "ConsistentRead", true);
	json_put_object(&o, "Key");
	ddb_put_key(&o, type, key);
	json_close_object(&o);
	json_close_object(&o);
	rc = get_item(s, &body, &item, e);
	return rc ? rc : ddb_read_item(type, item, s->arena, ret, e);
}

/* --- unique values --- */

struct ddb_marker *ddb_known_marker(struct session *s, const struct record_type *type, int index, struct value v)
{
	struct ddb_marker *m = of(s)->markers;

	while (m && !(m->type == type && m->index == index &&
	              value_cmp(type->fields[type->indexes[index].hash].kind, m->value, v) == 0))
		m = m->next;
	return m;
}

static enum rc read_marker(struct session *s, const struct record_type *type, int index, struct value v,
                           struct ddb_marker **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *item = NULL;
	struct ddb_marker          *m;
	struct json_out             o;
	struct buf                  body;
	struct str                  key = { 0 };
	enum rc                     rc;

	begin(&body, &o, of(s)->store->options.kernel_table);
	json_put_bool(&o, "ConsistentRead", true);
	json_put_object(&o, "Key");
	ddb_put_marker_key(&o, type, index, v);
	json_close_object(&o);
	json_close_object(&o);
	rc = get_item(s, &body, &item, e);
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!rc && !json_get_text(json_object_get(item, "record_key"), "S", &key))
		return err_set(e, RC_CORRUPT, "the marker of a unique value of %s has no record_key", type->name);
	m = arena_alloc(s->arena, sizeof(*m));
	*m = (struct ddb_marker){ of(s)->markers, type, index, v, str_dup(s->arena, key) };
	of(s)->markers = m;
	*ret = m;
	return RC_OK;
}

enum rc ddb_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                        struct stored *ret, struct err *e)
{
	const struct record_index *unique = &type->indexes[index];
	struct ddb_marker         *m = ddb_known_marker(s, type, index, v);
	enum rc                    rc;

	if (!m && of(s)->may_assume) {
		of(s)->has_assumed = true;
		return RC_NOT_FOUND;
	}
	if (!m && (rc = read_marker(s, type, index, v, &m, e)))
		return rc;
	if (!m->key.n)
		return RC_NOT_FOUND;
	rc = ddb_get(s, type, m->key, ret, e);
	if (rc)
		return rc;
	if (!record_is_in_index(type, unique, ret->record) ||
	    value_cmp(type->fields[unique->hash].kind, v, record_value(type, unique->hash, ret->record)) != 0)
		return RC_NOT_FOUND; /* another program ended it and left the marker */
	return RC_OK;
}

/* --- by index --- */

/* A query as a request: through which secondary index, with which filter. */
struct plan {
	const struct query        *q;
	const struct record_index *index;   /* what the query asks for; NULL: everything */
	const struct record_index *through; /* the one with a secondary index; NULL: the table itself */
	bool                       is_scan;
	bool                       has_prefix_filter;
};

static struct plan make_plan(const struct query *q)
{
	struct plan p = { .q = q };

	if (q->index == QUERY_ALL) {
		p.is_scan = q->type->key_prefix != NULL;
		return p;
	}
	p.index = p.through = &q->type->indexes[q->index];
	for (int i = 0; !p.through->gsi && i < q->type->index_count; i++)
		if (q->type->indexes[i].gsi && q->type->indexes[i].hash == p.index->hash)
			p.through = &q->type->indexes[i];
	assert(p.through->gsi);
	p.has_prefix_filter = q->sort_prefix.n > 0;
	return p;
}

static void put_filter(const struct plan *p, struct json_out *o)
{
	bool is_shared = p->q->type->key_prefix != NULL; /* a table in which others keep other things */

	if (is_shared && p->has_prefix_filter)
		json_put_str(o, "FilterExpression",
		             STR("SK = :meta AND begins_with(PK, :prefix) AND begins_with(#named, :named)"));
	else if (is_shared)
		json_put_str(o, "FilterExpression", STR("SK = :meta AND begins_with(PK, :prefix)"));
	else if (p->has_prefix_filter)
		json_put_str(o, "FilterExpression", STR("begins_with(#named, :named)"));
}

static void put_names(const struct plan *p, struct json_out *o)
{
	const struct query *q = p->q;

	if (!p->through)
		return;
	json_put_object(o, "ExpressionAttributeNames");
	json_put_str(o, "#hash", str_from(q->type->fields[p->through->hash].name));
	if (q->has_sort_max)
		json_put_str(o, "#sort", str_from(q->type->fields[p->through->sort].name));
	if (p->has_prefix_filter)
		json_put_str(o, "#named", str_from(q->type->fields[p->index->sort].name));
	json_close_object(o);
}

static void put_values(const struct plan *p, struct json_out *o)
{
	const struct query *q = p->q;

	json_put_object(o, "ExpressionAttributeValues");
	if (q->type->key_prefix) {
		ddb_put_text(o, ":meta", STR("META"));
		ddb_put_text(o, ":prefix", str_from(q->type->key_prefix));
	}
	if (p->through)
		ddb_put_value(o, ":hash", &q->type->fields[p->through->hash], q->hash);
	else if (!p->is_scan)
		ddb_put_text(o, ":type", str_from(q->type->name));
	if (q->has_sort_max)
		ddb_put_number(o, ":max", q->sort_max);
	if (p->has_prefix_filter)
		ddb_put_text(o, ":named", q->sort_prefix);
	json_close_object(o);
}

static void put_conditions(struct session *s, const struct plan *p, struct json_out *o)
{
	if (p->through) {
		json_put_str(o, "IndexName", str_from(of(s)->store->options.gsi[p->through->gsi - 1]));
		json_put_str(o, "KeyConditionExpression",
		             p->q->has_sort_max ? STR("#hash = :hash AND #sort <= :max") : STR("#hash = :hash"));
	} else if (!p->is_scan) {
		json_put_str(o, "KeyConditionExpression", STR("PK = :type"));
	}
	put_filter(p, o);
	put_names(p, o);
	put_values(p, o);
}

/* Where to go on: behind the record with this key and sort value. */
static void put_start(const struct plan *p, struct json_out *o, struct str key, int64_t sort)
{
	json_put_object(o, "ExclusiveStartKey");
	ddb_put_key(o, p->q->type, key);
	if (p->through) {
		ddb_put_value(o, p->q->type->fields[p->through->hash].name, &p->q->type->fields[p->through->hash],
		              p->q->hash);
		ddb_put_number(o, p->q->type->fields[p->through->sort].name, sort);
	}
	json_close_object(o);
}

/* A cursor is "sort value:key", or the key alone. */
static enum rc read_cursor(const struct plan *p, struct str cursor, struct str *ret_key, int64_t *ret_sort,
                           struct err *e)
{
	*ret_sort = 0;
	*ret_key = cursor;
	if (!p->through)
		return RC_OK;
	if (!str_to_int(str_cut(ret_key, ':'), INT64_MIN, INT64_MAX, ret_sort) || !ret_key->n)
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	return RC_OK;
}

static struct str make_cursor(struct session *s, const struct plan *p, const void *record)
{
	struct str key = record_key(p->q->type, record);

	if (!p->through)
		return str_dup(s->arena, key);
	return str_format(s->arena, "%lld:%.*s", (long long)record_value(p->q->type, p->through->sort, record).number,
	                  STR_ARG(key));
}

/* `last` is the LastEvaluatedKey of the request before, word for word: in a table that others use too it can be a key that no
 * cursor of ours can name. */
static enum rc read_some(struct session *s, const struct plan *p, struct str cursor, const json_t *last, size_t limit,
                         bool is_count, json_t **ret, struct err *e)
{
	struct json_out o;
	struct buf      body;
	struct str      key;
	int64_t         sort;
	enum rc         rc = RC_OK;

	begin(&body, &o, ddb_table(of(s)->store, p->q->type));
	put_conditions(s, p, &o);
	if (is_count)
		json_put_str(&o, "Select", STR("COUNT"));
	else
		json_put_int(&o, "Limit", (int64_t)limit);
	if (last) {
		char *text = json_dumps(last, JSON_COMPACT);

		json_put_raw(&o, "ExclusiveStartKey", str_from(text));
		free(text);
	} else if (cursor.n) {
		rc = read_cursor(p, cursor, &key, &sort, e);
		if (!rc)
			put_start(p, &o, key, sort);
	}
	json_close_object(&o);
	if (!rc)
		rc = ddb_call(of(s)->store, p->is_scan ? "Scan" : "Query", &body, s->arena, ret, e);
	buf_fini(&body);
	return rc;
}

/* Takes over the place behind a reply; NULL when it was the last. */
static void go_on(json_t **last, const json_t *reply)
{
	json_t *next = json_object_get(reply, "LastEvaluatedKey");

	json_decref(*last);
	*last = next && !json_is_null(next) ? json_incref(next) : NULL;
}

/* One bad item must not hide the others: it is left out and told. */
static void take_items(struct session *s, const struct plan *p, const json_t *reply, struct stored_page *ret)
{
	const json_t *items = json_object_get(reply, "Items");
	json_t       *item;
	size_t        i;

	json_array_foreach(items, i, item)
	{
		struct err    e = { 0 };
		struct stored stored;

		if (ret->count >= p->q->limit)
			return;
		if (!ddb_item_key(p->q->type, item).n)
			continue;
		if (ddb_read_item(p->q->type, item, s->arena, &stored, &e) == RC_OK)
			ret->items[ret->count++] = stored;
		else
			log_write(LOG_WARNING, "store", NULL, 0, "an item is left out: %s", e.msg);
	}
}

enum rc ddb_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *last = NULL;
	struct plan                 p = make_plan(q);

	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	do {
		CLEANUP(json_freep) json_t *reply = NULL;
		enum rc rc = read_some(s, &p, q->cursor, last, q->limit - ret->count, false, &reply, e);

		if (rc)
			return rc;
		take_items(s, &p, reply, ret);
		go_on(&last, reply);
	} while (last && ret->count < q->limit);
	if (ret->count == q->limit && last)
		ret->next = make_cursor(s, &p, ret->items[ret->count - 1].record);
	return RC_OK;
}

enum rc ddb_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                  struct err *e)
{
	struct query                q = { .type = type, .index = index, .hash = hash, .limit = 1 };
	struct plan                 p = make_plan(&q);
	CLEANUP(json_freep) json_t *last = NULL;

	*ret = 0;
	do {
		CLEANUP(json_freep) json_t *reply = NULL;
		int64_t                     count;
		enum rc                     rc = read_some(s, &p, STR(""), last, 0, true, &reply, e);

		if (rc)
			return rc;
		if (!json_get_number(reply, "Count", 0, &count))
			return err_set(e, RC_CORRUPT, "DynamoDB answered without a Count");
		*ret += count;
		go_on(&last, reply);
	} while (last);
	return RC_OK;
}

/* --- candidates --- */

/* Read ahead, from a random place on, so that nodes do not all go for the same few; then from the beginning. */
static enum rc read_candidates(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct query some = *q;
	char         uuid[ID_UUID_SIZE];
	enum rc      rc;

	id_uuid(uuid);
	some.limit = of(s)->store->options.candidates;
	some.cursor = str_format(s->arena, "0:%s", uuid);
	rc = ddb_query(s, &some, ret, e);
	if (rc || ret->count)
		return rc;
	some.cursor = STR("");
	return ddb_query(s, &some, ret, e);
}

static void keep_candidates(struct ddb_candidates *c, const struct query *q, const struct stored_page *page)
{
	arena_reset(&c->arena);
	c->type = q->type;
	c->index = q->index;
	c->hash = q->hash.number;
	c->count = c->next = 0;
	c->read_at = mono_now();
	for (size_t i = 0; i < page->count; i++) {
		size_t at = id_fast_random() % (i + 1); /* shuffled on the way in */

		c->items[i] = c->items[at];
		c->items[at].record = arena_alloc(&c->arena, q->type->size);
		c->items[at].handle = page->items[i].handle;
		record_copy(q->type, c->items[at].record, page->items[i].record, &c->arena);
		c->count++;
	}
}

static bool are_usable(const struct ddb_candidates *c, const struct query *q)
{
	return c->type == q->type && c->index == q->index && c->hash == q->hash.number && c->next < c->count &&
	       mono_now().ms - c->read_at.ms < CANDIDATES_FRESH_MS;
}

void ddb_doubt_candidates(struct ddb_store *d)
{
	struct ddb_candidates *c = &d->candidates;

	pthread_mutex_lock(&c->lock);
	if (mono_now().ms - c->read_at.ms > CANDIDATES_SURE_MS)
		c->type = NULL;
	pthread_mutex_unlock(&c->lock);
}

enum rc ddb_claim(struct session *s, const struct query *q, struct stored *ret, struct err *e)
{
	struct ddb_candidates *c = &of(s)->store->candidates;
	struct stored_page     page = { 0 };
	const struct stored   *chosen;
	enum rc                rc = RC_OK;

	if (q->sort_prefix.n || q->has_sort_max)
		return session_claim_first(s, q, ret, e);
	pthread_mutex_lock(&c->lock); /* while one reads, the others wait for what it finds */
	if (!are_usable(c, q)) {
		rc = read_candidates(s, q, &page, e);
		if (!rc)
			keep_candidates(c, q, &page);
	}
	if (!rc && c->next == c->count)
		rc = RC_EXHAUSTED;
	if (!rc) {
		chosen = &c->items[c->next++];
		ret->handle = chosen->handle;
		ret->record = arena_alloc(s->arena, q->type->size);
		record_copy(q->type, ret->record, chosen->record, s->arena);
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

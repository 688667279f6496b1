/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_read.c - single records: by key, by unique value, any free one.
 *
 * By key: strongly consistent, and so good for decisions. Lists are in ddb_query.c.
 *
 * A unique value is looked up by its marker item. On the first try the session may do without and take the value for free:
 * the commit puts the marker only if it is not there, and a failure runs the function again with a real look. So a claim
 * by somebody who has nothing, the common case, costs no read for it.
 */
#include "base/id.h"
#include "store/ddb_ops.h"

enum { CANDIDATES_FRESH_MS = 2000, CANDIDATES_SURE_MS = 50 };

static struct ddb_session *of(struct session *s)
{
	return s->connection;
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

	ddb_begin(&body, &o, ddb_table(of(s)->store, type));
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

	ddb_begin(&body, &o, of(s)->store->options.kernel_table);
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

/* All of one state, in any order: only those are kept ahead. */
static bool may_read_ahead(const struct query *q)
{
	return q->type->key_prefix && q->index >= 0 &&
	       q->type->fields[q->type->indexes[q->index].hash].kind != FIELD_TEXT && !q->sort_prefix.n &&
	       !q->has_sort_max && !q->sort_from.n && !q->sort_to.n && !q->is_descending;
}

enum rc ddb_claim(struct session *s, const struct query *q, struct stored *ret, struct err *e)
{
	struct ddb_candidates *c = &of(s)->store->candidates;
	struct stored_page     page = { 0 };
	const struct stored   *chosen;
	enum rc                rc = RC_OK;

	if (!may_read_ahead(q))
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

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_read.c - single records: by key, by unique value, any free one.
 *
 * By key: strongly consistent, and so good for decisions. Lists are in ddb_query.c.
 *
 * A unique value is looked up by its marker item. On the first try the session may do without and take the value for
 * free: the commit puts the marker only if it is not there, and a failure runs the function again with a real look. So
 * a claim by somebody who has nothing, the common case, costs no read for it.
 */
#include "base/id.h"
#include "base/lock.h"
#include "store/dynamodb/ddb_private.h"

enum { NO_INDEX = -1, CANDIDATES_FRESH_MS = 2000, CANDIDATES_SURE_MS = 50 };

/* --- by key --- */

/* A request for the item of a record, or, with an index, for the marker of a unique value. */
static enum rc get_item(struct session *s, const struct record_type *type, unsigned slice, struct str key, int index,
                        struct value v, json_t **ret, struct err *e)
{
	const struct ddb_store      *d = ddb_session(s)->store;
	CLEANUP(json_freep) json_t  *reply = NULL;
	CLEANUP(buf_fini) struct buf body;
	struct json_out              o;
	enum rc                      rc;

	ddb_begin(&body, &o, index == NO_INDEX ? ddb_table(d, type) : d->options.kernel_table);
	JSON_PUT(&o, member_bool("ConsistentRead", true), member_object("Key"));
	if (index == NO_INDEX)
		ddb_put_key(&o, type, slice, key);
	else
		ddb_put_marker_key(&o, type, index, v);
	JSON_PUT(&o, member_end(), member_end());
	if ((rc = ddb_call(ddb_session(s), "GetItem", &body, s->arena, &reply, e)))
		return rc;
	*ret = json_incref(json_object_get(reply, "Item"));
	return *ret ? RC_OK : RC_NOT_FOUND;
}

/* Where its key belongs now, or belonged when there were fewer slices. */
static enum rc find_item(struct session *s, const struct record_type *type, struct str key, unsigned slices,
                         json_t **ret, struct err *e)
{
	unsigned slice = ddb_slice_of(key, slices);
	enum rc  rc = get_item(s, type, slice, key, NO_INDEX, value_int(0), ret, e);

	while (rc == RC_NOT_FOUND && (slices /= 2)) {
		if (ddb_slice_of(key, slices) == slice)
			continue;
		slice = ddb_slice_of(key, slices);
		rc = get_item(s, type, slice, key, NO_INDEX, value_int(0), ret, e);
	}
	return rc;
}

enum rc ddb_get(struct session *s, const struct record_type *type, struct str key, struct stored *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *item = NULL;
	unsigned                    slices;
	bool                        is_news = false;
	enum rc                     rc = ddb_slices(ddb_session(s), type, &slices, e);

	if (!rc)
		rc = find_item(s, type, key, slices, &item, e);
	if (rc == RC_NOT_FOUND && type->is_sliced)
		if ((rc = ddb_learn_slices(ddb_session(s), &is_news, e)) == RC_OK)
			rc = is_news ? ddb_get(s, type, key, ret, e) : RC_NOT_FOUND;
	if (rc || is_news)
		return rc;
	return ddb_read_item(type, item, s->arena, ret, e);
}

/* --- unique values --- */

struct ddb_marker *ddb_known_marker(struct session *s, const struct record_type *type, int index, struct value v)
{
	struct ddb_marker *m = ddb_session(s)->markers;

	while (m && !(m->type == type && m->index == index &&
	              value_cmp(type->fields[type->indexes[index].hash].kind, m->value, v) == 0))
		m = m->next;
	return m;
}

enum rc ddb_read_marker(struct session *s, const struct record_type *type, int index, struct value v,
                        struct ddb_marker **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *item = NULL;
	struct ddb_marker          *m;
	struct str                  key = { 0 };
	enum rc                     rc = get_item(s, type, 0, key, index, v, &item, e);

	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!rc && !json_get_text(json_object_get(item, "record_key"), "S", &key))
		return err_set(e, RC_CORRUPT, "the marker of a unique value of %s has no record_key", type->name);
	m = arena_alloc(s->arena, sizeof(*m));
	*m = (struct ddb_marker){ ddb_session(s)->markers, type, index, v, str_dup(s->arena, key) };
	ddb_session(s)->markers = m;
	*ret = m;
	return RC_OK;
}

enum rc ddb_find_unique(struct session *s, const struct record_type *type, int index, struct value v,
                        struct stored *ret, struct err *e)
{
	const struct record_index *unique = &type->indexes[index];
	struct ddb_marker         *m = ddb_known_marker(s, type, index, v);
	enum rc                    rc;

	if (!m && ddb_session(s)->may_assume) {
		ddb_session(s)->has_assumed = true;
		return RC_NOT_FOUND;
	}
	if (!m && (rc = ddb_read_marker(s, type, index, v, &m, e)))
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

/* Read ahead from a random place, so that nodes do not all go for the same few; then from the beginning. */
static enum rc read_candidates(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct query some = *q;
	char         uuid[ID_UUID_SIZE];
	enum rc      rc;

	id_uuid(uuid);
	some.limit = ddb_session(s)->store->options.candidates;
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
		c->items[at] = ddb_copy(q->type, &page->items[i], &c->arena);
		c->count++;
	}
}

void ddb_doubt_candidates(struct ddb_store *d)
{
	struct ddb_candidates *c = &d->candidates;

	LOCKED(&c->lock);
	if (mono_now().ms - c->read_at.ms > CANDIDATES_SURE_MS)
		c->type = NULL;
}

enum rc ddb_claim(struct session *s, const struct query *q, struct stored *ret, struct err *e)
{
	struct ddb_candidates *c = &ddb_session(s)->store->candidates;
	struct stored_page     page = { 0 };
	enum rc                rc = RC_OK;
	bool                   may_read_ahead = q->type->key_prefix && q->index >= 0 &&
	                      q->type->fields[q->type->indexes[q->index].hash].kind != FIELD_TEXT &&
	                      !q->sort_prefix.n && !q->has_sort_max && !q->sort_from.n && !q->sort_to.n &&
	                      !q->is_descending;

	if (!may_read_ahead) /* only all of one state, in any order, are kept ahead */
		return session_claim_first(s, q, ret, e);
	pthread_mutex_lock(&c->lock); /* while one reads, the others wait for what it finds */
	if (c->type != q->type || c->index != q->index || c->hash != q->hash.number || c->next >= c->count ||
	    mono_now().ms - c->read_at.ms >= CANDIDATES_FRESH_MS) {
		rc = read_candidates(s, q, &page, e);
		if (!rc)
			keep_candidates(c, q, &page);
	}
	if (!rc && c->next == c->count)
		rc = RC_EXHAUSTED;
	if (!rc)
		*ret = ddb_copy(q->type, &c->items[c->next++], s->arena);
	pthread_mutex_unlock(&c->lock);
	return rc;
}

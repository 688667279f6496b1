/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_query.c - lists of records.
 *
 * Through a secondary index: it lags behind, so what it says is a candidate; the condition of the commit decides. All
 * records of one of our own types: from the table itself, strongly consistent, in the order of keys. All records of the
 * documents' table: a scan.
 *
 * What a query asks for becomes one condition on the sort key, as narrow as one condition can be; what is found besides
 * (a value that is equal to sort_to) is left out here. A page is filled by as many requests as it takes, because
 * DynamoDB may answer with fewer items than asked for, or none, and still have more. A sliced type is read from all its
 * slices at once, and merged in the order of keys; so its cursor is a key, wherever that is kept.
 */
#include <assert.h>

#include "base/log.h"
#include "store/dynamodb/ddb_private.h"

/* The last character there is: prefix and this are behind all texts that begin with the prefix. */
#define LAST_CHARACTER "\xf4\x8f\xbf\xbf"

enum limits { NO_LIMITS, FROM, BEFORE, UP_TO, BETWEEN, BEGINS_WITH };

static const char *const conditions[] = {
	[NO_LIMITS] = "#hash = :hash",
	[FROM] = "#hash = :hash AND #sort >= :from",
	[BEFORE] = "#hash = :hash AND #sort < :to",
	[UP_TO] = "#hash = :hash AND #sort <= :to",
	[BETWEEN] = "#hash = :hash AND #sort BETWEEN :from AND :to",
	[BEGINS_WITH] = "#hash = :hash AND begins_with(#sort, :from)",
};

/* A query as a request. */
struct plan {
	const struct query         *q;
	const struct record_index  *index;       /* what the query asks for; NULL: everything */
	const struct record_index  *through;     /* the one with a secondary index; NULL: the table itself */
	const struct ddb_own_index *own;         /* and that is one of our own table's */
	const char                 *name;        /* of the secondary index */
	const char                 *hash, *sort; /* attributes that are the keys of what is read */
	int                         order;       /* field that orders the answers; NO_FIELD: the key alone */
	bool                        is_number;   /* what that is */
	bool                        is_scan;
	bool                        has_prefix_filter;
	enum limits                 limits;
	struct str                  from, to; /* as texts of the sort key; UP_TO in the documents' table: q->sort_max */
	unsigned                    slices;
};

/* --- planning --- */

static void limit_by_text(struct session *s, struct plan *p)
{
	const struct query *q = p->q;
	struct str          end = STR("");

	p->from = str_cmp(q->sort_from, q->sort_prefix) > 0 ? q->sort_from : q->sort_prefix;
	p->to = q->sort_to;
	if (q->sort_prefix.n && !q->sort_from.n && !q->sort_to.n) {
		p->limits = BEGINS_WITH;
		return;
	}
	if (q->sort_prefix.n)
		end = str_format(s->arena, "%.*s" LAST_CHARACTER, STR_ARG(q->sort_prefix));
	if (end.n && (!p->to.n || str_cmp(end, p->to) < 0))
		p->to = end;
	if (p->from.n)
		p->limits = p->to.n ? BETWEEN : FROM;
	else if (p->to.n)
		p->limits = BEFORE;
}

static void choose_index(struct session *s, struct plan *p)
{
	const struct record_type *type = p->q->type;

	p->index = p->through = &type->indexes[p->q->index];
	for (int i = 0; !p->through->gsi && i < type->index_count; i++)
		if (type->indexes[i].gsi && type->indexes[i].hash == p->index->hash)
			p->through = &type->indexes[i];
	assert(p->through->gsi && (!type->is_sliced || ddb_sort_field(type, p->through) == type->key));
	p->own = ddb_own_index(type, p->through);
	p->name = p->own ? p->own->name : ddb_session(s)->store->options.gsi[p->through->gsi - 1];
	p->hash = p->own ? p->own->hash : type->fields[p->through->hash].name;
	p->sort = p->own ? p->own->sort : type->fields[p->through->sort].name;
}

static struct plan make_plan(struct session *s, const struct query *q)
{
	struct plan p = { .q = q, .hash = "PK", .sort = "SK", .is_scan = q->index < 0 && q->type->key_prefix };
	char        number[DDB_NUMBER_SIZE];

	assert(!p.is_scan || (q->index == QUERY_ALL && !q->is_descending)); /* a scan has no order */
	if (q->index >= 0)
		choose_index(s, &p);
	p.order = p.through ? ddb_sort_field(q->type, p.through) : q->type->key;
	p.is_number = q->type->fields[p.order].kind != FIELD_TEXT;
	if (p.order == q->type->key)
		p.order = NO_FIELD;
	if (p.index != p.through)
		p.has_prefix_filter = q->sort_prefix.n > 0;
	else if (q->has_sort_max)
		p.limits = UP_TO;
	else if (q->index != QUERY_ALL)
		limit_by_text(s, &p);
	if (p.limits == UP_TO)
		p.to = str_dup(s->arena, ddb_sort_text(FIELD_INT, value_int(q->sort_max), number));
	return p;
}

/* --- the request --- */

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
	if (p->is_scan)
		return;
	JSON_PUT(o, member_object("ExpressionAttributeNames"), member_word("#hash", p->hash));
	if (p->limits)
		json_put_str(o, "#sort", str_from(p->sort));
	if (p->has_prefix_filter)
		json_put_str(o, "#named", str_from(p->q->type->fields[p->index->sort].name));
	json_close_object(o);
}

/* The hash value of what is read, under a name. */
static void put_hash(const struct plan *p, unsigned slice, struct json_out *o, const char *name)
{
	const struct record_type *type = p->q->type;

	if (!p->through)
		ddb_put_slice(o, name, type, slice);
	else if (p->own)
		ddb_put_own_hash(o, name, type, slice, p->through, p->q->hash);
	else
		ddb_put_value(o, name, &type->fields[p->through->hash], p->q->hash);
}

static void put_values(const struct plan *p, unsigned slice, struct json_out *o)
{
	json_put_object(o, "ExpressionAttributeValues");
	if (p->q->type->key_prefix) {
		ddb_put_text(o, ":meta", STR("META"));
		ddb_put_text(o, ":prefix", str_from(p->q->type->key_prefix));
	}
	if (!p->is_scan)
		put_hash(p, slice, o, ":hash");
	if (p->limits == FROM || p->limits == BETWEEN || p->limits == BEGINS_WITH)
		ddb_put_text(o, ":from", p->from);
	if (p->limits == UP_TO && !p->own)
		ddb_put_number(o, ":to", p->q->sort_max);
	else if (p->limits == BEFORE || p->limits == UP_TO || p->limits == BETWEEN)
		ddb_put_text(o, ":to", p->to);
	if (p->has_prefix_filter)
		ddb_put_text(o, ":named", p->q->sort_prefix);
	json_close_object(o);
}

static void put_conditions(const struct plan *p, unsigned slice, struct json_out *o)
{
	if (p->name)
		json_put_str(o, "IndexName", str_from(p->name));
	else if (!p->is_scan)
		json_put_bool(o, "ConsistentRead", true);
	if (!p->is_scan)
		json_put_str(o, "KeyConditionExpression", str_from(conditions[p->limits]));
	if (p->q->is_descending)
		json_put_bool(o, "ScanIndexForward", false);
	put_filter(p, o);
	put_names(p, o);
	put_values(p, slice, o);
}

/* --- cursors --- */

/* Where to go on: behind the record with this key and sort value. */
struct place {
	struct str   key;
	struct value sort;
};

/* DynamoDB refuses to go on from a place outside the limits. */
static bool is_within_limits(const struct plan *p, const struct place *at)
{
	struct str sort = p->limits == UP_TO ? STR("") : ddb_sort_text(FIELD_TEXT, at->sort, NULL);

	switch (p->limits) {
	case NO_LIMITS: return true;
	case FROM: return str_cmp(sort, p->from) >= 0;
	case BEFORE: return str_cmp(sort, p->to) < 0;
	case UP_TO: return at->sort.number <= p->q->sort_max;
	case BETWEEN: return str_cmp(sort, p->from) >= 0 && str_cmp(sort, p->to) <= 0;
	case BEGINS_WITH: return str_starts_with(sort, p->from);
	}
	return false;
}

/* A cursor is the key; or "sort value:key" when that is a number; or "length:sort value and key" when it is a text. */
static bool split_cursor(const struct plan *p, struct place *ret)
{
	struct str rest = p->q->cursor;
	int64_t    length;

	if (p->order == NO_FIELD) {
		ret->key = ret->sort.text = rest;
		return true;
	}
	if (p->is_number) {
		bool is_number = str_to_int(str_cut(&rest, ':'), INT64_MIN, INT64_MAX, &ret->sort.number);

		ret->key = rest;
		return is_number;
	}
	if (!str_to_int(str_cut(&rest, ':'), 0, INT64_MAX, &length) || (size_t)length > rest.n)
		return false;
	ret->sort.text = str_of(rest.p, (size_t)length);
	ret->key = str_skip(rest, (size_t)length);
	return true;
}

static struct str make_cursor(struct session *s, const struct plan *p, const void *record)
{
	struct str   key = record_key(p->q->type, record);
	struct value sort;

	if (p->order == NO_FIELD)
		return str_dup(s->arena, key);
	sort = record_value(p->q->type, p->order, record);
	if (p->is_number)
		return str_format(s->arena, "%lld:%.*s", (long long)sort.number, STR_ARG(key));
	return str_format(s->arena, "%zu:%.*s%.*s", sort.text.n, STR_ARG(sort.text), STR_ARG(key));
}

static void put_start(const struct plan *p, unsigned slice, struct json_out *o, const struct place *at)
{
	char number[DDB_NUMBER_SIZE];

	json_put_object(o, "ExclusiveStartKey");
	ddb_put_key(o, p->q->type, slice, at->key);
	if (p->through)
		put_hash(p, slice, o, p->hash);
	if (p->own)
		ddb_put_text(o, p->sort, ddb_sort_text(p->is_number ? FIELD_INT : FIELD_TEXT, at->sort, number));
	else if (p->through)
		ddb_put_number(o, p->sort, at->sort.number);
	json_close_object(o);
}

/* --- reading --- */

/* `last` is the LastEvaluatedKey of the request before, word for word: in a table that others use too it can be a
 * key that no cursor of ours can name. */
static enum rc read_some(struct session *s, const struct plan *p, unsigned slice, const json_t *last, size_t limit,
                         bool is_count, json_t **ret, struct err *e)
{
	CLEANUP(buf_fini) struct buf body;
	struct json_out              o;
	struct place                 at = { 0 };

	ddb_begin(&body, &o, ddb_table(ddb_session(s)->store, p->q->type));
	put_conditions(p, slice, &o);
	if (is_count)
		json_put_str(&o, "Select", STR("COUNT"));
	else
		json_put_int(&o, "Limit", (int64_t)limit);
	if (last) {
		json_put_raw(&o, "ExclusiveStartKey", json_dump(session_arena(s), last));
	} else if (p->q->cursor.n) {
		if (!split_cursor(p, &at) || !at.key.n || at.key.n > p->q->type->fields[p->q->type->key].max ||
		    !is_within_limits(p, &at))
			return err_set(e, RC_INVALID, "the cursor does not belong to this list");
		put_start(p, slice, &o, &at);
	}
	json_close_object(&o);
	return ddb_call(ddb_session(s), p->is_scan ? "Scan" : "Query", &body, s->arena, ret, e);
}

/* One slice while it is read, item by item. What is not sliced has one. */
struct slice {
	unsigned number;
	json_t  *reply, *last; /* what was read, and the place behind it; NULL: none, the end */
	size_t   next;         /* item of the reply */
	bool     is_begun;
};

/* Takes the reply over, and where to go on behind it; NULL when it was the last. */
static void go_on(struct slice *from, json_t *reply)
{
	json_t *next = json_object_get(reply, "LastEvaluatedKey");

	json_decref(from->last);
	from->last = next && !json_is_null(next) ? json_incref(next) : NULL;
	json_decref(from->reply);
	from->reply = reply;
	from->next = 0;
	from->is_begun = true;
}

static const json_t *front_item(const struct slice *from)
{
	return json_array_get(json_object_get(from->reply, "Items"), from->next);
}

static bool has_more(const struct slice *from)
{
	return front_item(from) || from->last || !from->is_begun;
}

/* Read until there is an item at the front, or nothing is left. */
static enum rc fill(struct session *s, const struct plan *p, struct slice *from, size_t limit, struct err *e)
{
	while (!front_item(from) && has_more(from)) {
		json_t *reply = NULL;
		enum rc rc = read_some(s, p, from->number, from->last, limit, false, &reply, e);

		if (rc)
			return rc;
		go_on(from, reply);
	}
	return RC_OK;
}

/* The slice whose front item comes first; NULL: all are at their end. */
static struct slice *first_of(const struct plan *p, struct slice *slices)
{
	struct slice *best = NULL;
	struct str    best_key = STR("");

	for (struct slice *each = slices; each < slices + p->slices; each++) {
		struct str key = STR("");

		if (!front_item(each))
			continue;
		if (p->slices > 1)
			key = ddb_item_key(p->q->type, front_item(each));
		if (!best || (p->q->is_descending ? str_cmp(key, best_key) > 0 : str_cmp(key, best_key) < 0)) {
			best = each;
			best_key = key;
		}
	}
	return best;
}

/* A page in the making. */
struct taking {
	struct stored_page *page;
	size_t              looked, bytes;
	struct arena  arenas[2]; /* they take turns: of the last good record that was looked at, and of the next */
	int           turn;
	struct stored last;
};

/* One bad item must not hide the others: it is left out and logged. What is wanted is copied; the rest is freed with
 * the next item. */
static void take_item(struct session *s, const struct plan *p, const json_t *item, struct taking *t)
{
	struct err    e = { 0 };
	struct stored found;
	struct arena *a = &t->arenas[t->turn];

	if (!ddb_item_key(p->q->type, item).n)
		return;
	arena_reset(a);
	t->looked += p->q->filter != NULL;
	if (ddb_read_item(p->q->type, item, a, &found, &e)) {
		log_write(LOG_WARNING, "store", NULL, 0, "an item is left out: %s", e.msg);
		return;
	}
	t->last = found;
	t->turn = !t->turn;
	if (!query_matches(p->q, found.record))
		return;
	t->bytes += record_bytes(p->q->type, found.record);
	t->page->items[t->page->count++] = ddb_copy(p->q->type, &found, s->arena);
}

/* How much to ask of each slice: its share of what is missing and some more, since keys do not fall evenly. */
static size_t share(const struct plan *p, const struct taking *t)
{
	size_t room = p->q->filter ? query_looks(p->q) - t->looked : p->q->limit - t->page->count;

	return p->slices == 1 || room < 8 ? room : room / p->slices + room / 8 + 2;
}

/* Take items in the order of all slices together until the page is full. */
static enum rc merge(struct session *s, const struct plan *p, struct slice *slices, struct taking *t, struct err *e)
{
	while (!query_is_full(p->q, t->page, t->looked, t->bytes)) {
		struct slice *first;

		for (unsigned i = 0; i < p->slices; i++) {
			enum rc rc = fill(s, p, &slices[i], share(p, t), e);

			if (rc)
				return rc;
		}
		if (!(first = first_of(p, slices)))
			break;
		take_item(s, p, front_item(first), t);
		first->next++;
	}
	return RC_OK;
}

enum rc ddb_query(struct session *s, const struct query *q, struct stored_page *ret, struct err *e)
{
	struct plan   p = make_plan(s, q);
	struct slice  slices[DDB_SLICES_MAX];
	struct taking t = { .page = ret };
	bool          is_more = false;
	enum rc       rc = ddb_slices(ddb_session(s), q->type, &p.slices, e);

	if (rc || (p.limits == BETWEEN && str_cmp(p.from, p.to) >= 0))
		return rc;
	ret->items = arena_alloc(s->arena, q->limit * sizeof(*ret->items));
	for (unsigned i = 0; i < p.slices; i++)
		slices[i] = (struct slice){ .number = i };
	rc = merge(s, &p, slices, &t, e);
	for (unsigned i = 0; i < p.slices; i++) {
		is_more |= has_more(&slices[i]);
		json_decref(slices[i].reply);
		json_decref(slices[i].last);
	}
	if (!rc && t.last.record && is_more)
		ret->next = make_cursor(s, &p, t.last.record);
	arena_fini(&t.arenas[0]);
	arena_fini(&t.arenas[1]);
	return rc;
}

static enum rc count_slice(struct session *s, const struct plan *p, unsigned slice, int64_t *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *last = NULL;

	do {
		CLEANUP(json_freep) json_t *reply = NULL;
		int64_t                     count;
		enum rc                     rc = read_some(s, p, slice, last, 0, true, &reply, e);

		if (rc)
			return rc;
		if (!json_get_number(reply, "Count", 0, &count))
			return err_set(e, RC_CORRUPT, "DynamoDB answered without a Count");
		*ret += count;
		json_decref(last);
		last = json_incref(json_object_get(reply, "LastEvaluatedKey"));
	} while (last && !json_is_null(last));
	return RC_OK;
}

enum rc ddb_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                  struct err *e)
{
	struct query q = { .type = type, .index = index, .hash = hash, .limit = 1 };
	struct plan  p = make_plan(s, &q);
	enum rc      rc = ddb_slices(ddb_session(s), type, &p.slices, e);

	*ret = 0;
	for (unsigned i = 0; i < p.slices && !rc; i++)
		rc = count_slice(s, &p, i, ret, e);
	return rc;
}

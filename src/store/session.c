/* SPDX-License-Identifier: Apache-2.0 */
/*
 * session.c - one transaction's view of the store.
 *
 * The session remembers every record it has read or written as an entry: what was stored, and what it shall be. Reads
 * look there first, so a function sees its own writes; the back end is asked only for the rest. Nothing is written
 * before the function has returned RC_OK; then the changed entries are checked and applied together.
 *
 * Always true:
 *   1. A function that fails has written nothing.                                    [session_execute()]
 *   2. A unique index never holds two records with one value.                        [check_unique()]
 *   3. A record's version grows by one with every stored change.                     [session_put()]
 *   4. What follows a function (session_follow()) and cannot be written leaves no trace and does the function no harm.
 *      [apply_all()]
 *
 * Not here: how the records are kept (the back ends), when a function is run again (DynamoDB's conflict loop).
 */
#include "store/session.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "store/store_ops.h"

enum { CLAIM_PAGE = 16 };

struct wall session_now(const struct session *s)
{
	return s->now;
}

struct arena *session_arena(struct session *s)
{
	return s->arena;
}

struct str session_trace(const struct session *s)
{
	return s->trace;
}

void session_carry(struct session *s, struct str trace)
{
	s->trace = trace;
}

static struct session_entry *find_entry(struct session *s, const struct record_type *type, struct str key)
{
	struct session_entry *entry = s->first;

	while (entry && !(entry->type == type && str_eq(entry->key, key)))
		entry = entry->next;
	return entry;
}

static struct session_entry *add_entry(struct session *s, const struct record_type *type, struct str key,
                                       const struct stored *stored)
{
	struct session_entry *entry = arena_alloc(s->arena, sizeof(*entry));

	*entry = (struct session_entry){ .type = type, .key = key };
	if (stored) {
		entry->before = entry->after = stored->record;
		entry->handle = stored->handle;
	}
	if (s->last)
		s->last->next = entry;
	else
		s->first = entry;
	s->last = entry;
	return entry;
}

void session_reset(struct session *s)
{
	s->first = s->last = NULL;
	s->follows = s->last_follow = NULL;
	s->writes = s->news = s->follow_count = 0;
	s->has_failed = false;
}

bool session_has_store_failed(const struct session *s, enum rc rc)
{
	return s->has_failed && rc == RC_UNAVAILABLE;
}

/* The back end's answer to a read. */
static enum rc note_read(struct session *s, enum rc rc)
{
	s->has_failed |= rc == RC_UNAVAILABLE;
	return rc;
}

/* Longer than any stored one: whoever asks for it, with a text from outside, finds nothing without the back end. */
static bool is_too_long(const struct record_type *type, int field, struct str text)
{
	return type->fields[field].kind == FIELD_TEXT && text.n > type->fields[field].max;
}

static bool is_index_value_too_long(const struct record_type *type, int index, struct value v)
{
	return index >= 0 && is_too_long(type, type->indexes[index].hash, v.text);
}

/* The entry of a record, read from the store when the session does not know it yet, or only from an index, which may
 * be behind. A record that is not there has an entry without before. */
static enum rc load_entry(struct session *s, const struct record_type *type, struct str key, struct session_entry **ret,
                          struct err *e)
{
	struct session_entry *entry = find_entry(s, type, key);
	struct stored         stored;
	enum rc               rc;

	if (entry && (entry->is_decisive || entry->is_changed)) {
		*ret = entry;
		return RC_OK;
	}
	rc = is_too_long(type, type->key, key) ? RC_NOT_FOUND
	                                       : note_read(s, s->store->ops->get(s, type, key, &stored, e));
	if (rc && rc != RC_NOT_FOUND)
		return rc;
	if (!entry)
		entry = add_entry(s, type, rc ? str_dup(s->arena, key) : record_key(type, stored.record), NULL);
	entry->before = entry->after = rc ? NULL : stored.record;
	entry->handle = rc ? 0 : stored.handle;
	entry->is_decisive = true;
	*ret = entry;
	return RC_OK;
}

enum rc session_find(struct session *s, const struct record_type *type, struct str key, void *ret, bool *ret_is_there,
                     struct err *e)
{
	struct session_entry *entry;
	enum rc               rc = load_entry(s, type, key, &entry, e);

	*ret_is_there = !rc && entry->after;
	if (rc)
		return err_wrap(e, rc, "%s %.*s cannot be read", type->name, STR_ARG(key));
	if (*ret_is_there)
		memcpy(ret, entry->after, type->size);
	return RC_OK;
}

enum rc session_get(struct session *s, const struct record_type *type, struct str key, void *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, type, key, ret, &is_there, e);

	return rc || is_there ? rc : err_set(e, RC_NOT_FOUND, "there is no %s %.*s", type->name, STR_ARG(key));
}

enum rc session_find_or_new(struct session *s, const struct record_type *type, struct str key, void *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, type, key, ret, &is_there, e);

	if (rc || is_there)
		return rc;
	memset(ret, 0, type->size);
	*(struct str *)((char *)ret + type->fields[type->key].offset) = str_dup(session_arena(s), key);
	return RC_OK;
}

int query_sort_field(const struct query *q)
{
	switch (q->index) {
	case QUERY_ALL: return NO_FIELD;
	case QUERY_KEYS: return q->type->key;
	default: return q->type->indexes[q->index].sort;
	}
}

size_t query_looks(const struct query *q)
{
	return q->filter ? q->filter->looks : q->limit;
}

bool query_is_full(const struct query *q, const struct stored_page *page, size_t looked, size_t bytes)
{
	return page->count == q->limit || looked == query_looks(q) || (q->bytes_max && bytes >= q->bytes_max);
}

bool query_wants(const struct query *q, const void *record)
{
	return !q->filter || q->filter->wants(record, q->filter->arg);
}

bool query_matches(const struct query *q, const void *record)
{
	const struct record_index *index;
	int                        field = query_sort_field(q);
	struct value               sort;

	if (q->index >= 0) {
		index = &q->type->indexes[q->index];
		if (!record_is_in_index(q->type, index, record) ||
		    value_cmp(q->type->fields[index->hash].kind, record_value(q->type, index->hash, record), q->hash) !=
		            0)
			return false;
	}
	if (!query_wants(q, record))
		return false;
	if (field == NO_FIELD)
		return true;
	sort = record_value(q->type, field, record);
	return str_starts_with(sort.text, q->sort_prefix) && (!q->has_sort_max || sort.number <= q->sort_max) &&
	       (!q->sort_from.n || str_cmp(sort.text, q->sort_from) >= 0) &&
	       (!q->sort_to.n || str_cmp(sort.text, q->sort_to) < 0);
}

struct str query_make_cursor(struct arena *a, const struct query *q, int64_t seq, const void *record)
{
	int          field = query_sort_field(q);
	struct value v;

	if (field == NO_FIELD)
		return str_format(a, "%lld", (long long)seq);
	v = record_value(q->type, field, record);
	if (q->type->fields[field].kind == FIELD_TEXT)
		return str_format(a, "%lld:%.*s", (long long)seq, STR_ARG(v.text));
	return str_format(a, "%lld:%lld", (long long)seq, (long long)v.number);
}

enum rc query_read_cursor(const struct query *q, int64_t *ret_seq, struct value *ret_sort, struct err *e)
{
	int        field = query_sort_field(q);
	struct str rest = q->cursor;
	bool       is_ok = str_to_int(str_cut(&rest, ':'), 0, INT64_MAX, ret_seq);

	*ret_sort = value_text(rest);
	if (is_ok && field != NO_FIELD && q->type->fields[field].kind != FIELD_TEXT)
		is_ok = str_to_int(rest, INT64_MIN, INT64_MAX, &ret_sort->number);
	return is_ok ? RC_OK : err_set(e, RC_INVALID, "the cursor does not belong to this list");
}

/* How many stored records the session may have changed: so many more must be read to fill a page. */
static size_t changed_count(const struct session *s, const struct record_type *type)
{
	size_t count = 0;

	for (const struct session_entry *entry = s->first; entry; entry = entry->next)
		count += entry->is_changed && entry->type == type;
	return count;
}

static void page_add(struct page *page, const struct query *q, const void *record)
{
	memcpy(page->records + page->count++ * q->type->size, record, q->type->size);
}

/* Stored records as the session sees them: its own version of each, without those that no longer match. */
static void add_stored(struct session *s, const struct query *q, const struct stored_page *stored, struct page *page)
{
	for (size_t i = 0; i < stored->count; i++) {
		struct str            key = record_key(q->type, stored->items[i].record);
		struct session_entry *entry = s->is_read_only ? NULL : find_entry(s, q->type, key);

		if (!entry && !s->is_read_only)
			entry = add_entry(s, q->type, key, &stored->items[i]);
		if (!entry)
			page_add(page, q, stored->items[i].record);
		else if (entry->after && query_matches(q, entry->after))
			page_add(page, q, entry->after);
	}
}

static bool page_has(const struct page *page, const struct query *q, struct str key)
{
	for (size_t i = 0; i < page->count; i++)
		if (str_eq(record_key(q->type, page_record(page, q->type, i)), key))
			return true;
	return false;
}

/* Records that match only by the session's own writes come at the end of the last page. */
static void add_own(struct session *s, const struct query *q, struct page *page)
{
	for (struct session_entry *entry = s->first; entry; entry = entry->next)
		if (entry->is_changed && entry->type == q->type && entry->after && query_matches(q, entry->after) &&
		    !(entry->before && query_matches(q, entry->before)) && !page_has(page, q, entry->key))
			page_add(page, q, entry->after);
}

enum rc session_query(struct session *s, const struct query *q, struct page *ret, struct err *e)
{
	struct stored_page stored = { 0 };
	size_t             own = changed_count(s, q->type);
	enum rc            rc = RC_OK;

	assert(q->limit >= 1 && q->limit <= QUERY_LIMIT_MAX);
	assert(!q->filter || q->filter->looks >= 1);
	assert(q->index < 0 || !q->type->indexes[q->index].is_unique);
	assert(q->index >= 0 || !q->type->key_prefix || (q->index == QUERY_ALL && !q->is_descending));
	if (!is_index_value_too_long(q->type, q->index, q->hash))
		rc = note_read(s, s->store->ops->query(s, q, &stored, e));
	if (rc)
		return rc;
	*ret = (struct page){ .next = stored.next };
	ret->records = arena_alloc(s->arena, (stored.count + own) * q->type->size);
	add_stored(s, q, &stored, ret);
	if (own && stored.next.n == 0)
		add_own(s, q, ret);
	return RC_OK;
}

enum rc session_count(struct session *s, const struct record_type *type, int index, struct value hash, int64_t *ret,
                      struct err *e)
{
	*ret = 0;
	if (is_index_value_too_long(type, index, hash))
		return RC_OK;
	return note_read(s, s->store->ops->count(s, type, index, hash, ret, e));
}

enum rc session_count_each(struct session *s, const struct record_type *type, int index, int n, int64_t *ret,
                           struct err *e)
{
	enum rc rc = RC_OK;

	for (int i = 0; !rc && i < n; i++)
		rc = session_count(s, type, index, value_int(i), &ret[i], e);
	return rc;
}

enum rc session_claim_first(struct session *s, const struct query *q, struct stored *ret, struct err *e)
{
	struct query       first = *q;
	struct stored_page page;
	enum rc            rc;

	first.limit = 1;
	first.is_last = true;
	do { /* a page is empty and not the last when its record was damaged */
		page = (struct stored_page){ 0 };
		rc = s->store->ops->query(s, &first, &page, e);
		if (rc)
			return rc;
		first.cursor = page.next;
	} while (!page.count && page.next.n);
	if (!page.count)
		return RC_EXHAUSTED;
	*ret = page.items[0];
	return RC_OK;
}

void *session_next(struct session *s, struct records *r, enum rc *ret_rc, struct err *e)
{
	*ret_rc = RC_OK;
	while (r->at == r->page.count) {
		if (r->pages && (!r->page.next.n || r->pages == r->pages_max))
			return NULL;
		if (r->pages++)
			r->query.cursor = r->page.next;
		r->at = 0;
		if ((*ret_rc = session_query(s, &r->query, &r->page, e)))
			return NULL;
	}
	return page_record(&r->page, r->query.type, r->at++);
}

enum rc session_claim(struct session *s, const struct query *q, void *ret, struct err *e)
{
	struct records seen = { .query = *q };
	struct stored  stored;
	const void    *first;
	enum rc        rc;

	seen.query.limit = CLAIM_PAGE;
	if (changed_count(s, q->type)) { /* by the session itself: look through what it sees */
		if ((first = session_next(s, &seen, &rc, e)))
			memcpy(ret, first, q->type->size);
		return first || rc ? rc : err_set(e, RC_EXHAUSTED, "no %s is free", q->type->name);
	}
	rc = note_read(s, s->store->ops->claim(s, q, &stored, e));
	if (rc)
		return rc == RC_EXHAUSTED ? err_set(e, rc, "no %s is free", q->type->name) : rc;
	if (!find_entry(s, q->type, record_key(q->type, stored.record)))
		(void)add_entry(s, q->type, record_key(q->type, stored.record), &stored);
	memcpy(ret, stored.record, q->type->size);
	return RC_OK;
}

static struct session_entry *entry_to_write(struct session *s, const struct record_type *type, struct str key)
{
	struct session_entry *entry = find_entry(s, type, key);

	assert(!s->is_read_only);
	assert(entry); /* read before you write */
	s->writes += !entry->is_changed;
	entry->is_changed = true;
	return entry;
}

void session_put(struct session *s, const struct record_type *type, void *record)
{
	struct session_entry *entry = entry_to_write(s, type, record_key(type, record));
	void                 *copy = arena_alloc(s->arena, type->size);
	uint64_t              version = entry->before ? record_version(type, entry->before) : 0;

	/* One that is put as it was is not written, so its version stays too. */
	entry->changes = entry->before ? record_changes(type, entry->before, record) : 0;
	record_set_version(type, record, version + (!entry->before || entry->changes));
	memcpy(copy, record, type->size);
	entry->after = copy;
}

void session_add(struct session *s, const struct record_type *type, void *record)
{
	assert(!find_entry(s, type, record_key(type, record)));
	(void)add_entry(s, type, record_key(type, record), NULL);
	session_put(s, type, record);
}

void *session_context(const struct session *s)
{
	return s->store->context;
}

void session_poke(struct session *s, unsigned news)
{
	s->news |= news;
}

bool session_follow(struct session *s, struct follow *f)
{
	if (s->follow_count >= FOLLOWS_MAX)
		return false;
	s->follow_count++;
	f->next = NULL;
	f->is_kept = false;
	if (s->last_follow)
		s->last_follow->next = f;
	else
		s->follows = f;
	s->last_follow = f;
	return true;
}

void session_delete(struct session *s, const struct record_type *type, struct str key)
{
	entry_to_write(s, type, key)->after = NULL;
}

enum rc session_drop(struct session *s, const struct record_type *type, struct str key, bool *ret_was_there,
                     struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, type, key, arena_alloc(s->arena, type->size), &is_there, e);

	if (!rc && is_there)
		session_delete(s, type, key);
	if (ret_was_there)
		*ret_was_there = is_there;
	return rc;
}

/* Does the record have the value in the unique index? */
static bool has_unique(const struct record_type *type, int index, struct value v, const void *record)
{
	const struct record_index *unique = &type->indexes[index];

	return record && record_is_in_index(type, unique, record) &&
	       value_cmp(type->fields[unique->hash].kind, v, record_value(type, unique->hash, record)) == 0;
}

/* The entry that has the value, as the session sees it; NULL in *ret when there is none. `except` does not count. */
static enum rc find_holder(struct session *s, const struct record_type *type, int index, struct value v,
                           const struct session_entry *except, struct session_entry **ret, struct err *e)
{
	struct session_entry *entry;
	struct stored         stored;
	enum rc               rc;

	for (*ret = s->first; *ret; *ret = (*ret)->next)
		if (*ret != except && (*ret)->type == type && has_unique(type, index, v, (*ret)->after))
			return RC_OK;
	rc = is_index_value_too_long(type, index, v)
	             ? RC_NOT_FOUND
	             : note_read(s, s->store->ops->find_unique(s, type, index, v, &stored, e));
	if (rc)
		return rc == RC_NOT_FOUND ? RC_OK : rc;
	entry = find_entry(s, type, record_key(type, stored.record));
	if (!entry)
		*ret = add_entry(s, type, record_key(type, stored.record), &stored);
	return RC_OK; /* an entry that was found has given the value up, or is `except` */
}

enum rc session_find_unique(struct session *s, const struct record_type *type, int index, struct value v, void *ret,
                            struct err *e)
{
	struct session_entry *holder;
	enum rc               rc;

	assert(type->indexes[index].is_unique && !s->is_read_only);
	rc = find_holder(s, type, index, v, NULL, &holder, e);
	if (rc)
		return rc;
	if (!holder)
		return RC_NOT_FOUND;
	memcpy(ret, holder->after, type->size);
	return RC_OK;
}

static enum rc check_unique(struct session *s, const struct session_entry *entry, int index, struct err *e)
{
	const struct record_index *unique = &entry->type->indexes[index];
	struct session_entry      *other;
	struct value               v;
	enum rc                    rc;

	if (!unique->is_unique || !entry->after || !record_is_in_index(entry->type, unique, entry->after))
		return RC_OK;
	v = record_value(entry->type, unique->hash, entry->after);
	if (has_unique(entry->type, index, v, entry->before))
		return RC_OK; /* it had the value before */
	rc = find_holder(s, entry->type, index, v, entry, &other, e);
	if (rc)
		return rc;
	if (other)
		return err_set(e, RC_CONFLICT, "%s: another %s has the same %s", unique->name, entry->type->name,
		               entry->type->fields[unique->hash].name);
	return RC_OK;
}

static bool is_in_index(const struct record_type *type, const struct record_index *index, const void *record)
{
	return record && record_is_in_index(type, index, record);
}

/* How many actions the entry costs in a transaction. */
static unsigned count_actions(const struct session_entry *entry)
{
	unsigned actions = entry->is_changed || entry->is_decisive;

	for (int i = 0; entry->is_changed && i < entry->type->index_count; i++) {
		const struct record_index *index = &entry->type->indexes[i];

		if (index->is_unique)
			actions += is_in_index(entry->type, index, entry->before) !=
			           is_in_index(entry->type, index, entry->after);
	}
	if (entry->is_changed && entry->type->items)
		actions += RECORD_ITEMS_MAX;
	return actions;
}

static enum rc check_writes(struct session *s, struct err *e)
{
	unsigned actions = 0;

	for (struct session_entry *entry = s->first; entry; entry = entry->next) {
		enum rc rc = RC_OK;

		actions += count_actions(entry);
		if (!entry->is_changed)
			continue;
		if (entry->after)
			rc = record_check(entry->type, entry->after, e);
		for (int i = 0; !rc && i < entry->type->index_count; i++)
			rc = check_unique(s, entry, i, e);
		if (rc)
			return rc;
	}
	if (actions > SESSION_ACTIONS_MAX)
		return err_set(e, RC_TOO_LARGE, "a transaction of %u actions; at most %d are possible", actions,
		               SESSION_ACTIONS_MAX);
	return RC_OK;
}

const struct session_entry *session_next_change(const struct session *s, const struct session_entry *previous)
{
	const struct session_entry *entry = previous ? previous->next : s->first;

	while (entry && !(entry->is_changed && (entry->before || entry->after)))
		entry = entry->next;
	return entry;
}

/* --- what follows --- */

/* What a session had written at some moment. */
struct mark {
	struct session_entry *last, *saved; /* copies of all entries, in their order */
	struct follow        *last_follow;
	unsigned              writes, news;
};

static struct mark set_mark(struct session *s)
{
	struct mark m = { .last = s->last, .last_follow = s->last_follow, .writes = s->writes, .news = s->news };
	size_t      count = 0;

	for (struct session_entry *entry = s->first; entry; entry = entry->next)
		count++;
	m.saved = arena_alloc(s->arena, count * sizeof(*m.saved));
	count = 0;
	for (struct session_entry *entry = s->first; entry; entry = entry->next)
		m.saved[count++] = *entry;
	return m;
}

static void return_to(struct session *s, const struct mark *m)
{
	struct session_entry *next = s->first;

	for (size_t i = 0; m->last && next; i++) {
		struct session_entry *entry = next;

		next = m->saved[i].next;
		*entry = m->saved[i];
	}
	s->last = m->last;
	if (!m->last)
		s->first = NULL;
	s->last_follow = m->last_follow;
	s->last_follow->next = NULL;
	s->writes = m->writes;
	s->news = m->news | NEWS_TO_DO;
}

/* One may ask for others; these come behind. */
static bool run_follows(struct session *s)
{
	bool has_kept = false;

	for (struct follow *f = s->follows; f; f = f->next) {
		struct mark mark = set_mark(s);
		struct err  e = { 0 }; /* whoever does it later says why it cannot be done */

		f->is_kept = f->run(s, f->arg, &e) == RC_OK;
		has_kept |= f->is_kept;
		if (!f->is_kept)
			return_to(s, &mark);
	}
	return has_kept;
}

static enum rc apply_writes(struct session *s, bool *ret_is_torn, struct err *e)
{
	enum rc rc = s->writes ? check_writes(s, e) : RC_OK;

	if (rc || !s->writes)
		return rc;
	rc = s->store->ops->apply(s, e);
	*ret_is_torn = rc != RC_OK;
	return rc;
}

/* The function's writes with those of what follows it; if that is refused without a write, the function's alone. */
static enum rc apply_all(struct session *s, bool *ret_is_torn, struct err *e)
{
	struct mark mark;
	enum rc     rc;

	if (!s->follows)
		return apply_writes(s, ret_is_torn, e);
	mark = set_mark(s);
	if (!run_follows(s))
		return apply_writes(s, ret_is_torn, e);
	rc = apply_writes(s, ret_is_torn, e);
	if (!rc || (*ret_is_torn && rc != RC_CONFLICT))
		return rc;
	*ret_is_torn = false;
	err_clear(e);
	for (struct follow *f = s->follows; f; f = f->next)
		f->is_kept = false;
	return_to(s, &mark);
	return apply_writes(s, ret_is_torn, e);
}

enum rc session_execute(struct session *s, struct txn *t, bool *ret_is_torn)
{
	session_reset(s);
	*ret_is_torn = false;
	s->trace = t->trace;
	t->rc = t->run(s, t->arg, &t->e);
	if (!t->rc)
		t->rc = apply_all(s, ret_is_torn, &t->e);
	t->news = s->news;
	t->follows = s->follows;
	if (t->rc && !t->e.rc)
		(void)err_set(&t->e, t->rc, "%s", rc_text(t->rc));
	return t->rc;
}

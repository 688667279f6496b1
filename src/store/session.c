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
 *   4. What follows a function (session_follow()) and cannot be written leaves no trace and does the function no harm. [apply_all()]
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
	s->writes = 0;
	s->news = 0;
	s->follows = s->last_follow = NULL;
	s->follow_count = 0;
}

/* The entry of a record, read from the store when the session does not know it yet, or only from an index, which may be behind. A record
 * that is not there has an entry without before. */
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
	rc = s->store->ops->get(s, type, key, &stored, e);
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

enum rc session_get(struct session *s, const struct record_type *type, struct str key, void *ret, struct err *e)
{
	struct session_entry *entry;
	enum rc               rc = load_entry(s, type, key, &entry, e);

	if (rc)
		return rc;
	if (!entry->after)
		return err_set(e, RC_NOT_FOUND, "no %s '%.*s'", type->name, STR_ARG(key));
	memcpy(ret, entry->after, type->size);
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
	if (field == NO_FIELD)
		return true;
	sort = record_value(q->type, field, record);
	return str_starts_with(sort.text, q->sort_prefix) && (!q->has_sort_max || sort.number <= q->sort_max) &&
	       (!q->sort_from.n || str_cmp(sort.text, q->sort_from) >= 0) &&
	       (!q->sort_to.n || str_cmp(sort.text, q->sort_to) < 0);
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
	enum rc            rc;

	assert(q->limit >= 1 && q->limit <= QUERY_LIMIT_MAX);
	assert(q->index < 0 || !q->type->indexes[q->index].is_unique);
	assert(q->index >= 0 || !q->type->key_prefix || (q->index == QUERY_ALL && !q->is_descending));
	rc = s->store->ops->query(s, q, &stored, e);
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
	return s->store->ops->count(s, type, index, hash, ret, e);
}

enum rc session_claim_first(struct session *s, const struct query *q, struct stored *ret, struct err *e)
{
	struct query       first = *q;
	struct stored_page page;
	enum rc            rc;

	first.limit = 1;
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

/* The session has changed records of the type itself: look through what it sees. */
static enum rc claim_beside_own(struct session *s, const struct query *q, void *ret, struct err *e)
{
	struct query candidates = *q;
	struct page  page;
	enum rc      rc;

	candidates.limit = CLAIM_PAGE;
	do {
		rc = session_query(s, &candidates, &page, e);
		if (rc)
			return rc;
		candidates.cursor = page.next;
	} while (page.count == 0 && page.next.n > 0);
	if (page.count == 0)
		return err_set(e, RC_EXHAUSTED, "no %s is free", q->type->name);
	memcpy(ret, page_record(&page, q->type, 0), q->type->size);
	return RC_OK;
}

enum rc session_claim(struct session *s, const struct query *q, void *ret, struct err *e)
{
	struct stored stored;
	enum rc       rc;

	if (changed_count(s, q->type))
		return claim_beside_own(s, q, ret, e);
	rc = s->store->ops->claim(s, q, &stored, e);
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

/* A record that is put as it was is not written, so its version stays too. */
static uint64_t next_version(const struct record_type *type, const void *before, const void *after)
{
	if (!before)
		return 1;
	return record_version(type, before) + (record_changes(type, before, after) != 0);
}

void session_put(struct session *s, const struct record_type *type, void *record)
{
	struct session_entry *entry = entry_to_write(s, type, record_key(type, record));
	void                 *copy = arena_alloc(s->arena, type->size);

	record_set_version(type, record, next_version(type, entry->before, record));
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
	rc = s->store->ops->find_unique(s, type, index, v, &stored, e);
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

/* How many actions the entry costs in a transaction. */
static unsigned count_actions(const struct session_entry *entry)
{
	unsigned actions = entry->is_changed || entry->is_decisive;

	for (int i = 0; entry->is_changed && i < entry->type->index_count; i++) {
		const struct record_index *index = &entry->type->indexes[i];
		bool was_in = entry->before && record_is_in_index(entry->type, index, entry->before);
		bool is_in = entry->after && record_is_in_index(entry->type, index, entry->after);

		actions += index->is_unique && was_in != is_in;
	}
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

static void forget_follows(struct session *s, const struct mark *m)
{
	for (struct follow *f = s->follows; f; f = f->next)
		f->is_kept = false;
	return_to(s, m);
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

/* The function's writes with those of what follows it; if that is refused, and nothing was written, the function's alone. */
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
	forget_follows(s, &mark);
	return apply_writes(s, ret_is_torn, e);
}

enum rc session_execute(struct session *s, struct txn *t, bool *ret_is_torn)
{
	session_reset(s);
	*ret_is_torn = false;
	t->rc = t->run(s, t->arg, &t->e);
	if (!t->rc)
		t->rc = apply_all(s, ret_is_torn, &t->e);
	t->news = s->news;
	t->follows = s->follows;
	if (t->rc && !t->e.rc)
		(void)err_set(&t->e, t->rc, "%s", rc_text(t->rc));
	return t->rc;
}

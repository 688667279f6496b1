/* SPDX-License-Identifier: Apache-2.0 */
/* test_segment.c - records with time keys, of which a row has many: a reader sees records, whatever the rows are. */
#include "test.h"

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"
#include "store/record_rows.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_segment.h"
#include "store/store.h"
#include "store/walk.h"
#include "truth/test_clock.h"

enum { COUNT = 300, LONG_MAX = 70000, ADDS_MAX = 60 };

struct entry {
	struct str id, word, detail;
	int64_t    number;
	int        reach;
	uint64_t   version;
};
static const char *const reach_names[] = { "indexed", "chained" };
#define ENTRY_FIELDS(X)                                      \
	X(ENTRY_F_ID, TEXT(entry, id, 36))                   \
	X(ENTRY_F_WORD, TEXT(entry, word, 64))               \
	X(ENTRY_F_NUMBER, INT(entry, number))                \
	X(ENTRY_F_REACH, ENUM(entry, reach, reach_names, 2)) \
	X(ENTRY_F_DETAIL, TEXT_OR_NONE(entry, detail, LONG_MAX))
FIELDS(entry, ENTRY_FIELDS);
static const struct record_index entry_indexes[] = {
	{ "ByWord", ENTRY_F_WORD, ENTRY_F_ID, false, ENTRY_F_REACH, 0, 1 },
};
static const struct record_type entry_type = { RECORD_TYPE("entry", entry, entry_fields), INDEXES(entry_indexes),
	                                       .is_packed = true, .has_time_key = true };

struct rig {
	struct arena  arena;
	struct clock  clock;
	struct store *store;
	char          folder[64], path[96];

	bool     is_there[COUNT]; /* what the store should have */
	int64_t  edits[COUNT];
	unsigned seed;
};

static void open_store(struct rig *r)
{
	static const struct record_type *const types[] = { &entry_type };
	struct sqlite_options options = { .path = r->path, .types = types, .type_count = 1, .clock = &r->clock };

	CHECK(store_sqlite_open(&options, &r->store, NULL) == RC_OK);
}

static void set_up(struct rig *r)
{
	log_setup(LOG_ERROR, LOG_JSON);
	*r = (struct rig){ .clock = clock_test(1), .folder = "/tmp/leasehold-test-XXXXXX" };
	CHECK(mkdtemp(r->folder) != NULL);
	(void)snprintf(r->path, sizeof(r->path), "%s/a.db", r->folder);
	open_store(r);
}

static void tear_down(struct rig *r)
{
	char command[96];

	store_close(r->store);
	arena_fini(&r->arena);
	(void)snprintf(command, sizeof(command), "rm -rf %s", r->folder);
	CHECK(system(command) == 0);
}

static int below(struct rig *r, int n)
{
	r->seed = r->seed * 1103515245 + 12345;
	return (int)(r->seed >> 16) % n;
}

/* --- records --- */

/* Each has a moment of its own. */
static struct str key_of(struct arena *a, int n)
{
	return str_format(a, "%08x-%04x-7%03x-8000-%012x", 16 + n / 3, n % 3, 7, n);
}

/* Every seventh is in an index of the file; of some the detail is long, or there is none. */
static struct entry entry_of(struct arena *a, int n)
{
	struct entry x = { .id = key_of(a, n), .word = str_format(a, "w%d \"\n", n), .number = n };
	size_t       size = n % 50 == 1 ? 9000 : 20;
	char        *detail;

	x.reach = n % 7 != 0;
	if (n % 3 == 0)
		return x;
	detail = arena_alloc(a, size);
	memset(detail, 'x', size);
	(void)snprintf(detail, size, "{\"d\xc3\xbc\":\"\n%d", n);
	x.detail = str_of(detail, size);
	return x;
}

static void check_entry(struct rig *r, const struct entry *x)
{
	int          n = (int)(x->number % 1000);
	struct entry wanted = entry_of(&r->arena, n);

	CHECK(n >= 0 && n < COUNT && x->number / 1000 == r->edits[n]);
	CHECK(str_eq(x->id, wanted.id) && str_eq(x->word, wanted.word) && str_eq(x->detail, wanted.detail));
	CHECK(x->reach == wanted.reach && x->version == 1 + (uint64_t)r->edits[n]);
}

/* --- what is done --- */

struct work {
	struct txn  txn;
	int         numbers[ADDS_MAX];
	int         count;
	bool        is_removal, is_edit;
	enum rc     rc;
	atomic_int *done;
};

static enum rc do_work(struct session *s, void *arg, struct err *e)
{
	struct work *w = arg;
	enum rc      rc = RC_OK;

	for (int i = 0; !rc && i < w->count; i++) {
		struct entry x = entry_of(session_arena(s), w->numbers[i]);

		if (w->is_removal) {
			rc = session_drop(s, &entry_type, x.id, NULL, e);
		} else if (!w->is_edit) {
			session_add(s, &entry_type, &x);
		} else if (!(rc = session_get(s, &entry_type, x.id, &x, e))) {
			x.number += 1000;
			session_put(s, &entry_type, &x);
		}
	}
	return rc;
}

static void note_end(struct txn *t, enum rc rc, const struct err *e)
{
	struct work *w = CONTAINER_OF(t, struct work, txn);

	(void)e;
	w->rc = rc;
	atomic_fetch_add(w->done, 1);
}

/* In one commit. */
static void do_together(struct rig *r, struct work *works, int count)
{
	struct txn *txns[8];
	atomic_int  done = 0;

	for (int i = 0; i < count; i++) {
		works[i].done = &done;
		works[i].txn = (struct txn){ .run = do_work, .arg = &works[i], .arena = &r->arena, .done = note_end };
		txns[i] = &works[i].txn;
	}
	store_submit_all(r->store, txns, (size_t)count);
	while (atomic_load(&done) < count)
		usleep(100);
	for (int i = 0; i < count; i++)
		for (int j = 0; works[i].rc == RC_OK && j < works[i].count; j++) {
			int n = works[i].numbers[j];

			r->edits[n] = works[i].is_edit ? r->edits[n] + 1 : 0;
			r->is_there[n] = !works[i].is_removal;
		}
}

static enum rc do_one(struct rig *r, struct work w)
{
	do_together(r, &w, 1);
	return w.rc;
}

static struct work from_to(int first, int last)
{
	struct work w = { .count = 0 };

	for (int n = first; n <= last; n++)
		w.numbers[w.count++] = n;
	return w;
}

static struct work removal(int first, int last)
{
	struct work w = from_to(first, last);

	w.is_removal = true;
	return w;
}

/* --- what is seen --- */

struct list {
	int    from, to; /* numbers; before this */
	bool   is_descending, is_by_key;
	size_t limit;
};

static bool wants_even(const void *record, const void *arg)
{
	(void)arg;
	return ((const struct entry *)record)->number % 2 == 0;
}

struct reading {
	const struct query *q;
	struct page         page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct reading *reading = arg;

	return session_query(s, reading->q, &reading->page, e);
}

static void check_page(struct rig *r, const struct list *l, const struct query *q, int *at, struct page *page)
{
	struct reading reading = { .q = q };
	int            step = l->is_descending ? -1 : 1;

	CHECK(store_read(r->store, read_page, &reading, &r->arena, NULL) == RC_OK);
	for (size_t i = 0; i < reading.page.count; i++) {
		const struct entry *x = page_record(&reading.page, &entry_type, i);

		while (*at >= l->from && *at < l->to && (!r->is_there[*at] || (q->filter && *at % 2)))
			*at += step;
		CHECK(*at >= l->from && *at < l->to && x->number % 1000 == *at);
		check_entry(r, x);
		*at += step;
	}
	*page = reading.page;
}

static void check_list(struct rig *r, const struct list *l, bool is_filtered)
{
	struct query_filter filter = { wants_even, NULL, 1ull << ENTRY_F_NUMBER, l->limit + 3 };
	struct query        q = query_of(&entry_type, l->is_by_key ? QUERY_KEYS : QUERY_ALL, value_int(0), l->limit);
	int                 at = l->is_descending ? l->to - 1 : l->from;
	struct page         page = { 0 };

	q.is_descending = l->is_descending;
	if (l->from > 0)
		q.sort_from = key_of(&r->arena, l->from);
	if (l->to < COUNT)
		q.sort_to = key_of(&r->arena, l->to);
	q.filter = is_filtered ? &filter : NULL;
	do {
		check_page(r, l, &q, &at, &page);
		q.cursor = page.next;
	} while (page.next.n);
	while (at >= l->from && at < l->to && (!r->is_there[at] || (is_filtered && at % 2)))
		at += l->is_descending ? -1 : 1;
	CHECK(at == (l->is_descending ? l->from - 1 : l->to));
}

static int total(const struct rig *r)
{
	int count = 0;

	for (int n = 0; n < COUNT; n++)
		count += r->is_there[n];
	return count;
}

static enum rc count_all(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &entry_type, QUERY_ALL, value_int(0), arg, e);
}

static enum rc get(struct rig *r, int n, struct entry *ret)
{
	bool    is_there;
	enum rc rc = store_find(r->store, &entry_type, key_of(&r->arena, n), &r->arena, ret, &is_there, NULL);

	return rc || is_there ? rc : RC_NOT_FOUND;
}

static void check_all(struct rig *r)
{
	struct entry x;
	int64_t      count;

	for (int i = 0; i < 4; i++) {
		struct list l = { 0, COUNT, i & 1, i & 2, (size_t)(1 + below(r, 40)) };

		check_list(r, &l, false);
		check_list(r, &l, true);
		l.from = below(r, COUNT);
		l.to = l.from + 1 + below(r, COUNT - l.from);
		l.is_by_key = true;
		check_list(r, &l, i & 2);
	}
	for (int n = 0; n < COUNT; n++) {
		enum rc rc = get(r, n, &x);

		CHECK(rc == (r->is_there[n] ? RC_OK : RC_NOT_FOUND));
		if (!rc)
			check_entry(r, &x);
	}
	CHECK(store_read(r->store, count_all, &count, &r->arena, NULL) == RC_OK && count == total(r));
	arena_reset(&r->arena);
}

/* --- the file itself --- */

static sqlite3_stmt *ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		print_error("%s\n", sqlite3_errmsg(db));
	CHECK(stmt);
	return stmt;
}

static int64_t ask_number(struct rig *r, const char *sql)
{
	sqlite3      *db;
	sqlite3_stmt *stmt;
	int64_t       number;
	int           step;

	CHECK(sqlite3_open(r->path, &db) == SQLITE_OK);
	stmt = ask(db, sql);
	step = sqlite3_step(stmt);
	CHECK(step == SQLITE_ROW || step == SQLITE_DONE);
	number = step == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : sqlite3_changes(db);
	CHECK(sqlite3_finalize(stmt) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK);
	return number;
}

static struct str column(sqlite3_stmt *stmt, int i)
{
	const char *text = (const char *)sqlite3_column_text(stmt, i);

	return str_of(text, (size_t)sqlite3_column_bytes(stmt, i));
}

/* What an operator is told by the view, in the order of the log. */
static void check_view(struct rig *r)
{
	sqlite3      *db;
	sqlite3_stmt *stmt;
	int           n = 0, count = 0;

	CHECK(sqlite3_open(r->path, &db) == SQLITE_OK);
	stmt = ask(db, "SELECT id, word, number, reach, detail, version, seq FROM entry");
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct entry x = { .id = column(stmt, 0),
			           .word = column(stmt, 1),
			           .number = sqlite3_column_int64(stmt, 2),
			           .reach = sqlite3_column_int(stmt, 3),
			           .detail = column(stmt, 4),
			           .version = (uint64_t)sqlite3_column_int64(stmt, 5) };
		int64_t      seq;

		for (; n < COUNT && !r->is_there[n]; n++)
			;
		CHECK(x.number % 1000 == n++);
		check_entry(r, &x);
		CHECK((sqlite3_column_type(stmt, 4) == SQLITE_NULL) == !x.detail.n);
		CHECK(row_of_time_key(x.id, &seq) && seq == sqlite3_column_int64(stmt, 6));
		count++;
	}
	CHECK(count == total(r));
	CHECK(sqlite3_finalize(stmt) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK);
}

static void reopen(struct rig *r)
{
	store_close(r->store);
	open_store(r);
}

/* --- tests --- */

TEST(the_records_of_one_commit_are_one_row)
{
	struct rig  r;
	struct work works[2] = { from_to(1, 3), from_to(4, 6) };

	set_up(&r);
	do_together(&r, works, 2);
	CHECK(ask_number(&r, "SELECT count(*) FROM entry_row") == 1);
	CHECK(do_one(&r, from_to(8, 8)) == RC_OK); /* one alone is written as it always was */
	CHECK(ask_number(&r, "SELECT json_extract(value, '$[3]') FROM entry_row ORDER BY seq DESC LIMIT 1") == 8);
	CHECK(do_one(&r, from_to(12, 16)) == RC_OK); /* 14 is in an index, so it has its own row */
	CHECK(ask_number(&r, "SELECT count(*) FROM entry_row") == 5);
	CHECK(do_one(&r, from_to(100, 159)) == RC_OK);
	CHECK(ask_number(&r, "SELECT max(length(value) + length(detail)) FROM entry_row") < 2 * (32 << 10));
	check_all(&r);
	check_view(&r);
	reopen(&r);
	check_all(&r);
	tear_down(&r);
}

static void remove_of_ten(int first, int last, int64_t rows)
{
	struct rig r;

	set_up(&r);
	CHECK(do_one(&r, from_to(8, 13)) == RC_OK && do_one(&r, from_to(15, 20)) == RC_OK);
	CHECK(ask_number(&r, "SELECT count(*) FROM entry_row") == 2);
	CHECK(do_one(&r, removal(first, last)) == RC_OK);
	CHECK(ask_number(&r, "SELECT count(*) FROM entry_row") == rows);
	check_all(&r);
	check_view(&r);
	CHECK(do_one(&r, from_to(22, 27)) == RC_OK && do_one(&r, from_to(first, last)) == RC_OK);
	check_all(&r);
	check_view(&r);
	tear_down(&r);
}

TEST(the_first_a_middle_one_the_last_and_all_of_a_row_can_be_removed)
{
	remove_of_ten(8, 8, 2);
	remove_of_ten(10, 10, 2);
	remove_of_ten(13, 13, 2);
	remove_of_ten(8, 13, 1);
	remove_of_ten(9, 13, 2);
	remove_of_ten(11, 17, 2);
	remove_of_ten(8, 20, 0);
}

TEST(what_is_not_new_after_all_leaves_nothing_of_its_transaction)
{
	struct rig  r;
	struct work works[4] = { from_to(30, 33), from_to(36, 38), from_to(40, 42), from_to(43, 45) };

	set_up(&r);
	works[2].numbers[2] = 31; /* of the same commit */
	do_together(&r, works, 4);
	CHECK(works[2].rc == RC_CONFLICT && works[3].rc == RC_OK && !r.is_there[40]);
	check_all(&r);
	works[2] = from_to(50, 54);
	works[2].numbers[4] = 37; /* of an earlier one */
	CHECK(do_one(&r, works[2]) == RC_CONFLICT && !r.is_there[50]);
	check_all(&r);
	check_view(&r);
	tear_down(&r);
}

TEST(a_transaction_sees_what_the_same_commit_has_written_and_removed)
{
	struct rig  r;
	struct work works[5] = { from_to(1, 5), removal(2, 3), from_to(3, 3), from_to(5, 5), from_to(6, 6) };

	set_up(&r);
	works[3].is_edit = true;
	do_together(&r, works, 5);
	for (int i = 0; i < 5; i++)
		CHECK(works[i].rc == RC_OK);
	check_all(&r);
	check_view(&r);
	tear_down(&r);
}

/* As the kernel would make it if it had made number n already in this moment: the first 60 bits are the same. */
static struct str twin_of(struct arena *a, int n)
{
	struct str key = key_of(a, n);

	return str_format(a, "%.*sf", (int)key.n - 1, key.p);
}

static enum rc add_twin(struct session *s, void *arg, struct err *e)
{
	int          n = *(int *)arg;
	struct entry x = entry_of(session_arena(s), n);

	(void)e;
	x.id = twin_of(session_arena(s), n);
	session_add(s, &entry_type, &x);
	return RC_OK;
}

static size_t count_listed(struct rig *r, bool is_descending, size_t limit)
{
	struct query   q = query_of(&entry_type, QUERY_KEYS, value_int(0), limit);
	struct reading reading = { .q = &q };
	size_t         count = 0, pages = 0;

	q.is_descending = is_descending;
	do {
		CHECK(store_read(r->store, read_page, &reading, &r->arena, NULL) == RC_OK);
		count += reading.page.count;
		q.cursor = reading.page.next;
		CHECK(pages++ < 1000);
	} while (q.cursor.n);
	return count;
}

TEST(two_ids_of_one_moment_are_both_there)
{
	struct rig   r;
	struct entry x;
	bool         is_there;

	for (int n = 10; n <= 13; n++) {
		set_up(&r);
		CHECK(do_one(&r, from_to(10, 12)) == RC_OK && do_one(&r, from_to(13, 13)) == RC_OK);
		CHECK(store_run(r.store, add_twin, &n, &r.arena, NULL) == RC_OK);
		CHECK(store_run(r.store, add_twin, &n, &r.arena, NULL) == RC_CONFLICT);
		CHECK(count_listed(&r, false, 2) == 5 && count_listed(&r, true, 1) == 5);
		CHECK(get(&r, n, &x) == RC_OK && x.number == n);
		CHECK(store_find(r.store, &entry_type, twin_of(&r.arena, n), &r.arena, &x, &is_there, NULL) == RC_OK);
		CHECK(is_there && str_eq(x.id, twin_of(&r.arena, n)));
		CHECK(do_one(&r, removal(10, 13)) == RC_OK && count_listed(&r, false, 3) == 1);
		tear_down(&r);
	}
}

static void do_something(struct rig *r)
{
	struct work w = { .count = 0 };
	int         size = 1 + below(r, 40), n = below(r, COUNT), step = below(r, 4) ? 1 : 1 + below(r, 9);

	w.is_removal = below(r, 3) == 0;
	w.is_edit = !w.is_removal && below(r, 8) == 0;
	if (w.is_edit)
		size = 1 + size % 5;
	for (; n < COUNT && w.count < size; n += step)
		if (r->is_there[n] == (w.is_removal || w.is_edit))
			w.numbers[w.count++] = n;
	CHECK(do_one(r, w) == RC_OK);
}

TEST(any_history_is_read_in_order)
{
	struct rig r;

	for (unsigned seed = 1; seed <= 12; seed++) {
		set_up(&r);
		r.seed = seed;
		for (int i = 0; i < 40; i++) {
			do_something(&r);
			if (i % 5 == 0)
				check_all(&r);
			if (i % 13 == 0)
				reopen(&r);
		}
		check_all(&r);
		check_view(&r);
		tear_down(&r);
	}
}

/* --- files --- */

TEST(a_file_from_before_there_were_segments_goes_on)
{
	struct rig r;

	set_up(&r);
	for (int n = 50; n < 70; n++)
		CHECK(do_one(&r, from_to(n, n)) == RC_OK);
	CHECK(ask_number(&r, "SELECT count(*) FROM entry_row WHERE value LIKE '[[%'") == 0);
	store_close(r.store);
	(void)ask_number(&r, "PRAGMA user_version = 3");
	(void)ask_number(&r, "DROP VIEW entry");
	(void)ask_number(&r, "CREATE VIEW entry AS SELECT seq FROM entry_row");
	open_store(&r);
	check_all(&r);
	CHECK(do_one(&r, from_to(71, 76)) == RC_OK && do_one(&r, removal(52, 73)) == RC_OK);
	CHECK(do_one(&r, from_to(10, 30)) == RC_OK); /* the clock was set back */
	check_all(&r);
	check_view(&r);
	CHECK(ask_number(&r, "PRAGMA user_version") == SQLITE_SCHEMA_VERSION && SQLITE_SCHEMA_VERSION > 3);
	tear_down(&r);
}

static void check_damage(const char *sql, size_t left)
{
	struct rig   r;
	struct entry x;

	CASE(sql);
	set_up(&r);
	CHECK(do_one(&r, from_to(1, 6)) == RC_OK && do_one(&r, from_to(8, 13)) == RC_OK &&
	      do_one(&r, from_to(15, 20)) == RC_OK);
	store_close(r.store);
	CHECK(ask_number(&r, sql) == 1);
	open_store(&r);
	for (size_t limit = 1; limit < 20; limit++)
		CHECK(count_listed(&r, false, limit) == left && count_listed(&r, true, limit) == left);
	for (int n = 1; n <= 20; n++)
		if (get(&r, n, &x) == RC_OK)
			CHECK(x.number == n && left--);
	CHECK(left == 0);
	CHECK(do_one(&r, removal(1, 5)) == RC_OK && do_one(&r, removal(16, 18)) == RC_OK);
	CHECK(do_one(&r, from_to(22, 24)) == RC_OK && get(&r, 23, &x) == RC_OK && get(&r, 15, &x) == RC_OK);
	CHECK(do_one(&r, from_to(7, 7)) == RC_OK && do_one(&r, from_to(21, 21)) == RC_OK);
	tear_down(&r);
}

#define DAMAGE(expression, where) "UPDATE entry_row SET " expression " WHERE value LIKE '%\"w" where " %'"

TEST(what_is_damaged_in_a_row_is_left_out_and_the_rest_is_there)
{
	check_damage(DAMAGE("value = replace(value, '\"w10 ', 'w10 ')", "10"), 17);
	check_damage(DAMAGE("value = replace(value, '\"w8 ', 'w8 ')", "8"), 17);
	check_damage(DAMAGE("value = replace(value, '\"w13 ', '\"w13')", "13"), 18);
}

TEST(a_row_of_which_nothing_can_be_read_hides_no_other)
{
	check_damage(DAMAGE("value = '[[' || 'x'", "10"), 12);
	check_damage(DAMAGE("value = '[[]]'", "10"), 12);
	check_damage(DAMAGE("value = ''", "10"), 12);
	check_damage(DAMAGE("value = '[['", "10"), 12);
	check_damage(DAMAGE("value = replace(value, char(10), ' ')", "10"), 13);
	check_damage(DAMAGE("value = '[' || char(10, 10) || substr(value, 2)", "10"), 12);
	check_damage(DAMAGE("value = replace(value, ',[1,', ',[1')", "10"), 12);
	check_damage(DAMAGE("value = replace(value, '[', '[9999999999999999999')", "10"), 12);
	check_damage(DAMAGE("value = replace(value, char(10) || '[', char(10) || '[9223372036854775807')", "10"), 13);
	check_damage(DAMAGE("detail = NULL", "10"), 12);
	check_damage(DAMAGE("value = substr(value, 1, length(value) / 2)", "10"), 15);
}

static enum rc add_neighbours(struct session *s, void *arg, struct err *e)
{
	const int *first = arg;

	(void)e;
	for (int n = *first; n < *first + 4; n++) {
		struct entry x = { .id = str_format(session_arena(s), "00000010-0000-7%03x-8000-%012x", n, n),
			           .word = STR("w"),
			           .number = n,
			           .reach = 1 };

		session_add(s, &entry_type, &x);
	}
	return RC_OK;
}

/* Ids of one moment are close to each other: damage that has many lines must not reach into the row behind it. */
TEST(many_damaged_lines_hide_no_row_behind_them)
{
	struct rig r;

	set_up(&r);
	CHECK(store_run(r.store, add_neighbours, &(int){ 1 }, NULL, NULL) == RC_OK);
	CHECK(store_run(r.store, add_neighbours, &(int){ 5 }, NULL, NULL) == RC_OK);
	store_close(r.store);
	CHECK(ask_number(&r, "UPDATE entry_row SET value = '[[' || replace(printf('%.*c', 60, 'x'), 'x', char(10)) "
	                     "WHERE seq = (SELECT min(seq) FROM entry_row)") == 1);
	open_store(&r);
	for (size_t limit = 1; limit < 80; limit++)
		CHECK(count_listed(&r, false, limit) == 4 && count_listed(&r, true, limit) == 4);
	tear_down(&r);
}

static enum rc add_same(struct session *s, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	for (int n = 7; n <= 28; n *= 2) {
		struct entry x = entry_of(session_arena(s), n);

		x.reach = 0;
		x.word = STR("same");
		session_add(s, &entry_type, &x);
	}
	return RC_OK;
}

TEST(a_page_that_ends_at_a_damaged_row_is_followed_by_the_next)
{
	struct rig          r;
	struct query_filter filter = { wants_even, NULL, 1ull << ENTRY_F_NUMBER, 2 };
	struct query        q = query_of(&entry_type, 0, value_text(STR("same")), 10);
	struct reading      reading = { .q = &q };

	set_up(&r);
	CHECK(store_run(r.store, add_same, NULL, &r.arena, NULL) == RC_OK);
	store_close(r.store);
	CHECK(ask_number(&r, "UPDATE entry_row SET value = printf('%.*c', 100000, 'x') WHERE value LIKE '%,14,%'") ==
	      1);
	open_store(&r);
	q.filter = &filter;
	CHECK(store_read(r.store, read_page, &reading, &r.arena, NULL) == RC_OK && reading.page.count == 0);
	CHECK(str_ends_with(reading.page.next, STR(":"))); /* nothing of the row before it */
	q.cursor = reading.page.next;
	CHECK(store_read(r.store, read_page, &reading, &r.arena, NULL) == RC_OK && reading.page.count == 1);
	CHECK(((const struct entry *)page_record(&reading.page, &entry_type, 0))->number == 28 && !reading.page.next.n);
	tear_down(&r);
}

TEST(a_limit_behind_all_keys_leaves_nothing_out)
{
	struct rig     r;
	struct query   q = query_of(&entry_type, 0, value_text(STR("same")), 10);
	struct reading reading = { .q = &q };

	set_up(&r);
	CHECK(store_run(r.store, add_same, NULL, &r.arena, NULL) == RC_OK);
	q.sort_to = STR("zzzzzzzz");
	CHECK(store_read(r.store, read_page, &reading, &r.arena, NULL) == RC_OK && reading.page.count == 3);
	tear_down(&r);
}

TEST(no_bytes_of_a_row_do_any_harm)
{
	struct rig         r;
	struct str         value, text = STR("some text");
	char               bytes[600];
	struct entry       x;
	struct segment_row made = { 0 };
	struct segment     g = { 0 };

	set_up(&r);
	r.seed = 5;
	for (int round = 0; round < 20000; round++) {
		segment_begin(&made, &entry_type, 100);
		for (int n = 1; n < 6; n++) {
			struct entry one = { .id = STR("i"), .word = STR("w\""), .detail = STR("d") };

			segment_add(&made, 100 + 8 * n, &one);
		}
		CHECK(segment_end(&made, &value) && value.n < sizeof(bytes));
		memcpy(bytes, value.p, value.n);
		for (int i = below(&r, 6); i >= 0; i--)
			bytes[below(&r, (int)value.n)] = "[],\n\"\\0919nu{ -"[below(&r, 15)];
		segment_read(&g, below(&r, 3) ? 100 : INT64_MAX - 9,
		             str_of(bytes, (size_t)(below(&r, 3) ? (int)value.n : below(&r, (int)value.n))), text);
		CHECK(g.count >= 1);
		segment_begin(&made, &entry_type, g.seq);
		for (size_t i = 0; i < g.count; i++) {
			CHECK(g.places[i].seq >= g.seq && (!i || g.places[i].seq >= g.places[i - 1].seq));
			segment_add_place(&made, &g.places[i]);
			x = (struct entry){ 0 };
			if (segment_unpack(&entry_type, &g.places[i], &x))
				CHECK(x.detail.n <= text.n);
		}
		CHECK(segment_end(&made, &value));
	}
	segment_fini(&g);
	segment_row_fini(&made);
	tear_down(&r);
}

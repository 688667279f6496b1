/* SPDX-License-Identifier: Apache-2.0 */
/* test_hot.c - an index in memory against a list that is obviously right, for the writer and for the reader. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "store/sqlite/sqlite_hot.h"
#include "store/store_ops.h"

enum { ROWS = 3000, OPERATIONS = 30000, STATES = 3, CHECK_EVERY = 500, PAGE = 7 };

struct item {
	struct str key, name;
	int64_t    at;
	int        state;
	uint64_t   version;
};

enum { F_KEY, F_NAME, F_AT, F_STATE };
static const char *const         states[] = { "free", "held", "over" };
static const struct record_field fields[] = {
	[F_KEY] = { "key", FIELD_TEXT, offsetof(struct item, key), false, 16, NULL },
	[F_NAME] = { "name", FIELD_TEXT, offsetof(struct item, name), false, 16, NULL },
	[F_AT] = { "at", FIELD_INT, offsetof(struct item, at), true, 0, NULL },
	[F_STATE] = { "state", FIELD_ENUM, offsetof(struct item, state), false, STATES, states },
};
enum { BY_STATE, FREE_BY_NAME };
static const struct record_index indexes[] = {
	[BY_STATE] = { "ByState", F_STATE, F_AT, false, NO_FIELD, 0, 0, .is_hot = true },
	[FREE_BY_NAME] = { "Free", F_STATE, F_NAME, false, F_STATE, 0, 0, .is_hot = true },
};
static const struct record_type item_type = {
	.name = "item",
	.size = sizeof(struct item),
	.fields = fields,
	.field_count = ARRAY_LEN(fields),
	.key = F_KEY,
	.version_offset = offsetof(struct item, version),
	.indexes = indexes,
	.index_count = ARRAY_LEN(indexes),
	.is_packed = true,
};

struct model {
	struct item rows[ROWS + 1]; /* by seq; one without a key is not there */
	char        names[ROWS + 1][16];
	uint64_t    random;
};

static uint32_t next_random(struct model *m, uint32_t below)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->random >> 33) % below;
}

static const struct model *sorted_by;
static bool                is_by_name;

static int compare_rows(const void *a, const void *b)
{
	int64_t            x = *(const int64_t *)a, y = *(const int64_t *)b;
	const struct item *left = &sorted_by->rows[x], *right = &sorted_by->rows[y];
	int order = is_by_name ? str_cmp(left->name, right->name) : (left->at > right->at) - (left->at < right->at);

	return order ? order : (x > y) - (x < y);
}

/* The rows that the query must find, in order. */
static size_t expected(const struct model *m, const struct query *q, int64_t *ret)
{
	size_t count = 0;

	for (int64_t seq = 1; seq <= ROWS; seq++)
		if (m->rows[seq].key.n && query_matches(q, &m->rows[seq]))
			ret[count++] = seq;
	sorted_by = m;
	is_by_name = q->index == FREE_BY_NAME;
	qsort(ret, count, sizeof(*ret), compare_rows);
	for (size_t i = 0; q->is_descending && i < count / 2; i++) {
		int64_t other = ret[i];

		ret[i] = ret[count - 1 - i];
		ret[count - 1 - i] = other;
	}
	return count;
}

/* Page by page. The reader's are those that the rows of its moment confirm. */
static void check_query(struct hot_index *h, const struct model *m, struct query q, bool is_reader)
{
	static int64_t   wanted[ROWS];
	struct hot_place found[PAGE], behind;
	size_t           count = expected(m, &q, wanted), at = 0, n;
	bool             is_begun = false;
	struct arena     a = { 0 };

	while ((n = hot_find(h, &q, is_begun ? &behind : NULL, is_reader, &a, found, PAGE)))
		for (size_t i = 0; i < n; i++) {
			const struct item *row = &m->rows[found[i].seq];
			struct value       sort = record_value(&item_type, indexes[q.index].sort, row);

			behind = found[i];
			is_begun = true;
			if (is_reader && (!row->key.n || !query_matches(&q, row) ||
			                  value_cmp(fields[indexes[q.index].sort].kind, sort, found[i].sort)))
				continue;
			CHECK(at < count && found[i].seq == wanted[at]);
			at++;
		}
	CHECK(at == count);
	if (!is_reader && q.index == BY_STATE && !q.has_sort_max)
		CHECK(hot_count(h, q.hash.number, false) == (int64_t)count);
	arena_fini(&a);
}

static void check_all(struct hot_index h[2], const struct model *m, bool is_reader)
{
	for (int state = -1; state <= STATES; state++) {
		struct query q = query_of(&item_type, BY_STATE, value_int(state), 1);

		check_query(&h[BY_STATE], m, q, is_reader);
		q.is_descending = true;
		check_query(&h[BY_STATE], m, q, is_reader);
		q = query_until(&item_type, BY_STATE, value_int(state), 50, 1);
		check_query(&h[BY_STATE], m, q, is_reader);
	}
	check_query(&h[FREE_BY_NAME], m, query_of(&item_type, FREE_BY_NAME, value_int(0), 1), is_reader);
	check_query(&h[FREE_BY_NAME], m,
	            (struct query){ .type = &item_type, .index = FREE_BY_NAME, .sort_prefix = STR("n-1"), .limit = 1 },
	            is_reader);
}

static void change_row(struct hot_index h[2], struct model *m, int64_t seq)
{
	struct item before = m->rows[seq], after = { 0 };

	if (next_random(m, 5)) {
		after = (struct item){ .key = STR("k"), .name = str_from(m->names[next_random(m, 200)]) };
		after.state = (int)next_random(m, STATES);
		after.at = next_random(m, 100);
	}
	for (int i = 0; i < 2; i++)
		CHECK(hot_note(&h[i], seq, before.key.n ? &before : NULL, after.key.n ? &after : NULL));
	m->rows[seq] = after;
}

static struct model *new_model(void)
{
	struct model *m = calloc(1, sizeof(*m));

	CHECK(m);
	m->random = 42;
	for (int i = 0; i <= ROWS; i++)
		snprintf(m->names[i], sizeof(m->names[i]), "n-%d", i);
	return m;
}

static void open_both(struct hot_index h[2])
{
	for (int i = 0; i < 2; i++)
		hot_init(&h[i], &item_type, i);
}

static void close_both(struct hot_index h[2])
{
	for (int i = 0; i < 2; i++)
		hot_fini(&h[i]);
}

TEST(any_history_of_changes_leaves_lists_in_order)
{
	struct model    *m = new_model();
	struct hot_index h[2];

	open_both(h);
	for (int i = 1; i <= OPERATIONS; i++) {
		change_row(h, m, 1 + next_random(m, ROWS));
		if (i % CHECK_EVERY == 0)
			check_all(h, m, false);
		for (int k = 0; i % 100 == 0 && k < 2; k++)
			hot_commit(&h[k]);
	}
	close_both(h);
	free(m);
}

TEST(rows_are_claimed_from_the_front_and_appended_elsewhere)
{
	struct model    *m = new_model();
	struct hot_index h[2];

	open_both(h);
	for (int64_t seq = 1; seq <= ROWS; seq++) {
		m->rows[seq] = (struct item){ .key = STR("k"), .name = str_from(m->names[seq]) };
		CHECK(hot_note(&h[0], seq, NULL, &m->rows[seq]) && hot_note(&h[1], seq, NULL, &m->rows[seq]));
	}
	for (int64_t seq = 1; seq <= ROWS; seq++) {
		struct item before = m->rows[seq];

		m->rows[seq].state = 1;
		m->rows[seq].at = 5;
		CHECK(hot_note(&h[0], seq, &before, &m->rows[seq]) && hot_note(&h[1], seq, &before, &m->rows[seq]));
		if (seq % CHECK_EVERY == 0)
			check_all(h, m, false);
	}
	CHECK(!hot_note(&h[0], 1, &(struct item){ .key = STR("k"), .name = STR("n-1") }, NULL)); /* it is not there */
	close_both(h);
	free(m);
}

/* Whatever is committed meanwhile or is about to be, the reader finds what its moment had. */
TEST(the_reader_finds_every_row_of_its_moment)
{
	struct model    *m = new_model(), *then = calloc(1, sizeof(*then));
	struct hot_index h[2];

	CHECK(then);
	open_both(h);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 200; i++)
			change_row(h, m, 1 + next_random(m, ROWS));
		hot_commit(&h[0]);
		hot_commit(&h[1]);
		memcpy(then, m, sizeof(*then));
		if (round % 2)
			for (int i = 0; i < 50; i++) /* not durable when the reader begins */
				change_row(h, m, 1 + next_random(m, ROWS));
		hot_begin_read(&h[0]);
		hot_begin_read(&h[1]);
		for (int commit = 0; commit < 3; commit++) {
			check_all(h, then, true);
			for (int i = 0; i < 100; i++)
				change_row(h, m, 1 + next_random(m, ROWS));
			hot_commit(&h[0]);
			hot_commit(&h[1]);
		}
		check_all(h, then, true);
		check_all(h, m, false);
		hot_end_read(&h[0]);
		hot_end_read(&h[1]);
	}
	hot_commit(&h[0]);
	hot_commit(&h[1]);
	CHECK(h[0].gone_count == 0 && h[1].gone_count == 0);
	CHECK(hot_count(&h[0], 0, true) == hot_count(&h[0], 0, false));
	close_both(h);
	free(then);
	free(m);
}

/* Rows are back when a commit fails: claims that are tried again and again on a full disk must not fill the memory. */
TEST(what_left_with_commits_that_failed_is_forgotten)
{
	struct hot_index  h, fresh;
	const struct item free_one = { .key = STR("k"), .name = STR("n"), .at = 1, .state = 0 };
	struct item       held = free_one;

	held.state = 1;
	hot_init(&h, &item_type, BY_STATE);
	CHECK(hot_note(&h, 1, NULL, &free_one));
	hot_commit(&h);
	for (int i = 0; i < 100; i++) {
		CHECK(hot_note(&h, 1, &free_one, &held));
		hot_init(&fresh, &item_type, BY_STATE);
		CHECK(hot_note(&fresh, 1, NULL, &free_one));
		hot_replace(&h, &fresh);
		hot_fini(&fresh);
		CHECK(h.gone_count == 0);
	}
	CHECK(hot_count(&h, 0, true) == 1 && hot_count(&h, 1, true) == 0);
	hot_fini(&h);
}

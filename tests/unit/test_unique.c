/* SPDX-License-Identifier: Apache-2.0 */
/* test_unique.c - the unique values in memory against a list that is obviously right. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "store/sqlite/sqlite_unique.h"

enum { VALUES = 600, ROWS = 400, OPERATIONS = 100000, SMALL = 8, IS_IN = 1 };

struct item {
	struct str key, owner;
	int64_t    number;
	int        state;
	uint64_t   version;
};

enum { F_KEY, F_OWNER, F_NUMBER, F_STATE };

static const char *const         states[] = { "out", "in" };
static const struct record_field fields[] = {
	[F_KEY] = { "key", FIELD_TEXT, offsetof(struct item, key), false, 16, NULL },
	[F_OWNER] = { "owner", FIELD_TEXT, offsetof(struct item, owner), true, 16, NULL },
	[F_NUMBER] = { "number", FIELD_INT, offsetof(struct item, number), true, 0, NULL },
	[F_STATE] = { "state", FIELD_ENUM, offsetof(struct item, state), false, 2, states },
};

enum { BY_OWNER, BY_NUMBER };
static const struct record_index indexes[] = {
	[BY_OWNER] = { "ByOwner", F_OWNER, NO_FIELD, true, F_STATE, IS_IN },
	[BY_NUMBER] = { "ByNumber", F_NUMBER, NO_FIELD, true, NO_FIELD, 0 },
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
};

/* The model: row `seq` has this value, or none. */
struct model {
	struct item rows[ROWS + 1]; /* by seq; a row without a key is not there */
	char        texts[VALUES][16];
	uint64_t    random;
};

static uint32_t next_random(struct model *m, uint32_t below)
{
	m->random = m->random * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->random >> 33) % below;
}

/* With so few places nearly all homes collide, and whole clusters wrap around the end. */
static void shrink(struct unique_index *u, size_t capacity)
{
	u->capacity = capacity;
	memset(u->slots, 0, capacity * sizeof(*u->slots));
}

static bool is_candidate(const struct unique_index *u, struct value v, int64_t wanted)
{
	size_t  at = 0;
	int64_t seq;
	bool    is_found = false;

	while ((seq = unique_candidate(u, v, &at))) {
		CHECK(!(is_found && seq == wanted)); /* never the same row twice */
		is_found = is_found || seq == wanted;
	}
	return is_found;
}

static bool has_value(const struct item *row, struct str owner)
{
	return row->key.n && row->state == IS_IN && str_eq(row->owner, owner);
}

static void compare_value(const struct unique_index *u, const struct model *m, const char *text)
{
	struct str owner = str_from(text);

	for (int64_t seq = 1; seq <= ROWS; seq++)
		if (has_value(&m->rows[seq], owner))
			CHECK(is_candidate(u, value_text(owner), seq));
}

static void compare_all(const struct unique_index *u, const struct model *m)
{
	size_t expected = 0;

	for (int64_t seq = 1; seq <= ROWS; seq++)
		expected += m->rows[seq].key.n && m->rows[seq].state == IS_IN && m->rows[seq].owner.n;
	CHECK(u->count == expected);
	for (int i = 0; i < VALUES; i++)
		compare_value(u, m, m->texts[i]);
}

/* A row comes, goes, or changes its value or its state. */
static void change_row(struct unique_index *u, struct model *m)
{
	int64_t     seq = 1 + next_random(m, ROWS);
	struct item before = m->rows[seq], after = { 0 };
	bool        was_there = before.key.n > 0;

	if (next_random(m, 3)) {
		after.key = STR("k");
		after.state = (int)next_random(m, 4) > 0;
		if (next_random(m, 8))
			after.owner = str_from(m->texts[next_random(m, VALUES)]);
		if (was_there && next_random(m, 2))
			after.owner = before.owner; /* only the state changes, or nothing */
	}
	CHECK(unique_note(u, seq, was_there ? &before : NULL, after.key.n ? &after : NULL));
	m->rows[seq] = after;
	if (before.owner.n && !has_value(&after, before.owner))
		CHECK(!is_candidate(u, value_text(before.owner), seq));
	if (has_value(&after, after.owner) && after.owner.n)
		CHECK(is_candidate(u, value_text(after.owner), seq));
}

static struct model *new_model(void)
{
	static struct model m;

	memset(&m, 0, sizeof(m));
	m.random = 42;
	for (int i = 0; i < VALUES; i++)
		snprintf(m.texts[i], sizeof(m.texts[i]), "owner-%d", i);
	return &m;
}

TEST(any_history_of_changes_leaves_what_a_list_would_have)
{
	struct model       *m = new_model();
	struct unique_index u;

	unique_init(&u, &item_type, BY_OWNER);
	shrink(&u, SMALL);
	for (int i = 0; i < OPERATIONS; i++) {
		change_row(&u, m);
		CHECK(u.count * 3 <= u.capacity * 2);
		if (i % 1000 == 0)
			compare_all(&u, m);
	}
	compare_all(&u, m);
	CHECK(u.capacity > SMALL);
	unique_fini(&u);
}

/* Values whose home is the last place but one: their cluster wraps around, and removing from its middle has to move the
 * right ones. */
TEST(a_cluster_that_wraps_around_survives_removals_in_any_order)
{
	enum { CLUSTER = 10, CAPACITY = 16, TRIES = 200 };
	char texts[CLUSTER][16];

	for (int try = 0; try < TRIES; try++) {
		struct model       *m = new_model();
		struct unique_index u;
		int                 found = 0;

		m->random = (uint64_t)try;
		unique_init(&u, &item_type, BY_OWNER);
		shrink(&u, CAPACITY);
		for (int i = 0; found < CLUSTER; i++) {
			uint64_t hash;

			snprintf(texts[found], sizeof(texts[found]), "v%d", i);
			hash = str_hash(str_from(texts[found]), u.seed) & (CAPACITY - 1);
			found += hash >= CAPACITY - 2 || hash == 0;
		}
		for (int i = 0; i < CLUSTER; i++) {
			m->rows[i + 1] = (struct item){ .key = STR("k"), .owner = str_from(texts[i]), .state = IS_IN };
			CHECK(unique_note(&u, i + 1, NULL, &m->rows[i + 1]));
		}
		for (int left = CLUSTER; left > 0;) {
			int64_t seq = 1 + next_random(m, CLUSTER);

			if (!m->rows[seq].key.n)
				continue;
			CHECK(unique_note(&u, seq, &m->rows[seq], NULL));
			m->rows[seq] = (struct item){ 0 };
			CHECK(u.count == (size_t)--left);
			for (int i = 0; i < CLUSTER; i++)
				CHECK(is_candidate(&u, value_text(str_from(texts[i])), i + 1) ==
				      (m->rows[i + 1].key.n > 0));
		}
		unique_fini(&u);
	}
}

/* Two rows with one hash: the caller is shown both. A removal takes the right one. */
TEST(rows_with_one_hash_are_kept_apart)
{
	struct unique_index u;
	struct item         a = { .key = STR("a"), .owner = STR("same"), .state = IS_IN };

	unique_init(&u, &item_type, BY_OWNER);
	shrink(&u, SMALL);
	CHECK(unique_note(&u, 1, NULL, &a));
	CHECK(unique_note(&u, 2, NULL, &a));
	CHECK(unique_note(&u, 3, NULL, &a));
	CHECK(u.count == 3);
	CHECK(unique_note(&u, 2, &a, NULL));
	CHECK(is_candidate(&u, value_text(a.owner), 1) && !is_candidate(&u, value_text(a.owner), 2));
	CHECK(is_candidate(&u, value_text(a.owner), 3) && u.count == 2);
	unique_fini(&u);
}

TEST(numbers_can_be_unique_too)
{
	struct unique_index u;

	unique_init(&u, &item_type, BY_NUMBER);
	shrink(&u, SMALL);
	for (int64_t n = 1; n <= 1000; n++)
		CHECK(unique_note(&u, n, NULL, &(struct item){ .key = STR("k"), .number = n - 500 }));
	CHECK(u.count == 999); /* 0 counts as absent */
	for (int64_t n = 1; n <= 1000; n++)
		CHECK(is_candidate(&u, value_int(n - 500), n) == (n != 500));
	CHECK(!is_candidate(&u, value_int(5000), 1));
	unique_fini(&u);
}

TEST(what_is_noted_after_a_clear_is_all_that_is_known)
{
	struct model       *m = new_model();
	struct unique_index u;

	unique_init(&u, &item_type, BY_OWNER);
	shrink(&u, SMALL);
	for (int i = 0; i < 2000; i++)
		change_row(&u, m);
	memset(m->rows, 0, sizeof(m->rows));
	unique_clear(&u);
	compare_all(&u, m);
	for (int seq = 1; seq <= ROWS; seq++) {
		const char *owner = seq % 5 ? m->texts[seq] : NULL;

		m->rows[seq] = (struct item){ .key = STR("k"), .owner = str_from(owner), .state = seq % 3 > 0 };
		CHECK(unique_note(&u, seq, NULL, &m->rows[seq]));
	}
	compare_all(&u, m);
	unique_fini(&u);
}

TEST(a_value_that_was_never_noted_is_told_and_changes_nothing)
{
	struct unique_index u;
	struct item         known = { .key = STR("k"), .owner = STR("owner"), .state = IS_IN };
	struct item         edited = { .key = STR("k"), .owner = STR("somebody-else"), .state = IS_IN };

	unique_init(&u, &item_type, BY_OWNER);
	CHECK(unique_note(&u, 1, NULL, &known));
	CHECK(!unique_note(&u, 1, &edited, NULL));
	CHECK(u.count == 1 && is_candidate(&u, value_text(known.owner), 1));
	unique_fini(&u);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_row.c - a packed record is what it was, and what is no record is refused. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/mem.h"
#include "store/sqlite/sqlite_row.h"

struct item {
	struct str key, text, last;
	int64_t    number, maybe;
	int        state;
	struct str more;
	uint64_t   version;
};

static const char *const         states[] = { "a", "b" };
static const struct record_field fields[] = {
	{ "key", FIELD_TEXT, offsetof(struct item, key), false, 64, NULL },
	{ "text", FIELD_TEXT, offsetof(struct item, text), true, 4096, NULL },
	{ "number", FIELD_INT, offsetof(struct item, number), false, 0, NULL },
	{ "maybe", FIELD_INT, offsetof(struct item, maybe), true, 0, NULL },
	{ "state", FIELD_ENUM, offsetof(struct item, state), false, 2, states },
	{ "more", FIELD_TEXT, offsetof(struct item, more), true, 65536, NULL },
	{ "last", FIELD_TEXT, offsetof(struct item, last), true, 64, NULL },
};
static const struct record_type item_type = {
	.name = "item",
	.size = sizeof(struct item),
	.fields = fields,
	.field_count = ARRAY_LEN(fields),
	.version_offset = offsetof(struct item, version),
	.is_packed = true,
};

/* In memory of exactly the size that is promised, so that sanitizers see what is read beyond it. */
static bool unpack(struct str text, struct item *ret, char **ret_room)
{
	char *room = mem_alloc(text.n + ROW_SLACK);

	if (text.n)
		memcpy(room, text.p, text.n);
	*ret_room = room;
	*ret = (struct item){ 0 };
	return row_unpack(&item_type, ~0ull, room, text.n, ret);
}

static void check_same(const struct item *item, size_t least)
{
	struct item back;
	struct buf  b;
	char       *room;

	buf_init(&b, 1 << 20);
	row_pack(&item_type, item, least, &b);
	CHECK(!b.is_full && b.n >= least);
	CHECK(unpack(buf_str(&b), &back, &room));
	CHECK(str_eq(back.key, item->key) && str_eq(back.text, item->text) && str_eq(back.last, item->last));
	CHECK(back.number == item->number && back.maybe == item->maybe && back.state == item->state);
	CHECK(back.version == item->version && !back.more.n);
	CHECK(!back.text.n || back.text.p[back.text.n] == '\0');
	free(room);
	buf_fini(&b);
}

TEST(any_text_comes_back_byte_by_byte)
{
	char        bytes[64];
	struct item item = { .key = STR("k"), .number = -5, .state = 1, .version = 3 };

	for (size_t n = 0; n <= 40; n++)
		for (int c = 0; c < 256; c++)
			for (size_t at = 0; at<(n ? n : 1); at += n> 20 ? 7 : 1) {
				memset(bytes, 'x', sizeof(bytes));
				bytes[at] = (char)c;
				item.text = str_of(bytes, n);
				check_same(&item, 0);
			}
}

TEST(padding_and_absent_fields_change_nothing)
{
	struct item item = { .key = STR("k\"\\\n"), .text = STR("\"\"\"\"\"\"\"\"\"\"\\\\"), .version = 1 };

	for (size_t least = 0; least < 300; least += 13)
		check_same(&item, least);
	item.last = STR("z");
	item.maybe = INT64_MIN;
	item.number = INT64_MAX;
	check_same(&item, 500);
}

TEST(many_are_packed_one_behind_the_other)
{
	struct item item = { .key = STR("k"), .text = STR("some text"), .version = 1 };
	struct buf  b;
	size_t      one;

	buf_init(&b, 1 << 20);
	row_pack(&item_type, &item, 0, &b);
	one = b.n;
	for (int i = 1; i < 100; i++)
		row_pack(&item_type, &item, 0, &b);
	CHECK(b.n == 100 * one && memcmp(b.p, b.p + 57 * one, one) == 0);
	buf_fini(&b);
	buf_init(&b, 20);
	row_pack(&item_type, &item, 0, &b);
	CHECK(b.is_full);
	buf_fini(&b);
}

TEST(what_another_program_wrote_is_read)
{
	struct item back;
	char       *room;

	CHECK(unpack(STR("[4,\"k\",\"\\u00fc\\ud83d\\ude00\\/\\b\\f\\n\\r\\t\",7,null,1,null,null,\"newer\",9]"), &back,
	             &room));
	CHECK(str_eq(back.text, STR("\xc3\xbc\xf0\x9f\x98\x80/\b\f\n\r\t")) && back.number == 7 && back.version == 4);
	free(room);
	CHECK(unpack(STR("[2, \"k\", null,  7]"), &back, &room) && str_eq(back.key, STR("k")) && back.number == 7);
	free(room);
	CHECK(unpack(STR("[1]"), &back, &room) && back.version == 1 && !back.key.n);
	free(room);
}

TEST(what_is_no_record_is_refused)
{
	static const char *const bad[] = {
		"",
		"[",
		"[]",
		"{}",
		"null",
		"[\"1\"]",
		"[1",
		"[1,",
		"[1,\"k",
		"[1,\"k\\",
		"[1,\"k\\u12",
		"[1,\"k\\u12\"]",
		"[1,\"k\\q\"]",
		"[1,7]",
		"[1,\"k\",\"t\",\"7\"]",
		"[1,\"k\"x]",
		"[1,nul]",
		"[1,\"k\",nulL]",
		"[1,{}]",
		"[1,[2]]",
		"[1,\"k\",1.5]",
		"[1,true]",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct item back;
		char       *room;

		CASE(bad[i]);
		CHECK(!unpack(str_from(bad[i]), &back, &room));
		free(room);
	}
}

TEST(numbers_are_what_printf_would_write)
{
	for (int i = 0; i < 64 * 5; i++)
		for (int sign = -1; sign <= 1; sign += 2) {
			int64_t number = sign * (int64_t)((1ull << (i / 5)) / 2 + (uint64_t)(i % 5) * 9);
			char    ours[DIGITS_MAX + 1] = "", theirs[32];

			*digits_put(ours, number) = '\0';
			snprintf(theirs, sizeof(theirs), "%lld", (long long)number);
			CHECK(strcmp(ours, theirs) == 0);
		}
}

static void check_number(int64_t number)
{
	char ours[DIGITS_MAX + 1], theirs[32];

	*digits_put(ours, number) = '\0';
	snprintf(theirs, sizeof(theirs), "%lld", (long long)number);
	CHECK(strcmp(ours, theirs) == 0);
}

TEST(numbers_around_each_power_of_ten_are_what_printf_would_write)
{
	int64_t power = 1;

	for (int digits = 1; digits <= 18; digits++, power *= 10)
		for (int64_t more = -1; more <= 1; more++) {
			check_number(power + more);
			check_number(-power + more);
		}
	check_number(power);
	check_number(INT64_MAX);
	check_number(INT64_MIN);
	check_number(INT64_MIN + 1);
}

/* Behind the end there may be anything: it is looked at, and never believed. */
TEST(numbers_are_read_up_to_their_end_whatever_follows)
{
	static const int64_t numbers[] = { 0,
		                           1,
		                           9,
		                           10,
		                           99,
		                           12345678,
		                           123456789,
		                           99999999,
		                           100000000,
		                           1795111236,
		                           -1,
		                           -9,
		                           -10,
		                           -1234567890,
		                           9999999999,
		                           INT64_MAX,
		                           INT64_MIN,
		                           1000000000000000000,
		                           1234567890123456,
		                           9999999999999999,
		                           10000000000000000 };

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		for (int slack = 0; slack < 3; slack++) {
			char        text[64 + ROW_SLACK];
			int         n = snprintf(text, sizeof(text), "[1,\"k\",null,%lld]", (long long)numbers[i]);
			struct item back = { 0 };
			char        ours[DIGITS_MAX];

			CASE(text);
			CHECK(str_eq(str_of(ours, (size_t)(digits_put(ours, numbers[i]) - ours)),
			             str_of(text + sizeof("[1,\"k\",null,") - 1,
			                    (size_t)n - sizeof("[1,\"k\",null,"))));
			memset(text + n, "7,n"[slack], ROW_SLACK);
			CHECK(row_unpack(&item_type, ~0ull, text, (size_t)n, &back) && back.number == numbers[i]);
			n = snprintf(text, sizeof(text), "[1,\"k\",null,%lld", (long long)numbers[i]); /* cut off */
			memset(text + n, "7,]"[slack], ROW_SLACK);
			CHECK(!row_unpack(&item_type, ~0ull, text, (size_t)n, &back));
		}
}

TEST(what_is_cut_off_anywhere_is_refused)
{
	static const char whole[] = "[12,\"k\\u0041k\",\"abcdefghijklmnopqrstuvwxyz\",1795111236, null,1,null,\"z\"]";

	for (size_t n = 0; n < sizeof(whole); n++) {
		struct item back;
		char       *room;

		CHECK(unpack(str_of(whole, n), &back, &room) == (n == sizeof(whole) - 1));
		free(room);
	}
}

TEST(hexadecimal_digits_are_what_printf_would_write_and_nothing_else_is_read)
{
	for (int i = 0; i < 32 * 16; i++) {
		uint32_t number = (uint32_t)(i % 16) << (i / 16) ^ 0x01234567u * (uint32_t)i, back;
		char     theirs[9];

		snprintf(theirs, sizeof(theirs), "%08x", number);
		CHECK(digits_hex(number) == octets_at(theirs));
		CHECK(digits_read_hex(octets_at(theirs), &back) && back == number);
	}
	for (int c = 0; c < 256; c++)
		for (int at = 0; at < 8; at++) {
			char     text[9] = "12ab89ef";
			uint32_t back;

			text[at] = (char)c;
			CHECK(digits_read_hex(octets_at(text), &back) ==
			      ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')));
		}
}

TEST(a_time_key_is_a_number_in_the_order_of_keys)
{
	static const char *const ids[] = {
		"",
		"0000",
		"01910000-0000-6fff-8000-000000000000",
		"01910000-0000-7000-8000-000000000000",
		"01910000-0000-7000-8000-000000000001",
		"01910000-0000-7001-8000-000000000000",
		"01910000-0000-7fff-8000-000000000000",
		"01910000-0000-8000-8000-000000000000",
		"01910000-0001",
		"01910000-0001-7000-8000-000000000000",
		"01910000-000A",
		"01910000-000a-7000-8000-000000000000",
		"0191z",
		"a1910000-0000-7000-8000-000000000000",
		"thing",
	};
	int64_t last = 0, seq;

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		CASE(ids[i]);
		CHECK(row_of_time_key(str_from(ids[i]), &seq) == (strlen(ids[i]) == 36 && ids[i][14] == '7'));
		CHECK(seq >= last && seq % ROW_SLOTS == 0);
		last = seq;
	}
	CHECK(row_of_time_key(STR("01910000-0000-7001-8000-000000000000"), &seq) &&
	      seq == (int64_t)((0x019100000000ull << 12 | 1) * ROW_SLOTS));
}

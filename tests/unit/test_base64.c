/* SPDX-License-Identifier: Apache-2.0 */
/* test_base64.c - one text for each sequence of bytes, and no other text is taken. */
#include "test.h"

#include "base/arena.h"
#include "base/base64.h"
#include "base/id.h"

TEST(bytes_of_every_length_come_back)
{
	struct arena a = { 0 };
	char         bytes[64];

	for (int round = 0; round < 50; round++)
		for (size_t n = 0; n <= sizeof(bytes); n++) {
			struct str text, back;

			id_random(bytes, sizeof(bytes));
			text = base64url_encode(&a, str_of(bytes, n));
			CHECK(text.n == (n * 4 + 2) / 3);
			CHECK(base64url_decode(&a, text, &back) && str_eq(back, str_of(bytes, n)));
		}
	arena_fini(&a);
}

TEST(known_texts_are_made)
{
	static const struct {
		struct str bytes, text;
	} rows[] = {
		{ STR_INIT(""), STR_INIT("") },           { STR_INIT("f"), STR_INIT("Zg") },
		{ STR_INIT("fo"), STR_INIT("Zm8") },      { STR_INIT("foo"), STR_INIT("Zm9v") },
		{ STR_INIT("foob"), STR_INIT("Zm9vYg") }, { STR_INIT("\xfb\xff\xfe"), STR_INIT("-__-") },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		CHECK(str_eq(base64url_encode(&a, rows[i].bytes), rows[i].text));
	arena_fini(&a);
}

TEST(anything_else_is_refused)
{
	static const struct str bad[] = {
		STR_INIT("A"),    STR_INIT("AAAAA"), STR_INIT("Zg=="),   STR_INIT("Zm8="),    STR_INIT("Zh"),
		STR_INIT("Zm9"),  STR_INIT("Z g"),   STR_INIT("Zm9v\n"), STR_INIT("+///"),    STR_INIT("Zm+v"),
		STR_INIT("Zm/v"), STR_INIT("Z\0"),   STR_INIT("\0\0"),   STR_INIT("Zm9\xc3"), STR_INIT("Zm.v"),
	};
	struct arena a = { 0 };
	struct str   untouched = STR("untouched");

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CASE(bad[i].p);
		CHECK(!base64url_decode(&a, bad[i], &untouched));
		CHECK(str_eq(untouched, STR("untouched")));
	}
	arena_fini(&a);
}

TEST(every_text_that_is_taken_is_the_one_that_would_be_made)
{
	struct arena a = { 0 };

	for (int first = 0; first < 256; first++)
		for (int second = 0; second < 256; second++) {
			char       text[2] = { (char)first, (char)second };
			struct str bytes;

			arena_reset(&a);
			if (base64url_decode(&a, str_of(text, 2), &bytes))
				CHECK(str_eq(base64url_encode(&a, bytes), str_of(text, 2)));
		}
	arena_fini(&a);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_urlform.c - escapes, query parameters, cursors and Prefer, row by row. */
#include "test.h"

#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "http/api/urlform.h"

TEST(escapes_are_undone_or_refused)
{
	static const struct {
		const char *text, *decoded; /* NULL: refused */
	} rows[] = {
		{ "", "" },         { "plain", "plain" }, { "a%2Fb", "a/b" }, { "%41%61", "Aa" },
		{ "%25%32", "%2" }, { "a+b", "a+b" },     { "%20", " " },     { "%c3%BC", "\xc3\xbc" },
		{ "%", NULL },      { "%4", NULL },       { "a%4", NULL },    { "%4g", NULL },
		{ "%g4", NULL },    { "%%41", NULL },     { "%00", NULL },    { "%0a", NULL },
		{ "%1f", NULL },    { "%7", NULL },
	};
	struct arena a = { 0 };
	struct str   got;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE(rows[i].text);
		CHECK(url_decode(&a, str_from(rows[i].text), &got) == (rows[i].decoded != NULL));
		CHECK(!rows[i].decoded || str_eq(got, str_from(rows[i].decoded)));
	}
	arena_fini(&a);
}

TEST(a_query_parameter_is_found_once_and_decoded)
{
	static const struct {
		const char *query, *value; /* NULL: refused */
	} rows[] = {
		{ "", "" },          { "other=1", "" },    { "x=1", "1" },       { "a=2&x=1&b=3", "1" },
		{ "xx=1&x=2", "2" }, { "x=a%3Db", "a=b" }, { "x=a=b", "a=b" },   { "&&x=1&", "1" },
		{ "x=1&x=1", NULL }, { "x=", NULL },       { "x", NULL },        { "x=%zz", NULL },
		{ "X=1", "" },       { "%78=1", "" },      { "x=1&y=%zz", "1" },
	};
	struct arena a = { 0 };
	struct str   got;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE(rows[i].query);
		CHECK((url_query(&a, str_from(rows[i].query), "x", &got, NULL) == RC_OK) == (rows[i].value != NULL));
		CHECK(!rows[i].value || str_eq(got, str_from(rows[i].value)));
	}
	arena_fini(&a);
}

TEST(a_cursor_comes_back_only_to_its_own_list)
{
	static const char *const inners[] = { "1", "42:1000", "7:name with blanks", " ", "x:\xc3\xbc" };
	struct arena             a = { 0 };
	struct str               back;

	for (size_t i = 0; i < ARRAY_LEN(inners); i++) {
		struct str text = cursor_wrap(&a, "stale", str_from(inners[i]));

		CASE(inners[i]);
		CHECK(cursor_unwrap(&a, "stale", text, &back) && str_eq(back, str_from(inners[i])));
		CHECK(!cursor_unwrap(&a, "*", text, &back) && !cursor_unwrap(&a, "stal", text, &back));
	}
	arena_fini(&a);
}

TEST(a_cursor_that_was_changed_is_noticed)
{
	struct arena a = { 0 };
	struct str   text = cursor_wrap(&a, "*", STR("123:456")), back;
	char        *changed = arena_copy(&a, text.p, text.n);

	for (size_t i = 0; i < text.n; i++) {
		changed[i] = (char)(changed[i] == 'A' ? 'B' : 'A');
		if (changed[i] != text.p[i])
			CHECK(!cursor_unwrap(&a, "*", str_of(changed, text.n), &back));
		changed[i] = text.p[i];
		CHECK(!cursor_unwrap(&a, "*", str_of(text.p, i), &back));
	}
	CHECK(!cursor_unwrap(&a, "*", base64url_encode(&a, STR("0000000000000000 * 1")), &back));
	CHECK(!cursor_unwrap(&a, "*", cursor_wrap(&a, "*", STR("")), &back));
	arena_fini(&a);
}

TEST(preferences_are_read_and_others_passed_over)
{
	static const struct {
		const char *header;
		int64_t     wait_sec;
		bool        is_async;
	} rows[] = {
		{ "", -1, false },
		{ "wait=5", 5, false },
		{ "wait = 5", 5, false },
		{ "WAIT=0", 0, false },
		{ "respond-async", -1, true },
		{ "Respond-Async, wait=10", 10, true },
		{ "return=minimal,wait=7 , x", 7, false },
		{ "wait", -1, false },
		{ "wait=", -1, false },
		{ "wait=-1", -1, false },
		{ "wait=1.5", -1, false },
		{ "waiting=5", -1, false },
		{ ",,;=,=", -1, false },
		{ "wait=1000000", 1000000, false },
		{ "wait=1000001", 1000000, false },
		{ "wait=9223372036854775807", 1000000, false },
		{ "wait=5, wait=6", 5, false },
		{ "wait=x, wait=6", -1, false },
		{ "wait=5; priority=high", 5, false },
		{ "respond-async; x=y, wait=3", 3, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t wait_sec;
		bool    is_async;

		CASE(rows[i].header);
		prefer_parse(str_from(rows[i].header), &wait_sec, &is_async);
		CHECK(wait_sec == rows[i].wait_sec && is_async == rows[i].is_async);
	}
}

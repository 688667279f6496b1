/* SPDX-License-Identifier: Apache-2.0 */
/* test_yaml.c - YAML as a configuration uses it, and the traps that it sets for those who write it. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/yaml.h"

static char *as_json(struct str text)
{
	json_t    *value = NULL;
	struct err e = { 0 };
	char      *json;

	if (yaml_parse(text, &value, &e)) {
		CHECK(e.rc == RC_INVALID && e.msg[0]);
		return mem_strdup(e.msg);
	}
	json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	json_decref(value);
	return json;
}

TEST(texts_become_the_values_that_they_look_like)
{
	static const struct {
		const char *yaml, *json;
	} rows[] = {
		{ "a: 1\nb: [x, y]\nc:\n  d: true\n", "{\"a\":1,\"b\":[\"x\",\"y\"],\"c\":{\"d\":true}}" },
		{ "", "null" },
		{ "# only a comment\n", "null" },
		{ "---\na: 1\n...\n", "{\"a\":1}" },
		{ "a:\n", "{\"a\":null}" },
		{ "a: ~\nb: null\nc: ''\n", "{\"a\":null,\"b\":null,\"c\":\"\"}" },
		{ "a: 50.5\nb: -3\nc: 1e3", "{\"a\":50.5,\"b\":-3,\"c\":1000.0}" },
		{ "t: |\n  one\n  two\n", "{\"t\":\"one\\ntwo\\n\"}" },
		{ "t: >-\n  one\n  two\n", "{\"t\":\"one two\"}" },
		{ "{\"a\": [1, \"x\", false, null]}", "{\"a\":[1,\"x\",false,null]}" },
		{ "a: '1'\nb: \"true\"", "{\"a\":\"1\",\"b\":\"true\"}" },
		{ "a: 9223372036854775807", "{\"a\":9223372036854775807}" },
		{ "a: gr\xc3\xbc\xc3\x9f", "{\"a\":\"gr\xc3\xbc\xc3\x9f\"}" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *got = as_json(str_from(rows[i].yaml));

		CASE(rows[i].yaml);
		CHECK(strcmp(got, rows[i].json) == 0);
		free(got);
	}
}

/* Norway, octal numbers, sexagesimal numbers, numbers with underscores, versions, dates, and what is too large for a
 * number. */
TEST(what_only_looks_like_something_else_is_text)
{
	static const char *const words[] = { "no",         "No",
		                             "NO",         "yes",
		                             "on",         "off",
		                             "y",          "n",
		                             "007",        "0o7",
		                             "0x1F",       "1_000",
		                             "12:30",      "1.",
		                             ".5",         "+1",
		                             ".inf",       ".nan",
		                             "2026-11-15", "1.2.3",
		                             "-",          "nulL",
		                             "tRUE",       "=",
		                             "1e999",      "99999999999999999999",
		                             "<<" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		char  text[64], wanted[64];
		char *got;

		snprintf(text, sizeof(text), "a: %s\n", words[i]);
		snprintf(wanted, sizeof(wanted), "{\"a\":\"%s\"}", words[i]);
		if (strcmp(words[i], "-") == 0)
			continue; /* an empty list item there, see below */
		got = as_json(str_from(text));
		CASE(text);
		CHECK(strcmp(got, wanted) == 0);
		free(got);
	}
}

TEST(what_is_refused_says_where_and_why)
{
	static const struct {
		const char *yaml, *why;
	} rows[] = {
		{ "a: &x 1\nb: *x\n", "line 1 column 4: anchors" },
		{ "a: *x\n", "line 1 column 4: aliases" },
		{ "&x a: 1\n", "anchors" },
		{ "a: [1, &x [2]]\n", "anchors" },
		{ "a: &x {b: 1}\n", "anchors" },
		{ "a: !!str 1\n", "tags" },
		{ "a: !thing {b: 1}\n", "tags" },
		{ "a: ! 1\n", "tags" },
		{ "a: 1\nb: 2\na: 3\n", "line 3: the key 'a' appears twice" },
		{ "x:\n  a: 1\n  'a': 3\n", "line 3: the key 'a' appears twice" },
		{ "{\"a\":1,\"a\":2}", "the key 'a' appears twice" },
		{ "a: 1\n---\nb: 2\n", "one document" },
		{ "a: 1\n...\nb: 2\n", "line 3 column 1: did not find expected <document start>" },
		{ "[1]: 2\n", "a key must be a text" },
		{ "? {a: 1}\n: 2\n", "a key must be a text" },
		{ "a: \"x\\0y\"\n", "NUL" },
		{ "\"a\\0\": 1\n", "NUL" },
		{ "a: [1, 2\n", "line 2 column 1" },
		{ "a: b: c\n", "line 1 column 5" },
		{ "\ta: 1\n", "line 1" },
		{ "a: \xff\xfe\n", "line 1" },
		{ "a: \"\\ud800\"\n", "line 1" },
		{ "a: @x\n", "line 1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *got = as_json(str_from(rows[i].yaml));

		CASE(rows[i].yaml);
		if (!strstr(got, rows[i].why))
			print_error("%s\n", got);
		CHECK(strstr(got, rows[i].why) != NULL);
		free(got);
	}
}

static char *nested(int depth, char open, char close)
{
	char *text = mem_alloc((size_t)depth * 2 + 1);

	memset(text, open, (size_t)depth);
	memset(text + depth, close, (size_t)depth);
	return text;
}

TEST(depth_and_size_have_a_limit)
{
	static const struct {
		int  depth;
		bool is_taken;
	} rows[] = { { YAML_DEPTH_MAX, true }, { YAML_DEPTH_MAX + 1, false }, { 5000, false } };
	char      *long_text = mem_alloc(YAML_BYTES_MAX + 1);
	json_t    *value = NULL;
	struct err e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char *text = nested(rows[i].depth, '[', ']'), *got = as_json(str_from(text));

		CHECK((got[0] == '[') == rows[i].is_taken);
		free(text);
		free(got);
	}
	memset(long_text, 'x', YAML_BYTES_MAX + 1);
	CHECK(yaml_parse(str_of(long_text, YAML_BYTES_MAX), &value, &e) == RC_OK);
	json_decref(value);
	CHECK(yaml_parse(str_of(long_text, YAML_BYTES_MAX + 1), &value, &e) == RC_INVALID);
	CHECK(strstr(e.msg, "at most 131072") != NULL);
	free(long_text);
}

TEST(plain_is_what_needs_no_quotes)
{
	static const char *const plain[] = { "alpha", "a b", "https://example.org/x?y=1", "team-1",
		                             "gr\xc3\xbc\xc3\x9f" };
	static const char *const quoted[] = { "",
		                              "no",
		                              "true",
		                              "null",
		                              "12",
		                              "1st",
		                              " a",
		                              "a ",
		                              "a: b",
		                              "- a",
		                              "#x",
		                              "a #b",
		                              "'x'",
		                              "a\nb",
		                              "[x]",
		                              "{x}",
		                              "*x",
		                              "&x",
		                              "!x",
		                              "%x",
		                              "@x",
		                              "`x",
		                              "|",
		                              ">",
		                              "? a",
		                              "-",
		                              "a:",
		                              "~",
		                              "x,y",
		                              "---",
		                              "a\xe2\x80\xa8"
		                              "b",
		                              "a\xc2\x85"
		                              "b",
		                              "..." };

	for (size_t i = 0; i < ARRAY_LEN(plain); i++) {
		CASE(plain[i]);
		CHECK(yaml_is_plain(str_from(plain[i])));
	}
	for (size_t i = 0; i < ARRAY_LEN(quoted); i++) {
		CASE(quoted[i]);
		CHECK(!yaml_is_plain(str_from(quoted[i])));
	}
}

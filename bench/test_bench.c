/* SPDX-License-Identifier: Apache-2.0 */
/* test_bench.c - the parts of the load generator whose mistakes would look like results. */
#include "test.h"

#include <stdlib.h>

#include "base/id.h"
#include "histogram.h"
#include "idset.h"
#include "reply.h"

#define OK     "HTTP/1.1 200 OK\r\n"
#define LENGTH "Content-Length: "

/* clang-format off */
static const struct {
	const char      *label;
	const char      *bytes;
	enum reply_state state;
	int              status;
	size_t           body;
} replies[] = {
	{ "no bytes are no reply yet",             "", REPLY_PARTIAL, 0, 0 },
	{ "a head without its end is partial",     "HTTP/1.1 201 x\r\n" LENGTH "0\r\n", REPLY_PARTIAL, 0, 0 },
	{ "a reply without body is whole",         "HTTP/1.1 409 x\r\n" LENGTH "0\r\n\r\n", REPLY_WHOLE, 409, 0 },
	{ "a body is counted to its last byte",    "HTTP/1.1 201 x\r\n" LENGTH "4\r\n\r\nabcd", REPLY_WHOLE, 201, 4 },
	{ "a body that lacks a byte is partial",   "HTTP/1.1 201 x\r\n" LENGTH "4\r\n\r\nabc", REPLY_PARTIAL, 0, 0 },
	{ "a header's case does not matter",       OK "content-LENGTH:2 \r\n\r\nok", REPLY_WHOLE, 200, 2 },
	{ "a body may contain an empty line",      OK LENGTH "6\r\n\r\na\r\n\r\nb", REPLY_WHOLE, 200, 6 },
	{ "204 needs no length",                   "HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n", REPLY_WHOLE, 204, 0 },
	{ "no length cannot be framed",            OK "Date: x\r\n\r\n", REPLY_BROKEN, 0, 0 },
	{ "a negative length is refused",          OK LENGTH "-1\r\n\r\n", REPLY_BROKEN, 0, 0 },
	{ "an endless length is refused",          OK LENGTH "99999999999999999999999\r\n\r\n", REPLY_BROKEN, 0, 0 },
	{ "an interim reply is refused",           "HTTP/1.1 100 Continue\r\n\r\n", REPLY_BROKEN, 0, 0 },
	{ "another protocol is refused",           "SSH-2.0-OpenSSH_9.2\r\n\r\n", REPLY_BROKEN, 0, 0 },
};

static const struct {
	const char *label;
	const char *body;
	const char *id;
} bodies[] = {
	{ "compact JSON has an id",     "{\"sandbox_id\":\"a-1\",\"name\":\"b\"}", "a-1" },
	{ "spaced JSON has an id",      "{\"name\": \"b\", \"sandbox_id\" : \"a-1\"}", "a-1" },
	{ "another field is no id",     "{\"id\":\"a-1\"}", "" },
	{ "a number is no id",          "{\"sandbox_id\":17,\"name\":\"b\"}", "" },
	{ "an id without end is none",  "{\"sandbox_id\":\"a-1", "" },
	{ "a key without value is none", "{\"sandbox_id\"", "" },
	{ "an empty body has no id",    "", "" },
};
/* clang-format on */

TEST(replies_are_framed_by_their_length)
{
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		struct reply     r = { 0 };
		struct str       bytes = str_from(replies[i].bytes);
		enum reply_state state = reply_parse(bytes, &r);

		CASE(replies[i].label);
		CHECK(state == replies[i].state);
		CHECK(r.status == replies[i].status);
		CHECK(r.body.n == replies[i].body);
		CHECK(r.size == (state == REPLY_WHOLE ? bytes.n : 0));
	}
}

TEST(a_reply_is_partial_until_its_last_byte)
{
	for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
		struct str whole = str_from(replies[i].bytes);

		CASE(replies[i].label);
		for (size_t n = 0; replies[i].state == REPLY_WHOLE && n < whole.n; n++) {
			struct reply r = { 0 };
			char        *part = malloc(n + 1); /* its own block, so that reading past n is seen */

			CHECK(part != NULL);
			memcpy(part, whole.p, n);
			part = realloc(part, n ? n : 1);
			CHECK(part != NULL);
			CHECK(reply_parse(str_of(part, n), &r) == REPLY_PARTIAL);
			CHECK(r.size == 0);
			free(part);
		}
	}
}

TEST(bytes_behind_a_reply_are_not_part_of_it)
{
	struct reply r;

	CHECK(reply_parse(STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1"), &r) == REPLY_WHOLE);
	CHECK(r.size == 40);
	CHECK(str_eq(r.body, STR("ok")));
}

TEST(a_sandbox_id_is_found_or_empty)
{
	for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
		CASE(bodies[i].label);
		CHECK(str_eq(reply_sandbox_id(str_from(bodies[i].body)), str_from(bodies[i].id)));
	}
}

static struct histogram *histogram_upto(uint64_t max)
{
	struct histogram *h = calloc(1, sizeof(*h));

	CHECK(h != NULL);
	for (uint64_t v = 1; v <= max; v++)
		histogram_add(h, v);
	return h;
}

TEST(quantiles_are_never_too_small_and_at_most_a_64th_too_large)
{
	static const double parts[] = { 0.01, 0.5, 0.9, 0.99, 0.999, 1.0 };
	const uint64_t      max = 1000000;
	struct histogram   *h = histogram_upto(max);

	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		double exact = parts[i] * (double)max;
		double kept = (double)histogram_quantile(h, parts[i]);

		CHECK(kept >= exact - 0.5);
		CHECK(kept <= exact * (1 + 1.0 / 64) + 1);
	}
	CHECK(h->count == max);
	CHECK(histogram_quantile(h, 1.0) == max);
	free(h);
}

TEST(a_histogram_takes_every_value)
{
	struct histogram *h = calloc(1, sizeof(*h));

	CHECK(h != NULL);
	CHECK(histogram_quantile(h, 0.5) == 0);
	histogram_add(h, 0);
	CHECK(histogram_quantile(h, 1.0) == 0);
	histogram_add(h, UINT64_MAX);
	CHECK(histogram_quantile(h, 1.0) == UINT64_MAX);
	for (unsigned bit = 0; bit < 64; bit++)
		histogram_add(h, 1ull << bit);
	CHECK(h->count == 66);
	free(h);
}

TEST(a_repeated_id_is_counted_once_for_each_repeat)
{
	struct idset s = { 0 };
	char         uuid[ID_UUID_SIZE];

	CHECK(idset_repeats(&s) == 0);
	for (int i = 0; i < 20000; i++) {
		id_uuid(uuid);
		CHECK(idset_add(&s, str_from(uuid)));
	}
	CHECK(idset_repeats(&s) == 0);
	CHECK(idset_add(&s, str_from(uuid)));
	CHECK(idset_add(&s, str_from(uuid)));
	CHECK(idset_add(&s, str_of(uuid, 35)));
	CHECK(idset_repeats(&s) == 2);
	idset_fini(&s);
}

TEST(an_id_that_does_not_fit_is_refused)
{
	struct idset s = { 0 };
	char         text[IDSET_ID_MAX + 1];

	memset(text, 'x', sizeof(text));
	CHECK(idset_add(&s, str_of(text, IDSET_ID_MAX)));
	CHECK(!idset_add(&s, str_of(text, IDSET_ID_MAX + 1)));
	CHECK(!idset_add(&s, STR("")));
	CHECK(s.count == 1);
	idset_fini(&s);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http1.c - however the bytes are split, the parser stays within them and its verdict is the same.
 *
 * The first byte of the input chooses the size of the pieces of the second run; the rest is the request.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "net/http1.h"

enum { BODY_MAX = 64 };

struct run {
	struct http_parser  parser;
	struct http_request req;
	char               *bytes;
	size_t              n;
};

static void feed(struct run *r, const char *input, size_t size, size_t piece)
{
	enum http_verdict verdict = HTTP_NEED_MORE;

	http_parser_init(&r->parser);
	r->bytes = NULL;
	r->n = 0;
	for (size_t given = 0; given < size && verdict == HTTP_NEED_MORE;) {
		size_t more = size - given < piece ? size - given : piece;

		r->bytes = mem_resize(r->bytes, r->n + more);
		memcpy(r->bytes + r->n, input + given, more);
		r->n += more;
		given += more;
		verdict = http_parse(&r->parser, r->bytes, &r->n);
		if (verdict != HTTP_HEAD_DONE)
			continue;
		http_parser_allow(&r->parser, BODY_MAX);
		verdict = http_parse(&r->parser, r->bytes, &r->n);
	}
}

static void must_be_inside(const struct run *r, struct str s)
{
	must(str_eq(s, STR("/")) || (s.p >= r->bytes && s.p + s.n <= r->bytes + r->parser.used));
}

static void check_request(struct run *r)
{
	http_parser_request(&r->parser, r->bytes, &r->req);
	must(r->parser.used <= r->n);
	must(r->req.method.n > 0 && r->req.path.n > 0);
	must(r->req.path.p[0] == '/' || r->req.path.p[0] == '*');
	must(r->req.body.n <= BODY_MAX);
	must_be_inside(r, r->req.path);
	must_be_inside(r, r->req.query);
	must_be_inside(r, r->req.body);
	for (size_t i = 0; i < r->req.header_count; i++) {
		must(r->req.headers[i].name.n > 0);
		must_be_inside(r, r->req.headers[i].name);
		must_be_inside(r, r->req.headers[i].value);
		must(!memchr(r->req.headers[i].value.p, '\n', r->req.headers[i].value.n));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct run whole, pieces;

	if (size < 2)
		return 0;
	feed(&whole, (const char *)data + 1, size - 1, size);
	feed(&pieces, (const char *)data + 1, size - 1, (size_t)data[0] + 1);
	must(whole.parser.verdict == pieces.parser.verdict);
	must(whole.parser.status == pieces.parser.status && whole.parser.why == pieces.parser.why);
	if (whole.parser.verdict == HTTP_DONE) {
		check_request(&whole);
		check_request(&pieces);
		must(whole.parser.used == pieces.parser.used);
		must(memcmp(whole.bytes, pieces.bytes, whole.parser.used) == 0);
		must(str_eq(whole.req.body, pieces.req.body));
	}
	free(whole.bytes);
	free(pieces.bytes);
	return 0;
}

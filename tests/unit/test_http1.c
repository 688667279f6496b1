/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_http1.c - the probe table is the parser's specification.
 *
 * Every row is fed at once, byte by byte and in every two-way split, and the bytes lie at another address at each call:
 * the outcome must always be the same.
 */
#include "test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "net/http1.h"

enum { BODY_MAX = 16, DONE = 200, MORE = 0 };

struct probe {
	const char *label;
	struct str  bytes;
	int         expected; /* DONE, MORE, or the status of the refusal */
};

#define H   "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n" H

/* clang-format off */
static const struct probe probes[] = {
	{ "a plain request",                     STR_INIT(GET "\r\n"), DONE },
	{ "many headers of all kinds",           STR_INIT(GET "Accept: */*\r\nX-A:\r\nX-B: \t b \t \r\nX!#$%&'*+-.^_`|~9: x\r\n\r\n"), DONE },
	{ "bytes over 127 in a value",           STR_INIT(GET "X: \xc3\xa9\xff\r\n\r\n"), DONE },
	{ "a query",                             STR_INIT("GET /a/b?c=d&e=%2F?x HTTP/1.1\r\n" H "\r\n"), DONE },
	{ "one empty line before",               STR_INIT("\r\n" GET "\r\n"), DONE },
	{ "two empty lines before",              STR_INIT("\r\n\r\n" GET "\r\n"), 400 },
	{ "a body by length",                    STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"), DONE },
	{ "a body by length, and more behind",   STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabcGET"), DONE },
	{ "a length of zero",                    STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n"), DONE },
	{ "a length with leading zeros",         STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 003\r\n\r\nabc"), DONE },
	{ "a body that is not all there",        STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nab"), MORE },
	{ "chunks",                              STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), DONE },
	{ "chunks, and more behind",             STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP"), DONE },
	{ "no chunk but the last",               STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), DONE },
	{ "chunk size with zeros and letters",   STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n00A\r\n0123456789\r\n0\r\n\r\n"), DONE },
	{ "a chunk extension",                   STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n"), DONE },
	{ "chunks that are not all there",       STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r"), MORE },
	{ "HTTP/1.0 without Host",               STR_INIT("GET / HTTP/1.0\r\n\r\n"), DONE },
	{ "OPTIONS *",                           STR_INIT("OPTIONS * HTTP/1.1\r\n" H "\r\n"), DONE },
	{ "absolute form",                       STR_INIT("GET http://a/x?y HTTP/1.1\r\n" H "\r\n"), DONE },
	{ "absolute form without path",          STR_INIT("GET HTTPS://A HTTP/1.1\r\n" H "\r\n"), DONE },
	{ "Expect: 100-continue",                STR_INIT("POST / HTTP/1.1\r\n" H "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\nx"), DONE },
	{ "Host with a port",                    STR_INIT("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n"), DONE },
	{ "nothing",                             STR_INIT(""), MORE },
	{ "half a head",                         STR_INIT("GET / HTTP/1.1\r\nHost: a\r"), MORE },

	{ "Content-Length and chunked",          STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "chunked and Content-Length",          STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"), 400 },
	{ "two different Content-Length",        STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc"), 400 },
	{ "two equal Content-Length",            STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"), 400 },
	{ "a list of Content-Length",            STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 3, 3\r\n\r\nabc"), 400 },
	{ "Content-Length: +2",                  STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: +2\r\n\r\nab"), 400 },
	{ "Content-Length: -2",                  STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: -2\r\n\r\nab"), 400 },
	{ "Content-Length: 0x2",                 STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 0x2\r\n\r\nab"), 400 },
	{ "Content-Length without a number",     STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n"), 400 },
	{ "Content-Length with a blank inside",  STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 1 2\r\n\r\n"), 400 },
	{ "Content-Length over 64 bits",         STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 18446744073709551619\r\n\r\nabc"), 413 },
	{ "Content-Length over the limit",       STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 17\r\n\r\n"), 413 },
	{ "Content-Length at the limit",         STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length: 16\r\n\r\n0123456789abcdef"), DONE },
	{ "two Transfer-Encoding",               STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "Transfer-Encoding: gzip, chunked",    STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "Transfer-Encoding: identity",         STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n"), 400 },
	{ "Transfer-Encoding: xchunked",         STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "Transfer-Encoding: chunked;q=1",      STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"), 400 },
	{ "Transfer-Encoding without a value",   STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n"), 400 },
	{ "chunked with HTTP/1.0",               STR_INIT("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 400 },
	{ "a blank before the colon",            STR_INIT(GET "X : y\r\n\r\n"), 400 },
	{ "a tab before the colon",              STR_INIT(GET "X\t: y\r\n\r\n"), 400 },
	{ "a blank before Content-Length's colon", STR_INIT("POST / HTTP/1.1\r\n" H "Content-Length : 3\r\n\r\nabc"), 400 },
	{ "a folded header",                     STR_INIT(GET "X: y\r\n z\r\n\r\n"), 400 },
	{ "a header folded with a tab",          STR_INIT(GET "X: y\r\n\tz\r\n\r\n"), 400 },
	{ "a blank before the first header",     STR_INIT("GET / HTTP/1.1\r\n Host: a\r\n\r\n"), 400 },
	{ "a line of blanks for the empty line", STR_INIT(GET " \r\n\r\n"), 400 },
	{ "lines that end with LF alone",        STR_INIT("GET / HTTP/1.1\nHost: a\n\n"), 400 },
	{ "a header that ends with LF alone",    STR_INIT("GET / HTTP/1.1\r\nHost: a\n\r\n"), 400 },
	{ "an empty line of LF alone",           STR_INIT(GET "\n"), 400 },
	{ "CR alone inside a header",            STR_INIT(GET "X: a\rb\r\n\r\n"), 400 },
	{ "CR alone at the end of a header",     STR_INIT(GET "X: a\r\r\n\r\n"), 400 },
	{ "CR LF CR X ends no head",             STR_INIT(GET "\rX"), 400 },
	{ "NUL in a value",                      STR_INIT(GET "X: a\0b\r\n\r\n"), 400 },
	{ "NUL in a name",                       STR_INIT(GET "X\0: a\r\n\r\n"), 400 },
	{ "NUL in the target",                   STR_INIT("GET /\0 HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "DEL in a value",                      STR_INIT(GET "X: \x7f\r\n\r\n"), 400 },
	{ "a control character in a value",      STR_INIT(GET "X: \x0b\r\n\r\n"), 400 },
	{ "a header without a name",             STR_INIT(GET ": y\r\n\r\n"), 400 },
	{ "a header without a colon",            STR_INIT(GET "Xy\r\n\r\n"), 400 },
	{ "a name with a bracket",               STR_INIT(GET "X(: y\r\n\r\n"), 400 },
	{ "a name over 127",                     STR_INIT(GET "\xc3\xa9: y\r\n\r\n"), 400 },
	{ "no Host",                             STR_INIT("GET / HTTP/1.1\r\nX: y\r\n\r\n"), 400 },
	{ "an empty Host",                       STR_INIT("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 400 },
	{ "two Host",                            STR_INIT("GET / HTTP/1.1\r\n" H H "\r\n"), 400 },
	{ "two Host with HTTP/1.0",              STR_INIT("GET / HTTP/1.0\r\n" H H "\r\n"), 400 },
	{ "an empty Host and another",           STR_INIT("GET / HTTP/1.1\r\nHost:\r\n" H "\r\n"), 400 },
	{ "a Host with a path",                  STR_INIT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), 400 },
	{ "a Host with a user",                  STR_INIT("GET / HTTP/1.1\r\nHost: u@a\r\n\r\n"), 400 },
	{ "a Host with a blank",                 STR_INIT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n"), 400 },
	{ "chunk data without CR LF",            STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n"), 400 },
	{ "chunk data longer than its size",     STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "chunk data followed by CR X",         STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\rX"), 400 },
	{ "chunk data followed by LF",           STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\n0\r\n\r\n"), 400 },
	{ "a chunk size that ends with LF",      STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk extension with CR",           STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3;a\rb\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk extension with LF",           STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3;a\nb\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk size of 0x3",                 STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk size of -3",                  STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk size of +3",                  STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a blank before the chunk size",       STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n 3\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a blank behind the chunk size",       STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n"), 400 },
	{ "no chunk size",                       STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n\r\nabc\r\n0\r\n\r\n"), 400 },
	{ "a chunk size over 64 bits",           STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n"), 413 },
	{ "chunks over the limit together",      STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\n8\r\n01234567\r\n0\r\n\r\n"), 413 },
	{ "chunks at the limit together",        STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n9\r\n012345678\r\n7\r\n0123456\r\n0\r\n\r\n"), DONE },
	{ "a trailer",                           STR_INIT("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n"), 400 },
	{ "a method in lower case",              STR_INIT("get / HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a method with a colon",               STR_INIT("GE:T / HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "no method",                           STR_INIT(" / HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a method of 33 letters",              STR_INIT("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "two blanks in the request line",      STR_INIT("GET  / HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a blank behind the version",          STR_INIT("GET / HTTP/1.1 \r\n" H "\r\n"), 400 },
	{ "a tab in the request line",           STR_INIT("GET\t/ HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a blank in the target",               STR_INIT("GET /a b HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a target over 127",                   STR_INIT("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a fragment in the target",            STR_INIT("GET /#a HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a backslash in the target",           STR_INIT("GET /a\\b HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "half an escape in the target",        STR_INIT("GET /%2 HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a wrong escape in the target",        STR_INIT("GET /%zz HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "a target without a slash",            STR_INIT("GET a HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "GET *",                               STR_INIT("GET * HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "CONNECT",                             STR_INIT("CONNECT a:443 HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "absolute form of another host",       STR_INIT("GET http://b/ HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "absolute form with a user",           STR_INIT("GET http://u@a/ HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "absolute form without a host",        STR_INIT("GET http:/// HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "absolute form of another scheme",     STR_INIT("GET ftp://a/ HTTP/1.1\r\n" H "\r\n"), 400 },
	{ "no version",                          STR_INIT("GET /\r\n\r\n"), 400 },
	{ "a version in lower case",             STR_INIT("GET / http/1.1\r\n" H "\r\n"), 400 },
	{ "a version of one digit",              STR_INIT("GET / HTTP/1\r\n" H "\r\n"), 400 },
	{ "HTTP/1.2",                            STR_INIT("GET / HTTP/1.2\r\n" H "\r\n"), 505 },
	{ "HTTP/2.0",                            STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505 },
	{ "Expect of something else",            STR_INIT(GET "Expect: 200-ok\r\n\r\n"), 417 },
	{ "a TLS handshake",                     STR_INIT("\x16\x03\x01\x02\x00\x01"), 400 },
};
/* clang-format on */

struct outcome {
	enum http_verdict   verdict;
	int                 status;
	const char         *why;
	struct buf          request; /* all of it, as text */
	struct buf          rest;    /* bytes behind the request */
	struct http_request req;
};

static void describe(struct outcome *o)
{
	const struct http_request *r = &o->req;

	buf_addf(&o->request, "%.*s %.*s %.*s %.*s %d\n", STR_ARG(r->method), STR_ARG(r->target), STR_ARG(r->path),
	         STR_ARG(r->query), r->is_keep_alive);
	for (size_t i = 0; i < r->header_count; i++)
		buf_addf(&o->request, "%.*s=%.*s\n", STR_ARG(r->headers[i].name), STR_ARG(r->headers[i].value));
	buf_add_str(&o->request, r->body);
}

/* The bytes at another address, in memory of just their size, so that a look beyond the end is noticed. */
static char *moved(char *bytes, size_t n, struct str more)
{
	char *elsewhere = mem_alloc(n + more.n + 1);

	memcpy(elsewhere, bytes, n);
	memcpy(elsewhere + n, more.p, more.n);
	free(bytes);
	return mem_resize(elsewhere, n + more.n ? n + more.n : 1);
}

static enum http_verdict parse_on(struct http_parser *p, char *bytes, size_t *n)
{
	enum http_verdict verdict = http_parse(p, bytes, n);

	if (verdict != HTTP_HEAD_DONE)
		return verdict;
	http_parser_allow(p, BODY_MAX);
	return http_parse(p, bytes, n);
}

/* Feed the first piece, then pieces of step bytes. */
static struct outcome feed(struct str input, size_t first, size_t step)
{
	struct outcome     o = { .verdict = HTTP_NEED_MORE };
	struct http_parser p;
	char              *bytes = mem_alloc(1);
	size_t             n = 0, given = 0;

	buf_init(&o.request, 100000);
	buf_init(&o.rest, 100000);
	http_parser_init(&p);
	for (size_t piece = first; given < input.n && o.verdict == HTTP_NEED_MORE; piece = step) {
		if (piece > input.n - given)
			piece = input.n - given;
		bytes = moved(bytes, n, str_of(input.p + given, piece));
		n += piece;
		given += piece;
		o.verdict = parse_on(&p, bytes, &n);
	}
	if (o.verdict == HTTP_DONE) {
		http_parser_request(&p, bytes, &o.req);
		describe(&o);
		buf_add(&o.rest, bytes + p.used, n - p.used);
		buf_add(&o.rest, input.p + given, input.n - given);
	}
	o.status = o.verdict == HTTP_REFUSED ? p.status : o.verdict == HTTP_DONE ? DONE : MORE;
	o.why = p.why;
	free(bytes);
	return o;
}

static void outcome_fini(struct outcome *o)
{
	buf_fini(&o->request);
	buf_fini(&o->rest);
}

static void check_same(const struct outcome *a, struct outcome b)
{
	CHECK(a->verdict == b.verdict);
	CHECK(a->status == b.status);
	CHECK(a->why == b.why);
	CHECK(str_eq(buf_str(&a->request), buf_str(&b.request)));
	CHECK(str_eq(buf_str(&a->rest), buf_str(&b.rest)));
	outcome_fini(&b);
}

TEST(every_probe_gets_its_verdict_however_it_is_split)
{
	for (size_t i = 0; i < ARRAY_LEN(probes); i++) {
		struct str     bytes = probes[i].bytes;
		struct outcome whole = feed(bytes, bytes.n, bytes.n);

		CASE(probes[i].label);
		CHECK(whole.status == probes[i].expected);
		CHECK((whole.verdict == HTTP_REFUSED) == (whole.why != NULL));
		check_same(&whole, feed(bytes, 1, 1));
		for (size_t cut = 1; cut < bytes.n; cut++)
			check_same(&whole, feed(bytes, cut, bytes.n));
		outcome_fini(&whole);
	}
}

/* What a request is understood as. */
static void check_request(const char *bytes, const char *expected, const char *rest)
{
	struct outcome o = feed(str_from(bytes), strlen(bytes), 1);

	CASE(bytes);
	CHECK(o.verdict == HTTP_DONE);
	CHECK(str_eq(buf_str(&o.request), str_from(expected)));
	CHECK(str_eq(buf_str(&o.rest), str_from(rest)));
	outcome_fini(&o);
}

TEST(a_request_is_taken_apart)
{
	check_request("GET /a?b=c HTTP/1.1\r\nHost: h:1\r\nX-Empty:\r\nX: \t a b \r\n\r\nnext",
	              "GET /a?b=c /a b=c 1\nHost=h:1\nX-Empty=\nX=a b\n", "next");
	check_request("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nabnext",
	              "POST / /  1\nHost=h\nContent-Length=2\nab", "next");
	check_request(
	        "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\nnext",
	        "POST / /  1\nHost=h\nTransfer-Encoding=chunked\nabc", "next");
	check_request("GET http://H HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://H /  1\nHost=h\n", "");
	check_request("GET http://h?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h?q / q 1\nHost=h\n", "");
	check_request("GET http://h/p?q HTTP/1.1\r\nHost: h\r\n\r\n", "GET http://h/p?q /p q 1\nHost=h\n", "");
}

TEST(a_connection_is_kept_as_the_client_asks)
{
	static const struct {
		const char *label, *bytes;
		bool        is_kept;
	} cases[] = {
		{ "1.1 keeps", GET "\r\n", true },
		{ "1.1 with close", GET "Connection: close\r\n\r\n", false },
		{ "1.1 with close in a list", GET "Connection: x, Close\r\n\r\n", false },
		{ "1.1 with close in a second header", GET "Connection: keep-alive\r\nConnection: close\r\n\r\n",
		  false },
		{ "1.1 with a longer word", GET "Connection: closed\r\n\r\n", true },
		{ "1.0 closes", "GET / HTTP/1.0\r\n\r\n", false },
		{ "1.0 with keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true },
		{ "1.0 with both", "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct outcome o = feed(str_from(cases[i].bytes), strlen(cases[i].bytes), 1);

		CASE(cases[i].label);
		CHECK(o.verdict == HTTP_DONE);
		CHECK(o.req.is_keep_alive == cases[i].is_kept);
		outcome_fini(&o);
	}
}

static void check_status(const struct buf *b, int expected)
{
	struct outcome whole = feed(buf_str(b), b->n, b->n);

	CHECK(whole.status == expected);
	check_same(&whole, feed(buf_str(b), 1, 1));
	outcome_fini(&whole);
}

static void add_many(struct buf *b, char c, size_t count)
{
	while (count--)
		buf_add_char(b, c);
}

TEST(a_target_has_a_limit)
{
	for (size_t over = 0; over <= 1; over++) {
		struct buf b;

		buf_init(&b, 100000);
		buf_add_text(&b, "GET /");
		add_many(&b, 'a', HTTP_TARGET_MAX - 1 + over);
		buf_add_text(&b, " HTTP/1.1\r\n" H "\r\n");
		CASE(over ? "one over" : "at the limit");
		check_status(&b, over ? 414 : DONE);
		buf_fini(&b);
	}
}

TEST(a_request_line_without_an_end_is_refused_at_its_limit)
{
	struct buf b;

	buf_init(&b, 100000);
	buf_add_text(&b, "GET /");
	add_many(&b, 'a', 2 * HTTP_TARGET_MAX);
	check_status(&b, 414);
	buf_fini(&b);
}

TEST(a_head_has_a_limit)
{
	for (size_t over = 0; over <= 1; over++) {
		struct buf b;

		buf_init(&b, 100000);
		buf_add_text(&b, GET "X: ");
		add_many(&b, 'a', HTTP_HEAD_MAX - b.n - 4 + over);
		buf_add_text(&b, "\r\n\r\n");
		CHECK(b.n == HTTP_HEAD_MAX + over);
		CASE(over ? "one over" : "at the limit");
		check_status(&b, over ? 431 : DONE);
		buf_fini(&b);
	}
}

TEST(headers_have_a_limit)
{
	for (size_t over = 0; over <= 1; over++) {
		struct buf b;

		buf_init(&b, 100000);
		buf_add_text(&b, GET);
		for (size_t i = 0; i < HTTP_HEADERS_MAX - 1 + over; i++)
			buf_addf(&b, "X-%zu: y\r\n", i);
		buf_add_text(&b, "\r\n");
		CASE(over ? "one over" : "at the limit");
		check_status(&b, over ? 431 : DONE);
		buf_fini(&b);
	}
}

TEST(a_chunk_line_has_a_limit)
{
	for (size_t over = 0; over <= 1; over++) {
		struct buf b;

		buf_init(&b, 100000);
		buf_add_text(&b, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n1;");
		add_many(&b, 'a', HTTP_CHUNK_LINE_MAX - 2 + over);
		buf_add_text(&b, "\r\nx\r\n0\r\n\r\n");
		CASE(over ? "one over" : "at the limit");
		check_status(&b, over ? 400 : DONE);
		buf_fini(&b);
	}
}

TEST(an_expectation_without_a_body_asks_for_nothing)
{
	char               with[] = "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n";
	char               without[] = "POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\n\r\n";
	char               old[] = "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n";
	struct http_parser p;
	size_t             n;

	http_parser_init(&p);
	CHECK(http_parse(&p, with, (n = sizeof(with) - 1, &n)) == HTTP_HEAD_DONE && p.expects_continue);
	http_parser_init(&p);
	CHECK(http_parse(&p, without, (n = sizeof(without) - 1, &n)) == HTTP_HEAD_DONE && !p.expects_continue);
	http_parser_init(&p);
	CHECK(http_parse(&p, old, (n = sizeof(old) - 1, &n)) == HTTP_HEAD_DONE && !p.expects_continue);
}

static bool is_common(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_among(int c, const char *others)
{
	return is_common(c) || (c && strchr(others, c));
}

enum part { PART_TARGET, PART_NAME, PART_VALUE, PART_HOST };

/* Is a request taken that has this byte in the middle of that part, n letters before it and after it? */
static bool may_have(enum part part, int c, size_t before, size_t after)
{
	switch (part) {
	case PART_TARGET: return c > ' ' && c < 0x7f && !strchr("#\\", c) && (c != '%' || after >= 2);
	case PART_NAME: return is_among(c, "!#$%&'*+-.^_`|~") || (c == ':' && before);
	case PART_VALUE: return c == '\t' || (c >= ' ' && c != 0x7f);
	case PART_HOST: break;
	}
	/* Blanks at its ends are cut off. */
	return is_among(c, ".:-[]_~%!$&'()*+,;=") ||
	       ((c == ' ' || c == '\t') && (before || after) && !(before && after));
}

static void check_byte(enum part part, int c, size_t before, size_t after)
{
	static const struct {
		const char *head, *tail;
	} around[] = {
		{ "GET /", " HTTP/1.1\r\n" H "\r\n" },
		{ GET, ": a\r\n\r\n" },
		{ GET "X: ", "\r\n\r\n" },
		{ "GET / HTTP/1.1\r\nHost: ", "\r\n\r\n" },
	};
	struct buf     b = BUF(1000);
	struct outcome whole;

	buf_add_text(&b, around[part].head);
	add_many(&b, 'a', before);
	buf_add_char(&b, (char)c);
	add_many(&b, 'a', after);
	buf_add_text(&b, around[part].tail);
	whole = feed(buf_str(&b), b.n, b.n);
	CHECK(whole.status == (may_have(part, c, before, after) ? DONE : 400));
	check_same(&whole, feed(buf_str(&b), 1, 1));
	check_same(&whole, feed(buf_str(&b), strlen(around[part].head) + before, b.n));
	check_same(&whole, feed(buf_str(&b), b.n - 1, 1));
	outcome_fini(&whole);
	buf_fini(&b);
}

/* Several bytes are looked at in one step, so that a place in it, and how many are left behind it, could matter. */
TEST(every_byte_is_judged_the_same_at_every_place)
{
	for (int part = PART_TARGET; part <= PART_HOST; part++)
		for (int c = 0; c < 256; c++)
			for (size_t before = 0; before <= 18; before++) {
				check_byte((enum part)part, c, before, 0);
				check_byte((enum part)part, c, before, 17 - before % 17);
			}
}

TEST(a_header_is_found_among_others_and_another_is_not)
{
	struct http_request req = { 0 };
	char                names[HTTP_HEADERS_MAX][16];
	size_t              count;

	for (size_t i = 0; i < HTTP_HEADERS_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "%c-%0*zu", (int)('A' + i % 26), (int)(2 + i % 9), i);
		CHECK(!http_header(&req, str_from(names[i]), &count).p && count == 0);
		http_request_add(&req, str_from(names[i]), str_from(names[i]));
		names[i][0] = (char)(names[i][0] + 'a' - 'A');
		CHECK(http_header(&req, str_from(names[i]), &count).p == names[i] && count == 1);
		names[i][0] = (char)(names[i][0] + 'A' - 'a');
	}
	for (size_t i = 0; i < HTTP_HEADERS_MAX; i++)
		CHECK(http_header(&req, str_from(names[i]), NULL).p == names[i]);
	CHECK(!http_header(&req, STR("A-xx"), &count).p && count == 0); /* as long as A-00 */
}

TEST(a_header_is_found_whatever_its_case)
{
	struct outcome o = feed(STR(GET "X-A: 1\r\nx-a: 2\r\n\r\n"), 1000, 1);
	size_t         count = 7;

	CHECK(o.verdict == HTTP_DONE);
	o.req.header_count = 0; /* the bytes are gone; the names below are the test's own */
	http_request_add(&o.req, STR("X-A"), STR("1"));
	http_request_add(&o.req, STR("x-a"), STR("2"));
	CHECK(str_eq(http_header(&o.req, STR("x-A"), &count), STR("1")) && count == 2);
	CHECK(http_header(&o.req, STR("x-b"), &count).p == NULL && count == 0);
	CHECK(str_eq(http_header(&o.req, STR("X-a"), NULL), STR("1")));
	outcome_fini(&o);
}

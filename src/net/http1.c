/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1.c - reads one HTTP/1.1 request, and refuses whatever two readers could understand in two ways.
 *
 * A request is read line by line. A small state says how far it was looked at, so that a client that sends one byte at
 * a time costs no more than one that sends all at once. Places are kept as offsets, so that the caller may move the
 * bytes between two calls.
 *
 * Always true:
 *   1. Lines end with CR LF. No other control character but the tab passes, anywhere in a head.       [find_line()]
 *   2. The length of a body is stated once: one Content-Length of digits only, or exactly
 *      "Transfer-Encoding: chunked" with HTTP/1.1, never both.                                         [end_head()]
 *   3. Nothing is looked at beyond the limits of http1.h, so the verdict is the same for every split.
 *   4. After a refusal the parser stays refused: the rest of the connection has no meaning.
 *
 * Stricter than RFC 9112 on purpose: methods are upper-case letters, '-' and '_'; a repeated Content-Length is refused
 * even when equal; trailers are refused; an absolute-form target must name the same authority as Host.
 *
 * Not here: what methods and paths mean, unescaping, sockets, deadlines.
 */
#include "net/http1.h"

#include <assert.h>

#include "base/octets.h"

enum stage {
	STAGE_REQUEST_LINE,
	STAGE_HEADERS,
	STAGE_BODY_START,
	STAGE_BODY,
	STAGE_CHUNK_SIZE,
	STAGE_CHUNK_DATA,
	STAGE_CHUNK_END,
	STAGE_BODY_END,
	STAGE_OVER,
};

enum { VERSION_SIZE = 8, REQUEST_LINE_MAX = HTTP_METHOD_MAX + 1 + HTTP_TARGET_MAX + 1 + VERSION_SIZE, CRLF = 2 };

enum line { LINE_WHOLE, LINE_PART, LINE_TOO_LONG, LINE_BAD };

/* Every step answers whether to go on with the next; when not, p->verdict is set. */
typedef bool step_fn(struct http_parser *p, char *bytes, size_t n);

static bool stop(struct http_parser *p, enum http_verdict verdict)
{
	p->verdict = verdict;
	return false;
}

static bool refuse(struct http_parser *p, int status, const char *why)
{
	p->stage = STAGE_OVER;
	p->status = status;
	p->why = why;
	return stop(p, HTTP_REFUSED);
}

static bool go_on(struct http_parser *p, enum stage next)
{
	p->stage = next;
	p->line = p->at;
	return true;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Characters, a bit for each of ASCII. All sets have letters, digits, '-' and '.'; none has a blank or CR. */
struct char_set {
	uint64_t bits[2];
};

static const struct char_set token_chars = { { 0x03ff6cfa00000000, 0x57ffffffc7fffffe } }, /* !#$%&'*+-.^_`|~ */
        authority_chars = { { 0x2fff7ff200000000, 0x47fffffeaffffffe } },                  /* !$%&'()*+,-.:;=[]_~ */
        target_chars = { { 0xffffffd600000000, 0x7fffffffefffffff } }; /* all visible ones but #%\ */

static bool is_in(const struct char_set *set, char c)
{
	return !((unsigned char)c & 0x80) && (set->bits[(unsigned char)c >> 6] >> ((unsigned char)c & 63) & 1);
}

/* Where the run of these characters ends that begins at at, or n. Most are of those that all sets have. */
static size_t end_of_run(const struct char_set *set, const char *bytes, size_t at, size_t n)
{
	while (n - at >= 8) {
		unsigned common = octets_before_mark(bytes + at);

		at += common;
		if (common == 8)
			continue;
		if (!is_in(set, bytes[at]))
			return at;
		at++;
	}
	while (at < n && is_in(set, bytes[at]))
		at++;
	return at;
}

static bool is_control(char c)
{
	return ((unsigned char)c < ' ' && c != '\t') || c == 0x7f;
}

static struct str view(const char *bytes, struct http_span s)
{
	return str_of(bytes + s.at, s.n);
}

static struct http_span span(size_t from, size_t to)
{
	assert(from <= to && to <= HTTP_HEAD_MAX);
	return (struct http_span){ (uint16_t)from, (uint16_t)(to - from) };
}

static bool all_are(struct str s, bool (*is_good)(char c))
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_good(s.p[i]))
			return false;
	return true;
}

/* Where the first control character is, or end. */
static size_t end_of_text(const char *bytes, size_t at, size_t end)
{
	while (at + 16 <= end) {
		unsigned text = octets_before_control(bytes + at);

		at += text;
		if (text < 16)
			return at;
	}
	while (at < end && !is_control(bytes[at]))
		at++;
	return at;
}

/* Look for the end of the line that begins at p->line, not beyond limit. LINE_WHOLE: p->at is at its CR. */
static enum line find_line(struct http_parser *p, const char *bytes, size_t n, size_t limit)
{
	size_t end = n < limit ? n : limit;

	p->at = end_of_text(bytes, p->at, end);
	if (p->at < end && bytes[p->at] != '\r')
		return LINE_BAD;
	if (p->at + 1 < end)
		return bytes[p->at + 1] == '\n' ? LINE_WHOLE : LINE_BAD;
	return end == limit ? LINE_TOO_LONG : LINE_PART;
}

/* The same; when it is whole, p->at is behind it and *ret_to at its end. Otherwise p->verdict is set. */
static bool read_line(struct http_parser *p, const char *bytes, size_t n, size_t limit, int status,
                      const char *too_long, const char *bad, size_t *ret_to)
{
	switch (find_line(p, bytes, n, limit)) {
	case LINE_PART: return stop(p, HTTP_NEED_MORE);
	case LINE_TOO_LONG: return refuse(p, status, too_long);
	case LINE_BAD: return refuse(p, 400, bad);
	case LINE_WHOLE: break;
	}
	*ret_to = p->at;
	p->at += CRLF;
	return true;
}

#define BAD_IN_HEAD "control character in the head; lines end with CR LF"

/* The request line. */

static bool is_method_char(char c)
{
	return (c >= 'A' && c <= 'Z') || c == '-' || c == '_';
}

static bool take_method(struct http_parser *p, const char *bytes, size_t from, size_t to)
{
	p->method = span(from, to);
	if (to == from || to - from > HTTP_METHOD_MAX || !all_are(view(bytes, p->method), is_method_char))
		return refuse(p, 400, "method must be 1 to 32 upper-case letters");
	p->is_head = str_eq(view(bytes, p->method), STR("HEAD"));
	return true;
}

static bool take_version(struct http_parser *p, struct str version)
{
	if (str_eq(version, STR("HTTP/1.1")))
		return true;
	p->is_http10 = str_eq(version, STR("HTTP/1.0"));
	if (p->is_http10)
		return true;
	if (version.n == VERSION_SIZE && str_starts_with(version, STR("HTTP/")) && is_digit(version.p[5]) &&
	    version.p[6] == '.' && is_digit(version.p[7]))
		return refuse(p, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
	return refuse(p, 400, "request line must be METHOD TARGET HTTP/1.1");
}

static bool is_target(struct str target)
{
	size_t at = end_of_run(&target_chars, target.p, 0, target.n);

	while (at < target.n) {
		if (target.p[at] != '%' || at + 2 >= target.n || char_hex(target.p[at + 1]) < 0 ||
		    char_hex(target.p[at + 2]) < 0)
			return false;
		at = end_of_run(&target_chars, target.p, at + 3, target.n);
	}
	return target.n > 0;
}

/* "http://host/path": where the path begins, or 0 when the target is not of this form. Sets p->authority. */
static size_t take_authority(struct http_parser *p, const char *bytes)
{
	struct str target = view(bytes, p->target);
	size_t     from, to;

	if (target.n > 7 && str_eq_nocase(str_of(target.p, 7), STR("http://")))
		from = 7;
	else if (target.n > 8 && str_eq_nocase(str_of(target.p, 8), STR("https://")))
		from = 8;
	else
		return 0;
	to = end_of_run(&authority_chars, target.p, from, target.n);
	if (to == from || (to < target.n && target.p[to] != '/' && target.p[to] != '?'))
		return 0;
	p->authority = span(p->target.at + from, p->target.at + to);
	return to;
}

static bool take_target(struct http_parser *p, const char *bytes, size_t from, size_t to)
{
	struct str  target = str_of(bytes + from, to - from);
	const char *question;
	size_t      path = 0;

	if (target.n > HTTP_TARGET_MAX)
		return refuse(p, 414, "target is longer than 8192 bytes");
	p->target = span(from, to);
	if (!is_target(target))
		return refuse(p, 400, "target has a character that must be escaped as %XX, or a wrong escape");
	if (str_eq(target, STR("*"))) {
		if (!str_eq(view(bytes, p->method), STR("OPTIONS")))
			return refuse(p, 400, "target * is for OPTIONS only");
	} else if (target.p[0] != '/' && !(path = take_authority(p, bytes))) {
		return refuse(p, 400, "target must begin with '/'");
	}
	question = memchr(target.p + path, '?', target.n - path);
	p->path = span(from + path, question ? (size_t)(question - bytes) : to);
	p->query = span(question ? (size_t)(question - bytes) + 1 : to, to);
	return true;
}

static bool take_request_line(struct http_parser *p, const char *bytes, size_t from, size_t to)
{
	const char *first = memchr(bytes + from, ' ', to - from);
	const char *second = first ? memchr(first + 1, ' ', (size_t)(bytes + to - first - 1)) : NULL;
	size_t      method_end, target_end;

	if (!second)
		return refuse(p, 400, "request line must be METHOD TARGET HTTP/1.1");
	method_end = (size_t)(first - bytes);
	target_end = (size_t)(second - bytes);
	return take_method(p, bytes, from, method_end) && take_version(p, str_of(second + 1, to - target_end - 1)) &&
	       take_target(p, bytes, method_end + 1, target_end);
}

static bool read_request_line(struct http_parser *p, char *bytes, size_t n)
{
	size_t from = p->line, to;

	if (!read_line(p, bytes, n, from + REQUEST_LINE_MAX + CRLF, 414,
	               "request line is too long; a target has at most 8192 bytes", BAD_IN_HEAD, &to))
		return false;
	if (to == 0) /* RFC 9112, 2.2: one empty line before a request is let pass */
		return go_on(p, STAGE_REQUEST_LINE);
	return take_request_line(p, bytes, from, to) && go_on(p, STAGE_HEADERS);
}

/* Headers that the parser itself must understand. */

static bool take_length(struct http_parser *p, struct str value)
{
	if (p->has_length)
		return refuse(p, 400, "Content-Length must come once");
	if (value.n == 0 || !all_are(value, is_digit))
		return refuse(p, 400, "Content-Length must be a decimal number");
	p->has_length = true;
	for (size_t i = 0; i < value.n; i++)
		p->length = p->length > SIZE_MAX / 16 ? SIZE_MAX : p->length * 10 + (size_t)(value.p[i] - '0');
	return true;
}

static bool take_coding(struct http_parser *p, struct str value)
{
	if (p->is_chunked || !str_eq_nocase(value, STR("chunked")))
		return refuse(p, 400, "Transfer-Encoding must come once and be exactly 'chunked'");
	p->is_chunked = true;
	return true;
}

static bool take_host(struct http_parser *p, struct str value)
{
	if (++p->host_count > 1)
		return refuse(p, 400, "Host must come once");
	if (end_of_run(&authority_chars, value.p, 0, value.n) < value.n)
		return refuse(p, 400, "Host must be a name or address and a port");
	p->host = p->headers[p->header_count - 1].value;
	return true;
}

static bool take_connection(struct http_parser *p, struct str value)
{
	while (value.n > 0) {
		struct str option = str_trim(str_cut(&value, ','));

		if (str_eq_nocase(option, STR("close")))
			p->wants_close = true;
		else if (str_eq_nocase(option, STR("keep-alive")))
			p->wants_keep_alive = true;
	}
	return true;
}

static bool take_expect(struct http_parser *p, struct str value)
{
	if (!str_eq_nocase(value, STR("100-continue")))
		return refuse(p, 417, "Expect can only be 100-continue");
	p->expects_continue = !p->is_http10;
	return true;
}

static const struct {
	struct str name;
	bool (*take)(struct http_parser *p, struct str value);
} known_headers[] = {
	{ STR_INIT("Host"), take_host },
	{ STR_INIT("Expect"), take_expect },
	{ STR_INIT("Connection"), take_connection },
	{ STR_INIT("Content-Length"), take_length },
	{ STR_INIT("Transfer-Encoding"), take_coding },
};

static bool take_header(struct http_parser *p, const char *bytes, size_t from, size_t to)
{
	size_t                     colon = end_of_run(&token_chars, bytes, from, to);
	struct http_parser_header *h = &p->headers[p->header_count];
	struct str                 value;

	if (colon == from || colon == to || bytes[colon] != ':')
		return refuse(p, 400, "header line must be 'Name: value', without folding or blanks before the colon");
	if (p->header_count == HTTP_HEADERS_MAX)
		return refuse(p, 431, "more than 100 headers");
	value = str_trim(str_of(bytes + colon + 1, to - colon - 1));
	h->name = span(from, colon);
	h->value = value.n ? span((size_t)(value.p - bytes), (size_t)(value.p - bytes) + value.n) : span(to, to);
	p->header_count++;
	for (size_t i = 0; i < ARRAY_LEN(known_headers); i++)
		if (known_headers[i].name.n == h->name.n && str_eq_nocase(known_headers[i].name, view(bytes, h->name)))
			return known_headers[i].take(p, value);
	return true;
}

/* The head is complete: check what depends on more than one line. */
static bool end_head(struct http_parser *p, const char *bytes)
{
	if (p->is_chunked && p->has_length)
		return refuse(p, 400, "Content-Length and Transfer-Encoding together");
	if (p->is_chunked && p->is_http10)
		return refuse(p, 400, "Transfer-Encoding needs HTTP/1.1");
	if (!p->is_http10 && p->host.n == 0)
		return refuse(p, 400, "Host is missing");
	if (p->authority.n && p->host.n && !str_eq_nocase(view(bytes, p->authority), view(bytes, p->host)))
		return refuse(p, 400, "Host and target name different servers");
	p->has_body = p->is_chunked || p->length > 0;
	p->expects_continue = p->expects_continue && p->has_body;
	p->is_keep_alive = !p->wants_close && (!p->is_http10 || p->wants_keep_alive);
	p->body_at = p->at;
	(void)go_on(p, STAGE_BODY_START);
	return stop(p, HTTP_HEAD_DONE);
}

static bool read_header(struct http_parser *p, char *bytes, size_t n)
{
	size_t from = p->line, to;

	if (!read_line(p, bytes, n, HTTP_HEAD_MAX, 431, "request line and headers have more than 16384 bytes",
	               BAD_IN_HEAD, &to))
		return false;
	if (from == to)
		return end_head(p, bytes);
	return take_header(p, bytes, from, to) && go_on(p, STAGE_HEADERS);
}

/* The body. */

static bool refuse_large(struct http_parser *p)
{
	return refuse(p, 413, "body is larger than this request may have");
}

static bool start_body(struct http_parser *p, char *bytes UNUSED, size_t n UNUSED)
{
	if (p->length > p->body_max)
		return refuse_large(p);
	p->left = p->length;
	return go_on(p, p->is_chunked ? STAGE_CHUNK_SIZE : STAGE_BODY);
}

static bool read_body(struct http_parser *p, char *bytes UNUSED, size_t n)
{
	if (n - p->body_at < p->length)
		return stop(p, HTTP_NEED_MORE);
	p->body_n = p->length;
	p->at = p->body_at + p->length;
	(void)go_on(p, STAGE_OVER);
	return stop(p, HTTP_DONE);
}

static bool take_chunk_size(struct http_parser *p, struct str line)
{
	size_t digits = 0, size = 0;

	for (; digits < line.n && char_hex(line.p[digits]) >= 0; digits++) {
		if (size > SIZE_MAX / 32)
			return refuse_large(p);
		size = size * 16 + (size_t)char_hex(line.p[digits]);
	}
	if (digits == 0 || (digits < line.n && line.p[digits] != ';'))
		return refuse(p, 400, "chunk must begin with its size in hexadecimal digits");
	if (size > p->body_max - p->body_n)
		return refuse_large(p);
	p->left = size;
	return go_on(p, size ? STAGE_CHUNK_DATA : STAGE_BODY_END);
}

static bool read_chunk_size(struct http_parser *p, char *bytes, size_t n)
{
	size_t from = p->line, to;

	return read_line(p, bytes, n, from + HTTP_CHUNK_LINE_MAX + CRLF, 400, "chunk size line has more than 256 bytes",
	                 "control character in a chunk size line; lines end with CR LF", &to) &&
	       take_chunk_size(p, str_of(bytes + from, to - from));
}

static bool read_chunk_data(struct http_parser *p, char *bytes, size_t n)
{
	size_t size = n - p->at < p->left ? n - p->at : p->left;

	memmove(bytes + p->body_at + p->body_n, bytes + p->at, size);
	p->body_n += size;
	p->left -= size;
	p->at += size;
	p->line = p->at;
	return p->left ? stop(p, HTTP_NEED_MORE) : go_on(p, STAGE_CHUNK_END);
}

/* CR LF and nothing else. Answers whether it is there; when not, p->verdict is set. */
static bool take_crlf(struct http_parser *p, const char *bytes, size_t n, const char *why)
{
	size_t there = n - p->at < CRLF ? n - p->at : CRLF;

	if (memcmp(bytes + p->at, "\r\n", there) != 0)
		return refuse(p, 400, why);
	if (there < CRLF)
		return stop(p, HTTP_NEED_MORE);
	p->at += CRLF;
	p->line = p->at;
	return true;
}

static bool read_chunk_end(struct http_parser *p, char *bytes, size_t n)
{
	return take_crlf(p, bytes, n, "chunk must end with CR LF after as many bytes as its size says") &&
	       go_on(p, STAGE_CHUNK_SIZE);
}

static bool read_body_end(struct http_parser *p, char *bytes, size_t n)
{
	if (!take_crlf(p, bytes, n, "last chunk must be followed by an empty line; trailers are not taken"))
		return false;
	p->stage = STAGE_OVER;
	return stop(p, HTTP_DONE);
}

static bool stay_over(struct http_parser *p UNUSED, char *bytes UNUSED, size_t n UNUSED)
{
	return false;
}

static step_fn *const steps[] = {
	[STAGE_REQUEST_LINE] = read_request_line,
	[STAGE_HEADERS] = read_header,
	[STAGE_BODY_START] = start_body,
	[STAGE_BODY] = read_body,
	[STAGE_CHUNK_SIZE] = read_chunk_size,
	[STAGE_CHUNK_DATA] = read_chunk_data,
	[STAGE_CHUNK_END] = read_chunk_end,
	[STAGE_BODY_END] = read_body_end,
	[STAGE_OVER] = stay_over,
};

/* Close the gap that decoding left between the body so far and the bytes not yet understood. */
static void squeeze(struct http_parser *p, char *bytes, size_t *n)
{
	size_t body_end = p->body_at + p->body_n;
	size_t gap = p->line - body_end;

	if (gap == 0)
		return;
	memmove(bytes + body_end, bytes + p->line, *n - p->line);
	*n -= gap;
	p->at -= gap;
	p->line -= gap;
}

void http_parser_init(struct http_parser *p)
{
	memset(p, 0, offsetof(struct http_parser, headers));
}

enum http_verdict http_parse(struct http_parser *p, char *bytes, size_t *n)
{
	while (steps[p->stage](p, bytes, *n))
		;
	if (p->is_chunked && p->body_at)
		squeeze(p, bytes, n);
	if (p->verdict == HTTP_DONE)
		p->used = p->line;
	return p->verdict;
}

void http_parser_allow(struct http_parser *p, size_t body_max)
{
	assert(p->stage == STAGE_BODY_START);
	p->body_max = body_max;
}

void http_parser_request(const struct http_parser *p, const char *bytes, struct http_request *ret)
{
	ret->method = view(bytes, p->method);
	ret->target = view(bytes, p->target);
	ret->path = p->path.n ? view(bytes, p->path) : STR("/");
	ret->query = view(bytes, p->query);
	ret->header_count = 0;
	ret->header_names = 0;
	for (size_t i = 0; i < p->header_count; i++)
		http_request_add(ret, view(bytes, p->headers[i].name), view(bytes, p->headers[i].value));
	ret->body = str_of(bytes + p->body_at, p->body_n);
	ret->is_keep_alive = p->is_keep_alive;
	ret->is_head = p->is_head;
}

void http_request_add(struct http_request *req, struct str name, struct str value)
{
	assert(name.n > 0 && req->header_count < HTTP_HEADERS_MAX);
	req->headers[req->header_count++] = (struct http_header){ name, value };
	req->header_names |= http_name_bit(name);
}

struct str http_find_header(const struct http_request *req, struct str name, size_t *ret_count)
{
	struct str value = { NULL, 0 };
	size_t     count = 0;

	for (size_t i = 0; i < req->header_count; i++) {
		if (req->headers[i].name.n != name.n || !str_eq_nocase(req->headers[i].name, name))
			continue;
		if (count++ == 0)
			value = req->headers[i].value;
		if (!ret_count)
			break;
	}
	if (ret_count)
		*ret_count = count;
	return value;
}

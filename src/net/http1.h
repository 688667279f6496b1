/* http1.h - a strict HTTP/1.1 request parser: bytes in, a request or a refusal out. No I/O, no allocation. */
#pragma once

#include "base/str.h"

enum {
	HTTP_METHOD_MAX = 32,
	HTTP_TARGET_MAX = 8192,
	HTTP_HEAD_MAX = 16384, /* request line and headers, all together */
	HTTP_HEADERS_MAX = 100,
	HTTP_CHUNK_LINE_MAX = 256, /* a chunk's size and extensions */
};

struct http_header {
	struct str name;
	struct str value;
};

struct http_request {
	struct str         method;
	struct str         target; /* as sent */
	struct str         path;   /* of the target, before '?'; still escaped */
	struct str         query;  /* behind '?', may be empty */
	struct http_header headers[HTTP_HEADERS_MAX];
	size_t             header_count;
	uint64_t           header_names; /* http_name_bit() of each */
	struct str         body;
	bool               is_keep_alive;
	bool               is_head; /* HEAD: no body in the reply */
};

/* One more header; there is room for HTTP_HEADERS_MAX. The name is not empty. */
void http_request_add(struct http_request *req, struct str name, struct str value);

/* One of 64 bits for a name that is not empty, whatever its case. */
static inline uint64_t http_name_bit(struct str name)
{
	return UINT64_C(1) << (name.n + 7 * (name.p[0] & 31u)) % 64;
}

/* The value of a header, or an empty string with p == NULL when it is not there. A header sent twice: the first;
 * *ret_count, when not NULL, is how often it came. Inline: most that are asked for are not there. */
struct str http_find_header(const struct http_request *req, struct str name, size_t *ret_count);

static inline struct str http_header(const struct http_request *req, struct str name, size_t *ret_count)
{
	if (req->header_names & http_name_bit(name))
		return http_find_header(req, name, ret_count);
	if (ret_count)
		*ret_count = 0;
	return (struct str){ NULL, 0 };
}

enum http_verdict {
	HTTP_NEED_MORE, /* so far so good; call again with more bytes */
	HTTP_HEAD_DONE, /* the head is complete: http_parser_allow(), then call again */
	HTTP_DONE,      /* a whole request: p->used bytes */
	HTTP_REFUSED,   /* p->status and p->why; what follows cannot be trusted */
};

/* A place in the bytes, so that they may move between two calls. */
struct http_span {
	uint16_t at, n;
};

/* One request being read. Private but for the fields marked so. */
struct http_parser {
	int               stage;
	enum http_verdict verdict;
	int               status;           /* read it: of a refusal */
	const char       *why;              /* read it: of a refusal, a constant */
	bool              has_body;         /* read it: from HTTP_HEAD_DONE on, a body is announced */
	bool              expects_continue; /* read it: the client waits for "100 Continue" before it sends the body */
	bool              is_keep_alive;    /* read it */
	bool              is_head;          /* read it: known once the request line is */
	size_t            used;             /* read it: bytes of a whole request */

	bool             is_http10, wants_close, wants_keep_alive, is_chunked, has_length;
	unsigned         host_count;
	size_t           at;   /* bytes looked at */
	size_t           line; /* where the line under way begins */
	size_t           length, left;
	size_t           body_at, body_n, body_max;
	struct http_span method, target, authority, path, query, host;
	size_t           header_count;

	struct http_parser_header {
		struct http_span name, value;
	} headers[HTTP_HEADERS_MAX];
};

void http_parser_init(struct http_parser *p);

/* Look at the bytes of one request. They are always given from the request's first byte on, in the same order, and
 * only ever grow at the end; they may lie elsewhere at each call. A chunked body is decoded in place, which makes *n
 * smaller. The verdict does not depend on how the bytes were split over calls. */
enum http_verdict http_parse(struct http_parser *p, char *bytes, size_t *n);

/* After HTTP_HEAD_DONE: the largest body that is wanted. A larger one is refused with 413. */
void http_parser_allow(struct http_parser *p, size_t body_max);

/* Views of what was parsed, into bytes: the head from HTTP_HEAD_DONE on, the body at HTTP_DONE. */
void http_parser_request(const struct http_parser *p, const char *bytes, struct http_request *ret);

/* http1.h - a strict HTTP/1.1 request parser: bytes in, a request or a refusal out. No I/O, no allocation. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

enum {
	HTTP_TARGET_MAX = 8192,
	HTTP_HEAD_MAX = 16384, /* request line and headers, all together */
	HTTP_HEADERS_MAX = 100,
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
	struct str         body;
	bool               is_keep_alive;
	bool               is_head; /* HEAD: no body in the reply */
};

/* The value of a header, or an empty string with p == NULL when it is not there. A header sent twice: the first;
 * *ret_count, when not NULL, is how often it came. */
struct str http_header(const struct http_request *req, struct str name, size_t *ret_count);

/* reply.h - finds the end of one HTTP/1.1 reply in the bytes received so far. Pure. */
#pragma once

#include <stddef.h>

#include "base/str.h"

enum reply_state {
	REPLY_PARTIAL, /* more bytes are needed */
	REPLY_WHOLE,
	REPLY_BROKEN, /* not HTTP/1.1, or without a Content-Length */
};

struct reply {
	int        status;
	size_t     size; /* of head and body together */
	struct str body;
};

/* Look at all bytes of the reply that are there. Sets *ret on REPLY_WHOLE only; its body is a view into bytes. */
enum reply_state reply_parse(struct str bytes, struct reply *ret);

/* The value of "sandbox_id" in a reply's JSON; empty when there is none. */
struct str reply_sandbox_id(struct str body);

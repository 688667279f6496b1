/* fetch.h - one outgoing HTTP request and its answer. Blocks: for worker threads and the command line. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct buf;

enum { FETCH_HEADERS_MAX = 16, FETCH_NO_LIMIT = -1 };

/* Where a request may go, whatever its host's name resolves to. For URLs that others choose; such requests use no
 * proxy, since only the proxy would know where they go. */
enum fetch_reach {
	FETCH_ANYWHERE,
	FETCH_NOT_FORBIDDEN, /* not to link-local and metadata addresses */
	FETCH_PUBLIC,        /* nor to this machine and private networks */
};

struct fetch_request {
	const char      *method;
	const char      *url;                            /* http or https only */
	const char      *headers[FETCH_HEADERS_MAX + 1]; /* "Name: value", NULL-terminated */
	struct str       body;                           /* none when body.p is NULL */
	long             connect_timeout_ms;             /* 0: 10 s */
	long             total_timeout_ms;               /* 0: 60 s; FETCH_NO_LIMIT */
	size_t           max_bytes;                      /* of the answer's body; more is RC_TOO_LARGE; 0: 1 MiB */
	const char      *ca_file;                        /* NULL: the system's */
	bool             trusts_anybody; /* for our own server on this machine: its certificate is for another name */
	enum fetch_reach reach;          /* an address beyond it is RC_DENIED */
	/* NULL, or: +1 each time that it goes out, also when it fails. libcurl repeats by itself what a kept connection
	 * swallowed. */
	unsigned *sends;

	/* When set, it gets the body of a good answer (2xx) piece by piece, instead of the reply; false: that is
	 * enough. Then max_bytes and total_timeout_ms do not apply, but no byte for idle_timeout_ms is RC_TIMEOUT. */
	bool (*take)(struct str bytes, void *arg);
	void *take_arg;
	long  idle_timeout_ms; /* 0: 60 s; whole seconds */
};

struct fetch_reply {
	int        status;
	struct str headers; /* as they came, CRLF-separated */
	struct str body;
};

/* Call once before any thread is started. */
void fetch_global_init(void);

/* RC_OK means that an answer came, whatever its status. RC_TIMEOUT, RC_UNAVAILABLE (no connection, broken off),
 * RC_INVALID (the URL), RC_TOO_LARGE, RC_DENIED (its address) otherwise. Everything in *ret lives in the arena. No
 * redirects are followed. */
MUST_CHECK enum rc fetch(const struct fetch_request *req, struct arena *a, struct fetch_reply *ret, struct err *e);

/* The CAs this machine trusts: SSL_CERT_FILE, or where its distribution keeps them, which a program built elsewhere
 * cannot know. NULL: libcurl's own. */
const char *fetch_system_ca(void);

/* From now on, a fetch on this thread is given up within about a second after may_go_on() says no: RC_UNAVAILABLE.
 * Before another try, ask fetch_may_go_on(). NULL: no longer. For threads that wait for long and must end in time. */
void fetch_watch(bool (*may_go_on)(void *arg), void *arg);
bool fetch_may_go_on(void);

/* The value of a reply header, trimmed; empty when it is not there. */
struct str fetch_header(const struct fetch_reply *reply, const char *name);

/* Seconds since 1970 of a Date header; false when it is not a date. */
bool fetch_date(struct str text, int64_t *ret_sec);

/* Add text so that it is one part of a URL's path or one value of its query, whatever is in it. */
void fetch_escape(struct buf *b, struct str text);

/* server.h - the HTTP/1.1 server: connections, limits, deadlines, TLS. Knows nothing of routes. Loop thread only. */
#pragma once

#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "http/server/forwarded.h"
#include "net/http1.h"

struct http_server;
struct metrics;
struct tls_identity;

enum { HTTP_REPLY_MAX = 64 * 1024 * 1024 }; /* bytes of a reply's body */

/* One request under way. Handed to on_request; yours until http_reply(). */
struct http_call {
	struct http_request req;        /* views into the connection's buffer; valid until the reply */
	struct arena        arena;      /* reset after the reply */
	struct buf          headers;    /* extra reply headers, each "Name: value\r\n"; filled before http_reply() */
	int64_t             started_ns; /* monotonic: when the request was complete */
	void               *user;       /* the router's own */

	/* Set by whoever may be waiting long: called once if the client goes away before the reply. The call must
	 * still be replied to exactly once, then or later (the reply goes nowhere). */
	void (*on_gone)(struct http_call *call);

	/* Of a streamed reply: the socket has taken all that was sent so far; called after http_stream_send() could
	 * not do so at once. */
	void (*on_sent)(struct http_call *call);
};

/* What a request's head allows: called when the head is complete and announces a body, before any of its bytes is read.
 * Returns the largest body accepted (0: none). */
typedef size_t http_body_limit_fn(const struct http_request *head, void *arg);
typedef void   http_request_fn(struct http_call *call, void *arg);

/* Called for every reply the server makes by itself (bad request, too large, time-out ...): adds the headers and the
 * body that such an error has, so that all errors look the same. */
typedef void http_error_fn(int status, const char *why, struct buf *headers, struct buf *body, void *arg);

struct http_options {
	const char    *host;                         /* numeric address to bind */
	int            port;                         /* 0: any free one */
	int            inherited_fd;                 /* a bound socket to listen on instead; 0: none */
	const char    *tls_cert_file, *tls_key_file; /* both or neither */
	unsigned       connections_max;
	unsigned       connections_per_client_max; /* per peer address, trusted proxies not counted; 0: no limit */
	struct proxies trusted_proxies;            /* they say who the client is */
	int            header_timeout_ms, body_timeout_ms, idle_timeout_ms, write_timeout_ms;

	http_body_limit_fn *body_limit;
	http_request_fn    *on_request;
	http_request_fn    *on_spare; /* of one connection beyond those, for one request; NULL: it is closed instead */
	http_error_fn      *on_error;
	void               *arg;

	struct metrics *metrics; /* NULL: nobody asks */
};

/* Bind and listen on the loop. RC_UNAVAILABLE with the reason when the address cannot be had, RC_INVALID for a bad
 * address or certificate. The process ignores SIGPIPE from then on. */
MUST_CHECK enum rc http_server_open(uv_loop_t *loop, const struct http_options *options, struct http_server **ret,
                                    struct err *e);
int                http_server_port(const struct http_server *s);

/* Open client connections now. */
unsigned http_server_connections(const struct http_server *s);

/* Another certificate and key for new connections of a server that has some. They are the server's from now on. Who
 * opens them waits for files, and had better not be the loop. */
void http_server_set_tls(struct http_server *s, struct tls_identity *identity);

/* From now on every reply is its connection's last; all else goes on. For the time in which a balancer learns that we
 * go. */
void http_server_leave(struct http_server *s);

/* Stop accepting; idle connections close now, busy ones after their reply; those that are still there after grace_ms
 * are cut. on_drained is called once when none is left. A second call can only shorten the grace. */
void http_server_drain(struct http_server *s, int grace_ms, void (*on_drained)(void *arg), void *arg);

/* After on_drained. */
void http_server_free(struct http_server *s);

/* Send the reply: status line, Date, Content-Length, call->headers, body. Not inside on_gone. The call is gone after
 * this. A HEAD request gets the headers only. content_type may be NULL when body is empty. A body over
 * HTTP_REPLY_MAX, or call->headers being full, becomes a 500. */
void http_reply(struct http_call *call, int status, const char *content_type, struct str body);

/* The same with a body that is taken over: however large it is, each turn of the loop sends only a piece of it.
 * *body is empty afterwards. */
void http_reply_taken(struct http_call *call, int status, const char *content_type, struct buf *body);

/* Has the client left? The call must be replied to all the same. */
bool http_is_gone(const struct http_call *call);

/* Instead of http_reply(): a reply (200) in pieces, of a size that nobody knows yet. Between begin and end the call
 * stays yours; on_gone may be called at any time, also from inside http_stream_send(), and then only
 * http_stream_end() is left to do, later. A client that takes less than 4 KiB in write_timeout_ms of what waits for it
 * is gone. Who sends only while http_stream_is_idle() keeps no more than one piece in memory. To HEAD nothing is sent
 * in between. */
void http_stream_begin(struct http_call *call, const char *content_type);
void http_stream_send(struct http_call *call, struct str bytes);
bool http_stream_is_idle(const struct http_call *call);
void http_stream_end(struct http_call *call);

/* The rest will not come: closes the connection without the mark of the end, so that the client can tell. on_gone is
 * not called. */
void http_stream_abort(struct http_call *call);

/* The client's address as text, for logs: the peer's, or what a trusted proxy says of it. */
struct str http_client(const struct http_call *call);

/* What limits by address count it as: bytes, the same for all of an IPv6 /64. */
struct str http_client_key(const struct http_call *call);

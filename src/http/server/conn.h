/* conn.h - private to the server: one connection, and the server as its connections see it. */
#pragma once

#include <netinet/in.h>
#include <uv.h>

#include "base/buf.h"
#include "base/str.h"
#include "http/server/clients.h"
#include "http/server/server.h"
#include "net/http1.h"
#include "net/tls.h"

enum {
	CONN_SCRATCH_SIZE = 65536,
	CONN_REPLY_HEADERS_MAX = 16384,
	CONN_LINGER_MS = 2000,
	CONN_PIECE_MAX = 262144, /* of a large reply, in one turn of the loop */
	GATHERED_MAX = 128,      /* small replies that leave together */
	GATHERED_SIZE = 4096,    /* larger ones do not wait */
};

enum conn_state {
	CONN_READING,   /* waits for a request or its rest */
	CONN_BUSY,      /* on_request has the call */
	CONN_WRITING,   /* the reply is not all out */
	CONN_LINGERING, /* all is said; what still comes is thrown away, so that the last reply is not lost */
	CONN_CLOSING,   /* uv_close() was called */
};

/* What a connection waits for. Each has a list in order of deadlines, since all in it have the same time-out. */
enum conn_wait {
	WAIT_HEADER,
	WAIT_BODY,
	WAIT_IDLE,
	WAIT_WRITE,
	WAIT_LINGER,
	WAIT_REPLY, /* no deadline: the router's business */
	WAIT_TURN,  /* no deadline: has had enough requests in this turn of the loop, and goes on in the next */
	WAIT_CLOSE, /* no deadline: the loop's business */
	WAIT__COUNT
};

struct conn {
	uv_tcp_t            tcp;
	struct http_server *server;          /* NULL when the socket is closed and only a reply is owed */
	struct conn        *previous, *next; /* in server->waits[wait] */
	enum conn_wait      wait;
	int64_t             due_ms;
	enum conn_state     state;
	bool                has_call;     /* the router owes a reply */
	bool                is_spare;     /* beyond the limit: for one request */
	bool                is_fresh;     /* no request has been served yet */
	bool                is_serving;   /* conn_serve() is on the stack */
	bool                is_paused;    /* reading is stopped: the buffer is full */
	bool                is_last;      /* close when all is sent */
	bool                has_ended;    /* the peer sends no more: close when what is here has been answered */
	bool                must_linger;  /* then let the peer finish first */
	bool                is_writing;   /* write and out are the loop's */
	bool                is_gathered;  /* a reply to it is in server->gathered */
	bool                is_streaming; /* busy, and the reply has begun */

	char              *in; /* received; the request under way is [in_start, in_end) */
	size_t             in_start, in_end, in_room;
	struct http_parser parser;

	struct buf    out;      /* being written */
	struct buf    out_more; /* to be written after that */
	struct buf    body;     /* after both: of a large reply, piece by piece */
	size_t        body_sent;
	size_t        write_left; /* when the write deadline was last set */
	uv_write_t    write;
	uv_shutdown_t shutdown;

	struct tls       *tls;     /* NULL: plain */
	struct ip         address; /* of the peer */
	struct client_key peer;
	bool              is_proxy;                      /* one that we trust: */
	struct client_key client;                        /* then another for each request, see take_request() */
	char              client_text[INET6_ADDRSTRLEN]; /* of the request under way */

	struct http_call call;
};

struct conn_list {
	struct conn *first, *last;
	int          timeout_ms; /* 0: no deadline */
};

/* A reply that leaves at the end of the turn. */
struct gathered {
	struct conn *conn;
	size_t       start, size; /* in gathered_text */
};

struct http_server {
	uv_loop_t           *loop;
	struct http_options  options;
	uv_tcp_t             listener;
	uv_timer_t           tick;
	uv_idle_t            turn; /* runs while somebody is in waits[WAIT_TURN] */
	uv_prepare_t         turn_end;
	struct tls_identity *identity; /* NULL: plain */
	struct clients      *clients;
	struct conn_list     waits[WAIT__COUNT];
	unsigned             connections;
	struct conn         *spare;         /* the one beyond the limit, if there is one */
	int                  kept_fd;       /* given up for it when there is no other; -1: given up, or never had */
	bool                 is_short;      /* no file descriptor is left */
	int64_t              full_after_ms; /* no line about being full before this */
	unsigned             handles;       /* listener, tick, turn and turn_end, until closed */
	bool                 is_leaving;    /* every reply is a connection's last */
	bool                 is_draining, is_drained;
	int64_t              fresh_until_ms; /* draining: so long new connections may take to ask */
	int64_t              cut_ms;         /* draining: when the rest is cut */
	void (*on_drained)(void *arg);
	void *drained_arg;

	struct buf      reply; /* the reply being put together */
	struct gathered gathered[GATHERED_MAX];
	size_t          gathered_count, gathered_sent;
	struct buf      gathered_text;
	struct buf      error_body;
	char            date[32];
	int64_t         date_until_ms;
	int64_t         plain_http_after_ms; /* no line about plain HTTP before this */
	char            scratch[CONN_SCRATCH_SIZE];
};

/* server.c: so many connections more, or fewer. */
void server_count(struct http_server *s, int more);

/* server.c: a connection's socket is closed. */
void server_forget(struct http_server *s, struct conn *c);

/* server.c: a connection waits for the next turn of the loop. */
void server_wake_in_turn(struct http_server *s);

/* server.c: log that no descriptor is left. */
void server_tell_short(void);

/* conn.c */
void conn_open(struct http_server *s);
void conn_free(struct conn *c);
void conn_close(struct conn *c);
void conn_wait(struct conn *c, enum conn_wait wait);

/* Its deadline has passed. Moves it out of its place in the list. */
void conn_expire(struct conn *c);

/* Work off what was received, until more is needed or a request is with the router. */
void conn_serve(struct conn *c);

/* It waited for this turn of the loop. */
void conn_take_turn(struct conn *c);

/* Read again, if reading was stopped. */
void conn_resume(struct conn *c);

/* Close what waits between two requests. */
void conn_close_if_idle(struct conn *c);

/* send.c: send now what the socket takes, keep a copy of the rest for later. On failure the connection closes. */
void conn_send(struct conn *c, struct str head, struct str body);

/* send.c: the same for a whole reply, which may also leave at the end of the turn, with others. */
void conn_send_reply(struct conn *c, struct str head, struct str body);

/* send.c: the end of the turn. */
void server_send_gathered(struct http_server *s);

/* send.c: the reply's head was handed to conn_send(); take this body over and send it piece by piece. */
void conn_send_pieces(struct conn *c, struct buf *body);

/* send.c: bytes that are not out yet. */
size_t conn_write_left(const struct conn *c);

/* send.c: the reply was handed to conn_send(). Goes on when all of it is out: next request, or the end. */
void conn_sent_all(struct conn *c);

/* send.c: a piece of a reply was handed to conn_send(): when it did not all go out, the client has so long to take
 * it. */
void conn_sent_piece(struct conn *c);

/* send.c: send what TLS has produced by itself. */
void conn_flush_tls(struct conn *c);

/* reply.c: answer with an error of the server's own and close. */
void conn_refuse(struct conn *c, int status, const char *why);

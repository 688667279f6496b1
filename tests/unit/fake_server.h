/* fake_server.h - a small HTTP server on loopback for tests of clients: the test says what it answers. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct fake_server;

struct fake_request {
	const char *method;
	const char *target;
	const char *headers; /* as they came */
	const char *body;
};

struct fake_reply {
	int         status;
	const char *headers;   /* each "Name: value\r\n", or NULL */
	const char *body;      /* or NULL */
	const char *raw;       /* sent instead of all of the above, then the connection is closed */
	bool        is_silent; /* no answer at all; the connection stays open until the server ends */
};

/* Called for each request, one at a time. number counts from 0. */
typedef struct fake_reply fake_answer_fn(const struct fake_request *req, size_t number, void *arg);

/* Listens on a free port of 127.0.0.1. */
struct fake_server *fake_server_open(fake_answer_fn *answer, void *arg);
void                fake_server_close(struct fake_server *s);

int    fake_server_port(const struct fake_server *s);
size_t fake_server_requests(struct fake_server *s);
size_t fake_server_connections(struct fake_server *s);

/* "http://127.0.0.1:PORT" and path, valid until the next call or the end of the server. */
const char *fake_server_url(struct fake_server *s, const char *path);

/* True when the request has this header line, such as "Prefer: wait=5". */
bool fake_request_has(const struct fake_request *req, const char *line);

/* A port of 127.0.0.1 on which nothing listens. */
int fake_closed_port(void);

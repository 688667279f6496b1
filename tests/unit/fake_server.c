/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_server.c - the far side of client tests.
 *
 * One thread accepts, one more per connection reads requests (with Content-Length or no body) and sends what the test
 * answers. Keep-alive is served, so that tests can count connections. Closing shuts every socket and joins every
 * thread.
 */
#include "fake_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "test.h"

enum { CONNECTIONS_MAX = 64, REQUEST_MAX = 1 << 20 };

struct connection {
	struct fake_server *server;
	pthread_t           thread;
	int                 fd;
};

struct fake_server {
	fake_answer_fn   *answer;
	void             *arg;
	int               listener;
	int               port;
	pthread_t         acceptor;
	pthread_mutex_t   lock; /* everything below, and the answers */
	struct connection connections[CONNECTIONS_MAX];
	size_t            connection_count;
	size_t            request_count;
	char              url[512];
};

static bool send_all(int fd, const char *bytes, size_t left)
{
	while (left) {
		ssize_t done = send(fd, bytes, left, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		bytes += done;
		left -= (size_t)done;
	}
	return true;
}

/* More bytes of the connection; false at its end. */
static bool receive(int fd, struct buf *in)
{
	char   *at = buf_room(in, 4096);
	ssize_t got = at ? recv(fd, at, 4096, 0) : 0;

	if (got <= 0)
		return false;
	buf_added(in, (size_t)got);
	return true;
}

static size_t body_length(const char *headers)
{
	const char *at = strcasestr(headers, "\r\nContent-Length:");

	return at ? strtoul(at + sizeof("\r\nContent-Length:") - 1, NULL, 10) : 0;
}

/* One whole request at the start of in. ret_end is where the next begins. */
static bool read_request(int fd, struct buf *in, struct fake_request *ret, char **ret_end)
{
	char  *blank, *line_end;
	size_t head, body;

	while (!in->p || !(blank = strstr(in->p, "\r\n\r\n")))
		if (!receive(fd, in))
			return false;
	head = (size_t)(blank - in->p) + 4;
	body = body_length(in->p);
	while (in->n < head + body)
		if (!receive(fd, in))
			return false;
	*ret_end = in->p + head + body;
	line_end = strstr(in->p, "\r\n");
	ret->headers = line_end + 2;
	ret->body = in->p + head;
	*line_end = '\0';
	ret->method = in->p;
	ret->target = strchr(in->p, ' ') + 1;
	*strchr(in->p, ' ') = '\0';
	*strchrnul(ret->target, ' ') = '\0';
	return true;
}

static bool send_reply(int fd, const struct fake_reply *reply)
{
	struct buf out;
	bool       is_sent;

	if (reply->raw)
		return (void)send_all(fd, reply->raw, strlen(reply->raw)), false; /* a client that left is no fault */
	buf_init(&out, (size_t)1 << 28);
	buf_addf(&out, "HTTP/1.1 %d Answer\r\n%sContent-Length: %zu\r\n\r\n%s", reply->status,
	         reply->headers ? reply->headers : "", reply->body ? strlen(reply->body) : 0,
	         reply->body ? reply->body : "");
	is_sent = send_all(fd, out.p, out.n);
	buf_fini(&out);
	return is_sent;
}

static bool serve_one(struct connection *c, struct buf *in)
{
	struct fake_request req;
	struct fake_reply   reply;
	char               *end, kept;

	if (!read_request(c->fd, in, &req, &end))
		return false;
	kept = *end;
	*end = '\0'; /* ends the body */
	pthread_mutex_lock(&c->server->lock);
	reply = c->server->answer(&req, c->server->request_count++, c->server->arg);
	pthread_mutex_unlock(&c->server->lock);
	*end = kept;
	buf_consume(in, (size_t)(end - in->p));
	if (reply.is_silent) {
		while (receive(c->fd, in))
			;
		return false;
	}
	return send_reply(c->fd, &reply);
}

static void *serve(void *arg)
{
	struct connection *c = arg;
	struct buf         in;

	buf_init(&in, REQUEST_MAX);
	while (serve_one(c, &in))
		;
	shutdown(c->fd, SHUT_RDWR); /* closed when the server ends: its number must not be used twice before */
	buf_fini(&in);
	return NULL;
}

static void *accept_all(void *arg)
{
	struct fake_server *s = arg;
	int                 fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		pthread_mutex_lock(&s->lock);
		if (s->connection_count == CONNECTIONS_MAX) {
			close(fd);
		} else {
			struct connection *c = &s->connections[s->connection_count++];

			*c = (struct connection){ .server = s, .fd = fd };
			if (pthread_create(&c->thread, NULL, serve, c) != 0)
				abort();
		}
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static int bind_loopback(int *ret_port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t          size = sizeof(address);
	int                fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	CHECK(bind(fd, (struct sockaddr *)&address, size) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	*ret_port = ntohs(address.sin_port);
	return fd;
}

struct fake_server *fake_server_open(fake_answer_fn *answer, void *arg)
{
	struct fake_server *s = mem_new(struct fake_server);

	s->answer = answer;
	s->arg = arg;
	pthread_mutex_init(&s->lock, NULL);
	s->listener = bind_loopback(&s->port);
	CHECK(listen(s->listener, 16) == 0);
	CHECK(pthread_create(&s->acceptor, NULL, accept_all, s) == 0);
	return s;
}

void fake_server_close(struct fake_server *s)
{
	shutdown(s->listener, SHUT_RDWR);
	pthread_join(s->acceptor, NULL);
	close(s->listener);
	for (size_t i = 0; i < s->connection_count; i++) {
		shutdown(s->connections[i].fd, SHUT_RDWR);
		pthread_join(s->connections[i].thread, NULL);
		close(s->connections[i].fd);
	}
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int fake_server_port(const struct fake_server *s)
{
	return s->port;
}

size_t fake_server_requests(struct fake_server *s)
{
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->request_count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

size_t fake_server_connections(struct fake_server *s)
{
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->connection_count;
	pthread_mutex_unlock(&s->lock);
	return count;
}

const char *fake_server_url(struct fake_server *s, const char *path)
{
	int length = snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%d%s", s->port, path);

	CHECK(length > 0 && (size_t)length < sizeof(s->url));
	return s->url;
}

bool fake_request_has(const struct fake_request *req, const char *line)
{
	struct str rest = str_from(req->headers), wanted = str_from(line);

	while (rest.n) {
		struct str got = str_cut(&rest, '\n');

		if (got.n == wanted.n + 1 && str_starts_with(got, wanted))
			return true;
	}
	return false;
}

int fake_closed_port(void)
{
	int port;

	close(bind_loopback(&port));
	return port;
}

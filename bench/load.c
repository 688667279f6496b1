/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - a load generator for claims: as many as one core can ask for, each with a track id of its own.
 *
 * One thread, one epoll, a fixed number of connections. Each connection has one request under way and sends the next
 * when the reply is complete (a closed loop). The request's bytes are made once; a claim only writes a fresh
 * track id over the old one.
 *
 * With --rate the loop is open: requests are due at fixed times, whatever the server does, and each is timed from when
 * it was due. One that waits for a free connection waits at the server's expense.
 *
 * Always true:
 *   1. All connections are open before the clock starts.
 *   2. Every request sent ends as exactly one of: a reply with a status, or a failure of a named kind. [end_request()]
 *   3. Nothing runs forever: sending stops at ends_ns, waiting DRAIN_NS later.
 *
 * The time of a reply is taken when its last byte has been read, so waiting inside this program counts against the
 * server: the same for every server measured. In the closed loop a server that stalls is asked less meanwhile; see
 * bench/README.md.
 *
 * Not here: TLS, pipelining, names instead of addresses, what the figures mean (bench/run).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "histogram.h"
#include "idset.h"
#include "reply.h"

#define SECOND_NS   1000000000ll
#define DRAIN_NS    (5 * SECOND_NS)
#define SECONDS_MAX 3600

enum {
	CONNECTIONS_MAX = 20000,
	RATE_MAX = 1000000,
	REQUEST_SIZE = 1024,
	REPLY_SIZE = 8192,
	EVENTS = 512, /* taken from epoll at once */
	STATUS_END = 600,
	TRACK_ID_SIZE = ID_UUID_SIZE - 1,
};

/* How a request can end without a reply. */
#define FAILURE_TABLE(X)                                                  \
	X(CONNECT, "connect")     /* no connection could be made again */ \
	X(CLOSED, "closed")       /* the server hung up */                \
	X(RESET, "reset")         /* reading or writing failed */         \
	X(MALFORMED, "malformed") /* not a reply that can be framed */    \
	X(TOO_LARGE, "too_large") /* longer than REPLY_SIZE */            \
	X(TIMEOUT, "timeout")     /* nothing came until the end */

enum failure {
#define X(name, text) FAIL_##name,
	FAILURE_TABLE(X)
#undef X
	        FAIL__COUNT
};

static const char *const failure_names[] = {
#define X(name, text) text,
	FAILURE_TABLE(X)
#undef X
};

struct options {
	const char *address;
	unsigned    port;
	unsigned    connections;
	unsigned    seconds;
	uint64_t    requests;
	unsigned    rate;     /* requests due each second; 0: the next when a reply has come */
	bool        is_claim; /* a fresh track id for each request */
	bool        is_until_empty;
	bool        is_unique_checked;
	const char *list; /* file for all claims; NULL: none */
};

struct connection {
	int     fd; /* -1: closed */
	bool    is_busy;
	bool    is_write_armed; /* epoll reports when there is room again */
	size_t  sent, received;
	int64_t started_ns;
	char    request[REQUEST_SIZE];
	char    reply[REPLY_SIZE];
};

struct load {
	struct options     options;
	struct sockaddr_in to;
	size_t             request_size, track_id_at;
	int                epoll;
	struct connection *connections, **idle; /* idle: in the open loop, those without a request, in a ring */
	unsigned           idle_first, idle_count;
	FILE              *list;

	int64_t          started_ns, ends_ns, last_reply_ns, last_claim_ns;
	uint64_t         sent, busy;
	uint64_t         statuses[STATUS_END];
	uint64_t         failures[FAIL__COUNT];
	uint64_t         ids_missing;
	double           own_load; /* processor time of this program by time passed; near 1, it was the limit */
	struct idset     ids;
	struct histogram latency;
};

static NO_RETURN void fail(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void write_requests(struct load *l)
{
	const char *token = getenv("BROKER_API_TOKEN");
	char        track_id[ID_UUID_SIZE];
	char        request[REQUEST_SIZE];
	int         size;

	id_uuid(track_id);
	size = snprintf(request, sizeof(request),
	                "POST /v1/allocate HTTP/1.1\r\n"
	                "Host: %s:%u\r\n"
	                "Authorization: Bearer %s\r\n"
	                "Content-Length: 0\r\n"
	                "X-Track-ID: %s\r\n\r\n",
	                l->options.address, l->options.port, token ? token : "", track_id);
	if (!token || size >= REQUEST_SIZE) {
		fprintf(stderr, "load: BROKER_API_TOKEN must be set, to at most some 800 characters\n");
		exit(2);
	}
	l->request_size = (size_t)size;
	l->track_id_at = l->request_size - 4 - TRACK_ID_SIZE;
	for (unsigned i = 0; i < l->options.connections; i++)
		memcpy(l->connections[i].request, request, l->request_size);
}

static bool open_connection(struct load *l, struct connection *c)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = c };
	int                yes = 1;

	c->is_busy = c->is_write_armed = false;
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd >= 0 && connect(c->fd, (struct sockaddr *)&l->to, sizeof(l->to)) == 0 &&
	    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) == 0 &&
	    fcntl(c->fd, F_SETFL, O_NONBLOCK) == 0 && epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &event) == 0)
		return true;
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	return false;
}

static void close_connection(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

static void end_request(struct load *l, struct connection *c)
{
	c->is_busy = false;
	l->busy--;
}

static void fail_request(struct load *l, struct connection *c, enum failure how)
{
	l->failures[how]++;
	end_request(l, c);
	close_connection(c);
}

static void arm_write(struct load *l, struct connection *c, bool is_armed)
{
	struct epoll_event event = { .events = EPOLLIN | (is_armed ? EPOLLOUT : 0), .data.ptr = c };

	if (c->is_write_armed != is_armed && epoll_ctl(l->epoll, EPOLL_CTL_MOD, c->fd, &event) != 0)
		fail("epoll_ctl");
	c->is_write_armed = is_armed;
}

/* Send what is left of the request, as far as there is room. */
static void continue_request(struct load *l, struct connection *c)
{
	ssize_t n = send(c->fd, c->request + c->sent, l->request_size - c->sent, MSG_NOSIGNAL);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		fail_request(l, c, FAIL_RESET);
		return;
	}
	c->sent += n > 0 ? (size_t)n : 0;
	arm_write(l, c, c->sent < l->request_size);
}

static bool has_more(const struct load *l, int64_t now)
{
	return now < l->ends_ns && l->sent < l->options.requests;
}

/* Of the open loop. */
static int64_t next_due_ns(const struct load *l)
{
	return l->started_ns + (int64_t)(l->sent * (SECOND_NS / l->options.rate));
}

/* The one that has been idle longest is used next, so that all of them are used. */
static struct connection *take_idle(struct load *l)
{
	struct connection *c = l->idle[l->idle_first];

	l->idle_first = (l->idle_first + 1) % l->options.connections;
	l->idle_count--;
	return c;
}

/* Send the next request on this connection, when one is still due. Opens it again if it broke. */
static void start_request(struct load *l, struct connection *c, int64_t now)
{
	char    track_id[ID_UUID_SIZE];
	int64_t due_ns = l->options.rate ? next_due_ns(l) : now;

	if (!has_more(l, now))
		return;
	if (due_ns > now) {
		l->idle[(l->idle_first + l->idle_count++) % l->options.connections] = c;
		return;
	}
	if (l->options.is_claim) {
		id_uuid(track_id);
		memcpy(c->request + l->track_id_at, track_id, TRACK_ID_SIZE);
	}
	l->sent++;
	l->busy++;
	c->sent = c->received = 0;
	if (c->fd < 0 && !open_connection(l, c)) {
		c->is_busy = true;
		fail_request(l, c, FAIL_CONNECT);
		return;
	}
	c->is_busy = true;
	c->started_ns = due_ns;
	continue_request(l, c);
}

static void note_claim(struct load *l, const struct connection *c, struct str sandbox_id)
{
	if (l->options.is_unique_checked && !idset_add(&l->ids, sandbox_id))
		l->ids_missing++;
	if (l->list)
		fprintf(l->list, "%.*s %.*s\n", TRACK_ID_SIZE, c->request + l->track_id_at, STR_ARG(sandbox_id));
}

static void count_reply(struct load *l, struct connection *c, const struct reply *r, int64_t now)
{
	l->statuses[r->status]++;
	histogram_add(&l->latency, (uint64_t)(now - c->started_ns));
	l->last_reply_ns = now;
	if (r->status == 201) {
		l->last_claim_ns = now;
		note_claim(l, c, reply_sandbox_id(r->body));
	}
	if (r->status == 409 && l->options.is_until_empty && now < l->ends_ns)
		l->ends_ns = now;
	end_request(l, c);
}

/* Read what is there; when that completes the reply, count it. */
static void continue_reply(struct load *l, struct connection *c)
{
	ssize_t          n = recv(c->fd, c->reply + c->received, REPLY_SIZE - c->received, 0);
	struct reply     r;
	enum reply_state state;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		fail_request(l, c, n == 0 ? FAIL_CLOSED : FAIL_RESET);
		return;
	}
	c->received += (size_t)n;
	state = reply_parse(str_of(c->reply, c->received), &r);
	if (state == REPLY_WHOLE && r.size == c->received && c->sent == l->request_size)
		count_reply(l, c, &r, mono_ns());
	else if (state != REPLY_PARTIAL)
		fail_request(l, c, FAIL_MALFORMED);
	else if (c->received == REPLY_SIZE)
		fail_request(l, c, FAIL_TOO_LARGE);
}

static void serve_event(struct load *l, const struct epoll_event *event)
{
	struct connection *c = event->data.ptr;

	if (!c->is_busy) { /* the server hung up on an idle connection: nobody waits for anything */
		close_connection(c);
		return;
	}
	if (event->events & EPOLLOUT)
		continue_request(l, c);
	if (c->is_busy && event->events & ~(uint32_t)EPOLLOUT)
		continue_reply(l, c);
	if (!c->is_busy)
		start_request(l, c, c->fd >= 0 ? l->last_reply_ns : mono_ns());
}

static void open_all(struct load *l)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) != 0)
		fail("getrlimit");
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) != 0)
		fail("setrlimit");
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0)
		fail("epoll_create1");
	for (unsigned i = 0; i < l->options.connections; i++)
		if (!open_connection(l, &l->connections[i]))
			fail("connect");
}

static double seconds_between(int64_t from_ns, int64_t to_ns)
{
	return (double)(to_ns - from_ns) / (double)SECOND_NS;
}

static double own_seconds(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) != 0)
		fail("getrusage");
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run(struct load *l)
{
	struct epoll_event events[EVENTS];
	double             own = own_seconds();
	int64_t            now = mono_ns();

	l->started_ns = l->last_reply_ns = l->last_claim_ns = now;
	l->ends_ns = now + l->options.seconds * SECOND_NS;
	for (unsigned i = 0; i < l->options.connections; i++)
		start_request(l, &l->connections[i], mono_ns());

	while ((now = mono_ns()) < l->ends_ns + DRAIN_NS && (l->busy || (l->idle_count && has_more(l, now)))) {
		int64_t wait_ms = (l->ends_ns + DRAIN_NS - now) / 1000000 + 1;
		int     n;

		while (l->idle_count && has_more(l, now) && next_due_ns(l) <= now)
			start_request(l, take_idle(l), now);
		if (l->idle_count && has_more(l, now))
			wait_ms = 0; /* a due time is nearer than epoll can wait for */
		n = epoll_wait(l->epoll, events, EVENTS, (int)wait_ms);
		if (n < 0 && errno != EINTR)
			fail("epoll_wait");
		for (int i = 0; i < n; i++)
			serve_event(l, &events[i]);
	}
	l->failures[FAIL_TIMEOUT] += l->busy;
	l->own_load = (own_seconds() - own) / seconds_between(l->started_ns, mono_ns());
}

static void print_counts(const struct load *l)
{
	const char *separator = "";

	printf(",\"statuses\":{");
	for (int i = 0; i < STATUS_END; i++)
		if (l->statuses[i]) {
			printf("%s\"%d\":%" PRIu64, separator, i, l->statuses[i]);
			separator = ",";
		}
	printf("},\"failures\":{");
	for (int i = 0; i < FAIL__COUNT; i++)
		printf("%s\"%s\":%" PRIu64, i ? "," : "", failure_names[i], l->failures[i]);
	printf("}");
}

static uint64_t count_errors(const struct load *l)
{
	uint64_t errors = 0;

	for (int i = 0; i < STATUS_END; i++)
		if (i >= 300 && !(i == 409 && l->options.is_until_empty))
			errors += l->statuses[i];
	for (int i = 0; i < FAIL__COUNT; i++)
		errors += l->failures[i];
	return errors;
}

static void print_quantile(const struct load *l, const char *name, double part)
{
	printf("\"%s\":%.1f,", name, (double)histogram_quantile(&l->latency, part) / 1000);
}

static void print_report(const struct load *l)
{
	double   seconds = seconds_between(l->started_ns, l->last_reply_ns);
	double   claim_seconds = seconds_between(l->started_ns, l->last_claim_ns);
	uint64_t claims = l->statuses[201];

	printf("{\"mode\":\"%s\",\"connections\":%u,\"requests\":%" PRIu64 ",\"replies\":%" PRIu64,
	       l->options.is_claim ? "claim" : "fixed", l->options.connections, l->sent, l->latency.count);
	printf(",\"seconds\":%.6f,\"rate\":%.1f", seconds, seconds > 0 ? (double)l->latency.count / seconds : 0);
	printf(",\"claims\":%" PRIu64 ",\"claim_seconds\":%.6f,\"claim_rate\":%.1f", claims, claim_seconds,
	       claim_seconds > 0 ? (double)claims / claim_seconds : 0);
	printf(",\"latency_us\":{");
	print_quantile(l, "p50", 0.50);
	print_quantile(l, "p99", 0.99);
	print_quantile(l, "p99_9", 0.999);
	printf("\"max\":%.1f}", (double)l->latency.max / 1000);
	print_counts(l);
	printf(",\"errors\":%" PRIu64 ",\"own_load\":%.3f", count_errors(l), l->own_load);
	if (l->options.is_unique_checked)
		printf(",\"ids\":%zu,\"ids_repeated\":%zu,\"ids_missing\":%" PRIu64, l->ids.count,
		       idset_repeats(&l->ids), l->ids_missing);
	printf("}\n");
}

static NO_RETURN void usage(const char *why)
{
	fprintf(stderr,
	        "load: %s\n"
	        "usage: BROKER_API_TOKEN=TOKEN load --port N [options]\n"
	        "  --address A      numeric IPv4 address (127.0.0.1)\n"
	        "  --port N         1 to 65535\n"
	        "  --connections N  1 to %d (1)\n"
	        "  --seconds N      stop sending after this time, 1 to %d (%d)\n"
	        "  --rate N         requests due each second, 1 to %d (the next when a reply has come)\n"
	        "  --requests N     stop sending after this many\n"
	        "  --mode M         claim: a fresh track id each time; fixed: always the same bytes (claim)\n"
	        "  --until-empty    stop at the first 409 and do not count it as an error\n"
	        "  --check-unique   note every sandbox_id of a 201 and report repeats\n"
	        "  --list FILE      write track id and sandbox_id of every 201 there, a line each\n",
	        why, CONNECTIONS_MAX, SECONDS_MAX, SECONDS_MAX, RATE_MAX);
	exit(2);
}

static uint64_t parse_number(const char *text, uint64_t max, const char *why)
{
	char    *end;
	uint64_t number;

	errno = 0;
	number = strtoull(text, &end, 10);
	if (errno || end == text || *end || text[0] == '-' || number < 1 || number > max)
		usage(why);
	return number;
}

static bool parse_mode(const char *text)
{
	if (strcmp(text, "claim") != 0 && strcmp(text, "fixed") != 0)
		usage("--mode must be claim or fixed");
	return strcmp(text, "claim") == 0;
}

static void parse_options(struct options *o, int argc, char **argv)
{
	/* clang-format off */
	static const struct option table[] = {
		{ "address",      required_argument, NULL, 'a' },
		{ "port",         required_argument, NULL, 'p' },
		{ "connections",  required_argument, NULL, 'c' },
		{ "seconds",      required_argument, NULL, 's' },
		{ "rate",         required_argument, NULL, 'r' },
		{ "requests",     required_argument, NULL, 'n' },
		{ "mode",         required_argument, NULL, 'm' },
		{ "until-empty",  no_argument,       NULL, 'e' },
		{ "check-unique", no_argument,       NULL, 'u' },
		{ "list",         required_argument, NULL, 'l' },
		{ 0 },
	};
	/* clang-format on */
	int name;

	while ((name = getopt_long(argc, argv, "", table, NULL)) != -1)
		switch (name) {
		case 'a': o->address = optarg; break;
		case 'p': o->port = (unsigned)parse_number(optarg, 65535, "--port is not a port"); break;
		case 'c':
			o->connections = (unsigned)parse_number(optarg, CONNECTIONS_MAX,
			                                        "--connections is out of range");
			break;
		case 's': o->seconds = (unsigned)parse_number(optarg, SECONDS_MAX, "--seconds is out of range"); break;
		case 'r': o->rate = (unsigned)parse_number(optarg, RATE_MAX, "--rate is out of range"); break;
		case 'n': o->requests = parse_number(optarg, UINT64_MAX, "--requests is out of range"); break;
		case 'm': o->is_claim = parse_mode(optarg); break;
		case 'e': o->is_until_empty = true; break;
		case 'u': o->is_unique_checked = true; break;
		case 'l': o->list = optarg; break;
		default: usage("unknown option");
		}
	if (optind != argc || !o->port)
		usage(optind != argc ? "too many arguments" : "--port is missing");
}

int main(int argc, char **argv)
{
	struct load *l = mem_new(struct load);

	l->options = (struct options){ .address = "127.0.0.1",
		                       .connections = 1,
		                       .seconds = SECONDS_MAX,
		                       .requests = UINT64_MAX,
		                       .is_claim = true };
	parse_options(&l->options, argc, argv);
	l->to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons((uint16_t)l->options.port) };
	if (inet_pton(AF_INET, l->options.address, &l->to.sin_addr) != 1)
		usage("--address must be a numeric IPv4 address");

	l->connections = mem_new_array(struct connection, l->options.connections);
	l->idle = mem_new_array(struct connection *, l->options.connections);
	write_requests(l);
	if (l->options.list && !(l->list = fopen(l->options.list, "w")))
		fail(l->options.list);
	open_all(l);
	run(l);
	print_report(l);
	if (l->list && fclose(l->list) != 0)
		fail(l->options.list);

	for (unsigned i = 0; i < l->options.connections; i++)
		close_connection(&l->connections[i]);
	close(l->epoll);
	idset_fini(&l->ids);
	free(l->idle);
	free(l->connections);
	free(l);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_direct.c - the write of a claim, straight to DynamoDB, with nothing of our server in between.
 *
 * It is what bench/run compares the broker with: as fast as a claim can be on this store. Standard input has the body
 * of a TransactWriteItems on its first line, then a sandbox on each line: its id, its updated_at and its last_event,
 * with blanks between them. In the body @SANDBOX@, @UPDATED@ and @LAST@ stand for these three, @TRACK@, @EVENT@ and
 * @TOKEN@ for a fresh UUID each, and @SLICE@ for one partition key of the log of events after the other. bench/run
 * takes the body from a claim that the broker made, so both write the same.
 *
 * One thread for each connection, each with one request under way (a closed loop, as in load.c). What is throttled is
 * sent again after a wait of up to THROTTLED_MS, as often as it takes.
 *
 * Always true:
 *   1. All connections are open before the clock starts.
 *   2. Each sandbox is asked for once, and ends as a claim, a refusal or a failure; a failure ends its thread, and what
 *      is
 *      then asked by nobody is missing from the sum.                                              [claim_one()]
 *   3. Nothing waits forever: a reply that takes longer than PATIENCE_SEC is a failure.
 *
 * Not here: signing (the emulator takes any well-formed Authorization), TLS, finding free sandboxes, trying again what
 * was refused for another reason.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "histogram.h"
#include "reply.h"

enum {
	CONNECTIONS_MAX = 1024,
	SANDBOXES_MAX = 1000000,
	BODY_MAX = 65536,
	REPLY_SIZE = 16384,
	PATIENCE_SEC = 10,
	SHOWN_MAX = 400, /* of a refusal */
	SLICES_MAX = 64,
	THROTTLED_MS = 50,
};

struct sandbox {
	char id[ID_UUID_SIZE];
	char updated[24];
	char last[ID_UUID_SIZE];
};

struct direct {
	unsigned        port, slices;
	char           *body; /* with placeholders */
	struct sandbox *sandboxes;
	size_t          count;
	atomic_size_t   next;

	pthread_mutex_t  lock; /* for all below */
	uint64_t         claims, refusals, failures, throttles;
	int64_t          last_claim_ns;
	struct histogram latency;
};

struct worker {
	struct direct *direct;
	pthread_t      thread;
	int            fd;
	struct buf     body, request;
	char           reply[REPLY_SIZE];
};

static NO_RETURN void fail(const char *what)
{
	fprintf(stderr, "ddb_direct: %s\n", what);
	exit(1);
}

static unsigned parse_number(const char *text, unsigned max, const char *why)
{
	int64_t number;

	if (!str_to_int(str_from(text), 1, max, &number))
		fail(why);
	return (unsigned)number;
}

/* --- what to ask for --- */

static void take_word(struct str *line, char *ret, size_t room)
{
	struct str word = str_cut(line, ' ');

	if (!word.n || word.n >= room)
		fail("a line of standard input is not a sandbox's id, its updated_at and its last_event");
	memcpy(ret, word.p, word.n);
}

static void add_sandbox(struct direct *d, struct str line)
{
	struct sandbox *s = &d->sandboxes[d->count];

	if (d->count == SANDBOXES_MAX)
		fail("too many sandboxes on standard input");
	take_word(&line, s->id, sizeof(s->id));
	take_word(&line, s->updated, sizeof(s->updated));
	take_word(&line, s->last, sizeof(s->last));
	d->count++;
}

static void read_input(struct direct *d)
{
	char   *line = NULL;
	size_t  room = 0;
	ssize_t n;

	d->sandboxes = mem_new_array(struct sandbox, SANDBOXES_MAX);
	while ((n = getline(&line, &room, stdin)) > 0) {
		if (line[n - 1] == '\n')
			line[--n] = 0;
		if (n >= BODY_MAX)
			fail("a line of standard input is too long");
		if (d->body)
			add_sandbox(d, str_of(line, (size_t)n));
		else
			d->body = mem_strdup(line);
	}
	free(line);
	if (!d->count)
		fail("standard input must have a body and at least one sandbox");
}

/* What stands for a placeholder in one request. */
struct filling {
	const struct sandbox *sandbox;
	char                  track[ID_UUID_SIZE], event[ID_UUID_SIZE], token[ID_UUID_SIZE], slice[16];
};

static void choose_filling(struct direct *d, size_t number, struct filling *ret)
{
	size_t slice = number % d->slices;

	ret->sandbox = &d->sandboxes[number];
	id_uuid(ret->track);
	id_uuid(ret->event);
	id_uuid(ret->token);
	(void)snprintf(ret->slice, sizeof(ret->slice), slice ? "event.%zu" : "event", slice); /* fits */
}

static void add_filled(struct buf *b, struct str name, const struct filling *f)
{
	const struct {
		struct str  name;
		const char *text;
	} rows[] = {
		{ STR("SANDBOX"), f->sandbox->id }, { STR("UPDATED"), f->sandbox->updated },
		{ STR("LAST"), f->sandbox->last },  { STR("TRACK"), f->track },
		{ STR("EVENT"), f->event },         { STR("TOKEN"), f->token },
		{ STR("SLICE"), f->slice },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (str_eq(name, rows[i].name)) {
			buf_add_text(b, rows[i].text);
			return;
		}
	fail("the body has a placeholder that is none of those in the file's first comment");
}

static void write_request(struct worker *w, size_t number)
{
	struct str     rest = str_from(w->direct->body);
	struct filling filling;

	choose_filling(w->direct, number, &filling);
	buf_reset(&w->body);
	while (rest.n) {
		buf_add_str(&w->body, str_cut(&rest, '@'));
		if (rest.n)
			add_filled(&w->body, str_cut(&rest, '@'), &filling);
	}
	buf_reset(&w->request);
	buf_addf(&w->request,
	         "POST / HTTP/1.1\r\n"
	         "Host: 127.0.0.1:%u\r\n"
	         "Content-Type: application/x-amz-json-1.0\r\n"
	         "X-Amz-Target: DynamoDB_20120810.TransactWriteItems\r\n"
	         "Authorization: AWS4-HMAC-SHA256 Credential=bench/20260101/us-east-1/dynamodb/aws4_request, "
	         "SignedHeaders=host, Signature=0\r\n"
	         "Content-Length: %zu\r\n\r\n",
	         w->direct->port, w->body.n);
	buf_add_str(&w->request, buf_str(&w->body));
	if (w->request.is_full)
		fail("the request is too long");
}

/* --- asking --- */

static bool send_request(const struct worker *w)
{
	for (size_t sent = 0; sent < w->request.n;) {
		ssize_t n = send(w->fd, w->request.p + sent, w->request.n - sent, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		sent += (size_t)n;
	}
	return true;
}

static bool read_reply(struct worker *w, struct reply *ret)
{
	enum reply_state state = REPLY_PARTIAL;
	size_t           received = 0;

	while (state == REPLY_PARTIAL && received < REPLY_SIZE) {
		ssize_t n = recv(w->fd, w->reply + received, REPLY_SIZE - received, 0);

		if (n <= 0)
			return false;
		received += (size_t)n;
		state = reply_parse(str_of(w->reply, received), ret);
	}
	return state == REPLY_WHOLE && ret->size == received;
}

static bool is_throttled(const struct reply *r)
{
	return r->status == 400 && (memmem(r->body.p, r->body.n, "ThrottlingE", strlen("ThrottlingE")) ||
	                            memmem(r->body.p, r->body.n, "ProvisionedThr", strlen("ProvisionedThr")));
}

static void wait_a_little(void)
{
	struct timespec t = { .tv_nsec = (long)(id_fast_random() % (THROTTLED_MS * 1000000ull)) };

	nanosleep(&t, NULL);
}

/* False: no answer. */
static bool ask(struct worker *w, struct reply *ret, uint64_t *throttles)
{
	while (send_request(w) && read_reply(w, ret)) {
		if (!is_throttled(ret))
			return true;
		++*throttles;
		wait_a_little();
	}
	return false;
}

/* False: the connection is of no more use. */
static bool claim_one(struct worker *w, size_t number)
{
	struct direct *d = w->direct;
	struct reply   reply = { 0 };
	uint64_t       throttles = 0;
	int64_t        started, now;
	bool           is_answered;

	write_request(w, number);
	started = mono_ns();
	is_answered = ask(w, &reply, &throttles);
	now = mono_ns();

	pthread_mutex_lock(&d->lock);
	d->throttles += throttles;
	if (!is_answered) {
		d->failures++;
	} else if (reply.status != 200) {
		if (d->refusals++ == 0)
			fprintf(stderr, "ddb_direct: refused with %d: %.*s\n", reply.status,
			        reply.body.n < SHOWN_MAX ? (int)reply.body.n : SHOWN_MAX, reply.body.p);
	} else {
		d->claims++;
		d->last_claim_ns = now;
		histogram_add(&d->latency, (uint64_t)(now - started));
	}
	pthread_mutex_unlock(&d->lock);
	return is_answered;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	size_t         i;

	while ((i = atomic_fetch_add(&w->direct->next, 1)) < w->direct->count)
		if (!claim_one(w, i))
			break;
	return NULL;
}

static void open_worker(struct direct *d, struct worker *w)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)d->port) };
	struct timeval     patience = { .tv_sec = PATIENCE_SEC };
	int                yes = 1;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w->direct = d;
	buf_init(&w->body, BODY_MAX);
	buf_init(&w->request, 2 * BODY_MAX);
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
	    setsockopt(w->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
	    setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)) != 0 ||
	    connect(w->fd, (struct sockaddr *)&to, sizeof(to)) != 0)
		fail(strerror(errno));
}

static void close_worker(struct worker *w)
{
	close(w->fd);
	buf_fini(&w->body);
	buf_fini(&w->request);
}

static void print_report(const struct direct *d, unsigned connections, double seconds)
{
	printf("{\"connections\":%u,\"claims\":%" PRIu64 ",\"claim_seconds\":%.6f,\"claim_rate\":%.1f", connections,
	       d->claims, seconds, seconds > 0 ? (double)d->claims / seconds : 0);
	printf(",\"latency_us\":{\"p50\":%.1f,\"p99\":%.1f}", (double)histogram_quantile(&d->latency, 0.50) / 1000,
	       (double)histogram_quantile(&d->latency, 0.99) / 1000);
	printf(",\"throttles\":%" PRIu64 ",\"refusals\":%" PRIu64 ",\"failures\":%" PRIu64 ",\"errors\":%" PRIu64 "}\n",
	       d->throttles, d->refusals, d->failures, (uint64_t)d->count - d->claims);
}

int main(int argc, char **argv)
{
	struct direct *d = mem_new(struct direct);
	struct worker *workers;
	unsigned       connections;
	int64_t        started;

	if (argc != 4)
		fail("usage: ddb_direct PORT CONNECTIONS SLICES, with a body and sandboxes on standard input");
	d->port = parse_number(argv[1], 65535, "PORT must be 1 to 65535");
	connections = parse_number(argv[2], CONNECTIONS_MAX, "CONNECTIONS must be 1 to 1024");
	d->slices = parse_number(argv[3], SLICES_MAX, "SLICES must be 1 to 64");
	read_input(d);
	pthread_mutex_init(&d->lock, NULL);
	workers = mem_new_array(struct worker, connections);
	for (unsigned i = 0; i < connections; i++)
		open_worker(d, &workers[i]);

	started = d->last_claim_ns = mono_ns();
	for (unsigned i = 0; i < connections; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			fail("pthread_create");
	for (unsigned i = 0; i < connections; i++)
		pthread_join(workers[i].thread, NULL);
	print_report(d, connections, (double)(d->last_claim_ns - started) / 1e9);

	for (unsigned i = 0; i < connections; i++)
		close_worker(&workers[i]);
	pthread_mutex_destroy(&d->lock);
	free(workers);
	free(d->sandboxes);
	free(d->body);
	free(d);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch.c - outgoing HTTP by libcurl's easy interface.
 *
 * Each thread keeps one easy handle and with it its open connections, so that the second request to a host finds the
 * first one's connection. The handle is reset before each request: nothing but connections, names and TLS sessions
 * goes from one request to the next. It ends with its thread.
 *
 * Always true:
 *   1. Only http and https, no redirect, no cookie, no .netrc, no signal, TLS 1.2 or later with its peer checked.
 *   2. Header bytes, body bytes and time have a limit; a request that names none gets the ones below. An answer that is
 *      taken in pieces may be of any length and last for ever, as long as it does not fall silent.
 *   3. A message names method and URL, the URL without user, password and query [show_url()]. Header values, and so
 *      tokens, never get into a message.
 *   4. A request of limited reach is not sent to an address beyond it, whether its connection is new [open_socket()] or
 *      was kept from another request [before_request()].
 *
 * Proxies: https requests use HTTPS_PROXY and NO_PROXY of the environment, since a proxy then sees a host name and
 * no more. http requests never use one: it would read the token. Requests of limited reach use none either.
 *
 * Not here: retries and what a status means. The caller knows.
 */
#include "net/fetch.h"

#include <curl/curl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/trace.h"

enum {
	HEAD_MAX = 65536,
	HEADER_NAME_MAX = 64,
	URL_MAX = 8192,
	DATE_MAX = 63,
	KEPT_CONNECTIONS_MAX = 4,
	DEFAULT_CONNECT_TIMEOUT_MS = 10000,
	DEFAULT_TOTAL_TIMEOUT_MS = 60000,
	DEFAULT_IDLE_TIMEOUT_MS = 60000,
	DEFAULT_BODY_MAX = 1 << 20,
};

/* What one request needs while it is under way. */
struct transfer {
	CURL              *curl; /* the thread's own */
	struct curl_slist *headers;
	struct buf         head;
	bool               is_head_whole; /* its last line has come */
	struct buf         body;
	const char        *shown_url;

	const struct fetch_request *req;
	bool                        has_enough; /* take() said so */
	enum fetch_reach            reach;
	char                        denied[64]; /* the address beyond it */
	char                        why[CURL_ERROR_SIZE];
};

/* What a thread keeps. */
struct keeper {
	CURL *curl;
	bool (*may_go_on)(void *arg); /* NULL: always */
	void *arg;
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static pthread_key_t  keeper_key;

static void free_keeper(void *arg)
{
	struct keeper *k = arg;

	curl_easy_cleanup(k->curl);
	free(k);
}

static void init(void)
{
	mem_must(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK && pthread_key_create(&keeper_key, free_keeper) == 0,
	         "libcurl");
}

void fetch_global_init(void)
{
	pthread_once(&init_once, init);
}

static struct keeper *thread_keeper(void)
{
	struct keeper *k = pthread_getspecific(keeper_key);

	if (k)
		return k;
	k = mem_new(struct keeper);
	k->curl = curl_easy_init();
	mem_must(k->curl && pthread_setspecific(keeper_key, k) == 0, "a libcurl handle");
	return k;
}

void fetch_watch(bool (*may_go_on)(void *arg), void *arg)
{
	struct keeper *k;

	fetch_global_init();
	k = thread_keeper();
	k->may_go_on = may_go_on;
	k->arg = arg;
}

bool fetch_may_go_on(void)
{
	const struct keeper *k;

	fetch_global_init();
	k = pthread_getspecific(keeper_key);
	return !k || !k->may_go_on || k->may_go_on(k->arg);
}

/* About once a second, whatever is waited for. Not 0: give it up. */
static int may_end(void *arg, curl_off_t to_come, curl_off_t came, curl_off_t to_go, curl_off_t went)
{
	const struct keeper *k = arg;

	(void)to_come, (void)came, (void)to_go, (void)went;
	return !k->may_go_on(k->arg);
}

static void set_watch(const struct keeper *k)
{
	if (!k->may_go_on)
		return;
	curl_easy_setopt(k->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(k->curl, CURLOPT_XFERINFOFUNCTION, may_end);
	curl_easy_setopt(k->curl, CURLOPT_XFERINFODATA, k);
}

/* The URL as messages may show it. NULL when it is not one, or not http or https. */
static const char *show_url(const char *url, struct arena *a)
{
	static const CURLUPart hidden[] = { CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS, CURLUPART_QUERY,
		                            CURLUPART_FRAGMENT };
	CURLU                 *parts = curl_url();
	char                  *scheme = NULL, *shown = NULL;
	const char            *ret = NULL;

	if (parts && strlen(url) <= URL_MAX && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
	    (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0)) {
		for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
			(void)curl_url_set(parts, hidden[i], NULL, 0); /* removing cannot fail */
		if (curl_url_get(parts, CURLUPART_URL, &shown, 0) == CURLUE_OK)
			ret = arena_copy(a, shown, strlen(shown));
	}
	curl_free(scheme);
	curl_free(shown);
	curl_url_cleanup(parts);
	return ret;
}

/* One header line of the answer. An interim answer (1xx) begins again with the next status line. */
static size_t take_header(char *bytes, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	struct str       line = str_of(bytes, size * count);

	if (str_starts_with(line, STR("HTTP/"))) {
		buf_reset(&t->head);
		t->is_head_whole = false;
	} else if (str_eq(line, STR("\r\n")) || str_eq(line, STR("\n"))) {
		t->is_head_whole = true;
	} else {
		buf_add_str(&t->head, line);
	}
	return t->head.is_full ? 0 : line.n;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct transfer *t = arg;
	long             status = 0;

	if (t->req->take && curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK &&
	    status / 100 == 2) {
		t->has_enough = !t->req->take(str_of(bytes, size * count), t->req->take_arg);
		return t->has_enough ? 0 : size * count;
	}
	buf_add(&t->body, bytes, size * count);
	return t->body.is_full ? 0 : size * count;
}

static void add_header(struct transfer *t, const char *line)
{
	t->headers = curl_slist_append(t->headers, line);
	mem_must(t->headers, "a request header");
}

/* Whose request we call for, in both spellings: neither is signed, and unknown headers are ignored. */
static void add_trace(struct transfer *t)
{
	struct str trace = trace_current();
	char       line[128], amazon[TRACE_AMAZON_SIZE];

	if (!trace.n)
		return;
	(void)snprintf(line, sizeof(line), "traceparent: %.*s", STR_ARG(trace)); /* fits, as does the other */
	add_header(t, line);
	(void)snprintf(line, sizeof(line), "X-Amzn-Trace-Id: %s", trace_to_amazon(trace, amazon));
	add_header(t, line);
}

/* A line break inside a value would be a header of its own. */
static enum rc add_headers(struct transfer *t, const struct fetch_request *req, struct err *e)
{
	bool has_type = false;

	for (size_t i = 0; i < FETCH_HEADERS_MAX && req->headers[i]; i++) {
		struct str name = str_of(req->headers[i], strcspn(req->headers[i], ":\r\n"));

		if (name.n == 0 || name.n > HEADER_NAME_MAX || name.p[name.n] != ':')
			return err_set(e, RC_INVALID, "header %zu must be \"Name: value\"", i + 1);
		if (strpbrk(req->headers[i], "\r\n"))
			return err_set(e, RC_INVALID, "the value of header %.*s must be on one line", STR_ARG(name));
		has_type = has_type || str_eq_nocase(name, STR("Content-Type"));
		add_header(t, req->headers[i]);
	}
	if (!has_type)
		add_header(t, "Content-Type:"); /* libcurl would claim a form */
	add_trace(t);
	add_header(t, "Expect:"); /* our bodies are small: send them at once */
	curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, t->headers);
	return RC_OK;
}

static void set_method(CURL *curl, const struct fetch_request *req)
{
	bool wants_body = strcmp(req->method, "POST") == 0 || strcmp(req->method, "PUT") == 0 ||
	                  strcmp(req->method, "PATCH") == 0;

	if (req->body.p || wants_body) { /* without a body: Content-Length: 0 */
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, req->body.p ? req->body.p : "");
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)req->body.n);
	}
	if (strcmp(req->method, "HEAD") == 0)
		curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
	else
		curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, req->method);
}

static void set_limits(CURL *curl, const struct fetch_request *req, size_t body_max)
{
	long connect_ms = req->connect_timeout_ms > 0 ? req->connect_timeout_ms : DEFAULT_CONNECT_TIMEOUT_MS;
	long total_ms = req->total_timeout_ms ? req->total_timeout_ms : DEFAULT_TOTAL_TIMEOUT_MS;
	long idle_ms = req->idle_timeout_ms > 0 ? req->idle_timeout_ms : DEFAULT_IDLE_TIMEOUT_MS;

	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	curl_easy_setopt(curl, CURLOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS_MAX);
	if (req->take) {
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (idle_ms + 999) / 1000);
		return;
	}
	if (total_ms != FETCH_NO_LIMIT)
		curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, total_ms);
	curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)body_max);
}

static bool is_within(enum fetch_reach reach, enum addr_place place)
{
	return reach == FETCH_ANYWHERE || place == ADDR_PUBLIC ||
	       (reach == FETCH_NOT_FORBIDDEN && place == ADDR_PRIVATE);
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose UNUSED, struct curl_sockaddr *address)
{
	struct transfer *t = arg;

	if (is_within(t->reach, addr_place(&address->addr)))
		return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (getnameinfo(&address->addr, address->addrlen, t->denied, sizeof(t->denied), NULL, 0, NI_NUMERICHOST) != 0)
		(void)snprintf(t->denied, sizeof(t->denied), "its address");
	return CURL_SOCKET_BAD;
}

static int before_request(void *arg, char *to, char *from UNUSED, int to_port UNUSED, int from_port UNUSED)
{
	struct transfer *t = arg;
	enum addr_place  place = ADDR_FORBIDDEN;

	if (t->reach != FETCH_ANYWHERE && !(addr_place_of_text(str_from(to), &place) && is_within(t->reach, place))) {
		(void)snprintf(t->denied, sizeof(t->denied), "%s", to);
		return CURL_PREREQFUNC_ABORT;
	}
	if (t->req->sends)
		++*t->req->sends;
	return CURL_PREREQFUNC_OK;
}

static void set_reach(struct transfer *t)
{
	curl_easy_setopt(t->curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(t->curl, CURLOPT_PREREQDATA, t);
	if (t->reach == FETCH_ANYWHERE)
		return;
	curl_easy_setopt(t->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETDATA, t);
}

/* Debian, Amazon Linux and Fedora, SUSE, Alpine. */
const char *fetch_system_ca(void)
{
	static const char *const places[] = { "/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
		                              "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };
	const char              *own = getenv("SSL_CERT_FILE");

	if (own && own[0])
		return own;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], R_OK) == 0)
			return places[i];
	return NULL;
}

static void set_transport(CURL *curl, const struct fetch_request *req)
{
	curl_easy_setopt(curl, CURLOPT_URL, req->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	if (!str_starts_with(str_from(req->url), STR("https:")))
		curl_easy_setopt(curl, CURLOPT_PROXY, "");
	if (req->ca_file || fetch_system_ca())
		curl_easy_setopt(curl, CURLOPT_CAINFO, req->ca_file ? req->ca_file : fetch_system_ca());
	if (req->trusts_anybody) {
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

static enum rc explain(const struct transfer *t, const struct fetch_request *req, CURLcode code, struct err *e)
{
	const char *why = t->why[0] ? t->why : curl_easy_strerror(code);

	if (t->denied[0])
		return err_set(e, RC_DENIED, "%s is an address that may not be called from here; it must be %s",
		               t->denied,
		               t->reach == FETCH_PUBLIC ? "a public one" : "neither link-local nor a cloud's metadata");
	if (t->head.is_full)
		return err_set(e, RC_TOO_LARGE, "the answer's headers are longer than %d bytes", HEAD_MAX);
	if (t->body.is_full || code == CURLE_FILESIZE_EXCEEDED)
		return err_set(e, RC_TOO_LARGE, "the answer is longer than %zu bytes", t->body.max);
	if (code == CURLE_SSL_CACERT_BADFILE)
		return err_set(e, RC_INVALID, "CA file %s cannot be used; it must be a readable PEM file",
		               req->ca_file ? req->ca_file : "of the system");
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return err_set(e, RC_UNAVAILABLE, "given up: there is no time left for it");
	return err_set(e, code == CURLE_OPERATION_TIMEDOUT ? RC_TIMEOUT : RC_UNAVAILABLE, "%s", why);
}

static enum rc perform(struct transfer *t, const struct fetch_request *req, struct arena *a, struct fetch_reply *ret,
                       struct err *e)
{
	CURLcode code;
	long     status = 0;
	enum rc  rc;

	if ((rc = add_headers(t, req, e)))
		return rc;
	set_transport(t->curl, req);
	set_reach(t);
	set_method(t->curl, req);
	set_limits(t->curl, req, t->body.max);
	curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, t->why);
	code = curl_easy_perform(t->curl);
	if (code != CURLE_OK && !t->has_enough)
		return explain(t, req, code, e);
	if (!t->is_head_whole) /* libcurl takes that for an answer without a body */
		return err_set(e, RC_UNAVAILABLE, "the answer broke off within its headers");

	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	*ret = (struct fetch_reply){ .status = (int)status,
		                     .headers = str_dup(a, buf_str(&t->head)),
		                     .body = str_dup(a, buf_str(&t->body)) };
	return RC_OK;
}

enum rc fetch(const struct fetch_request *req, struct arena *a, struct fetch_reply *ret, struct err *e)
{
	struct transfer t = { .shown_url = show_url(req->url, a), .reach = req->reach, .req = req };
	struct keeper  *keeper;
	enum rc         rc;

	if (!t.shown_url)
		return err_set(e, RC_INVALID, "%s: not a URL of the form http://host[:port]/path or https://...",
		               req->method);
	fetch_global_init();
	keeper = thread_keeper();
	t.curl = keeper->curl;
	curl_easy_reset(t.curl);
	set_watch(keeper);
	buf_init(&t.head, HEAD_MAX);
	buf_init(&t.body, req->max_bytes ? req->max_bytes : DEFAULT_BODY_MAX);
	rc = perform(&t, req, a, ret, e);
	curl_easy_reset(t.curl); /* it must not point into this frame */
	curl_slist_free_all(t.headers);
	buf_fini(&t.head);
	buf_fini(&t.body);
	return rc ? err_wrap(e, rc, "%s %s", req->method, t.shown_url) : RC_OK;
}

struct str fetch_header(const struct fetch_reply *reply, const char *name)
{
	struct str rest = reply->headers;

	while (rest.n) {
		struct str value = str_cut_line(&rest);
		struct str key = str_cut(&value, ':');

		if (str_eq_nocase(key, str_from(name)))
			return str_trim(value);
	}
	return STR("");
}

bool fetch_date(struct str text, int64_t *ret_sec)
{
	char   copy[DATE_MAX + 1] = "";
	time_t sec;

	if (text.n == 0 || text.n > DATE_MAX)
		return false;
	memcpy(copy, text.p, text.n);
	sec = curl_getdate(copy, NULL);
	if (sec < 0)
		return false;
	*ret_sec = sec;
	return true;
}

void fetch_escape(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (char_is_of(text.p[i], "a-zA-Z0-9._~-"))
			buf_add_char(b, text.p[i]);
		else
			buf_addf(b, "%%%02X", (unsigned char)text.p[i]);
}

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
 *   2. Header bytes, body bytes and time have a limit; a request that names none gets the ones below. An answer that is taken in
 *      pieces may be of any length and last for ever, as long as it does not fall silent.
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

#include <assert.h>
#include <curl/curl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"

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
	struct buf         body;
	const char        *shown_url;

	const struct fetch_request *req;
	bool                        has_enough; /* take() said so */
	enum fetch_reach            reach;
	char                        denied[64]; /* the address beyond it */
	char                        why[CURL_ERROR_SIZE];
};

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static pthread_key_t  handle_key;

static void free_handle(void *curl)
{
	curl_easy_cleanup(curl);
}

static void init(void)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || pthread_key_create(&handle_key, free_handle) != 0) {
		fprintf(stderr, "leasehold: libcurl cannot be set up\n");
		abort();
	}
}

void fetch_global_init(void)
{
	pthread_once(&init_once, init);
}

static CURL *thread_handle(void)
{
	CURL *curl = pthread_getspecific(handle_key);

	if (curl) {
		curl_easy_reset(curl);
		return curl;
	}
	curl = curl_easy_init();
	if (!curl || pthread_setspecific(handle_key, curl) != 0) {
		fprintf(stderr, "leasehold: out of memory for a libcurl handle\n");
		abort();
	}
	return curl;
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

	if (str_starts_with(line, STR("HTTP/")))
		buf_reset(&t->head);
	else if (!str_eq(line, STR("\r\n")))
		buf_add_str(&t->head, line);
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
	struct curl_slist *longer = curl_slist_append(t->headers, line);

	if (!longer) {
		fprintf(stderr, "leasehold: out of memory for a request header\n");
		abort();
	}
	t->headers = longer;
}

/* A line break inside a value would be a header of its own. */
static enum rc add_headers(struct transfer *t, const struct fetch_request *req, struct err *e)
{
	bool has_type = false;

	for (size_t i = 0; i < FETCH_HEADERS_MAX && req->headers[i]; i++) {
		struct str name = str_of(req->headers[i], strcspn(req->headers[i], ":\r\n"));

		if (name.n == 0 || name.n > HEADER_NAME_MAX || name.p[name.n] != ':')
			return err_set(e, RC_INVALID, "%s %s: header %zu must be \"Name: value\"", req->method,
			               t->shown_url, i + 1);
		if (strpbrk(req->headers[i], "\r\n"))
			return err_set(e, RC_INVALID, "%s %s: the value of header %.*s must be on one line",
			               req->method, t->shown_url, STR_ARG(name));
		has_type = has_type || str_eq_nocase(name, STR("Content-Type"));
		add_header(t, req->headers[i]);
	}
	if (!has_type)
		add_header(t, "Content-Type:"); /* libcurl would claim a form */
	add_header(t, "Expect:");               /* our bodies are small: send them at once */
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
	long total_ms = req->total_timeout_ms > 0 ? req->total_timeout_ms : DEFAULT_TOTAL_TIMEOUT_MS;
	long idle_ms = req->idle_timeout_ms > 0 ? req->idle_timeout_ms : DEFAULT_IDLE_TIMEOUT_MS;

	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
	curl_easy_setopt(curl, CURLOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS_MAX);
	if (req->take) {
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
		curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (idle_ms + 999) / 1000);
		return;
	}
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, total_ms);
	curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)body_max);
}

static bool is_within(enum fetch_reach reach, enum addr_place place)
{
	return reach == FETCH_ANYWHERE || place == ADDR_PUBLIC ||
	       (reach == FETCH_NOT_FORBIDDEN && place == ADDR_PRIVATE);
}

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
	struct transfer *t = arg;

	(void)purpose;
	if (is_within(t->reach, addr_place(&address->addr)))
		return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
	if (getnameinfo(&address->addr, address->addrlen, t->denied, sizeof(t->denied), NULL, 0, NI_NUMERICHOST) != 0)
		(void)snprintf(t->denied, sizeof(t->denied), "its address");
	return CURL_SOCKET_BAD;
}

static int before_request(void *arg, char *to, char *from, int to_port, int from_port)
{
	struct transfer *t = arg;
	enum addr_place  place = ADDR_FORBIDDEN;

	(void)from, (void)to_port, (void)from_port;
	if (addr_place_of_text(str_from(to), &place) && is_within(t->reach, place))
		return CURL_PREREQFUNC_OK;
	(void)snprintf(t->denied, sizeof(t->denied), "%s", to);
	return CURL_PREREQFUNC_ABORT;
}

static void set_reach(struct transfer *t)
{
	if (t->reach == FETCH_ANYWHERE)
		return;
	curl_easy_setopt(t->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	curl_easy_setopt(t->curl, CURLOPT_OPENSOCKETDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_PREREQFUNCTION, before_request);
	curl_easy_setopt(t->curl, CURLOPT_PREREQDATA, t);
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
	if (req->ca_file)
		curl_easy_setopt(curl, CURLOPT_CAINFO, req->ca_file);
}

static void set_sinks(struct transfer *t)
{
	curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
	curl_easy_setopt(t->curl, CURLOPT_ERRORBUFFER, t->why);
}

static enum rc explain(const struct transfer *t, const struct fetch_request *req, CURLcode code, struct err *e)
{
	const char *why = t->why[0] ? t->why : curl_easy_strerror(code);

	if (t->denied[0])
		return err_set(e, RC_DENIED, "%s %s: %s is an address that may not be called from here; right is %s",
		               req->method, t->shown_url, t->denied,
		               t->reach == FETCH_PUBLIC ? "a public one" : "neither link-local nor a cloud's metadata");
	if (t->head.is_full)
		return err_set(e, RC_TOO_LARGE, "%s %s: the answer's headers are longer than %d bytes", req->method,
		               t->shown_url, HEAD_MAX);
	if (t->body.is_full || code == CURLE_FILESIZE_EXCEEDED)
		return err_set(e, RC_TOO_LARGE, "%s %s: the answer is longer than %zu bytes", req->method, t->shown_url,
		               t->body.max);
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_set(e, RC_TIMEOUT, "%s %s: %s", req->method, t->shown_url, why);
	if (code == CURLE_SSL_CACERT_BADFILE)
		return err_set(e, RC_INVALID, "%s %s: CA file %s cannot be used; it must be a readable PEM file",
		               req->method, t->shown_url, req->ca_file ? req->ca_file : "of the system");
	return err_set(e, RC_UNAVAILABLE, "%s %s: %s", req->method, t->shown_url, why);
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
	set_sinks(t);
	code = curl_easy_perform(t->curl);
	if (code != CURLE_OK && !t->has_enough)
		return explain(t, req, code, e);

	curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &status);
	*ret = (struct fetch_reply){ .status = (int)status,
		                     .headers = str_dup(a, buf_str(&t->head)),
		                     .body = str_dup(a, buf_str(&t->body)) };
	return RC_OK;
}

enum rc fetch(const struct fetch_request *req, struct arena *a, struct fetch_reply *ret, struct err *e)
{
	struct transfer t = { .shown_url = show_url(req->url, a), .reach = req->reach, .req = req };
	enum rc         rc;

	if (!t.shown_url)
		return err_set(e, RC_INVALID, "%s: not a URL of the form http://host[:port]/path or https://...",
		               req->method);
	fetch_global_init();
	t.curl = thread_handle();
	buf_init(&t.head, HEAD_MAX);
	buf_init(&t.body, req->max_bytes ? req->max_bytes : DEFAULT_BODY_MAX);
	rc = perform(&t, req, a, ret, e);
	curl_easy_reset(t.curl); /* it must not point into this frame */
	curl_slist_free_all(t.headers);
	buf_fini(&t.head);
	buf_fini(&t.body);
	return rc;
}

struct str fetch_header(const struct fetch_reply *reply, const char *name)
{
	struct str rest = reply->headers;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		struct str value = line;
		struct str key = str_cut(&value, ':');

		if (value.n && value.p[value.n - 1] == '\r')
			value.n--;
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
	static const char hex[] = "0123456789ABCDEF";

	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];
		bool          is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		                c == '-' || c == '.' || c == '_' || c == '~';

		if (is_plain) {
			buf_add_char(b, (char)c);
			continue;
		}
		buf_add_char(b, '%');
		buf_add_char(b, hex[c >> 4]);
		buf_add_char(b, hex[c & 15]);
	}
}

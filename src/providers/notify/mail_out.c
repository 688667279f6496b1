/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail_out.c - one mail to one address, by libcurl's SMTP.
 *
 * Each mail has a connection and a transaction of its own: a server that refuses one recipient says nothing about the next. Mails are
 * few; what this costs is not worth a pool of connections.
 *
 * Always true:
 *   1. A password travels only over TLS: with a user, STARTTLS is required whatever the settings say.        [set_tls()]
 *   2. The server's certificate is checked, against the CA file when there is one.
 *   3. A message has the server's URL and its own words (a refusal's reason), never user or password. The words are cleaned and cut.
 *   4. Time is limited: CONNECT_TIMEOUT_MS, TOTAL_TIMEOUT_MS; and a process that ends does not wait for the rest of it.  [may_end()]
 *
 * A refusal for good (5xx) is tried again like everything else, then it is a dead letter with the server's words. If the connection breaks
 * after the text was sent, nobody knows whether the mail was taken; it is sent again, with the same Message-ID.
 *
 * libcurl doubles dots at the beginning of lines; message.c makes the line ends.
 */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "net/fetch.h"
#include "providers/notify/mail.h"
#include "providers/notify/message.h"

enum { CONNECT_TIMEOUT_MS = 10000, TOTAL_TIMEOUT_MS = 60000, WORDS_MAX = 1024, SHOWN_MAX = 160, URL_MAX = 512 };

/* One mail under way. */
struct sending {
	struct call       *call;
	CURL              *curl;
	struct curl_slist *to;
	struct str         left;  /* of the message */
	struct buf         words; /* lines of the server's last refusal */
	char               why[CURL_ERROR_SIZE];
};

static bool is_smtps(const char *url)
{
	return str_starts_with(str_from(url), STR("smtps://"));
}

static bool has_text(const char *text)
{
	return text && text[0];
}

/* host, host:port or [v6]:port, and nothing else: user and password have settings of their own, which are not shown. */
static bool is_server_url(const char *url)
{
	struct str s = str_from(url);
	size_t     scheme = is_smtps(url) ? 8 : str_starts_with(s, STR("smtp://")) ? 7 : 0;

	if (!scheme || s.n == scheme || s.n > URL_MAX)
		return false;
	for (size_t i = scheme; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("@/?#\\", s.p[i]))
			return false;
	return true;
}

enum rc mail_server_check(const struct mail_server *m, struct err *e)
{
	if (!has_text(m->url) || !is_server_url(m->url))
		return err_set(e, RC_INVALID,
		               "the mail server must be smtp://host[:port] or smtps://host[:port], without user, "
		               "password and path");
	if (!has_text(m->from) || !message_is_address(str_from(m->from)))
		return err_set(e, RC_INVALID, "the mail's sender must be an address of the form name@example.org");
	if (has_text(m->user) != has_text(m->password))
		return err_set(e, RC_INVALID,
		               "user and password of the mail server belong together; one of them is missing");
	return RC_OK;
}

static size_t give_bytes(char *to, size_t size, size_t count, void *arg)
{
	struct sending *m = arg;
	size_t          n = size * count < m->left.n ? size * count : m->left.n;

	memcpy(to, m->left.p, n);
	m->left = str_of(m->left.p + n, m->left.n - n);
	return n;
}

static bool is_refusal(struct str line)
{
	return line.n >= 3 && (line.p[0] == '4' || line.p[0] == '5');
}

/* A line that the server said. The lines of one refusal have one number; the last refusal is the one that counts. */
static size_t hear_line(char *bytes, size_t size, size_t count, void *arg)
{
	struct sending *m = arg;
	struct str      line = str_of(bytes, size * count);

	if (!is_refusal(line))
		return line.n;
	if (m->words.n >= 3 && memcmp(m->words.p, line.p, 3) != 0)
		buf_reset(&m->words);
	buf_add_str(&m->words, line);
	return line.n;
}

/* About once a second, whatever it waits for. Not 0: give it up. */
static int may_end(void *arg, curl_off_t to_come, curl_off_t came, curl_off_t to_go, curl_off_t went)
{
	struct sending *m = arg;

	(void)to_come, (void)came, (void)to_go, (void)went;
	return !m->call->go_on(m->call);
}

static void set_tls(CURL *curl, const struct mail_server *s)
{
	bool is_required = s->tls == MAIL_TLS_REQUIRED || has_text(s->user);

	curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(is_required ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (has_text(s->ca_file))
		curl_easy_setopt(curl, CURLOPT_CAINFO, s->ca_file);
}

static void set_server(CURL *curl, const struct mail_server *s)
{
	curl_easy_setopt(curl, CURLOPT_URL, s->url);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
	curl_easy_setopt(curl, CURLOPT_PROXY, "");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)TOTAL_TIMEOUT_MS);
	if (has_text(s->user)) {
		curl_easy_setopt(curl, CURLOPT_USERNAME, s->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, s->password);
	}
	set_tls(curl, s);
}

static void set_mail(struct sending *m, const struct mail_server *s)
{
	curl_easy_setopt(m->curl, CURLOPT_MAIL_FROM, s->from);
	curl_easy_setopt(m->curl, CURLOPT_MAIL_RCPT, m->to);
	curl_easy_setopt(m->curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(m->curl, CURLOPT_READFUNCTION, give_bytes);
	curl_easy_setopt(m->curl, CURLOPT_READDATA, m);
	curl_easy_setopt(m->curl, CURLOPT_HEADERFUNCTION, hear_line);
	curl_easy_setopt(m->curl, CURLOPT_HEADERDATA, m);
	curl_easy_setopt(m->curl, CURLOPT_ERRORBUFFER, m->why);
	curl_easy_setopt(m->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(m->curl, CURLOPT_XFERINFOFUNCTION, may_end);
	curl_easy_setopt(m->curl, CURLOPT_XFERINFODATA, m);
}

static enum rc explain(const struct sending *m, const struct mail_server *s, CURLcode code, struct arena *a,
                       struct err *e)
{
	const char *why = m->why[0] ? m->why : curl_easy_strerror(code);
	struct str  words = str_trim(utf8_line(a, buf_str(&m->words), SHOWN_MAX));
	enum rc     rc = code == CURLE_OPERATION_TIMEDOUT ? RC_TIMEOUT : RC_UNAVAILABLE;

	if (code == CURLE_SSL_CACERT_BADFILE)
		return err_set(e, RC_INVALID, "%s: the CA file cannot be used; it must be a readable PEM file", s->url);
	if (code == CURLE_USE_SSL_FAILED)
		return err_set(e, rc, "%s: TLS is required and the server does not offer it (STARTTLS)", s->url);
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return err_set(e, rc, "%s: the claim is lost, or this node ends", s->url);
	if (code == CURLE_LOGIN_DENIED)
		rc = RC_DENIED;
	if (words.n)
		return err_set(e, rc, "%s: the server said: %.*s", s->url, STR_ARG(words));
	return err_set(e, rc, "%s: %s", s->url, why);
}

static enum rc send_mail(struct call *c, const struct mail_server *s, struct str message, struct err *e)
{
	struct sending m = { .call = c, .curl = curl_easy_init(), .left = message };
	CURLcode       code;
	enum rc        rc;

	m.to = curl_slist_append(NULL, str_dup(c->arena, c->delivery->target).p);
	if (!m.curl || !m.to) {
		fprintf(stderr, "leasehold: out of memory for a mail\n");
		abort();
	}
	buf_init(&m.words, WORDS_MAX);
	set_server(m.curl, s);
	set_mail(&m, s);
	code = curl_easy_perform(m.curl);
	rc = code == CURLE_OK ? RC_OK : explain(&m, s, code, c->arena, e);
	curl_easy_cleanup(m.curl); /* says good-bye to the server, and hears its answer */
	curl_slist_free_all(m.to);
	buf_fini(&m.words);
	return rc;
}

enum rc mail_out_call(struct call *c, struct err *e)
{
	const struct mail_server *s = c->arg;
	const struct delivery    *d = c->delivery;
	enum rc                   rc = mail_server_check(s, e);
	struct str                message;

	if (rc)
		return rc;
	if (!message_is_address(d->target))
		return err_set(e, RC_INVALID, "\"%.*s\" is not a mail address of the form name@example.org",
		               STR_ARG(d->target));
	fetch_global_init();
	message = message_write(&d->event, str_from(s->from), d->target, wall_sec(clock_now(c->clock)), c->arena);
	return send_mail(c, s, message, e);
}

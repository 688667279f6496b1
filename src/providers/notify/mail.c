/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail.c - who gets a mail, and sending it to one address, by libcurl's SMTP.
 *
 * The queue "mail" gets each event that may be worth a mail once. Its handler asks the rules and the service that knows
 * the recipients, and puts the event into the queue "mail-out" once for each address, with the address as target: from
 * there each has its own order, tries and dead letters. A refused address holds up nobody else.
 *
 * An event with more recipients than fit into one transaction is refused as a whole and ends as a dead letter that says
 * so: nobody is left out silently.
 *
 * Whom an event of a lease or account is for is in the table of words [message_whom()]. The owner's address is in the
 * event itself, so a mail about a lease that is gone still reaches its owner; the others come from the directory when
 * the mail is sent. Requests can be made and withdrawn without limit, so managers are told of REQUEST_MAILS_MAX an hour
 * of one person; all of them are in the list of approvals. [is_one_too_many()]
 *
 * Each mail has its own connection and transaction: a server that refuses one recipient says nothing about the next.
 * Mails are too few for a pool of connections.
 *
 * Always true:
 *   1. A password travels only over TLS: with a user, STARTTLS is required whatever the settings say. [set_server()]
 *   2. The server's certificate is checked, against the CA file when there is one.
 *   3. An error has the server's URL and its words (why it refused), cleaned and cut, never user or password.
 *   4. Time is limited: CONNECT_TIMEOUT_MS, TOTAL_TIMEOUT_MS; a process that ends does not wait that long. [may_end()]
 *
 * A permanent refusal (5xx) is retried like everything else, then it is a dead letter with the server's words. If the
 * connection breaks after the text was sent, the mail is sent again, with the same Message-ID.
 *
 * libcurl doubles dots at the beginning of lines; message.c makes the line ends.
 *
 * Not here: what a mail says (message.c).
 */
#include "providers/notify/mail.h"

#include <assert.h>
#include <curl/curl.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/ports/identity.h"
#include "kernel/kernel.h"
#include "kernel/records.h"
#include "net/fetch.h"
#include "providers/notify/message.h"
#include "store/session.h"

enum { HOUR_MS = 3600 * 1000, REQUEST_MAILS_MAX = 10, REQUESTS_LOOKED_AT = 100 };
enum { CONNECT_TIMEOUT_MS = 10000, TOTAL_TIMEOUT_MS = 60000, WORDS_MAX = 1024, SHOWN_MAX = 160, URL_MAX = 512 };

static enum rc add_one(struct mail_recipients *to, struct str address, struct err *e)
{
	if (!message_is_address(address))
		return err_set(e, RC_INVALID, "\"%.*s\" is not a mail address of the form name@example.org",
		               STR_ARG(address));
	for (size_t i = 0; i < to->count; i++)
		if (str_eq_nocase(to->addresses[i], address))
			return RC_OK;
	if (to->count == MAIL_RECIPIENTS_MAX)
		return err_set(e, RC_TOO_LARGE,
		               "there are more than %d recipients for one event; right is a mailing list",
		               MAIL_RECIPIENTS_MAX);
	to->addresses[to->count++] = address;
	return RC_OK;
}

enum rc mail_add_recipient(struct mail_recipients *to, struct str addresses, struct err *e)
{
	enum rc rc = RC_OK;

	while (!rc && addresses.n)
		rc = add_one(to, str_trim(str_cut(&addresses, ',')), e);
	return rc;
}

enum rc mail_routes_check(const struct mail_routes *r, struct err *e)
{
	struct mail_recipients to = { .count = 0 };
	enum rc                rc = RC_OK;

	for (size_t i = 0; !rc && i < r->rule_count; i++)
		rc = mail_add_recipient(&to, r->rules[i].to, e);
	return rc;
}

enum rc mail_fan_out(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	const struct queue       *out = queue_for(kernel_of(s), &d->event, "mail-out", "mail-alarm");
	const struct mail_routes *r = arg;
	struct mail_recipients    to = { .count = 0 };
	enum rc                   rc = RC_OK;

	assert(out);
	for (size_t i = 0; !rc && i < r->rule_count; i++)
		if (kernel_matches(r->rules[i].types, d->event.type))
			rc = mail_add_recipient(&to, r->rules[i].to, e);
	if (!rc && r->find)
		rc = r->find(s, &d->event, r->find_arg, &to, e);
	for (size_t i = 0; !rc && i < to.count; i++)
		rc = queue_put(s, out, &d->event, to.addresses[i], e);
	return rc;
}

/* --- the people of a lease --- */

static enum rc add_if_usable(struct mail_recipients *to, struct str address, const struct event *event, struct err *e)
{
	if (message_is_address(address))
		return mail_add_recipient(to, address, e);
	log_write(LOG_WARNING, "mail",
	          (struct log_field[]){ LOG_STR("event_id", event->id), LOG_STR("address", address) }, 2,
	          "no mail can be sent to this address; right is name@example.org");
	return RC_OK;
}

/* leaseId is the key of the lease in some events, its uuid in others, which then name the owner beside it. */
static enum rc add_owner(struct session *s, const struct event *event, const json_t *detail, bool is_needed,
                         struct mail_recipients *to, struct err *e)
{
	struct str email;

	if ((json_get_text(json_object_get(detail, "leaseId"), "userEmail", &email) && email.n) ||
	    (json_get_text(detail, "userEmail", &email) && email.n))
		return add_if_usable(to, str_dup(session_arena(s), email), event, e);
	if (!is_needed)
		return RC_OK;
	return err_set(
	        e, RC_CORRUPT,
	        "event %.*s (%.*s) does not say whose lease it is: its detail needs leaseId.userEmail or userEmail",
	        STR_ARG(event->id), STR_ARG(event->type));
}

/* One more is asked for than fits: then mail_add_recipient() says so, instead of leaving somebody out. */
static enum rc add_roles(struct session *s, const struct event *event, struct identity *people, unsigned roles,
                         struct mail_recipients *to, struct err *e)
{
	struct directory_entry found[MAIL_RECIPIENTS_MAX + 1];
	size_t  count = people->ops->list(people, roles, STR(""), session_arena(s), found, ARRAY_LEN(found));
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++)
		rc = add_if_usable(to, found[i].caller.email, event, e);
	return rc;
}

/* Has the same person asked so often before this, within the hour? Looks at the latest requests of all. */
static enum rc is_one_too_many(struct session *s, const struct event *event, bool *ret, struct err *e)
{
	struct query        q = query_of(&event_type, EVENT_BY_TYPE, value_text(event->type), REQUESTS_LOOKED_AT);
	struct records      all = { .query = q, .pages_max = 1 };
	const struct event *earlier;
	int                 before = 0;
	enum rc             rc;

	all.query.sort_to = event->id;
	all.query.is_descending = true;
	while ((earlier = session_next(s, &all, &rc, e)))
		before += str_eq_nocase(earlier->actor, event->actor) && earlier->time_ms > event->time_ms - HOUR_MS;
	*ret = before >= REQUEST_MAILS_MAX;
	return err_wrap(e, rc, "earlier requests");
}

enum rc lease_mail_recipients(struct session *s, const struct event *event, void *arg, struct mail_recipients *to,
                              struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	unsigned                    who;
	bool                        is_muted = false;
	enum rc                     rc = RC_OK;

	rc_ignore(json_parse(event->detail, &detail, NULL)); /* NULL when it is no JSON: see add_owner() */
	who = message_whom(event, detail);
	if (who & (TO_OWNER | TO_FORMER_OWNER))
		rc = add_owner(s, event, detail, who & TO_OWNER, to, e);
	if (!rc && (who & TO_MANAGERS) && str_eq(event->type, STR("LeaseRequested")))
		rc = is_one_too_many(s, event, &is_muted, e);
	if (!rc && (who & TO_MANAGERS) && !is_muted)
		rc = add_roles(s, event, arg, ROLE_MANAGER | ROLE_ADMIN, to, e);
	if (!rc && (who & TO_ADMINS))
		rc = add_roles(s, event, arg, ROLE_ADMIN, to, e);
	return rc;
}

/* --- sending --- */

/* One mail under way. */
struct sending {
	struct call       *call;
	CURL              *curl;
	struct curl_slist *to;
	struct str         left;  /* of the message */
	struct buf         words; /* lines of the server's last refusal */
	char               why[CURL_ERROR_SIZE];
};

static bool has_text(const char *text)
{
	return text && text[0];
}

/* host, host:port or [v6]:port, and nothing else: user and password have settings of their own, which are not shown. */
static bool is_server_url(const char *url)
{
	struct str s = str_from(url);
	size_t     scheme = str_starts_with(s, STR("smtps://")) ? 8 : str_starts_with(s, STR("smtp://")) ? 7 : 0;

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

/* A line that the server said. The lines of one refusal have one number; the last refusal is the one that counts. */
static size_t hear_line(char *bytes, size_t size, size_t count, void *arg)
{
	struct sending *m = arg;
	struct str      line = str_of(bytes, size * count);

	if (line.n < 3 || (line.p[0] != '4' && line.p[0] != '5'))
		return line.n; /* no refusal */
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

static void set_server(CURL *curl, const struct mail_server *s)
{
	bool is_tls_required = s->tls == MAIL_TLS_REQUIRED || has_text(s->user);

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
	curl_easy_setopt(curl, CURLOPT_USE_SSL, (long)(is_tls_required ? CURLUSESSL_ALL : CURLUSESSL_TRY));
	curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (has_text(s->ca_file) || fetch_system_ca())
		curl_easy_setopt(curl, CURLOPT_CAINFO, has_text(s->ca_file) ? s->ca_file : fetch_system_ca());
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
	struct sending m = { .call = c, .curl = curl_easy_init(), .left = message, .words = BUF(WORDS_MAX) };
	CURLcode       code;
	enum rc        rc;

	m.to = curl_slist_append(NULL, str_dup(c->arena, c->delivery->target).p);
	mem_must(m.curl && m.to, "a mail");
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

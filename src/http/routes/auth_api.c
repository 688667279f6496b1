/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth_api.c - the routes of /api/auth: to the sign-in page or to the provider, back from it, and whether somebody is
 * signed in.
 *
 * These routes do not speak JSend (contract 1.8): redirects, a page, {"message": ...}.
 *
 * A browser carries what we must remember between two of its requests, in cookies that only we can make: the page's
 * form has a signature of the random value in its cookie, so a form of another site is refused; the trip to a provider
 * has its state, nonce and verifier in a signed cookie that is good for TRIP_SEC. No session is kept on the server.
 *
 * Always true:
 *   1. A request never decides where it is redirected to: that is the web app, our own page, or the provider.
 *   2. A wrong password and an unknown email get the same answer after the same time; failures are limited before the
 *      password is checked, by name and address together and by address. A name that fails from everywhere is not
 *      locked, because its owner knows the password: each address then gets fewer attempts at it.
 *      [take_attempt(), give_attempt()]
 *   3. No more requests than blocking.h says have a thread for a hash or a provider: a hash takes 64 MiB.
 *
 * Not here: passwords (providers/identity/users_file.c), what a provider's token is worth (providers/identity/oidc.c).
 */
#include "base/json.h"
#include "base/log.h"
#include "domain/policy.h"
#include "domain/signin.h"
#include "http/api/api.h"
#include "http/api/auth.h"
#include "http/api/blocking.h"
#include "http/api/ratelimit.h"
#include "http/api/urlform.h"
#include "http/routes/signin_page.h"
#include "service/policy/policy_store.h"
#include "service/people/people.h"

enum {
	PAGE_MAX = 16384,
	COOKIE_MAX = 2048,
	FORM_SEC = 3600,
	TRIP_SEC = 600,
	PASSWORD_BYTES_MAX = 256,
	CODE_MAX = 2048,
	ERROR_CODE_MAX = 41,
	PAIR_PAUSE = 30,    /* seconds until one of PAIR_BURST attempts is given back */
	STRICT_PAUSE = 300, /* the same for one of STRICT_BURST */
	EITHER_PAUSE = 5,   /* the same for a name or an address alone */
};

#define FORM_COOKIE "leasehold_form"
#define TRIP_COOKIE "leasehold_trip"
#define AUTH_PATH   "/api/auth"
#define HTML        "text/html; charset=utf-8"

/* Something that takes long: done by a thread, answered on the loop. */
enum auth_act { CHECK_PASSWORD, BEGIN_TRIP, END_TRIP, SIGN_OUT };
struct auth_work {
	struct auth  *auth;
	enum auth_act act;
	void (*answer)(struct request *r, struct auth_work *w);
	struct str         email, password, code;
	uint64_t           by_name, by_address; /* as its limits count a password's attempt */
	struct signin_trip trip;
	struct caller      caller; /* what the worker finds */
	struct str         url;
	enum rc            rc; /* its failure, which is the answer's business */
	struct err         e;
};

/* --- replies --- */

static void redirect(struct request *r, struct str url)
{
	buf_addf(&r->call->headers, "Location: %.*s\r\n", STR_ARG(url));
	request_reply_as(r, 302, NULL, STR(""));
}

/* error: of the provider, may be empty. */
static void reply_message(struct request *r, int status, const char *message, struct str error)
{
	REPLY(r, status, member_word("message", message), member_if_any(member_str("error", error)));
}

/* False: it has been answered. */
static bool is_set_up(struct request *r)
{
	if (auth_is_set_up(r->api->options.auth))
		return true;
	reply_message(r, 503, "sign-in is not set up here: LEASEHOLD_JWT_SECRET is missing", STR(""));
	return false;
}

/* --- cookies --- */

static void set_cookie(struct request *r, const char *name, struct str value, int max_age, const char *same_site)
{
	buf_addf(&r->call->headers, "Set-Cookie: %s=%.*s; Path=" AUTH_PATH "; Max-Age=%d; HttpOnly; SameSite=%s%s\r\n",
	         name, STR_ARG(value), max_age, same_site, r->api->options.auth->o.is_secure ? "; Secure" : "");
}

static struct str find_cookie(const struct request *r, const char *name)
{
	struct str rest = request_header_value(r, STR("Cookie"));

	while (rest.n) {
		struct str value = str_trim(str_cut(&rest, ';'));

		if (str_eq(str_cut(&value, '='), str_from(name)))
			return value.n <= COOKIE_MAX ? value : STR("");
	}
	return STR("");
}

/* --- workers --- */

static struct auth_work *auth_work_new(struct request *r)
{
	struct auth_work *w = arena_alloc(&r->call->arena, sizeof(*w));

	w->auth = r->api->options.auth;
	return w;
}

static bool is_busy(const struct request *r)
{
	return blocking_is_full(r->api, BLOCKING_SIGNIN);
}

static enum rc work(struct request *r, void *arg, struct err *e UNUSED)
{
	struct auth_work       *w = arg;
	struct password_book   *book = w->auth->o.passwords;
	struct signin_provider *p = w->auth->o.provider;
	struct arena           *a = &r->call->arena;
	struct err              why = { 0 };

	switch (w->act) {
	case CHECK_PASSWORD: w->rc = book->ops->check(book, w->email, w->password, a, &w->caller, &w->e); break;
	case BEGIN_TRIP: w->rc = p->ops->begin(p, &w->trip, a, &w->url, &w->e); break;
	case END_TRIP: w->rc = p->ops->finish(p, &w->trip, w->code, a, &w->caller, &w->e); break;
	case SIGN_OUT: w->rc = p->ops->sign_out(p, a, &w->url, &w->e); break;
	}
	/* Someone who cannot be remembered now is signed in all the same; the next sign-in makes up for it. */
	if (!w->rc && (w->act == CHECK_PASSWORD || w->act == END_TRIP) &&
	    people_sign_in(w->auth->o.people, &w->caller, w->act == END_TRIP, &why))
		log_write(LOG_WARNING, "auth", NULL, 0, "a sign-in could not be remembered: %s", why.msg);
	return RC_OK;
}

/* A reload may have taken the secret away while the worker was busy. */
static void on_worked(struct request *r)
{
	struct auth_work *w = r->arg;

	if (is_set_up(r))
		w->answer(r, w);
}

static void start(struct request *r, struct auth_work *w, enum auth_act act,
                  void (*answer)(struct request *r, struct auth_work *w))
{
	w->act = act;
	w->answer = answer;
	blocking_start(r, BLOCKING_SIGNIN, work, on_worked, w);
}

/* What a provider's failure looks like to a browser. */
static void reply_failure(struct request *r, const struct auth_work *w, const char *what)
{
	struct log_field fields[] = { LOG_STR("request_id", str_from(r->id)), LOG_STR("error", str_from(w->e.msg)) };

	log_write(LOG_WARNING, "auth", fields, ARRAY_LEN(fields), "%s", what);
	if (w->rc == RC_UNKNOWN)
		reply_message(r, 401, w->e.msg, STR(""));
	else
		reply_message(r, w->rc == RC_INVALID ? 400 : 503, what, str_from(w->e.msg));
}

/* The person is known: on to the web app, with a token. */
static void finish_signin(struct request *r, const struct caller *c)
{
	struct auth          *a = r->api->options.auth;
	struct policy_holder *policy = r->api->options.policy;
	int64_t               minutes = policy ? policy_current(policy)->session_minutes : 0;
	int64_t               now = wall_sec(clock_now(a->o.clock));
	struct jwt_session    session = { c->email,     c->display_name,
		                          c->user_name, c->roles,
		                          now,          now + (minutes > 0 ? minutes : SESSION_MINUTES_DEFAULT) * 60 };
	struct log_field      fields[] = { LOG_STR("request_id", str_from(r->id)), LOG_STR("email", c->email) };
	struct str            token;

	if (!jwt_is_email(c->email)) {
		reply_message(r, 401, "this person's email address cannot be used here", c->email);
		return;
	}
	token = jwt_issue(&session, a->o.secrets.current, &r->call->arena);
	log_write(LOG_INFO, "auth", fields, ARRAY_LEN(fields), "signed in");
	redirect(r, str_format(&r->call->arena, "%.*s/?token=%.*s", STR_ARG(a->o.web_app_url), STR_ARG(token)));
}

/* --- the page --- */

static struct str random_text(struct arena *a)
{
	char text[ID_TOKEN_SIZE];

	id_token(text);
	return str_dup(a, str_from(text));
}

/* message: what went wrong, or empty. */
static void show_page(struct request *r, int status, struct str message, struct str email)
{
	struct auth                 *a = r->api->options.auth;
	struct arena                *arena = &r->call->arena;
	struct str                   cookie = find_cookie(r, FORM_COOKIE);
	CLEANUP(buf_fini) struct buf b = BUF(PAGE_MAX);

	/* A browser that has a cookie of ours keeps it, so that two pages that are open at once both work. */
	if (cookie.n != ID_TOKEN_SIZE - 1 || !str_is_of(cookie, "a-zA-Z0-9_-"))
		cookie = random_text(arena);
	set_cookie(r, FORM_COOKIE, cookie, FORM_SEC, "Strict");
	request_header(r, "Content-Security-Policy", "%s", signin_page_policy(a->o.web_app_url, arena).p);
	signin_page_write(&b, message, email, jwt_mac(a->o.secrets.current, "form", cookie, arena));
	if (b.is_full)
		reply_message(r, 500, "the sign-in page is too large", STR(""));
	else
		request_reply_as(r, status, HTML, buf_str(&b));
}

void handle_auth_page(struct request *r)
{
	struct auth *a = r->api->options.auth;

	if (!is_set_up(r))
		return;
	if (a->o.provider)
		redirect(r, STR(AUTH_PATH "/login"));
	else if (!a->o.passwords)
		show_page(r, 200, STR("Nobody can sign in here yet: LEASEHOLD_USERS_FILE is not set."), STR(""));
	else
		show_page(r, 200, STR(""), STR(""));
}

/* A field of a form, where blanks are plus signs. False: missing, broken or too long. */
static bool read_field(struct request *r, const char *name, size_t max, struct str *ret)
{
	struct arena *a = &r->call->arena;
	struct str    body = r->call->req.body;
	char         *copy = arena_copy(a, body.p ? body.p : "", body.n);
	struct err    e = { 0 };

	for (size_t i = 0; i < body.n; i++)
		if (copy[i] == '+')
			copy[i] = ' ';
	if (url_query(a, str_of(copy, body.n), name, ret, &e) == RC_OK && ret->n && ret->n <= max)
		return true;
	*ret = STR(""); /* so that nobody shows it again */
	return false;
}

/* The limiters' seconds last `pause` of ours. */
static struct mono slow_now(int64_t pause)
{
	return (struct mono){ mono_now().ms / pause };
}

/* Whole seconds until the limiter has room; 0: it had. */
static int64_t take_from(struct ratelimit *limit, uint64_t key, int64_t pause)
{
	int64_t remaining, wait;

	return ratelimit_take(limit, key, slow_now(pause), &remaining, &wait) ? 0 : wait * pause;
}

static void name_attempt(struct request *r, struct auth_work *w)
{
	w->by_name = str_hash(str_lower(&r->call->arena, w->email), w->auth->hash_seed);
	w->by_address = str_hash(http_client_key(r->call), ~w->auth->hash_seed);
}

/* Seconds to wait before the next attempt; 0: this one may go on. */
static int64_t take_attempt(struct request *r, struct auth_work *w)
{
	struct auth *a = w->auth;
	int64_t      wait;

	name_attempt(r, w);
	if ((wait = take_from(a->by_pair, w->by_name ^ w->by_address, PAIR_PAUSE)) ||
	    (wait = take_from(a->by_either, w->by_address, EITHER_PAUSE)))
		return wait;
	if (take_from(a->by_either, w->by_name, EITHER_PAUSE))
		return take_from(a->by_pair_strictly, w->by_name ^ w->by_address, STRICT_PAUSE);
	return 0;
}

/* Nothing was wrong with it: only failures count. */
static void give_attempt(struct auth_work *w)
{
	struct auth *a = w->auth;

	ratelimit_give(a->by_pair, w->by_name ^ w->by_address, slow_now(PAIR_PAUSE));
	ratelimit_give(a->by_pair_strictly, w->by_name ^ w->by_address, slow_now(STRICT_PAUSE));
	ratelimit_give(a->by_either, w->by_address, slow_now(EITHER_PAUSE));
	ratelimit_give(a->by_either, w->by_name, slow_now(EITHER_PAUSE));
}

static void answer_password(struct request *r, struct auth_work *w)
{
	struct log_field fields[] = { LOG_STR("request_id", str_from(r->id)),
		                      LOG_STR("email", jwt_is_email(w->email) ? w->email : STR("")),
		                      LOG_STR("client", http_client(r->call)) };

	if (w->rc != RC_UNKNOWN)
		give_attempt(w);
	if (!w->rc) {
		set_cookie(r, FORM_COOKIE, STR(""), 0, "Strict");
		finish_signin(r, &w->caller);
		return;
	}
	log_write(LOG_WARNING, "auth", fields, ARRAY_LEN(fields), "sign-in failed: %s", w->e.msg);
	show_page(r, w->rc == RC_UNKNOWN ? 401 : 503, STR("Wrong email or password."), w->email);
}

void handle_auth_signin(struct request *r)
{
	struct auth      *a = r->api->options.auth;
	struct auth_work *w = auth_work_new(r);
	struct str        cookie = find_cookie(r, FORM_COOKIE), form;
	int64_t           wait;

	if (!is_set_up(r))
		return;
	if (a->o.provider || !a->o.passwords) {
		handle_auth_page(r);
	} else if (!cookie.n || cookie.n >= ID_TOKEN_SIZE || !read_field(r, "form", COOKIE_MAX, &form) ||
	           !str_eq_secret(form, jwt_mac(a->o.secrets.current, "form", cookie, &r->call->arena))) {
		show_page(r, 403, STR("The form was too old, or cookies are off. Please try again."), STR(""));
	} else if (!read_field(r, "email", JWT_EMAIL_MAX, &w->email) ||
	           !read_field(r, "password", PASSWORD_BYTES_MAX, &w->password)) {
		show_page(r, 400, STR("Please give an email and a password."), w->email);
	} else if ((wait = is_busy(r) ? 1 : take_attempt(r, w))) {
		request_header(r, "Retry-After", "%lld", (long long)wait);
		show_page(r, 429, STR("Too many attempts. Please wait a while and try again."), w->email);
	} else {
		start(r, w, CHECK_PASSWORD, answer_password);
	}
}

/* --- the provider --- */

/* The trip as a cookie: its texts and its end, signed. None of them has a dot in it. */
static struct str pack_trip(struct auth *a, const struct signin_trip *trip, struct arena *arena)
{
	int64_t    until = wall_sec(clock_now(a->o.clock)) + TRIP_SEC;
	struct str text = str_format(arena, "%.*s.%.*s.%.*s.%lld", STR_ARG(trip->state), STR_ARG(trip->nonce),
	                             STR_ARG(trip->verifier), (long long)until);
	struct str signature = jwt_mac(a->o.secrets.current, "trip", text, arena);

	return str_format(arena, "%.*s.%.*s", STR_ARG(text), STR_ARG(signature));
}

static bool unpack_trip(struct auth *a, struct str cookie, struct arena *arena, struct signin_trip *ret)
{
	struct str rest = cookie, until, text;
	int64_t    sec;

	ret->state = str_cut(&rest, '.');
	ret->nonce = str_cut(&rest, '.');
	ret->verifier = str_cut(&rest, '.');
	until = str_cut(&rest, '.');
	if (!rest.n || rest.n >= cookie.n)
		return false;
	text = str_of(cookie.p, cookie.n - rest.n - 1);
	return str_eq_secret(rest, jwt_mac(a->o.secrets.current, "trip", text, arena)) &&
	       str_to_int(until, 0, INT64_MAX, &sec) && wall_sec(clock_now(a->o.clock)) < sec;
}

static void answer_begin(struct request *r, struct auth_work *w)
{
	if (w->rc) {
		reply_failure(r, w, "the sign-in provider cannot be reached, or is not what the settings say");
		return;
	}
	set_cookie(r, TRIP_COOKIE, pack_trip(w->auth, &w->trip, &r->call->arena), TRIP_SEC, "Lax");
	redirect(r, w->url);
}

void handle_auth_login(struct request *r)
{
	struct arena     *a = &r->call->arena;
	struct auth_work *w = auth_work_new(r);

	if (!is_set_up(r))
		return;
	w->trip = (struct signin_trip){ random_text(a), random_text(a), random_text(a) };
	if (!w->auth->o.provider)
		redirect(r, STR(AUTH_PATH "/signin"));
	else if (is_busy(r))
		reply_message(r, 503, "too many people are signing in; try again in a moment", STR(""));
	else
		start(r, w, BEGIN_TRIP, answer_begin);
}

static void answer_finish(struct request *r, struct auth_work *w)
{
	if (w->rc != RC_UNKNOWN && w->rc != RC_INVALID)
		ratelimit_give(w->auth->by_either, w->by_address, slow_now(EITHER_PAUSE));
	if (w->rc)
		reply_failure(r, w, "sign-in failed");
	else
		finish_signin(r, &w->caller);
}

/* A code that the provider does not know counts as a failure of this address. */
static void finish_trip(struct request *r, struct auth_work *w)
{
	int64_t wait;

	name_attempt(r, w);
	if ((wait = take_from(w->auth->by_either, w->by_address, EITHER_PAUSE))) {
		request_header(r, "Retry-After", "%lld", (long long)wait);
		reply_message(r, 429, "too many sign-ins failed from this address; wait a while", STR(""));
		return;
	}
	start(r, w, END_TRIP, answer_finish);
}

void handle_auth_callback(struct request *r)
{
	struct auth      *a = r->api->options.auth;
	struct auth_work *w;
	struct str        state, error;
	struct err        e = { 0 };

	if (!auth_is_set_up(a) || !a->o.provider) {
		reply_message(r, 400, "no sign-in provider is set up here", STR(""));
		return;
	}
	w = auth_work_new(r);
	if (request_query(r, "state", &state, &e) || request_query(r, "error", &error, &e) ||
	    request_query(r, "code", &w->code, &e) || w->code.n > CODE_MAX) {
		reply_message(r, 400, "the callback's parameters make no sense", str_from(e.msg));
		return;
	}
	set_cookie(r, TRIP_COOKIE, STR(""), 0, "Lax");
	if (!unpack_trip(a, find_cookie(r, TRIP_COOKIE), &r->call->arena, &w->trip) ||
	    !str_eq_secret(state, w->trip.state)) {
		reply_message(r, 400, "this sign-in did not start here, or has expired; start again", STR("state"));
		return;
	}
	if (error.n > ERROR_CODE_MAX || !str_is_of(error, "a-z_"))
		error = STR("unknown"); /* only what RFC 6749 calls an error code is repeated to the browser */
	if (error.n || !w->code.n)
		reply_message(r, 400, "the provider did not sign you in", error.n ? error : STR("no code"));
	else if (is_busy(r))
		reply_message(r, 503, "too many people are signing in; try again in a moment", STR(""));
	else
		finish_trip(r, w);
}

/* --- sign out --- */

/* When the provider does not answer, the browser is signed out here all the same: it has dropped its token. */
static void answer_sign_out(struct request *r, struct auth_work *w)
{
	struct str home = str_format(&r->call->arena, "%.*s/", STR_ARG(w->auth->o.web_app_url));

	redirect(r, w->rc || !w->url.n ? home : w->url);
}

void handle_auth_logout(struct request *r)
{
	if (!is_set_up(r))
		return;
	if (r->api->options.auth->o.provider && !is_busy(r))
		start(r, auth_work_new(r), SIGN_OUT, answer_sign_out);
	else
		redirect(r, STR(AUTH_PATH "/signin"));
}

/* --- who is it? --- */

static void put_session(struct json_out *o, const struct session_proof *proof, struct arena *a)
{
	const struct jwt_session *s = &proof->session;

	JSON_PUT(o, member_object("session"), member_object("user"));
	if (proof->is_service)
		JSON_PUT(o, member_str("email", proof->account.email), member_str("displayName", proof->account.name));
	else
		JSON_PUT(o, member_str("email", s->email), member_if_any(member_str("displayName", s->display_name)),
		         member_if_any(member_str("userName", s->user_name)));
	json_put_array(o, "roles");
	for (unsigned i = 0; !proof->is_service && jwt_role_name(i); i++)
		if (s->roles & 1u << i)
			json_add_str(o, str_from(jwt_role_name(i)));
	JSON_PUT(o, member_list_end(), member_end());
	if (proof->is_service)
		json_put_str(o, "scopes", service_scopes_text(proof->account.scopes, a));
	else
		JSON_PUT(o, member_int("iat", s->issued_at), member_int("exp", s->expires_at));
	json_close_object(o);
}

void handle_auth_status(struct request *r)
{
	struct session_proof proof;
	struct err           e = { 0 };
	enum rc              rc = session_read(r, &proof, &e);
	struct json_out      o = reply_begin(r);

	json_put_bool(&o, "authenticated", !rc);
	if (rc)
		json_put_str(&o, "message", str_from(e.msg));
	else
		put_session(&o, &proof, &r->call->arena);
	reply_send(r, 200);
}

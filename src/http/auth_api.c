/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth_api.c - the routes of /api/auth: to the sign-in page or to the provider, back from it, and whether somebody is signed in.
 *
 * These routes do not speak JSend (contract 1.8): redirects, a page, {"message": ...}.
 *
 * A browser carries what we must remember between two of its requests, in cookies that only we can make: the page's form has a
 * signature of the random value in its cookie, so a form of another site is refused; the trip to a provider has its state, nonce and
 * verifier in a signed cookie that is good for TRIP_SEC. No session is kept on the server.
 *
 * Always true:
 *   1. Nothing that a request says decides where it is redirected to: that is the web app, our own page, or the provider.
 *   2. A wrong password and an unknown email have one answer after one time; attempts are limited by name and by address before the
 *      password is looked at.                                                                          [take_attempt()]
 *   3. At most BUSY_MAX requests wait for a hash or a provider at once: each has a thread of libuv, and a hash 64 MiB.
 *
 * Not here: passwords (providers/identity/users_file.c), what a provider's token is worth (providers/identity/oidc.c).
 */
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/log.h"
#include "http/auth_ops.h"
#include "http/urlform.h"

enum {
	PAGE_MAX = 16384,
	BUSY_MAX = 8,
	COOKIE_MAX = 2048,
	FORM_SEC = 3600,
	TRIP_SEC = 600,
	PASSWORD_BYTES_MAX = 256,
	CODE_MAX = 2048,
	PAIR_PAUSE = 30,  /* seconds until one of PAIR_BURST attempts is given back */
	EITHER_PAUSE = 5, /* the same for a name or an address alone */
};

#define FORM_COOKIE "leasehold_form"
#define TRIP_COOKIE "leasehold_trip"
#define AUTH_PATH   "/api/auth"
#define HTML        "text/html; charset=utf-8"

/* Something that takes long: done by a worker, answered on the loop. Lives in the call's arena. */
struct auth_work {
	uv_work_t          work;
	struct request    *request;
	struct auth       *auth;
	struct str         email, password, code;
	struct signin_trip trip;
	struct arena       arena; /* of what the worker finds */
	struct caller      caller;
	struct str         url;
	struct err         e;
	enum rc            rc;
	enum rc (*act)(struct auth_work *w);
	void (*answer)(struct auth_work *w);
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
	struct json_out o = reply_begin(r);

	json_put_str(&o, "message", str_from(message));
	if (error.n)
		json_put_str(&o, "error", error);
	reply_send(r, status);
}

static void reply_not_set_up(struct request *r)
{
	reply_message(r, 503, "sign-in is not set up here: LEASEHOLD_JWT_SECRET is missing", STR(""));
}

/* --- cookies --- */

static void set_cookie(struct request *r, const char *name, struct str value, int max_age, const char *same_site)
{
	buf_addf(&r->call->headers, "Set-Cookie: %s=%.*s; Path=" AUTH_PATH "; Max-Age=%d; HttpOnly; SameSite=%s%s\r\n",
	         name, STR_ARG(value), max_age, same_site, auth_of(r)->o.is_secure ? "; Secure" : "");
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

static void run_work(uv_work_t *work)
{
	struct auth_work *w = CONTAINER_OF(work, struct auth_work, work);

	w->rc = w->act(w);
}

static void end_work(uv_work_t *work, int status)
{
	struct auth_work *w = CONTAINER_OF(work, struct auth_work, work);
	struct arena      arena;

	assert(status == 0); /* nobody cancels it */
	(void)status;
	arena = w->arena; /* w is gone after the reply */
	w->auth->busy--;
	w->answer(w);
	arena_fini(&arena);
}

static struct auth_work *auth_work_new(struct request *r)
{
	struct auth_work *w = arena_alloc(&r->call->arena, sizeof(*w));

	w->request = r;
	w->auth = auth_of(r);
	return w;
}

static bool is_busy(const struct auth *a)
{
	return a->busy >= BUSY_MAX;
}

static void start_work(struct auth_work *w, enum rc (*act)(struct auth_work *w), void (*answer)(struct auth_work *w))
{
	w->act = act;
	w->answer = answer;
	w->auth->busy++;
	if (uv_queue_work(api_options(w->request->api)->loop, &w->work, run_work, end_work))
		abort(); /* fails only without a callback */
}

/* What a provider's failure looks like to a browser. */
static void reply_failure(struct auth_work *w, const char *what)
{
	struct log_field fields[] = { LOG_STR("request_id", str_from(w->request->id)),
		                      LOG_STR("error", str_from(w->e.msg)) };

	log_write(LOG_WARNING, "auth", fields, ARRAY_LEN(fields), "%s", what);
	if (w->rc == RC_UNKNOWN)
		reply_message(w->request, 401, w->e.msg, STR(""));
	else
		reply_message(w->request, w->rc == RC_INVALID ? 400 : 503, what, str_from(w->e.msg));
}

/* The person is known: on to the web app, with a token. */
static void finish_signin(struct request *r, const struct caller *c)
{
	struct auth     *a = auth_of(r);
	struct str       token = auth_issue(r, c);
	struct log_field fields[] = { LOG_STR("request_id", str_from(r->id)), LOG_STR("email", c->email) };

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

/* The browser's own, when it has one: two pages that are open at once both work. */
static struct str form_cookie(struct request *r)
{
	struct str cookie = find_cookie(r, FORM_COOKIE);
	bool       is_ours = cookie.n == ID_TOKEN_SIZE - 1;

	for (size_t i = 0; is_ours && i < cookie.n; i++)
		is_ours = isalnum((unsigned char)cookie.p[i]) || cookie.p[i] == '-' || cookie.p[i] == '_';
	return is_ours ? cookie : random_text(&r->call->arena);
}

/* message: what went wrong, or empty. */
static void show_page(struct request *r, int status, struct str message, struct str email)
{
	struct auth  *a = auth_of(r);
	struct arena *arena = &r->call->arena;
	struct str    cookie = form_cookie(r);
	struct buf    b;

	set_cookie(r, FORM_COOKIE, cookie, FORM_SEC, "Strict");
	request_header(r, "Content-Security-Policy", "%s", signin_page_policy(a->o.web_app_url, arena).p);
	buf_init(&b, PAGE_MAX);
	signin_page_write(&b, message, email, jwt_mac(a->o.secrets.current, "form", cookie, arena));
	assert(!b.is_full);
	request_reply_as(r, status, HTML, buf_str(&b));
	buf_fini(&b);
}

void handle_auth_page(struct request *r)
{
	struct auth *a = auth_of(r);

	if (!auth_is_set_up(a))
		reply_not_set_up(r);
	else if (a->o.provider)
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
	return url_query(a, str_of(copy, body.n), name, ret, &e) == RC_OK && ret->n && ret->n <= max;
}

static bool is_own_form(struct request *r)
{
	struct str cookie = find_cookie(r, FORM_COOKIE), form;

	return cookie.n && cookie.n < ID_TOKEN_SIZE && read_field(r, "form", COOKIE_MAX, &form) &&
	       str_eq_secret(form, jwt_mac(auth_of(r)->o.secrets.current, "form", cookie, &r->call->arena));
}

/* Whole seconds until the limiter has room; 0: it had. Its seconds last `pause` of ours. */
static int64_t take_from(struct ratelimit *limit, uint64_t key, int64_t pause)
{
	struct mono slow = { mono_now().ms / pause };
	int64_t     remaining, wait;

	return ratelimit_take(limit, key, slow, &remaining, &wait) ? 0 : wait * pause;
}

/* Seconds to wait before the next attempt; 0: this one may go on. */
static int64_t take_attempt(struct request *r, struct str email)
{
	struct auth  *a = auth_of(r);
	struct arena *arena = &r->call->arena;
	struct str    name = str_dup(arena, email), address = http_peer(r->call);
	char         *lower = arena_copy(arena, name.p, name.n);
	uint64_t      by_name, by_address;
	int64_t       wait;

	for (size_t i = 0; i < name.n; i++)
		if (lower[i] >= 'A' && lower[i] <= 'Z')
			lower[i] = (char)(lower[i] - 'A' + 'a');
	by_name = str_hash(str_of(lower, name.n), a->hash_seed);
	by_address = str_hash(address, ~a->hash_seed);
	if ((wait = take_from(a->by_pair, by_name ^ by_address, PAIR_PAUSE)) ||
	    (wait = take_from(a->by_either, by_name, EITHER_PAUSE)))
		return wait;
	return take_from(a->by_either, by_address, EITHER_PAUSE);
}

static enum rc act_password(struct auth_work *w)
{
	struct password_book *book = w->auth->o.passwords;

	return book->ops->check(book, w->email, w->password, &w->arena, &w->caller, &w->e);
}

static void answer_password(struct auth_work *w)
{
	struct request  *r = w->request;
	struct log_field fields[] = { LOG_STR("request_id", str_from(r->id)),
		                      LOG_STR("email", jwt_is_email(w->email) ? w->email : STR("")),
		                      LOG_STR("client", http_peer(r->call)) };

	if (!w->rc) {
		set_cookie(r, FORM_COOKIE, STR(""), 0, "Strict");
		finish_signin(r, &w->caller);
		return;
	}
	log_write(LOG_WARNING, "auth", fields, ARRAY_LEN(fields), "sign-in failed: %s", w->e.msg);
	show_page(r, w->rc == RC_UNKNOWN ? 401 : 503, STR("Email or password is not right."), w->email);
}

void handle_auth_signin(struct request *r)
{
	struct auth      *a = auth_of(r);
	struct auth_work *w;
	int64_t           wait;

	if (!auth_is_set_up(a)) {
		reply_not_set_up(r);
		return;
	}
	if (a->o.provider || !a->o.passwords) {
		handle_auth_page(r);
		return;
	}
	if (!is_own_form(r)) {
		show_page(r, 403, STR("The form was too old, or cookies are off. Please try again."), STR(""));
		return;
	}
	w = auth_work_new(r);
	if (!read_field(r, "email", JWT_EMAIL_MAX, &w->email) ||
	    !read_field(r, "password", PASSWORD_BYTES_MAX, &w->password)) {
		show_page(r, 400, STR("Please give an email and a password."), w->email);
		return;
	}
	wait = take_attempt(r, w->email);
	if (wait || is_busy(a)) {
		request_header(r, "Retry-After", "%lld", (long long)(wait ? wait : 1));
		show_page(r, 429, STR("Too many attempts. Please wait a while and try again."), w->email);
		return;
	}
	start_work(w, act_password, answer_password);
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

static enum rc act_begin(struct auth_work *w)
{
	struct signin_provider *p = w->auth->o.provider;

	return p->ops->begin(p, &w->trip, &w->arena, &w->url, &w->e);
}

static void answer_begin(struct auth_work *w)
{
	struct request *r = w->request;

	if (w->rc) {
		reply_failure(w, "the sign-in provider cannot be reached, or is not what the settings say");
		return;
	}
	set_cookie(r, TRIP_COOKIE, pack_trip(w->auth, &w->trip, &r->call->arena), TRIP_SEC, "Lax");
	redirect(r, w->url);
}

void handle_auth_login(struct request *r)
{
	struct auth      *a = auth_of(r);
	struct arena     *arena = &r->call->arena;
	struct auth_work *w;

	if (!auth_is_set_up(a)) {
		reply_not_set_up(r);
	} else if (!a->o.provider) {
		redirect(r, STR(AUTH_PATH "/signin"));
	} else if (is_busy(a)) {
		reply_message(r, 503, "many people sign in just now; try again in a moment", STR(""));
	} else {
		w = auth_work_new(r);
		w->trip = (struct signin_trip){ random_text(arena), random_text(arena), random_text(arena) };
		start_work(w, act_begin, answer_begin);
	}
}

static enum rc act_finish(struct auth_work *w)
{
	struct signin_provider *p = w->auth->o.provider;

	return p->ops->finish(p, &w->trip, w->code, &w->arena, &w->caller, &w->e);
}

static void answer_finish(struct auth_work *w)
{
	if (w->rc)
		reply_failure(w, "sign-in failed");
	else
		finish_signin(w->request, &w->caller);
}

/* Only what RFC 6749 calls an error code; anything else a request could put there is not repeated. */
static struct str shown_error(struct str error)
{
	for (size_t i = 0; i < error.n; i++)
		if (!((error.p[i] >= 'a' && error.p[i] <= 'z') || error.p[i] == '_') || i > 40)
			return STR("unknown");
	return error;
}

void handle_auth_callback(struct request *r)
{
	struct auth      *a = auth_of(r);
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
		reply_message(r, 400, "this sign-in was not begun here, or too long ago; begin again", STR("state"));
		return;
	}
	if (error.n || !w->code.n)
		reply_message(r, 400, "the provider did not sign you in",
		              error.n ? shown_error(error) : STR("no code"));
	else if (is_busy(a))
		reply_message(r, 503, "many people sign in just now; try again in a moment", STR(""));
	else
		start_work(w, act_finish, answer_finish);
}

/* --- sign out --- */

static enum rc act_sign_out(struct auth_work *w)
{
	struct signin_provider *p = w->auth->o.provider;

	return p->ops->sign_out(p, &w->arena, &w->url, &w->e);
}

/* A provider that does not answer keeps nobody signed in here: the token is the browser's, and it has dropped it. */
static void answer_sign_out(struct auth_work *w)
{
	struct str home = str_format(&w->request->call->arena, "%.*s/", STR_ARG(w->auth->o.web_app_url));

	redirect(w->request, w->rc || !w->url.n ? home : w->url);
}

void handle_auth_logout(struct request *r)
{
	struct auth *a = auth_of(r);

	if (!auth_is_set_up(a))
		reply_not_set_up(r);
	else if (a->o.provider && !is_busy(a))
		start_work(auth_work_new(r), act_sign_out, answer_sign_out);
	else
		redirect(r, STR(AUTH_PATH "/signin"));
}

/* --- who is it? --- */

static void put_user(struct json_out *o, const struct session_proof *proof)
{
	const struct jwt_session *s = &proof->session;

	json_put_object(o, "user");
	json_put_str(o, "email", proof->is_service ? proof->account.email : s->email);
	if (proof->is_service || s->display_name.n)
		json_put_str(o, "displayName", proof->is_service ? proof->account.name : s->display_name);
	if (!proof->is_service && s->user_name.n)
		json_put_str(o, "userName", s->user_name);
	json_put_array(o, "roles");
	for (unsigned i = 0; !proof->is_service && jwt_role_name(i); i++)
		if (s->roles & 1u << i)
			json_add_str(o, str_from(jwt_role_name(i)));
	json_close_array(o);
	json_close_object(o);
}

static void put_session(struct json_out *o, const struct session_proof *proof, struct arena *a)
{
	json_put_object(o, "session");
	put_user(o, proof);
	if (proof->is_service) {
		json_put_str(o, "scopes", service_scopes_text(proof->account.scopes, a));
	} else {
		json_put_int(o, "iat", proof->session.issued_at);
		json_put_int(o, "exp", proof->session.expires_at);
	}
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

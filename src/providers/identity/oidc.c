/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oidc.c - OpenID Connect: where to send a browser, and whose sign-in its code proves when it comes back.
 *
 * The provider's description (discovery) and keys are fetched when first needed and kept as text for an hour; each use
 * parses its own copy, so no thread holds what another may replace. A token signed with an unknown key makes us fetch
 * the keys again, at most every KEYS_PAUSE_MS.
 *
 * Always true:
 *   1. A description counts only if it names the configured issuer. [read_description()]
 *   2. Every address is https, or http to this machine. [is_url_ok()]
 *   3. An id token is accepted only if signature, issuer, audience, time and nonce are right and its email is not
 *      marked unverified. [check_claims()]
 *   4. Someone in none of the groups cannot sign in. [to_caller()]
 *
 * Not here: state, cookies and redirects (http/routes/auth_api.c).
 */
#include "providers/identity/oidc.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/addr.h"
#include "base/arena.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "net/fetch.h"
#include "net/jwks.h"
#include "net/jwt.h"

enum { KEEP_MS = 3600 * 1000, KEYS_PAUSE_MS = 1000, CONNECT_MS = 5000, TOTAL_MS = 15000 };
enum { URL_MAX = 8192, HEADER_MAX = 4096, GROUPS_MAX = 1000 };

/* A document of the provider, as it came. */
struct kept {
	char   *text; /* NULL: not fetched yet */
	int64_t at_ms;
};

struct oidc {
	struct signin_provider base;
	struct oidc_options    o;
	pthread_mutex_t        lock; /* of what follows */
	struct kept            description, keys;
};

/* What we need of the provider's description. */
struct endpoints {
	struct str authorize, token, keys, sign_out;
};

/* --- addresses --- */

static bool is_url_ok(struct str url)
{
	return str_is_of(url, "!-~") && url_is_safe(url, ADDR_LOOPBACK);
}

enum rc oidc_check(const struct oidc_options *o, struct err *e)
{
	if (!is_url_ok(o->issuer))
		return err_set(e, RC_INVALID,
		               "the issuer must be an https:// URL (http:// only on this machine), not '%.*s'",
		               STR_ARG(o->issuer));
	if (!o->client_id.n)
		return err_set(e, RC_INVALID, "the client id is missing");
	if (!is_url_ok(o->redirect_url))
		return err_set(e, RC_INVALID,
		               "the web app's URL must be set, and be https:// (http:// only on this machine)");
	if (!o->has_directory && !o->admin_groups.n && !o->manager_groups.n && !o->user_groups.n)
		return err_set(e, RC_INVALID, "at least one role needs a group, or nobody can sign in");
	return RC_OK;
}

/* --- documents of the provider --- */

/* A GET, or a POST of a form. */
static enum rc ask(const struct oidc *p, struct str url, struct str form, const char *authorization, struct arena *a,
                   struct fetch_reply *ret, struct err *e)
{
	struct fetch_request req = { .method = form.p ? "POST" : "GET",
		                     .url = str_dup(a, url).p,
		                     .headers = { "Accept: application/json",
		                                  form.p ? "Content-Type: application/x-www-form-urlencoded" : NULL,
		                                  authorization },
		                     .body = form,
		                     .connect_timeout_ms = CONNECT_MS,
		                     .total_timeout_ms = TOTAL_MS,
		                     .max_bytes = JWKS_TEXT_MAX,
		                     .ca_file = p->o.ca_file };

	return err_wrap(e, fetch(&req, a, ret, e), "sign-in provider");
}

static enum rc fetch_document(const struct oidc *p, struct str url, struct arena *a, struct str *ret, struct err *e)
{
	struct fetch_reply reply;
	enum rc            rc = ask(p, url, (struct str){ 0 }, NULL, a, &reply, e);

	if (rc)
		return rc;
	if (reply.status != 200)
		return err_set(e, RC_UNAVAILABLE, "the sign-in provider answered %.*s with %d", STR_ARG(url),
		               reply.status);
	*ret = reply.body;
	return RC_OK;
}

/* A copy of what is kept; empty when there is none that is fresh enough. */
static struct str take_kept(struct oidc *p, const struct kept *k, int64_t fresh_ms, struct arena *a)
{
	struct str text = STR("");

	LOCKED(&p->lock);
	if (k->text && clock_now(p->o.clock).ms - k->at_ms < fresh_ms)
		text = str_dup(a, str_from(k->text));
	return text;
}

static void keep(struct oidc *p, struct kept *k, struct str text)
{
	char *copy = memcpy(mem_alloc(text.n + 1), text.p, text.n);

	LOCKED(&p->lock);
	free(k->text);
	*k = (struct kept){ copy, clock_now(p->o.clock).ms };
}

static bool read_url(const json_t *document, const char *name, struct arena *a, struct str *ret)
{
	struct str text;

	if (!json_get_text(document, name, &text) || (text.n && !is_url_ok(text)))
		return false;
	*ret = str_dup(a, text);
	return true;
}

static enum rc read_description(const struct oidc *p, struct str text, struct arena *a, struct endpoints *ret,
                                struct err *e)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct str                  issuer;
	enum rc                     rc = json_parse(text, &document, e);

	if (rc)
		return err_wrap(e, rc, "description of the sign-in provider");
	if (!json_get_text(document, "issuer", &issuer) || !str_eq(issuer, p->o.issuer))
		return err_set(e, RC_INVALID, "the sign-in provider does not call itself '%.*s'", STR_ARG(p->o.issuer));
	if (!read_url(document, "authorization_endpoint", a, &ret->authorize) || !ret->authorize.n ||
	    !read_url(document, "token_endpoint", a, &ret->token) || !ret->token.n ||
	    !read_url(document, "jwks_uri", a, &ret->keys) || !ret->keys.n ||
	    !read_url(document, "end_session_endpoint", a, &ret->sign_out))
		return err_set(e, RC_INVALID,
		               "the sign-in provider's description has an address that is missing or not https");
	return RC_OK;
}

static enum rc find_endpoints(struct oidc *p, struct arena *a, struct endpoints *ret, struct err *e)
{
	struct str issuer = p->o.issuer;
	struct str text = take_kept(p, &p->description, KEEP_MS, a);
	bool       is_kept = text.n > 0;
	enum rc    rc;

	while (issuer.n && issuer.p[issuer.n - 1] == '/')
		issuer.n--;
	if (!is_kept && (rc = fetch_document(p, str_format(a, "%.*s/.well-known/openid-configuration", STR_ARG(issuer)),
	                                     a, &text, e)))
		return rc;
	if ((rc = read_description(p, text, a, ret, e)))
		return rc;
	if (!is_kept)
		keep(p, &p->description, text);
	return RC_OK;
}

/* --- the way there --- */

static void add_param(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "%s=", name);
	fetch_escape(b, value);
}

/* An address of the provider, to which parameters are added. */
static void begin_url(struct buf *b, struct str address)
{
	buf_init(b, URL_MAX);
	buf_add_str(b, address);
	buf_add_char(b, memchr(address.p, '?', address.n) ? '&' : '?');
}

/* What is in the buffer, in the arena; the buffer is gone. */
static enum rc end_text(struct buf *b, struct arena *a, struct str *ret, struct err *e)
{
	bool is_full = b->is_full;

	if (!is_full)
		*ret = str_dup(a, buf_str(b));
	buf_fini(b);
	return is_full ? err_set(e, RC_TOO_LARGE, "an address of the sign-in provider is too long") : RC_OK;
}

static enum rc begin(struct signin_provider *base, const struct signin_trip *trip, struct arena *a, struct str *ret_url,
                     struct err *e)
{
	struct oidc     *p = CONTAINER_OF(base, struct oidc, base);
	struct hash      challenge;
	struct endpoints at;
	struct buf       b;
	enum rc          rc = find_endpoints(p, a, &at, e);

	if (rc)
		return rc;
	hash_sha256(trip->verifier, &challenge);
	begin_url(&b, at.authorize);
	buf_add_text(&b, "response_type=code");
	add_param(&b, "&client_id", p->o.client_id);
	add_param(&b, "&redirect_uri", p->o.redirect_url);
	add_param(&b, "&scope", p->o.scopes);
	add_param(&b, "&state", trip->state);
	add_param(&b, "&nonce", trip->nonce);
	add_param(&b, "&code_challenge_method", STR("S256"));
	add_param(&b, "&code_challenge", base64url_encode(a, hash_str(&challenge)));
	return end_text(&b, a, ret_url, e);
}

static enum rc sign_out(struct signin_provider *base, struct arena *a, struct str *ret_url, struct err *e)
{
	struct oidc     *p = CONTAINER_OF(base, struct oidc, base);
	struct endpoints at;
	struct buf       b;
	enum rc          rc = find_endpoints(p, a, &at, e);

	if (rc)
		return rc;
	*ret_url = STR("");
	if (!at.sign_out.n)
		return RC_OK;
	begin_url(&b, at.sign_out);
	add_param(&b, "client_id", p->o.client_id);
	return end_text(&b, a, ret_url, e);
}

/* --- the way back --- */

/* "Authorization: Basic ..." of the client, as RFC 6749 2.3.1 has it: both parts escaped first. */
static enum rc write_client(const struct oidc *p, struct arena *a, struct str *ret, struct err *e)
{
	struct str  plain = STR("");
	struct buf  b = BUF(HEADER_MAX);
	enum rc     rc;
	char       *text;
	const char *prefix = "Authorization: Basic ";

	fetch_escape(&b, p->o.client_id);
	buf_add_char(&b, ':');
	fetch_escape(&b, p->o.client_secret);
	if ((rc = end_text(&b, a, &plain, e)))
		return rc;
	text = arena_alloc(a, strlen(prefix) + plain.n / 3 * 4 + 8);
	memcpy(text, prefix, strlen(prefix));
	EVP_EncodeBlock((unsigned char *)text + strlen(prefix), (const unsigned char *)plain.p, (int)plain.n);
	*ret = str_from(text);
	return RC_OK;
}

static enum rc read_id_token(const struct fetch_reply *reply, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct str                  token = STR("");

	if (reply->status != 200)
		return err_set(e, reply->status >= 500 ? RC_UNAVAILABLE : RC_INVALID,
		               "the sign-in provider did not take the code: it answered with %d", reply->status);
	if (json_parse(reply->body, &body, NULL) || !json_get_text(body, "id_token", &token) || !token.n)
		return err_set(e, RC_INVALID, "the sign-in provider's answer has no id_token");
	*ret = str_dup(a, token);
	return RC_OK;
}

/* The code for a token. */
static enum rc exchange(struct oidc *p, const struct endpoints *at, const struct signin_trip *trip, struct str code,
                        struct arena *a, struct str *ret, struct err *e)
{
	struct fetch_reply reply;
	struct str         form, client;
	struct buf         b = BUF(URL_MAX);
	enum rc            rc;

	buf_addf(&b, "grant_type=authorization_code");
	add_param(&b, "&code", code);
	add_param(&b, "&redirect_uri", p->o.redirect_url);
	add_param(&b, "&code_verifier", trip->verifier);
	if (!p->o.client_secret.n)
		add_param(&b, "&client_id", p->o.client_id);
	if ((rc = end_text(&b, a, &form, e)) || (rc = write_client(p, a, &client, e)) ||
	    (rc = ask(p, at->token, form, p->o.client_secret.n ? client.p : NULL, a, &reply, e)))
		return rc;
	return read_id_token(&reply, a, ret, e);
}

static enum rc verify_with(struct str keys, struct str token, struct arena *a, struct str *ret_payload)
{
	struct jwks *set = NULL;
	enum rc      rc = jwks_open(keys, &set, NULL);

	if (!rc)
		rc = jwks_verify(set, token, a, ret_payload, NULL);
	jwks_close(set);
	return rc;
}

/* With the keys we have; when they do not know the token's, with the provider's newest. */
static enum rc verify(struct oidc *p, const struct endpoints *at, struct str token, struct arena *a,
                      struct str *ret_payload, struct err *e)
{
	struct str keys = take_kept(p, &p->keys, KEEP_MS, a);
	enum rc    rc = RC_NOT_FOUND;

	if (keys.n)
		rc = verify_with(keys, token, a, ret_payload);
	if (rc == RC_NOT_FOUND && !take_kept(p, &p->keys, KEYS_PAUSE_MS, a).n) {
		if ((rc = fetch_document(p, at->keys, a, &keys, e)))
			return rc;
		keep(p, &p->keys, keys);
		rc = verify_with(keys, token, a, ret_payload);
	}
	if (!rc)
		return RC_OK;
	return err_set(e, RC_INVALID, "the provider's token %s",
	               rc == RC_NOT_FOUND ? "is signed with a key that it does not publish"
	                                  : "is not signed as it must be");
}

/* --- what the token says --- */

static bool has_text(const json_t *value, struct str text)
{
	if (json_is_string(value))
		return str_eq(str_from(json_string_value(value)), text);
	for (size_t i = 0; i < json_array_size(value); i++)
		if (json_is_string(json_array_get(value, i)) && has_text(json_array_get(value, i), text))
			return true;
	return false;
}

static bool is_audience(const struct oidc *p, const json_t *claims)
{
	const json_t *audience = json_object_get(claims, "aud");
	struct str    party;

	if (!has_text(audience, p->o.client_id) || !json_get_text(claims, "azp", &party))
		return false;
	if (party.n)
		return str_eq(party, p->o.client_id);
	return !json_is_array(audience) || json_array_size(audience) == 1;
}

static enum rc check_claims(const struct oidc *p, const struct signin_trip *trip, const json_t *claims, struct err *e)
{
	int64_t    now = clock_now(p->o.clock).ms / 1000;
	struct str issuer, nonce;
	int64_t    expires, issued;

	if (!json_get_text(claims, "iss", &issuer) || !str_eq(issuer, p->o.issuer))
		return err_set(e, RC_INVALID, "the provider's token is from another issuer");
	if (!is_audience(p, claims))
		return err_set(e, RC_INVALID, "the provider's token is for another client");
	if (!json_get_text(claims, "nonce", &nonce) || !str_eq_secret(nonce, trip->nonce))
		return err_set(e, RC_INVALID, "the provider's token is not for this sign-in (nonce)");
	if (!json_get_number(claims, "exp", 0, &expires) || now - JWT_SKEW_SEC >= expires)
		return err_set(e, RC_INVALID, "the provider's token has expired, or compare the clocks");
	if (!json_get_number(claims, "iat", 0, &issued) || issued > now + JWT_SKEW_SEC)
		return err_set(e, RC_INVALID, "the provider's token is from the future: compare the clocks");
	return RC_OK;
}

/* Is one of the token's groups in the list? */
static bool is_in(const json_t *groups, struct str list)
{
	while (list.n) {
		struct str group = str_trim(str_cut(&list, ','));

		if (group.n && has_text(groups, group))
			return true;
	}
	return false;
}

static unsigned roles_of(const struct oidc *p, const json_t *claims)
{
	char          name[JWT_NAME_MAX + 1];
	const json_t *groups;

	(void)snprintf(name, sizeof(name), "%.*s", STR_ARG(p->o.groups_claim)); /* a setting, and shorter */
	groups = json_object_get(claims, name);
	if (json_array_size(groups) > GROUPS_MAX)
		return 0;
	return (is_in(groups, p->o.admin_groups) ? ROLE_ADMIN : 0u) |
	       (is_in(groups, p->o.manager_groups) ? ROLE_MANAGER : 0u) |
	       (is_in(groups, p->o.user_groups) ? ROLE_USER : 0u);
}

static struct str name_claim(const json_t *claims, const char *name, struct arena *a)
{
	struct str text;

	return json_get_text(claims, name, &text) && text.n <= JWT_NAME_MAX ? str_dup(a, text) : STR("");
}

static enum rc to_caller(const struct oidc *p, const json_t *claims, struct arena *a, struct caller *ret, struct err *e)
{
	const json_t *verified = json_object_get(claims, "email_verified");
	struct str    email;
	unsigned      roles = roles_of(p, claims);

	if (!json_get_text(claims, "email", &email) || !jwt_is_email(email) || (verified && !json_is_true(verified)))
		return err_set(e, RC_UNKNOWN, "the provider does not tell a verified email address");
	if (!roles && !p->o.has_directory)
		return err_set(e, RC_UNKNOWN, "%.*s is in none of the groups that may use this", STR_ARG(email));
	*ret = (struct caller){ .email = str_dup(a, email),
		                .display_name = name_claim(claims, "name", a),
		                .user_name = name_claim(claims, "preferred_username", a),
		                .roles = roles };
	return RC_OK;
}

static enum rc finish(struct signin_provider *base, const struct signin_trip *trip, struct str code, struct arena *a,
                      struct caller *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *claims = NULL;
	struct oidc                *p = CONTAINER_OF(base, struct oidc, base);
	struct endpoints            at;
	struct str                  token, payload;
	enum rc                     rc;

	if ((rc = find_endpoints(p, a, &at, e)) || (rc = exchange(p, &at, trip, code, a, &token, e)) ||
	    (rc = verify(p, &at, token, a, &payload, e)))
		return rc;
	if (json_parse(payload, &claims, NULL) || !json_is_object(claims))
		return err_set(e, RC_INVALID, "the provider's token is not JSON inside");
	rc = check_claims(p, trip, claims, e);
	return rc ? rc : to_caller(p, claims, a, ret, e);
}

/* --- life --- */

struct signin_provider *oidc_open(const struct oidc_options *o)
{
	static const struct signin_provider_ops ops = { .begin = begin, .finish = finish, .sign_out = sign_out };
	struct oidc                            *p = mem_new(struct oidc);

	p->base.ops = &ops;
	p->o = *o;
	pthread_mutex_init(&p->lock, NULL);
	return &p->base;
}

void oidc_close(struct signin_provider *base)
{
	struct oidc *p;

	if (!base)
		return;
	p = CONTAINER_OF(base, struct oidc, base);
	pthread_mutex_destroy(&p->lock);
	free(p->description.text);
	free(p->keys.text);
	free(p);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signin.c - from settings to what sign-in needs.
 *
 * A server without LEASEHOLD_JWT_SECRET lends sandboxes as usual and answers /api with 503. There are no built-in
 * tokens: without any it refuses to start. dev.c makes those of development mode.
 */
#include "app/signin.h"

#include <stdlib.h>
#include <string.h>

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "app/parts.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/api/api.h"
#include "http/api/auth.h"
#include "providers/aws/directory.h"
#include "providers/aws/signin.h"
#include "providers/identity/oidc.h"
#include "providers/identity/users_file.h"
#include "service/people/people.h"
#include "service/service_accounts.h"

/* --- settings --- */

static enum rc read_secrets(const struct config *c, struct jwt_secrets *ret, struct err *e)
{
	struct str         until = config_str(c, CONFIG_JWT_OLD_UNTIL);
	struct jwt_secrets s = { config_str(c, CONFIG_JWT_SECRET), config_str(c, CONFIG_JWT_SECRET_OLD), 0 };
	static const char *what = "must have at least 32 bytes, such as from 'openssl rand -base64 32'";
	char               day[32]; /* "2026-12-01" as a whole time */

	if (s.current.n && s.current.n < JWT_SECRET_MIN)
		return err_set(e, RC_INVALID, "%s: %s", config_name(CONFIG_JWT_SECRET), what);
	if (s.old.n && s.old.n < JWT_SECRET_MIN)
		return err_set(e, RC_INVALID, "%s: %s", config_name(CONFIG_JWT_SECRET_OLD), what);
	if (!s.old.n != !until.n)
		return err_set(e, RC_INVALID, "%s and %s: both or neither", config_name(CONFIG_JWT_SECRET_OLD),
		               config_name(CONFIG_JWT_OLD_UNTIL));
	if (s.old.n && !s.current.n)
		return err_set(e, RC_INVALID, "%s: needs %s", config_name(CONFIG_JWT_SECRET_OLD),
		               config_name(CONFIG_JWT_SECRET));
	if (until.n == strlen("2026-12-01"))
		until = str_of(day, (size_t)snprintf(day, sizeof(day), "%.10sT00:00:00Z", until.p));
	if (until.n && !iso_time_parse(until, &s.old_until))
		return err_set(e, RC_INVALID,
		               "%s: must be a date such as 2026-12-01, or a time such as 2026-12-01T06:00:00Z",
		               config_name(CONFIG_JWT_OLD_UNTIL));
	*ret = s;
	return RC_OK;
}

/* redirect_url lives in the arena. */
static struct oidc_options oidc_options(const struct config *c, struct arena *a)
{
	struct str app = config_str(c, CONFIG_WEB_APP_URL);

	while (app.n && app.p[app.n - 1] == '/')
		app.n--;
	return (struct oidc_options){ .clock = &clock_real,
		                      .issuer = config_str(c, CONFIG_OIDC_ISSUER),
		                      .client_id = config_str(c, CONFIG_OIDC_CLIENT),
		                      .client_secret = config_str(c, CONFIG_OIDC_SECRET),
		                      .redirect_url = str_format(a, "%.*s/api/auth/login/callback", STR_ARG(app)),
		                      .scopes = config_str(c, CONFIG_OIDC_SCOPES),
		                      .groups_claim = config_str(c, CONFIG_OIDC_GROUPS),
		                      .admin_groups = config_str(c, CONFIG_OIDC_ADMINS),
		                      .manager_groups = config_str(c, CONFIG_OIDC_MANAGERS),
		                      .user_groups = config_str(c, CONFIG_OIDC_USERS),
		                      .has_directory = aws_parts_is_wanted(c) && !guard_parts_is_wanted(c),
		                      .ca_file = config_text(c, CONFIG_OIDC_CA) };
}

static bool is_web_url(struct str url)
{
	for (size_t i = 0; i < url.n; i++)
		if (url.p[i] <= ' ' || url.p[i] > '~' || strchr("\"'<>;?#\\", url.p[i]))
			return false;
	return str_starts_with(url, STR("https://")) || str_starts_with(url, STR("http://"));
}

void signin_check(const struct config *c, struct buf *problems)
{
	struct str                       app = config_str(c, CONFIG_WEB_APP_URL);
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct oidc_options              oidc = oidc_options(c, &a);
	struct users_file               *users = NULL;
	struct jwt_secrets               secrets;
	struct err                       e = { 0 };

	if (read_secrets(c, &secrets, &e))
		buf_addf(problems, "%s\n", e.msg);
	err_clear(&e);
	if (config_text(c, CONFIG_USERS_FILE) &&
	    identity_users_file_open(config_text(c, CONFIG_USERS_FILE), &users, &e))
		buf_addf(problems, "%s\n", e.msg);
	users_file_close(users);
	if (app.n && !is_web_url(app))
		buf_addf(problems, "%s: must be a URL such as https://sandbox.example.com, without a query\n",
		         config_name(CONFIG_WEB_APP_URL));
	err_clear(&e);
	if (oidc.issuer.n && oidc_check(&oidc, &e))
		buf_addf(problems, "sign-in provider (LEASEHOLD_OIDC_*, %s): %s\n", config_name(CONFIG_WEB_APP_URL),
		         e.msg);
}

/* --- tokens of tracks, operators and senders of events --- */

static enum rc split(const struct config *c, enum setting id, struct str *ret, size_t *ret_count, struct err *e)
{
	struct str rest = config_str(c, id);

	*ret_count = 0;
	while (rest.n) {
		struct str token = str_trim(str_cut(&rest, ','));

		if (*ret_count == API_TOKENS_MAX)
			return err_set(e, RC_INVALID, "%s: more than %d tokens", config_name(id), API_TOKENS_MAX);
		if (token.n)
			ret[(*ret_count)++] = token;
	}
	return RC_OK;
}

static bool share_one(const struct token_list *one, const struct token_list *other)
{
	for (size_t i = 0; i < one->count; i++)
		if (token_find(other, one->items[i]) >= 0)
			return true;
	return false;
}

enum rc tokens_read(const struct config *c, struct api_tokens *ret, struct err *e)
{
	const struct list {
		enum setting       id;
		struct token_list *tokens;
	} lists[] = { { CONFIG_INBOX_TOKENS, &ret->inbox },
		      { CONFIG_METRICS_TOKENS, &ret->metrics },
		      { CONFIG_API_TOKEN, &ret->track },
		      { CONFIG_ADMIN_TOKEN, &ret->admin } };
	enum rc rc;

	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		if ((rc = split(c, lists[i].id, lists[i].tokens->items, &lists[i].tokens->count, e)))
			return rc;
	if (!ret->track.count || !ret->admin.count)
		return err_set(e, RC_INVALID,
		               "%s and %s must be set, in the environment or in the configuration file (to try it out: "
		               "'leasehold serve --dev' makes some)",
		               config_name(CONFIG_API_TOKEN), config_name(CONFIG_ADMIN_TOKEN));
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) /* a token says who somebody is */
		for (size_t k = i + 1; k < ARRAY_LEN(lists); k++)
			if (share_one(lists[i].tokens, lists[k].tokens))
				return err_set(e, RC_INVALID, "%s and %s must not share a token",
				               config_name(lists[i].id), config_name(lists[k].id));
	return RC_OK;
}

/* --- life --- */

/* Who the people are: those of the users file, those of Identity Center, those whom a provider vouched for. */
static void open_people(struct signin *s)
{
	struct identity *first = users_file_identity(s->users);

	if (s->directory) {
		aws_directory_set_next(s->directory, first);
		first = aws_directory_identity(s->directory);
		if (s->provider)
			s->by_directory = aws_signin_new(s->provider, s->directory);
	}
	s->people = people_new(s->store, first);
	if (s->directory)
		people_believe_next(s->people);
}

enum rc signin_open(struct config *c, struct store *store, struct aws_directory *directory, struct signin **ret,
                    struct err *e)
{
	struct signin      *s = mem_new(struct signin);
	struct str          app = config_str(c, CONFIG_WEB_APP_URL);
	struct oidc_options oidc = oidc_options(c, &c->arena);
	struct auth_options options = { .clock = &clock_real, .web_app_url = app };
	enum rc             rc;

	s->store = store;
	s->directory = directory;
	*ret = s; /* half-built is fine for signin_close() */
	if ((rc = read_secrets(c, &options.secrets, e)) ||
	    (rc = identity_users_file_open(config_text(c, CONFIG_USERS_FILE), &s->users, e)))
		return rc;
	if (oidc.issuer.n)
		s->provider = oidc_open(&oidc);
	s->keyring = keyring_new();
	open_people(s);
	signin_refresh(s); /* the store may be away now: then later */
	options.is_secure = str_starts_with(app, STR("https://")) || config_text(c, CONFIG_TLS_CERT);
	options.passwords = config_text(c, CONFIG_USERS_FILE) ? users_file_passwords(s->users) : NULL;
	options.provider = s->by_directory ? s->by_directory : s->provider;
	options.keyring = s->keyring;
	options.people = s->people;
	s->auth = auth_new(&options);
	return RC_OK;
}

void signin_close(struct signin *s)
{
	if (!s)
		return;
	auth_free(s->auth);
	keyring_free(s->keyring);
	people_free(s->people);
	aws_signin_free(s->by_directory);
	oidc_close(s->provider);
	users_file_close(s->users);
	free(s);
}

void signin_set_secrets(struct signin *s, const struct config *fresh)
{
	struct jwt_secrets secrets;

	if (read_secrets(fresh, &secrets, NULL) == RC_OK)
		auth_set_secrets(s->auth, &secrets);
}

void signin_refresh_users(struct signin *s)
{
	struct err e = { 0 };

	if (users_file_refresh(s->users, false, &e))
		log_write(LOG_ERROR, "signin", NULL, 0, "the users of before stay: %s", e.msg);
}

void signin_refresh(struct signin *s)
{
	rc_ignore(keyring_load(s->keyring, s->store, NULL)); /* comes again; the store's health is told elsewhere */
	rc_ignore(people_load(s->people, NULL));             /* the same */
	if (s->directory)
		rc_ignore(aws_directory_load(s->directory, NULL)); /* the same */
}

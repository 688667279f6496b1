/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signin.c - from settings to what sign-in needs.
 *
 * A server without LEASEHOLD_JWT_SECRET lends sandboxes as ever, and answers /api with 503. In development a secret and three users,
 * one for each role, are made at the first start and kept in the data folder where nobody else can read them.
 */
#include "app/signin.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/password.h"
#include "cli/demo_plan.h"
#include "http/session.h"
#include "providers/identity/oidc.h"
#include "providers/identity/users_file.h"
#include "service/service_accounts.h"

enum { SMALL_FILE_MAX = 4096, DEV_PASSWORD_SIZE = 17 };

struct signin {
	struct store           *store;
	struct users_file      *users;
	struct signin_provider *provider;
	struct keyring         *keyring;
	struct auth            *auth;
};

/* --- settings --- */

/* "2026-12-01", or a whole time. */
static bool read_until(struct str text, int64_t *ret)
{
	struct arena a = { 0 };
	bool         is_date = text.n == strlen("2026-12-01");
	bool         is_read = iso_time_parse(is_date ? str_format(&a, "%.*sT00:00:00Z", STR_ARG(text)) : text, ret);

	arena_fini(&a);
	return is_read;
}

static enum rc read_secrets(const struct config *c, struct jwt_secrets *ret, struct err *e)
{
	struct str         until = config_str(c, CONFIG_JWT_OLD_UNTIL);
	struct jwt_secrets s = { config_str(c, CONFIG_JWT_SECRET), config_str(c, CONFIG_JWT_SECRET_OLD), 0 };
	static const char *what = "must have at least 32 bytes, such as from 'openssl rand -base64 32'";

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
	if (until.n && !read_until(until, &s.old_until))
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
	struct str          app = config_str(c, CONFIG_WEB_APP_URL);
	struct arena        a = { 0 };
	struct oidc_options oidc = oidc_options(c, &a);
	struct jwt_secrets  secrets;
	struct err          e = { 0 };

	if (read_secrets(c, &secrets, &e))
		buf_addf(problems, "%s\n", e.msg);
	if (app.n && !is_web_url(app))
		buf_addf(problems, "%s: must be a URL such as https://sandbox.example.com, without a query\n",
		         config_name(CONFIG_WEB_APP_URL));
	err_clear(&e);
	if (oidc.issuer.n && oidc_check(&oidc, &e))
		buf_addf(problems, "sign-in provider (LEASEHOLD_OIDC_*, %s): %s\n", config_name(CONFIG_WEB_APP_URL),
		         e.msg);
	arena_fini(&a);
}

/* --- development --- */

/* What a development start must remember. */
static enum rc write_file(const char *path, struct str text, struct err *e)
{
	int  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool is_written;

	if (fd < 0)
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be made: %s", path, strerror(errno));
	is_written = write(fd, text.p, text.n) == (ssize_t)text.n && fsync(fd) == 0;
	close(fd);
	return is_written ? RC_OK : err_set(e, RC_UNAVAILABLE, "%s: cannot be written: %s", path, strerror(errno));
}

static enum rc read_file(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	char   *room = arena_alloc(a, SMALL_FILE_MAX);
	int     fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, room, SMALL_FILE_MAX - 1);

	if (got < 0)
		(void)err_set(e, RC_UNAVAILABLE, "%s: cannot be read: %s", path, strerror(errno)); /* returned below */
	if (fd >= 0)
		close(fd);
	*ret = got < 0 ? STR("") : str_of(room, (size_t)got);
	return got < 0 ? RC_UNAVAILABLE : RC_OK;
}

static struct str in_data(struct config *c, const char *name)
{
	return str_format(&c->arena, "%s/%s", config_text(c, CONFIG_DATA), name);
}

static enum rc make_secret(struct config *c, struct err *e)
{
	struct str path = in_data(c, "jwt-secret"), secret;
	char       text[ID_TOKEN_SIZE];
	enum rc    rc = RC_OK;

	id_token(text);
	if (access(path.p, F_OK) != 0)
		rc = write_file(path.p, str_from(text), e);
	if (rc || (rc = read_file(path.p, &c->arena, &secret, e)))
		return rc;
	config_set(c, CONFIG_JWT_SECRET, str_trim(str_cut(&secret, '\n')), FROM_DEV_MODE);
	return RC_OK;
}

static enum rc make_users(struct config *c, const char *users_path, const char *passwords_path, struct err *e)
{
	static const struct {
		const char *email, *name, *role;
	} people[] = { { "user@example.com", "Uma User", "User" },
		       { "manager@example.com", "Mia Manager", "Manager" },
		       { "admin@example.com", "Ada Admin", "Admin" } };
	struct str users = STR("# The users of development; their passwords are in the file dev-passwords.\n");
	struct str passwords = STR("");
	enum rc    rc;

	for (size_t i = 0; i < ARRAY_LEN(people); i++) {
		char password[ID_TOKEN_SIZE], hash[PASSWORD_HASH_SIZE];

		id_token(password);
		password[DEV_PASSWORD_SIZE - 1] = 0;
		if ((rc = password_hash(str_from(password), hash, e)))
			return rc;
		users = str_format(
		        &c->arena,
		        "%.*s{\"email\":\"%s\",\"displayName\":\"%s\",\"roles\":[\"%s\"],\"password\":\"%s\"}\n",
		        STR_ARG(users), people[i].email, people[i].name, people[i].role, hash);
		passwords = str_format(&c->arena, "%.*s%s %s\n", STR_ARG(passwords), people[i].email, password);
	}
	(void)unlink(passwords_path); /* of users that are gone */
	rc = write_file(passwords_path, passwords, e);
	return rc ? rc : write_file(users_path, users, e);
}

/* The people of "leasehold demo", who have no password: nobody signs in as them. Folders of an earlier version get them too. */
static enum rc add_demo_people(struct config *c, const char *users_path, struct err *e)
{
	struct str lines = STR(""), known;
	enum rc    rc = read_file(users_path, &c->arena, &known, e);
	int        fd;
	bool       is_written;

	if (rc || memmem(known.p, known.n, demo_people[0], strlen(demo_people[0])))
		return rc;
	for (size_t i = 0; i < DEMO_PEOPLE; i++)
		lines = str_format(&c->arena,
		                   "%.*s{\"email\":\"%s@example.com\",\"displayName\":\"%c%s\",\"roles\":[\"User\"]}\n",
		                   STR_ARG(lines), demo_people[i], toupper((unsigned char)demo_people[i][0]),
		                   demo_people[i] + 1);
	fd = open(users_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	is_written = fd >= 0 && write(fd, lines.p, lines.n) == (ssize_t)lines.n;
	if (fd >= 0)
		close(fd);
	return is_written ? RC_OK
	                  : err_set(e, RC_UNAVAILABLE, "%s: cannot be written: %s", users_path, strerror(errno));
}

enum rc signin_prepare_dev(struct config *c, struct err *e)
{
	struct str users = in_data(c, "users"), passwords = in_data(c, "dev-passwords");
	enum rc    rc = RC_OK;

	if (!config_str(c, CONFIG_JWT_SECRET).n && (rc = make_secret(c, e)))
		return rc;
	if (config_str(c, CONFIG_USERS_FILE).n || config_str(c, CONFIG_OIDC_ISSUER).n)
		return RC_OK;
	if (access(users.p, F_OK) != 0)
		rc = make_users(c, users.p, passwords.p, e);
	if (!rc)
		rc = add_demo_people(c, users.p, e);
	if (!rc)
		config_set(c, CONFIG_USERS_FILE, users, FROM_DEV_MODE);
	return rc;
}

void signin_print_dev(const struct config *c)
{
	struct arena a = { 0 };
	struct str   path = str_format(&a, "%s/dev-passwords", config_text(c, CONFIG_DATA)), rest;

	if (c->values[CONFIG_USERS_FILE].origin == FROM_DEV_MODE && read_file(path.p, &a, &rest, NULL) == RC_OK)
		while (rest.n) {
			struct str password = str_cut(&rest, '\n');
			struct str email = str_cut(&password, ' ');

			printf("  %-20.*s password %.*s\n", STR_ARG(email), STR_ARG(password));
		}
	arena_fini(&a);
}

/* --- life --- */

static void make_auth(struct signin *s, const struct config *c, const struct jwt_secrets *secrets)
{
	struct str          app = config_str(c, CONFIG_WEB_APP_URL);
	struct auth_options options = {
		.clock = &clock_real,
		.secrets = *secrets,
		.web_app_url = app,
		.is_secure = str_starts_with(app, STR("https://")) || config_text(c, CONFIG_TLS_CERT),
		.passwords = config_text(c, CONFIG_USERS_FILE) ? users_file_passwords(s->users) : NULL,
		.provider = s->provider,
		.keyring = s->keyring,
	};

	s->auth = auth_new(&options);
}

enum rc signin_open(struct config *c, struct store *store, struct signin **ret, struct err *e)
{
	struct signin      *s = mem_new(struct signin);
	struct jwt_secrets  secrets;
	struct oidc_options oidc;
	enum rc             rc;

	s->store = store;
	*ret = s; /* half-built is fine for signin_close() */
	if ((rc = read_secrets(c, &secrets, e)) ||
	    (rc = identity_users_file_open(config_text(c, CONFIG_USERS_FILE), &s->users, e)))
		return rc;
	if (config_text(c, CONFIG_OIDC_ISSUER)) {
		oidc = oidc_options(c, &c->arena);
		s->provider = oidc_open(&oidc);
	}
	s->keyring = keyring_new();
	rc_ignore(keyring_load(s->keyring, store,
	                       NULL)); /* the store may be away now; signin_refresh_keys() sees to it */
	make_auth(s, c, &secrets);
	return RC_OK;
}

void signin_close(struct signin *s)
{
	if (!s)
		return;
	auth_free(s->auth);
	keyring_free(s->keyring);
	oidc_close(s->provider);
	users_file_close(s->users);
	free(s);
}

struct auth *signin_auth(struct signin *s)
{
	return s->auth;
}

struct identity *signin_identity(struct signin *s)
{
	return users_file_identity(s->users);
}

enum rc signin_reload_users(struct signin *s, struct err *e)
{
	return users_file_refresh(s->users, true, e);
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

void signin_refresh_keys(struct signin *s)
{
	rc_ignore(keyring_load(s->keyring, s->store, NULL)); /* comes again; the store's health is told elsewhere */
}

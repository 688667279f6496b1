/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dev.c - the first five minutes with a development server.
 *
 * Only development mode creates tokens, a session secret and three users, one for each role: once, in the data folder,
 * readable by its owner only.
 *
 * Commands on the same machine find the server through a file in its data folder (read by cli/call/settings.c), so
 * nobody has to paste tokens. It holds only secrets that development mode made. It is written at every start, beside
 * its place and then renamed, so that no command reads half of it.
 */
#include "app/dev.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config/config.h"
#include "base/file.h"
#include "base/id.h"
#include "base/log.h"
#include "base/password.h"
#include "cli/commands/demo_plan.h"

enum { FILE_MAX = 4 << 20, DEV_PASSWORD_SIZE = 17 };

/* --- what is made --- */

/* For its owner only. */
static enum rc write_file(const char *path, int flags, struct str text, struct err *e)
{
	int     fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
	enum rc rc = RC_OK;

	if (fd < 0 || !file_write_all(fd, text) || fsync(fd) != 0)
		rc = err_set(e, RC_UNAVAILABLE, "%s: cannot be %s: %s", path,
		             fd < 0 && flags & O_CREAT ? "made" : "written", strerror(errno));
	if (fd >= 0)
		close(fd);
	return rc;
}

static enum rc read_file(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	int     fd = open(path, O_RDONLY | O_CLOEXEC);
	enum rc rc = fd < 0 ? RC_UNAVAILABLE : file_read_all(fd, FILE_MAX, a, ret);

	if (rc)
		(void)err_set(e, RC_UNAVAILABLE, "%s: cannot be read: %s", path,
		              rc == RC_TOO_LARGE ? "too large" : strerror(errno)); /* returned below */
	if (fd >= 0)
		close(fd);
	return rc ? RC_UNAVAILABLE : RC_OK;
}

static struct str in_data(struct config *c, const char *name)
{
	return str_format(&c->arena, "%s/%s", config_text(c, CONFIG_DATA), name);
}

/* What a file of the data folder says; at the first start, this. */
static enum rc remember(struct config *c, const char *name, struct str first, struct str *ret, struct err *e)
{
	struct str path = in_data(c, name);
	enum rc    rc = access(path.p, F_OK) == 0 ? RC_OK : write_file(path.p, O_CREAT | O_EXCL, first, e);

	return rc ? rc : read_file(path.p, &c->arena, ret, e);
}

static enum rc make_tokens(struct config *c, struct err *e)
{
	static const enum setting ids[] = { CONFIG_API_TOKEN, CONFIG_ADMIN_TOKEN };
	char                      track[ID_TOKEN_SIZE], admin[ID_TOKEN_SIZE];
	struct str                first, rest;
	enum rc                   rc;

	id_token(track);
	id_token(admin);
	first = str_format(&c->arena, "%s=%s\n%s=%s\n", config_name(ids[0]), track, config_name(ids[1]), admin);
	if ((rc = remember(c, "tokens", first, &rest, e)))
		return rc;
	while (rest.n) {
		struct str value = str_cut(&rest, '\n');
		struct str name = str_cut(&value, '=');

		for (size_t i = 0; i < ARRAY_LEN(ids); i++)
			if (str_eq(name, str_from(config_name(ids[i]))) && !config_str(c, ids[i]).n)
				config_set(c, ids[i], value, FROM_DEV_MODE);
	}
	return RC_OK;
}

static enum rc make_secret(struct config *c, struct err *e)
{
	struct str secret;
	char       first[ID_TOKEN_SIZE];
	enum rc    rc;

	id_token(first);
	if (!(rc = remember(c, "jwt-secret", str_from(first), &secret, e)))
		config_set(c, CONFIG_JWT_SECRET, str_trim(str_cut(&secret, '\n')), FROM_DEV_MODE);
	return rc;
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
	rc = write_file(passwords_path, O_CREAT | O_EXCL, passwords, e);
	return rc ? rc : write_file(users_path, O_CREAT | O_EXCL, users, e);
}

/* The people of "leasehold demo". They have no password: nobody signs in as them. Older data folders get them too. */
static enum rc add_demo_people(struct config *c, const char *users_path, struct err *e)
{
	struct str lines = STR(""), known;
	enum rc    rc = read_file(users_path, &c->arena, &known, e);

	if (rc || str_has(known, str_from(demo_people[0])))
		return rc;
	for (size_t i = 0; i < DEMO_PEOPLE; i++)
		lines = str_format(&c->arena,
		                   "%.*s{\"email\":\"%s@example.com\",\"displayName\":\"%c%s\",\"roles\":[\"User\"]}\n",
		                   STR_ARG(lines), demo_people[i], toupper((unsigned char)demo_people[i][0]),
		                   demo_people[i] + 1);
	return write_file(users_path, O_APPEND, lines, e);
}

enum rc dev_prepare(struct config *c, struct err *e)
{
	struct str users = in_data(c, "users"), passwords = in_data(c, "dev-passwords");
	bool       has_tokens = config_str(c, CONFIG_API_TOKEN).n && config_str(c, CONFIG_ADMIN_TOKEN).n;
	enum rc    rc = RC_OK;

	if ((!has_tokens && (rc = make_tokens(c, e))) ||
	    (!config_str(c, CONFIG_JWT_SECRET).n && (rc = make_secret(c, e))) || config_str(c, CONFIG_USERS_FILE).n ||
	    config_str(c, CONFIG_OIDC_ISSUER).n)
		return rc;
	if (access(users.p, F_OK) != 0)
		rc = make_users(c, users.p, passwords.p, e);
	if (!rc)
		rc = add_demo_people(c, users.p, e);
	if (!rc)
		config_set(c, CONFIG_USERS_FILE, users, FROM_DEV_MODE);
	return rc;
}

/* --- what is told --- */

/* What was made for development. A secret that somebody has given us stays where he has it. */
static struct str own_secret(const struct config *c, enum setting id)
{
	return c->values[id].origin == FROM_DEV_MODE ? config_str(c, id) : STR("");
}

static enum rc write_client(struct config *c, const char *address, struct err *e)
{
	struct str track = own_secret(c, CONFIG_API_TOKEN), admin = own_secret(c, CONFIG_ADMIN_TOKEN);
	struct str secret = own_secret(c, CONFIG_JWT_SECRET), base = config_str(c, CONFIG_BASE_PATH), text;
	struct str path = in_data(c, "client"), beside = in_data(c, "client.new");
	enum rc    rc;

	if (str_eq(base, STR("/v1"))) /* what the command line adds by itself */
		base = STR("");
	text = str_format(
	        &c->arena,
	        "# Written by a development server at its start; commands use it when nothing else names a server.\n"
	        "LEASEHOLD_ADDRESS=%s%.*s\n%s=%.*s\n%s=%.*s\n%s=%.*s\n",
	        address, STR_ARG(base), config_name(CONFIG_API_TOKEN), STR_ARG(track), config_name(CONFIG_ADMIN_TOKEN),
	        STR_ARG(admin), config_name(CONFIG_JWT_SECRET), STR_ARG(secret));
	if ((rc = write_file(beside.p, O_CREAT | O_TRUNC, text, e)))
		return rc;
	if (rename(beside.p, path.p))
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be written: %s", path.p, strerror(errno));
	return RC_OK;
}

/* The users of development and their passwords; nothing when the users are of other origin. */
static void print_users(struct config *c)
{
	struct str rest;

	if (c->values[CONFIG_USERS_FILE].origin != FROM_DEV_MODE ||
	    read_file(in_data(c, "dev-passwords").p, &c->arena, &rest, NULL))
		return;
	while (rest.n) {
		struct str password = str_cut(&rest, '\n');
		struct str email = str_cut(&password, ' ');

		printf("  %-20.*s password %.*s\n", STR_ARG(email), STR_ARG(password));
	}
}

/* Of the instance driver whose sites a browser can open. */
static void print_site(const struct config *c, const char *run)
{
	if (!str_eq(config_str(c, CONFIG_INSTANCE_DRIVER), STR("local")))
		return;
	printf("  And a real WordPress, which will be at http://%s/tenant/tenant-acme/\n"
	       "     %s instance create tenant-acme --organization Acme --email it@acme.example --wait\n\n",
	       config_text(c, CONFIG_INSTANCE_ROUTER), run);
}

void dev_welcome(struct config *c, const char *address, bool lends_accounts)
{
	const char *data = config_text(c, CONFIG_DATA), *no_colour = getenv("NO_COLOR");
	const char *run = access("build/leasehold", X_OK) == 0 ? "build/leasehold" : "leasehold";
	bool        is_coloured = isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]);
	const char *bold = is_coloured ? "\033[1m" : "", *plain = is_coloured ? "\033[0m" : "";
	int64_t     scale = config_number(c, CONFIG_TIME_SCALE);
	struct err  e = { 0 };

	if (write_client(c, address, &e)) /* then commands do not find the server by themselves, but it serves */
		log_write(LOG_WARNING, "serve", NULL, 0, "%s", e.msg);
	printf("\n%sLeasehold %s%s is running, for trying out: all that it lends is simulated.\n\n", bold,
	       LEASEHOLD_VERSION, plain);
	printf("  Console   %s%s%s\n\n", bold, address, plain);
	if (lends_accounts)
		print_users(c);
	printf("\nThree things to try:\n\n  1. Open the console and sign in as the admin.\n");
	if (strcmp(data, "data") != 0)
		printf("     In another terminal, so that commands find this server: export LEASEHOLD_DATA=%s\n", data);
	printf("  2. Fill it with a day of life:  %s%s demo%s\n", bold, run, plain);
	if (lends_accounts)
		printf("  3. Borrow an account:           %s%s lease request --template Playground --wait%s\n\n", bold,
		       run, plain);
	else
		printf("  3. Claim a sandbox:             %s%s sandbox claim --track student-1%s\n\n", bold, run,
		       plain);
	print_site(c, run);
	if (scale > 1)
		printf("An hour takes %.3g s in this world. ", 3600.0 / (double)scale);
	else
		printf("Time is real here; LEASEHOLD_TIME_SCALE=360 makes an hour take 10 s. ");
	if (own_secret(c, CONFIG_ADMIN_TOKEN).n)
		printf("Address and tokens are in %s/client. Ctrl-C stops.\n\n", data);
	else
		printf("The tokens are those of your %s. Ctrl-C stops.\n\n",
		       c->values[CONFIG_ADMIN_TOKEN].origin == FROM_ENVIRONMENT ? "environment" : "configuration file");
	fflush(stdout);
}

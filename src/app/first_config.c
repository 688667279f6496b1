/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_config.c - from an installed program to a configuration that it can be started with.
 *
 * Nothing is written before all answers are there and their limits hold. The admin's password is shown once, on the
 * terminal, and kept as a hash.
 */
#include "app/first_config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config.h"
#include "app/preflight.h"
#include "app/store/stores.h"
#include "base/addr.h"
#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/password.h"
#include "domain/lease.h"

enum { ANSWER_MAX = 4096, ADMIN_PASSWORD_SIZE = 21 };

#define SERVICE_USER "leasehold"
#define SERVICE_FILE "/etc/leasehold/leasehold.conf" /* that the unit reads */

/* What is asked, in this order. One that depends on another is left out when the other has no answer; TLS, when nobody
 * else can connect. */
static const struct question {
	enum setting id, only_with;
	bool         is_for_others;
	const char  *text, *fallback;
} questions[] = {
	{ CONFIG_LISTEN, CONFIG_LISTEN, false, "Address and port to serve on", "127.0.0.1:8080" },
	{ CONFIG_TLS_CERT, CONFIG_LISTEN, true,
	  "Certificate chain for it, a PEM file (empty: a proxy in front does TLS)", "" },
	{ CONFIG_TLS_KEY, CONFIG_TLS_CERT, true, "Its private key, a PEM file", "" },
	{ CONFIG_CSP_URL, CONFIG_LISTEN, false, "URL of the sandbox vendor's API (empty: a simulated one)", "" },
	{ CONFIG_CSP_TOKEN, CONFIG_CSP_URL, false, "Token for the vendor's API", "" },
};

struct first {
	struct arena   arena;
	struct config  config; /* only to hold the answers */
	const char    *data;
	struct str     admin_email, admin_password;
	struct passwd *owner; /* NULL: whoever runs this */
};

static struct str ask(struct arena *a, const char *question, const char *fallback)
{
	char       line[ANSWER_MAX];
	struct str rest, answer;

	printf("%s%s%s%s: ", question, *fallback ? " [" : "", fallback, *fallback ? "]" : "");
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		line[0] = '\0';
	if (!isatty(STDIN_FILENO))
		printf("\n");
	rest = str_from(line);
	answer = str_trim(str_cut(&rest, '\n'));
	return answer.n ? str_dup(a, answer) : str_from(fallback);
}

static void ask_all(struct first *f)
{
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		const struct question *q = &questions[i];

		if ((q->is_for_others && addr_is_near(config_str(&f->config, CONFIG_LISTEN), ADDR_LOOPBACK)) ||
		    (q->only_with != q->id && !config_str(&f->config, q->only_with).n))
			continue;
		config_set(&f->config, q->id, ask(&f->arena, q->text, q->fallback), FROM_COMMAND_LINE);
	}
	f->admin_email = ask(&f->arena, "Email of the first admin (empty: nobody signs in, only tokens work)", "");
}

/* All that is wrong at once: whoever answers has to begin anew. */
static enum rc check(struct first *f, struct err *e)
{
	CLEANUP(buf_fini) struct buf problems = BUF(65536);
	const char                  *store = str_format(&f->arena, "%s/leasehold.db", f->data).p;
	struct str                   rest;

	config_set(&f->config, CONFIG_DATA, str_from(f->data), FROM_COMMAND_LINE);
	config_check(&f->config, &problems);
	preflight_check(&f->config, false, &problems);
	if (f->admin_email.n && !email_is_ok(f->admin_email))
		buf_addf(&problems, "'%.*s' is no email address\n", STR_ARG(f->admin_email));
	if (access(store, F_OK) == 0)
		buf_addf(&problems, "%s exists already; name another folder, or a file of settings for this one\n",
		         store);
	if (!problems.n)
		return RC_OK;
	fprintf(stderr, "leasehold: init: these answers are wrong:\n");
	for (rest = buf_str(&problems); rest.n;) {
		struct str line = str_cut(&rest, '\n');

		fprintf(stderr, "  %.*s\n", STR_ARG(line));
	}
	return err_set(e, RC_INVALID, "nothing was made; begin anew");
}

/* With this mode from the start: it holds secrets. */
static enum rc write_new(const struct first *f, const char *path, mode_t mode, uid_t uid, struct str text,
                         struct err *e)
{
	int  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool is_written = fd >= 0 && file_write_all(fd, text) && fchmod(fd, mode) == 0 &&
	                  (!f->owner || fchown(fd, uid, f->owner->pw_gid) == 0) && fsync(fd) == 0;

	if (!is_written)
		rc_ignore(err_set(e, RC_UNAVAILABLE, "%s cannot be written: %s", path, strerror(errno)));
	if (fd >= 0)
		close(fd);
	return is_written ? RC_OK : RC_UNAVAILABLE;
}

static enum rc write_users(struct first *f, struct err *e)
{
	char       hash[PASSWORD_HASH_SIZE], password[ID_TOKEN_SIZE];
	struct str line;
	enum rc    rc;

	id_token(password);
	password[ADMIN_PASSWORD_SIZE - 1] = '\0';
	f->admin_password = str_dup(&f->arena, str_from(password));
	if ((rc = password_hash(f->admin_password, hash, e)))
		return rc;
	line = JSON_OF(&f->arena, member_str("email", f->admin_email),
	               member_raw("roles", STR("[\"Admin\",\"Manager\",\"User\"]")), member_word("password", hash));
	return write_new(f, str_format(&f->arena, "%s/users", f->data).p, 0600, f->owner ? f->owner->pw_uid : 0,
	                 str_format(&f->arena, "%.*s\n", STR_ARG(line)), e);
}

static struct str config_text_of(struct first *f)
{
	char       track[ID_TOKEN_SIZE], admin[ID_TOKEN_SIZE], secret[ID_TOKEN_SIZE];
	struct str text;

	id_token(track);
	id_token(admin);
	id_token(secret);
	text = str_format(
	        &f->arena,
	        "# Leasehold's settings; all of them, with their limits: leasehold config, docs/settings.md.\n"
	        "%s=%s\n%s=%s\n%s=%s\n",
	        config_name(CONFIG_DATA), f->data, config_name(CONFIG_API_TOKEN), track,
	        config_name(CONFIG_ADMIN_TOKEN), admin);
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		struct str answer = config_str(&f->config, questions[i].id);

		if (answer.n)
			text = str_format(&f->arena, "%.*s%s=%.*s\n", STR_ARG(text), config_name(questions[i].id),
			                  STR_ARG(answer));
	}
	if (f->admin_email.n)
		text = str_format(&f->arena, "%.*s%s=%s\n%s=%s/users\n", STR_ARG(text), config_name(CONFIG_JWT_SECRET),
		                  secret, config_name(CONFIG_USERS_FILE), f->data);
	return text;
}

static enum rc make_folder(const struct first *f, struct err *e)
{
	if (mkdir(f->data, 0700) != 0 && errno != EEXIST)
		return err_set(e, RC_UNAVAILABLE, "the folder %s cannot be made: %s", f->data, strerror(errno));
	if (f->owner && chown(f->data, f->owner->pw_uid, f->owner->pw_gid) != 0)
		return err_set(e, RC_UNAVAILABLE, "the folder %s cannot be given to %s: %s", f->data, SERVICE_USER,
		               strerror(errno));
	return RC_OK;
}

/* What is made from here on belongs to the service. */
static enum rc become_owner(const struct first *f, struct err *e)
{
	if (f->owner && (initgroups(SERVICE_USER, f->owner->pw_gid) != 0 || setgid(f->owner->pw_gid) != 0 ||
	                 setuid(f->owner->pw_uid) != 0))
		return err_set(e, RC_INTERNAL, "cannot become %s: %s", SERVICE_USER, strerror(errno));
	return RC_OK;
}

enum rc first_config_make(const char *file, const char *data, struct err *e)
{
	static const char *const     nothing[] = { NULL };
	struct first                 f = { .owner = geteuid() == 0 ? getpwnam(SERVICE_USER) : NULL };
	char                        *here = getcwd(NULL, 0); /* the service is started elsewhere */
	CLEANUP(buf_fini) struct buf problems = BUF(65536);
	enum rc                      rc;

	if (!data)
		data = app_env(config_name(CONFIG_DATA));
	if (!data)
		data = geteuid() == 0 ? "/var/lib/leasehold" : "data";
	f.data = data[0] == '/' ? data : str_format(&f.arena, "%s/%s", here ? here : ".", data).p;
	printf("%s does not exist yet: a few questions make it. An empty answer takes what is in brackets.\n\n", file);
	rc = config_load(&f.config, nothing, "", &problems); /* the defaults */
	if (!rc)
		ask_all(&f);
	if (!rc && !(rc = check(&f, e)) && !(rc = make_folder(&f, e)) &&
	    !(rc = f.admin_email.n ? write_users(&f, e) : RC_OK) &&
	    !(rc = write_new(&f, file, 0640, 0, config_text_of(&f), e)))
		rc = become_owner(&f, e);
	if (!rc && f.admin_email.n)
		printf("\nSign in to the console as %.*s with the password %.*s\n(it is shown only now; 'leasehold token hash-password' makes another for "
		       "%s/users).\n",
		       STR_ARG(f.admin_email), STR_ARG(f.admin_password), f.data);
	config_fini(&f.config);
	arena_fini(&f.arena);
	free(here);
	return rc;
}

void first_config_explain(const char *file)
{
	printf("\nMade %s and the store. Now start it:\n\n", file);
	if (strcmp(file, SERVICE_FILE) == 0)
		printf("  systemctl enable --now leasehold\n");
	else
		printf("  leasehold serve --file %s\n", file);
	printf("  leasehold health --file %s\n\n"
	       "Tokens are in %s: one for tracks, one for operators (BROKER_ADMIN_TOKEN).\n",
	       file, file);
}

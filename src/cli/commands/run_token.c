/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_token.c - the "token" commands, which work without a server.
 *
 * A token is made here with the server's own secret, so anyone who can run "token issue" is already an administrator.
 * Secrets and passwords come from a file, the environment or standard input, never from an argument, where other users
 * of the machine could see them.
 */

#include "cli/commands/run.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/password.h"
#include "net/jwt.h"

enum { MINUTES_DEFAULT = 60, MINUTES_MAX = 525600, LINE_ROOM = 1024 };

static int fail(const struct cli_io *io, const struct err *e)
{
	fprintf(io->err, "leasehold: %s\n", e->msg);
	return CLI_EXIT_USAGE;
}

/* --- token issue --- */

/* --secret-file, else LEASEHOLD_JWT_SECRET, else what a development server keeps in its data folder. */
static enum rc find_secret(const struct cli_io *io, const struct cli_args *args, struct arena *a, struct str *ret,
                           struct err *e)
{
	const char *file = args->values[CLI_OPTION_SECRET_FILE];
	const char *data = args->values[CLI_OPTION_DATA] ? args->values[CLI_OPTION_DATA] : io->env("LEASEHOLD_DATA");
	struct str  secret = str_from(io->env("LEASEHOLD_JWT_SECRET"));
	struct str  path = str_format(a, "%s/jwt-secret", data ? data : "data");
	enum rc     rc = RC_OK;

	if (file) {
		rc = settings_read_line(file, a, &secret, e);
	} else if (!secret.n && settings_read_line(path.p, a, &secret, NULL)) {
		return err_set(
		        e, RC_INVALID,
		        "token issue: no secret: give --secret-file, set LEASEHOLD_JWT_SECRET, or name the data folder "
		        "of a development server with --data (%.*s is not there)",
		        STR_ARG(path));
	}
	if (rc)
		return rc;
	if (secret.n < JWT_SECRET_MIN)
		return err_set(e, RC_INVALID, "token issue: the secret must have at least %d bytes", JWT_SECRET_MIN);
	*ret = secret;
	return RC_OK;
}

static enum rc read_session(const struct cli_io *io, const struct cli_args *args, struct jwt_session *ret,
                            struct err *e)
{
	struct str roles = str_from(args->values[CLI_OPTION_ROLE]),
	           minutes_text = str_from(args->values[CLI_OPTION_MINUTES]);
	int64_t minutes = MINUTES_DEFAULT;

	ret->email = str_from(args->values[CLI_OPTION_EMAIL] ? args->values[CLI_OPTION_EMAIL] : "");
	if (!jwt_is_email(ret->email))
		return err_set(e, RC_INVALID, "token issue: --email is needed, an address such as ann@example.com");
	while (roles.n) {
		struct str name = str_trim(str_cut(&roles, ','));
		unsigned   role = jwt_role_parse(name);

		if (!role)
			return err_set(e, RC_INVALID, "token issue: --role must be User, Manager or Admin, not '%.*s'",
			               STR_ARG(name));
		ret->roles |= role;
	}
	if (!ret->roles)
		return err_set(e, RC_INVALID,
		               "token issue: --role is needed: User, Manager, Admin, or several with commas");
	if (minutes_text.p && !str_to_int(minutes_text, 1, MINUTES_MAX, &minutes))
		return err_set(e, RC_INVALID, "token issue: --minutes must be a whole number from 1 to %d",
		               MINUTES_MAX);
	ret->issued_at = wall_sec(clock_now(io->clock));
	ret->expires_at = ret->issued_at + minutes * 60;
	return RC_OK;
}

int run_token_issue(const struct cli_io *io, const struct cli_args *args)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct jwt_session               session = { .roles = 0 };
	struct err                       e = { 0 };
	struct str                       secret;

	if (read_session(io, args, &session, &e) || find_secret(io, args, &a, &secret, &e))
		return fail(io, &e);
	fprintf(io->out, "%s\n", jwt_issue(&session, secret, &a).p);
	return CLI_EXIT_OK;
}

/* --- token hash-password --- */

/* Wait until a line has come at the terminal. False: one of these signals has; it stays pending. */
static bool has_line(int terminal, const sigset_t *ends)
{
	int           arrived = signalfd(-1, ends, SFD_CLOEXEC); /* -1: they end nothing before the line has come */
	struct pollfd either[] = { { .fd = terminal, .events = POLLIN }, { .fd = arrived, .events = POLLIN } };

	while (poll(either, ARRAY_LEN(either), -1) < 0 && errno == EINTR)
		either[1].revents = 0;
	if (arrived >= 0)
		close(arrived);
	return !either[1].revents;
}

/* Without echo. A signal that ends the program (Ctrl-C) does so only when the terminal is as it was before. */
static bool read_hidden(const struct cli_io *io, char line[LINE_ROOM], const struct termios *before)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGQUIT, SIGHUP };
	struct termios   quiet = *before;
	sigset_t         ends, blocked;
	bool             is_read;

	sigemptyset(&ends);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		sigaddset(&ends, numbers[i]);
	sigprocmask(SIG_BLOCK, &ends, &blocked);
	quiet.c_lflag &= ~(tcflag_t)ECHO;
	(void)tcsetattr(fileno(io->in), TCSAFLUSH, &quiet); /* with echo rather than not at all */
	fprintf(io->err, "Password: ");
	is_read = has_line(fileno(io->in), &ends) && fgets(line, LINE_ROOM, io->in);
	(void)tcsetattr(fileno(io->in), TCSAFLUSH, before); /* nothing better can be done */
	fprintf(io->err, "\n");
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	return is_read;
}

/* At a terminal, without echo if possible. */
static bool read_line(const struct cli_io *io, char line[LINE_ROOM])
{
	struct termios before;

	if (io->is_in_terminal && tcgetattr(fileno(io->in), &before) == 0)
		return read_hidden(io, line, &before);
	return fgets(line, LINE_ROOM, io->in) != NULL;
}

int run_token_hash_password(const struct cli_io *io, const struct cli_args *args UNUSED)
{
	char       line[LINE_ROOM], hash[PASSWORD_HASH_SIZE];
	struct err e = { 0 };

	if (!read_line(io, line)) {
		fprintf(io->err, "leasehold: token hash-password: reads a password, one line, from standard input\n");
		return CLI_EXIT_USAGE;
	}
	line[strcspn(line, "\r\n")] = 0;
	if (password_hash(str_from(line), hash, &e))
		return fail(io, &e);
	fprintf(io->out, "%s\n", hash);
	return CLI_EXIT_OK;
}

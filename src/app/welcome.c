/* SPDX-License-Identifier: Apache-2.0 */
/*
 * welcome.c - the first five minutes with a development server.
 *
 * Commands on the same machine find the server by a file in its data folder (cli/settings.c reads it), so nobody has to paste tokens.
 * Only secrets that development mode made are in it. It is written anew at every start, beside its place and then moved, so that no command sees half of it.
 */
#include "app/welcome.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/config.h"
#include "app/signin.h"

/* What was made for development. A secret that somebody has given us stays where he has it. */
static struct str own_secret(const struct config *c, enum setting id)
{
	return c->values[id].origin == FROM_DEV_MODE ? config_str(c, id) : STR("");
}

static struct str client_text(struct config *c, const char *address)
{
	struct str track = own_secret(c, CONFIG_API_TOKEN), admin = own_secret(c, CONFIG_ADMIN_TOKEN);
	struct str secret = own_secret(c, CONFIG_JWT_SECRET), base = config_str(c, CONFIG_BASE_PATH);

	if (str_eq(base, STR("/v1"))) /* what the command line adds by itself */
		base = STR("");
	return str_format(
	        &c->arena,
	        "# Written by a development server at its start; commands use it when nothing else names a server.\n"
	        "LEASEHOLD_ADDRESS=%s%.*s\n%s=%.*s\n%s=%.*s\n%s=%.*s\n",
	        address, STR_ARG(base), config_name(CONFIG_API_TOKEN), STR_ARG(track), config_name(CONFIG_ADMIN_TOKEN),
	        STR_ARG(admin), config_name(CONFIG_JWT_SECRET), STR_ARG(secret));
}

enum rc welcome_write_client(struct config *c, const char *address, struct err *e)
{
	struct str path = str_format(&c->arena, "%s/client", config_text(c, CONFIG_DATA));
	struct str beside = str_format(&c->arena, "%s.new", path.p), text = client_text(c, address);
	int        fd = open(beside.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	bool       is_written;

	if (fd < 0)
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be made: %s", beside.p, strerror(errno));
	is_written = write(fd, text.p, text.n) == (ssize_t)text.n;
	close(fd);
	if (!is_written || rename(beside.p, path.p))
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be written: %s", path.p, strerror(errno));
	return RC_OK;
}

/* How somebody who has just built it calls the program. */
static const char *program(void)
{
	return access("build/leasehold", X_OK) == 0 ? "build/leasehold" : "leasehold";
}

static void print_time(const struct config *c)
{
	int64_t scale = config_number(c, CONFIG_TIME_SCALE);

	if (scale > 1)
		printf("An hour takes %.3g s in this world. ", 3600.0 / (double)scale);
	else
		printf("Time is real here; LEASEHOLD_TIME_SCALE=360 makes an hour take 10 s. ");
}

void welcome_print(struct config *c, const char *address, bool lends_accounts)
{
	const char *data = config_text(c, CONFIG_DATA), *no_colour = getenv("NO_COLOR"), *run = program();
	bool        is_coloured = isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]);
	const char *bold = is_coloured ? "\033[1m" : "", *plain = is_coloured ? "\033[0m" : "";

	printf("\n%sLeasehold %s%s is running, for trying out: all that it lends is simulated.\n\n", bold,
	       LEASEHOLD_VERSION, plain);
	printf("  Console   %s%s%s\n\n", bold, address, plain);
	if (lends_accounts)
		signin_print_dev(c);
	printf("\nThree things to try:\n\n");
	printf("  1. Open the console and sign in as the admin.\n");
	if (strcmp(data, "data") != 0)
		printf("     In another terminal, so that commands find this server: export LEASEHOLD_DATA=%s\n", data);
	printf("  2. Fill it with a day of life:  %s%s demo%s\n", bold, run, plain);
	if (lends_accounts)
		printf("  3. Borrow an account:           %s%s lease request --template Playground --wait%s\n\n", bold,
		       run, plain);
	else
		printf("  3. Claim a sandbox:             %s%s sandbox claim --track student-1%s\n\n", bold, run,
		       plain);
	print_time(c);
	if (own_secret(c, CONFIG_ADMIN_TOKEN).n)
		printf("Address and tokens are in %s/client. Ctrl-C stops.\n\n", data);
	else
		printf("The tokens are those of your %s. Ctrl-C stops.\n\n",
		       c->values[CONFIG_ADMIN_TOKEN].origin == FROM_ENVIRONMENT ? "environment" : "configuration file");
	fflush(stdout);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - environment and client file.
 *
 * The client file, $XDG_CONFIG_HOME/leasehold/client (else ~/.config/leasehold/client), holds KEY=VALUE lines with the
 * names of the environment variables; '#' begins a comment line. It holds tokens, so it is refused when anybody but
 * its owner may read it. A file named by --token-file is not: secrets mounted into containers are often readable by all
 * in there, and naming it was the caller's choice.
 *
 * A development server writes such a file, "client", into its data folder. It lies in a folder that anybody may have
 * unpacked, so it must never send a token that came from elsewhere to an address of its own: it is used as a whole,
 * when nothing else names a server or a token, or not at all.            [settings_load_dev()]
 */
#include "cli/call/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "cli/term/io.h"

enum { FILE_MAX = 65536 };

static const char *find_env(const struct cli_io *io, const char *name)
{
	const char *value = io->env(name);

	return value && value[0] ? value : NULL;
}

/* All of an open file, at most FILE_MAX bytes. */
static enum rc read_open_file(FILE *file, const char *name, struct arena *a, struct str *ret, struct err *e)
{
	char  *text = arena_alloc(a, FILE_MAX + 1);
	size_t n = fread(text, 1, FILE_MAX + 1, file);

	if (ferror(file))
		return err_set(e, RC_INVALID, "%s: %s", name, strerror(errno));
	if (n > FILE_MAX)
		return err_set(e, RC_INVALID, "%s: longer than %d bytes", name, FILE_MAX);
	*ret = str_of(text, n);
	return RC_OK;
}

static enum rc check_private(int fd, const char *path, struct err *e)
{
	struct stat s;

	if (fstat(fd, &s) != 0)
		return err_set(e, RC_INVALID, "%s: %s", path, strerror(errno));
	if (!S_ISREG(s.st_mode))
		return err_set(e, RC_INVALID, "%s: must be a plain file", path);
	if (s.st_mode & (S_IRWXG | S_IRWXO))
		return err_set(e, RC_INVALID,
		               "%s: others may read or change it, and it is for tokens; do: chmod 600 %s", path, path);
	return RC_OK;
}

static bool is_comment(struct str line)
{
	return line.n == 0 || line.p[0] == '#';
}

static enum rc check_lines(struct str text, const char *path, struct err *e)
{
	for (int number = 1; text.n; number++) {
		struct str line = str_trim(str_cut_line(&text));

		if (!is_comment(line) && !memchr(line.p, '=', line.n))
			return err_set(e, RC_INVALID, "%s line %d: must be KEY=VALUE", path, number);
	}
	return RC_OK;
}

/* A file of KEY=VALUE lines that nobody else may read; empty when it is not there. */
static enum rc read_private(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	FILE   *file = fd >= 0 ? fdopen(fd, "r") : NULL;
	enum rc rc;

	*ret = STR("");
	if (!file)
		return errno == ENOENT || errno == ENOTDIR ? RC_OK
		                                           : err_set(e, RC_INVALID, "%s: %s", path, strerror(errno));
	rc = check_private(fd, path, e);
	if (!rc)
		rc = read_open_file(file, path, a, ret, e);
	fclose(file);
	return rc ? rc : check_lines(*ret, path, e);
}

enum rc settings_load(struct settings *s, const struct cli_io *io, struct arena *a, struct err *e)
{
	const char *base = find_env(io, "XDG_CONFIG_HOME"), *home = find_env(io, "HOME");

	*s = (struct settings){ .io = io };
	if (base)
		s->path = str_format(a, "%s/leasehold/client", base).p;
	else if (home)
		s->path = str_format(a, "%s/.config/leasehold/client", home).p;
	return s->path ? read_private(s->path, a, &s->file, e) : RC_OK;
}

enum rc settings_load_dev(struct settings *s, bool is_named, struct arena *a, struct err *e)
{
	static const char *const names[] = { "LEASEHOLD_ADDRESS", "LEASEHOLD_TOKEN", "BROKER_API_TOKEN",
		                             "BROKER_ADMIN_TOKEN" };
	const char              *data = find_env(s->io, "LEASEHOLD_DATA");
	const char              *path = str_format(a, "%s/client", data ? data : "data").p;
	struct stat              owner;
	struct str               file;
	enum rc                  rc;

	if (stat(path, &owner) || owner.st_uid != geteuid())
		return RC_OK;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		is_named = is_named || settings_get(s, names[i]).n;
	if (is_named) {
		s->unused_dev_path = path;
		return RC_OK;
	}
	if ((rc = read_private(path, a, &file, e)) || !file.n)
		return rc;
	s->dev_path = path;
	s->file = file;
	return RC_OK;
}

struct str settings_from_env(const struct settings *s, const char *name)
{
	return str_trim(str_from(find_env(s->io, name)));
}

struct str settings_from_file(const struct settings *s, const char *name)
{
	struct str rest = s->file;

	while (rest.n) {
		struct str value = str_trim(str_cut_line(&rest));
		struct str key;

		if (is_comment(value))
			continue;
		key = str_cut(&value, '=');
		if (str_eq(str_trim(key), str_from(name)))
			return str_trim(value);
	}
	return STR("");
}

struct str settings_get(const struct settings *s, const char *name)
{
	struct str value = settings_from_env(s, name);

	return value.n ? value : settings_from_file(s, name);
}

enum rc settings_read_file(const struct cli_io *io, const char *path, struct arena *a, struct str *ret, struct err *e)
{
	bool    is_stdin = io && strcmp(path, "-") == 0;
	FILE   *file = is_stdin ? io->in : fopen(path, "re");
	enum rc rc;

	if (!file)
		return err_set(e, RC_INVALID, "%s: %s", path, strerror(errno));
	rc = read_open_file(file, is_stdin ? "standard input" : path, a, ret, e);
	if (!is_stdin)
		fclose(file);
	return rc;
}

enum rc settings_read_line(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	struct str text;
	enum rc    rc = settings_read_file(NULL, path, a, &text, e);

	if (!rc)
		*ret = str_trim(str_cut_line(&text));
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_file.c - credentials in the environment and in the shared file.
 *
 * The shared file is INI: "[profile]" begins a profile, "name = value" belongs to it, lines that begin with # or ; are
 * comments, and lines that begin with a blank continue the setting above and are ignored. Anything else is refused with
 * the number of its line, never with its text, which may be a secret.
 *
 * A profile with credential_process or role_arn is refused: we start no programs and follow no chains of roles. Using
 * such a profile without them, silently, would be acting as somebody else.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "net/aws_source.h"

enum { FILE_MAX = 256 * 1024 };

struct profile {
	bool       is_there;
	struct str access_key, secret_key, token, role, process, sso;
};

static const struct setting {
	struct str name;
	size_t     at;
} settings[] = {
	{ STR_INIT("aws_access_key_id"), offsetof(struct profile, access_key) },
	{ STR_INIT("aws_secret_access_key"), offsetof(struct profile, secret_key) },
	{ STR_INIT("aws_session_token"), offsetof(struct profile, token) },
	{ STR_INIT("role_arn"), offsetof(struct profile, role) },
	{ STR_INIT("credential_process"), offsetof(struct profile, process) },
	{ STR_INIT("sso_start_url"), offsetof(struct profile, sso) },
	{ STR_INIT("sso_session"), offsetof(struct profile, sso) },
};

enum rc aws_source_environment(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                               struct err *e)
{
	struct str key = str_from(o->env("AWS_ACCESS_KEY_ID"));
	struct str secret = str_from(o->env("AWS_SECRET_ACCESS_KEY"));

	if (key.n == 0 && secret.n == 0)
		return err_set(e, RC_NOT_FOUND, "AWS_ACCESS_KEY_ID is not set");
	if (key.n == 0 || secret.n == 0)
		return err_set(e, RC_INVALID, "%s is not set; AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY go together",
		               key.n == 0 ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY");
	*ret = (struct aws_found){ .credentials = { str_dup(a, key), str_dup(a, secret),
		                                    str_dup(a, str_from(o->env("AWS_SESSION_TOKEN"))) } };
	return RC_OK;
}

enum rc aws_read_file(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	int         fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* not to wait for the writer of a pipe */
	struct stat about;
	enum rc     rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(e, RC_NOT_FOUND, "%s is not there", path);
	if (fd < 0)
		return err_set(e, RC_INVALID, "%s cannot be opened: %s", path, strerror(errno));
	if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
		rc = err_set(e, RC_INVALID, "%s must be a file", path);
	else if ((rc = file_read_all(fd, FILE_MAX, a, ret)) == RC_TOO_LARGE)
		rc = err_set(e, RC_INVALID, "%s has more than %d bytes", path, FILE_MAX);
	else if (rc)
		rc = err_set(e, RC_INVALID, "%s cannot be read: %s", path, strerror(errno));
	close(fd);
	return rc;
}

/* The name in "[name]" or "[profile name]"; empty when it is neither. */
static struct str section_name(struct str line)
{
	struct str name;

	if (line.p[line.n - 1] != ']')
		return STR("");
	name = str_trim(str_of(line.p + 1, line.n - 2));
	return str_cut_prefix(&name, STR("profile ")) ? str_trim(name) : name;
}

/* One line that says something. False when it is not of the format. */
static bool read_line(struct str line, struct str wanted, bool *is_inside, struct profile *p)
{
	struct str name, value = line;

	if (line.p[0] == '[') {
		name = section_name(line);
		*is_inside = str_eq(name, wanted);
		p->is_there = p->is_there || *is_inside;
		return name.n > 0;
	}
	if (!memchr(line.p, '=', line.n))
		return false;
	name = str_trim(str_cut(&value, '='));
	value = str_trim(value);
	for (size_t i = 0; *is_inside && i < ARRAY_LEN(settings); i++)
		if (str_eq_nocase(name, settings[i].name))
			memcpy((char *)p + settings[i].at, &value, sizeof(value));
	return name.n > 0;
}

static enum rc find_profile(struct str text, const char *path, struct str wanted, struct profile *ret, struct err *e)
{
	struct profile p = { 0 };
	bool           is_inside = false;
	struct str     rest = text;

	for (int number = 1; rest.n; number++) {
		struct str line = str_cut_line(&rest), said = str_trim(line);

		if (said.n == 0 || char_is_of(said.p[0], "#;") || char_is_of(line.p[0], " \t"))
			continue;
		if (!read_line(said, wanted, &is_inside, &p))
			return err_set(e, RC_INVALID, "%s: line %d must be \"[profile]\" or \"name = value\"", path,
			               number);
	}
	*ret = p;
	return RC_OK;
}

static enum rc check_profile(const struct profile *p, const char *path, struct str name, struct err *e)
{
	const char *unsupported = p->process.n ? "credential_process"
	                          : p->role.n  ? "role_arn"
	                          : p->sso.n   ? "sso_..."
	                                       : NULL;

	if (unsupported)
		return err_set(e, RC_INVALID,
		               "%.80s: profile %.*s says %s, which is not supported; give it "
		               "aws_access_key_id and aws_secret_access_key",
		               path, STR_ARG(name), unsupported);
	if (p->access_key.n == 0 || p->secret_key.n == 0)
		return err_set(e, RC_INVALID,
		               "%.80s: profile %.*s must have aws_access_key_id and aws_secret_access_key", path,
		               STR_ARG(name));
	return RC_OK;
}

/* NULL when there is no home to look in. */
static const char *shared_path(const struct aws_identity_options *o, struct arena *a)
{
	const char *path = o->env("AWS_SHARED_CREDENTIALS_FILE");
	const char *home = o->env("HOME");

	if (path && path[0])
		return path;
	return home && home[0] ? str_format(a, "%s/.aws/credentials", home).p : NULL;
}

enum rc aws_source_shared_file(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                               struct err *e)
{
	const char    *path = shared_path(o, a);
	struct str     given = str_from(o->env("AWS_PROFILE")), text;
	struct str     name = given.n ? given : STR("default");
	struct profile p = { 0 };
	enum rc        rc;

	if (!path)
		return err_set(e, RC_NOT_FOUND, "HOME is not set");
	rc = aws_read_file(path, a, &text, NULL);
	if (rc == RC_NOT_FOUND && !given.n)
		return err_set(e, rc, "%.60s is not there", path);
	if (rc)
		return err_set(e, RC_INVALID, "%.80s must be a readable file of at most %d bytes", path, FILE_MAX);
	if ((rc = find_profile(text, path, name, &p, e)))
		return rc;
	if (!p.is_there)
		return err_set(e, given.n ? RC_INVALID : RC_NOT_FOUND, "%.60s has no profile %.*s", path,
		               STR_ARG(name));
	if ((rc = check_profile(&p, path, name, e)))
		return rc;
	*ret = (struct aws_found){ .credentials = { p.access_key, p.secret_key, p.token } };
	return RC_OK;
}

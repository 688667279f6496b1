/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tokens.c - there are no built-in tokens.
 *
 * A server that was not given any refuses to start. Only in development mode it invents them, once, and keeps them in the
 * data folder where nobody else can read them.
 */
#include "app/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config.h"
#include "base/id.h"

enum { TOKENS_FILE_MAX = 4096 };

static enum rc write_new(const char *path, struct err *e)
{
	char track[ID_TOKEN_SIZE], admin[ID_TOKEN_SIZE];
	int  fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool is_written;

	if (fd < 0)
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be made: %s", path, strerror(errno));
	id_token(track);
	id_token(admin);
	is_written = dprintf(fd, "%s=%s\n%s=%s\n", config_name(CONFIG_API_TOKEN), track,
	                     config_name(CONFIG_ADMIN_TOKEN), admin) > 0;
	if (fsync(fd) || !is_written) {
		close(fd);
		return err_set(e, RC_UNAVAILABLE, "%s: cannot be written: %s", path, strerror(errno));
	}
	close(fd);
	return RC_OK;
}

static enum rc read_existing(struct config *c, const char *path, struct err *e)
{
	char       content[TOKENS_FILE_MAX];
	int        fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t    got = fd < 0 ? -1 : read(fd, content, sizeof(content));
	struct str rest;

	if (got < 0) {
		(void)err_set(e, RC_UNAVAILABLE, "%s: cannot be read: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return RC_UNAVAILABLE;
	}
	close(fd);
	rest = str_of(content, (size_t)got);
	while (rest.n) {
		struct str   value = str_cut(&rest, '\n');
		struct str   name = str_cut(&value, '=');
		enum setting id = str_eq(name, str_from(config_name(CONFIG_API_TOKEN)))     ? CONFIG_API_TOKEN
		                  : str_eq(name, str_from(config_name(CONFIG_ADMIN_TOKEN))) ? CONFIG_ADMIN_TOKEN
		                                                                            : CONFIG_COUNT;

		if (id != CONFIG_COUNT && !config_str(c, id).n)
			config_set(c, id, value, FROM_DEV_MODE);
	}
	return RC_OK;
}

enum rc tokens_prepare_dev(struct config *c, struct err *e)
{
	struct str path = str_format(&c->arena, "%s/tokens", config_text(c, CONFIG_DATA));
	enum rc    rc = RC_OK;

	if (config_str(c, CONFIG_API_TOKEN).n && config_str(c, CONFIG_ADMIN_TOKEN).n)
		return RC_OK;
	if (access(path.p, F_OK) != 0)
		rc = write_new(path.p, e);
	return rc ? rc : read_existing(c, path.p, e);
}

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

/* A token says who somebody is: it must not be in two lists. */
static enum rc check_apart(enum setting one, const struct str *ones, size_t one_count, enum setting other,
                           const struct str *others, size_t other_count, struct err *e)
{
	for (size_t i = 0; i < one_count; i++)
		for (size_t j = 0; j < other_count; j++)
			if (str_eq_secret(ones[i], others[j]))
				return err_set(e, RC_INVALID, "%s and %s must not share a token", config_name(one),
				               config_name(other));
	return RC_OK;
}

enum rc tokens_read(const struct config *c, struct api_tokens *ret, struct err *e)
{
	enum rc rc;

	if ((rc = split(c, CONFIG_API_TOKEN, ret->track, &ret->track_count, e)) ||
	    (rc = split(c, CONFIG_ADMIN_TOKEN, ret->admin, &ret->admin_count, e)) ||
	    (rc = split(c, CONFIG_INBOX_TOKENS, ret->inbox, &ret->inbox_count, e)))
		return rc;
	if (!ret->track_count || !ret->admin_count)
		return err_set(e, RC_INVALID,
		               "%s and %s must be set, in the environment or in the configuration file (to try it out: "
		               "'leasehold serve --dev' makes some)",
		               config_name(CONFIG_API_TOKEN), config_name(CONFIG_ADMIN_TOKEN));
	if ((rc = check_apart(CONFIG_API_TOKEN, ret->track, ret->track_count, CONFIG_ADMIN_TOKEN, ret->admin,
	                      ret->admin_count, e)) ||
	    (rc = check_apart(CONFIG_INBOX_TOKENS, ret->inbox, ret->inbox_count, CONFIG_API_TOKEN, ret->track,
	                      ret->track_count, e)))
		return rc;
	return check_apart(CONFIG_INBOX_TOKENS, ret->inbox, ret->inbox_count, CONFIG_ADMIN_TOKEN, ret->admin,
	                   ret->admin_count, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - where settings come from.
 *
 * One table (config.def) says what there is. The environment wins over the file, the file over the default. A key of ours
 * (LEASEHOLD_...) that the table does not have, any unknown key in the file, and every value that its kind does not allow
 * is a problem; all of them are named before anything is refused, so that one start is enough to mend them.
 *
 * Not here: what has to be looked up outside the settings, such as whether a file can be read (preflight.c).
 */
#include "app/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config_table.h"
#include "domain/lease.h"

enum { FILE_MAX = 256 * 1024 };

const struct config_row config_table[CONFIG_COUNT] = {
#define SETTING(id, name, kind, fallback, least, most, help) { name, kind, fallback, least, most, help },
#include "app/config.def"
#undef SETTING
};

/* Variables of the command line client and of the configuration itself: ours, but not settings of the server. */
static const char *const other_names[] = { CONFIG_FILE_NAME, "LEASEHOLD_ADDRESS", "LEASEHOLD_TOKEN",
	                                   "LEASEHOLD_TRACK" };

const char *config_name(enum setting id)
{
	return config_table[id].name;
}

struct str config_str(const struct config *c, enum setting id)
{
	return c->values[id].text;
}

const char *config_text(const struct config *c, enum setting id)
{
	return c->values[id].text.n ? c->values[id].text.p : NULL;
}

int64_t config_number(const struct config *c, enum setting id)
{
	return c->values[id].number;
}

void config_set(struct config *c, enum setting id, struct str text, enum config_origin origin)
{
	c->values[id].text = str_dup(&c->arena, text);
	c->values[id].origin = origin;
}

void config_fini(struct config *c)
{
	arena_fini(&c->arena);
}

const char *const *config_words(enum config_kind kind, size_t *ret_count)
{
	static const char *const levels[] = { "DEBUG", "INFO", "WARNING", "ERROR" };
	static const char *const formats[] = { "json", "text" };
	static const char *const stores[] = { "sqlite", "dynamodb" };
	static const char *const cleaners[] = { "sim", "nuke" };
	static const char *const modes[] = { "native", "guard" };
	static const char *const bools[] = { "false", "true" };

	*ret_count = kind == LEVEL ? ARRAY_LEN(levels) : 2;
	switch (kind) {
	case BOOL: return bools;
	case LEVEL: return levels;
	case FORMAT: return formats;
	case STORE: return stores;
	case CLEANER: return cleaners;
	case MODE: return modes;
	default: *ret_count = 0; return NULL;
	}
}

/* --- reading --- */

static bool find_setting(struct str name, enum setting *ret)
{
	for (int id = 0; id < CONFIG_COUNT; id++)
		if (str_eq(name, str_from(config_table[id].name))) {
			*ret = (enum setting)id;
			return true;
		}
	return false;
}

static bool is_other_name(struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(other_names); i++)
		if (str_eq(name, str_from(other_names[i])))
			return true;
	return false;
}

static bool is_ours(struct str name)
{
	return str_starts_with(name, STR("LEASEHOLD_"));
}

/* " ...; did you mean X?", or where to look when nothing is near. */
static void add_suggestion(struct str name, struct buf *to)
{
	const char *near = config_nearest(name);

	if (near)
		buf_addf(to, "; did you mean %s?\n", near);
	else
		buf_addf(to, " (see 'leasehold config')\n");
}

static void add_unknown(struct str name, struct buf *to)
{
	buf_addf(to, "%.*s: there is no such setting", STR_ARG(name));
	add_suggestion(name, to);
}

static void read_environment(struct config *c, const char *const *environment, struct buf *problems)
{
	for (; *environment; environment++) {
		struct str   value = str_from(*environment);
		struct str   name = str_cut(&value, '=');
		enum setting id;

		if (find_setting(name, &id))
			config_set(c, id, value, FROM_ENVIRONMENT);
		else if (is_ours(name) && !is_other_name(name))
			add_unknown(name, problems);
	}
}

void config_near_misses(const char *const *environment, struct buf *notes)
{
	for (; *environment; environment++) {
		struct str   value = str_from(*environment);
		struct str   name = str_cut(&value, '=');
		enum setting id;

		if (!is_ours(name) && !find_setting(name, &id) && config_nearest(name))
			add_unknown(name, notes);
	}
}

static struct str unquote(struct str s)
{
	if (s.n >= 2 && (s.p[0] == '"' || s.p[0] == '\'') && s.p[s.n - 1] == s.p[0])
		return str_of(s.p + 1, s.n - 2);
	return s;
}

static void read_line(struct config *c, struct str line, int number, struct buf *problems)
{
	struct str   name, value;
	enum setting id;

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	value = str_trim(line);
	if (!value.n || value.p[0] == '#')
		return;
	if (str_starts_with(value, STR("export ")))
		value = str_trim(str_of(value.p + 7, value.n - 7));
	if (memchr(value.p, '\0', value.n)) {
		buf_addf(problems, "%s:%d: a line must not have a NUL byte\n", c->file, number);
		return;
	}
	if (!memchr(value.p, '=', value.n)) {
		buf_addf(problems, "%s:%d: a line must be KEY=VALUE\n", c->file, number);
		return;
	}
	name = str_trim(str_cut(&value, '='));
	if (!find_setting(name, &id)) {
		buf_addf(problems, "%s:%d: there is no setting '%.*s'", c->file, number, STR_ARG(name));
		add_suggestion(name, problems);
		return;
	}
	if (c->values[id].origin == FROM_FILE)
		buf_addf(problems, "%s:%d: %s is set twice\n", c->file, number, config_table[id].name);
	else
		config_set(c, id, unquote(str_trim(value)), FROM_FILE);
}

static enum rc read_all(const char *path, struct buf *ret, struct err *e)
{
	int     fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 0;
	char   *room;

	if (fd < 0)
		return err_set(e, RC_INVALID, "%s: cannot be opened: %s", path, strerror(errno));
	while ((room = buf_room(ret, 4096)) && (got = read(fd, room, 4096)) > 0)
		buf_added(ret, (size_t)got);
	close(fd);
	if (!room)
		return err_set(e, RC_INVALID, "%s: larger than %d bytes", path, FILE_MAX);
	if (got < 0)
		return err_set(e, RC_INVALID, "%s: cannot be read: %s", path, strerror(errno));
	return RC_OK;
}

static void read_file(struct config *c, struct buf *problems)
{
	struct buf content;
	struct str rest;
	struct err e = { 0 };

	buf_init(&content, FILE_MAX + 4096);
	if (read_all(c->file, &content, &e))
		buf_addf(problems, "%s\n", e.msg);
	rest = buf_str(&content);
	for (int number = 1; rest.n; number++)
		read_line(c, str_cut(&rest, '\n'), number, problems);
	buf_fini(&content);
}

static const char *find_variable(const char *const *environment, const char *name)
{
	size_t length = strlen(name);

	for (; *environment; environment++)
		if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
			return *environment + length + 1;
	return NULL;
}

enum rc config_load(struct config *c, const char *const *environment, const char *file, struct buf *problems)
{
	size_t  before = problems->n;
	enum rc rc;

	*c = (struct config){ .file = file ? file : find_variable(environment, CONFIG_FILE_NAME),
		              .file_origin = file ? FROM_COMMAND_LINE : FROM_ENVIRONMENT };
	for (int id = 0; id < CONFIG_COUNT; id++)
		config_set(c, (enum setting)id, str_from(config_table[id].fallback), FROM_DEFAULT);
	if (c->file && *c->file)
		read_file(c, problems);
	read_environment(c, environment, problems);
	rc = config_check(c, problems);
	return problems->n > before ? RC_INVALID : rc;
}

/* --- checking --- */

static bool is_visible(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

static void check_text(enum setting id, struct str text, struct buf *problems)
{
	if ((double)text.n < config_table[id].least || (double)text.n > config_table[id].most)
		buf_addf(problems, "%s: must have %g to %g characters\n", config_table[id].name, config_table[id].least,
		         config_table[id].most);
}

static void check_tokens(enum setting id, struct str text, struct buf *problems)
{
	while (text.n) {
		struct str token = str_trim(str_cut(&text, ','));

		if (!is_visible(token) || (double)token.n < config_table[id].least ||
		    (double)token.n > config_table[id].most)
			buf_addf(problems, "%s: a token must have %g to %g visible ASCII characters\n",
			         config_table[id].name, config_table[id].least, config_table[id].most);
	}
}

static void check_int(struct config *c, enum setting id, struct buf *problems)
{
	if (!str_to_int(str_trim(c->values[id].text), (int64_t)config_table[id].least, (int64_t)config_table[id].most,
	                &c->values[id].number))
		buf_addf(problems, "%s: must be a whole number from %.0f to %.0f, not '%.*s'\n", config_table[id].name,
		         config_table[id].least, config_table[id].most, STR_ARG(c->values[id].text));
}

static void check_seconds(struct config *c, enum setting id, struct buf *problems)
{
	const char *text = c->values[id].text.p;
	char       *end;
	double      seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= config_table[id].least && seconds <= config_table[id].most))
		buf_addf(problems, "%s: must be a number of seconds from %g to %g, not '%s'\n", config_table[id].name,
		         config_table[id].least, config_table[id].most, text);
	else
		c->values[id].number = (int64_t)(seconds * 1000 + 0.5);
}

static void check_word(struct config *c, enum setting id, struct buf *problems)
{
	size_t             count;
	const char *const *words = config_words(config_table[id].kind, &count);

	for (size_t i = 0; i < count; i++)
		if (str_eq_nocase(c->values[id].text, str_from(words[i]))) {
			c->values[id].number = (int64_t)i;
			return;
		}
	buf_addf(problems, "%s: must be one of", config_table[id].name);
	for (size_t i = 0; i < count; i++)
		buf_addf(problems, "%s %s", i ? "," : "", words[i]);
	buf_addf(problems, ", not '%.*s'\n", STR_ARG(c->values[id].text));
}

static void check_one(struct config *c, enum setting id, struct buf *problems)
{
	switch (config_table[id].kind) {
	case TEXT:
	case SECRET: check_text(id, c->values[id].text, problems); break;
	case TOKENS: check_tokens(id, c->values[id].text, problems); break;
	case INT: check_int(c, id, problems); break;
	case SECONDS: check_seconds(c, id, problems); break;
	case BOOL:
	case LEVEL:
	case FORMAT:
	case STORE:
	case CLEANER:
	case MODE: check_word(c, id, problems); break;
	}
}

static bool is_base_path(struct str path)
{
	size_t segments = 0;

	if (path.n == 0)
		return true;
	if (path.p[0] != '/' || path.p[path.n - 1] == '/')
		return false;
	for (size_t i = 0; i < path.n; i++) {
		char c = path.p[i];

		segments += c == '/';
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      strchr("/-_.", c)) ||
		    (c == '/' && path.p[i + 1] == '/'))
			return false;
	}
	return segments <= 3;
}

/* 12 digits each, separated by commas; empty is fine. */
static bool is_account_list(struct str list)
{
	while (list.n) {
		struct str id = str_trim(str_cut(&list, ','));

		if (!account_id_is_ok(id))
			return false;
	}
	return true;
}

/* What concerns more than one setting, or is a form of its own. */
static void check_together(const struct config *c, struct buf *problems)
{
	if (!is_base_path(config_str(c, CONFIG_BASE_PATH)))
		buf_addf(problems, "%s: must be empty or like /v1 (at most three parts of letters, digits, - _ .)\n",
		         config_name(CONFIG_BASE_PATH));
	if (!is_account_list(config_str(c, CONFIG_ADMIN_ACCOUNTS)))
		buf_addf(problems, "%s: must be account ids of 12 digits, separated by commas\n",
		         config_name(CONFIG_ADMIN_ACCOUNTS));
	if (!config_str(c, CONFIG_TLS_CERT).n != !config_str(c, CONFIG_TLS_KEY).n)
		buf_addf(problems, "%s and %s: both or neither\n", config_name(CONFIG_TLS_CERT),
		         config_name(CONFIG_TLS_KEY));
	if (config_str(c, CONFIG_CSP_URL).n && !config_str(c, CONFIG_CSP_TOKEN).n)
		buf_addf(problems, "%s: required with %s\n", config_name(CONFIG_CSP_TOKEN),
		         config_name(CONFIG_CSP_URL));
	if (config_str(c, CONFIG_CSP_URL).n && !str_starts_with(config_str(c, CONFIG_CSP_URL), STR("http://")) &&
	    !str_starts_with(config_str(c, CONFIG_CSP_URL), STR("https://")))
		buf_addf(problems, "%s: must begin with https:// or http://\n", config_name(CONFIG_CSP_URL));
}

enum rc config_check(struct config *c, struct buf *problems)
{
	size_t before = problems->n;

	for (int id = 0; id < CONFIG_COUNT; id++)
		check_one(c, (enum setting)id, problems);
	check_together(c, problems);
	return problems->n > before ? RC_INVALID : RC_OK;
}

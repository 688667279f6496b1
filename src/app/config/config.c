/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.c - where settings come from.
 *
 * One table (config.def) says what there is. The environment wins over the file, the file over the default. A key of
 * ours (LEASEHOLD_...) that the table does not have, any unknown key in the file, and every value that its kind does
 * not allow is a problem; all of them are named before anything is refused, so that one start is enough to mend them.
 *
 * Not here: what has to be looked up outside the settings, such as whether a file can be read (preflight.c).
 */
#include "app/config/config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config_table.h"
#include "base/file.h"
#include "domain/lease.h"
#include "http/server/forwarded.h"

enum { FILE_MAX = 256 * 1024, NAME_MIN = 8, DISTANCE_MAX = 2 };

const struct config_row config_table[CONFIG_COUNT] = {
#define SETTING(id, name, kind, fallback, least, most, help) { name, kind, fallback, least, most, help },
#include "app/config/config.def"
};

/* Variables of the command line client and of the configuration itself: ours, but not settings of the server. */
#define OTHER_NAMES CONFIG_FILE_NAME " LEASEHOLD_ADDRESS LEASEHOLD_TOKEN LEASEHOLD_TRACK"

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

void config_copy(struct config *ret, const struct config *from)
{
	*ret = *from;
	ret->arena = (struct arena){ 0 };
	for (int id = 0; id < CONFIG_COUNT; id++) {
		ret->values[id].text = str_dup(&ret->arena, from->values[id].text);
		ret->values[id].reference = str_dup(&ret->arena, from->values[id].reference);
	}
	ret->file = from->file ? str_dup(&ret->arena, str_from(from->file)).p : NULL;
}

void config_fini(struct config *c)
{
	arena_fini(&c->arena);
}

const char *const *config_words(enum config_kind kind)
{
	static const char *const words[][5] = { [BOOL] = { "false", "true" },
		                                [LEVEL] = { "DEBUG", "INFO", "WARNING", "ERROR" },
		                                [FORMAT] = { "json", "text" },
		                                [STORE] = { "sqlite", "dynamodb" },
		                                [CLEANER] = { "sim", "nuke", "codebuild" },
		                                [MODE] = { "native", "guard" },
		                                [CLOUD] = { "sim", "aws" },
		                                [NAMES] = { "leasehold", "isb" },
		                                [MAILER] = { "smtp", "ses" },
		                                [WAKE] = { "none", "scheduler" } };

	return words[kind];
}

/* --- reading --- */

/* CONFIG_COUNT: it is none. */
static enum setting find_setting(struct str name)
{
	enum setting id = 0;

	while (id < CONFIG_COUNT && !str_eq(name, str_from(config_table[id].name)))
		id++;
	return id;
}

/* The setting that differs by one or two characters; NULL: none. Short names are left out on both sides: everything is
 * near to them. */
static const char *find_nearest(struct str name)
{
	const char *found = NULL;
	size_t      nearest = DISTANCE_MAX + 1;

	if (name.n + DISTANCE_MAX < NAME_MIN)
		return NULL;
	for (int id = 0; id < CONFIG_COUNT; id++) {
		struct str known = str_from(config_table[id].name);
		size_t     longer = known.n > name.n ? known.n - name.n : name.n - known.n, far;

		if (known.n < NAME_MIN || longer >= nearest)
			continue; /* it cannot be nearer; the distance takes its time */
		far = str_distance(name, known);
		if (far > 0 && far < nearest) {
			nearest = far;
			found = known.p;
		}
	}
	return found;
}

/* " ...; did you mean X?", or where to look when nothing is near. */
static void add_suggestion(struct str name, struct buf *to)
{
	const char *near = find_nearest(name);

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
		enum setting id = find_setting(name);

		if (id != CONFIG_COUNT)
			config_set(c, id, value, FROM_ENVIRONMENT);
		else if (str_starts_with(name, STR("LEASEHOLD_")) && !str_is_word_of(name, OTHER_NAMES))
			add_unknown(name, problems);
	}
}

void config_near_misses(const char *const *environment, struct buf *notes)
{
	for (; *environment; environment++) {
		struct str rest = str_from(*environment);
		struct str name = str_cut(&rest, '=');

		if (!str_starts_with(name, STR("LEASEHOLD_")) && find_setting(name) == CONFIG_COUNT &&
		    find_nearest(name))
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
	struct str   name, value = str_trim(line);
	enum setting id;

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
	if ((id = find_setting(name)) == CONFIG_COUNT) {
		buf_addf(problems, "%s:%d: there is no setting '%.*s'", c->file, number, STR_ARG(name));
		add_suggestion(name, problems);
		return;
	}
	if (c->values[id].origin == FROM_FILE)
		buf_addf(problems, "%s:%d: %s is set twice\n", c->file, number, config_table[id].name);
	else
		config_set(c, id, unquote(str_trim(value)), FROM_FILE);
}

static void read_file(struct config *c, struct buf *problems)
{
	int         fd = open(c->file, O_RDONLY | O_CLOEXEC);
	struct str  rest = STR("");
	struct err  e = { 0 };
	struct stat st;
	enum rc     rc;

	if (fd < 0)
		buf_addf(problems, "%s: cannot be opened: %s\n", c->file, strerror(errno));
	else if (fstat(fd, &st) == 0 && secret_file_check(c->file, &st, &e))
		buf_addf(problems, "%s\n", e.msg);
	else if ((rc = file_read_all(fd, FILE_MAX, &c->arena, &rest)) == RC_TOO_LARGE)
		buf_addf(problems, "%s: larger than %d bytes\n", c->file, FILE_MAX);
	else if (rc)
		buf_addf(problems, "%s: cannot be read: %s\n", c->file, strerror(errno));
	if (fd >= 0)
		close(fd);
	for (int number = 1; rest.n; number++)
		read_line(c, str_cut_line(&rest), number, problems);
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
	size_t before = problems->n;

	*c = (struct config){ .file = file ? file : find_variable(environment, CONFIG_FILE_NAME),
		              .file_origin = file ? FROM_COMMAND_LINE : FROM_ENVIRONMENT };
	for (int id = 0; id < CONFIG_COUNT; id++)
		config_set(c, (enum setting)id, str_from(config_table[id].fallback), FROM_DEFAULT);
	if (c->file && *c->file)
		read_file(c, problems);
	read_environment(c, environment, problems);
	config_check(c, problems);
	return problems->n > before ? RC_INVALID : RC_OK;
}

/* --- checking --- */

/* Of a list of tokens each, else the whole text. */
static void check_text(const struct config_row *row, struct str text, struct buf *problems)
{
	bool is_list = row->kind == TOKENS;

	do {
		struct str part = is_list ? str_trim(str_cut(&text, ',')) : text;

		if ((double)part.n < row->least || (double)part.n > row->most || (is_list && !str_is_of(part, "!-~")))
			buf_addf(problems, "%s: %s have %g to %g %scharacters\n", row->name,
			         is_list ? "a token must" : "must", row->least, row->most,
			         is_list ? "visible ASCII " : "");
	} while (is_list && text.n);
}

static void check_word(struct config *c, enum setting id, struct buf *problems)
{
	const char *const *words = config_words(config_table[id].kind);

	for (size_t i = 0; words[i]; i++)
		if (str_eq_nocase(c->values[id].text, str_from(words[i]))) {
			c->values[id].number = (int64_t)i;
			return;
		}
	buf_addf(problems, "%s: must be one of", config_table[id].name);
	for (size_t i = 0; words[i]; i++)
		buf_addf(problems, "%s %s", i ? "," : "", words[i]);
	buf_addf(problems, ", not '%.*s'\n", STR_ARG(c->values[id].text));
}

static void check_one(struct config *c, enum setting id, struct buf *problems)
{
	const struct config_row *row = &config_table[id];
	struct str               text = c->values[id].text;
	int64_t                 *number = &c->values[id].number;
	char                    *end = NULL;
	double                   seconds;

	switch (row->kind) {
	case TEXT:
	case SECRET: check_text(row, text, problems); break;
	case TOKENS:
		if (text.n)
			check_text(row, text, problems);
		break;
	case INT:
		if (!str_to_int(str_trim(text), (int64_t)row->least, (int64_t)row->most, number))
			buf_addf(problems, "%s: must be a whole number from %.0f to %.0f, not '%.*s'\n", row->name,
			         row->least, row->most, STR_ARG(text));
		break;
	case SECONDS:
		seconds = strtod(text.p, &end);
		if (end == text.p || *end || !(seconds >= row->least && seconds <= row->most))
			buf_addf(problems, "%s: must be a number of seconds from %g to %g, not '%s'\n", row->name,
			         row->least, row->most, text.p);
		else
			*number = (int64_t)(seconds * 1000 + 0.5);
		break;
	default: check_word(c, id, problems);
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
		if (c == '/' && path.p[i + 1] == '/')
			return false;
	}
	return segments <= 3 && str_is_of(path, "a-zA-Z0-9/_.-");
}

/* 12 digits each, separated by commas; empty is fine. */
static bool is_account_list(struct str list)
{
	while (list.n)
		if (!account_id_is_ok(str_trim(str_cut(&list, ','))))
			return false;
	return true;
}

/* What concerns more than one setting, or is a form of its own. */
static void check_together(const struct config *c, struct buf *problems)
{
	struct proxies proxies;
	struct err     e = { 0 };

	if (proxies_parse(config_str(c, CONFIG_TRUSTED_PROXIES), &proxies, &e))
		buf_addf(problems, "%s: %s\n", config_name(CONFIG_TRUSTED_PROXIES), e.msg);
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

void config_check(struct config *c, struct buf *problems)
{
	for (int id = 0; id < CONFIG_COUNT; id++)
		check_one(c, (enum setting)id, problems);
	check_together(c, problems);
}

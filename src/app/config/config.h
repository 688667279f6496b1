/* config.h - the settings: from the environment, a file, or their defaults; every problem named at once. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum setting {
#define SETTING(id, name, kind, fallback, least, most, help) CONFIG_##id,
#include "app/config/config.def"
	CONFIG_COUNT
};

#define CONFIG_FILE_NAME "LEASEHOLD_CONFIG_FILE"

enum config_origin { FROM_DEFAULT, FROM_FILE, FROM_ENVIRONMENT, FROM_COMMAND_LINE, FROM_DEV_MODE };

struct config {
	struct arena arena;
	struct {
		struct str         text;
		enum config_origin origin;
		int64_t            number;    /* INT, BOOL, LEVEL, FORMAT; SECONDS in milliseconds */
		struct str         reference; /* where the text is kept instead (app/secrets.h); empty: here */
	} values[CONFIG_COUNT];
	const char        *file; /* where FROM_FILE comes from; NULL: none */
	enum config_origin file_origin;
};

/* Read everything. environment is like environ; file NULL means LEASEHOLD_CONFIG_FILE, if that is set. All problems are
 * written to `problems`, one a line; RC_INVALID when there is one. */
MUST_CHECK enum rc config_load(struct config *c, const char *const *environment, const char *file,
                               struct buf *problems);
void               config_fini(struct config *c);

/* All of it, in memory of its own: end it with config_fini(). */
void config_copy(struct config *ret, const struct config *from);

/* Put a value over what was read; checked by config_check(). */
void config_set(struct config *c, enum setting id, struct str text, enum config_origin origin);

/* Every value against its kind and limits, one problem a line; called by config_load() and after config_set(). */
void config_check(struct config *c, struct buf *problems);

struct str  config_str(const struct config *c, enum setting id);
const char *config_text(const struct config *c, enum setting id); /* NUL-terminated; NULL when empty */
int64_t     config_number(const struct config *c, enum setting id);
const char *config_name(enum setting id);
const char *config_origin_name(enum config_origin origin); /* "environment" */

/* Variables that are not ours but look like a misspelled setting of the broker: one line each. */
void config_near_misses(const char *const *environment, struct buf *notes);

/* The effective values with their origin and limits, secrets masked. */
void config_print(const struct config *c, struct buf *b);

/* All settings with defaults and limits, as Markdown. */
void config_write_doc(struct buf *b);

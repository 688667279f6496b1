/* config_table.h - the table of settings for those who read, check and show it. */
#pragma once

#include "app/config/config.h"

enum config_kind {
	TEXT,
	INT,
	SECONDS,
	BOOL,
	SECRET,
	TOKENS,
	LEVEL,
	FORMAT,
	STORE,
	CLEANER,
	MODE,
	CLOUD,
	NAMES,
	MAILER,
	WAKE
};

struct config_row {
	const char      *name;
	enum config_kind kind;
	const char      *fallback;
	double           least, most; /* of a number, or of the length of a text */
	const char      *help;
};

extern const struct config_row config_table[CONFIG_COUNT];

/* The words that a kind allows, in the order of their numbers, up to a NULL; none where it is not one of words. */
const char *const *config_words(enum config_kind kind);

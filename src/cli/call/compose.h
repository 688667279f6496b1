/* compose.h - the parts of a request: paths, queries, bodies, numbers. All texts live in the remote's arena. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "cli/term/commands.h"

struct remote;

/* Where the value of a field comes from. */
enum compose_value {
	VALUE_TEXT,       /* the option as typed */
	VALUE_FILLED,     /* the same, unless it is empty */
	VALUE_NUMBER,     /* the option as a number from min to max; the fallback, unless 0, when it is not given */
	VALUE_AMOUNT,     /* the option as a number above 0 */
	VALUE_TIME,       /* the option, which must be a time of ISO 8601 */
	VALUE_FIRST_LINE, /* of the file that the option names */
	VALUE_FILE,       /* all of the file that the first operand names; "-" is standard input */
	VALUE_WORD,       /* the text, when the flag is given */
	VALUE_LITERAL,    /* the text as JSON, when the flag is given */
	VALUE_FIXED,      /* the text, always */
	VALUE_OPERAND,    /* the first operand, if there is one */
	VALUE_SECOND      /* the second */
};

/* A parameter of the query, a member of the body or a header. Arrays of these end with a field without a name. */
struct compose_field {
	const char        *name; /* "configuration.tier": a member of an object in the body; its members are adjacent */
	enum compose_value value;
	enum cli_option_id option;
	const char        *text;
	int64_t            min, max, fallback;
};

/* The pattern with the id, escaped, instead of what is in braces. */
struct str compose_path(struct remote *remote, const char *pattern, struct str id);

/* The path, which may have a query already, with the fields that are given (NULL: none), and a page's limit and cursor
 * unless they are 0 and empty. Lists under /api have other names for these two. */
MUST_CHECK enum rc compose_query(struct remote *remote, struct str path, const struct compose_field *fields,
                                 bool is_api, int64_t limit, struct str cursor, struct str *ret, struct err *e);

/* Header lines of the fields that are given, into an array that has room for all and ends with NULL. */
MUST_CHECK enum rc compose_headers(struct remote *remote, const struct compose_field *fields, const char **ret,
                                   struct err *e);

/* An object of the fields that are given; empty when none is. */
MUST_CHECK enum rc compose_body(struct remote *remote, const struct compose_field *fields, struct str *ret,
                                struct err *e);

/* A number from an option; fallback when it is not given. */
MUST_CHECK enum rc option_number(const struct remote *remote, enum cli_option_id id, int64_t min, int64_t max,
                                 int64_t fallback, int64_t *ret, struct err *e);

/* The value of an option that must be there and not empty. */
MUST_CHECK enum rc option_needed(const struct remote *remote, enum cli_option_id id, struct str *ret, struct err *e);

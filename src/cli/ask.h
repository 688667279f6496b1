/* ask.h - what commands put their requests together with: paths, queries, bodies, numbers. All texts live in the remote's arena. */
#pragma once

#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/commands.h"

struct remote;

/* "/before/ID/after" with the first operand as ID, escaped. */
struct str ask_path(struct remote *remote, const char *before, const char *after);

/* An option that becomes a parameter of the query. */
struct ask_filter {
	enum cli_option_id option;
	const char        *name;
	const char        *value; /* of a flag: sent when it is given */
};

/* The path with those options that are given, and limit and cursor unless they are 0 and empty. */
struct str ask_query(struct remote *remote, const char *path, const struct ask_filter *filters, size_t count,
                     int64_t limit, struct str cursor);

/* The same for a list under /api, where these are pageSize and pageIdentifier. The path may have a query already. */
struct str ask_api_query(struct remote *remote, const char *path, const struct ask_filter *filters, size_t count,
                         int64_t limit, struct str cursor);

/* "/before/ID/after" with any text as ID, escaped. */
struct str ask_path_of(struct remote *remote, const char *before, struct str id, const char *after);

/* {"name": "text"} */
struct str ask_body(struct remote *remote, const char *name, struct str text);

/* A number from an option; fallback when it is not given. */
MUST_CHECK enum rc ask_number(const struct remote *remote, enum cli_option_id id, int64_t min, int64_t max,
                              int64_t fallback, int64_t *ret, struct err *e);

/* The value of an option that must be there and not empty. */
MUST_CHECK enum rc ask_needed(const struct remote *remote, enum cli_option_id id, struct str *ret, struct err *e);

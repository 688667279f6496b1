/* sql.h - one connection to the shared MariaDB, over TLS only. Blocks, with limits. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct sql;

struct sql_options {
	struct str  host; /* HOST[:PORT] */
	struct str  user, password;
	const char *ca_file; /* NULL: the system's */
};

/* Before the first sql_open(), while there is one thread: the library's own start is not for several. */
MUST_CHECK enum rc sql_begin(struct err *e);

/* RC_DENIED: the server knows no such user, or is not who it should be; RC_UNAVAILABLE: it does not answer. */
MUST_CHECK enum rc sql_open(const struct sql_options *o, struct sql **ret, struct err *e);
void               sql_closep(struct sql **c);

/* A statement that cannot be prepared, such as CREATE USER. Only of names that sql_name_is_ok() and of texts without
 * quotes. */
MUST_CHECK enum rc sql_do(struct sql *c, struct str statement, struct err *e);

/* A prepared statement of one column, with this text for its '?'. The rows' texts are in the arena; NULL is empty. */
enum { SQL_ROWS_MAX = 100000 };
MUST_CHECK enum rc sql_ask(struct sql *c, const char *statement, struct str text, struct arena *a, struct str **ret,
                           size_t *ret_count, struct err *e);

/* ^[a-z0-9_]{1,64}$ */
bool sql_name_is_ok(struct str name);

/* lines_tool.h - a tool that does what it is told, a line of JSON each: for tests in Python. The first line is the
 * settings, answered by {"opened":...}. Then each line is a call, in a thread of its own: {"id":1,"do":"NAME",...},
 * answered by {...,"id":1,"rc":"ok","status":200,"code":...,"error":...}. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/str.h"

struct call {
	json_t         *in;
	struct arena    arena;
	struct buf      b;
	struct json_out o; /* members of the answer */
	struct err      e;
};

struct command {
	const char *name;
	enum rc (*run)(struct call *c);
};

/* A member of a line; empty, or the fallback, when there is none. */
struct str text_of(const json_t *in, const char *name);
int64_t    number_of(const json_t *in, const char *name, int64_t fallback);

/* Until there are no more lines. Answers the exit status. The settings are borrowed; close() is called whether or not
 * open() succeeded. */
int lines_serve(const struct command *commands, size_t count, enum rc (*open)(json_t *settings, struct err *e),
                void (*close)(void));

/* watch.h - looks at one thing of the API until it is as wanted, and says meanwhile how far it is. */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "cli/commands.h"

struct fetch_reply;
struct remote;

enum watch_outcome { WATCH_ON, WATCH_DONE, WATCH_FAILED };

/* *ret_text: what is being waited for, or why it cannot come any more. Lives in the remote's arena. */
typedef enum watch_outcome watch_judge_fn(struct remote *remote, const json_t *item, const void *goal,
                                          struct str *ret_text);

struct watch {
	struct str         path; /* of people, under /api; the thing is the answer's data */
	watch_judge_fn    *judge;
	const void        *goal;
	enum cli_option_id limit;  /* the option that says for how many seconds; a day without it */
	const char        *advice; /* when the time is up */
	void (*print)(struct remote *remote, const struct fetch_reply *reply,
	              const json_t *document); /* at the end; may be NULL */
};

/* Returns the exit code: 0 done, 1 it cannot come any more, 3 the time is up, others as of any call. */
int watch_run(struct remote *remote, const struct watch *w);

/* builds.h - the builds that somebody waits for, and what queries about others have told of them. Any thread. */
#pragma once

#include "base/json.h"
#include "base/str.h"

struct aws_builds *aws_builds_new(void);
void               aws_builds_free(struct aws_builds *b); /* NULL is fine */

/* The build as the query about another has returned it a moment ago: once, and yours to json_decref(). NULL: ask. */
json_t *aws_builds_take(struct aws_builds *b, struct str id, int64_t now_ms);

/* What to ask for: this one, and as many of the others that are waited for as fit into a query. A new array. */
json_t *aws_builds_ids(struct aws_builds *b, struct str id, int64_t now_ms);

/* AWS's answer to that, the list of builds: kept for those who wait for the others. */
void aws_builds_hear(struct aws_builds *b, struct str id, const json_t *list, int64_t now_ms);

/* From now on somebody waits for it, or no longer does. */
void aws_builds_wait(struct aws_builds *b, struct str id, bool is_waited_for, int64_t now_ms);

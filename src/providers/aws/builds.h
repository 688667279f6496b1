/* builds.h - the builds that somebody waits for, and what was heard of them when another was asked for. Any thread. */
#pragma once

#include "base/json.h"
#include "base/str.h"

struct aws_builds;

struct aws_builds *aws_builds_new(void);
void               aws_builds_free(struct aws_builds *b); /* NULL is fine */

/* The build as the question about another has brought it a moment ago: once, and yours to json_decref(). NULL: ask. */
json_t *aws_builds_take(struct aws_builds *b, struct str id, int64_t now_ms);

/* What to ask for: this one, and all others that are waited for, as far as a question has room. A new array. */
json_t *aws_builds_ids(struct aws_builds *b, struct str id, int64_t now_ms);

/* What AWS has answered to it, the list of builds: kept for those who wait for the others. */
void aws_builds_hear(struct aws_builds *b, struct str id, const json_t *list, int64_t now_ms);

/* From now on it is waited for, or not any more. */
void aws_builds_wait(struct aws_builds *b, struct str id, bool is_waited_for, int64_t now_ms);

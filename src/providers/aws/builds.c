/* SPDX-License-Identifier: Apache-2.0 */
/*
 * builds.c - one query for all builds that are waited for.
 *
 * Each account that is being emptied checks its own build every half minute. CodeBuild answers for a hundred in one
 * call: so each check asks for the others too, and those that come within FRESH_MS find their answer here and make no
 * call.
 *
 * Always true:
 *   1. An answer is given once: whoever asks again wants fresh news.                   [aws_builds_take()]
 *   2. A build that nobody has asked for in WAITED_MS is no longer waited for.           [aws_builds_ids()]
 *
 * All of it is in memory: after a start each build is asked for on its own once.
 */
#include "providers/aws/builds.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"
#include "service/record/aws_records.h"

enum {
	IDS_MAX = 100, /* in a question */
	FRESH_MS = 15000,
	WAITED_MS = 300000,
};

struct waited {
	char    id[AWS_BUILD_ID_MAX + 1]; /* empty: the place is free */
	int64_t asked_ms;                 /* by who waits */
	json_t *heard;                    /* not given yet; NULL: nothing */
	int64_t heard_ms;
};

struct aws_builds {
	pthread_mutex_t lock;
	struct waited   places[IDS_MAX];
};

struct aws_builds *aws_builds_new(void)
{
	struct aws_builds *b = mem_new(struct aws_builds);

	pthread_mutex_init(&b->lock, NULL);
	return b;
}

static void clear(struct waited *w)
{
	json_decref(w->heard);
	*w = (struct waited){ 0 };
}

void aws_builds_free(struct aws_builds *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < IDS_MAX; i++)
		clear(&b->places[i]);
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* id empty: a free place. NULL: there is none. */
static struct waited *find(struct aws_builds *b, struct str id)
{
	for (size_t i = 0; i < IDS_MAX; i++)
		if (str_eq(str_from(b->places[i].id), id))
			return &b->places[i];
	return NULL;
}

json_t *aws_builds_take(struct aws_builds *b, struct str id, int64_t now_ms)
{
	struct waited *w;
	json_t        *heard = NULL;

	LOCKED(&b->lock);
	if ((w = find(b, id))) {
		w->asked_ms = now_ms;
		if (w->heard && now_ms - w->heard_ms < FRESH_MS) {
			heard = w->heard;
			w->heard = NULL;
		}
	}
	return heard;
}

json_t *aws_builds_ids(struct aws_builds *b, struct str id, int64_t now_ms)
{
	json_t *ids = json_array();

	json_array_append_new(ids, json_stringn(id.p, id.n));
	LOCKED(&b->lock);
	for (struct waited *w = b->places; w < b->places + IDS_MAX; w++) {
		if (w->id[0] && now_ms - w->asked_ms > WAITED_MS)
			clear(w);
		if (w->id[0] && !str_eq(str_from(w->id), id) && json_array_size(ids) < IDS_MAX)
			json_array_append_new(ids, json_string(w->id));
	}
	return ids;
}

void aws_builds_hear(struct aws_builds *b, struct str id, const json_t *list, int64_t now_ms)
{
	json_t        *build;
	struct waited *w;
	struct str     name;
	size_t         i;

	LOCKED(&b->lock);
	json_array_foreach(list, i, build)
	{
		if (!json_get_text(build, "id", &name) || !name.n || str_eq(name, id) || !(w = find(b, name)))
			continue;
		json_decref(w->heard);
		w->heard = json_incref(build);
		w->heard_ms = now_ms;
	}
}

void aws_builds_wait(struct aws_builds *b, struct str id, bool is_waited_for, int64_t now_ms)
{
	struct waited *w;

	LOCKED(&b->lock);
	w = find(b, id);
	if (w && !is_waited_for)
		clear(w);
	if (!w && is_waited_for && (w = find(b, STR("")))) { /* without a place it asks by itself */
		memcpy(w->id, id.p, id.n);
		w->asked_ms = now_ms;
	}
}

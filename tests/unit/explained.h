/* explained.h - what tests of explanations share: ask, and look into the answer. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "http/api/rights.h"
#include "service/explain/explain.h"
#include "store/store.h"
#include "test.h"

static inline enum rc try_explain(struct store *store, struct arena *a, struct explain *x, struct err *e)
{
	x->base_path = STR("/v1");
	x->route = rights_route;
	return store_read(store, explain, x, a, e);
}

/* The answer, expected to be there; yours. */
static inline json_t *explained(struct store *store, struct arena *a, const char *kind, struct str id)
{
	struct explain x = { .kind = str_from(kind), .id = id };
	struct err     e = { 0 };
	json_t        *answer = NULL;
	enum rc        rc = try_explain(store, a, &x, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK && json_parse(x.json, &answer, &e) == RC_OK);
	return answer;
}

/* Does the text of this member have this part? */
static inline bool says(const json_t *answer, const char *member, const char *part)
{
	const char *text = json_string_value(json_object_get(answer, member));
	bool        is_there = text && strstr(text, part);

	if (!is_there)
		print_error("%s: '%s' does not say '%s'\n", member, text ? text : "(nothing)", part);
	return is_there;
}

/* How many items of the list (texts, or objects with such a member) have this part? */
static inline int count_of(const json_t *answer, const char *list, const char *member, const char *part)
{
	const json_t *items = json_object_get(answer, list);
	int           count = 0;

	for (size_t i = 0; i < json_array_size(items); i++) {
		const json_t *item = json_array_get(items, i);
		const char   *text = json_string_value(member ? json_object_get(item, member) : item);

		count += text && strstr(text, part);
	}
	return count;
}

/* Is there exactly one? What is in the list is printed when there is not. */
static inline bool lists(const json_t *answer, const char *list, const char *member, const char *part)
{
	int   count = count_of(answer, list, member, part);
	char *text = count == 1 ? NULL : json_dumps(json_object_get(answer, list), JSON_INDENT(1));

	if (text)
		print_error("%d times '%s' in %s: %s\n", count, part, list, text);
	free(text);
	return count == 1;
}

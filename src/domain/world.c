/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the words of world.h and cloud.h: from the tables, and back. */
#include "domain/world.h"

#include "domain/cloud.h"

const char *const cloud_resource_names[CLOUD_RESOURCE_COUNT] = {
#define X(name, text) text,
	CLOUD_RESOURCES(X)
#undef X
};

const char *const world_call_names[WORLD_CALL_COUNT] = {
#define X(name, text, is_change) text,
	WORLD_CALLS(X)
#undef X
};

const char *const world_fault_names[WORLD_FAULT_COUNT] = {
#define X(name, text, is_of_call) text,
	WORLD_FAULTS(X)
#undef X
};

static int find_word(const char *const *words, int count, struct str text)
{
	int i = 0;

	while (i < count && !str_eq(str_from(words[i]), text))
		i++;
	return i;
}

bool world_call_parse(struct str text, enum world_call *ret)
{
	int found = find_word(world_call_names, WORLD_CALL_COUNT, text);

	if (found == WORLD_CALL_COUNT && !str_eq(text, STR("any")))
		return false;
	*ret = (enum world_call)found;
	return true;
}

bool world_fault_parse(struct str text, enum world_fault *ret)
{
	int found = find_word(world_fault_names, WORLD_FAULT_COUNT, text);

	if (found == WORLD_FAULT_COUNT)
		return false;
	*ret = (enum world_fault)found;
	return true;
}

bool world_fault_is_of_call(enum world_fault fault)
{
	static const bool is_of_call[] = {
#define X(name, text, is_of_call) is_of_call,
		WORLD_FAULTS(X)
#undef X
	};

	return is_of_call[fault];
}

bool world_call_is_change(enum world_call call)
{
	static const bool is_change[] = {
#define X(name, text, is_change) is_change,
		WORLD_CALLS(X)
#undef X
	};

	return is_change[call];
}

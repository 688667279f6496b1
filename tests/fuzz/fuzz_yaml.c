/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_yaml.c - whatever is read is a value within our limits that JSON can write and read back, a refusal says why,
 * and a policy that is read from it is written so that it is read back the same. */
#include "fuzz.h"

#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/yaml.h"
#include "service/policy/policy_document.h"

static void check_depth(json_t *value, int depth)
{
	const char *name;
	json_t     *member;
	size_t      i;

	must(depth <= YAML_DEPTH_MAX + 1);
	json_object_foreach(value, name, member) check_depth(member, depth + 1);
	json_array_foreach(value, i, member) check_depth(member, depth + 1);
	if (json_is_string(value))
		must(!memchr(json_string_value(value), '\0', json_string_length(value)));
}

static void check_round_trip(const json_t *value)
{
	char   *text = json_dumps(value, JSON_ENCODE_ANY);
	json_t *back;

	must(text != NULL);
	back = json_loads(text, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
	must(back && json_equal(back, value));
	json_decref(back);
	free(text);
}

static void check_policy(enum document_kind kind, struct str text)
{
	struct arena          a = { 0 };
	struct problems       p = { .arena = &a };
	struct policy         policy, back;
	struct policy_changes changes;
	struct buf            b;

	policy_defaults(&policy);
	policy_defaults(&back);
	if (policy_read(kind, text, &policy, &p)) {
		buf_init(&b, 1 << 20);
		policy_write_yaml(kind, &policy, &b);
		must(!b.is_full && policy_read(kind, buf_str(&b), &back, &p));
		policy_compare(kind, &policy, &back, &a, &changes);
		must(changes.count == 0);
		buf_fini(&b);
	} else {
		must(p.count > 0 && p.items[0].message.n > 0);
	}
	arena_fini(&a);
}

/* Any text as the one of the terms of service, in JSON. */
static void check_terms(json_t *value)
{
	CLEANUP(json_freep) json_t *document = json_object();
	char                       *text;

	if (!json_is_string(value))
		return;
	json_object_set(document, "termsOfService", value);
	text = json_dumps(document, 0);
	check_policy(DOCUMENT_GLOBAL, str_from(text));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of((const char *)data, size);
	json_t    *value = NULL;
	struct err e = { 0 };
	enum rc    rc = yaml_parse(text, &value, &e);

	must(rc == RC_OK ? value != NULL : rc == RC_INVALID && e.msg[0] && !value);
	check_policy(DOCUMENT_GLOBAL, text);
	check_policy(DOCUMENT_REPORTING, text);
	check_policy(DOCUMENT_APPROVAL, text);
	if (rc)
		return 0;
	check_terms(value);
	check_depth(value, 1);
	check_round_trip(value);
	json_decref(value);
	return 0;
}

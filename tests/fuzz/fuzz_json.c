/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json.c - whatever is parsed can be read by its names, and a text that is written is read back the same. */
#include "fuzz.h"

#include "base/json.h"

/* Write the text as a member, parse that, compare. */
static void check_round_trip(struct str text)
{
	json_t         *back = NULL;
	struct json_out o;
	struct buf      b;
	struct str      got;

	buf_init(&b, 1 << 20);
	o = JSON_OUT(&b);
	json_open_object(&o);
	json_put_str(&o, "x", text);
	json_close_object(&o);
	must(!b.is_full && json_parse(buf_str(&b), &back, NULL) == RC_OK);
	must(json_get_text(back, "x", &got) && str_eq(got, text));
	json_decref(back);
	buf_fini(&b);
}

static void read_members(json_t *object)
{
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		struct str text = STR("untouched");
		int64_t    number = 7;

		if (json_get_text(object, name, &text)) {
			must(json_is_string(value) || json_is_null(value));
			must(json_is_string(value) || text.n == 0);
			check_round_trip(text);
		}
		if (json_get_number(object, name, 42, &number))
			must(json_is_integer(value) ? number == json_integer_value(value) : number == 42);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t    *value = NULL;
	struct err e = { 0 };
	enum rc    rc = json_parse(str_of((const char *)data, size), &value, &e);

	must(rc == RC_OK || (rc == RC_INVALID && e.msg[0] && !value));
	if (rc)
		return 0;
	if (json_is_object(value))
		read_members(value);
	json_decref(value);
	return 0;
}

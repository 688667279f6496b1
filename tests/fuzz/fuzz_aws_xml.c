/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_aws_xml.c - whatever is read is a value that JSON can write and read back, and a refusal says why. */
#include "fuzz.h"

#include <jansson.h>

#include "base/str.h"
#include "net/aws_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t    *value = NULL, *back;
	struct err e = { 0 };
	enum rc    rc = aws_xml_parse(str_of((const char *)data, size), &value, &e);
	char      *text;

	must(rc == RC_OK ? value != NULL : rc == RC_INVALID && e.msg[0] && !value);
	if (rc)
		return 0;
	must(aws_xml_result(value) != NULL);
	text = json_dumps(value, JSON_ENCODE_ANY);
	must(text != NULL);
	back = json_loads(text, JSON_DECODE_ANY, NULL);
	must(back && json_equal(back, value));
	json_decref(back);
	free(text);
	json_decref(value);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* XML answers as JSON. */
#include "test.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "net/aws_xml.h"

/* Both are texts; *xml is "" when it must be refused. */
static const struct {
	const char *label, *xml, *json;
} good[] = {
	{ "texts", "<R><A>1</A><B> two </B></R>", "{\"A\":\"1\",\"B\":\" two \"}" },
	{ "an object", "<R><A><B>x</B></A></R>", "{\"A\":{\"B\":\"x\"}}" },
	{ "one member is a list", "<R><L><member>x</member></L></R>", "{\"L\":[\"x\"]}" },
	{ "several are, too", "<R><L><member>x</member><member><A>y</A></member></L></R>",
	  "{\"L\":[\"x\",{\"A\":\"y\"}]}" },
	{ "what repeats its name", "<R><U>a</U><V>b</V><U>c</U><U>d</U></R>",
	  "{\"U\":[\"a\",\"c\",\"d\"],\"V\":\"b\"}" },
	{ "nothing in it", "<R><L/><M></M></R>", "{\"L\":\"\",\"M\":\"\"}" },
	{ "a root with a text", "<R>x</R>", "\"x\"" },
	{ "entities and attributes", "<?xml version=\"1.0\"?><R xmlns=\"u\"><A n=\"1\">&lt;&amp;&#228;</A></R>",
	  "{\"A\":\"<&\\u00e4\"}" },
	{ "a section of characters", "<R><A><![CDATA[<x>]]></A></R>", "{\"A\":\"<x>\"}" },
	{ "texts between elements are left out", "<R> a <A>1</A> b </R>", "{\"A\":\"1\"}" },
};

TEST(an_answer_becomes_the_object_that_it_means)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		json_t    *got = NULL, *wanted = NULL;
		struct err e = { 0 };

		CASE(good[i].label);
		wanted = json_loads(good[i].json, JSON_DECODE_ANY, NULL);
		CHECK(wanted != NULL);
		CHECK(aws_xml_parse(str_from(good[i].xml), &got, &e) == RC_OK);
		CHECK(json_equal(got, wanted));
		json_decref(got);
		json_decref(wanted);
	}
}

TEST(what_is_no_answer_is_refused_with_a_reason)
{
	static const char *const bad[] = { "",
		                           "text",
		                           "<R>",
		                           "<R></S>",
		                           "<R/><R/>",
		                           "<R>&unknown;</R>",
		                           "<!DOCTYPE R [<!ENTITY a \"x\">]><R>&a;</R>",
		                           "<!DOCTYPE R SYSTEM \"file:///etc/passwd\"><R/>",
		                           "<R>\x01</R>" };

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t    *got = NULL;
		struct err e = { 0 };

		CASE(bad[i]);
		CHECK(aws_xml_parse(str_from(bad[i]), &got, &e) == RC_INVALID);
		CHECK(!got && e.msg[0]);
	}
}

static enum rc parse_nested(int depth, struct err *e)
{
	struct buf b;
	json_t    *got = NULL;
	enum rc    rc;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < depth; i++)
		buf_add_text(&b, "<a>");
	for (int i = 0; i < depth; i++)
		buf_add_text(&b, "</a>");
	rc = aws_xml_parse(buf_str(&b), &got, e);
	json_decref(got);
	buf_fini(&b);
	return rc;
}

TEST(depth_and_names_have_limits)
{
	struct err   e = { 0 };
	struct arena a = { 0 };
	char        *name = arena_alloc(&a, AWS_XML_NAME_MAX + 2);
	json_t      *got = NULL;

	CHECK(parse_nested(AWS_XML_DEPTH_MAX, NULL) == RC_OK);
	CHECK(parse_nested(AWS_XML_DEPTH_MAX + 1, &e) == RC_INVALID && strstr(e.msg, "deep"));
	memset(name, 'n', AWS_XML_NAME_MAX);
	CHECK(aws_xml_parse(str_format(&a, "<%s/>", name), &got, NULL) == RC_OK);
	json_decref(got);
	name[AWS_XML_NAME_MAX] = 'n';
	CHECK(aws_xml_parse(str_format(&a, "<%s/>", name), &got, NULL) == RC_INVALID);
	arena_fini(&a);
}

TEST(the_result_is_what_is_inside)
{
	json_t *got = NULL;

	CHECK(aws_xml_parse(STR("<GetResponse><GetResult><A>1</A></GetResult><ResponseMetadata/></GetResponse>"), &got,
	                    NULL) == RC_OK);
	CHECK(strcmp(json_string_value(json_object_get(aws_xml_result(got), "A")), "1") == 0);
	json_decref(got);
	CHECK(aws_xml_parse(STR("<R><Result>x</Result></R>"), &got, NULL) == RC_OK);
	CHECK(aws_xml_result(got) == got);
	json_decref(got);
}

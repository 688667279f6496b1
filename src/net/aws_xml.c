/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_xml.c - XML answers as JSON, by expat.
 *
 * AWS's query services answer with elements only: no attribute but xmlns, no mixed content. A list is
 * <Things><member>...</member></Things>. One with nothing in it is an empty element and so an empty text: readers of
 * lists treat that as an empty list.
 *
 * A DOCTYPE ends the parse: answers have none, and with it entities could grow without a limit.
 */
#include "net/aws_xml.h"

#include <expat.h>

#include "base/buf.h"

enum { TEXT_MAX = 20 << 20 };

struct element {
	char    name[AWS_XML_NAME_MAX + 1];
	json_t *inside; /* NULL: no element so far, it is a text */
};

struct reader {
	XML_Parser     parser;
	struct element open[AWS_XML_DEPTH_MAX];
	size_t         depth;
	struct buf     text;
	json_t        *root;
	const char    *problem;
};

static void stop(struct reader *r, const char *problem)
{
	r->problem = problem;
	(void)XML_StopParser(r->parser, XML_FALSE); /* fails only when it has stopped */
}

static void XMLCALL on_start(void *arg, const char *name, const char **attributes UNUSED)
{
	struct reader *r = arg;

	if (r->problem)
		return;
	if (r->depth == AWS_XML_DEPTH_MAX || strlen(name) > AWS_XML_NAME_MAX) {
		stop(r, r->depth == AWS_XML_DEPTH_MAX ? "elements are nested too deep"
		                                      : "the name of an element is too long");
		return;
	}
	r->open[r->depth] = (struct element){ .inside = NULL };
	memcpy(r->open[r->depth++].name, name, strlen(name) + 1);
	buf_reset(&r->text);
}

static void put_named(json_t *object, const char *name, json_t *value)
{
	json_t *before = json_object_get(object, name), *both;

	if (!before) {
		json_object_set_new(object, name, value);
	} else if (json_is_array(before)) {
		json_array_append_new(before, value);
	} else {
		both = json_array();
		json_array_append(both, before);
		json_array_append_new(both, value);
		json_object_set_new(object, name, both);
	}
}

/* The value is the parent's from here on. A parent with both members and others keeps what it began with. */
static void put(struct element *parent, const char *name, json_t *value)
{
	bool is_member = strcmp(name, "member") == 0;

	if (!parent->inside)
		parent->inside = is_member ? json_array() : json_object();
	if (json_is_array(parent->inside))
		json_array_append_new(parent->inside, value);
	else
		put_named(parent->inside, name, value);
}

static void XMLCALL on_end(void *arg, const char *name UNUSED)
{
	struct reader  *r = arg;
	struct element *ended;
	json_t         *value;

	if (r->problem) /* expat still ends the element that it was stopped at */
		return;
	ended = &r->open[--r->depth];
	value = ended->inside;
	if (!value)
		value = json_stringn(r->text.n ? r->text.p : "", r->text.n);
	buf_reset(&r->text);
	ended->inside = NULL;
	if (r->depth)
		put(&r->open[r->depth - 1], ended->name, value);
	else
		r->root = value;
}

static void XMLCALL on_text(void *arg, const char *text, int length)
{
	struct reader *r = arg;

	buf_add(&r->text, text, (size_t)length);
	if (r->text.is_full)
		stop(r, "a text is too long");
}

static void XMLCALL on_doctype(void *arg, const char *name, const char *system, const char *public, int has_subset)
{
	(void)name, (void)system, (void)public, (void)has_subset;
	stop(arg, "it has a DOCTYPE");
}

enum rc aws_xml_parse(struct str xml, json_t **ret, struct err *e)
{
	struct reader r = { .parser = XML_ParserCreate(NULL) };
	enum rc       rc = RC_OK;

	if (xml.n > TEXT_MAX || !r.parser) {
		XML_ParserFree(r.parser);
		return err_set(e, RC_INVALID, "XML of %zu bytes is too long", xml.n);
	}
	buf_init(&r.text, TEXT_MAX + 1);
	XML_SetUserData(r.parser, &r);
	XML_SetElementHandler(r.parser, on_start, on_end);
	XML_SetCharacterDataHandler(r.parser, on_text);
	XML_SetStartDoctypeDeclHandler(r.parser, on_doctype);
	if (XML_Parse(r.parser, xml.n ? xml.p : "", (int)xml.n, XML_TRUE) != XML_STATUS_OK)
		rc = err_set(e, RC_INVALID, "line %lu: %s", (unsigned long)XML_GetCurrentLineNumber(r.parser),
		             r.problem ? r.problem : XML_ErrorString(XML_GetErrorCode(r.parser)));
	for (size_t i = 0; i < r.depth; i++)
		json_decref(r.open[i].inside);
	XML_ParserFree(r.parser);
	buf_fini(&r.text);
	if (rc) {
		json_decref(r.root);
		return rc;
	}
	*ret = r.root;
	return RC_OK;
}

json_t *aws_xml_result(json_t *answer)
{
	const char *name;
	json_t     *member;

	json_object_foreach(answer, name, member)
	{
		if (strlen(name) > strlen("Result") && str_ends_with(str_from(name), STR("Result")))
			return member;
	}
	return answer;
}

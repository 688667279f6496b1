/* aws_xml.h - XML answers of AWS's query services as the JSON objects that all other services answer with. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

enum { AWS_XML_DEPTH_MAX = 32, AWS_XML_NAME_MAX = 128 };

/* What is in the root element: an element with elements inside is an object, any other its text. Elements called
 * "member" make their parent an array; of others, those that repeat a name become the array of that name. Attributes
 * are left out. RC_INVALID: not XML, a DOCTYPE (so no entities of its own), or beyond the limits. Yours: json_decref().
 */
MUST_CHECK enum rc aws_xml_parse(struct str xml, json_t **ret, struct err *e);

/* The answer inside: the member whose name ends with "Result", else all of it. Borrowed. */
json_t *aws_xml_result(json_t *answer);

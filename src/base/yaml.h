/* yaml.h - strict YAML in (libyaml, with limits), as a jansson value: what a configuration needs and nothing that surprises. */
#pragma once

#include <jansson.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

enum { YAML_BYTES_MAX = 131072, YAML_DEPTH_MAX = 16 };

/* Parse one whole document: UTF-8, no duplicate keys, no anchors, aliases or tags, at most YAML_DEPTH_MAX deep. An empty document is null.
 *
 * Without quotes, null and ~ are null, true and false booleans, numbers as JSON writes them numbers; all else is text, so no, off, 007,
 * 1_000 and 12:30 are. A value that is not there is null. RC_INVALID with line and column otherwise. The result is yours: json_decref(). */
MUST_CHECK enum rc yaml_parse(struct str text, json_t **ret, struct err *e);

/* True when this text, written without quotes as a value of a document, is read back as the same text and nothing else. */
bool yaml_is_plain(struct str text);

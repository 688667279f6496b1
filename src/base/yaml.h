/* yaml.h - strict YAML (by libyaml, with limits) as a jansson value: what a configuration needs, without surprises. */
#pragma once

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"

enum { YAML_BYTES_MAX = 131072, YAML_DEPTH_MAX = 16 };

/* Parse one whole document: UTF-8, no duplicate keys, no anchors, aliases or tags, at most YAML_DEPTH_MAX deep. An
 * empty document is null.
 *
 * Without quotes, null and ~ are null, true and false are booleans, and numbers are as in JSON; all else is text, such
 * as no, off, 007, 1_000 and 12:30. A missing value is null. RC_INVALID names line and column. The result is yours:
 * json_decref(). */
MUST_CHECK enum rc yaml_parse(struct str text, json_t **ret, struct err *e);

/* Is this text, written as a value without quotes, read back as the same text? */
bool yaml_is_plain(struct str text);

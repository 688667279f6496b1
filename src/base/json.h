/* json.h - strict JSON in (jansson, with limits) and a small writer out. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { JSON_DEPTH_MAX = 32, JSON_NESTING_MAX = 16 };

/* Parse one whole document: UTF-8, no duplicate keys, nothing behind it, at most JSON_DEPTH_MAX deep.
 * RC_INVALID with line and column otherwise. The result is yours: json_decref(). */
MUST_CHECK enum rc json_parse(struct str text, json_t **ret, struct err *e);

/* For CLEANUP(). */
void json_freep(json_t **value);

/* Views into a parsed object; valid while it is. A missing or null member is empty / the fallback and true;
 * a member of another type is false. */
bool json_get_text(const json_t *object, const char *name, struct str *ret);
bool json_get_number(const json_t *object, const char *name, int64_t fallback, int64_t *ret);

/* Writing: values go straight into a buffer. Commas and escaping are the writer's business. */
struct json_out {
	struct buf *b;
	unsigned    depth;
	bool        has_member[JSON_NESTING_MAX];
};

void json_out_init(struct json_out *o, struct buf *b);

void json_open_object(struct json_out *o); /* as a value of an array, or the document */
void json_close_object(struct json_out *o);
void json_close_array(struct json_out *o);
void json_add_str(struct json_out *o, struct str value); /* an element of an array */
void json_add_int(struct json_out *o, int64_t value);

void json_put_object(struct json_out *o, const char *name); /* opens it */
void json_put_array(struct json_out *o, const char *name);  /* opens it */
void json_put_str(struct json_out *o, const char *name, struct str value);
void json_put_int(struct json_out *o, const char *name, int64_t value);
void json_put_real(struct json_out *o, const char *name, double value);
void json_put_bool(struct json_out *o, const char *name, bool value);
void json_put_null(struct json_out *o, const char *name);
void json_put_raw(struct json_out *o, const char *name, struct str json);

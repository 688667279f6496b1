/* json.h - strict JSON in (jansson, with limits) and a small writer out. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

enum { JSON_DEPTH_MAX = 32, JSON_NESTING_MAX = 16 };

/* Parse one whole document: UTF-8, no duplicate keys, nothing behind it, at most JSON_DEPTH_MAX deep.
 * RC_INVALID with line and column otherwise. The result is yours: json_decref(). */
MUST_CHECK enum rc json_parse(struct str text, json_t **ret, struct err *e);

/* The same, but RC_INVALID, before any work is done, when it has more than so many brackets, commas and colons. */
MUST_CHECK enum rc json_parse_limited(struct str text, size_t values_max, json_t **ret, struct err *e);

/* How deep it is nested: 1 for an object of texts. */
int json_depth(struct str text);

/* For CLEANUP(). */
void json_freep(json_t **value);

/* Views into a parsed object; valid while it is. A missing or null member is empty / the fallback and true;
 * a member of another type is false. */
bool json_get_text(const json_t *object, const char *name, struct str *ret);
bool json_get_number(const json_t *object, const char *name, int64_t fallback, int64_t *ret);

/* The text as a copy in the arena. */
bool json_take_text(const json_t *object, const char *name, struct arena *a, struct str *ret);

/* The value as compact text in the arena; empty for NULL. */
struct str json_dump(struct arena *a, const json_t *value);

/* Writing: values go straight into a buffer. Commas and escaping are the writer's business. */
struct json_out {
	struct buf *b;
	unsigned    depth;
	bool        has_member[JSON_NESTING_MAX];
};

/* struct json_out o = JSON_OUT(&b); */
#define JSON_OUT(into) ((struct json_out){ .b = (into) })

void json_open_object(struct json_out *o); /* as a value of an array, or the document */
void json_close_object(struct json_out *o);
void json_close_array(struct json_out *o);
void json_add_str(struct json_out *o, struct str value); /* an element of an array */

void json_put_object(struct json_out *o, const char *name); /* opens it */
void json_put_array(struct json_out *o, const char *name);  /* opens it */
void json_put_str(struct json_out *o, const char *name, struct str value);
void json_put_int(struct json_out *o, const char *name, int64_t value);
void json_put_real(struct json_out *o, const char *name, double value);
void json_put_bool(struct json_out *o, const char *name, bool value);
void json_put_null(struct json_out *o, const char *name);
void json_put_raw(struct json_out *o, const char *name, struct str json);
void json_put_text(struct json_out *o, const char *name, struct str text); /* empty: null */
void json_put_time(struct json_out *o, const char *name, int64_t ms);      /* ISO 8601 to the second; 0: null */
void json_put_texts(struct json_out *o, const char *name, const struct str *texts, size_t count);

/* "55.65": an amount of a document as people read it, rounded from millionths, half a cent up, as everywhere. */
struct str json_dollars(struct arena *a, double dollars);

/* A small object in one expression: JSON_OF(a, member_str("name", name), member_if_any(member_int("count", n))). Text
 * in the arena; one that would be longer is JSON_OF_MAX times NUL, which is more than anything that takes such objects
 * accepts. */
enum { JSON_OF_MAX = 262144 };
/* clang-format off */
enum json_member_kind {
	MEMBER_NONE, MEMBER_STR, MEMBER_TEXT, MEMBER_INT, MEMBER_BOOL, MEMBER_TIME, MEMBER_AT, MEMBER_MOMENT,
	MEMBER_SEC, MEMBER_RAW, MEMBER_MICRO, MEMBER_OPEN, MEMBER_CLOSE, MEMBER_OPEN_LIST, MEMBER_CLOSE_LIST
};
/* clang-format on */
struct json_member {
	struct str            name; /* p == NULL: of an element of a list */
	enum json_member_kind kind;
	struct str            text;
	int64_t               number;
};
struct str json_of(struct arena *a, const struct json_member *members, size_t count);
void       json_put_members(struct json_out *o, const struct json_member *members, size_t count);
#define JSON_MEMBERS(...)                            \
	(const struct json_member[]){ __VA_ARGS__ }, \
	        sizeof((const struct json_member[]){ __VA_ARGS__ }) / sizeof(struct json_member)
#define JSON_OF(a, ...)  json_of((a), JSON_MEMBERS(__VA_ARGS__))
#define JSON_PUT(o, ...) json_put_members((o), JSON_MEMBERS(__VA_ARGS__)) /* into the open object */

static inline struct json_member member_str(const char *name, struct str text)
{
	return (struct json_member){ str_from(name), MEMBER_STR, text, 0 };
}

static inline struct json_member member_word(const char *name, const char *text)
{
	return (struct json_member){ str_from(name), MEMBER_STR, str_from(text), 0 };
}

/* Empty: null. */
static inline struct json_member member_text(const char *name, struct str text)
{
	return (struct json_member){ str_from(name), MEMBER_TEXT, text, 0 };
}

static inline struct json_member member_int(const char *name, int64_t number)
{
	return (struct json_member){ str_from(name), MEMBER_INT, STR(""), number };
}

static inline struct json_member member_bool(const char *name, bool value)
{
	return (struct json_member){ str_from(name), MEMBER_BOOL, STR(""), value };
}

/* ISO 8601 to the second. */
static inline struct json_member member_time(const char *name, int64_t ms)
{
	return (struct json_member){ str_from(name), MEMBER_TIME, STR(""), ms };
}

/* The same; 0: null. */
static inline struct json_member member_at(const char *name, int64_t ms)
{
	return (struct json_member){ str_from(name), MEMBER_AT, STR(""), ms };
}

/* The same to the millisecond, when there are any. */
static inline struct json_member member_moment(const char *name, int64_t ms)
{
	return (struct json_member){ str_from(name), MEMBER_MOMENT, STR(""), ms };
}

/* Unix seconds; 0: null. */
static inline struct json_member member_sec(const char *name, int64_t ms)
{
	return (struct json_member){ str_from(name), MEMBER_SEC, STR(""), ms };
}

/* An object: what follows is in it, until the end of it. NULL: an element of a list. */
static inline struct json_member member_object(const char *name)
{
	return (struct json_member){ str_from(name), MEMBER_OPEN, STR(""), 0 };
}

static inline struct json_member member_end(void)
{
	return (struct json_member){ STR(""), MEMBER_CLOSE, STR(""), 0 };
}

/* A list: what follows is in it, until the end of it. */
static inline struct json_member member_list(const char *name)
{
	return (struct json_member){ str_from(name), MEMBER_OPEN_LIST, STR(""), 0 };
}

static inline struct json_member member_list_end(void)
{
	return (struct json_member){ STR(""), MEMBER_CLOSE_LIST, STR(""), 0 };
}

/* Empty: null. */
static inline struct json_member member_raw(const char *name, struct str json)
{
	return (struct json_member){ str_from(name), MEMBER_RAW, json, 0 };
}

/* Millionths, such as those of dollars: 12.5 of 12500000. */
static inline struct json_member member_micro(const char *name, int64_t millionths)
{
	return (struct json_member){ str_from(name), MEMBER_MICRO, STR(""), millionths };
}

/* Left out while the text is empty, or the number 0. */
static inline struct json_member member_if_any(struct json_member m)
{
	return m.text.n || m.number ? m : (struct json_member){ 0 };
}

/* Left out unless. */
static inline struct json_member member_if(bool is_there, struct json_member m)
{
	return is_there ? m : (struct json_member){ 0 };
}

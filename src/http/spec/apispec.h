/* apispec.h - the API's description as tables, and how to read the texts in them. For openapi.c. */
#pragma once

#include "base/str.h"
#include "http/api/api.h"

/* A row of params.def. */
struct spec_param {
	const char *id, *name;
	const char *where; /* "header", "query" or "path" */
	const char *type;  /* "string", "integer", or words: "a|b" */
	int64_t     least, most;
	bool        is_required;
	const char *description;
};

/* A row of schemas.def. */
struct spec_schema {
	const char *name, *members;
};

enum spec_shape {
	SPEC_MEMBERS, /* an object with members */
	SPEC_WORDS,   /* a text, one of some words */
	SPEC_ONE_OF,  /* one of some schemas */
};

/* A JSON body that a route takes: an object whose only member is a text of at most so many bytes, or what a schema
 * says. */
struct spec_body {
	const char *route, *member, *description;
	int64_t     most;
	bool        is_required;
	const char *schema;     /* instead of the member; NULL: the member */
	size_t      bytes_most; /* of the whole body; 0: SPEC_BODY_MAX */
};
enum { SPEC_BODY_MAX = 4096 };

struct spec_reply {
	int        status;
	struct str schema;
};

enum spec_kind { SPEC_TEXT, SPEC_INTEGER, SPEC_BOOLEAN, SPEC_NUMBER, SPEC_LIST, SPEC_OBJECT, SPEC_WORD };

struct spec_member {
	struct str     name; /* "*": any */
	enum spec_kind kind;
	bool           is_nullable;
	struct str     of; /* the schema of a list's elements or of an object; the fixed word */
};

extern const struct spec_param  spec_params[];
extern const size_t             spec_param_count;
extern const struct spec_schema spec_schemas[];
extern const size_t             spec_schema_count;

/* The parameters of the path first, then those of the route's row, one at each call. *at is 0 at first. False at the
 * end. *ret is NULL when params.def has no such row. */
bool spec_next_param(const struct api_route *route, size_t *at, const struct spec_param **ret);

/* The route's own replies, then the errors that follow from its scope. *at is 0 at first. False at the end. */
bool spec_next_reply(const struct api_route *route, size_t *at, struct spec_reply *ret);

/* Take the next member off *rest, which begins as the members of a schema. False at the end, and when what is there is
 * no member; then *rest is not empty. */
bool spec_next_member(struct str *rest, struct spec_member *ret);

/* What a schema is. The words or the names of schemas, with bars between, are in *ret_choices; it is empty for
 * members. */
enum spec_shape spec_shape(const struct spec_schema *schema, struct str *ret_choices);

/* True for the member that stands for any. */
bool spec_is_any(const struct spec_member *m);

/* May be NULL. */
const struct spec_body *spec_find_body(const struct api_route *route);

/* The largest body that a call of the route may have. */
size_t spec_body_max(const struct api_route *route);

/* What a status means here. */
const char *spec_status_text(int status);

/* What a reply with this schema is sent as. */
const char *spec_media_type(struct str schema);

/* True for a schema that is text instead of one JSON value. */
bool spec_is_plain_text(struct str schema);

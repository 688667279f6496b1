/* aws_source.h - the places where credentials may be. For aws_identity.c, which asks them in turn, and what its
 * neighbours share. */
#pragma once

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "net/aws.h"

struct aws_found {
	struct aws_credentials credentials;
	struct wall            expires; /* zero: never */
};

/* Texts live in the arena.
 * RC_NOT_FOUND, with why: this place is not set up; the next one is asked. Any other failure ends the search: whoever
 * set a place up wants the credentials from there and from nowhere else. */
typedef enum rc aws_source_fn(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret,
                              struct err *e);

aws_source_fn aws_source_environment;
aws_source_fn aws_source_web_identity;
aws_source_fn aws_source_shared_file;
aws_source_fn aws_source_container;
aws_source_fn aws_source_instance;
aws_source_fn aws_source_role; /* the options' */

struct aws_credentials aws_credentials_dup(const struct aws_credentials *c, struct arena *a);

/* A small file as a whole. RC_NOT_FOUND when it is not there, RC_INVALID when it cannot be read or is too large. */
MUST_CHECK enum rc aws_read_file(const char *path, struct arena *a, struct str *ret, struct err *e);

/* "amazonaws.com", or what the region has instead. */
const char *aws_domain(const char *region);

struct fetch_reply;

/* Code and message of a refusal, whether JSON or XML; the code without what is around it, "UnknownError" when there is
 * none. The message's first line: more may be our request with its token. */
void aws_read_error(const struct fetch_reply *reply, struct arena *a, struct str *ret_code, struct str *ret_message);

/* sigv4.h - AWS Signature Version 4: pure, time given. */
#pragma once

#include "base/clock.h"
#include "base/str.h"

struct aws_credentials {
	struct str access_key, secret_key;
	struct str session_token; /* empty: none */
};

struct sigv4_header {
	struct str name, value;
};

/* What is signed. Every header given is signed: host, content-type and all x-amz-* must be among them as they are sent,
 * except x-amz-date and x-amz-security-token, which the signer adds itself. Not for S3. */
struct sigv4_request {
	struct str                 method;
	struct str                 path;  /* as sent, escaped; empty means "/" */
	struct str                 query; /* as sent, without '?' */
	const struct sigv4_header *headers;
	size_t                     header_count;
	struct str                 body, region, service;
};

struct sigv4_signature {
	struct str amz_date;      /* value of X-Amz-Date */
	struct str authorization; /* value of Authorization */
};

/* Texts live in the arena. */
void sigv4_sign(const struct sigv4_request *req, const struct aws_credentials *credentials, struct wall now,
                struct arena *a, struct sigv4_signature *ret);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sigv4.c - whatever is signed, the signer stays within its bytes, and parts of the query may change places.
 *
 * The input is cut at each 0xff: method, path, query, header name, header value, body, secret.
 */
#include <stdint.h>

#include "base/arena.h"
#include "net/sigv4.h"

enum { PARTS = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_true)
{
	if (!is_true)
		abort();
}

static struct str sign(const struct str part[PARTS], struct str query, struct arena *a)
{
	struct sigv4_header    headers[] = { { part[3], part[4] }, { STR("Host"), STR("h") }, { part[3], part[6] } };
	struct sigv4_request   req = { .method = part[0],
		                       .path = part[1],
		                       .query = query,
		                       .headers = headers,
		                       .header_count = 3,
		                       .body = part[5],
		                       .region = STR("r"),
		                       .service = STR("s") };
	struct aws_credentials credentials = { STR("k"), part[6], part[5] };
	struct sigv4_signature ret;

	sigv4_sign(&req, &credentials, wall_from_sec((int64_t)part[2].n * 1000003), a, &ret);
	must(ret.amz_date.n == 16);
	must(str_starts_with(ret.authorization, STR("AWS4-HMAC-SHA256 Credential=k/")));
	return ret.authorization;
}

/* "a&b&c" as "b&c&a" */
static struct str turn(struct str query, struct arena *a)
{
	struct str rest = query, first = str_cut(&rest, '&');

	return str_format(a, "%.*s&%.*s", STR_ARG(rest), STR_ARG(first));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   part[PARTS], rest = str_of((const char *)data, size);
	struct str   first;

	for (size_t i = 0; i < PARTS; i++)
		part[i] = str_cut(&rest, '\xff');
	first = sign(part, part[2], &a);
	if (part[2].n == 0 || !memchr(part[2].p, '\0', part[2].n)) /* the format above ends at a NUL */
		must(str_eq(first, sign(part, turn(part[2], &a), &a)));
	arena_fini(&a);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sigv4_tool.c - signs requests for a comparison with another implementation: one JSON object a line on standard input,
 * the Authorization header of each on standard output. With a number as argument it signs one typical request that
 * often and says how long one took.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "net/sigv4.h"

enum { HEADERS_MAX = 32 };

static struct str member(const json_t *object, const char *name)
{
	struct str ret;

	if (!json_get_text(object, name, &ret)) {
		fprintf(stderr, "sigv4_tool: %s must be text\n", name);
		exit(2);
	}
	return ret;
}

static size_t read_headers(const json_t *list, struct sigv4_header ret[HEADERS_MAX])
{
	size_t n = json_array_size(list);

	if (n > HEADERS_MAX)
		exit(2);
	for (size_t i = 0; i < n; i++) {
		const json_t *header = json_array_get(list, i);

		ret[i].name = str_from(json_string_value(json_array_get(header, 0)));
		ret[i].value = str_from(json_string_value(json_array_get(header, 1)));
	}
	return n;
}

static void sign_line(struct str line, struct arena *a)
{
	CLEANUP(json_freep) json_t *in = NULL;
	struct err                  e = { 0 };
	struct sigv4_header         headers[HEADERS_MAX];
	struct sigv4_signature      signature;
	struct sigv4_request        req;
	struct aws_credentials      credentials;
	int64_t                     now = 0;

	if (json_parse(line, &in, &e) || !json_get_number(in, "now", 0, &now)) {
		fprintf(stderr, "sigv4_tool: %s\n", e.msg);
		exit(2);
	}
	req = (struct sigv4_request){ .method = member(in, "method"),
		                      .path = member(in, "path"),
		                      .query = member(in, "query"),
		                      .headers = headers,
		                      .header_count = read_headers(json_object_get(in, "headers"), headers),
		                      .body = member(in, "body"),
		                      .region = member(in, "region"),
		                      .service = member(in, "service") };
	credentials = (struct aws_credentials){ member(in, "key"), member(in, "secret"), member(in, "token") };
	sigv4_sign(&req, &credentials, wall_from_sec(now), a, &signature);
	printf("%.*s\n", STR_ARG(signature.authorization));
}

static void measure(long rounds)
{
	static const struct sigv4_header headers[] = {
		{ STR_INIT("host"), STR_INIT("dynamodb.eu-west-1.amazonaws.com") },
		{ STR_INIT("content-type"), STR_INIT("application/x-amz-json-1.0") },
		{ STR_INIT("x-amz-target"), STR_INIT("DynamoDB_20120810.TransactWriteItems") },
	};
	static const struct aws_credentials credentials = { STR_INIT("AKIDEXAMPLE"),
		                                            STR_INIT("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
		                                            STR_INIT("") };
	static char                         body[1024];
	struct sigv4_request   req = { STR("POST"),      STR("/"),       STR(""), headers, 3, { body, sizeof(body) },
		                       STR("eu-west-1"), STR("dynamodb") };
	struct sigv4_signature signature;
	struct arena           a = { 0 };
	int64_t                start = mono_ns();

	for (long i = 0; i < rounds; i++) {
		sigv4_sign(&req, &credentials, wall_from_sec(1440938160 + i), &a, &signature);
		arena_reset(&a);
	}
	printf("%.2f us\n", (double)(mono_ns() - start) / 1000 / (double)rounds);
	arena_fini(&a);
}

int main(int argc, char **argv)
{
	struct arena a = { 0 };
	char        *line = NULL;
	size_t       room = 0;
	ssize_t      n;

	if (argc > 1) {
		measure(strtol(argv[1], NULL, 10));
		return 0;
	}
	while ((n = getline(&line, &room, stdin)) > 0) {
		sign_line(str_of(line, (size_t)n), &a);
		arena_reset(&a);
	}
	free(line);
	arena_fini(&a);
	return 0;
}

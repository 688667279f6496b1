/* api_ops.h - the inside of the api, shared by api.c, admit.c, answer.c, console_api.c and overview_api.c; nobody else includes this. */
#pragma once

#include <stdatomic.h>

#include "http/api.h"
#include "http/line.h"
#include "http/ops_stream.h"
#include "http/ratelimit.h"
#include "http/tally.h"

enum {
	API_ROUTES = 0
#define ROUTE(name, operation, method, path, scope, params, replies, summary) +1
#include "http/routes.def"
#undef ROUTE
	,
	API_SEGMENTS_MAX = 8,
	API_STATUS_SLOTS = 20,
};

/* A route as the router sees it. */
struct matcher {
	struct str            path; /* with the base path, parameters still in braces */
	struct str            segments[API_SEGMENTS_MAX];
	size_t                segment_count;
	struct metric_series *latency[API_STATUS_SLOTS];
};

struct api {
	struct api_options options;
	struct jobs       *jobs;
	struct line       *line;
	struct streams    *streams;
	struct ratelimit  *limits;
	struct arena       arena; /* what lives as long as the api */
	struct arena       token_arena;
	struct api_tokens  tokens;
	struct matcher     matchers[API_ROUTES];
	struct matcher     unknown; /* for the metrics of unknown paths */
	struct inbox       completions;
	uv_async_t         wake;
	struct buf         scratch;  /* the reply in the making */
	struct tally       tally;    /* the claims of the last hours */
	struct buf         overview; /* the answer that is given again until overview_until_ms, without its end */
	int64_t            overview_until_ms;
	uint64_t           hash_seed;
	int64_t            next_gauges_ms;
	atomic_bool        is_open;
	unsigned           in_flight; /* requests whose transaction is with the store */
	void (*on_quiet)(void *arg);
	void *quiet_arg;
};

/* "/v1/x" -> "v1", "x". False when there are too many parts. */
bool api_split_path(struct str path, struct str *segments, size_t *ret_count);

/* Send an answer: the common headers, one metric, one log line. error is for the log; "" when all is well. */
void answer_send(struct request *r, int status, const char *content_type, struct str body, const char *error);

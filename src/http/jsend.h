/* jsend.h - the envelope of answers under /api: {"status":"success","data":...}, or what went wrong. Loop thread only. */
#pragma once

#include <stdbool.h>

#include "base/json.h"
#include "domain/policy.h"

struct request;

/* Begin a success: the member "data" is the caller's to add, then reply_send(). */
struct json_out jsend_begin(struct request *r);

/* 200 with "data": null; 200 without the member. Clients parse both, so no answer is ever empty. */
void jsend_null(struct request *r);
void jsend_done(struct request *r);

/* Refuse with every problem, each with its field where it has one. There is at least one. */
void jsend_refuse(struct request *r, int status, const struct problems *problems);

/* When the request's transaction failed: answer that, and true. */
bool jsend_failed(struct request *r);

/* The envelope of one error, for answer.c: request_fail() comes here for routes under /api. */
void jsend_write_error(struct buf *b, int status, const char *message);

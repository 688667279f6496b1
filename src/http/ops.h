/* ops.h - what the operators' routes share: limits, what their calls can ask for, how times and texts are written. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "http/api.h"

struct alarm;
struct kernel;

enum {
	OPS_REASON_MAX = 400,
	OPS_LIMIT_DEFAULT = 50,
	OPS_LIMIT_MAX = 100,
	OPS_ID_MAX = 240,
	WEBHOOK_BODY_MAX = 16384,
	DOCUMENT_BODY_MAX = 262144, /* 64 KB of text, escaped */
};

struct kernel *ops_kernel(const struct request *r);

/* The kernel's time: what stored times are compared with. */
int64_t ops_now_ms(const struct request *r);

/* The name of a list with these filters, for its cursors: of another list, or with other filters, they are refused. */
const char *ops_list_name(struct request *r, const char *list, const struct str *filters, size_t count);

/* limit and cursor of a list. */
MUST_CHECK enum rc ops_read_page(struct request *r, const char *list_name, size_t *ret_limit, struct str *ret_cursor,
                                 struct err *e);

/* A query parameter of at most so many bytes; empty when it is not there. */
MUST_CHECK enum rc ops_read_text(struct request *r, const char *name, size_t max, struct str *ret, struct err *e);

/* The path's parameter. RC_NOT_FOUND when it is longer than any id. */
MUST_CHECK enum rc ops_read_id(struct request *r, const char *what, struct str *ret, struct err *e);

/* {"reason": "..."}, which is required. */
MUST_CHECK enum rc ops_read_reason(struct request *r, struct str *ret, struct err *e);

/* The transaction failed: say so. False when it did not. */
bool ops_failed(struct request *r);

/* Close the list that is open, add how many there are and where to go on, and send it all. */
void ops_send_list(struct request *r, struct json_out *o, const char *list_name, size_t count, struct str next);

/* Unix seconds, null for 0. */
void ops_put_time(struct json_out *o, const char *name, int64_t ms);

/* The members of an alarm. */
void ops_put_alarm(struct json_out *o, const struct alarm *a);

/* Null when empty. */
void ops_put_text(struct json_out *o, const char *name, struct str text);
void ops_put_json(struct json_out *o, const char *name, struct str json);

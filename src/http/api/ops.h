/* ops.h - what the operators' routes share: limits, what their calls can ask for, how times and texts are written. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "http/api/api.h"
#include "http/api/view.h"

enum {
	OPS_REASON_MAX = 400,
	OPS_LIMIT_DEFAULT = 50,
	OPS_LIMIT_MAX = 100,
	OPS_ID_MAX = 240,
	WEBHOOK_BODY_MAX = 16384,
	DOCUMENT_BODY_MAX = 262144, /* 64 KB of text, escaped */
};
#define OPS_TIME_MAX_SEC INT64_C(253402300799) /* the end of the year 9999 */

/* The kernel's time: what stored times are compared with. */
int64_t ops_now_ms(const struct request *r);

/* The name of a list with these filters, for its cursors: of another list, or with other filters, they are refused. */
const char *ops_list_name(struct request *r, const char *list, const struct str *filters, size_t count);

/* limit and cursor of a list. */
MUST_CHECK enum rc ops_read_page(struct request *r, const char *list_name, size_t *ret_limit, struct str *ret_cursor,
                                 struct err *e);

/* A query parameter of at most so many bytes; empty when it is not there. */
MUST_CHECK enum rc ops_read_text(struct request *r, const char *name, size_t max, struct str *ret, struct err *e);

/* The number of the one of these words that a query parameter is; -1 when it is not there. must says them. */
MUST_CHECK enum rc ops_read_word(struct request *r, const char *name, const char *const *words, int count,
                                 const char *must, int *ret, struct err *e);

/* A query parameter that is a time, in ISO 8601 or Unix seconds; when it is not there, *ret_ms is left as it is. */
MUST_CHECK enum rc ops_read_time(struct request *r, const char *name, int64_t *ret_ms, struct err *e);

/* The path's parameter. RC_NOT_FOUND when it is longer than any id. */
MUST_CHECK enum rc ops_read_id(struct request *r, const char *what, struct str *ret, struct err *e);

/* Is it one of these words? They have a space between them, or a comma and a space. */
bool ops_is_word(const char *words, const char *name);

/* The body, yours: an object with no members but these (NULL: any). must says what it has to be. */
MUST_CHECK enum rc ops_read_object(struct request *r, const char *must, const char *words, json_t **ret, struct err *e);

/* {"reason": "..."}; where it is not needed, no body and {} are none, and it may be longer. */
MUST_CHECK enum rc ops_read_reason(struct request *r, bool is_needed, struct str *ret, struct err *e);

/* Answer with this list of events, of which only the filters are set: its name, member and put() are those of v. It
 * is read in as many transactions as it takes, so that others come in between; but no more than EVENTS_LOOKED_MAX. */
struct event_list;
enum { EVENTS_LOOKED_MAX = 10 };
void ops_list_events(struct request *r, struct event_list *l, const struct listing *v);

/* Show one record, whose id the path has: a struct of so many bytes with the id, a struct str, at this offset. */
void ops_show(struct request *r, const char *what, size_t size, size_t id_at, txn_fn *get, put_fn *put);

/* The members of a struct alarm. */
put_fn ops_put_alarm;

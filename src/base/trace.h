/* trace.h - whose request a thread works for: a W3C trace context, taken in and handed on, never started. */
#pragma once

#include "base/str.h"

enum { TRACE_TEXT_MAX = 55, TRACE_AMAZON_SIZE = 88 };

/* "00-<trace id, 32 hex>-<parent id, 16 hex>-<flags, 2 hex>", or empty: none. */
struct trace {
	char text[TRACE_TEXT_MAX + 1];
};

/* What a caller has sent: traceparent, or else X-Amzn-Trace-Id. False, and *ret is empty, when neither makes sense,
 * which the standard says is not an error. */
bool trace_read(struct str traceparent, struct str amazon, struct trace *ret);

/* The id that all of a trace share, for logs. */
struct str trace_id(struct str trace);

/* The same as X-Amzn-Trace-Id. trace is not empty. */
const char *trace_to_amazon(struct str trace, char buf[TRACE_AMAZON_SIZE]);

/* From now on this thread works for it: its log lines, outgoing calls and transactions say so. Returns what it worked
 * for before, for trace_return(). */
struct trace trace_enter(struct str trace);
void         trace_return(const struct trace *before);

/* Empty: for nobody in particular. Good until the thread enters another. */
struct str trace_current(void);

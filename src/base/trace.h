/* trace.h - for whose request a thread works: a W3C trace context, taken in, handed on, never begun. */
#pragma once

#include "base/str.h"

enum { TRACE_TEXT_MAX = 55, TRACE_AMAZON_SIZE = 88 };

/* "00-<trace id, 32 hex>-<parent id, 16 hex>-<flags, 2 hex>", or empty: none. */
struct trace {
	char text[TRACE_TEXT_MAX + 1];
};

/* What a caller has sent: traceparent, or else X-Amzn-Trace-Id. False, and *ret is empty, when neither makes sense: as
 * the standard wants it, that is no error. */
bool trace_read(struct str traceparent, struct str amazon, struct trace *ret);

/* The part that all of a trace have in common, for logs. */
struct str trace_id(struct str trace);

/* The same as X-Amzn-Trace-Id. trace is not empty. */
const char *trace_to_amazon(struct str trace, char buf[TRACE_AMAZON_SIZE]);

/* From now on this thread works for it: its log lines, outgoing calls and transactions say so. Gives back for what it
 * did before, for trace_return(). */
struct trace trace_enter(struct str trace);
void         trace_return(const struct trace *before);

/* Empty: for nobody in particular. Good until the thread enters another. */
struct str trace_current(void);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - trace ids, from our callers to those we call.
 *
 * We make no spans: the context is handed on as it came, which the standard allows (W3C Trace Context, "pass through").
 * It goes with a transaction into the events and sagas that it makes, from there into what is done for them on whatever
 * thread and node, and so into log lines and outgoing calls. Each thread knows the one it works for.
 */
#include "base/trace.h"

#include <stdio.h>

enum { ID_AT = 3, ID_LEN = 32, PARENT_AT = 36, PARENT_LEN = 16, FLAGS_AT = 53, AMAZON_TIME_LEN = 8 };

static _Thread_local struct trace current;

static bool is_id(struct str text, size_t length)
{
	return text.n == length && str_is_of(text, "0-9a-f") && !str_is_of(text, "0");
}

/* A version after ours may have more at its end, and begins as ours does. */
static bool read_standard(struct str text, struct trace *ret)
{
	bool is_ours;

	if (text.n < TRACE_TEXT_MAX || text.p[2] != '-' || text.p[35] != '-' || text.p[52] != '-')
		return false;
	is_ours = str_starts_with(text, STR("00"));
	if (str_starts_with(text, STR("ff")) || !str_is_of(str_of(text.p, 2), "0-9a-f") ||
	    (text.n > TRACE_TEXT_MAX && (is_ours || text.p[TRACE_TEXT_MAX] != '-')) ||
	    !is_id(str_of(text.p + ID_AT, ID_LEN), ID_LEN) ||
	    !is_id(str_of(text.p + PARENT_AT, PARENT_LEN), PARENT_LEN) ||
	    !str_is_of(str_of(text.p + FLAGS_AT, 2), "0-9a-f"))
		return false;
	(void)snprintf(ret->text, sizeof(ret->text), "00%.*s", TRACE_TEXT_MAX - 2, text.p + 2); /* fits */
	return true;
}

/* "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"; a balancer sends the root only. */
static bool read_amazon(struct str text, struct trace *ret)
{
	struct str root = STR(""), parent = STR(""), sampled = STR("");
	char       id[ID_LEN + 1] = "";

	while (text.n) {
		struct str value = str_trim(str_cut(&text, ';')), name = str_cut(&value, '=');

		if (str_eq(name, STR("Root")))
			root = value;
		else if (str_eq(name, STR("Parent")))
			parent = value;
		else if (str_eq(name, STR("Sampled")))
			sampled = value;
	}
	if (root.n != ID_LEN + 3 || !str_starts_with(root, STR("1-")) || root.p[2 + AMAZON_TIME_LEN] != '-')
		return false;
	memcpy(id, root.p + 2, AMAZON_TIME_LEN);
	memcpy(id + AMAZON_TIME_LEN, root.p + 3 + AMAZON_TIME_LEN, ID_LEN - AMAZON_TIME_LEN);
	if (!parent.n)
		parent = str_of(id + ID_LEN - PARENT_LEN, PARENT_LEN); /* the trace itself is all that is above us */
	if (!is_id(str_of(id, ID_LEN), ID_LEN) || !is_id(parent, PARENT_LEN))
		return false;
	(void)snprintf(ret->text, sizeof(ret->text), "00-%s-%.*s-0%c", id, STR_ARG(parent),
	               str_eq(sampled, STR("1")) ? '1' : '0'); /* fits */
	return true;
}

bool trace_read(struct str traceparent, struct str amazon, struct trace *ret)
{
	ret->text[0] = '\0';
	return read_standard(traceparent, ret) || read_amazon(amazon, ret);
}

struct str trace_id(struct str trace)
{
	return trace.n == TRACE_TEXT_MAX ? str_of(trace.p + ID_AT, ID_LEN) : STR("");
}

const char *trace_to_amazon(struct str trace, char buf[TRACE_AMAZON_SIZE])
{
	struct str id = trace_id(trace);

	(void)snprintf(buf, TRACE_AMAZON_SIZE, "Root=1-%.*s-%.*s;Parent=%.*s;Sampled=%d", AMAZON_TIME_LEN, id.p,
	               ID_LEN - AMAZON_TIME_LEN, id.p + AMAZON_TIME_LEN, PARENT_LEN, trace.p + PARENT_AT,
	               strchr("13579bdf", trace.p[FLAGS_AT + 1]) != NULL); /* fits */
	return buf;
}

struct trace trace_enter(struct str trace)
{
	struct trace before = current;

	/* It may come from the store, which we do not trust: any other length counts as none. */
	if (trace.n == TRACE_TEXT_MAX)
		memcpy(current.text, trace.p, TRACE_TEXT_MAX);
	else
		current.text[0] = '\0';
	return before;
}

void trace_return(const struct trace *before)
{
	current = *before;
}

struct str trace_current(void)
{
	return current.text[0] ? str_of(current.text, TRACE_TEXT_MAX) : STR("");
}

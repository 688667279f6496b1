/* policy_keys.h - the keys of the operator's documents, one row each. For policy_document.c and policy_write.c;
 * nobody else includes this. */
#pragma once

#include "service/policy/policy_document.h"

enum key_kind {
	KEY_BOOL,
	KEY_INT,
	KEY_TEXT,    /* any text, also of several lines */
	KEY_LINE,    /* without control characters, may be empty */
	KEY_URL,     /* http or https, may be empty */
	KEY_HTTPS,   /* https only, may be empty */
	KEY_EMAIL,   /* may be empty */
	KEY_OVERRUN, /* alert, freeze or end */
	KEY_LIST,    /* of lines that are not empty and differ */
};

struct policy_key {
	enum document_kind document;
	const char        *section; /* NULL: at the top */
	const char        *name;
	enum key_kind      kind;
	size_t             offset, count_offset; /* into struct policy; the second of a list only */
	int64_t            most;       /* of a number (the least is 0); bytes of a text, or of an element of a list */
	size_t             items_most; /* of a list */
	const char        *comment;
	size_t             items_least; /* of a list; last, because most have none */
};

extern const struct policy_key policy_keys[];
extern const size_t            policy_key_count;

/* What a key says in a policy: a number (0 or 1: a truth value), or texts: one, unless it is a list. */
struct policy_value {
	int64_t           number;
	const struct str *texts;
	size_t            count;
};
struct policy_value policy_value(const struct policy_key *k, const struct policy *p);

/* "leases.maxBudget" */
struct str policy_key_path(const struct policy_key *k, struct arena *a);

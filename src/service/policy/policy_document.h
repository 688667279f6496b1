/* policy_document.h - the operator's documents as text: read into a struct policy with every problem named, and written
 * out again. Pure.
 *
 * YAML or JSON. A key that is not there has its default; one that is not known is a problem. docs/policy.md explains
 * them all. */
#pragma once

#include "base/str.h"
#include "domain/policy.h"

struct buf;
struct json_out;

enum document_kind { DOCUMENT_GLOBAL, DOCUMENT_REPORTING, DOCUMENT_APPROVAL, DOCUMENT_KIND_COUNT };
extern const char
        *const document_names[DOCUMENT_KIND_COUNT]; /* "global", "reporting", "approval": keys of the records */

/* Read the document's keys into *policy; those of the other document stay as they are. Texts live in p->arena. False:
 * problems were added, and *policy is half of something. */
bool policy_read(enum document_kind kind, struct str text, struct policy *policy, struct problems *p);

/* An empty text, or one of comments alone: read, it has every default; written by a person, it is an accident. */
bool policy_says_nothing(struct str text);

/* The document's keys with their values, as YAML with a comment for each. Read back, it is the same. */
void policy_write_yaml(enum document_kind kind, const struct policy *policy, struct buf *b);

/* The same as members of the open object. */
void policy_write_json(enum document_kind kind, const struct policy *policy, struct json_out *o);

/* What differs, in words for people: long values are cut. */
struct policy_change {
	struct str key; /* dotted path */
	struct str from, to;
};
enum { POLICY_KEYS_MAX = 32 };
struct policy_changes {
	struct policy_change items[POLICY_KEYS_MAX];
	size_t               count;
};
void policy_compare(enum document_kind kind, const struct policy *before, const struct policy *after, struct arena *a,
                    struct policy_changes *ret);

/* As "changes", an array of {"key", "from", "to"}. */
void policy_changes_write(const struct policy_changes *c, struct json_out *o);

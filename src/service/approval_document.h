/* approval_document.h - the document of approval rules, in the forms that policy_document.h promises for every document. For
 * policy_document.c and policy_write.c; nobody else includes this. */
#pragma once

#include <jansson.h>

#include "service/policy_document.h"

/* Sets policy->approval; NULL when there are no rules. document may be null: it has none. False: problems were added. */
bool approval_document_read(json_t *document, struct policy *policy, struct problems *p);

/* Rules are written as JSON, which is as good: their texts may have what YAML does not print. */
void approval_document_yaml(const struct policy *policy, struct buf *b);
void approval_document_json(const struct policy *policy, struct json_out *o);

/* One change for each rule that was added, removed or changed, and one when only their order did. What does not fit is counted in the last. */
void approval_document_compare(const struct policy *before, const struct policy *after, struct arena *a,
                               struct policy_changes *ret);

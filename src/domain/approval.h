/* approval.h - the operator's rules: which requests are approved at once, decided by a person, or denied. Pure.
 *
 *   {"rules": [{"id": "students", "then": "approve",
 *               "when": {"template": "small", "domain": "*.ac.uk", "maxHours": 24}}]}
 *
 * Rules are tried in their order, the first that matches decides; when none does, a person is asked. */
#pragma once

#include "base/err.h"
#include "base/json.h"
#include "base/str.h"
#include "domain/ports/caller.h"
#include "domain/policy.h"

enum {
	APPROVAL_RULES_MAX = 100,
	APPROVAL_TEXTS_MAX = 20, /* in one condition */
	APPROVAL_TEXT_MAX = 254,
	APPROVAL_ID_MAX = 50,
};

enum approval_verdict { APPROVAL_APPROVE, APPROVAL_ASK, APPROVAL_DENY, APPROVAL_VERDICT_COUNT };
extern const char *const approval_verdict_names[APPROVAL_VERDICT_COUNT]; /* approve, ask, deny */

/* As the document names them. */
struct approval_role {
	enum role   role;
	const char *name;
};
enum { APPROVAL_ROLE_COUNT = 3 };
extern const struct approval_role approval_roles[APPROVAL_ROLE_COUNT];

/* One of them must be so; none: any will do. In the document: a text, or a list of texts. */
struct approval_texts {
	const struct str *items;
	size_t            count;
};

/* All conditions that are there must hold. */
struct approval_rule {
	struct str            id;
	struct approval_texts templates; /* names or uuids */
	struct approval_texts
	        domains; /* of the owner's email: "gov.uk", or "*.gov.uk" for what is below it, without case */
	struct approval_texts groups;            /* cost report groups */
	unsigned              roles;             /* enum role: the owner has one of them; 0: any */
	int64_t               max_spend, max_ms; /* 0: any. A request without a budget (an end) is over every limit */
	enum approval_verdict then;
};

struct approval_policy {
	const struct approval_rule *rules;
	size_t                      count;
};

/* Read a document. What it holds lives in the arena. RC_INVALID: every problem is in problems (empty before), *ret is
 * untouched. */
MUST_CHECK enum rc approval_read(json_t *document, struct arena *a, struct approval_policy *ret,
                                 struct problems *problems);

/* One rule as an object of the open array: read back, it is the same. */
void approval_write(const struct approval_rule *rule, struct json_out *o);

/* A request, as the lease would be. */
struct approval_question {
	struct str template_uuid, template_name;
	struct str email; /* of the owner to be */
	unsigned   roles; /* of the owner */
	struct str cost_group;
	int64_t    max_spend, duration_ms; /* 0: none */
};

/* Why a rule did or did not match. */
struct approval_note {
	struct str rule;
	bool       matches;
	struct str why;
};

struct approval_answer {
	enum approval_verdict verdict;
	struct str            rule;  /* empty: none matched */
	struct approval_note *notes; /* one for each rule that was looked at, in order */
	size_t                note_count;
};

/* With an arena for the explanation, or NULL for the verdict alone. */
void approval_evaluate(const struct approval_policy *policy, const struct approval_question *question,
                       struct arena *explain, struct approval_answer *ret);

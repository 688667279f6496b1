/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_approval.c - any JSON is a policy or has problems, and an explanation never changes a verdict. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/json.h"
#include "domain/approval.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(json_freep) json_t      *document = NULL;
	struct problems                  problems = { .arena = &a };
	struct approval_policy           policy;
	struct approval_question         q = { .template_name = STR("small"),
		                               .email = STR("ann@dept.gov.uk"),
		                               .roles = ROLE_USER };
	struct approval_answer           bare, explained;
	enum rc                          rc;

	if (json_parse(str_of((const char *)data, size), &document, NULL))
		return 0;
	rc = approval_read(document, &a, &policy, &problems);
	must(rc == RC_OK || rc == RC_INVALID);
	must((rc == RC_OK) == (problems.count == 0));
	if (!rc) {
		approval_evaluate(&policy, &q, NULL, &bare);
		approval_evaluate(&policy, &q, &a, &explained);
		must(bare.verdict == explained.verdict && str_eq(bare.rule, explained.rule));
		must(explained.note_count <= policy.count && (bare.rule.n > 0 || explained.note_count == policy.count));
	}
	return 0;
}

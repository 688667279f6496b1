/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_move_event.c - whatever is read as a move has good ids; whatever is not says why, in the words of the log. */
#include "fuzz.h"

#include <string.h>

#include "base/arena.h"
#include "domain/lease.h"
#include "domain/move_event.h"

/* Ids do not change by being written and read, and no id is of two kinds. */
static void check_id(struct str id)
{
	must(!(account_id_is_ok(id) && move_is_parent(id)));
	must(!move_is_ou(id) || move_is_parent(id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena        a = { 0 };
	struct str          text = str_of((const char *)data, size);
	struct move_problem problem = { .kind = MOVE_PROBLEM_COUNT };
	struct move_event   m;
	enum rc             rc = move_event_parse(text, &a, &m, &problem);

	check_id(text);
	if (rc) {
		must(rc == RC_INVALID && problem.kind < MOVE_PROBLEM_COUNT && problem.details[0]);
		must(strcmp(problem.action, MOVE_PARSE_ERROR) == 0);
	} else {
		must(account_id_is_ok(m.account) && move_is_parent(m.source) && move_is_parent(m.destination));
		must(m.time_ms % 1000 == 0);
	}
	arena_fini(&a);
	return 0;
}

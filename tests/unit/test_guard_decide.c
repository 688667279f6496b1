/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard_decide.c - the rules of the guard, one after the other, without anything around them. */
#include "test.h"

#include "domain/guard.h"

#define CLEANUP_OU    STR("ou-abcd-cleanup00")
#define AVAILABLE_OU  STR("ou-abcd-availabl0")
#define QUARANTINE_OU STR("ou-abcd-quaranti0")
#define OTHER_OU      STR("ou-abcd-other0000")

/* The usual case: out of a cleanup, tracked, nothing special. */
static struct guard_facts usual(void)
{
	return (struct guard_facts){ .source = CLEANUP_OU,
		                     .destination = AVAILABLE_OU,
		                     .cleanup = CLEANUP_OU,
		                     .available = AVAILABLE_OU,
		                     .quarantine = QUARANTINE_OU,
		                     .is_tracked = true,
		                     .status = STR("CleanUp") };
}

TEST(the_usual_move_is_held_whether_the_table_is_written_already_or_not)
{
	struct guard_facts f = usual();

	CHECK(guard_decide(&f) == GUARD_HOLD);
	f.status = STR("Available");
	CHECK(guard_decide(&f) == GUARD_HOLD);
	f.has_open_hold = true; /* of the cleanup before */
	CHECK(guard_decide(&f) == GUARD_HOLD);
}

/* Each fact alone, then all the later ones too: an earlier rule wins. */
TEST(the_first_rule_that_holds_decides)
{
	struct guard_facts f = usual();

	f.ejects = true;
	CHECK(guard_decide(&f) == GUARD_EJECT);
	f.is_tagged = true;
	CHECK(guard_decide(&f) == GUARD_BYPASS);
	f.status = STR("Active");
	CHECK(guard_decide(&f) == GUARD_LEASED);
	f.status = STR("Frozen");
	CHECK(guard_decide(&f) == GUARD_LEASED);
	f.source = OTHER_OU;
	CHECK(guard_decide(&f) == GUARD_NOT_FROM_CLEANUP);
	f.status = STR("Quarantine");
	CHECK(guard_decide(&f) == GUARD_QUARANTINED);
	f.is_tracked = false;
	CHECK(guard_decide(&f) == GUARD_NOT_TRACKED);
	f.destination = OTHER_OU;
	CHECK(guard_decide(&f) == GUARD_ELSEWHERE);
	f.has_open_hold = true;
	f.destination = QUARANTINE_OU;
	CHECK(guard_decide(&f) == GUARD_LOCKED);
	f.destination = CLEANUP_OU;
	CHECK(guard_decide(&f) == GUARD_CLEANED_AGAIN);
	f.is_old = true;
	CHECK(guard_decide(&f) == GUARD_OLD);
	f.is_repeat = true;
	CHECK(guard_decide(&f) == GUARD_REPEAT);
	f.has_failed = true;
	CHECK(guard_decide(&f) == GUARD_FAILED_CALL);
}

TEST(our_own_moves_start_nothing)
{
	struct guard_facts f = usual();

	f.has_open_hold = true;
	f.source = AVAILABLE_OU;
	f.destination = QUARANTINE_OU;
	CHECK(guard_decide(&f) == GUARD_ELSEWHERE); /* holding */
	f.source = QUARANTINE_OU;
	f.destination = AVAILABLE_OU;
	f.status = STR("Available");
	CHECK(guard_decide(&f) == GUARD_NOT_FROM_CLEANUP); /* releasing */
}

TEST(nothing_is_asked_for_that_does_not_decide)
{
	struct guard_facts f = usual();

	CHECK(guard_needs_table(&f) && guard_needs_tag(&f));
	f.status = STR("Active");
	CHECK(!guard_needs_tag(&f));
	f.destination = OTHER_OU;
	CHECK(!guard_needs_table(&f) && !guard_needs_tag(&f));
}

TEST(a_hold_is_released_from_quarantine_alone)
{
	struct str q = QUARANTINE_OU, a = AVAILABLE_OU;

	CHECK(guard_decide_release(true, STR("Quarantine"), q, q, a) == GUARD_RELEASE);
	CHECK(guard_decide_release(true, STR("Quarantine"), a, q, a) == GUARD_RELEASE); /* moved already */
	CHECK(guard_decide_release(true, STR("Quarantine"), OTHER_OU, q, a) == GUARD_RELEASE_PLACE);
	CHECK(guard_decide_release(true, STR("CleanUp"), q, q, a) == GUARD_RELEASE_STATUS);
	CHECK(guard_decide_release(true, STR("Available"), q, q, a) == GUARD_RELEASE_AVAILABLE);
	CHECK(guard_decide_release(false, STR(""), q, q, a) == GUARD_RELEASE_UNTRACKED);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_sandbox.c - the life of a sandbox: the whole table, what follows from it, and each rule at its edges. */
#include "test.h"

#include <string.h>

#include "domain/sandbox.h"

enum { REFUSED = -1, NOW = 1000000, HOUR = 3600 };

static const struct wall now = { NOW * 1000ll };

/* One row per event, one column per state: where it leads. clang-format off keeps the columns. */
/* clang-format off */
#define AVAIL SANDBOX_AVAILABLE
#define ALLOC SANDBOX_ALLOCATED
#define PEND  SANDBOX_PENDING_DELETION
#define STALE SANDBOX_STALE
#define FAIL  SANDBOX_DELETION_FAILED
#define GONE  SANDBOX_GONE
#define no    REFUSED
static const int expected[SANDBOX_EVENT_COUNT][SANDBOX_STATE_COUNT] = {
	/*                                available  allocated  pending    stale      failed */
	[SANDBOX_ON_SEEN]           = { AVAIL,     no,        no,        AVAIL,     no    },
	[SANDBOX_ON_MISSED]         = { STALE,     no,        no,        no,        no    },
	[SANDBOX_ON_CLAIM]          = { ALLOC,     no,        no,        no,        no    },
	[SANDBOX_ON_GIVE_BACK]      = { no,        PEND,      no,        no,        no    },
	[SANDBOX_ON_EXPIRE]         = { no,        PEND,      no,        no,        no    },
	[SANDBOX_ON_DELETED]        = { no,        no,        GONE,      no,        no    },
	[SANDBOX_ON_DELETE_LATER]   = { no,        no,        PEND,      no,        no    },
	[SANDBOX_ON_GIVE_UP]        = { no,        no,        FAIL,      no,        no    },
	[SANDBOX_ON_RETRY]          = { no,        no,        no,        no,        PEND  },
	[SANDBOX_ON_QUARANTINE]     = { STALE,     STALE,     STALE,     STALE,     STALE },
	[SANDBOX_ON_RELEASE_UNUSED] = { no,        no,        no,        AVAIL,     no    },
	[SANDBOX_ON_RELEASE_USED]   = { no,        no,        no,        PEND,      no    },
	[SANDBOX_ON_DISCARD]        = { PEND,      PEND,      no,        PEND,      no    },
	[SANDBOX_ON_REMOVE]         = { GONE,      GONE,      GONE,      GONE,      GONE  },
};
#undef no
/* clang-format on */

static struct sandbox in_state(enum sandbox_state state)
{
	struct sandbox s = { .sandbox_id = STR("sb"),
		             .external_id = STR("acc"),
		             .name = STR("lab"),
		             .status = state,
		             .lab_duration_hours = 4,
		             .last_synced = NOW - 10,
		             .created_at = 1,
		             .updated_at = 1 };

	if (state == SANDBOX_AVAILABLE || state == SANDBOX_STALE)
		return s;
	s.allocated_to_track = STR("owner");
	s.allocated_at = NOW - HOUR;
	if (state != SANDBOX_ALLOCATED)
		s.deletion_requested_at = NOW - 60;
	return s;
}

TEST(every_event_in_every_state_does_what_the_table_says)
{
	for (int on = 0; on < SANDBOX_EVENT_COUNT; on++)
		for (int from = 0; from < SANDBOX_STATE_COUNT; from++) {
			const struct sandbox_step *step = sandbox_step((enum sandbox_state)from,
			                                               (enum sandbox_event)on);
			struct sandbox             s = in_state((enum sandbox_state)from), before = s;
			struct err                 e = { 0 };
			enum rc                    rc = sandbox_apply(&s, (enum sandbox_event)on, now, &e);
			char                       label[128];

			snprintf(label, sizeof(label), "%s: event %d", sandbox_state_name((enum sandbox_state)from),
			         on);
			CASE(label);
			CHECK((step ? (int)step->to : REFUSED) == expected[on][from]);
			if (step) {
				CHECK(rc == RC_OK && s.status == step->to && s.updated_at == NOW);
				continue;
			}
			CHECK(rc == RC_CONFLICT && memcmp(&s, &before, sizeof(s)) == 0);
			CHECK(strstr(e.msg, sandbox_state_name((enum sandbox_state)from)) != NULL);
		}
}

TEST(the_text_of_the_states_names_all_of_them)
{
	CLEANUP(buf_fini) struct buf text = BUF(200);

	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		buf_addf(&text, "%s%s", !i ? "" : i == SANDBOX_STATE_COUNT - 1 ? " or " : ", ", sandbox_state_names[i]);
	CHECK(str_eq(buf_str(&text), STR(SANDBOX_STATES_TEXT)));
}

/* Every state that can be reached from `from` in any number of steps. */
static void find_reachable(enum sandbox_state from, bool ret[SANDBOX_STATE_COUNT + 1])
{
	memset(ret, 0, SANDBOX_STATE_COUNT + 1);
	ret[from] = true;
	for (int round = 0; round <= SANDBOX_STATE_COUNT; round++)
		for (int s = 0; s < SANDBOX_STATE_COUNT; s++)
			for (int on = 0; ret[s] && on < SANDBOX_EVENT_COUNT; on++) {
				const struct sandbox_step *step = sandbox_step((enum sandbox_state)s,
				                                               (enum sandbox_event)on);

				if (step)
					ret[step->to] = true;
			}
}

TEST(every_state_can_be_reached_from_available)
{
	bool is_reached[SANDBOX_STATE_COUNT + 1];

	find_reachable(SANDBOX_AVAILABLE, is_reached);
	for (int s = 0; s <= SANDBOX_STATE_COUNT; s++) {
		CASE(sandbox_state_name((enum sandbox_state)s));
		CHECK(is_reached[s]);
	}
}

TEST(gone_can_be_reached_from_every_state)
{
	bool is_reached[SANDBOX_STATE_COUNT + 1];

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		CASE(sandbox_state_name((enum sandbox_state)s));
		find_reachable((enum sandbox_state)s, is_reached);
		CHECK(is_reached[SANDBOX_GONE]);
	}
}

/* The table alone has a way over `stale`; the functions that use it close that one. So: every sequence of calls. */
static void try_all_calls(struct sandbox s, int depth)
{
	const struct csp_account account = { STR("sb"), STR("acc"), STR("renamed"), STR(""), 0 };
	bool                     is_changed;

	CHECK(sandbox_ok(&s) && s.status != SANDBOX_AVAILABLE);
	for (int call = 0; depth > 0 && call < 10; call++) {
		struct sandbox next = s;
		enum rc        rc = RC_OK;

		switch (call) {
		case 0: rc = sandbox_give_back(&next, STR("owner"), now, &is_changed, NULL); break;
		case 1: rc = sandbox_apply(&next, SANDBOX_ON_EXPIRE, now, NULL); break;
		case 2: rc = sandbox_deletion_failed(&next, 3, 60, STR("why"), now, NULL); break;
		case 3: rc = sandbox_deletion_failed(&next, 0, 60, STR("why"), now, NULL); break;
		case 4: rc = sandbox_retry_deletion(&next, now, NULL); break;
		case 5: rc = sandbox_quarantine(&next, STR("why"), now, NULL); break;
		case 6: rc = sandbox_release(&next, now, NULL); break;
		case 7: rc = sandbox_see(&next, &account, wall_from_sec(NOW + 2 * HOUR)) ? RC_OK : RC_CONFLICT; break;
		case 8: rc = sandbox_apply(&next, SANDBOX_ON_MISSED, now, NULL); break;
		case 9:
			rc = sandbox_claim(&next, &(struct sandbox_claim){ .owner = STR("x"), .lab_hours = 1 }, now,
			                   NULL);
		}
		if (!rc)
			try_all_calls(next, depth - 1);
	}
}

TEST(nothing_leads_from_allocated_back_to_available)
{
	try_all_calls(in_state(SANDBOX_ALLOCATED), 5);
}

static void keep_the_rules(struct sandbox s)
{
	const struct csp_account account = { STR("sb"), STR("acc"), STR("renamed"), STR(""), 0 };
	struct sandbox_claim     claim = { .owner = STR("x"), .lab_hours = 1 };
	struct wall              later = wall_from_sec(NOW + 2 * HOUR);
	bool                     is_changed;

	for (int call = 0; call < 12; call++) {
		struct sandbox next = s;
		enum rc        rc = RC_CONFLICT;

		switch (call) {
		case 0: rc = sandbox_give_back(&next, STR("owner"), now, &is_changed, NULL); break;
		case 1: rc = sandbox_apply(&next, SANDBOX_ON_EXPIRE, now, NULL); break;
		case 2: rc = sandbox_deletion_failed(&next, 3, 60, STR("why"), now, NULL); break;
		case 3: rc = sandbox_deletion_failed(&next, 0, 60, STR("why"), now, NULL); break;
		case 4: rc = sandbox_retry_deletion(&next, now, NULL); break;
		case 5: rc = sandbox_quarantine(&next, STR("why"), now, NULL); break;
		case 6: rc = sandbox_release(&next, now, NULL); break;
		case 7: rc = sandbox_see(&next, &account, later) ? RC_OK : RC_CONFLICT; break;
		case 8: rc = sandbox_apply(&next, SANDBOX_ON_MISSED, now, NULL); break;
		case 9: rc = sandbox_claim(&next, &claim, now, NULL); break;
		case 10: rc = sandbox_discard(&next, now, NULL); break;
		default: (void)(sandbox_is_live(&s, now) + sandbox_is_orphaned(&s, 60, now));
		}
		CHECK(rc || sandbox_ok(&next));
	}
}

/* Records come from outside too: whatever sandbox_ok() lets through, no call makes something of it that it does not. */
TEST(whatever_keeps_the_rules_keeps_them_after_each_call)
{
	static const int64_t times[] = { 0, NOW - 60, -1 };
	struct sandbox       s;
	int                  kept = 0;

	for (int bits = 0; bits < SANDBOX_STATE_COUNT * 3 * 3 * 2 * 2 * 2; bits++) {
		int left = bits / SANDBOX_STATE_COUNT;

		s = in_state(SANDBOX_STALE);
		s.status = (enum sandbox_state)(bits % SANDBOX_STATE_COUNT);
		s.allocated_at = times[left % 3];
		s.deletion_requested_at = times[left / 3 % 3];
		s.allocated_to_track = left / 9 % 2 ? STR("owner") : STR("");
		s.quarantine_reason = left / 18 % 2 ? STR("why") : STR("");
		s.lab_duration_hours = left / 36 % 2 ? 4 : 0;
		if (!sandbox_ok(&s))
			continue;
		kept++;
		keep_the_rules(s);
	}
	CHECK(kept >= SANDBOX_STATE_COUNT);
}

TEST(what_is_free_was_never_to_be_deleted)
{
	struct sandbox s = in_state(SANDBOX_AVAILABLE);

	s.deletion_requested_at = NOW;
	CHECK(!sandbox_ok(&s));
}

/* Of whom only a part is known, from outside. */
TEST(a_stale_one_that_was_used_does_not_come_back_and_is_deleted_when_it_is_released)
{
	const struct csp_account account = { STR("sb"), STR("acc"), STR("lab"), STR(""), 0 };

	for (int i = 0; i < 3; i++) {
		struct sandbox s = in_state(SANDBOX_STALE);

		s.allocated_to_track = i == 0 ? STR("owner") : STR("");
		s.allocated_at = i == 1 ? NOW - HOUR : 0;
		s.deletion_requested_at = i == 2 ? NOW - 60 : 0;
		CHECK(sandbox_ok(&s) && !sandbox_see(&s, &account, now) && s.status == SANDBOX_STALE);
		CHECK(sandbox_quarantine(&s, STR("why"), now, NULL) == RC_OK && !sandbox_see(&s, &account, now));
		CHECK(sandbox_release(&s, now, NULL) == RC_OK && s.status == SANDBOX_PENDING_DELETION);
	}
}

TEST(a_claim_notes_who_and_until_when)
{
	struct sandbox       s = in_state(SANDBOX_AVAILABLE);
	struct sandbox_claim claim = { STR("me"), STR("key"), STR("lab 7"), 6 };

	CHECK(sandbox_claim(&s, &claim, now, NULL) == RC_OK);
	CHECK(s.status == SANDBOX_ALLOCATED && s.allocated_at == NOW && s.lab_duration_hours == 6);
	CHECK(str_eq(s.allocated_to_track, STR("me")) && str_eq(s.idempotency_key, STR("key")));
	CHECK(str_eq(s.track_name, STR("lab 7")) && sandbox_expires_at(&s) == NOW + 6 * HOUR);
}

TEST(without_a_key_the_owner_stands_in)
{
	struct sandbox s = in_state(SANDBOX_AVAILABLE);

	CHECK(sandbox_claim(&s, &(struct sandbox_claim){ .owner = STR("me"), .lab_hours = 1 }, now, NULL) == RC_OK);
	CHECK(str_eq(s.idempotency_key, STR("me")));
}

TEST(only_an_available_one_can_be_claimed)
{
	for (int state = SANDBOX_ALLOCATED; state < SANDBOX_STATE_COUNT; state++) {
		struct sandbox s = in_state((enum sandbox_state)state);

		CASE(sandbox_state_name((enum sandbox_state)state));
		CHECK(sandbox_claim(&s, &(struct sandbox_claim){ .owner = STR("me"), .lab_hours = 1 }, now, NULL) ==
		      RC_CONFLICT);
	}
}

TEST(an_allocation_is_live_until_one_second_before_its_end)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	int64_t        end = sandbox_expires_at(&s);

	CHECK(end == s.allocated_at + 4 * HOUR);
	CHECK(sandbox_is_live(&s, wall_from_sec(end - 1)));
	CHECK(!sandbox_is_live(&s, wall_from_sec(end)));
	CHECK(!sandbox_is_live(&s, wall_from_sec(end + 1)));
	s.status = SANDBOX_STALE;
	CHECK(!sandbox_is_live(&s, wall_from_sec(end - 1)));
	s = in_state(SANDBOX_AVAILABLE);
	CHECK(sandbox_expires_at(&s) == 0 && !sandbox_is_live(&s, now));
}

TEST(giving_back_twice_is_the_same_as_once)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	bool           is_changed;

	CHECK(sandbox_give_back(&s, STR("owner"), now, &is_changed, NULL) == RC_OK && is_changed);
	CHECK(s.status == SANDBOX_PENDING_DELETION && s.deletion_requested_at == NOW);
	CHECK(sandbox_give_back(&s, STR("owner"), (struct wall){ now.ms + 9000 }, &is_changed, NULL) == RC_OK);
	CHECK(!is_changed && s.deletion_requested_at == NOW);
	s.status = SANDBOX_DELETION_FAILED;
	CHECK(sandbox_give_back(&s, STR("owner"), now, &is_changed, NULL) == RC_OK && !is_changed);
}

TEST(the_time_of_giving_back_outlives_retries_and_quarantine)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	struct wall    later = { now.ms + 3600000 };
	bool           is_changed;

	CHECK(sandbox_give_back(&s, STR("owner"), now, &is_changed, NULL) == RC_OK);
	CHECK(sandbox_deletion_failed(&s, 0, 1, STR("why"), later, NULL) == RC_OK);
	CHECK(sandbox_retry_deletion(&s, later, NULL) == RC_OK);
	CHECK(s.deletion_requested_at == NOW);
	CHECK(sandbox_quarantine(&s, STR(""), later, NULL) == RC_OK);
	CHECK(sandbox_release(&s, later, NULL) == RC_OK);
	CHECK(s.status == SANDBOX_PENDING_DELETION && s.deletion_requested_at == NOW);
}

TEST(giving_back_ends_with_the_allocation)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	int64_t        end = sandbox_expires_at(&s);
	struct err     e = { 0 };
	bool           is_changed = true;

	CHECK(sandbox_give_back(&s, STR("owner"), wall_from_sec(end), &is_changed, &e) == RC_DENIED);
	CHECK(strcmp(err_code(&e), "ALLOCATION_EXPIRED") == 0 && !is_changed && s.status == SANDBOX_ALLOCATED);
	CHECK(sandbox_give_back(&s, STR("owner"), wall_from_sec(end - 1), &is_changed, NULL) == RC_OK && is_changed);
}

TEST(only_the_owner_may_look_and_give_back)
{
	static const char *const others[] = { "", "own", "owner2", "Owner" };
	bool                     is_changed;

	for (int state = 0; state < SANDBOX_STATE_COUNT; state++)
		for (size_t i = 0; i < ARRAY_LEN(others); i++) {
			struct sandbox s = in_state((enum sandbox_state)state), before = s;
			struct err     e = { 0 };

			CASE(sandbox_state_name((enum sandbox_state)state));
			CHECK(sandbox_check_owner(&s, str_from(others[i]), &e) == RC_DENIED);
			CHECK(strcmp(err_code(&e), "NOT_SANDBOX_OWNER") == 0 && !strstr(e.msg, "owner"));
			CHECK(sandbox_give_back(&s, str_from(others[i]), now, &is_changed, NULL) == RC_DENIED);
			CHECK(!is_changed && memcmp(&s, &before, sizeof(s)) == 0);
			CHECK((sandbox_check_owner(&s, STR("owner"), NULL) == RC_OK) == (s.allocated_at != 0));
		}
}

TEST(a_sandbox_in_quarantine_cannot_be_given_back)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	struct err     e = { 0 };
	bool           is_changed;

	CHECK(sandbox_quarantine(&s, STR("dirty"), now, NULL) == RC_OK);
	CHECK(sandbox_give_back(&s, STR("owner"), now, &is_changed, &e) == RC_CONFLICT && !is_changed);
	CHECK(strstr(e.msg, " was put in quarantine by an operator; there is nothing more for you to do"));
	CHECK(sandbox_check_owner(&s, STR("owner"), NULL) == RC_OK);
}

TEST(an_orphan_is_one_second_over_its_grace)
{
	struct sandbox s = in_state(SANDBOX_ALLOCATED);
	int64_t        end = sandbox_expires_at(&s);

	CHECK(!sandbox_is_orphaned(&s, 1800, wall_from_sec(end + 1800)));
	CHECK(sandbox_is_orphaned(&s, 1800, wall_from_sec(end + 1801)));
	CHECK(!sandbox_is_orphaned(&s, 0, wall_from_sec(end)));
	CHECK(sandbox_is_orphaned(&s, 0, wall_from_sec(end + 1)));
	s.status = SANDBOX_PENDING_DELETION;
	CHECK(!sandbox_is_orphaned(&s, 0, wall_from_sec(end + 9999)));
}

TEST(the_wait_after_a_failed_deletion_doubles_up_to_a_limit)
{
	struct sandbox s = in_state(SANDBOX_PENDING_DELETION);

	for (int failures = 1; failures <= 20; failures++) {
		int64_t doublings = failures - 1 < 10 ? failures - 1 : 10;

		CHECK(sandbox_deletion_failed(&s, 100, 300, STR("no"), now, NULL) == RC_OK);
		CHECK(s.status == SANDBOX_PENDING_DELETION && s.deletion_retry_count == failures);
		CHECK(s.next_deletion_at == NOW + (300ll << doublings));
	}
	CHECK(str_eq(s.last_error, STR("no")));
}

TEST(a_deletion_is_given_up_after_more_than_the_allowed_attempts)
{
	for (int64_t max = 0; max < 5; max++) {
		struct sandbox s = in_state(SANDBOX_PENDING_DELETION);

		for (int64_t i = 0; i < max; i++) {
			CHECK(sandbox_deletion_failed(&s, max, 1, STR("no"), now, NULL) == RC_OK);
			CHECK(s.status == SANDBOX_PENDING_DELETION);
		}
		CHECK(sandbox_deletion_failed(&s, max, 1, STR("no"), now, NULL) == RC_OK);
		CHECK(s.status == SANDBOX_DELETION_FAILED && s.deletion_retry_count == max + 1);
		CHECK(s.next_deletion_at == 0); /* nobody tries again */
		CHECK(sandbox_deletion_failed(&s, max, 1, STR("no"), now, NULL) == RC_CONFLICT);
	}
}

TEST(a_retry_starts_counting_anew)
{
	struct sandbox s = in_state(SANDBOX_PENDING_DELETION);
	struct err     e = { 0 };

	CHECK(sandbox_retry_deletion(&s, now, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, " is pending_deletion; only one that is deletion_failed can be retried"));
	CHECK(sandbox_deletion_failed(&s, 0, 300, STR("no"), now, NULL) == RC_OK);
	CHECK(sandbox_retry_deletion(&s, now, NULL) == RC_OK);
	CHECK(s.status == SANDBOX_PENDING_DELETION && s.deletion_retry_count == 0 && s.next_deletion_at == 0);
	CHECK(str_eq(s.last_error, STR("no")));
}

TEST(whatever_is_in_quarantine_is_released_to_where_its_past_allows)
{
	for (int state = 0; state < SANDBOX_STATE_COUNT; state++) {
		struct sandbox s = in_state((enum sandbox_state)state);
		bool           was_used = s.allocated_at != 0;

		CASE(sandbox_state_name((enum sandbox_state)state));
		s.deletion_retry_count = was_used ? 2 : 0;
		CHECK(sandbox_release(&s, now, NULL) == RC_CONFLICT);
		CHECK(sandbox_quarantine(&s, STR("odd"), now, NULL) == RC_OK);
		CHECK(s.status == SANDBOX_STALE && str_eq(s.quarantine_reason, STR("odd")) && sandbox_ok(&s));
		CHECK(sandbox_release(&s, now, NULL) == RC_OK);
		CHECK(s.status == (was_used ? SANDBOX_PENDING_DELETION : SANDBOX_AVAILABLE));
		CHECK(s.quarantine_reason.n == 0 && s.deletion_retry_count == 0 && s.next_deletion_at == 0);
		CHECK(sandbox_release(&s, now, NULL) == RC_CONFLICT);
	}
}

TEST(a_quarantine_always_has_a_reason)
{
	struct sandbox s = in_state(SANDBOX_AVAILABLE);

	CHECK(sandbox_quarantine(&s, STR(""), now, NULL) == RC_OK && s.quarantine_reason.n > 0);
	CHECK(sandbox_quarantine(&s, STR("better"), now, NULL) == RC_OK);
	CHECK(str_eq(s.quarantine_reason, STR("better")));
}

TEST(sync_touches_only_free_ones_and_those_it_set_aside_itself)
{
	const struct csp_account account = { STR("sb"), STR("acc"), STR("new name"), STR("sf"), 0 };

	for (int state = 0; state < SANDBOX_STATE_COUNT; state++) {
		struct sandbox s = in_state((enum sandbox_state)state), before = s;
		bool           is_seen = sandbox_see(&s, &account, now);

		CASE(sandbox_state_name((enum sandbox_state)state));
		CHECK(is_seen == (state == SANDBOX_AVAILABLE || state == SANDBOX_STALE));
		if (!is_seen) {
			CHECK(memcmp(&s, &before, sizeof(s)) == 0);
			continue;
		}
		CHECK(s.status == SANDBOX_AVAILABLE && s.last_synced == NOW);
		CHECK(str_eq(s.name, STR("new name")) && str_eq(s.sfdc_account_id, STR("sf")));
	}
}

TEST(sync_leaves_quarantined_and_used_stale_ones_alone)
{
	const struct csp_account account = { STR("sb"), STR("acc"), STR("lab"), STR(""), 0 };
	struct sandbox           s = in_state(SANDBOX_STALE);

	s.quarantine_reason = STR("odd");
	CHECK(!sandbox_see(&s, &account, now) && s.status == SANDBOX_STALE);
	s.quarantine_reason = STR("");
	s.allocated_to_track = STR("owner");
	s.allocated_at = 1;
	CHECK(!sandbox_see(&s, &account, now) && s.status == SANDBOX_STALE);
}

TEST(sync_writes_an_unchanged_one_once_an_hour)
{
	const struct csp_account same = { STR("sb"), STR("acc"), STR("lab"), STR(""), 0 };
	struct csp_account       changed = same;
	struct sandbox           s = in_state(SANDBOX_AVAILABLE);

	s.last_synced = NOW - HOUR + 1;
	CHECK(!sandbox_see(&s, &same, now));
	changed.sfdc_account_id = STR("sf");
	CHECK(sandbox_see(&s, &changed, now));
	s = in_state(SANDBOX_AVAILABLE);
	s.last_synced = NOW - HOUR;
	CHECK(sandbox_see(&s, &same, now) && s.last_synced == NOW);
}

TEST(a_new_record_has_the_vendors_date_or_todays)
{
	struct csp_account account = { STR("sb"), STR("acc"), STR("lab"), STR("sf"), 77 };
	struct sandbox     s = sandbox_from_account(&account, 4, now);

	CHECK(s.created_at == 77 && s.last_synced == NOW && s.status == SANDBOX_AVAILABLE && sandbox_ok(&s));
	CHECK(str_eq(s.sfdc_account_id, STR("sf")));
	account.created_at = 0;
	CHECK(sandbox_from_account(&account, 4, now).created_at == NOW);
}

TEST(a_record_that_breaks_its_rules_is_noticed)
{
	struct sandbox s = in_state(SANDBOX_AVAILABLE);

	CHECK(sandbox_ok(&s));
	s.allocated_at = 1;
	CHECK(!sandbox_ok(&s));
	s = in_state(SANDBOX_AVAILABLE);
	s.quarantine_reason = STR("x");
	CHECK(!sandbox_ok(&s));
	s = in_state(SANDBOX_ALLOCATED);
	s.allocated_to_track = STR("");
	CHECK(!sandbox_ok(&s));
	s = in_state(SANDBOX_ALLOCATED);
	s.deletion_requested_at = 1;
	CHECK(!sandbox_ok(&s));
	s = in_state(SANDBOX_PENDING_DELETION);
	s.deletion_requested_at = 0;
	CHECK(!sandbox_ok(&s));
	s = in_state(SANDBOX_STALE);
	s.external_id = STR("");
	CHECK(!sandbox_ok(&s));
}

static struct str repeated(char *room, char c, size_t n)
{
	memset(room, c, n);
	return str_of(room, n);
}

TEST(labels_are_1_to_128_visible_ascii_characters)
{
	char room[256];

	CHECK(!sandbox_is_label(STR("")) && sandbox_is_label(STR("x")));
	CHECK(sandbox_is_label(repeated(room, 'x', 128)) && !sandbox_is_label(repeated(room, 'x', 129)));
	for (int c = 0; c < 256; c++) {
		char text[3] = { 'a', (char)c, 'b' };

		CHECK(sandbox_is_label(str_of(text, 3)) == (c > ' ' && c < 127));
	}
}

TEST(ids_are_1_to_128_of_a_few_characters)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-/";
	char              room[256];

	CHECK(!sandbox_is_id(STR("")) && sandbox_is_id(STR("x")));
	CHECK(sandbox_is_id(repeated(room, 'x', 128)) && !sandbox_is_id(repeated(room, 'x', 129)));
	for (int c = 0; c < 256; c++) {
		char text = (char)c;

		CHECK(sandbox_is_id(str_of(&text, 1)) == (c != 0 && strchr(allowed, c) != NULL));
	}
}

TEST(state_names_are_read_back)
{
	enum sandbox_state state;

	for (int s = 0; s < SANDBOX_STATE_COUNT; s++) {
		CHECK(sandbox_state_parse(str_from(sandbox_state_names[s]), &state));
		CHECK(state == (enum sandbox_state)s);
	}
	CHECK(!sandbox_state_parse(STR("(gone)"), &state) && !sandbox_state_parse(STR(""), &state));
	CHECK(!sandbox_state_parse(STR("Available"), &state));
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_domain.c - leases and accounts as tables, what follows from them, ids and texts, the operator's limits. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/base64.h"
#include "domain/account.h"
#include "domain/lease.h"
#include "domain/lease_template.h"

enum { REFUSED = -1, NOW = 1000000000 };

#define UUID "0f8fad5b-d9cb-469f-a165-70867728950e"

static const struct wall now = { NOW };

/* --- the table of leases --- */

/* One row per event, one column per status that anything leads out of; all others refuse everything. */
/* clang-format off */
#define PEND LEASE_PENDING_APPROVAL
#define DENY LEASE_APPROVAL_DENIED
#define PROV LEASE_PROVISIONING
#define ACTV LEASE_ACTIVE
#define FROZ LEASE_FROZEN
#define EXPD LEASE_EXPIRED
#define EXCD LEASE_BUDGET_EXCEEDED
#define TERM LEASE_MANUALLY_TERMINATED
#define QUAR LEASE_ACCOUNT_QUARANTINED
#define EJEC LEASE_EJECTED
#define FAIL LEASE_PROVISIONING_FAILED
#define no   REFUSED
static const int expected[LEASE_EVENT_COUNT][LEASE_STATUS_COUNT] = {
	/*                       pending denied prov. active frozen and the six ends */
	[LEASE_ON_APPROVE]    = { PROV,   no,    no,   no,    no,   no, no, no, no, no, no },
	[LEASE_ON_PUBLISH]    = { no,     no,    ACTV, no,    no,   no, no, no, no, no, no },
	[LEASE_ON_DENY]       = { DENY,   no,    no,   no,    no,   no, no, no, no, no, no },
	[LEASE_ON_WITHDRAW]   = { DENY,   no,    no,   no,    no,   no, no, no, no, no, no },
	[LEASE_ON_RESET]      = { no,     no,    PEND, no,    no,   no, no, no, no, no, no },
	[LEASE_ON_FAIL]       = { no,     no,    FAIL, no,    no,   no, no, no, no, no, no },
	[LEASE_ON_FREEZE]     = { no,     no,    no,   FROZ,  no,   no, no, no, no, no, no },
	[LEASE_ON_UNFREEZE]   = { no,     no,    no,   no,    ACTV, no, no, no, no, no, no },
	[LEASE_ON_EXPIRE]     = { no,     no,    EXPD, EXPD,  EXPD, no, no, no, no, no, no },
	[LEASE_ON_EXCEED]     = { no,     no,    EXCD, EXCD,  EXCD, no, no, no, no, no, no },
	[LEASE_ON_TERMINATE]  = { no,     no,    TERM, TERM,  TERM, no, no, no, no, no, no },
	[LEASE_ON_QUARANTINE] = { no,     no,    QUAR, QUAR,  QUAR, no, no, no, no, no, no },
	[LEASE_ON_EJECT]      = { no,     no,    EJEC, EJEC,  EJEC, no, no, no, no, no, no },
};
/* clang-format on */

static struct lease in_status(enum lease_status status)
{
	enum lease_group group = lease_group(status);
	struct lease     l = { .uuid = STR(UUID),
		               .user_email = STR("Ann@example.com"),
		               .user_key = STR("ann@example.com"),
		               .template_uuid = STR(UUID),
		               .template_name = STR("small"),
		               .duration_ms = 24 * (int64_t)LEASE_HOUR_MS,
		               .max_spend = 50 * (int64_t)LEASE_USD,
		               .status = status };

	if (group == LEASE_GROUP_MONITORED || group == LEASE_GROUP_ENDED) {
		l.account_id = STR("111122223333");
		l.approved_by = STR("boss@example.com");
		l.start_ms = l.last_checked_ms = NOW - LEASE_HOUR_MS;
	}
	if (group == LEASE_GROUP_ENDED)
		l.end_ms = NOW - 1;
	if (group == LEASE_GROUP_ENDED || group == LEASE_GROUP_DENIED)
		l.ttl_sec = NOW;
	return l;
}

/* What the services add around lease_apply(). */
static enum rc apply_as_a_service(struct lease *l, enum lease_event on, struct err *e)
{
	enum rc rc = lease_apply(l, on, now, e);

	if (rc)
		return rc;
	if (on == LEASE_ON_APPROVE) {
		l->account_id = STR("111122223333");
		l->approved_by = STR("boss@example.com");
	}
	if (!lease_is_live(l->status))
		l->ttl_sec = NOW / 1000 + 1;
	return RC_OK;
}

TEST(every_event_in_every_status_does_what_the_table_says)
{
	for (int on = 0; on < LEASE_EVENT_COUNT; on++)
		for (int from = 0; from < LEASE_STATUS_COUNT; from++) {
			struct lease l = in_status((enum lease_status)from), before = l;
			struct err   e = { 0 };
			enum rc      rc = apply_as_a_service(&l, (enum lease_event)on, &e);
			char         label[128];

			snprintf(label, sizeof(label), "%s: %s", lease_status_names[from], lease_event_names[on]);
			CASE(label);
			CHECK(lease_ok(&before));
			if (expected[on][from] != REFUSED) {
				CHECK(rc == RC_OK && (int)l.status == expected[on][from] && l.edited_ms == NOW);
				CHECK(lease_ok(&l));
				continue;
			}
			CHECK(rc == RC_CONFLICT && memcmp(&l, &before, sizeof(l)) == 0);
			CHECK(strstr(e.msg, lease_status_names[from]) && strstr(e.msg, lease_event_names[on]));
		}
}

TEST(a_refusal_says_what_it_is_and_what_it_should_be)
{
	struct lease l = in_status(LEASE_EXPIRED);
	struct err   e = { 0 };

	CHECK(lease_apply(&l, LEASE_ON_TERMINATE, now, &e) == RC_CONFLICT);
	CHECK(strcmp(e.msg, "lease " UUID " is Expired; to terminate, it must be Provisioning, Active or Frozen") == 0);
	err_clear(&e);
	CHECK(lease_apply(&l, LEASE_ON_UNFREEZE, now, &e) == RC_CONFLICT);
	CHECK(strcmp(e.msg, "lease " UUID " is Expired; to unfreeze, it must be Frozen") == 0);
}

static void find_reachable(enum lease_status from, bool ret[LEASE_STATUS_COUNT])
{
	memset(ret, 0, LEASE_STATUS_COUNT);
	ret[from] = true;
	for (int round = 0; round < LEASE_STATUS_COUNT; round++)
		for (int s = 0; s < LEASE_STATUS_COUNT; s++)
			for (int on = 0; ret[s] && on < LEASE_EVENT_COUNT; on++) {
				const struct lease_step *step = lease_step((enum lease_status)s, (enum lease_event)on);

				if (step)
					ret[step->to] = true;
			}
}

TEST(every_status_can_be_reached_from_a_request)
{
	bool is_reached[LEASE_STATUS_COUNT];

	find_reachable(LEASE_PENDING_APPROVAL, is_reached);
	for (int s = 0; s < LEASE_STATUS_COUNT; s++) {
		CASE(lease_status_names[s]);
		CHECK(is_reached[s]);
	}
}

TEST(nothing_but_an_end_is_a_dead_end)
{
	for (int s = 0; s < LEASE_STATUS_COUNT; s++) {
		bool is_reached[LEASE_STATUS_COUNT], leads_on = false, leads_to_an_end = false;

		find_reachable((enum lease_status)s, is_reached);
		for (int to = 0; to < LEASE_STATUS_COUNT; to++) {
			leads_on = leads_on || (to != s && is_reached[to]);
			leads_to_an_end = leads_to_an_end || (is_reached[to] && !lease_is_live((enum lease_status)to));
		}
		CASE(lease_status_names[s]);
		CHECK(leads_to_an_end && leads_on == lease_is_live((enum lease_status)s));
	}
}

TEST(nobody_is_active_without_having_been_provisioning)
{
	for (int s = 0; s < LEASE_STATUS_COUNT; s++)
		for (int on = 0; on < LEASE_EVENT_COUNT; on++) {
			const struct lease_step *step = lease_step((enum lease_status)s, (enum lease_event)on);

			if (step && step->to == LEASE_ACTIVE)
				CHECK(s == LEASE_PROVISIONING || s == LEASE_FROZEN);
		}
}

TEST(pending_and_monitored_leases_count_against_the_limit)
{
	int live = 0;

	for (int s = 0; s < LEASE_STATUS_COUNT; s++)
		live += lease_is_live((enum lease_status)s);
	CHECK(live == 4 && lease_is_live(LEASE_PENDING_APPROVAL) && lease_is_live(LEASE_PROVISIONING));
	CHECK(lease_is_live(LEASE_ACTIVE) && lease_is_live(LEASE_FROZEN));
}

TEST(a_lease_begins_when_it_is_published)
{
	struct lease l = in_status(LEASE_PROVISIONING);

	CHECK(lease_apply(&l, LEASE_ON_PUBLISH, now, NULL) == RC_OK);
	CHECK(l.start_ms == NOW && l.last_checked_ms == NOW && l.expires_ms == NOW + 24 * (int64_t)LEASE_HOUR_MS);
}

TEST(a_lease_without_a_duration_is_published_without_an_end)
{
	struct lease l = in_status(LEASE_PROVISIONING);

	l.duration_ms = 0;
	CHECK(lease_apply(&l, LEASE_ON_PUBLISH, now, NULL) == RC_OK);
	CHECK(l.expires_ms == 0 && lease_ok(&l) && lease_hours(&l) == 0);
}

TEST(an_end_that_was_set_while_provisioning_stays)
{
	struct lease l = in_status(LEASE_PROVISIONING);

	l.expires_ms = NOW + 5;
	CHECK(lease_apply(&l, LEASE_ON_PUBLISH, now, NULL) == RC_OK);
	CHECK(l.expires_ms == NOW + 5);
}

TEST(a_reset_lease_has_nothing_left_of_its_account)
{
	struct lease l = in_status(LEASE_PROVISIONING);

	l.expires_ms = NOW + 5;
	l.cost = l.cost_at_ms = l.rate_from_ms = l.rate_from_cost = l.projected_ms = 7;
	CHECK(lease_apply(&l, LEASE_ON_RESET, now, NULL) == RC_OK);
	CHECK(lease_ok(&l) && l.account_id.n == 0 && l.approved_by.n == 0 && l.start_ms == 0 && l.expires_ms == 0);
	CHECK(l.cost == 0 && l.cost_at_ms == 0 && l.rate_from_ms == 0 && l.rate_from_cost == 0 && l.projected_ms == 0);
	CHECK(l.duration_ms > 0 && l.max_spend > 0);
}

TEST(whoever_is_decided_about_leaves_the_line)
{
	static const enum lease_event events[] = { LEASE_ON_APPROVE, LEASE_ON_DENY, LEASE_ON_WITHDRAW };

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct lease l = in_status(LEASE_PENDING_APPROVAL);

		l.queued_ms = NOW - 1;
		l.queued_by = STR("boss@example.com");
		CASE(lease_event_names[events[i]]);
		CHECK(lease_ok(&l) && lease_apply(&l, events[i], now, NULL) == RC_OK);
		CHECK(l.queued_ms == 0 && l.queued_by.n == 0);
	}
}

TEST(hours_are_those_from_start_to_end_or_what_was_agreed)
{
	struct lease l = in_status(LEASE_ACTIVE);

	CHECK(lease_hours(&l) == 24);
	l.expires_ms = l.start_ms + 3 * (int64_t)LEASE_HOUR_MS + LEASE_HOUR_MS / 2;
	CHECK(lease_hours(&l) == 4);
	l.expires_ms--;
	CHECK(lease_hours(&l) == 3);
	l.duration_ms = 0;
	CHECK(lease_hours(&l) == 3);
	l.expires_ms = l.start_ms - 1;
	CHECK(lease_hours(&l) == 0);
}

/* --- what each status has --- */

static void drop_uuid(struct lease *l)
{
	l->uuid = STR("");
}

static void drop_email(struct lease *l)
{
	l->user_email = l->user_key = STR("");
}

static void change_key(struct lease *l)
{
	l->user_key = STR("other@example.com");
}

static void drop_template(struct lease *l)
{
	l->template_name = STR("");
}

static void flip_account(struct lease *l)
{
	l->account_id = l->account_id.n ? STR("") : STR("111122223333");
}

static void flip_approver(struct lease *l)
{
	l->approved_by = l->approved_by.n ? STR("") : STR("AUTO_APPROVED");
}

static void flip_start(struct lease *l)
{
	l->start_ms = l->start_ms ? 0 : NOW;
}

static void flip_check(struct lease *l)
{
	l->last_checked_ms = l->last_checked_ms ? 0 : NOW;
}

static void flip_end(struct lease *l)
{
	l->end_ms = l->end_ms ? 0 : NOW;
}

static void flip_ttl(struct lease *l)
{
	l->ttl_sec = l->ttl_sec ? 0 : NOW;
}

static void make_budget_negative(struct lease *l)
{
	l->max_spend = -1;
}

static void keep_for_less_than_nothing(struct lease *l)
{
	l->ttl_days = -1;
}

TEST(whoever_is_in_line_was_approved_by_somebody)
{
	struct lease l = in_status(LEASE_PENDING_APPROVAL);

	l.queued_ms = NOW;
	CHECK(!lease_ok(&l));
	l.queued_by = STR("boss@example.com");
	CHECK(lease_ok(&l));
	l.queued_ms = 0;
	CHECK(!lease_ok(&l));
}

TEST(no_status_can_do_without_its_fields_or_with_those_of_another)
{
	static const struct {
		const char *label;
		void (*spoil)(struct lease *l);
	} cases[] = {
		{ "a lease has a uuid", drop_uuid },
		{ "a lease has an owner", drop_email },
		{ "the key is the owner's email", change_key },
		{ "a lease has a template", drop_template },
		{ "the account is there from approval on", flip_account },
		{ "the approver is there from approval on", flip_approver },
		{ "the start is there from approval on", flip_start },
		{ "the last check is there from approval on", flip_check },
		{ "the end is there from the end on", flip_end },
		{ "only who is over is removed some day", flip_ttl },
		{ "a budget is not negative", make_budget_negative },
		{ "it is not kept until before its end", keep_for_less_than_nothing },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (int s = 0; s < LEASE_STATUS_COUNT; s++) {
			struct lease l = in_status((enum lease_status)s);

			CASE(cases[i].label);
			CHECK(lease_ok(&l));
			cases[i].spoil(&l);
			CHECK(!lease_ok(&l));
		}
}

/* --- accounts --- */

/* clang-format off */
static const int account_expected[ACCOUNT_EVENT_COUNT][ACCOUNT_STATUS_COUNT] = {
	/*                           Available           Active              CleanUp             Quarantine          Frozen              Exit          Cooldown */
	[ACCOUNT_ON_REGISTER]   = { no,                 no,                 no,                 no,                 no,                 no,           no                 },
	[ACCOUNT_ON_LEND]       = { ACCOUNT_ACTIVE,     no,                 no,                 no,                 no,                 no,           no                 },
	[ACCOUNT_ON_FREEZE]     = { no,                 ACCOUNT_FROZEN,     no,                 no,                 no,                 no,           no                 },
	[ACCOUNT_ON_UNFREEZE]   = { no,                 no,                 no,                 no,                 ACCOUNT_ACTIVE,     no,           no                 },
	[ACCOUNT_ON_TAKE_BACK]  = { no,                 ACCOUNT_CLEANUP,    no,                 no,                 ACCOUNT_CLEANUP,    no,           no                 },
	[ACCOUNT_ON_CLEANED]    = { no,                 no,                 ACCOUNT_COOLDOWN,   no,                 no,                 no,           no                 },
	[ACCOUNT_ON_RELEASE]    = { no,                 no,                 no,                 no,                 no,                 no,           ACCOUNT_AVAILABLE  },
	[ACCOUNT_ON_HOLD]       = { ACCOUNT_COOLDOWN,   no,                 no,                 no,                 no,                 no,           no                 },
	[ACCOUNT_ON_QUARANTINE] = { ACCOUNT_QUARANTINE, ACCOUNT_QUARANTINE, ACCOUNT_QUARANTINE, ACCOUNT_QUARANTINE, ACCOUNT_QUARANTINE, no,           ACCOUNT_QUARANTINE },
	[ACCOUNT_ON_RETRY]      = { no,                 no,                 ACCOUNT_CLEANUP,    ACCOUNT_CLEANUP,    no,                 no,           ACCOUNT_CLEANUP    },
	[ACCOUNT_ON_EJECT]      = { ACCOUNT_EXIT,       ACCOUNT_EXIT,       no,                 ACCOUNT_EXIT,       ACCOUNT_EXIT,       ACCOUNT_EXIT, ACCOUNT_EXIT       },
};
#undef no
/* clang-format on */

static struct account account_in(enum account_status status)
{
	struct account a = {
		.id = STR("111122223333"), .status = status, .created_ms = 1, .edited_ms = 1, .version = 3
	};

	a.placed_ou = str_from(account_ou_names[status]);
	if (status == ACCOUNT_ACTIVE)
		a.holder = a.granted = STR("ann@example.com");
	if (status == ACCOUNT_ACTIVE || status == ACCOUNT_FROZEN)
		a.lease_uuid = STR(UUID);
	return a;
}

/* What the services add around account_apply(). */
static void note_holder(struct account *a)
{
	bool has_lease = a->status == ACCOUNT_ACTIVE || a->status == ACCOUNT_FROZEN;

	a->lease_uuid = has_lease ? STR(UUID) : STR("");
	if (a->status == ACCOUNT_ACTIVE)
		a->holder = STR("ann@example.com");
}

TEST(every_event_for_an_account_does_what_the_table_says)
{
	for (int on = 0; on < ACCOUNT_EVENT_COUNT; on++)
		for (int from = 0; from < ACCOUNT_STATUS_COUNT; from++) {
			struct account a = account_in((enum account_status)from), before = a;
			struct err     e = { 0 };
			enum rc        rc = account_apply(&a, (enum account_event)on, now, &e);
			char           label[64];

			snprintf(label, sizeof(label), "%s: event %d", account_status_names[from], on);
			CASE(label);
			CHECK(account_ok(&before));
			if (account_expected[on][from] == REFUSED) {
				CHECK(rc == RC_CONFLICT && memcmp(&a, &before, sizeof(a)) == 0);
				CHECK(strstr(e.msg, account_status_names[from]) && strstr(e.msg, "111122223333"));
				continue;
			}
			note_holder(&a);
			CHECK(rc == RC_OK && (int)a.status == account_expected[on][from] && a.edited_ms == NOW &&
			      account_ok(&a));
		}
}

TEST(an_account_that_is_not_stored_yet_can_be_registered)
{
	struct account a = { .id = STR("111122223333"), .placed_ou = STR("Entry") };

	CHECK(account_apply(&a, ACCOUNT_ON_REGISTER, now, NULL) == RC_OK);
	CHECK(a.status == ACCOUNT_CLEANUP && a.created_ms == NOW && account_ok(&a) && account_must_follow(&a));
}

TEST(only_the_end_of_a_rest_makes_an_account_available)
{
	for (int from = 0; from < ACCOUNT_STATUS_COUNT; from++)
		for (int on = 0; on < ACCOUNT_EVENT_COUNT; on++) {
			const struct account_step *step = account_step((enum account_status)from,
			                                               (enum account_event)on);

			if (step && step->to == ACCOUNT_AVAILABLE)
				CHECK(from == ACCOUNT_COOLDOWN && on == ACCOUNT_ON_RELEASE);
		}
}

TEST(a_cleaned_account_rests_from_then_on)
{
	struct account a = account_in(ACCOUNT_CLEANUP);

	CHECK(account_apply(&a, ACCOUNT_ON_CLEANED, now, NULL) == RC_OK && a.cleaned_ms == NOW);
}

TEST(who_has_not_rested_since_its_cleanup_is_not_available)
{
	struct account a = account_in(ACCOUNT_AVAILABLE);

	a.cleaned_ms = NOW;
	CHECK(!account_ok(&a));
	a.rested_ms = NOW;
	CHECK(account_ok(&a));
	a.open_holds = 1;
	CHECK(!account_ok(&a));
}

TEST(whoever_leaves_active_has_no_holder)
{
	static const enum account_event events[] = { ACCOUNT_ON_FREEZE, ACCOUNT_ON_TAKE_BACK, ACCOUNT_ON_QUARANTINE,
		                                     ACCOUNT_ON_EJECT };

	for (size_t i = 0; i < ARRAY_LEN(events); i++) {
		struct account a = account_in(ACCOUNT_ACTIVE);

		CHECK(account_apply(&a, events[i], now, NULL) == RC_OK && a.holder.n == 0 && account_must_follow(&a));
	}
}

TEST(the_world_follows_while_the_place_or_the_access_differs)
{
	struct account a = account_in(ACCOUNT_ACTIVE);

	CHECK(!account_must_follow(&a));
	a.granted = STR("ANN@example.com");
	CHECK(!account_must_follow(&a));
	a.granted = STR("");
	CHECK(account_must_follow(&a));
	a = account_in(ACCOUNT_ACTIVE);
	a.placed_ou = STR("Available");
	CHECK(account_must_follow(&a));
	a = account_in(ACCOUNT_CLEANUP);
	a.granted = STR("ann@example.com");
	CHECK(account_must_follow(&a));
}

TEST(an_account_in_the_wrong_hands_is_not_ok)
{
	struct account a = account_in(ACCOUNT_ACTIVE);

	a.holder = STR("");
	CHECK(!account_ok(&a));
	a = account_in(ACCOUNT_ACTIVE);
	a.lease_uuid = STR("");
	CHECK(!account_ok(&a));
	for (int s = 0; s < ACCOUNT_STATUS_COUNT; s++) {
		CASE(account_status_names[s]);
		a = account_in((enum account_status)s);
		a.holder = STR("eve@example.com");
		CHECK(account_ok(&a) == (s == ACCOUNT_ACTIVE));
		a = account_in((enum account_status)s);
		a.lease_uuid = a.lease_uuid.n ? STR("") : STR(UUID);
		CHECK(!account_ok(&a));
	}
}

/* --- ids --- */

TEST(a_lease_id_is_padded_base64_of_the_compact_json)
{
	struct arena a = { 0 };
	struct lease l = in_status(LEASE_ACTIVE);
	struct str   id = lease_id(&l, &a);

	/* By another implementation: {"userEmail":"Ann@example.com","uuid":"0f8f..."} */
	CHECK(str_eq(
	        id,
	        STR("eyJ1c2VyRW1haWwiOiJBbm5AZXhhbXBsZS5jb20iLCJ1dWlkIjoiMGY4ZmFkNWItZDljYi00NjlmLWExNjUtNzA4Njc3Mjg5NTBl"
	            "In0=")));
	arena_fini(&a);
}

TEST(an_id_is_read_in_every_form_that_clients_send)
{
	struct arena a = { 0 };

	for (size_t extra = 0; extra < 12; extra++) {
		struct lease l = in_status(LEASE_ACTIVE);
		struct str   id, urlsafe, email, uuid, bare;

		l.user_email = str_format(&a, "%.*s+a@Example.com", (int)extra, "xxxxxxxxxxxx");
		id = lease_id(&l, &a);
		CHECK(id.n % 4 == 0);
		CHECK(lease_id_parse(id, &a, &email, &uuid, NULL) == RC_OK);
		CHECK(str_eq(email, l.user_email) && str_eq(uuid, l.uuid));
		for (bare = id; bare.p[bare.n - 1] == '=';)
			bare.n--;
		CHECK(lease_id_parse(bare, &a, &email, &uuid, NULL) == RC_OK && str_eq(email, l.user_email));
		CHECK(lease_id_parse(str_format(&a, "%.*s=", STR_ARG(id)), &a, &email, &uuid, NULL) == RC_INVALID);
		urlsafe = base64url_encode(&a, str_format(&a, "{\"userEmail\":\"%.*s\",\"uuid\":\"" UUID "\"}",
		                                          STR_ARG(l.user_email)));
		CHECK(lease_id_parse(urlsafe, &a, &email, &uuid, NULL) == RC_OK && str_eq(uuid, STR(UUID)));
	}
	arena_fini(&a);
}

TEST(an_id_with_anything_else_inside_is_refused)
{
	static const struct {
		const char *label, *inside;
	} cases[] = {
		{ "nothing", "" },
		{ "not JSON", "userEmail" },
		{ "an array", "[\"a@b.com\",\"" UUID "\"]" },
		{ "no uuid", "{\"userEmail\":\"a@b.com\"}" },
		{ "no email", "{\"uuid\":\"" UUID "\"}" },
		{ "a third member", "{\"userEmail\":\"a@b.com\",\"uuid\":\"" UUID "\",\"x\":1}" },
		{ "another member instead", "{\"userEmail\":\"a@b.com\",\"id\":\"" UUID "\"}" },
		{ "an email that is a number", "{\"userEmail\":1,\"uuid\":\"" UUID "\"}" },
		{ "an email that is null", "{\"userEmail\":null,\"uuid\":\"" UUID "\"}" },
		{ "an email without a host", "{\"userEmail\":\"a@localhost\",\"uuid\":\"" UUID "\"}" },
		{ "a short uuid", "{\"userEmail\":\"a@b.com\",\"uuid\":\"0f8fad5b\"}" },
		{ "a member twice", "{\"userEmail\":\"a@b.com\",\"userEmail\":\"c@d.com\",\"uuid\":\"" UUID "\"}" },
		{ "something behind it", "{\"userEmail\":\"a@b.com\",\"uuid\":\"" UUID "\"}x" },
		{ "an email with a NUL", "{\"userEmail\":\"a@b.com\\u0000\",\"uuid\":\"" UUID "\"}" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct str email = STR("as before"), uuid = STR("as before");
		struct err e = { 0 };

		CASE(cases[i].label);
		CHECK(lease_id_parse(base64url_encode(&a, str_from(cases[i].inside)), &a, &email, &uuid, &e) ==
		      RC_INVALID);
		CHECK(str_starts_with(str_from(e.msg), STR("lease id: ")));
		CHECK(str_eq(email, STR("as before")) && str_eq(uuid, STR("as before")));
	}
	arena_fini(&a);
}

TEST(an_id_that_is_not_base64_is_refused)
{
	static const char *const cases[] = { "",
		                             "=",
		                             "====",
		                             "a",
		                             "{\"userEmail\":\"a@b.com\"}",
		                             "eyJ1c2VyRW1haWwiOiJhQGIuY29tIn0==",
		                             "eyJ1c2VyRW1haWwiOiJhQGIuY29tIn0%3D",
		                             "eyJ1 c2Vy",
		                             "eyJ1c2VyRW1ha=Wwi" };
	struct arena             a = { 0 };
	struct str               email, uuid;
	char                     longest[LEASE_ID_MAX + 2];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i]);
		CHECK(lease_id_parse(str_from(cases[i]), &a, &email, &uuid, NULL) == RC_INVALID);
	}
	memset(longest, 'A', sizeof(longest));
	CHECK(lease_id_parse(str_of(longest, LEASE_ID_MAX + 1), &a, &email, &uuid, NULL) == RC_INVALID);
	arena_fini(&a);
}

TEST(the_longest_email_has_a_lease_id_that_can_be_read)
{
	struct arena a = { 0 };
	struct lease l = in_status(LEASE_ACTIVE);
	struct str   email, uuid;
	char         text[EMAIL_MAX + 1];

	memset(text, 'a', EMAIL_MAX);
	text[10] = '@';
	for (int i = 70; i < EMAIL_MAX - 5; i += 60)
		text[i] = '.';
	l.user_email = str_of(text, EMAIL_MAX);
	CHECK(email_is_ok(l.user_email) && !email_is_ok(str_of(text, EMAIL_MAX + 1)));
	CHECK(lease_id_parse(lease_id(&l, &a), &a, &email, &uuid, NULL) == RC_OK && str_eq(email, l.user_email));
	arena_fini(&a);
}

TEST(emails_are_good_or_not)
{
	static const struct {
		const char *text;
		bool        is_ok;
	} cases[] = {
		{ "a@b.com", true },
		{ "Ann.Lee+x_y-z'q@sub.Example.co.uk", true },
		{ "1@2.de", true },
		{ "a@xn--bcher-kva.example", true },
		{ "a@localhost", false },
		{ "a@b.", false },
		{ "a@.com", false },
		{ "a@b..com", false },
		{ "a..b@c.com", false },
		{ ".a@c.com", false },
		{ "a.@c.com", false },
		{ "@c.com", false },
		{ "a@", false },
		{ "a", false },
		{ "", false },
		{ "a b@c.com", false },
		{ "a@b@c.com", false },
		{ "a@-b.com", false },
		{ "a@b-.com", false },
		{ "a@b.c", false },
		{ "a@b.c0", false },
		{ "a@1.2.3.4", false },
		{ "a@b_c.com", false },
		{ "\xc3\xbc@b.com", false },
		{ "a@\xc3\xbc.com", false },
		{ "\"a\"@b.com", false },
		{ "a@b.com\n", false },
		{ "a\\@b.com", false },
		{ "<a@b.com>", false },
		{ "a@b.com,c@d.com", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].text);
		CHECK(email_is_ok(str_from(cases[i].text)) == cases[i].is_ok);
	}
	CASE("a NUL inside");
	CHECK(!email_is_ok(str_of("a\0b@c.com", 9)) && !email_is_ok(str_of("ab@c\0.com", 9)));
}

TEST(emails_compare_by_a_key_in_lower_case)
{
	struct arena a = { 0 };

	CHECK(str_eq(email_key(STR("Ann.O'Neil@EXAMPLE.Com"), &a), STR("ann.o'neil@example.com")));
	CHECK(email_key(STR(""), &a).n == 0);
	arena_fini(&a);
}

TEST(uuids_and_account_ids_have_one_form)
{
	CHECK(uuid_is_ok(STR(UUID)) && uuid_is_ok(STR("0F8FAD5B-D9CB-469F-A165-70867728950E")));
	CHECK(uuid_is_ok(STR("00000000-0000-0000-0000-000000000000")));
	CHECK(!uuid_is_ok(STR("")) && !uuid_is_ok(STR(UUID "0")) &&
	      !uuid_is_ok(STR("0f8fad5bd9cb469fa16570867728950e")));
	CHECK(!uuid_is_ok(STR("0f8fad5b-d9cb-469f-a165-70867728950g")));
	CHECK(!uuid_is_ok(STR("0f8fad5b-d9cb-469f-a16570867728950e-")));
	CHECK(account_id_is_ok(STR("012345678901")) && !account_id_is_ok(STR("01234567890")));
	CHECK(!account_id_is_ok(STR("0123456789012")) && !account_id_is_ok(STR("01234567890a")) &&
	      !account_id_is_ok(STR("")));
}

/* --- the operator's limits --- */

TEST(the_shipped_defaults_are_usable_at_once)
{
	struct policy p;

	policy_defaults(&p);
	CHECK(!p.is_maintenance && p.requires_budget && p.budget_max_usd == 50 && p.requires_duration);
	CHECK(p.duration_max_hours == 168 && p.leases_per_user == 3 && p.ttl_days == 30 && p.session_minutes == 60);
	CHECK(p.clean_failures_max == 3 && p.clean_retry_wait_sec == 5 && p.clean_successes == 2);
	CHECK(p.clean_rerun_wait_sec == 30 && p.cost_group_count == 0 && !p.requires_cost_group && p.version == 0);
	CHECK(p.terms_of_service.n > 0);
}

static struct policy with_groups(bool requires)
{
	struct policy p;

	policy_defaults(&p);
	p.requires_budget = p.requires_duration = p.requires_cost_group = requires;
	p.cost_groups[0] = STR("blue");
	p.cost_groups[1] = STR("red");
	p.cost_group_count = 2;
	return p;
}

/* The fields that there are problems with, joined; each message must say something. */
static const char *fields(const struct problems *p, char *ret, size_t size)
{
	size_t n = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < p->count; i++) {
		CHECK(p->items[i].message.n > 10);
		n += (size_t)snprintf(ret + n, size - n, "%s%.*s", i ? " " : "", STR_ARG(p->items[i].field));
	}
	return ret;
}

#define USD(x)   ((int64_t)((x)*LEASE_USD))
#define HOURS(x) ((int64_t)((x) * (int64_t)LEASE_HOUR_MS))

TEST(templates_keep_the_operators_limits)
{
	static const struct {
		const char *label;
		bool requires;
		int64_t     max_spend, duration_ms;
		const char *group, *fields;
	} cases[] = {
		{ "all within the limits", true, USD(10), HOURS(24), "red", "" },
		{ "the maxima themselves are allowed", true, USD(50), HOURS(168), "blue", "" },
		{ "a millionth too much", true, USD(50) + 1, HOURS(1), "red", "maxSpend" },
		{ "a millisecond too long", true, USD(1), HOURS(168) + 1, "red", "leaseDurationInHours" },
		{ "all is missing", true, 0, 0, "", "maxSpend leaseDurationInHours costReportGroup" },
		{ "all may be missing", false, 0, 0, "", "" },
		{ "a maximum holds where none is required", false, USD(51), HOURS(169), "",
		  "maxSpend leaseDurationInHours" },
		{ "a group that is not in the list", false, 0, 0, "green", "costReportGroup" },
		{ "everything at once", true, USD(1e9), HOURS(1e5), "Red",
		  "maxSpend leaseDurationInHours costReportGroup" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy         p = with_groups(cases[i].requires);
		struct lease_template t = { .max_spend = cases[i].max_spend,
			                    .duration_ms = cases[i].duration_ms,
			                    .cost_group = str_from(cases[i].group) };
		struct problems       problems = { .arena = &a };
		char                  text[256];

		template_check(&t, &p, &problems);
		CASE(cases[i].label);
		CHECK(strcmp(fields(&problems, text, sizeof(text)), cases[i].fields) == 0);
	}
	arena_fini(&a);
}

TEST(leases_keep_the_operators_limits)
{
	static const struct {
		const char       *label;
		enum lease_status status;
		bool requires;
		int64_t     max_spend, expires_in, duration_ms;
		const char *fields;
	} cases[] = {
		{ "within the limits", LEASE_ACTIVE, true, USD(10), HOURS(24), HOURS(24), "" },
		{ "as long as allowed", LEASE_FROZEN, true, USD(50), HOURS(168), 0, "" },
		{ "its end decides, not what was agreed", LEASE_ACTIVE, true, USD(1), HOURS(169), HOURS(24),
		  "expirationDate" },
		{ "its end may be before what was agreed", LEASE_ACTIVE, true, USD(1), HOURS(1), HOURS(999), "" },
		{ "an end in the past is allowed", LEASE_ACTIVE, true, USD(1), HOURS(-1), 0, "" },
		{ "an end is required", LEASE_ACTIVE, true, USD(1), 0, HOURS(24), "expirationDate" },
		{ "an end is not required", LEASE_ACTIVE, false, USD(1), 0, 0, "" },
		{ "too much, without an end", LEASE_FROZEN, true, USD(50.5), 0, 0, "maxSpend expirationDate" },
		{ "before it begins the agreed duration counts", LEASE_PROVISIONING, true, USD(1), 0, HOURS(24), "" },
		{ "before it begins it may be too long", LEASE_PROVISIONING, true, USD(1), 0, HOURS(200),
		  "leaseDurationInHours" },
		{ "before it begins it may lack a duration", LEASE_PROVISIONING, true, USD(1), 0, 0,
		  "leaseDurationInHours" },
	};
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct policy   p = with_groups(cases[i].requires);
		struct lease    l = in_status(cases[i].status);
		struct problems problems = { .arena = &a };
		char            text[256];

		l.cost_group = STR("red");
		l.max_spend = cases[i].max_spend;
		l.duration_ms = cases[i].duration_ms;
		l.expires_ms = cases[i].expires_in ? l.start_ms + cases[i].expires_in : 0;
		lease_check_limits(&l, &p, &problems);
		CASE(cases[i].label);
		CHECK(strcmp(fields(&problems, text, sizeof(text)), cases[i].fields) == 0);
	}
	arena_fini(&a);
}

TEST(a_limit_that_is_too_large_to_multiply_is_no_limit)
{
	struct arena          a = { 0 };
	struct policy         p = with_groups(false);
	struct lease_template t = { .max_spend = INT64_MAX, .duration_ms = INT64_MAX };
	struct problems       problems = { .arena = &a };

	p.budget_max_usd = p.duration_max_hours = INT64_MAX;
	template_check(&t, &p, &problems);
	CHECK(problems.count == 0);
	arena_fini(&a);
}

TEST(a_message_tells_numbers_as_people_write_them)
{
	struct arena          a = { 0 };
	struct policy         p = with_groups(false);
	struct lease_template t = { .max_spend = USD(50.5), .duration_ms = HOURS(168) + LEASE_HOUR_MS / 4 };
	struct problems       problems = { .arena = &a };

	template_check(&t, &p, &problems);
	CHECK(problems.count == 2);
	CHECK(str_eq(problems.items[0].message, STR("50.5 dollars is more than the 50 that leases.maxBudget allows")));
	CHECK(str_eq(problems.items[1].message,
	             STR("7 days 15 minutes is longer than the 7 days that leases.maxDurationHours allows")));
	arena_fini(&a);
}

TEST(problems_are_kept_up_to_a_limit_and_on_one_line)
{
	struct arena    a = { 0 };
	struct problems p = { .arena = &a };
	char            text[2000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	problems_add(&p, "name", "\"a\nb\" and %s", text);
	CHECK(p.count == 1 && str_starts_with(p.items[0].message, STR("\"a b\" and xxx")) &&
	      p.items[0].message.n <= 400);
	for (int i = 0; i < 2 * PROBLEMS_MAX; i++)
		problems_add(&p, "", "problem %d", i);
	CHECK(p.count == PROBLEMS_MAX && str_eq(p.items[1].message, STR("problem 0")) && p.items[1].field.n == 0);
	arena_fini(&a);
}

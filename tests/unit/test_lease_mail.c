/* SPDX-License-Identifier: Apache-2.0 */
/* test_lease_mail.c - each event of leases and accounts: who gets a mail of it, and what its subject says. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "domain/ports/identity.h"
#include "kernel/kernel.h"
#include "kernel_rig.h"
#include "providers/notify/mail.h"
#include "providers/notify/message.h"

#define ANN         "\"userEmail\":\"Ann@example.org\""
#define OF_ANN      "{\"leaseId\":{" ANN ",\"uuid\":\"u-1\"}}"
#define UUID_OF_ANN "{\"leaseId\":\"u-1\"," ANN "}"
#define BECAUSE(of) "{\"leaseId\":{" ANN ",\"uuid\":\"u-1\"},\"reason\":{\"type\":\"" of "\",\"comment\":\"x\"}}"
#define BY_FORECAST \
	"{\"leaseId\":{" ANN ",\"uuid\":\"u-1\"},\"reason\":{\"type\":\"BudgetExceeded\",\"projectedSpend\":9}}"
#define TEXT_REASON "{\"leaseId\":{" ANN ",\"uuid\":\"u-1\"},\"reason\":\"a text\"}"
#define MANAGERS    "boss@example.org chief@example.org"
#define ADMINS      "chief@example.org"

/* A directory: one manager, one admin, and an admin whose address is none; or a crowd. */
struct people {
	struct identity base;
	size_t          crowd; /* managers, when it is not 0 */
};

static size_t list_people(struct identity *i, unsigned roles, struct str after, struct arena *a,
                          struct directory_entry *ret, size_t max)
{
	const struct people *p = CONTAINER_OF(i, struct people, base);
	size_t               n = 0;

	CHECK(!after.n);
	while (p->crowd && n < p->crowd && n < max) {
		ret[n].caller.email = str_format(a, "manager-%zu@example.org", n);
		n++;
	}
	if (p->crowd)
		return n;
	CHECK(max >= 3);
	if (roles & ROLE_MANAGER)
		ret[n++].caller.email = STR("boss@example.org");
	if (roles & ROLE_ADMIN) {
		ret[n++].caller.email = STR("chief@example.org");
		ret[n++].caller.email = STR("not an address");
	}
	return n;
}

static const struct identity_ops people_ops = { .list = list_people };

struct asked {
	struct event           event;
	struct people         *people;
	struct mail_recipients to;
};

static enum rc ask(struct session *s, void *arg, struct err *e)
{
	struct asked *a = arg;

	a->to.count = 0;
	return lease_mail_recipients(s, &a->event, &a->people->base, &a->to, e);
}

static struct str joined(const struct mail_recipients *to, struct buf *b)
{
	buf_reset(b);
	for (size_t i = 0; i < to->count; i++)
		buf_addf(b, "%s%.*s", i ? " " : "", STR_ARG(to->addresses[i]));
	return buf_str(b);
}

/* clang-format off */
static const struct {
	const char *type, *detail;
	const char *to; /* "": nobody */
	const char *title;
} cases[] = {
	{ "LeaseRequested",                  UUID_OF_ANN,                   "Ann@example.org " MANAGERS, "A lease is waiting for approval" },
	{ "LeaseQueued",                     OF_ANN,                        "Ann@example.org",     "Your lease is approved and waiting in line" },
	{ "LeaseProvisioningStarted",        OF_ANN,                        "",                    "A lease is being set up" },
	{ "LeaseApproved",                   UUID_OF_ANN,                   "Ann@example.org",     "Your lease is ready" },
	{ "LeaseDenied",                     UUID_OF_ANN,                   "Ann@example.org",     "Your lease was not approved" },
	{ "LeaseWithdrawn",                  OF_ANN,                        "",                    "A request was withdrawn" },
	{ "LeaseEdited",                     OF_ANN,                        "",                    "A lease was changed" },
	{ "LeaseFrozen",                     BECAUSE("ManuallyFrozen"),     "Ann@example.org",     "A lease is frozen" },
	{ "LeaseFrozen",                     BECAUSE("BudgetExceeded"),     "Ann@example.org " MANAGERS, "A lease is frozen: spending" },
	{ "LeaseFrozen",                     BECAUSE("Expired"),            "Ann@example.org " MANAGERS, "A lease is frozen: its end is near" },
	{ "LeaseFrozen",                     BY_FORECAST,                   "Ann@example.org " MANAGERS, "A lease is frozen: it is spending too fast" },
	{ "LeaseTerminated",                 BY_FORECAST,                   "Ann@example.org " MANAGERS, "A lease has ended: it spent too fast" },
	{ "LeaseUnfrozen",                   TEXT_REASON,                   "Ann@example.org",     "Your lease is active again" },
	{ "LeaseTerminated",                 BECAUSE("ManuallyTerminated"), "Ann@example.org",     "A lease has ended" },
	{ "LeaseTerminated",                 BECAUSE("AccountQuarantined"), "Ann@example.org",     "A lease has ended: its account is in quarantine" },
	{ "LeaseTerminated",                 BECAUSE("Ejected"),            "Ann@example.org",     "A lease has ended: its account left the pool" },
	{ "LeaseTerminated",                 BECAUSE("BudgetExceeded"),     "Ann@example.org " MANAGERS, "A lease has ended: its budget is used up" },
	{ "LeaseTerminated",                 BECAUSE("Expired"),            "Ann@example.org " MANAGERS, "A lease has ended: its time is up" },
	{ "LeaseTerminated",                 BECAUSE("ProvisioningFailed"), "Ann@example.org " MANAGERS, "A lease could not be set up" },
	{ "LeaseProvisioningFailed",         TEXT_REASON,                   MANAGERS,              "A lease could not be set up" },
	{ "LeaseBudgetThresholdAlert",       OF_ANN,                        "Ann@example.org",     "Your lease has used part of its budget" },
	{ "LeaseDurationThresholdAlert",     OF_ANN,                        "Ann@example.org",     "Your lease ends soon" },
	{ "LeaseProjectedSpendAlert",        OF_ANN,                        "Ann@example.org",     "Your lease is spending fast" },
	{ "LeaseFreezingThresholdAlert",     BECAUSE("Expired"),            "",                    "A lease is about to be frozen" },
	{ "LeaseBudgetExceeded",             OF_ANN,                        "",                    "A lease has used up its budget" },
	{ "LeaseExpired",                    OF_ANN,                        "",                    "The time of a lease is up" },
	{ "LeaseCostsGenerated",             OF_ANN,                        "",                    "What a lease has cost" },
	{ "CleanAccountRequest",             "{\"accountId\":\"1\"}",       "",                    "An account is being cleaned" },
	{ "AccountCleanupSucceeded",         OF_ANN,                        "Ann@example.org",     "An account is clean" },
	{ "AccountProvisioned",              OF_ANN,                        "",                    "An account is ready" },
	{ "AccountCleanupFailed",            "{\"accountId\":\"1\",\"reason\":\"LEASE_TERMINATION\"}", ADMINS, "An account could not be cleaned" },
	{ "AccountQuarantined",              "{\"awsAccountId\":\"1\"}",    "",                    "An account is in quarantine" },
	{ "AccountDriftDetected",            "{\"accountId\":\"1\"}",       ADMINS,                "An account is in the wrong place" },
	{ "AccountRegistered",               "{\"accountId\":\"1\"}",       "",                    "An account was added to the pool" },
	{ "AccountCleanupRetried",           "{\"accountId\":\"1\"}",       "",                    "An account is being cleaned again" },
	{ "AccountEjected",                  "{\"accountId\":\"1\"}",       "",                    "An account has left the pool" },
	{ "AccountRemoved",                  "{\"accountId\":\"1\"}",       "",                    "An account has left the pool" },
	{ "AccountFreed",                    "{\"accountId\":\"1\"}",       "",                    "An account is free" },
	{ "GroupCostReportGenerated",        "{}",                          ADMINS,                "The cost report is ready" },
	{ "GroupCostReportGeneratedFailure", "{}",                          ADMINS,                "The cost report failed" },
	{ "AlarmRaised",                     "{}",                          "",                    "Alarm" },
};
/* clang-format on */

static struct event event_of(const char *type, const char *detail)
{
	return (struct event){ .id = STR("e-1"),
		               .type = str_from(type),
		               .subject = STR("lease/u-1"),
		               .actor = STR("boss@example.org"),
		               .detail = str_from(detail) };
}

TEST(each_event_goes_to_those_whom_it_concerns)
{
	struct people     people = { .base = { .ops = &people_ops } };
	struct kernel_rig rig = { 0 };
	struct buf        b;

	rig_open(&rig);
	buf_init(&b, 4096);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct asked a = { .event = event_of(cases[i].type, cases[i].detail), .people = &people };

		CASE(cases[i].detail);
		CASE(cases[i].type);
		rig_run(&rig, ask, &a);
		CHECK(str_eq(joined(&a.to, &b), str_from(cases[i].to)));
		CHECK((a.to.count > 0) == kernel_matches(STR(LEASE_MAIL_EVENTS), a.event.type));
	}
	buf_fini(&b);
	rig_close(&rig);
}

TEST(each_event_has_a_subject_and_says_what_to_do)
{
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct event event = event_of(cases[i].type, cases[i].detail);
		struct str   mail = message_write(&event, STR("a@example.org"), STR("b@example.org"), 1700000000, &a);
		struct str   subject = str_format(&a, "\r\nSubject: [leasehold] %s: lease/u-1\r\n", cases[i].title);

		CASE(cases[i].title);
		CHECK(strstr(mail.p, subject.p));
		CHECK(strstr(mail.p, "What to do: "));
		CHECK(!strstr(mail.p, "This happened:"));
	}
	arena_fini(&a);
}

/* The text of a mail without the breaks that its encoding needs. */
static const char *read_text(struct str mail, struct arena *a)
{
	struct buf text;

	buf_init(&text, mail.n);
	for (size_t i = 0; i < mail.n; i++)
		if (str_starts_with(str_skip(mail, i), STR("=\r\n")))
			i += 2;
		else
			buf_add_char(&text, mail.p[i]);
	return buf_take(&text, a).p;
}

/* Whoever had approved it: a lease that a rule had approved has ended, and cannot be approved again. */
TEST(a_lease_that_could_not_be_set_up_is_told_with_what_has_become_of_it_and_of_its_account)
{
	struct event event = event_of("LeaseProvisioningFailed", TEXT_REASON);
	struct arena a = { 0 };
	const char  *text = read_text(message_write(&event, STR("a@example.org"), STR("b@example.org"), 1700000000, &a),
	                              &a);

	CHECK(strstr(text, "a rule had approved it, it has ended"));
	CHECK(strstr(text, "The account is in quarantine") && !strstr(text, "emptied"));
	arena_fini(&a);
}

TEST(a_cleanup_that_was_nobodys_lease_is_mailed_to_nobody)
{
	struct people people = { .base = { .ops = &people_ops } };
	struct asked  a = { .event = event_of("AccountCleanupSucceeded", "{\"accountId\":\"1\"}"), .people = &people };
	struct kernel_rig rig = { 0 };

	rig_open(&rig);
	rig_run(&rig, ask, &a);
	CHECK(a.to.count == 0);
	rig_close(&rig);
}

TEST(an_event_that_names_no_owner_is_refused)
{
	static const char *const details[] = { "{}", "no json", "{\"leaseId\":\"u-1\"}",
		                               "{\"leaseId\":{\"userEmail\":7}}", "{\"userEmail\":\"\"}" };
	struct people            people = { .base = { .ops = &people_ops } };
	struct kernel_rig        rig = { 0 };

	rig_open(&rig);
	for (size_t i = 0; i < ARRAY_LEN(details); i++) {
		struct asked a = { .event = event_of("LeaseApproved", details[i]), .people = &people };
		struct err   e = { 0 };

		CASE(details[i]);
		CHECK(rig_try(&rig, ask, &a, &e) == RC_CORRUPT);
		CHECK(strstr(e.msg, "leaseId.userEmail") && strstr(e.msg, "e-1"));
	}
	rig_close(&rig);
}

TEST(a_crowd_of_managers_is_told_of_instead_of_leaving_somebody_out)
{
	struct people     people = { .base = { .ops = &people_ops }, .crowd = MAIL_RECIPIENTS_MAX };
	struct kernel_rig rig = { 0 };
	struct asked      a = { .event = event_of("LeaseProvisioningFailed", TEXT_REASON), .people = &people };
	struct err        e = { 0 };

	rig_open(&rig);
	rig_run(&rig, ask, &a);
	CHECK(a.to.count == MAIL_RECIPIENTS_MAX);
	people.crowd++;
	CHECK(rig_try(&rig, ask, &a, &e) == RC_TOO_LARGE);
	rig_close(&rig);
}

TEST(who_is_owner_and_manager_gets_one_mail)
{
	struct people     people = { .base = { .ops = &people_ops } };
	struct kernel_rig rig = { 0 };
	struct asked      a = {
		     .event = event_of(
		             "LeaseTerminated",
		             "{\"leaseId\":{\"userEmail\":\"BOSS@example.org\"},\"reason\":{\"type\":\"Expired\"}}"),
		     .people = &people
	};

	rig_open(&rig);
	rig_run(&rig, ask, &a);
	CHECK(a.to.count == 2);
	rig_close(&rig);
}

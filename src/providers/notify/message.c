/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - what people are told by mail: what happened, to what, when, by whom, the evidence, what to do.
 *
 * The words for each type of event, and whom they are for, are rows of a table; types without a row get the last one.
 * Texts of the event go through utf8_line() first, so they stay in their line: they can neither make a header nor
 * imitate a line of ours. Then the subject is encoded by RFC 2047 unless it is plain ASCII, the text by
 * quoted-printable: every line is ASCII and has at most 76 characters, except two headers, subject and event type.
 *
 * The Message-ID comes from event and recipient, so that a mail that is sent twice is recognised as the same one.
 */
#include "providers/notify/message.h"

#include <assert.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/kernel.h"
#include "kernel/records.h"

enum { MESSAGE_MAX = 262144, TEXT_MAX = 65536, ABOUT_MAX = 120 /* of the event's subject in the mail's */ };
enum { MEMBERS_MAX = 40, NAME_MAX_SHOWN = 100, MEMBER_MAX = 1000 /* of a value */ }; /* of the detail */
enum { LINE_MAX_QP = 76, WORD_MAX = 76 - 12 /* without "=?UTF-8?Q?" and "?=" */, LOCAL_PART_MAX = 64 };

/* clang-format off */
static const struct wording {
	const char *types;  /* patterns as in the routing table */
	const char *reason; /* only when the detail's reason is of this type, or was a forecast; NULL: always */
	unsigned    to;     /* beside whom the operators' own rules name */
	const char *title, *sentence, *advice;
} wordings[] = {
	{ "AlarmRaised", NULL, 0, "Alarm", "Something is wrong and has been so for a while.",
	  "The runbook has a section for this alarm; `leasehold alarm list` shows all current alarms. You get another "
	  "email when it clears." },
	{ "AlarmChanged", NULL, 0, "Alarm changed", "An alarm that was raised before is now more or less urgent.",
	  "`leasehold alarm list` shows all current alarms." },
	{ "AlarmCleared", NULL, 0, "Alarm cleared", "The problem is gone.", "No action is needed." },
	{ "SagaParked", NULL, 0, "A person is needed",
	  "A saga stopped half-way: it can neither continue nor roll back by itself.",
	  "`leasehold saga show` shows which step failed, why, and what may be left behind. Fix the cause; then retry, "
	  "skip the step with a reason, or abort it." },
	{ "DeadLetter*", NULL, 0, "Dead letter", "A dead letter was replayed or dropped.",
	  "No action is needed. `leasehold dlq list` shows what is left." },
	{ "WebhookTest", NULL, 0, "Test", "Someone sent a test.", "No action is needed." },
	{ "LeaseRequested", NULL, TO_OWNER | TO_MANAGERS, "A lease is waiting for approval",
	  "A request for an account was received and needs a decision.",
	  "Managers and admins: `leasehold lease show` shows the details; `leasehold lease approve` or `leasehold "
	  "lease deny --reason` decides. Any of you can. Requester: no action is needed, you get an email when it is "
	  "decided; `leasehold lease withdraw` withdraws the request." },
	{ "LeaseQueued", NULL, TO_OWNER, "Your lease is approved and waiting in line",
	  "Your request is approved, but every account is in use right now.",
	  "No action is needed: you get the next free one, first come, first served, and an email when it is ready. "
	  "`leasehold lease show` shows your position. If you no longer need it, `leasehold lease withdraw` lets the "
	  "next person move up." },
	{ "LeaseProvisioningStarted", NULL, 0, "A lease is being set up",
	  "An account was chosen, and access is being set up.",
	  "No action is needed. `leasehold lease wait` waits until it is ready." },
	{ "LeaseApproved", NULL, TO_OWNER, "Your lease is ready",
	  "Your account is ready, and you can sign in to it now.",
	  "Open the access portal and choose the account below. `leasehold lease show` shows budget and end; at "
	  "either, the account is reclaimed and everything in it is deleted." },
	{ "LeaseDenied", NULL, TO_OWNER, "Your lease was not approved", "Your request for a lease was denied.",
	  "The reason, if one was given, is below. Talk to the person who decided, or submit a new request." },
	{ "LeaseWithdrawn", NULL, 0, "A request was withdrawn",
	  "A request for a lease was withdrawn before a decision.",
	  "No action is needed." },
	{ "LeaseEdited", NULL, 0, "A lease was changed",
	  "The budget, end, thresholds or cost group of a lease changed.",
	  "No action is needed. `leasehold lease show` shows the current values." },
	{ "LeaseFrozen", "Forecast", TO_OWNER | TO_MANAGERS, "A lease is frozen: it is spending too fast",
	  "At its current rate the lease will exceed its budget, so access is suspended for now.",
	  "Whatever runs in it keeps running and costs money. Unfreezing it is not enough: a manager can give it a "
	  "larger budget first, or end it." },
	{ "LeaseTerminated", "Forecast", TO_OWNER | TO_MANAGERS, "A lease has ended: it spent too fast",
	  "With what is not billed yet, the lease exceeds its budget. Access to the account has ended, and it is being "
	  "emptied.",
	  "Its contents cannot be recovered. Check what caused the costs before you request a new lease." },
	{ "LeaseFrozen", "BudgetExceeded", TO_OWNER | TO_MANAGERS, "A lease is frozen: spending",
	  "Spend has reached the lease's freeze threshold, so access is suspended for now.",
	  "Whatever runs in it keeps running and costs money. A manager can review it and `leasehold lease unfreeze` "
	  "it, or end it." },
	{ "LeaseFrozen", "Expired", TO_OWNER | TO_MANAGERS, "A lease is frozen: its end is near",
	  "The lease has reached its freeze threshold before its end: access is suspended for now.",
	  "A manager can give more time with `leasehold lease extend` and then `leasehold lease unfreeze`. Otherwise "
	  "it ends by itself, and the account is emptied." },
	{ "LeaseFrozen", NULL, TO_OWNER, "A lease is frozen",
	  "A manager has frozen the lease: access is suspended for now.",
	  "Everything in the account stays, and whatever runs keeps running and costs money. Ask the manager who froze "
	  "it; any manager can `leasehold lease unfreeze` it." },
	{ "LeaseUnfrozen", NULL, TO_OWNER, "Your lease is active again",
	  "Your lease is no longer frozen, and you can sign in to the account again.",
	  "No action is needed. Budget and end are unchanged; `leasehold lease show` shows them." },
	{ "LeaseTerminated", "Expired", TO_OWNER | TO_MANAGERS, "A lease has ended: its time is up",
	  "The lease's time is up. Access to the account has ended, and it is being emptied.",
	  "Nothing has to be done, and its contents cannot be recovered. If you still need an account, request a new "
	  "lease." },
	{ "LeaseTerminated", "BudgetExceeded", TO_OWNER | TO_MANAGERS, "A lease has ended: its budget is used up",
	  "The lease's budget is used up. Access to the account has ended, and it is being emptied.",
	  "Its contents cannot be recovered. Check what caused the costs before you request a new lease." },
	{ "LeaseTerminated", "ProvisioningFailed", TO_OWNER | TO_MANAGERS, "A lease could not be set up",
	  "The account could not be set up, so the lease ended before it started.",
	  "Request it again: you will get another account. Admins find the cause with `leasehold saga list --state "
	  "parked` and `leasehold event list`." },
	{ "LeaseTerminated", "AccountQuarantined", TO_OWNER, "A lease has ended: its account is in quarantine",
	  "Something was wrong with the account, so it was put in quarantine and the lease has ended.",
	  "Request a new lease: you will get another account. If the old one held something important, talk to an "
	  "admin soon." },
	{ "LeaseTerminated", "Ejected", TO_OWNER, "A lease has ended: its account left the pool",
	  "The account was taken out of the pool, and the lease has ended with it.",
	  "The account was not emptied. Talk to an admin if you need what is in it, or request a new lease." },
	{ "LeaseTerminated", NULL, TO_OWNER, "A lease has ended",
	  "The lease was ended manually. Access to the account has ended, and it is being emptied.",
	  "Nothing has to be done, and its contents cannot be recovered. If you still need an account, request a new "
	  "lease." },
	{ "LeaseProvisioningFailed", NULL, TO_MANAGERS, "A lease could not be set up",
	  "The account of an approved lease could not be set up.",
	  "If a person had approved it, it needs a decision again: `leasehold lease approve` gives it another account. "
	  "If a rule had approved it, it has ended. The account is in quarantine: `leasehold account show` shows why." },
	{ "LeaseBudgetThresholdAlert", NULL, TO_OWNER, "Your lease has used part of its budget",
	  "Your lease has reached one of its budget thresholds.",
	  "Look at what runs in the account and stop what you do not need. When the budget is used up, the lease ends "
	  "and the account is emptied." },
	{ "LeaseDurationThresholdAlert", NULL, TO_OWNER, "Your lease ends soon", "Your lease is about to end.",
	  "Save what you need: at the end the account is emptied. If you need more time, ask a manager to `leasehold "
	  "lease extend` it." },
	{ "LeaseProjectedSpendAlert", NULL, TO_OWNER, "Your lease is spending fast",
	  "At this rate your lease will use up its budget before its time is up.",
	  "Look at what runs in the account and stop what you do not need, or ask a manager for a larger budget. Bills "
	  "arrive late: estimatedSpend below is what has probably been spent by now, projectedSpend is the expected "
	  "total at the end." },
	{ "LeaseFreezingThresholdAlert", NULL, 0, "A lease is about to be frozen",
	  "A lease has passed a threshold at which it is frozen.",
	  "No action is needed: you get another email when it is frozen." },
	{ "LeaseBudgetExceeded", NULL, 0, "A lease has used up its budget",
	  "A lease has used up its budget and is being ended.", "No action is needed." },
	{ "LeaseExpired", NULL, 0, "The time of a lease is up", "A lease has reached its end and is being ended.",
	  "No action is needed." },
	{ "LeaseCostsGenerated", NULL, 0, "What a lease has cost", "The statement of a lease is ready.",
	  "No action is needed." },
	{ "CleanAccountRequest", NULL, 0, "An account is being cleaned",
	  "An account is being emptied, so that it can be lent again.", "No action is needed." },
	{ "AccountCleanupSucceeded", NULL, TO_FORMER_OWNER, "An account is clean",
	  "The account of a lease that has ended is empty: everything in it was deleted.",
	  "No action is needed. It costs nothing any more, and is lent to someone else after its cooldown." },
	{ "AccountCleanupFailed", NULL, TO_ADMINS, "An account could not be cleaned",
	  "Cleaning an account has failed too often. It is in quarantine and is not lent.",
	  "`leasehold account show` shows why. Remove by hand what is in the way, then `leasehold account "
	  "retry-cleanup`; or `leasehold account eject` it." },
	{ "AccountProvisioned", NULL, 0, "An account is ready",
	  "An account is where it should be, and its owner has access.", "No action is needed." },
	{ "AccountQuarantined", NULL, 0, "An account is in quarantine",
	  "An account was put in quarantine and is not lent.",
	  "`leasehold account show` shows why. Once that is fixed, `leasehold account retry-cleanup` returns it to the "
	  "pool." },
	{ "AccountDriftDetected", NULL, TO_ADMINS, "An account is in the wrong place",
	  "An account is not in the organisational unit where it should be: someone moved it outside Leasehold.",
	  "If it is still ours, it is in quarantine. Find out who moved it; then `leasehold account retry-cleanup` "
	  "returns it to the pool." },
	{ "AccountRegistered", NULL, 0, "An account was added to the pool",
	  "An account was added to the pool and is being emptied first.", "No action is needed." },
	{ "AccountCleanupRetried", NULL, 0, "An account is being cleaned again",
	  "An admin is having an account cleaned again.", "No action is needed." },
	{ "AccountEjected,AccountRemoved", NULL, 0, "An account has left the pool",
	  "An account was taken out of the pool as it is.",
	  "It was not emptied. Whoever owns it now is responsible for it." },
	{ "AccountFreed", NULL, 0, "An account is free", "An account can be lent again.", "No action is needed." },
	{ "GroupCostReportGenerated", NULL, TO_ADMINS, "The cost report is ready",
	  "The monthly cost of leases, by group, has been added up.", "`leasehold report costs` prints it." },
	{ "GroupCostReportGeneratedFailure", NULL, TO_ADMINS, "The cost report failed",
	  "Adding up the monthly cost of leases failed.",
	  "The log says why. Once that is fixed, `leasehold report costs` creates it again." },
	{ "*", NULL, 0, NULL, "This happened:", "No action is needed unless your own rules say so." },
};
/* clang-format on */

static const struct wording *wording_of(struct str type, const json_t *detail)
{
	struct str reason;
	size_t     i = 0;

	if (!json_get_text(json_object_get(detail, "reason"), "type", &reason))
		reason = STR("");
	if (json_object_get(json_object_get(detail, "reason"), "projectedSpend"))
		reason = STR("Forecast"); /* nothing was exceeded yet that anybody can see */
	while (!kernel_matches(str_from(wordings[i].types), type) ||
	       (wordings[i].reason && !str_eq(str_from(wordings[i].reason), reason)))
		i++; /* the last row matches everything */
	return &wordings[i];
}

unsigned message_whom(const struct event *event, const json_t *detail)
{
	return wording_of(event->type, detail)->to;
}

/* --- addresses --- */

/* Characters of this set, which has the dot, with single dots between them. */
static bool is_dotted(struct str text, const char *set)
{
	return text.n > 0 && text.p[0] != '.' && text.p[text.n - 1] != '.' && !str_has(text, STR("..")) &&
	       str_is_of(text, set);
}

bool message_is_address(struct str text)
{
	struct str domain = text;
	struct str local = str_cut(&domain, '@');

	return text.n <= MAIL_ADDRESS_MAX && local.n <= LOCAL_PART_MAX && local.n < text.n &&
	       is_dotted(local, "a-zA-Z0-9!#$%&'*+/=?^_`{}~.-") && local.p[0] != '-' &&
	       is_dotted(domain, "a-zA-Z0-9.-") && domain.p[0] != '-';
}

/* --- encodings --- */

static bool is_plain_subject(struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < ' ' || text.p[i] > '~')
			return false;
		if (text.p[i] == '=' && i + 1 < text.n && text.p[i + 1] == '?') /* would be taken for an encoded word */
			return false;
	}
	return true;
}

/* RFC 2047: words for lines of 76 characters, none of which ends inside a character of UTF-8. The first line already
 * has `used` characters. */
static void add_encoded_words(struct buf *b, struct str text, size_t used)
{
	buf_add_text(b, "=?UTF-8?Q?");
	for (size_t at = 0; at < text.n;) {
		size_t length = utf8_length(str_of(text.p + at, text.n - at));

		assert(length > 0); /* went through utf8_line() */
		if (used + 3 * length > WORD_MAX) {
			buf_add_text(b, "?=\r\n =?UTF-8?Q?");
			used = 1; /* the blank */
		}
		for (size_t end = at + length; at < end; at++) {
			char c = text.p[at];
			bool is_plain = char_is_of(c, "a-zA-Z0-9 /!-");

			if (is_plain)
				buf_add_char(b, c == ' ' ? '_' : c);
			else
				buf_addf(b, "=%02X", (unsigned char)c);
			used += is_plain ? 1 : 3;
		}
	}
	buf_add_text(b, "?=");
}

/* One line of quoted-printable; a blank at its end is escaped, so that it survives. */
static void add_quoted_line(struct buf *b, struct str line)
{
	size_t used = 0;

	for (size_t i = 0; i < line.n; i++) {
		unsigned char c = (unsigned char)line.p[i];
		bool          is_last = i + 1 == line.n;
		bool          is_plain = (c > ' ' && c <= '~' && c != '=') || (c == ' ' && !is_last);
		size_t        size = is_plain ? 1 : 3;

		if (used + size > (is_last ? LINE_MAX_QP : LINE_MAX_QP - 1)) {
			buf_add_text(b, "=\r\n");
			used = 0;
		}
		if (is_plain)
			buf_add_char(b, (char)c);
		else
			buf_addf(b, "=%02X", c);
		used += size;
	}
	buf_add_text(b, "\r\n");
}

/* --- the text --- */

static void add_label(struct buf *b, const char *label, struct str value, struct arena *a)
{
	struct str line = utf8_line(a, value, MEMBER_MAX);

	if (line.n)
		buf_addf(b, "%-9s %.*s\n", label, STR_ARG(line));
}

static void add_member(struct buf *b, const char *name, const json_t *value, struct arena *a)
{
	struct str key = utf8_line(a, str_from(name), NAME_MAX_SHOWN);
	struct str text = json_is_string(value) ? str_of(json_string_value(value), json_string_length(value))
	                                        : json_dump(a, value);

	text = utf8_line(a, text, MEMBER_MAX);
	if (text.n)
		buf_addf(b, "  %.*s: %.*s\n", STR_ARG(key), STR_ARG(text));
}

/* A detail that cannot be read is left out: the event's id leads to it. */
static void add_detail(struct buf *b, json_t *detail, struct arena *a)
{
	const char *name;
	json_t     *value;
	size_t      count = 0;

	if (!json_object_size(detail))
		return;
	buf_add_text(b, "\nDetails:\n");
	json_object_foreach(detail, name, value)
	{
		if (count++ == MEMBERS_MAX) {
			buf_add_text(b, "  and more\n");
			break;
		}
		add_member(b, name, value, a);
	}
}

static struct str write_text(const struct event *event, json_t *detail, struct arena *a)
{
	const struct wording *words = wording_of(event->type, detail);
	char                  time[ISO_TIME_SIZE];
	struct buf            b = BUF(TEXT_MAX);

	buf_addf(&b, "%s\n\n", words->sentence);
	add_label(&b, "What:", event->type, a);
	add_label(&b, "About:", event->subject, a);
	add_label(&b, "When:", iso_time(event->time_ms / 1000, time), a);
	add_label(&b, "By:", event->actor, a);
	add_label(&b, "Request:", event->request_id, a);
	add_detail(&b, detail, a);
	buf_addf(&b, "\nWhat to do: %s\n", words->advice);
	buf_addf(&b, "\n--\nleasehold event %.*s\n", STR_ARG(event->id));
	assert(!b.is_full);
	return buf_take(&b, a);
}

/* "[leasehold] Alarm (page): alarm/dead-letters" */
static struct str write_subject(const struct event *event, const json_t *detail, struct arena *a)
{
	const struct wording *words = wording_of(event->type, detail);
	struct str            type = utf8_line(a, event->type, EVENT_TYPE_MAX);
	struct str            about = utf8_line(a, event->subject, ABOUT_MAX);
	struct str            severity = STR("");

	if (!json_get_text(detail, "severity", &severity) || severity.n > 16)
		severity = STR("");
	severity = utf8_line(a, severity, severity.n);
	return str_format(a, "[leasehold] %.*s%s%.*s%s: %.*s", words->title ? (int)strlen(words->title) : (int)type.n,
	                  words->title ? words->title : type.p, severity.n ? " (" : "", STR_ARG(severity),
	                  severity.n ? ")" : "", STR_ARG(about));
}

struct str message_subject(const struct event *event, struct arena *a)
{
	CLEANUP(json_freep) json_t *detail = NULL;

	rc_ignore(json_parse(event->detail, &detail, NULL)); /* NULL when it is no JSON: see add_detail() */
	return write_subject(event, detail, a);
}

struct str message_text(const struct event *event, struct arena *a)
{
	CLEANUP(json_freep) json_t *detail = NULL;

	rc_ignore(json_parse(event->detail, &detail, NULL)); /* the same */
	return write_text(event, detail, a);
}

/* --- the headers --- */

static void add_message_id(struct buf *b, const struct event *event, struct str from, struct str to, struct arena *a)
{
	struct str domain = from, text = str_format(a, "%.*s\n%.*s", STR_ARG(event->id), STR_ARG(to));

	(void)str_cut(&domain, '@');
	buf_addf(b, "Message-ID: <%.32s@%.*s>\r\n", hash_sha256_hex(a, text).p, STR_ARG(domain));
}

/* The names of days and months are English whatever the locale. */
static void add_date(struct buf *b, int64_t now_sec)
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
		                              "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t                   sec = (time_t)now_sec;
	struct tm                t;

	if (gmtime_r(&sec, &t))
		buf_addf(b, "Date: %s, %d %s %d %02d:%02d:%02d +0000\r\n", days[t.tm_wday], t.tm_mday, months[t.tm_mon],
		         t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
}

static void add_headers(struct buf *b, const struct event *event, struct str from, struct str to, struct str subject,
                        int64_t now_sec, struct arena *a)
{
	struct str type = utf8_line(a, event->type, EVENT_TYPE_MAX);

	buf_addf(b, "From: leasehold <%.*s>\r\nTo: <%.*s>\r\nSubject: ", STR_ARG(from), STR_ARG(to));
	if (is_plain_subject(subject))
		buf_add_str(b, subject);
	else
		add_encoded_words(b, subject, strlen("Subject: "));
	buf_add_text(b, "\r\n");
	add_date(b, now_sec);
	add_message_id(b, event, from, to, a);
	buf_addf(b, "Auto-Submitted: auto-generated\r\nLeasehold-Event-Id: %.*s\r\n", STR_ARG(event->id));
	if (is_plain_subject(type))
		buf_addf(b, "Leasehold-Event-Type: %.*s\r\n", STR_ARG(type));
	buf_add_text(b, "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
	                "Content-Transfer-Encoding: quoted-printable\r\n\r\n");
}

struct str message_write(const struct event *event, struct str from, struct str to, int64_t now_sec, struct arena *a)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct buf                  b = BUF(MESSAGE_MAX);
	struct str                  text;

	assert(message_is_address(from) && message_is_address(to));
	rc_ignore(json_parse(event->detail, &detail, NULL)); /* NULL when it is no JSON; see add_detail() */
	add_headers(&b, event, from, to, write_subject(event, detail, a), now_sec, a);
	text = write_text(event, detail, a);
	while (text.n)
		add_quoted_line(&b, str_cut(&text, '\n'));
	assert(!b.is_full);
	return buf_take(&b, a);
}

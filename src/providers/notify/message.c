/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.c - what people are told by mail: what happened, to what, when, by whom, the evidence, what to do.
 *
 * The words for each type of event are rows of a table; types without a row get the last one. Texts of the event go through
 * utf8_line() first, so whatever is in them stays in its line: no header can be made by an event's text, and no line of ours imitated. Then
 * the subject is encoded by RFC 2047 when it is not plain ASCII, the text by quoted-printable: every line of the message is
 * ASCII, and of at most 76 characters, except the two headers that may hold a long plain one: subject and event type.
 *
 * The Message-ID comes from event and recipient, so that a mail that is sent twice is recognised as the same one.
 */
#include "providers/notify/message.h"

#include <assert.h>
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "kernel/kernel.h"
#include "kernel/records.h"

enum {
	MESSAGE_MAX = 262144,
	TEXT_MAX = 65536,
	ABOUT_MAX = 120,  /* bytes of the event's subject in the mail's */
	MEMBERS_MAX = 40, /* of the detail */
	NAME_MAX_SHOWN = 100,
	MEMBER_MAX = 1000, /* bytes of one's value */
	LINE_MAX_QP = 76,
	WORD_MAX = 76 - 12, /* a line's encoded word without "=?UTF-8?Q?" and "?=" */
	LOCAL_PART_MAX = 64,
};

/* clang-format off */
static const struct wording {
	const char *types;  /* patterns as in the routing table */
	const char *reason; /* only when the detail's reason is of this type; NULL: always */
	const char *title;
	const char *sentence;
	const char *advice;
} wordings[] = {
	{ "AlarmRaised", NULL, "Alarm", "Something is wrong and has been so for a while.",
	  "The runbook has a section for this alarm; `leasehold alarm list` shows all that hold now. A mail follows when it has cleared." },
	{ "AlarmChanged", NULL, "Alarm changed", "An alarm that was raised before is now more or less urgent.",
	  "`leasehold alarm list` shows all that hold now." },
	{ "AlarmCleared", NULL, "Alarm cleared", "What was wrong is so no longer.", "Nothing has to be done." },
	{ "SagaParked", NULL, "A person is needed", "A job of several steps stopped half-way: it can go neither forward nor back by itself.",
	  "`leasehold saga show` says which step failed, why, and what may be left over. Remedy the cause; then let it retry, skip the step "
	  "with a reason, or abort it." },
	{ "DeadLetter*", NULL, "Dead letter", "A delivery that had been given up was taken in hand.",
	  "Nothing has to be done. `leasehold dlq list` shows what is left." },
	{ "WebhookTest", NULL, "Test", "Somebody asked for a test.", "Nothing has to be done." },
	{ "LeaseRequested", NULL, "A lease is waiting for approval", "Somebody asks for an account and needs a yes or a no.",
	  "`leasehold lease show` tells what for; `leasehold lease approve` or `leasehold lease deny --reason` answers. Any manager or admin may." },
	{ "LeaseQueued", NULL, "Your lease is approved and in line", "Your request is approved, but every account is in use right now.",
	  "Nothing: you get the next one that is free, first come first served, and a mail then. `leasehold lease show` tells your place. If you no "
	  "longer need it, `leasehold lease withdraw` lets the next person through." },
	{ "LeaseProvisioningStarted", NULL, "A lease is being made ready", "An account is chosen, and access to it is on its way.",
	  "Nothing has to be done. `leasehold lease wait` tells when it is ready." },
	{ "LeaseApproved", NULL, "Your lease is ready", "Your account is ready, and you can sign in to it now.",
	  "Open the access portal and choose the account below. `leasehold lease show` tells budget and end; at either, the account is taken back and "
	  "all that is in it deleted." },
	{ "LeaseDenied", NULL, "Your lease was not approved", "Your request for a lease was denied.",
	  "The reason, if one was given, is below. Talk to who decided, or ask again with what was missing." },
	{ "LeaseWithdrawn", NULL, "A request was withdrawn", "A request for a lease was taken back before it was decided.", "Nothing has to be done." },
	{ "LeaseEdited", NULL, "A lease was changed", "Budget, end, thresholds or cost group of a lease are new.",
	  "Nothing has to be done. `leasehold lease show` tells what holds now." },
	{ "LeaseFrozen", "BudgetExceeded", "A lease is frozen: spending", "The account has spent as much as the lease freezes at, so nobody can sign in to it for now.",
	  "What runs in it goes on and still costs money. A manager can look at it and `leasehold lease unfreeze` it, or end it." },
	{ "LeaseFrozen", "Expired", "A lease is frozen: its end is near", "The lease is so near its end that it is frozen: nobody can sign in to the account for now.",
	  "A manager can give more time with `leasehold lease extend` and then `leasehold lease unfreeze`. Otherwise it ends by itself, and the account is "
	  "emptied." },
	{ "LeaseFrozen", NULL, "A lease is frozen", "A manager has frozen the lease: nobody can sign in to the account for now.",
	  "What is in the account stays, and what runs goes on and costs money. Ask who froze it; a manager can `leasehold lease unfreeze` it." },
	{ "LeaseUnfrozen", NULL, "Your lease goes on", "Your lease is no longer frozen, and you can sign in to the account again.",
	  "Nothing has to be done. Budget and end hold as before; `leasehold lease show` tells them." },
	{ "LeaseTerminated", "Expired", "A lease has ended: its time is over", "The time of the lease is over. Access to the account has ended, and it is being emptied.",
	  "Nothing has to be done, and what was in it cannot be brought back. Who still needs an account asks for a new lease." },
	{ "LeaseTerminated", "BudgetExceeded", "A lease has ended: its budget is spent", "The budget of the lease is spent. Access to the account has ended, and it is being emptied.",
	  "What was in it cannot be brought back. Look at what cost so much before asking for a new lease." },
	{ "LeaseTerminated", "ProvisioningFailed", "A lease could not be made ready", "The account could not be made ready, so the lease has ended before it began.",
	  "Ask again: another account is taken then. Admins find the cause with `leasehold saga list --state parked` and `leasehold event list`." },
	{ "LeaseTerminated", "AccountQuarantined", "A lease has ended: its account was set aside", "Something was wrong with the account, so it was set aside and the lease has ended.",
	  "Ask for a new lease: another account is taken then. If something important was in the old one, talk to an admin soon." },
	{ "LeaseTerminated", "Ejected", "A lease has ended: its account left the pool", "The account was taken out of the pool, and the lease has ended with it.",
	  "The account was not emptied. Talk to an admin if you need what is in it, or ask for a new lease." },
	{ "LeaseTerminated", NULL, "A lease has ended", "The lease was ended by hand. Access to the account has ended, and it is being emptied.",
	  "Nothing has to be done, and what was in it cannot be brought back. Who still needs an account asks for a new lease." },
	{ "LeaseProvisioningFailed", NULL, "A lease could not be made ready", "An approved lease could not be made ready, and waits for a decision again.",
	  "Approve it once more with `leasehold lease approve`: another account is taken then. The account is being emptied for the next one." },
	{ "LeaseBudgetThresholdAlert", NULL, "Your lease has used part of its budget", "Your lease has spent as much as you were to be told of.",
	  "Look at what runs in the account and stop what you do not need. When the budget is spent, the lease ends and the account is emptied." },
	{ "LeaseDurationThresholdAlert", NULL, "Your lease ends soon", "The end of your lease is near.",
	  "Save what you need: at the end the account is emptied. If you need more time, ask a manager to `leasehold lease extend` it." },
	{ "LeaseProjectedSpendAlert", NULL, "Your lease spends fast", "If it goes on like this, your lease will spend its budget before its time is over.",
	  "Look at what runs in the account and stop what you do not need, or ask a manager for a larger budget." },
	{ "LeaseFreezingThresholdAlert", NULL, "A lease is about to be frozen", "A lease has passed a threshold at which it is frozen.",
	  "Nothing has to be done: another mail tells when it is frozen." },
	{ "LeaseBudgetExceeded", NULL, "A lease has spent its budget", "A lease has spent all of its budget and is being ended.", "Nothing has to be done." },
	{ "LeaseExpired", NULL, "The time of a lease is over", "A lease has come to its end and is being ended.", "Nothing has to be done." },
	{ "LeaseCostsGenerated", NULL, "What a lease has cost", "The statement of a lease is there.", "Nothing has to be done." },
	{ "CleanAccountRequest", NULL, "An account is to be cleaned", "An account is being emptied, so that it can be lent again.", "Nothing has to be done." },
	{ "AccountCleanupSucceeded", NULL, "An account is clean", "An account has been emptied and can be lent again.", "Nothing has to be done." },
	{ "AccountCleanupFailed", NULL, "An account could not be cleaned", "Emptying an account has failed too often. It is set aside, and nobody gets it.",
	  "`leasehold account show` tells why. Remove by hand what is in the way, then `leasehold account retry-cleanup`; or `leasehold account eject` it." },
	{ "AccountQuarantined", NULL, "An account was set aside", "An account is in quarantine, and nobody gets it.",
	  "`leasehold account show` tells why. When that is mended, `leasehold account retry-cleanup` brings it back." },
	{ "AccountDriftDetected", NULL, "An account is in the wrong place", "An account is not in the organisational unit where it should be: somebody has moved it past us.",
	  "It is set aside if it is still ours. Find out who moved it, then `leasehold account retry-cleanup` brings it back to the pool." },
	{ "AccountRegistered", NULL, "An account is new in the pool", "An account was taken into the pool and is being emptied first.", "Nothing has to be done." },
	{ "AccountCleanupRetried", NULL, "An account is cleaned once more", "An admin has an account emptied again.", "Nothing has to be done." },
	{ "AccountEjected,AccountRemoved", NULL, "An account has left the pool", "An account was taken out of the pool as it is.", "It was not emptied. Whoever has it now looks after it." },
	{ "AccountFreed", NULL, "An account is free", "An account can be lent again.", "Nothing has to be done." },
	{ "GroupCostReportGenerated", NULL, "The cost report is there", "What the leases of the month have cost, by group, is added up.",
	  "`leasehold report costs` prints it." },
	{ "GroupCostReportGeneratedFailure", NULL, "The cost report could not be made", "Adding up what the leases of the month have cost has failed.",
	  "The log says why. When that is mended, `leasehold report costs` makes it again." },
	{ "*", NULL, NULL, "This happened:", "Nothing is expected of you unless your own rules say so." },
};
/* clang-format on */

static const struct wording *wording_of(struct str type, const json_t *detail)
{
	struct str reason;
	size_t     i = 0;

	if (!json_get_text(json_object_get(detail, "reason"), "type", &reason))
		reason = STR("");
	while (!kernel_matches(str_from(wordings[i].types), type) ||
	       (wordings[i].reason && !str_eq(str_from(wordings[i].reason), reason)))
		i++; /* the last row matches everything */
	return &wordings[i];
}

/* --- addresses --- */

static bool is_atom_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-/=?^_`{}~", c));
}

static bool is_domain_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
}

/* Characters of one kind with single dots between them. */
static bool is_dotted(struct str text, bool (*is_good)(char c))
{
	for (size_t i = 0; i < text.n; i++) {
		bool is_dot = text.p[i] == '.';

		if (is_dot ? i == 0 || i + 1 == text.n || text.p[i - 1] == '.' : !is_good(text.p[i]))
			return false;
	}
	return text.n > 0;
}

bool message_is_address(struct str text)
{
	struct str domain = text;
	struct str local = str_cut(&domain, '@');

	return text.n <= MAIL_ADDRESS_MAX && local.n <= LOCAL_PART_MAX && local.n < text.n &&
	       is_dotted(local, is_atom_char) && local.p[0] != '-' && is_dotted(domain, is_domain_char) &&
	       domain.p[0] != '-';
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

static bool is_plain_in_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '/' ||
	       c == '!';
}

/* RFC 2047: words that fit into lines of 76 characters, none of which ends within a character of UTF-8. The first line has `used`
 * characters already. */
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
			unsigned char c = (unsigned char)text.p[at];

			if (c == ' ' || is_plain_in_word(c))
				buf_add_char(b, c == ' ' ? '_' : (char)c);
			else
				buf_addf(b, "=%02X", c);
			used += c == ' ' || is_plain_in_word(c) ? 1 : 3;
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

static void add_quoted(struct buf *b, struct str text)
{
	while (text.n)
		add_quoted_line(b, str_cut(&text, '\n'));
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
	struct str text;

	if (json_is_string(value)) {
		text = utf8_line(a, str_of(json_string_value(value), json_string_length(value)), MEMBER_MAX);
	} else {
		char *dumped = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

		text = utf8_line(a, str_from(dumped), MEMBER_MAX);
		free(dumped);
	}
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
	struct buf            b;
	struct str            text;

	buf_init(&b, TEXT_MAX);
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
	text = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return text;
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

/* --- the headers --- */

static void add_message_id(struct buf *b, const struct event *event, struct str from, struct str to, struct arena *a)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	struct str    domain = from;
	struct str    both = str_format(a, "%.*s\n%.*s", STR_ARG(event->id), STR_ARG(to));

	(void)str_cut(&domain, '@');
	(void)SHA256((const unsigned char *)both.p, both.n, hash); /* answers its last argument */
	buf_add_text(b, "Message-ID: <");
	for (size_t i = 0; i < 16; i++)
		buf_addf(b, "%02x", hash[i]);
	buf_addf(b, "@%.*s>\r\n", STR_ARG(domain));
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
	struct buf                  b;
	struct str                  message;

	assert(message_is_address(from) && message_is_address(to));
	rc_ignore(json_parse(event->detail, &detail, NULL)); /* NULL when it is no JSON; see add_detail() */
	buf_init(&b, MESSAGE_MAX);
	add_headers(&b, event, from, to, write_subject(event, detail, a), now_sec, a);
	add_quoted(&b, write_text(event, detail, a));
	assert(!b.is_full);
	message = str_dup(a, buf_str(&b));
	buf_fini(&b);
	return message;
}

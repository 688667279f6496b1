/* SPDX-License-Identifier: Apache-2.0 */
/*
 * policy_document.c - the table of keys, and how a document is read by it.
 *
 * Reading does not stop at the first mistake: each problem is listed with its dotted path and what would be right. A
 * text that is not YAML is one problem, "input". Where a truth value is expected, yes, no, on and off are accepted too,
 * as in older YAML; everywhere else they are text.
 *
 * Always true: after a reading without problems every key of the document has a value within its row's limits.
 *
 * Not here: what the limits are for and what an approval rule is (domain/), where documents are kept (policy_store.c),
 * writing (policy_write.c).
 */
#include "service/policy/policy_document.h"

#include <string.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/json.h"
#include "base/utf8.h"
#include "base/yaml.h"
#include "domain/approval.h"
#include "domain/lease.h"
#include "service/policy/policy_keys.h"

enum {
	TERMS_MAX = 50000,
	URL_MAX = 2048,
	AUDIENCE_MAX = 1024,
	REGION_MAX = 32,
	DOLLARS_MAX = 1000000000,
	HOURS_MAX = 87600, /* ten years */
	USER_LEASES_MAX = 1000,
	DAYS_MAX = 36500,
	ATTEMPTS_MAX = 100,
	WAIT_MAX_SEC = 86400,
	SESSION_MAX_MIN = 43200, /* thirty days */
	SHOWN_MAX = 40,
	WORD_MAX = 16,
};

const char *const document_names[DOCUMENT_KIND_COUNT] = { "global", "reporting", "approval" };

/* clang-format off */
#define AT(member) offsetof(struct policy, member)
#define KEY(section, name, kind, member, most, text) \
	{ DOCUMENT_GLOBAL, section, name, kind, AT(member), 0, most, 0, text, 0 }
#define FLAG(section, name, member, text)         KEY(section, name, KEY_BOOL, member, 0, text)
#define NUMBER(section, name, member, most, text) KEY(section, name, KEY_INT, member, most, text)
const struct policy_key policy_keys[] = {
	KEY(NULL, "termsOfService", KEY_TEXT, terms_of_service, TERMS_MAX,
	  "What people agree to when they ask for a lease; Markdown."),
	FLAG(NULL, "maintenanceMode", is_maintenance, "While true, only admins get in."),
	{ DOCUMENT_GLOBAL, NULL, "isbManagedRegions", KEY_LIST, AT(regions), AT(region_count), REGION_MAX, REGIONS_MAX,
	  "The regions that are watched and cleaned, as the web UI shows them; at least one.", 1 },

	FLAG("leases", "requireMaxBudget", requires_budget, "Every lease must have a budget."),
	NUMBER("leases", "maxBudget", budget_max_usd, DOLLARS_MAX,
	  "The largest budget of a lease, in dollars; holds whether or not one is required."),
	FLAG("leases", "requireMaxDuration", requires_duration, "Every lease must have an end."),
	NUMBER("leases", "maxDurationHours", duration_max_hours, HOURS_MAX,
	  "The longest time of a lease; holds whether or not an end is required."),
	NUMBER("leases", "maxLeasesPerUser", leases_per_user, USER_LEASES_MAX,
	  "How many leases a person may have at once, including those that wait for approval."),
	FLAG("leases", "allowSelfApproval", allows_self_approval,
	  "While true, managers and admins may approve their own requests, unless a rule denies them."),
	KEY("leases", "onProjectedOverrun", KEY_OVERRUN, on_projected_overrun, WORD_MAX,
	  "When a lease will pass its budget by its end at its present rate: alert, freeze or end. Bills come 8 to 24 "
	  "hours late."),
	KEY("leases", "onEstimatedOverrun", KEY_OVERRUN, on_estimated_overrun, WORD_MAX,
	  "When it has probably passed it already, with what is not billed yet: alert, freeze or end."),
	NUMBER("leases", "ttl", ttl_days, DAYS_MAX, "Days after which the record of an ended lease is removed."),

	NUMBER("cleanup", "numberOfFailedAttemptsToCancelCleanup", clean_failures_max, ATTEMPTS_MAX,
	  "After this many failures in all, the account goes to quarantine."),
	NUMBER("cleanup", "waitBeforeRetryFailedAttemptSeconds", clean_retry_wait_sec, WAIT_MAX_SEC,
	  "The wait after a failure."),
	NUMBER("cleanup", "numberOfSuccessfulAttemptsToFinishCleanup", clean_successes, ATTEMPTS_MAX,
	  "After this many successes in a row, the account counts as clean."),
	NUMBER("cleanup", "waitBeforeRerunSuccessfulAttemptSeconds", clean_rerun_wait_sec, WAIT_MAX_SEC,
	  "The wait between two successes."),

	KEY("auth", "idpSignInUrl", KEY_URL, idp_sign_in_url, URL_MAX,
	  "Only shown to clients of Innovation Sandbox; LEASEHOLD_OIDC_ISSUER sets who signs people in."),
	KEY("auth", "idpSignOutUrl", KEY_URL, idp_sign_out_url, URL_MAX, "Only shown, likewise."),
	KEY("auth", "idpAudience", KEY_LINE, idp_audience, AUDIENCE_MAX, "Only shown, likewise."),
	KEY("auth", "webAppUrl", KEY_URL, web_app_url, URL_MAX, "Where the web UI is; links in mails begin with it."),
	KEY("auth", "awsAccessPortalUrl", KEY_HTTPS, access_portal_url, URL_MAX,
	  "Where people enter their account; https, as the web UI wants it."),
	NUMBER("auth", "sessionDurationInMinutes", session_minutes, SESSION_MAX_MIN, "How long a sign-in lasts."),

	KEY("notification", "emailFrom", KEY_EMAIL, mail_from, EMAIL_MAX,
	  "Only shown; LEASEHOLD_MAIL_FROM sets the sender of mails."),

	{ DOCUMENT_REPORTING, NULL, "costReportGroups", KEY_LIST, AT(cost_groups), AT(cost_group_count),
	  COST_GROUP_MAX, COST_GROUPS_MAX, "What costs are reported by: teams, projects, cost centres." },
	{ DOCUMENT_REPORTING, NULL, "requireCostReportGroup", KEY_BOOL, AT(requires_cost_group), 0, 0, 0,
	  "Every lease must have one of them." },
};
/* clang-format on */
const size_t policy_key_count = ARRAY_LEN(policy_keys);
_Static_assert(ARRAY_LEN(policy_keys) <= POLICY_KEYS_MAX, "a list of changes holds all keys");

struct str policy_key_path(const struct policy_key *k, struct arena *a)
{
	return str_format(a, "%s%s%s", k->section ? k->section : "", k->section ? "." : "", k->name);
}

struct policy_value policy_value(const struct policy_key *k, const struct policy *p)
{
	const void *at = (const char *)p + k->offset, *count = (const char *)p + k->count_offset;

	switch (k->kind) {
	case KEY_BOOL: return (struct policy_value){ .number = *(const bool *)at };
	case KEY_INT: return (struct policy_value){ .number = *(const int64_t *)at };
	case KEY_LIST: return (struct policy_value){ .texts = at, .count = *(const size_t *)count };
	default: return (struct policy_value){ .texts = at, .count = 1 };
	}
}

/* --- one value --- */

struct reading {
	struct policy   *policy;
	struct problems *problems;
	struct arena    *arena;
	const char      *path;
};

/* A value as it was given, short, for a message. */
static const char *shown(const struct reading *r, const json_t *value)
{
	return utf8_line(r->arena, json_dump(r->arena, value), SHOWN_MAX).p;
}

static void read_bool(struct reading *r, const json_t *value, bool *ret)
{
	struct str text = str_of(json_string_value(value), json_string_length(value));
	bool       is_true = json_is_true(value) || str_eq_nocase(text, STR("yes")) || str_eq_nocase(text, STR("on"));

	if (is_true || json_is_false(value) || str_eq_nocase(text, STR("no")) || str_eq_nocase(text, STR("off")))
		*ret = is_true;
	else
		problems_add(r->problems, r->path, "must be true or false, without quotes, not %s", shown(r, value));
}

/* A scheme, a host, and nothing that would break a line or a header. */
static bool is_url(struct str s, bool is_https)
{
	struct str host;

	if (!str_cut_prefix(&s, STR("https://")) && (is_https || !str_cut_prefix(&s, STR("http://"))))
		return false;
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f || strchr("\"<>\\^`{|}", s.p[i]))
			return false;
	host = str_cut(&s, '/');
	return host.n && host.p[0] != ':' && host.p[0] != '?' && host.p[0] != '#';
}

/* What a text of this kind must be; NULL: it is. Empty means "not set" where a kind has rules. */
static const char *text_fault(enum key_kind kind, struct str s)
{
	if (kind != KEY_TEXT && str_has_control(s))
		return "must be one line without control characters";
	if (kind == KEY_OVERRUN)
		return str_word(s, overrun_action_names, OVERRUN_ACTION_COUNT) < OVERRUN_ACTION_COUNT
		               ? NULL
		               : "must be alert, freeze or end";
	if (!s.n)
		return NULL;
	switch (kind) {
	case KEY_URL: return is_url(s, false) ? NULL : "must be a URL that begins with https:// or http://, or \"\"";
	case KEY_HTTPS: return is_url(s, true) ? NULL : "must be a URL that begins with https://, or \"\"";
	case KEY_EMAIL: return email_is_ok(s) ? NULL : "must be an email address such as sandbox@example.org, or \"\"";
	default: return NULL;
	}
}

static void read_text(struct reading *r, const struct policy_key *k, const json_t *value, struct str *ret)
{
	struct str  text = str_of(json_string_value(value), json_string_length(value));
	const char *fault;

	if (!json_is_string(value)) {
		problems_add(r->problems, r->path, "must be a text%s, not %s",
		             json_is_number(value) || json_is_boolean(value) ? " (put it in quotes)" : "",
		             shown(r, value));
	} else if (text.n > (size_t)k->most) {
		problems_add(r->problems, r->path, "has %zu bytes, at most %lld are allowed", text.n,
		             (long long)k->most);
	} else if ((fault = text_fault(k->kind, text))) {
		problems_add(r->problems, r->path, "%s, not %s", fault, shown(r, value));
	} else {
		*ret = str_dup(r->arena, text);
	}
}

static void read_item(struct reading *r, const struct policy_key *k, const json_t *value, struct str *items, size_t at)
{
	const char *list = r->path;

	r->path = str_format(r->arena, "%s.%zu", list, at).p;
	items[at] = STR("");
	read_text(r, k, value, &items[at]);
	if (json_is_string(value) && !str_trim(str_of(json_string_value(value), json_string_length(value))).n)
		problems_add(r->problems, r->path, "must be a text of 1 to %lld bytes, not empty", (long long)k->most);
	for (size_t i = 0; i < at && items[at].n; i++)
		if (str_eq(items[i], items[at]))
			problems_add(r->problems, r->path, "is the same as %s.%zu; each is listed once", list, i);
	r->path = list;
}

static void read_list(struct reading *r, const struct policy_key *k, const json_t *value, struct str *items,
                      size_t *ret_count)
{
	struct policy_key item = *k;
	size_t            count = json_array_size(value);

	item.kind = KEY_LINE;
	if (!json_is_array(value))
		problems_add(r->problems, r->path, "must be a list such as [alpha, beta], or [], not %s",
		             shown(r, value));
	else if (count < k->items_least)
		problems_add(r->problems, r->path, "must have at least %zu element%s", k->items_least,
		             k->items_least == 1 ? "" : "s");
	else if (count > k->items_most)
		problems_add(r->problems, r->path, "has %zu elements, at most %zu are allowed", count, k->items_most);
	else
		for (*ret_count = 0; *ret_count < count; (*ret_count)++)
			read_item(r, &item, json_array_get(value, *ret_count), items, *ret_count);
}

static void read_value(struct reading *r, const struct policy_key *k, const json_t *value)
{
	char *at = (char *)r->policy + k->offset;

	r->path = policy_key_path(k, r->arena).p;
	if (json_is_null(value)) {
		problems_add(r->problems, r->path, "has no value; leave the key out to have its default");
		return;
	}
	switch (k->kind) {
	case KEY_BOOL: read_bool(r, value, (bool *)(void *)at); break;
	case KEY_INT:
		if (json_is_integer(value) && json_integer_value(value) >= 0 && json_integer_value(value) <= k->most)
			*(int64_t *)(void *)at = json_integer_value(value);
		else
			problems_add(r->problems, r->path, "must be a whole number from 0 to %lld, not %s",
			             (long long)k->most, shown(r, value));
		break;
	case KEY_LIST:
		read_list(r, k, value, (struct str *)(void *)at,
		          (size_t *)(void *)((char *)r->policy + k->count_offset));
		break;
	default: read_text(r, k, value, (struct str *)(void *)at); break;
	}
}

/* --- approval rules, which are no table of keys --- */

static void read_rules(json_t *document, struct policy *policy, struct problems *p)
{
	struct approval_policy *rules = arena_alloc(p->arena, sizeof(*rules));
	struct problems         own = { .arena = p->arena };

	policy->approval = NULL;
	if (json_is_null(document))
		return; /* it has none */
	if (approval_read(document, p->arena, rules, &own) == RC_OK)
		policy->approval = rules->count ? rules : NULL;
	for (size_t i = 0; i < own.count && p->count < PROBLEMS_MAX; i++)
		p->items[p->count++] = own.items[i];
}

/* --- the document --- */

static bool is_in(const struct policy_key *k, enum document_kind kind, const char *section)
{
	return k->document == kind && (section ? k->section && strcmp(k->section, section) == 0 : !k->section);
}

/* Without a name, any of the section. */
static const struct policy_key *find_key(enum document_kind kind, const char *section, const char *name)
{
	for (size_t i = 0; i < policy_key_count; i++)
		if (is_in(&policy_keys[i], kind, section) && (!name || strcmp(policy_keys[i].name, name) == 0))
			return &policy_keys[i];
	return NULL;
}

/* "a, b, c": the names in a section, or at the top. */
static const char *known_names(struct arena *a, enum document_kind kind, const char *section)
{
	struct str  all = STR("");
	const char *last = "";

	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];
		const char              *name = !section && k->section ? k->section : k->name;

		if (k->document != kind || (section && !is_in(k, kind, section)) || strcmp(name, last) == 0)
			continue;
		all = str_format(a, "%.*s%s%s", STR_ARG(all), all.n ? ", " : "", name);
		last = name;
	}
	return all.p;
}

static void refuse_name(struct reading *r, enum document_kind kind, const char *section, const char *name)
{
	struct str short_name = utf8_line(r->arena, str_from(name), SHOWN_MAX);

	problems_add(r->problems,
	             str_format(r->arena, "%s%s%.*s", section ? section : "", section ? "." : "", STR_ARG(short_name))
	                     .p,
	             "is not known; known here are %s", known_names(r->arena, kind, section));
}

static void read_members(struct reading *r, enum document_kind kind, const char *section, json_t *object)
{
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		const struct policy_key *k = find_key(kind, section, name);

		if (k)
			read_value(r, k, value);
		else if (section || !find_key(kind, name, NULL))
			refuse_name(r, kind, section, name);
		else if (json_is_object(value))
			read_members(r, kind, name, value);
		else if (!json_is_null(value)) /* all of its lines may be comments */
			problems_add(r->problems, name, "must be a section with the keys %s, not %s",
			             known_names(r->arena, kind, name), shown(r, value));
	}
}

static void take_defaults(enum document_kind kind, struct policy *policy)
{
	struct policy defaults;

	policy_defaults(&defaults);
	if (kind == DOCUMENT_APPROVAL)
		policy->approval = defaults.approval;
	for (size_t i = 0; i < policy_key_count; i++) {
		const struct policy_key *k = &policy_keys[i];
		size_t                   size = k->kind == KEY_BOOL  ? sizeof(bool)
		                                : k->kind == KEY_INT ? sizeof(int64_t)
		                                                     : sizeof(struct str);

		if (k->document != kind)
			continue;
		memcpy((char *)policy + k->offset, (char *)&defaults + k->offset,
		       size * (k->items_most ? k->items_most : 1));
		if (k->kind == KEY_LIST)
			memcpy((char *)policy + k->count_offset, (char *)&defaults + k->count_offset, sizeof(size_t));
	}
}

/* JSON is nearly YAML; its pairs of \u are not. */
static enum rc parse(struct str text, json_t **ret, struct err *e)
{
	size_t at = 0;

	while (at < text.n && strchr(" \t\r\n", text.p[at]) && text.p[at])
		at++;
	if (at < text.n && text.p[at] == '{' && json_parse(text, ret, NULL) == RC_OK)
		return RC_OK;
	return yaml_parse(text, ret, e);
}

bool policy_says_nothing(struct str text)
{
	CLEANUP(json_freep) json_t *document = NULL;

	return parse(text, &document, NULL) == RC_OK && json_is_null(document);
}

bool policy_read(enum document_kind kind, struct str text, struct policy *policy, struct problems *p)
{
	CLEANUP(json_freep) json_t *document = NULL;
	struct reading              r = { .policy = policy, .problems = p, .arena = p->arena, .path = "input" };
	struct err                  e = { 0 };
	size_t                      before = p->count;

	take_defaults(kind, policy);
	if (parse(text, &document, &e))
		problems_add(p, "input", "%s", e.msg);
	else if (kind == DOCUMENT_APPROVAL)
		read_rules(document, policy, p);
	else if (json_is_object(document))
		read_members(&r, kind, NULL, document);
	else if (!json_is_null(document))
		problems_add(p, "input", "must be a document with the keys %s, not %s",
		             known_names(p->arena, kind, NULL), shown(&r, document));
	return p->count == before;
}

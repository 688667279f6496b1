/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_want.c - what people and other systems may ask of an instance, read strictly: a member that is not known, of
 * the wrong type or out of range is a problem, and all problems are told at once.
 *
 * The same reader serves the routes and the commands of the inbox; a command has the envelope's members besides.
 */
#include <stdarg.h>

#include "base/utf8.h"
#include "domain/instance.h"
#include "domain/lease.h"

void instance_problem(struct instance_problems *p, const char *field, const char *code, const char *fmt, ...)
{
	va_list args;

	if (p->count == INSTANCE_PROBLEMS_MAX)
		return;
	va_start(args, fmt);
	p->items[p->count++] = (struct instance_problem){ field, code, str_vformat(p->arena, fmt, args) };
	va_end(args);
}

/* --- one member --- */

/* Letters, also those of other scripts, digits, blanks, hyphens, apostrophes. */
static bool is_organization(struct str s)
{
	size_t count = 0, n;

	for (; s.n; count++, s = str_skip(s, n)) {
		n = utf8_length(s);
		if (!n || (n == 1 && !char_is_of(s.p[0], "a-zA-Z0-9 '-")))
			return false;
	}
	return count >= INSTANCE_ORGANIZATION_MIN && count <= INSTANCE_ORGANIZATION_MAX;
}

static bool is_line(struct str s)
{
	return !str_has_control(s);
}

static bool is_action(struct str s)
{
	return str_is_word_of(s, "suspend resume park unpark recover stop start");
}

enum {
	IN_CREATE = 1 << BODY_CREATE,
	IN_CHANGE = 1 << BODY_CHANGE,
	IN_STATUS = 1 << BODY_STATUS,
	IN_DELETE = 1 << BODY_DELETE,
	IN_RESTORE = 1 << BODY_RESTORE,
	IN_SIZE = 1 << BODY_SIZE,
	IN_PERSON = 1 << BODY_PERSON
};

#define AT(member) offsetof(struct instance_want, member)

/* A text: in which bodies it may be, in which it must be. */
static const struct text_rule {
	const char *name;
	unsigned    in, required;
	size_t      offset, max;
	bool (*is_ok)(struct str s);
	const char *what;
} texts[] = {
	{ "organizationName", IN_CREATE, IN_CREATE, AT(organization), SIZE_MAX, is_organization,
	  "must be 2 to 100 letters, digits, blanks, hyphens and apostrophes" },
	{ "contactEmail", IN_CREATE | IN_CHANGE, IN_CREATE, AT(contact_email), EMAIL_MAX, email_is_ok,
	  "must be an e-mail address" },
	{ "opportunityId", IN_CREATE, 0, AT(opportunity_id), INSTANCE_LABEL_MAX, is_line,
	  "must be at most 64 bytes without control characters" },
	{ "action", IN_STATUS, IN_STATUS, AT(action), SIZE_MAX, is_action,
	  "must be suspend, resume, park, unpark or recover" },
	{ "reason", IN_STATUS | IN_DELETE, 0, AT(reason), INSTANCE_REASON_MAX, is_line,
	  "must be at most 400 bytes without control characters" },
	{ "backupId", IN_RESTORE, IN_RESTORE, AT(backup_id), INSTANCE_ID_MAX, is_line, "must be the id of a backup" },
	{ "email", IN_PERSON, IN_PERSON, AT(email), EMAIL_MAX, email_is_ok, "must be an e-mail address" },
	{ "name", IN_PERSON, 0, AT(name), INSTANCE_LABEL_MAX, is_line,
	  "must be at most 64 bytes without control characters" },
};

static void read_text(const json_t *body, const struct text_rule *t, unsigned kind, struct instance_want *w,
                      struct instance_problems *p)
{
	struct str text = STR("");

	if (!(t->in & kind))
		return;
	if (!json_get_text(body, t->name, &text))
		instance_problem(p, t->name, "INVALID_TYPE", "%s must be a text", t->name);
	else if (!str_trim(text).n && t->required & kind)
		instance_problem(p, t->name, "REQUIRED", "%s is required: it %s", t->name, t->what);
	else if (text.n && (text.n > t->max || !t->is_ok(str_trim(text))))
		instance_problem(p, t->name, "INVALID_FORMAT", "%s %s", t->name, t->what);
	else
		*(struct str *)(void *)((char *)w + t->offset) = str_dup(p->arena, str_trim(text));
}

static void read_tier(const json_t *body, struct instance_want *w, struct instance_problems *p)
{
	struct str text;
	int        tier;

	if (!json_get_text(body, "tier", &text)) {
		instance_problem(p, "tier", "INVALID_TYPE", "tier must be a text");
		return;
	}
	tier = str_word(text, instance_tier_names, TIER_COUNT);
	if (tier < TIER_COUNT)
		w->tier = tier;
	else if (text.n)
		instance_problem(p, "tier", "INVALID_VALUE", "tier must be STANDARD, PROFESSIONAL or ENTERPRISE");
}

static void read_count(const json_t *object, const char *field, bool is_required, struct instance_want *w,
                       struct instance_problems *p)
{
	const json_t *member = json_object_get(object, "desiredCount");

	if (!member || json_is_null(member)) {
		if (is_required)
			instance_problem(p, field, "REQUIRED", "%s is required, a whole number from %d to %d", field,
			                 INSTANCE_COUNT_MIN, INSTANCE_COUNT_MAX);
		return;
	}
	if (!json_is_integer(member))
		instance_problem(p, field, "INVALID_TYPE", "%s must be a whole number from %d to %d", field,
		                 INSTANCE_COUNT_MIN, INSTANCE_COUNT_MAX);
	else if (json_integer_value(member) < INSTANCE_COUNT_MIN || json_integer_value(member) > INSTANCE_COUNT_MAX)
		instance_problem(p, field, "SCALE_LIMIT_EXCEEDED", "%s must be a whole number from %d to %d", field,
		                 INSTANCE_COUNT_MIN, INSTANCE_COUNT_MAX);
	else
		w->desired_count = json_integer_value(member);
}

static void read_configuration(const json_t *body, unsigned kind, struct instance_want *w, struct instance_problems *p)
{
	json_t     *object = json_object_get(body, "configuration"), *value;
	struct str  version;
	const char *name;

	if (!object || json_is_null(object))
		return;
	if (!json_is_object(object)) {
		instance_problem(p, "configuration", "INVALID_TYPE", "configuration must be an object");
		return;
	}
	json_object_foreach(object, name, value)
	{
		if (!str_eq(str_from(name), STR("wordpressVersion")) &&
		    !(kind == IN_CREATE && str_eq(str_from(name), STR("desiredCount"))))
			instance_problem(p, "configuration", "UNKNOWN_FIELD", "there is no member '%.40s' here", name);
	}
	if (kind == IN_CREATE)
		read_count(object, "configuration.desiredCount", false, w, p);
	if (!json_get_text(object, "wordpressVersion", &version) || version.n > INSTANCE_VERSION_MAX ||
	    (!str_is_of(version, "0-9.") && !str_eq(version, STR("latest"))))
		instance_problem(p, "configuration.wordpressVersion", "INVALID_FORMAT",
		                 "configuration.wordpressVersion must be a version such as 6.5, or latest");
	else
		w->wordpress_version = str_dup(p->arena, version);
}

/* --- a body --- */

static bool is_known(const char *name, unsigned kind)
{
	static const struct {
		const char *name;
		unsigned    in;
	} others[] = {
		{ "tier", IN_CREATE | IN_CHANGE },
		{ "configuration", IN_CREATE | IN_CHANGE },
		{ "desiredCount", IN_SIZE },
		{ "archiveData", IN_DELETE },
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (str_eq(str_from(texts[i].name), str_from(name)))
			return texts[i].in & kind;
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (str_eq(str_from(others[i].name), str_from(name)))
			return others[i].in & kind;
	return false;
}

static void refuse_unknown(json_t *body, unsigned kind, struct instance_problems *p)
{
	const char *name;
	json_t     *value;

	json_object_foreach(body, name, value)
	{
		if (!is_known(name, kind))
			instance_problem(p, "body", "UNKNOWN_FIELD", "there is no member '%.40s' here", name);
	}
}

/* Why is told to people later: a suspend or a park without it is refused. */
static void check_reason(const struct instance_want *w, struct instance_problems *p)
{
	bool needs_one = str_eq(w->action, STR("suspend")) || str_eq(w->action, STR("stop")) ||
	                 str_eq(w->action, STR("park"));

	if (needs_one && !w->reason.n)
		instance_problem(p, "reason", "REQUIRED", "reason is required to %.*s: say why, it is kept",
		                 STR_ARG(w->action));
}

void instance_want_read(const json_t *body, enum instance_body kind, struct instance_want *ret,
                        struct instance_problems *p)
{
	unsigned bit = 1u << kind;

	*ret = (struct instance_want){ .tier = -1 };
	if (!json_is_object(body)) {
		instance_problem(p, "body", "INVALID_TYPE", "the body must be a JSON object");
		return;
	}
	refuse_unknown((json_t *)(uintptr_t)body, bit, p);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		read_text(body, &texts[i], bit, ret, p);
	if (bit & (IN_CREATE | IN_CHANGE)) {
		read_tier(body, ret, p);
		read_configuration(body, bit, ret, p);
	}
	if (kind == BODY_CHANGE && !p->count && ret->tier < 0 && !ret->wordpress_version.n && !ret->contact_email.n)
		instance_problem(p, "body", "REQUIRED",
		                 "nothing to change: give tier, contactEmail or configuration.wordpressVersion");
	if (bit & IN_SIZE)
		read_count(body, "desiredCount", true, ret, p);
	if (bit & IN_STATUS)
		check_reason(ret, p);
	if (bit & IN_DELETE && json_object_get(body, "archiveData") &&
	    !json_is_true(json_object_get(body, "archiveData")))
		instance_problem(p, "archiveData", "INVALID_VALUE",
		                 "archiveData must be true: data are always archived before they are removed");
}

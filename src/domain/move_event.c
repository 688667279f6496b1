/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_event.c - reads the event of a MoveAccount.
 *
 * What decides something must be there and exact: the names of the source and of the call, and the three ids. All else may be there or not,
 * and members that we do not know are no problem, since CloudTrail adds some every year.
 *
 * An event about a call that failed is a good event: it says that nothing was moved.
 */
#include "domain/move_event.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/json.h"

enum { ACCOUNT_DIGITS = 12, PART_MAX = 32, FIRST_MIN = 4, SECOND_MIN = 8 };

const char *const move_problem_names[MOVE_PROBLEM_COUNT] = {
#define X(name, text) [MOVE_##name] = text,
	MOVE_PROBLEMS(X)
#undef X
};

void move_problem_set(struct move_problem *p, enum move_problem_kind kind, const char *action, const char *fmt, ...)
{
	va_list args;

	p->kind = kind;
	p->action = action ? action : MOVE_PARSE_ERROR;
	va_start(args, fmt);
	vsnprintf(p->details, sizeof(p->details), fmt, args);
	va_end(args);
}

/* --- ids --- */

bool move_is_account(struct str id)
{
	for (size_t i = 0; i < id.n; i++)
		if (id.p[i] < '0' || id.p[i] > '9')
			return false;
	return id.n == ACCOUNT_DIGITS;
}

/* So many small letters and digits, at least. */
static bool is_part(struct str text, size_t least)
{
	for (size_t i = 0; i < text.n; i++)
		if ((text.p[i] < 'a' || text.p[i] > 'z') && (text.p[i] < '0' || text.p[i] > '9'))
			return false;
	return text.n >= least && text.n <= PART_MAX;
}

static bool cut_prefix(struct str *text, struct str prefix)
{
	if (!str_starts_with(*text, prefix))
		return false;
	*text = str_of(text->p + prefix.n, text->n - prefix.n);
	return true;
}

bool move_is_ou(struct str id)
{
	return cut_prefix(&id, STR("ou-")) && is_part(str_cut(&id, '-'), FIRST_MIN) && is_part(id, SECOND_MIN);
}

bool move_is_parent(struct str id)
{
	struct str rest = id;

	return move_is_ou(id) || (cut_prefix(&rest, STR("r-")) && is_part(rest, FIRST_MIN));
}

/* --- the event --- */

struct reader {
	struct arena        *arena;
	struct move_problem *problem;
};

/* A text that must be there. */
static bool read_text(const struct reader *r, const json_t *object, const char *where, const char *name,
                      struct str *ret)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_string(value)) {
		move_problem_set(r->problem, MOVE_MISSING, NULL, "%s%s: is required, a text", where, name);
		return false;
	}
	*ret = str_dup(r->arena, str_of(json_string_value(value), json_string_length(value)));
	return true;
}

static bool read_exact(const struct reader *r, const json_t *object, const char *where, const char *name,
                       const char *expected)
{
	struct str text;

	if (!read_text(r, object, where, name, &text))
		return false;
	if (str_eq(text, str_from(expected)))
		return true;
	move_problem_set(r->problem, MOVE_OTHER_EVENT, NULL, "%s%s: must be '%s', not '%.40s'", where, name, expected,
	                 text.p);
	return false;
}

static bool read_id(const struct reader *r, const json_t *object, const char *name, bool (*is_ok)(struct str),
                    const char *form, struct str *ret)
{
	if (!read_text(r, object, "detail.requestParameters.", name, ret))
		return false;
	if (is_ok(*ret))
		return true;
	move_problem_set(r->problem, MOVE_BAD_ID, NULL, "detail.requestParameters.%s: must be %s, not '%.40s'", name,
	                 form, ret->p);
	return false;
}

static bool read_envelope(const struct reader *r, const json_t *event)
{
	static const char *const names[] = { "version", "id", "account", "time", "region" };
	struct str               ignored;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!read_text(r, event, "", names[i], &ignored))
			return false;
	return read_exact(r, event, "", "detail-type", "AWS API Call via CloudTrail") &&
	       read_exact(r, event, "", "source", "aws.organizations");
}

static bool read_move(const struct reader *r, const json_t *detail, struct move_event *ret)
{
	static const char form[] = "an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx) in small letters and digits";
	const json_t     *parameters = json_object_get(detail, "requestParameters");

	return read_exact(r, detail, "detail.", "eventSource", "organizations.amazonaws.com") &&
	       read_exact(r, detail, "detail.", "eventName", "MoveAccount") &&
	       read_text(r, detail, "detail.", "eventTime", &ret->time) &&
	       read_text(r, detail, "detail.", "eventID", &ret->id) &&
	       read_id(r, parameters, "accountId", move_is_account, "12 digits", &ret->account) &&
	       read_id(r, parameters, "sourceParentId", move_is_parent, form, &ret->source) &&
	       read_id(r, parameters, "destinationParentId", move_is_parent, form, &ret->destination);
}

/* Any errorCode says that the call failed, whatever its type. */
static struct str read_error(const struct reader *r, const json_t *detail)
{
	const json_t *code = json_object_get(detail, "errorCode");
	struct str    text;

	if (!code || json_is_null(code))
		return STR("");
	return json_get_text(detail, "errorCode", &text) && text.n ? str_dup(r->arena, text) : STR("unknown");
}

enum rc move_event_parse(struct str text, struct arena *a, struct move_event *ret, struct move_problem *ret_problem)
{
	CLEANUP(json_freep) json_t *event = NULL;
	struct move_problem         ignored;
	struct reader               r = { a, ret_problem ? ret_problem : &ignored };
	struct move_event           m = { 0 };
	struct err                  e = { 0 };
	const json_t               *detail;
	int64_t                     sec;

	if (json_parse(text, &event, &e)) {
		move_problem_set(r.problem, MOVE_NOT_JSON, NULL, "%.180s", e.msg);
		return RC_INVALID;
	}
	detail = json_object_get(event, "detail");
	if (!read_envelope(&r, event) || !read_move(&r, detail, &m))
		return RC_INVALID;
	m.error_code = read_error(&r, detail);
	if (iso_time_parse(m.time, &sec))
		m.time_ms = sec * 1000;
	if (json_get_text(json_object_get(detail, "userIdentity"), "arn", &m.by))
		m.by = str_dup(a, m.by);
	*ret = m;
	return RC_OK;
}

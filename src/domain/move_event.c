/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_event.c - reads the event of a MoveAccount.
 *
 * What decides something must be there and exact: the names of the source and of the call, and the three ids. All else
 * may be there or not, and members that we do not know are no problem, since CloudTrail adds some every year.
 *
 * An event about a call that failed is a good event: it says that nothing was moved.
 */
#include "domain/move_event.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/lease.h"

enum { PART_MAX = 32, FIRST_MIN = 4, SECOND_MIN = 8 };

const char *const move_problem_names[MOVE_PROBLEM_COUNT] = { MOVE_PROBLEMS(ROW_TEXT) };

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

static bool is_part(struct str text, size_t least)
{
	return text.n >= least && text.n <= PART_MAX && str_is_of(text, "a-z0-9");
}

bool move_is_ou(struct str id)
{
	return str_cut_prefix(&id, STR("ou-")) && is_part(str_cut(&id, '-'), FIRST_MIN) && is_part(id, SECOND_MIN);
}

bool move_is_parent(struct str id)
{
	struct str rest = id;

	return move_is_ou(id) || (str_cut_prefix(&rest, STR("r-")) && is_part(rest, FIRST_MIN));
}

/* --- the event --- */

enum { NOT_KEPT = -1 };
#define AT(member) (int)offsetof(struct move_event, member)

static const char parent_form[] = "an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx) in small letters and digits";

/* Texts that must be there, in the order in which they are looked at. */
static const struct member {
	const char *where, *name; /* where: "", or a path with a dot at its end */
	int         offset;       /* into struct move_event */
	const char *expected;     /* NULL: see is_ok */
	bool (*is_ok)(struct str id);
	const char *form;
} members[] = {
	{ "", "version", NOT_KEPT },
	{ "", "id", NOT_KEPT },
	{ "", "account", NOT_KEPT },
	{ "", "time", NOT_KEPT },
	{ "", "region", NOT_KEPT },
	{ "", "detail-type", NOT_KEPT, "AWS API Call via CloudTrail" },
	{ "", "source", NOT_KEPT, "aws.organizations" },
	{ "detail.", "eventSource", NOT_KEPT, "organizations.amazonaws.com" },
	{ "detail.", "eventName", NOT_KEPT, "MoveAccount" },
	{ "detail.", "eventTime", AT(time) },
	{ "detail.", "eventID", AT(id) },
	{ "detail.requestParameters.", "accountId", AT(account), NULL, account_id_is_ok, "12 digits" },
	{ "detail.requestParameters.", "sourceParentId", AT(source), NULL, move_is_parent, parent_form },
	{ "detail.requestParameters.", "destinationParentId", AT(destination), NULL, move_is_parent, parent_form },
};

static bool read_member(const json_t *event, const struct member *m, struct arena *a, struct move_event *ret,
                        struct move_problem *problem)
{
	const json_t *value = event;
	struct str    path = str_from(m->where), text;

	while (path.n)
		value = json_object_get(value, str_dup(a, str_cut(&path, '.')).p);
	value = json_object_get(value, m->name);
	text = str_dup(a, str_of(json_string_value(value), json_string_length(value)));
	if (!json_is_string(value)) {
		move_problem_set(problem, MOVE_MISSING, NULL, "%s%s: is required, a text", m->where, m->name);
		return false;
	}
	if (m->expected && !str_eq(text, str_from(m->expected))) {
		move_problem_set(problem, MOVE_OTHER_EVENT, NULL, "%s%s: must be '%s', not '%.40s'", m->where, m->name,
		                 m->expected, text.p);
		return false;
	}
	if (m->is_ok && !m->is_ok(text)) {
		move_problem_set(problem, MOVE_BAD_ID, NULL, "%s%s: must be %s, not '%.40s'", m->where, m->name,
		                 m->form, text.p);
		return false;
	}
	if (m->offset != NOT_KEPT)
		*(struct str *)(void *)((char *)ret + m->offset) = text;
	return true;
}

enum rc move_event_parse(struct str text, struct arena *a, struct move_event *ret, struct move_problem *ret_problem)
{
	CLEANUP(json_freep) json_t *event = NULL;
	struct move_problem         ignored;
	struct move_problem        *problem = ret_problem ? ret_problem : &ignored;
	struct move_event           m = { 0 };
	struct err                  e = { 0 };
	const json_t               *detail, *code;
	int64_t                     sec;

	if (json_parse(text, &event, &e)) {
		move_problem_set(problem, MOVE_NOT_JSON, NULL, "%.180s", e.msg);
		return RC_INVALID;
	}
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		if (!read_member(event, &members[i], a, &m, problem))
			return RC_INVALID;
	detail = json_object_get(event, "detail");
	code = json_object_get(detail, "errorCode");
	if (code && !json_is_null(code)) /* any says that the call failed, whatever its type */
		m.error_code = json_get_text(detail, "errorCode", &m.error_code) && m.error_code.n
		                       ? str_dup(a, m.error_code)
		                       : STR("unknown");
	if (iso_time_parse(m.time, &sec))
		m.time_ms = sec * 1000;
	if (json_get_text(json_object_get(detail, "userIdentity"), "arn", &m.by))
		m.by = str_dup(a, m.by);
	*ret = m;
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - from the JSON of a lease, a template or an account to lines for people. Knows no commands. */
#include "cli/card.h"

#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { HOUR_SEC = 3600, HOURS_MOST = 1000000, CELL_MAX = 4096 };

void card_print(struct remote *remote, const json_t *item, const struct card_line *lines, size_t count)
{
	CLEANUP(json_freep) json_t *shown = json_object();

	for (size_t i = 0; i < count; i++) {
		struct str text = lines[i].cell(remote, item, lines[i].member);

		if (text.n)
			(void)json_object_set_new(shown, lines[i].label,
			                          json_stringn(text.p,
			                                       text.n)); /* text that is not UTF-8 is not shown */
	}
	show_record(remote->io->out, &remote->arena, shown, clock_now(remote->io->clock), remote->is_coloured);
}

void card_show(struct remote *remote, const struct fetch_reply *reply, const json_t *document,
               const struct card_line *lines, size_t count)
{
	if (remote->is_json)
		remote_print_json(remote, reply);
	else
		card_print(remote, json_object_get(document, "data"), lines, count);
}

static struct str time_of(struct remote *remote, const json_t *item, const char *member)
{
	struct str text;
	int64_t    sec;

	if (!json_get_text(item, member, &text) || !iso_time_parse(text, &sec))
		return STR("");
	return show_time(&remote->arena, sec, clock_now(remote->io->clock));
}

struct str card_time(struct remote *remote, const json_t *item, const char *member)
{
	return time_of(remote, item, member);
}

struct str card_created(struct remote *remote, const json_t *item, const char *member)
{
	(void)member;
	return time_of(remote, json_object_get(item, "meta"), "createdTime");
}

struct str card_dollars(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *value = json_object_get(item, member);

	return json_is_number(value) ? str_format(&remote->arena, "%.2f", json_number_value(value)) : STR("");
}

struct str card_hours(struct remote *remote, const json_t *item, const char *member)
{
	double hours = json_number_value(json_object_get(item, member)); /* 0 for anything else */

	return hours > 0 && hours < HOURS_MOST ? show_duration(&remote->arena, llround(hours * HOUR_SEC)) : STR("");
}

/* Of either kind: by dollars or by hours. */
struct str card_thresholds(struct remote *remote, const json_t *item, const char *member)
{
	const json_t *list = json_object_get(item, member);
	struct buf    b;
	struct str    ret;

	buf_init(&b, CELL_MAX);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *one = json_array_get(list, i);
		struct str    spent = card_dollars(remote, one, "dollarsSpent");
		struct str    left = card_hours(remote, one, "hoursRemaining");
		struct str    action = list_text(remote, one, "action");

		buf_addf(&b, "%sat %.*s%.*s%s %.*s", b.n ? ", " : "", STR_ARG(spent), STR_ARG(left),
		         left.n ? " before the end" : "", STR_ARG(action));
	}
	ret = str_dup(&remote->arena, buf_str(&b));
	buf_fini(&b);
	return ret;
}

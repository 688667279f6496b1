/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_status.c - everything at a glance, on a screen of 80 columns.
 *
 * Four answers of the server make one picture. The overview must be there; the others may be refused (a server that
 * lends no accounts has no holds), and then their lines are not there. Events of jobs and timers are left out:
 * something always ticks, and would push out what matters. What a bar says is said in numbers too: nobody has to read
 * colours.
 */
#include "cli/commands/run.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/term/show.h"

enum { WIDTH = 79, LABEL = 11, BAR = WIDTH - LABEL, MONEY_BAR = 34, SERIES = 24, ALARMS_MOST = 5 };

#define GREEN   "\033[32m"
#define BLUE    "\033[34m"
#define YELLOW  "\033[33m"
#define MAGENTA "\033[35m"
#define CYAN    "\033[36m"
#define RED     "\033[31m"
#define GREY    "\033[90m"

/* A part of a bar. */
struct chart_part {
	const char *member; /* of the counts, a JSON object */
	const char *label;
	const char *colour; /* with colour all parts are blocks, */
	char        mark;   /* without, each has a character of its own */
};

enum { CHART_PARTS_MAX = 12 };

/* clang-format off */
static const struct chart_part sandboxes[] = {
	{ "available",        "available",       GREEN,   '#' },
	{ "allocated",        "allocated",       BLUE,    '=' },
	{ "pending_deletion", "pending deletion", YELLOW,  '-' },
	{ "stale",            "stale",           MAGENTA, '~' },
	{ "deletion_failed",  "deletion failed", RED,     '!' },
};

static const struct chart_part accounts[] = {
	{ "Available",  "available",   GREEN,   '#' },
	{ "Active",     "active",      BLUE,    '=' },
	{ "Frozen",     "frozen",      CYAN,    '*' },
	{ "CleanUp",    "clean-up",    YELLOW,  '-' },
	{ "Cooldown",   "cooldown",    MAGENTA, 'z' },
	{ "Quarantine", "quarantine",  RED,     '!' },
	{ "Exit",       "leaving",     GREY,    'x' },
};

static const struct chart_part instances[] = {
	{ "PROVISIONING",           "provisioning",  CYAN,    '+' },
	{ "ACTIVE",                 "active",        BLUE,    '=' },
	{ "SCALING",                "scaling",       CYAN,    '%' },
	{ "SUSPENDED",              "suspended",     YELLOW,  '-' },
	{ "PARKED",                 "parked",        MAGENTA, 'z' },
	{ "PENDING_DEPROVISIONING", "to be removed", GREY,    'x' },
	{ "DEPROVISIONING",         "being removed", GREY,    '.' },
	{ "FAILED",                 "failed",        RED,     '!' },
};

static const struct chart_part leases[] = {
	{ "PendingApproval",    "pending approval",    YELLOW,  '?' },
	{ "Provisioning",       "provisioning",        CYAN,    '+' },
	{ "Active",             "active",         BLUE,    '=' },
	{ "Frozen",             "frozen",         CYAN,    '*' },
	{ "ApprovalDenied",     "approval denied",     GREY,    'd' },
	{ "Expired",            "expired",        GREY,    'e' },
	{ "BudgetExceeded",     "budget exceeded",     RED,     '$' },
	{ "ManuallyTerminated", "manually terminated", GREY,    '.' },
	{ "AccountQuarantined", "account quarantined", RED,     '!' },
	{ "Ejected",            "ejected",        GREY,    'x' },
	{ "ProvisioningFailed", "provisioning failed", RED,     'f' },
};
/* clang-format on */

/* An answer of the server; the JSON is NULL when it was refused. */
struct part {
	const char        *name;
	struct str         path;
	struct fetch_reply reply;
	json_t            *json;
};

enum { OVERVIEW, HOLDS, QUEUES, EVENTS, PARTS };

struct glance {
	struct remote *remote;
	FILE          *out;
	bool           is_coloured;
	struct part    parts[PARTS];
};

static void print_label(const struct glance *g, const char *label)
{
	fprintf(g->out, "%s%-*s%s", g->is_coloured ? "\033[1m" : "", LABEL, label, g->is_coloured ? "\033[0m" : "");
}

/* Text in a colour, where there are colours. */
static void print_in(const struct glance *g, const char *colour, struct str text)
{
	fprintf(g->out, "%s%.*s%s", g->is_coloured ? colour : "", STR_ARG(text), g->is_coloured ? "\033[0m" : "");
}

static void print_head(const struct glance *g)
{
	struct remote *remote = g->remote;
	struct str     date = show_date(&remote->arena, wall_sec(clock_now(remote->io->clock)));
	struct str     base = remote->base;

	if (str_ends_with(base, STR("/v1")))
		base.n -= 3;
	base = show_cut(&remote->arena, base, WIDTH - (date.n + 14));
	print_in(g, "\033[1m", STR("leasehold"));
	fprintf(g->out, "  %.*s%*s%.*s\n\n", STR_ARG(base), (int)(WIDTH - 11 - base.n - date.n), "", STR_ARG(date));
}

/* How many characters of the bar each part gets: its share, at least one unless it is empty; the longest gives or takes
 * the rest. */
static void share(const int64_t *counts, size_t count, int64_t total, size_t *ret)
{
	size_t longest = 0, used = 0;

	for (size_t i = 0; i < count; i++) {
		ret[i] = (size_t)((double)counts[i] / (double)total * BAR);
		if (counts[i] && !ret[i])
			ret[i] = 1;
		used += ret[i];
		if (ret[i] > ret[longest])
			longest = i;
	}
	ret[longest] += BAR - used; /* wraps and comes back when too many were used */
}

/* "# free 180  = claimed 20": the parts that are not empty. */
static void print_legend(const struct glance *g, const struct chart_part *parts, const int64_t *counts, size_t count)
{
	size_t at = LABEL;

	for (size_t i = 0; i < count; i++) {
		char   text[64];
		size_t length = (size_t)snprintf(text, sizeof(text), "%s %" PRId64, parts[i].label, counts[i]) + 2;

		if (!counts[i])
			continue;
		if (at > LABEL && at + 2 + length > WIDTH) {
			fprintf(g->out, "\n%*s", LABEL, "");
			at = LABEL;
		}
		if (at > LABEL)
			at += (size_t)fprintf(g->out, "  ");
		if (g->is_coloured)
			fprintf(g->out, "%s\xe2\x96\x88\033[0m %s", parts[i].colour, text);
		else
			fprintf(g->out, "%c %s", parts[i].mark, text);
		at += length;
	}
	fputc('\n', g->out);
}

static void print_counts(const struct glance *g, const char *label, const json_t *members,
                         const struct chart_part *parts, size_t count)
{
	int64_t counts[CHART_PARTS_MAX], total = 0;
	size_t  cells[CHART_PARTS_MAX] = { 0 };

	assert(count <= CHART_PARTS_MAX);
	for (size_t i = 0; i < count; i++) {
		counts[i] = member_number(members, parts[i].member);
		if (counts[i] < 0)
			counts[i] = 0;
		total += counts[i];
	}
	if (total)
		share(counts, count, total, cells);
	print_label(g, label);
	for (size_t k = 0; !total && k < BAR; k++)
		fputc('.', g->out);
	for (size_t i = 0; i < count; i++) {
		if (g->is_coloured && cells[i])
			fputs(parts[i].colour, g->out);
		for (size_t k = 0; k < cells[i]; k++)
			if (g->is_coloured)
				fputs("\xe2\x96\x88", g->out);
			else
				fputc(parts[i].mark, g->out);
		if (g->is_coloured && cells[i])
			fputs("\033[0m", g->out);
	}
	fprintf(g->out, "\n%*s", LABEL, "");
	if (total)
		print_legend(g, parts, counts, count);
	else
		fprintf(g->out, "none\n");
}

/* The last numbers, as eighths of the greatest. */
static void print_series(const struct glance *g, const json_t *series)
{
	size_t  n = json_array_size(series), from = n > SERIES ? n - SERIES : 0;
	int64_t most = 1, value;

	for (size_t i = from; i < n; i++)
		if ((value = member_number(json_array_get(series, i), "granted")) > most)
			most = value;
	fputs("  ", g->out);
	for (size_t i = from; i < n; i++) {
		value = member_number(json_array_get(series, i), "granted");
		/* U+2581 to U+2588: one to eight eighths */
		fprintf(g->out, "\xe2\x96%c", (int)(0x81 + ((value < 0 ? 0 : value) * 7 + most - 1) / most));
	}
}

static void print_claims(const struct glance *g, const json_t *overview)
{
	const json_t *claims = json_object_get(overview, "claims"), *line = json_object_get(overview, "line");
	const json_t *p99 = json_object_get(claims, "p99_ms");
	struct str    estimate = cell_seconds(g->remote, line, "estimate_sec");
	int64_t       waiting = member_number(line, "waiting");

	print_label(g, "Claims");
	if (json_is_true(json_object_get(claims, "paused")))
		print_in(g, RED, STR("paused; "));
	fprintf(g->out, "%" PRId64 " a minute", member_number(claims, "per_minute"));
	if (json_is_number(p99))
		fprintf(g->out, ", p99 %.3g ms", json_number_value(p99));
	fprintf(g->out, "; %" PRId64 " waiting in line", waiting);
	if (waiting && estimate.n)
		fprintf(g->out, ", about %.*s", STR_ARG(estimate));
	if (g->is_coloured && json_array_size(json_object_get(overview, "series")))
		print_series(g, json_object_get(overview, "series"));
	fputc('\n', g->out);
}

static void print_spend(const struct glance *g, const json_t *lending)
{
	double     spent = json_number_value(json_object_get(lending, "spend_usd"));
	double     budget = json_number_value(json_object_get(lending, "budget_usd"));
	double     used = budget > 0 ? spent / budget : 0;
	int        cells = used > 1 ? MONEY_BAR : (int)(used * MONEY_BAR + 0.5);
	struct str known = json_dollars(&g->remote->arena, spent), most = json_dollars(&g->remote->arena, budget);

	print_label(g, "Spend");
	fputs(g->is_coloured ? (used > 0.8 ? RED : GREEN) : "[", g->out);
	for (int i = 0; i < MONEY_BAR; i++)
		if (g->is_coloured)
			fputs(i < cells ? "\xe2\x96\x88" : "\xe2\x96\x91", g->out);
		else
			fputc(i < cells ? '#' : '.', g->out);
	fprintf(g->out, "%s  $%.*s of $%.*s", g->is_coloured ? "\033[0m" : "]", STR_ARG(known), STR_ARG(most));
	if (budget > 0)
		fprintf(g->out, ", %.0f %%", used * 100);
	fputs(json_is_true(json_object_get(lending, "partial")) ? ", not all counted\n" : "\n", g->out);
}

/* When the next account is free again, and how many wait for a person. */
static void print_rests(const struct glance *g)
{
	const json_t *holds = json_object_get(g->parts[HOLDS].json, "holds"), *next = NULL;
	size_t        by_hand = 0;

	for (size_t i = 0; i < json_array_size(holds); i++) {
		const json_t *hold = json_array_get(holds, i);

		if (!json_is_integer(json_object_get(hold, "due_at")))
			by_hand++;
		else if (!next || member_number(hold, "due_at") < member_number(next, "due_at"))
			next = hold;
	}
	if (!next && !by_hand)
		return;
	fprintf(g->out, "%*s", LABEL, "");
	if (next) {
		struct str id = cell_text(g->remote, next, "account_id"), due = cell_due(g->remote, next, "due_at");

		fprintf(g->out, "next cooldown ends %.*s (%.*s)", STR_ARG(due), STR_ARG(id));
	}
	if (by_hand)
		fprintf(g->out, "%s%zu held until released", next ? "; " : "", by_hand);
	fputc('\n', g->out);
}

static void print_work(const struct glance *g, const json_t *kernel)
{
	const json_t *queues = json_object_get(g->parts[QUEUES].json, "queues");
	int64_t       lanes = 0, failing = 0, dead = member_number(kernel, "dead_letters"), parked;

	for (size_t i = 0; i < json_array_size(queues); i++) {
		lanes += member_number(json_array_get(queues, i), "lanes");
		failing += member_number(json_array_get(queues, i), "failing");
	}
	parked = member_number(kernel, "sagas_parked");
	print_label(g, "Queues");
	fprintf(g->out, "%" PRId64 " to deliver, %" PRId64 " failing, ", lanes, failing);
	print_in(g, dead ? RED : "", str_format(&g->remote->arena, "%" PRId64 " dead letters", dead));
	fprintf(g->out, "; sagas %" PRId64 " running, ", member_number(kernel, "sagas_running"));
	print_in(g, parked ? RED : "", str_format(&g->remote->arena, "%" PRId64 " parked", parked));
	fputc('\n', g->out);
}

static void print_alarms(const struct glance *g, const json_t *alarms)
{
	struct arena *a = &g->remote->arena;
	size_t        count = json_array_size(alarms);

	print_label(g, "Alarms");
	if (!count)
		print_in(g, GREEN, STR("none"));
	for (size_t i = 0; i < count && i < ALARMS_MOST; i++) {
		const json_t *alarm = json_array_get(alarms, i);
		struct str    name = show_cut(a, cell_text(g->remote, alarm, "name"), 26);
		struct str    age = cell_age(g->remote, alarm, "since_at");
		struct str    why = cell_text(g->remote, alarm, "evidence");

		if (i)
			fprintf(g->out, "\n%*s", LABEL, "");
		print_in(g, RED, name);
		why = show_cut(a, str_format(a, "  %.*s  %.*s", STR_ARG(age), STR_ARG(why)), WIDTH - LABEL - name.n);
		fprintf(g->out, "%.*s", STR_ARG(why));
	}
	if (count > ALARMS_MOST)
		fprintf(g->out, "\n%*sand %zu more: leasehold alarm list", LABEL, "", count - ALARMS_MOST);
	fputc('\n', g->out);
}

static void print_events(const struct glance *g)
{
	const json_t *events = json_object_get(g->parts[EVENTS].json, "events");
	struct arena *a = &g->remote->arena;

	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *event = json_array_get(events, i);
		struct str type = cell_text(g->remote, event, "detail-type"), age = cell_age(g->remote, event, "time");
		struct str subject = show_cut(a, cell_text(g->remote, event, "subject"), 22);
		struct str actor = show_cut(a, cell_text(g->remote, event, "actor"), 20);

		type = show_cut(a, type, 26);
		fprintf(g->out, "%s%4.*s  %-26.*s  %-22.*s  %.*s\n", i ? "" : "\n", STR_ARG(age), STR_ARG(type),
		        STR_ARG(subject), STR_ARG(actor));
	}
}

static void print_glance(const struct glance *g)
{
	const json_t *overview = g->parts[OVERVIEW].json, *lending = json_object_get(overview, "leases");
	const json_t *pool = json_object_get(overview, "pool");
	const json_t *by_account = json_object_get(json_object_get(overview, "accounts"), "by_status");
	const json_t *by_instance = json_object_get(json_object_get(overview, "instances"), "by_status");
	struct str    note = cell_text(g->remote, overview, "notice"); /* what is not real */
	bool          has_instances = false;
	int64_t       in_line = member_number(lending, "in_line"), low = member_number(pool, "low_water");

	for (size_t i = 0; i < ARRAY_LEN(instances); i++)
		has_instances = has_instances || member_number(by_instance, instances[i].member) > 0;
	print_head(g);
	if (note.n) {
		print_in(g, RED, note);
		fputs("\n\n", g->out);
	}
	print_counts(g, "Sandboxes", pool, sandboxes, ARRAY_LEN(sandboxes));
	if (low && member_number(pool, "available") < low) {
		fprintf(g->out, "%*s", LABEL, "");
		print_in(g, RED, str_format(&g->remote->arena, "below the low-water mark of %" PRId64, low));
		fputc('\n', g->out);
	}
	print_claims(g, overview);
	print_counts(g, "Leases", json_object_get(lending, "by_status"), leases, ARRAY_LEN(leases));
	if (in_line)
		fprintf(g->out, "%*s%" PRId64 " waiting in line for an account\n", LABEL, "", in_line);
	print_spend(g, lending);
	print_counts(g, "Accounts", by_account, accounts, ARRAY_LEN(accounts));
	print_rests(g);
	if (has_instances)
		print_counts(g, "Instances", by_instance, instances, ARRAY_LEN(instances));
	print_work(g, json_object_get(overview, "kernel"));
	print_alarms(g, json_object_get(overview, "alarms"));
	print_events(g);
}

/* Only the overview must be there. */
static int ask_part(struct remote *remote, struct part *p, bool is_needed)
{
	struct remote_request req = { .method = "GET", .path = p->path, .scope = REMOTE_ADMIN };
	struct err            e = { 0 };

	if (remote_send(remote, &req, &p->reply, &e))
		return remote_fail(remote, &e);
	if (!remote_is_success(&p->reply))
		return is_needed ? remote_refused(remote, &p->reply) : CLI_EXIT_OK;
	return remote_json(&p->reply, &p->json, &e) ? remote_fail(remote, &e) : CLI_EXIT_OK;
}

int run_status(struct remote *remote)
{
	struct glance g = { .remote = remote,
		            .out = remote->io->out,
		            .is_coloured = remote->is_coloured,
		            .parts = { [OVERVIEW] = { .name = "overview", .path = STR("/ops/overview") },
		                       [HOLDS] = { .name = "holds", .path = STR("/ops/holds?limit=100") },
		                       [QUEUES] = { .name = "queues", .path = STR("/ops/queues") },
		                       [EVENTS] = { .name = "events", .path = STR("/ops/events?jobs=no&limit=6") } } };
	int           code = CLI_EXIT_OK;

	for (size_t i = 0; i < PARTS && code == CLI_EXIT_OK; i++)
		code = ask_part(remote, &g.parts[i], i == OVERVIEW);
	for (size_t i = 0; i < PARTS && code == CLI_EXIT_OK && remote->is_json; i++) {
		const struct part *p = &g.parts[i]; /* the answers as they came, as the members of one object */

		fprintf(g.out, "%s\"%s\":%.*s%s", i ? "," : "{", p->name, p->json ? (int)p->reply.body.n : 4,
		        p->json ? p->reply.body.p : "null", i == PARTS - 1 ? "}\n" : "");
	}
	if (code == CLI_EXIT_OK && !remote->is_json)
		print_glance(&g);
	for (size_t i = 0; i < PARTS; i++)
		json_decref(g.parts[i].json);
	return code;
}

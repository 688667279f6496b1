/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_status.c - everything at a glance, on a screen of 80 columns.
 *
 * Four answers of the server make one picture. The overview must be there; the others may be refused (a server that lends no accounts has
 * no holds), and then their lines are not there. Events of jobs and timers are left out: something always ticks, and would push out what matters.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "cli/bar.h"
#include "cli/cli.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"

enum { WIDTH = 79, LABEL = 11, BAR = WIDTH - LABEL, MONEY_BAR = 34, SERIES = 24, ALARMS_MOST = 5, EVENTS_MOST = 6 };

#define GREEN   "\033[32m"
#define BLUE    "\033[34m"
#define YELLOW  "\033[33m"
#define MAGENTA "\033[35m"
#define CYAN    "\033[36m"
#define RED     "\033[31m"
#define GREY    "\033[90m"

/* clang-format off */
static const struct bar_part sandboxes[] = {
	{ "available",        "available",       GREEN,   '#' },
	{ "allocated",        "allocated",       BLUE,    '=' },
	{ "pending_deletion", "to be deleted",   YELLOW,  '-' },
	{ "stale",            "stale",           MAGENTA, '~' },
	{ "deletion_failed",  "deletion failed", RED,     '!' },
};

static const struct bar_part accounts[] = {
	{ "Available",  "available",   GREEN,   '#' },
	{ "Active",     "active",      BLUE,    '=' },
	{ "Frozen",     "frozen",      CYAN,    '*' },
	{ "CleanUp",    "cleaning",    YELLOW,  '-' },
	{ "Cooldown",   "resting",     MAGENTA, 'z' },
	{ "Quarantine", "quarantined", RED,     '!' },
	{ "Exit",       "leaving",     GREY,    'x' },
};

static const struct bar_part leases[] = {
	{ "PendingApproval",    "pending",        YELLOW,  '?' },
	{ "Provisioning",       "being prepared", CYAN,    '+' },
	{ "Active",             "active",         BLUE,    '=' },
	{ "Frozen",             "frozen",         CYAN,    '*' },
	{ "ApprovalDenied",     "denied",         GREY,    'd' },
	{ "Expired",            "expired",        GREY,    'e' },
	{ "BudgetExceeded",     "over budget",    RED,     '$' },
	{ "ManuallyTerminated", "ended",          GREY,    '.' },
	{ "AccountQuarantined", "quarantined",    RED,     '!' },
	{ "Ejected",            "ejected",        GREY,    'x' },
	{ "ProvisioningFailed", "failed",         RED,     'f' },
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

static int64_t number(const json_t *object, const char *name)
{
	int64_t n;

	return json_get_number(object, name, 0, &n) ? n : 0;
}

static void print_head(const struct glance *g)
{
	struct remote *remote = g->remote;
	struct str     date = show_date(&remote->arena, wall_sec(clock_now(remote->io->clock)));
	struct str     base = remote->base;

	if (base.n > 3 && memcmp(base.p + base.n - 3, "/v1", 3) == 0)
		base.n -= 3;
	base = show_cut(&remote->arena, base, WIDTH - (date.n + 14));
	print_in(g, "\033[1m", STR("leasehold"));
	fprintf(g->out, "  %.*s%*s%.*s\n\n", STR_ARG(base), (int)(WIDTH - 11 - base.n - date.n), "", STR_ARG(date));
}

static void print_counts(const struct glance *g, const char *label, const json_t *counts, const struct bar_part *parts,
                         size_t count)
{
	print_label(g, label);
	bar_print(g->out, counts, parts, count, BAR, g->is_coloured);
	fprintf(g->out, "\n%*s", LABEL, "");
	if (bar_total(counts, parts, count))
		bar_legend(g->out, counts, parts, count, LABEL, WIDTH, g->is_coloured);
	else
		fprintf(g->out, "none\n");
}

static void print_low_water(const struct glance *g, const json_t *pool)
{
	int64_t low = number(pool, "low_water");

	if (!low || number(pool, "available") >= low)
		return;
	fprintf(g->out, "%*s", LABEL, "");
	print_in(g, RED, str_format(&g->remote->arena, "below the low-water mark of %" PRId64, low));
	fputc('\n', g->out);
}

static void print_claims(const struct glance *g, const json_t *overview)
{
	const json_t *claims = json_object_get(overview, "claims"), *line = json_object_get(overview, "line");
	const json_t *p99 = json_object_get(claims, "p99_ms");
	struct str    estimate = list_seconds(g->remote, line, "estimate_sec");
	int64_t       waiting = number(line, "waiting");

	print_label(g, "Claims");
	fprintf(g->out, "%" PRId64 " a minute", number(claims, "per_minute"));
	if (json_is_number(p99))
		fprintf(g->out, ", p99 %.3g ms", json_number_value(p99));
	fprintf(g->out, "; %" PRId64 " waiting in line", waiting);
	if (waiting && estimate.n)
		fprintf(g->out, ", about %.*s", STR_ARG(estimate));
	if (g->is_coloured && json_array_size(json_object_get(overview, "series"))) {
		fputs("  ", g->out);
		bar_series(g->out, json_object_get(overview, "series"), "granted", SERIES);
	}
	fputc('\n', g->out);
}

static double dollars(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static void print_spend(const struct glance *g, const json_t *lending)
{
	double spent = dollars(lending, "spend_usd"), budget = dollars(lending, "budget_usd");
	double used = budget > 0 ? spent / budget : 0;
	int    cells = used > 1 ? MONEY_BAR : (int)(used * MONEY_BAR + 0.5);

	print_label(g, "Spend");
	fputs(g->is_coloured ? (used > 0.8 ? RED : GREEN) : "[", g->out);
	for (int i = 0; i < MONEY_BAR; i++)
		if (g->is_coloured)
			fputs(i < cells ? "\xe2\x96\x88" : "\xe2\x96\x91", g->out);
		else
			fputc(i < cells ? '#' : '.', g->out);
	fprintf(g->out, "%s  $%.2f of $%.2f", g->is_coloured ? "\033[0m" : "]", spent, budget);
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
		else if (!next || number(hold, "due_at") < number(next, "due_at"))
			next = hold;
	}
	if (!next && !by_hand)
		return;
	fprintf(g->out, "%*s", LABEL, "");
	if (next) {
		struct str id = list_text(g->remote, next, "account_id"), due = list_due(g->remote, next, "due_at");

		fprintf(g->out, "next rest ends %.*s (%.*s)", STR_ARG(due), STR_ARG(id));
	}
	if (by_hand)
		fprintf(g->out, "%s%zu until a person decides", next ? "; " : "", by_hand);
	fputc('\n', g->out);
}

static void print_work(const struct glance *g, const json_t *kernel)
{
	const json_t *queues = json_object_get(g->parts[QUEUES].json, "queues");
	int64_t       lanes = 0, failing = 0, dead = number(kernel, "dead_letters"), parked;

	for (size_t i = 0; i < json_array_size(queues); i++) {
		lanes += number(json_array_get(queues, i), "lanes");
		failing += number(json_array_get(queues, i), "failing");
	}
	parked = number(kernel, "sagas_parked");
	print_label(g, "Queues");
	fprintf(g->out, "%" PRId64 " to deliver, %" PRId64 " failing, ", lanes, failing);
	print_in(g, dead ? RED : "", str_format(&g->remote->arena, "%" PRId64 " dead letters", dead));
	fprintf(g->out, "; sagas %" PRId64 " running, ", number(kernel, "sagas_running"));
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
		struct str    name = show_cut(a, list_text(g->remote, alarm, "name"), 26);
		struct str    age = list_age(g->remote, alarm, "since_at");
		struct str    why = list_text(g->remote, alarm, "evidence");

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

static void print_event(const struct glance *g, const json_t *event)
{
	struct arena *a = &g->remote->arena;
	struct str    type = show_cut(a, list_text(g->remote, event, "detail-type"), 26);
	struct str    subject = show_cut(a, list_text(g->remote, event, "subject"), 22);
	struct str    actor = show_cut(a, list_text(g->remote, event, "actor"), 20);
	struct str    age = list_age(g->remote, event, "time");

	fprintf(g->out, "%4.*s  %-26.*s  %-22.*s  %.*s\n", STR_ARG(age), STR_ARG(type), STR_ARG(subject),
	        STR_ARG(actor));
}

/* "JobFinished", "CleanupDue": the ticking of the works. */
static bool is_ticking(struct str type)
{
	return str_starts_with(type, STR("Job")) || (type.n > 3 && str_eq(str_of(type.p + type.n - 3, 3), STR("Due")));
}

static void print_events(const struct glance *g)
{
	const json_t *events = json_object_get(g->parts[EVENTS].json, "events");
	size_t        shown = 0;

	for (size_t i = 0; i < json_array_size(events) && shown < EVENTS_MOST; i++) {
		const json_t *event = json_array_get(events, i);

		if (is_ticking(list_text(g->remote, event, "detail-type")))
			continue;
		if (!shown++)
			fputc('\n', g->out);
		print_event(g, event);
	}
}

static void print_glance(const struct glance *g)
{
	const json_t *overview = g->parts[OVERVIEW].json, *lending = json_object_get(overview, "leases");
	const json_t *by_account = json_object_get(json_object_get(overview, "accounts"), "by_status");
	int64_t       in_line = number(lending, "in_line");

	print_head(g);
	print_counts(g, "Sandboxes", json_object_get(overview, "pool"), sandboxes, ARRAY_LEN(sandboxes));
	print_low_water(g, json_object_get(overview, "pool"));
	print_claims(g, overview);
	print_counts(g, "Leases", json_object_get(lending, "by_status"), leases, ARRAY_LEN(leases));
	if (in_line)
		fprintf(g->out, "%*s%" PRId64 " waiting in line for an account\n", LABEL, "", in_line);
	print_spend(g, lending);
	print_counts(g, "Accounts", by_account, accounts, ARRAY_LEN(accounts));
	print_rests(g);
	print_work(g, json_object_get(overview, "kernel"));
	print_alarms(g, json_object_get(overview, "alarms"));
	print_events(g);
}

/* The answers as they came, as the members of one object. */
static void print_json(const struct glance *g)
{
	for (size_t i = 0; i < PARTS; i++) {
		const struct part *p = &g->parts[i];

		fprintf(g->out, "%s\"%s\":%.*s", i ? "," : "{", p->name, p->json ? (int)p->reply.body.n : 4,
		        p->json ? p->reply.body.p : "null");
	}
	fputs("}\n", g->out);
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
		                       [EVENTS] = { .name = "events", .path = STR("/ops/events?limit=100") } } };
	int           code = CLI_EXIT_OK;

	for (size_t i = 0; i < PARTS && code == CLI_EXIT_OK; i++)
		code = ask_part(remote, &g.parts[i], i == OVERVIEW);
	if (code == CLI_EXIT_OK && remote->is_json)
		print_json(&g);
	else if (code == CLI_EXIT_OK)
		print_glance(&g);
	for (size_t i = 0; i < PARTS; i++)
		json_decref(g.parts[i].json);
	return code;
}

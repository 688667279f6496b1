/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_demo.c - lives the day of demo_plan.c on a development server.
 *
 * A client like any other: students use the track's token, borrowers and the manager sign-ins of their own, which the
 * development server's secret makes, and what chance does goes through the simulated cloud's routes, which only a
 * server in development has. That such a route answers is the check that this is one: the first call is made before
 * anything is changed. Where there are no instances, what is about tenants is passed over.
 *
 * A refusal is part of life: it is reported, and the day goes on. A server that is gone ends it. Ctrl-C is checked
 * between two actions, so none is cut off in the middle; then, as at the end of the day, the faults that were set are
 * taken back.
 */
#include "cli/commands/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/commands/demo_plan.h"
#include "cli/term/show.h"
#include "net/jwt.h"

enum { SPEED_DEFAULT = 360, SPEED_MAX = 100000, FOR_MAX_SEC = 7 * 86400, DAY_MS = DEMO_DAY_MIN * 60000 };
enum { LOOK_MS = 1000 }; /* how long the server's clock is watched */

#define WEBHOOK_MARK "demo: nobody answers here"
#define FAULTS       "/sim/faults"

struct demo {
	struct remote   *remote;
	struct remote    call; /* of the action under way: what it needs is freed behind it */
	struct demo_plan plan;
	struct str       secret;
	int64_t          day, speed, server_speed;
	int64_t          started_ms, until_ms; /* of the machine's mono */
	int64_t          done, refused;
	bool             has_faults, has_instances;
	sigset_t         stops;
	struct {
		char sandboxes[DEMO_STUDENTS][64], leases[DEMO_BORROWERS][512], accounts[DEMO_BORROWERS][16];
	} ids; /* of what was got today */
};

/* What came of an action: what to tell, and whether it was a success. */
struct outcome {
	struct str text;
	bool       is_done;
};

/* --- one call --- */

enum actor { STUDENT, BORROWER, MANAGER, ADMIN, CHANCE /* with the operator's token; shown as the borrower's doing */ };

static const char *name_of(const struct demo *d, enum actor actor, size_t who)
{
	return actor == MANAGER ? "manager" : actor == ADMIN ? "admin" : d->plan.borrowers[who].name;
}

/* A call of a student or borrower with this number, of the manager or an admin. *ret_json, unless NULL, is the JSON of
 * a success, yours; after a refusal it is NULL and *ret has the reason. */
static enum rc ask(struct demo *d, enum actor actor, size_t who, struct remote_request req, struct outcome *ret,
                   json_t **ret_json, struct err *e)
{
	static const unsigned roles[] = { [BORROWER] = JWT_USER, [MANAGER] = JWT_MANAGER, [ADMIN] = JWT_ADMIN };
	struct arena         *a = &d->call.arena;
	struct fetch_reply    reply;
	enum rc               rc;

	if (actor == STUDENT) {
		req.scope = REMOTE_TRACK;
		req.headers[0] =
		        str_format(a, "X-Track-ID: %s-%" PRId64 "-%zu", d->plan.students[who].name, d->day, who).p;
	} else if (actor == CHANCE) {
		req.scope = REMOTE_ADMIN;
	} else {
		req.scope = req.scope == REMOTE_TENANT ? REMOTE_TENANT : REMOTE_PERSON;
		req.token = remote_session(&d->call, str_format(a, "%s@example.com", name_of(d, actor, who)),
		                           roles[actor], d->secret);
	}
	if (ret_json)
		*ret_json = NULL;
	if ((rc = remote_send(&d->call, &req, &reply, e)))
		return rc;
	*ret = (struct outcome){ .is_done = remote_is_success(&reply) };
	if (!ret->is_done)
		ret->text = remote_message(&d->call, &reply);
	return ret->is_done && ret_json ? remote_json(&reply, ret_json, e) : RC_OK;
}

static struct remote_request get(struct str path)
{
	return (struct remote_request){ .method = "GET", .path = path };
}

static struct remote_request post(struct str path, struct str body)
{
	return (struct remote_request){ .method = "POST", .path = path, .body = body };
}

static void keep(char *room, size_t size, struct str text)
{
	if (text.n >= size)
		text.n = 0;
	memcpy(room, text.p ? text.p : "", text.n);
	room[text.n] = 0;
}

/* --- actions of more than one call, or whose answer is kept --- */

static enum rc claim(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request       req = post(STR("/allocate"), STR(""));
	CLEANUP(json_freep) json_t *json = NULL;
	enum rc                     rc;

	req.headers[1] = str_format(&d->call.arena, "X-Instruqt-Track-ID: %s", d->plan.students[who].lab).p;
	if ((rc = ask(d, STUDENT, who, req, ret, &json, e)) || !json)
		return rc;
	keep(d->ids.sandboxes[who], sizeof(d->ids.sandboxes[who]), cell_text(&d->call, json, "sandbox_id"));
	ret->text = cell_text(&d->call, json, "name");
	return RC_OK;
}

static enum rc request(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	const char *template = d->plan.borrowers[who].template;
	struct str                  path = compose_path(&d->call, "/leaseTemplates/{}", str_from(template)), body;
	CLEANUP(json_freep) json_t *found = NULL, *json = NULL;
	const json_t               *lease;
	enum rc                     rc = ask(d, BORROWER, who, get(path), ret, &found, e);

	if (rc || !found)
		return rc;
	body = str_format(&d->call.arena, "{\"leaseTemplateUuid\":\"%.*s\",\"comments\":\"%s\"}",
	                  STR_ARG(cell_text(&d->call, json_object_get(found, "data"), "uuid")),
	                  d->plan.borrowers[who].comments);
	if ((rc = ask(d, BORROWER, who, post(STR("/leases"), body), ret, &json, e)) || !json)
		return rc;
	lease = json_object_get(json, "data");
	keep(d->ids.leases[who], sizeof(d->ids.leases[who]), cell_text(&d->call, lease, "leaseId"));
	ret->text = str_format(&d->call.arena, "%s, %.*s", template, STR_ARG(cell_text(&d->call, lease, "status")));
	return RC_OK;
}

static enum rc register_account(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *json = NULL;
	enum rc                     rc = ask(d, ADMIN, who, get(STR("/accounts/unregistered")), ret, &json, e);
	struct str                  id;

	if (rc || !json)
		return rc;
	id = cell_text(&d->call, json_array_get(json_object_get(json_object_get(json, "data"), "result"), 0), "Id");
	*ret = (struct outcome){ .text = STR("there is none left") };
	if (!id.n)
		return RC_OK;
	rc = ask(d, ADMIN, who, post(STR("/accounts"), JSON_OF(&d->call.arena, member_str("awsAccountId", id))), ret,
	         NULL, e);
	if (!rc && ret->is_done)
		ret->text = id;
	return rc;
}

/* The one of an earlier demo is good enough. A test event is sent to it at once, so that the first dead letter does not
 * wait for a lease. */
static enum rc break_webhook(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	static const struct str body = STR_INIT(
	        "{\"url\":\"http://127.0.0.1:9/hook\",\"filter\":\"LeaseDenied,LeaseTerminated\","
	        "\"description\":\"" WEBHOOK_MARK "\"}");
	CLEANUP(json_freep) json_t *known = NULL, *made = NULL;
	enum rc                     rc = ask(d, CHANCE, who, get(STR("/ops/webhooks")), ret, &known, e);
	const json_t               *hooks = json_object_get(known, "webhooks");
	struct str                  id = STR("");

	if (rc)
		return rc;
	for (size_t i = 0; i < json_array_size(hooks); i++)
		if (str_eq(cell_text(&d->call, json_array_get(hooks, i), "description"), STR(WEBHOOK_MARK)))
			id = cell_text(&d->call, json_array_get(hooks, i), "id");
	if (!id.n) {
		if ((rc = ask(d, CHANCE, who, post(STR("/ops/webhooks"), body), ret, &made, e)) || !made)
			return rc;
		id = cell_text(&d->call, made, "id");
	}
	return ask(d, CHANCE, who, post(compose_path(&d->call, "/ops/webhooks/{}/test", id), STR("")), ret, NULL, e);
}

static enum rc provision(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct str            name = str_from(d->plan.tenants[who].organization);
	struct remote_request req = post(compose_path(&d->call, "/{}/instances", str_from(d->plan.tenants[who].id)),
	                                 JSON_OF(&d->call.arena, member_str("organizationName", name),
	                                         member_word("contactEmail", "it@example.com")));

	req.scope = REMOTE_TENANT;
	return ask(d, ADMIN, who, req, ret, NULL, e);
}

/* --- the actions --- */

enum subject { NOTHING, SANDBOX, LEASE, ACCOUNT, TENANT };

/* An action: one request about something that must exist, or a function. */
struct step {
	const char  *words;
	enum actor   actor;
	enum subject subject;
	const char  *missing; /* shown when there is none */
	const char  *method, *path, *body;
	const char  *result; /* shown before its id */
	enum rc (*run)(struct demo *d, size_t who, struct outcome *ret, struct err *e);
};

/* clang-format off */
#define OF_LEASE(words, who, path, body) { words, who, LEASE, "there is no lease", "POST", "/leases/{}" path, body }
#define OF_INSTANCE(words, method, path, body) { words, ADMIN, TENANT, NULL, method, "/-/instances/{}" path, body }

static const struct step steps[] = {
	[DEMO_CLAIM]         = { "claims a sandbox", STUDENT, .run = claim },
	[DEMO_GIVE_BACK]     = { "gives the sandbox back", STUDENT, SANDBOX, "never got one",
	                         "POST", "/sandboxes/{}/mark-for-deletion" },
	[DEMO_REQUEST]       = { "requests a lease", BORROWER, .run = request },
	[DEMO_APPROVE]       = OF_LEASE("approves the lease of", MANAGER, "/review", "{\"action\":\"Approve\"}"),
	[DEMO_DENY]          = OF_LEASE("denies the lease of", MANAGER, "/review",
	                                "{\"action\":\"Deny\",\"reason\":\"please use the shared account\"}"),
	[DEMO_FREEZE]        = OF_LEASE("freezes the lease of", MANAGER, "/freeze", NULL),
	[DEMO_UNFREEZE]      = OF_LEASE("unfreezes the lease of", MANAGER, "/unfreeze", NULL),
	[DEMO_END]           = OF_LEASE("ends the lease", BORROWER, "/terminate", NULL),
	[DEMO_WITHDRAW]      = OF_LEASE("withdraws the request", BORROWER, "/withdraw", NULL),
	[DEMO_OVERSPEND]     = { "starts something expensive", CHANCE, ACCOUNT, "has no account yet",
	                         "PUT", "/sim/accounts/{}/cost-rate", "{\"usd_per_hour\":95}",
	                         "$95 an hour in account" },
	/* Three attempts fail, then the account is quarantined. */
	[DEMO_FAIL_CLEANUPS] = { "leaves something that no cleanup can remove", CHANCE, ACCOUNT, "has no account",
	                         "PUT", FAULTS,
	                         "{\"faults\":[{\"fault\":\"clean-fails\",\"count\":3,\"for_sec\":600}]}" },
	[DEMO_RETRY_CLEANUP] = { "tries the failed cleanup again, of the account of", ADMIN, ACCOUNT, "had no account",
	                         "POST", "/accounts/{}/retryCleanup" },
	[DEMO_REGISTER]      = { "adds a new account to the pool", ADMIN, .run = register_account },
	[DEMO_BREAK_WEBHOOK] = { "adds a webhook that nobody answers", ADMIN, .run = break_webhook },
	/* As many as there are tries. */
	[DEMO_FAIL_TENANT]   = { "hears that there is no identity pool left for", ADMIN, TENANT, NULL, "PUT", FAULTS,
	                         "{\"faults\":[{\"fault\":\"outage\",\"call\":\"create-resource\","
	                         "\"resource\":\"identity\",\"count\":4,\"for_sec\":7200}]}" },
	[DEMO_PROVISION]     = { "has a WordPress made for", ADMIN, TENANT, .run = provision },
	[DEMO_SCALE]         = OF_INSTANCE("gives four tasks to", "PUT", "/size", "{\"desiredCount\":4}"),
	[DEMO_SUSPEND]       = OF_INSTANCE("suspends", "PUT", "/status",
	                                   "{\"action\":\"suspend\",\"reason\":\"the bill is not paid\"}"),
	[DEMO_RESUME]        = OF_INSTANCE("resumes", "PUT", "/status", "{\"action\":\"resume\"}"),
	[DEMO_PARK]          = OF_INSTANCE("parks", "PUT", "/status",
	                                   "{\"action\":\"park\",\"reason\":\"closed until spring\"}"),
	[DEMO_UNPARK]        = OF_INSTANCE("unparks", "PUT", "/status", "{\"action\":\"unpark\"}"),
	[DEMO_BACK_UP]       = OF_INSTANCE("backs up", "POST", "/backup", NULL),
	[DEMO_REMOVE]        = OF_INSTANCE("removes", "DELETE", "", "{\"reason\":\"contract ended\"}"),
};
/* clang-format on */

/* The account of a lease, remembered for when the lease has ended. */
static enum rc find_account(struct demo *d, size_t who, struct err *e)
{
	CLEANUP(json_freep) json_t *json = NULL;
	struct str                  path = compose_path(&d->call, "/leases/{}", str_from(d->ids.leases[who]));
	struct outcome              ignored;
	enum rc                     rc;

	if (d->ids.accounts[who][0] || !d->ids.leases[who][0])
		return RC_OK;
	rc = ask(d, MANAGER, who, get(path), &ignored, &json, e);
	if (json)
		keep(d->ids.accounts[who], sizeof(d->ids.accounts[who]),
		     cell_text(&d->call, json_object_get(json, "data"), "awsAccountId"));
	return rc;
}

static const char *id_of(const struct demo *d, enum subject subject, size_t who)
{
	switch (subject) {
	case SANDBOX: return d->ids.sandboxes[who];
	case LEASE: return d->ids.leases[who];
	case TENANT: return d->plan.tenants[who].id;
	default: return d->ids.accounts[who];
	}
}

static enum rc perform(struct demo *d, const struct demo_action *action, struct outcome *ret, struct err *e)
{
	const struct step    *s = &steps[action->kind];
	size_t                who = action->who;
	struct remote_request req = { .method = s->method, .body = str_from(s->body) };
	bool                  is_fault = s->path && strcmp(s->path, FAULTS) == 0;
	const char           *id;
	enum rc               rc;

	if (s->run)
		return s->run(d, who, ret, e);
	if (s->subject == ACCOUNT && (rc = find_account(d, who, e)))
		return rc;
	id = id_of(d, s->subject, who);
	req.scope = s->subject == TENANT ? REMOTE_TENANT : req.scope;
	ret->text = str_from(s->missing);
	if (!*id)
		return RC_OK;
	d->has_faults = d->has_faults || is_fault;
	req.path = compose_path(&d->call, s->path, str_from(id));
	rc = ask(d, is_fault ? CHANCE : s->actor, who, req, ret, NULL, e);
	if (!rc && ret->is_done && s->result)
		ret->text = str_format(&d->call.arena, "%s %s", s->result, id);
	return rc;
}

/* Who does it, and to whom when that is somebody else. */
static struct str describe(struct demo *d, const struct demo_action *action, const char **ret_actor)
{
	const struct step *s = &steps[action->kind];
	struct arena      *a = &d->call.arena;

	if (s->actor == STUDENT) {
		*ret_actor = str_format(a, "%s-%zu", d->plan.students[action->who].name, action->who).p;
		return action->kind == DEMO_CLAIM
		               ? str_format(a, "%s for %s", s->words, d->plan.students[action->who].lab)
		               : str_from(s->words);
	}
	*ret_actor = name_of(d, s->actor, action->who);
	if ((s->actor == MANAGER || s->actor == ADMIN) && s->subject)
		return str_format(a, "%s %s", s->words,
		                  s->subject == TENANT ? d->plan.tenants[action->who].id
		                                       : d->plan.borrowers[action->who].name);
	return str_from(s->words);
}

static void tell(struct demo *d, const struct demo_action *action, const struct outcome *outcome)
{
	bool        is_coloured = d->remote->is_coloured, is_bad = !outcome->is_done;
	FILE       *out = d->remote->io->out;
	int64_t     minute = DEMO_DAWN_MIN + action->at_ms / 60000;
	const char *actor;
	struct str  text = describe(d, action, &actor);
	char        at[16];

	(void)snprintf(at, sizeof(at), "%02d:%02d", (int)(minute / 60 % 24), (int)(minute % 60)); /* fits */
	if (d->remote->is_json) {
		CLEANUP(json_freep)
		json_t *line = json_pack("{s:s, s:s, s:s%, s:b, s:s%}", "at", at, "who", actor, "does", text.p, text.n,
		                         "done", outcome->is_done, "result", outcome->text.p ? outcome->text.p : "",
		                         outcome->text.n);

		fprintf(out, "%s\n", json_dump(&d->call.arena, line).p);
	} else {
		fprintf(out, "%s%s%s  %-9s %.*s", is_coloured ? "\033[90m" : "", at, is_coloured ? "\033[0m" : "",
		        actor, STR_ARG(text));
		if (outcome->text.n)
			fprintf(out, ": %s%s%.*s%s", is_coloured && is_bad ? "\033[33m" : "", is_bad ? "no, " : "",
			        STR_ARG(outcome->text), is_coloured && is_bad ? "\033[0m" : "");
		fputc('\n', out);
	}
	fflush(out);
}

/* --- the day --- */

/* Wait until that time of the machine, or until somebody wants it to end: true. */
static bool wait_until(struct demo *d, int64_t at_ms)
{
	int64_t         left = at_ms - mono_now().ms;
	struct timespec t = { 0 };
	int             number;

	if (left > 0)
		t = (struct timespec){ .tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000 };
	while ((number = sigtimedwait(&d->stops, NULL, &t)) < 0 && mono_now().ms < at_ms)
		t = (struct timespec){ .tv_nsec = 1000000 }; /* woken by something else */
	return number > 0;
}

/* A remote whose memory lasts until remote_close(). */
static void open_call(struct demo *d)
{
	d->call = *d->remote;
	d->call.arena = (struct arena){ 0 };
}

/* *ret_is_over: by Ctrl-C, or because the time is up. */
static enum rc live_day(struct demo *d, bool *ret_is_over, struct err *e)
{
	int64_t dawn_ms = d->started_ms + d->day * DAY_MS / d->speed;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < d->plan.count && !rc; i++) {
		const struct demo_action *action = &d->plan.actions[i];
		int64_t                   at_ms = dawn_ms + action->at_ms / d->speed;
		struct outcome            outcome = { .is_done = false };

		*ret_is_over = wait_until(d, at_ms < d->until_ms ? at_ms : d->until_ms) || at_ms >= d->until_ms;
		if (*ret_is_over)
			return RC_OK;
		if (steps[action->kind].subject == TENANT && !d->has_instances)
			continue;
		open_call(d);
		rc = perform(d, action, &outcome, e);
		if (!rc)
			tell(d, action, &outcome);
		d->done += outcome.is_done;
		d->refused += !outcome.is_done;
		remote_close(&d->call);
	}
	*ret_is_over = !rc && wait_until(d, dawn_ms + DAY_MS / d->speed);
	return rc;
}

static enum rc live(struct demo *d, uint64_t seed, struct err *e)
{
	bool    is_over = false;
	enum rc rc = RC_OK;

	for (d->day = 0; !rc && !is_over && mono_now().ms < d->until_ms; d->day++) {
		demo_plan_make(&d->plan, seed + (uint64_t)d->day);
		memset(&d->ids, 0, sizeof(d->ids));
		rc = live_day(d, &is_over, e);
	}
	return rc;
}

/* --- before and after --- */

/* "30s", "5m", "2h", "1d"; a number alone is seconds. */
static bool read_duration(struct str text, int64_t *ret_sec)
{
	static const char    units[] = "smhd";
	static const int64_t seconds[] = { 1, 60, 3600, 86400 };
	const char          *unit = text.n ? strchr(units, text.p[text.n - 1]) : NULL;
	int64_t              factor = unit && *unit ? seconds[unit - units] : 1;

	if (unit && *unit)
		text.n--;
	if (!str_to_int(text, 1, FOR_MAX_SEC / factor, ret_sec))
		return false;
	*ret_sec *= factor;
	return true;
}

/* Is this a server in development, and what time is it there? 0 when that is the machine's. */
static int look_at_world(struct remote *remote, int64_t *ret_sec)
{
	struct remote_request req = { .method = "GET", .path = STR("/sim"), .scope = REMOTE_ADMIN };
	struct fetch_reply    reply;
	struct err            e = { 0 };

	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (reply.status == 404) {
		fprintf(remote->io->err,
		        "leasehold: demo: the server at %.*s is not in development mode; the demo plays with a "
		        "simulated world only\nStart one: make run, or leasehold serve --dev\n",
		        STR_ARG(remote->base));
		return CLI_EXIT_REFUSED;
	}
	if (!remote_is_success(&reply))
		return remote_refused(remote, &reply);
	if (!iso_time_parse(fetch_header(&reply, "Leasehold-Time"), ret_sec))
		*ret_sec = 0;
	return CLI_EXIT_OK;
}

/* How fast the server's time goes, by looking at its clock twice. */
static int measure(struct demo *d)
{
	int64_t first, second, began;
	int     code = look_at_world(d->remote, &first);

	d->server_speed = 1;
	if (code != CLI_EXIT_OK || !first)
		return code;
	began = mono_now().ms;
	mono_sleep(LOOK_MS);
	code = look_at_world(d->remote, &second);
	d->server_speed = ((second - first) * 1000 + 500) / (mono_now().ms - began);
	if (d->server_speed < 2)
		d->server_speed = 1;
	return code;
}

static int prepare(struct demo *d, int64_t *ret_seed)
{
	struct remote_request instances = { "GET", STR("/ops/instances?limit=1"), REMOTE_ADMIN };
	struct remote        *remote = d->remote;
	const char           *how_long = remote->args->values[CLI_OPTION_FOR];
	struct fetch_reply    reply;
	struct err            e = { 0 };
	int64_t               sec = 0;
	int                   code;

	if (option_number(remote, CLI_OPTION_SPEED, 1, SPEED_MAX, 0, &d->speed, &e) ||
	    option_number(remote, CLI_OPTION_SEED, 0, INT32_MAX, 1, ret_seed, &e))
		return remote_fail(remote, &e);
	if (how_long && !read_duration(str_from(how_long), &sec))
		return remote_misused(remote, "--for must be a time such as 30s, 5m or 2h, a week at most");
	if ((code = measure(d)) != CLI_EXIT_OK)
		return code;
	if (remote_send(remote, &instances, &reply, &e))
		return remote_fail(remote, &e);
	d->has_instances = remote_is_success(&reply);
	d->secret = settings_get(&remote->settings, "LEASEHOLD_JWT_SECRET");
	if (d->secret.n < JWT_SECRET_MIN)
		return remote_misused(remote,
		                      "students need the server's secret to sign in: run it where 'data/client' "
		                      "of the development server is, name that folder with LEASEHOLD_DATA, or "
		                      "set LEASEHOLD_JWT_SECRET");
	if (!d->speed)
		d->speed = d->server_speed > 1 ? d->server_speed : SPEED_DEFAULT;
	d->started_ms = mono_now().ms;
	d->until_ms = d->started_ms + (sec ? sec * 1000 : DAY_MS / d->speed);
	return CLI_EXIT_OK;
}

/* Of one that was measured: 239 s are 4 minutes, not 3. */
static struct str rounded(struct arena *a, int64_t ms)
{
	int64_t sec = ms / 1000;

	return show_duration(a, sec < 60 ? sec : (sec + 30) / 60 * 60);
}

static void greet(const struct demo *d)
{
	struct arena *a = &d->remote->arena;
	struct str    day = rounded(a, DAY_MS / d->speed), whole = rounded(a, d->until_ms - d->started_ms);
	FILE         *to = d->remote->io->err;

	fprintf(to, "A day takes %.*s here; this runs for %.*s. Ctrl-C stops it.\n", STR_ARG(day), STR_ARG(whole));
	if (d->server_speed == 1)
		fprintf(to,
		        "The server's own time is not faster than real time: cleanups, bills and cooldowns take "
		        "minutes, hours and days. Faster: make run SPEED=%d\n",
		        SPEED_DEFAULT);
}

/* Ends the faults, whatever happened, and says how much was done. */
static void finish(struct demo *d)
{
	struct remote_request req = { .method = "PUT", .path = STR(FAULTS), .body = STR("{\"faults\":[]}") };
	struct outcome        outcome;
	struct err            e = { 0 };

	open_call(d);
	if (d->has_faults)
		(void)ask(d, CHANCE, 0, req, &outcome, NULL, &e); /* they end by themselves after a while */
	remote_close(&d->call);
	fprintf(d->remote->io->err, "%" PRId64 " actions done, %" PRId64 " refused. See it: leasehold status\n",
	        d->done, d->refused);
}

int run_demo(struct remote *remote)
{
	struct demo *d = mem_new(struct demo);
	struct err   e = { 0 };
	sigset_t     before;
	int64_t      seed;
	int          code;

	d->remote = remote;
	code = prepare(d, &seed);
	if (code == CLI_EXIT_OK) {
		sigemptyset(&d->stops);
		sigaddset(&d->stops, SIGINT);
		sigaddset(&d->stops, SIGTERM);
		pthread_sigmask(SIG_BLOCK, &d->stops, &before);
		greet(d);
		if (live(d, (uint64_t)seed, &e))
			code = remote_fail(remote, &e);
		else
			finish(d);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	free(d);
	return code;
}

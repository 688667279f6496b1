/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_demo.c - lives the day of demo_plan.c on a development server.
 *
 * A client like any other: students use the track's token, borrowers and the manager sessions of their own, which the development
 * server's secret makes, and what chance does goes through the simulated cloud's routes, which only a server in development has. That such
 * a route answers is the check that this is one: the first call is made before anything is changed.
 *
 * A refusal is part of life: it is told, and the day goes on. A server that is gone ends it. Ctrl-C is looked at between two deeds, so
 * none is cut off in the middle; then, as at the end of the day, the faults that were set are taken back.
 */
#include "cli/run.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/demo_plan.h"
#include "cli/list.h"
#include "cli/remote.h"
#include "cli/show.h"
#include "net/jwt.h"

enum {
	SPEED_DEFAULT = 360,
	SPEED_MAX = 100000,
	FOR_MAX_SEC = 7 * 86400,
	LOOK_MS = 1000, /* how long the server's clock is looked at */
	ID_ROOM = 512,
	DAY_MS = DEMO_DAY_MIN * 60000,
	CLEANUPS_FAIL = 3, /* so many attempts, then the account is quarantined */
	FAULT_SEC = 600
};

static const char webhook_mark[] = "demo: nobody answers here";

struct demo {
	struct remote   *remote;
	struct remote    call; /* of the deed under way: what it needs is freed behind it */
	struct demo_plan plan;
	struct str       secret;
	int64_t          day, speed, server_speed;
	int64_t          started_ms, until_ms; /* of the machine's mono */
	int64_t          done, refused;
	bool             has_faults;
	sigset_t         stops;
	char             sandboxes[DEMO_STUDENTS][64];
	char             leases[DEMO_BORROWERS][ID_ROOM];
	char             accounts[DEMO_BORROWERS][16];
};

/* --- one call --- */

/* An answer of a deed: what to tell, and whether it was a success. */
struct outcome {
	struct str text;
	bool       is_done;
};

/* The JSON of a success, yours; NULL for anything else, which *ret then tells. */
static enum rc ask(struct demo *d, const struct remote_request *req, struct outcome *ret, json_t **ret_json,
                   struct err *e)
{
	struct fetch_reply reply;
	enum rc            rc = remote_send(&d->call, req, &reply, e);

	*ret_json = NULL;
	if (rc)
		return rc;
	*ret = (struct outcome){ .is_done = remote_is_success(&reply) };
	if (!ret->is_done)
		ret->text = remote_message(&d->call, &reply);
	return ret->is_done ? remote_json(&reply, ret_json, e) : RC_OK;
}

/* The same when nobody needs the JSON. */
static enum rc order(struct demo *d, const struct remote_request *req, struct outcome *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *json = NULL;

	return ask(d, req, ret, &json, e);
}

static struct remote_request as_admin(const char *method, struct str path, const char *body)
{
	return (struct remote_request){
		.method = method, .path = path, .scope = REMOTE_ADMIN, .body = str_from(body ? body : "")
	};
}

static struct remote_request as_person(struct demo *d, const char *name, unsigned role, const char *method,
                                       struct str path, struct str body)
{
	struct str email = str_format(&d->call.arena, "%s@example.com", name);

	return (struct remote_request){ .method = method,
		                        .path = path,
		                        .scope = REMOTE_PERSON,
		                        .token = remote_session(&d->call, email, role, d->secret),
		                        .body = body };
}

static void keep(char *room, size_t size, struct str text)
{
	if (text.n >= size)
		text.n = 0;
	memcpy(room, text.p ? text.p : "", text.n);
	room[text.n] = 0;
}

/* --- students --- */

static const char *track_header(struct demo *d, size_t who)
{
	return str_format(&d->call.arena, "X-Track-ID: %s-%" PRId64 "-%zu", d->plan.students[who].name, d->day, who).p;
}

static enum rc claim(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request       req = { .method = "POST", .path = STR("/allocate"), .scope = REMOTE_TRACK };
	CLEANUP(json_freep) json_t *json = NULL;
	enum rc                     rc;

	req.headers[0] = track_header(d, who);
	req.headers[1] = str_format(&d->call.arena, "X-Instruqt-Track-ID: %s", d->plan.students[who].lab).p;
	if ((rc = ask(d, &req, ret, &json, e)) || !json)
		return rc;
	keep(d->sandboxes[who], sizeof(d->sandboxes[who]), list_text(&d->call, json, "sandbox_id"));
	ret->text = list_text(&d->call, json, "name");
	return RC_OK;
}

static enum rc give_back(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request req = { .method = "POST", .scope = REMOTE_TRACK };

	if (!d->sandboxes[who][0]) {
		ret->text = STR("never got one");
		return RC_OK;
	}
	req.path = ask_path_of(&d->call, "/sandboxes/", str_from(d->sandboxes[who]), "/mark-for-deletion");
	req.headers[0] = track_header(d, who);
	return order(d, &req, ret, e);
}

/* --- borrowers --- */

static enum rc find_template(struct demo *d, size_t who, struct outcome *ret, struct str *ret_uuid, struct err *e)
{
	struct remote_request       req = as_person(d, d->plan.borrowers[who].name, JWT_USER, "GET",
	                                            ask_path_of(&d->call, "/leaseTemplates/",
	                                                        str_from(d->plan.borrowers[who].template), ""),
	                                            STR(""));
	CLEANUP(json_freep) json_t *json = NULL;
	enum rc                     rc = ask(d, &req, ret, &json, e);

	*ret_uuid = STR("");
	if (!rc && json)
		*ret_uuid = list_text(&d->call, json_object_get(json, "data"), "uuid");
	return rc;
}

static enum rc request(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request       req;
	CLEANUP(json_freep) json_t *json = NULL;
	const json_t               *lease;
	struct str                  uuid;
	enum rc                     rc = find_template(d, who, ret, &uuid, e);

	if (rc || !uuid.n)
		return rc;
	req = as_person(d, d->plan.borrowers[who].name, JWT_USER, "POST", STR("/leases"),
	                str_format(&d->call.arena, "{\"leaseTemplateUuid\":\"%.*s\",\"comments\":\"%s\"}",
	                           STR_ARG(uuid), d->plan.borrowers[who].comments));
	if ((rc = ask(d, &req, ret, &json, e)) || !json)
		return rc;
	lease = json_object_get(json, "data");
	keep(d->leases[who], sizeof(d->leases[who]), list_text(&d->call, lease, "leaseId"));
	ret->text = str_format(&d->call.arena, "%s, %.*s", d->plan.borrowers[who].template,
	                       STR_ARG(list_text(&d->call, lease, "status")));
	return RC_OK;
}

/* Post to the lease of a borrower, as he or as the manager. */
static enum rc act(struct demo *d, size_t who, bool is_manager, const char *action, const char *body,
                   struct outcome *ret, struct err *e)
{
	struct remote_request req;

	if (!d->leases[who][0]) {
		ret->text = STR("there is no lease");
		return RC_OK;
	}
	req = as_person(d, is_manager ? "manager" : d->plan.borrowers[who].name, is_manager ? JWT_MANAGER : JWT_USER,
	                "POST", ask_path_of(&d->call, "/leases/", str_from(d->leases[who]), action), str_from(body));
	return order(d, &req, ret, e);
}

/* The account of a lease, remembered for when the lease has ended. */
static enum rc find_account(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *json = NULL;
	struct remote_request       req;
	enum rc                     rc;

	if (d->accounts[who][0] || !d->leases[who][0])
		return RC_OK;
	req = as_person(d, "manager", JWT_MANAGER, "GET",
	                ask_path_of(&d->call, "/leases/", str_from(d->leases[who]), ""), STR(""));
	if ((rc = ask(d, &req, ret, &json, e)) || !json)
		return rc;
	keep(d->accounts[who], sizeof(d->accounts[who]),
	     list_text(&d->call, json_object_get(json, "data"), "awsAccountId"));
	return RC_OK;
}

static enum rc overspend(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request req;
	enum rc               rc = find_account(d, who, ret, e);

	if (rc)
		return rc;
	*ret = (struct outcome){ .text = STR("has no account yet") };
	if (!d->accounts[who][0])
		return RC_OK;
	req = as_admin("PUT", ask_path_of(&d->call, "/sim/accounts/", str_from(d->accounts[who]), "/cost-rate"),
	               "{\"usd_per_hour\":95}");
	if ((rc = order(d, &req, ret, e)))
		return rc;
	if (ret->is_done)
		ret->text = str_format(&d->call.arena, "$95 an hour in account %s", d->accounts[who]);
	return RC_OK;
}

static enum rc fail_cleanups(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct str            body = str_format(&d->call.arena,
	                                        "{\"faults\":[{\"fault\":\"clean-fails\",\"count\":%d,\"for_sec\":%d}]}",
	                                        CLEANUPS_FAIL, FAULT_SEC);
	struct remote_request req = as_admin("PUT", STR("/sim/faults"), body.p);
	enum rc               rc = find_account(d, who, ret, e);

	if (rc)
		return rc;
	*ret = (struct outcome){ .text = STR("has no account") };
	if (!d->accounts[who][0])
		return RC_OK;
	d->has_faults = true;
	return order(d, &req, ret, e);
}

static enum rc retry_cleanup(struct demo *d, size_t who, struct outcome *ret, struct err *e)
{
	struct remote_request req;

	if (!d->accounts[who][0]) {
		ret->text = STR("had no account");
		return RC_OK;
	}
	req = as_person(d, "admin", JWT_ADMIN, "POST",
	                ask_path_of(&d->call, "/accounts/", str_from(d->accounts[who]), "/retryCleanup"), STR(""));
	return order(d, &req, ret, e);
}

/* --- operators --- */

static enum rc register_account(struct demo *d, struct outcome *ret, struct err *e)
{
	struct remote_request req = as_person(d, "admin", JWT_ADMIN, "GET", STR("/accounts/unregistered"), STR(""));
	CLEANUP(json_freep) json_t *json = NULL;
	const json_t               *first;
	enum rc                     rc = ask(d, &req, ret, &json, e);
	struct str                  id;

	if (rc || !json)
		return rc;
	first = json_array_get(json_object_get(json_object_get(json, "data"), "result"), 0);
	id = list_text(&d->call, first, "Id");
	*ret = (struct outcome){ .text = STR("there is none left") };
	if (!id.n)
		return RC_OK;
	req = as_person(d, "admin", JWT_ADMIN, "POST", STR("/accounts"), ask_body(&d->call, "awsAccountId", id));
	rc = order(d, &req, ret, e);
	if (!rc && ret->is_done)
		ret->text = id;
	return rc;
}

/* The one of an earlier demo is good enough. */
static enum rc find_webhook(struct demo *d, struct outcome *ret, struct str *ret_id, struct err *e)
{
	struct remote_request       req = as_admin("GET", STR("/ops/webhooks"), NULL);
	CLEANUP(json_freep) json_t *json = NULL;
	const json_t               *hooks;
	enum rc                     rc = ask(d, &req, ret, &json, e);

	*ret_id = STR("");
	hooks = json_object_get(json, "webhooks");
	for (size_t i = 0; !rc && i < json_array_size(hooks); i++)
		if (str_eq(list_text(&d->call, json_array_get(hooks, i), "description"), str_from(webhook_mark)))
			*ret_id = list_text(&d->call, json_array_get(hooks, i), "id");
	return rc;
}

/* A test event is sent to it at once, so that the first dead letter does not wait for a lease. */
static enum rc break_webhook(struct demo *d, struct outcome *ret, struct err *e)
{
	struct str                  body = str_format(&d->call.arena,
	                                              "{\"url\":\"http://127.0.0.1:9/hook\",\"filter\":\"LeaseDenied,LeaseTerminated\","
	                                                               "\"description\":\"%s\"}",
	                                              webhook_mark);
	struct remote_request       req = as_admin("POST", STR("/ops/webhooks"), body.p);
	CLEANUP(json_freep) json_t *json = NULL;
	struct str                  id;
	enum rc                     rc = find_webhook(d, ret, &id, e);

	if (rc)
		return rc;
	if (!id.n) {
		if ((rc = ask(d, &req, ret, &json, e)) || !json)
			return rc;
		id = list_text(&d->call, json, "id");
	}
	req = as_admin("POST", ask_path_of(&d->call, "/ops/webhooks/", id, "/test"), NULL);
	return order(d, &req, ret, e);
}

/* --- a deed --- */

static enum rc do_deed(struct demo *d, const struct demo_deed *deed, struct outcome *ret, struct err *e)
{
	size_t who = deed->who;

	switch (deed->kind) {
	case DEMO_CLAIM: return claim(d, who, ret, e);
	case DEMO_GIVE_BACK: return give_back(d, who, ret, e);
	case DEMO_REQUEST: return request(d, who, ret, e);
	case DEMO_APPROVE: return act(d, who, true, "/review", "{\"action\":\"Approve\"}", ret, e);
	case DEMO_DENY:
		return act(d, who, true, "/review",
		           "{\"action\":\"Deny\",\"reason\":\"please use the shared account\"}", ret, e);
	case DEMO_FREEZE: return act(d, who, true, "/freeze", "", ret, e);
	case DEMO_UNFREEZE: return act(d, who, true, "/unfreeze", "", ret, e);
	case DEMO_END: return act(d, who, false, "/terminate", "", ret, e);
	case DEMO_WITHDRAW: return act(d, who, false, "/withdraw", "", ret, e);
	case DEMO_OVERSPEND: return overspend(d, who, ret, e);
	case DEMO_FAIL_CLEANUPS: return fail_cleanups(d, who, ret, e);
	case DEMO_RETRY_CLEANUP: return retry_cleanup(d, who, ret, e);
	case DEMO_REGISTER: return register_account(d, ret, e);
	case DEMO_BREAK_WEBHOOK: return break_webhook(d, ret, e);
	}
	return RC_OK;
}

/* Who does it, and to whom when that is somebody else. */
static struct str describe(struct demo *d, const struct demo_deed *deed, const char **ret_actor)
{
	struct arena *a = &d->call.arena;

	switch (deed->kind) {
	case DEMO_CLAIM:
	case DEMO_GIVE_BACK:
		*ret_actor = str_format(a, "%s-%zu", d->plan.students[deed->who].name, deed->who).p;
		return deed->kind == DEMO_GIVE_BACK
		               ? str_from(demo_words[deed->kind])
		               : str_format(a, "%s for %s", demo_words[deed->kind], d->plan.students[deed->who].lab);
	case DEMO_APPROVE:
	case DEMO_DENY:
	case DEMO_FREEZE:
	case DEMO_UNFREEZE:
	case DEMO_RETRY_CLEANUP:
		*ret_actor = deed->kind == DEMO_RETRY_CLEANUP ? "admin" : "manager";
		return str_format(a, "%s %s", demo_words[deed->kind], d->plan.borrowers[deed->who].name);
	case DEMO_REGISTER:
	case DEMO_BREAK_WEBHOOK: *ret_actor = "admin"; return str_from(demo_words[deed->kind]);
	default: *ret_actor = d->plan.borrowers[deed->who].name; return str_from(demo_words[deed->kind]);
	}
}

static void tell_json(FILE *out, const char *at, const char *actor, struct str deed, const struct outcome *outcome)
{
	struct json_out o;
	struct buf      b;

	buf_init(&b, 8192);
	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "at", str_from(at));
	json_put_str(&o, "who", str_from(actor));
	json_put_str(&o, "does", deed);
	json_put_bool(&o, "done", outcome->is_done);
	json_put_str(&o, "result", outcome->text);
	json_close_object(&o);
	fprintf(out, "%s\n", b.p);
	buf_fini(&b);
}

static void tell(struct demo *d, const struct demo_deed *deed, const struct outcome *outcome)
{
	bool        is_coloured = d->remote->is_coloured, is_bad = !outcome->is_done;
	FILE       *out = d->remote->io->out;
	int64_t     minute = DEMO_DAWN_MIN + deed->at_ms / 60000;
	const char *actor;
	struct str  text = describe(d, deed, &actor);
	char        at[16];

	(void)snprintf(at, sizeof(at), "%02d:%02d", (int)(minute / 60 % 24), (int)(minute % 60)); /* fits */
	if (d->remote->is_json) {
		tell_json(out, at, actor, text, outcome);
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

/* A remote whose memory lasts for one deed. */
static struct remote borrow(const struct demo *d)
{
	struct remote r = *d->remote;

	r.arena = (struct arena){ 0 };
	return r;
}

/* *ret_is_over: by Ctrl-C, or because the time is up. */
static enum rc live_day(struct demo *d, bool *ret_is_over, struct err *e)
{
	int64_t dawn_ms = d->started_ms + d->day * DAY_MS / d->speed;
	enum rc rc = RC_OK;

	for (size_t i = 0; i < d->plan.count && !rc; i++) {
		const struct demo_deed *deed = &d->plan.deeds[i];
		int64_t                 at_ms = dawn_ms + deed->at_ms / d->speed;
		struct outcome          outcome = { .is_done = false };

		*ret_is_over = wait_until(d, at_ms < d->until_ms ? at_ms : d->until_ms) || at_ms >= d->until_ms;
		if (*ret_is_over)
			return RC_OK;
		d->call = borrow(d);
		rc = do_deed(d, deed, &outcome, e);
		if (!rc)
			tell(d, deed, &outcome);
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
		memset(d->sandboxes, 0, sizeof(d->sandboxes));
		memset(d->leases, 0, sizeof(d->leases));
		memset(d->accounts, 0, sizeof(d->accounts));
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

static int refuse_server(struct remote *remote)
{
	fprintf(remote->io->err,
	        "leasehold: demo: the server at %.*s is not in development mode; the demo plays with a simulated world only\n"
	        "Start one: make run, or leasehold serve --dev\n",
	        STR_ARG(remote->base));
	return CLI_EXIT_REFUSED;
}

/* Is this a server in development, and what time is it there? 0 when that is the machine's. */
static int look_at_world(struct remote *remote, int64_t *ret_sec)
{
	struct remote_request req = as_admin("GET", STR("/sim"), NULL);
	struct fetch_reply    reply;
	struct err            e = { 0 };

	if (remote_send(remote, &req, &reply, &e))
		return remote_fail(remote, &e);
	if (reply.status == 404)
		return refuse_server(remote);
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
	run_pause(LOOK_MS);
	code = look_at_world(d->remote, &second);
	d->server_speed = ((second - first) * 1000 + 500) / (mono_now().ms - began);
	if (d->server_speed < 2)
		d->server_speed = 1;
	return code;
}

static int find_secret(struct demo *d)
{
	d->secret = settings_get(&d->remote->settings, "LEASEHOLD_JWT_SECRET");
	if (d->secret.n >= JWT_SECRET_MIN)
		return CLI_EXIT_OK;
	return remote_misused(
	        d->remote, "students need the server's secret to sign in: run it where 'data/client' of the "
	                   "development server is, name that folder with LEASEHOLD_DATA, or set LEASEHOLD_JWT_SECRET");
}

static int prepare(struct demo *d, int64_t *ret_seed)
{
	struct remote *remote = d->remote;
	const char    *how_long = remote->args->values[CLI_OPTION_FOR];
	struct err     e = { 0 };
	int64_t        sec = 0;
	int            code;

	if (ask_number(remote, CLI_OPTION_SPEED, 1, SPEED_MAX, 0, &d->speed, &e) ||
	    ask_number(remote, CLI_OPTION_SEED, 0, INT32_MAX, 1, ret_seed, &e))
		return remote_fail(remote, &e);
	if (how_long && !read_duration(str_from(how_long), &sec))
		return remote_misused(remote, "--for must be a time such as 30s, 5m or 2h, a week at most");
	if ((code = measure(d)) != CLI_EXIT_OK || (code = find_secret(d)) != CLI_EXIT_OK)
		return code;
	if (!d->speed)
		d->speed = d->server_speed > 1 ? d->server_speed : SPEED_DEFAULT;
	d->started_ms = mono_now().ms;
	d->until_ms = d->started_ms + (sec ? sec * 1000 : DAY_MS / d->speed);
	return CLI_EXIT_OK;
}

static void greet(const struct demo *d)
{
	struct arena *a = &d->remote->arena;
	struct str    day = show_duration(a, DAY_MS / d->speed / 1000);
	struct str    whole = show_duration(a, (d->until_ms - d->started_ms) / 1000);
	FILE         *to = d->remote->io->err;

	fprintf(to, "A day takes %.*s here; this goes on for %.*s. Ctrl-C ends it.\n", STR_ARG(day), STR_ARG(whole));
	if (d->server_speed == 1)
		fprintf(to,
		        "The server's own time is not faster than real time: cleanups, bills and rests take minutes, hours and "
		        "days. Faster: make run SPEED=%d\n",
		        SPEED_DEFAULT);
}

/* Faults end, whatever happened; then what has been done is told. */
static void finish(struct demo *d)
{
	struct remote_request req = as_admin("PUT", STR("/sim/faults"), "{\"faults\":[]}");
	struct outcome        outcome;
	struct err            e = { 0 };

	d->call = borrow(d);
	if (d->has_faults)
		(void)order(d, &req, &outcome, &e); /* they end by themselves after a while */
	remote_close(&d->call);
	fprintf(d->remote->io->err, "%" PRId64 " things were done, %" PRId64 " refused. See it: leasehold status\n",
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

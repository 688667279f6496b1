/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_api.c - the routes of the simulated cloud: look at it, disturb it, do in it what outsiders do. For development only: without a
 * simulated world there is nothing at these paths.
 *
 * A call of the world blocks, so it runs on a thread of libuv; its struct sim_work lives in the call's arena, which stays until the
 * reply. Every call answers with the world as it is afterwards.
 *
 * Bodies are strict: members that are not known, of the wrong type or out of range are all named in one reply.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/world.h"
#include "http/api.h"

enum { WORLD_BYTES_MAX = 8 * 1024 * 1024, SECONDS_MAX = 31 * 86400, NAME_SHOWN = 40 };

struct sim_work {
	uv_work_t       work;
	struct request *request;
	struct world   *world;
	enum rc (*act)(struct sim_work *w); /* NULL: only look */

	struct str         account_id, from, to;
	int64_t            count, micro_usd;
	struct world_rules rules;

	struct buf shown; /* the answer */
	struct err e;
};

/* --- running it --- */

static void run(uv_work_t *work)
{
	struct sim_work *w = CONTAINER_OF(work, struct sim_work, work);

	if (!w->act || w->act(w) == RC_OK)
		rc_ignore(w->world->ops->show(w->world, &w->shown, &w->e)); /* noted in e */
}

static void answer(uv_work_t *work, int status)
{
	struct sim_work *w = CONTAINER_OF(work, struct sim_work, work);
	struct err       e = { 0 };
	struct buf       shown = w->shown; /* the call's arena is gone after the reply */

	assert(status == 0); /* nobody cancels it */
	(void)status;
	if (w->e.rc) { /* the cloud's own code is for its callers; ours are a closed list */
		rc_ignore(err_set(&e, w->e.rc, "%s%s%s", w->e.code ? w->e.code : "", w->e.code ? ": " : "",
		                  w->e.msg)); /* noted in e */
		request_fail(w->request, &e);
	} else {
		request_reply_as(w->request, 200, "application/json", buf_str(&shown));
	}
	buf_fini(&shown);
}

static struct sim_work *sim_work_new(struct request *r, struct err *e)
{
	struct world    *world = api_options(r->api)->world;
	struct sim_work *w;

	if (!world) {
		rc_ignore(err_set(
		        e, RC_NOT_FOUND,
		        "there is no simulated cloud here: it is for development (serve --dev)")); /* noted in e */
		return NULL;
	}
	w = arena_alloc(&r->call->arena, sizeof(*w));
	w->request = r;
	w->world = world;
	w->account_id = r->params[0];
	buf_init(&w->shown, WORLD_BYTES_MAX);
	return w;
}

static void start(struct sim_work *w, enum rc (*act)(struct sim_work *w))
{
	w->act = act;
	if (uv_queue_work(api_options(w->request->api)->loop, &w->work, run, answer))
		abort(); /* fails only without a callback */
}

/* --- reading bodies --- */

/* What is wrong with a body: as much as a message holds, and how much more there is. */
struct problems {
	struct err e;
	size_t     used, left_out;
};

static void add_problem(struct problems *p, const char *where, const char *name, const char *what)
{
	char text[160];
	int  n = snprintf(text, sizeof(text), "%s%s%.*s %s", p->used ? "; " : "", where, NAME_SHOWN, name, what);

	if (n < 0 || (size_t)n >= sizeof(text) || p->used + (size_t)n + sizeof("; and 99 more") > sizeof(p->e.msg)) {
		p->left_out++;
		return;
	}
	memcpy(p->e.msg + p->used, text, (size_t)n + 1);
	p->used += (size_t)n;
}

static enum rc end_problems(struct problems *p, struct err *e)
{
	if (!p->used)
		return RC_OK;
	if (p->left_out)
		return err_set(e, RC_INVALID, "%s; and %zu more", p->e.msg, p->left_out < 99 ? p->left_out : 99);
	return err_set(e, RC_INVALID, "%s", p->e.msg);
}

/* Members that are not among the words. */
static void check_members(struct problems *p, json_t *object, const char *where, const char *words)
{
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		struct str rest = str_from(words);
		bool       is_known = false;

		while (rest.n)
			is_known = str_eq(str_cut(&rest, ' '), str_from(name)) || is_known;
		if (!is_known)
			add_problem(p, where, name, "is not known here");
	}
}

/* A whole number within limits; a missing one is the fallback, or a problem when that is negative. */
static int64_t read_number(struct problems *p, const json_t *object, const char *where, const char *name, int64_t min,
                           int64_t max, int64_t fallback)
{
	const json_t *member = json_object_get(object, name);
	char          what[80];

	if ((!member || json_is_null(member)) && fallback >= 0)
		return fallback;
	if (json_is_integer(member) && json_integer_value(member) >= min && json_integer_value(member) <= max)
		return json_integer_value(member);
	snprintf(what, sizeof(what), "must be a whole number from %lld to %lld", (long long)min, (long long)max);
	add_problem(p, where, name, what);
	return 0;
}

static struct str read_text(struct problems *p, struct request *r, const json_t *object, const char *name)
{
	struct str text = STR("");

	if (!json_get_text(object, name, &text) || !text.n)
		add_problem(p, "", name, "must be a text");
	return str_dup(&r->call->arena, text);
}

/* Parse the body; the object is yours. RC_INVALID when it is none. */
static enum rc read_object(struct request *r, const char *example, json_t **ret, struct err *e)
{
	enum rc rc = r->call->req.body.n ? json_parse(r->call->req.body, ret, e) : RC_OK;

	if (rc)
		return err_wrap(e, rc, "body");
	return json_is_object(*ret) ? RC_OK : err_set(e, RC_INVALID, "the body must be like %s", example);
}

/* --- the world at a glance --- */

void handle_sim_show(struct request *r)
{
	struct err       e = { 0 };
	struct sim_work *w = sim_work_new(r, &e);

	if (w)
		start(w, NULL);
	else
		request_fail(r, &e);
}

/* --- faults --- */

static void read_rule(struct problems *p, json_t *object, const char *where, struct world_rule *ret)
{
	struct str fault, call;
	int64_t    for_sec;

	*ret = (struct world_rule){ .call = WORLD_ANY_CALL };
	check_members(p, object, where, "fault call per_mille count for_sec latency_ms");
	if (!json_get_text(object, "fault", &fault) || !world_fault_parse(fault, &ret->fault))
		add_problem(p, where, "fault", "must be one of those in docs/sim-cloud.md, such as throttle");
	if (!json_get_text(object, "call", &call) || (call.n && !world_call_parse(call, &ret->call)))
		add_problem(p, where, "call", "must be any, or one of those in docs/sim-cloud.md, such as move");
	else if (ret->call != WORLD_ANY_CALL && !world_fault_is_of_call(ret->fault))
		add_problem(p, where, "call", "must be any: this fault does not happen to a call");
	ret->per_mille = read_number(p, object, where, "per_mille", 1, 1000, 1000);
	ret->count = read_number(p, object, where, "count", 1, INT32_MAX, 0);
	for_sec = read_number(p, object, where, "for_sec", 1, SECONDS_MAX, 0);
	ret->until_ms = for_sec ? clock_now(&clock_real).ms + for_sec * 1000 : 0;
	if (ret->fault == WORLD_LATENCY)
		ret->latency_ms = read_number(p, object, where, "latency_ms", 1, WORLD_LATENCY_MAX_MS, -1);
	else if (json_object_get(object, "latency_ms"))
		add_problem(p, where, "latency_ms", "belongs to the fault latency only");
}

static enum rc read_rules(struct request *r, struct world_rules *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct problems             p = { .used = 0 };
	const json_t               *list;
	enum rc rc = read_object(r, "{\"faults\": [{\"fault\": \"throttle\", \"per_mille\": 100}]}", &body, e);

	if (rc)
		return rc;
	check_members(&p, body, "", "faults");
	list = json_object_get(body, "faults");
	if (!json_is_array(list) || json_array_size(list) > WORLD_RULES_MAX) {
		add_problem(&p, "", "faults", "must be a list of at most 32");
		return end_problems(&p, e);
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *rule = json_array_get(list, i);
		char    where[40];

		snprintf(where, sizeof(where), "faults[%zu].", i);
		if (json_is_object(rule))
			read_rule(&p, rule, where, &ret->rules[i]);
		else
			add_problem(&p, where, "fault", "must be in an object");
	}
	ret->count = json_array_size(list);
	return end_problems(&p, e);
}

static enum rc act_rules(struct sim_work *w)
{
	w->world->ops->set_rules(w->world, &w->rules);
	return RC_OK;
}

void handle_sim_faults(struct request *r)
{
	struct err       e = { 0 };
	struct sim_work *w = sim_work_new(r, &e);

	if (!w || read_rules(r, &w->rules, &e))
		request_fail(r, &e);
	else
		start(w, act_rules);
}

/* --- accounts --- */

static enum rc act_add(struct sim_work *w)
{
	return w->world->ops->add_accounts(w->world, w->count, &w->e);
}

static enum rc read_count(struct request *r, int64_t *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct problems             p = { .used = 0 };
	enum rc                     rc = read_object(r, "{\"count\": 10}", &body, e);

	if (rc)
		return rc;
	check_members(&p, body, "", "count");
	*ret = read_number(&p, body, "", "count", 1, WORLD_ADD_MAX, -1);
	return end_problems(&p, e);
}

void handle_sim_add(struct request *r)
{
	struct err       e = { 0 };
	struct sim_work *w = sim_work_new(r, &e);

	if (!w || read_count(r, &w->count, &e))
		request_fail(r, &e);
	else
		start(w, act_add);
}

static enum rc act_move(struct sim_work *w)
{
	return w->world->ops->move(w->world, w->account_id, w->from, w->to, &w->e);
}

static enum rc read_move(struct request *r, struct sim_work *w, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct problems             p = { .used = 0 };
	enum rc                     rc = read_object(r, "{\"from\": \"Active\", \"to\": \"Exit\"}", &body, e);

	if (rc)
		return rc;
	check_members(&p, body, "", "from to");
	w->from = read_text(&p, r, body, "from");
	w->to = read_text(&p, r, body, "to");
	return end_problems(&p, e);
}

void handle_sim_move(struct request *r)
{
	struct err       e = { 0 };
	struct sim_work *w = sim_work_new(r, &e);

	if (!w || read_move(r, w, &e))
		request_fail(r, &e);
	else
		start(w, act_move);
}

static enum rc act_rate(struct sim_work *w)
{
	return w->world->ops->set_rate(w->world, w->account_id, w->micro_usd, &w->e);
}

static enum rc read_rate(struct request *r, int64_t *ret_micro, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct problems             p = { .used = 0 };
	const json_t               *usd;
	enum rc                     rc = read_object(r, "{\"usd_per_hour\": 1.25}", &body, e);

	if (rc)
		return rc;
	check_members(&p, body, "", "usd_per_hour");
	usd = json_object_get(body, "usd_per_hour");
	if (!json_is_number(usd) || !(json_number_value(usd) >= 0 && json_number_value(usd) <= WORLD_RATE_MAX_USD))
		add_problem(&p, "", "usd_per_hour", "must be a number from 0 to 1000");
	else
		*ret_micro = llround(json_number_value(usd) * 1e6);
	return end_problems(&p, e);
}

void handle_sim_rate(struct request *r)
{
	struct err       e = { 0 };
	struct sim_work *w = sim_work_new(r, &e);

	if (!w || read_rate(r, &w->micro_usd, &e))
		request_fail(r, &e);
	else
		start(w, act_rate);
}

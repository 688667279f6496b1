/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_api.c - the routes of the simulated cloud: look at it, break it, change it as outsiders would. For development
 * only: without a simulated world there is nothing at these paths.
 *
 * Calls to the world block, so a thread makes them. Every call answers with the world as it is afterwards.
 *
 * Bodies are strict: one reply names all members that are unknown, of the wrong type or out of range.
 */
#include <math.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/ports/instance.h"
#include "domain/world.h"
#include "http/api/api.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"

enum { WORLD_BYTES_MAX = 8 * 1024 * 1024, SECONDS_MAX = 31 * 86400, NAME_SHOWN = 40 };

enum sim_act { LOOK, SET_FAULTS, ADD_ACCOUNTS, MOVE_ACCOUNT, SET_RATE };

struct sim_work {
	struct world *world;
	enum sim_act  act;

	struct str         account_id, from, to;
	int64_t            count, micro_usd;
	struct world_rules rules;

	struct buf shown; /* the answer */
};

/* --- running it --- */

static enum rc act(struct sim_work *w, struct err *e)
{
	const struct world_ops *ops = w->world->ops;

	switch (w->act) {
	case LOOK: break;
	case SET_FAULTS: ops->set_rules(w->world, &w->rules); break;
	case ADD_ACCOUNTS: return ops->add_accounts(w->world, w->count, e);
	case MOVE_ACCOUNT: return ops->move(w->world, w->account_id, w->from, w->to, e);
	case SET_RATE: return ops->set_rate(w->world, w->account_id, w->micro_usd, e);
	}
	return RC_OK;
}

/* The cloud's error code goes into the message: ours are a closed list. */
static enum rc run(struct request *r UNUSED, void *arg, struct err *e)
{
	struct sim_work *w = arg;
	struct err       cause = { 0 };
	enum rc          rc = act(w, &cause);

	buf_init(&w->shown, WORLD_BYTES_MAX);
	if (!rc && !(rc = w->world->ops->show(w->world, &w->shown, &cause)))
		return RC_OK;
	buf_fini(&w->shown);
	return err_set(e, rc, "%s%s%s", cause.code ? cause.code : "", cause.code ? ": " : "", cause.msg);
}

static void answer(struct request *r)
{
	request_reply_taken(r, 200, "application/json", &((struct sim_work *)r->arg)->shown);
}

/* --- reading bodies --- */

/* What is wrong with a body: as much as a message holds, and how much more there is. */
struct mistakes {
	struct err e;
	size_t     used, left_out;
};

static void add_problem(struct mistakes *p, const char *where, const char *name, const char *what)
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

/* Members that are not among the words. */
static void check_members(struct mistakes *p, json_t *object, const char *where, const char *words)
{
	const char *name;
	json_t     *value;

	json_object_foreach(object, name, value)
	{
		if (!ops_is_word(words, name))
			add_problem(p, where, name, "is not known here");
	}
}

/* A whole number within limits; a missing one is the fallback, or a problem when that is negative. */
static int64_t read_number(struct mistakes *p, const json_t *object, const char *where, const char *name, int64_t min,
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

static struct str read_text(struct mistakes *p, struct request *r, const json_t *object, const char *name)
{
	struct str text = STR("");

	if (!json_get_text(object, name, &text) || !text.n)
		add_problem(p, "", name, "must be a text");
	return str_dup(&r->call->arena, text);
}

/* --- faults --- */

static void read_rule(struct mistakes *p, json_t *object, const char *where, struct world_rule *ret)
{
	struct str fault, call, resource;
	int64_t    for_sec;
	int        word = WORLD_ANY_CALL;

	*ret = (struct world_rule){ .call = WORLD_ANY_CALL };
	check_members(p, object, where, "fault call resource per_mille count for_sec latency_ms");
	if (!json_get_text(object, "fault", &fault) ||
	    (word = str_word(fault, world_fault_names, WORLD_FAULT_COUNT)) == WORLD_FAULT_COUNT)
		add_problem(p, where, "fault", "must be one of those in docs/sim-cloud.md, such as throttle");
	else
		ret->fault = (enum world_fault)word;
	if (!json_get_text(object, "call", &call) ||
	    ((word = str_word(call, world_call_names, WORLD_CALL_COUNT)) == WORLD_ANY_CALL && call.n &&
	     !str_eq(call, STR("any"))))
		add_problem(p, where, "call", "must be any, or one of those in docs/sim-cloud.md, such as move");
	else if (word != WORLD_ANY_CALL && !world_fault_is_of_call[ret->fault])
		add_problem(p, where, "call", "must be any: this fault does not happen to a call");
	else
		ret->call = (enum world_call)word;
	if (!json_get_text(object, "resource", &resource) ||
	    ((word = str_word(resource, instance_resource_names, INSTANCE_RESOURCE_COUNT)) == INSTANCE_RESOURCE_COUNT &&
	     resource.n))
		add_problem(p, where, "resource", "must be storage, database, secret, route, workers or identity");
	else
		ret->resource = resource.n ? word + 1 : 0;
	ret->per_mille = read_number(p, object, where, "per_mille", 1, 1000, 1000);
	ret->count = read_number(p, object, where, "count", 1, INT32_MAX, 0);
	for_sec = read_number(p, object, where, "for_sec", 1, SECONDS_MAX, 0);
	ret->until_ms = for_sec ? clock_now(&clock_real).ms + for_sec * 1000 : 0;
	if (ret->fault == WORLD_LATENCY)
		ret->latency_ms = read_number(p, object, where, "latency_ms", 1, WORLD_LATENCY_MAX_MS, -1);
	else if (json_object_get(object, "latency_ms"))
		add_problem(p, where, "latency_ms", "belongs to the fault latency only");
}

static void read_rules(struct request *r UNUSED, const json_t *body, struct sim_work *w, struct mistakes *p)
{
	const json_t *list = json_object_get(body, "faults");

	if (!json_is_array(list) || json_array_size(list) > WORLD_RULES_MAX) {
		add_problem(p, "", "faults", "must be a list of at most 32");
		return;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		json_t *rule = json_array_get(list, i);
		char    where[40];

		snprintf(where, sizeof(where), "faults[%zu].", i);
		if (json_is_object(rule))
			read_rule(p, rule, where, &w->rules.rules[i]);
		else
			add_problem(p, where, "fault", "must be in an object");
	}
	w->rules.count = json_array_size(list);
}

/* --- accounts --- */

static void read_count(struct request *r UNUSED, const json_t *body, struct sim_work *w, struct mistakes *p)
{
	w->count = read_number(p, body, "", "count", 1, WORLD_ADD_MAX, -1);
}

static void read_move(struct request *r, const json_t *body, struct sim_work *w, struct mistakes *p)
{
	w->from = read_text(p, r, body, "from");
	w->to = read_text(p, r, body, "to");
}

static void read_rate(struct request *r UNUSED, const json_t *body, struct sim_work *w, struct mistakes *p)
{
	const json_t *usd = json_object_get(body, "usd_per_hour");

	if (!json_is_number(usd) || !(json_number_value(usd) >= 0 && json_number_value(usd) <= WORLD_RATE_MAX_USD))
		add_problem(p, "", "usd_per_hour", "must be a number from 0 to 1000");
	else
		w->micro_usd = llround(json_number_value(usd) * 1e6);
}

/* --- routes --- */

/* The body of a call: an object with no members but these. */
struct sim_body {
	const char *must, *words;
	void (*read)(struct request *r, const json_t *body, struct sim_work *w, struct mistakes *p);
};

static const struct sim_body bodies[] = {
	[SET_FAULTS] = { "like {\"faults\": [{\"fault\": \"throttle\", \"per_mille\": 100}]}", "faults", read_rules },
	[ADD_ACCOUNTS] = { "like {\"count\": 10}", "count", read_count },
	[MOVE_ACCOUNT] = { "like {\"from\": \"Active\", \"to\": \"Exit\"}", "from to", read_move },
	[SET_RATE] = { "like {\"usd_per_hour\": 1.25}", "usd_per_hour", read_rate },
};

static enum rc read_body(struct request *r, const struct sim_body *b, struct sim_work *w, struct err *e)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct mistakes             p = { .used = 0 };
	enum rc                     rc = ops_read_object(r, b->must, NULL, &body, e);

	if (rc)
		return rc;
	check_members(&p, body, "", b->words);
	b->read(r, body, w, &p);
	if (!p.used)
		return RC_OK;
	if (p.left_out)
		return err_set(e, RC_INVALID, "%s; and %zu more", p.e.msg, p.left_out < 99 ? p.left_out : 99);
	return err_set(e, RC_INVALID, "%s", p.e.msg);
}

static void serve(struct request *r, enum sim_act act)
{
	struct sim_work *w = NEW_OF(r, struct sim_work);

	w->world = r->api->options.world;
	w->account_id = r->params[0];
	w->act = act;
	if (request_is_good(r, (!w->world &&
	                        err_set(&r->e, RC_NOT_FOUND,
	                                "there is no simulated cloud here: it is for development (serve --dev)")) ||
	                               (bodies[act].read && read_body(r, &bodies[act], w, &r->e))))
		blocking_start(r, BLOCKING_SIM, run, answer, w);
}

HANDLER(sim_show, serve(r, LOOK))
HANDLER(sim_faults, serve(r, SET_FAULTS))
HANDLER(sim_add, serve(r, ADD_ACCOUNTS))
HANDLER(sim_move, serve(r, MOVE_ACCOUNT))
HANDLER(sim_rate, serve(r, SET_RATE))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_look.c - the routes of instances that ask the driver: what runs, what it logged, the administrator's
 * password.
 *
 * First the record is read (the password: and an event written that it is shown), then a thread asks the driver, then
 * the loop answers. What runs is told from the record when the driver cannot be asked; then nobody knows how healthy it
 * is.
 */
#include "base/json.h"
#include "http/api/blocking.h"
#include "http/routes/instance_form.h"

enum { LINES_DEFAULT = 100, LINES_SKIPPED_MAX = 100000 };

struct look {
	struct instance_call *call;
	blocking_fn          *run;
	void (*answer)(struct request *r);
	struct instance_tasks tasks;
	bool                  is_unknown; /* the driver could not be asked */

	int64_t                   from_ms, to_ms, limit;
	int64_t                   skip; /* so many of the newest were on the page before */
	struct instance_log_line *lines;
	size_t                    count;

	struct str user, password;
};

/* The second half of each: the record is there. */
static void ask(struct request *r, const struct look *look)
{
	struct look *l;

	if (request_failed(r))
		return;
	l = NEW_OF(r, struct look);
	*l = *look;
	l->call = r->arg;
	blocking_start(r, BLOCKING_INSTANCE, l->run, l->answer, l);
}

/* Without the driver's own code: ours are a closed list. */
static enum rc told(enum rc rc, struct err *e)
{
	if (rc && e)
		e->code = NULL;
	return rc;
}

static struct instance_driver *driver_of(const struct look *l)
{
	return l->call->world->driver;
}

/* --- what runs --- */

static enum rc count_tasks(struct request *r, void *arg, struct err *e)
{
	struct look            *l = arg;
	struct instance_driver *d = driver_of(l);

	(void)e;
	l->is_unknown = d->ops->tasks(d, l->call->instance.tenant, &r->call->arena, &l->tasks, NULL) != RC_OK;
	return RC_OK;
}

static void put_tasks(struct json_out *o, const struct look *l)
{
	int64_t cpu, memory;

	instance_tier_size(l->call->instance.tier, &cpu, &memory);
	json_put_array(o, "tasks");
	for (size_t i = 0; !l->is_unknown && i < l->tasks.count; i++) {
		const struct instance_task *t = &l->tasks.items[i];

		JSON_PUT(o, member_object(NULL), member_str("taskId", t->id),
		         member_str("status", t->is_running ? STR("RUNNING") : STR("PENDING")),
		         member_str("healthStatus", t->is_healthy ? STR("HEALTHY") : STR("UNHEALTHY")),
		         member_at("startedAt", t->started_ms), member_int("cpu", cpu), member_int("memory", memory),
		         member_end());
	}
	json_close_array(o);
}

static struct str health_of(const struct look *l)
{
	if (l->is_unknown)
		return STR("UNKNOWN");
	return l->tasks.is_healthy && l->tasks.running == l->tasks.desired ? STR("HEALTHY") : STR("UNHEALTHY");
}

static void answer_status(struct request *r)
{
	const struct look     *l = r->arg;
	const struct instance *i = &l->call->instance;
	struct json_out        o = reply_begin(r);

	JSON_PUT(&o, member_str("instanceId", i->id), member_str("tenantId", i->tenant),
	         member_word("status", instance_status(i->state)),
	         member_word("provisioningState", instance_state_name(i->state)),
	         member_int("desiredCount", i->desired_count),
	         member_int("runningCount", l->is_unknown ? i->running_count : l->tasks.running),
	         member_int("pendingCount", l->is_unknown ? 0 : l->tasks.pending),
	         member_word("deploymentStatus", instance_deployment_names[i->deployment]),
	         member_str("healthStatus", health_of(l)));
	put_tasks(&o, l);
	json_put_time(&o, "lastUpdated", i->updated_ms);
	instance_put_status_links(&o, i, &r->call->arena);
	reply_send(r, 200);
}

static void ask_status(struct request *r)
{
	ask(r, &(struct look){ .run = count_tasks, .answer = answer_status });
}

HANDLER(instance_status, instance_first(r, instance_get, true, ask_status))

/* --- what it logged --- */

static enum rc read_logs(struct request *r, void *arg, struct err *e)
{
	struct look            *l = arg;
	struct instance_driver *d = driver_of(l);
	enum rc rc = d->ops->logs(d, l->call->instance.tenant, l->from_ms, l->to_ms, (size_t)(l->limit + l->skip),
	                          &r->call->arena, &l->lines, &l->count, e);

	if (!rc)
		l->count -= l->count < (size_t)l->skip ? l->count : (size_t)l->skip;
	return told(rc, e);
}

/* The next page goes on at the time of the oldest line of this one, without those that were shown of that time: many
 * lines can have the same. */
static struct str next_lines(const struct look *l, struct arena *a)
{
	int64_t at_ms = l->lines[0].at_ms, shown = at_ms + 1 == l->to_ms ? l->skip : 0;

	for (size_t i = 0; i < l->count && l->lines[i].at_ms == at_ms; i++)
		shown++;
	return str_format(a, "%lld-%lld", (long long)at_ms, (long long)shown);
}

static void answer_logs(struct request *r)
{
	const struct look *l = r->arg;
	struct json_out    o = reply_begin(r);

	json_put_array(&o, "logs");
	for (size_t i = 0; i < l->count; i++)
		JSON_PUT(&o, member_object(NULL), member_at("timestamp", l->lines[i].at_ms),
		         member_str("taskId", l->lines[i].task), member_str("message", l->lines[i].text), member_end());
	JSON_PUT(&o, member_list_end(),
	         member_text("nextToken", (int64_t)l->count == l->limit ? next_lines(l, &r->call->arena) : STR("")));
	reply_send(r, 200);
}

static enum rc read_time(struct request *r, const char *name, int64_t *ret_ms, struct err *e)
{
	struct str text;
	int64_t    sec;
	enum rc    rc = request_query(r, name, &text, e);

	if (rc || !text.n)
		return rc;
	if (!iso_time_parse(text, &sec))
		return err_set(e, RC_INVALID, "%s must be a time such as 2026-11-15T18:03:43Z", name);
	*ret_ms = sec * 1000;
	return RC_OK;
}

static enum rc read_range(struct request *r, struct look *l, struct err *e)
{
	struct str token;
	enum rc    rc;

	l->to_ms = INT64_MAX;
	if ((rc = read_time(r, "startTime", &l->from_ms, e)) || (rc = read_time(r, "endTime", &l->to_ms, e)) ||
	    (rc = request_query_int(r, "limit", 1, INSTANCE_LOGS_MAX, LINES_DEFAULT, &l->limit, e)) ||
	    (rc = request_query(r, "nextToken", &token, e)))
		return rc;
	if (!token.n)
		return RC_OK;
	if (!str_to_int(str_cut(&token, '-'), 0, INT64_MAX - 1, &l->to_ms) ||
	    !str_to_int(token, 1, LINES_SKIPPED_MAX, &l->skip))
		return err_set(e, RC_INVALID, "nextToken was not made by this list");
	l->to_ms++;
	return RC_OK;
}

static void ask_logs(struct request *r)
{
	struct look l = { .run = read_logs, .answer = answer_logs };

	rc_ignore(read_range(r, &l, NULL)); /* it was good before */
	ask(r, &l);
}

void handle_instance_logs(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);
	struct look           l = { 0 };

	if (!c)
		return;
	r->arg = c;
	if (request_is_good(r, read_range(r, &l, &r->e)))
		request_submit(r, instance_get, c, true, ask_logs);
}

/* --- the password --- */

static enum rc get_secret(struct request *r, void *arg, struct err *e)
{
	struct look            *l = arg;
	struct instance_driver *d = driver_of(l);

	return told(d->ops->get_secret(d, l->call->instance.tenant, &r->call->arena, &l->user, &l->password, e), e);
}

static void answer_secret(struct request *r)
{
	const struct look *l = r->arg;
	struct json_out    o;

	request_header(r, "Cache-Control", "no-store");
	o = reply_begin(r);
	JSON_PUT(&o, member_str("instanceId", l->call->instance.id), member_str("user", l->user),
	         member_str("password", l->password), member_text("endpoint", l->call->instance.endpoint));
	reply_send(r, 200);
}

static void ask_secret(struct request *r)
{
	ask(r, &(struct look){ .run = get_secret, .answer = answer_secret });
}

HANDLER(instance_secret, instance_first(r, instance_note_secret, false, ask_secret))

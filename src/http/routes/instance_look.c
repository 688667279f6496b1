/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_look.c - the routes of instances that ask the driver: what runs, what it logged, the administrator's
 * password, and the people in the identity pool.
 *
 * First the record is read (for the password, the event that it is shown is stored), then a thread asks the driver,
 * then the loop answers. When the driver does not answer, the status comes from the record, and its health is unknown.
 * A change to the people is stored as an event before it is answered. A person's password is in that answer and
 * nowhere else.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api/blocking.h"
#include "http/routes/instance_form.h"

enum { LINES_DEFAULT = 100, LINES_SKIPPED_MAX = 100000 };

struct look {
	struct instance_call   *call;
	struct instance_driver *driver;
	blocking_fn            *ask;
	void (*answer)(struct request *r);

	struct instance_tasks tasks;
	bool                  is_unknown; /* the driver could not be asked */

	int64_t                   from_ms, to_ms, limit;
	int64_t                   skip; /* how many of the newest lines were on the page before */
	struct instance_log_line *lines;
	struct instance_person   *people;
	size_t                    count; /* of the lines, or of the people */

	struct str         user, password;
	bool               is_new, was_there;
	enum rc            removed; /* how the removal of somebody who was there ended, and why */
	struct err         why;
	struct person_note note;
};

/* NULL: it has been answered, and the request with its arena is gone. */
static struct look *look_new(struct request *r)
{
	struct look          *l = NEW_OF(r, struct look);
	struct instance_call *c = instance_enter(r, true);

	if (!c)
		return NULL;
	l->call = c;
	l->driver = c->world->driver;
	return l;
}

static void on_read(struct request *r)
{
	struct look *l = r->arg;

	if (!request_failed(r))
		blocking_start(r, BLOCKING_INSTANCE, l->ask, l->answer, l);
}

/* Run a transaction with the call, then have a thread ask the driver, then answer. */
static void start(struct request *r, struct look *l, txn_fn *run, bool is_read_only, blocking_fn *ask,
                  void (*answer)(struct request *r))
{
	if (!l)
		return;
	l->ask = ask;
	l->answer = answer;
	r->arg = l;
	request_submit(r, run, l->call, is_read_only, on_read);
}

/* --- what runs --- */

static enum rc count_tasks(struct request *r, void *arg, struct err *e UNUSED)
{
	struct look *l = arg;
	enum rc      rc = l->driver->ops->tasks(l->driver, l->call->instance.tenant, &r->call->arena, &l->tasks, NULL);

	l->is_unknown = rc != RC_OK;
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

static void answer_status(struct request *r)
{
	const struct look     *l = r->arg;
	const struct instance *i = &l->call->instance;
	bool                   is_healthy = l->tasks.is_healthy && l->tasks.running == l->tasks.desired;
	struct json_out        o = reply_begin(r);

	JSON_PUT(&o, member_str("instanceId", i->id), member_str("tenantId", i->tenant),
	         member_word("status", instance_status(i->state)),
	         member_word("provisioningState", instance_state_name(i->state)),
	         member_int("desiredCount", i->desired_count),
	         member_int("runningCount", l->is_unknown ? i->running_count : l->tasks.running),
	         member_int("pendingCount", l->is_unknown ? 0 : l->tasks.pending),
	         member_word("deploymentStatus", instance_deployment_names[i->deployment]),
	         member_word("healthStatus", l->is_unknown ? "UNKNOWN"
	                                     : is_healthy  ? "HEALTHY"
	                                                   : "UNHEALTHY"));
	put_tasks(&o, l);
	json_put_time(&o, "lastUpdated", i->updated_ms);
	instance_put_status_links(&o, i, &r->call->arena);
	reply_send(r, 200);
}

HANDLER(instance_status, start(r, look_new(r), instance_get, true, count_tasks, answer_status))

/* --- what it logged --- */

static enum rc read_logs(struct request *r, void *arg, struct err *e)
{
	struct look *l = arg;
	enum rc      rc = l->driver->ops->logs(l->driver, l->call->instance.tenant, l->from_ms, l->to_ms,
	                                       (size_t)(l->limit + l->skip), &r->call->arena, &l->lines, &l->count, e);

	if (!rc)
		l->count -= l->count < (size_t)l->skip ? l->count : (size_t)l->skip;
	return rc;
}

/* The next page begins at the time of the oldest line of this one, and leaves out the lines of that time that were
 * shown already: many lines can have the same. */
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

void handle_instance_logs(struct request *r)
{
	struct look *l = look_new(r);

	if (l && request_is_good(r, read_range(r, l, &r->e)))
		start(r, l, instance_get, true, read_logs, answer_logs);
}

/* --- the administrator's password --- */

static enum rc get_secret(struct request *r, void *arg, struct err *e)
{
	struct look *l = arg;

	return l->driver->ops->get_secret(l->driver, l->call->instance.tenant, &r->call->arena, &l->user, &l->password,
	                                  e);
}

static void answer_secret(struct request *r)
{
	const struct look *l = r->arg;

	request_header(r, "Cache-Control", "no-store");
	REPLY(r, 200, member_str("instanceId", l->call->instance.id), member_str("user", l->user),
	      member_str("password", l->password), member_text("endpoint", l->call->instance.endpoint));
}

HANDLER(instance_secret, start(r, look_new(r), instance_note_secret, false, get_secret, answer_secret))

/* --- the people --- */

static struct json_out begin_people(struct request *r, const struct look *l)
{
	struct json_out o = reply_begin(r);

	JSON_PUT(&o, member_str("instanceId", l->call->instance.id), member_str("tenantId", l->call->instance.tenant));
	return o;
}

static enum rc list_people(struct request *r, void *arg, struct err *e)
{
	struct look *l = arg;

	return l->driver->ops->people(l->driver, l->call->instance.tenant, &r->call->arena, &l->people, &l->count, e);
}

static void answer_people(struct request *r)
{
	const struct look *l = r->arg;
	struct json_out    o = begin_people(r, l);

	json_put_array(&o, "items");
	for (size_t i = 0; i < l->count; i++)
		JSON_PUT(&o, member_object(NULL), member_str("email", l->people[i].email),
		         member_text("name", l->people[i].name), member_at("addedAt", l->people[i].added_ms),
		         member_end());
	JSON_PUT(&o, member_list_end(), member_int("count", (int64_t)l->count));
	reply_send(r, 200);
}

HANDLER(instance_people, start(r, look_new(r), instance_find_pool, true, list_people, answer_people))

/* Store the event, then answer. */
static void tell(struct request *r, const char *event, void (*answer)(struct request *r))
{
	struct look *l = r->arg;

	l->note = (struct person_note){ l->call, event, l->call->want.email };
	request_submit(r, instance_note_person, &l->note, false, answer);
}

static enum rc add_person(struct request *r, void *arg, struct err *e)
{
	struct look                *l = arg;
	const struct instance_want *want = &l->call->want;

	return l->driver->ops->add_person(l->driver, l->call->instance.tenant, want->email, want->name, &r->call->arena,
	                                  &l->is_new, &l->password, e);
}

static void answer_added(struct request *r)
{
	const struct look *l = r->arg;
	struct json_out    o;

	if (request_failed(r))
		return;
	request_header(r, "Cache-Control", "no-store");
	o = begin_people(r, l);
	JSON_PUT(&o, member_str("email", l->call->want.email), member_text("name", l->call->want.name),
	         member_bool("isNew", l->is_new), member_str("password", l->password),
	         member_text("endpoint", l->call->instance.endpoint));
	reply_send(r, l->is_new ? 201 : 200);
}

static void tell_added(struct request *r)
{
	const struct look *l = r->arg;

	tell(r, l->is_new ? EVENT_PERSON_ADDED : EVENT_PERSON_PASSWORD, answer_added);
}

void handle_instance_person_add(struct request *r)
{
	struct look *l = look_new(r);

	if (l && instance_read_body(r, l->call, BODY_PERSON))
		start(r, l, instance_enter_pool, true, add_person, tell_added);
}

/* The next try does not find who is out of the pool: the event is stored although the removal failed. */
static enum rc remove_person(struct request *r UNUSED, void *arg, struct err *e)
{
	struct look *l = arg;

	l->removed = l->driver->ops->remove_person(l->driver, l->call->instance.tenant, l->call->want.email,
	                                           &l->was_there, &l->why);
	return l->was_there ? RC_OK : err_pass(e, l->removed, &l->why);
}

static void answer_removed(struct request *r)
{
	const struct look *l = r->arg;
	struct json_out    o;

	if (request_failed(r))
		return;
	if (l->removed) {
		request_refuse(r, l->removed, "%s", l->why.msg);
		return;
	}
	o = begin_people(r, l);
	json_put_str(&o, "email", l->call->want.email);
	reply_send(r, 200);
}

static void tell_removed(struct request *r)
{
	const struct look *l = r->arg;

	if (l->was_there)
		tell(r, EVENT_PERSON_REMOVED, answer_removed);
	else
		(void)request_is_good(r, err_set_code(&r->e, RC_NOT_FOUND, "PERSON_NOT_FOUND",
		                                      "%.*s is not in the identity pool of tenant %.*s",
		                                      STR_ARG(l->call->want.email), STR_ARG(l->call->instance.tenant)));
}

void handle_instance_person_remove(struct request *r)
{
	struct look *l = look_new(r);

	if (!l)
		return;
	l->call->want.email = r->params[2];
	if (email_is_ok(l->call->want.email))
		start(r, l, instance_enter_pool, true, remove_person, tell_removed);
	else
		request_refuse(r, RC_INVALID, "a person is named by an email address, such as ann@acme.example");
}

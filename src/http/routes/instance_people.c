/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_people.c - the routes of the people of an instance's identity pool.
 *
 * First the record is read, then a thread asks the driver, then the event is stored, then the caller hears of it. The
 * answer to an addition has the password, once; nothing else has.
 */
#include "base/json.h"
#include "domain/lease.h"
#include "http/api/blocking.h"
#include "http/routes/instance_form.h"

struct visit {
	struct instance_call *call;
	struct str            email;

	struct instance_person *people; /* the answer */
	size_t                  count;
	bool                    is_new, was_there;
	struct str              password;
	struct person_note      note;
};

static struct instance_driver *driver_of(const struct visit *v)
{
	return v->call->world->driver;
}

/* What all begin with: the record, then this by a thread, then that answer. */
static void ask(struct request *r, blocking_fn *run, void (*answer)(struct request *r))
{
	struct visit *v;

	if (request_failed(r))
		return;
	v = NEW_OF(r, struct visit);
	v->call = r->arg;
	v->email = v->call->want.email;
	blocking_start(r, BLOCKING_INSTANCE, run, answer, v);
}

static void tell(struct request *r, struct visit *v, const char *event, void (*answer)(struct request *r))
{
	v->note = (struct person_note){ v->call, event, v->email };
	request_submit(r, instance_note_person, &v->note, false, answer);
}

static struct json_out begin_answer(struct request *r, const struct visit *v)
{
	struct json_out o = reply_begin(r);

	JSON_PUT(&o, member_str("instanceId", v->call->instance.id), member_str("tenantId", v->call->instance.tenant));
	return o;
}

/* --- who is there --- */

static enum rc run_list(struct request *r, void *arg, struct err *e)
{
	struct visit           *v = arg;
	struct instance_driver *d = driver_of(v);

	return d->ops->people(d, v->call->instance.tenant, &r->call->arena, &v->people, &v->count, e);
}

static void answer_list(struct request *r)
{
	const struct visit *v = r->arg;
	struct json_out     o = begin_answer(r, v);

	json_put_array(&o, "items");
	for (size_t i = 0; i < v->count; i++)
		JSON_PUT(&o, member_object(NULL), member_str("email", v->people[i].email),
		         member_text("name", v->people[i].name), member_at("addedAt", v->people[i].added_ms),
		         member_end());
	JSON_PUT(&o, member_list_end(), member_int("count", (int64_t)v->count));
	reply_send(r, 200);
}

static void ask_list(struct request *r)
{
	ask(r, run_list, answer_list);
}

HANDLER(instance_people, instance_first(r, instance_find_pool, true, ask_list))

/* --- one more --- */

static enum rc run_add(struct request *r, void *arg, struct err *e)
{
	struct visit           *v = arg;
	struct instance_driver *d = driver_of(v);

	return d->ops->add_person(d, v->call->instance.tenant, v->email, v->call->want.name, &r->call->arena,
	                          &v->is_new, &v->password, e);
}

static void answer_add(struct request *r)
{
	const struct visit *v = r->arg;
	struct json_out     o;

	if (request_failed(r))
		return;
	request_header(r, "Cache-Control", "no-store");
	o = begin_answer(r, v);
	JSON_PUT(&o, member_str("email", v->email), member_text("name", v->call->want.name),
	         member_bool("isNew", v->is_new), member_str("password", v->password),
	         member_text("endpoint", v->call->instance.endpoint));
	reply_send(r, v->is_new ? 201 : 200);
}

static void tell_add(struct request *r)
{
	struct visit *v = r->arg;

	tell(r, v, v->is_new ? EVENT_PERSON_ADDED : EVENT_PERSON_PASSWORD, answer_add);
}

static void ask_add(struct request *r)
{
	ask(r, run_add, tell_add);
}

void handle_instance_person_add(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);

	if (!c || !instance_read_body(r, c, BODY_PERSON))
		return;
	r->arg = c;
	request_submit(r, instance_enter_pool, c, true, ask_add);
}

/* --- one less --- */

static enum rc run_remove(struct request *r, void *arg, struct err *e)
{
	struct visit           *v = arg;
	struct instance_driver *d = driver_of(v);

	(void)r;
	return d->ops->remove_person(d, v->call->instance.tenant, v->email, &v->was_there, e);
}

static void answer_remove(struct request *r)
{
	const struct visit *v = r->arg;
	struct json_out     o;

	if (request_failed(r))
		return;
	o = begin_answer(r, v);
	json_put_str(&o, "email", v->email);
	reply_send(r, 200);
}

static void tell_remove(struct request *r)
{
	struct visit *v = r->arg;
	struct err    e = { 0 };

	if (v->was_there) {
		tell(r, v, EVENT_PERSON_REMOVED, answer_remove);
		return;
	}
	rc_ignore(err_set_code(&e, RC_NOT_FOUND, "PERSON_NOT_FOUND", "%.*s is not in the identity pool of tenant %.*s",
	                       STR_ARG(v->email), STR_ARG(v->call->instance.tenant)));
	request_fail(r, &e);
}

static void ask_remove(struct request *r)
{
	ask(r, run_remove, tell_remove);
}

void handle_instance_person_remove(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);

	if (!c)
		return;
	c->want.email = r->params[2];
	r->arg = c;
	if (email_is_ok(c->want.email))
		request_submit(r, instance_enter_pool, c, true, ask_remove);
	else
		request_refuse(r, RC_INVALID, "a person is named by an e-mail address, such as ann@acme.example");
}

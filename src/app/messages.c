/* SPDX-License-Identifier: Apache-2.0 */
/*
 * messages.c - queues in, sinks out, as the settings say.
 *
 * All of it is called with the process's own credentials. The sinks are rows of the table of queues (subscriptions.c)
 * and have the kernel's promises; the pollers are threads that bring what they receive to the inboxes, as HTTP does.
 *
 * A guard's events are always named after us: an Innovation Sandbox that heard of its own events from us would act on
 * them.
 */
#include "app/messages.h"
#include "app/aws_parts.h"

#include <stdlib.h>

#include "app/config/config.h"
#include "app/instance_parts.h"
#include "app/parts.h"
#include "base/buf.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "kernel/alarm/node.h"
#include "providers/aws/call.h"
#include "providers/aws/messages/sink.h"
#include "providers/notify/message.h"
#include "service/hold/holds.h"
#include "service/instance/instances.h"
#include "store/walk.h"

enum { NAMESPACE_MIN = 3, NAMESPACE_MAX = 8, HOLDS_PAGE = 500 };

/* --- settings --- */

/* The queues that are read: setting, inbox, who reads the bodies, whether it is about instances. */
static enum rc read_command(struct str source UNUSED, struct str body, struct arena *a, struct intake_record **ret,
                            size_t *ret_count, struct err *e)
{
	return instance_intake(body, a, ret, ret_count, e);
}

static const struct inbox_row {
	enum setting     id;
	const char      *name, *source;
	intake_parse_fn *parse;
	bool             is_of_instances;
} inbox_rows[MESSAGES_INBOXES] = {
	{ CONFIG_GUARD_QUEUE, "guard", "cloudtrail", intake_parse, false },
	{ CONFIG_ECS_QUEUE, "ecs", INSTANCE_ECS, intake_parse, true },
	{ CONFIG_PROVISION_QUEUE, "provision", INSTANCE_COMMANDS, read_command, true },
	{ CONFIG_LIFECYCLE_QUEUE, "lifecycle", INSTANCE_COMMANDS, read_command, true },
	{ CONFIG_DEPROVISION_QUEUE, "deprovision", INSTANCE_COMMANDS, read_command, true },
};

bool messages_is_wanted(const struct config *c)
{
	for (size_t i = 0; i < MESSAGES_INBOXES; i++)
		if (config_str(c, inbox_rows[i].id).n)
			return true;
	return config_str(c, CONFIG_TENANT_QUEUE).n || config_str(c, CONFIG_EVENT_BUS).n ||
	       config_str(c, CONFIG_SNS_TOPIC).n || config_number(c, CONFIG_MAILER) == MAIL_BY_SES ||
	       config_number(c, CONFIG_WAKE) == WAKE_SCHEDULER;
}

static bool is_arn(struct str text, const char *service)
{
	struct str rest = text;

	if (!str_starts_with(rest, STR("arn:")))
		return false;
	(void)str_cut(&rest, ':');
	(void)str_cut(&rest, ':');
	if (!str_eq(str_cut(&rest, ':'), str_from(service)))
		return false;
	(void)str_cut(&rest, ':'); /* a role has no region */
	return str_cut(&rest, ':').n && rest.n && !str_has_control(text);
}

static void check_arn(const struct config *c, enum setting id, const char *service, bool is_needed, const char *form,
                      struct buf *problems)
{
	struct str text = config_str(c, id);

	if ((text.n || is_needed) && !is_arn(text, service))
		buf_addf(problems, "%s: must be an ARN such as %s, not '%.*s'\n", config_name(id), form, STR_ARG(text));
}

static void check_queues(const struct config *c, bool is_dev, struct buf *problems)
{
	bool has_instances = instance_parts_driver(c, is_dev) != NULL;

	for (size_t i = 0; i <= MESSAGES_INBOXES; i++) {
		bool         is_tenants = i == MESSAGES_INBOXES;
		enum setting id = is_tenants ? CONFIG_TENANT_QUEUE : inbox_rows[i].id;
		struct err   e = { 0 };

		if (!config_str(c, id).n)
			continue;
		if (sqs_check_url(config_str(c, id), &e))
			buf_addf(problems, "%s: %s\n", config_name(id), e.msg);
		if ((is_tenants || inbox_rows[i].is_of_instances) && !has_instances)
			buf_addf(problems, "%s: there are no instances here; %s says what makes them\n",
			         config_name(id), config_name(CONFIG_INSTANCE_DRIVER));
	}
}

static void check_bus(const struct config *c, struct buf *problems)
{
	struct str bus = config_str(c, CONFIG_EVENT_BUS), name = config_str(c, CONFIG_ISB_NAMESPACE);
	bool       is_isb = config_number(c, CONFIG_BUS_NAMES) == BUS_ISB;

	if (bus.n && !is_arn(bus, "events") && !str_is_of(bus, "a-zA-Z0-9/._-"))
		buf_addf(problems, "%s: must be the name or the ARN of an event bus, not '%.*s'\n",
		         config_name(CONFIG_EVENT_BUS), STR_ARG(bus));
	if ((name.n || (bus.n && is_isb)) &&
	    (name.n < NAMESPACE_MIN || name.n > NAMESPACE_MAX || !str_is_of(name, "a-zA-Z0-9")))
		buf_addf(problems, "%s: must be %d to %d letters and digits, not '%.*s'\n",
		         config_name(CONFIG_ISB_NAMESPACE), NAMESPACE_MIN, NAMESPACE_MAX, STR_ARG(name));
}

static void check_scheduler(const struct config *c, struct buf *problems)
{
	if (config_number(c, CONFIG_WAKE) != WAKE_SCHEDULER)
		return;
	if (!guard_parts_is_wanted(c))
		buf_addf(problems, "%s: scheduler wakes a guard; right is %s=guard beside it, or none\n",
		         config_name(CONFIG_WAKE), config_name(CONFIG_QUARANTINE));
	if (!str_is_of(config_str(c, CONFIG_SCHEDULER_GROUP), "a-zA-Z0-9._-"))
		buf_addf(problems, "%s: must be letters, digits and ._-\n", config_name(CONFIG_SCHEDULER_GROUP));
	check_arn(c, CONFIG_SCHEDULER_ROLE, "iam", true, "arn:aws:iam::123456789012:role/NAME", problems);
	check_arn(c, CONFIG_SCHEDULER_TARGET, "lambda", true, "arn:aws:lambda:us-east-1:123456789012:function:NAME",
	          problems);
	check_arn(c, CONFIG_SCHEDULER_DLQ, "sqs", true, "arn:aws:sqs:us-east-1:123456789012:NAME", problems);
}

void messages_check(const struct config *c, bool is_dev, struct buf *problems)
{
	struct str from = config_str(c, CONFIG_MAIL_FROM);

	check_queues(c, is_dev, problems);
	check_bus(c, problems);
	check_arn(c, CONFIG_SNS_TOPIC, "sns", false, "arn:aws:sns:us-east-1:123456789012:NAME", problems);
	check_scheduler(c, problems);
	if (config_number(c, CONFIG_MAILER) == MAIL_BY_SES && !message_is_address(from))
		buf_addf(problems, "%s: must be an address of the form name@example.org with %s=ses, not '%.*s'\n",
		         config_name(CONFIG_MAIL_FROM), config_name(CONFIG_MAILER), STR_ARG(from));
}

/* --- holds, for the bell --- */

static struct bell_due due_of(const struct hold *h, struct arena *a)
{
	return (struct bell_due){ .name = hold_schedule_name(h, a),
		                  .account = str_dup(a, h->account),
		                  .created_ms = h->created_ms,
		                  .due_ms = h->due_ms };
}

static enum rc find_hold(void *arg, struct str id, struct arena *a, struct bell_due *ret, struct err *e)
{
	const struct messages *m = arg;
	struct hold            h = { .id = id };
	bool                   is_there;
	enum rc                rc = store_find(m->p->store.store, &hold_type, id, a, &h, &is_there, e);

	if (rc)
		return rc;
	*ret = due_of(&h, a);
	if (!is_there || h.state != HOLD_OPEN || !h.due_ms)
		return err_set(e, RC_NOT_FOUND, "hold %.*s is closed, or has no end", STR_ARG(id));
	return RC_OK;
}

struct due_list {
	struct arena    *arena;
	struct bell_due *items;
	size_t           count, room;
};

static enum rc add_due(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e UNUSED)
{
	struct due_list *list = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct hold *h = page_record(page, &hold_type, i);

		if (h->state != HOLD_OPEN || !h->due_ms)
			continue;
		list->items = arena_grow(list->arena, list->items, list->count, &list->room, sizeof(*list->items));
		list->items[list->count++] = due_of(h, list->arena);
	}
	return RC_OK;
}

static enum rc list_holds(void *arg, struct arena *a, struct bell_due **ret, size_t *ret_count, struct err *e)
{
	const struct messages *m = arg;
	struct query           q = query_of(&hold_type, HOLD_OPEN_ONES, value_int(1), HOLDS_PAGE);
	struct due_list        list = { .arena = a };
	enum rc                rc = store_read_pages(m->p->store.store, &q, add_due, &list, e);

	*ret = list.items;
	*ret_count = list.count;
	return rc;
}

/* --- put together --- */

static struct sqs_queue queue_of(struct messages *m, struct str url)
{
	return (struct sqs_queue){ .caller = aws_caller_of(m->callers, AWS_OWN),
		                   .url = url,
		                   .region = sqs_region(url, &m->arena) };
}

static void open_sinks(struct messages *m, const struct config *c)
{
	struct aws_caller *own = aws_caller_of(m->callers, AWS_OWN);
	bool               is_guard = m->p->guard != NULL;
	struct bus_options bus = { .caller = own,
		                   .bus = config_str(c, CONFIG_EVENT_BUS),
		                   .names = is_guard ? BUS_GUARD : (enum bus_names)config_number(c, CONFIG_BUS_NAMES),
		                   .source = config_str(c, CONFIG_EVENT_SOURCE),
		                   .isb_namespace = config_str(c, CONFIG_ISB_NAMESPACE) };
	struct str         topic = config_str(c, CONFIG_SNS_TOPIC), tenant = config_str(c, CONFIG_TENANT_QUEUE);

	if (bus.bus.n)
		m->bus = bus_new(&bus);
	if (topic.n)
		m->topic = (struct topic){ own, topic, arn_region(topic, &m->arena) };
	if (config_number(c, CONFIG_MAILER) == MAIL_BY_SES)
		m->ses = ses_new(own, config_str(c, CONFIG_MAIL_FROM));
	if (tenant.n)
		m->tenant = queue_of(m, tenant);
	m->has_bell = is_guard && config_number(c, CONFIG_WAKE) == WAKE_SCHEDULER;
	m->bell = (struct bell){ .caller = own,
		                 .clock = &m->p->clock,
		                 .group = config_str(c, CONFIG_SCHEDULER_GROUP),
		                 .target_arn = config_str(c, CONFIG_SCHEDULER_TARGET),
		                 .role_arn = config_str(c, CONFIG_SCHEDULER_ROLE),
		                 .dlq_arn = config_str(c, CONFIG_SCHEDULER_DLQ),
		                 .find = find_hold,
		                 .list = list_holds,
		                 .arg = m };
}

static void open_inboxes(struct messages *m, const struct config *c)
{
	for (size_t i = 0; i < MESSAGES_INBOXES; i++) {
		const struct inbox_row *row = &inbox_rows[i];

		if (!config_str(c, row->id).n)
			continue;
		m->inboxes[m->inbox_count++] = (struct poller_options){ .name = row->name,
			                                                .queue = queue_of(m, config_str(c, row->id)),
			                                                .way = { m->p->store.store,
			                                                         str_from(row->source), row->parse } };
	}
}

void messages_new(struct parts *p)
{
	const struct config *c = p->config;
	struct messages     *m = p->messages = mem_new(struct messages);

	m->p = p;
	m->callers = p->aws->callers;
	open_sinks(m, c);
	open_inboxes(m, c);
	m->has_emf = config_number(c, CONFIG_METRICS_EMF);
	m->emf = (struct emf){ .metrics = p->metrics, .has_guard = p->guard, .has_instances = p->instances };
}

void messages_free(struct messages *m)
{
	if (!m)
		return;
	messages_end(m);
	bus_free(m->bus);
	ses_free(m->ses);
	arena_fini(&m->arena);
	free(m);
}

/* --- start and stop --- */

void messages_start(struct messages *m)
{
	for (size_t i = 0; i < m->inbox_count; i++)
		m->pollers[i] = poller_start(&m->inboxes[i]);
}

void messages_stop(struct messages *m)
{
	for (size_t i = 0; i < m->inbox_count; i++)
		poller_stop(m->pollers[i]);
}

void messages_end(struct messages *m)
{
	for (size_t i = 0; i < m->inbox_count; i++) {
		poller_free(m->pollers[i]);
		m->pollers[i] = NULL;
	}
}

enum rc messages_arm(struct messages *m, struct err *e)
{
	return m->has_bell ? store_run(m->p->store.store, bell_arm, NULL, NULL, e) : RC_OK;
}

/* --- telling --- */

/* With each beat while it is so, and once when it is over: a process that has ended is not believed for ever. */
static void state(struct messages *m, struct str name, bool is_so, struct str text, bool *was_so)
{
	struct fact fact = { .name = name, .value = is_so, .text = text };

	if ((is_so || *was_so) && store_run(m->p->store.store, fact_state, &fact, NULL, NULL) == RC_OK)
		*was_so = is_so;
}

void messages_tell(struct messages *m)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	char                             why[240];

	for (size_t i = 0; i < m->inbox_count; i++) {
		struct poller_state seen = { 0 };

		if (m->pollers[i])
			poller_look(m->pollers[i], &seen);
		state(m, str_format(&a, "inbox/%s", m->inboxes[i].name), seen.is_failing,
		      utf8_line(&a, str_from(seen.text), sizeof(seen.text)), &m->was_failing[i]);
	}
	if (m->ses) {
		bool is_paused = ses_is_paused(m->ses, why, sizeof(why));

		state(m, STR("circuit/ses"), is_paused, is_paused ? utf8_line(&a, str_from(why), sizeof(why)) : STR(""),
		      &m->was_paused);
	}
}

struct overdue {
	const struct messages *messages;
	int64_t                count;
};

/* Accounts whose rest is over by more than the grace, each once: of several holds it is the last that counts, so it
 * is enough to see one. */
static enum rc count_overdue(struct session *s, void *arg, struct err *e)
{
	struct overdue *o = arg;
	int64_t         grace_ms = o->messages->p->guard->rules.grace_hours * HOLD_HOUR_MS;
	struct query    q = query_until(&hold_type, HOLD_OPEN_ONES, value_int(1), session_now(s).ms - grace_ms,
	                                QUERY_LIMIT_MAX);
	struct page     page;
	struct str     *seen;
	enum rc         rc = session_query(s, &q, &page, e);

	o->count = 0;
	if (rc)
		return rc;
	seen = arena_alloc(session_arena(s), (page.count + 1) * sizeof(*seen));
	for (size_t i = 0; i < page.count; i++) {
		const struct hold *h = page_record(&page, &hold_type, i);

		if (h->due_ms && !str_is_among(h->account, seen, (size_t)o->count))
			seen[o->count++] = h->account;
	}
	return RC_OK;
}

void messages_write_figures(struct messages *m)
{
	struct overdue                   overdue = { .messages = m };
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       line;

	if (!m->has_emf)
		return;
	if (m->p->guard && store_read(m->p->store.store, count_overdue, &overdue, &a, NULL))
		overdue.count = 0; /* the store's own alarms tell of it */
	line = emf_line(&m->emf, clock_now(&clock_real).ms, overdue.count, &a);
	if (line.n)
		log_raw(line);
}

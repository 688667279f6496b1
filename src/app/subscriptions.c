/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subscriptions.c - who hears of what, in one function. A queue without events gets its deliveries from another queue.
 *
 * docs/kernel.md shows the same table; tests/meta compares them.
 */
#include "app/subscriptions.h"

#include <assert.h>

#include "app/config/config.h"
#include "app/instance_parts.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/signin.h"
#include "kernel/edge/webhook.h"
#include "providers/notify/mail.h"
#include "providers/notify/log_sink.h"
#include "service/hold/holds.h"
#include "service/jobs/jobs.h"
#include "service/people/people.h"
#include "service/lease/leases.h"

static struct mail_server mail_server(const struct config *c)
{
	return (struct mail_server){ .url = config_text(c, CONFIG_SMTP_URL),
		                     .tls = config_number(c, CONFIG_SMTP_TLS) ? MAIL_TLS_REQUIRED : MAIL_TLS_IF_OFFERED,
		                     .user = config_text(c, CONFIG_SMTP_USER),
		                     .password = config_text(c, CONFIG_SMTP_PASSWORD),
		                     .from = config_text(c, CONFIG_MAIL_FROM),
		                     .ca_file = config_text(c, CONFIG_SMTP_CA) };
}

static bool has_mail(const struct config *c)
{
	return config_number(c, CONFIG_MAILER) == MAIL_BY_SES || config_text(c, CONFIG_SMTP_URL);
}

void subscriptions_check(const struct config *c, struct buf *problems)
{
	struct mail_server server = mail_server(c);
	struct mail_rule   rule = { config_str(c, CONFIG_MAIL_EVENTS), config_str(c, CONFIG_MAIL_TO) };
	struct mail_routes routes = { .rules = &rule, .rule_count = 1 };
	struct err         e = { 0 };

	if (!has_mail(c))
		return;
	if (config_number(c, CONFIG_MAILER) == MAIL_BY_SMTP && mail_server_check(&server, &e))
		buf_addf(problems, "mail settings (LEASEHOLD_SMTP_*, LEASEHOLD_MAIL_FROM): %s\n", e.msg);
	err_clear(&e);
	if (mail_routes_check(&routes, &e))
		buf_addf(problems, "%s: %s\n", config_name(CONFIG_MAIL_TO), e.msg);
}

static void hear(struct subscriptions *s, const char *queue, const char *events)
{
	assert(s->route_count < SUBSCRIPTIONS_MAX);
	if (events && *events)
		s->routes[s->route_count++] = (struct route){ events, queue };
}

static void subscribe(struct subscriptions *s, struct queue queue, const char *events)
{
	assert(s->queue_count < SUBSCRIPTIONS_MAX);
	s->queues[s->queue_count++] = queue;
	hear(s, queue.name, events);
}

/* A queue whose handler calls out, to so many addressees with a share of their own. */
static struct queue sink(const struct config *c, const char *name, queue_call_fn *call, void *arg, unsigned addressees)
{
	return (struct queue){ .name = name,
		               .call = call,
		               .arg = arg,
		               .addressees = addressees,
		               .tries = config_number(c, CONFIG_SINK_TRIES),
		               .backoff_ms = config_number(c, CONFIG_SINK_BACKOFF) };
}

/* One that tells what no try will help by RC_INVALID. */
static struct queue aws_sink(const struct config *c, const char *name, queue_call_fn *call, void *arg)
{
	struct queue q = sink(c, name, call, arg, 0);

	q.buries_nonsense = true;
	return q;
}

static void subscribe_leases(struct subscriptions *s, struct lease_parts *l)
{
	subscribe(s, account_clean_queue(&l->clean), CLEANUP_EVENTS);
	subscribe(s, account_drift_queue(), EVENT_DRIFT_DETECTED);
	subscribe(s, reports_queue(&l->reports), REPORTS_EVENTS);
	subscribe(s, hold_queue(), EVENT_HOLD_DUE);
	subscribe(s, account_moved_queue(&l->moved), MOVED_EVENTS);
	subscribe(s, leases_queue, LEASES_EVENTS);
	subscribe(s, line_queue, LINE_EVENTS);
	s->sagas[s->saga_count++] = &l->follow;
}

static void subscribe_guard(struct subscriptions *s, struct guard_parts *g)
{
	struct queue queues[GUARD_QUEUES];

	guard_queues(g->guard, queues);
	subscribe(s, queues[0], GUARD_EVENTS);
	subscribe(s, queues[1], GUARD_LOG_EVENTS);
	subscribe(s, hold_queue(), EVENT_HOLD_DUE);
	for (size_t i = 0; i < GUARD_KINDS; i++)
		s->sagas[s->saga_count++] = &g->kinds[i];
}

static void subscribe_instances(struct subscriptions *s, struct instance_parts *p)
{
	struct queue queues[INSTANCE_QUEUES];
	const char  *events[INSTANCE_QUEUES];

	instance_queues(p ? &p->world : NULL, queues, events);
	for (size_t i = 0; i < (p ? INSTANCE_QUEUES : INSTANCE_TIMED_QUEUES); i++)
		subscribe(s, queues[i], events[i]);
	for (size_t i = 0; p && i < OP_COUNT; i++)
		s->sagas[s->saga_count++] = &p->kinds[i];
}

/* By a mail server, or by SES. */
static struct queue mail_sink(const struct config *c, const char *name, struct subscriptions *s, struct ses *ses)
{
	return ses ? aws_sink(c, name, ses_call, ses) : sink(c, name, mail_out_call, &s->mail_server, 0);
}

static void subscribe_messages(struct subscriptions *s, const struct config *c, struct messages *m)
{
	struct queue bus = aws_sink(c, "bus", bus_call, m->bus);

	bus.concurrency = BUS_ENTRIES_MAX; /* as many as fit into one request */
	if (m->bus)
		subscribe(s, bus, config_text(c, CONFIG_BUS_EVENTS));
	if (m->topic.arn.n)
		subscribe(s, aws_sink(c, "sns", topic_call, &m->topic), TOPIC_EVENTS);
	if (m->tenant.url.n)
		subscribe(s, aws_sink(c, "tenant-events", sqs_send_call, &m->tenant), INSTANCE_COMPLETE_EVENTS);
	if (m->has_bell)
		subscribe(s, bell_queue(&m->bell), BELL_EVENTS);
}

void subscriptions_init(struct subscriptions *s, const struct parts *p)
{
	const struct config *c = p->config;
	bool                 is_mailing = has_mail(c);

	s->mail_server = mail_server(c);
	s->mail_rule = (struct mail_rule){ config_str(c, CONFIG_MAIL_EVENTS), config_str(c, CONFIG_MAIL_TO) };
	s->mail_routes = (struct mail_routes){ .rules = &s->mail_rule,
		                               .rule_count = 1,
		                               .find = p->leases ? lease_mail_recipients : NULL,
		                               .find_arg = p->signin ? people_identity(p->signin->people) : NULL };
	subscribe(s, jobs_queue(p->jobs), JOBS_EVENTS);
	subscribe(s, (struct queue){ .name = "webhook", .handle = webhook_fan_out, .has_addressees = true }, "*");
	subscribe(s, sink(c, "webhook-alarm", webhook_out_call, &s->webhook_out, WEBHOOKS_MAX), NULL);
	subscribe(s, sink(c, "webhook-out", webhook_out_call, &s->webhook_out, WEBHOOKS_MAX), NULL);
	subscribe(s, (struct queue){ .name = "cloudtrail", .handle = cloudtrail_note, .tries = 5 }, "cloudtrail:*");
	if (p->leases)
		subscribe_leases(s, p->leases);
	if (p->guard)
		subscribe_guard(s, p->guard);
	subscribe_instances(s, p->instances);
	subscribe(s, (struct queue){ .name = "log", .handle = log_sink_handle, .is_heard = true },
	          config_text(c, CONFIG_LOG_EVENTS));
	subscribe(s, (struct queue){ .name = "mail", .handle = mail_fan_out, .arg = &s->mail_routes },
	          is_mailing ? config_text(c, CONFIG_MAIL_EVENTS) : NULL);
	if (is_mailing && p->leases)
		hear(s, "mail", LEASE_MAIL_EVENTS);
	subscribe(s, mail_sink(c, "mail-alarm", s, p->messages->ses), NULL);
	subscribe(s, mail_sink(c, "mail-out", s, p->messages->ses), NULL);
	subscribe_messages(s, c, p->messages);
}

/* subscriptions.h - who hears of what: every queue of the kernel with its events, and every kind of saga. */
#pragma once

#include "kernel/kernel.h"
#include "kernel/queue.h"
#include "providers/notify/mail.h"
#include "providers/notify/webhook_out.h"

struct buf;
struct config;
struct parts;

enum { SUBSCRIPTIONS_MAX = 40 };

/* The kernel's tables, and what the sinks among the queues need. It stays where it is as long as the kernel. */
struct subscriptions {
	struct queue            queues[SUBSCRIPTIONS_MAX];
	size_t                  queue_count;
	struct route            routes[SUBSCRIPTIONS_MAX];
	size_t                  route_count;
	const struct saga_kind *sagas[SUBSCRIPTIONS_MAX];
	size_t                  saga_count;

	struct webhook_out webhook_out; /* the caller's to fill in */
	struct mail_server mail_server;
	struct mail_rule   mail_rule;
	struct mail_routes mail_routes;
};

/* webhook_out is filled in before anything is delivered. */
void subscriptions_init(struct subscriptions *s, const struct parts *p);

/* What is wrong with the settings of mail, one problem a line. */
void subscriptions_check(const struct config *c, struct buf *problems);

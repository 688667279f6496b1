/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mail.c - who gets a mail.
 *
 * The queue "mail" gets each event that may be worth a mail once. Its handler asks the rules, and whoever else knows (a service may look
 * into its records), and puts the event into the queue "mail-out" once for each address, with the address as target: from there on each
 * one has its own order, tries and dead letters. An address that the server refuses holds up nobody else.
 *
 * An event with more recipients than fit into one transaction is refused as a whole, and ends as a dead letter that says so: nobody is
 * left out in silence.
 *
 * Not here: what a mail says (message.c), how it is sent (mail_out.c).
 */
#include "providers/notify/mail.h"

#include <assert.h>

#include "kernel/kernel.h"
#include "providers/notify/message.h"
#include "store/session.h"

static bool has(const struct mail_recipients *to, struct str address)
{
	for (size_t i = 0; i < to->count; i++)
		if (str_eq_nocase(to->addresses[i], address))
			return true;
	return false;
}

static enum rc add_one(struct mail_recipients *to, struct str address, struct err *e)
{
	if (!message_is_address(address))
		return err_set(e, RC_INVALID, "\"%.*s\" is not a mail address of the form name@example.org",
		               STR_ARG(address));
	if (has(to, address))
		return RC_OK;
	if (to->count == MAIL_RECIPIENTS_MAX)
		return err_set(e, RC_TOO_LARGE,
		               "there are more than %d recipients for one event; right is a mailing list",
		               MAIL_RECIPIENTS_MAX);
	to->addresses[to->count++] = address;
	return RC_OK;
}

enum rc mail_add_recipient(struct mail_recipients *to, struct str addresses, struct err *e)
{
	enum rc rc = RC_OK;

	while (!rc && addresses.n)
		rc = add_one(to, str_trim(str_cut(&addresses, ',')), e);
	return rc;
}

enum rc mail_routes_check(const struct mail_routes *r, struct err *e)
{
	struct mail_recipients to = { .count = 0 };
	enum rc                rc = RC_OK;

	for (size_t i = 0; !rc && i < r->rule_count; i++)
		rc = mail_add_recipient(&to, r->rules[i].to, e);
	return rc;
}

static enum rc find_recipients(struct session *s, const struct mail_routes *r, const struct event *event,
                               struct mail_recipients *to, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < r->rule_count; i++)
		if (kernel_matches(r->rules[i].types, event->type))
			rc = mail_add_recipient(to, r->rules[i].to, e);
	if (!rc && r->find)
		rc = r->find(s, event, r->find_arg, to, e);
	return rc;
}

enum rc mail_fan_out(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	const struct queue    *out = kernel_queue(kernel_of(s), STR("mail-out"));
	struct mail_recipients to = { .count = 0 };
	enum rc                rc = find_recipients(s, arg, &d->event, &to, e);

	assert(out);
	for (size_t i = 0; !rc && i < to.count; i++)
		rc = queue_put(s, out, &d->event, to.addresses[i], e);
	return rc;
}

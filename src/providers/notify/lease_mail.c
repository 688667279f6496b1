/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_mail.c - who is told by mail what happened to a lease or an account.
 *
 * Recipients are rows of a table: an event goes to everybody whom one of its rows names. The owner's address is in the event itself, so a
 * mail about a lease that is gone since still finds him; the others come from the directory, as it is when the mail is sent.
 *
 * Not here: what a mail says (message.c), fixed addresses of operators (mail.c).
 */
#include "providers/notify/lease_mail.h"

#include "base/arena.h"
#include "base/json.h"
#include "base/log.h"
#include "domain/identity.h"
#include "providers/notify/message.h"
#include "store/session.h"

enum { TO_OWNER = 1, TO_MANAGERS = 2 /* and admins */, TO_ADMINS = 4 };

/* clang-format off */
static const struct mail_row {
	const char *type;
	const char *reason; /* only when the detail's reason is of this type; NULL: always */
	unsigned    to;
} rows[] = {
	{ "LeaseRequested",                  NULL,                 TO_MANAGERS },
	{ "LeaseQueued",                     NULL,                 TO_OWNER    },
	{ "LeaseApproved",                   NULL,                 TO_OWNER    },
	{ "LeaseDenied",                     NULL,                 TO_OWNER    },
	{ "LeaseProvisioningFailed",         NULL,                 TO_MANAGERS },
	{ "LeaseBudgetThresholdAlert",       NULL,                 TO_OWNER    },
	{ "LeaseDurationThresholdAlert",     NULL,                 TO_OWNER    },
	{ "LeaseProjectedSpendAlert",        NULL,                 TO_OWNER    },
	{ "LeaseFrozen",                     NULL,                 TO_OWNER    },
	{ "LeaseFrozen",                     "BudgetExceeded",     TO_MANAGERS },
	{ "LeaseFrozen",                     "Expired",            TO_MANAGERS },
	{ "LeaseUnfrozen",                   NULL,                 TO_OWNER    },
	{ "LeaseTerminated",                 NULL,                 TO_OWNER    },
	{ "LeaseTerminated",                 "BudgetExceeded",     TO_MANAGERS },
	{ "LeaseTerminated",                 "Expired",            TO_MANAGERS },
	{ "LeaseTerminated",                 "ProvisioningFailed", TO_MANAGERS },
	{ "AccountCleanupFailed",            NULL,                 TO_ADMINS   },
	{ "AccountDriftDetected",            NULL,                 TO_ADMINS   },
	{ "GroupCostReportGenerated",        NULL,                 TO_ADMINS   },
	{ "GroupCostReportGeneratedFailure", NULL,                 TO_ADMINS   },
};
/* clang-format on */

static unsigned whom(struct str type, const json_t *detail)
{
	struct str reason;
	unsigned   to = 0;

	if (!json_get_text(json_object_get(detail, "reason"), "type", &reason))
		reason = STR("");
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (str_eq(str_from(rows[i].type), type) &&
		    (!rows[i].reason || str_eq(str_from(rows[i].reason), reason)))
			to |= rows[i].to;
	return to;
}

static enum rc add(struct mail_recipients *to, struct str address, const struct event *event, struct err *e)
{
	if (message_is_address(address))
		return mail_add_recipient(to, address, e);
	log_write(LOG_WARNING, "mail",
	          (struct log_field[]){ LOG_STR("event_id", event->id), LOG_STR("address", address) }, 2,
	          "no mail can be sent to this address; right is name@example.org");
	return RC_OK;
}

/* leaseId is the key of the lease in some events, its uuid in others, which then name the owner beside it. */
static enum rc add_owner(struct session *s, const struct event *event, const json_t *detail, struct mail_recipients *to,
                         struct err *e)
{
	struct str email;

	if (!json_get_text(json_object_get(detail, "leaseId"), "userEmail", &email) || !email.n)
		if (!json_get_text(detail, "userEmail", &email) || !email.n)
			return err_set(e, RC_CORRUPT,
			               "event %.*s (%.*s) does not say whose lease it is: its detail needs "
			               "leaseId.userEmail or userEmail",
			               STR_ARG(event->id), STR_ARG(event->type));
	return add(to, str_dup(session_arena(s), email), event, e);
}

/* One more is asked for than fits: then mail_add_recipient() says so, instead of leaving somebody out. */
static enum rc add_roles(struct session *s, const struct event *event, struct identity *people, unsigned roles,
                         struct mail_recipients *to, struct err *e)
{
	struct str emails[MAIL_RECIPIENTS_MAX + 1];
	size_t     count = people->ops->list(people, roles, session_arena(s), emails, ARRAY_LEN(emails));
	enum rc    rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++)
		rc = add(to, emails[i], event, e);
	return rc;
}

enum rc lease_mail_recipients(struct session *s, const struct event *event, void *arg, struct mail_recipients *to,
                              struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	unsigned                    who;
	enum rc                     rc = RC_OK;

	rc_ignore(json_parse(event->detail, &detail, NULL)); /* NULL when it is no JSON: see add_owner() */
	who = whom(event->type, detail);
	if (who & TO_OWNER)
		rc = add_owner(s, event, detail, to, e);
	if (!rc && (who & TO_MANAGERS))
		rc = add_roles(s, event, arg, ROLE_MANAGER | ROLE_ADMIN, to, e);
	if (!rc && (who & TO_ADMINS))
		rc = add_roles(s, event, arg, ROLE_ADMIN, to, e);
	return rc;
}

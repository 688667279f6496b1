/* mail.h - tells people by mail: who gets an event (queue "mail"), and sending it to one of them (queue "mail-out"). */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "kernel/queue.h"

struct session;

/* One event's fan-out must fit into one transaction, at two actions each. */
enum { MAIL_RECIPIENTS_MAX = 40 };

/* Who gets an event. Filled by mail_add_recipient(). */
struct mail_recipients {
	struct str addresses[MAIL_RECIPIENTS_MAX];
	size_t     count;
};

/* One address, or several separated by commas; duplicates are dropped. Texts must live as long as the session's arena.
 * RC_INVALID: not an address; RC_TOO_LARGE: more than MAIL_RECIPIENTS_MAX. */
MUST_CHECK enum rc mail_add_recipient(struct mail_recipients *to, struct str addresses, struct err *e);

/* Finds recipients by looking into the store: the holder of a lease, its approvers. */
typedef enum rc mail_recipients_fn(struct session *s, const struct event *event, void *arg, struct mail_recipients *to,
                                   struct err *e);

/* Events of these types go to these addresses. */
struct mail_rule {
	struct str types; /* patterns as in the routing table, comma-separated */
	struct str to;    /* addresses, comma-separated */
};

/* Argument of the queue "mail". */
struct mail_routes {
	const struct mail_rule *rules;
	size_t                  rule_count;
	mail_recipients_fn     *find; /* beside the rules; may be NULL */
	void                   *find_arg;
};

/* RC_INVALID names what is wrong. */
MUST_CHECK enum rc mail_routes_check(const struct mail_routes *r, struct err *e);

/* Handler of the queue "mail": puts the event into the queue "mail-out" once for each recipient. */
queue_handle_fn mail_fan_out;

/* --- the people of a lease: its owner, the managers, the admins --- */

/* The events that anybody gets a mail of, as patterns for a route to the queue "mail". */
#define LEASE_MAIL_EVENTS                                                                                         \
	"LeaseRequested,LeaseQueued,LeaseApproved,LeaseDenied,LeaseFrozen,LeaseUnfrozen,LeaseTerminated,"         \
	"LeaseProvisioningFailed,LeaseBudgetThresholdAlert,LeaseDurationThresholdAlert,LeaseProjectedSpendAlert," \
	"AccountCleanupSucceeded,AccountCleanupFailed,AccountDriftDetected,"                                      \
	"GroupCostReportGenerated,GroupCostReportGeneratedFailure"

/* arg is a struct identity, which knows who has which role. An unusable address is left out and logged: it must not
 * keep others from their mail. RC_CORRUPT: the event does not say whose lease it is. */
mail_recipients_fn lease_mail_recipients;

/* --- sending --- */

enum mail_tls {
	MAIL_TLS_IF_OFFERED, /* STARTTLS when the server has it */
	MAIL_TLS_REQUIRED,   /* or no mail */
};

/* Argument of the queue "mail-out". */
struct mail_server {
	const char   *url;             /* smtp://host[:port], or smtps://host[:port] for TLS from the start */
	enum mail_tls tls;             /* smtp only; with a user it is always required */
	const char   *user, *password; /* NULL: none */
	const char   *from;
	const char   *ca_file; /* NULL: the system's */
};

/* RC_INVALID names what is wrong. */
MUST_CHECK enum rc mail_server_check(const struct mail_server *m, struct err *e);

/* One mail to the lane's target. */
queue_call_fn mail_out_call;

/* lease_mail.h - who gets a mail about a lease or an account: its owner, the managers, the admins. */
#pragma once

#include "providers/notify/mail.h"

/* The events that anybody gets a mail of, as patterns for a route to the queue "mail". */
#define LEASE_MAIL_EVENTS                                                                                         \
	"LeaseRequested,LeaseQueued,LeaseApproved,LeaseDenied,LeaseFrozen,LeaseUnfrozen,LeaseTerminated,"         \
	"LeaseProvisioningFailed,LeaseBudgetThresholdAlert,LeaseDurationThresholdAlert,LeaseProjectedSpendAlert," \
	"AccountCleanupFailed,AccountDriftDetected,GroupCostReportGenerated,GroupCostReportGeneratedFailure"

/* arg is a struct identity, which knows who has which role. An address that no mail can be sent to is left out and logged: it must not keep
 * the others from theirs. RC_CORRUPT: the event does not say whose lease it is. */
mail_recipients_fn lease_mail_recipients;

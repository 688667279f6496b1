/* lease_rig.h - leases and accounts on a kernel rig: a pool of clean accounts in the simulated cloud, two templates,
 * costs that the test sets. Time stands still until the test lets it pass. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "domain/approval.h"
#include "domain/ports/cloud.h"
#include "domain/policy.h"
#include "kernel/alarm/alarm.h"
#include "kernel/saga.h"
#include "kernel_rig.h"
#include "providers/sim/cloud.h"
#include "service/alarms/alarms.h"
#include "service/pool/account_clean.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/lease/lease_passes.h"
#include "service/pool/accounts.h"
#include "service/lease/leases.h"
#include "service/cost/statement.h"
#include "store/memory/fault.h"

#define SECOND_MS 1000ll
#define MINUTE_MS 60000ll
#define HOUR_MS   3600000ll
#define USD       1000000ll

enum { RIG_ACCOUNTS_MAX = 50 };

struct lease_rig {
	struct kernel_rig            k;
	struct fault_plan            faults;
	struct store                *sim_store;
	struct sim_cloud            *sim;
	struct cloud                 cloud;
	struct account_world_options world_options;
	struct account_world        *world;
	struct account_clean_options clean;
	struct reports               reports; /* made with the costs of the simulated cloud */
	struct saga_kind             kind;
	const struct saga_kind      *kinds[1];
	struct queue                 queues[5];
	struct route                 routes[5];
	struct policy                policy;
	struct hold_rules            rules;                      /* none: nobody rests */
	struct str                   accounts[RIG_ACCOUNTS_MAX]; /* the pool, in the order of its ids */
	struct str                   by_request, by_rule;        /* templates: with approval, and without */

	struct costs costs; /* answers what is here */
	int64_t      cost, cost_at_ms;
	struct str   cost_fails_for; /* account */
	bool         projects;
	void (*before_cost)(struct lease_rig *r);
};

/* With so many free accounts. */
void lease_rig_open(struct lease_rig *r, int accounts);
void lease_rig_close(struct lease_rig *r);

/* The rules of a document, which must be JSON. */
enum rc rules_read(struct str text, struct arena *a, struct approval_policy *ret, struct problems *problems);

extern const struct caller ann, bob, manager; /* two users, one manager */

/* Ask for a lease, expected to succeed. Its uuid lives as long as the rig. */
struct str ask(struct lease_rig *r, const struct caller *who, struct str template_uuid);

/* The same, whatever becomes of it. */
enum rc try_ask(struct lease_rig *r, struct lease_request *request, struct err *e);

/* One of lease_approve, lease_deny, ... on a lease, by somebody. */
enum rc order(struct lease_rig *r, txn_fn *run, struct str uuid, const struct caller *by, struct err *e);

/* Ask, approve, and let everything follow: the uuid of an Active lease. */
struct str make_active(struct lease_rig *r, const struct caller *who);

struct lease      lease_of(struct lease_rig *r, struct str uuid);
struct account    account_of(struct lease_rig *r, struct str id);
void              forget_account(struct lease_rig *r, struct str id); /* its record is gone */
enum lease_status status_of(struct lease_rig *r, struct str uuid);
int64_t           live_of(struct lease_rig *r, const struct caller *who); /* the counter */

/* Events of this type, of one lease (uuid) or all (empty); the detail of the last one. */
int        told(struct lease_rig *r, const char *type, struct str uuid);
struct str last_detail(struct lease_rig *r, const char *type, struct str uuid);
bool       mentions(struct str text, const char *part);
bool       is_armed(struct lease_rig *r, const char *kind, struct str uuid);

/* What the rule finds about this instance (empty: about nobody), or NULL. All that it finds is stored as alarms of
 * "rule". */
const struct alarm *find_alarm(struct lease_rig *r, alarm_rule_fn *finds, struct broker_alarm_context context,
                               struct str instance);

/* A pass, expected to succeed; the count of this name. */
int64_t run_pass(struct lease_rig *r, pass_fn *pass, const char *count);

/* It has ended with this status, and everything that must follow has: told once, no timer, its owner (Ann) has no
 * other. */
void check_ended(struct lease_rig *r, struct str uuid, enum lease_status status);

/* A manager changes a lease of Ann's. */
enum rc edit(struct lease_rig *r, struct str uuid, struct lease_edit *change);

int free_accounts(struct lease_rig *r);

/* parts.h - what the server process is made of, in the order in which serve.c opens it; and its pool of accounts:
 * leases, or the guard beside another system. */
#pragma once

#include "app/store/stores.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/id.h"
#include "domain/ports/cloud.h"
#include "domain/hold.h"
#include "kernel/saga.h"
#include "service/broker/claims_pause.h"
#include "service/broker/passes.h"
#include "service/cost/statement.h"
#include "service/guard/guard.h"
#include "service/pool/account_clean.h"
#include "service/reconcile/reconcile.h"

struct parts {
	struct config         *config;
	bool                   is_dev;
	struct metrics        *metrics;
	struct clock           clock; /* of all that is stored; sign-in, the wire and the vendor keep the machine's */
	struct app_store       store;
	char                   node[ID_UUID_SIZE]; /* which of the nodes this process is */
	struct aws_parts      *aws;
	struct sim_cloud      *sim; /* NULL: nothing here is simulated */
	struct csp            *csp; /* guarded */
	struct signin         *signin;
	struct lease_parts    *leases;    /* NULL: no leases here */
	struct guard_parts    *guard;     /* NULL: we guard nobody's accounts. One of both at most */
	struct instance_parts *instances; /* NULL: no instances here */
	struct messages       *messages;  /* from and to AWS */
	struct broker_settings settings;
	struct claims_switch   claims;
	struct jobs           *jobs;
	struct kernel         *kernel;
};

/* In the order of the words of LEASEHOLD_QUARANTINE and LEASEHOLD_CLEANER. */
enum { QUARANTINE_NATIVE, QUARANTINE_GUARD };
enum { CLEANING_SIM, CLEANING_NUKE, CLEANING_CODEBUILD };

/* What leases and accounts need. */
struct lease_parts {
	struct store                *store;
	struct sim_cloud            *sim; /* NULL: the cloud is a real one */
	struct cloud                 cloud;
	struct str                   admin_accounts; /* never lent, never emptied; separated by commas */
	struct policy_holder        *policies;
	struct lease_world           world;
	struct account_world        *accounts;
	struct saga_kind             follow;
	struct hold_rules            rules;
	struct account_clean_options clean;
	struct reports               reports;
	struct native_records        records;
	struct reconcile_world       reconcile; /* what is compared with where accounts are */
	struct account_moved         moved;

	struct nuke         *nuke; /* empties accounts; NULL: the simulated cloud does it itself */
	struct aws_identity *identity;
	struct arena         arena;
};

/* False without a session secret, because nobody could sign in; and where we guard the accounts of others. */
bool lease_parts_is_wanted(const struct config *c);

/* How long accounts rest, as it is set. RC_INVALID names the setting. */
MUST_CHECK enum rc lease_parts_read_rules(const struct config *c, struct hold_rules *ret, struct err *e);

/* Fills p->leases, even on failure: lease_parts_free() takes a half-built one. RC_INVALID, RC_UNAVAILABLE: a setting is
 * wrong, or what it names does not work. */
MUST_CHECK enum rc lease_parts_new(struct parts *p, struct err *e);
void               lease_parts_free(struct lease_parts *l);

/* aws-nuke, if the settings ask for it. cleaner_check() adds a line for each problem; open only what has passed it. */
void               cleaner_check(const struct config *c, struct buf *problems);
MUST_CHECK enum rc cleaner_open(struct lease_parts *l, const struct config *c, struct aws_parts *aws, struct err *e);

/* Its approval rules; NULL: there are none. arg is a struct lease_parts. Any thread. */
const struct approval_policy *lease_parts_approval(void *arg);

/* Read what is stored and arm the timers; in an unused world, register the free simulated accounts and make two
 * templates. Blocks. Repeat it when it fails. */
MUST_CHECK enum rc lease_parts_start(struct lease_parts *l, struct err *e);

/* What the guard beside another system needs. */
struct guard_parts {
	struct hold_rules      rules; /* how long accounts rest */
	struct sim_cloud      *sim;   /* its table, */
	struct aws_identity   *identity;
	struct aws_client     *client;
	struct isb_table      *table; /* or this one */
	struct guard          *guard;
	struct saga_kind       kinds[GUARD_KINDS];
	struct guard_records   records;
	struct reconcile_world reconcile; /* what is compared with where accounts are */
};

/* Beside another system, instead of a pool of our own: then there are no leases here. */
bool guard_parts_is_wanted(const struct config *c);

/* Settings that are missing or make no sense, one a line. */
void guard_parts_check(const struct config *c, struct buf *problems);

/* Fills p->guard, also when it fails: half-built is fine for guard_parts_free(). RC_INVALID: a setting is wrong. */
MUST_CHECK enum rc guard_parts_new(struct parts *p, struct err *e);
void               guard_parts_free(struct guard_parts *g);

/* The simulated other system gets its accounts. Blocks. Repeat it when it fails. */
MUST_CHECK enum rc guard_parts_start(struct guard_parts *g, struct err *e);

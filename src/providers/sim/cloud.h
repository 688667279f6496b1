/* cloud.h - a small simulated cloud: an organisation, access, costs, a cleaner, tenants' resources and CloudTrail's
 * events. Its state is in the store it is given. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/cloud.h"
#include "domain/world.h"

struct csp;
struct sim_cloud;

#define SIM_OUS(X)                \
	X(AVAILABLE, "Available") \
	X(ACTIVE, "Active")       \
	X(FROZEN, "Frozen") X(CLEANUP, "CleanUp") X(QUARANTINE, "Quarantine") X(ENTRY, "Entry") X(EXIT, "Exit")

enum sim_ou_name {
	SIM_ROOT,
#define X(name, text) SIM_OU_##name,
	SIM_OUS(X)
#undef X
	        SIM_OU_COUNT
};

enum { SIM_EVENTS_MAX = 100, SIM_ACCOUNTS_DEFAULT = 12, SIM_MAKE_MAX = 100000 };

struct sim_cloud_options {
	struct store       *store; /* opened with sim_types; stays the caller's */
	const struct clock *clock;
	uint64_t (*random)(void *arg);
	void *random_arg;
	bool  waits; /* latency takes its time; otherwise it is only counted */

	struct str management_account; /* 12 digits; empty: 999988887777 */
	struct str hub_account;        /* where our own calls come from; empty: 999988886666 */

	/* A fresh world. More than there ever were are added at the next opening. */
	int64_t accounts;  /* 0: SIM_ACCOUNTS_DEFAULT, -1: none */
	int64_t available; /* how many of them are in Available; the others are in Entry */

	/* 0: the default */
	int64_t cost_delay_min_ms, cost_delay_max_ms; /* 8 h, 24 h */
	int64_t clean_min_ms, clean_max_ms;           /* 5 min, 30 min */
	int64_t event_delay_ms;                       /* 2 s */
};

/* Makes the world if there is none. Blocks. RC_INVALID: an option makes no sense. */
MUST_CHECK enum rc sim_cloud_open(const struct sim_cloud_options *o, struct sim_cloud **ret, struct err *e);
void               sim_cloud_close(struct sim_cloud *c);

struct cloud       sim_cloud_ports(struct sim_cloud *c);
struct world      *sim_cloud_world(struct sim_cloud *c);
struct sim_faults *sim_cloud_faults(struct sim_cloud *c);

/* What tenants' instances are made with. */
struct instance_driver *sim_cloud_driver(struct sim_cloud *c);

/* Its id, valid as long as the cloud. */
struct str sim_cloud_ou(const struct sim_cloud *c, enum sim_ou_name name);

/* The accounts that it is run from, separated by commas; valid as long as the cloud. They are in no OU of the pool. */
struct str sim_cloud_admin_accounts(const struct sim_cloud *c);

/* --- CloudTrail's events --- */

struct sim_due_event {
	struct str key;  /* to acknowledge it by */
	struct str body; /* the event as EventBridge delivers it */
};

/* Up to max (SIM_EVENTS_MAX) due events, first due first. They come again until they are acknowledged. Blocks. */
MUST_CHECK enum rc sim_cloud_take_events(struct sim_cloud *c, size_t max, struct arena *a, struct sim_due_event **ret,
                                         size_t *ret_count, struct err *e);
MUST_CHECK enum rc sim_cloud_drop_events(struct sim_cloud *c, const struct sim_due_event *events, size_t count,
                                         struct err *e);

/* --- a simulated Innovation Sandbox beside us: its account table, and what it does with its accounts (isb.c) ---
 *
 * Like the real one it moves an account first and then writes its table, without looking whether somebody else has
 * written it meanwhile. Its moves are an outsider's: an event tells of each, and no fault disturbs them. Faults do
 * disturb our calls to its table. */

struct account_table *sim_isb_table(struct sim_cloud *c);

/* Add every account in an OU named like a status to the table, with that status, unless it is there. Blocks, as all
 * below. */
MUST_CHECK enum rc sim_isb_seed(struct sim_cloud *c, struct err *e);

/* --- a simulated vendor inside the program: what `make run` lends out (csp_sim.c) --- */

struct csp_sim_options {
	struct store      *store;  /* opened with sim_types; stays the caller's */
	struct sim_faults *faults; /* what disturbs it, and its chance; stays the caller's */
	int64_t            stock;
};

/* Sees to it that at least stock accounts exist. Blocks. */
MUST_CHECK enum rc csp_sim_open(const struct csp_sim_options *o, struct csp **ret, struct err *e);

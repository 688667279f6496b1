/* records.h - what the simulated cloud keeps, in a store of its own. Private to providers/sim, the list of types apart. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/record.h"

/* For opening the store: all of the simulated cloud and the simulated vendor. */
extern const struct record_type *const sim_types[];
extern const size_t                    sim_type_count;

enum { SIM_TAGS_MAX = 32768, SIM_EVENT_MAX = 8192 };

/* The vendor's sandboxes. */
struct sim_account {
	struct str external_id;
	struct str sandbox_id;
	struct str name;
	int64_t    created_at;
	uint64_t   version;
};
extern const struct record_type sim_account_type;

/* How many of something were ever made: the number in the next one's name. */
struct sim_counter {
	struct str name;
	int64_t    made;
	uint64_t   version;
};
extern const struct record_type sim_counter_type;

struct sim_ou {
	struct str id, name;
	int64_t    number; /* an enum sim_ou_name */
	uint64_t   version;
};
extern const struct record_type sim_ou_type;

/* An account of the organisation. */
struct sim_member {
	struct str id, name, email;
	struct str ou_id;
	int64_t    joined_ms;
	int64_t    rate;        /* millionths of a dollar an hour while it is in use */
	int64_t    dirty;       /* resources left in it ... */
	int64_t    clean_at_ms; /* ... until then; 0: nobody will take them away */
	int64_t    moves;
	struct str tags; /* JSON object, or empty */
	uint64_t   version;
};
enum sim_member_index { SIM_MEMBER_BY_OU }; /* by id */
extern const struct record_type sim_member_type;

struct sim_assignment {
	struct str key; /* account#kind#principal#permission set */
	struct str account_id;
	int64_t    kind;
	struct str principal, permission_set;
	uint64_t   version;
};
enum sim_assignment_index { SIM_ASSIGNMENT_BY_ACCOUNT };
extern const struct record_type sim_assignment_type;

/* Temporary credentials. */
struct sim_secret {
	struct str account_id;
	struct str name, principal;
	struct str value; /* of a simulated secret manager: nobody outside of it sees it */
	uint64_t   version;
};
extern const struct record_type sim_secret_type;

/* From then on the account costs so much. */
struct sim_rate {
	struct str key; /* account#time */
	struct str account_id;
	int64_t    at_ms;
	int64_t    rate; /* 0: it is not in use */
	uint64_t   version;
};
enum sim_rate_index { SIM_RATE_BY_ACCOUNT }; /* by time */
extern const struct record_type sim_rate_type;

enum sim_outcome { SIM_CLEANS, SIM_FAILS, SIM_LIES, SIM_OUTCOME_COUNT };

struct sim_run {
	struct str       id;
	struct str       key; /* the caller's */
	struct str       account_id;
	int64_t          started_ms, ends_ms;
	enum sim_outcome outcome;
	uint64_t         version;
};
extern const struct record_type sim_run_type;

struct sim_resource {
	struct str id; /* tenant#kind */
	struct str tenant;
	int64_t    kind;
	struct str key; /* the caller's */
	struct str outputs;
	uint64_t   version;
};
enum sim_resource_index { SIM_RESOURCE_BY_TENANT };
extern const struct record_type sim_resource_type;

/* An account as the other system's table has it. */
struct sim_isb_account {
	struct str id, name, status;
	int64_t    edited_ms;
	uint64_t   version;
};
extern const struct record_type sim_isb_account_type;

/* An event on its way out. A duplicate is a record of its own. */
struct sim_event {
	struct str key; /* the event's id, '#', number of the copy */
	int64_t    lot; /* always 1: one index of all, by due_ms */
	int64_t    due_ms;
	struct str body;
	uint64_t   version;
};
enum sim_event_index { SIM_EVENT_DUE };
extern const struct record_type sim_event_type;

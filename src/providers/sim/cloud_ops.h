/* cloud_ops.h - the inside of the simulated cloud, shared by the files of providers/sim; nobody else includes this. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "providers/sim/cloud.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "store/session.h"
#include "store/store.h"

struct sim_cloud {
	struct organisation      organisation;
	struct access            access;
	struct costs             costs;
	struct cleaner           cleaner;
	struct instance_driver   driver;
	struct credentials       credentials;
	struct world             world;
	struct sim_cloud_options options;
	struct sim_faults       *faults;
	struct arena             arena; /* what lives as long as the cloud */
	struct str               ou_ids[SIM_OU_COUNT];
	struct str               admin_accounts;
};

extern const char *const sim_ou_names[SIM_OU_COUNT];

extern const struct organisation_ops    sim_organisation_ops;
extern const struct access_ops          sim_access_ops;
extern const struct costs_ops           sim_costs_ops;
extern const struct cleaner_ops         sim_cleaner_ops;
extern const struct instance_driver_ops sim_driver_ops;
extern const struct credentials_ops     sim_credentials_ops;
extern const struct world_ops           sim_world_ops;

/* One call of a port: what may go wrong before, the transaction, what may go wrong after. */
MUST_CHECK enum rc sim_call(struct sim_cloud *c, enum world_call call, txn_fn *run, void *arg, struct arena *a,
                            struct err *e);

/* RC_INVALID unless it is one to max bytes without control characters and '#'. */
MUST_CHECK enum rc sim_check_text(const char *what, struct str text, size_t max, struct err *e);
MUST_CHECK enum rc sim_check_account(struct str id, struct err *e);

/* A record that may not be there. */
MUST_CHECK enum rc sim_find(struct session *s, const struct record_type *type, struct str key, void *ret,
                            bool *ret_found, struct err *e);

/* RC_NOT_FOUND with the cloud's own code. */
MUST_CHECK enum rc sim_get_member(struct session *s, struct str id, struct sim_member *ret, struct err *e);

/* All records that a query finds, page by page, in the session's arena. */
MUST_CHECK enum rc sim_read_all(struct session *s, struct query q, struct page *ret, struct err *e);

/* Which OU has this id; SIM_OU_COUNT: none. */
enum sim_ou_name sim_find_ou(const struct sim_cloud *c, struct str id);

/* More accounts, in Entry. */
MUST_CHECK enum rc sim_add_accounts(struct sim_cloud *c, int64_t count, struct err *e);

/* One move, by ourselves or by an outsider. */
struct sim_move {
	struct sim_cloud *cloud;
	struct str        account_id, from, to;
	bool              is_outsider;

	char       event_id[ID_UUID_SIZE], trail_id[ID_UUID_SIZE], request_id[ID_UUID_SIZE];
	bool       is_twice;
	int64_t    delays[2]; /* of the event and its copy */
	struct err refusal;   /* the answer: all zero when it moved */
};
void   sim_move_init(struct sim_move *m, struct sim_cloud *c, struct str account_id, struct str from, struct str to);
txn_fn sim_move_run; /* RC_OK also when it was refused, since an event tells of that too */

/* An account is in use (or not) from now on, at this rate. */
MUST_CHECK enum rc sim_note_rate(struct session *s, struct str account_id, int64_t rate, struct err *e);
bool               sim_is_billed(enum sim_ou_name ou);

/* Put the event about a move into the outbox. */
void sim_trail_add(struct session *s, const struct sim_move *m);

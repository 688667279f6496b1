/* cloud_private.h - the inside of the simulated cloud, shared by the files of providers/sim only. */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "domain/ports/instance.h"
#include "domain/ports/account_table.h"
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
	struct account_table     isb_table;
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
extern const struct account_table_ops   sim_isb_table_ops;

/* One call of a port: what may go wrong before, the transaction, what may go wrong after. */
MUST_CHECK enum rc sim_call(struct sim_cloud *c, enum world_call call, txn_fn *run, void *arg, struct arena *a,
                            struct err *e);

/* The same of one about a resource of an instance. */
MUST_CHECK enum rc sim_call_of(struct sim_cloud *c, struct sim_about about, txn_fn *run, void *arg, struct arena *a,
                               struct err *e);

/* The people of tenants' identity pools. */
instance_add_person_fn    sim_add_person;
instance_people_fn        sim_people;
instance_remove_person_fn sim_remove_person;
MUST_CHECK enum rc        sim_forget_people(struct sim_cloud *c, struct str tenant, struct arena *a, struct err *e);

/* A tenant's resource of this kind; what is not there is all zeroes but for its key. */
MUST_CHECK enum rc sim_find_resource(struct session *s, struct str tenant, enum instance_resource kind,
                                     struct sim_resource *ret, bool *ret_is_there, struct err *e);

/* The resources of tenants, as a member of the open object. */
struct json_out;
MUST_CHECK enum rc sim_put_tenants(struct session *s, struct json_out *o, struct err *e);

/* RC_INVALID unless it is one to max bytes without control characters and '#'. */
MUST_CHECK enum rc sim_check_text(const char *what, struct str text, size_t max, struct err *e);
MUST_CHECK enum rc sim_check_account(struct str id, struct err *e);

/* RC_NOT_FOUND with the cloud's own code. */
MUST_CHECK enum rc sim_get_member(struct session *s, struct str id, struct sim_member *ret, struct err *e);

/* The page of a query, as a call of a port. */
MUST_CHECK enum rc sim_list(struct sim_cloud *c, enum world_call call, const struct query *q, struct arena *a,
                            struct page *ret, struct err *e);

/* The page as a transaction; a query without a limit: all that it finds. */
struct sim_listing {
	const struct query *q;
	struct page         page;
};
txn_fn sim_read_page;

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
MUST_CHECK enum rc sim_move(struct sim_cloud *c, struct str account_id, struct str from, struct str to,
                            bool is_outsider, struct err *e);

/* An account is in use (or not) from now on, at this rate. */
MUST_CHECK enum rc sim_note_rate(struct session *s, struct str account_id, int64_t rate, struct err *e);
bool               sim_is_billed(enum sim_ou_name ou);

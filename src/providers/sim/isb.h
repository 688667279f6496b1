/* isb.h - a simulated Innovation Sandbox beside us: its account table, and what it does with its accounts. For development and tests.
 *
 * As the real one it moves an account first and writes its table afterwards, without looking whether somebody else has written it
 * meanwhile. Its moves are an outsider's: an event tells of each, and no fault disturbs them. Faults do disturb our own calls to its table. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/account_table.h"
#include "providers/sim/cloud.h"

struct sim_isb;

/* The cloud stays the caller's. */
struct sim_isb       *sim_isb_new(struct sim_cloud *c);
void                  sim_isb_free(struct sim_isb *isb);
struct account_table *sim_isb_table(struct sim_isb *isb);

/* Every account in an OU that is named as a status and that the table does not know is put there, with that status. Blocks, as all below. */
MUST_CHECK enum rc sim_isb_seed(struct sim_isb *isb, struct err *e);

/* Its two halves of a change: the move, from wherever the account is; then its own write, whatever the table says by now. An event may be
 * handled in between. */
MUST_CHECK enum rc sim_isb_move(struct sim_isb *isb, struct str account, enum sim_ou_name to, struct err *e);
MUST_CHECK enum rc sim_isb_write(struct sim_isb *isb, struct str account, struct str status, struct err *e);

/* Both, one right after the other: the status has the name of the OU. */
MUST_CHECK enum rc sim_isb_change(struct sim_isb *isb, struct str account, enum sim_ou_name to, struct err *e);

/* The truth, never disturbed. Empty: the table does not have it. */
MUST_CHECK enum rc sim_isb_status(struct sim_isb *isb, struct str account, struct arena *a, struct str *ret,
                                  struct err *e);

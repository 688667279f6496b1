/* sagas.h - kinds of sagas over a toy far side that fails before and after the effect. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct event;
struct saga_kind;
struct session;
struct session_entry;
struct sim;
struct sim_node;

enum { SAGA_KINDS = 6 }; /* the first has one step, the last has six; and that of clouds.c */

void                           sagas_open(struct sim *sim);
const struct saga_kind *const *sagas_kinds(const struct sim *sim);

/* Start one in this transaction; the number says of which kind. */
enum rc sagas_start(struct session *s, struct str id, struct str subject, int64_t number, struct err *e);

/* An operator retries, skips or aborts one, by this node. */
void sagas_operator(struct sim_node *n);

/* Retry all that are parked. False when there are none. */
bool sagas_retry_all(struct sim_node *n);

/* Commits that concern sagas. */
void sagas_observe(struct sim *sim, struct session *s, const struct session_entry *entry);
void sagas_check_event(struct sim *sim, struct session *s, const struct event *event);

/* Everything is quiet: have all of them ended, and is the far side as they say? */
void sagas_check_quiet(struct sim *sim);

int64_t sagas_count_parked(const struct sim *sim);

/* model.h - what must be so, by what was seen to be committed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "bank.h"
#include "base/str.h"
#include "names.h"

struct event;
struct session;
struct sim;

/* An event, and how far it has come in each queue. */
struct known_event {
	struct str            id, type;
	struct known_subject *subject;
	int64_t               number; /* of its subject */
	bool                  is_pruned;
	struct {
		bool is_routed;
		int  seen;              /* how often it was handled or received */
		bool is_dead, was_dead; /* there is, or was, a dead letter of it */
		bool is_dropped;
	} in[BANK_QUEUE_COUNT];
	struct known_event *next; /* in the order of commits */
};

struct known_subject {
	struct str name;
	int64_t    events;
	int64_t    last_seen[BANK_QUEUE_COUNT]; /* number of the newest event that was handled or received */
};

struct known_timer {
	struct str          name;
	int64_t             due_ms;
	bool                is_armed;
	bool                is_by_hand; /* an operator has fired or cancelled it */
	int64_t             fired_due_ms;
	struct known_timer *next;
};

struct known_account {
	int64_t changes, deadline_ms, last_op;
};

struct model {
	struct names         events, subjects, timers;
	struct known_event  *first_event, **last_event;
	struct str           last_id; /* of the newest event */
	struct known_timer  *first_timer;
	struct known_account accounts[BANK_ACCOUNTS];
	struct str           dropping; /* the dead letter that an operator is about to drop */
};

void model_open(struct sim *sim);

/* A commit has happened: what it changed is in the session. */
void model_observe(struct sim *sim, struct session *s);

/* The event was handled (the ledger's effect is committed) or received. */
void model_seen(struct sim *sim, int queue, struct str event_id);

/* The event with this type, subject and (when not empty) actor that the commit adds; NULL: none. */
const struct event *commit_event(const struct session *s, struct str type, struct str subject, struct str actor);

/* The program says that it is done with everything: is it? */
void model_check_quiet(struct sim *sim);

/* How many dead letters there are in this queue. */
int64_t model_count_dead(const struct sim *sim, int queue);

/* card.h - one thing as labelled lines for people; and cells for the times, amounts and hours of leases. */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "cli/list.h"

struct fetch_reply;
struct remote;

struct card_line {
	const char   *label;
	list_cell_fn *cell;
	const char   *member;
};

/* A line for each cell that is not empty. */
void card_print(struct remote *remote, const json_t *item, const struct card_line *lines, size_t count);

/* Where "data" of an answer is a thing: with --json the answer as it came, else a card. */
void card_show(struct remote *remote, const struct fetch_reply *reply, const json_t *document,
               const struct card_line *lines, size_t count);

list_cell_fn card_time;       /* ISO 8601: "2026-11-15 18:03:43 (in 3 h 59 min)" */
list_cell_fn card_dollars;    /* "12.50" */
list_cell_fn card_hours;      /* hours as a number: "1 d 2 h" */
list_cell_fn card_thresholds; /* "at 40.00 ALERT, at 2 h before the end FREEZE_ACCOUNT" */
list_cell_fn card_created;    /* meta.createdTime; the member does not matter */

/* SPDX-License-Identifier: Apache-2.0 */
/* outside.c - events from outside. */
#include "outside.h"

#include "sim.h"

void outside_open(struct sim *sim)
{
	(void)sim;
}

void outside_send(struct sim_node *n)
{
	(void)n;
}

bool outside_send_rest(struct sim_node *n)
{
	(void)n;
	return false;
}

void outside_observe(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	(void)sim;
	(void)s;
	(void)entry;
}

void outside_check_quiet(struct sim *sim)
{
	(void)sim;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_parts.c - the guard, put together on the simulated organisation or a real one.
 *
 * Its other half, the account table, is a DynamoDB table (ACCOUNT_TABLE_NAME) or simulated (the word "sim").
 */
#include "app/parts.h"

#include <stdlib.h>

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "base/buf.h"
#include "base/mem.h"
#include "domain/move_event.h"
#include "net/aws.h"
#include "providers/isb/account_table.h"
#include "providers/sim/cloud.h"
#include "service/reconcile/reconcile.h"

bool guard_parts_is_wanted(const struct config *c)
{
	return config_number(c, CONFIG_QUARANTINE) == QUARANTINE_GUARD;
}

static bool is_simulated(const struct config *c)
{
	return str_eq(config_str(c, CONFIG_ACCOUNT_TABLE), STR("sim"));
}

void guard_parts_check(const struct config *c, struct buf *problems)
{
	struct str ou = config_str(c, CONFIG_SANDBOX_OU);

	if (!guard_parts_is_wanted(c))
		return;
	if (!config_str(c, CONFIG_ACCOUNT_TABLE).n)
		buf_addf(problems, "%s: is required with %s=guard: the account table of the other system, or sim\n",
		         config_name(CONFIG_ACCOUNT_TABLE), config_name(CONFIG_QUARANTINE));
	else if (!is_simulated(c) && !ou.n && !aws_parts_is_wanted(c))
		buf_addf(problems,
		         "%s: is required with %s=guard: the OU with the OUs of the pool (Available, CleanUp ...)\n",
		         config_name(CONFIG_SANDBOX_OU), config_name(CONFIG_QUARANTINE));
	if (ou.n && !move_is_parent(ou) && !aws_parts_is_wanted(c))
		buf_addf(problems, "%s: must be an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx), not '%.*s'\n",
		         config_name(CONFIG_SANDBOX_OU), STR_ARG(ou));
}

static struct account_table *open_table(const struct config *c, struct sim_cloud *cloud, struct guard_parts *g)
{
	struct aws_client_options        options = { .region = config_text(c, CONFIG_AWS_REGION),
		                                     .service = "dynamodb",
		                                     .clock = &clock_real };
	CLEANUP(arena_fini) struct arena a = { 0 };

	if (is_simulated(c)) {
		g->sim = cloud;
		return sim_isb_table(cloud);
	}
	g->identity = app_identity();
	options.identity = g->identity;
	rc_ignore(app_ddb_endpoint(c, &a, &options.endpoint, NULL)); /* the settings were checked */
	g->client = aws_client_new(&options);
	g->table = isb_table_new(g->client, config_str(c, CONFIG_ACCOUNT_TABLE));
	return isb_table_port(g->table);
}

enum rc guard_parts_new(struct parts *p, struct err *e)
{
	const struct config *c = p->config;
	struct guard_parts  *g = p->guard = mem_new(struct guard_parts);
	struct guard_options options = { .store = p->store.store,
		                         .cloud = p->aws->cloud ? aws_cloud_ports(p->aws->cloud)
		                                                : sim_cloud_ports(p->sim),
		                         .sandbox_ou = config_str(c, CONFIG_SANDBOX_OU),
		                         .rules = &g->rules,
		                         .metrics = p->metrics };
	enum rc              rc = lease_parts_read_rules(c, &g->rules, e);

	if (rc)
		return rc;
	options.table = open_table(c, p->sim, g);
	g->guard = guard_new(&options);
	guard_kinds(g->guard, g->kinds);
	g->records = guard_records(g->guard);
	g->reconcile = (struct reconcile_world){ options.cloud.organisation, &g->records.base };
	return RC_OK;
}

void guard_parts_free(struct guard_parts *g)
{
	if (!g)
		return;
	guard_free(g->guard);
	isb_table_free(g->table);
	aws_client_free(g->client);
	aws_identity_free(g->identity);
	free(g);
}

enum rc guard_parts_start(struct guard_parts *g, struct err *e)
{
	return err_wrap(e, g->sim ? sim_isb_seed(g->sim, e) : RC_OK, "the accounts of the simulated other system");
}

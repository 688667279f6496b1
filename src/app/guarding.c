/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guarding.c - the guard, put together on the simulated organisation.
 *
 * Its other half, the account table, is a real one (ACCOUNT_TABLE_NAME names a DynamoDB table) or simulated (the word "sim").
 */
#include "app/guarding.h"

#include <stdlib.h>

#include "app/config.h"
#include "app/lending.h"
#include "base/buf.h"
#include "base/mem.h"
#include "domain/move_event.h"
#include "net/aws.h"
#include "providers/isb/account_table.h"
#include "providers/sim/cloud.h"
#include "providers/sim/isb.h"
#include "service/holds.h"
#include "service/reconcile.h"

struct guarding {
	struct hold_rules    rules;
	struct sim_isb      *sim; /* this one, */
	struct aws_identity *identity;
	struct aws_client   *client;
	struct isb_table    *table; /* or this one */
	struct guard        *guard;
	struct saga_kind     kinds[GUARD_KINDS];

	struct guard_records   records;
	struct reconcile_world reconcile;
};

bool guarding_is_wanted(const struct config *c)
{
	return config_number(c, CONFIG_QUARANTINE) == QUARANTINE_GUARD;
}

static bool is_simulated(const struct config *c)
{
	return str_eq(config_str(c, CONFIG_ACCOUNT_TABLE), STR("sim"));
}

void guarding_check(const struct config *c, struct buf *problems)
{
	struct str ou = config_str(c, CONFIG_SANDBOX_OU);

	if (!guarding_is_wanted(c))
		return;
	if (!config_str(c, CONFIG_ACCOUNT_TABLE).n)
		buf_addf(problems, "%s: is required with %s=guard: the account table of the other system, or sim\n",
		         config_name(CONFIG_ACCOUNT_TABLE), config_name(CONFIG_QUARANTINE));
	else if (!is_simulated(c) && !ou.n)
		buf_addf(problems,
		         "%s: is required with %s=guard: the OU with the OUs of the pool (Available, CleanUp ...)\n",
		         config_name(CONFIG_SANDBOX_OU), config_name(CONFIG_QUARANTINE));
	if (ou.n && !move_is_parent(ou))
		buf_addf(problems, "%s: must be an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx), not '%.*s'\n",
		         config_name(CONFIG_SANDBOX_OU), STR_ARG(ou));
}

static const char *read_env(const char *name)
{
	return getenv(name);
}

static struct account_table *open_table(const struct config *c, struct sim_cloud *cloud, struct guarding *g)
{
	struct aws_client_options options = { .endpoint = config_text(c, CONFIG_DDB_ENDPOINT),
		                              .region = config_text(c, CONFIG_AWS_REGION),
		                              .service = "dynamodb",
		                              .json_version = "1.0",
		                              .clock = &clock_real };

	if (is_simulated(c)) {
		g->sim = sim_isb_new(cloud);
		return sim_isb_table(g->sim);
	}
	g->identity = aws_identity_new(&(struct aws_identity_options){ .env = read_env, .clock = &clock_real });
	options.identity = g->identity;
	g->client = aws_client_new(&options);
	g->table = isb_table_new(g->client, config_str(c, CONFIG_ACCOUNT_TABLE));
	return isb_table_port(g->table);
}

enum rc guarding_new(const struct config *c, struct store *store, struct sim_cloud *cloud, struct metrics *metrics,
                     struct guarding **ret, struct err *e)
{
	struct guard_options options = { .store = store,
		                         .cloud = sim_cloud_ports(cloud),
		                         .sandbox_ou = config_str(c, CONFIG_SANDBOX_OU),
		                         .metrics = metrics };
	struct hold_rules    rules;
	struct guarding     *g;
	enum rc              rc = lending_read_rules(c, &rules, e);

	if (rc)
		return rc;
	g = mem_new(struct guarding);
	g->rules = rules;
	options.rules = &g->rules;
	options.table = open_table(c, cloud, g);
	g->guard = guard_new(&options);
	guard_kinds(g->guard, g->kinds);
	g->records = guard_records(g->guard);
	g->reconcile = (struct reconcile_world){ options.cloud.organisation, &g->records.base };
	*ret = g;
	return RC_OK;
}

void guarding_free(struct guarding *g)
{
	if (!g)
		return;
	guard_free(g->guard);
	isb_table_free(g->table);
	aws_client_free(g->client);
	aws_identity_free(g->identity);
	sim_isb_free(g->sim);
	free(g);
}

void guarding_queues(struct guarding *g, struct queue ret[GUARDING_QUEUES])
{
	guard_queues(g->guard, ret);
	ret[GUARD_QUEUES] = hold_queue();
}

struct route guarding_route(size_t i)
{
	return i < GUARD_ROUTES ? guard_routes[i] : (struct route){ EVENT_HOLD_DUE, HOLD_QUEUE };
}

const struct saga_kind *guarding_saga(const struct guarding *g, size_t i)
{
	return &g->kinds[i];
}

const struct reconcile_world *guarding_reconcile(const struct guarding *g)
{
	return &g->reconcile;
}

const struct hold_rules *guarding_rules(const struct guarding *g)
{
	return &g->rules;
}

enum rc guarding_start(struct guarding *g, struct err *e)
{
	enum rc rc = g->sim ? sim_isb_seed(g->sim, e) : RC_OK;

	return rc ? err_wrap(e, rc, "the accounts of the simulated other system") : RC_OK;
}

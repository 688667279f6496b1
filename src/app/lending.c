/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lending.c - leases and accounts, put together on the simulated cloud.
 *
 * A fresh world is made usable at once: the accounts that the simulated organisation has in Available are registered as clean and rested,
 * and there are two templates to ask for. That happens once, while there is neither an account nor a template; several nodes that find it so
 * at the same time make the same ones.
 */
#include "app/lending.h"

#include <stdlib.h>

#include "app/cleaning.h"
#include "app/config.h"
#include "app/guarding.h"
#include "base/arena.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "providers/sim/cloud.h"
#include "service/account_clean.h"
#include "service/account_drift.h"
#include "service/account_follow.h"
#include "service/account_moved.h"
#include "service/holds.h"
#include "service/lease_records.h"
#include "service/leases.h"
#include "service/policy_store.h"
#include "service/reconcile.h"
#include "service/statement.h"
#include "store/session.h"
#include "store/store.h"

enum { HOUR_MS = 3600000 };

struct lending {
	struct store                *store;
	struct sim_cloud            *sim;
	struct cloud                 cloud;
	struct cleaning             *cleaning;       /* NULL: the simulated cloud's own */
	struct str                   admin_accounts; /* as set */
	struct policy_holder        *policies;
	struct lease_world           world;
	struct account_world        *accounts;
	struct saga_kind             follow;
	struct hold_rules            rules;
	struct account_clean_options clean;
	struct reports               reports;
	struct native_records        records;
	struct reconcile_world       reconcile;
	struct account_moved        *moved;
};

/* Beside those of leases.c, which come last. */
const struct route lending_routes[LENDING_ROUTES] = {
	{ EVENT_CLEAN_REQUEST, CLEANUP_QUEUE },    { EVENT_CLEANUP_DUE, CLEANUP_QUEUE },
	{ EVENT_DRIFT_DETECTED, DRIFT_QUEUE },     { EVENT_STATEMENT_DUE, REPORTS_QUEUE },
	{ EVENT_COST_REPORT_DUE, REPORTS_QUEUE },  { EVENT_HOLD_DUE, HOLD_QUEUE },
	{ "cloudtrail:MoveAccount", MOVED_QUEUE },
};

bool lending_is_wanted(const struct config *c)
{
	return config_text(c, CONFIG_JWT_SECRET) != NULL && !guarding_is_wanted(c);
}

const struct policy *lending_policy(void *arg)
{
	const struct lending *l = arg;

	return policy_current(l->policies);
}

const struct approval_policy *lending_approval(void *arg)
{
	return lending_policy(arg)->approval;
}

static struct account_world_options world_options(const struct lending *l)
{
	return (struct account_world_options){ .store = l->store,
		                               .cloud = l->cloud,
		                               .user_permissions = STR("user"),
		                               .manager_group = STR("managers"),
		                               .manager_permissions = STR("manager"),
		                               .admin_group = STR("admins"),
		                               .admin_permissions = STR("admin") };
}

enum rc lending_read_rules(const struct config *c, struct hold_rules *ret, struct err *e)
{
	enum rc rc;

	hold_rules_defaults(ret);
	ret->hours[HOLD_BILLING] = config_number(c, CONFIG_REST_HOURS);
	ret->hours[HOLD_METADATA] = config_number(c, CONFIG_REST_METADATA);
	ret->hours[HOLD_QUOTA] = config_number(c, CONFIG_REST_QUOTA);
	ret->grace_hours = config_number(c, CONFIG_REST_GRACE);
	ret->exempts_new = config_number(c, CONFIG_REST_EXEMPTS_NEW);
	ret->ejects = config_number(c, CONFIG_REST_EJECTS);
	rc = hold_rules_read_pools(ret, config_str(c, CONFIG_REST_POOLS), e);
	if (rc)
		return err_wrap(e, rc, "QUARANTINE_POOLS");
	rc = hold_rules_check(ret, e);
	return rc ? err_wrap(e, rc, "QUARANTINE_DURATION_HOURS") : RC_OK;
}

/* What the settings want accounts to be emptied by. */
static enum rc open_cleaner(struct lending *l, const struct config *c, struct err *e)
{
	enum rc rc = cleaning_open(c, lending_admin_accounts(l), &l->cleaning, e);

	if (!rc && l->cleaning)
		l->cloud.cleaner = l->clean.cleaner = cleaning_cleaner(l->cleaning);
	return rc;
}

/* Of most accounts. */
static int64_t rest_ms_of(const struct hold_rules *rules)
{
	int64_t hours = 0;

	for (int i = HOLD_BILLING; i <= HOLD_QUOTA; i++)
		hours = rules->hours[i] > hours ? rules->hours[i] : hours;
	return hours * HOLD_HOUR_MS;
}

enum rc lending_new(const struct config *c, struct store *store, struct sim_cloud *cloud, struct lending **ret,
                    struct err *e)
{
	struct account_world_options options;
	struct hold_rules            rules;
	struct lending              *l;
	enum rc                      rc = lending_read_rules(c, &rules, e);

	if (rc)
		return rc;
	l = mem_new(struct lending);
	l->rules = rules;
	l->store = store;
	l->sim = cloud;
	l->cloud = sim_cloud_ports(cloud);
	if (!config_number(c, CONFIG_CREDENTIALS))
		l->cloud.credentials = NULL;
	l->admin_accounts = config_str(c, CONFIG_ADMIN_ACCOUNTS);
	l->policies = policy_holder_new(store, &clock_real);
	policy_holder_set_rest(l->policies, rest_ms_of(&rules));
	l->world = (struct lease_world){ .cloud = l->cloud,
		                         .projects = config_number(c, CONFIG_PROJECTED),
		                         .line_limit_ms = config_number(c, CONFIG_LINE_DAYS) * 86400000,
		                         .rules = &l->rules,
		                         .policy = lending_policy,
		                         .policy_arg = l };
	l->clean = (struct account_clean_options){ .store = store,
		                                   .cleaner = l->cloud.cleaner,
		                                   .at_once = (unsigned)config_number(c, CONFIG_CLEAN_AT_ONCE),
		                                   .rules = &l->rules,
		                                   .policy = lending_policy,
		                                   .policy_arg = l };
	l->reports = (struct reports){ .store = store,
		                       .costs = l->cloud.costs,
		                       .final_ms = config_number(c, CONFIG_STATEMENT_HOURS) * HOUR_MS,
		                       .kept_ms = config_number(c, CONFIG_STATEMENT_DAYS) * 24 * HOUR_MS };
	l->moved = account_moved_new(store, l->cloud.organisation);
	l->records = native_records(store, &l->rules);
	l->reconcile = (struct reconcile_world){ l->cloud.organisation, &l->records.base };
	options = world_options(l);
	l->accounts = account_world_new(&options);
	l->follow = account_follow_kind(l->accounts);
	if ((rc = open_cleaner(l, c, e))) {
		lending_free(l);
		return rc;
	}
	*ret = l;
	return RC_OK;
}

void lending_free(struct lending *l)
{
	if (!l)
		return;
	account_world_free(l->accounts);
	cleaning_close(l->cleaning);
	account_moved_free(l->moved);
	policy_holder_free(l->policies);
	free(l);
}

void lending_queues(struct lending *l, struct queue ret[LENDING_QUEUES])
{
	ret[0] = account_clean_queue(&l->clean);
	ret[1] = account_drift_queue();
	ret[2] = reports_queue(&l->reports);
	ret[3] = hold_queue();
	ret[4] = account_moved_queue(l->moved);
	for (size_t i = 0; i < LEASE_QUEUE_COUNT; i++)
		ret[5 + i] = lease_queues[i];
}

const struct saga_kind *lending_saga(const struct lending *l)
{
	return &l->follow;
}

struct cloud *lending_cloud(struct lending *l)
{
	return &l->cloud;
}

struct policy_holder *lending_policies(struct lending *l)
{
	return l->policies;
}

struct str lending_admin_accounts(const struct lending *l)
{
	return l->admin_accounts.n ? l->admin_accounts : sim_cloud_admin_accounts(l->sim);
}

const struct lease_world *lending_world(const struct lending *l)
{
	return &l->world;
}

const struct reconcile_world *lending_reconcile(const struct lending *l)
{
	return &l->reconcile;
}

/* --- a fresh world --- */

static enum rc is_untouched(struct session *s, void *arg, struct err *e)
{
	bool   *ret = arg;
	int64_t accounts = 0, templates = 0;
	enum rc rc = session_count(s, &account_type, QUERY_ALL, value_int(0), &accounts, e);

	if (!rc)
		rc = session_count(s, &template_type, QUERY_ALL, value_int(0), &templates, e);
	*ret = !rc && !accounts && !templates;
	return rc;
}

static enum rc seed_account(struct session *s, void *arg, struct err *e)
{
	const struct cloud_account *from = arg;
	int64_t                     now_ms = session_now(s).ms;
	struct hold_rules           rules;
	struct account              account;
	enum rc                     rc = session_get(s, &account_type, from->id, &account, NULL);

	if (rc != RC_NOT_FOUND)
		return rc ? err_set(e, rc, "account %.*s cannot be read", STR_ARG(from->id)) : RC_OK;
	account = (struct account){ .id = from->id,
		                    .name = from->name,
		                    .email = from->email,
		                    .status = ACCOUNT_CLEANUP,
		                    .placed_ou = STR("Available"),
		                    .clean_reason = STR(CLEAN_FOR_REGISTRATION),
		                    .created_ms = now_ms };
	hold_rules_defaults(&rules);
	return hold_rest(s, &rules, &account, STR("seed"), e); /* new, so it need not rest; and that is on record */
}

static enum rc seed_accounts(struct lending *l, struct arena *a, struct err *e)
{
	struct organisation *org = l->cloud.organisation;
	struct str           cursor = STR("");
	enum rc              rc;

	do {
		struct cloud_account_page page = { 0 };

		rc = org->ops->list_accounts(org, sim_cloud_ou(l->sim, SIM_OU_AVAILABLE), cursor, a, &page, e);
		for (size_t i = 0; !rc && i < page.count; i++)
			rc = store_run(l->store, seed_account, &page.items[i], a, e);
		cursor = page.next;
	} while (!rc && cursor.n);
	return rc;
}

/* One that is approved at once, one that a manager has to approve. */
static enum rc seed_templates(struct lending *l, struct arena *a, struct err *e)
{
	static const struct lease_template templates[] = {
		{ .uuid = { "5e3d0000-0000-4000-8000-000000000001", 36 },
		  .name = { "Playground", 10 },
		  .description = { "A day to try something out. Approved at once.", 45 },
		  .max_spend = 10 * LEASE_USD,
		  .duration_ms = 24 * LEASE_HOUR_MS },
		{ .uuid = { "5e3d0000-0000-4000-8000-000000000002", 36 },
		  .name = { "Project", 7 },
		  .description = { "A week of work. A manager approves.", 35 },
		  .requires_approval = 1,
		  .max_spend = 50 * LEASE_USD,
		  .duration_ms = 168 * LEASE_HOUR_MS,
		  .budget_thresholds = { "[{\"dollarsSpent\":40,\"action\":\"ALERT\"}]", 38 },
		  .duration_thresholds = { "[{\"hoursRemaining\":24,\"action\":\"ALERT\"}]", 40 } },
	};
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(templates); i++) {
		struct template_call *call = arena_alloc(a, sizeof(*call));

		call->by = (struct caller){ .email = STR("admin@example.com"), .roles = ROLE_ADMIN };
		call->policy = policy_current(l->policies);
		call->fields = templates[i];
		call->fields.created_by = call->by.email;
		call->uuid = templates[i].uuid;
		call->is_new = true;
		call->problems.arena = a;
		rc = store_run(l->store, template_put, call, a, NULL);
		if (rc == RC_CONFLICT)
			rc = RC_OK; /* another node was faster */
		if (rc)
			return err_set(e, rc, "template %.*s cannot be made", STR_ARG(templates[i].name));
	}
	return rc;
}

static enum rc seed(struct lending *l, struct err *e)
{
	struct arena a = { 0 };
	bool         is_fresh = false;
	enum rc      rc = store_read(l->store, is_untouched, &is_fresh, &a, e);

	if (!rc && is_fresh)
		rc = seed_accounts(l, &a, e);
	if (!rc && is_fresh)
		rc = seed_templates(l, &a, e);
	arena_fini(&a);
	return rc ? err_wrap(e, rc, "the first accounts and templates") : RC_OK;
}

enum rc lending_start(struct lending *l, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc = policy_holder_refresh(l->policies, e);

	if (rc == RC_CORRUPT) { /* a document that cannot be read must not keep the admin out who can put it right */
		err_clear(e);
		rc = RC_OK;
	}
	if (!rc)
		rc = seed(l, e);
	if (!rc)
		rc = store_run(l->store, reports_arm, NULL, &a, e);
	arena_fini(&a);
	return rc;
}

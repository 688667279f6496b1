/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_parts.c - leases and accounts, put together on the simulated cloud or on AWS.
 *
 * A fresh simulated world is usable at once: the accounts that the simulated organisation has in Available are
 * registered as clean, and two templates are made. That happens while there is neither an account nor a template; nodes
 * that do it at the same time make the same ones.
 */
#include "app/parts.h"

#include <stdlib.h>

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "base/arena.h"
#include "base/mem.h"
#include "net/aws.h"
#include "providers/aws/access.h"
#include "providers/nuke/nuke.h"
#include "providers/sim/cloud.h"
#include "service/pool/account_clean.h"
#include "service/account/account_follow.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "service/lease/leases.h"
#include "service/policy/policy_store.h"
#include "service/reconcile/reconcile.h"
#include "service/cost/statement.h"
#include "store/session.h"
#include "store/store.h"

enum { HOUR_MS = 3600000 };

bool lease_parts_is_wanted(const struct config *c)
{
	return config_text(c, CONFIG_JWT_SECRET) != NULL && !guard_parts_is_wanted(c);
}

static const struct policy *current_policy(void *arg)
{
	const struct lease_parts *l = arg;

	return policy_current(l->policies);
}

const struct approval_policy *lease_parts_approval(void *arg)
{
	return current_policy(arg)->approval;
}

enum rc lease_parts_read_rules(const struct config *c, struct hold_rules *ret, struct err *e)
{
	enum rc rc;

	hold_rules_defaults(ret);
	ret->hours[HOLD_BILLING] = config_number(c, CONFIG_REST_HOURS);
	ret->hours[HOLD_METADATA] = config_number(c, CONFIG_REST_METADATA);
	ret->hours[HOLD_QUOTA] = config_number(c, CONFIG_REST_QUOTA);
	ret->grace_hours = config_number(c, CONFIG_REST_GRACE);
	ret->exempts_new = config_number(c, CONFIG_REST_EXEMPTS_NEW);
	ret->ejects = config_number(c, CONFIG_REST_EJECTS);
	if ((rc = hold_rules_read_pools(ret, config_str(c, CONFIG_REST_POOLS), e)))
		return err_wrap(e, rc, "QUARANTINE_POOLS");
	return err_wrap(e, hold_rules_check(ret, e), "QUARANTINE_DURATION_HOURS");
}

static struct account_world_options people_of(const struct lease_parts *l, const struct aws_parts *aws)
{
	const struct aws_cloud_options *o = &aws->options;

	if (!aws->cloud)
		return (struct account_world_options){ .store = l->store,
			                               .cloud = l->cloud,
			                               .user_permissions = STR("user"),
			                               .manager_group = STR("managers"),
			                               .manager_permissions = STR("manager"),
			                               .admin_group = STR("admins"),
			                               .admin_permissions = STR("admin") };
	return (struct account_world_options){ .store = l->store,
		                               .cloud = l->cloud,
		                               .access_ms = AWS_ACCESS_MS,
		                               .user_permissions = o->permission_sets[AWS_PEOPLE_USER],
		                               .manager_group = o->groups[AWS_PEOPLE_MANAGER],
		                               .manager_permissions = o->permission_sets[AWS_PEOPLE_MANAGER],
		                               .admin_group = o->groups[AWS_PEOPLE_ADMIN],
		                               .admin_permissions = o->permission_sets[AWS_PEOPLE_ADMIN] };
}

static void make_parts(struct lease_parts *l, const struct config *c, struct store *store, const struct aws_parts *aws)
{
	struct account_world_options who = people_of(l, aws);

	l->world = (struct lease_world){ .cloud = l->cloud,
		                         .projects = config_number(c, CONFIG_PROJECTED),
		                         .line_limit_ms = config_number(c, CONFIG_LINE_DAYS) * 86400000,
		                         .rules = &l->rules,
		                         .policy = current_policy,
		                         .policy_arg = l };
	l->clean = (struct account_clean_options){ .store = store,
		                                   .cleaner = l->cloud.cleaner,
		                                   .at_once = (unsigned)config_number(c, CONFIG_CLEAN_AT_ONCE),
		                                   .rules = &l->rules,
		                                   .policy = current_policy,
		                                   .policy_arg = l };
	l->reports = (struct reports){ .store = store,
		                       .costs = l->cloud.costs,
		                       .final_ms = config_number(c, CONFIG_STATEMENT_HOURS) * HOUR_MS,
		                       .kept_ms = config_number(c, CONFIG_STATEMENT_DAYS) * 24 * HOUR_MS };
	l->records = native_records(store, &l->rules);
	l->reconcile = (struct reconcile_world){ l->cloud.organisation, &l->records.base };
	l->accounts = account_world_new(&who);
	l->moved = (struct account_moved){ store, account_world_ous(l->accounts) };
	l->follow = account_follow_kind(l->accounts);
}

static enum rc choose_cloud(struct lease_parts *l, struct parts *p, struct err *e)
{
	if (p->aws->cloud) {
		l->cloud = aws_cloud_ports(p->aws->cloud);
		l->admin_accounts = p->aws->options.admin_accounts;
		if (!l->cloud.access || !l->cloud.costs)
			return err_set(e, RC_INVALID, "%s: aws cannot lend accounts yet, only guard them (%s=guard)",
			               config_name(CONFIG_CLOUD), config_name(CONFIG_QUARANTINE));
		return RC_OK;
	}
	l->sim = p->sim;
	l->cloud = sim_cloud_ports(p->sim);
	l->admin_accounts = config_str(p->config, CONFIG_ADMIN_ACCOUNTS);
	if (!l->admin_accounts.n)
		l->admin_accounts = sim_cloud_admin_accounts(p->sim);
	return RC_OK;
}

enum rc lease_parts_new(struct parts *p, struct err *e)
{
	const struct config *c = p->config;
	struct lease_parts  *l = p->leases = mem_new(struct lease_parts);
	int64_t              rest_hours = 0; /* of most accounts */
	enum rc              rc = lease_parts_read_rules(c, &l->rules, e);

	if (rc)
		return rc;
	l->store = p->store.store;
	if ((rc = choose_cloud(l, p, e)))
		return rc;
	if (!config_number(c, CONFIG_CREDENTIALS))
		l->cloud.credentials = NULL;
	l->policies = policy_holder_new(l->store, &clock_real);
	for (int i = HOLD_BILLING; i <= HOLD_QUOTA; i++)
		rest_hours = l->rules.hours[i] > rest_hours ? l->rules.hours[i] : rest_hours;
	policy_holder_set_rest(l->policies, rest_hours * HOLD_HOUR_MS);
	make_parts(l, c, l->store, p->aws);
	return cleaner_open(l, c, p->aws, e);
}

void lease_parts_free(struct lease_parts *l)
{
	if (!l)
		return;
	account_world_free(l->accounts);
	nuke_close(l->nuke);
	aws_identity_free(l->identity);
	arena_fini(&l->arena);
	policy_holder_free(l->policies);
	free(l);
}

/* --- a fresh world --- */

static enum rc is_untouched(struct session *s, void *ret, struct err *e)
{
	int64_t accounts = 0, templates = 0;
	enum rc rc = session_count(s, &account_type, QUERY_ALL, value_int(0), &accounts, e);

	if (!rc)
		rc = session_count(s, &template_type, QUERY_ALL, value_int(0), &templates, e);
	*(bool *)ret = !rc && !accounts && !templates;
	return rc;
}

static enum rc seed_account(struct session *s, void *arg, struct err *e)
{
	const struct cloud_account *from = arg;
	int64_t                     now_ms = session_now(s).ms;
	struct hold_rules           rules;
	struct account              account;
	bool                        is_there;
	enum rc                     rc = session_find(s, &account_type, from->id, &account, &is_there, e);

	if (rc || is_there)
		return rc;
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

static enum rc seed_accounts(struct lease_parts *l, struct arena *a, struct err *e)
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
static enum rc seed_templates(struct lease_parts *l, struct arena *a, struct err *e)
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
	enum rc rc;

	for (size_t i = 0; i < ARRAY_LEN(templates); i++) {
		struct template_call call = { .by = { .email = STR("admin@example.com"), .roles = ROLE_ADMIN },
			                      .policy = policy_current(l->policies),
			                      .fields = templates[i],
			                      .uuid = templates[i].uuid,
			                      .is_new = true,
			                      .problems = { .arena = a } };

		call.fields.created_by = call.by.email;
		rc = store_run(l->store, template_put, &call, a, NULL);
		if (rc && rc != RC_CONFLICT) /* another node was faster */
			return err_set(e, rc, "template %.*s cannot be made", STR_ARG(templates[i].name));
	}
	return RC_OK;
}

static enum rc seed(struct lease_parts *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	bool                             is_fresh = false;
	enum rc                          rc = store_read(l->store, is_untouched, &is_fresh, &a, e);

	if (!rc && is_fresh && !(rc = seed_accounts(l, &a, e)))
		rc = seed_templates(l, &a, e);
	return err_wrap(e, rc, "the first accounts and templates");
}

enum rc lease_parts_start(struct lease_parts *l, struct err *e)
{
	/* A document that cannot be read must not keep the admin out who can put it right. */
	enum rc rc = err_forgive(e, policy_holder_refresh(l->policies, e), RC_CORRUPT);

	if (!rc && l->sim)
		rc = seed(l, e);
	return rc ? rc : store_run(l->store, reports_arm, NULL, NULL, e);
}

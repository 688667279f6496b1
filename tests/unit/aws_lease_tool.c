/* SPDX-License-Identifier: Apache-2.0 */
/* aws_lease_tool.c - opens the AWS providers that leases need and does what it is told, a line of JSON each: for
 * tests/aws. The first line is the settings. Two nodes share one store. Their time goes on by itself and by "clock";
 * waits for assignments only move it on. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lines_tool.h"

#include "base/clock.h"
#include "base/log.h"
#include "domain/ports/cloud.h"
#include "domain/ports/identity.h"
#include "providers/aws/access.h"
#include "providers/aws/call.h"
#include "providers/aws/centre.h"
#include "providers/aws/codebuild.h"
#include "providers/aws/costs.h"
#include "providers/aws/credentials.h"
#include "providers/aws/directory.h"
#include "service/services.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

enum { NODES = 2, PEOPLE_MAX = 1000 };

struct node {
	struct aws_settings          settings;
	struct aws_callers          *callers;
	struct aws_centre           *centre;
	struct aws_directory        *directory;
	struct aws_access           *access;
	struct aws_costs            *costs;
	struct aws_codebuild        *builds;
	struct aws_credential_store *credentials;
};

static struct {
	json_t       *settings;
	struct clock  clock; /* of the providers and the store; signatures have the machine's */
	atomic_llong  ahead_ms, waits;
	struct store *store;
	struct node   nodes[NODES];
} tool;

static struct node *node_of(const struct call *c)
{
	return &tool.nodes[(size_t)number_of(c->in, "node", 0) % NODES];
}

static struct str text(const struct call *c, const char *name)
{
	return text_of(c->in, name);
}

/* --- access --- */

static struct cloud_assignment assignment_of(const struct call *c)
{
	bool is_group = str_eq(text(c, "kind"), STR("group"));

	return (struct cloud_assignment){ text(c, "account"), is_group ? CLOUD_GROUP : CLOUD_USER, text(c, "who"),
		                          text(c, "set") };
}

static enum rc do_grant(struct call *c)
{
	struct access          *x = aws_access_port(node_of(c)->access);
	struct cloud_assignment as = assignment_of(c);

	return x->ops->set(x, &as, true, &c->e);
}

static enum rc do_revoke(struct call *c)
{
	struct access          *x = aws_access_port(node_of(c)->access);
	struct cloud_assignment as = assignment_of(c);

	return x->ops->set(x, &as, false, &c->e);
}

static enum rc do_list(struct call *c)
{
	struct access           *x = aws_access_port(node_of(c)->access);
	struct cloud_assignment *list = NULL;
	size_t                   count = 0;
	enum rc                  rc = x->ops->list(x, text(c, "account"), &c->arena, &list, &count, &c->e);

	json_put_array(&c->o, "list");
	for (size_t i = 0; i < count; i++)
		json_add_str(&c->o,
		             str_format(&c->arena, "%s %.*s %.*s", list[i].kind == CLOUD_GROUP ? "group" : "user",
		                        STR_ARG(list[i].principal), STR_ARG(list[i].permission_set)));
	json_close_array(&c->o);
	return rc;
}

/* --- people --- */

static enum rc do_refresh_people(struct call *c)
{
	struct aws_directory_done done;
	enum rc                   rc = aws_directory_refresh(node_of(c)->directory, &done, &c->e);

	json_put_int(&c->o, "members", done.members);
	json_put_int(&c->o, "described", done.described);
	json_put_int(&c->o, "changed", done.changed);
	return rc;
}

static enum rc do_load_people(struct call *c)
{
	return aws_directory_load(node_of(c)->directory, &c->e);
}

static enum rc show_caller(struct call *c, enum rc rc, const struct caller *who)
{
	if (rc)
		return rc;
	json_put_str(&c->o, "email", who->email);
	json_put_str(&c->o, "name", who->display_name);
	json_put_int(&c->o, "roles", who->roles);
	return RC_OK;
}

static enum rc do_find(struct call *c)
{
	struct identity *i = aws_directory_identity(node_of(c)->directory);
	struct caller    who;

	return show_caller(c, i->ops->find(i, text(c, "email"), &c->arena, &who, &c->e), &who);
}

static enum rc do_sign_in(struct call *c)
{
	struct caller who;

	return show_caller(c, aws_directory_sign_in(node_of(c)->directory, text(c, "email"), &c->arena, &who, &c->e),
	                   &who);
}

static enum rc do_people(struct call *c)
{
	struct identity       *i = aws_directory_identity(node_of(c)->directory);
	struct directory_entry found[PEOPLE_MAX];
	size_t count = i->ops->list(i, (unsigned)number_of(c->in, "roles", 7), text(c, "after"), &c->arena, found,
	                            (size_t)number_of(c->in, "max", PEOPLE_MAX));

	json_put_array(&c->o, "people");
	for (size_t k = 0; k < count; k++)
		json_add_str(&c->o, found[k].caller.email);
	json_close_array(&c->o);
	return RC_OK;
}

/* --- costs --- */

static enum rc do_spend(struct call *c)
{
	struct costs      *x = aws_costs_port(node_of(c)->costs);
	struct cloud_spend spend = { 0 };
	enum rc            rc = RC_OK;

	for (int64_t i = number_of(c->in, "times", 1); !rc && i > 0; i--)
		rc = x->ops->spend(x, text(c, "account"), number_of(c->in, "from", 0), number_of(c->in, "to", 0),
		                   &spend, &c->e);
	json_put_int(&c->o, "micro", spend.micro_usd);
	json_put_int(&c->o, "until", spend.complete_until_ms);
	return rc;
}

static enum rc do_itemise(struct call *c)
{
	struct costs     *x = aws_costs_port(node_of(c)->costs);
	struct cloud_bill bill = { 0 };
	enum rc rc = x->ops->itemise(x, text(c, "account"), number_of(c->in, "from", 0), number_of(c->in, "to", 0),
	                             &c->arena, &bill, &c->e);

	json_put_array(&c->o, "items");
	for (size_t i = 0; i < bill.count; i++)
		json_add_str(&c->o, str_format(&c->arena, "%lld %lld %.*s", (long long)bill.items[i].day_ms,
		                               (long long)bill.items[i].micro_usd, STR_ARG(bill.items[i].service)));
	json_close_array(&c->o);
	json_put_int(&c->o, "micro", bill.spend.micro_usd);
	json_put_int(&c->o, "until", bill.spend.complete_until_ms);
	return rc;
}

static enum rc do_refresh_costs(struct call *c)
{
	struct aws_costs_done done;
	enum rc               rc = aws_costs_refresh(node_of(c)->costs, false, &done, &c->e);

	json_put_int(&c->o, "accounts", done.accounts);
	json_put_int(&c->o, "questions", done.questions);
	json_put_int(&c->o, "pages", done.pages);
	json_put_int(&c->o, "changed", done.changed_days);
	json_put_int(&c->o, "waiting", done.waiting);
	return rc;
}

static enum rc do_costs_state(struct call *c)
{
	struct aws_costs_state state = { 0 };
	enum rc                rc = aws_costs_look(node_of(c)->costs, &c->arena, &state, &c->e);

	json_put_int(&c->o, "pages", state.pages_this_month);
	json_put_int(&c->o, "accounts", state.accounts);
	json_put_int(&c->o, "until", state.complete_until_ms);
	json_put_int(&c->o, "refreshed", state.refreshed_ms);
	return rc;
}

/* The pool: what the settings say. */
static enum rc list_pool(void *arg, struct arena *a, struct str **ret, size_t *ret_count, struct err *e)
{
	const json_t *pool = json_object_get(tool.settings, "pool");
	size_t        count = json_array_size(pool);

	(void)arg;
	(void)e;
	*ret = arena_alloc(a, (count + 1) * sizeof(**ret));
	for (size_t i = 0; i < count; i++)
		(*ret)[i] = str_dup(a, str_from(json_string_value(json_array_get(pool, i))));
	*ret_count = count;
	return RC_OK;
}

/* --- cleaner --- */

static enum rc do_start(struct call *c)
{
	struct cleaner *x = aws_codebuild_cleaner(node_of(c)->builds);
	struct str      run = STR("");
	enum rc         rc = x->ops->start(x, text(c, "account"), text(c, "key"), &c->arena, &run, &c->e);

	json_put_str(&c->o, "run", run);
	return rc;
}

static enum rc do_check(struct call *c)
{
	static const char *const states[CLOUD_RUN_STATE_COUNT] = { "running", "succeeded", "failed" };
	struct cleaner          *x = aws_codebuild_cleaner(node_of(c)->builds);
	struct cloud_run         run = { 0 };
	enum rc                  rc = x->ops->check(x, text(c, "run"), &c->arena, &run, &c->e);

	json_put_str(&c->o, "state", str_from(rc ? "" : states[run.state]));
	json_put_str(&c->o, "text", run.text);
	return rc;
}

/* --- credentials --- */

static enum rc do_issue(struct call *c)
{
	struct credentials *x = aws_credentials_port(node_of(c)->credentials);
	struct cloud_secret secret = { text(c, "account"), text(c, "name"), text(c, "who") };

	return x->ops->issue(x, &secret, &c->e);
}

static enum rc do_withdraw(struct call *c)
{
	struct credentials *x = aws_credentials_port(node_of(c)->credentials);

	return x->ops->withdraw(x, text(c, "account"), &c->e);
}

static enum rc do_find_secret(struct call *c)
{
	struct credentials *x = aws_credentials_port(node_of(c)->credentials);
	struct cloud_secret secret = { 0 };
	bool                is_there = false;
	enum rc             rc = x->ops->find(x, text(c, "account"), &c->arena, &secret, &is_there, &c->e);

	json_put_bool(&c->o, "found", is_there);
	json_put_str(&c->o, "name", secret.name);
	json_put_str(&c->o, "who", secret.principal);
	return rc;
}

static enum rc do_renew(struct call *c)
{
	int64_t renewed = 0;
	enum rc rc = aws_credentials_renew(node_of(c)->credentials, &renewed, &c->e);

	json_put_int(&c->o, "renewed", renewed);
	return rc;
}

/* --- time --- */

static enum rc do_clock(struct call *c)
{
	atomic_fetch_add(&tool.ahead_ms, number_of(c->in, "ms", 0));
	json_put_int(&c->o, "now", clock_now(&tool.clock).ms);
	json_put_int(&c->o, "waits", atomic_load(&tool.waits));
	return RC_OK;
}

static enum rc do_stop(struct call *c)
{
	aws_access_stop(node_of(c)->access);
	return RC_OK;
}

static const struct command commands[] = {
	{ "grant", do_grant },
	{ "revoke", do_revoke },
	{ "list", do_list },
	{ "refresh_people", do_refresh_people },
	{ "load_people", do_load_people },
	{ "find", do_find },
	{ "sign_in", do_sign_in },
	{ "people", do_people },
	{ "spend", do_spend },
	{ "itemise", do_itemise },
	{ "refresh_costs", do_refresh_costs },
	{ "costs_state", do_costs_state },
	{ "start", do_start },
	{ "check", do_check },
	{ "issue", do_issue },
	{ "withdraw", do_withdraw },
	{ "find_secret", do_find_secret },
	{ "renew", do_renew },
	{ "clock", do_clock },
	{ "stop", do_stop },
};

/* --- open --- */

static const char *env(const char *name)
{
	return getenv(name);
}

static struct wall ahead_now(const struct clock *c)
{
	(void)c;
	return (struct wall){ clock_now(&clock_real).ms + atomic_load(&tool.ahead_ms) };
}

static void wait_fast(void *arg, long ms)
{
	(void)arg;
	atomic_fetch_add(&tool.ahead_ms, ms);
	atomic_fetch_add(&tool.waits, 1);
}

static void open_ports(struct node *n)
{
	const json_t *s = tool.settings;

	n->centre = aws_centre_new(aws_caller_of(n->callers, AWS_IDENTITY_CENTRE), text_of(s, "instance"),
	                           text_of(s, "store_id"));
	n->directory = aws_directory_new(&(struct aws_directory_options){
	        .centre = n->centre,
	        .store = tool.store,
	        .clock = &tool.clock,
	        .groups = { text_of(s, "user_group"), text_of(s, "manager_group"), text_of(s, "admin_group") } });
	n->access = aws_access_new(&(struct aws_access_options){
	        .centre = n->centre,
	        .directory = n->directory,
	        .clock = &tool.clock,
	        .sets = { text_of(s, "user_set"), text_of(s, "manager_set"), text_of(s, "admin_set") },
	        .wait = json_is_true(json_object_get(s, "waits")) ? NULL : wait_fast });
	n->costs = aws_costs_new(&(struct aws_costs_options){ .caller = aws_caller_of(n->callers, AWS_MANAGEMENT),
	                                                      .store = tool.store,
	                                                      .clock = &tool.clock,
	                                                      .leave_out = text_of(s, "leave_out"),
	                                                      .list = json_object_get(s, "pool") ? list_pool : NULL,
	                                                      .refresh_ms = number_of(s, "refresh", 0) });
	n->builds = aws_codebuild_new(&(struct aws_codebuild_options){ .caller = aws_caller_of(n->callers, AWS_OWN),
	                                                               .store = tool.store,
	                                                               .clock = &tool.clock,
	                                                               .project = text_of(s, "project"),
	                                                               .application_id = STR("app1234"),
	                                                               .environment_id = STR("env1234"),
	                                                               .nuke_profile_id = STR("prof123"),
	                                                               .protected = text_of(s, "protected") });
	n->credentials = aws_credentials_new(
	        &(struct aws_credentials_options){ .callers = n->callers,
	                                           .store = tool.store,
	                                           .clock = &tool.clock,
	                                           .role = text_of(s, "tenant_role"),
	                                           .key = text_of(s, "tenant_key"),
	                                           .permission_set = text_of(s, "user_set") });
}

static enum rc open_node(struct node *n, struct err *e)
{
	const json_t *s = tool.settings;
	enum rc       rc;

	n->settings = (struct aws_settings){ .env = env,
		                             .clock = &clock_real,
		                             .region = "us-east-1",
		                             .node = "node",
		                             .intermediate_arn = text_of(s, "intermediate"),
		                             .management_arn = text_of(s, "management"),
		                             .idc_arn = text_of(s, "idc"),
		                             .sandbox_role = text_of(s, "sandbox_role"),
		                             .wait_base_ms = (long)number_of(s, "wait_ms", 1) };
	if (!(rc = aws_callers_new(&n->settings, &n->callers, e)))
		open_ports(n);
	return rc;
}

static enum rc open_all(json_t *settings, struct err *e)
{
	struct str            path = text_of(settings, "store");
	struct sqlite_options file = { .path = path.p,
		                       .types = service_types,
		                       .type_count = service_type_count,
		                       .clock = &tool.clock,
		                       .cache_mb = 4 };
	enum rc               rc;

	tool.settings = settings;
	tool.clock = clock_real;
	tool.clock.wall = ahead_now;
	if (json_is_true(json_object_get(tool.settings, "log")))
		log_setup(LOG_DEBUG, LOG_JSON);
	if ((rc = sqlite_make(&file, e)) || (rc = store_sqlite_open(&file, &tool.store, e)))
		return rc;
	for (int i = 0; !rc && i < NODES; i++)
		rc = open_node(&tool.nodes[i], e);
	return rc;
}

static void close_all(void)
{
	for (int i = 0; i < NODES; i++) {
		struct node *n = &tool.nodes[i];

		aws_credentials_free(n->credentials);
		aws_codebuild_free(n->builds);
		aws_costs_free(n->costs);
		aws_access_free(n->access);
		aws_directory_free(n->directory);
		aws_centre_free(n->centre);
		aws_callers_free(n->callers);
	}
	store_close(tool.store);
}

int main(void)
{
	return lines_serve(commands, ARRAY_LEN(commands), open_all, close_all);
}

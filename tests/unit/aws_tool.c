/* SPDX-License-Identifier: Apache-2.0 */
/* aws_tool.c - opens the AWS providers and does what it is told, a line of JSON each: for tests/aws. The first line is
 * the settings. Credentials and endpoints come from the environment, as everywhere. Several calls at once, told apart
 * by "id"; several nodes on one store, by "node". */
#include <pthread.h>
#include <stdlib.h>

#include "lines_tool.h"

#include "base/clock.h"
#include "base/log.h"
#include "providers/aws/call.h"
#include "providers/aws/organisation.h"
#include "providers/aws/pace.h"
#include "service/services.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

enum { NODES_MAX = 4 };

/* One of the nodes that share the store. */
struct node {
	struct aws_settings      settings;
	char                     name[16];
	struct aws_callers      *callers;
	struct aws_organisation *organisation;
};

static struct {
	json_t          *settings;
	struct clock     clock; /* the machine's, so far off as the settings say */
	int64_t          skew_ms;
	struct store    *store;
	struct aws_pacer pacer;
	struct node      nodes[NODES_MAX];
	int64_t          denied, throttled;
	pthread_mutex_t  lock;
} tool = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct node *node_of(const struct call *c)
{
	return &tool.nodes[(size_t)number_of(c->in, "node", 0) % NODES_MAX];
}

/* --- the organisation --- */

static struct organisation *organisation_of(const struct call *c)
{
	return aws_organisation_port(node_of(c)->organisation);
}

static enum rc do_list_ous(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	struct cloud_ou     *ous = NULL;
	size_t               count = 0;
	enum rc              rc = organisation->ops->list_ous(organisation, &c->arena, &ous, &count, &c->e);

	json_put_object(&c->o, "ous");
	for (size_t i = 0; !rc && i < count; i++)
		json_put_raw(&c->o, ous[i].name.p,
		             JSON_OF(&c->arena, member_str("id", ous[i].id), member_text("parent", ous[i].parent_id)));
	json_close_object(&c->o);
	return rc;
}

static enum rc do_find_parent(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	struct str           ou = STR("");
	enum rc rc = organisation->ops->find_parent(organisation, text_of(c->in, "account"), &c->arena, &ou, &c->e);

	json_put_text(&c->o, "ou", rc ? STR("") : ou);
	return rc;
}

static enum rc do_move(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	return organisation->ops->move(organisation, text_of(c->in, "account"), text_of(c->in, "from"),
	                               text_of(c->in, "to"), &c->e);
}

static struct str show_account(struct call *c, const struct cloud_account *x)
{
	return JSON_OF(&c->arena, member_str("id", x->id), member_str("name", x->name), member_str("email", x->email),
	               member_str("parent", x->parent_id), member_int("joined_ms", x->joined_ms));
}

static enum rc do_list_accounts(struct call *c)
{
	struct organisation      *organisation = organisation_of(c);
	struct cloud_account_page page = { 0 };
	enum rc    rc = organisation->ops->list_accounts(organisation, text_of(c->in, "ou"), text_of(c->in, "cursor"),
	                                                 &c->arena, &page, &c->e);
	struct str list = STR("");

	for (size_t i = 0; !rc && i < page.count; i++) {
		struct str shown = show_account(c, &page.items[i]);

		list = str_format(&c->arena, "%.*s%s%.*s", STR_ARG(list), i ? "," : "", STR_ARG(shown));
	}
	json_put_raw(&c->o, "accounts", str_format(&c->arena, "[%.*s]", STR_ARG(list)));
	json_put_text(&c->o, "next", rc ? STR("") : page.next);
	return rc;
}

static enum rc do_describe(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	struct cloud_account x = { 0 };
	enum rc rc = organisation->ops->describe(organisation, text_of(c->in, "account"), &c->arena, &x, &c->e);

	if (!rc)
		json_put_raw(&c->o, "account", show_account(c, &x));
	return rc;
}

static enum rc do_get_tags(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	struct cloud_tag    *tags = NULL;
	size_t               count = 0;
	enum rc rc = organisation->ops->get_tags(organisation, text_of(c->in, "account"), &c->arena, &tags, &count,
	                                         &c->e);

	json_put_object(&c->o, "tags");
	for (size_t i = 0; !rc && i < count; i++)
		json_put_str(&c->o, tags[i].name.p, tags[i].value);
	json_close_object(&c->o);
	return rc;
}

static enum rc do_set_tags(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	struct cloud_tag     tags[100];
	size_t               count = 0;
	const char          *name;
	json_t              *value;

	json_object_foreach(json_object_get(c->in, "tags"), name, value) if (count < ARRAY_LEN(tags))
	        tags[count++] = (struct cloud_tag){ str_from(name), str_from(json_string_value(value)) };
	return organisation->ops->set_tags(organisation, text_of(c->in, "account"), tags, count, &c->e);
}

static enum rc do_remove_tag(struct call *c)
{
	struct organisation *organisation = organisation_of(c);
	return organisation->ops->remove_tag(organisation, text_of(c->in, "account"), text_of(c->in, "name"), &c->e);
}

/* --- any operation --- */

static enum aws_hop hop_of(const struct call *c)
{
	static const char *const names[AWS_HOP_COUNT] = { "own", "intermediate", "management", "idc" };
	int                      hop = str_word(text_of(c->in, "as"), names, AWS_HOP_COUNT);

	return hop == AWS_HOP_COUNT ? AWS_OWN : (enum aws_hop)hop;
}

static const struct aws_service *service_of(const struct call *c)
{
	for (size_t i = 0; i < AWS_SERVICE_COUNT; i++)
		if (str_eq(str_from(aws_services[i].id), text_of(c->in, "service")))
			return &aws_services[i];
	return &aws_services[AWS_STS];
}

static const char *word_of(struct call *c, const char *name)
{
	struct str text = text_of(c->in, name);

	return text.n ? str_dup(&c->arena, text).p : NULL;
}

/* {"do":"call","as":"management","service":"ORGANIZATIONS","op":"ListRoots","body":"{}"}; REST: method, path, args,
 * query. */
static enum rc do_call(struct call *c)
{
	CLEANUP(json_freep) json_t *answer = NULL;
	const json_t               *args = json_object_get(c->in, "args");
	struct str                  path_args[8];
	struct aws_op               op = { .service = service_of(c),
		                           .name = word_of(c, "op"),
		                           .permission = word_of(c, "op"),
		                           .writes = json_is_true(json_object_get(c->in, "writes")),
		                           .method = word_of(c, "method"),
		                           .path = word_of(c, "path") };
	struct aws_call             call = { .op = &op,
		                             .body = text_of(c->in, "body"),
		                             .path_args = path_args,
		                             .query = text_of(c->in, "query"),
		                             .region = word_of(c, "region"),
		                             .ms = (long)number_of(c->in, "ms", 0) };
	struct aws_caller          *sandbox = NULL;
	struct str                  account = text_of(c->in, "sandbox");
	enum rc                     rc;

	for (size_t i = 0; i < ARRAY_LEN(path_args); i++)
		path_args[i] = str_from(json_string_value(json_array_get(args, i)));
	if (account.n)
		sandbox = aws_caller_sandbox(node_of(c)->callers, account, STR(""), "nuke", 3600);
	rc = aws_do_call(sandbox ? sandbox : aws_caller_of(node_of(c)->callers, hop_of(c)), &call, &c->arena, &answer,
	                 &c->e);
	aws_caller_free(sandbox);
	if (!rc)
		json_put_raw(&c->o, "answer", json_dump(&c->arena, answer));
	return rc;
}

static enum rc do_counts(struct call *c)
{
	size_t  reads = 0, writes = 0;
	int64_t now_ms = clock_now(&clock_real).ms;
	enum rc rc = RC_OK;

	if (tool.store)
		rc = aws_pacer_count(&tool.pacer, AWS_PACE_ORG_READ, now_ms, &reads, &c->e);
	if (tool.store && !rc)
		rc = aws_pacer_count(&tool.pacer, AWS_PACE_ORG_WRITE, now_ms, &writes, &c->e);
	pthread_mutex_lock(&tool.lock);
	json_put_int(&c->o, "denied", tool.denied);
	json_put_int(&c->o, "throttled", tool.throttled);
	pthread_mutex_unlock(&tool.lock);
	json_put_int(&c->o, "read_throttles", (int64_t)reads);
	json_put_int(&c->o, "write_throttles", (int64_t)writes);
	return rc;
}

static const struct command commands[] = {
	{ "list_ous", do_list_ous }, { "find_parent", do_find_parent },
	{ "move", do_move },         { "list_accounts", do_list_accounts },
	{ "describe", do_describe }, { "get_tags", do_get_tags },
	{ "set_tags", do_set_tags }, { "remove_tag", do_remove_tag },
	{ "call", do_call },         { "counts", do_counts },
};

/* --- open --- */

static const char *env(const char *name)
{
	return getenv(name);
}

static struct wall skewed_now(const struct clock *c)
{
	(void)c;
	return (struct wall){ clock_now(&clock_real).ms + tool.skew_ms };
}

static void on_denied(void *arg, const char *permission, const char *text)
{
	(void)arg, (void)permission, (void)text;
	pthread_mutex_lock(&tool.lock);
	tool.denied++;
	pthread_mutex_unlock(&tool.lock);
}

static void on_throttled(void *arg, const struct aws_op *op)
{
	(void)arg, (void)op;
	pthread_mutex_lock(&tool.lock);
	tool.throttled++;
	pthread_mutex_unlock(&tool.lock);
}

static enum rc open_node(struct node *n, int number, struct err *e)
{
	const json_t                   *s = tool.settings;
	struct aws_organisation_options o = { .clock = &tool.clock,
		                              .sandbox_ou = text_of(s, "sandbox_ou"),
		                              .pool_config_param = text_of(s, "pool_param"),
		                              .stale_ms = (long)number_of(s, "stale_ms", 0) };
	struct str                      region = text_of(s, "region"), idc_region = text_of(s, "idc_region");
	enum rc                         rc;

	(void)snprintf(n->name, sizeof(n->name), "node%d", number);
	n->settings = (struct aws_settings){ .env = env,
		                             .clock = &tool.clock,
		                             .region = region.n ? region.p : "us-east-1",
		                             .idc_region = idc_region.n ? idc_region.p : NULL,
		                             .node = n->name,
		                             .intermediate_arn = text_of(s, "intermediate"),
		                             .management_arn = text_of(s, "management"),
		                             .idc_arn = text_of(s, "idc"),
		                             .sandbox_role = text_of(s, "sandbox_role"),
		                             .external_id = text_of(s, "external_id"),
		                             .source_identity = text_of(s, "source_identity"),
		                             .user_agent_extra = text_of(s, "agent"),
		                             .session_sec = (int)number_of(s, "session_sec", 0),
		                             .wait_base_ms = (long)number_of(s, "wait_ms", 0),
		                             .pacer = tool.store ? &tool.pacer : NULL,
		                             .on_denied = on_denied,
		                             .on_throttled = on_throttled };
	if ((rc = aws_callers_new(&n->settings, &n->callers, e)))
		return rc;
	o.management = aws_caller_of(n->callers, AWS_MANAGEMENT);
	o.own = aws_caller_of(n->callers, AWS_OWN);
	n->organisation = aws_organisation_new(&o);
	return RC_OK;
}

static enum rc open_all(json_t *settings, struct err *e)
{
	struct sqlite_options file = {
		.types = service_types, .type_count = service_type_count, .clock = &clock_real, .cache_mb = 4
	};
	struct str path = text_of(settings, "store");
	enum rc    rc = RC_OK;

	tool.settings = settings;
	tool.clock = clock_real;
	tool.skew_ms = number_of(tool.settings, "skew_ms", 0);
	if (tool.skew_ms)
		tool.clock.wall = skewed_now;
	if (json_is_true(json_object_get(tool.settings, "log")))
		log_setup(LOG_DEBUG, LOG_JSON);
	file.path = path.p;
	if (path.n && ((rc = sqlite_make(&file, e)) || (rc = store_sqlite_open(&file, &tool.store, e))))
		return rc;
	tool.pacer.store = tool.store;
	for (int i = 0; !rc && i < NODES_MAX; i++)
		rc = open_node(&tool.nodes[i], i, e);
	return rc;
}

static void close_all(void)
{
	for (int i = 0; i < NODES_MAX; i++) {
		aws_organisation_free(tool.nodes[i].organisation);
		aws_callers_free(tool.nodes[i].callers);
	}
	store_close(tool.store);
}

int main(void)
{
	return lines_serve(commands, ARRAY_LEN(commands), open_all, close_all);
}

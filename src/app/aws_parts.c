/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_parts.c - from the settings to AWS: the callers of the chain of roles, their pace, the cloud.
 *
 * Refused calls are noted in memory and stated as facts with each beat, so that there is an alarm: on this node while
 * it happens, and for DENIED_MS after. Throttles are counted in the store, for all nodes.
 */
#include "app/aws_parts.h"

#include <stdio.h>
#include <stdlib.h>

#include "app/aws_lending.h"
#include "app/config/config.h"
#include "app/instance_parts.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/store/stores.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kernel/alarm/alarm.h"
#include "kernel/alarm/node.h"
#include "net/aws_endpoint.h"
#include "providers/aws/messages/sqs.h"
#include "providers/aws/probe.h"
#include "store/store.h"

enum { DENIED_MS = 10 * 60 * 1000, THROTTLES_FOR_ALARM = 10 };

/* Accounts that the organisation is run from, separated by commas: those of the settings, each once. In the arena. */
static struct str admins_of(const struct config *c, struct arena *a)
{
	static const enum setting ids[] = { CONFIG_ORG_ACCOUNT, CONFIG_IDC_ACCOUNT, CONFIG_HUB_ACCOUNT };
	struct str                all = config_str(c, CONFIG_ADMIN_ACCOUNTS);

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct str id = config_str(c, ids[i]);

		if (id.n && !str_has(all, id))
			all = str_format(a, "%.*s%s%.*s", STR_ARG(all), all.n ? "," : "", STR_ARG(id));
	}
	return all;
}

/* --- what is refused --- */

static void on_denied(void *arg, const char *permission, const char *text)
{
	struct aws_parts  *x = arg;
	struct aws_denial *d = NULL;

	LOCKED(&x->lock);
	for (size_t i = 0; i < x->denial_count && !d; i++)
		if (strcmp(x->denials[i].permission, permission) == 0)
			d = &x->denials[i];
	if (!d && x->denial_count < AWS_DENIALS_MAX)
		d = &x->denials[x->denial_count++];
	if (d) {
		(void)snprintf(d->permission, sizeof(d->permission), "%s", permission);
		(void)snprintf(d->text, sizeof(d->text), "%s", text);
		d->at_ms = clock_now(&clock_real).ms;
	}
}

/* A fact that holds is stated with each beat, and one that has ended once more. */
static bool state(struct aws_parts *x, struct str name, int64_t value, struct str text, bool was_so)
{
	struct fact fact = { .name = name, .value = value, .text = text };

	if (!value && !was_so)
		return false;
	return store_run(x->p->store.store, fact_state, &fact, NULL, NULL) == RC_OK ? value != 0 : was_so;
}

static void tell_denials(struct aws_parts *x, struct arena *a)
{
	int64_t now_ms = clock_now(&clock_real).ms;

	for (size_t i = 0; i < AWS_DENIALS_MAX; i++) {
		struct aws_denial d;
		bool              is_stated;

		pthread_mutex_lock(&x->lock);
		d = x->denials[i];
		pthread_mutex_unlock(&x->lock);
		if (!d.at_ms)
			continue;
		is_stated = state(x, str_format(a, FACT_REFUSED "%s", d.permission), now_ms - d.at_ms < DENIED_MS,
		                  str_from(d.text), d.is_stated);
		pthread_mutex_lock(&x->lock);
		x->denials[i].is_stated = is_stated;
		pthread_mutex_unlock(&x->lock);
	}
}

static void tell_throttles(struct aws_parts *x, struct arena *a)
{
	int64_t now_ms = clock_now(&x->p->clock).ms;

	for (int i = AWS_PACE_NONE + 1; i < AWS_PACE_COUNT; i++) {
		struct str name = str_format(a, FACT_THROTTLES "%s", aws_rates[i].name);
		size_t     count = 0;

		if (aws_pacer_count(&x->pacer, (enum aws_pace)i, now_ms, &count, NULL))
			continue; /* the store is away; it comes again */
		x->was_throttled[i] = state(x, name, count >= THROTTLES_FOR_ALARM ? (int64_t)count : 0, STR(""),
		                            x->was_throttled[i]);
	}
}

void aws_parts_tell(struct aws_parts *x)
{
	CLEANUP(arena_fini) struct arena a = { 0 };

	if (!x || !x->callers)
		return;
	tell_denials(x, &a);
	if (x->cloud)
		tell_throttles(x, &a);
}

/* --- put together --- */

/* The one that is set, else {namespace}_Isb..., as an Innovation Sandbox names it. */
static struct str name_of(const struct config *c, enum setting id, const char *ending, struct arena *a)
{
	struct str given = config_str(c, id), ns = config_str(c, CONFIG_ISB_NAMESPACE);

	return given.n ? given : str_format(a, "%.*s_Isb%s", STR_ARG(ns), ending);
}

static void read_people(const struct config *c, struct aws_cloud_options *o, struct arena *a)
{
	static const struct {
		enum setting group, permissions;
		const char  *group_ending, *permissions_ending;
	} rows[AWS_PEOPLE_COUNT] = {
		[AWS_PEOPLE_USER] = { CONFIG_IDC_USERS, CONFIG_IDC_USERS_PS, "Users", "UsersPS" },
		[AWS_PEOPLE_MANAGER] = { CONFIG_IDC_MANAGERS, CONFIG_IDC_MANAGERS_PS, "Managers", "ManagersPS" },
		[AWS_PEOPLE_ADMIN] = { CONFIG_IDC_ADMINS, CONFIG_IDC_ADMINS_PS, "Admins", "AdminsPS" }
	};

	for (size_t i = 0; i < AWS_PEOPLE_COUNT; i++) {
		o->groups[i] = name_of(c, rows[i].group, rows[i].group_ending, a);
		o->permission_sets[i] = name_of(c, rows[i].permissions, rows[i].permissions_ending, a);
	}
}

static void read_options(struct aws_parts *x, const struct config *c)
{
	x->options = (struct aws_cloud_options){ .callers = x->callers,
		                                 .store = x->p->store.store,
		                                 .clock = &clock_real,
		                                 .is_guard = guard_parts_is_wanted(c),
		                                 .sandbox_ou = config_str(c, CONFIG_SANDBOX_OU),
		                                 .pool_config_param = config_str(c, CONFIG_POOL_PARAM),
		                                 .idc_instance = config_str(c, CONFIG_IDC_INSTANCE),
		                                 .idc_store = config_str(c, CONFIG_IDC_STORE),
		                                 .costs_leave_out = config_str(c, CONFIG_CE_LEAVE_OUT),
		                                 .costs_refresh_ms = config_number(c, CONFIG_CE_REFRESH) * 1000,
		                                 .pool = aws_lending_pool,
		                                 .pool_arg = x->p->store.store,
		                                 .appconfig_application = config_str(c, CONFIG_APPCONFIG_APP),
		                                 .appconfig_environment = config_str(c, CONFIG_APPCONFIG_ENV),
		                                 .appconfig_nuke_profile = config_str(c, CONFIG_APPCONFIG_NUKE),
		                                 .admin_accounts = admins_of(c, &x->arena) };
	if (config_number(c, CONFIG_CLEANER) == CLEANING_CODEBUILD)
		x->options.codebuild_project = config_str(c, CONFIG_CODEBUILD);
	if (config_number(c, CONFIG_CREDENTIALS)) {
		x->options.tenant_role = config_str(c, CONFIG_TENANT_ROLE);
		x->options.tenant_key = config_str(c, CONFIG_CREDENTIALS_KEY);
	}
	read_people(c, &x->options, &x->arena);
}

static enum rc open_callers(struct aws_parts *x, const struct config *c, struct err *e)
{
	struct str          role = config_str(c, CONFIG_SANDBOX_ROLE);
	const char         *idc_region = config_text(c, CONFIG_IDC_REGION);
	struct aws_settings s = { .env = app_env,
		                  .clock = &clock_real,
		                  .region = config_text(c, CONFIG_AWS_REGION),
		                  .idc_region = idc_region ? idc_region : config_text(c, CONFIG_AWS_REGION),
		                  .node = x->p->node,
		                  .intermediate_arn = config_str(c, CONFIG_INTERMEDIATE_ROLE),
		                  .management_arn = config_str(c, CONFIG_ORG_ROLE),
		                  .idc_arn = config_str(c, CONFIG_IDC_ROLE),
		                  .sandbox_role = role.n ? role : config_str(c, CONFIG_NUKE_ROLE),
		                  .external_id = config_str(c, CONFIG_EXTERNAL_ID),
		                  .source_identity = config_str(c, CONFIG_SOURCE_IDENTITY),
		                  .user_agent_extra = config_str(c, CONFIG_USER_AGENT),
		                  .session_sec = (int)config_number(c, CONFIG_AWS_SESSION),
		                  .pacer = &x->pacer,
		                  .on_denied = on_denied,
		                  .arg = x };

	x->pacer.store = x->p->store.store;
	x->pacer.org_times = config_number(x->p->config, CONFIG_ORG_PACE);
	return aws_callers_new(&s, &x->callers, e);
}

static void open_probe(struct aws_parts *x, const struct config *c)
{
	static const enum setting queues[AWS_PROBE_QUEUES] = { CONFIG_GUARD_QUEUE, CONFIG_ECS_QUEUE,
		                                               CONFIG_PROVISION_QUEUE, CONFIG_LIFECYCLE_QUEUE,
		                                               CONFIG_DEPROVISION_QUEUE };
	bool                      is_guard = x->options.is_guard;
	struct aws_probe_options  o = { .callers = x->callers,
		                        .table = config_str(c, CONFIG_ACCOUNT_TABLE),
		                        .ejects = is_guard && config_number(c, CONFIG_REST_EJECTS),
		                        .tenant_queue = config_str(c, CONFIG_TENANT_QUEUE),
		                        .bus = config_str(c, CONFIG_EVENT_BUS),
		                        .topic = config_str(c, CONFIG_SNS_TOPIC),
		                        .sends_mail = config_number(c, CONFIG_MAILER) == MAIL_BY_SES,
		                        .region_of = sqs_region };

	if (x->cloud) {
		o.cloud = &x->options;
		o.organisation = x->ports.organisation;
		o.costs = aws_cloud_costs(x->cloud);
		o.directory = aws_cloud_directory(x->cloud);
		o.makes_credentials = !is_guard && config_number(c, CONFIG_CREDENTIALS);
		o.has_nuke = !is_guard && config_number(c, CONFIG_CLEANER) == CLEANING_NUKE;
	}
	if (instance_parts_is_aws(c)) {
		x->instances = instance_parts_aws(c, x->callers);
		o.more = aws_instances_permissions(&o.more_count);
		o.more_arg = &x->instances;
		o.more_policy = "instances.json";
	}
	if (is_guard && config_number(c, CONFIG_WAKE) == WAKE_SCHEDULER)
		o.scheduler_group = config_str(c, CONFIG_SCHEDULER_GROUP);
	for (size_t i = 0; i < AWS_PROBE_QUEUES; i++)
		o.queues[i] = config_str(c, queues[i]);
	x->probe = aws_probe_new(&o);
}

/* --- the probe --- */

static bool has_failed(const struct probe_row *row)
{
	return row->verdict == PROBE_DENIED || row->verdict == PROBE_MISSING;
}

static void print_rows(const struct probe_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct probe_row *r = &rows[i];

		fprintf(stderr, "  %-11s %-48.*s as %.*s\n", probe_verdict_names[r->verdict], STR_ARG(r->permission),
		        STR_ARG(r->as));
		if (r->text.n)
			fprintf(stderr, "              %.*s\n", STR_ARG(r->text));
		if (r->change.n)
			fprintf(stderr, "              to do: %.*s\n", STR_ARG(r->change));
	}
}

static void log_row(const struct probe_row *r)
{
	struct log_field fields[] = { LOG_STR("permission", r->permission), LOG_STR("as", r->as),
		                      LOG_STR("text", r->text), LOG_STR("change", r->change) };

	log_write(LOG_WARNING, "aws", fields, ARRAY_LEN(fields), "%.*s: %s", STR_ARG(r->permission),
	          probe_verdict_names[r->verdict]);
}

enum rc aws_parts_probe(struct aws_parts *x, struct err *e)
{
	struct cloud_probe              *probe = x->probe ? aws_probe_port(x->probe) : NULL;
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct probe_row                *rows = NULL;
	struct str                       failed = STR("");
	size_t                           count = 0, fine = 0;
	enum rc                          rc = probe ? probe->look(probe, false, &a, &rows, &count, e) : RC_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		fine += rows[i].verdict == PROBE_OK;
		if (rows[i].verdict == PROBE_OK || rows[i].verdict == PROBE_NOT_TRIED)
			continue;
		if (has_failed(&rows[i]) && rows[i].is_needed) {
			failed = str_format(&a, "%.*s%s%.*s", STR_ARG(failed), failed.n ? ", " : "",
			                    STR_ARG(rows[i].permission));
			continue;
		}
		log_row(&rows[i]);
		if (has_failed(&rows[i]))
			on_denied(x, str_dup(&a, rows[i].permission).p, str_dup(&a, rows[i].text).p);
	}
	if (failed.n) {
		fprintf(stderr, "leasehold: AWS does not allow what is needed:\n");
		print_rows(rows, count);
		rc = err_set(e, RC_DENIED, "AWS: refused or missing: %.*s (docs/aws.md)", STR_ARG(failed));
	} else if (!rc && probe) {
		log_write(LOG_INFO, "aws", NULL, 0,
		          "%zu of %zu permissions are there, the others were not tried or are not needed", fine, count);
	}
	return rc;
}

enum rc aws_parts_new(struct parts *p, struct err *e)
{
	struct aws_parts *x = p->aws = mem_new(struct aws_parts);
	enum rc           rc;

	x->p = p;
	pthread_mutex_init(&x->lock, NULL);
	if (!aws_parts_is_wanted(p->config) && !messages_is_wanted(p->config) && !instance_parts_is_aws(p->config))
		return RC_OK; /* what the environment says about AWS does not concern us */
	if ((rc = open_callers(x, p->config, e)))
		return rc;
	if (aws_parts_is_wanted(p->config)) {
		read_options(x, p->config);
		x->cloud = aws_cloud_new(&x->options);
		x->ports = aws_cloud_ports(x->cloud);
	}
	if (x->cloud || instance_parts_is_aws(p->config))
		open_probe(x, p->config);
	return RC_OK;
}

void aws_parts_free(struct aws_parts *x)
{
	if (!x)
		return;
	aws_probe_free(x->probe);
	aws_cloud_free(x->cloud);
	aws_callers_free(x->callers);
	pthread_mutex_destroy(&x->lock);
	arena_fini(&x->arena);
	free(x);
}

void aws_parts_warn(const struct config *c)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *url, *last = "";

	if (!aws_parts_is_wanted(c))
		return;
	for (size_t i = 0; i < AWS_SERVICE_COUNT; i++) {
		if (aws_endpoint(app_env, aws_services[i].id, &a, &url, NULL) || !url || strcmp(url, last) == 0)
			continue;
		log_write(LOG_WARNING, "aws", NULL, 0,
		          "%s is called at %s, not at AWS's own address (AWS_ENDPOINT_URL...)", aws_services[i].host,
		          url);
		last = url;
	}
}

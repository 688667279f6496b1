/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callers.c - the chain of roles: our own credentials, then the intermediate role, then the one that a service is
 * called with.
 *
 * A caller is credentials and a region. aws_identity.c gets its credentials at the first call and renews them in
 * time; those of a role come from STS, called with the credentials of the hop before it. So a refused hop shows up in
 * the call that needs it, and the error names the role.
 *
 * Nothing is stored. A hop whose ARN is not set is skipped: its caller has the credentials of the hop before it.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/lock.h"
#include "base/mem.h"
#include "net/aws.h"
#include "net/aws_endpoint.h"
#include "providers/aws/call_private.h"

enum {
	CLIENTS_MAX = 64,
	SESSION_NAME_MAX = 64,
	DEFAULT_SESSION_SEC = 900,
	WAIT_BASE_MS = 1000,
	WAIT_MAX_MS = 20000,
	CONNECT_MS = 3000,
	ATTEMPT_MS = 10000,
};

struct aws_caller {
	struct aws_callers  *all;
	const char          *hop, *region;
	struct aws_role      role; /* arn empty: none of its own */
	struct aws_identity *identity;
	bool                 is_identity_own; /* else it is that of the hop before */
	struct arena         arena;

	pthread_mutex_t lock; /* what follows */
	struct {
		const struct aws_service *service;
		struct aws_client        *client;
		char                     *region;
	} clients[CLIENTS_MAX];
	size_t client_count;
};

struct aws_callers {
	struct aws_settings settings;
	struct arena        arena;
	const char         *agent;
	const char         *endpoints[AWS_SERVICE_COUNT]; /* NULL: the real one */
	struct aws_caller  *hops[AWS_HOP_COUNT];
};

/* --- a caller --- */

static struct str session_name(const struct aws_callers *all, const char *purpose, struct arena *a)
{
	struct str name = str_format(a, "leasehold-%s-%s", all->settings.node, purpose);

	return name.n <= SESSION_NAME_MAX ? name : str_format(a, "leasehold-%s", purpose);
}

/* With the role, if there is one, by the credentials of the caller before it. */
static struct aws_caller *new_caller(struct aws_callers *all, struct aws_caller *before, const char *hop,
                                     const char *region, const struct aws_role *role)
{
	struct aws_caller *c = mem_new(struct aws_caller);

	*c = (struct aws_caller){ .all = all, .hop = hop, .region = region };
	pthread_mutex_init(&c->lock, NULL);
	if (before && !role->arn.n) {
		c->identity = before->identity;
		c->role.arn = before->role.arn;
		return c;
	}
	c->is_identity_own = true;
	if (before) {
		c->role = *role;
		c->role.arn = str_dup(&c->arena, role->arn);
		c->role.session = str_dup(&c->arena, role->session);
		c->role.sts = aws_caller_client(before, &aws_services[AWS_STS], before->region);
	}
	c->identity = aws_identity_new(&(struct aws_identity_options){ .env = all->settings.env,
	                                                               .clock = all->settings.clock,
	                                                               .sts_endpoint = all->endpoints[AWS_STS],
	                                                               .role = before ? &c->role : NULL });
	return c;
}

void aws_caller_free(struct aws_caller *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->client_count; i++) {
		aws_client_free(c->clients[i].client);
		free(c->clients[i].region);
	}
	if (c->is_identity_own)
		aws_identity_free(c->identity);
	pthread_mutex_destroy(&c->lock);
	arena_fini(&c->arena);
	free(c);
}

static struct aws_client *new_client(const struct aws_caller *c, const struct aws_service *service, const char *region)
{
	const struct aws_settings       *s = &c->all->settings;
	const char                      *endpoint = c->all->endpoints[service - aws_services];
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct aws_client_options        o = { .region = region,
		                               .service = service->host,
		                               .signed_as = service->signed_as,
		                               .user_agent = c->all->agent,
		                               .identity = c->identity,
		                               .clock = s->clock,
		                               .connect_timeout_ms = CONNECT_MS,
		                               .attempt_timeout_ms = ATTEMPT_MS,
		                               .total_timeout_ms = AWS_CALL_MS,
		                               .wait_base_ms = s->wait_base_ms ? s->wait_base_ms : WAIT_BASE_MS,
		                               .wait_max_ms = WAIT_MAX_MS };

	if (endpoint)
		o.endpoint = endpoint;
	else if (strchr(service->host, '.'))
		o.endpoint = str_format(&a, "https://%s", service->host).p;
	return aws_client_new(&o);
}

/* As many as there are services; regions are few, and those of one caller are known from the settings. */
struct aws_client *aws_caller_client(struct aws_caller *c, const struct aws_service *service, const char *region)
{
	struct aws_client *found = NULL;

	LOCKED(&c->lock);
	for (size_t i = 0; i < c->client_count && !found; i++)
		if (c->clients[i].service == service && strcmp(c->clients[i].region, region) == 0)
			found = c->clients[i].client;
	if (!found && c->client_count < CLIENTS_MAX) {
		found = new_client(c, service, region);
		c->clients[c->client_count].service = service;
		c->clients[c->client_count].region = mem_strdup(region);
		c->clients[c->client_count++].client = found;
	}
	return found;
}

struct aws_identity *aws_caller_identity(struct aws_caller *c)
{
	return c->identity;
}

const char *aws_caller_region(const struct aws_caller *c)
{
	return c->region;
}

struct str aws_caller_arn(const struct aws_caller *c)
{
	return c->role.arn;
}

const struct aws_settings *aws_caller_settings(const struct aws_caller *c)
{
	return &c->all->settings;
}

const char *aws_caller_hop(const struct aws_caller *c)
{
	return c->hop;
}

/* --- all of them --- */

static struct aws_role make_role(struct aws_callers *all, struct str arn, const char *purpose, int seconds,
                                 struct arena *a)
{
	const struct aws_settings *s = &all->settings;

	return (struct aws_role){ .arn = arn,
		                  .session = session_name(all, purpose, a),
		                  .external_id = s->external_id,
		                  .source_identity = s->source_identity,
		                  .seconds = seconds };
}

static enum rc find_endpoints(struct aws_callers *c, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < AWS_SERVICE_COUNT; i++)
		rc = aws_endpoint(c->settings.env, aws_services[i].id, &c->arena, &c->endpoints[i], e);
	return rc;
}

enum rc aws_callers_new(const struct aws_settings *s, struct aws_callers **ret, struct err *e)
{
	/* clang-format off */
	const struct {
		const char  *hop, *purpose;
		enum aws_hop before;
		struct str   arn;
		const char  *region;
	} rows[AWS_HOP_COUNT] = {
		[AWS_OWN]             = { "own credentials", "",    AWS_OWN,          STR(""),             s->region     },
		[AWS_INTERMEDIATE]    = { "intermediate",    "hub", AWS_OWN,          s->intermediate_arn, s->region     },
		[AWS_MANAGEMENT]      = { "management",      "org", AWS_INTERMEDIATE, s->management_arn,   s->region     },
		[AWS_IDENTITY_CENTRE] = { "identity centre", "idc", AWS_INTERMEDIATE, s->idc_arn,          s->idc_region },
	};
	/* clang-format on */
	struct aws_callers *c = mem_new(struct aws_callers);
	enum rc             rc;

	c->settings = *s;
	if (!c->settings.session_sec)
		c->settings.session_sec = DEFAULT_SESSION_SEC;
	c->agent = str_format(&c->arena, "leasehold/%s%s%.*s", LEASEHOLD_VERSION, s->user_agent_extra.n ? " " : "",
	                      STR_ARG(s->user_agent_extra))
	                   .p;
	if ((rc = find_endpoints(c, e))) {
		aws_callers_free(c);
		return rc;
	}
	for (size_t i = 0; i < AWS_HOP_COUNT; i++) {
		struct aws_role role = make_role(c, rows[i].arn, rows[i].purpose, c->settings.session_sec, &c->arena);

		c->hops[i] = new_caller(c, i == AWS_OWN ? NULL : c->hops[rows[i].before], rows[i].hop,
		                        rows[i].region ? rows[i].region : s->region, &role);
	}
	*ret = c;
	return RC_OK;
}

void aws_callers_free(struct aws_callers *c)
{
	if (!c)
		return;
	for (size_t i = AWS_HOP_COUNT; i-- > 0;)
		aws_caller_free(c->hops[i]);
	arena_fini(&c->arena);
	free(c);
}

struct aws_caller *aws_caller_of(struct aws_callers *c, enum aws_hop hop)
{
	return c ? c->hops[hop] : NULL;
}

struct aws_caller *aws_caller_sandbox(struct aws_callers *c, struct str account_id, struct str role,
                                      const char *purpose, int seconds)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       name = role.n ? role : c->settings.sandbox_role;
	struct str                       arn = aws_role_arn(c->settings.region, account_id, name, &a);
	struct aws_role how = make_role(c, arn, purpose, seconds ? seconds : c->settings.session_sec, &a);

	return new_caller(c, c->hops[AWS_INTERMEDIATE], "sandbox account", c->settings.region, &how);
}

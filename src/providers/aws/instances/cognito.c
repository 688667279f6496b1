/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cognito.c - a tenant's identity pool of Cognito, with the client that its site uses and the domain of its sign-in
 * pages.
 *
 * Cognito has no token that makes a creation safe to repeat, and two pools may have the same name: so pools are first
 * looked for by name, and removal goes on until no pool of that name is left. The same goes for a pool's clients. A
 * pool with a domain cannot be deleted, and a domain that was deleted takes a while to go.
 */
#include "providers/aws/instances/cognito.h"

enum { POOLS_MAX = 5, CLIENTS_MAX = 5, PAGE = 60 };

/* clang-format off */
const struct aws_error_row cognito_errors[] = {
	{ "ResourceNotFoundException",       RC_NOT_FOUND },
	{ "UserNotFoundException",           RC_NOT_FOUND },
	{ "UsernameExistsException",         RC_CONFLICT },
	{ "AliasExistsException",            RC_CONFLICT },
	{ "InvalidParameterException",       RC_UNAVAILABLE, "should be deleted first" }, /* the domain, which is going */
	{ "NotAuthorizedException",          RC_DENIED },
	{ "LimitExceededException",          RC_INVALID },
	{ "InvalidPasswordException",        RC_INVALID },
	{ "InvalidOAuthFlowException",       RC_INVALID },
	{ "UserPoolTaggingException",        RC_INVALID },
	{ "ConcurrentModificationException", RC_UNAVAILABLE },
	{ "InternalErrorException",          RC_UNAVAILABLE },
	{ NULL, RC_OK },
};
static const struct aws_op
	list_pools      = COGNITO_OP("ListUserPools", false, false),
	create_pool     = COGNITO_OP("CreateUserPool", true, false),
	describe_pool   = COGNITO_OP("DescribeUserPool", false, false),
	delete_pool     = COGNITO_OP("DeleteUserPool", true, false),
	set_mfa         = COGNITO_OP("SetUserPoolMfaConfig", true, false),
	list_clients    = COGNITO_OP("ListUserPoolClients", false, false),
	create_client   = COGNITO_OP("CreateUserPoolClient", true, true),
	describe_client = COGNITO_OP("DescribeUserPoolClient", false, true),
	delete_client   = COGNITO_OP("DeleteUserPoolClient", true, false),
	create_domain   = COGNITO_OP("CreateUserPoolDomain", true, false),
	describe_domain = COGNITO_OP("DescribeUserPoolDomain", false, false),
	delete_domain   = COGNITO_OP("DeleteUserPoolDomain", true, false);
/* clang-format on */

static struct str pool_name(const struct site *s)
{
	return str_format(s->a, "bbws-tenant-%s-user-pool", s->t);
}

static struct str client_name(const struct site *s)
{
	return str_format(s->a, "bbws-tenant-%s-client", s->t);
}

static struct str domain_name(const struct site *s)
{
	return str_format(s->a, "bbws-%.*s-%s", STR_ARG(s->x->o.env), s->h);
}

/* --- finding by name --- */

struct search {
	struct site *s;
	const char  *list, *name, *id; /* of the answer */
	struct str   pool;             /* whose clients; empty: pools */
	struct str   wanted, found;
	struct str   skip; /* not this one */
};

static enum rc take_item(void *arg, const json_t *item, struct err *e UNUSED)
{
	struct search *x = arg;
	struct str     name, id;

	if (!x->found.n && json_get_text(item, x->name, &name) && str_eq(name, x->wanted) &&
	    json_get_text(item, x->id, &id) && !str_eq(id, x->skip))
		x->found = str_dup(x->s->a, id);
	return RC_OK;
}

static enum rc search(struct search *x, const struct aws_op *op, struct err *e)
{
	struct str        body = JSON_OF(x->s->a, member_if_any(member_str("UserPoolId", x->pool)),
	                                 member_int("MaxResults", PAGE));
	struct aws_paging paging = { .call = { .op = op, .body = body, .ms = SITE_CALL_MS },
		                     .token = "NextToken",
		                     .list = x->list,
		                     .each = take_item,
		                     .arg = x };

	return aws_pages(x->s->x->caller, &paging, e);
}

/* state: the domain that it has. */
static enum rc find_another(struct site *s, struct str skip, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct search               x = { s, "UserPools", "Name", "Id", STR(""), pool_name(s), STR(""), skip };
	const json_t               *pool;
	enum rc                     rc = search(&x, &list_pools, e);

	*ret = (struct found){ 0 };
	if (rc || !x.found.n)
		return rc;
	if ((rc = site_do(s, &describe_pool, JSON_OF(s->a, member_str("UserPoolId", x.found)), &got, e)))
		return err_forgive(e, rc, RC_NOT_FOUND);
	pool = json_object_get(got, "UserPool");
	*ret = (struct found){ .is_there = true, .id = x.found };
	json_take_text(pool, "Arn", s->a, &ret->arn);
	json_take_text(pool, "Domain", s->a, &ret->state);
	json_take_text(json_object_get(pool, "UserPoolTags"), TAG_KEY, s->a, &ret->key);
	return RC_OK;
}

static enum rc find_pool(struct site *s, struct found *ret, struct err *e)
{
	return find_another(s, STR(""), ret, e);
}

enum rc cognito_pool(struct site *s, struct str *ret_id, struct err *e)
{
	struct found f;
	enum rc      rc = find_pool(s, &f, e);

	if (!rc && !f.is_there)
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no identity pool", STR_ARG(s->tenant));
	*ret_id = f.id;
	return rc;
}

static enum rc find_client(struct site *s, struct str pool, struct str skip, struct str *ret, struct err *e)
{
	struct search x = { s, "UserPoolClients", "ClientName", "ClientId", pool, client_name(s), STR(""), skip };
	enum rc       rc = search(&x, &list_clients, e);

	*ret = x.found;
	return rc;
}

/* --- made --- */

/* A second attempt would make a second one: after a lost reply, the caller looks first. */
static enum rc do_once(struct site *s, const struct aws_op *op, struct str body, json_t **ret, struct err *e)
{
	return aws_do_call(s->x->caller,
	                   &(struct aws_call){ .op = op, .body = body, .ms = SITE_CALL_MS, .attempts = 1 }, s->a, ret,
	                   e);
}

static enum rc make_pool(struct site *s, struct found *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str                  body;
	enum rc                     rc;

	body = JSON_OF(
	        s->a, member_str("PoolName", pool_name(s)),
	        member_raw(
	                "Policies",
	                STR("{\"PasswordPolicy\":{\"MinimumLength\":8,\"RequireUppercase\":true,\"RequireLowercase\":true,"
	                    "\"RequireNumbers\":true,\"RequireSymbols\":true,\"TemporaryPasswordValidityDays\":7}}")),
	        member_raw("AutoVerifiedAttributes", STR("[\"email\"]")),
	        member_raw("UsernameAttributes", STR("[\"email\"]")),
	        member_raw("UsernameConfiguration", STR("{\"CaseSensitive\":false}")),
	        member_word("MfaConfiguration", "OFF"),
	        member_raw("AccountRecoverySetting",
	                   STR("{\"RecoveryMechanisms\":[{\"Priority\":1,\"Name\":\"verified_email\"}]}")),
	        member_raw("AdminCreateUserConfig", STR("{\"AllowAdminCreateUserOnly\":true}")),
	        member_raw("UserPoolTags", site_tag_map(s)));
	if ((rc = do_once(s, &create_pool, body, &made, e)))
		return rc;
	*ret = (struct found){ .is_there = true, .key = s->spec->instance };
	json_take_text(json_object_get(made, "UserPool"), "Id", s->a, &ret->id);
	json_take_text(json_object_get(made, "UserPool"), "Arn", s->a, &ret->arn);
	return RC_OK;
}

static enum rc offer_mfa(struct site *s, struct str pool, struct err *e)
{
	return site_do(s, &set_mfa,
	               JSON_OF(s->a, member_str("UserPoolId", pool), member_word("MfaConfiguration", "OPTIONAL"),
	                       member_raw("SoftwareTokenMfaConfiguration", STR("{\"Enabled\":true}"))),
	               NULL, e);
}

static enum rc add_client(struct site *s, struct str pool, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *made = NULL;
	struct str url = str_format(s->a, "https://%.*s/tenant/%s", STR_ARG(s->x->o.domain), s->t), body;
	enum rc    rc;

	body = JSON_OF(s->a, member_str("UserPoolId", pool), member_str("ClientName", client_name(s)),
	               member_bool("GenerateSecret", true),
	               member_raw("ExplicitAuthFlows",
	                          STR("[\"ALLOW_USER_PASSWORD_AUTH\",\"ALLOW_REFRESH_TOKEN_AUTH\"]")),
	               member_raw("SupportedIdentityProviders", STR("[\"COGNITO\"]")),
	               member_raw("CallbackURLs", str_format(s->a, "[\"%s/callback\"]", url.p)),
	               member_raw("LogoutURLs", str_format(s->a, "[\"%s/logout\"]", url.p)),
	               member_raw("AllowedOAuthFlows", STR("[\"code\"]")),
	               member_raw("AllowedOAuthScopes", STR("[\"openid\",\"email\",\"profile\"]")),
	               member_bool("AllowedOAuthFlowsUserPoolClient", true));
	if ((rc = do_once(s, &create_client, body, &made, e)))
		return rc;
	if (!json_take_text(json_object_get(made, "UserPoolClient"), "ClientId", s->a, ret) || !ret->n)
		return err_set(e, RC_TIMEOUT, "CreateUserPoolClient: the answer has no id");
	return RC_OK;
}

/* The one that is there, else a new one. A request that went out twice has made two: before the site is told of one of
 * them, the others go. */
static enum rc make_client(struct site *s, struct str pool, struct str *ret, struct err *e)
{
	struct str twin;
	enum rc    rc = find_client(s, pool, STR(""), ret, e);

	if (!rc && !ret->n)
		rc = add_client(s, pool, ret, e);
	for (int i = 0; !rc && i < CLIENTS_MAX; i++) {
		if ((rc = find_client(s, pool, *ret, &twin, e)) || !twin.n)
			return rc;
		rc = site_do(s, &delete_client,
		             JSON_OF(s->a, member_str("UserPoolId", pool), member_str("ClientId", twin)), NULL, e);
		rc = err_forgive(e, rc, RC_NOT_FOUND);
	}
	return rc;
}

static enum rc make_domain(struct site *s, struct str pool, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct str                  name = domain_name(s), holder = STR(""), status = STR("");
	enum rc rc = site_do(s, &describe_domain, JSON_OF(s->a, member_str("Domain", name)), &got, e);

	if (rc)
		return rc;
	json_get_text(json_object_get(got, "DomainDescription"), "UserPoolId", &holder);
	json_get_text(json_object_get(got, "DomainDescription"), "Status", &status);
	if (str_eq(status, STR("DELETING")))
		return err_set(e, RC_UNAVAILABLE, "the domain %s is still being deleted", name.p);
	if (str_eq(holder, pool))
		return RC_OK;
	if (holder.n)
		return err_set(e, RC_CONFLICT, "the domain %s belongs to another pool, %.*s", name.p, STR_ARG(holder));
	return site_do(s, &create_domain, JSON_OF(s->a, member_str("Domain", name), member_str("UserPoolId", pool)),
	               NULL, e);
}

static enum rc drop_pool(struct site *s, const struct found *f, struct err *e)
{
	struct str domain = JSON_OF(s->a, member_str("Domain", f->state), member_str("UserPoolId", f->id));
	struct str pool = JSON_OF(s->a, member_str("UserPoolId", f->id));
	enum rc    rc = RC_OK;

	if (f->state.n)
		rc = err_forgive(e, site_do(s, &delete_domain, domain, NULL, e), RC_NOT_FOUND);
	return rc ? rc : err_forgive(e, site_do(s, &delete_pool, pool, NULL, e), RC_NOT_FOUND);
}

/* A request that went out twice, on a connection that broke, has made two pools. Before one of them gets its domain,
 * the others go. */
static enum rc drop_twins(struct site *s, struct str kept, struct err *e)
{
	struct found twin = { .is_there = true };
	enum rc      rc = RC_OK;

	for (int i = 0; !rc && twin.is_there && i < POOLS_MAX; i++)
		if (!(rc = find_another(s, kept, &twin, e)) && twin.is_there) {
			if (twin.state.n || !str_eq(twin.key, s->spec->instance))
				return err_set(e, RC_CONFLICT, "there is another pool %s, %.*s", pool_name(s).p,
				               STR_ARG(twin.id));
			rc = drop_pool(s, &twin, e);
		}
	return rc;
}

static struct str outputs_of(const struct site *s, struct str pool, struct str client, struct str key)
{
	return JSON_OF(s->a, member_str("id", pool), member_str("name", pool_name(s)), member_str("client", client),
	               member_str("domain", domain_name(s)), member_if_any(member_str("instance", key)));
}

enum rc cognito_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	struct found f;
	struct str   client = STR("");
	enum rc      rc = site_make_once(s, INSTANCE_IDENTITY, find_pool, make_pool, &f, e);

	if (rc || (rc = drop_twins(s, f.id, e)) || (rc = offer_mfa(s, f.id, e)) ||
	    (rc = make_client(s, f.id, &client, e)) || (rc = make_domain(s, f.id, e)))
		return rc;
	*ret_outputs = outputs_of(s, f.id, client, f.key);
	return RC_OK;
}

enum rc cognito_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct found f;
	struct str   client = STR("");
	enum rc      rc = find_pool(s, &f, e);

	if (!rc && f.is_there)
		rc = find_client(s, f.id, STR(""), &client, e);
	*ret_exists = f.is_there;
	*ret_outputs = outputs_of(s, f.id, client, f.key);
	return rc;
}

/* --- removed --- */

enum rc cognito_remove(struct site *s, struct err *e)
{
	struct found f = { .is_there = true };
	enum rc      rc = RC_OK;

	for (int i = 0; !rc && f.is_there && i < POOLS_MAX; i++)
		if (!(rc = find_pool(s, &f, e)) && f.is_there)
			rc = drop_pool(s, &f, e);
	return rc;
}

/* --- for the site --- */

enum rc cognito_signin(struct site *s, struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *got = NULL;
	struct str                  pool, client, secret = STR(""), base;
	enum rc                     rc;

	if ((rc = cognito_pool(s, &pool, e)) || (rc = find_client(s, pool, STR(""), &client, e)) ||
	    (rc = site_do(s, &describe_client,
	                  JSON_OF(s->a, member_str("UserPoolId", pool), member_str("ClientId", client)), &got, e)))
		return rc;
	json_take_text(json_object_get(got, "UserPoolClient"), "ClientSecret", s->a, &secret);
	base = str_format(s->a, "https://%s.auth.%s.amazoncognito.com/oauth2", domain_name(s).p,
	                  aws_caller_region(s->x->caller));
	*ret = JSON_OF(s->a, member_word("provider", "custom"), member_str("client_id", client),
	               member_str("client_secret", secret), member_word("scope", "openid email profile"),
	               member_str("authorize_url", str_format(s->a, "%s/authorize", base.p)),
	               member_str("token_url", str_format(s->a, "%s/token", base.p)),
	               member_str("userinfo_url", str_format(s->a, "%s/userInfo", base.p)));
	return RC_OK;
}

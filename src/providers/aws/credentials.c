/* SPDX-License-Identifier: Apache-2.0 */
/*
 * credentials.c - temporary credentials, from STS into Secrets Manager, for one person's eyes.
 *
 * They belong to a role in the lent account, last an hour, and are replaced before they expire. They are in our memory
 * only between two calls. The secret's policy lets it be read only from the account itself, in a session of the
 * person's permission set.
 *
 * Always true:
 *   1. No credentials are in a record, a message or the log: the calls that carry them are secret.
 *   2. The account's record is written before a secret is made and removed after it is gone, so that none is forgotten.
 *      It says what the secret shall be: a person's, or gone.                                                  [want()]
 *   3. What was issued before a withdrawal is void: the role denies every token that is older.          [void_tokens()]
 *   4. Calls take their time, and others issue and withdraw meanwhile. So who has changed a secret looks at the record
 *      again, and does what it says by then.                                                                [make_so()]
 */
#include "providers/aws/credentials.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/mem.h"
#include "domain/ports/cloud.h"
#include "net/aws.h"
#include "providers/aws/call.h"
#include "service/record/aws_records.h"
#include "store/session.h"
#include "store/store.h"
#include "store/walk.h"

enum { LASTS_SEC = 3600, RENEW_MS = 15 * 60000, PAGE = 100 };
#define TAG_ACCOUNT   "leasehold:account"
#define TAG_PRINCIPAL "leasehold:principal"
#define VOID_POLICY   "LeaseholdVoidsOlderTokens"

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "ResourceNotFoundException", RC_NOT_FOUND },
	{ "ResourceExistsException",   RC_CONFLICT },
	{ "InvalidRequestException",   RC_UNFIT }, /* it waits for its deletion */
	{ "LimitExceededException",    RC_EXHAUSTED },
	{ "DecryptionFailure",         RC_DENIED },
	{ "EncryptionFailure",         RC_DENIED },
	{ NULL, RC_OK },
};
static const struct aws_error_row iam_errors[] = {
	{ "NoSuchEntity", RC_NOT_FOUND }, { "LimitExceeded", RC_EXHAUSTED }, { NULL, RC_OK },
};
#define SECRET_OP(operation, writing, hidden) \
	{ .service = &aws_services[AWS_SECRETS_MANAGER], .name = operation, .permission = "secretsmanager:" operation, .writes = writing, .errors = errors, .is_secret = hidden }
static const struct aws_op
	create_secret   = SECRET_OP("CreateSecret", true, true),
	put_value       = SECRET_OP("PutSecretValue", true, true),
	put_policy      = SECRET_OP("PutResourcePolicy", true, false),
	tag_secret      = SECRET_OP("TagResource", true, false),
	restore_secret  = SECRET_OP("RestoreSecret", true, false),
	delete_secret   = SECRET_OP("DeleteSecret", true, false),
	describe_secret = SECRET_OP("DescribeSecret", false, false),
	put_role_policy = { .service = &aws_services[AWS_IAM], .name = "PutRolePolicy", .permission = "iam:PutRolePolicy", .writes = true, .errors = iam_errors };
/* clang-format on */

struct aws_credential_store {
	struct credentials             base;
	struct aws_credentials_options o;
	struct aws_caller             *caller;
};

/* --- the record --- */

struct noting {
	struct aws_secret secret; /* what it shall be; without a person: gone */
	bool              is_there;
	bool              is_made; /* it is so: the calls succeeded */
	struct aws_secret known;   /* the record after the transaction */
	bool              is_same; /* it still says what the calls were made for */
};

static bool is_for_the_same(const struct aws_secret *a, const struct aws_secret *b)
{
	return str_eq(a->name, b->name) && str_eq_nocase(a->principal, b->principal);
}

/* The record says something new. Its number is none that an earlier record of the account had. */
static void begin_anew(struct session *s, struct aws_secret *x)
{
	int64_t now_ms = session_now(s).ms;

	x->number = x->number < now_ms ? now_ms : x->number + 1;
	x->expires_ms = 0;
}

static enum rc note_wanted(struct session *s, void *arg, struct err *e)
{
	struct noting *n = arg;
	enum rc        rc = session_find_or_new(s, &aws_secret_type, n->secret.account_id, &n->known, e);

	if (rc)
		return rc;
	if (!is_for_the_same(&n->known, &n->secret))
		begin_anew(s, &n->known);
	n->known.name = n->secret.name;
	n->known.principal = n->secret.principal;
	session_put(s, &aws_secret_type, &n->known);
	return RC_OK;
}

/* Others have issued or withdrawn meanwhile, and we may have undone what they did. If they are still at it, the number
 * tells them; if not, a renewal does it again. */
static void note_again(struct session *s, struct noting *n)
{
	if (!is_for_the_same(&n->known, &n->secret))
		begin_anew(s, &n->known);
	n->known.expires_ms = 0;
	session_put(s, &aws_secret_type, &n->known);
}

/* After the calls, whether they succeeded or not. A record that is gone comes back until the secret is gone. */
static enum rc note_made(struct session *s, void *arg, struct err *e)
{
	struct noting *n = arg;
	bool           is_there;
	enum rc        rc = session_find(s, &aws_secret_type, n->secret.account_id, &n->known, &is_there, e);

	if (rc)
		return rc;
	if (!is_there)
		n->known = (struct aws_secret){ n->secret.account_id, n->secret.name, .principal = STR("") };
	n->is_same = is_there ? n->known.number == n->secret.number : !n->secret.principal.n;
	if (!n->is_same) {
		note_again(s, n);
	} else if (n->is_made && n->secret.principal.n) {
		n->known.expires_ms = n->secret.expires_ms;
		session_put(s, &aws_secret_type, &n->known);
	} else if (n->is_made && is_there) {
		session_delete(s, &aws_secret_type, n->secret.account_id);
	}
	return RC_OK;
}

static enum rc read_record(struct aws_credential_store *c, struct str account_id, struct arena *a, struct noting *ret,
                           struct err *e)
{
	if (!str_is_digits(account_id, 12))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(account_id));
	*ret = (struct noting){ .secret = { .account_id = account_id } };
	return store_find(c->o.store, &aws_secret_type, account_id, a, &ret->secret, &ret->is_there, e);
}

/* --- the secret --- */

/* New ones, as the secret's text. */
static enum rc make_value(struct aws_credential_store *c, struct str account_id, struct arena *a, struct str *ret,
                          struct err *e)
{
	struct aws_caller     *sandbox = aws_caller_sandbox(c->o.callers, account_id, c->o.role, "cred", LASTS_SEC);
	int64_t                ends_ms = clock_now(c->o.clock).ms + LASTS_SEC * 1000;
	struct aws_credentials keys;
	enum rc                rc = aws_identity_get(aws_caller_identity(sandbox), a, &keys, e);

	if (!rc)
		*ret = JSON_OF(a, member_str("accessKeyId", keys.access_key),
		               member_str("secretAccessKey", keys.secret_key),
		               member_str("sessionToken", keys.session_token), member_time("expiration", ends_ms),
		               member_str("accountId", account_id));
	aws_caller_free(sandbox);
	return err_wrap(e, rc, "credentials of role %.*s", STR_ARG(c->o.role));
}

static struct str tags_of(const struct aws_secret *s, struct arena *a)
{
	struct str account = JSON_OF(a, member_word("Key", TAG_ACCOUNT), member_str("Value", s->account_id));
	struct str person = JSON_OF(a, member_word("Key", TAG_PRINCIPAL), member_str("Value", s->principal));

	return str_format(a, "[%.*s,%.*s]", STR_ARG(account), STR_ARG(person));
}

/* There is one of that name. */
static enum rc replace_value(struct aws_credential_store *c, const struct aws_secret *s, struct str token,
                             struct str value, struct arena *a, struct err *e)
{
	struct str id = JSON_OF(a, member_str("SecretId", s->name));
	struct str put = JSON_OF(a, member_str("SecretId", s->name), member_str("ClientRequestToken", token),
	                         member_str("SecretString", value));
	struct str tag = JSON_OF(a, member_str("SecretId", s->name), member_raw("Tags", tags_of(s, a)));
	enum rc    rc = aws_do(c->caller, &put_value, put, a, NULL, e);

	if (rc == RC_UNFIT) {
		err_clear(e);
		if (!(rc = aws_do(c->caller, &restore_secret, id, a, NULL, e)))
			rc = aws_do(c->caller, &put_value, put, a, NULL, e);
	}
	return rc ? rc : aws_do(c->caller, &tag_secret, tag, a, NULL, e);
}

static enum rc put_secret(struct aws_credential_store *c, const struct aws_secret *s, struct arena *a, struct err *e)
{
	struct str value, token, body;
	enum rc    rc = make_value(c, s->account_id, a, &value, e);

	if (rc)
		return rc;
	token = hash_sha256_hex(a, value); /* another value is another version */
	body = JSON_OF(a, member_str("Name", s->name), member_str("ClientRequestToken", token),
	               member_str("KmsKeyId", c->o.key), member_str("SecretString", value),
	               member_raw("Tags", tags_of(s, a)));
	rc = aws_do(c->caller, &create_secret, body, a, NULL, e);
	if (rc != RC_CONFLICT && rc != RC_UNFIT && rc != RC_TIMEOUT)
		return rc;
	err_clear(e);
	return replace_value(c, s, token, value, a, e);
}

/* Readable from a session of the person's permission set in the account that the secret is about, and by nobody else
 * there. */
static struct str make_policy(const struct aws_credential_store *c, const struct aws_secret *s, struct arena *a)
{
	struct str role = str_format(a, "arn:*:iam::%.*s:role/aws-reserved/sso.amazonaws.com/*AWSReservedSSO_%.*s_*",
	                             STR_ARG(s->account_id), STR_ARG(c->o.permission_set));
	struct str condition = JSON_OF(a, member_object("ArnLike"), member_str("aws:PrincipalArn", role), member_end(),
	                               member_object("StringLike"),
	                               member_str("aws:userid", str_format(a, "*:%.*s", STR_ARG(s->principal))),
	                               member_end());
	struct str who = JSON_OF(a, member_str("AWS", s->account_id));
	struct str statement = JSON_OF(a, member_word("Sid", "TheHolderReads"), member_word("Effect", "Allow"),
	                               member_raw("Principal", who),
	                               member_word("Action", "secretsmanager:GetSecretValue"),
	                               member_word("Resource", "*"), member_raw("Condition", condition));

	return JSON_OF(a, member_word("Version", "2012-10-17"),
	               member_raw("Statement", str_format(a, "[%.*s]", STR_ARG(statement))));
}

static enum rc make_secret(struct aws_credential_store *c, const struct aws_secret *s, struct arena *a, struct err *e)
{
	struct str policy = JSON_OF(a, member_str("SecretId", s->name),
	                            member_str("ResourcePolicy", make_policy(c, s, a)),
	                            member_bool("BlockPublicPolicy", true));
	enum rc    rc = put_secret(c, s, a, e);

	return rc ? rc : aws_do(c->caller, &put_policy, policy, a, NULL, e);
}

/* Every token of the role that was issued up to now: AWS knows the second of that, and nothing more exact. */
static enum rc void_tokens(struct aws_credential_store *c, struct str account_id, struct arena *a, struct err *e)
{
	struct aws_caller *sandbox = aws_caller_sandbox(c->o.callers, account_id, STR(""), "cred", 0);
	int64_t            next_sec = clock_now(c->o.clock).ms / 1000 + 1;
	char               text[ISO_TIME_SIZE];
	struct str         condition = JSON_OF(a, member_object("DateLessThan"),
	                                       member_str("aws:TokenIssueTime", iso_time(next_sec, text)), member_end());
	struct str         statement = JSON_OF(a, member_word("Effect", "Deny"), member_word("Action", "*"),
	                                       member_word("Resource", "*"), member_raw("Condition", condition));
	struct str         policy = JSON_OF(a, member_word("Version", "2012-10-17"),
	                                    member_raw("Statement", str_format(a, "[%.*s]", STR_ARG(statement))));
	enum rc            rc = aws_do(sandbox, &put_role_policy,
	                               AWS_PAIRS(a, { "RoleName", c->o.role }, { "PolicyName", STR(VOID_POLICY) },
	                                         { "PolicyDocument", policy }),
	                               a, NULL, e);

	aws_caller_free(sandbox);
	return err_forgive(e, rc, RC_NOT_FOUND);
}

static enum rc remove_secret(struct aws_credential_store *c, const struct aws_secret *s, struct arena *a, struct err *e)
{
	struct str body = JSON_OF(a, member_str("SecretId", s->name), member_bool("ForceDeleteWithoutRecovery", true));
	enum rc    rc = err_forgive(e, aws_do(c->caller, &delete_secret, body, a, NULL, e), RC_NOT_FOUND);

	return rc ? rc : void_tokens(c, s->account_id, a, e);
}

/* --- both --- */

static enum rc make_once(struct aws_credential_store *c, struct noting *n, struct arena *a, struct err *e)
{
	enum rc rc = n->secret.principal.n ? make_secret(c, &n->secret, a, e) : remove_secret(c, &n->secret, a, e);
	enum rc noted;

	n->is_made = !rc;
	n->secret.expires_ms = clock_now(c->o.clock).ms + LASTS_SEC * 1000;
	if ((noted = store_run(c->o.store, note_made, n, a, rc ? NULL : e)))
		n->is_same = true; /* nothing says otherwise */
	return rc ? rc : noted;
}

/* The secret becomes what its record said, n->secret, and then what it says by now: a late writer cleans up after
 * itself. Only what a late removal took from another person is left to them, or to the next renewal: a token of this
 * very second would be void. */
static enum rc make_so(struct aws_credential_store *c, struct noting *n, struct arena *a, struct err *e)
{
	enum rc rc = make_once(c, n, a, e);

	if (!n->is_same && (n->secret.principal.n || !n->known.principal.n)) {
		err_clear(e);
		n->secret = n->known;
		rc = make_once(c, n, a, e);
	}
	if (n->is_same)
		return rc;
	err_clear(e);
	return err_set(e, RC_UNAVAILABLE, "the credentials of account %.*s were issued or withdrawn meanwhile",
	               STR_ARG(n->secret.account_id));
}

/* --- the port --- */

static bool is_due(const struct aws_credential_store *c, const struct aws_secret *s)
{
	return s->expires_ms - clock_now(c->o.clock).ms <= RENEW_MS;
}

static enum rc want(struct aws_credential_store *c, const struct aws_secret *wanted, struct arena *a, struct err *e)
{
	struct noting n = { .secret = *wanted };
	enum rc       rc = store_run(c->o.store, note_wanted, &n, a, e);

	if (rc)
		return rc;
	n.secret = n.known;
	rc = make_so(c, &n, a, e);
	if (rc || is_for_the_same(&n.secret, wanted))
		return rc;
	return err_set(e, RC_UNAVAILABLE, "the credentials of account %.*s are for somebody else, or withdrawn, by now",
	               STR_ARG(wanted->account_id));
}

static enum rc issue(struct credentials *base, const struct cloud_secret *x, struct err *e)
{
	struct aws_credential_store     *c = CONTAINER_OF(base, struct aws_credential_store, base);
	CLEANUP(arena_fini) struct arena a = { 0 };
	const struct aws_secret          wanted = { x->account_id, x->name, x->principal };
	struct noting                    n;
	enum rc                          rc = read_record(c, x->account_id, &a, &n, e);

	if (!rc && (!x->name.n || x->name.n > CLOUD_NAME_MAX || !x->principal.n || x->principal.n > 2 * CLOUD_NAME_MAX))
		rc = err_set(e, RC_INVALID, "a secret needs a name and a person");
	if (rc || (n.is_there && is_for_the_same(&n.secret, &wanted) && !is_due(c, &n.secret)))
		return rc;
	return want(c, &wanted, &a, e);
}

static enum rc withdraw(struct credentials *base, struct str account_id, struct err *e)
{
	struct aws_credential_store     *c = CONTAINER_OF(base, struct aws_credential_store, base);
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct noting                    n;
	enum rc                          rc = read_record(c, account_id, &a, &n, e);

	if (rc || !n.is_there)
		return rc;
	return want(c, &(struct aws_secret){ account_id, n.secret.name, .principal = STR("") }, &a, e);
}

static enum rc find(struct credentials *base, struct str account_id, struct arena *a, struct cloud_secret *ret,
                    bool *ret_found, struct err *e)
{
	CLEANUP(json_freep) json_t  *reply = NULL;
	struct aws_credential_store *c = CONTAINER_OF(base, struct aws_credential_store, base);
	const json_t                *tags;
	struct noting                n;
	enum rc                      rc = read_record(c, account_id, a, &n, e);

	*ret_found = false;
	if (rc || !n.is_there || !n.secret.expires_ms)
		return rc;
	rc = aws_do(c->caller, &describe_secret, JSON_OF(a, member_str("SecretId", n.secret.name)), a, &reply, e);
	tags = json_object_get(reply, "Tags");
	if (rc || json_is_number(json_object_get(reply, "DeletedDate")) ||
	    !str_eq(aws_get_tag(tags, "Key", "Value", TAG_ACCOUNT, a), account_id))
		return err_forgive(e, rc, RC_NOT_FOUND);
	*ret = (struct cloud_secret){ account_id, n.secret.name, aws_get_tag(tags, "Key", "Value", TAG_PRINCIPAL, a) };
	*ret_found = true;
	return RC_OK;
}

static const struct credentials_ops ops = { issue, withdraw, find };

/* --- renewal --- */

struct renewal {
	struct aws_credential_store *c;
	int64_t                      renewed;
	enum rc                      rc; /* the first failure */
};

/* The page with it may be minutes old. */
static enum rc renew_one(struct renewal *r, struct str account_id, struct arena *a, struct err *e)
{
	struct noting n;
	enum rc       rc = read_record(r->c, account_id, a, &n, e);

	if (rc || !n.is_there || !is_due(r->c, &n.secret))
		return rc;
	rc = make_so(r->c, &n, a, e);
	r->renewed += !rc && n.secret.principal.n;
	return rc;
}

static enum rc renew_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct renewal *r = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct aws_secret *seen = page_record(page, &aws_secret_type, i);
		enum rc                  rc = RC_OK;

		if (is_due(r->c, seen))
			rc = renew_one(r, seen->account_id, a, r->rc ? NULL : e);
		r->rc = r->rc ? r->rc : rc;
	}
	return RC_OK;
}

enum rc aws_credentials_renew(struct aws_credential_store *c, int64_t *ret_renewed, struct err *e)
{
	struct renewal r = { .c = c };
	struct query   q = query_of(&aws_secret_type, QUERY_ALL, value_int(0), PAGE);
	enum rc        rc = store_read_pages(c->o.store, &q, renew_page, &r, e);

	*ret_renewed = r.renewed;
	return rc ? rc : r.rc;
}

/* --- life --- */

struct aws_credential_store *aws_credentials_new(const struct aws_credentials_options *o)
{
	struct aws_credential_store *c = mem_new(struct aws_credential_store);

	c->base.ops = &ops;
	c->o = *o;
	c->caller = aws_caller_of(o->callers, AWS_OWN);
	return c;
}

void aws_credentials_free(struct aws_credential_store *c)
{
	free(c);
}

struct credentials *aws_credentials_port(struct aws_credential_store *c)
{
	return &c->base;
}

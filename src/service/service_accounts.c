/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service_accounts.c - keys for programs.
 *
 * A key is "lsk_NAME_SECRET". The secret has 256 random bits, so its plain SHA-256 is as good as any slow hash; only
 * that is stored. After a rotation the old key stays valid for a while (the overlap).
 *
 * Always true:
 *   1. A secret is shown once, to the caller of create or rotate. No record and no event has it. [give_key()]
 *   2. What a key may do is a row of `rights`; what is in no row is not allowed.
 *   3. A revoked account stays as a record without hashes, so that every node learns of it and the name keeps its
 *      history.
 *   4. The time that a comparison takes does not tell how much of a hash was right. [keyring_find()]
 *
 * The keyring is what this node knows. It has its own changes before they are answered; those of other nodes come with
 * the next keyring_load().
 */
#include "service/service_accounts.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/ports/caller.h"
#include "kernel/event.h"
#include "store/record_rows.h"

enum { HASH_TEXT = 64, EMAIL_MAX = 254, ACTOR_TEXT_MAX = 254 };

/* A domain that nobody can own, so that no person can have the address. */
#define EMAIL_HOST "service-account.invalid"

/* --- the record --- */

/* clang-format off */
static const struct record_field fields[] = {
	{ TEXT(service_account, name, SERVICE_NAME_MAX) },
	{ TEXT(service_account, email, EMAIL_MAX) },
	{ TEXT_OR_NONE(service_account, description, SERVICE_DESCRIPTION_MAX) },
	{ INT(service_account, scopes) },
	{ TEXT_OR_NONE(service_account, hash, HASH_TEXT) },
	{ TEXT_OR_NONE(service_account, old_hash, HASH_TEXT) },
	{ INT_OR_NONE(service_account, old_until_ms) },
	{ INT(service_account, created_ms) },
	{ TEXT_OR_NONE(service_account, created_by, ACTOR_TEXT_MAX) },
	{ INT_OR_NONE(service_account, rotated_ms) },
	{ INT_OR_NONE(service_account, revoked_ms) },
};
/* clang-format on */

const struct record_type service_account_type = { RECORD_TYPE("service_account", service_account, fields) };

/* --- what scopes are worth --- */

static const struct {
	const char        *name;
	enum service_scope scope;
} scope_names[] = {
	{ "read", SERVICE_READ },
	{ "approve", SERVICE_APPROVE },
	{ "pool-admin", SERVICE_POOL_ADMIN },
	{ "cost", SERVICE_COST },
};

/* In a path, '*' is any one part, and "**" at the end any number of parts, none included. A method "*" is any. */
/* clang-format off */
static const struct {
	int64_t     scope;
	const char *method, *path;
	unsigned    roles;
} rights[] = {
	{ SERVICE_READ,       "GET",  "api/leases/**",          ROLE_MANAGER },
	{ SERVICE_READ,       "GET",  "api/leaseTemplates/**",  ROLE_MANAGER },
	{ SERVICE_READ,       "GET",  "api/configurations/**",  ROLE_MANAGER },
	{ SERVICE_READ,       "GET",  "api/blueprints/**",      ROLE_MANAGER },
	{ SERVICE_READ,       "GET",  "api/accounts/**",        ROLE_ADMIN },
	{ SERVICE_APPROVE,    "GET",  "api/leases/**",          ROLE_MANAGER },
	{ SERVICE_APPROVE,    "POST", "api/leases/*/review",    ROLE_MANAGER },
	{ SERVICE_APPROVE,    "PATCH", "api/leases/*/review",   ROLE_MANAGER },
	{ SERVICE_POOL_ADMIN, "*",    "api/accounts/**",        ROLE_ADMIN },
	{ SERVICE_POOL_ADMIN, "GET",  "api/configurations/**",  ROLE_MANAGER },
	{ SERVICE_COST,       "GET",  "api/reports/**",         ROLE_ADMIN },
	{ SERVICE_COST,       "GET",  "api/leases/**",          ROLE_MANAGER },
	{ SERVICE_COST,       "GET",  "api/configurations/**",  ROLE_MANAGER },
};
/* clang-format on */

bool service_scopes_parse(struct str text, int64_t *ret)
{
	int64_t scopes = 0;

	while (text.n) {
		struct str word = str_trim(str_cut(&text, ','));
		int64_t    scope = 0;

		for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
			if (str_eq(word, str_from(scope_names[i].name)))
				scope = scope_names[i].scope;
		if (!scope)
			return false;
		scopes |= scope;
	}
	*ret = scopes;
	return scopes != 0;
}

struct str service_scopes_text(int64_t scopes, struct arena *a)
{
	struct str text = STR("");

	for (size_t i = 0; i < ARRAY_LEN(scope_names); i++)
		if (scopes & scope_names[i].scope)
			text = str_format(a, "%.*s%s%s", STR_ARG(text), text.n ? "," : "", scope_names[i].name);
	return text;
}

static bool is_path_match(struct str pattern, struct str path)
{
	while (pattern.n) {
		struct str wanted = str_cut(&pattern, '/');
		struct str part;

		if (str_eq(wanted, STR("**")))
			return true;
		part = str_cut(&path, '/');
		if (part.n == 0 || !(str_eq(wanted, STR("*")) || str_eq(wanted, part)))
			return false;
	}
	return path.n == 0;
}

unsigned service_scope_roles(int64_t scopes, struct str method, struct str path)
{
	unsigned roles = 0;

	if (path.n && path.p[0] == '/')
		path = str_of(path.p + 1, path.n - 1);
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		struct str wanted = str_from(rights[i].method);

		if ((scopes & rights[i].scope) && (str_eq(wanted, STR("*")) || str_eq(wanted, method)) &&
		    is_path_match(str_from(rights[i].path), path))
			roles |= rights[i].roles;
	}
	return roles;
}

/* --- keys --- */

static void give_key(struct session *s, struct service_account_call *call)
{
	char secret[ID_TOKEN_SIZE];

	id_token(secret);
	call->account.hash = hash_sha256_hex(session_arena(s), str_from(secret));
	call->key = str_format(session_arena(s), SERVICE_KEY_PREFIX "%.*s_%s", STR_ARG(call->account.name), secret);
}

/* --- the calls --- */

static enum rc check_new(const struct service_account_call *call, struct err *e)
{
	struct str name = call->name;

	if (!name.n || name.n > SERVICE_NAME_MAX || !char_is_of(name.p[0], "a-z") || !str_is_of(name, "a-z0-9-"))
		return err_set(e, RC_INVALID, "name: must be 1 to %d of a-z, 0-9 and '-', and begin with a letter",
		               SERVICE_NAME_MAX);
	if (call->description.n > SERVICE_DESCRIPTION_MAX || str_has_control(call->description))
		return err_set(e, RC_INVALID, "description: must be one line of at most %d bytes",
		               SERVICE_DESCRIPTION_MAX);
	if (call->scopes <= 0)
		return err_set(e, RC_INVALID, "scopes: must be at least one of read, approve, pool-admin, cost");
	return RC_OK;
}

/* Store the call's account, and say so. */
static enum rc save(struct session *s, struct service_account_call *call, const char *type, struct err *e)
{
	const struct service_account *account = &call->account;
	struct arena                 *a = session_arena(s);

	session_put(s, &service_account_type, &call->account);
	return session_tell(s, type, str_format(a, "service-account/%.*s", STR_ARG(account->name)), call->actor,
	                    call->request_id,
	                    JSON_OF(a, member_str("name", account->name),
	                            member_str("scopes", service_scopes_text(account->scopes, a)),
	                            member_str("description", account->description),
	                            member_if_any(member_int("oldKeyUntil", account->old_until_ms / 1000))),
	                    e);
}

enum rc service_account_list(struct session *s, void *arg, struct err *e)
{
	struct service_account_list *l = arg;
	struct query q = { .type = &service_account_type, .index = QUERY_KEYS, .limit = SERVICE_ACCOUNTS_MAX + 1 };

	return session_query(s, &q, &l->page, e);
}

enum rc service_account_create(struct session *s, void *arg, struct err *e)
{
	struct service_account_call *call = arg;
	struct service_account_list  all;
	struct service_account       found = { .version = 0 };
	bool                         is_there;
	enum rc                      rc = check_new(call, e);

	if (rc || (rc = session_find(s, &service_account_type, call->name, &found, &is_there, e)))
		return rc;
	if (is_there && found.hash.n)
		return err_set(e, RC_CONFLICT,
		               "service account %.*s already exists; rotate its key, or choose another name",
		               STR_ARG(call->name));
	if ((rc = service_account_list(s, &all, e)))
		return rc;
	if (!is_there && all.page.count >= SERVICE_ACCOUNTS_MAX)
		return err_set(e, RC_CONFLICT,
		               "there are %d service accounts, revoked ones included, and no more are "
		               "allowed; create a revoked one again",
		               SERVICE_ACCOUNTS_MAX);
	call->account = (struct service_account){ .name = call->name,
		                                  .email = str_format(session_arena(s), "%.*s@" EMAIL_HOST,
		                                                      STR_ARG(call->name)),
		                                  .description = call->description,
		                                  .scopes = call->scopes,
		                                  .created_ms = session_now(s).ms,
		                                  .created_by = call->actor,
		                                  .version = found.version };
	give_key(s, call);
	return save(s, call, "ServiceAccountCreated", e);
}

static enum rc find_live(struct session *s, struct service_account_call *call, struct err *e)
{
	bool    is_there;
	enum rc rc = session_find(s, &service_account_type, call->name, &call->account, &is_there, e);

	if (!rc && !is_there)
		return err_set(e, RC_NOT_FOUND, "there is no service account %.*s", STR_ARG(call->name));
	if (!rc && !call->account.hash.n)
		return err_set(e, RC_CONFLICT, "service account %.*s is revoked; create it again", STR_ARG(call->name));
	return rc;
}

enum rc service_account_rotate(struct session *s, void *arg, struct err *e)
{
	struct service_account_call *call = arg;
	struct service_account      *account = &call->account;
	enum rc                      rc;

	if (call->overlap_ms < 0 || call->overlap_ms > SERVICE_OVERLAP_MAX_MS)
		return err_set(e, RC_INVALID, "overlap_minutes: must be 0 to %lld",
		               (long long)(SERVICE_OVERLAP_MAX_MS / 60000));
	if ((rc = find_live(s, call, e)))
		return rc;
	account->old_hash = call->overlap_ms ? account->hash : STR("");
	account->old_until_ms = call->overlap_ms ? session_now(s).ms + call->overlap_ms : 0;
	account->rotated_ms = session_now(s).ms;
	give_key(s, call);
	return save(s, call, "ServiceAccountRotated", e);
}

enum rc service_account_revoke(struct session *s, void *arg, struct err *e)
{
	struct service_account_call *call = arg;
	struct service_account      *account = &call->account;
	enum rc                      rc = find_live(s, call, e);

	if (rc)
		return rc;
	account->hash = account->old_hash = STR("");
	account->old_until_ms = 0;
	account->revoked_ms = session_now(s).ms;
	return save(s, call, "ServiceAccountRevoked", e);
}

/* --- the keyring --- */

struct key_entry {
	struct arena           arena; /* of the account's texts */
	struct service_account account;
};

struct keyring {
	pthread_mutex_t  lock;
	struct key_entry entries[SERVICE_ACCOUNTS_MAX];
	size_t           count;
};

struct keyring *keyring_new(void)
{
	struct keyring *k = mem_new(struct keyring);

	pthread_mutex_init(&k->lock, NULL);
	return k;
}

void keyring_free(struct keyring *k)
{
	if (!k)
		return;
	for (size_t i = 0; i < k->count; i++)
		arena_fini(&k->entries[i].arena);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static struct key_entry *find_entry(struct keyring *k, struct str name)
{
	for (size_t i = 0; i < k->count; i++)
		if (str_eq(k->entries[i].account.name, name))
			return &k->entries[i];
	return NULL;
}

void keyring_note(struct keyring *k, const struct service_account *account)
{
	struct key_entry *entry;

	LOCKED(&k->lock);
	entry = find_entry(k, account->name);
	if (!entry && k->count < SERVICE_ACCOUNTS_MAX)
		entry = &k->entries[k->count++];
	if (entry && entry->account.version < account->version) {
		struct arena fresh = { 0 };

		record_copy(&service_account_type, &entry->account, account, &fresh);
		arena_fini(&entry->arena);
		entry->arena = fresh;
	}
}

enum rc keyring_load(struct keyring *k, struct store *store, struct err *e)
{
	struct service_account_list      l = { .page = { 0 } };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = store_read(store, service_account_list, &l, &a, e);

	for (size_t i = 0; !rc && i < l.page.count; i++)
		keyring_note(k, page_record(&l.page, &service_account_type, i));
	return err_wrap(e, rc, "the service accounts cannot be read");
}

enum rc keyring_find(struct keyring *k, struct str key, int64_t now_ms, struct arena *a, struct service_account *ret,
                     struct err *e)
{
	struct str              secret = key, name, hash;
	const struct key_entry *entry;
	bool                    is_good = false;

	(void)str_cut(&secret, '_'); /* "lsk" */
	name = str_cut(&secret, '_');
	hash = hash_sha256_hex(a, secret);
	LOCKED(&k->lock);
	entry = str_starts_with(key, STR(SERVICE_KEY_PREFIX)) && secret.n ? find_entry(k, name) : NULL;
	if (entry) {
		bool is_current = str_eq_secret(entry->account.hash, hash);
		bool is_old = str_eq_secret(entry->account.old_hash, hash) && now_ms < entry->account.old_until_ms;

		is_good = is_current || is_old;
	}
	if (is_good)
		record_copy(&service_account_type, ret, &entry->account, a);
	return is_good ? RC_OK
	               : err_set(e, RC_UNKNOWN, "the key is not that of a service account, or it is no longer valid");
}

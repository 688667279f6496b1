/* service_accounts.h - programs that call /api with their own key: what they may do, how keys are made and ended. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "store/record.h"
#include "store/session.h"
#include "store/store.h"

enum {
	SERVICE_ACCOUNTS_MAX = 200, /* names, those that were revoked included */
	SERVICE_NAME_MAX = 40,
	SERVICE_DESCRIPTION_MAX = 256,
	SERVICE_OVERLAP_MAX_MS = 30 * 24 * 3600 * 1000LL,
};

/* What a key is good for; see the table in service_accounts.c. */
enum service_scope { SERVICE_READ = 1, SERVICE_APPROVE = 2, SERVICE_POOL_ADMIN = 4, SERVICE_COST = 8 };

#define SERVICE_KEY_PREFIX "lsk_"

struct service_account {
	struct str name;
	struct str email; /* in audit entries and wherever a person's would be */
	struct str description;
	int64_t    scopes;
	struct str hash;     /* SHA-256 of the key's secret, in hex; empty: revoked */
	struct str old_hash; /* of the secret before; accepted until old_until_ms */
	int64_t    old_until_ms, created_ms;
	struct str created_by;
	int64_t    rotated_ms, revoked_ms;
	uint64_t   version;
};
extern const struct record_type service_account_type;

/* "read,approve" and back. False: not a list of scopes. */
bool       service_scopes_parse(struct str text, int64_t *ret);
struct str service_scopes_text(int64_t scopes, struct arena *a);

/* The roles (domain/ports/caller.h) that these scopes are worth for this method and path. 0: they do not reach it. */
unsigned service_scope_roles(int64_t scopes, struct str method, struct str path);

/* Make an account, give it a new key, or end it; audited. The key is told here and nowhere else. A revoked name can be
 * made again. RC_INVALID names what is wrong; RC_CONFLICT: the name is taken, or was revoked; RC_NOT_FOUND. */
struct service_account_call {
	struct str name, description;
	int64_t    scopes;     /* create */
	int64_t    overlap_ms; /* rotate: how long the old key is still accepted */
	struct str actor, request_id;

	struct service_account account; /* the answer */
	struct str             key;     /* create and rotate */
};
txn_fn service_account_create;
txn_fn service_account_rotate;
txn_fn service_account_revoke; /* at once, the old key too */

struct service_account_list {
	struct page page; /* the answer: struct service_account records, without hashes */
};
txn_fn service_account_list; /* read-only */

/* The accounts as a node knows them, in memory: asked for every call. Any thread. */
struct keyring *keyring_new(void);
void            keyring_free(struct keyring *k);

/* Read all of them from the store. At the start, and now and then for changes of other nodes. Blocks. */
MUST_CHECK enum rc keyring_load(struct keyring *k, struct store *store, struct err *e);

/* This one has changed here. Of two versions the newer stays, whichever comes last. */
void keyring_note(struct keyring *k, const struct service_account *account);

/* The account of this key. RC_UNKNOWN: there is none. */
MUST_CHECK enum rc keyring_find(struct keyring *k, struct str key, int64_t now_ms, struct arena *a,
                                struct service_account *ret, struct err *e);

/* cloud.h - what the services need of the cloud: five ports, implemented in providers/. All calls block: for worker
 * threads only.
 *
 * What any of them may answer: RC_UNAVAILABLE (outage) and RC_LIMITED (throttled): it did not happen, try later;
 * RC_DENIED: we lack a right, it did not happen; RC_TIMEOUT: it may have happened, look before repeating; RC_INVALID:
 * malformed, never works. err.code is the cloud's own name for the failure where it has one. */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum {
	CLOUD_ID_MAX = 68,         /* of an OU: ou-{32}-{32} */
	CLOUD_NAME_MAX = 128,      /* of an account, an OU, a user, a permission set, a tenant */
	CLOUD_KEY_MAX = 200,       /* the caller's stable key of a change */
	CLOUD_TAGS_MAX = 50,       /* of one account */
	CLOUD_TAG_MAX = 256,       /* bytes of a tag's value; its name has half of it */
	CLOUD_SPEND_DAYS = 400,    /* longest time that spend is asked for */
	CLOUD_SERVICE_MAX = 64,    /* bytes of the name of a service that costs money */
	CLOUD_ACCOUNT_PAGE = 20,   /* accounts in one page of a listing */
	CLOUD_REMOVED_MAX = 32768, /* bytes of the resources that a run of the cleaner removed */
	CLOUD_KEPT_MAX = 16384,    /* and of those it left */
	CLOUD_LOG_MAX = 16384,     /* and of its last words */
};

/* --- organisation --- */

struct organisation;

struct cloud_ou {
	struct str id, parent_id, name; /* the root has no parent */
};

struct cloud_account {
	struct str id; /* 12 digits */
	struct str name, email;
	struct str parent_id; /* the OU it is in */
	int64_t    joined_ms;
};

struct cloud_account_page {
	struct cloud_account *items;
	size_t                count;
	struct str            next; /* cursor; empty: that was all */
};

struct cloud_tag {
	struct str name, value;
};

struct organisation_ops {
	/* The root first, then its OUs. */
	enum rc (*list_ous)(struct organisation *o, struct arena *a, struct cloud_ou **ret, size_t *ret_count,
	                    struct err *e);

	/* Where is it? RC_NOT_FOUND: not in this organisation. */
	enum rc (*find_parent)(struct organisation *o, struct str account_id, struct arena *a, struct str *ret_ou_id,
	                       struct err *e);

	/* RC_NOT_FOUND: no such account (AccountNotFoundException) or destination (DestinationParentNotFoundException).
	 * RC_CONFLICT: it is at the destination already (DuplicateAccountException), or not where you said
	 * (SourceParentNotFoundException). */
	enum rc (*move)(struct organisation *o, struct str account_id, struct str from_ou_id, struct str to_ou_id,
	                struct err *e);
	enum rc (*list_accounts)(struct organisation *o, struct str ou_id, struct str cursor, struct arena *a,
	                         struct cloud_account_page *ret, struct err *e);
	enum rc (*describe)(struct organisation *o, struct str account_id, struct arena *a, struct cloud_account *ret,
	                    struct err *e);
	enum rc (*get_tags)(struct organisation *o, struct str account_id, struct arena *a, struct cloud_tag **ret,
	                    size_t *ret_count, struct err *e);

	/* Adds these, or gives them new values; others stay. */
	enum rc (*set_tags)(struct organisation *o, struct str account_id, const struct cloud_tag *tags, size_t count,
	                    struct err *e);

	/* Takes one away. RC_OK also when it is not there. */
	enum rc (*remove_tag)(struct organisation *o, struct str account_id, struct str name, struct err *e);
};

struct organisation { /* first member of every implementation, as the other ports */
	const struct organisation_ops *ops;
};

/* --- access --- */

struct access;

enum cloud_principal { CLOUD_USER, CLOUD_GROUP, CLOUD_PRINCIPAL_COUNT };

struct cloud_assignment {
	struct str           account_id;
	enum cloud_principal kind;
	struct str           principal; /* id of the user or group */
	struct str           permission_set;
};

struct access_ops {
	/* Grants or revokes it. Safe to repeat: RC_OK also when it is so already. RC_NOT_FOUND: no such account, to
	 * grant it for. */
	enum rc (*set)(struct access *x, const struct cloud_assignment *assignment, bool is_granted, struct err *e);
	enum rc (*list)(struct access *x, struct str account_id, struct arena *a, struct cloud_assignment **ret,
	                size_t *ret_count, struct err *e);
};

struct access {
	const struct access_ops *ops;
};

/* --- costs --- */

struct costs;

struct cloud_spend {
	int64_t micro_usd;         /* millionths of a dollar: what is known so far */
	int64_t complete_until_ms; /* all before this is in it; after it, some or nothing may be missing */
};

/* What one service cost on one day. */
struct cloud_cost {
	struct str service;
	int64_t    day_ms; /* its midnight, UTC */
	int64_t    micro_usd;
};

struct cloud_bill {
	struct cloud_cost *items; /* day by day; what costs nothing is left out */
	size_t             count;
	struct cloud_spend spend; /* the sum of them */
};

struct costs_ops {
	/* What the account spent in [from, to). Data arrives late: the same question has a higher answer later. An
	 * unknown account has spent 0. RC_INVALID: to before from, or more than CLOUD_SPEND_DAYS. */
	enum rc (*spend)(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms,
	                 struct cloud_spend *ret, struct err *e);

	/* The same by service and day; the sum is what spend() would say. Names of services live in the arena. */
	enum rc (*itemise)(struct costs *c, struct str account_id, int64_t from_ms, int64_t to_ms, struct arena *a,
	                   struct cloud_bill *ret, struct err *e);
};

struct costs {
	const struct costs_ops *ops;
};

/* --- cleaner --- */

struct cleaner;

enum cloud_run_state { CLOUD_RUNNING, CLOUD_SUCCEEDED, CLOUD_FAILED, CLOUD_RUN_STATE_COUNT };

/* The result of a finished run. Lists have one resource a line; when a list is full, the counts still have all. */
struct cloud_run_report {
	int64_t    exit_code;
	int64_t    found, filtered; /* at the first look: resources, and those of them that shall stay */
	int64_t    removed, failed; /* resources */
	struct str removed_list;    /* "us-east-1 - SQSQueue - https://..." */
	struct str kept_list;       /* the same and why: " - failed", " - filtered by config" */
	struct str log;             /* the end of what it wrote */
	int64_t    started_ms, ended_ms;
};

struct cloud_run {
	enum cloud_run_state           state;
	struct str                     text;   /* why it failed */
	const struct cloud_run_report *report; /* NULL: the cleaner keeps none, or it runs */
};

struct cleaner_ops {
	/* The same key is the same run. RC_NOT_FOUND: no such account; RC_CONFLICT: it is another account's key. */
	enum rc (*start)(struct cleaner *c, struct str account_id, struct str key, struct arena *a,
	                 struct str *ret_run_id, struct err *e);
	enum rc (*check)(struct cleaner *c, struct str run_id, struct arena *a, struct cloud_run *ret, struct err *e);
};

struct cleaner {
	const struct cleaner_ops *ops;
};

/* --- credentials --- */

struct credentials;

/* Where the temporary credentials of one person for one account are kept. The secret itself is never seen by us. */
struct cloud_secret {
	struct str account_id;
	struct str name; /* with it the person finds the secret, by their own rights */
	struct str principal;
};

struct credentials_ops {
	/* Make credentials and put them into the secret store under this name, for this person alone to read; those the
	 * account had before are void. RC_OK also when it is so already. RC_NOT_FOUND: no such account. RC_UNAVAILABLE:
	 * also when others issued or withdrew meanwhile; so for withdraw. */
	enum rc (*issue)(struct credentials *c, const struct cloud_secret *secret, struct err *e);

	/* End the account's credentials and remove the secret. RC_OK also when there are none. */
	enum rc (*withdraw)(struct credentials *c, struct str account_id, struct err *e);
	enum rc (*find)(struct credentials *c, struct str account_id, struct arena *a, struct cloud_secret *ret,
	                bool *ret_found, struct err *e);
};

struct credentials {
	const struct credentials_ops *ops;
};

/* All of them together. */
struct cloud {
	struct organisation *organisation;
	struct access       *access;
	struct costs        *costs;
	struct cleaner      *cleaner;
	struct credentials  *credentials; /* NULL: access by sign-in alone */
};

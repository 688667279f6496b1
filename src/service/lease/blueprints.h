/* blueprints.h - stack sets that are put into an account when it is lent, under a name. Transaction functions. */
#pragma once

#include "base/str.h"
#include "domain/ports/caller.h"
#include "store/record.h"
#include "store/session.h"
#include "store/store.h"

enum {
	BLUEPRINT_NAME_MOST = 50,
	BLUEPRINT_TAGS_MOST = 10,
	BLUEPRINT_TAG_NAME_MOST = 128,
	BLUEPRINT_TAG_MOST = 256,
	BLUEPRINT_REGIONS_MOST = 32,
	BLUEPRINT_REGION_MOST = 32,
	BLUEPRINT_STACK_SET_MOST = 256,
	BLUEPRINT_PAGE_MOST = 100,
};

enum region_order { REGIONS_SEQUENTIAL, REGIONS_PARALLEL, REGION_ORDER_COUNT };
extern const char *const region_order_names[REGION_ORDER_COUNT]; /* SEQUENTIAL, PARALLEL */

enum failure_mode { FAILURES_STRICT, FAILURES_SOFT, FAILURE_MODE_COUNT };
extern const char *const failure_mode_names[FAILURE_MODE_COUNT]; /* STRICT_FAILURE_TOLERANCE, SOFT_FAILURE_TOLERANCE */

struct blueprint {
	struct str        id, name, created_by;
	struct str        tags; /* JSON: {"key": "value"} */
	struct str        stack_set_id;
	struct str        regions; /* JSON: ["us-east-1"] */
	int64_t           timeout_minutes;
	enum region_order region_order;
	int64_t           concurrent_percent, failures_percent;
	enum failure_mode failure_mode;
	int64_t           created_ms, edited_ms;
	uint64_t          version;
};
extern const struct record_type blueprint_type;

/* A letter, then letters, digits and hyphens. */
bool blueprint_name_is_ok(struct str name);

/* create: all of the fields but the id. change: what is set; the stack set and its regions stay. */
struct blueprint_call {
	struct caller    by;
	struct str       id;
	struct blueprint fields;
	bool             sets_name, sets_tags, sets_timeout, sets_order, sets_concurrent, sets_failures, sets_mode;

	struct blueprint blueprint; /* the answer */
};
txn_fn blueprint_get;    /* read-only. RC_NOT_FOUND, as the next ones */
txn_fn blueprint_create; /* without RC_NOT_FOUND */
txn_fn blueprint_change;
txn_fn blueprint_delete; /* RC_CONFLICT: a template uses it */

struct blueprint_list {
	size_t     limit;
	struct str cursor;

	struct page page; /* the answer: struct blueprint records */
};
txn_fn blueprint_list; /* read-only */

/* lease_records.h - how leases, templates and accounts are kept. */
#pragma once

#include "store/record.h"

enum lease_index {
	LEASE_BY_OWNER,  /* hash user_key, sort created_ms */
	LEASE_BY_STATUS, /* hash status, sort created_ms */
	LEASE_IN_LINE,   /* hash is_queued, sort queued_ms; only those in line */
};
enum account_index {
	ACCOUNT_BY_STATUS, /* hash status, sort cleaned_ms: the longest rested first */
};
enum template_index {
	TEMPLATE_BY_NAME, /* hash name, sort created_ms */
};

extern const struct record_type lease_type, account_type, template_type;

/* How many live leases a person has: counted in the transactions that change it, so that the limit holds under races. */
struct lessee {
	struct str email_key;
	int64_t    live;
	uint64_t   version;
};
extern const struct record_type lessee_type;

/* Documents of the operator: global configuration, reporting, approval policy. */
enum { DOCUMENT_MAX = 65536 };
struct document {
	struct str name;
	struct str text; /* YAML or JSON, as it was given */
	struct str edited_by;
	int64_t    edited_ms;
	uint64_t   version;
};
extern const struct record_type document_type;

#define LEASE_TYPES &lease_type, &account_type, &template_type, &lessee_type, &document_type

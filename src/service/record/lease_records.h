/* lease_records.h - how leases, templates and accounts are kept. */
#pragma once

#include "base/str.h"
#include "store/record.h"

enum {
	THRESHOLDS_TEXT_MAX = 2048, /* JSON of a list of thresholds */
	REASON_TEXT_MAX = 8192,     /* JSON of a reason: a comment of 1,000 bytes that all need six, and figures */
	DESCRIPTION_MAX = 1000,
	CLEAN_RUN_MAX = 128,
	CLEAN_LOG_MAX = 8192,
	DOCUMENT_MAX = 65536,
};

enum lease_index {
	LEASE_BY_OWNER,  /* hash user_key, sort created_ms */
	LEASE_BY_STATUS, /* hash status, sort created_ms */
	LEASE_IN_LINE,   /* hash is_queued (1), sort queued_ms; only those in line */
};
enum account_index {
	ACCOUNT_BY_STATUS, /* hash status, sort cleaned_ms: the longest rested first */
};
enum template_index {
	TEMPLATE_BY_NAME, /* hash name, sort created_ms */
};

extern const struct record_type lease_type, account_type, template_type;

/* How many live leases a person has: counted in the transactions that change it, so the limit holds under races. */
struct lessee {
	struct str email_key;
	int64_t    live;
	uint64_t   version;
};
extern const struct record_type lessee_type;

/* Documents of the operator: global configuration, reporting, approval policy. */
struct document {
	struct str name;
	struct str text; /* YAML or JSON, as it was given */
	struct str edited_by;
	int64_t    edited_ms;
	uint64_t   version;
};
extern const struct record_type document_type;

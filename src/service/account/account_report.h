/* account_report.h - what the last cleanup of an account did: a record beside it, so that lists stay light. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "store/record.h"
#include "store/session.h"

struct account;
struct cloud_run_report;

/* A cleanup has several runs: `removed` and its list are of all of them, the rest is of the last one. */
struct account_report {
	struct str account_id;
	struct str cleanup; /* its id, as in the account's clean_run */
	int64_t    runs, exit_code, found, filtered, removed, failed;
	struct str removed_list, kept_list; /* a resource a line; what did not fit is missing at the end */
	struct str log;                     /* the end of it */
	int64_t    started_ms, ended_ms;    /* of the last run, by the machine's clock */
	uint64_t   version;
};
extern const struct record_type account_report_type;

/* A run of the account's present cleanup is over. */
MUST_CHECK enum rc account_report_note(struct session *s, const struct account *a, const struct cloud_run_report *run,
                                       struct err *e);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_report.c - keeps what runs of the cleaner report, within limits.
 *
 * The last run of a cleanup that went well has nothing left to remove; what people want to know was removed by those before it. So the removed
 * resources of one cleanup add up, and a new cleanup begins with none. A list that is full keeps its beginning; the counts are always right.
 */
#include "service/account_report.h"

#include "base/arena.h"
#include "domain/account.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "service/lease_records.h"
#include "store/record_rows.h"

/* clang-format off */
enum {
	REPORT_F_ACCOUNT, REPORT_F_CLEANUP, REPORT_F_RUNS, REPORT_F_EXIT_CODE, REPORT_F_FOUND, REPORT_F_FILTERED, REPORT_F_REMOVED,
	REPORT_F_FAILED, REPORT_F_REMOVED_LIST, REPORT_F_KEPT_LIST, REPORT_F_LOG, REPORT_F_STARTED, REPORT_F_ENDED,
};

static const struct record_field fields[] = {
	[REPORT_F_ACCOUNT]      = { TEXT(account_report, account_id, ACCOUNT_ID_MAX) },
	[REPORT_F_CLEANUP]      = { TEXT(account_report, cleanup, CLEAN_RUN_MAX) },
	[REPORT_F_RUNS]         = { INT(account_report, runs) },
	[REPORT_F_EXIT_CODE]    = { INT(account_report, exit_code) },
	[REPORT_F_FOUND]        = { INT(account_report, found) },
	[REPORT_F_FILTERED]     = { INT(account_report, filtered) },
	[REPORT_F_REMOVED]      = { INT(account_report, removed) },
	[REPORT_F_FAILED]       = { INT(account_report, failed) },
	[REPORT_F_REMOVED_LIST] = { TEXT_OR_NONE(account_report, removed_list, CLOUD_REMOVED_MAX) },
	[REPORT_F_KEPT_LIST]    = { TEXT_OR_NONE(account_report, kept_list, CLOUD_KEPT_MAX) },
	[REPORT_F_LOG]          = { TEXT_OR_NONE(account_report, log, CLOUD_LOG_MAX) },
	[REPORT_F_STARTED]      = { INT_OR_NONE(account_report, started_ms) },
	[REPORT_F_ENDED]        = { INT_OR_NONE(account_report, ended_ms) },
};
/* clang-format on */

const struct record_type account_report_type = {
	.name = "account_report",
	.size = sizeof(struct account_report),
	.fields = fields,
	.field_count = ARRAY_LEN(fields),
	.key = REPORT_F_ACCOUNT,
	.version_offset = offsetof(struct account_report, version),
};

/* Whole lines from the beginning, as many as fit. */
static struct str fit_lines(struct str lines, size_t max)
{
	while (lines.n > max) {
		const char *end = memrchr(lines.p, '\n', lines.n - 1);

		lines.n = end ? (size_t)(end - lines.p) + 1 : 0;
	}
	return lines;
}

/* Whole lines from the end. */
static struct str fit_tail(struct str lines, size_t max)
{
	while (lines.n > max)
		(void)str_cut(&lines, '\n'); /* the line that goes */
	return lines;
}

enum rc account_report_get(struct session *s, struct str account_id, struct account_report *ret, struct err *e)
{
	return session_get(s, &account_report_type, account_id, ret, e);
}

enum rc account_report_note(struct session *s, const struct account *a, const struct cloud_run_report *run,
                            struct err *e)
{
	struct account_report r;
	struct str            both;
	enum rc               rc = account_report_get(s, a->id, &r, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the report of account %.*s cannot be read", STR_ARG(a->id));
	if (rc)
		r = (struct account_report){ .account_id = a->id };
	if (!str_eq(r.cleanup, a->clean_run))
		r = (struct account_report){ .account_id = r.account_id,
			                     .cleanup = a->clean_run,
			                     .version = r.version };
	both = str_format(session_arena(s), "%.*s%.*s", STR_ARG(r.removed_list), STR_ARG(run->removed_list));
	r.runs++;
	r.exit_code = run->exit_code;
	r.found = run->found;
	r.filtered = run->filtered;
	r.removed += run->removed;
	r.failed = run->failed;
	r.removed_list = fit_lines(both, CLOUD_REMOVED_MAX);
	r.kept_list = fit_lines(run->kept_list, CLOUD_KEPT_MAX);
	r.log = fit_tail(run->log, CLOUD_LOG_MAX);
	r.started_ms = run->started_ms;
	r.ended_ms = run->ended_ms;
	session_put(s, &account_report_type, &r);
	return RC_OK;
}

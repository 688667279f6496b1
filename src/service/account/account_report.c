/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_report.c - keeps what runs of the cleaner report, within limits.
 *
 * The last run of a successful cleanup has nothing left to remove; what people want to know was removed by the runs
 * before it. So the removed resources of one cleanup add up. A full list keeps its beginning; counts are always right.
 */
#include "service/account/account_report.h"

#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "service/record/lease_records.h"
#include "store/record_rows.h"

/* clang-format off */
static const struct record_field fields[] = {
	{ TEXT(account_report, account_id, ACCOUNT_ID_MAX) },
	{ TEXT(account_report, cleanup, CLEAN_RUN_MAX) },
	{ INT(account_report, runs) },
	{ INT(account_report, exit_code) },
	{ INT(account_report, found) },
	{ INT(account_report, filtered) },
	{ INT(account_report, removed) },
	{ INT(account_report, failed) },
	{ TEXT_OR_NONE(account_report, removed_list, CLOUD_REMOVED_MAX) },
	{ TEXT_OR_NONE(account_report, kept_list, CLOUD_KEPT_MAX) },
	{ TEXT_OR_NONE(account_report, log, CLOUD_LOG_MAX) },
	{ INT_OR_NONE(account_report, started_ms) },
	{ INT_OR_NONE(account_report, ended_ms) },
};
/* clang-format on */

const struct record_type account_report_type = { RECORD_TYPE("account_report", account_report, fields) };

/* Whole lines from the beginning, as many as fit. */
static struct str fit_lines(struct str lines, size_t max)
{
	while (lines.n > max) {
		const char *end = memrchr(lines.p, '\n', lines.n - 1);

		lines.n = end ? (size_t)(end - lines.p) + 1 : 0;
	}
	return lines;
}

enum rc account_report_note(struct session *s, const struct account *a, const struct cloud_run_report *run,
                            struct err *e)
{
	struct account_report r;
	struct str            both, log = run->log;
	enum rc               rc = session_find_or_new(s, &account_report_type, a->id, &r, e);

	if (rc)
		return rc;
	while (log.n > CLOUD_LOG_MAX)
		(void)str_cut(&log, '\n'); /* the line that goes */
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
	r.log = log;
	r.started_ms = run->started_ms;
	r.ended_ms = run->ended_ms;
	session_put(s, &account_report_type, &r);
	return RC_OK;
}

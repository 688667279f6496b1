/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_api.c - the routes of accounts: the pool, its accounts, and those in the OU Entry that could be registered.
 *
 * Calls to the organisation block, so a thread makes them. Registering asks the organisation first (is it in Entry?
 * what is its name?), then stores: what the organisation says counts, not what the client sends beside the id.
 *
 * An account that is leaving the pool is no longer shown; `leasehold saga` shows its progress.
 */
#include "base/json.h"
#include "domain/account.h"
#include "domain/ports/cloud.h"
#include "domain/lease.h"
#include "http/api/api.h"
#include "http/api/blocking.h"
#include "http/api/body.h"
#include "http/api/lease_form.h"
#include "http/api/view.h"
#include "service/pool/accounts.h"
#include "service/record/lease_records.h"

enum { ACCOUNTS_MOST = 2000, ACCOUNT_SCHEMA = 1, ACCOUNT_NAME_MOST = 50 };

/* --- out --- */

static void put_account(struct json_out *o, struct request *r UNUSED, const void *thing)
{
	const struct account *a = thing;
	bool                  is_waiting = a->status == ACCOUNT_CLEANUP && !a->clean_run.n;

	JSON_PUT(o, member_str("awsAccountId", a->id), member_if_any(member_str("email", a->email)),
	         member_if_any(member_str("name", a->name)),
	         member_word("status", account_ou_names[a->status]), /* what upstream's clients know */
	         member_word("phase", account_status_names[a->status]), member_bool("driftAtLastScan", a->has_drifted));
	if (a->clean_run.n || is_waiting) /* while it waits for its turn: since when it does */
		JSON_PUT(o, member_object("cleanupExecutionContext"),
		         member_str("stateMachineExecutionArn", is_waiting ? STR("waiting") : a->clean_run),
		         member_if_any(member_moment("stateMachineExecutionStartTime",
		                                     is_waiting ? a->edited_ms : a->clean_started_ms)),
		         member_end(), member_if_any(member_str("cleanupReason", a->clean_reason)),
		         member_int("cleanupSucceededAttempts", a->clean_successes),
		         member_int("cleanupFailedAttempts", a->clean_failures));
	JSON_PUT(o, member_if_any(member_moment("lastCleanedTime", a->cleaned_ms)),
	         member_if_any(member_moment("lastRestedTime", a->rested_ms)), member_int("openHolds", a->open_holds),
	         member_if_any(member_moment("restingUntil", a->rest_until_ms)),
	         member_if_any(member_str("leaseUuid", a->lease_uuid)),
	         member_if_any(member_str("lastLeaseUuid", a->last_lease)),
	         member_if(a->status == ACCOUNT_COOLDOWN && !a->reason.n,
	                   member_word("reason", a->rest_until_ms
	                                                 ? "It is clean and in cooldown, so that late costs do not "
	                                                   "end up on the next lease."
	                                                 : "It is clean; somebody holds it until it is released.")),
	         member_if_any(member_str("reason", a->reason)));
	form_put_meta(o, a->created_ms, a->edited_ms, ACCOUNT_SCHEMA);
}

/* Each line becomes an element. */
static void put_lines(struct json_out *o, const char *name, struct str lines)
{
	json_put_array(o, name);
	while (lines.n)
		json_add_str(o, str_cut(&lines, '\n'));
	json_close_array(o);
}

static void put_call(struct json_out *o, struct request *r, const void *thing)
{
	const struct account_call   *c = thing;
	const struct account_report *report = &c->report;

	put_account(o, r, &c->account);
	if (!report->runs)
		return;
	JSON_PUT(o, member_object("lastCleanup"), member_str("cleanup", report->cleanup),
	         member_int("runs", report->runs), member_int("exitCode", report->exit_code),
	         member_int("found", report->found), member_int("filtered", report->filtered),
	         member_int("removed", report->removed), member_int("failed", report->failed));
	put_lines(o, "removedResources", report->removed_list);
	put_lines(o, "keptResources", report->kept_list);
	JSON_PUT(o, member_if_any(member_moment("lastRunStarted", report->started_ms)),
	         member_if_any(member_moment("lastRunEnded", report->ended_ms)), member_str("log", report->log),
	         member_end());
}

/* --- the list --- */

/* A status as it is shown, so Quarantine includes accounts in cooldown; or a phase, which is more exact. */
static enum rc read_filter(struct request *r, struct listing *v, struct err *e UNUSED)
{
	struct account_list *l = v->list;
	struct str           text = page_query(r, "status", v->problems), phase = page_query(r, "phase", v->problems);

	for (int i = 0; i < ACCOUNT_STATUS_COUNT; i++)
		if (i != ACCOUNT_EXIT && (phase.n ? str_eq(phase, str_from(account_status_names[i]))
		                                  : text.n && (str_eq(text, str_from(account_ou_names[i])) ||
		                                               str_eq(text, str_from(account_status_names[i])))))
			l->statuses |= 1u << i;
	if ((text.n || phase.n) && !l->statuses)
		problems_add(v->problems, phase.n ? "phase" : "status",
		             "must be Available, Active, Frozen, CleanUp, Cooldown or Quarantine, not '%.*s'",
		             STR_ARG(phase.n ? phase : text));
	if (l->statuses)
		v->name = str_format(&r->call->arena, "accounts/%u", l->statuses).p;
	return RC_OK;
}

static bool is_leaving(const struct listing *v UNUSED, const struct request *r UNUSED, const void *record)
{
	return ((const struct account *)record)->status == ACCOUNT_EXIT;
}

static const struct listing accounts = { "result",    "accounts",   &account_type,
	                                 put_account, account_list, LIST_OF(struct account_list),
	                                 read_filter, is_leaving,   ACCOUNTS_MOST };
HANDLER(account_list, view_list(r, &accounts))

/* --- one --- */

/* NULL: it has been answered, and the request with its arena is gone. */
static struct account_call *account_call_new(struct request *r)
{
	struct account_call *c = NEW_OF(r, struct account_call);
	struct problems      p = { .arena = &r->call->arena };

	c->by = r->by;
	if (!account_id_is_ok(r->params[0])) {
		problems_add(&p, "awsAccountId", "must be 12 digits");
		request_fail_all(r, 400, &p);
		return NULL;
	}
	c->id = r->params[0];
	r->arg = c;
	return c;
}

static void on_got(struct request *r)
{
	const struct account_call *c = r->arg;

	if (request_failed(r))
		return;
	if (c->account.status == ACCOUNT_EXIT)
		request_refuse(r, RC_NOT_FOUND, "account %.*s is on its way out of the pool", STR_ARG(c->id));
	else
		view_reply(r, 200, put_call, c);
}

static void submit_account(struct request *r, txn_fn *run, bool is_read_only, void (*complete)(struct request *r))
{
	struct account_call *c = account_call_new(r);

	if (c)
		request_submit(r, run, c, is_read_only, complete);
}

HANDLER(account_show, submit_account(r, account_get, true, on_got))
HANDLER(account_eject, submit_account(r, account_eject, false, view_done))

void handle_account_clean(struct request *r)
{
	struct problems      p = { .arena = &r->call->arena };
	struct account_call *c = account_call_new(r);

	if (!c)
		return;
	c->restarts_rest = str_eq(page_query(r, "restartRest", &p), STR("true"));
	if (p.count)
		request_fail_all(r, 400, &p);
	else
		request_submit(r, account_retry_cleanup, c, false, view_done);
}

static bool is_reason(struct str text)
{
	return str_trim(text).n > 0 && text.n <= REASON_MAX;
}

void handle_account_quarantine(struct request *r)
{
	CLEANUP(body_close) struct body body = { 0 };
	struct account_call            *c = account_call_new(r);

	if (!c || !body_open(r, "reason", &body))
		return;
	(void)part_checked(&body.whole, "reason", REQUIRED, is_reason,
	                   "must be a text of 1 to 1000 bytes that says why",
	                   &c->reason); /* problems are in the body */
	c->is_of_pool = true;
	if (body_is_good(&body))
		request_submit(r, account_quarantine, c, false, view_done);
}

/* --- calls of the organisation --- */

struct account_work {
	struct organisation *organisation;

	/* registering */
	struct account_call  call;
	struct cloud_account found;

	/* listing Entry: from this item of the organisation's page */
	struct str                cursor;
	size_t                    skip, limit;
	struct cloud_account_page page;
	bool                      is_known[CLOUD_ACCOUNT_PAGE]; /* registered already, and not moved yet */
};

static void start(struct request *r, struct account_work *w, blocking_fn *act, void (*complete)(struct request *r))
{
	struct cloud *cloud = r->api->options.cloud;

	if (!cloud) {
		request_refuse(r, RC_UNAVAILABLE, "no organisation is set up");
		return;
	}
	w->organisation = cloud->organisation;
	blocking_start(r, BLOCKING_ACCOUNTS, act, complete, w);
}

static enum rc find_entry(struct account_work *w, struct arena *a, struct str *ret, struct err *e)
{
	struct cloud_ou *ous;
	size_t           count;
	enum rc          rc = w->organisation->ops->list_ous(w->organisation, a, &ous, &count, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (str_eq(ous[i].name, STR("Entry"))) {
			*ret = ous[i].id;
			return RC_OK;
		}
	return err_set(e, RC_CONFLICT, "the organisation has no OU called Entry");
}

/* --- registering --- */

static bool read_registration(struct request *r, struct account_call *c)
{
	CLEANUP(body_close) struct body body;
	struct str                      ignored, admins = r->api->options.admin_accounts;
	json_t                         *meta;

	if (!body_open(r, "awsAccountId email name meta", &body))
		return false;
	(void)part_checked(&body.whole, "awsAccountId", REQUIRED, account_id_is_ok, "must be a text of 12 digits",
	                   &c->id); /* problems are in the body */
	(void)part_checked(&body.whole, "email", OPTIONAL, email_is_ok, "must be an email address", &ignored);
	(void)part_text(&body.whole, "name", OPTIONAL, 0, ACCOUNT_NAME_MOST, &ignored);
	part_any_object(&body.whole, "meta", &meta);
	while (c->id.n && admins.n)
		if (str_eq(str_trim(str_cut(&admins, ',')), c->id))
			part_problem(&body.whole, "awsAccountId",
			             "is an account that the organisation is run from; it cannot be lent");
	return body_is_good(&body);
}

/* It must be in Entry: anywhere else is a conflict. */
static enum rc describe(struct request *r, void *arg, struct err *e)
{
	struct account_work *w = arg;
	struct organisation *o = w->organisation;
	struct str           entry = STR(""), id = w->call.id;
	struct err           cause = { 0 };
	enum rc              rc = find_entry(w, &r->call->arena, &entry, e);

	if (rc)
		return rc;
	rc = o->ops->describe(o, id, &r->call->arena, &w->found, &cause);
	if (rc == RC_NOT_FOUND)
		return err_set(e, RC_CONFLICT, "the organisation has no account %.*s", STR_ARG(id));
	if (rc)
		return err_set(e, rc, "%s", cause.msg);
	if (!str_eq(w->found.parent_id, entry))
		return err_set(e, RC_CONFLICT, "account %.*s is not in the OU Entry; move it there first", STR_ARG(id));
	return RC_OK;
}

static void on_described(struct request *r)
{
	struct account_work *w = r->arg;

	w->call.name = w->found.name;
	w->call.email = w->found.email;
	view_submit(r, account_register, &w->call, WRITES, 201, put_call);
}

void handle_account_register(struct request *r)
{
	struct account_work *w = NEW_OF(r, struct account_work);

	w->call.by = r->by;
	if (read_registration(r, &w->call))
		start(r, w, describe, on_described);
}

/* --- those in Entry --- */

static enum rc list_entry(struct request *r, void *arg, struct err *e)
{
	struct account_work *w = arg;
	struct organisation *o = w->organisation;
	struct str           entry;
	enum rc              rc = find_entry(w, &r->call->arena, &entry, e);

	return rc ? rc : o->ops->list_accounts(o, entry, w->cursor, &r->call->arena, &w->page, e);
}

/* The organisation moves an account some time after it was registered: until then it is not offered again. */
static enum rc mark_known(struct session *s, void *arg, struct err *e)
{
	struct account_work *w = arg;

	for (size_t i = 0; i < w->page.count && i < CLOUD_ACCOUNT_PAGE; i++) {
		struct account known;
		enum rc        rc = session_find(s, &account_type, w->page.items[i].id, &known, &w->is_known[i], e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

static void put_unregistered(struct json_out *o, struct request *r, const void *thing)
{
	const struct account_work *w = thing;
	struct str                 next = STR("");
	size_t                     i = w->skip, shown = 0;

	json_put_array(o, "result");
	for (; i < w->page.count && shown < w->limit; i++) {
		if (i < CLOUD_ACCOUNT_PAGE && w->is_known[i])
			continue;
		shown++;
		JSON_PUT(o, member_object(NULL), member_str("Id", w->page.items[i].id),
		         member_str("Email", w->page.items[i].email), member_str("Name", w->page.items[i].name),
		         member_end());
	}
	json_close_array(o);
	/* "NUMBER CURSOR": the next item, and the organisation's page that has it. */
	if (i < w->page.count)
		next = str_format(&r->call->arena, "%zu %.*s", i, STR_ARG(w->cursor));
	else if (w->page.next.n)
		next = str_format(&r->call->arena, "0 %.*s", STR_ARG(w->page.next));
	if (next.n)
		page_token_put(r, o, "unregistered", next);
}

static void on_entry_listed(struct request *r)
{
	view_submit(r, mark_known, r->arg, READS, 200, put_unregistered);
}

void handle_account_unregistered(struct request *r)
{
	struct account_work *w = NEW_OF(r, struct account_work);
	struct problems      p = { .arena = &r->call->arena };
	int64_t              skip = 0;

	if (!page_token_read(r, "unregistered", CLOUD_ACCOUNT_PAGE, &w->limit, &w->cursor, &p))
		return;
	if (w->cursor.n && !str_to_int(str_cut(&w->cursor, ' '), 0, CLOUD_ACCOUNT_PAGE, &skip)) {
		problems_add(&p, "pageIdentifier", "is not one that this list gave");
		request_fail_all(r, 400, &p);
		return;
	}
	w->skip = (size_t)skip;
	start(r, w, list_entry, on_entry_listed);
}

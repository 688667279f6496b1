/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_api.c - the routes of accounts, all for admins: the pool, its members, and the accounts that wait in Entry to become some.
 *
 * Calls of the organisation block, so they run on a thread of libuv; their struct account_work lives in the call's arena, which stays until the
 * reply. Registering asks the organisation first (is it in Entry? what is it called?), then stores: what the organisation says counts, not
 * what the client sends beside the id.
 *
 * An account that is on its way out of the pool is no longer shown, as if it were gone already; `leasehold saga` shows how far it is.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "domain/account.h"
#include "domain/cloud.h"
#include "domain/lease.h"
#include "http/api.h"
#include "http/body.h"
#include "http/jsend.h"
#include "http/lease_form.h"
#include "http/page_token.h"
#include "http/rights.h"
#include "http/urlform.h"
#include "service/lease_records.h"
#include "service/leases.h"

enum { ACCOUNTS_MOST = 2000, ACCOUNT_SCHEMA = 1, ACCOUNT_NAME_MOST = 50 };

/* --- out --- */

static void put_cleanup(struct json_out *o, const struct account *a)
{
	if (!a->clean_run.n)
		return;
	json_put_object(o, "cleanupExecutionContext");
	json_put_str(o, "stateMachineExecutionArn", a->clean_run);
	form_put_time(o, "stateMachineExecutionStartTime", a->clean_started_ms);
	json_close_object(o);
	form_put_text(o, "cleanupReason", a->clean_reason);
	json_put_int(o, "cleanupSucceededAttempts", a->clean_successes);
	json_put_int(o, "cleanupFailedAttempts", a->clean_failures);
}

static void put_account(struct json_out *o, const struct account *a)
{
	json_put_str(o, "awsAccountId", a->id);
	form_put_text(o, "email", a->email);
	form_put_text(o, "name", a->name);
	json_put_str(o, "status", str_from(account_ou_names[a->status])); /* what upstream's clients know */
	json_put_str(o, "phase", str_from(account_status_names[a->status]));
	json_put_bool(o, "driftAtLastScan", a->has_drifted);
	put_cleanup(o, a);
	form_put_time(o, "lastCleanedTime", a->cleaned_ms);
	form_put_time(o, "lastRestedTime", a->rested_ms);
	json_put_int(o, "openHolds", a->open_holds);
	form_put_time(o, "restingUntil", a->rest_until_ms);
	form_put_text(o, "leaseUuid", a->lease_uuid);
	form_put_text(o, "lastLeaseUuid", a->last_lease);
	form_put_text(o, "reason", a->reason);
	form_put_meta(o, a->created_ms, a->edited_ms, ACCOUNT_SCHEMA);
}

/* One a line becomes one an element. */
static void put_lines(struct json_out *o, const char *name, struct str lines)
{
	json_put_array(o, name);
	while (lines.n)
		json_add_str(o, str_cut(&lines, '\n'));
	json_close_array(o);
}

static void put_report(struct json_out *o, const struct account_report *r)
{
	if (!r->runs)
		return;
	json_put_object(o, "lastCleanup");
	json_put_str(o, "cleanup", r->cleanup);
	json_put_int(o, "runs", r->runs);
	json_put_int(o, "exitCode", r->exit_code);
	json_put_int(o, "found", r->found);
	json_put_int(o, "filtered", r->filtered);
	json_put_int(o, "removed", r->removed);
	json_put_int(o, "failed", r->failed);
	put_lines(o, "removedResources", r->removed_list);
	put_lines(o, "keptResources", r->kept_list);
	form_put_time(o, "lastRunStarted", r->started_ms);
	form_put_time(o, "lastRunEnded", r->ended_ms);
	json_put_str(o, "log", r->log);
	json_close_object(o);
}

static void reply_account(struct request *r, int status)
{
	const struct account_call *c = r->arg;
	struct json_out            o = jsend_begin(r);

	json_put_object(&o, "data");
	put_account(&o, &c->account);
	put_report(&o, &c->report);
	json_close_object(&o);
	reply_send(r, status);
}

/* --- the list --- */

static void read_status(struct request *r, struct account_list *l, struct problems *p)
{
	struct str text = page_query(r, "status", p);

	for (int i = 0; text.n && i < ACCOUNT_STATUS_COUNT; i++)
		if (i != ACCOUNT_EXIT && str_eq(text, str_from(account_status_names[i]))) {
			l->has_status = true;
			l->status = (enum account_status)i;
		}
	if (text.n && !l->has_status)
		problems_add(p, "status",
		             "must be that of an account: Available, Active, Frozen, CleanUp or Quarantine");
}

/* The list's name for its tokens: with its filter. */
static const char *list_name(struct request *r, const struct account_list *l)
{
	return l->has_status ? str_format(&r->call->arena, "accounts/%d", (int)l->status).p : "accounts";
}

static void on_listed(struct request *r)
{
	const struct account_list *l = r->arg;
	struct json_out            o;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "result");
	for (size_t i = 0; i < l->page.count; i++) {
		const struct account *a = page_record(&l->page, &account_type, i);

		if (a->status == ACCOUNT_EXIT)
			continue;
		json_open_object(&o);
		put_account(&o, a);
		json_close_object(&o);
	}
	json_close_array(&o);
	page_token_put(r, &o, list_name(r, l), l->page.next);
	json_close_object(&o);
	reply_send(r, 200);
}

void handle_account_list(struct request *r)
{
	struct account_list *l = arena_alloc(&r->call->arena, sizeof(*l));
	struct problems      p = { .arena = &r->call->arena };
	struct caller        by;

	if (!rights_enter(r, &by))
		return;
	read_status(r, l, &p);
	page_token_read(r, list_name(r, l), ACCOUNTS_MOST, &l->limit, &l->cursor, &p);
	if (!page_is_good(r, &p))
		return;
	r->arg = l;
	request_submit(r, account_list, l, true, on_listed);
}

/* --- one --- */

static struct account_call *account_call_new(struct request *r)
{
	struct account_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	struct problems      p = { .arena = &r->call->arena };

	if (!rights_enter(r, &c->by))
		return NULL;
	if (!account_id_is_ok(r->params[0])) {
		problems_add(&p, "awsAccountId", "must be 12 digits");
		jsend_refuse(r, 400, &p);
		return NULL;
	}
	c->id = r->params[0];
	r->arg = c;
	return c;
}

static void on_got(struct request *r)
{
	const struct account_call *c = r->arg;
	struct err                 e = { 0 };

	if (jsend_failed(r))
		return;
	if (c->account.status != ACCOUNT_EXIT) {
		reply_account(r, 200);
		return;
	}
	rc_ignore(err_set(&e, RC_NOT_FOUND, "account %.*s is on its way out of the pool",
	                  STR_ARG(c->id))); /* noted in e */
	request_fail(r, &e);
}

void handle_account_show(struct request *r)
{
	struct account_call *c = account_call_new(r);

	if (c)
		request_submit(r, account_get, c, true, on_got);
}

static void on_done(struct request *r)
{
	if (!jsend_failed(r))
		jsend_done(r);
}

void handle_account_clean(struct request *r)
{
	struct account_call *c = account_call_new(r);

	if (c)
		request_submit(r, account_retry_cleanup, c, false, on_done);
}

static bool is_reason(struct str text)
{
	return str_trim(text).n > 0 && text.n <= REASON_MAX;
}

static bool read_quarantine(struct request *r, struct account_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "reason");
	(void)part_checked(&whole, "reason", REQUIRED, is_reason, "must be a text of 1 to 1000 bytes that says why",
	                   &c->reason); /* problems are in the body */
	return body_is_good(&body);
}

void handle_account_quarantine(struct request *r)
{
	struct account_call *c = account_call_new(r);

	if (!c || !read_quarantine(r, c))
		return;
	c->is_of_pool = true;
	request_submit(r, account_quarantine, c, false, on_done);
}

void handle_account_eject(struct request *r)
{
	struct account_call *c = account_call_new(r);

	if (c)
		request_submit(r, account_eject, c, false, on_done);
}

/* --- calls of the organisation --- */

struct account_work {
	uv_work_t            work;
	struct request      *request;
	struct organisation *organisation;
	enum rc (*act)(struct account_work *w);
	void (*complete)(struct account_work *w); /* on the loop, when act succeeded */
	struct err e;

	/* registering */
	struct account_call  call;
	struct cloud_account found;

	/* listing Entry: from the item with this number of the organisation's page on */
	struct str                cursor;
	size_t                    skip, limit;
	struct cloud_account_page page;
	bool                      is_known[CLOUD_ACCOUNT_PAGE]; /* registered already, and not moved yet */
};

static void run(uv_work_t *work)
{
	struct account_work *w = CONTAINER_OF(work, struct account_work, work);

	rc_ignore(w->act(w)); /* noted in e */
}

static void after(uv_work_t *work, int status)
{
	struct account_work *w = CONTAINER_OF(work, struct account_work, work);
	struct err           e = { 0 };

	assert(status == 0); /* nobody cancels it */
	(void)status;
	if (!w->e.rc) {
		w->complete(w);
		return;
	}
	rc_ignore(err_set(&e, w->e.rc, "%s", w->e.msg)); /* without the cloud's own code; noted in e */
	request_fail(w->request, &e);
}

static void start(struct request *r, struct account_work *w, enum rc (*act)(struct account_work *w),
                  void (*complete)(struct account_work *w))
{
	const struct api_options *o = api_options(r->api);
	struct err                e = { 0 };

	if (!o->cloud) {
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "no organisation is set up")); /* noted in e */
		request_fail(r, &e);
		return;
	}
	w->request = r;
	w->organisation = o->cloud->organisation;
	w->act = act;
	w->complete = complete;
	if (uv_queue_work(o->loop, &w->work, run, after))
		abort(); /* fails only without a callback */
}

static enum rc find_entry(struct account_work *w, struct str *ret)
{
	struct cloud_ou *ous;
	size_t           count;
	enum rc rc = w->organisation->ops->list_ous(w->organisation, &w->request->call->arena, &ous, &count, &w->e);

	if (rc)
		return rc;
	for (size_t i = 0; i < count; i++)
		if (str_eq(ous[i].name, STR("Entry"))) {
			*ret = ous[i].id;
			return RC_OK;
		}
	return err_set(&w->e, RC_CONFLICT, "the organisation has no OU called Entry");
}

/* --- registering --- */

static bool is_admin_account(struct request *r, struct str id)
{
	struct str rest = api_options(r->api)->admin_accounts;

	while (rest.n)
		if (str_eq(str_trim(str_cut(&rest, ',')), id))
			return true;
	return false;
}

static bool read_registration(struct request *r, struct account_call *c)
{
	CLEANUP(body_close) struct body body;
	struct part                     whole;
	struct str                      ignored;
	json_t                         *meta;

	if (!body_open(r, &body))
		return false;
	whole = body_whole(&body);
	part_expect(&whole, "awsAccountId email name meta");
	(void)part_checked(&whole, "awsAccountId", REQUIRED, account_id_is_ok, "must be a text of 12 digits",
	                   &c->id); /* problems are in the body */
	(void)part_checked(&whole, "email", OPTIONAL, email_is_ok, "must be an email address", &ignored);
	(void)part_text(&whole, "name", OPTIONAL, 0, ACCOUNT_NAME_MOST, &ignored);
	part_any_object(&whole, "meta", &meta);
	if (c->id.n && is_admin_account(r, c->id))
		part_problem(&whole, "awsAccountId",
		             "is an account that the organisation is run from; it cannot be lent");
	return body_is_good(&body);
}

/* It must be in Entry; otherwise it is not where it should be, a conflict. */
static enum rc act_describe(struct account_work *w)
{
	struct organisation *o = w->organisation;
	struct str           entry, id = w->call.id;
	struct err           e = { 0 };
	enum rc              rc;

	if ((rc = find_entry(w, &entry)))
		return rc;
	rc = o->ops->describe(o, id, &w->request->call->arena, &w->found, &e);
	if (rc == RC_NOT_FOUND)
		return err_set(&w->e, RC_CONFLICT, "the organisation has no account %.*s", STR_ARG(id));
	if (rc)
		return err_set(&w->e, rc, "%s", e.msg);
	if (!str_eq(w->found.parent_id, entry))
		return err_set(&w->e, RC_CONFLICT, "account %.*s is not in the OU Entry; move it there first",
		               STR_ARG(id));
	return RC_OK;
}

static void on_registered(struct request *r)
{
	if (!jsend_failed(r))
		reply_account(r, 201);
}

static void on_described(struct account_work *w)
{
	w->call.name = w->found.name;
	w->call.email = w->found.email;
	w->request->arg = &w->call;
	request_submit(w->request, account_register, &w->call, false, on_registered);
}

void handle_account_register(struct request *r)
{
	struct account_work *w = arena_alloc(&r->call->arena, sizeof(*w));

	if (rights_enter(r, &w->call.by) && read_registration(r, &w->call))
		start(r, w, act_describe, on_described);
}

/* --- those in Entry --- */

static enum rc act_list(struct account_work *w)
{
	struct organisation *o = w->organisation;
	struct str           entry;
	enum rc              rc = find_entry(w, &entry);

	return rc ? rc : o->ops->list_accounts(o, entry, w->cursor, &w->request->call->arena, &w->page, &w->e);
}

/* The organisation moves an account some time after it was registered: until then it is not offered again. */
static enum rc mark_known(struct session *s, void *arg, struct err *e)
{
	struct account_work *w = arg;

	for (size_t i = 0; i < w->page.count && i < CLOUD_ACCOUNT_PAGE; i++) {
		struct account known;
		enum rc        rc = session_get(s, &account_type, w->page.items[i].id, &known, NULL);

		if (rc && rc != RC_NOT_FOUND)
			return err_set(e, rc, "account %.*s cannot be read", STR_ARG(w->page.items[i].id));
		w->is_known[i] = rc == RC_OK;
	}
	return RC_OK;
}

/* "NUMBER CURSOR": where in which page of the organisation. Empty: that was all. */
static struct str next_place(struct request *r, const struct account_work *w, size_t until)
{
	if (until < w->page.count)
		return str_format(&r->call->arena, "%zu %.*s", until, STR_ARG(w->cursor));
	if (w->page.next.n)
		return str_format(&r->call->arena, "0 %.*s", STR_ARG(w->page.next));
	return STR("");
}

static void on_marked(struct request *r)
{
	const struct account_work *w = r->arg;
	struct json_out            o;
	struct str                 next;
	size_t                     i = w->skip, shown = 0;

	if (jsend_failed(r))
		return;
	o = jsend_begin(r);
	json_put_object(&o, "data");
	json_put_array(&o, "result");
	for (; i < w->page.count && shown < w->limit; i++) {
		if (i < CLOUD_ACCOUNT_PAGE && w->is_known[i])
			continue;
		shown++;
		json_open_object(&o);
		json_put_str(&o, "Id", w->page.items[i].id);
		json_put_str(&o, "Email", w->page.items[i].email);
		json_put_str(&o, "Name", w->page.items[i].name);
		json_close_object(&o);
	}
	json_close_array(&o);
	next = next_place(r, w, i);
	if (next.n)
		page_token_put(r, &o, "unregistered", next);
	json_close_object(&o);
	reply_send(r, 200);
}

static void on_entry_listed(struct account_work *w)
{
	w->request->arg = w;
	request_submit(w->request, mark_known, w, true, on_marked);
}

void handle_account_unregistered(struct request *r)
{
	struct account_work *w = arena_alloc(&r->call->arena, sizeof(*w));
	struct problems      p = { .arena = &r->call->arena };
	struct caller        by;
	int64_t              skip = 0;

	if (!rights_enter(r, &by))
		return;
	page_token_read(r, "unregistered", CLOUD_ACCOUNT_PAGE, &w->limit, &w->cursor, &p);
	if (w->cursor.n && !str_to_int(str_cut(&w->cursor, ' '), 0, CLOUD_ACCOUNT_PAGE, &skip))
		problems_add(&p, "pageIdentifier", "is not one that this list gave");
	if (!page_is_good(r, &p))
		return;
	w->skip = (size_t)skip;
	start(r, w, act_list, on_entry_listed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_api.c - the comparison of the reconciler, on demand.
 *
 * GET looks and changes nothing; POST puts right what can be put right safely, and keeps what it found for the alarms, as the job does. It
 * asks the organisation, so it runs on a thread of libuv; its struct doctor lives in the call's arena, which stays until the reply.
 */
#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "http/ops.h"
#include "kernel/kernel.h"
#include "service/reconcile.h"

struct doctor {
	uv_work_t                work;
	struct request          *request;
	struct reconcile         terms;
	struct reconcile_report *report;
	struct err               e;
};

static void run(uv_work_t *work)
{
	struct doctor *d = CONTAINER_OF(work, struct doctor, work);

	rc_ignore(reconcile_run(&d->terms, d->report, &d->e)); /* noted in e */
}

static void put_item(struct json_out *o, const struct reconcile_item *i)
{
	json_open_object(o);
	json_put_str(o, "kind", str_from(discrepancy_names[i->kind]));
	ops_put_text(o, "account_id", i->account);
	json_put_str(o, "text", i->text);
	json_put_bool(o, "can_be_healed", discrepancy_heals[i->kind]);
	json_put_bool(o, "healed", i->is_healed);
	json_close_object(o);
}

static void reply_report(struct doctor *d)
{
	struct request                *r = d->request;
	const struct reconcile_report *report = d->report;
	struct json_out                o = reply_begin(r);

	json_put_bool(&o, "dry_run", d->terms.is_dry_run);
	json_put_int(&o, "accounts", report->accounts);
	json_put_int(&o, "holds", report->holds);
	json_put_int(&o, "found", report->found);
	json_put_int(&o, "healed", report->healed);
	json_put_array(&o, "findings");
	for (size_t i = 0; i < report->count; i++)
		put_item(&o, &report->items[i]);
	json_close_array(&o);
	reply_send(r, 200);
}

static void after(uv_work_t *work, int status)
{
	struct doctor *d = CONTAINER_OF(work, struct doctor, work);
	struct err     e = { 0 };

	assert(status == 0); /* nobody cancels it */
	(void)status;
	if (!d->e.rc) {
		reply_report(d);
	} else {
		rc_ignore(err_set(&e, d->e.rc, "%s", d->e.msg)); /* without the cloud's own code; noted in e */
		request_fail(d->request, &e);
	}
	reconcile_report_fini(d->report);
	free(d->report);
}

static void start(struct request *r, bool is_dry_run)
{
	const struct api_options *o = api_options(r->api);
	struct doctor            *d = arena_alloc(&r->call->arena, sizeof(*d));
	struct err                e = { 0 };

	if (!o->reconcile) {
		rc_ignore(err_set(&e, RC_UNAVAILABLE, "there is no pool of accounts here")); /* noted in e */
		request_fail(r, &e);
		return;
	}
	d->request = r;
	d->report = mem_new(struct reconcile_report);
	d->terms = (struct reconcile){ .store = o->store,
		                       .organisation = o->reconcile->organisation,
		                       .records = o->reconcile->records,
		                       .clock = kernel_options(ops_kernel(r))->clock,
		                       .is_dry_run = is_dry_run };
	if (uv_queue_work(o->loop, &d->work, run, after))
		abort(); /* fails only without a callback */
}

void handle_doctor_look(struct request *r)
{
	start(r, true);
}

void handle_doctor_fix(struct request *r)
{
	start(r, false);
}

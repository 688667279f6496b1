/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_api.c - the reconciler's comparison, on demand; and whether AWS gives us the permissions that we need.
 *
 * It also looks for resources that no instance has, and for instances that lack one.
 *
 * GET changes nothing; POST repairs what can be repaired safely, removes what no instance has, and keeps what it found
 * for the alarms, as the job does. Both ask the organisation, so a thread runs them.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "domain/ports/cloud_probe.h"
#include "http/api/blocking.h"
#include "http/api/ops.h"
#include "kernel/kernel.h"
#include "service/instance/instances.h"
#include "service/reconcile/reconcile.h"

struct doctor {
	struct pass              pass;
	bool                     is_dry_run;
	enum instance_scan_mode  mode;
	struct reconcile_report *report;

	struct instance_scan_result scan;
};

static enum rc compare(struct request *r, void *arg, struct err *e)
{
	struct doctor *d = arg;
	enum rc        rc = RC_OK;

	d->report = mem_new(struct reconcile_report);
	if (d->pass.reconcile)
		rc = reconcile_run(&d->pass, d->is_dry_run, d->report, e);
	if (!rc && d->pass.instances)
		rc = instance_scan(d->pass.instances, d->mode, r->actor.n ? r->actor : STR("admin"), &r->call->arena,
		                   &d->scan, e);
	if (rc) {
		reconcile_report_fini(d->report);
		free(d->report);
	}
	return rc;
}

/* Why --fix does not just remove these resources. */
static struct str obstacle(struct arena *a, struct str verdict, int64_t since_ms)
{
	char at[ISO_TIME_SIZE];

	if (str_eq(verdict, str_from(orphan_verdict_names[ORPHAN_YOUNG])))
		return str_format(a, "; first seen at %s, and not removed in the hour after that",
		                  iso_time(since_ms / 1000, at).p);
	if (str_eq(verdict, str_from(orphan_verdict_names[ORPHAN_UNARCHIVABLE])))
		return STR("; its data cannot be archived without storage, database and secret: restore what is "
		           "missing, or remove it with --without-archive");
	return STR("");
}

/* One finding per tenant: resources without an instance, or what its instance lacks. */
static void put_tenant(struct json_out *o, struct arena *a, json_t *item)
{
	json_t    *resources = json_object_get(item, "resources");
	struct str tenant, finding, verdict = STR(""), names = STR("");
	bool       is_orphan, is_removed;
	int64_t    since_ms;

	if (!json_get_text(item, "tenantId", &tenant) || !json_get_text(item, "finding", &finding) ||
	    !json_get_text(item, "verdict", &verdict) || !json_get_number(item, "since", 0, &since_ms))
		return; /* never: we wrote it */
	is_orphan = str_eq(finding, STR("orphan"));
	is_removed = str_eq(verdict, str_from(orphan_verdict_names[ORPHAN_REMOVED]));
	for (size_t n = 0; n < json_array_size(resources); n++)
		names = str_format(a, "%.*s%s%s", STR_ARG(names), n ? ", " : "",
		                   json_string_value(json_array_get(resources, n)));
	names = is_orphan ? str_format(a, "tenant %.*s has resources of no instance: %.*s%.*s", STR_ARG(tenant),
	                               STR_ARG(names), STR_ARG(obstacle(a, verdict, since_ms)))
	                  : str_format(a, "the instance of tenant %.*s lacks: %.*s", STR_ARG(tenant), STR_ARG(names));
	JSON_PUT(o, member_object(NULL), member_word("kind", is_orphan ? "orphan-resources" : "missing-resources"),
	         member_raw("account_id", STR("null")), member_str("text", names),
	         member_bool("can_be_healed",
	                     is_removed || str_eq(verdict, str_from(orphan_verdict_names[ORPHAN_REMOVABLE]))),
	         member_bool("healed", is_removed), member_end());
}

static void put_findings(struct json_out *o, struct request *r, const struct doctor *d)
{
	CLEANUP(json_freep) json_t *list = NULL;

	json_put_array(o, "findings");
	for (size_t i = 0; i < d->report->count; i++) {
		const struct reconcile_item *item = &d->report->items[i];

		JSON_PUT(o, member_object(NULL), member_word("kind", discrepancy_names[item->kind]),
		         member_text("account_id", item->account), member_str("text", item->text),
		         member_bool("can_be_healed", discrepancy_heals[item->kind]),
		         member_bool("healed", item->is_healed), member_end());
	}
	if (d->scan.findings.n && !json_parse(d->scan.findings, &list, NULL))
		for (size_t i = 0; i < json_array_size(list); i++)
			put_tenant(o, &r->call->arena, json_array_get(list, i));
	json_close_array(o);
}

static void reply_report(struct request *r)
{
	const struct doctor     *d = r->arg;
	struct reconcile_report *report = d->report;
	struct json_out          o = reply_begin(r);

	JSON_PUT(&o, member_bool("dry_run", d->is_dry_run), member_int("accounts", report->accounts),
	         member_int("holds", report->holds),
	         member_int("found", (int64_t)report->found + d->scan.orphans + d->scan.missing),
	         member_int("healed", (int64_t)report->healed + d->scan.healed));
	put_findings(&o, r, d);
	reply_send(r, 200);
	reconcile_report_fini(report);
	free(report);
}

static void start(struct request *r, enum instance_scan_mode mode)
{
	const struct api_options *o = &r->api->options;
	struct doctor            *d = arena_alloc(&r->call->arena, sizeof(*d));

	if (!o->reconcile && !o->instances) {
		request_refuse(r, RC_UNAVAILABLE, "there is no pool of accounts here");
		return;
	}
	d->pass = (struct pass){ .store = o->store,
		                 .clock = kernel_options(o->kernel)->clock,
		                 .reconcile = o->reconcile,
		                 .instances = o->instances };
	d->mode = mode;
	d->is_dry_run = mode == SCAN_LOOKS;
	blocking_start(r, BLOCKING_DOCTOR, compare, reply_report, d);
}

static void start_fix(struct request *r)
{
	int without;

	if (request_is_good(r, ops_read_word(r, "without_archive", (const char *const[]){ "false", "true" }, 2,
	                                     "true or false", &without, &r->e)))
		start(r, without == 1 ? SCAN_REMOVES_UNARCHIVED : SCAN_REMOVES);
}

/* --- AWS --- */

struct probing {
	struct cloud_probe *probe;
	bool                is_paid;
	struct probe_row   *rows;
	size_t              count;
};

static enum rc ask_cloud(struct request *r, void *arg, struct err *e)
{
	struct probing *p = arg;

	return p->probe->look(p->probe, p->is_paid, &r->call->arena, &p->rows, &p->count, e);
}

static void reply_probe(struct request *r)
{
	const struct probing *p = r->arg;
	struct json_out       o = reply_begin(r);
	int64_t               failed = 0;

	for (size_t i = 0; i < p->count; i++)
		failed += p->rows[i].verdict != PROBE_OK && p->rows[i].verdict != PROBE_NOT_TRIED;
	JSON_PUT(&o, member_bool("ok", failed == 0), member_int("failed", failed), member_list("rows"));
	for (size_t i = 0; i < p->count; i++) {
		const struct probe_row *row = &p->rows[i];

		JSON_PUT(&o, member_object(NULL), member_str("permission", row->permission), member_str("as", row->as),
		         member_word("verdict", probe_verdict_names[row->verdict]),
		         member_bool("needed", row->is_needed), member_text("text", row->text),
		         member_text("change", row->change), member_end());
	}
	json_close_array(&o);
	reply_send(r, 200);
}

static void start_probe(struct request *r)
{
	struct probing *p = NEW_OF(r, struct probing);
	int             paid;

	if (!request_is_good(r, ops_read_word(r, "paid", (const char *const[]){ "false", "true" }, 2, "true or false",
	                                      &paid, &r->e)))
		return;
	*p = (struct probing){ .probe = r->api->options.probe, .is_paid = paid == 1 };
	if (p->probe)
		blocking_start(r, BLOCKING_DOCTOR, ask_cloud, reply_probe, p);
	else
		request_refuse(r, RC_NOT_FOUND, "this server does not use AWS; it would with LEASEHOLD_CLOUD=aws");
}

HANDLER(doctor_aws, start_probe(r))
HANDLER(doctor_look, start(r, SCAN_LOOKS))
HANDLER(doctor_fix, start_fix(r))

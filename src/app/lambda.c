/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lambda.c - the guard as a function: invoked, done, answered, frozen.
 *
 * The payload's shape says what it is: a batch of SQS, the bell of a hold that is due, or {"leasehold": "tick"}. In
 * each case, what came is stored first; then everything that is due is done on this thread (kernel/drain.c), until
 * nothing is left or the time is nearly up; only then comes the answer, because afterwards the process is frozen, with
 * whatever it has begun. The next invocation takes up what is left: a tick comes every five minutes.
 *
 * Always true:
 *   1. A message of a batch counts as good once it is committed, and only then; those that are not are named, and
 *      come again alone. [take_batch()]
 *   2. The truth about when something is due is in our store. A bell says nothing but "look": early, twice or for a
 *      hold that is closed, it changes nothing.
 *   3. Nothing is begun later than MARGIN_MS before the deadline; a call that hangs is given up before it.
 *      [watch_time()]
 *   4. Nothing that has to go on runs between two invocations: no pump, no pulse, no pollers; the store's threads
 *      sleep.
 *
 * The time is the machine's: it is right again after the process was frozen, and a step of its date means nothing.
 */
#include "app/lambda.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/secrets.h"
#include "app/wiring.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/trace.h"
#include "kernel/drain.h"
#include "kernel/edge/intake.h"
#include "kernel/edge/webhook.h"
#include "net/fetch.h"
#include "net/lambda_api.h"
#include "service/jobs/jobs.h"

enum {
	MARGIN_MS = 3000,       /* nothing is begun in the last seconds, */
	HANG_MARGIN_MS = 1500,  /* and what hangs is given up with so much left */
	NO_DEADLINE_MS = 30000, /* should none be told */
	STORE_WORKERS = 4,
	RETENTION_SEC = 3600,
	EXIT_USAGE = 2,
};

#define RUNTIME_API "AWS_LAMBDA_RUNTIME_API"

struct function {
	const char    *at; /* the runtime API */
	struct parts   p;
	struct wiring *wiring;
	bool           has_looked; /* for webhooks: it knows whether there are any */
	struct mono    deadline;   /* of the invocation under way */
};

/* What one is asked for. */
enum shape { SHAPE_UNKNOWN, SHAPE_BATCH, SHAPE_BELL, SHAPE_TICK };

bool lambda_is_meant(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "bootstrap") == 0 && getenv(RUNTIME_API);
}

/* --- start --- */

static void check(const struct config *c, bool has_folder, struct buf *problems)
{
	if (!guard_parts_is_wanted(c))
		buf_addf(problems, "%s: must be guard: leases and sandboxes need a server that runs all the time\n",
		         config_name(CONFIG_QUARANTINE));
	if (!aws_parts_is_wanted(c))
		buf_addf(problems, "%s: must be aws: a simulated organisation would be gone after each call\n",
		         config_name(CONFIG_CLOUD));
	if (config_number(c, CONFIG_STORE) != APP_DYNAMODB && !has_folder)
		buf_addf(problems, "%s: must be dynamodb: the files of a function are lost when it ends\n",
		         config_name(CONFIG_STORE));
	aws_parts_check(c, false, problems);
	guard_parts_check(c, problems);
	messages_check(c, false, problems);
}

static enum rc open_store(struct function *f, struct err *e)
{
	struct config *c = f->p.config;

	if (c->values[CONFIG_STORE_WORKERS].origin == FROM_DEFAULT)
		c->values[CONFIG_STORE_WORKERS].number = STORE_WORKERS;
	return app_open_alone(c, &f->p.clock, &f->p.store, e);
}

/* The comparison of records with the organisation, and what removes old events. */
static void make_jobs(struct function *f)
{
	const struct config *c = f->p.config;
	struct jobs_options  options = {
		 .pass.store = f->p.store.store,
		 .pass.settings = &f->p.settings,
		 .pass.reconcile = &f->p.guard->reconcile,
		 .pass.clock = &f->p.clock,
		 .pass.metrics = f->p.metrics,
		 .interval_sec = { [JOB_EVENT_RETENTION] = RETENTION_SEC,
		                   [JOB_RECONCILE] = config_number(c, CONFIG_RECONCILE_INTERVAL) },
		 .lease_sec = config_number(c, CONFIG_JOB_LEASE),
	};

	f->p.settings = (struct broker_settings){ .event_days = config_number(c, CONFIG_EVENT_DAYS) };
	f->p.jobs = jobs_new(&options);
}

static enum rc start(struct function *f, struct err *e)
{
	enum rc rc;

	f->p.metrics = metrics_new();
	f->p.clock = clock_real;
	id_uuid(f->p.node);
	if ((rc = open_store(f, e)) || (rc = aws_parts_new(&f->p, e)) || (rc = guard_parts_new(&f->p, e)))
		return rc;
	messages_new(&f->p);
	make_jobs(f);
	return wiring_open(&f->p, &f->wiring, e);
}

/* --- time --- */

static bool is_time_left(void *arg)
{
	const struct function *f = arg;

	return mono_now().ms < f->deadline.ms - HANG_MARGIN_MS;
}

/* The deadline is told by the date, and kept by the clock that no step of the date changes. */
static void watch_time(struct function *f, int64_t deadline_ms)
{
	int64_t left_ms = deadline_ms ? deadline_ms - clock_now(&clock_real).ms : NO_DEADLINE_MS;

	f->deadline.ms = mono_now().ms + left_ms;
	fetch_watch(is_time_left, f);
}

/* --- what is asked --- */

static enum shape shape_of(const json_t *o)
{
	struct str text = STR(""), account = STR("");

	if (json_is_array(json_object_get(o, "Records")))
		return SHAPE_BATCH;
	if (json_get_text(o, "leasehold", &text) && str_eq(text, STR("tick")))
		return SHAPE_TICK;
	if (json_get_text(o, "schedulerName", &text) && text.n && json_get_text(o, "accountId", &account) &&
	    str_is_digits(account, 12))
		return SHAPE_BELL;
	return SHAPE_UNKNOWN;
}

/* One record of a batch. */
static enum rc take_record(struct function *f, const json_t *record, struct arena *a, struct err *e)
{
	struct inbox_way way = { f->p.store.store, STR("cloudtrail"), intake_parse };
	struct str       source = STR(""), body = STR("");

	if (!json_get_text(record, "eventSource", &source) || !str_eq(source, STR("aws:sqs")))
		return err_set(e, RC_INVALID, "eventSource: must be aws:sqs");
	if (!json_get_text(record, "body", &body) || !body.n)
		return err_set(e, RC_INVALID, "body: is required, an event as JSON text");
	if (!is_time_left(f))
		return err_set(e, RC_TIMEOUT, "there was no time left for it");
	return intake_take(&way, body, a, e);
}

/* {"batchItemFailures": [{"itemIdentifier": messageId}]} */
static struct str take_batch(struct function *f, const json_t *records, struct arena *a)
{
	struct buf      b = BUF(LAMBDA_PAYLOAD_MAX);
	struct json_out o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_list("batchItemFailures"));
	for (size_t i = 0; i < json_array_size(records); i++) {
		struct str id = STR("");
		struct err e = { 0 };

		if (!take_record(f, json_array_get(records, i), a, &e))
			continue;
		if (!json_get_text(json_array_get(records, i), "messageId", &id))
			id = STR(""); /* an empty one has all of the batch come again, which is right */
		log_write(LOG_WARNING, "lambda",
		          (struct log_field[]){ LOG_STR("messageId", id), LOG_STR("why", str_from(e.msg)) }, 2,
		          "a message was not taken");
		JSON_PUT(&o, member_object(NULL), member_str("itemIdentifier", id), member_end());
	}
	JSON_PUT(&o, member_list_end(), member_end());
	return buf_take(&b, a);
}

/* --- what is done --- */

static enum rc do_what_is_due(struct function *f, size_t *done, bool *ret_has_left, struct err *e)
{
	struct drain d = { .kernel = f->p.kernel, .until = { f->deadline.ms - MARGIN_MS } };
	enum rc      rc = drain(&d, e);

	*done += d.done;
	*ret_has_left = d.has_left;
	return rc;
}

/* Alarms are computed when nothing is due any more: between two ticks much is, and nothing is wrong with that. */
static enum rc work(struct function *f, enum shape shape, size_t *ret_done, bool *ret_has_left, struct err *e)
{
	enum rc rc;

	*ret_done = 0;
	*ret_has_left = false;
	if (shape == SHAPE_TICK && ((rc = messages_arm(f->p.messages, e)) || (rc = wiring_arm(f->wiring, e))))
		return rc;
	rc = do_what_is_due(f, ret_done, ret_has_left, e);
	if (rc || shape != SHAPE_TICK || *ret_has_left)
		return rc;
	wiring_watch(f->wiring);
	return do_what_is_due(f, ret_done, ret_has_left, e);
}

static enum rc answer(struct function *f, const struct lambda_invocation *asked, struct arena *a, struct str *ret,
                      struct err *e)
{
	CLEANUP(json_freep) json_t *payload = NULL;
	enum shape                  shape;
	size_t                      done = 0;
	bool                        has_left = false;
	enum rc                     rc;

	if ((rc = json_parse(asked->payload, &payload, e)))
		return err_wrap(e, rc, "the payload");
	shape = shape_of(payload);
	if (shape == SHAPE_UNKNOWN)
		return err_set(
		        e, RC_INVALID,
		        "the payload must be a batch of SQS, the bell of a schedule (accountId, schedulerName), or "
		        "{\"leasehold\": \"tick\"}");
	if (!f->has_looked)
		f->has_looked = webhook_refresh(f->p.kernel, NULL) == RC_OK;
	if (shape == SHAPE_BATCH)
		*ret = take_batch(f, json_object_get(payload, "Records"), a);
	rc = work(f, shape, &done, &has_left, e);
	messages_write_figures(f->p.messages);
	log_write(rc ? LOG_WARNING : LOG_INFO, "lambda",
	          (struct log_field[]){ LOG_STR("invocation", asked->id), LOG_STR("trace", asked->trace),
	                                LOG_NUM("done", done), LOG_NUM("has_left", has_left),
	                                LOG_STR("why", str_from(rc ? e->msg : "")) },
	          5, "invoked");
	if (shape == SHAPE_BATCH)
		return RC_OK; /* what is stored is done by the next one */
	*ret = JSON_OF(a, member_int("done", (int64_t)done), member_bool("hasLeft", has_left));
	return rc;
}

/* False: the runtime is gone. */
static bool serve_one(struct function *f, struct arena *a)
{
	struct lambda_invocation asked;
	struct str               said = STR("{}");
	struct trace             trace, before;
	struct err               e = { 0 }, lost = { 0 };
	enum rc                  rc = lambda_next(f->at, a, &asked, &lost);

	if (!rc) {
		(void)trace_read(STR(""), asked.trace, &trace);
		before = trace_enter(str_from(trace.text));
		watch_time(f, asked.deadline_ms);
		rc = answer(f, &asked, a, &said, &e);
		fetch_watch(NULL, NULL);
		trace_return(&before);
		log_flush();
		rc = rc ? lambda_fail(f->at, asked.id, rc == RC_INVALID ? "Leasehold.Invalid" : "Leasehold.Unavailable",
		                      e.msg, a, &lost)
		        : lambda_respond(f->at, asked.id, said, a, &lost);
	}
	if (rc)
		log_write(LOG_ERROR, "lambda", NULL, 0, "the runtime cannot be reached: %s", lost.msg);
	log_flush();
	return !rc;
}

/* --- run --- */

static int fail_to_start(const char *at, const char *type, const char *text)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct err                       e = { 0 };

	fprintf(stderr, "leasehold: %s\n", text);
	if (lambda_init_error(at, type, text, &a, &e))
		fprintf(stderr, "leasehold: the runtime cannot be told: %s\n", e.msg);
	return EXIT_FAILURE;
}

int lambda_run(struct config *c, struct buf *problems, bool has_folder)
{
	struct function f = { .at = getenv(RUNTIME_API), .p = { .config = c } };
	struct arena    a = { 0 };
	struct err      e = { 0 };

	if (!f.at) {
		fprintf(stderr,
		        "leasehold: " RUNTIME_API " is not set: this command is for AWS Lambda, which sets it\n");
		return EXIT_USAGE;
	}
	log_flush_before_abort();
	signal(SIGPIPE, SIG_IGN);
	umask(077);
	fetch_global_init();
	if (!problems->n)
		secrets_read(c, problems);
	check(c, has_folder, problems);
	if (problems->n)
		return fail_to_start(f.at, "Leasehold.Settings", str_dup(&a, buf_str(problems)).p);
	if (start(&f, &e))
		return fail_to_start(f.at, "Leasehold.Start", e.msg);
	while (serve_one(&f, &a))
		arena_reset(&a);
	/* The system takes back what is open: nothing is under way between two invocations. */
	_exit(EXIT_FAILURE);
}

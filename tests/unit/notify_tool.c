/* SPDX-License-Identifier: Apache-2.0 */
/*
 * notify_tool.c - sends one mail or one webhook, for tests with real servers: one JSON object on standard input, "ok"
 * or the failure on standard output.
 *
 *   notify_tool mail      {"url", "tls": "required", "user", "password", "from", "caFile", "to", "event": {...}}
 *   notify_tool webhook   {"url", "secret", "paused": 1, "gone": 1, "allowsPrivate": 1, "caFile", "tries", "event": {...}}
 *
 * The event's members are id, type, subject, actor, detail (an object), time (seconds).
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/id.h"
#include "base/json.h"
#include "base/log.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "net/fetch.h"
#include "providers/notify/mail.h"
#include "providers/notify/webhook_out.h"
#include "service/services.h"
#include "store/memory/memory.h"
#include "store/session.h"

enum { INPUT_MAX = 1 << 20 };

static void give_up(const char *why)
{
	fprintf(stderr, "notify_tool: %s\n", why);
	exit(2);
}

static struct str member(const json_t *object, const char *name)
{
	struct str ret;

	if (!json_get_text(object, name, &ret))
		give_up(name);
	return ret;
}

/* NULL when it is missing. */
static const char *text_or_null(const json_t *object, const char *name)
{
	struct str text = member(object, name);

	return text.n ? text.p : NULL;
}

static int64_t number(const json_t *object, const char *name, int64_t fallback)
{
	int64_t ret;

	if (!json_get_number(object, name, fallback, &ret))
		give_up(name);
	return ret;
}

static struct event read_event(const json_t *in, struct arena *a)
{
	const json_t *event = json_object_get(in, "event");
	char         *detail = json_dumps(json_object_get(event, "detail"), JSON_COMPACT);
	struct event  ret = { .id = member(event, "id"),
		              .type = member(event, "type"),
		              .subject = member(event, "subject"),
		              .actor = member(event, "actor"),
		              .time_ms = number(event, "time", 1700000000) * 1000,
		              .schema = 1,
		              .detail = str_dup(a, str_from(detail)) };

	free(detail);
	return ret;
}

static enum rc send_mail(const json_t *in, struct delivery *d, struct call *c, struct err *e)
{
	struct mail_server server = { .url = text_or_null(in, "url"),
		                      .tls = str_eq(member(in, "tls"), STR("required")) ? MAIL_TLS_REQUIRED
		                                                                        : MAIL_TLS_IF_OFFERED,
		                      .user = text_or_null(in, "user"),
		                      .password = text_or_null(in, "password"),
		                      .from = text_or_null(in, "from"),
		                      .ca_file = text_or_null(in, "caFile") };

	d->target = member(in, "to");
	c->arg = &server;
	return mail_out_call(c, e);
}

static uint64_t draw(void *arg)
{
	(void)arg;
	return id_fast_random();
}

static enum rc put_webhook(struct session *s, void *arg, struct err *e)
{
	(void)e;
	session_add(s, &webhook_type, arg);
	return RC_OK;
}

static enum rc send_webhook(const json_t *in, struct delivery *d, struct call *c, struct err *e)
{
	struct store      *store = store_memory_open(service_types, service_type_count, c->clock);
	struct kernel     *kernel = kernel_new(&(struct kernel_options){
	            .store = store, .clock = c->clock, .source = STR("leasehold"), .random = draw });
	struct webhook     hook = { .id = STR("hook-1"),
		                    .url = member(in, "url"),
		                    .filter = STR("*"),
		                    .secret = member(in, "secret"),
		                    .is_paused = number(in, "paused", 0) };
	struct webhook_out out = { kernel, number(in, "allowsPrivate", 0) != 0, text_or_null(in, "caFile") };
	enum rc            rc = RC_OK;

	if (!number(in, "gone", 0))
		rc = store_run(store, put_webhook, &hook, c->arena, e);
	d->target = hook.id;
	d->tries = number(in, "tries", 1);
	c->arg = &out;
	if (!rc)
		rc = webhook_out_call(c, e);
	kernel_free(kernel);
	store_close(store);
	return rc;
}

static bool go_on(struct call *c)
{
	(void)c;
	return true;
}

int main(int argc, char **argv)
{
	CLEANUP(json_freep) json_t *in = NULL;
	static char                 input[INPUT_MAX];
	struct arena                a = { 0 };
	struct err                  e = { 0 };
	struct delivery             d = { 0 };
	struct call                 c = { .delivery = &d, .arena = &a, .clock = &clock_real, .go_on = go_on };
	enum rc                     rc;

	if (argc != 2 || json_parse(str_of(input, fread(input, 1, sizeof(input), stdin)), &in, &e))
		give_up(argc != 2 ? "say mail or webhook" : e.msg);
	log_setup(LOG_ERROR, LOG_JSON);
	fetch_global_init();
	d.event = read_event(in, &a);
	rc = strcmp(argv[1], "mail") == 0 ? send_mail(in, &d, &c, &e) : send_webhook(in, &d, &c, &e);
	printf("%s\n", rc ? e.msg : "ok");
	arena_fini(&a);
	return rc ? 1 : 0;
}

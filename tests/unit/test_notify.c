/* SPDX-License-Identifier: Apache-2.0 */
/* test_notify.c - who gets a mail, what signatures and messages look like, what the log gets. Sending is in
 * tests/api/test_mail.py. */
#include "test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/json.h"
#include "base/log.h"
#include "kernel/event.h"
#include "kernel_rig.h"
#include "providers/notify/log_sink.h"
#include "providers/notify/mail.h"
#include "providers/notify/message.h"
#include "providers/notify/webhook_out.h"

enum { HEARD_MAX = 2 * MAIL_RECIPIENTS_MAX };

struct heard {
	char list[HEARD_MAX][160]; /* "address type" */
	int  count;
	char refused[64]; /* this address fails */
};

struct rig {
	struct kernel_rig  base;
	struct heard       heard;
	struct mail_rule   rules[2];
	struct mail_routes mail;
	struct queue       queues[3];
	struct route       routes[2];
	int                extra; /* recipients that the resolver finds */
};

static enum rc take(struct call *c, struct err *e)
{
	struct heard *h = c->arg;

	if (str_eq(c->delivery->target, str_from(h->refused)))
		return err_set(e, RC_UNAVAILABLE, "550 no such user");
	CHECK(h->count < HEARD_MAX);
	snprintf(h->list[h->count++], sizeof(h->list[0]), "%.*s %.*s", STR_ARG(c->delivery->target),
	         STR_ARG(c->delivery->event.type));
	return RC_OK;
}

static enum rc find_holders(struct session *s, const struct event *event, void *arg, struct mail_recipients *to,
                            struct err *e)
{
	const int *extra = arg;
	enum rc    rc = RC_OK;

	(void)event;
	for (int i = 0; !rc && i < *extra; i++)
		rc = mail_add_recipient(to, str_format(session_arena(s), "holder-%d@example.org", i), e);
	return rc;
}

static void open_rig(struct rig *r)
{
	*r = (struct rig){ .rules = { { STR("Alarm*,SagaParked"), STR("ops@example.org, boss@example.org") },
		                      { STR("AlarmRaised"), STR("OPS@example.org") } } };
	r->mail = (struct mail_routes){ r->rules, 2, find_holders, &r->extra };
	r->queues[0] = (struct queue){ .name = "mail", .handle = mail_fan_out, .arg = &r->mail };
	r->queues[1] = (struct queue){ .name = "mail-out", .call = take, .arg = &r->heard };
	r->queues[2] = (struct queue){ .name = "log", .handle = log_sink_handle };
	r->routes[0] = (struct route){ "*", "mail" };
	r->routes[1] = (struct route){ "Logged", "log" };
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 3, .routes = r->routes, .route_count = 2
	};
	rig_open(&r->base);
}

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	struct event event = {
		.type = str_from(arg), .subject = STR("alarm/x"), .actor = STR("alarms"), .detail = STR("{\"n\":1}")
	};

	return session_emit(s, &event, e);
}

static bool has_heard(const struct heard *h, const char *line)
{
	for (int i = 0; i < h->count; i++)
		if (strcmp(h->list[i], line) == 0)
			return true;
	return false;
}

static int64_t count_dead(struct rig *r, const char *queue, struct dead *ret)
{
	struct dead_list list = { .queue = str_from(queue), .limit = 10 };

	rig_run(&r->base, dead_list, &list);
	if (list.page.count)
		*ret = *(struct dead *)page_record(&list.page, &dead_type, 0);
	return (int64_t)list.page.count;
}

/* --- recipients --- */

TEST(each_recipient_gets_an_event_once_whatever_rule_names_it)
{
	struct rig r;

	open_rig(&r);
	r.extra = 1;
	rig_run(&r.base, emit, (char[]){ "AlarmRaised" });
	rig_turn(&r.base);
	CHECK(r.heard.count == 3);
	CHECK(has_heard(&r.heard, "ops@example.org AlarmRaised"));
	CHECK(has_heard(&r.heard, "boss@example.org AlarmRaised"));
	CHECK(has_heard(&r.heard, "holder-0@example.org AlarmRaised"));
	rig_close(&r.base);
}

TEST(an_event_without_recipients_is_done)
{
	struct rig r;

	open_rig(&r);
	rig_run(&r.base, emit, (char[]){ "Other" });
	CHECK(rig_turn(&r.base) == 1);
	CHECK(r.heard.count == 0);
	rig_close(&r.base);
}

TEST(an_address_that_is_refused_holds_up_nobody_else)
{
	struct rig  r;
	struct dead dead = { 0 };

	open_rig(&r);
	snprintf(r.heard.refused, sizeof(r.heard.refused), "ops@example.org");
	rig_run(&r.base, emit, (char[]){ "AlarmRaised" });
	rig_run(&r.base, emit, (char[]){ "AlarmCleared" });
	rig_pass(&r.base, 3600 * 1000);
	CHECK(r.heard.count == 2);
	CHECK(has_heard(&r.heard, "boss@example.org AlarmRaised"));
	CHECK(has_heard(&r.heard, "boss@example.org AlarmCleared"));
	CHECK(count_dead(&r, "mail-out", &dead) == 2);
	CHECK(str_eq(dead.target, STR("ops@example.org")));
	CHECK(strstr(dead.error.p, "550 no such user") != NULL);
	rig_close(&r.base);
}

TEST(as_many_recipients_as_there_may_be_fit_and_one_more_is_said)
{
	struct rig  r;
	struct dead dead = { 0 };

	open_rig(&r);
	r.extra = MAIL_RECIPIENTS_MAX - 2;
	rig_run(&r.base, emit, (char[]){ "AlarmRaised" });
	rig_run(&r.base, emit, (char[]){ "SagaParked" });
	rig_turn(&r.base);
	CHECK(r.heard.count == 2 * MAIL_RECIPIENTS_MAX);
	rig_close(&r.base);

	open_rig(&r);
	r.extra = MAIL_RECIPIENTS_MAX - 1;
	rig_run(&r.base, emit, (char[]){ "AlarmRaised" });
	rig_pass(&r.base, 3600 * 1000);
	CHECK(r.heard.count == 0);
	CHECK(count_dead(&r, "mail", &dead) == 1);
	CHECK(strstr(dead.error.p, "more than 40 recipients") != NULL);
	rig_close(&r.base);
}

TEST(settings_that_cannot_work_are_refused)
{
	struct mail_rule   rule = { STR("*"), STR("ops@example.org, nobody") };
	struct mail_routes routes = { .rules = &rule, .rule_count = 1 };
	struct err         e = { 0 };

	CHECK(mail_routes_check(&routes, &e) == RC_INVALID && strstr(e.msg, "\"nobody\"") != NULL);
	rule.to = STR("ops@example.org");
	CHECK(mail_routes_check(&routes, NULL) == RC_OK);
	CHECK(mail_server_check(&(struct mail_server){ .url = "smtp://h", .from = "a@b.c" }, NULL) == RC_OK);
	CHECK(mail_server_check(&(struct mail_server){ .url = "smtps://[::1]:465", .from = "a@b.c" }, NULL) == RC_OK);
	CHECK(mail_server_check(&(struct mail_server){ .url = "smtp://h", .from = "a" }, NULL) == RC_INVALID);
	CHECK(mail_server_check(&(struct mail_server){ .url = "smtp://u:p@h", .from = "a@b.c" }, NULL) == RC_INVALID);
	CHECK(mail_server_check(&(struct mail_server){ .url = NULL, .from = "a@b.c" }, NULL) == RC_INVALID);
}

/* --- messages --- */

static bool all_lines_are_short(struct str message)
{
	while (message.n) {
		struct str line = str_cut(&message, '\n');

		if (line.n > 76 + 1 || line.n == 0 || line.p[line.n - 1] != '\r')
			return false;
	}
	return true;
}

static bool never(struct call *c)
{
	(void)c;
	return false;
}

/* A server that takes the connection and says nothing. */
TEST(a_mail_under_way_ends_when_the_process_does)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t          size = sizeof(address);
	int                fd = socket(AF_INET, SOCK_STREAM, 0);
	struct arena       a = { 0 };
	struct mail_server server = { .from = "leasehold@example.org" };
	struct delivery    d = { .event = { .id = STR("1"), .type = STR("T"), .subject = STR("s") },
		                 .target = STR("ann@example.org") };
	struct call        c = { .delivery = &d, .arena = &a, .clock = &clock_real, .arg = &server, .go_on = never };
	int64_t            began_ms = mono_now().ms;

	CHECK(bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 4) == 0);
	CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
	server.url = str_format(&a, "smtp://127.0.0.1:%d", ntohs(address.sin_port)).p;
	CHECK(mail_out_call(&c, NULL) == RC_UNAVAILABLE);
	CHECK(mono_now().ms - began_ms < 5000);
	close(fd);
	arena_fini(&a);
}

TEST(the_longest_event_is_still_a_message_of_short_lines)
{
	struct arena a = { 0 };
	struct event event = { .id = STR("01900000-0000-7000-8000-000000000001"), .schema = 1 };
	struct buf   b;
	char         wide[SUBJECT_MAX + 1];
	struct str   message;

	memset(wide, 0xff, sizeof(wide)); /* each byte is three characters of quoted-printable */
	buf_init(&b, DETAIL_MAX);
	buf_add_char(&b, '{');
	for (int i = 0; i < 50; i++)
		buf_addf(&b, "%s\"%0120d\":\"%01050d\"", i ? "," : "", i, i);
	buf_add_char(&b, '}');
	CHECK(!b.is_full);
	event.type = str_of(wide, EVENT_TYPE_MAX);
	event.subject = str_of(wide, SUBJECT_MAX);
	event.actor = str_of(wide, ACTOR_MAX);
	event.detail = buf_str(&b);
	message = message_write(&event, STR("a@example.org"), STR("b@example.org"), 1700000000, &a);
	CHECK(text_has(message, "and more"));
	event.type = STR("T"); /* plain headers are not folded, encoded ones are */
	memset(wide, 0, sizeof(wide));
	for (size_t i = 0; i + 2 < SUBJECT_MAX; i += 2)
		memcpy(wide + i, "\xc3\xa4", 2);
	event.subject = str_from(wide);
	message = message_write(&event, STR("a@example.org"), STR("b@example.org"), 1700000000, &a);
	CHECK(all_lines_are_short(message));
	CHECK(text_has(message, "Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"));
	buf_fini(&b);
	arena_fini(&a);
}

TEST(a_detail_that_is_no_json_is_left_out)
{
	struct arena a = { 0 };
	struct event event = { .id = STR("1"), .type = STR("T"), .subject = STR("s"), .detail = STR("{broken") };
	struct str   message = message_write(&event, STR("a@b.c"), STR("d@e.f"), 0, &a);

	CHECK(!text_has(message, "Details"));
	CHECK(text_has(message, "leasehold event 1"));
	arena_fini(&a);
}

/* --- signatures --- */

TEST(a_signature_is_the_one_that_others_compute)
{
	/* printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac 'the secret of two' */
	struct arena a = { 0 };
	struct str   signature = sign_body(STR("the secret of two"), 1700000000, STR("{\"a\":1}"), &a);

	CHECK(str_eq(signature,
	             STR("t=1700000000,v1=68c4fe8eb865117fcd2c7e8cc407d892727de1a2ee07db9f3a4c09b6c7c7f709")));
	arena_fini(&a);
}

/* --- the log --- */

/* Standard output of what is done in between, in a file. */
struct captured {
	FILE *file;
	int   stdout_before;
};

static void capture(struct captured *c)
{
	c->file = tmpfile();
	CHECK(c->file != NULL);
	fflush(stdout);
	c->stdout_before = dup(STDOUT_FILENO);
	CHECK(dup2(fileno(c->file), STDOUT_FILENO) >= 0);
}

static void release(struct captured *c, char *ret, size_t size)
{
	log_flush();
	CHECK(dup2(c->stdout_before, STDOUT_FILENO) >= 0);
	close(c->stdout_before);
	rewind(c->file);
	memset(ret, 0, size);
	CHECK(fread(ret, 1, size - 1, c->file) > 0);
	fclose(c->file);
}

TEST(the_log_gets_one_line_with_the_envelope)
{
	struct rig      r;
	struct captured c;
	char            line[4096];
	json_t         *parsed = NULL;
	struct str      text;

	open_rig(&r);
	rig_run(&r.base, emit, (char[]){ "Logged" });
	capture(&c);
	rig_turn(&r.base);
	release(&c, line, sizeof(line));
	CHECK(strchr(line, '\n') == strrchr(line, '\n'));
	CHECK(json_parse(str_from(line), &parsed, NULL) == RC_OK);
	CHECK(json_get_text(parsed, "type", &text) && str_eq(text, STR("Logged")));
	CHECK(json_get_text(parsed, "subject", &text) && str_eq(text, STR("alarm/x")));
	CHECK(json_get_text(parsed, "actor", &text) && str_eq(text, STR("alarms")));
	CHECK(json_get_text(parsed, "detail", &text) && str_eq(text, STR("{\"n\":1}")));
	CHECK(json_get_text(parsed, "event", &text) && text.n == 36);
	CHECK(json_get_text(parsed, "level", &text) && str_eq(text, STR("INFO")));
	json_decref(parsed);
	rig_close(&r.base);
}

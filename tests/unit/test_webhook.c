/* SPDX-License-Identifier: Apache-2.0 */
/* test_webhook.c - the webhooks' records and who of them an event is for, on a kernel of the memory store. */
#include "test.h"

#include <stdio.h>
#include <string.h>

#include "kernel/event.h"
#include "kernel/edge/webhook.h"
#include "kernel_rig.h"

enum { HEARD_MAX = 256 };

/* What was passed on: "webhook's number type subject", with numbers in the order of creation. */
struct heard {
	char       list[HEARD_MAX][160];
	int        count;
	struct str ids[WEBHOOKS_MAX];
	int        id_count;
};

struct rig {
	struct kernel_rig base;
	struct heard      heard;
	struct queue      queues[2];
	struct route      routes[1];
};

static int number_of(const struct heard *h, struct str id)
{
	for (int i = 0; i < h->id_count; i++)
		if (str_eq(h->ids[i], id))
			return i;
	return -1;
}

static enum rc take(struct call *c, struct err *e)
{
	struct heard          *h = c->arg;
	const struct delivery *d = c->delivery;

	(void)e;
	CHECK(h->count < HEARD_MAX);
	snprintf(h->list[h->count++], sizeof(h->list[0]), "%d %.*s", number_of(h, d->target), STR_ARG(d->event.type));
	return RC_OK;
}

static void open_rig(struct rig *r)
{
	*r = (struct rig){ 0 };
	r->queues[0] = (struct queue){ .name = "webhook", .handle = webhook_fan_out, .has_addressees = true };
	r->queues[1] = (struct queue){ .name = "webhook-out", .call = take, .arg = &r->heard };
	r->routes[0] = (struct route){ "*", "webhook" };
	r->base.options = (struct kernel_options){
		.queues = r->queues, .queue_count = 2, .routes = r->routes, .route_count = 1
	};
	rig_open(&r->base);
}

static struct str copy(struct rig *r, struct str text)
{
	return str_dup(&r->base.arena, text);
}

static struct webhook_call call_of(const char *url, const char *filter)
{
	return (struct webhook_call){ .fields = { .url = str_from(url), .filter = str_from(filter) },
		                      .actor = STR("admin"),
		                      .request_id = STR("req-1") };
}

static void refresh(struct rig *r)
{
	CHECK(webhook_refresh(r->base.kernel, NULL) == RC_OK);
}

/* Made, and known to the kernel. What its making tells is out of the way. */
static struct str create(struct rig *r, const char *filter)
{
	struct webhook_call call = call_of("https://example.org/hook", filter);

	rig_run(&r->base, webhook_create, &call);
	r->heard.ids[r->heard.id_count++] = copy(r, call.webhook.id);
	refresh(r);
	rig_turn(&r->base);
	r->heard.count = 0;
	return copy(r, call.webhook.id);
}

static enum rc emit(struct session *s, void *arg, struct err *e)
{
	struct event event = { .type = str_from(arg), .subject = STR("thing/1"), .actor = STR("admin") };

	return session_emit(s, &event, e);
}

static void emit_one(struct rig *r, const char *type)
{
	char copy_of_type[EVENT_TYPE_MAX + 1];

	snprintf(copy_of_type, sizeof(copy_of_type), "%s", type);
	rig_run(&r->base, emit, copy_of_type);
	rig_turn(&r->base);
}

static bool has_heard(const struct heard *h, const char *line)
{
	for (int i = 0; i < h->count; i++)
		if (strcmp(h->list[i], line) == 0)
			return true;
	return false;
}

/* The newest event of the type; fails the test when there is none. */
static struct event newest(struct rig *r, const char *type)
{
	struct event_list list = { .type = str_from(type), .limit = 1, .is_newest_first = true };

	CHECK(store_read(r->base.store, event_list, &list, &r->base.arena, NULL) == RC_OK);
	CHECK(list.count == 1);
	return list.events[0];
}

/* --- URLs --- */

static const struct {
	const char *url;
	bool        is_ok, is_ok_when_private;
} urls[] = {
	{ "https://example.org", true, true },
	{ "http://example.org:8080/a/b?token=1#x", true, true },
	{ "https://8.8.8.8/", true, true },
	{ "https://[2606:4700::1111]:443/", true, true },
	{ "https://xn--bcher-kva.example/", true, true },
	{ "http://localhost:1/", false, true },
	{ "http://LOCALHOST/", false, true },
	{ "http://a.localhost/", false, true },
	{ "http://127.0.0.1:9/", false, true },
	{ "http://10.0.0.1/", false, true },
	{ "http://[::1]/", false, true },
	{ "http://[::ffff:127.0.0.1]/", false, true },
	{ "http://169.254.169.254/latest/meta-data", false, false },
	{ "http://[fe80::1]/", false, false },
	{ "http://[::ffff:169.254.169.254]/", false, false },
	{ "http://2852039166/", false, false },
	{ "http://127.1/", false, false },
	{ "http://0x7f.0.0.1/", false, false },
	{ "http://0177.0.0.1/", false, false },
	{ "http://example.org.:80/", false, false },
	{ "http://127.0.0.1./", false, false },
	{ "ftp://example.org/", false, false },
	{ "HTTP://example.org/", false, false },
	{ "example.org", false, false },
	{ "", false, false },
	{ "https://", false, false },
	{ "https:///path", false, false },
	{ "https://:443/", false, false },
	{ "https://user:password@example.org/", false, false },
	{ "https://user@example.org/", false, false },
	{ "https://example.org\\@169.254.169.254/", false, false },
	{ "https://example.org:0/", false, false },
	{ "https://example.org:65536/", false, false },
	{ "https://example.org:/", false, false },
	{ "https://example.org:80x/", false, false },
	{ "https://exa mple.org/", false, false },
	{ "https://ex%61mple.org/", false, false },
	{ "https://example..org/", false, false },
	{ "https://-example.org/", false, false },
	{ "https://example.org/\r\nX: y", false, false },
	{ "https://b\xc3\xbc"
	  "cher.example/",
	  false, false },
	{ "https://[::1/", false, false },
	{ "https://[127.0.0.1]/", false, false },
	{ "https://[]/", false, false },
	{ "https://::1/", false, false },
};

TEST(only_plain_urls_are_taken_and_private_ones_only_when_allowed)
{
	for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
		struct err e = { 0 };

		CASE(urls[i].url);
		CHECK((webhook_url_check(str_from(urls[i].url), false, &e) == RC_OK) == urls[i].is_ok);
		CHECK(urls[i].is_ok || str_starts_with(str_from(e.msg), STR("url: ")));
		CHECK((webhook_url_check(str_from(urls[i].url), true, NULL) == RC_OK) == urls[i].is_ok_when_private);
	}
}

TEST(a_url_has_a_longest_length)
{
	char url[WEBHOOK_URL_MAX + 2] = "https://example.org/";

	memset(url + 20, 'a', sizeof(url) - 21);
	CHECK(webhook_url_check(str_from(url), false, NULL) == RC_INVALID);
	CHECK(webhook_url_check(str_of(url, WEBHOOK_URL_MAX), false, NULL) == RC_OK);
}

TEST(a_shown_url_has_no_query)
{
	CHECK(str_eq(webhook_url_shown(STR("https://a.b/c?token=x#y")), STR("https://a.b/c")));
	CHECK(str_eq(webhook_url_shown(STR("https://a.b/c#y?z")), STR("https://a.b/c")));
	CHECK(str_eq(webhook_url_shown(STR("https://a.b")), STR("https://a.b")));
}

/* --- records --- */

TEST(a_webhook_gets_an_id_a_secret_and_a_filter_for_all)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook", "");

	open_rig(&r);
	rig_run(&r.base, webhook_create, &call);
	CHECK(call.webhook.id.n == 36);
	CHECK(call.webhook.secret.n >= 43);
	CHECK(str_eq(call.webhook.filter, STR("*")));
	CHECK(call.webhook.created_ms == r.base.clock.test_ms);
	CHECK(str_eq(call.webhook.created_by, STR("admin")));
	rig_close(&r.base);
}

static const struct {
	const char    *label, *field;
	struct webhook fields;
} refused[] = {
	{ "no URL", "url:", { .filter = STR_INIT("*") } },
	{ "a private URL", "url:", { .url = STR_INIT("http://127.0.0.1/") } },
	{ "a pattern with a star inside", "filter:", { .url = STR_INIT("http://a.b"), .filter = STR_INIT("A*B") } },
	{ "an empty pattern", "filter:", { .url = STR_INIT("http://a.b"), .filter = STR_INIT("A,,B") } },
	{ "blanks as a pattern", "filter:", { .url = STR_INIT("http://a.b"), .filter = STR_INIT("  ") } },
	{ "a line break in a filter", "filter:", { .url = STR_INIT("http://a.b"), .filter = STR_INIT("A\nB") } },
	{ "a short secret", "secret:", { .url = STR_INIT("http://a.b"), .secret = STR_INIT("fifteen bytes..") } },
	{ "a description of two lines",
	  "description:",
	  { .url = STR_INIT("http://a.b"), .description = STR_INIT("a\nb") } },
};

TEST(what_is_wrong_is_named_and_changes_nothing)
{
	struct rig r;

	open_rig(&r);
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct webhook_call call = { .fields = refused[i].fields, .actor = STR("admin") };
		struct page         list;
		struct err          e = { 0 };

		CASE(refused[i].label);
		CHECK(rig_try(&r.base, webhook_create, &call, &e) == RC_INVALID);
		CHECK(strstr(e.msg, refused[i].field) == e.msg);
		rig_run(&r.base, webhook_list, &list);
		CHECK(list.count == 0);
	}
	rig_close(&r.base);
}

TEST(there_is_a_most)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook", "None");
	struct err          e = { 0 };

	open_rig(&r);
	for (int i = 0; i < WEBHOOKS_MAX; i++)
		rig_run(&r.base, webhook_create, &call);
	CHECK(rig_try(&r.base, webhook_create, &call, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, "remove one") != NULL);
	rig_close(&r.base);
}

TEST(what_a_change_leaves_empty_stays)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook", "Thing* , Other");

	open_rig(&r);
	rig_run(&r.base, webhook_create, &call);
	CHECK(str_eq(call.webhook.filter, STR("Thing*,Other")));
	call = (struct webhook_call){ .id = copy(&r, call.webhook.id),
		                      .fields = { .description = STR("ours"), .is_paused = 1 },
		                      .sets_paused = true };
	rig_run(&r.base, webhook_change, &call);
	rig_run(&r.base, webhook_get, &call);
	CHECK(str_eq(call.webhook.url, STR("https://example.org/hook")));
	CHECK(str_eq(call.webhook.filter, STR("Thing*,Other")));
	CHECK(str_eq(call.webhook.description, STR("ours")));
	CHECK(call.webhook.is_paused);
	rig_close(&r.base);
}

TEST(a_secret_is_told_at_its_making_and_never_again)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook", "*");
	struct page         list;

	open_rig(&r);
	call.fields.secret = STR("a secret of one's own");
	rig_run(&r.base, webhook_create, &call);
	CHECK(str_eq(call.webhook.secret, STR("a secret of one's own")));
	call.id = copy(&r, call.webhook.id);
	rig_run(&r.base, webhook_change, &call);
	CHECK(call.webhook.secret.n == 0);
	rig_run(&r.base, webhook_get, &call);
	CHECK(call.webhook.secret.n == 0);
	rig_run(&r.base, webhook_list, &list);
	CHECK(list.count == 1);
	CHECK(((struct webhook *)page_record(&list, &webhook_type, 0))->secret.n == 0);
	rig_close(&r.base);
}

TEST(each_change_is_audited_without_secret_and_query)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook?token=hidden", "*");
	struct event        event;

	open_rig(&r);
	call.fields.secret = STR("hidden too, of course");
	rig_run(&r.base, webhook_create, &call);
	event = newest(&r, "WebhookCreated");
	CHECK(text_has(event.detail, "https://example.org/hook\"") && !text_has(event.detail, "hidden"));
	CHECK(str_eq(event.actor, STR("admin")) && str_eq(event.request_id, STR("req-1")));
	CHECK(str_starts_with(event.subject, STR("webhook/")));

	call.id = copy(&r, call.webhook.id);
	call.fields = (struct webhook){ .secret = STR("a new hidden one, long enough") };
	rig_run(&r.base, webhook_change, &call);
	event = newest(&r, "WebhookChanged");
	CHECK(text_has(event.detail, "\"changed\":[\"secret\"]") && !text_has(event.detail, "hidden"));

	rig_run(&r.base, webhook_remove, &call);
	event = newest(&r, "WebhookRemoved");
	CHECK(!text_has(event.detail, "hidden"));
	CHECK(rig_try(&r.base, webhook_remove, &call, NULL) == RC_NOT_FOUND);
	rig_close(&r.base);
}

TEST(a_change_that_changes_nothing_tells_nothing)
{
	struct rig          r;
	struct webhook_call call = call_of("https://example.org/hook", "*");
	struct event_list   list = { .type = STR("WebhookChanged"), .limit = 1 };

	open_rig(&r);
	rig_run(&r.base, webhook_create, &call);
	call.id = copy(&r, call.webhook.id);
	rig_run(&r.base, webhook_change, &call);
	rig_run(&r.base, event_list, &list);
	CHECK(list.count == 0);
	rig_close(&r.base);
}

/* --- fan-out --- */

TEST(an_event_goes_once_to_each_webhook_whose_filter_matches)
{
	struct rig r;

	open_rig(&r);
	create(&r, "*");
	create(&r, "Thing*");
	create(&r, "ThingSold,Other");
	create(&r, "Nothing");
	emit_one(&r, "ThingSold");
	CHECK(r.heard.count == 3);
	CHECK(has_heard(&r.heard, "0 ThingSold") && has_heard(&r.heard, "1 ThingSold") &&
	      has_heard(&r.heard, "2 ThingSold"));
	r.heard.count = 0;
	emit_one(&r, "Other");
	CHECK(r.heard.count == 2);
	CHECK(has_heard(&r.heard, "0 Other") && has_heard(&r.heard, "2 Other"));
	rig_close(&r.base);
}

TEST(as_many_webhooks_as_there_may_be_fit_into_one_transaction)
{
	struct rig r;

	open_rig(&r);
	for (int i = 0; i < WEBHOOKS_MAX; i++)
		create(&r, "Thing");
	emit_one(&r, "Thing");
	emit_one(&r, "Thing");
	CHECK(r.heard.count == 2 * WEBHOOKS_MAX);
	rig_close(&r.base);
}

TEST(a_paused_webhook_is_not_told)
{
	struct rig          r;
	struct webhook_call call = { .fields = { .is_paused = 1 }, .sets_paused = true };
	struct err          e = { 0 };

	open_rig(&r);
	call.id = create(&r, "Thing");
	rig_run(&r.base, webhook_change, &call);
	emit_one(&r, "Thing");
	CHECK(r.heard.count == 0);
	CHECK(rig_try(&r.base, webhook_test, &call, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, "paused") != NULL);
	rig_close(&r.base);
}

TEST(a_test_goes_to_the_one_it_is_for_whatever_the_filters_say)
{
	struct rig          r;
	struct webhook_call call = { .actor = STR("admin") };

	open_rig(&r);
	create(&r, "*");
	call.id = create(&r, "Nothing");
	create(&r, "WebhookTest");
	rig_run(&r.base, webhook_test, &call);
	rig_turn(&r.base);
	CHECK(r.heard.count == 1);
	CHECK(has_heard(&r.heard, "1 WebhookTest"));
	rig_close(&r.base);
}

TEST(without_webhooks_there_is_nothing_to_deliver)
{
	struct rig          r;
	struct webhook_call call = { .actor = STR("admin") };

	open_rig(&r);
	refresh(&r);
	rig_run(&r.base, emit, (char[]){ "Thing" });
	CHECK(rig_turn(&r.base) == 0);
	call.id = create(&r, "*");
	rig_run(&r.base, webhook_remove, &call);
	refresh(&r);
	rig_turn(&r.base);
	r.heard = (struct heard){ 0 };
	rig_run(&r.base, emit, (char[]){ "Thing" });
	rig_turn(&r.base);
	CHECK(r.heard.count == 0);
	rig_close(&r.base);
}

/* The answer to the removal of the last one may be worked on after the next one was made. */
TEST(a_webhook_made_while_the_last_one_is_removed_misses_nothing)
{
	struct rig          r;
	struct webhook_call old = { .actor = STR("admin") };
	struct webhook_call made = { .actor = STR("admin"), .fields = { .url = STR("https://example.org/new") } };

	open_rig(&r);
	old.id = create(&r, "*");
	rig_run(&r.base, webhook_remove, &old);
	refresh(&r);
	rig_run(&r.base, webhook_create, &made);
	rig_turn(&r.base);
	r.heard = (struct heard){ 0 };
	rig_run(&r.base, emit, (char[]){ "Thing" });
	rig_turn(&r.base);
	CHECK(r.heard.count == 1);
	rig_close(&r.base);
}

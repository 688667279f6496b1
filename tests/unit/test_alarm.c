/* SPDX-License-Identifier: Apache-2.0 */
/* test_alarm.c - alarms: when they are raised, changed and cleared, that each is told once, and what each rule
 * finds. */
#include "test.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "kernel/alarm/alarm.h"
#include "kernel/kernel.h"
#include "kernel/alarm/node.h"
#include "kernel/queue.h"
#include "kernel/saga.h"
#include "pool.h"
#include "service/alarms/alarms.h"
#include "service/broker/passes.h"
#include "service/guard/guard.h"
#include "store/session.h"

enum { MINUTE = 60000, FAKE_MAX = 64 };
static const int64_t now_ms = POOL_NOW_SEC * 1000ll;

struct finding {
	struct str          instance;
	enum alarm_severity severity;
	int64_t             value;
	struct str          evidence;
};

/* What the two rules of a test say. */
struct fake {
	struct finding one[FAKE_MAX], two[FAKE_MAX];
	size_t         one_count, two_count;
	enum rc        one_rc;
};

struct fixture {
	struct pool                *pool;
	struct kernel              *kernel;
	struct fake                 fake;
	struct broker_settings      settings;
	struct broker_alarm_context context;
	struct alarm_check          check;
	struct err                  e;
};

static uint64_t count_up(void *arg)
{
	return ++*(uint64_t *)arg;
}

static enum rc take(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	(void)s, (void)d, (void)arg, (void)e;
	return RC_OK;
}

static const struct queue queues[] = {
	{ .name = "mail", .handle = take },   { .name = "hooks", .handle = take }, { .name = "third", .handle = take },
	{ .name = "fourth", .handle = take }, { .name = "fifth", .handle = take },
};

/* With routes, every alarm goes to all queues. */
static void fixture_open(struct fixture *f, struct pool *p, bool has_routes)
{
	static const struct route            routes[] = { { "Alarm*", "mail" },
		                                          { "Alarm*", "hooks" },
		                                          { "Alarm*", "third" },
		                                          { "Alarm*", "fourth" },
		                                          { "Alarm*", "fifth" } };
	static const struct saga_step        steps[] = { { .name = "grant" }, { .name = "move" } };
	static const struct saga_kind        lend = { .name = "lend", .steps = steps, .step_count = ARRAY_LEN(steps) };
	static const struct saga_kind *const sagas[] = { &lend };
	static uint64_t                      number;

	*f = (struct fixture){ .pool = p };
	f->kernel = kernel_new(&(struct kernel_options){ .store = p->store,
	                                                 .clock = &p->clock,
	                                                 .node = STR("node-1"),
	                                                 .queues = queues,
	                                                 .queue_count = ARRAY_LEN(queues),
	                                                 .routes = routes,
	                                                 .route_count = has_routes ? ARRAY_LEN(routes) : 0,
	                                                 .sagas = sagas,
	                                                 .saga_count = ARRAY_LEN(sagas),
	                                                 .random = count_up,
	                                                 .random_arg = &number });
	kernel_free(p->kernel); /* nothing has run on it */
	p->kernel = f->kernel;  /* ended with the pool, after its store */
	f->context.settings = &f->settings;
}

static void fixture_init(struct fixture *f, struct pool *p)
{
	fixture_open(f, p, false);
}

static void add_fake(struct findings *ret, const struct finding *f)
{
	findings_add(ret, f->instance, f->severity, f->value, "%.*s", STR_ARG(f->evidence));
}

static enum rc find_one(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct fake *fake = arg;

	(void)s;
	for (size_t i = 0; i < fake->one_count; i++)
		add_fake(ret, &fake->one[i]);
	return fake->one_rc ? err_set(e, fake->one_rc, "cannot look today") : RC_OK;
}

static enum rc find_two(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	const struct fake *fake = arg;

	(void)s, (void)e;
	for (size_t i = 0; i < fake->two_count; i++)
		add_fake(ret, &fake->two[i]);
	return RC_OK;
}

static const struct alarm_rule fake_rules[] = {
	{ "one", find_one, MINUTE, "docs/runbook.md#one", "the first" },
	{ "one-more", find_two, 0, "docs/runbook.md#one-more", "its name begins like the first's" },
};

static enum rc check_fakes(struct fixture *f)
{
	f->check = (struct alarm_check){
		.kernel = f->kernel, .rules = fake_rules, .rule_count = ARRAY_LEN(fake_rules), .arg = &f->fake
	};
	err_clear(&f->e);
	return alarm_check(&f->check, &f->e);
}

static void say_one(struct fixture *f, const char *instance, enum alarm_severity severity, const char *evidence)
{
	f->fake.one[f->fake.one_count++] = (struct finding){
		.instance = str_from(instance), .severity = severity, .value = 7, .evidence = str_from(evidence)
	};
}

static void say_two(struct fixture *f, const char *instance)
{
	f->fake.two[f->fake.two_count++] = (struct finding){ .instance = str_from(instance),
		                                             .evidence = STR("it is so") };
}

static void pass_time(struct fixture *f, int64_t ms)
{
	f->pool->clock.test_ms += ms;
}

/* --- what is stored --- */

struct putting {
	const struct record_type *type;
	void                     *record;
	void                     *scratch;
};

static enum rc put_record(struct session *s, void *arg, struct err *e)
{
	struct putting *p = arg;
	enum rc         rc = session_get(s, p->type, record_key(p->type, p->record), p->scratch, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "cannot be read");
	session_put(s, p->type, p->record);
	return RC_OK;
}

static void put(struct fixture *f, const struct record_type *type, void *record)
{
	struct putting p = { type, record, arena_alloc(&f->pool->arena, type->size) };

	CHECK(store_run(f->pool->store, put_record, &p, &f->pool->arena, &f->e) == RC_OK);
}

static struct page alarms(struct fixture *f)
{
	struct page list = { 0 };

	CHECK(store_read(f->pool->store, alarm_list, &list, &f->pool->arena, &f->e) == RC_OK);
	return list;
}

static const struct alarm *find_alarm(struct fixture *f, const char *name)
{
	struct page page = alarms(f);

	for (size_t i = 0; i < page.count; i++) {
		const struct alarm *alarm = page_record(&page, &alarm_type, i);

		if (str_eq(alarm->name, str_from(name)))
			return alarm;
	}
	return NULL;
}

/* Events of one type and subject; either may be NULL: any. */
struct told {
	const char  *type, *subject;
	int          count;
	struct event last;
};

static enum rc count_told(struct session *s, void *arg, struct err *e)
{
	struct told *t = arg;
	struct query q = { .type = &event_type, .index = QUERY_KEYS, .limit = QUERY_LIMIT_MAX };
	struct page  page;
	enum rc      rc = session_query(s, &q, &page, e);

	t->count = 0;
	for (size_t i = 0; !rc && i < page.count; i++) {
		const struct event *event = page_record(&page, &event_type, i);

		if ((t->type && !str_eq(event->type, str_from(t->type))) ||
		    (t->subject && !str_eq(event->subject, str_from(t->subject))))
			continue;
		t->count++;
		t->last = *event;
	}
	return rc;
}

static struct told told_of(struct fixture *f, const char *type, const char *subject)
{
	struct told t = { .type = type, .subject = subject };

	CHECK(store_read(f->pool->store, count_told, &t, &f->pool->arena, &f->e) == RC_OK);
	return t;
}

static int told(struct fixture *f, const char *type)
{
	return told_of(f, type, NULL).count;
}

/* --- the life of an alarm --- */

static void check_life(struct pool *p)
{
	struct fixture      f;
	const struct alarm *alarm;

	fixture_init(&f, p);
	say_one(&f, "", ALARM_WARNING, "it is wrong");
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 0);
	alarm = find_alarm(&f, "one");
	CHECK(alarm && alarm->state == ALARM_PENDING && alarm->since_ms == now_ms && told(&f, NULL) == 0);

	pass_time(&f, MINUTE - 1);
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 0 && told(&f, NULL) == 0);
	pass_time(&f, 1);
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 1);
	alarm = find_alarm(&f, "one");
	CHECK(alarm && alarm->state == ALARM_RAISED && alarm->since_ms == now_ms);
	CHECK(alarm->raised_ms == now_ms + MINUTE && told(&f, "AlarmRaised") == 1);

	pass_time(&f, MINUTE);
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 0 && told(&f, NULL) == 1);
	f.fake.one[0].evidence = STR("it is quite wrong");
	f.fake.one[0].value = 8;
	CHECK(check_fakes(&f) == RC_OK && told(&f, NULL) == 1);
	alarm = find_alarm(&f, "one");
	CHECK(alarm && str_eq(alarm->evidence, STR("it is quite wrong")) && alarm->value == 8);

	f.fake.one[0].severity = ALARM_PAGE;
	CHECK(check_fakes(&f) == RC_OK && check_fakes(&f) == RC_OK);
	CHECK(told(&f, "AlarmChanged") == 1 && told(&f, NULL) == 2);
	CHECK(find_alarm(&f, "one")->severity == ALARM_PAGE);

	f.fake.one_count = 0;
	CHECK(check_fakes(&f) == RC_OK && f.check.cleared == 1 && !find_alarm(&f, "one"));
	CHECK(check_fakes(&f) == RC_OK && f.check.cleared == 0);
	CHECK(told(&f, "AlarmCleared") == 1 && told(&f, NULL) == 3);
}

TEST(an_alarm_is_raised_after_it_held_changed_and_cleared_each_told_once)
{
	each_pool(check_life);
}

static void check_flapping(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	for (int i = 0; i < 5; i++) {
		say_one(&f, "", ALARM_PAGE, "it is wrong");
		CHECK(check_fakes(&f) == RC_OK && find_alarm(&f, "one"));
		pass_time(&f, MINUTE / 2);
		f.fake.one_count = 0;
		CHECK(check_fakes(&f) == RC_OK && f.check.cleared == 0 && !find_alarm(&f, "one"));
		pass_time(&f, MINUTE / 2);
	}
	CHECK(told(&f, NULL) == 0);
}

TEST(what_stops_before_it_held_is_forgotten_and_not_told)
{
	each_pool(check_flapping);
}

TEST(without_a_hold_time_it_is_raised_at_once)
{
	struct fixture f;
	struct pool    p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	say_two(&f, "mail");
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 1);
	CHECK(find_alarm(&f, "one-more#mail")->state == ALARM_RAISED);
	CHECK(told_of(&f, "AlarmRaised", "alarm/one-more#mail").count == 1);
	pool_close(&p);
}

TEST(a_pending_alarm_that_gets_worse_is_not_told_yet)
{
	struct fixture f;
	struct pool    p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	say_one(&f, "", ALARM_WARNING, "it is wrong");
	CHECK(check_fakes(&f) == RC_OK);
	f.fake.one[0].severity = ALARM_PAGE;
	CHECK(check_fakes(&f) == RC_OK && told(&f, NULL) == 0);
	CHECK(find_alarm(&f, "one")->severity == ALARM_PAGE && find_alarm(&f, "one")->state == ALARM_PENDING);
	pass_time(&f, MINUTE);
	CHECK(check_fakes(&f) == RC_OK && told(&f, "AlarmRaised") == 1 && told(&f, NULL) == 1);
	pool_close(&p);
}

TEST(an_alarm_that_stays_as_it_is_is_not_written_again)
{
	struct fixture f;
	struct pool    p;
	uint64_t       version;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	say_two(&f, "");
	CHECK(check_fakes(&f) == RC_OK);
	version = find_alarm(&f, "one-more")->version;
	pass_time(&f, MINUTE);
	CHECK(check_fakes(&f) == RC_OK && find_alarm(&f, "one-more")->version == version);
	pool_close(&p);
}

TEST(the_event_says_which_alarm_since_when_why_and_what_to_read)
{
	struct fixture              f;
	struct pool                 p;
	struct told                 t;
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  text;
	int64_t                     value;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	say_one(&f, "mail", ALARM_PAGE, "a \"quoted\" reason");
	CHECK(check_fakes(&f) == RC_OK);
	pass_time(&f, MINUTE);
	CHECK(check_fakes(&f) == RC_OK);
	t = told_of(&f, "AlarmRaised", "alarm/one#mail");
	CHECK(t.count == 1 && str_eq(t.last.actor, STR("alarms")));
	CHECK(json_parse(t.last.detail, &detail, &f.e) == RC_OK);
	CHECK(json_get_text(detail, "name", &text) && str_eq(text, STR("one#mail")));
	CHECK(json_get_text(detail, "rule", &text) && str_eq(text, STR("one")));
	CHECK(json_get_text(detail, "severity", &text) && str_eq(text, STR("page")));
	CHECK(json_get_text(detail, "since", &text) && str_eq(text, STR("2001-09-09T01:46:40Z")));
	CHECK(json_get_text(detail, "evidence", &text) && str_eq(text, STR("a \"quoted\" reason")));
	CHECK(json_get_text(detail, "runbook", &text) && str_eq(text, STR("docs/runbook.md#one")));
	CHECK(json_get_number(detail, "value", -1, &value) && value == 7);
	pool_close(&p);
}

/* --- many at once --- */

/* Another node's whole check comes between a check's look and its first write. */
static void check_between(void *arg)
{
	struct fixture    *f = arg;
	struct alarm_check other = {
		.kernel = f->kernel, .rules = fake_rules, .rule_count = ARRAY_LEN(fake_rules), .arg = &f->fake
	};

	f->pool->plan.before_write = NULL;
	CHECK(alarm_check(&other, NULL) == RC_OK);
}

static void check_raced(struct fixture *f)
{
	f->pool->plan.before_write_arg = f;
	f->pool->plan.before_write = check_between;
	CHECK(check_fakes(f) == RC_OK);
	CHECK(f->pool->plan.before_write == NULL);
	CHECK(f->check.raised == 0 && f->check.cleared == 0);
}

static void check_two_at_once(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	say_one(&f, "", ALARM_WARNING, "it is wrong");
	check_raced(&f);
	pass_time(&f, MINUTE);
	check_raced(&f);
	CHECK(told(&f, "AlarmRaised") == 1);
	f.fake.one[0].severity = ALARM_PAGE;
	check_raced(&f);
	CHECK(told(&f, "AlarmChanged") == 1);
	f.fake.one_count = 0;
	check_raced(&f);
	CHECK(told(&f, "AlarmCleared") == 1 && told(&f, NULL) == 3 && alarms(&f).count == 0);
}

TEST(two_nodes_that_check_at_once_tell_each_change_once)
{
	each_pool(check_two_at_once);
}

TEST(a_change_whose_commit_failed_is_told_by_the_next_check_and_one_whose_answer_was_lost_is_not_told_again)
{
	static const struct {
		const char *label;
		enum fault  fault;
		int         told;
	} rows[] = { { "refused: nothing was written", FAULT_BEFORE, 0 },
		     { "written, the answer was lost", FAULT_AFTER, 1 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture f;
		struct pool    p;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		say_two(&f, "");
		p.plan.next = rows[i].fault;
		p.plan.count = 1;
		CHECK(check_fakes(&f) == RC_UNAVAILABLE && f.check.failed == 1 && f.check.raised == 0);
		CHECK(told(&f, "AlarmRaised") == rows[i].told);
		CHECK(check_fakes(&f) == RC_OK && told(&f, "AlarmRaised") == 1);
		pool_close(&p);
	}
}

static void check_failing_rule(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	say_one(&f, "", ALARM_WARNING, "it is wrong");
	say_two(&f, "");
	CHECK(check_fakes(&f) == RC_OK);
	pass_time(&f, MINUTE);
	CHECK(check_fakes(&f) == RC_OK && told(&f, "AlarmRaised") == 2);

	f.fake = (struct fake){ .one_rc = RC_UNAVAILABLE };
	CHECK(check_fakes(&f) == RC_UNAVAILABLE && f.check.failed == 1 && f.check.cleared == 1);
	CHECK(strstr(f.e.msg, "alarm rule one: cannot look today"));
	CHECK(find_alarm(&f, "one") && !find_alarm(&f, "one-more"));
	CHECK(told_of(&f, "AlarmCleared", "alarm/one").count == 0);
}

TEST(a_rule_that_fails_keeps_its_alarms_and_the_others_go_on)
{
	each_pool(check_failing_rule);
}

TEST(a_name_that_is_too_long_fails_its_rule)
{
	struct fixture f;
	struct pool    p;
	char           longest[300];

	pool_open_memory(&p);
	fixture_init(&f, &p);
	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	say_two(&f, longest);
	CHECK(check_fakes(&f) == RC_INVALID && f.check.failed == 1 && alarms(&f).count == 0);
	longest[230] = 0;
	CHECK((f.fake.two[0].instance = str_from(longest)).n == 230);
	CHECK(check_fakes(&f) == RC_OK && alarms(&f).count == 1 && told(&f, "AlarmRaised") == 1);
	pool_close(&p);
}

TEST(a_long_evidence_is_cut_between_two_characters)
{
	struct fixture f;
	struct pool    p;
	char           text[1000];

	pool_open_memory(&p);
	fixture_init(&f, &p);
	text[0] = 'x'; /* then two-byte characters: the limit falls into one of them */
	for (int i = 1; i < 999; i += 2)
		memcpy(text + i, "\xc3\xa9", 2);
	text[999] = 0;
	say_two(&f, "");
	f.fake.two[0].evidence = str_from(text);
	CHECK(check_fakes(&f) == RC_OK);
	CHECK(find_alarm(&f, "one-more")->evidence.n == ERROR_MAX - 1);
	pool_close(&p);
}

/* The second rule finds the numbers [from, to). */
static void say_range(struct fixture *f, int from, int to)
{
	f->fake.two_count = 0;
	for (int i = from; i < to; i++)
		say_two(f, str_format(&f->pool->arena, "%02d", i).p);
}

static void check_flood(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	say_range(&f, 20, 60);
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == FINDINGS_MAX && alarms(&f).count == FINDINGS_MAX);

	say_range(&f, 0, 60); /* those that come first are new */
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == 0 && f.check.cleared == 0);
	CHECK(find_alarm(&f, "one-more#20") && !find_alarm(&f, "one-more#00"));

	say_range(&f, 0, 30);
	CHECK(check_fakes(&f) == RC_OK && f.check.cleared == 22 && f.check.raised == 20 && alarms(&f).count == 30);
	say_range(&f, 0, 0);
	CHECK(check_fakes(&f) == RC_OK && f.check.cleared == 30 && alarms(&f).count == 0);
}

TEST(a_flood_has_a_limit_and_does_not_make_old_alarms_look_cleared)
{
	each_pool(check_flood);
}

static void check_many_queues(struct pool *p)
{
	struct queue_counts counts;
	struct fixture      f;

	fixture_open(&f, p, true);
	counts.kernel = f.kernel;
	say_range(&f, 0, FINDINGS_MAX);
	CHECK(check_fakes(&f) == RC_OK && f.check.raised == FINDINGS_MAX);
	say_range(&f, 0, 0); /* the lanes have heads now: each event costs more */
	CHECK(check_fakes(&f) == RC_OK && f.check.cleared == FINDINGS_MAX);
	CHECK(told(&f, NULL) == 2 * FINDINGS_MAX);
	CHECK(store_read(p->store, queue_counts, &counts, &p->arena, &f.e) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(queues); i++)
		CHECK(counts.counts[i].lanes == FINDINGS_MAX);
}

TEST(a_flood_that_is_told_to_five_queues_fits_into_its_transactions)
{
	each_pool(check_many_queues);
}

/* --- rules --- */

/* One rule, without its hold time; f.check says what was raised. The alarm of that name, or NULL. */
static const struct alarm *try_rule(struct fixture *f, alarm_rule_fn *find, const char *name)
{
	const struct alarm_rule rule = { "rule", find, 0, "docs/runbook.md#rule", "a rule" };

	f->check = (struct alarm_check){ .kernel = f->kernel, .rules = &rule, .rule_count = 1, .arg = &f->context };
	CHECK(alarm_check(&f->check, &f->e) == RC_OK);
	return find_alarm(f, name);
}

static bool is_quiet(const struct alarm *alarm)
{
	return alarm == NULL;
}

static bool says(const struct alarm *alarm, enum alarm_severity severity, int64_t value, const char *evidence)
{
	if (alarm && !text_has(alarm->evidence, evidence))
		print_error("evidence: %.*s\n", STR_ARG(alarm->evidence));
	return alarm && alarm->severity == severity && alarm->value == value && text_has(alarm->evidence, evidence);
}

static void put_dead(struct fixture *f, int n, const char *queue)
{
	struct dead dead = { .id = str_format(&f->pool->arena, "dead-%d", n),
		             .queue = str_from(queue),
		             .subject = STR("sandbox/7"),
		             .event_id = STR("event"),
		             .tries = 3,
		             .error = str_format(&f->pool->arena, "no answer %d", n),
		             .died_ms = now_ms + n * 1000 };

	put(f, &dead_type, &dead);
}

static void check_dead_letters(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	CHECK(is_quiet(try_rule(&f, alarm_dead_letters, "rule#mail")));
	put_dead(&f, 2, "mail");
	CHECK(says(try_rule(&f, alarm_dead_letters, "rule#mail"), ALARM_WARNING, 1, "queue mail has 1 dead letter; "));
	CHECK(is_quiet(find_alarm(&f, "rule#hooks")));
	put_dead(&f, 1, "mail");
	CHECK(says(try_rule(&f, alarm_dead_letters, "rule#mail"), ALARM_WARNING, 2, "has 2 dead letters"));
	put_dead(&f, 3, "mail");
	put_dead(&f, 4, "hooks");
	CHECK(says(try_rule(&f, alarm_dead_letters, "rule#mail"), ALARM_PAGE, 3,
	           "dead-1 of sandbox/7, died 2001-09-09T01:46:41Z after 3 tries: no answer 1"));
	CHECK(says(find_alarm(&f, "rule#hooks"), ALARM_WARNING, 1, "no answer 4"));
	CHECK(told(&f, "AlarmRaised") == 2 && told(&f, "AlarmChanged") == 1);
}

TEST(dead_letters_warn_from_one_and_page_from_three_for_each_queue)
{
	each_pool(check_dead_letters);
}

static void put_lane(struct fixture *f, const char *subject, int64_t due_ms, const char *owner)
{
	struct lane lane = { .key = str_format(&f->pool->arena, "mail#%s", subject),
		             .queue = STR("mail"),
		             .subject = str_from(subject),
		             .event_id = STR("event"),
		             .since_ms = now_ms - 100 * MINUTE,
		             .due_ms = due_ms,
		             .owner = str_from(owner) };

	put(f, &lane_type, &lane);
}

static void check_queue_stuck(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	put_lane(&f, "just-in-time", now_ms - 10 * MINUTE, "");
	put_lane(&f, "in-flight", now_ms + MINUTE, "node-1");
	put_lane(&f, "waits-for-its-next-try", now_ms + 1, "");
	CHECK(is_quiet(try_rule(&f, alarm_queue_stuck, "rule#mail")));
	put_lane(&f, "late", now_ms - 10 * MINUTE - 1, "");
	put_lane(&f, "abandoned", now_ms - 20 * MINUTE, "node-2");
	CHECK(says(try_rule(&f, alarm_queue_stuck, "rule#mail"), ALARM_PAGE, 2,
	           "2 subjects; the first is abandoned, due since 2001-09-09T01:26:40Z"));
	CHECK(is_quiet(find_alarm(&f, "rule#hooks")));
}

TEST(a_queue_is_stuck_when_nobody_takes_what_is_due)
{
	each_pool(check_queue_stuck);
}

static void put_delivery(struct fixture *f, const char *hook, const char *subject, int64_t since_ms)
{
	struct lane lane = { .key = str_format(&f->pool->arena, "webhook-out#%s|%s", hook, subject),
		             .queue = STR("webhook-out"),
		             .subject = str_from(subject),
		             .target = str_from(hook),
		             .event_id = STR("event"),
		             .since_ms = since_ms,
		             .due_ms = since_ms,
		             .last_error = STR("no answer within 15 s") };

	put(f, &lane_type, &lane);
}

static void put_hook(struct fixture *f, const char *id, bool is_paused)
{
	struct webhook hook = { .id = str_from(id),
		                .url = STR("https://example.org/hook?token=1"),
		                .filter = STR("*"),
		                .secret = STR("a secret of some length"),
		                .is_paused = is_paused };

	put(f, &webhook_type, &hook);
}

static void check_webhook_behind(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	put_hook(&f, "h-1", false);
	put_hook(&f, "h-2", false);
	put_hook(&f, "h-3", true);
	put_delivery(&f, "h-1", "just-in-time", now_ms - 2 * MINUTE);
	put_delivery(&f, "h-3", "paused", now_ms - 30 * MINUTE);
	CHECK(is_quiet(try_rule(&f, alarm_webhook_behind, "rule#h-1")) && alarms(&f).count == 0);
	put_delivery(&f, "h-1", "late", now_ms - 3 * MINUTE);
	CHECK(says(
	        try_rule(&f, alarm_webhook_behind, "rule#h-1"), ALARM_WARNING, 2,
	        "webhook h-1 (https://example.org/hook) does not accept what is sent: the oldest that waits is about "
	        "late, since 2001-09-09T01:43:40Z: no answer within 15 s"));
	CHECK(alarms(&f).count == 1);
}

TEST(a_webhook_is_behind_when_what_is_for_it_waits_for_minutes)
{
	each_pool(check_webhook_behind);
}

static void put_saga(struct fixture *f, struct saga saga)
{
	saga.kind = saga.kind.n ? saga.kind : STR("lend");
	saga.subject = STR("account/1");
	saga.marks = STR("di");
	put(f, &saga_type, &saga);
}

TEST(each_parked_saga_is_an_alarm_and_no_other_one)
{
	static const struct {
		const char *label;
		struct saga saga;
		const char *evidence; /* NULL: no alarm */
	} rows[] = {
		{ "parked",
		  { .state = SAGA_PARKED, .step = 1, .reason = STR_INIT("no such account") },
		  "saga lend of account/1 is parked at step move: no such account" },
		{ "parked on its way back",
		  { .state = SAGA_PARKED, .is_back = 1, .reason = STR_INIT("stays") },
		  "is parked while undoing step grant: stays" },
		{ "without a reason", { .state = SAGA_PARKED, .last_error = STR_INIT("timed out") }, ": timed out" },
		{ "of an unknown kind", { .kind = STR_INIT("old"), .state = SAGA_PARKED, .step = 4 }, "at step 5" },
		{ "running", { .state = SAGA_RUNNING, .last_error = STR_INIT("x") }, NULL },
		{ "undoing", { .state = SAGA_UNDOING, .reason = STR_INIT("x") }, NULL },
		{ "done", { .state = SAGA_DONE }, NULL },
		{ "undone", { .state = SAGA_UNDONE, .reason = STR_INIT("x") }, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture      f;
		struct pool         p;
		struct saga         saga = rows[i].saga;
		const struct alarm *alarm;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		saga.id = STR("lend/1");
		put_saga(&f, saga);
		alarm = try_rule(&f, alarm_saga_parked, "rule#lend/1");
		CHECK(rows[i].evidence ? says(alarm, ALARM_WARNING, saga.step + 1, rows[i].evidence) : is_quiet(alarm));
		pool_close(&p);
	}
}

TEST(a_saga_over_its_deadline_is_an_alarm_until_it_has_ended)
{
	static const struct {
		const char     *label;
		enum saga_state state;
		int64_t         deadline_ms; /* from now; 0: none */
		const char     *evidence;
	} rows[] = {
		{ "running, too late", SAGA_RUNNING, -1,
		  "is still running, at step move; its deadline was 2001-09-09T01:46:39Z" },
		{ "undoing, too late", SAGA_UNDOING, -1, "is still undoing" },
		{ "running, in time", SAGA_RUNNING, 1, NULL },
		{ "without a deadline", SAGA_RUNNING, 0, NULL },
		{ "parked has its own alarm", SAGA_PARKED, -1, NULL },
		{ "done too late", SAGA_DONE, -1, NULL },
		{ "undone", SAGA_UNDONE, -1, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture      f;
		struct pool         p;
		const struct alarm *alarm;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		put_saga(&f, (struct saga){ .id = STR("lend/1"),
		                            .state = rows[i].state,
		                            .step = 1,
		                            .deadline_ms = rows[i].deadline_ms ? now_ms + rows[i].deadline_ms : 0 });
		alarm = try_rule(&f, alarm_saga_overdue, "rule#lend/1");
		CHECK(rows[i].evidence ? says(alarm, ALARM_WARNING, 2, rows[i].evidence) : is_quiet(alarm));
		pool_close(&p);
	}
}

static void check_many_sagas(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	for (int i = 0; i < 450; i++)
		put_saga(&f, (struct saga){ .id = str_format(&p->arena, "lend/%03d", i),
		                            .state = SAGA_RUNNING,
		                            .due_ms = now_ms + i,
		                            .deadline_ms = i == 449 ? now_ms - 1 : 0 });
	CHECK(try_rule(&f, alarm_saga_overdue, "rule#lend/449"));
}

TEST(the_late_saga_is_found_on_the_third_page)
{
	struct pool p;

	pool_open_memory(&p);
	check_many_sagas(&p);
	pool_close(&p);
}

static void put_timer(struct fixture *f, const char *name, int64_t late_ms)
{
	struct timer timer = {
		.name = str_from(name), .due_ms = now_ms - late_ms, .type = STR("LabEnded"), .subject = STR("sandbox/7")
	};

	put(f, &timer_type, &timer);
}

static void check_timers(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	put_timer(&f, "later", -MINUTE);
	put_timer(&f, "a-minute", MINUTE);
	CHECK(is_quiet(try_rule(&f, alarm_timer_overdue, "rule")));
	put_timer(&f, "late", MINUTE + 1);
	CHECK(says(try_rule(&f, alarm_timer_overdue, "rule"), ALARM_WARNING, 1, "1 timer is overdue"));
	put_timer(&f, "later-still", 11 * MINUTE);
	CHECK(says(
	        try_rule(&f, alarm_timer_overdue, "rule"), ALARM_PAGE, 2,
	        "2 timers are overdue for more than a minute; the oldest, later-still, was due 2001-09-09T01:35:40Z"));
}

TEST(timers_are_overdue_after_a_minute_and_page_after_ten)
{
	each_pool(check_timers);
}

TEST(a_node_that_is_silent_or_says_that_its_store_fails_is_an_alarm)
{
	static const struct {
		const char *label;
		int64_t     age_ms, slowest_ms, failed;
		const char *silent, *trouble; /* evidence, or NULL */
		int         severity;
	} rows[] = {
		{ "well", 0, 1000, 0, NULL, NULL, 0 },
		{ "a beat just in time", NODE_SILENT_MS, 0, 0, NULL, NULL, 0 },
		{ "silent", NODE_SILENT_MS + 1, 0, 0, "its last beat was 2001-09-09T01:45:39Z", NULL, 0 },
		{ "slow", 0, 1001, 0, NULL, "took 1001 ms; the limit is 1000", ALARM_WARNING },
		{ "failing", 0, 5, 2, NULL, "refused 2 commits of node n-1; its slowest took 5 ms", ALARM_PAGE },
		{ "was failing when it died", NODE_SILENT_MS + 1, 5000, 2, "n-1", NULL, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct node         node = { .id = STR("n-1"),
			                     .slowest_ms = rows[i].slowest_ms,
			                     .failed_commits = rows[i].failed };
		const struct alarm *alarm;
		struct fixture      f;
		struct pool         p;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		node.beat_ms = now_ms - rows[i].age_ms;
		put(&f, &node_type, &node);
		alarm = try_rule(&f, alarm_node_silent, "rule#n-1");
		CHECK(rows[i].silent ? says(alarm, ALARM_WARNING, node.beat_ms, rows[i].silent) : is_quiet(alarm));
		alarm = try_rule(&f, alarm_store_trouble, "rule#n-1");
		CHECK(rows[i].trouble ? says(alarm, rows[i].severity, rows[i].failed ? 2 : 1001, rows[i].trouble)
		                      : is_quiet(alarm));
		pool_close(&p);
	}
}

static void put_node(struct fixture *f, const char *id, int64_t started_ms, int64_t beat_ms)
{
	struct node node = { .id = str_from(id), .started_ms = started_ms, .beat_ms = beat_ms };

	put(f, &node_type, &node);
}

static int count_silent(struct fixture *f)
{
	(void)try_rule(f, alarm_node_silent, "rule#none");
	return (int)alarms(f).count;
}

TEST(a_node_that_was_killed_and_started_again_is_not_silent)
{
	struct fixture f;
	struct pool    p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	put_node(&f, "first", now_ms - 90 * MINUTE, now_ms - 60 * MINUTE);
	CHECK(count_silent(&f) == 1);
	put_node(&f, "second", now_ms - 50 * MINUTE, now_ms - 20 * MINUTE);
	CHECK(count_silent(&f) == 1); /* it has taken the first one's place, and is silent itself */
	put_node(&f, "third", now_ms - 10 * MINUTE, now_ms);
	CHECK(count_silent(&f) == 0);
	put_node(&f, "another", now_ms - 90 * MINUTE, now_ms - 15 * MINUTE);
	CHECK(count_silent(&f) == 1); /* one cannot take the place of two */
	put_node(&f, "neighbour", now_ms - 90 * MINUTE, now_ms);
	CHECK(count_silent(&f) == 1); /* it was there before */
	pool_close(&p);
}

static void state_fact(struct fixture *f, const char *name, int64_t value, const char *text)
{
	struct fact fact = { .name = str_from(name), .value = value, .text = str_from(text) };

	CHECK(store_run(f->pool->store, fact_state, &fact, &f->pool->arena, &f->e) == RC_OK);
}

static void check_circuits(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	state_fact(&f, "circuit/csp", 0, "");
	state_fact(&f, "circuit/smtp", 0, "");
	state_fact(&f, "circus/clown", 1, "");
	CHECK(is_quiet(try_rule(&f, alarm_circuit_open, "rule#csp")) && alarms(&f).count == 0);
	state_fact(&f, "circuit/csp", 1, "five calls timed out");
	CHECK(says(try_rule(&f, alarm_circuit_open, "rule#csp"), ALARM_WARNING, 1,
	           "the circuit to csp has been open since 2001-09-09T01:46:40Z: five calls timed out"));
	CHECK(alarms(&f).count == 1);
	state_fact(&f, "circuit/csp", 0, "");
	CHECK(is_quiet(try_rule(&f, alarm_circuit_open, "rule#csp")));
}

static enum rc hear_trail(struct session *s, void *arg UNUSED, struct err *e)
{
	const struct delivery d = { .event = { .type = STR("cloudtrail:MoveAccount") } };

	return cloudtrail_note(s, &d, NULL, e);
}

static void check_trail(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	CHECK(store_run(p->store, hear_trail, NULL, &p->arena, &f.e) == RC_OK);
	CHECK(is_quiet(try_rule(&f, alarm_inbox_silent, "rule#cloudtrail")) && alarms(&f).count == 0);
	state_fact(&f, "inbox/guard", 5, "no such queue");
	CHECK(says(try_rule(&f, alarm_inbox_silent, "rule#guard"), ALARM_PAGE, 5,
	           "the queue of the inbox guard has been unreadable since 2001-09-09T01:46:40Z: no such queue"));
}

TEST(a_trail_that_speaks_is_not_a_queue_that_cannot_be_read)
{
	each_pool(check_trail);
}

static void check_clock(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	state_fact(&f, "clock/machine", 0, "");
	CHECK(is_quiet(try_rule(&f, alarm_clock_differs, "rule#machine")));
	state_fact(&f, "clock/machine", -1440, "");
	CHECK(says(
	        try_rule(&f, alarm_clock_differs, "rule#machine"), ALARM_PAGE, -1440,
	        "the machine's date has jumped by about -1440 minutes since 2001-09-09T01:46:40Z; it is not followed"));
	p->clock.test_ms += NODE_SILENT_MS + 1; /* nobody says so any more */
	CHECK(is_quiet(try_rule(&f, alarm_clock_differs, "rule#machine")));
}

TEST(a_date_that_jumped_is_an_alarm_while_a_process_says_so)
{
	each_pool(check_clock);
}

static void check_still_listed(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	CHECK(is_quiet(try_rule(&f, alarm_still_listed, "rule")));
	state_fact(&f, FACT_STILL_LISTED, 2, "sb-7");
	CHECK(says(try_rule(&f, alarm_still_listed, "rule"), ALARM_WARNING, 2,
	           "the vendor still lists 2 sandboxes that we removed hours ago, such as sb-7"));
	state_fact(&f, FACT_STILL_LISTED, 0, "");
	CHECK(is_quiet(try_rule(&f, alarm_still_listed, "rule")));
}

TEST(what_was_deleted_and_is_still_listed_is_an_alarm)
{
	each_pool(check_still_listed);
}

static void check_forgotten_circuit(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	state_fact(&f, "circuit/csp", 1, "five calls timed out");
	p->clock.test_ms += NODE_SILENT_MS;
	CHECK(!is_quiet(try_rule(&f, alarm_circuit_open, "rule#csp")));
	p->clock.test_ms++;
	CHECK(is_quiet(try_rule(&f, alarm_circuit_open, "rule#csp")));
}

TEST(a_circuit_of_which_nobody_speaks_any_more_is_no_alarm)
{
	each_pool(check_forgotten_circuit);
}

TEST(an_open_circuit_is_an_alarm_until_it_closes)
{
	each_pool(check_circuits);
}

TEST(the_pool_is_low_below_its_mark_and_pages_when_nothing_is_left)
{
	static const struct {
		const char *label;
		int         free, mark;
		int         severity; /* -1: no alarm */
	} rows[] = {
		{ "no mark, nothing free", 0, 0, -1 },
		{ "at the mark", 3, 3, -1 },
		{ "above the mark", 4, 3, -1 },
		{ "below the mark", 2, 3, ALARM_WARNING },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct alarm *alarm;
		struct fixture      f;
		struct pool         p;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		pool_fill(&p, 0, rows[i].free);
		f.settings.low_water = rows[i].mark;
		alarm = try_rule(&f, alarm_pool_low, "rule");
		CHECK(rows[i].severity < 0 ? is_quiet(alarm)
		                           : says(alarm, rows[i].severity, rows[i].free, "the low-water mark is 3"));
		pool_close(&p);
	}
}

static void put_sandbox(struct fixture *f, const char *id, enum sandbox_state status)
{
	struct sandbox s = { .sandbox_id = str_from(id),
		             .name = str_from(id),
		             .external_id = str_from(id),
		             .status = status,
		             .deletion_requested_at = POOL_NOW_SEC,
		             .deletion_retry_count = 4,
		             .last_error = STR("the vendor will not") };

	put(f, &sandbox_type, &s);
}

TEST(an_empty_pool_pages_and_no_pool_at_all_does_not)
{
	struct tombstone used = { .sandbox_id = STR("one"), .external_id = STR("one"), .removed_at = POOL_NOW_SEC };
	struct fixture   f;
	struct pool      p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	f.settings.low_water = 3;
	CHECK(is_quiet(try_rule(&f, alarm_pool_low, "rule"))); /* accounts are lent, sandboxes never were */
	put(&f, &tombstone_type, &used);
	CHECK(says(try_rule(&f, alarm_pool_low, "rule"), ALARM_PAGE, 0, "the low-water mark is 3"));
	pool_close(&p);

	pool_open_memory(&p);
	fixture_init(&f, &p);
	f.settings.low_water = 3;
	put_sandbox(&f, "one", SANDBOX_DELETION_FAILED);
	CHECK(says(try_rule(&f, alarm_pool_low, "rule"), ALARM_PAGE, 0, "0 sandboxes are free"));
	pool_close(&p);
}

TEST(deletions_that_were_given_up_are_an_alarm_with_the_reason_of_one)
{
	struct fixture f;
	struct pool    p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	put_sandbox(&f, "still-tried", SANDBOX_PENDING_DELETION);
	CHECK(is_quiet(try_rule(&f, alarm_deletion_failed, "rule")));
	put_sandbox(&f, "one", SANDBOX_DELETION_FAILED);
	CHECK(says(try_rule(&f, alarm_deletion_failed, "rule"), ALARM_WARNING, 1,
	           "1 sandbox was given up, such as one after 4 tries: the vendor will not"));
	put_sandbox(&f, "two", SANDBOX_DELETION_FAILED);
	CHECK(says(try_rule(&f, alarm_deletion_failed, "rule"), ALARM_WARNING, 2, "2 sandboxes were given up"));
	pool_close(&p);
}

TEST(a_job_fails_or_is_silent_as_its_record_says)
{
	enum { EVERY = 600, LIMIT = 3 * EVERY + 300 };
	static const struct {
		const char       *label;
		struct job_record job; /* last_finished_at and last_started_at are ages in seconds */
		bool              is_failing, is_silent;
	} rows[] = {
		{ "well", { .last_outcome = JOB_SUCCESS, .interval_sec = EVERY, .last_finished_at = 1 }, false, false },
		{ "failed twice",
		  { .last_outcome = JOB_ERROR, .failures = 2, .interval_sec = EVERY, .last_finished_at = 1 },
		  false,
		  false },
		{ "failed three times",
		  { .last_outcome = JOB_ERROR, .failures = 3, .interval_sec = EVERY, .last_finished_at = 1 },
		  true,
		  false },
		{ "failed once, two intervals ago",
		  { .last_outcome = JOB_ERROR, .failures = 1, .interval_sec = EVERY, .last_finished_at = 2 * EVERY },
		  false,
		  false },
		{ "failed once, longer ago",
		  { .last_outcome = JOB_ERROR,
		    .failures = 1,
		    .interval_sec = EVERY,
		    .last_finished_at = 2 * EVERY + 1 },
		  true,
		  false },
		{ "well again",
		  { .last_outcome = JOB_SUCCESS,
		    .failures = 0,
		    .interval_sec = EVERY,
		    .last_finished_at = 2 * EVERY + 1 },
		  false,
		  false },
		{ "paused while failing",
		  { .is_paused = 1,
		    .last_outcome = JOB_ERROR,
		    .failures = 9,
		    .interval_sec = EVERY,
		    .last_finished_at = 9 * EVERY },
		  false,
		  false },
		{ "failed three times, only when asked",
		  { .last_outcome = JOB_ERROR, .failures = 3, .last_finished_at = 99 * EVERY },
		  true,
		  false },
		{ "just not silent",
		  { .last_outcome = JOB_SUCCESS, .interval_sec = EVERY, .last_finished_at = LIMIT },
		  false,
		  false },
		{ "silent",
		  { .last_outcome = JOB_SUCCESS, .interval_sec = EVERY, .last_finished_at = LIMIT + 1 },
		  false,
		  true },
		{ "paused, so silent on purpose",
		  { .is_paused = 1, .last_outcome = JOB_SUCCESS, .interval_sec = EVERY, .last_finished_at = LIMIT + 1 },
		  false,
		  false },
		{ "never ended its first run", { .interval_sec = EVERY, .last_started_at = LIMIT + 1 }, false, true },
		{ "never ran", { .interval_sec = EVERY }, false, false },
		{ "only when asked", { .last_outcome = JOB_SUCCESS, .last_finished_at = 99 * LIMIT }, false, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct job_record job = rows[i].job;
		struct fixture    f;
		struct pool       p;

		CASE(rows[i].label);
		pool_open_memory(&p);
		fixture_init(&f, &p);
		job.name = STR("sync");
		job.last_error = STR("no listing");
		job.last_finished_at = job.last_finished_at ? POOL_NOW_SEC - job.last_finished_at : 0;
		job.last_started_at = job.last_started_at ? POOL_NOW_SEC - job.last_started_at : 0;
		put(&f, &job_type, &job);
		CHECK(rows[i].is_failing ==
		      says(try_rule(&f, alarm_job_failing, "rule#sync"), ALARM_WARNING, job.failures, ": no listing"));
		CHECK(rows[i].is_silent == (try_rule(&f, alarm_job_silent, "rule#sync") != NULL));
		if (rows[i].is_silent)
			CHECK(text_has(find_alarm(&f, "rule#sync")->evidence,
			               "job sync, every 600 s, has not ended a run since"));
		pool_close(&p);
	}
}

/* --- the table --- */

static void check_empty(struct pool *p)
{
	struct fixture f;

	fixture_init(&f, p);
	f.check = (struct alarm_check){
		.kernel = f.kernel, .rules = service_alarms, .rule_count = service_alarm_count, .arg = &f.context
	};
	CHECK(alarm_check(&f.check, &f.e) == RC_OK && f.check.failed == 0 && f.check.raised == 0);
	CHECK(alarms(&f).count == 0 && told(&f, NULL) == 0);
}

TEST(an_empty_store_has_no_alarms)
{
	each_pool(check_empty);
}

static bool has_line(FILE *file, const char *line)
{
	char read[4096];

	rewind(file);
	while (fgets(read, sizeof(read), file))
		if (strcmp(read, line) == 0)
			return true;
	return false;
}

TEST(every_rule_has_a_section_in_the_runbook_and_a_summary)
{
	FILE *runbook = fopen(SOURCE_ROOT "/docs/runbook.md", "r");

	CHECK(runbook != NULL);
	for (size_t i = 0; i < service_alarm_count; i++) {
		const struct alarm_rule *rule = &service_alarms[i];
		char                     heading[128], anchor[128];

		CASE(rule->name);
		snprintf(heading, sizeof(heading), "### %s\n", rule->name);
		snprintf(anchor, sizeof(anchor), "docs/runbook.md#%s", rule->name);
		CHECK(has_line(runbook, heading));
		CHECK(strcmp(rule->runbook, anchor) == 0 && rule->summary[0] && rule->find && rule->hold_ms >= 0);
		for (size_t other = 0; other < i; other++)
			CHECK(strcmp(rule->name, service_alarms[other].name) != 0);
	}
	fclose(runbook);
}

/* --- nodes and facts --- */

static struct page nodes(struct fixture *f)
{
	struct page list = { 0 };

	CHECK(store_read(f->pool->store, node_list, &list, &f->pool->arena, &f->e) == RC_OK);
	return list;
}

static void beat(struct fixture *f, const char *id, int64_t slowest_ms)
{
	struct node node = { .id = str_from(id), .started_ms = now_ms, .slowest_ms = slowest_ms };

	CHECK(store_run(f->pool->store, node_beat, &node, &f->pool->arena, &f->e) == RC_OK);
}

static void leave(struct fixture *f, const char *id)
{
	struct node node = { .id = str_from(id) };

	CHECK(store_run(f->pool->store, node_leave, &node, &f->pool->arena, &f->e) == RC_OK);
}

static void check_nodes(struct pool *p)
{
	struct fixture     f;
	const struct node *node;

	fixture_init(&f, p);
	beat(&f, "a", 5);
	beat(&f, "b", 6);
	pass_time(&f, MINUTE);
	beat(&f, "a", 7);
	CHECK(nodes(&f).count == 2);
	node = page_record(&(struct page){ .records = nodes(&f).records }, &node_type, 0);
	CHECK(str_eq(node->id, STR("a")) && node->beat_ms == now_ms + MINUTE && node->slowest_ms == 7);

	leave(&f, "a");
	leave(&f, "a"); /* twice is once */
	CHECK(nodes(&f).count == 1);

	pass_time(&f, NODE_FORGET_MS - MINUTE);
	beat(&f, "c", 0);
	CHECK(nodes(&f).count == 2);
	pass_time(&f, 1);
	beat(&f, "c", 0);
	CHECK(nodes(&f).count == 1);
}

TEST(a_node_is_there_from_its_first_beat_until_it_leaves_or_is_forgotten)
{
	each_pool(check_nodes);
}

TEST(a_node_that_left_is_not_silent)
{
	struct fixture f;
	struct pool    p;

	pool_open_memory(&p);
	fixture_init(&f, &p);
	beat(&f, "a", 0);
	beat(&f, "b", 0);
	leave(&f, "a");
	pass_time(&f, NODE_SILENT_MS + 1);
	CHECK(!try_rule(&f, alarm_node_silent, "rule#a") && find_alarm(&f, "rule#b"));
	pool_close(&p);
}

static struct fact get_fact(struct fixture *f, const char *name)
{
	struct fact fact = { .name = str_from(name) };

	CHECK(store_read(f->pool->store, fact_get, &fact, &f->pool->arena, &f->e) == RC_OK);
	return fact;
}

static void check_facts(struct pool *p)
{
	struct fact    missing = { .name = STR("circuit/none") }, fact;
	struct fixture f;

	fixture_init(&f, p);
	CHECK(store_read(p->store, fact_get, &missing, &p->arena, &f.e) == RC_NOT_FOUND);
	state_fact(&f, "circuit/csp", 1, "timed out");
	CHECK(told_of(&f, "FactChanged", "fact/circuit/csp").count == 1);
	pass_time(&f, MINUTE);
	state_fact(&f, "circuit/csp", 1, "timed out again");
	fact = get_fact(&f, "circuit/csp");
	CHECK(fact.since_ms == now_ms && fact.at_ms == now_ms + MINUTE && str_eq(fact.text, STR("timed out again")));
	CHECK(told(&f, "FactChanged") == 1);
	state_fact(&f, "circuit/csp", 0, "");
	fact = get_fact(&f, "circuit/csp");
	CHECK(fact.since_ms == now_ms + MINUTE && fact.value == 0 && told(&f, "FactChanged") == 2);
}

TEST(a_fact_is_told_when_its_value_changes_and_only_then)
{
	each_pool(check_facts);
}

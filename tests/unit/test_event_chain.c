/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_event_chain.c - the events of sandboxes are found by subject, whether an index leads to them or only a chain.
 *
 * Histories are made up by chance: sandboxes that come, change, go and come back, events of theirs that others told,
 * events from before there were chains. What a list of one subject answers is compared with a look at the whole log.
 */
#include "test.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/event.h"
#include "pool.h"
#include "service/broker/broker.h"
#include "service/broker/sandbox_events.h"
#include "store/session.h"

enum { SUBJECTS = 3, STEPS = 60, LOG_MAX = 400 };

static unsigned chance(struct pool *p, unsigned below)
{
	p->seed = p->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (unsigned)(p->seed >> 33) % below;
}

/* --- making history --- */

struct step {
	int               n; /* which sandbox */
	enum sandbox_news news;
	bool              is_last;     /* the record goes */
	bool              is_outsider; /* told by somebody who knows of no chain */
	struct str        id;          /* the answer: of the event */
};

static const struct actor somebody = { STR_INIT("admin"), STR_INIT("") };

static enum rc tell_unchained(struct session *s, const struct step *step, struct err *e)
{
	struct event event = { .type = STR("cloud:Seen"),
		               .subject = str_format(session_arena(s), SANDBOX_SUBJECTS "sb-%04d", step->n) };

	return session_emit(s, &event, e);
}

static enum rc take_step(struct session *s, void *arg, struct err *e)
{
	struct step       *step = arg;
	struct csp_account account = pool_account(session_arena(s), step->n);
	struct sandbox     sandbox;
	enum rc            rc;

	if (step->is_outsider)
		return tell_unchained(s, step, e);
	rc = session_get(s, &sandbox_type, account.sandbox_id, &sandbox, NULL);
	if (rc)
		sandbox = sandbox_from_account(&account, 4, session_now(s));
	if (rc || !step->is_last)
		rc = sandbox_save(s, rc ? NEWS_SANDBOX_ADDED : step->news, &sandbox, &somebody, e);
	else
		rc = sandbox_remove(s, NEWS_SANDBOX_REMOVED, &sandbox, &somebody, e);
	step->id = sandbox.last_event;
	return rc;
}

static struct str run_step(struct pool *p, struct step step)
{
	CHECK(store_run(p->store, take_step, &step, &p->arena, NULL) == RC_OK);
	return step.id;
}

static void make_history(struct pool *p)
{
	for (int i = 0; i < STEPS; i++) {
		struct step step = { .n = (int)chance(p, SUBJECTS), .news = chance(p, SANDBOX_NEWS_COUNT) };

		step.is_last = chance(p, 10) == 0;
		step.is_outsider = chance(p, 8) == 0;
		(void)run_step(p, step);
		p->clock.test_ms += chance(p, 3);
	}
}

/* --- what should be answered --- */

struct truth {
	struct event events[LOG_MAX];
	size_t       count;
};

static void look_at_all(struct pool *p, struct event_list wanted, struct truth *t)
{
	struct event_list all = { .limit = LOG_MAX, .is_newest_first = wanted.is_newest_first };

	CHECK(store_read(p->store, event_list, &all, &p->arena, NULL) == RC_OK);
	CHECK(all.count < LOG_MAX);
	t->count = 0;
	for (size_t i = 0; i < all.count; i++) {
		const struct event *event = &all.events[i];

		if (str_eq(event->subject, wanted.subject) && (!wanted.type.n || str_eq(event->type, wanted.type)) &&
		    (!wanted.since_ms || event->time_ms >= wanted.since_ms) &&
		    (!wanted.until_ms || event->time_ms < wanted.until_ms) && str_cmp(event->id, wanted.after_id) > 0)
			t->events[t->count++] = *event;
	}
}

static void check_list(struct pool *p, struct event_list l)
{
	static struct truth t;
	size_t              seen = 0;

	look_at_all(p, l, &t);
	do {
		CHECK(store_read(p->store, event_list, &l, &p->arena, NULL) == RC_OK);
		CHECK(l.count <= l.limit && seen + l.count <= t.count);
		for (size_t i = 0; i < l.count; i++)
			CHECK(str_eq(l.events[i].id, t.events[seen + i].id));
		seen += l.count;
		l.cursor = l.next;
	} while (l.next.n);
	CHECK(seen == t.count);
}

static void check_subject(struct pool *p, int n)
{
	static const size_t limits[] = { 1, 2, 3, 7, 100 };
	struct event_list   l = { .subject = str_format(&p->arena, SANDBOX_SUBJECTS "sb-%04d", n) };
	int64_t             first = POOL_NOW_SEC * 1000ll;

	for (size_t i = 0; i < 2 * ARRAY_LEN(limits); i++) {
		struct truth all;
		int64_t      span = p->clock.test_ms - first + 2;

		l.is_newest_first = i % 2;
		l.limit = limits[i / 2];
		l.type = l.after_id = STR("");
		l.since_ms = l.until_ms = 0;
		check_list(p, l);
		look_at_all(p, l, &all);
		l.since_ms = first + chance(p, (unsigned)span);
		check_list(p, l);
		l.until_ms = l.since_ms + chance(p, (unsigned)span);
		check_list(p, l);
		l.since_ms = 0;
		check_list(p, l);
		l.type = STR("SandboxAllocated");
		check_list(p, l);
		l.type = STR("cloud:Seen");
		check_list(p, l);
		l.until_ms = 0;
		if (all.count)
			l.after_id = all.events[chance(p, (unsigned)all.count)].id;
		check_list(p, l);
	}
}

static void check_by_chance(struct pool *p)
{
	for (int round = 0; round < 4; round++) {
		make_history(p);
		for (int n = 0; n <= SUBJECTS; n++)
			check_subject(p, n);
	}
}

TEST(a_list_by_subject_is_what_the_whole_log_says)
{
	each_pool(check_by_chance);
}

/* --- what is in the index --- */

struct counting {
	struct str subject;
	int64_t    count;
};

static enum rc count_index(struct session *s, void *arg, struct err *e)
{
	struct counting *c = arg;

	return session_count(s, &event_type, EVENT_BY_SUBJECT, value_text(c->subject), &c->count, e);
}

static int64_t count_indexed(struct pool *p, const char *subject)
{
	struct counting c = { str_from(subject), 0 };

	CHECK(store_read(p->store, count_index, &c, &p->arena, NULL) == RC_OK);
	return c.count;
}

static size_t count_listed(struct pool *p, const char *subject)
{
	struct event_list l = { .subject = str_from(subject), .limit = 100 };

	CHECK(store_read(p->store, event_list, &l, &p->arena, NULL) == RC_OK);
	return l.count;
}

static void check_index(struct pool *p)
{
	(void)run_step(p, (struct step){ .n = 1 });
	(void)run_step(p, (struct step){ .n = 1, .news = NEWS_SANDBOX_ALLOCATED });
	(void)run_step(p, (struct step){ .n = 1, .news = NEWS_SANDBOX_MARKED });
	CHECK(count_indexed(p, "sandbox/sb-0001") == 0 && count_listed(p, "sandbox/sb-0001") == 3);
	(void)run_step(p, (struct step){ .n = 1, .is_last = true });
	CHECK(!pool_has(p, STR("sb-0001")));
	CHECK(count_indexed(p, "sandbox/sb-0001") == 1 && count_listed(p, "sandbox/sb-0001") == 4);
}

TEST(what_every_sandbox_does_is_in_no_index_and_found_also_when_it_is_gone)
{
	each_pool(check_index);
}

static void check_gone(struct pool *p)
{
	struct event_prune prune = { 0 };

	for (int i = 0; i < 6; i++) {
		if (i == 3)
			p->clock.test_ms += 1000;
		(void)run_step(p, (struct step){ .n = 1, .news = NEWS_SANDBOX_ALLOCATED });
	}
	prune.before_ms = p->clock.test_ms;
	CHECK(store_run(p->store, event_prune, &prune, &p->arena, NULL) == RC_OK);
	CHECK(prune.removed == 3);
	CHECK(count_listed(p, "sandbox/sb-0001") == 3);
}

TEST(a_chain_ends_where_the_log_has_forgotten)
{
	each_pool(check_gone);
}

/* --- several clocks --- */

TEST(an_event_is_behind_the_one_before_it_also_when_another_clock_is_ahead)
{
	struct pool p;
	struct str  ahead, next, later;
	char        own[KERNEL_ID_SIZE];

	pool_open_memory(&p);
	p.clock.test_ms += 3600000;
	ahead = run_step(&p, (struct step){ .n = 1 });
	p.clock.test_ms -= 3600000;
	pool_renew_kernel(&p); /* another node: it has made no id yet */
	next = run_step(&p, (struct step){ .n = 1, .news = NEWS_SANDBOX_ALLOCATED });
	later = run_step(&p, (struct step){ .n = 1, .news = NEWS_SANDBOX_MARKED });
	CHECK(str_cmp(ahead, next) < 0 && str_cmp(next, later) < 0);
	kernel_id(p.kernel, p.clock.test_ms, own);
	CHECK(str_cmp(str_from(own), ahead) < 0); /* its own ids do not follow */
	CHECK(count_listed(&p, "sandbox/sb-0001") == 3);
	pool_close(&p);
}

TEST(ids_behind_another_go_on_when_its_counter_is_full)
{
	struct pool p;
	struct str  full = STR("0190ffff-ffff-7fff-8000-000000000000");
	char        id[KERNEL_ID_SIZE];

	pool_open_memory(&p);
	kernel_id_after(p.kernel, p.clock.test_ms, full, id);
	CHECK(strncmp(id, "01910000-0000-7000-", 19) == 0);
	kernel_id_after(p.kernel, p.clock.test_ms, STR(""), id);
	CHECK(str_cmp(str_from(id), full) < 0);
	pool_close(&p);
}

/* --- a file from before there were chains --- */

static void run_sql(struct pool *p, const char *sql)
{
	struct str path = str_format(&p->arena, "%s/store.db", p->folder);
	sqlite3   *db;

	CHECK(sqlite3_open(path.p, &db) == SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		print_error("%s\n", sqlite3_errmsg(db));
	CHECK(sqlite3_errcode(db) == SQLITE_OK);
	sqlite3_close(db);
}

static const char as_before[] =
        "CREATE TABLE older (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, type TEXT,"
        " source TEXT, account TEXT, region TEXT, time_ms INTEGER, resources TEXT, subject TEXT, actor TEXT,"
        " request_id TEXT, schema INTEGER, detail TEXT, volume INTEGER) STRICT;"
        "INSERT INTO older SELECT row_number() OVER (ORDER BY seq), version, id, type, source, account, region, time_ms,"
        " resources, subject, actor, request_id, schema, detail, volume FROM event;"
        "DROP VIEW event; DROP TABLE event_row; ALTER TABLE older RENAME TO event;"
        "CREATE INDEX \"event_BySubject\" ON \"event\" (\"subject\", \"id\");"
        "UPDATE sandbox SET last_event = NULL;";

static const char made_anew[] = "CREATE TEMP TABLE truth (it CHECK (it));"
                                "INSERT INTO truth SELECT sql LIKE '%IS NOT NULL' FROM sqlite_schema"
                                " WHERE name = 'event_BySubject';"
                                "INSERT INTO truth SELECT count(*) = 0 FROM event WHERE (reach = 0) <> (seq IN"
                                " (SELECT seq FROM event_row WHERE BySubject IS NOT NULL));";

TEST(events_of_an_older_file_are_found_and_new_ones_need_no_index)
{
	struct pool p;

	pool_open_sqlite(&p);
	(void)run_step(&p, (struct step){ .n = 1 });
	(void)run_step(&p, (struct step){ .n = 1, .news = NEWS_SANDBOX_ALLOCATED });
	(void)run_step(&p, (struct step){ .n = 2 });
	pool_shut(&p);
	run_sql(&p, as_before);
	pool_open_again(&p);
	CHECK(count_indexed(&p, "sandbox/sb-0001") == 2 && count_listed(&p, "sandbox/sb-0001") == 2);
	(void)run_step(&p, (struct step){ .n = 1, .news = NEWS_SANDBOX_MARKED });
	(void)run_step(&p, (struct step){ .n = 1, .news = NEWS_SANDBOX_STALE });
	CHECK(count_indexed(&p, "sandbox/sb-0001") == 3 && count_listed(&p, "sandbox/sb-0001") == 4);
	make_history(&p);
	for (int n = 0; n < SUBJECTS; n++)
		check_subject(&p, n);
	pool_shut(&p);
	run_sql(&p, made_anew);
	pool_open_again(&p);
	pool_close(&p);
}

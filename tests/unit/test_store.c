/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - the conformance suite: every back end keeps the same promises. Rows of backends[] are what it runs on. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "domain/sandbox.h"
#include "net/aws.h"
#include "net/fetch.h"
#include "service/records.h"
#include "store/dynamodb.h"
#include "store/fault.h"
#include "store/memory.h"
#include "store/session.h"
#include "store/sqlite.h"
#include "store/store.h"

static struct clock      test_clock;
static char              folder[64];
static struct fault_plan plan;

static struct store *open_memory(void)
{
	return store_memory_open(service_types, service_type_count, &test_clock);
}

static struct store *open_sqlite_at(const char *name)
{
	struct store *store = NULL;
	struct err    e = { 0 };
	char          path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	enum rc rc = store_sqlite_open(&(struct sqlite_options){ path, service_types, service_type_count, &test_clock,
	                                                         0 },
	                               &store, &e);

	if (rc)
		print_error("%s\n", e.msg);
	CHECK(rc == RC_OK);
	return store;
}

static struct store *open_sqlite(void)
{
	static int number;
	char       name[32];

	snprintf(name, sizeof(name), "store-%d.db", number++);
	return open_sqlite_at(name);
}

static struct store *open_fault_memory(void)
{
	return store_fault_open(open_memory(), &plan);
}

static struct store *open_fault_sqlite(void)
{
	return store_fault_open(open_sqlite(), &plan);
}

/* --- dynamodb: on the emulator at LEASEHOLD_TEST_DDB (tests/ddb/test_conformance.py starts one); fresh tables each time --- */

static const char *emulator_env(const char *name)
{
	return strcmp(name, "AWS_ACCESS_KEY_ID") == 0 || strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0 ? "local" : NULL;
}

static struct aws_client *emulator(void)
{
	static struct aws_client *client;

	if (!client && getenv("LEASEHOLD_TEST_DDB")) {
		struct aws_identity_options identity = { .env = emulator_env, .clock = &clock_real };
		struct aws_client_options   options = { .endpoint = getenv("LEASEHOLD_TEST_DDB"),
			                                .region = "us-east-1",
			                                .service = "dynamodb",
			                                .json_version = "1.0",
			                                .identity = aws_identity_new(&identity),
			                                .clock = &clock_real,
			                                .connect_timeout_ms = 5000,
			                                .attempt_timeout_ms = 20000,
			                                .total_timeout_ms = 60000,
			                                .attempts_max = 4 };

		fetch_global_init();
		client = aws_client_new(&options); /* as long as the process */
	}
	return client;
}

static struct store *open_dynamodb(void)
{
	static int         number;
	static char        pool[64], kernel[64]; /* the options borrow the names */
	struct err         e = { 0 };
	struct ddb_options options = { .client = emulator(),
		                       .pool_table = pool,
		                       .kernel_table = kernel,
		                       .gsi = { "StatusIndex", "TrackIndex", "IdempotencyIndex" },
		                       .types = service_types,
		                       .type_count = service_type_count,
		                       .clock = &test_clock,
		                       .workers = 4,
		                       .candidates = 15,
		                       .backoff_base_ms = 5,
		                       .backoff_max_ms = 50,
		                       .deadline_ms = 60000 };

	snprintf(pool, sizeof(pool), "conform-%d-%d", (int)getpid(), number);
	snprintf(kernel, sizeof(kernel), "conform-kernel-%d-%d", (int)getpid(), number++);
	if (ddb_create_tables(&options, &e)) {
		print_error("%s\n", e.msg);
		CHECK(!"tables are made");
	}
	return store_dynamodb_open(&options);
}

static const struct {
	const char *name;
	struct store *(*open)(void);
} backends[] = {
	{ "dynamodb", open_dynamodb }, /* when there is an emulator */
	{ "memory", open_memory },
	{ "sqlite", open_sqlite },
	{ "fault around memory", open_fault_memory },
	{ "fault around sqlite", open_fault_sqlite },
};

static void each_backend(void (*check)(struct store *store, struct arena *a))
{
	test_clock = clock_test(1000000 * 1000ll);
	snprintf(folder, sizeof(folder), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	for (size_t i = emulator() ? 0 : 1; i < ARRAY_LEN(backends); i++) {
		struct arena  a = { 0 };
		struct store *store;

		CASE(backends[i].name);
		atomic_store(&plan.count, 0);
		store = backends[i].open();
		check(store, &a);
		store_close(store);
		arena_fini(&a);
	}
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

/* --- transaction functions --- */

static struct sandbox make_sandbox(struct arena *a, int number)
{
	struct csp_account account = {
		.sandbox_id = str_format(a, "id-%04d", number),
		.external_id = str_format(a, "ext-%d", number),
		.name = str_format(a, "%s-%04d", number % 2 ? "lab" : "exam", number),
	};

	return sandbox_from_account(&account, 4, (struct wall){ 1000 });
}

/* The number in "id-0042". */
static int number_of(struct str id)
{
	int64_t number = -1;

	CHECK(str_to_int(str_of(id.p + 3, id.n - 3), 0, 9999, &number));
	return (int)number;
}

struct range {
	int from, to;
};

static enum rc add_range(struct session *s, void *arg, struct err *e)
{
	struct range *r = arg;

	for (int i = r->from; i < r->to; i++) {
		struct sandbox sandbox = make_sandbox(session_arena(s), i), old;
		enum rc        rc = session_get(s, &sandbox_type, sandbox.sandbox_id, &old, NULL);

		if (rc != RC_NOT_FOUND)
			return rc ? rc : err_set(e, RC_CONFLICT, "already there");
		session_put(s, &sandbox_type, &sandbox);
	}
	return RC_OK;
}

static void fill(struct store *store, struct arena *a, int count)
{
	for (int from = 0; from < count; from += 50) {
		struct range r = { from, from + 50 < count ? from + 50 : count };

		CHECK(store_run(store, add_range, &r, a, NULL) == RC_OK);
	}
}

struct claim {
	struct str     owner, prefix;
	struct sandbox got;
	bool           must_fail;
};

static enum rc claim_one(struct session *s, void *arg, struct err *e)
{
	struct claim *c = arg;
	struct query  q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .hash = value_int(SANDBOX_AVAILABLE) };
	enum rc       rc;

	if (c->prefix.n) {
		q.index = SANDBOX_FREE;
		q.sort_prefix = c->prefix;
	}
	if ((rc = session_claim(s, &q, &c->got, e)))
		return rc;
	if ((rc = sandbox_claim(&c->got, &(struct sandbox_claim){ c->owner, { 0 }, { 0 }, 4 }, session_now(s), e)))
		return rc;
	session_put(s, &sandbox_type, &c->got);
	return c->must_fail ? err_set(e, RC_INVALID, "refused after all") : RC_OK;
}

struct listing {
	struct query q;
	struct page  page;
	int64_t      count;
};

static enum rc list(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;

	return session_query(s, &l->q, &l->page, e);
}

static enum rc count(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;

	return session_count(s, l->q.type, l->q.index, l->q.hash, &l->count, e);
}

static int64_t count_state(struct store *store, struct arena *a, enum sandbox_state state)
{
	struct listing l = { .q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .hash = value_int(state) } };

	CHECK(store_read(store, count, &l, a, NULL) == RC_OK);
	return l.count;
}

/* --- promises --- */

static void check_refused_writes_nothing(struct store *store, struct arena *a)
{
	struct claim c = { .owner = STR("t1"), .must_fail = true };
	struct err   e = { 0 };

	fill(store, a, 3);
	CHECK(store_run(store, claim_one, &c, a, &e) == RC_INVALID);
	CHECK(strcmp(e.msg, "refused after all") == 0);
	CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 3);
	CHECK(count_state(store, a, SANDBOX_ALLOCATED) == 0);
}

TEST(a_refused_transaction_has_written_nothing)
{
	each_backend(check_refused_writes_nothing);
}

static void check_claims_are_distinct(struct store *store, struct arena *a)
{
	bool was_seen[100] = { 0 };

	fill(store, a, 100);
	for (int i = 0; i < 100; i++) {
		struct claim c = { .owner = str_format(a, "track-%d", i) };

		CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
		int number = number_of(c.got.sandbox_id);

		CHECK(number >= 0 && number < 100 && !was_seen[number]);
		was_seen[number] = true;
	}
	struct claim c = { .owner = STR("late") };

	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_EXHAUSTED);
}

TEST(every_claim_gets_another_record_until_none_is_left)
{
	each_backend(check_claims_are_distinct);
}

static void check_prefix(struct store *store, struct arena *a)
{
	fill(store, a, 10);
	for (int i = 0; i < 5; i++) {
		struct claim c = { .owner = str_format(a, "track-%d", i), .prefix = STR("exam") };

		CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
		CHECK(str_starts_with(c.got.name, STR("exam-")));
	}
	struct claim c = { .owner = STR("late"), .prefix = STR("exam") };

	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_EXHAUSTED);
	c.prefix = STR("lab-0003");
	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	CHECK(str_eq(c.got.name, STR("lab-0003")));
}

TEST(a_prefix_finds_exactly_the_names_that_begin_with_it)
{
	each_backend(check_prefix);
}

static void check_unique(struct store *store, struct arena *a)
{
	struct claim first = { .owner = STR("same") }, second = { .owner = STR("same") };
	struct err   e = { 0 };

	fill(store, a, 3);
	CHECK(store_run(store, claim_one, &first, a, NULL) == RC_OK);
	CHECK(store_run(store, claim_one, &second, a, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, "TrackIndex") != NULL);
	CHECK(count_state(store, a, SANDBOX_ALLOCATED) == 1);
}

TEST(a_unique_index_refuses_a_second_record)
{
	each_backend(check_unique);
}

static enum rc swap_holder(struct session *s, void *arg, struct err *e)
{
	struct claim  *next = arg;
	struct sandbox held;
	enum rc        rc;

	if ((rc = session_get(s, &sandbox_type, next->prefix, &held, e)))
		return rc;
	if ((rc = sandbox_apply(&held, SANDBOX_ON_EXPIRE, session_now(s), e)))
		return rc;
	session_put(s, &sandbox_type, &held);
	return claim_one(s, &(struct claim){ .owner = next->owner }, e);
}

static void check_unique_swap(struct store *store, struct arena *a)
{
	struct claim first = { .owner = STR("same") };

	fill(store, a, 3);
	CHECK(store_run(store, claim_one, &first, a, NULL) == RC_OK);
	struct claim next = { .owner = STR("same"), .prefix = first.got.sandbox_id };

	CHECK(store_run(store, swap_holder, &next, a, NULL) == RC_OK);
	CHECK(count_state(store, a, SANDBOX_ALLOCATED) == 1);
	CHECK(count_state(store, a, SANDBOX_PENDING_DELETION) == 1);
}

TEST(a_unique_value_can_pass_from_one_record_to_another_in_one_transaction)
{
	each_backend(check_unique_swap);
}

static enum rc look_at_own_writes(struct session *s, void *arg, struct err *e)
{
	struct query   q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .limit = 100 };
	struct sandbox got;
	struct page    page;
	struct claim   c = { .owner = STR("me") };
	enum rc        rc;

	(void)arg;
	if ((rc = claim_one(s, &c, e)))
		return rc;
	CHECK(session_get(s, &sandbox_type, c.got.sandbox_id, &got, e) == RC_OK);
	CHECK(got.status == SANDBOX_ALLOCATED && got.version == 2);
	q.hash = value_int(SANDBOX_AVAILABLE);
	CHECK(session_query(s, &q, &page, e) == RC_OK && page.count == 2);
	q.hash = value_int(SANDBOX_ALLOCATED);
	CHECK(session_query(s, &q, &page, e) == RC_OK && page.count == 1);
	session_delete(s, &sandbox_type, c.got.sandbox_id);
	CHECK(session_get(s, &sandbox_type, c.got.sandbox_id, &got, NULL) == RC_NOT_FOUND);
	CHECK(session_query(s, &q, &page, e) == RC_OK && page.count == 0);
	return RC_OK;
}

static void check_own_writes(struct store *store, struct arena *a)
{
	fill(store, a, 3);
	CHECK(store_run(store, look_at_own_writes, NULL, a, NULL) == RC_OK);
	CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 2);
}

TEST(a_transaction_sees_its_own_writes)
{
	each_backend(check_own_writes);
}

static void check_paging_of(struct store *store, struct arena *a, int index, int expected)
{
	bool           was_seen[300] = { 0 };
	int            seen = 0, pages = 0;
	struct listing l = {
		.q = { .type = &sandbox_type, .index = index, .hash = value_int(SANDBOX_AVAILABLE), .limit = 17 }
	};

	do {
		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		for (size_t i = 0; i < l.page.count; i++) {
			struct sandbox *s = page_record(&l.page, &sandbox_type, i);
			int             number = number_of(s->sandbox_id);

			CHECK(!was_seen[number]);
			was_seen[number] = true;
			seen++;
		}
		l.q.cursor = l.page.next;
		pages++;
	} while (l.page.next.n);
	CHECK(seen == expected);
	CHECK(pages == expected / 17 + 1);
}

static void check_paging(struct store *store, struct arena *a)
{
	fill(store, a, 300);
	check_paging_of(store, a, QUERY_ALL, 300);
	check_paging_of(store, a, SANDBOX_BY_STATUS, 300);
	check_paging_of(store, a, SANDBOX_FREE, 300);
}

TEST(pages_show_every_record_once)
{
	each_backend(check_paging);
}

static void check_bad_cursor(struct store *store, struct arena *a)
{
	static const char *const bad[] = { "x", "1", ":", "x:y", "99999999999999999999:0" };
	struct listing           l = { .q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .limit = 5 } };

	fill(store, a, 10);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		l.q.cursor = str_from(bad[i]);
		CHECK(store_read(store, list, &l, a, NULL) == RC_INVALID);
	}
}

TEST(a_cursor_of_another_query_is_refused)
{
	each_backend(check_bad_cursor);
}

static void check_sort_max(struct store *store, struct arena *a)
{
	struct listing l = { .q = { .type = &sandbox_type,
		                    .index = SANDBOX_BY_STATUS,
		                    .hash = value_int(SANDBOX_ALLOCATED),
		                    .has_sort_max = true,
		                    .sort_max = 1000004,
		                    .limit = 100 } };

	fill(store, a, 20);
	for (int i = 0; i < 10; i++) {
		struct claim c = { .owner = str_format(a, "track-%d", i) };

		CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
		test_clock.test_ms += 1000;
	}
	test_clock.test_ms = 1000000 * 1000ll;
	CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
	CHECK(l.page.count == 5);
	for (size_t i = 0; i < l.page.count; i++)
		CHECK(((struct sandbox *)page_record(&l.page, &sandbox_type, i))->allocated_at == 1000000 + (int64_t)i);
}

TEST(a_range_is_read_in_order)
{
	each_backend(check_sort_max);
}

static enum rc put_too_many(struct session *s, void *arg, struct err *e)
{
	struct range r = { 0, SESSION_ACTIONS_MAX + 1 };

	(void)arg;
	return add_range(s, &r, e);
}

static void check_limit(struct store *store, struct arena *a)
{
	CHECK(store_run(store, put_too_many, NULL, a, NULL) == RC_TOO_LARGE);
	CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 0);
}

TEST(a_transaction_over_the_limit_is_refused_whole)
{
	each_backend(check_limit);
}

static enum rc put_bad_field(struct session *s, void *arg, struct err *e)
{
	struct sandbox sandbox = make_sandbox(session_arena(s), 1), old;
	char          *text = arena_alloc(session_arena(s), SANDBOX_NAME_MAX + 1);

	(void)arg;
	(void)e;
	memset(text, 'x', SANDBOX_NAME_MAX + 1);
	sandbox.name = str_of(text, SANDBOX_NAME_MAX + 1);
	CHECK(session_get(s, &sandbox_type, sandbox.sandbox_id, &old, NULL) == RC_NOT_FOUND);
	session_put(s, &sandbox_type, &sandbox);
	return RC_OK;
}

static void check_bad_field(struct store *store, struct arena *a)
{
	struct err e = { 0 };

	CHECK(store_run(store, put_bad_field, NULL, a, &e) == RC_CORRUPT);
	CHECK(strstr(e.msg, "sandbox.name") != NULL);
	CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 0);
}

TEST(a_record_that_breaks_its_table_is_not_stored)
{
	each_backend(check_bad_field);
}

static enum rc compare_fields(struct session *s, void *arg, struct err *e)
{
	struct sandbox *expected = arg, got;
	enum rc         rc = session_get(s, &sandbox_type, expected->sandbox_id, &got, e);

	if (rc)
		return rc;
	CHECK(record_changes(&sandbox_type, expected, &got) == 0);
	return RC_OK;
}

static enum rc put_full(struct session *s, void *arg, struct err *e)
{
	struct sandbox old;

	(void)e;
	CHECK(session_get(s, &sandbox_type, ((struct sandbox *)arg)->sandbox_id, &old, NULL) == RC_NOT_FOUND);
	session_put(s, &sandbox_type, arg);
	return RC_OK;
}

static void check_round_trip(struct store *store, struct arena *a)
{
	struct sandbox full = {
		.sandbox_id = STR("id"),
		.name = STR("n\xc3\xbcm \"quoted\" 'x'"),
		.external_id = STR("identity/accounts/1"),
		.status = SANDBOX_DELETION_FAILED,
		.allocated_to_track = STR("t"),
		.idempotency_key = STR("k"),
		.track_name = STR("lab"),
		.sfdc_account_id = STR("sf"),
		.allocated_at = 1,
		.lab_duration_hours = 2,
		.deletion_requested_at = 3,
		.deletion_retry_count = 4,
		.next_deletion_at = 5,
		.last_error = STR("why"),
		.quarantine_reason = STR("q"),
		.last_synced = 6,
		.created_at = -7,
		.updated_at = INT64_MAX,
	};

	CHECK(store_run(store, put_full, &full, a, NULL) == RC_OK);
	CHECK(store_read(store, compare_fields, &full, a, NULL) == RC_OK);
}

TEST(every_field_comes_back_as_it_was_stored)
{
	each_backend(check_round_trip);
}

/* --- faults --- */

static void with_fault(enum fault fault, enum rc expected, int64_t expected_allocated)
{
	struct store *(*const opens[])(void) = { open_fault_memory, open_fault_sqlite };

	test_clock = clock_test(1000000 * 1000ll);
	snprintf(folder, sizeof(folder), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	for (size_t i = 0; i < ARRAY_LEN(opens); i++) {
		struct arena  a = { 0 };
		struct store *store;
		struct claim  c = { .owner = STR("t") };

		atomic_store(&plan.count, 0);
		store = opens[i]();
		fill(store, &a, 5);
		atomic_store(&plan.next, fault);
		atomic_store(&plan.count, 1);
		CHECK(store_run(store, claim_one, &c, &a, NULL) == expected);
		CHECK(count_state(store, &a, SANDBOX_ALLOCATED) == expected_allocated);
		store_close(store);
		arena_fini(&a);
	}
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

TEST(a_transaction_refused_by_the_store_left_nothing)
{
	with_fault(FAULT_BEFORE, RC_UNAVAILABLE, 0);
}

TEST(a_lost_answer_does_not_undo_the_write)
{
	with_fault(FAULT_AFTER, RC_UNAVAILABLE, 1);
}

TEST(a_function_that_is_run_again_takes_effect_once)
{
	with_fault(FAULT_RERUN, RC_OK, 1);
}

/* --- sqlite alone --- */

static void with_folder(void (*check)(struct arena *a))
{
	struct arena a = { 0 };
	char         command[96];

	test_clock = clock_test(1000000 * 1000ll);
	snprintf(folder, sizeof(folder), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	check(&a);
	arena_fini(&a);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

static char *in_folder(struct arena *a, const char *name)
{
	return arena_copy(a, str_format(a, "%s/%s", folder, name).p, strlen(folder) + 1 + strlen(name));
}

static void check_reopen(struct arena *a)
{
	struct store *store = open_sqlite_at("a.db");
	struct claim  c = { .owner = STR("t") };

	fill(store, a, 100);
	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	CHECK(sqlite_backup(in_folder(a, "a.db"), in_folder(a, "b.db"), NULL) == RC_OK);
	CHECK(sqlite_backup(in_folder(a, "a.db"), in_folder(a, "b.db"), NULL) == RC_CONFLICT);
	CHECK(sqlite_check(in_folder(a, "a.db"), NULL) == RC_OK);
	store_close(store);
	for (int i = 0; i < 2; i++) {
		CHECK(sqlite_check(in_folder(a, i ? "b.db" : "a.db"), NULL) == RC_OK);
		store = open_sqlite_at(i ? "b.db" : "a.db");
		CHECK(count_state(store, a, SANDBOX_ALLOCATED) == 1);
		CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 99);
		CHECK(store_run(store, claim_one, &c, a, NULL) == RC_CONFLICT);
		store_close(store);
	}
}

TEST(a_reopened_file_and_its_backup_have_everything)
{
	with_folder(check_reopen);
}

static void check_foreign_files(struct arena *a)
{
	struct store               *store = NULL;
	struct err                  e = { 0 };
	char                        command[256];
	const char                 *path = in_folder(a, "x.db");
	const struct sqlite_options options = { path, service_types, service_type_count, &test_clock, 0 };

	snprintf(command, sizeof(command), "sqlite3 %s 'CREATE TABLE other(x)'", path);
	CHECK(system(command) == 0);
	CHECK(store_sqlite_open(&options, &store, &e) == RC_CORRUPT && strstr(e.msg, "x.db is not a Leasehold"));
	CHECK(unlink(path) == 0);

	store_close(open_sqlite_at("x.db"));
	snprintf(command, sizeof(command), "sqlite3 %s 'PRAGMA user_version=99'", path);
	CHECK(system(command) == 0);
	err_clear(&e);
	CHECK(store_sqlite_open(&options, &store, &e) == RC_CORRUPT && strstr(e.msg, "version 99"));
	CHECK(unlink(path) == 0);

	snprintf(command, sizeof(command), "head -c 5000 /dev/urandom > %s", path);
	CHECK(system(command) == 0);
	err_clear(&e);
	CHECK(store_sqlite_open(&options, &store, &e) == RC_CORRUPT);
	CHECK(sqlite_check(path, NULL) == RC_CORRUPT);
}

TEST(files_of_others_newer_ones_and_garbage_are_refused)
{
	with_folder(check_foreign_files);
}

static void check_old_file(struct arena *a)
{
	const char *path = in_folder(a, "old.db");
	char        command[512];

	/* A file from before sfdc_account_id, next_deletion_at and the indexes existed. */
	store_close(open_sqlite_at("old.db"));
	snprintf(
	        command, sizeof(command),
	        "sqlite3 %s 'DROP INDEX sandbox_FreeIndex; ALTER TABLE sandbox DROP COLUMN sfdc_account_id;"
	        " ALTER TABLE sandbox DROP COLUMN next_deletion_at; PRAGMA user_version=0;"
	        " INSERT INTO sandbox (version, sandbox_id, name, external_id, status, allocated_at, lab_duration_hours,"
	        " deletion_retry_count, created_at, updated_at) VALUES (1, \"i\", \"n\", \"e\", 0, 0, 4, 0, 1, 1)'",
	        path);
	CHECK(system(command) == 0);
	struct store *store = open_sqlite_at("old.db");
	struct claim  c = { .owner = STR("t"), .prefix = STR("n") };

	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	CHECK(str_eq(c.got.sandbox_id, STR("i")));
	store_close(store);
}

TEST(an_older_file_is_brought_up_to_date)
{
	with_folder(check_old_file);
}

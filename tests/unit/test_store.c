/* SPDX-License-Identifier: Apache-2.0 */
/* test_store.c - the conformance suite: every back end keeps the same promises. Rows of backends[] are what it runs
 * on. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "truth/test_clock.h"
#include "domain/account.h"
#include "domain/sandbox.h"
#include "kernel/records.h"
#include "net/aws.h"
#include "net/fetch.h"
#include "service/broker/records.h"
#include "service/record/lease_records.h"
#include "service/services.h"
#include "store/dynamodb/dynamodb.h"
#include "store/memory/fault.h"
#include "store/memory/memory.h"
#include "store/record_rows.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

static struct clock      test_clock;
static char              folder[64];
static struct fault_plan plan;

/* A record type of our own table with all that an index there can have. */
enum note_state { NOTE_IS_OPEN, NOTE_IS_CLOSED, NOTE_STATE_COUNT };
struct note {
	struct str      key, group, word;
	int64_t         number;
	enum note_state state;
	uint64_t        version;
};
enum { NOTE_F_KEY, NOTE_F_GROUP, NOTE_F_WORD, NOTE_F_NUMBER, NOTE_F_STATE };
enum { NOTE_BY_WORD, NOTE_BY_NUMBER, NOTE_OPEN };
static const char *const note_state_names[NOTE_STATE_COUNT] = { "open", "closed" };

/* clang-format off */
static const struct record_field note_fields[] = {
	[NOTE_F_KEY]    = { TEXT(note, key, 64) },
	[NOTE_F_GROUP]  = { TEXT_OR_NONE(note, group, 64) },
	[NOTE_F_WORD]   = { TEXT_OR_NONE(note, word, 64) },
	[NOTE_F_NUMBER] = { INT(note, number) },
	[NOTE_F_STATE]  = { ENUM(note, state, note_state_names, NOTE_STATE_COUNT) },
};
static const struct record_index note_indexes[] = {
	[NOTE_BY_WORD]   = { "ByWord",   NOTE_F_GROUP, NOTE_F_WORD,   false, NO_FIELD,     0,            1 },
	[NOTE_BY_NUMBER] = { "ByNumber", NOTE_F_GROUP, NOTE_F_NUMBER, false, NO_FIELD,     0,            2 },
	[NOTE_OPEN]      = { "Open",     NOTE_F_GROUP, NOTE_F_KEY,    false, NOTE_F_STATE, NOTE_IS_OPEN, 3 },
};
/* clang-format on */
static const struct record_type note_type = {
	.name = "note",
	.size = sizeof(struct note),
	.fields = note_fields,
	.field_count = ARRAY_LEN(note_fields),
	.key = NOTE_F_KEY,
	.version_offset = offsetof(struct note, version),
	.indexes = note_indexes,
	.index_count = ARRAY_LEN(note_indexes),
};

/* The same in slices: what orders an index there is the key. */
static const struct record_type leaf_type = {
	.name = "leaf",
	.size = sizeof(struct note),
	.fields = note_fields,
	.field_count = ARRAY_LEN(note_fields),
	.key = NOTE_F_KEY,
	.version_offset = offsetof(struct note, version),
	.indexes = &note_indexes[NOTE_OPEN],
	.index_count = 1,
	.is_sliced = true,
};

enum { TYPES_MAX = 48 };
static const struct record_type *types[TYPES_MAX]; /* the service's, and this one */
static size_t                    type_count;

__attribute__((constructor)) static void list_types(void)
{
	for (size_t i = 0; i < service_type_count; i++)
		types[type_count++] = service_types[i];
	types[type_count++] = &note_type;
	types[type_count++] = &leaf_type;
}

static struct store *open_memory(void)
{
	return store_memory_open(types, type_count, &test_clock);
}

static struct store *open_sqlite_at(const char *name)
{
	struct store *store = NULL;
	struct err    e = { 0 };
	char          path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	enum rc rc = store_sqlite_open(&(struct sqlite_options){ path, types, type_count, &test_clock, 0 }, &store, &e);

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

/* --- dynamodb: on the emulator at LEASEHOLD_TEST_DDB (tests/ddb/test_conformance.py starts one); fresh tables each
 * time --- */

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

static struct store *open_sliced_dynamodb(int number, unsigned slices)
{
	static char        pool[64], kernel[64]; /* the options borrow the names */
	struct err         e = { 0 };
	struct ddb_options options = { .client = emulator(),
		                       .pool_table = pool,
		                       .kernel_table = kernel,
		                       .gsi = { "StatusIndex", "TrackIndex", "IdempotencyIndex" },
		                       .types = types,
		                       .type_count = type_count,
		                       .clock = &test_clock,
		                       .workers = 4,
		                       .candidates = 15,
		                       .slices = slices,
		                       .backoff_base_ms = 5,
		                       .backoff_max_ms = 50,
		                       .deadline_ms = 60000 };

	snprintf(pool, sizeof(pool), "conform-%d-%d", (int)getpid(), number);
	snprintf(kernel, sizeof(kernel), "conform-kernel-%d-%d", (int)getpid(), number);
	if (ddb_create_tables(&options, &e)) {
		print_error("%s\n", e.msg);
		CHECK(!"tables are made");
	}
	return store_dynamodb_open(&options);
}

static int tables; /* numbers that were used */

static struct store *open_dynamodb(void)
{
	return open_sliced_dynamodb(tables++, 4);
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

enum { PAGED = 300 };

static void check_paging_of(struct store *store, struct arena *a, int index)
{
	bool           was_seen[PAGED] = { 0 };
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
	CHECK(seen == PAGED);
	CHECK(pages == PAGED / 17 + 1);
}

static void check_paging(struct store *store, struct arena *a)
{
	fill(store, a, PAGED);
	check_paging_of(store, a, QUERY_ALL);
	check_paging_of(store, a, SANDBOX_BY_STATUS);
	check_paging_of(store, a, SANDBOX_FREE);
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

static enum rc look_for_long(struct session *s, void *arg, struct err *e)
{
	struct str     text = str_of(arg, 3000);
	struct listing l = {
		.q = { .type = &note_type, .index = NOTE_BY_WORD, .hash = value_text(text), .limit = 10 }
	};
	struct note    note;
	struct sandbox sandbox;

	CHECK(session_get(s, &note_type, text, &note, NULL) == RC_NOT_FOUND);
	CHECK(session_get(s, &sandbox_type, text, &sandbox, NULL) == RC_NOT_FOUND);
	CHECK(session_find_unique(s, &sandbox_type, SANDBOX_BY_TRACK, value_text(text), &sandbox, NULL) ==
	      RC_NOT_FOUND);
	CHECK(list(s, &l, e) == RC_OK && l.page.count == 0);
	CHECK(count(s, &l, e) == RC_OK && l.count == 0);
	return RC_OK;
}

static void check_long_texts(struct store *store, struct arena *a)
{
	char text[3000];

	memset(text, 'x', sizeof(text));
	fill(store, a, 1);
	CHECK(store_run(store, look_for_long, text, a, NULL) == RC_OK);
}

TEST(a_text_longer_than_any_that_is_stored_finds_nothing)
{
	each_backend(check_long_texts);
}

TEST(every_field_comes_back_as_it_was_stored)
{
	each_backend(check_round_trip);
}

/* --- lists of the kernel's kind: secondary indexes of our own table --- */

enum { NOTES = 60 };

static const char *const words[] = { "", "a", "ab", "ab", "ab#1", "abc", "ac", "b", "b\xc3\xbc", "ba", "c" };

static struct note make_note(struct arena *a, int i)
{
	return (struct note){ .key = str_format(a, "%s-%02d", i % 4 ? "n" : "na", i * 37 % NOTES),
		              .group = i % 10 == 9 ? STR("") : str_format(a, "group %d", i % 2),
		              .word = str_from(words[i % (int)ARRAY_LEN(words)]),
		              .number = (i % 20 - 10) * 1000000000000000ll,
		              .state = i % 3 ? NOTE_IS_OPEN : NOTE_IS_CLOSED };
}

static enum rc add_notes(struct session *s, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	for (int i = 0; i < NOTES; i++) {
		struct note note = make_note(session_arena(s), i);

		session_add(s, &note_type, &note);
		CHECK(note.version == 1);
	}
	return RC_OK;
}

/* What the list should be, said again in other words. */
static bool is_wanted(const struct query *q, const struct note *n)
{
	struct str sort = q->index == NOTE_BY_WORD ? n->word : n->key;

	if (q->index >= 0 && (!n->group.n || !str_eq(n->group, q->hash.text)))
		return false;
	if (q->index == NOTE_OPEN && n->state != NOTE_IS_OPEN)
		return false;
	if (q->has_sort_max)
		return n->number <= q->sort_max;
	if (q->sort_prefix.n && (sort.n < q->sort_prefix.n || memcmp(sort.p, q->sort_prefix.p, q->sort_prefix.n)))
		return false;
	return str_cmp(sort, q->sort_from) >= 0 && (!q->sort_to.n || str_cmp(sort, q->sort_to) < 0);
}

static int compare_notes(const struct query *q, const struct note *a, const struct note *b)
{
	int order;

	switch (q->index) {
	case NOTE_BY_WORD: order = str_cmp(a->word, b->word); break;
	case NOTE_BY_NUMBER: order = (a->number > b->number) - (a->number < b->number); break;
	default: order = str_cmp(a->key, b->key); break;
	}
	return q->is_descending ? -order : order;
}

/* All pages of the query: in order, complete, nothing twice. */
static void check_notes(struct store *store, struct query q)
{
	struct arena   a = { 0 };
	struct listing l = { .q = q };
	struct note    before = { 0 };
	bool           was_seen[NOTES] = { 0 };
	int            seen = 0, wanted = 0;

	for (int i = 0; i < NOTES; i++) {
		struct note note = make_note(&a, i);

		wanted += is_wanted(&q, &note);
	}
	do {
		CHECK(store_read(store, list, &l, &a, NULL) == RC_OK);
		for (size_t i = 0; i < l.page.count; i++, seen++) {
			struct note *n = page_record(&l.page, &note_type, i);
			int64_t      number;

			CHECK(is_wanted(&q, n));
			CHECK(!seen || compare_notes(&q, &before, n) <= 0);
			CHECK(str_to_int(str_of(n->key.p + n->key.n - 2, 2), 0, NOTES - 1, &number));
			CHECK(!was_seen[number]);
			was_seen[number] = true;
			before = *n;
		}
		CHECK(l.page.count == q.limit || !l.page.next.n);
		l.q.cursor = l.page.next;
	} while (l.page.next.n);
	CHECK(seen == wanted);
	arena_fini(&a);
}

static void check_notes_both_ways(struct store *store, struct query q)
{
	static const size_t limits[] = { 1, 4, 100 };

	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		q.limit = limits[i];
		q.is_descending = false;
		check_notes(store, q);
		q.is_descending = true;
		check_notes(store, q);
	}
}

static const struct {
	const char *prefix, *from, *to;
} key_ranges[] = {
	{ "", "", "" },      { "na-", "", "" },         { "n-0", "", "" },      { "x", "", "" },
	{ "", "n-30", "" },  { "", "", "n-30" },        { "", "n-10", "na-1" }, { "", "n-30", "n-30" },
	{ "", "z", "a" },    { "n-", "n-30", "" },      { "n-", "a", "" },      { "n-", "", "n-30" },
	{ "n-", "", "z" },   { "n-", "n-1", "n-30" },   { "n-", "na", "" },     { "na", "", "n-30" },
	{ "n", "n-5", "z" }, { "", "n-05x", "n-06xx" },
};

static void check_key_order(struct store *store, struct arena *a)
{
	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(key_ranges); i++) {
		struct query q = { .type = &note_type,
			           .index = QUERY_KEYS,
			           .sort_prefix = str_from(key_ranges[i].prefix),
			           .sort_from = str_from(key_ranges[i].from),
			           .sort_to = str_from(key_ranges[i].to) };

		check_notes_both_ways(store, q);
		q.index = NOTE_OPEN;
		q.hash = value_text(STR("group 1"));
		check_notes_both_ways(store, q);
	}
}

TEST(records_come_in_the_order_of_keys_within_limits)
{
	each_backend(check_key_order);
}

static void check_text_order(struct store *store, struct arena *a)
{
	static const char *const ranges[][3] = { { "", "", "" },    { "ab", "", "" },  { "", "ab", "" },
		                                 { "", "", "ab" },  { "", "a", "b" },  { "a", "ab#", "ac" },
		                                 { "b", "ba", "" }, { "", "ab", "ab" } };

	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
		for (int g = 0; g < 3; g++) /* there is no third group */
			check_notes_both_ways(store, (struct query){ .type = &note_type,
			                                             .index = NOTE_BY_WORD,
			                                             .hash = value_text(str_format(a, "group %d", g)),
			                                             .sort_prefix = str_from(ranges[i][0]),
			                                             .sort_from = str_from(ranges[i][1]),
			                                             .sort_to = str_from(ranges[i][2]) });
}

TEST(an_index_by_text_is_read_in_order_within_limits_with_equal_and_empty_texts)
{
	each_backend(check_text_order);
}

static void check_number_order(struct store *store, struct arena *a)
{
	static const int64_t most[] = { INT64_MIN,        -10000000000000000, -1,       0,
		                        3000000000000000, 8999999999999999,   INT64_MAX };
	struct query         q = { .type = &note_type, .index = NOTE_BY_NUMBER, .hash = value_text(STR("group 0")) };

	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	check_notes_both_ways(store, q);
	q.has_sort_max = true;
	for (size_t i = 0; i < ARRAY_LEN(most); i++) {
		q.sort_max = most[i];
		check_notes_both_ways(store, q);
	}
}

TEST(an_index_by_number_is_read_in_order_up_to_a_limit)
{
	each_backend(check_number_order);
}

/* Only what the fields say that it asked for. */
static bool wants_word(const void *record, const void *arg)
{
	const struct note *n = record;

	CHECK(n->word.p || !n->word.n);
	return str_starts_with(n->word, str_from(arg));
}

/* Pages through a filter: each looks at few records, and all together find exactly what the whole list has. */
static void check_filter(struct store *store, struct query q, const char *word, size_t looks)
{
	struct arena        a = { 0 };
	struct query_filter f = { wants_word, word, 1u << NOTE_F_WORD, looks };
	struct listing      all = { .q = q }, l = { .q = q };
	size_t              seen = 0, pages = 0;

	all.q.limit = 100;
	l.q.filter = &f;
	CHECK(store_read(store, list, &all, &a, NULL) == RC_OK);
	CHECK(!all.page.next.n);
	do {
		CHECK(store_read(store, list, &l, &a, NULL) == RC_OK);
		CHECK(l.page.count <= looks && l.page.count <= q.limit);
		for (size_t i = 0; i < l.page.count; i++) {
			const struct note *n = page_record(&l.page, &note_type, i), *other = NULL;

			while (seen < all.page.count) {
				other = page_record(&all.page, &note_type, seen++);
				if (str_starts_with(other->word, str_from(word)))
					break;
			}
			CHECK(other && str_eq(other->key, n->key) && str_eq(other->word, n->word));
			CHECK(str_eq(other->group, n->group) && other->number == n->number && other->state == n->state);
		}
		l.q.cursor = l.page.next;
		CHECK(++pages <= all.page.count + 2);
	} while (l.page.next.n);
	for (; seen < all.page.count; seen++)
		CHECK(!str_starts_with(((struct note *)page_record(&all.page, &note_type, seen))->word,
		                       str_from(word)));
	CHECK(pages >= all.page.count / looks);
	arena_fini(&a);
}

static void check_filters(struct store *store, struct arena *a)
{
	static const char *const wanted[] = { "", "ab", "c", "nothing" };
	struct query             queries[] = {
		            { .type = &note_type, .index = QUERY_KEYS },
		            { .type = &note_type, .index = NOTE_BY_NUMBER, .hash = value_text(STR("group 1")) },
		            { .type = &note_type, .index = NOTE_OPEN, .hash = value_text(STR("group 0")), .is_descending = true },
	};

	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(queries); i++)
		for (size_t w = 0; w < ARRAY_LEN(wanted); w++)
			for (size_t looks = 1; looks <= 100; looks += 33) {
				queries[i].limit = looks % 2 ? 2 : 100;
				check_filter(store, queries[i], wanted[w], looks);
			}
}

TEST(a_filter_finds_what_is_wanted_and_looks_at_few_records_for_each_page)
{
	each_backend(check_filters);
}

static void check_bytes(struct store *store, struct arena *a)
{
	struct listing l = {
		.q = { .type = &note_type, .index = QUERY_KEYS, .limit = 100, .bytes_max = 5 * sizeof(struct note) }
	};
	size_t seen = 0;

	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	do {
		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		CHECK(l.page.count <= 5 && (l.page.count || !l.page.next.n));
		seen += l.page.count;
		l.q.cursor = l.page.next;
	} while (l.page.next.n);
	CHECK(seen == NOTES);
}

TEST(a_page_ends_when_it_has_so_many_bytes)
{
	each_backend(check_bytes);
}

static void check_cursor_of_other_limits(struct store *store, struct arena *a)
{
	struct listing l = { .q = { .type = &note_type, .index = QUERY_KEYS, .sort_from = STR("n-30"), .limit = 5 } };
	enum rc        rc;

	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
	CHECK(l.page.count == 5 && l.page.next.n);
	l.q.cursor = l.page.next;
	l.q.sort_from = STR("");
	l.q.sort_to = STR("n-1");
	rc = store_read(store, list, &l, a, NULL);
	CHECK(rc == RC_INVALID || (!rc && l.page.count == 0)); /* nothing is behind it */
}

TEST(a_cursor_outside_the_limits_finds_nothing)
{
	each_backend(check_cursor_of_other_limits);
}

/* --- slices --- */

enum { LEAVES = 90 };
struct leaves {
	int begin, end, step;
};

static struct note make_leaf(struct arena *a, int i)
{
	return (struct note){ .key = str_format(a, "leaf-%03d", i),
		              .group = str_format(a, "group %d", i % 2),
		              .state = i % 3 ? NOTE_IS_OPEN : NOTE_IS_CLOSED };
}

static enum rc add_leaves(struct session *s, void *arg, struct err *e)
{
	struct leaves *l = arg;

	(void)e;
	for (int i = l->begin; i < l->end; i += l->step) {
		struct note leaf = make_leaf(session_arena(s), i);

		session_add(s, &leaf_type, &leaf);
	}
	return RC_OK;
}

/* Reads each by its key, and says something new in it. */
static enum rc mark_leaves(struct session *s, void *arg, struct err *e)
{
	struct leaves *l = arg;

	for (int i = l->begin; i < l->end; i += l->step) {
		struct note want = make_leaf(session_arena(s), i), leaf;
		enum rc     rc = session_get(s, &leaf_type, want.key, &leaf, e);

		if (rc)
			return rc;
		leaf.word = STR("marked");
		session_put(s, &leaf_type, &leaf);
	}
	return RC_OK;
}

static enum rc drop_leaf(struct session *s, void *arg, struct err *e)
{
	struct note want = make_leaf(session_arena(s), *(int *)arg), leaf;
	enum rc     rc = session_get(s, &leaf_type, want.key, &leaf, e);

	if (!rc)
		session_delete(s, &leaf_type, leaf.key);
	return rc;
}

/* All pages are those of [begin, end) in steps of `step`, in order. */
static void check_leaves(struct store *store, struct query q, struct leaves want)
{
	struct arena a = { 0 };

	for (q.limit = 1; q.limit < 2 * LEAVES; q.limit = q.limit * 3 + 4) {
		struct listing l = { .q = q };
		int            at = q.is_descending ? want.end : want.begin;

		do {
			CHECK(store_read(store, list, &l, &a, NULL) == RC_OK);
			for (size_t i = 0; i < l.page.count; i++, at += q.is_descending ? -want.step : want.step)
				CHECK(str_eq(((struct note *)page_record(&l.page, &leaf_type, i))->key,
				             make_leaf(&a, at).key));
			l.q.cursor = l.page.next;
		} while (l.page.next.n);
		CHECK(q.is_descending ? at < want.begin : at > want.end - want.step);
	}
	arena_fini(&a);
}

static void check_slices(struct store *store, struct arena *a)
{
	struct query by_key = { .type = &leaf_type, .index = QUERY_KEYS };
	struct query by_group = {
		.type = &leaf_type, .index = 0, .hash = value_text(STR("group 1")), .sort_from = STR("leaf-061")
	};
	struct query some = {
		.type = &leaf_type, .index = QUERY_KEYS, .sort_from = STR("leaf-030"), .sort_to = STR("leaf-070")
	};
	int first = 0;

	CHECK(store_run(store, add_leaves, &(struct leaves){ 0, LEAVES, 1 }, a, NULL) == RC_OK);
	check_leaves(store, by_key, (struct leaves){ 0, LEAVES, 1 });
	check_leaves(store, some, (struct leaves){ 30, 70, 1 });
	CHECK(store_run(store, add_leaves, &(struct leaves){ 7, 8, 1 }, a, NULL) == RC_CONFLICT);
	CHECK(store_run(store, mark_leaves, &(struct leaves){ 0, 40, 1 }, a, NULL) == RC_OK);
	CHECK(store_run(store, drop_leaf, &first, a, NULL) == RC_OK);
	CHECK(store_run(store, drop_leaf, &first, a, NULL) == RC_NOT_FOUND);
	check_leaves(store, by_key, (struct leaves){ 1, LEAVES, 1 });
	by_key.is_descending = true;
	check_leaves(store, by_key, (struct leaves){ 1, LEAVES - 1, 1 });
	by_group.sort_to = STR("leaf-063"); /* 61 is open and of group 1, 63 would be closed */
	check_leaves(store, by_group, (struct leaves){ 61, 62, 1 });
}

TEST(what_is_sliced_is_listed_in_the_order_of_keys)
{
	each_backend(check_slices);
}

TEST(slices_can_become_more_while_others_use_fewer)
{
	int          number = tables++;
	struct arena a = { 0 };
	struct query by_key = { .type = &leaf_type, .index = QUERY_KEYS };

	if (!emulator())
		skip();
	struct store *few = open_sliced_dynamodb(number, 1);

	CHECK(store_run(few, add_leaves, &(struct leaves){ 0, LEAVES, 2 }, &a, NULL) == RC_OK);
	struct store *many = open_sliced_dynamodb(number, 16);

	CHECK(store_run(many, add_leaves, &(struct leaves){ 1, LEAVES, 2 }, &a, NULL) == RC_OK);
	CHECK(store_run(few, mark_leaves, &(struct leaves){ 0, LEAVES, 1 }, &a, NULL) == RC_OK);
	CHECK(store_run(many, mark_leaves, &(struct leaves){ 0, LEAVES, 1 }, &a, NULL) == RC_OK);
	check_leaves(few, by_key, (struct leaves){ 0, LEAVES, 1 });
	check_leaves(many, by_key, (struct leaves){ 0, LEAVES, 1 });
	store_close(few);
	store_close(many);
	few = open_sliced_dynamodb(number, 2); /* a smaller number changes nothing */
	check_leaves(few, by_key, (struct leaves){ 0, LEAVES, 1 });
	store_close(few);
	arena_fini(&a);
}

static const int64_t dues[] = { INT64_MIN, INT64_MIN + 1, -1000,         -1,       0, 1, 9,
	                        10,        1789000000000, INT64_MAX - 1, INT64_MAX };

static enum rc arm_timers(struct session *s, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	for (size_t i = 0; i < ARRAY_LEN(dues); i++) {
		size_t       at = i * 7 % ARRAY_LEN(dues);
		struct timer t = { .name = str_format(session_arena(s), "timer/%zu", i),
			           .due_ms = dues[at],
			           .type = STR("t"),
			           .subject = STR("s") };

		session_add(s, &timer_type, &t);
	}
	return RC_OK;
}

static void check_timers(struct store *store, struct arena *a)
{
	struct listing l = { .q = { .type = &timer_type,
		                    .index = TIMER_DUE,
		                    .hash = value_int(TIMER_ARMED),
		                    .has_sort_max = true,
		                    .limit = QUERY_LIMIT_MAX } };

	CHECK(store_run(store, arm_timers, NULL, a, NULL) == RC_OK);
	for (size_t most = 0; most < ARRAY_LEN(dues); most++) {
		l.q.sort_max = dues[most];
		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		CHECK(l.page.count == most + 1 && !l.page.next.n);
		for (size_t i = 0; i <= most; i++)
			CHECK(((struct timer *)page_record(&l.page, &timer_type, i))->due_ms == dues[i]);
	}
	CHECK(store_read(store, count, &l, a, NULL) == RC_OK && l.count == (int64_t)ARRAY_LEN(dues));
}

TEST(timers_are_found_by_when_they_are_due_whatever_the_number)
{
	each_backend(check_timers);
}

struct lane_step {
	struct str key;
	int64_t    due_ms; /* 0: it goes */
};

static enum rc set_lane(struct session *s, void *arg, struct err *e)
{
	struct lane_step *step = arg;
	struct lane       lane;
	enum rc           rc = session_get(s, &lane_type, step->key, &lane, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "a lane cannot be read");
	if (!step->due_ms) {
		session_delete(s, &lane_type, step->key);
		return RC_OK;
	}
	if (rc)
		lane = (struct lane){ .key = step->key, .queue = STR("q"), .subject = STR("s"), .event_id = STR("e") };
	lane.due_ms = step->due_ms;
	session_put(s, &lane_type, &lane);
	return RC_OK;
}

static void check_lanes(struct store *store, struct arena *a)
{
	static const struct {
		struct lane_step step;
		const char      *due; /* up to 20, in order */
	} rows[] = {
		{ { STR_INIT("q#a"), 10 }, "q#a " },     { { STR_INIT("q#b"), 20 }, "q#a q#b " },
		{ { STR_INIT("q#c"), 30 }, "q#a q#b " }, { { STR_INIT("q#a"), 25 }, "q#b " },
		{ { STR_INIT("q#c"), 1 }, "q#c q#b " },  { { STR_INIT("q#a"), 2 }, "q#c q#a q#b " },
		{ { STR_INIT("q#c"), 0 }, "q#a q#b " },
	};
	struct listing l = { .q = { .type = &lane_type,
		                    .index = LANE_DUE,
		                    .hash = value_text(STR("q")),
		                    .has_sort_max = true,
		                    .sort_max = 20,
		                    .limit = 10 } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct lane_step step = rows[i].step;
		char             due[64] = "";

		CHECK(store_run(store, set_lane, &step, a, NULL) == RC_OK);
		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		for (size_t n = 0; n < l.page.count; n++) {
			struct lane *lane = page_record(&l.page, &lane_type, n);

			snprintf(due + strlen(due), sizeof(due) - strlen(due), "%.*s ", STR_ARG(lane->key));
		}
		CHECK(strcmp(due, rows[i].due) == 0);
	}
}

TEST(a_lane_is_due_by_its_newest_time)
{
	each_backend(check_lanes);
}

static enum rc set_note(struct session *s, void *arg, struct err *e)
{
	struct note *wanted = arg, old;
	enum rc      rc = session_get(s, &note_type, wanted->key, &old, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "a note cannot be read");
	session_put(s, &note_type, wanted);
	return RC_OK;
}

/* Is the only note in group g: by word, by number, among the open ones? */
static void check_places(struct store *store, struct arena *a, const char *group, bool is_there, bool is_open)
{
	for (int index = NOTE_BY_WORD; index <= NOTE_OPEN; index++) {
		struct listing l = {
			.q = { .type = &note_type, .index = index, .hash = value_text(str_from(group)), .limit = 9 }
		};

		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		CHECK(l.page.count == (index == NOTE_OPEN ? is_open : is_there));
		CHECK(store_read(store, count, &l, a, NULL) == RC_OK && l.count == (int64_t)l.page.count);
	}
}

static void check_comings_and_goings(struct store *store, struct arena *a)
{
	struct note n = { .key = STR("k"), .group = STR("g"), .word = STR("w"), .state = NOTE_IS_OPEN };

	CHECK(store_run(store, set_note, &n, a, NULL) == RC_OK);
	check_places(store, a, "g", true, true);
	n.state = NOTE_IS_CLOSED;
	CHECK(store_run(store, set_note, &n, a, NULL) == RC_OK);
	check_places(store, a, "g", true, false);
	n.group = STR("h");
	n.state = NOTE_IS_OPEN;
	CHECK(store_run(store, set_note, &n, a, NULL) == RC_OK);
	check_places(store, a, "g", false, false);
	check_places(store, a, "h", true, true);
	n.group = n.word = STR("");
	CHECK(store_run(store, set_note, &n, a, NULL) == RC_OK);
	check_places(store, a, "h", false, false);
	n.group = STR("g");
	CHECK(store_run(store, set_note, &n, a, NULL) == RC_OK);
	check_places(store, a, "g", true, true);
	CHECK(n.version == 5);
}

TEST(a_changed_record_enters_and_leaves_indexes)
{
	each_backend(check_comings_and_goings);
}

/* --- counts --- */

static enum rc set_account(struct session *s, void *arg, struct err *e)
{
	struct account *wanted = arg, old;
	bool            is_there;
	enum rc         rc = session_find(s, &account_type, wanted->id, &old, &is_there, e);

	if (rc)
		return rc;
	wanted->version = is_there ? old.version : 0;
	if (wanted->status == ACCOUNT_STATUS_COUNT)
		session_delete(s, &account_type, wanted->id);
	else
		session_put(s, &account_type, wanted);
	return wanted->name.n ? RC_OK : err_set(e, RC_INVALID, "refused after all");
}

/* As many as are listed, and no others. */
static void check_account_counts(struct store *store, struct arena *a, int64_t cleanup, int64_t quarantine)
{
	for (int status = 0; status < ACCOUNT_STATUS_COUNT; status++) {
		struct listing l = { .q = query_of(&account_type, ACCOUNT_BY_STATUS, value_int(status), 9) };

		CHECK(store_read(store, list, &l, a, NULL) == RC_OK);
		CHECK(store_read(store, count, &l, a, NULL) == RC_OK && l.count == (int64_t)l.page.count);
		CHECK(store_run(store, count, &l, a, NULL) == RC_OK && l.count == (int64_t)l.page.count);
		CHECK(l.count == (status == ACCOUNT_CLEANUP ? cleanup : status == ACCOUNT_QUARANTINE ? quarantine : 0));
	}
}

static void set_status(struct store *store, struct arena *a, const char *id, enum account_status status, enum rc rc)
{
	struct account account = { .id = str_from(id), .name = rc ? STR("") : STR("n"), .status = status };

	CHECK(store_run(store, set_account, &account, a, NULL) == rc);
}

static void check_counts_follow(struct store *store, struct arena *a)
{
	check_account_counts(store, a, 0, 0);
	set_status(store, a, "000000000001", ACCOUNT_CLEANUP, RC_OK);
	set_status(store, a, "000000000002", ACCOUNT_CLEANUP, RC_OK);
	check_account_counts(store, a, 2, 0);
	set_status(store, a, "000000000003", ACCOUNT_CLEANUP, RC_INVALID);
	set_status(store, a, "000000000001", ACCOUNT_QUARANTINE, RC_INVALID);
	check_account_counts(store, a, 2, 0);
	set_status(store, a, "000000000001", ACCOUNT_QUARANTINE, RC_OK);
	check_account_counts(store, a, 1, 1);
	set_status(store, a, "000000000002", ACCOUNT_STATUS_COUNT, RC_OK);
	check_account_counts(store, a, 0, 1);
}

TEST(counts_follow_what_comes_changes_and_goes)
{
	each_backend(check_counts_follow);
}

/* Changes some of what add_notes() made, and reads it all, page by page, backwards. */
static enum rc list_beside_own(struct session *s, void *arg, struct err *e)
{
	struct query q = { .type = &note_type, .index = QUERY_KEYS, .is_descending = true, .limit = 7 };
	struct note  fresh = { .key = STR("n-00new"), .group = STR("g") }, moved, before = { 0 };
	struct page  page;
	int          seen = 0;

	(void)arg;
	CHECK(session_get(s, &note_type, STR("n-33"), &moved, e) == RC_OK);
	moved.word = STR("moved");
	session_put(s, &note_type, &moved);
	CHECK(session_get(s, &note_type, STR("n-34"), &moved, e) == RC_OK);
	session_delete(s, &note_type, STR("n-34"));
	session_add(s, &note_type, &fresh);
	do {
		enum rc rc = session_query(s, &q, &page, e);

		if (rc)
			return rc;
		for (size_t i = 0; i < page.count; i++, seen++) {
			struct note *n = page_record(&page, &note_type, i);

			CHECK(!str_eq(n->key, STR("n-34")));
			CHECK(str_eq(n->word, STR("moved")) == str_eq(n->key, STR("n-33")));
			CHECK(!seen || str_cmp(before.key, n->key) > 0 || str_eq(n->key, fresh.key));
			before = *n;
		}
		q.cursor = page.next;
	} while (page.next.n);
	CHECK(seen == NOTES && str_eq(before.key, fresh.key)); /* one went, one came, and that is the last */
	return RC_OK;
}

static void check_pages_beside_own(struct store *store, struct arena *a)
{
	CHECK(store_run(store, add_notes, NULL, a, NULL) == RC_OK);
	CHECK(store_run(store, list_beside_own, NULL, a, NULL) == RC_OK);
}

TEST(pages_in_descending_order_show_the_sessions_own_writes)
{
	each_backend(check_pages_beside_own);
}

/* --- records that are certainly new --- */

struct addition {
	struct txn   txn;
	struct arena arena;
	struct str   keys[3]; /* as many as there are */
	struct str   update;  /* a record to change beside */
	atomic_int  *done;
	enum rc      rc;
	struct err   e;
};

static enum rc add_keys(struct session *s, void *arg, struct err *e)
{
	struct addition *add = arg;
	struct note      note;

	if (add->update.n) {
		CHECK(session_get(s, &note_type, add->update, &note, e) == RC_OK);
		note.number++;
		session_put(s, &note_type, &note);
	}
	for (size_t i = 0; i < ARRAY_LEN(add->keys) && add->keys[i].n; i++) {
		note = (struct note){ .key = add->keys[i], .group = STR("g"), .number = 1 };
		session_add(s, &note_type, &note);
	}
	return RC_OK;
}

static enum rc get_note(struct session *s, void *arg, struct err *e)
{
	struct note *n = arg;

	return session_get(s, &note_type, n->key, n, e);
}

static enum rc note_is_there(struct store *store, struct arena *a, struct str key, int64_t *ret_number)
{
	struct note n = { .key = key };
	enum rc     rc = store_read(store, get_note, &n, a, NULL);

	*ret_number = n.number;
	return rc;
}

enum { ADDED = 10 };

static void check_adds(struct store *store, struct arena *a)
{
	for (int i = 0; i < ADDED; i++) {
		struct addition add = { .keys = { str_format(a, "k%d", i),
			                          i % 2 ? str_format(a, "l%d", i) : STR("") } };

		CHECK(store_run(store, add_keys, &add, a, NULL) == RC_OK);
	}
}

/* tests/ddb/test_conformance.py counts the requests of this one. */
TEST(a_record_that_is_certainly_new_is_added)
{
	each_backend(check_adds);
}

/* Claims one record, as a lane or a saga is claimed: whoever finds it claimed has lost. */
static enum rc claim_note(struct session *s, void *arg, struct err *e)
{
	const struct note *mine = arg;
	struct note        note;
	enum rc            rc = session_get(s, &note_type, mine->key, &note, e);

	if (rc)
		return rc;
	if (note.number)
		return err_set(e, RC_DENIED, "somebody else has it: %lld", (long long)note.number);
	note.number = mine->number;
	session_put(s, &note_type, &note);
	return RC_OK;
}

/* A record that was looked for and is not there. */
static enum rc make_missing_note(struct session *s, void *arg, struct err *e)
{
	struct note *mine = arg, old;
	enum rc      rc = session_get(s, &note_type, mine->key, &old, NULL);

	if (rc != RC_NOT_FOUND)
		return err_set(e, rc ? rc : RC_DENIED, "it is there already");
	session_put(s, &note_type, mine);
	return RC_OK;
}

static enum rc remove_its_note(struct session *s, void *arg, struct err *e)
{
	const struct note *mine = arg;
	struct note        old;
	enum rc            rc = session_get(s, &note_type, mine->key, &old, e);

	if (!rc)
		session_delete(s, &note_type, mine->key);
	return rc;
}

static void check_single_writes(struct store *store, struct arena *a)
{
	for (int i = 0; i < ADDED; i++) {
		struct note note = { .key = str_format(a, "n%d", i), .group = STR("g") };
		struct note claim = { .key = note.key, .number = 7 };

		CHECK(store_run(store, make_missing_note, &note, a, NULL) == RC_OK);
		CHECK(store_run(store, claim_note, &claim, a, NULL) == RC_OK);
		CHECK(store_run(store, remove_its_note, &note, a, NULL) == RC_OK);
	}
}

/* tests/ddb/test_conformance.py loses answers of this one. */
TEST(what_changes_one_record_happens_once)
{
	each_backend(check_single_writes);
}

static void check_add_twice(struct store *store, struct arena *a)
{
	struct addition first = { .keys = { STR("one"), STR("two") } };
	struct addition alone = { .keys = { STR("one") } };
	struct addition again = { .keys = { STR("three"), STR("two"), STR("four") }, .update = STR("one") };
	struct err      e = { 0 };
	int64_t         number;

	CHECK(store_run(store, add_keys, &first, a, NULL) == RC_OK);
	CHECK(store_run(store, add_keys, &alone, a, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, "note 'one'"));
	CHECK(store_run(store, add_keys, &again, a, &e) == RC_CONFLICT);
	CHECK(strstr(e.msg, "note 'two'"));
	CHECK(note_is_there(store, a, STR("three"), &number) == RC_NOT_FOUND);
	CHECK(note_is_there(store, a, STR("four"), &number) == RC_NOT_FOUND);
	CHECK(note_is_there(store, a, STR("one"), &number) == RC_OK && number == 1);
	CHECK(store_health(store, NULL) == RC_OK && store_counts(store).failed_commits == 0);
}

TEST(a_second_record_with_the_same_key_is_refused_with_all_of_its_transaction)
{
	each_backend(check_add_twice);
}

static void note_outcome(struct txn *t, enum rc rc, const struct err *e)
{
	struct addition *add = CONTAINER_OF(t, struct addition, txn);

	add->rc = rc;
	add->e = *e;
	atomic_fetch_add(add->done, 1);
}

static bool reaches(atomic_int *number, int expected)
{
	for (int i = 0; i < 20000 && atomic_load(number) < expected; i++)
		usleep(1000);
	return atomic_load(number) == expected;
}

/* Every fifth adds what is there. */
static void check_neighbours(struct store *store, struct arena *a)
{
	enum { COUNT = 40 };
	static struct addition adds[COUNT];
	struct addition        first = { .keys = { STR("taken") } }, last = { .keys = { STR("last") } };
	atomic_int             done = 0;
	int64_t                number;

	CHECK(store_run(store, add_keys, &first, a, NULL) == RC_OK);
	for (int i = 0; i < COUNT; i++) {
		adds[i] = (struct addition){ .keys = { str_format(a, "x%d", i), i % 5 ? STR("") : STR("taken") },
			                     .done = &done };
		adds[i].txn = (struct txn){
			.run = add_keys, .arg = &adds[i], .arena = &adds[i].arena, .done = note_outcome
		};
		store_submit(store, &adds[i].txn);
	}
	CHECK(store_run(store, add_keys, &last, a, NULL) == RC_OK);
	CHECK(reaches(&done, COUNT));
	for (int i = 0; i < COUNT; i++) {
		CHECK(adds[i].rc == (i % 5 ? RC_OK : RC_CONFLICT));
		CHECK(note_is_there(store, a, adds[i].keys[0], &number) == (i % 5 ? RC_OK : RC_NOT_FOUND));
		arena_fini(&adds[i].arena);
	}
}

TEST(a_record_that_is_not_new_after_all_hurts_nobody_else)
{
	each_backend(check_neighbours);
}

/* --- context and news --- */

struct listener {
	atomic_int calls;
};

static void hear_news(void *context, unsigned news)
{
	atomic_fetch_add(&((struct listener *)context)->calls, 1);
	CHECK(news == NEWS_TO_DO);
}

struct poke {
	struct listener *expected;
	struct str       key; /* a record to add */
	enum rc          rc;  /* how the function ends */
};

static enum rc poke(struct session *s, void *arg, struct err *e)
{
	struct poke *p = arg;
	struct note  note = { .key = p->key, .group = STR("g") };

	CHECK(session_context(s) == p->expected);
	session_poke(s, NEWS_TO_DO);
	session_poke(s, NEWS_TO_DO);
	session_add(s, &note_type, &note);
	return p->rc ? err_set(e, p->rc, "refused") : RC_OK;
}

static void check_news(struct store *store, struct arena *a)
{
	struct listener listener = { 0 };
	struct poke     good = { &listener, STR("good"), RC_OK };
	struct poke     refused = { &listener, STR("refused"), RC_INVALID };
	struct poke     better = { &listener, STR("better"), RC_OK };
	struct addition quiet = { .keys = { STR("quiet") } };

	store_set_context(store, &listener, hear_news);
	CHECK(store_run(store, poke, &good, a, NULL) == RC_OK);
	CHECK(reaches(&listener.calls, 1));
	CHECK(store_run(store, poke, &refused, a, NULL) == RC_INVALID);
	CHECK(store_run(store, poke, &good, a, NULL) == RC_CONFLICT); /* fails at the commit */
	CHECK(store_run(store, add_keys, &quiet, a, NULL) == RC_OK);
	CHECK(store_run(store, poke, &better, a, NULL) == RC_OK);
	CHECK(reaches(&listener.calls, 2));
	store_set_context(store, NULL, NULL);
}

TEST(news_are_told_once_after_what_is_durable_and_only_then)
{
	each_backend(check_news);
}

/* --- what follows a function --- */

enum follower { IS_GOOD, REFUSES, IS_TOO_LONG, IS_TAKEN, IS_TOO_MUCH, FOLLOWER_COUNT };

struct leader {
	enum follower kinds[FOLLOWS_MAX + 1];
	size_t        count;
	bool          fails; /* the function itself */
	atomic_int    done;  /* followers that were told of */

	size_t at; /* private: which one runs */
	bool   was_taken;
};

static void count_done(void *arg)
{
	atomic_fetch_add(&((struct leader *)arg)->done, 1);
}

/* Changes what the function has changed, adds a note of its own; and then there may be something wrong. */
static enum rc follow(struct session *s, void *arg, struct err *e)
{
	struct leader *l = arg;
	enum follower  kind = l->kinds[l->at];
	struct note    base, own = { .key = str_format(session_arena(s), "follower-%zu", l->at++), .group = STR("g") };

	CHECK(session_get(s, &note_type, STR("base"), &base, e) == RC_OK);
	base.number += 100;
	session_put(s, &note_type, &base);
	session_add(s, &note_type, &own);
	if (kind == IS_TOO_LONG) {
		base.word = str_format(session_arena(s), "%0100d", 1);
		session_put(s, &note_type, &base);
	}
	own.key = STR("taken");
	if (kind == IS_TAKEN)
		session_add(s, &note_type, &own);
	for (int i = 0; kind == IS_TOO_MUCH && i < SESSION_ACTIONS_MAX; i++) {
		own.key = str_format(session_arena(s), "more-%d", i);
		session_add(s, &note_type, &own);
	}
	return kind == REFUSES ? err_set(e, RC_INVALID, "no") : RC_OK;
}

static enum rc lead(struct session *s, void *arg, struct err *e)
{
	struct leader *l = arg;
	struct note    base;
	enum rc        rc = session_get(s, &note_type, STR("base"), &base, NULL);

	if (rc)
		base = (struct note){ .key = STR("base"), .group = STR("g") };
	base.number++;
	session_put(s, &note_type, &base);
	l->at = 0;
	for (size_t i = 0; i < l->count; i++) {
		struct follow *f = arena_alloc(session_arena(s), sizeof(*f));

		*f = (struct follow){ .run = follow, .done = count_done, .arg = l };
		l->was_taken = session_follow(s, f);
	}
	return l->fails ? err_set(e, RC_INVALID, "no") : RC_OK;
}

static enum rc remove_followers(struct session *s, void *arg, struct err *e)
{
	(void)arg;
	for (int i = 0; i <= FOLLOWS_MAX; i++) {
		struct note note;
		struct str  key = str_format(session_arena(s), "follower-%d", i);
		enum rc     rc = session_get(s, &note_type, key, &note, NULL);

		if (rc && rc != RC_NOT_FOUND)
			return err_set(e, rc, "a note cannot be read");
		if (!rc)
			session_delete(s, &note_type, key);
	}
	return RC_OK;
}

static int64_t number_of_base(struct store *store, struct arena *a)
{
	int64_t number = 0;

	(void)note_is_there(store, a, STR("base"), &number);
	return number;
}

static void check_follow(struct store *store, struct arena *a)
{
	static const struct {
		const char   *label;
		struct leader leader;
		enum rc       rc;
		int64_t       base; /* its number after it */
		int           done;
	} rows[] = {
		{ "one that is good", { { IS_GOOD }, 1 }, RC_OK, 101, 1 },
		{ "one that refuses", { { REFUSES }, 1 }, RC_OK, 1, 0 },
		{ "one that breaks a limit", { { IS_TOO_LONG }, 1 }, RC_OK, 1, 0 },
		{ "one that adds what is there already", { { IS_TAKEN }, 1 }, RC_OK, 1, 0 },
		{ "one that writes too much", { { IS_TOO_MUCH }, 1 }, RC_OK, 1, 0 },
		{ "one that refuses between good ones", { { IS_GOOD, REFUSES, IS_GOOD }, 3 }, RC_OK, 201, 2 },
		{ "a limit that is broken beside a good one", { { IS_GOOD, IS_TOO_LONG }, 2 }, RC_OK, 1, 0 },
		{ "behind a function that fails", { { IS_GOOD }, 1, true }, RC_INVALID, 0, 0 },
	};
	struct addition taken = { .keys = { STR("taken") } };
	int64_t         number;

	CHECK(store_run(store, add_keys, &taken, a, NULL) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct leader l = rows[i].leader;
		int64_t       before = number_of_base(store, a);
		bool          is_kept = rows[i].done > 0;

		CASE(rows[i].label);
		CHECK(store_run(store, lead, &l, a, NULL) == rows[i].rc);
		CHECK(number_of_base(store, a) == before + rows[i].base);
		CHECK(atomic_load(&l.done) == rows[i].done);
		CHECK(note_is_there(store, a, STR("follower-0"), &number) == (is_kept ? RC_OK : RC_NOT_FOUND));
		CHECK(note_is_there(store, a, STR("more-1"), &number) == RC_NOT_FOUND);
		CHECK(store_run(store, remove_followers, NULL, a, NULL) == RC_OK);
	}
}

TEST(what_follows_is_written_with_the_function_or_leaves_no_trace)
{
	each_backend(check_follow);
}

static void check_news_of_follow(struct store *store, struct arena *a)
{
	struct listener listener = { 0 };
	struct leader   good = { { IS_GOOD }, 1 }, bad = { { REFUSES }, 1 }, late = { { IS_TOO_LONG }, 1 };
	struct poke     last = { &listener, STR("last"), RC_OK };

	store_set_context(store, &listener, hear_news);
	CHECK(store_run(store, lead, &good, a, NULL) == RC_OK);
	CHECK(store_run(store, remove_followers, NULL, a, NULL) == RC_OK);
	CHECK(store_run(store, lead, &bad, a, NULL) == RC_OK);
	CHECK(reaches(&listener.calls, 1));
	CHECK(store_run(store, lead, &late, a, NULL) == RC_OK);
	CHECK(store_run(store, poke, &last, a, NULL) == RC_OK);
	CHECK(reaches(&listener.calls, 3));
	store_set_context(store, NULL, NULL);
}

TEST(what_could_not_follow_is_still_to_do)
{
	each_backend(check_news_of_follow);
}

static void check_too_many(struct store *store, struct arena *a)
{
	struct leader l = { .count = FOLLOWS_MAX };

	CHECK(store_run(store, lead, &l, a, NULL) == RC_OK && l.was_taken);
	CHECK(number_of_base(store, a) == 1 + 100 * FOLLOWS_MAX);
	CHECK(store_run(store, remove_followers, NULL, a, NULL) == RC_OK);
	l.count++;
	CHECK(store_run(store, lead, &l, a, NULL) == RC_OK && !l.was_taken);
}

TEST(so_many_may_follow_and_no_more)
{
	each_backend(check_too_many);
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

struct hearer {
	struct txn_group group;
	atomic_int       calls, heard;
	int              order[256]; /* of the transactions, as they were told */
	struct addition *adds;
};

static void hear(struct txn_group *g, struct txn *const *txns, size_t count)
{
	struct hearer *h = CONTAINER_OF(g, struct hearer, group);

	for (size_t i = 0; i < count; i++)
		h->order[atomic_fetch_add(&h->heard, 1)] = (int)(CONTAINER_OF(txns[i], struct addition, txn) - h->adds);
	atomic_fetch_add(&h->calls, 1);
}

/* Two groups and one that is told by itself between them, submitted together. */
static void check_together(struct arena *a)
{
	enum { COUNT = 301, ALONE = 150 };
	static struct addition adds[COUNT];
	struct hearer hearers[2] = { { .group.done = hear, .adds = adds }, { .group.done = hear, .adds = adds } };
	struct txn   *txns[COUNT];
	struct store *store = open_sqlite_at("together.db");
	atomic_int    done = 0;
	uint64_t      commits = store_counts(store).commits;

	for (int i = 0; i < COUNT; i++) {
		adds[i] = (struct addition){ .keys = { str_format(a, "t%d", i) }, .done = &done };
		adds[i].txn = (struct txn){ .run = add_keys, .arg = &adds[i], .arena = a, .done = note_outcome };
		adds[i].txn.group = i == ALONE ? NULL : &hearers[i > ALONE].group;
		txns[i] = &adds[i].txn;
	}
	store_submit_all(store, txns, COUNT);
	CHECK(reaches(&hearers[1].heard, COUNT - ALONE - 1) && reaches(&hearers[1].calls, 1));
	CHECK(atomic_load(&hearers[0].heard) == ALONE && atomic_load(&hearers[0].calls) == 1);
	CHECK(atomic_load(&done) == 1 && adds[ALONE].rc == RC_OK);
	CHECK(store_counts(store).commits == commits + 1);
	for (int i = 0; i < ALONE; i++)
		CHECK(hearers[0].order[i] == i && hearers[1].order[i] == ALONE + 1 + i);
	store_close(store);
}

TEST(what_is_submitted_together_shares_a_commit_and_is_told_together)
{
	with_folder(check_together);
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

static void check_counts_of_file(struct arena *a)
{
	struct store *store = open_sqlite_at("a.db");

	check_counts_follow(store, a);
	store_close(store);
	store = open_sqlite_at("a.db");
	check_account_counts(store, a, 0, 1);
	set_status(store, a, "000000000001", ACCOUNT_CLEANUP, RC_OK);
	check_account_counts(store, a, 1, 0);
	store_close(store);
}

TEST(a_reopened_file_is_counted)
{
	with_folder(check_counts_of_file);
}

static enum rc put_aside(struct session *s, void *arg, struct err *e)
{
	struct claim *c = arg;
	enum rc       rc = session_get(s, &sandbox_type, c->got.sandbox_id, &c->got, e);

	if (rc)
		return rc;
	c->got.status = SANDBOX_PENDING_DELETION;
	c->got.deletion_requested_at = 1;
	session_put(s, &sandbox_type, &c->got);
	return RC_OK;
}

static void check_edited_row(struct arena *a)
{
	struct store *store = open_sqlite_at("a.db");
	struct claim  c = { .owner = STR("t") };
	struct err    e = { 0 };
	char          command[256];

	fill(store, a, 2);
	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	snprintf(command, sizeof(command),
	         "sqlite3 %s 'UPDATE sandbox SET allocated_to_track = \"u\" WHERE allocated_to_track = \"t\"'",
	         in_folder(a, "a.db"));
	CHECK(system(command) == 0);
	CHECK(store_run(store, put_aside, &c, a, &e) == RC_UNAVAILABLE);
	CHECK(strstr(e.msg, "another program"));
	CHECK(store_run(store, put_aside, &c, a, NULL) == RC_OK); /* what the file says has been read again */
	store_close(store);
}

TEST(a_row_that_another_program_has_edited_is_read_again)
{
	with_folder(check_edited_row);
}

static void check_foreign_files(struct arena *a)
{
	struct store               *store = NULL;
	struct err                  e = { 0 };
	char                        command[256];
	const char                 *path = in_folder(a, "x.db");
	const struct sqlite_options options = { path, types, type_count, &test_clock, 0 };

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

/* As records were kept before they were packed, and before sfdc_account_id, next_deletion_at and last_event existed. */
static const char old_layout[] =
        "DROP VIEW sandbox; DROP TABLE sandbox_row; PRAGMA user_version = 2;"
        "CREATE TABLE sandbox (seq INTEGER PRIMARY KEY, version INTEGER NOT NULL, sandbox_id TEXT NOT NULL UNIQUE,"
        " name TEXT, external_id TEXT, status INTEGER, allocated_to_track TEXT, idempotency_key TEXT, track_name TEXT,"
        " allocated_at INTEGER, lab_duration_hours INTEGER, deletion_requested_at INTEGER,"
        " deletion_retry_count INTEGER, last_error TEXT, quarantine_reason TEXT, last_synced INTEGER,"
        " created_at INTEGER, updated_at INTEGER) STRICT;"
        "CREATE INDEX sandbox_StatusIndex ON sandbox (status, allocated_at);"
        "INSERT INTO sandbox (version, sandbox_id, name, external_id, status, allocated_at, lab_duration_hours,"
        " deletion_retry_count, created_at, updated_at) VALUES (1, 'i', 'n', 'e', 0, 0, 4, 0, 1, 1);"
        "INSERT INTO sandbox (version, sandbox_id, name, external_id, status, allocated_to_track, track_name,"
        " allocated_at, lab_duration_hours, deletion_retry_count, created_at, updated_at)"
        " VALUES (7, 'held', 'm', 'f', 1, 'old', '\"q\" \\' || char(10, 9, 1) || 'u\u00fc', 500, 4, 0, 1, 1);";

static void run_sql_file(struct arena *a, const char *path, const char *sql)
{
	const char *script = in_folder(a, "script.sql");
	FILE       *f = fopen(script, "w");
	char        command[256];

	CHECK(f && fputs(sql, f) >= 0 && fclose(f) == 0);
	snprintf(command, sizeof(command), "sqlite3 -bail %s < %s", path, script);
	CHECK(system(command) == 0);
}

static enum rc get_held(struct session *s, void *arg, struct err *e)
{
	return session_get(s, &sandbox_type, STR("held"), arg, e);
}

static void check_old_file(struct arena *a)
{
	const char    *path = in_folder(a, "old.db");
	struct claim   c = { .owner = STR("t"), .prefix = STR("n") }, again = { .owner = STR("old") };
	struct sandbox held;
	struct store  *store;

	store_close(open_sqlite_at("old.db"));
	run_sql_file(a, path, old_layout);
	store = open_sqlite_at("old.db");
	CHECK(count_state(store, a, SANDBOX_AVAILABLE) == 1 && count_state(store, a, SANDBOX_ALLOCATED) == 1);
	CHECK(store_run(store, claim_one, &again, a, NULL) == RC_CONFLICT);
	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	CHECK(str_eq(c.got.sandbox_id, STR("i")));
	CHECK(store_read(store, get_held, &held, a, NULL) == RC_OK && held.version == 7 && held.allocated_at == 500);
	CHECK(str_eq(held.track_name, STR("\"q\" \\\n\t\001u\xc3\xbc")) && !held.last_event.n &&
	      !held.sfdc_account_id.n);
	store_close(store);
	store_close(open_sqlite_at("old.db"));
	CHECK(sqlite_check(path, NULL) == RC_OK);
}

TEST(an_older_file_is_brought_up_to_date)
{
	with_folder(check_old_file);
}

static void check_view(struct arena *a)
{
	struct store *store = open_sqlite_at("a.db");
	struct claim  c = { .owner = STR("it's \"me\"") };

	fill(store, a, 3);
	CHECK(store_run(store, claim_one, &c, a, NULL) == RC_OK);
	store_close(store);
	run_sql_file(
	        a, in_folder(a, "a.db"),
	        "CREATE TEMP TABLE truth (it CHECK (it));"
	        "INSERT INTO truth SELECT count(*) = 1 FROM sandbox WHERE status = 1 AND version = 2"
	        " AND allocated_to_track = 'it''s \"me\"' AND allocated_at > 0;"
	        "INSERT INTO truth SELECT count(*) = 2 FROM sandbox WHERE status = 0 AND allocated_to_track IS NULL;"
	        "INSERT INTO truth SELECT json_valid(value) FROM sandbox_row;"
	        "UPDATE sandbox SET name = 'Ren\xc3\xa9 ' || name, status = 3.0 WHERE status = 0;");
	store = open_sqlite_at("a.db");
	CHECK(count_state(store, a, SANDBOX_STALE) == 2 && count_state(store, a, SANDBOX_AVAILABLE) == 0);
	CHECK(count_state(store, a, SANDBOX_ALLOCATED) == 1);
	store_close(store);
}

TEST(an_operator_asks_and_corrects_packed_records_with_sqlite3)
{
	with_folder(check_view);
}

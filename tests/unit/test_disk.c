/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_disk.c - the sqlite store on a disk that fails when the test says so.
 *
 * A VFS stands between SQLite and the real one and refuses writes or flushes. What is promised then: whoever was told
 * RC_OK is on disk, whoever was told a failure is not, and the next commit on a mended disk is as good as any.
 */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kernel/event.h"
#include "pool.h"
#include "service/broker/broker.h"
#include "service/services.h"
#include "store/sqlite/sqlite.h"
#include "truth/test_clock.h"

/* --- the disk --- */

enum trouble { NO_TROUBLE, WRITES_FAIL, SYNCS_FAIL, DISK_FULL, READS_ROT, READS_FAIL };

static _Atomic enum trouble trouble;
static atomic_int           write_count, sync_count, fail_every_nth_sync; /* 0: none */
static int                  writes_before_batch;

static atomic_bool loses_next_flush; /* of the database file, with all that it was for */

/* What a file had where it was written since its last flush. */
struct before {
	struct before *older;
	sqlite3_int64  at;
	int            size;
	char           bytes[];
};

struct bad_file {
	sqlite3_file   base;
	sqlite3_file  *real; /* behind this struct */
	bool           is_database;
	struct before *unflushed; /* of a database; the newest first */
};

static sqlite3_vfs *real_vfs;

static struct bad_file *bad_of(sqlite3_file *f)
{
	return (struct bad_file *)(void *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
	return bad_of(f)->real;
}

static void note_before(struct bad_file *f, int size, sqlite3_int64 at)
{
	struct before *b = mem_alloc(sizeof(*b) + (size_t)size);

	*b = (struct before){ .older = f->unflushed, .at = at, .size = size };
	(void)f->real->pMethods->xRead(f->real, b->bytes, size, at); /* behind the end there are zeros */
	f->unflushed = b;
}

static void forget_before(struct bad_file *f, bool is_lost)
{
	while (f->unflushed) {
		struct before *b = f->unflushed;

		f->unflushed = b->older;
		if (is_lost)
			CHECK(f->real->pMethods->xWrite(f->real, b->bytes, b->size, b->at) == SQLITE_OK);
		free(b);
	}
}

static int bad_write(sqlite3_file *f, const void *bytes, int size, sqlite3_int64 at)
{
	atomic_fetch_add(&write_count, 1);
	if (trouble == WRITES_FAIL)
		return SQLITE_IOERR_WRITE;
	if (trouble == DISK_FULL)
		return SQLITE_FULL;
	if (bad_of(f)->is_database)
		note_before(bad_of(f), size, at);
	return real_of(f)->pMethods->xWrite(real_of(f), bytes, size, at);
}

static int bad_sync(sqlite3_file *f, int flags)
{
	int  nth = atomic_load(&fail_every_nth_sync);
	bool is_lost = bad_of(f)->is_database && atomic_exchange(&loses_next_flush, false);

	forget_before(bad_of(f), is_lost);
	if (is_lost || trouble == SYNCS_FAIL || (nth && atomic_fetch_add(&sync_count, 1) % nth == nth - 1))
		return SQLITE_IOERR_FSYNC;
	return real_of(f)->pMethods->xSync(real_of(f), flags);
}

static int bad_close(sqlite3_file *f)
{
	forget_before(bad_of(f), false);
	return real_of(f)->pMethods->xClose(real_of(f));
}

static int bad_read(sqlite3_file *f, void *bytes, int size, sqlite3_int64 at)
{
	int rc = real_of(f)->pMethods->xRead(real_of(f), bytes, size, at);

	if (trouble == READS_FAIL)
		return SQLITE_IOERR_READ;
	if (trouble == READS_ROT)
		memset(bytes, 0xa5, (size_t)size);
	return rc;
}

static int bad_truncate(sqlite3_file *f, sqlite3_int64 size)
{
	return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int bad_size(sqlite3_file *f, sqlite3_int64 *ret)
{
	return real_of(f)->pMethods->xFileSize(real_of(f), ret);
}

static int bad_lock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int bad_unlock(sqlite3_file *f, int level)
{
	return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int bad_check_lock(sqlite3_file *f, int *ret)
{
	return real_of(f)->pMethods->xCheckReservedLock(real_of(f), ret);
}

static int bad_control(sqlite3_file *f, int what, void *arg)
{
	return real_of(f)->pMethods->xFileControl(real_of(f), what, arg);
}

static int bad_sector_size(sqlite3_file *f)
{
	return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int bad_device(sqlite3_file *f)
{
	return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int bad_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
	return real_of(f)->pMethods->xShmMap(real_of(f), page, size, extend, ret);
}

static int bad_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
	return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void bad_shm_barrier(sqlite3_file *f)
{
	real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int bad_shm_unmap(sqlite3_file *f, int must_delete)
{
	return real_of(f)->pMethods->xShmUnmap(real_of(f), must_delete);
}

static const sqlite3_io_methods bad_methods = {
	.iVersion = 2,
	.xClose = bad_close,
	.xRead = bad_read,
	.xWrite = bad_write,
	.xTruncate = bad_truncate,
	.xSync = bad_sync,
	.xFileSize = bad_size,
	.xLock = bad_lock,
	.xUnlock = bad_unlock,
	.xCheckReservedLock = bad_check_lock,
	.xFileControl = bad_control,
	.xSectorSize = bad_sector_size,
	.xDeviceCharacteristics = bad_device,
	.xShmMap = bad_shm_map,
	.xShmLock = bad_shm_lock,
	.xShmBarrier = bad_shm_barrier,
	.xShmUnmap = bad_shm_unmap,
};

static int bad_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *ret_flags)
{
	struct bad_file *bad = bad_of(f);
	int              rc;

	(void)vfs;
	*bad = (struct bad_file){ .real = (sqlite3_file *)(void *)(bad + 1),
		                  .is_database = flags & SQLITE_OPEN_MAIN_DB };
	rc = real_vfs->xOpen(real_vfs, name, bad->real, flags, ret_flags);
	if (rc == SQLITE_OK)
		bad->base.pMethods = &bad_methods;
	return rc;
}

/* From now on every file of SQLite is on the bad disk, which is in order until the test says otherwise. */
static void use_bad_disk(void)
{
	static sqlite3_vfs bad_vfs;

	trouble = NO_TROUBLE;
	fail_every_nth_sync = 0;
	if (real_vfs)
		return;
	real_vfs = sqlite3_vfs_find(NULL);
	bad_vfs = *real_vfs;
	bad_vfs.pNext = NULL;
	bad_vfs.zName = "bad";
	bad_vfs.szOsFile = real_vfs->szOsFile + (int)sizeof(struct bad_file);
	bad_vfs.xOpen = bad_open;
	CHECK(sqlite3_vfs_register(&bad_vfs, 1) == SQLITE_OK);
}

/* --- transactions that wait until the test lets them go --- */

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t  is_changed;
	bool            is_open, is_reached;
	int             left; /* transactions that are not over */
};

static void gate_init(struct gate *g, int transactions)
{
	*g = (struct gate){ .left = transactions };
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->is_changed, NULL);
}

/* Occupies the writer: whatever is submitted meanwhile becomes one batch. Writes nothing. */
static enum rc stand_in_gate(struct session *s, void *arg, struct err *e)
{
	struct gate *g = arg;

	(void)s;
	(void)e;
	pthread_mutex_lock(&g->lock);
	g->is_reached = true;
	pthread_cond_broadcast(&g->is_changed);
	while (!g->is_open)
		pthread_cond_wait(&g->is_changed, &g->lock);
	pthread_mutex_unlock(&g->lock);
	return RC_OK;
}

struct member {
	struct txn    txn;
	struct arena  arena;
	struct claim  claim;
	char          owner[16];
	struct gate  *gate;
	struct follow follow;
	enum rc       told;
	struct err    why;
	int           number;
};

static void on_done(struct txn *t, enum rc rc, const struct err *e)
{
	struct member *m = CONTAINER_OF(t, struct member, txn);
	struct gate   *g = m->gate;

	m->told = rc;
	m->why = *e;
	pthread_mutex_lock(&g->lock);
	g->left--;
	pthread_cond_broadcast(&g->is_changed);
	pthread_mutex_unlock(&g->lock);
}

static void submit(struct store *store, struct member *m, struct gate *g, txn_fn *run, void *arg)
{
	m->gate = g;
	m->txn = (struct txn){ .run = run, .arg = arg, .arena = &m->arena, .done = on_done };
	store_submit(store, &m->txn);
}

static void await_arrival(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (!g->is_reached)
		pthread_cond_wait(&g->is_changed, &g->lock);
	pthread_mutex_unlock(&g->lock);
}

/* Until all are through; then it is gone. */
static void open_gate(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->is_open = true;
	pthread_cond_broadcast(&g->is_changed);
	while (g->left)
		pthread_cond_wait(&g->is_changed, &g->lock);
	pthread_mutex_unlock(&g->lock);
	pthread_mutex_destroy(&g->lock);
	pthread_cond_destroy(&g->is_changed);
}

/* Submit all members so that they share one commit on a disk in this trouble; the disk is in order afterwards. */
static void run_as_batch(struct store *store, struct member *members, int count, txn_fn *run, enum trouble during)
{
	struct member first = { 0 };
	struct gate   g;

	gate_init(&g, count + 1);
	submit(store, &first, &g, stand_in_gate, &g);
	await_arrival(&g);
	for (int i = 0; i < count; i++)
		submit(store, &members[i], &g, run, run == broker_claim ? (void *)&members[i].claim : &members[i]);
	writes_before_batch = write_count; /* the writer is here, and not at moving the log */
	trouble = during;
	open_gate(&g);
	trouble = NO_TROUBLE;
	CHECK(first.told == RC_OK);
	arena_fini(&first.arena);
}

static void ask(struct member *m, const char *owner)
{
	snprintf(m->owner, sizeof(m->owner), "%s", owner);
	m->claim = (struct claim){ .ask = { .owner = str_from(m->owner), .lab_hours = 4 } };
}

static enum rc claim(struct pool *p, const char *owner, struct sandbox *ret)
{
	struct claim c = { .ask = { .owner = str_from(owner), .lab_hours = 4 } };
	enum rc      rc = store_run(p->store, broker_claim, &c, &p->arena, NULL);

	*ret = c.sandbox;
	return rc ? rc : c.is_new ? RC_OK : RC_CONFLICT;
}

/* Takes a free one without looking whether the owner has one: only the unique index can refuse it. */
static enum rc grab(struct session *s, void *arg, struct err *e)
{
	struct member *m = arg;
	struct query   q = { .type = &sandbox_type, .index = SANDBOX_BY_STATUS, .hash = value_int(SANDBOX_AVAILABLE) };
	enum rc        rc = session_claim(s, &q, &m->claim.sandbox, e);

	if (!rc)
		rc = sandbox_claim(&m->claim.sandbox, &m->claim.ask, session_now(s), e);
	if (!rc)
		session_put(s, &sandbox_type, &m->claim.sandbox);
	return rc;
}

/* --- promises --- */

enum { MEMBERS = 6 };

static void check_failed_commit(struct pool *p, enum trouble during)
{
	static struct member m[MEMBERS];
	struct member        second = { 0 };
	struct store        *inner = p->backend;
	struct store_counts  before, after;
	struct sandbox       held;
	struct err           e = { 0 };

	memset(m, 0, sizeof(m));
	pool_fill(p, 0, 20);
	CHECK(claim(p, "before", &held) == RC_OK);
	for (int i = 0; i < MEMBERS; i++)
		ask(&m[i], i == 0 ? "before" : str_format(&p->arena, "track-%d", i / 2).p);
	before = store_counts(inner);
	run_as_batch(p->store, m, MEMBERS, broker_claim, during);
	after = store_counts(inner);
	for (int i = 0; i < MEMBERS; i++) {
		CHECK(m[i].told == RC_UNAVAILABLE && m[i].why.msg[0]);
		arena_fini(&m[i].arena);
	}
	CHECK(after.failed_commits == before.failed_commits + 1);
	CHECK(store_health(inner, &e) == RC_UNAVAILABLE && e.msg[0]);
	CHECK(pool_count(p, SANDBOX_ALLOCATED) == 1 && pool_count(p, SANDBOX_AVAILABLE) == 19);

	CHECK(claim(p, "before", &held) == RC_CONFLICT); /* nothing was written: no proof that the disk is well */
	CHECK(store_health(inner, NULL) == RC_UNAVAILABLE);
	CHECK(claim(p, "track-1", &held) == RC_OK);
	CHECK(store_health(inner, NULL) == RC_OK);
	ask(&second, "before");
	CHECK(store_run(p->store, grab, &second, &p->arena, NULL) == RC_CONFLICT);
	ask(&second, "track-1");
	CHECK(store_run(p->store, grab, &second, &p->arena, NULL) == RC_CONFLICT);
	ask(&second, "track-2");
	CHECK(store_run(p->store, grab, &second, &p->arena, NULL) == RC_OK);
	CHECK(store_run(p->store, grab, &second, &p->arena, NULL) == RC_CONFLICT);
}

static void with_trouble(enum trouble during)
{
	struct pool p;

	use_bad_disk();
	pool_open_sqlite(&p);
	check_failed_commit(&p, during);
	for (int round = 0; round < 2; round++) {
		CHECK(pool_count(&p, SANDBOX_ALLOCATED) == 3 && pool_count(&p, SANDBOX_AVAILABLE) == 17);
		pool_reopen(&p);
	}
	pool_close(&p);
}

TEST(a_commit_that_cannot_be_flushed_fails_for_all_who_share_it)
{
	with_trouble(SYNCS_FAIL);
}

TEST(a_commit_that_cannot_be_written_fails_for_all_who_share_it)
{
	with_trouble(WRITES_FAIL);
}

TEST(a_full_disk_fails_for_all_who_share_the_commit)
{
	with_trouble(DISK_FULL);
}

TEST(a_failed_commit_is_not_there_after_reopening_either)
{
	static const enum trouble kinds[] = { SYNCS_FAIL, WRITES_FAIL, DISK_FULL };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct pool   p;
		struct member m = { 0 };

		use_bad_disk();
		pool_open_sqlite(&p);
		pool_fill(&p, 0, 5);
		ask(&m, "t");
		run_as_batch(p.store, &m, 1, broker_claim, kinds[i]);
		CHECK(m.told == RC_UNAVAILABLE);
		arena_fini(&m.arena);
		pool_reopen(&p);
		CHECK(pool_count(&p, SANDBOX_ALLOCATED) == 0 && pool_count(&p, SANDBOX_AVAILABLE) == 5);
		pool_close(&p);
	}
}

TEST(what_a_commit_appends_to_the_log_leaves_in_one_write)
{
	static struct member m[MEMBERS];
	struct pool          p;
	struct sandbox       held;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 2000); /* more than is held back at once */
	CHECK(claim(&p, "first", &held) == RC_OK);
	memset(m, 0, sizeof(m));
	for (int i = 0; i < MEMBERS; i++)
		ask(&m[i], str_format(&p.arena, "track-%d", i).p);
	run_as_batch(p.store, m, MEMBERS, broker_claim, NO_TROUBLE);
	CHECK(write_count == writes_before_batch + 1);
	for (int i = 0; i < MEMBERS; i++) {
		CHECK(m[i].told == RC_OK);
		arena_fini(&m[i].arena);
	}
	pool_reopen(&p);
	CHECK(pool_count(&p, SANDBOX_ALLOCATED) == MEMBERS + 1 && pool_count(&p, SANDBOX_AVAILABLE) == 1999 - MEMBERS);
	pool_close(&p);
}

static enum rc give_back(struct session *s, void *arg, struct err *e)
{
	struct member      *m = arg;
	struct sandbox_call c = { .id = m->claim.sandbox.sandbox_id, .owner = str_from(m->owner) };

	return broker_give_back(s, &c, e);
}

/* What was given up and taken in the failed commit is as before: the holders still hold, and nobody else does. */
TEST(a_track_whose_give_back_failed_still_holds_its_sandbox)
{
	static const enum trouble kinds[] = { SYNCS_FAIL, WRITES_FAIL, DISK_FULL };

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct pool    p;
		struct member  m = { 0 };
		struct sandbox held, again;

		use_bad_disk();
		pool_open_sqlite(&p);
		pool_fill(&p, 0, 5);
		ask(&m, "t");
		CHECK(claim(&p, "t", &held) == RC_OK);
		m.claim.sandbox = held;
		run_as_batch(p.store, &m, 1, give_back, kinds[i]);
		CHECK(m.told == RC_UNAVAILABLE);
		arena_fini(&m.arena);
		CHECK(store_run(p.store, grab, &m, &p.arena, NULL) == RC_CONFLICT);
		CHECK(claim(&p, "t", &again) == RC_CONFLICT && str_eq(again.sandbox_id, held.sandbox_id));
		CHECK(pool_count(&p, SANDBOX_ALLOCATED) == 1);
		m.claim.sandbox = held;
		CHECK(store_run(p.store, give_back, &m, &p.arena, NULL) == RC_OK);
		CHECK(claim(&p, "t", &again) == RC_OK && !str_eq(again.sandbox_id, held.sandbox_id));
		pool_close(&p);
	}
}

/* As after a crash: the files as they lie there, opened anew. */
static void open_copy(struct pool *copy, const struct pool *p)
{
	char command[256];

	pool_open_sqlite(copy);
	store_close(copy->store); /* leaves a file without a log */
	snprintf(command, sizeof(command), "cp %s/store.db* %s/", p->folder, copy->folder);
	CHECK(system(command) == 0);
	copy->store = NULL;
	pool_reopen(copy);
}

/* A commit that was written but not flushed may be found after a crash, as long as nothing was written over it. Whoever
 * was told of a failure cannot know; but it is all or nothing, and who asks again gets one sandbox. */
TEST(a_failed_flush_followed_by_a_crash_leaves_all_of_the_batch_or_nothing)
{
	static struct member m[MEMBERS];
	struct pool          p, copy;
	struct sandbox       got;
	int64_t              allocated;

	for (int has_later_commit = 0; has_later_commit < 2; has_later_commit++) {
		use_bad_disk();
		memset(m, 0, sizeof(m));
		pool_open_sqlite(&p);
		pool_fill(&p, 0, 20);
		for (int i = 0; i < MEMBERS; i++)
			ask(&m[i], str_format(&p.arena, "track-%d", i).p);
		run_as_batch(p.store, m, MEMBERS, broker_claim, SYNCS_FAIL);
		for (int i = 0; i < MEMBERS; i++) {
			CHECK(m[i].told == RC_UNAVAILABLE);
			arena_fini(&m[i].arena);
		}
		if (has_later_commit)
			CHECK(claim(&p, "later", &got) == RC_OK);
		open_copy(&copy, &p);
		allocated = pool_count(&copy, SANDBOX_ALLOCATED);
		CHECK(has_later_commit ? allocated == 1 : allocated == 0 || allocated == MEMBERS);
		for (int i = 0; i < MEMBERS; i++)
			CHECK(claim(&copy, m[i].owner, &got) == (allocated == MEMBERS ? RC_CONFLICT : RC_OK));
		CHECK(pool_count(&copy, SANDBOX_ALLOCATED) == MEMBERS + has_later_commit);
		pool_close(&copy);
		pool_close(&p);
	}
}

/* A refusal of its own stays a refusal; it does not become the disk's. */
TEST(who_was_refused_anyway_is_told_the_real_reason)
{
	static struct member m[3];
	struct pool          p;

	use_bad_disk();
	memset(m, 0, sizeof(m));
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 2);
	ask(&m[0], "a");
	ask(&m[1], "a");
	ask(&m[2], "b");
	run_as_batch(p.store, m, 3, grab, SYNCS_FAIL);
	CHECK(m[0].told == RC_UNAVAILABLE && m[1].told == RC_CONFLICT && m[2].told == RC_UNAVAILABLE);
	for (int i = 0; i < 3; i++)
		arena_fini(&m[i].arena);
	pool_close(&p);
}

/* --- a failure in the middle --- */

enum { SPILL_MEMBERS = 300, SPILL_RECORDS = 50 };

static enum rc add_many(struct session *s, void *arg, struct err *e)
{
	const struct member *m = arg;

	for (int i = 0; i < SPILL_RECORDS; i++) {
		struct csp_account account = pool_account(session_arena(s), m->number * SPILL_RECORDS + i);
		struct sandbox     sandbox = sandbox_from_account(&account, 4, session_now(s)), old;
		enum rc            rc = session_get(s, &sandbox_type, account.sandbox_id, &old, NULL);

		if (rc != RC_NOT_FOUND)
			return err_set(e, rc ? rc : RC_CONFLICT, "already there");
		session_put(s, &sandbox_type, &sandbox);
	}
	return RC_OK;
}

/* More than the page cache holds: SQLite writes before the commit, in the middle of a transaction. */
TEST(a_write_that_fails_in_the_middle_undoes_the_whole_batch)
{
	static struct member m[SPILL_MEMBERS];
	char                 folder[] = "/tmp/leasehold-test-XXXXXX", file[64], command[96];
	struct clock         clock = clock_test(POOL_NOW_SEC * 1000ll);
	struct pool          p = { 0 };

	use_bad_disk();
	memset(m, 0, sizeof(m));
	CHECK(mkdtemp(folder) != NULL);
	snprintf(file, sizeof(file), "%s/store.db", folder);
	CHECK(store_sqlite_open(&(struct sqlite_options){ file, service_types, service_type_count, &clock, 1 },
	                        &p.store, NULL) == RC_OK);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < SPILL_MEMBERS; i++)
			m[i].number = i;
		run_as_batch(p.store, m, SPILL_MEMBERS, add_many, round ? NO_TROUBLE : WRITES_FAIL);
		for (int i = 0; i < SPILL_MEMBERS; i++) {
			CHECK(m[i].told == (round ? RC_OK : RC_UNAVAILABLE));
			arena_fini(&m[i].arena);
		}
		CHECK(pool_count(&p, SANDBOX_AVAILABLE) == (round ? SPILL_MEMBERS * SPILL_RECORDS : 0));
		CHECK(store_health(p.store, NULL) == (round ? RC_OK : RC_UNAVAILABLE));
	}
	store_close(p.store);
	arena_fini(&p.arena);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

static enum rc read_badly(struct session *s, void *arg, struct err *e)
{
	struct query q = query_of(&tombstone_type, QUERY_ALL, value_int(0), 1); /* its table is not in memory */
	struct page  page;
	enum rc      rc;

	(void)arg;
	trouble = READS_FAIL;
	rc = session_query(s, &q, &page, e);
	trouble = NO_TROUBLE;
	CHECK(rc == RC_UNAVAILABLE);
	return rc;
}

enum { CLAIMS, ADDS, CHANGES, LISTS, KINDS };

/* What is read badly may be read by a follow, which may fail without failing the transaction, or in vain. */
static enum rc fail_at_reading(struct session *s, void *arg, struct err *e)
{
	struct member *m = arg;
	struct query   q = query_of(&event_type, QUERY_KEYS, value_int(0), 1);
	struct page    page;
	enum rc        rc;

	if (m->number == CLAIMS)
		return broker_claim(s, &m->claim, e);
	if (m->number == LISTS) {
		rc_ignore(read_badly(s, NULL, NULL));
		rc_ignore(session_query(s, &q, &page, NULL)); /* writes the events of the claim first */
		return RC_OK;
	}
	rc = m->number == ADDS ? add_many(s, m, e) : grab(s, m, e);
	m->follow = (struct follow){ .run = read_badly };
	CHECK(rc || session_follow(s, &m->follow));
	return rc;
}

static enum rc count_all_events(struct session *s, void *arg, struct err *e)
{
	return session_count(s, &event_type, QUERY_ALL, value_int(0), arg, e);
}

static int64_t count_events(struct pool *p)
{
	int64_t count = -1;

	CHECK(store_read(p->store, count_all_events, &count, NULL, NULL) == RC_OK);
	return count;
}

/* After such a failure SQLite has undone the whole transaction: what is written behind it would be a commit of its own. */
TEST(a_read_that_fails_undoes_the_whole_batch)
{
	struct pool p;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 20);
	for (int kind = ADDS; kind < KINDS; kind++) {
		struct member m[2] = { { .number = CLAIMS }, { .number = kind } };
		int64_t       events = count_events(&p);

		pool_reopen(&p); /* nothing is in the page cache but what a start reads */
		ask(&m[0], "a");
		ask(&m[1], "b");
		run_as_batch(p.store, m, ARRAY_LEN(m), fail_at_reading, NO_TROUBLE);
		for (size_t i = 0; i < ARRAY_LEN(m); i++) {
			CHECK(m[i].told == RC_UNAVAILABLE);
			arena_fini(&m[i].arena);
		}
		for (int round = 0; round < 2; round++) {
			CHECK(pool_count(&p, SANDBOX_AVAILABLE) == 20 && pool_count(&p, SANDBOX_ALLOCATED) == 0);
			CHECK(count_events(&p) == events);
			pool_reopen(&p);
		}
	}
	pool_close(&p);
}

static enum rc remove_free(struct session *s, void *arg, struct err *e)
{
	struct tombstone stone = { .sandbox_id = STR("sb-0004"), .external_id = STR("e"), .removed_at = 1 };
	struct sandbox   old;
	enum rc          rc = session_get(s, &sandbox_type, stone.sandbox_id, &old, e);

	(void)arg;
	if (rc)
		return rc;
	session_delete(s, &sandbox_type, old.sandbox_id);
	session_add(s, &tombstone_type, &stone);
	return RC_OK;
}

/* SQLite ends a transaction by itself when the disk fails, but not when it finds damage. After a look at the record its
 * table is in memory, that of tombstones is not: so the damage is found while writing. */
TEST(damage_found_while_writing_undoes_the_batch_and_the_rest_goes_on)
{
	struct pool         p;
	struct member       m = { 0 };
	struct sandbox_call look = { .id = STR("sb-0004") };
	struct sandbox      held, next;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 5);
	CHECK(claim(&p, "t", &held) == RC_OK);
	pool_reopen(&p);
	CHECK(store_run(p.store, broker_inspect, &look, &p.arena, NULL) == RC_OK);
	run_as_batch(p.store, &m, 1, remove_free, READS_ROT);
	CHECK(m.told == RC_CORRUPT && store_health(p.backend, NULL) == RC_CORRUPT);
	arena_fini(&m.arena);
	CHECK(claim(&p, "t", &next) == RC_CONFLICT && str_eq(next.sandbox_id, held.sandbox_id));
	ask(&m, "t");
	m.claim.sandbox = held; /* giving it back needs nothing that is damaged */
	CHECK(store_run(p.store, give_back, &m, &p.arena, NULL) == RC_OK);
	CHECK(store_health(p.backend, NULL) == RC_OK);
	pool_reopen(&p);
	CHECK(pool_count(&p, SANDBOX_AVAILABLE) == 4 && pool_count(&p, SANDBOX_PENDING_DELETION) == 1);
	pool_close(&p);
}

/* --- connections --- */

static atomic_int refused_commits; /* so many COMMITs of a reading transaction will fail */

static int refuse_commit(void *arg, int action, const char *what, const char *b, const char *c, const char *d)
{
	(void)arg;
	(void)b;
	(void)c;
	(void)d;
	if (action != SQLITE_TRANSACTION || strcmp(what, "COMMIT") != 0 || atomic_load(&refused_commits) <= 0)
		return SQLITE_OK;
	atomic_fetch_sub(&refused_commits, 1);
	return SQLITE_DENY;
}

static int watch_reader(sqlite3 *db, const char **ret_why, const struct sqlite3_api_routines *api)
{
	(void)ret_why;
	(void)api;
	return sqlite3_set_authorizer(db, refuse_commit, NULL);
}

TEST(a_reader_goes_on_after_a_commit_that_failed)
{
	struct pool         p;
	struct sandbox_call look = { .id = STR("sb-0004") };

	use_bad_disk();
	CHECK(sqlite3_auto_extension((void (*)(void))watch_reader) == SQLITE_OK);
	pool_open_sqlite(&p);
	sqlite3_cancel_auto_extension((void (*)(void))watch_reader);
	pool_fill(&p, 0, 5);
	for (int i = 0; i < 3; i++) {
		CHECK(store_read(p.store, broker_inspect, &look, &p.arena, NULL) == RC_OK);
		atomic_store(&refused_commits, 1);
		CHECK(store_read(p.store, broker_inspect, &look, &p.arena, NULL) == RC_OK);
		CHECK(atomic_load(&refused_commits) == 0);
	}
	/* It sees what was written since: the snapshot has ended. */
	pool_fill(&p, 5, 6);
	look.id = STR("sb-0005");
	CHECK(store_read(p.store, broker_inspect, &look, &p.arena, NULL) == RC_OK);
	pool_close(&p);
}

struct look {
	struct gate *gate;
	size_t       held, free;
};

static enum rc count_page(struct session *s, enum sandbox_state status, size_t *ret, struct err *e)
{
	struct query q = query_of(&sandbox_type, SANDBOX_BY_STATUS, value_int(status), 100);
	struct page  page = { 0 };
	enum rc      rc = session_query(s, &q, &page, e);

	*ret = page.count;
	return rc;
}

static enum rc look_twice(struct session *s, void *arg, struct err *e)
{
	struct look *l = arg;
	enum rc      rc = count_page(s, SANDBOX_ALLOCATED, &l->held, e);

	if (!rc)
		rc = stand_in_gate(s, l->gate, e);
	return rc ? rc : count_page(s, SANDBOX_AVAILABLE, &l->free, e);
}

TEST(a_reader_sees_one_moment_in_lists_of_the_file_and_of_the_memory)
{
	struct pool    p;
	struct gate    g;
	struct member  m = { .gate = &g };
	struct look    look = { .gate = &g };
	struct sandbox held;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 5);
	gate_init(&g, 1);
	m.txn = (struct txn){
		.run = look_twice, .arg = &look, .arena = &m.arena, .done = on_done, .is_read_only = true
	};
	store_submit(p.backend, &m.txn);
	await_arrival(&g);
	CHECK(claim(&p, "t", &held) == RC_OK);
	open_gate(&g);
	CHECK(m.told == RC_OK && look.held == 0 && look.free == 5);
	arena_fini(&m.arena);
	pool_close(&p);
}

enum { PINNED_MAX = 4000, PINNED_BATCHES = 40, UNPINNED_BATCHES = 400 };

static void add_batch(struct pool *p, int number)
{
	struct member m = { .number = number };

	run_as_batch(p->backend, &m, 1, add_many, NO_TROUBLE);
	CHECK(m.told == RC_OK);
	arena_fini(&m.arena);
}

/* A backup reads one state for a long time; the log cannot be moved meanwhile. */
TEST(a_long_reader_does_not_make_every_batch_move_the_log)
{
	char        file[128];
	struct pool p;
	sqlite3    *backup = NULL;
	uint64_t    before;
	int         number = 100;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 5);
	snprintf(file, sizeof(file), "%s/store.db", p.folder);
	CHECK(sqlite3_open(file, &backup) == SQLITE_OK);
	CHECK(sqlite3_exec(backup, "BEGIN; SELECT count(*) FROM sandbox", NULL, NULL, NULL) == SQLITE_OK);
	/* Until it is tried: sooner when the writer finds itself idle between two batches, else later. */
	while (!(before = store_counts(p.backend).checkpoints) && number < PINNED_MAX)
		add_batch(&p, number++);
	CHECK(before >= 1);
	for (int i = 0; i < PINNED_BATCHES; i++)
		add_batch(&p, number++);
	CHECK(store_counts(p.backend).checkpoints <= before + 2);
	CHECK(sqlite3_close(backup) == SQLITE_OK);
	pool_close(&p);
}

enum { BULK_EVENTS = 40, BULK_DETAIL = 60000, BULK_WRITES = 32, LOG_LONG = 64000 * 1024 };

static enum rc tell_much(struct session *s, void *arg UNUSED, struct err *e)
{
	char   *text = arena_alloc(session_arena(s), BULK_DETAIL);
	enum rc rc = RC_OK;

	memset(text, 'x', BULK_DETAIL);
	text[0] = text[BULK_DETAIL - 1] = '"';
	for (int i = 0; !rc && i < BULK_EVENTS; i++)
		rc = session_tell(s, "Bulk", STR("bulk"), STR("test"), STR(""), str_of(text, BULK_DETAIL), e);
	return rc;
}

/* Bytes of the log that the next start would have to read. */
static int64_t log_length(const struct pool *p)
{
	char     file[128];
	sqlite3 *db = NULL;
	int      pages = 0, moved = 0, looked;

	snprintf(file, sizeof(file), "%s/store.db", p->folder);
	CHECK(sqlite3_open(file, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(db, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL) == SQLITE_OK);
	do /* the writer may be at moving it */
		looked = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &pages, &moved);
	while (looked == SQLITE_BUSY);
	CHECK(looked == SQLITE_OK);
	CHECK(sqlite3_close(db) == SQLITE_OK && pages > 0);
	return (int64_t)pages * 8192;
}

/* Only a pause of the reader lets it be moved to its end. */
TEST(a_log_that_is_long_begins_anew_although_somebody_reads_all_the_time)
{
	static struct member writes[BULK_WRITES];
	struct pool          p;
	struct gate          gates[2];
	struct look          looks[2] = { { .gate = &gates[0] }, { .gate = &gates[1] } };
	struct member        reads[2] = { { .gate = &gates[0] }, { .gate = &gates[1] } };

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 5);
	for (int i = 0; i < 2; i++) { /* the second follows at once: there is no moment without a reader */
		struct member *m = &reads[i];

		gate_init(&gates[i], 1);
		m->txn = (struct txn){ .run = look_twice, .arg = &looks[i], .arena = &m->arena, .done = on_done };
		m->txn.is_read_only = true;
		store_submit(p.backend, &m->txn);
	}
	await_arrival(&gates[0]);
	run_as_batch(p.backend, writes, BULK_WRITES, tell_much, NO_TROUBLE);
	open_gate(&gates[0]); /* the writer waits for that, and the second reader for the writer; or it was first */
	await_arrival(&gates[1]);
	open_gate(&gates[1]);
	CHECK(store_run(p.backend, tell_much, NULL, NULL, NULL) == RC_OK);
	CHECK(writes[0].told == RC_OK && reads[0].told == RC_OK && reads[1].told == RC_OK);
	CHECK(log_length(&p) < LOG_LONG);
	for (int i = 0; i < BULK_WRITES; i++)
		arena_fini(&writes[i].arena);
	for (int i = 0; i < 2; i++)
		arena_fini(&reads[i].arena);
	pool_close(&p);
}

/* As a process of its own: a part of the log is moved while somebody reads, then all of it, and the flush of that is
 * lost. Each batch that was told as stored is a byte for the parent. */
static void lose_a_flush(struct pool *p, int told)
{
	char     file[128];
	sqlite3 *backup = NULL;
	int      number = 100;

	pool_open_again(p);
	pool_fill(p, 0, 1000);
	snprintf(file, sizeof(file), "%s/store.db", p->folder);
	CHECK(sqlite3_open(file, &backup) == SQLITE_OK);
	CHECK(sqlite3_exec(backup, "BEGIN; SELECT count(*) FROM sandbox", NULL, NULL, NULL) == SQLITE_OK);
	while (!store_counts(p->backend).checkpoints) {
		add_batch(p, number++);
		CHECK(write(told, ".", 1) == 1);
	}
	CHECK(sqlite3_close(backup) == SQLITE_OK);
	loses_next_flush = true;
	for (int i = 0; i < UNPINNED_BATCHES; i++) {
		add_batch(p, number++);
		CHECK(write(told, ".", 1) == 1);
	}
	pool_shut(p);
	_exit(0);
}

static void check_integrity(struct pool *p)
{
	char          file[128];
	sqlite3      *db = NULL;
	sqlite3_stmt *st = NULL;

	snprintf(file, sizeof(file), "%s/store.db", p->folder);
	CHECK(sqlite3_open(file, &db) == SQLITE_OK);
	CHECK(sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &st, NULL) == SQLITE_OK);
	CHECK(sqlite3_step(st) == SQLITE_ROW);
	CHECK(strcmp((const char *)sqlite3_column_text(st, 0), "ok") == 0);
	CHECK(sqlite3_finalize(st) == SQLITE_OK && sqlite3_close(db) == SQLITE_OK);
}

/* SQLite counts the first part as moved before it is flushed, and would not move it again. */
TEST(a_flush_that_is_lost_after_a_part_of_the_log_was_moved_ends_the_program_and_loses_nothing)
{
	struct pool p;
	int         told[2], status;
	int64_t     batches = 0, stored;
	char        byte;
	pid_t       child;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_shut(&p);
	CHECK(pipe(told) == 0);
	child = fork();
	CHECK(child >= 0);
	if (!child)
		lose_a_flush(&p, told[1]);
	close(told[1]);
	while (read(told[0], &byte, 1) == 1)
		batches++;
	close(told[0]);
	CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	pool_open_again(&p);
	stored = pool_count(&p, SANDBOX_AVAILABLE) - 1000;
	/* It may have ended before it could tell of the last. */
	CHECK(batches && (stored == batches * SPILL_RECORDS || stored == (batches + 1) * SPILL_RECORDS));
	pool_shut(&p);
	check_integrity(&p);
	pool_open_again(&p);
	pool_close(&p);
}

/* Nobody reads, so all of the log was moved at once, and is moved again. */
TEST(a_flush_that_is_lost_when_all_of_the_log_was_moved_does_no_harm)
{
	struct pool p;
	int         number = 100;

	use_bad_disk();
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 1000);
	loses_next_flush = true;
	for (int i = 0; i < UNPINNED_BATCHES; i++)
		add_batch(&p, number++);
	CHECK(!loses_next_flush);
	pool_shut(&p);
	check_integrity(&p);
	pool_open_again(&p);
	CHECK(pool_count(&p, SANDBOX_AVAILABLE) == 1000 + UNPINNED_BATCHES * SPILL_RECORDS);
	pool_close(&p);
}

static enum rc add_two(struct session *s, void *arg, struct err *e)
{
	struct tombstone  t = { .sandbox_id = STR("x"), .external_id = STR("x"), .removed_at = 1 };
	struct job_record job = { .name = STR("there already") };

	(void)arg;
	(void)e;
	session_add(s, &tombstone_type, &t);
	session_add(s, &job_type, &job);
	return RC_OK;
}

static enum rc add_job(struct session *s, void *arg, struct err *e)
{
	struct job_record job = { .name = STR("there already") };

	(void)arg;
	(void)e;
	session_add(s, &job_type, &job);
	return RC_OK;
}

/* The file was changed by other hands: what was written a moment ago is gone. */
TEST(an_insert_that_cannot_be_taken_back_is_not_told_as_success)
{
	struct pool p;
	struct err  e = { 0 };
	char        file[128];
	sqlite3    *db = NULL;

	use_bad_disk();
	pool_open_sqlite(&p);
	CHECK(store_run(p.store, add_job, NULL, &p.arena, NULL) == RC_OK);
	CHECK(store_run(p.store, add_two, NULL, &p.arena, NULL) == RC_CONFLICT);
	pool_shut(&p);
	snprintf(file, sizeof(file), "%s/store.db", p.folder);
	CHECK(sqlite3_open(file, &db) == SQLITE_OK);
	CHECK(sqlite3_exec(
	              db,
	              "CREATE TRIGGER t AFTER INSERT ON tombstone BEGIN DELETE FROM tombstone WHERE seq = new.seq; END",
	              NULL, NULL, NULL) == SQLITE_OK);
	CHECK(sqlite3_close(db) == SQLITE_OK);
	pool_open_again(&p);
	CHECK(store_run(p.store, add_two, NULL, &p.arena, &e) == RC_INTERNAL);
	CHECK(strstr(e.msg, "tombstone 'x' was just written and is gone"));
	CHECK(store_run(p.store, add_job, NULL, &p.arena, NULL) == RC_CONFLICT);
	pool_close(&p);
}

/* --- a crowd --- */

enum { THREADS = 8, EACH = 500, REFUSE_EVERY = 7 };

struct worker {
	pthread_t        thread;
	struct store    *store;
	int              number, is_refused; /* of the transaction under way */
	int64_t          value;              /* that it wrote */
	int              ok, refused, failed, wrong;
	bool            *was_seen; /* values that were told to be written, of all workers */
	pthread_mutex_t *lock;
};

static enum rc count_up(struct session *s, void *arg, struct err *e)
{
	struct worker *w = arg;
	struct sandbox counter;
	enum rc        rc = session_get(s, &sandbox_type, STR("sb-0000"), &counter, e);

	if (rc)
		return rc;
	w->value = ++counter.deletion_retry_count;
	session_put(s, &sandbox_type, &counter);
	return w->is_refused ? err_set(e, RC_INVALID, "refused after all") : RC_OK;
}

static void *count_up_often(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < EACH; i++) {
		struct arena a = { 0 };
		enum rc      rc;

		w->is_refused = i % REFUSE_EVERY == 0;
		rc = store_run(w->store, count_up, w, &a, NULL);
		arena_fini(&a);
		w->ok += rc == RC_OK;
		w->refused += rc == RC_INVALID;
		w->failed += rc == RC_UNAVAILABLE;
		if (rc != RC_OK)
			continue;
		pthread_mutex_lock(w->lock);
		w->wrong += w->value > THREADS * EACH || w->was_seen[w->value];
		w->was_seen[w->value] = w->value <= THREADS * EACH;
		pthread_mutex_unlock(w->lock);
	}
	return NULL;
}

static void run_crowd(int fail_every)
{
	static struct worker workers[THREADS];
	static bool          was_seen[THREADS * EACH + 1];
	pthread_mutex_t      lock = PTHREAD_MUTEX_INITIALIZER;
	struct pool          p;
	int                  ok = 0, refused = 0, failed = 0;

	use_bad_disk();
	memset(workers, 0, sizeof(workers));
	memset(was_seen, 0, sizeof(was_seen));
	pool_open_sqlite(&p);
	pool_fill(&p, 0, 1);
	fail_every_nth_sync = fail_every;
	for (int i = 0; i < THREADS; i++) {
		workers[i].store = p.store;
		workers[i].was_seen = was_seen;
		workers[i].lock = &lock;
		CHECK(pthread_create(&workers[i].thread, NULL, count_up_often, &workers[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(pthread_join(workers[i].thread, NULL) == 0);
		CHECK(workers[i].wrong == 0);
		ok += workers[i].ok;
		refused += workers[i].refused;
		failed += workers[i].failed;
	}
	fail_every_nth_sync = 0;
	CHECK(ok + refused + failed == THREADS * EACH);
	CHECK(refused == THREADS * ((EACH + REFUSE_EVERY - 1) / REFUSE_EVERY));
	CHECK((failed > 0) == (fail_every > 0));
	for (int round = 0; round < 2; round++) {
		CHECK(pool_get(&p, STR("sb-0000")).deletion_retry_count == ok);
		pool_reopen(&p);
	}
	pool_close(&p);
}

TEST(each_of_a_crowd_is_told_the_truth)
{
	run_crowd(0);
}

TEST(each_of_a_crowd_is_told_the_truth_on_a_disk_that_fails_now_and_then)
{
	run_crowd(20);
}

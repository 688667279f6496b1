/* SPDX-License-Identifier: Apache-2.0 */
/* test_store_files.c - the files of the embedded store: whose they are, whether they are still there, whether the log
 * is whole. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "service/broker/records.h"
#include "service/services.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_file.h"
#include "store/store.h"

enum { COMMITS = 12, PATH_SIZE = 128 };

static char  folder[64];
static char *path_of(const char *name)
{
	static char paths[4][PATH_SIZE];
	static int  next;
	char       *path = paths[next++ % 4];

	snprintf(path, PATH_SIZE, "%s/%s", folder, name);
	return path;
}

static void copy(const char *from, const char *to)
{
	char command[3 * PATH_SIZE];

	snprintf(command, sizeof(command), "cp %s %s", path_of(from), path_of(to));
	CHECK(system(command) == 0);
}

static struct sqlite_options options(const char *name)
{
	return (struct sqlite_options){ .path = path_of(name),
		                        .types = service_types,
		                        .type_count = service_type_count,
		                        .clock = &clock_real,
		                        .is_owned = true };
}

static enum rc add_tombstone(struct session *s, void *arg, struct err *e)
{
	struct tombstone t = { .sandbox_id = *(struct str *)arg, .external_id = STR("x"), .removed_at = 1 };

	(void)e;
	session_add(s, &tombstone_type, &t);
	return RC_OK;
}

static enum rc add(struct store *store, struct arena *a, int n)
{
	struct str id = str_format(a, "id-%d", n);

	return store_run(store, add_tombstone, &id, a, NULL);
}

static struct store *open_with_commits(struct arena *a)
{
	struct sqlite_options o = options("a.db");
	struct store         *store = NULL;

	CHECK(sqlite_make(&o, NULL) == RC_OK);
	CHECK(store_sqlite_open(&o, &store, NULL) == RC_OK);
	for (int i = 0; i < COMMITS; i++)
		CHECK(add(store, a, i) == RC_OK);
	return store;
}

/* The files as a killed process leaves them, under another name. */
static void copy_as_killed(void)
{
	copy("a.db", "b.db");
	copy("a.db-wal", "b.db-wal");
	copy("a.db-shm", "b.db-shm");
}

static void with_folder(void (*check)(struct store *store, struct arena *a))
{
	struct arena  a = { 0 };
	struct store *store;
	char          command[96];

	snprintf(folder, sizeof(folder), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	store = open_with_commits(&a);
	check(store, &a);
	store_close(store);
	arena_fini(&a);
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

static void flip(const char *path, long at)
{
	FILE *f = fopen(path, "r+b");
	int   byte;

	CHECK(f && fseek(f, at, SEEK_SET) == 0 && (byte = fgetc(f)) != EOF);
	CHECK(fseek(f, at, SEEK_SET) == 0 && fputc(byte ^ 1, f) != EOF && fclose(f) == 0);
}

static void check_flips(struct store *store, struct arena *a)
{
	struct sqlite_log log;
	struct stat       st;
	struct err        e = { 0 };

	(void)store;
	(void)a;
	copy_as_killed();
	CHECK(sqlite_log_check(path_of("b.db"), &log, &e) == RC_OK);
	CHECK(log.frames >= COMMITS && !log.broken_at && !log.lost);
	CHECK(stat(path_of("b.db-wal"), &st) == 0);
	/* Every byte counts: of the log's head, of the heads of frames, of their pages. */
	for (long at = 0; at < st.st_size; at += at < 4096 ? 1 : 211) {
		flip(path_of("b.db-wal"), at);
		err_clear(&e);
		if (sqlite_log_check(path_of("b.db"), &log, &e) != RC_CORRUPT)
			print_error("a flipped bit at %ld is not noticed\n", at), CHECK(false);
		flip(path_of("b.db-wal"), at);
	}
	CHECK(sqlite_log_check(path_of("b.db"), &log, &e) == RC_OK);
	/* An end that is not there. */
	CHECK(truncate(path_of("b.db-wal"), st.st_size - 5000) == 0);
	CHECK(sqlite_log_check(path_of("b.db"), &log, &e) == RC_CORRUPT && log.lost >= 1);
	/* Without the index it is the end of a log that was being written. */
	CHECK(unlink(path_of("b.db-shm")) == 0);
	err_clear(&e);
	CHECK(sqlite_log_check(path_of("b.db"), &log, &e) == RC_OK);
}

TEST(a_flipped_bit_anywhere_in_the_log_is_noticed)
{
	with_folder(check_flips);
}

static void check_owner(struct store *store, struct arena *a)
{
	struct sqlite_options o = options("a.db");
	struct store         *other = NULL;
	struct err            e = { 0 };

	(void)store;
	(void)a;
	CHECK(store_sqlite_open(&o, &other, &e) == RC_UNAVAILABLE && strstr(e.msg, "another leasehold uses"));
	CHECK(sqlite_file_is_taken(path_of("a.db")));
	err_clear(&e);
	CHECK(sqlite_compact(path_of("a.db"), &e) == RC_UNAVAILABLE);
	err_clear(&e);
	CHECK(sqlite_make(&o, &e) == RC_CONFLICT);
	o = options("none.db");
	err_clear(&e);
	CHECK(store_sqlite_open(&o, &other, &e) == RC_NOT_FOUND && access(path_of("none.db"), F_OK) != 0);
}

TEST(a_store_has_one_owner_and_is_not_made_by_opening_it)
{
	with_folder(check_owner);
}

static void check_taken_away(struct store *store, struct arena *a)
{
	static const char *const names[] = { "a.db", "a.db-wal", "a.db-shm" };
	struct err               e = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CHECK(rename(path_of(names[i]), path_of("aside")) == 0);
		CHECK(add(store, a, 100 + (int)i) == RC_UNAVAILABLE);
		CHECK(store_health(store, &e) == RC_UNAVAILABLE && strstr(e.msg, names[i]) && strstr(e.msg, "removed"));
		copy("aside", names[i]);
		CHECK(add(store, a, 200 + (int)i) == RC_UNAVAILABLE);
		CHECK(store_health(store, &e) == RC_UNAVAILABLE && strstr(e.msg, "replaced"));
		CHECK(rename(path_of("aside"), path_of(names[i])) == 0);
		CHECK(add(store, a, 300 + (int)i) == RC_OK && store_health(store, NULL) == RC_OK);
	}
	CHECK(store_last_failure(store, &e) == RC_UNAVAILABLE && strstr(e.msg, "replaced"));
}

TEST(nothing_is_acknowledged_while_a_file_is_not_at_its_place)
{
	with_folder(check_taken_away);
}

/* As its head says. */
static int page_size_of(const char *path)
{
	unsigned char head[18];
	FILE         *f = fopen(path, "rb");

	CHECK(f && fread(head, 1, sizeof(head), f) == sizeof(head) && fclose(f) == 0);
	return head[16] << 8 | head[17];
}

static void add_once(const char *name, struct arena *a, int n)
{
	struct sqlite_options o = options(name);
	struct store         *store = NULL;

	CHECK(store_sqlite_open(&o, &store, NULL) == RC_OK);
	CHECK(add(store, a, n) == RC_OK && add(store, a, 1) == RC_CONFLICT);
	store_close(store);
}

static void check_page_size(struct store *store, struct arena *a)
{
	char command[2 * PATH_SIZE];

	(void)store;
	copy_as_killed();
	snprintf(command, sizeof(command),
	         "sqlite3 %s 'PRAGMA journal_mode=DELETE; PRAGMA page_size=4096; VACUUM' >/dev/null", path_of("b.db"));
	CHECK(system(command) == 0);
	add_once("b.db", a, 100);
	CHECK(page_size_of(path_of("a.db")) == 8192 && page_size_of(path_of("b.db")) == 4096);
	CHECK(sqlite_compact(path_of("b.db"), NULL) == RC_OK);
	add_once("b.db", a, 200);
	CHECK(page_size_of(path_of("b.db")) == 8192);
}

TEST(an_older_file_keeps_its_small_pages_until_it_is_compacted)
{
	with_folder(check_page_size);
}

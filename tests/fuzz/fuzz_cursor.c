/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_cursor.c - any cursor gives a page within its limit or a refusal, and both back ends say the same.
 *
 * The first three bytes choose the list, its state and the page size; the rest is the cursor.
 */
#include "fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "domain/sandbox.h"
#include "service/broker/records.h"
#include "service/services.h"
#include "store/memory/memory.h"
#include "store/session.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"
#include "../truth/test_clock.h"

enum { RECORDS = 40 };

struct listing {
	struct query q;
	struct page  page;
};

static enum rc add_records(struct session *s, void *arg, struct err *e)
{
	static const char *const names[] = { "lab", "exam", "", "x:y", "\xc3\xbc" };

	(void)arg;
	for (int n = 0; n < RECORDS; n++) {
		struct csp_account   account = { .sandbox_id = str_format(session_arena(s), "sb-%d", n),
			                         .external_id = STR("acc"),
			                         .name = str_format(session_arena(s), "%s-%d", names[n % 5], n % 7) };
		struct sandbox       sandbox = sandbox_from_account(&account, 4, session_now(s)), old;
		struct sandbox_claim claim = { .owner = account.sandbox_id, .lab_hours = 4 };

		if (session_get(s, &sandbox_type, account.sandbox_id, &old, NULL) != RC_NOT_FOUND)
			return RC_CONFLICT;
		if (n % 3 == 0 && sandbox_claim(&sandbox, &claim, wall_from_sec(1000 + n % 4), e))
			return RC_CONFLICT;
		session_put(s, &sandbox_type, &sandbox);
	}
	return RC_OK;
}

static enum rc list(struct session *s, void *arg, struct err *e)
{
	struct listing *l = arg;

	return session_query(s, &l->q, &l->page, e);
}

static void fill(struct store *store)
{
	struct arena a = { 0 };

	must(store_run(store, add_records, NULL, &a, NULL) == RC_OK);
	arena_fini(&a);
}

static struct store *open_sqlite(const struct clock *clock)
{
	struct store *store = NULL;
	char          folder[] = "/tmp/leasehold-fuzz-XXXXXX", path[64];

	must(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/store.db", folder);
	must(store_sqlite_open(&(struct sqlite_options){ path, service_types, service_type_count, clock, 0 }, &store,
	                       NULL) == RC_OK);
	fill(store);
	/* Nobody needs the names: the open files go with the process. */
	must(unlink(path) == 0);
	snprintf(path, sizeof(path), "%s/store.db-wal", folder);
	must(unlink(path) == 0);
	snprintf(path, sizeof(path), "%s/store.db-shm", folder);
	must(unlink(path) == 0 && rmdir(folder) == 0);
	return store;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct clock  clock;
	static struct store *memory, *sqlite;
	static const int     indexes[] = { QUERY_ALL, SANDBOX_BY_STATUS, SANDBOX_FREE };
	struct listing       m = { .q = { .type = &sandbox_type } }, s;
	struct arena         a = { 0 };
	enum rc              rc;

	if (!memory) {
		clock = clock_test(1000000);
		memory = store_memory_open(service_types, service_type_count, &clock);
		fill(memory);
		sqlite = open_sqlite(&clock);
	}
	if (size < 4)
		return 0;
	m.q.index = indexes[data[0] % 3];
	m.q.hash = value_int(data[1] % SANDBOX_STATE_COUNT);
	m.q.limit = (size_t)data[2] % 50 + 1;
	m.q.cursor = str_of((const char *)data + 3, size - 3);
	s = m;
	rc = store_read(memory, list, &m, &a, NULL);
	must(rc == RC_OK || rc == RC_INVALID);
	must(store_read(sqlite, list, &s, &a, NULL) == rc);
	if (!rc) {
		must(m.page.count <= m.q.limit && m.page.count == s.page.count && str_eq(m.page.next, s.page.next));
		for (size_t i = 0; i < m.page.count; i++)
			must(str_eq(record_key(&sandbox_type, page_record(&m.page, &sandbox_type, i)),
			            record_key(&sandbox_type, page_record(&s.page, &sandbox_type, i))));
	}
	arena_fini(&a);
	return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readstore.c - what is in many stores, one after the other, without a server for each.
 *
 * On each line of its input is a data folder. Its store is opened as a server opens it: owned, its log checked, what
 * was interrupted taken back by SQLite, what is kept in memory loaded. Its sandboxes, leases and holds are read through
 * the store's own sessions, it is closed, and then checked as `leasehold store check` does. The answer is a line for
 * each record, its parts separated by tabs, and at the end "ok", or "failed" and why.
 *
 * What is judged from that is in test_power.py. Not here: what a server does beside reading when it starts, so some
 * stores still have to be given to one.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "domain/hold.h"
#include "domain/lease.h"
#include "domain/sandbox.h"
#include "service/broker/records.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "service/services.h"
#include "store/sqlite/sqlite.h"
#include "store/walk.h"

enum { PAGE = 500 };

static void print_sandbox(const void *record)
{
	const struct sandbox *s = record;

	printf("sandbox\t%.*s\t%s\t%.*s\n", STR_ARG(s->sandbox_id), sandbox_state_names[s->status],
	       STR_ARG(s->allocated_to_track));
}

static void print_lease(const void *record)
{
	const struct lease *l = record;

	printf("lease\t%.*s\t%s\t%.*s\n", STR_ARG(l->uuid), lease_status_names[l->status], STR_ARG(l->account_id));
}

static void print_hold(const void *record)
{
	const struct hold *h = record;

	printf("hold\t%.*s\t%s\t%.*s\n", STR_ARG(h->id), hold_state_names[h->state], STR_ARG(h->account));
}

static const struct shown {
	const struct record_type *type;
	void (*print)(const void *record);
} shown[] = { { &sandbox_type, print_sandbox }, { &lease_type, print_lease }, { &hold_type, print_hold } };

static enum rc print_page(struct session *s, const struct page *page, void *arg, struct err *e)
{
	const struct shown *what = arg;

	(void)s;
	(void)e;
	for (size_t i = 0; i < page->count; i++)
		what->print(page_record(page, what->type, i));
	return RC_OK;
}

static enum rc print_all(struct store *store, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(shown); i++) {
		struct shown what = shown[i];

		rc = store_walk(store, &(struct query){ .type = what.type, .index = QUERY_ALL, .limit = PAGE }, true,
		                print_page, &what, e);
	}
	return rc;
}

static enum rc read_store(const char *folder, struct err *e)
{
	char                  path[PATH_MAX];
	struct sqlite_options o = { .path = path,
		                    .types = service_types,
		                    .type_count = service_type_count,
		                    .clock = &clock_real,
		                    .is_owned = true };
	struct store         *store;
	enum rc               rc;

	if (snprintf(path, sizeof(path), "%s/leasehold.db", folder) >= PATH_MAX)
		return err_set(e, RC_INVALID, "the name is too long");
	if ((rc = store_sqlite_open(&o, &store, e)))
		return rc;
	rc = print_all(store, e);
	store_close(store);
	return rc ? rc : sqlite_check(path, e);
}

int main(void)
{
	char folder[PATH_MAX];

	while (fgets(folder, sizeof(folder), stdin)) {
		struct err e = { 0 };

		folder[strcspn(folder, "\n")] = '\0';
		if (read_store(folder, &e))
			printf("failed\t%s\n", e.msg);
		else
			printf("ok\n");
		fflush(stdout);
	}
	return 0;
}

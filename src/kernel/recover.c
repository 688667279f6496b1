/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover.c - after a crash of the only node: what it had claimed is free at once.
 *
 * Other nodes cannot exist on the embedded store, so whoever owns a delivery or a saga there is dead, and nobody has to wait until the
 * claim runs out. With several nodes this is never called.
 */
#include "kernel/recover.h"

#include "kernel/kernel.h"
#include "kernel/records.h"
#include "store/walk.h"

enum { PAGE = 90 };

struct claimed {
	const struct record_type *type;
	int                       owner_field, due_field;
};

static enum rc free_page(struct session *s, const struct page *page, void *arg, struct err *e)
{
	const struct claimed *c = arg;

	(void)e;
	for (size_t i = 0; i < page->count; i++) {
		void *record = page_record(page, c->type, i);

		if (!record_value(c->type, c->owner_field, record).text.n)
			continue;
		record_set(c->type, c->owner_field, record, value_text(STR("")));
		record_set(c->type, c->due_field, record, value_int(session_now(s).ms));
		session_put(s, c->type, record);
	}
	return RC_OK;
}

static enum rc free_all(struct kernel *k, struct claimed *c, struct err *e)
{
	struct query q = { .type = c->type, .index = QUERY_KEYS, .limit = PAGE };

	return store_walk(kernel_options(k)->store, &q, false, free_page, c, e);
}

enum rc kernel_recover(struct kernel *k, struct err *e)
{
	struct claimed lanes = { &lane_type, LANE_F_OWNER, LANE_F_DUE };
	struct claimed sagas = { &saga_type, SAGA_F_OWNER, SAGA_F_DUE };
	enum rc        rc = free_all(k, &lanes, e);

	if (!rc)
		rc = free_all(k, &sagas, e);
	return rc ? err_wrap(e, rc, "what the last process had in hand cannot be freed") : RC_OK;
}

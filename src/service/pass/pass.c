/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - see pass.h. */
#include "service/pass/pass.h"

#include <assert.h>

#include "store/walk.h"

void pass_count(struct pass_result *r, const char *name, int64_t value, enum metric metric)
{
	assert(r->count < PASS_COUNTS_MAX);
	r->counts[r->count].name = name;
	r->counts[r->count].value = value;
	r->counts[r->count++].metric = metric;
}

bool pass_wait(const struct pass *p, int64_t ms)
{
	return !p || !p->wait || p->wait(p->wait_arg, ms);
}

enum rc pass_go_on(const struct pass *p, struct err *e)
{
	return pass_wait(p, 0) ? RC_OK : err_set(e, RC_UNAVAILABLE, "the pass was stopped before its end");
}

struct pass_walk {
	const struct pass        *p;
	const struct record_type *type;
	pass_page_fn             *visit;
	pass_record_fn           *visit_record;
	void                     *arg;
};

static enum rc visit_page(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	const struct pass_walk *w = arg;
	enum rc                 rc = pass_go_on(w->p, e);

	if (!rc && w->visit)
		return w->visit(w->p, page, a, w->arg, e);
	for (size_t i = 0; !rc && i < page->count; i++)
		rc = w->visit_record(w->p, page_record(page, w->type, i), w->arg, e);
	return rc;
}

enum rc pass_walk(const struct pass *p, const struct query *q, pass_page_fn *visit, void *arg, struct err *e)
{
	struct pass_walk w = { .p = p, .visit = visit, .arg = arg };

	return store_read_pages(p->store, q, visit_page, &w, e);
}

enum rc pass_each(const struct pass *p, const struct query *q, pass_record_fn *visit, void *arg, struct err *e)
{
	struct pass_walk w = { .p = p, .type = q->type, .visit_record = visit, .arg = arg };

	return store_read_pages(p->store, q, visit_page, &w, e);
}

enum rc pass_refresh_run(const struct pass *p, struct pass_result *ret, struct err *e)
{
	return p->refresh && p->refresh->run ? p->refresh->run(p->refresh->arg, p->was_asked, ret, e) : RC_OK;
}

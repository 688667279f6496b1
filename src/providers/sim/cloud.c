/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloud.c - the simulated cloud's life, and what its parts share.
 *
 * A world is made once, from chance: the root, its OUs, the first accounts. It is all in the store: the same store is
 * the same cloud. Accounts are made in groups; a counter says how many there ever were, so a world that was interrupted
 * while being made is completed at the next opening. [make_accounts()]
 *
 * Each call of a port is one transaction; there is no thread, and no state but the store, the switches and the counts.
 */
#include "providers/sim/cloud.h"

#include <stdlib.h>

#include "base/grow.h"
#include "base/mem.h"
#include "providers/sim/cloud_private.h"

enum { GROUP = 45, HOUR_MS = 3600000, MINUTE_MS = 60000, NEW_DIRT = 3, PAGES_MAX = 100 };

const char *const sim_ou_names[SIM_OU_COUNT] = { "Root", SIM_OUS(ROW_TEXT) };

/* --- shared by the parts --- */

enum rc sim_call_of(struct sim_cloud *c, struct sim_about about, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	enum rc rc = sim_faults_before_of(c->faults, about, e);

	if (rc)
		return rc;
	if (run && world_call_changes[about.call])
		rc = store_run(c->options.store, run, arg, a, e);
	else if (run)
		rc = store_read(c->options.store, run, arg, a, e);
	return sim_faults_after_of(c->faults, about, rc, e);
}

enum rc sim_call(struct sim_cloud *c, enum world_call call, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	return sim_call_of(c, (struct sim_about){ call, 0 }, run, arg, a, e);
}

enum rc sim_read_page(struct session *s, void *arg, struct err *e)
{
	struct sim_listing *l = arg;

	return l->q->limit ? session_query(s, l->q, &l->page, e) : sim_read_all(s, *l->q, &l->page, e);
}

enum rc sim_list(struct sim_cloud *c, enum world_call call, const struct query *q, struct arena *a, struct page *ret,
                 struct err *e)
{
	struct sim_listing l = { .q = q };
	enum rc            rc = sim_call(c, call, sim_read_page, &l, a, e);

	*ret = l.page;
	return rc;
}

enum rc sim_check_text(const char *what, struct str text, size_t max, struct err *e)
{
	bool is_ok = text.n > 0 && text.n <= max;

	for (size_t i = 0; is_ok && i < text.n; i++)
		is_ok = (unsigned char)text.p[i] >= ' ' && text.p[i] != '#';
	if (is_ok)
		return RC_OK;
	return err_set_code(e, RC_INVALID, "InvalidInputException",
	                    "%s must have 1 to %zu bytes, without '#' and control characters", what, max);
}

enum rc sim_check_account(struct str id, struct err *e)
{
	return str_is_digits(id, 12) ? RC_OK
	                             : err_set_code(e, RC_INVALID, "InvalidInputException",
	                                            "an account's id has 12 digits, not '%.*s'",
	                                            (int)(id.n < 40 ? id.n : 40), id.p ? id.p : "");
}

enum rc sim_get_member(struct session *s, struct str id, struct sim_member *ret, struct err *e)
{
	bool    found;
	enum rc rc = session_find(s, &sim_member_type, id, ret, &found, e);

	if (!rc && !found)
		return err_set_code(e, RC_NOT_FOUND, "AccountNotFoundException", "there is no account %.*s",
		                    STR_ARG(id));
	return rc;
}

enum rc sim_read_all(struct session *s, struct query q, struct page *ret, struct err *e)
{
	struct records all = { .query = q, .pages_max = PAGES_MAX };
	struct page    found = { 0 };
	size_t         room = 0;
	const void    *record;
	enum rc        rc;

	all.query.limit = QUERY_LIMIT_MAX;
	while ((record = session_next(s, &all, &rc, e))) {
		found.records = arena_grow(session_arena(s), found.records, found.count, &room, q.type->size);
		memcpy(page_record(&found, q.type, found.count++), record, q.type->size);
	}
	if (!rc && all.page.next.n)
		return err_set(e, RC_TOO_LARGE, "more than %d records of %s", PAGES_MAX * QUERY_LIMIT_MAX,
		               q.type->name);
	*ret = found;
	return rc;
}

enum sim_ou_name sim_find_ou(const struct sim_cloud *c, struct str id)
{
	int i = 0;

	while (i < SIM_OU_COUNT && !str_eq(c->ou_ids[i], id))
		i++;
	return (enum sim_ou_name)i;
}

/* --- a fresh world --- */

static struct str random_name(struct sim_cloud *c, const char *prefix, int length)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	uint64_t          number = sim_faults_random(c->faults);
	char              text[16] = "";

	for (int i = 0; i < length; i++, number /= sizeof(letters) - 1)
		text[i] = letters[number % (sizeof(letters) - 1)];
	return str_format(&c->arena, "%s-%s", prefix, text);
}

static enum rc make_ous(struct session *s, void *arg, struct err *e)
{
	struct sim_cloud    *c = arg;
	struct records       all = { .query = { .type = &sim_ou_type, .index = QUERY_ALL, .limit = SIM_OU_COUNT },
		                     .pages_max = 1 };
	const struct sim_ou *ou;
	enum rc              rc;

	while ((ou = session_next(s, &all, &rc, e))) {
		if (ou->number < 0 || ou->number >= SIM_OU_COUNT)
			return err_set(e, RC_CORRUPT, "simulated OU %.*s has number %lld", STR_ARG(ou->id),
			               (long long)ou->number);
		c->ou_ids[ou->number] = str_dup(&c->arena, ou->id);
	}
	for (int i = 0; !rc && all.page.count == 0 && i < SIM_OU_COUNT; i++) {
		struct sim_ou fresh = { .id = c->ou_ids[i], .name = str_from(sim_ou_names[i]), .number = i };

		session_add(s, &sim_ou_type, &fresh);
	}
	return rc;
}

struct making {
	struct sim_cloud *cloud;
	int64_t           until;     /* make accounts until this many were ever made ... */
	int64_t           more;      /* ... or this many more */
	int64_t           available; /* how many of them, the first, are in Available */
	uint64_t          numbers[GROUP];

	bool is_done;
};

static enum rc make_account(struct session *s, const struct making *m, int64_t number, uint64_t chance, struct err *e)
{
	enum sim_ou_name  ou = number <= m->available ? SIM_OU_AVAILABLE : SIM_OU_ENTRY;
	struct arena     *a = session_arena(s);
	struct sim_member old, member = { .ou_id = m->cloud->ou_ids[ou],
		                          .joined_ms = session_now(s).ms,
		                          .rate = 50000 * (1 + (int64_t)(chance >> 48) % 20),
		                          .dirty = ou == SIM_OU_ENTRY ? NEW_DIRT : 0 };
	bool              found;
	enum rc           rc;

	member.id = str_format(a, "%012llu", (unsigned long long)(chance % 1000000000000ull));
	member.name = str_format(a, "sandbox-%04lld", (long long)number);
	member.email = str_format(a, "sandbox-%04lld@example.com", (long long)number);
	if ((rc = session_find(s, &sim_member_type, member.id, &old, &found, e)))
		return rc;
	if (found)
		return err_set(e, RC_INTERNAL, "two simulated accounts with the id %.*s", STR_ARG(member.id));
	session_put(s, &sim_member_type, &member);
	return RC_OK;
}

static enum rc make_group(struct session *s, void *arg, struct err *e)
{
	struct making     *m = arg;
	struct sim_counter counter;
	int64_t            count;
	enum rc            rc = session_find_or_new(s, &sim_counter_type, STR("members"), &counter, e);

	if (rc)
		return rc;
	count = m->until ? m->until - counter.made : m->more;
	m->is_done = count <= GROUP;
	for (int64_t i = 0; i < GROUP && i < count; i++)
		if ((rc = make_account(s, m, ++counter.made, m->numbers[i], e)))
			return rc;
	if (count > 0)
		session_put(s, &sim_counter_type, &counter);
	return RC_OK;
}

static enum rc make_accounts(struct making *m, struct err *e)
{
	enum rc rc = RC_OK;

	while (!rc && !m->is_done) {
		for (int i = 0; i < GROUP; i++)
			m->numbers[i] = sim_faults_random(m->cloud->faults);
		rc = store_run(m->cloud->options.store, make_group, m, NULL, e);
		m->more -= GROUP;
	}
	return rc;
}

enum rc sim_add_accounts(struct sim_cloud *c, int64_t count, struct err *e)
{
	return make_accounts(&(struct making){ .cloud = c, .more = count }, e);
}

/* --- life cycle --- */

static void fill_in(int64_t *option, int64_t fallback)
{
	if (*option == 0)
		*option = fallback;
}

static enum rc take_options(struct sim_cloud *c, const struct sim_cloud_options *o, struct err *e)
{
	struct sim_cloud_options *p = &c->options;
	enum rc                   rc;

	*p = *o;
	p->management_account = str_dup(&c->arena,
	                                o->management_account.n ? o->management_account : STR("999988887777"));
	p->hub_account = str_dup(&c->arena, o->hub_account.n ? o->hub_account : STR("999988886666"));
	c->admin_accounts = str_format(&c->arena, "%.*s,%.*s", STR_ARG(p->management_account), STR_ARG(p->hub_account));
	fill_in(&p->accounts, SIM_ACCOUNTS_DEFAULT);
	fill_in(&p->cost_delay_min_ms, 8 * HOUR_MS);
	fill_in(&p->cost_delay_max_ms, p->cost_delay_min_ms > 24 * HOUR_MS ? p->cost_delay_min_ms : 24 * HOUR_MS);
	fill_in(&p->clean_min_ms, 5 * MINUTE_MS);
	fill_in(&p->clean_max_ms, p->clean_min_ms > 30 * MINUTE_MS ? p->clean_min_ms : 30 * MINUTE_MS);
	fill_in(&p->event_delay_ms, 2000);
	if ((rc = sim_check_account(p->management_account, e)) || (rc = sim_check_account(p->hub_account, e)))
		return rc;
	if (p->accounts > SIM_MAKE_MAX || p->available > (p->accounts > 0 ? p->accounts : 0) ||
	    p->cost_delay_min_ms < 0 || p->cost_delay_max_ms < p->cost_delay_min_ms || p->clean_min_ms < 0 ||
	    p->clean_max_ms < p->clean_min_ms || p->event_delay_ms < 0)
		return err_set(e, RC_INVALID,
		               "simulated cloud: at most %d accounts, not more of them available; the shortest delay "
		               "not over the longest",
		               SIM_MAKE_MAX);
	return RC_OK;
}

enum rc sim_cloud_open(const struct sim_cloud_options *o, struct sim_cloud **ret, struct err *e)
{
	struct sim_cloud *c = mem_new(struct sim_cloud);
	enum rc           rc;

	c->organisation.ops = &sim_organisation_ops;
	c->access.ops = &sim_access_ops;
	c->costs.ops = &sim_costs_ops;
	c->cleaner.ops = &sim_cleaner_ops;
	c->driver.ops = &sim_driver_ops;
	c->credentials.ops = &sim_credentials_ops;
	c->world.ops = &sim_world_ops;
	c->isb_table.ops = &sim_isb_table_ops;
	c->faults = sim_faults_new(&(struct sim_faults_options){ o->clock, o->random, o->random_arg, o->waits });
	rc = take_options(c, o, e);
	if (!rc) {
		struct str root = c->ou_ids[SIM_ROOT] = random_name(c, "r", 4);
		struct str prefix = str_format(&c->arena, "ou%.*s", (int)root.n - 1, root.p + 1);

		for (int i = SIM_ROOT + 1; i < SIM_OU_COUNT; i++)
			c->ou_ids[i] = random_name(c, prefix.p, 8);
		rc = store_run(c->options.store, make_ous, c, NULL, e);
	}
	if (!rc && c->options.accounts >= 0)
		rc = make_accounts(&(struct making){ .cloud = c,
		                                     .until = c->options.accounts,
		                                     .available = c->options.available },
		                   e);
	if (rc) {
		sim_cloud_close(c);
		return rc;
	}
	*ret = c;
	return RC_OK;
}

void sim_cloud_close(struct sim_cloud *c)
{
	if (!c)
		return;
	sim_faults_free(c->faults);
	arena_fini(&c->arena);
	free(c);
}

struct cloud sim_cloud_ports(struct sim_cloud *c)
{
	return (struct cloud){ &c->organisation, &c->access, &c->costs, &c->cleaner, &c->credentials };
}

struct instance_driver *sim_cloud_driver(struct sim_cloud *c)
{
	return &c->driver;
}

struct world *sim_cloud_world(struct sim_cloud *c)
{
	return &c->world;
}

struct account_table *sim_isb_table(struct sim_cloud *c)
{
	return &c->isb_table;
}

struct sim_faults *sim_cloud_faults(struct sim_cloud *c)
{
	return c->faults;
}

struct str sim_cloud_admin_accounts(const struct sim_cloud *c)
{
	return c->admin_accounts;
}

struct str sim_cloud_ou(const struct sim_cloud *c, enum sim_ou_name name)
{
	return c->ou_ids[name];
}

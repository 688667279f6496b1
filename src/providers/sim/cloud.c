/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cloud.c - the simulated cloud's life, and what its parts share.
 *
 * A world is made once, from chance: the root, its OUs, the first accounts. It is all in the store, so a cloud that is opened on the
 * same store again is the same cloud. Accounts are made in groups; the counter says how many there ever were, so a world that was cut
 * short while it was made is completed at the next opening.                                                     [make_accounts()]
 *
 * Each call of a port is one transaction; there is no thread and no state beside the store, the switches and the counts.
 */
#include "providers/sim/cloud.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "providers/sim/cloud_ops.h"

enum { GROUP = 45, HOUR_MS = 3600000, MINUTE_MS = 60000, NEW_DIRT = 3, PAGES_MAX = 100 };

const char *const sim_ou_names[SIM_OU_COUNT] = { "Root",
#define X(name, text) text,
	                                         SIM_OUS(X)
#undef X
};

/* --- shared by the parts --- */

enum rc sim_call(struct sim_cloud *c, enum world_call call, txn_fn *run, void *arg, struct arena *a, struct err *e)
{
	enum rc rc = sim_faults_before(c->faults, call, e);

	if (rc)
		return rc;
	if (run && world_call_is_change(call))
		rc = store_run(c->options.store, run, arg, a, e);
	else if (run)
		rc = store_read(c->options.store, run, arg, a, e);
	return sim_faults_after(c->faults, call, rc, e);
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
	bool is_ok = id.n == 12;

	for (size_t i = 0; is_ok && i < id.n; i++)
		is_ok = id.p[i] >= '0' && id.p[i] <= '9';
	return is_ok ? RC_OK
	             : err_set_code(e, RC_INVALID, "InvalidInputException", "an account's id has 12 digits, not '%.*s'",
	                            (int)(id.n < 40 ? id.n : 40), id.p ? id.p : "");
}

enum rc sim_find(struct session *s, const struct record_type *type, struct str key, void *ret, bool *ret_found,
                 struct err *e)
{
	struct err why = { 0 };
	enum rc    rc = session_get(s, type, key, ret, &why);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "%s", why.msg);
	*ret_found = rc == RC_OK;
	return RC_OK;
}

enum rc sim_get_member(struct session *s, struct str id, struct sim_member *ret, struct err *e)
{
	bool    found;
	enum rc rc = sim_find(s, &sim_member_type, id, ret, &found, e);

	if (!rc && !found)
		return err_set_code(e, RC_NOT_FOUND, "AccountNotFoundException", "there is no account %.*s",
		                    STR_ARG(id));
	return rc;
}

enum rc sim_read_all(struct session *s, struct query q, struct page *ret, struct err *e)
{
	struct page all = { 0 };

	q.limit = QUERY_LIMIT_MAX;
	for (int i = 0; i < PAGES_MAX; i++) {
		struct page page = { 0 };
		enum rc     rc = session_query(s, &q, &page, e);
		char       *joined;

		if (rc)
			return rc;
		joined = arena_alloc(session_arena(s), (all.count + page.count + 1) * q.type->size);
		if (all.count)
			memcpy(joined, all.records, all.count * q.type->size);
		if (page.count)
			memcpy(joined + all.count * q.type->size, page.records, page.count * q.type->size);
		all.records = joined;
		all.count += page.count;
		q.cursor = page.next;
		if (!q.cursor.n) {
			*ret = all;
			return RC_OK;
		}
	}
	return err_set(e, RC_TOO_LARGE, "more than %d records of %s", PAGES_MAX * QUERY_LIMIT_MAX, q.type->name);
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
	struct sim_cloud *c = arg;
	struct query      q = { .type = &sim_ou_type, .index = QUERY_ALL, .limit = SIM_OU_COUNT };
	struct page       page;
	enum rc           rc = session_query(s, &q, &page, e);

	if (rc)
		return rc;
	for (size_t i = 0; i < page.count; i++) {
		const struct sim_ou *ou = page_record(&page, &sim_ou_type, i);

		if (ou->number < 0 || ou->number >= SIM_OU_COUNT)
			return err_set(e, RC_CORRUPT, "simulated OU %.*s has number %lld", STR_ARG(ou->id),
			               (long long)ou->number);
		c->ou_ids[ou->number] = str_dup(&c->arena, ou->id);
	}
	for (int i = 0; page.count == 0 && i < SIM_OU_COUNT; i++) {
		struct sim_ou ou = { .id = c->ou_ids[i], .name = str_from(sim_ou_names[i]), .number = i };

		session_add(s, &sim_ou_type, &ou);
	}
	return RC_OK;
}

static void name_ous(struct sim_cloud *c)
{
	struct str root = random_name(c, "r", 4);
	struct str prefix = str_format(&c->arena, "ou%.*s", (int)root.n - 1, root.p + 1);

	c->ou_ids[SIM_ROOT] = root;
	for (int i = SIM_ROOT + 1; i < SIM_OU_COUNT; i++)
		c->ou_ids[i] = random_name(c, prefix.p, 8);
}

struct making {
	struct sim_cloud *cloud;
	int64_t           until;     /* so many there shall ever have been ... */
	int64_t           more;      /* ... or so many more */
	int64_t           available; /* the first of them */
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
	if ((rc = sim_find(s, &sim_member_type, member.id, &old, &found, e)))
		return rc;
	if (found)
		return err_set(e, RC_INTERNAL, "two simulated accounts with the id %.*s", STR_ARG(member.id));
	session_put(s, &sim_member_type, &member);
	return RC_OK;
}

static enum rc make_group(struct session *s, void *arg, struct err *e)
{
	struct making     *m = arg;
	struct sim_counter counter = { .name = STR("members") };
	int64_t            count;
	bool               found;
	enum rc            rc = sim_find(s, &sim_counter_type, counter.name, &counter, &found, e);

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
	struct arena a = { 0 };
	enum rc      rc = RC_OK;

	while (!rc && !m->is_done) {
		for (int i = 0; i < GROUP; i++)
			m->numbers[i] = sim_faults_random(m->cloud->faults);
		arena_reset(&a);
		rc = store_run(m->cloud->options.store, make_group, m, &a, e);
		m->more -= GROUP;
	}
	arena_fini(&a);
	return rc;
}

enum rc sim_add_accounts(struct sim_cloud *c, int64_t count, struct err *e)
{
	struct making m = { .cloud = c, .more = count };

	return make_accounts(&m, e);
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
		return err_set(
		        e, RC_INVALID,
		        "simulated cloud: at most %d accounts, not more of them available; the shortest delay not over the longest",
		        SIM_MAKE_MAX);
	return RC_OK;
}

static enum rc make_world(struct sim_cloud *c, struct err *e)
{
	struct making m = { .cloud = c, .until = c->options.accounts, .available = c->options.available };
	struct arena  a = { 0 };
	enum rc       rc;

	name_ous(c);
	rc = store_run(c->options.store, make_ous, c, &a, e);
	arena_fini(&a);
	return rc || c->options.accounts < 0 ? rc : make_accounts(&m, e);
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
	c->faults = sim_faults_new(&(struct sim_faults_options){ o->clock, o->random, o->random_arg, o->waits });
	rc = take_options(c, o, e);
	if (!rc)
		rc = make_world(c, e);
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
	return (struct cloud){ &c->organisation, &c->access, &c->costs, &c->cleaner, &c->driver, &c->credentials };
}

struct world *sim_cloud_world(struct sim_cloud *c)
{
	return &c->world;
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

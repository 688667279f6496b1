/* SPDX-License-Identifier: Apache-2.0 */
/* test_cloud.c - the simulated cloud keeps the rules of a real one, and breaks them only where a switch says so. */
#include "test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "truth/test_clock.h"
#include "base/json.h"
#include "domain/ports/instance.h"
#include "truth/sim_truth.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "service/cost/statement.h"
#include "store/memory/memory.h"
#include "store/sqlite/sqlite.h"
#include "store/store.h"

#define HOUR_MS 3600000ll
#define DAY_MS  (24 * HOUR_MS)
#define START   1767225600000ll /* 2026-01-01T00:00:00Z */

struct fixture {
	struct clock             clock;
	uint64_t                 chance;
	struct sim_cloud_options options;
	struct store            *store;
	struct sim_cloud        *sim;
	struct cloud             cloud;
	struct arena             arena;
	struct err               err;
	char                     folder[40]; /* empty: in memory */
};

/* splitmix64 */
static uint64_t draw(void *arg)
{
	uint64_t *state = arg;
	uint64_t  z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static void open_cloud(struct fixture *f)
{
	enum rc rc;

	f->options.store = f->store;
	f->options.clock = &f->clock;
	f->options.random = draw;
	f->options.random_arg = &f->chance;
	rc = sim_cloud_open(&f->options, &f->sim, &f->err);
	if (rc)
		print_error("%s\n", f->err.msg);
	CHECK(rc == RC_OK);
	f->cloud = sim_cloud_ports(f->sim);
}

static void set_up(struct fixture *f, const struct sim_cloud_options *options)
{
	*f = (struct fixture){ .clock = clock_test(START), .chance = 7, .options = { .available = 2 } };
	if (options)
		f->options = *options;
	f->store = store_memory_open(sim_types, sim_type_count, &f->clock);
	open_cloud(f);
}

static void open_file(struct fixture *f)
{
	struct str            path = str_format(&f->arena, "%s/sim.db", f->folder);
	struct sqlite_options options = { path.p, sim_types, sim_type_count, &f->clock, 0 };

	CHECK(store_sqlite_open(&options, &f->store, &f->err) == RC_OK);
	open_cloud(f);
}

static void tear_down(struct fixture *f)
{
	char command[80];

	sim_cloud_close(f->sim);
	store_close(f->store);
	arena_fini(&f->arena);
	if (!f->folder[0])
		return;
	snprintf(command, sizeof(command), "rm -rf %s", f->folder);
	CHECK(system(command) == 0);
}

static void pass(struct fixture *f, int64_t ms)
{
	f->clock.test_ms += ms;
}

static struct str ou(struct fixture *f, enum sim_ou_name name)
{
	return sim_cloud_ou(f->sim, name);
}

/* The first account of an OU. */
static struct str some_account(struct fixture *f, enum sim_ou_name name)
{
	struct cloud_account_page page;

	CHECK(f->cloud.organisation->ops->list_accounts(f->cloud.organisation, ou(f, name), STR(""), &f->arena, &page,
	                                                &f->err) == RC_OK);
	CHECK(page.count > 0);
	return page.items[0].id;
}

static enum rc move(struct fixture *f, struct str account, enum sim_ou_name from, enum sim_ou_name to)
{
	err_clear(&f->err);
	return f->cloud.organisation->ops->move(f->cloud.organisation, account, ou(f, from), ou(f, to), &f->err);
}

static struct sim_truth truth(struct fixture *f, struct str account)
{
	struct sim_truth t;

	CHECK(sim_cloud_inspect(f->sim, account, &t, NULL) == RC_OK);
	return t;
}

static void set_rule(struct fixture *f, struct world_rule rule)
{
	struct world_rules rules = { .rules = { rule }, .count = 1 };

	sim_cloud_world(f->sim)->ops->set_rules(sim_cloud_world(f->sim), &rules);
}

static void clear_rules(struct fixture *f)
{
	struct world_rules none = { .count = 0 };

	sim_cloud_world(f->sim)->ops->set_rules(sim_cloud_world(f->sim), &none);
}

static bool is_code(const struct fixture *f, const char *code)
{
	return f->err.code && strcmp(f->err.code, code) == 0;
}

/* --- the organisation --- */

static bool is_id(struct str id, const char *shape) /* x: a small letter or digit; 9: a digit */
{
	if (id.n != strlen(shape))
		return false;
	for (size_t i = 0; i < id.n; i++) {
		bool is_digit = id.p[i] >= '0' && id.p[i] <= '9';
		bool is_letter = id.p[i] >= 'a' && id.p[i] <= 'z';

		if (shape[i] == '9' ? !is_digit : shape[i] == 'x' ? !is_digit && !is_letter : id.p[i] != shape[i])
			return false;
	}
	return true;
}

TEST(a_fresh_world_has_its_ous_and_accounts_with_ids_as_on_aws)
{
	struct fixture            f;
	struct cloud_ou          *ous;
	struct cloud_account_page page;
	struct cloud_account      account;
	size_t                    count;

	set_up(&f, NULL);
	CHECK(f.cloud.organisation->ops->list_ous(f.cloud.organisation, &f.arena, &ous, &count, &f.err) == RC_OK);
	CHECK(count == SIM_OU_COUNT);
	CHECK(is_id(ous[SIM_ROOT].id, "r-xxxx") && ous[SIM_ROOT].parent_id.n == 0);
	CHECK(str_eq(ous[SIM_OU_QUARANTINE].name, STR("Quarantine")));
	for (size_t i = 1; i < count; i++)
		CHECK(is_id(ous[i].id, "ou-xxxx-xxxxxxxx") && str_eq(ous[i].parent_id, ous[SIM_ROOT].id));
	CHECK(f.cloud.organisation->ops->list_accounts(f.cloud.organisation, ou(&f, SIM_OU_ENTRY), STR(""), &f.arena,
	                                               &page, &f.err) == RC_OK);
	CHECK(page.count == SIM_ACCOUNTS_DEFAULT - 2 && page.next.n == 0);
	CHECK(is_id(page.items[0].id, "999999999999"));
	CHECK(f.cloud.organisation->ops->describe(f.cloud.organisation, page.items[0].id, &f.arena, &account, &f.err) ==
	      RC_OK);
	CHECK(str_eq(account.parent_id, ou(&f, SIM_OU_ENTRY)) && account.joined_ms == START);
	tear_down(&f);
}

TEST(a_large_ou_is_listed_page_by_page_each_account_once)
{
	struct fixture            f;
	struct cloud_account_page page = { 0 };
	struct str                last = STR("");
	size_t                    total = 0, pages = 0;

	set_up(&f, &(struct sim_cloud_options){ .accounts = 97 });
	do {
		CHECK(f.cloud.organisation->ops->list_accounts(f.cloud.organisation, ou(&f, SIM_OU_ENTRY), page.next,
		                                               &f.arena, &page, &f.err) == RC_OK);
		for (size_t i = 0; i < page.count; i++, last = page.items[i - 1].id)
			CHECK(str_cmp(last, page.items[i].id) < 0);
		total += page.count;
		pages++;
	} while (page.next.n);
	CHECK(total == 97 && pages == 5);
	tear_down(&f);
}

static const struct {
	const char *label;
	const char *account; /* NULL: the one that is in Available */
	int         from, to;
	enum rc     rc;
	const char *code;
} moves[] = {
	{ "where it is, to elsewhere", NULL, SIM_OU_AVAILABLE, SIM_OU_ACTIVE, RC_OK, NULL },
	{ "not where you said", NULL, SIM_OU_FROZEN, SIM_OU_ACTIVE, RC_CONFLICT, "SourceParentNotFoundException" },
	{ "to where it is", NULL, SIM_OU_AVAILABLE, SIM_OU_AVAILABLE, RC_CONFLICT, "DuplicateAccountException" },
	{ "repeated after it happened", NULL, SIM_OU_ENTRY, SIM_OU_AVAILABLE, RC_CONFLICT,
	  "DuplicateAccountException" },
	{ "to nowhere", NULL, SIM_OU_AVAILABLE, -1, RC_NOT_FOUND, "DestinationParentNotFoundException" },
	{ "an account that is not there", "000000000001", SIM_OU_ENTRY, SIM_OU_EXIT, RC_NOT_FOUND,
	  "AccountNotFoundException" },
	{ "an account that cannot be", "12345", SIM_OU_ENTRY, SIM_OU_EXIT, RC_INVALID, "InvalidInputException" },
};

TEST(a_move_is_judged_as_aws_does)
{
	for (size_t i = 0; i < ARRAY_LEN(moves); i++) {
		struct fixture f;
		struct str     account, to;
		enum rc        rc;

		CASE(moves[i].label);
		set_up(&f, NULL);
		account = moves[i].account ? str_from(moves[i].account) : some_account(&f, SIM_OU_AVAILABLE);
		to = moves[i].to < 0 ? STR("ou-abcd-nowhere0") : ou(&f, (enum sim_ou_name)moves[i].to);
		rc = f.cloud.organisation->ops->move(f.cloud.organisation, account,
		                                     ou(&f, (enum sim_ou_name)moves[i].from), to, &f.err);
		CHECK(rc == moves[i].rc);
		CHECK(!moves[i].code || is_code(&f, moves[i].code));
		if (!moves[i].account)
			CHECK(truth(&f, account).ou == (rc ? SIM_OU_AVAILABLE : SIM_OU_ACTIVE));
		tear_down(&f);
	}
}

TEST(tags_are_added_and_replaced_and_limited)
{
	struct fixture       f;
	struct str           account;
	struct organisation *o;
	struct cloud_tag    *got, many[CLOUD_TAGS_MAX];
	size_t               count;

	set_up(&f, NULL);
	o = f.cloud.organisation;
	account = some_account(&f, SIM_OU_ENTRY);
	CHECK(o->ops->set_tags(o, account, (struct cloud_tag[]){ { STR("a"), STR("1") }, { STR("b"), STR("") } }, 2,
	                       &f.err) == RC_OK);
	CHECK(o->ops->set_tags(o, account, (struct cloud_tag[]){ { STR("a"), STR("x\"y") } }, 1, &f.err) == RC_OK);
	CHECK(o->ops->get_tags(o, account, &f.arena, &got, &count, &f.err) == RC_OK);
	CHECK(count == 2 && str_eq(got[0].value, STR("x\"y")) && str_eq(got[1].name, STR("b")) && got[1].value.n == 0);
	for (int i = 0; i < CLOUD_TAGS_MAX; i++)
		many[i] = (struct cloud_tag){ str_format(&f.arena, "n%d", i), STR("v") };
	CHECK(o->ops->set_tags(o, account, many, CLOUD_TAGS_MAX, &f.err) == RC_INVALID);
	CHECK(o->ops->get_tags(o, account, &f.arena, &got, &count, NULL) == RC_OK && count == 2);
	tear_down(&f);
}

TEST(access_can_be_granted_and_revoked_twice_with_the_same_result)
{
	struct fixture           f;
	struct access           *x;
	struct cloud_assignment  a = { .kind = CLOUD_USER, .principal = STR("u-1"), .permission_set = STR("User") };
	struct cloud_assignment *got;
	size_t                   count;

	set_up(&f, NULL);
	x = f.cloud.access;
	a.account_id = STR("000000000001");
	CHECK(x->ops->set(x, &a, true, &f.err) == RC_NOT_FOUND);
	a.account_id = some_account(&f, SIM_OU_ENTRY);
	for (int i = 0; i < 2; i++)
		CHECK(x->ops->set(x, &a, true, NULL) == RC_OK);
	a.kind = CLOUD_GROUP;
	CHECK(x->ops->set(x, &a, true, NULL) == RC_OK);
	CHECK(x->ops->list(x, a.account_id, &f.arena, &got, &count, NULL) == RC_OK);
	CHECK(count == 2 && got[0].kind == CLOUD_USER && got[1].kind == CLOUD_GROUP &&
	      str_eq(got[0].principal, STR("u-1")));
	for (int i = 0; i < 2; i++)
		CHECK(x->ops->set(x, &a, false, NULL) == RC_OK);
	CHECK(x->ops->list(x, a.account_id, &f.arena, &got, &count, NULL) == RC_OK);
	CHECK(count == 1 && got[0].kind == CLOUD_USER);
	tear_down(&f);
}

/* --- costs --- */

static struct cloud_spend spend(struct fixture *f, struct str account, int64_t from_ms, int64_t to_ms)
{
	struct cloud_spend s;

	CHECK(f->cloud.costs->ops->spend(f->cloud.costs, account, from_ms, to_ms, &s, &f->err) == RC_OK);
	return s;
}

static void set_rate(struct fixture *f, struct str account, int64_t micro)
{
	CHECK(sim_cloud_world(f->sim)->ops->set_rate(sim_cloud_world(f->sim), account, micro, &f->err) == RC_OK);
}

static const struct {
	const char *label;
	int64_t     at_min; /* asked so long after the start */
	int64_t     micro, complete_hours;
} bills[] = {
	{ "nothing is visible before the delay is over", 11 * 60, 0, 1 },
	{ "an hour becomes visible ten hours after its end", 12 * 60, 500000, 2 },
	{ "a minute before the next hour: no more", 12 * 60 + 59, 500000, 2 },
	{ "the new rate counts from its change on", 15 * 60, 1000000 + 2000000, 5 },
	{ "the last half hour", 16 * 60, 1000000 + 2500000, 6 },
	{ "a day later the day is complete", 34 * 60, 1000000 + 2500000, 24 },
};

/* In use from 1:00 to 5:30, half a dollar an hour, from 3:00 on a whole one. */
TEST(costs_are_what_one_computes_by_hand)
{
	struct fixture f;
	struct str     account;

	set_up(&f, &(struct sim_cloud_options){
	                   .available = 1, .cost_delay_min_ms = 10 * HOUR_MS, .cost_delay_max_ms = 10 * HOUR_MS });
	account = some_account(&f, SIM_OU_AVAILABLE);
	set_rate(&f, account, 500000);
	pass(&f, HOUR_MS);
	CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	pass(&f, 2 * HOUR_MS);
	set_rate(&f, account, 1000000);
	pass(&f, 2 * HOUR_MS + HOUR_MS / 2);
	CHECK(move(&f, account, SIM_OU_ACTIVE, SIM_OU_CLEANUP) == RC_OK);
	for (size_t i = 0; i < ARRAY_LEN(bills); i++) {
		struct cloud_spend s;

		CASE(bills[i].label);
		f.clock.test_ms = START + bills[i].at_min * 60000;
		s = spend(&f, account, START, START + DAY_MS);
		CHECK(s.micro_usd == bills[i].micro);
		CHECK(s.complete_until_ms == START + bills[i].complete_hours * HOUR_MS);
	}
	CASE("a part of the time");
	CHECK(spend(&f, account, START + 2 * HOUR_MS, START + 4 * HOUR_MS).micro_usd == 500000 + 1000000);
	CASE("a frozen account goes on costing");
	CHECK(move(&f, account, SIM_OU_CLEANUP, SIM_OU_ACTIVE) == RC_OK &&
	      move(&f, account, SIM_OU_ACTIVE, SIM_OU_FROZEN) == RC_OK);
	f.clock.test_ms += 40 * HOUR_MS;
	CHECK(spend(&f, account, START + 34 * HOUR_MS, START + 44 * HOUR_MS).micro_usd == 10 * 1000000);
	CASE("an unknown account has spent nothing, a window back in time is refused");
	CHECK(spend(&f, STR("000000000001"), START, START + DAY_MS).micro_usd == 0);
	CHECK(f.cloud.costs->ops->spend(f.cloud.costs, account, START + 1, START, &(struct cloud_spend){ 0 }, &f.err) ==
	      RC_INVALID);
	tear_down(&f);
}

/* Day by day and service by service, while figures are still coming in: never another sum than spend says. */
TEST(the_parts_of_a_bill_add_up)
{
	struct fixture    f;
	struct arena      a = { 0 };
	struct cloud_bill bill;
	struct str        account;
	int64_t           from = START / DAY_MS * DAY_MS;
	bool              has_two = false;

	set_up(&f, &(struct sim_cloud_options){ .accounts = 2, .available = 1 });
	account = some_account(&f, SIM_OU_AVAILABLE);
	CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	for (int hour = 0; hour < 96; hour += 5) {
		struct cloud_spend s;
		int64_t            sum = 0, last_day = 0;

		pass(&f, 5 * HOUR_MS);
		s = spend(&f, account, from, from + 5 * DAY_MS);
		CHECK(f.cloud.costs->ops->itemise(f.cloud.costs, account, from, from + 5 * DAY_MS, &a, &bill, &f.err) ==
		      RC_OK);
		for (size_t i = 0; i < bill.count; i++) {
			sum += bill.items[i].micro_usd;
			CHECK(bill.items[i].micro_usd > 0 && bill.items[i].day_ms % DAY_MS == 0);
			CHECK(bill.items[i].day_ms >= last_day && bill.items[i].service.n <= CLOUD_SERVICE_MAX);
			has_two = has_two || (i && !str_eq(bill.items[i].service, bill.items[i - 1].service));
			last_day = bill.items[i].day_ms;
		}
		CHECK(sum == s.micro_usd && bill.spend.micro_usd == sum);
		CHECK(bill.spend.complete_until_ms == s.complete_until_ms);
	}
	CHECK(has_two);
	arena_fini(&a);
	tear_down(&f);
}

/* A lease of so many hours on the account, then a rest; its statement as it is some days later. Adds up by how much the
 * total is wrong. */
static int64_t error_of_lease(struct fixture *f, struct str account, int hours, int64_t rest_ms)
{
	struct statement        st = { .uuid = STR("u"), .account_id = account, .start_ms = f->clock.test_ms };
	struct statement_asking how = { .costs = f->cloud.costs };
	struct arena            a = { 0 };
	int64_t                *days, caused, back_ms;

	CHECK(move(f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	pass(f, hours * HOUR_MS + 1234567);
	CHECK(move(f, account, SIM_OU_ACTIVE, SIM_OU_CLEANUP) == RC_OK);
	CHECK(move(f, account, SIM_OU_CLEANUP, SIM_OU_AVAILABLE) == RC_OK);
	st.end_ms = f->clock.test_ms;
	CHECK(sim_cloud_true_spend(f->sim, account, st.start_ms, st.end_ms, &caused, &f->err) == RC_OK);
	statement_window(st.start_ms, st.end_ms, &st.from_ms, &st.to_ms);
	pass(f, rest_ms);
	back_ms = f->clock.test_ms;
	CHECK(move(f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK); /* the next one's */
	pass(f, 10 * HOUR_MS);
	CHECK(move(f, account, SIM_OU_ACTIVE, SIM_OU_AVAILABLE) == RC_OK);
	f->clock.test_ms = back_ms + 72 * HOUR_MS;
	CHECK(statement_ask(&st, &how, &a, &days, &f->err) == RC_OK && st.complete_until_ms == st.to_ms);
	pass(f, 40 * HOUR_MS);
	arena_fini(&a);
	return st.total - caused;
}

TEST(after_a_rest_a_statement_is_what_its_lease_cost_and_without_one_it_is_not)
{
	struct fixture f;
	struct str     account;
	int64_t        leaked = 0;

	set_up(&f, &(struct sim_cloud_options){ .accounts = 1, .available = 1 });
	account = some_account(&f, SIM_OU_AVAILABLE);
	for (int i = 0; i < 24; i++) {
		CHECK(error_of_lease(&f, account, 5 + 7 * i, 72 * HOUR_MS) == 0);
		leaked += error_of_lease(&f, account, 5 + 7 * i, 0);
	}
	CHECK(leaked > 1000000);
	tear_down(&f);
}

TEST(an_early_bill_is_too_low_and_grows_until_it_is_true)
{
	struct fixture f;
	int            was_low = 0;

	set_up(&f, &(struct sim_cloud_options){ .accounts = 10, .available = 10 });
	for (int i = 0; i < 10; i++)
		CHECK(move(&f, some_account(&f, SIM_OU_AVAILABLE), SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	pass(&f, 3 * DAY_MS);
	for (int i = 0; i < 10; i++) {
		struct str account = some_account(&f, SIM_OU_ACTIVE);
		int64_t    from = START, to = START + 3 * DAY_MS, last = 0, all;

		f.clock.test_ms = to;
		CHECK(sim_cloud_true_spend(f.sim, account, from, to, &all, NULL) == RC_OK);
		CHECK(all == truth(&f, account).rate * 72);
		for (int hour = 0; hour <= 25; hour++, pass(&f, HOUR_MS)) {
			struct cloud_spend s = spend(&f, account, from, to);

			CHECK(s.micro_usd >= last && s.micro_usd <= all);
			CHECK((s.micro_usd == all) == (s.complete_until_ms == to));
			CHECK(hour >= 8 || s.micro_usd < all); /* the last hour's delay is eight hours at least */
			was_low += s.micro_usd < all;
			last = s.micro_usd;
		}
		CHECK(last == all); /* and a day at most */
		f.clock.test_ms = to;
		CHECK(move(&f, account, SIM_OU_ACTIVE, SIM_OU_EXIT) == RC_OK);
	}
	CHECK(was_low > 80 && was_low < 260); /* delays differ */
	tear_down(&f);
}

/* --- the cleaner --- */

static struct str start_clean(struct fixture *f, struct str account, const char *key)
{
	struct str run;

	CHECK(f->cloud.cleaner->ops->start(f->cloud.cleaner, account, str_from(key), &f->arena, &run, &f->err) ==
	      RC_OK);
	return run;
}

static enum cloud_run_state run_state(struct fixture *f, struct str run)
{
	struct cloud_run r;

	CHECK(f->cloud.cleaner->ops->check(f->cloud.cleaner, run, &f->arena, &r, &f->err) == RC_OK);
	CHECK((r.state == CLOUD_FAILED) == (r.text.n > 0));
	return r.state;
}

TEST(a_cleaner_takes_its_time_and_the_same_key_is_the_same_run)
{
	struct fixture f;
	struct str     account, other, run;

	set_up(&f, NULL);
	account = some_account(&f, SIM_OU_AVAILABLE);
	other = some_account(&f, SIM_OU_ENTRY);
	CHECK(truth(&f, account).dirty == 0);
	CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	CHECK(truth(&f, account).dirty > 0);
	CHECK(move(&f, account, SIM_OU_ACTIVE, SIM_OU_CLEANUP) == RC_OK);
	run = start_clean(&f, account, "clean/1");
	CHECK(str_eq(run, start_clean(&f, account, "clean/1")));
	CHECK(!str_eq(run, start_clean(&f, account, "clean/2")));
	CHECK(f.cloud.cleaner->ops->start(f.cloud.cleaner, other, STR("clean/1"), &f.arena, &run, &f.err) ==
	      RC_CONFLICT);
	pass(&f, 5 * 60000 - 1);
	CHECK(run_state(&f, run) == CLOUD_RUNNING && truth(&f, account).dirty > 0);
	pass(&f, 25 * 60000 + 1);
	CHECK(run_state(&f, run) == CLOUD_SUCCEEDED && truth(&f, account).dirty == 0);
	CHECK(move(&f, account, SIM_OU_CLEANUP, SIM_OU_ACTIVE) == RC_OK && truth(&f, account).dirty > 0);
	CHECK(f.cloud.cleaner->ops->check(f.cloud.cleaner, STR("clean-0"), &f.arena, &(struct cloud_run){ 0 }, NULL) ==
	      RC_NOT_FOUND);
	tear_down(&f);
}

TEST(a_cleaner_can_fail_and_can_lie)
{
	struct fixture f;
	struct str     account, run;

	set_up(&f, NULL);
	account = some_account(&f, SIM_OU_ENTRY);
	CHECK(truth(&f, account).dirty == 3);
	set_rule(&f, (struct world_rule){ WORLD_CLEAN_FAILS, WORLD_ANY_CALL, 1000, 1, 0, 0 });
	run = start_clean(&f, account, "fails");
	pass(&f, HOUR_MS);
	CHECK(run_state(&f, run) == CLOUD_FAILED && truth(&f, account).dirty == 3);
	set_rule(&f, (struct world_rule){ WORLD_CLEAN_LIES, WORLD_ANY_CALL, 1000, 1, 0, 0 });
	run = start_clean(&f, account, "lies");
	pass(&f, HOUR_MS);
	CHECK(run_state(&f, run) == CLOUD_SUCCEEDED && truth(&f, account).dirty == 3);
	run = start_clean(&f, account, "works"); /* both switches are used up */
	pass(&f, HOUR_MS);
	CHECK(run_state(&f, run) == CLOUD_SUCCEEDED && truth(&f, account).dirty == 0);
	tear_down(&f);
}

/* --- tenants' resources --- */

static const struct instance_spec acme = { .tenant = { "tenant-acme", 11 },
	                                   .instance = { "inst-1", 6 },
	                                   .wordpress_version = { "6.5", 3 },
	                                   .desired_count = 3 };

static struct instance_driver *make_instance(struct fixture *f)
{
	struct instance_driver *d = sim_cloud_driver(f->sim);
	struct str              outputs;

	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		CHECK(d->ops->create(d, &acme, (enum instance_resource)kind, &f->arena, &outputs, NULL) == RC_OK);
	CHECK(d->ops->configure(d, &acme, NULL) == RC_OK);
	return d;
}

static struct sim_tenant_truth tenant_truth(struct fixture *f)
{
	struct sim_tenant_truth t;

	CHECK(sim_cloud_inspect_tenant(f->sim, acme.tenant, &f->arena, &t, NULL) == RC_OK);
	return t;
}

TEST(a_resource_is_made_once_per_instance_and_deleted_safely)
{
	struct instance_spec    other = acme;
	struct fixture          f;
	struct instance_driver *d;
	struct str              first, second;
	bool                    exists;

	set_up(&f, NULL);
	d = sim_cloud_driver(f.sim);
	other.instance = STR("inst-2");
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++) {
		enum instance_resource k = (enum instance_resource)kind;

		CASE(instance_resource_names[kind]);
		CHECK(d->ops->create(d, &acme, k, &f.arena, &first, NULL) == RC_OK);
		CHECK(d->ops->create(d, &acme, k, &f.arena, &second, NULL) == RC_OK);
		CHECK(str_eq(first, second) && text_has(first, "acme"));
		CHECK(d->ops->create(d, &other, k, &f.arena, &second, NULL) == RC_CONFLICT);
		CHECK(d->ops->check(d, acme.tenant, k, &f.arena, &exists, &second, NULL) == RC_OK);
		CHECK(exists && str_eq(first, second));
		CHECK(d->ops->check(d, STR("other"), k, &f.arena, &exists, &second, NULL) == RC_OK && !exists);
	}
	CHECK(tenant_truth(&f).resources == INSTANCE_RESOURCE_COUNT && tenant_truth(&f).owners == 1);
	for (int i = 0; i < 2; i++)
		CHECK(d->ops->delete (d, acme.tenant, INSTANCE_SECRET, NULL) == RC_OK);
	CHECK(tenant_truth(&f).resources == INSTANCE_RESOURCE_COUNT - 1);
	tear_down(&f);
}

TEST(the_tasks_of_an_instance_follow_its_size)
{
	struct fixture            f;
	struct instance_driver   *d;
	struct instance_tasks     tasks;
	struct instance_log_line *lines;
	size_t                    count;

	set_up(&f, NULL);
	d = make_instance(&f);
	CHECK(d->ops->tasks(d, acme.tenant, &f.arena, &tasks, NULL) == RC_OK && tasks.running == 3 && tasks.count == 3);
	CHECK(d->ops->scale(d, acme.tenant, 0, NULL) == RC_OK &&
	      d->ops->set_route(d, acme.tenant, ROUTE_SUSPENDED, NULL) == RC_OK);
	CHECK(d->ops->tasks(d, acme.tenant, &f.arena, &tasks, NULL) == RC_OK && tasks.running == 0 &&
	      tasks.desired == 0);
	CHECK(tenant_truth(&f).route == ROUTE_SUSPENDED && tenant_truth(&f).is_configured);
	CHECK(d->ops->scale(d, acme.tenant, 4, NULL) == RC_OK);
	CHECK(d->ops->logs(d, acme.tenant, 0, INT64_MAX, 2, &f.arena, &lines, &count, NULL) == RC_OK && count == 2);
	CHECK(d->ops->scale(d, STR("other"), 4, NULL) == RC_NOT_FOUND);
	tear_down(&f);
}

TEST(an_archive_is_made_once_and_comes_back)
{
	struct fixture          f;
	struct instance_driver *d;
	struct str              outputs, user, password;

	set_up(&f, NULL);
	d = make_instance(&f);
	for (int i = 0; i < 2; i++)
		CHECK(d->ops->archive(d, acme.tenant, STR("final"), &f.arena, &outputs, NULL) == RC_OK);
	CHECK(tenant_truth(&f).archives == 1 && text_has(outputs, "bytes"));
	CHECK(d->ops->restore(d, acme.tenant, STR("final"), NULL) == RC_OK);
	CHECK(d->ops->restore(d, acme.tenant, STR("none"), NULL) == RC_NOT_FOUND);
	CHECK(d->ops->get_secret(d, acme.tenant, &f.arena, &user, &password, NULL) == RC_OK && password.n > 8);
	CHECK(!str_has(outputs, password));
	CHECK(d->ops->delete (d, acme.tenant, INSTANCE_DATABASE, NULL) == RC_OK);
	CHECK(d->ops->archive(d, acme.tenant, STR("too-late"), &f.arena, &outputs, NULL) == RC_NOT_FOUND);
	for (int i = 0; i < 2; i++)
		CHECK(d->ops->drop_archive(d, acme.tenant, STR("final"), NULL) == RC_OK);
	CHECK(tenant_truth(&f).archives == 0);
	tear_down(&f);
}

TEST(a_rule_can_name_a_resource)
{
	struct fixture          f;
	struct instance_driver *d;
	struct str              outputs;

	set_up(&f, NULL);
	d = sim_cloud_driver(f.sim);
	set_rule(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_CREATE_RESOURCE, 1000, 1, 0, 0, 1 + INSTANCE_SECRET });
	CHECK(d->ops->create(d, &acme, INSTANCE_STORAGE, &f.arena, &outputs, NULL) == RC_OK);
	CHECK(d->ops->create(d, &acme, INSTANCE_SECRET, &f.arena, &outputs, NULL) == RC_UNAVAILABLE);
	CHECK(d->ops->create(d, &acme, INSTANCE_SECRET, &f.arena, &outputs, NULL) == RC_OK);
	tear_down(&f);
}

/* --- faults --- */

static const struct {
	const char      *label;
	enum world_fault fault;
	enum rc          rc;
	bool             happens;
} disturbances[] = {
	{ "an outage", WORLD_OUTAGE, RC_UNAVAILABLE, false },
	{ "a throttle", WORLD_THROTTLE, RC_LIMITED, false },
	{ "a time-out before the effect", WORLD_TIMEOUT_BEFORE, RC_TIMEOUT, false },
	{ "timed out but it happened", WORLD_TIMEOUT_AFTER, RC_TIMEOUT, true },
	{ "latency", WORLD_LATENCY, RC_OK, true },
};

TEST(every_switch_disturbs_as_it_says)
{
	for (size_t i = 0; i < ARRAY_LEN(disturbances); i++) {
		struct fixture      f;
		struct str          account, where;
		struct world_counts counts;

		CASE(disturbances[i].label);
		set_up(&f, NULL);
		account = some_account(&f, SIM_OU_AVAILABLE);
		set_rule(&f, (struct world_rule){ disturbances[i].fault, WORLD_MOVE, 1000, 2, 0, 250 });
		CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == disturbances[i].rc);
		CHECK(truth(&f, account).ou == (disturbances[i].happens ? SIM_OU_ACTIVE : SIM_OU_AVAILABLE));
		CHECK(f.cloud.organisation->ops->find_parent(f.cloud.organisation, account, &f.arena, &where, NULL) ==
		      RC_OK);
		counts = sim_faults_counts(sim_cloud_faults(f.sim));
		CHECK(counts.faults[disturbances[i].fault] == 1 && counts.calls[WORLD_MOVE] == 1 &&
		      counts.calls[WORLD_FIND_PARENT] == 1);
		CHECK(counts.latency_ms == (disturbances[i].fault == WORLD_LATENCY ? 250 : 0));
		tear_down(&f);
	}
}

TEST(a_switch_ends_by_count_and_by_time_and_has_its_likelihood)
{
	struct fixture f;
	struct str     account, where;
	int            failed = 0;

	set_up(&f, NULL);
	account = some_account(&f, SIM_OU_ENTRY);
	set_rule(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ANY_CALL, 1000, 3, 0, 0 });
	for (int i = 0; i < 10; i++)
		failed += f.cloud.organisation->ops->find_parent(f.cloud.organisation, account, &f.arena, &where,
		                                                 NULL) != RC_OK;
	CHECK(failed == 3);
	CHECK(sim_faults_get(sim_cloud_faults(f.sim)).count == 0);
	set_rule(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ANY_CALL, 1000, 0, START + 5000, 0 });
	pass(&f, 4999);
	CHECK(f.cloud.organisation->ops->find_parent(f.cloud.organisation, account, &f.arena, &where, NULL) ==
	      RC_UNAVAILABLE);
	pass(&f, 1);
	CHECK(f.cloud.organisation->ops->find_parent(f.cloud.organisation, account, &f.arena, &where, NULL) == RC_OK);
	set_rule(&f, (struct world_rule){ WORLD_THROTTLE, WORLD_ANY_CALL, 250, 0, 0, 0 });
	failed = 0;
	for (int i = 0; i < 1000; i++)
		failed += f.cloud.organisation->ops->find_parent(f.cloud.organisation, account, &f.arena, &where,
		                                                 NULL) == RC_LIMITED;
	CHECK(failed > 200 && failed < 300);
	tear_down(&f);
}

TEST(latency_takes_its_time_where_time_is_real)
{
	struct clock       clock = clock_test(START);
	uint64_t           chance = 1;
	struct sim_faults *f = sim_faults_new(&(struct sim_faults_options){ &clock, draw, &chance, true });
	struct world_rules rules = { .rules = { { WORLD_LATENCY, WORLD_MOVE, 1000, 1, 0, 20 } }, .count = 1 };
	int64_t            before = mono_now().ms;

	sim_faults_set(f, &rules);
	CHECK(sim_faults_before(f, WORLD_MOVE, NULL) == RC_OK);
	CHECK(mono_now().ms - before >= 19); /* both ends are cut to whole milliseconds */
	sim_faults_free(f);
}

struct crowd {
	struct sim_faults *faults;
	int                hits[4];
	int                next;
	pthread_mutex_t    lock;
};

static void *hit_often(void *arg)
{
	struct crowd *c = arg;
	int           hits = 0;

	for (int i = 0; i < 200; i++)
		hits += sim_faults_before(c->faults, WORLD_MOVE, NULL) != RC_OK;
	pthread_mutex_lock(&c->lock);
	c->hits[c->next++] = hits;
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

TEST(a_count_holds_on_many_threads)
{
	struct clock       clock = clock_test(START);
	uint64_t           chance = 1;
	struct crowd       c = { .lock = PTHREAD_MUTEX_INITIALIZER };
	struct world_rules rules = { .rules = { { WORLD_OUTAGE, WORLD_MOVE, 500, 100, 0, 0 } }, .count = 1 };
	pthread_t          threads[4];

	c.faults = sim_faults_new(&(struct sim_faults_options){ &clock, draw, &chance, false });
	sim_faults_set(c.faults, &rules);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, hit_often, &c) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	CHECK(c.hits[0] + c.hits[1] + c.hits[2] + c.hits[3] == 100);
	CHECK(sim_faults_counts(c.faults).calls[WORLD_MOVE] == 800);
	sim_faults_free(c.faults);
}

/* --- events --- */

/* All that are due, acknowledged. */
static size_t take(struct fixture *f, struct sim_due_event **ret)
{
	size_t count;

	CHECK(sim_cloud_take_events(f->sim, SIM_EVENTS_MAX, &f->arena, ret, &count, &f->err) == RC_OK);
	CHECK(sim_cloud_drop_events(f->sim, *ret, count, &f->err) == RC_OK);
	return count;
}

static const char *text_at(json_t *object, const char *a, const char *b, const char *c)
{
	json_t *at = json_object_get(object, a);

	at = b ? json_object_get(at, b) : at;
	at = c ? json_object_get(at, c) : at;
	return json_string_value(at) ? json_string_value(at) : "";
}

TEST(a_move_is_told_as_cloudtrail_tells_it)
{
	struct fixture        f;
	struct str            account;
	struct sim_due_event *events;
	json_t               *event = NULL;
	size_t                count;

	set_up(&f, NULL);
	account = some_account(&f, SIM_OU_AVAILABLE);
	CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	pass(&f, 1999);
	CHECK(take(&f, &events) == 0);
	pass(&f, 1);
	CHECK(sim_cloud_take_events(f.sim, SIM_EVENTS_MAX, &f.arena, &events, &count, &f.err) == RC_OK && count == 1);
	CHECK(take(&f, &events) == 1); /* came again: it was not acknowledged */
	CHECK(json_parse(events[0].body, &event, &f.err) == RC_OK);
	CHECK(json_object_size(event) == 9);
	CHECK(strcmp(text_at(event, "version", NULL, NULL), "0") == 0);
	CHECK(strcmp(text_at(event, "detail-type", NULL, NULL), "AWS API Call via CloudTrail") == 0);
	CHECK(strcmp(text_at(event, "source", NULL, NULL), "aws.organizations") == 0);
	CHECK(strcmp(text_at(event, "account", NULL, NULL), "999988887777") == 0);
	CHECK(strcmp(text_at(event, "time", NULL, NULL), "2026-01-01T00:00:00Z") == 0);
	CHECK(strcmp(text_at(event, "detail", "eventSource", NULL), "organizations.amazonaws.com") == 0);
	CHECK(strcmp(text_at(event, "detail", "eventName", NULL), "MoveAccount") == 0);
	CHECK(strcmp(text_at(event, "detail", "userIdentity", "accountId"), "999988886666") == 0);
	CHECK(str_eq(str_from(text_at(event, "detail", "requestParameters", "accountId")), account));
	CHECK(str_eq(str_from(text_at(event, "detail", "requestParameters", "sourceParentId")),
	             ou(&f, SIM_OU_AVAILABLE)));
	CHECK(str_eq(str_from(text_at(event, "detail", "requestParameters", "destinationParentId")),
	             ou(&f, SIM_OU_ACTIVE)));
	CHECK(strlen(text_at(event, "detail", "eventID", NULL)) == 36 &&
	      strlen(text_at(event, "id", NULL, NULL)) == 36);
	CHECK(!json_object_get(json_object_get(event, "detail"), "errorCode"));
	json_decref(event);
	tear_down(&f);
}

TEST(a_refused_move_is_told_with_its_error)
{
	struct fixture        f;
	struct str            account;
	struct sim_due_event *events;
	json_t               *event = NULL;

	set_up(&f, NULL);
	account = some_account(&f, SIM_OU_AVAILABLE);
	CHECK(move(&f, account, SIM_OU_FROZEN, SIM_OU_ACTIVE) == RC_CONFLICT);
	pass(&f, 2000);
	CHECK(take(&f, &events) == 1);
	CHECK(json_parse(events[0].body, &event, &f.err) == RC_OK);
	CHECK(strcmp(text_at(event, "detail", "errorCode", NULL), "SourceParentNotFoundException") == 0);
	json_decref(event);
	tear_down(&f);
}

static const struct {
	const char      *label;
	enum world_fault fault;
	size_t           due_at_once, copies;
	bool             is_in_order;
} deliveries[] = {
	{ "nothing goes wrong", WORLD_FAULT_COUNT, 60, 1, true },
	{ "duplicates", WORLD_DUPLICATE_EVENTS, 60, 2, false },
	{ "out of order", WORLD_REORDER_EVENTS, 0, 1, false },
	{ "lost, then sent again", WORLD_LOSE_EVENTS, 0, 1, true },
};

/* One account goes back and forth sixty times, disturbed by time-outs before and after the effect. */
static void wander(struct fixture *f, struct str account)
{
	struct world_rules rules = sim_faults_get(sim_cloud_faults(f->sim));

	rules.rules[rules.count++] = (struct world_rule){ WORLD_TIMEOUT_AFTER, WORLD_MOVE, 200, 0, 0, 0 };
	rules.rules[rules.count++] = (struct world_rule){ WORLD_TIMEOUT_BEFORE, WORLD_MOVE, 200, 0, 0, 0 };
	sim_faults_set(sim_cloud_faults(f->sim), &rules);
	while (truth(f, account).moves < 60) {
		enum sim_ou_name from = truth(f, account).ou;

		rc_ignore(move(f, account, from,
		               from == SIM_OU_ACTIVE ? SIM_OU_AVAILABLE : SIM_OU_ACTIVE)); /* the truth tells */
	}
}

/* The bodies of all events that are due, in the order in which they came. */
static size_t gather(struct fixture *f, struct str *bodies, size_t room)
{
	struct sim_due_event *events;
	size_t                count = 0, got;

	while ((got = take(f, &events)))
		for (size_t i = 0; i < got; i++) {
			CHECK(count < room);
			bodies[count++] = events[i].body;
		}
	return count;
}

/* How many different events, and how often one came that left from where the one before it left. */
static size_t count_ids(struct fixture *f, const struct str *bodies, size_t count, size_t *ret_swapped)
{
	struct str seen[200], last = STR("");
	size_t     ids = 0;

	*ret_swapped = 0;
	for (size_t i = 0; i < count; i++) {
		json_t    *event = NULL;
		struct str id, from;
		size_t     n = 0;

		CHECK(json_parse(bodies[i], &event, &f->err) == RC_OK);
		id = str_dup(&f->arena, str_from(text_at(event, "id", NULL, NULL)));
		from = str_dup(&f->arena, str_from(text_at(event, "detail", "requestParameters", "sourceParentId")));
		json_decref(event);
		*ret_swapped += str_eq(from, last);
		last = from;
		while (n < ids && !str_eq(seen[n], id))
			n++;
		seen[n] = id;
		ids += n == ids;
	}
	return ids;
}

TEST(there_is_one_event_for_each_effect_whatever_its_way)
{
	for (size_t i = 0; i < ARRAY_LEN(deliveries); i++) {
		struct fixture f;
		struct str     bodies[200];
		size_t         early, count, swapped;

		CASE(deliveries[i].label);
		set_up(&f, NULL);
		if (deliveries[i].fault != WORLD_FAULT_COUNT)
			set_rule(&f, (struct world_rule){ deliveries[i].fault, WORLD_ANY_CALL, 1000, 0, 0, 0 });
		wander(&f, some_account(&f, SIM_OU_AVAILABLE));
		pass(&f, 2000);
		early = gather(&f, bodies, ARRAY_LEN(bodies));
		CHECK(deliveries[i].due_at_once ? early >= 60 : early < 5);
		pass(&f, HOUR_MS);
		count = early + gather(&f, bodies + early, ARRAY_LEN(bodies) - early);
		CHECK(count == 60 * deliveries[i].copies);
		CHECK(count_ids(&f, bodies, count, &swapped) == 60);
		CHECK((swapped == 0) == deliveries[i].is_in_order);
		tear_down(&f);
	}
}

/* --- the world from above --- */

static json_t *show(struct fixture *f)
{
	struct buf b;
	json_t    *world = NULL;

	buf_init(&b, 1 << 20);
	CHECK(sim_cloud_world(f->sim)->ops->show(sim_cloud_world(f->sim), &b, &f->err) == RC_OK);
	CHECK(json_parse(buf_str(&b), &world, &f->err) == RC_OK);
	buf_fini(&b);
	return world;
}

TEST(outsiders_move_and_add_undisturbed_and_it_shows)
{
	struct fixture        f;
	struct world         *w;
	struct str            account;
	struct sim_due_event *events;
	json_t               *world, *event = NULL;

	set_up(&f, NULL);
	w = sim_cloud_world(f.sim);
	account = some_account(&f, SIM_OU_ENTRY);
	set_rule(&f, (struct world_rule){ WORLD_OUTAGE, WORLD_ANY_CALL, 1000, 0, 0, 0 });
	CHECK(w->ops->add_accounts(w, 100, &f.err) == RC_OK);
	CHECK(w->ops->add_accounts(w, 0, &f.err) == RC_INVALID);
	CHECK(w->ops->move(w, account, STR("Entry"), STR("Quarantine"), &f.err) == RC_OK);
	err_clear(&f.err);
	CHECK(w->ops->move(w, account, STR("Entry"), STR("Exit"), &f.err) == RC_CONFLICT);
	pass(&f, 2000);
	CHECK(take(&f, &events) == 2);
	CHECK(json_parse(events[0].body, &event, &f.err) == RC_OK);
	CHECK(strstr(text_at(event, "detail", "userIdentity", "arn"), "outsider"));
	json_decref(event);
	world = show(&f);
	for (size_t i = 0; i < json_array_size(json_object_get(world, "ous")); i++) {
		json_t    *o = json_array_get(json_object_get(world, "ous"), i);
		json_int_t count = json_integer_value(json_object_get(o, "count"));

		CASE(text_at(o, "name", NULL, NULL));
		CHECK(count == (i == SIM_OU_AVAILABLE - 1    ? 2
		                : i == SIM_OU_ENTRY - 1      ? 109
		                : i == SIM_OU_QUARANTINE - 1 ? 1
		                                             : 0));
		CHECK((size_t)count == json_array_size(json_object_get(o, "accounts")));
	}
	CHECK(json_array_size(json_object_get(world, "faults")) == 1);
	json_decref(world);
	tear_down(&f);
}

/* What a short life leaves behind, as text. */
static char *live(uint64_t seed)
{
	struct fixture f = { .clock = clock_test(START), .chance = seed, .options = { .available = 6 } };
	struct str     bodies[200];
	struct buf     b;
	size_t         count;

	f.store = store_memory_open(sim_types, sim_type_count, &f.clock);
	open_cloud(&f);
	set_rule(&f, (struct world_rule){ WORLD_DUPLICATE_EVENTS, WORLD_ANY_CALL, 500, 0, 0, 0 });
	wander(&f, some_account(&f, SIM_OU_AVAILABLE));
	buf_init(&b, 1 << 20);
	CHECK(sim_cloud_world(f.sim)->ops->show(sim_cloud_world(f.sim), &b, &f.err) == RC_OK);
	pass(&f, HOUR_MS);
	count = gather(&f, bodies, ARRAY_LEN(bodies));
	for (size_t i = 0; i < count; i++)
		buf_add_str(&b, bodies[i]);
	CHECK(!b.is_full);
	tear_down(&f);
	return b.p;
}

TEST(the_same_seed_is_the_same_world)
{
	char *first = live(1), *again = live(1), *other = live(2);

	CHECK(strcmp(first, again) == 0);
	CHECK(strcmp(first, other) != 0);
	free(first);
	free(again);
	free(other);
}

TEST(a_world_in_a_file_survives_its_process)
{
	struct fixture        f = { .clock = clock_test(START),
		                    .chance = 1,
		                    .options = { .available = 2 },
		                    .folder = "/tmp/leasehold-test-XXXXXX" };
	struct str            account, run, active;
	struct sim_due_event *events;
	json_t               *before, *after;

	CHECK(mkdtemp(f.folder) != NULL);
	open_file(&f);
	account = some_account(&f, SIM_OU_AVAILABLE);
	active = str_dup(&f.arena, ou(&f, SIM_OU_ACTIVE));
	CHECK(move(&f, account, SIM_OU_AVAILABLE, SIM_OU_ACTIVE) == RC_OK);
	run = start_clean(&f, some_account(&f, SIM_OU_ENTRY), "k");
	before = show(&f);
	sim_cloud_close(f.sim);
	store_close(f.store);

	f.chance = 2; /* another process, another chance */
	pass(&f, HOUR_MS);
	open_file(&f);
	after = show(&f);
	CHECK(str_eq(ou(&f, SIM_OU_ACTIVE), active));
	CHECK(truth(&f, account).ou == SIM_OU_ACTIVE && truth(&f, account).moves == 1);
	CHECK(json_array_size(json_object_get(before, "ous")) == json_array_size(json_object_get(after, "ous")));
	CHECK(run_state(&f, run) == CLOUD_SUCCEEDED);
	CHECK(spend(&f, account, START, START + HOUR_MS).micro_usd == 0);
	pass(&f, 2 * DAY_MS);
	CHECK(spend(&f, account, START, START + HOUR_MS).micro_usd == truth(&f, account).rate);
	CHECK(take(&f, &events) == 1 && str_has(events[0].body, account));
	CHECK(take(&f, &events) == 0);
	json_decref(before);
	json_decref(after);
	tear_down(&f);
}

TEST(options_that_make_no_sense_are_refused)
{
	struct fixture           f;
	struct sim_cloud        *other = NULL;
	struct sim_cloud_options bad;

	set_up(&f, NULL);
	clear_rules(&f);
	bad = f.options;
	bad.available = 100;
	CHECK(sim_cloud_open(&bad, &other, &f.err) == RC_INVALID && !other);
	bad = f.options;
	bad.management_account = STR("12");
	CHECK(sim_cloud_open(&bad, &other, NULL) == RC_INVALID);
	bad = f.options;
	bad.clean_min_ms = 10;
	bad.clean_max_ms = 5;
	CHECK(sim_cloud_open(&bad, &other, NULL) == RC_INVALID);
	tear_down(&f);
}

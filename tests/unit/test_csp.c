/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/arena.h"
#include "truth/test_clock.h"
#include "base/log.h"
#include "domain/ports/csp.h"
#include "fake_server.h"
#include "providers/csp/accounts.h"
#include "providers/csp/csp_breaker.h"
#include "providers/csp/http.h"
#include "providers/sim/cloud.h"
#include "providers/sim/faults.h"
#include "providers/sim/records.h"
#include "store/memory/memory.h"
#include "store/store.h"

/* What the vendor answers next, and what it was asked last. */
struct vendor {
	struct fake_reply reply;
	char              seen[256];
	bool              has_token;
};

static struct fake_reply answer(const struct fake_request *req, size_t number, void *arg)
{
	struct vendor *v = arg;

	(void)number;
	(void)snprintf(v->seen, sizeof(v->seen), "%s %s", req->method, req->target); /* a cut one fails the check */
	v->has_token = fake_request_has(req, "Authorization: Token t0ken");
	return v->reply;
}

struct fixture {
	struct vendor       vendor;
	struct fake_server *server;
	struct csp         *csp;
	struct arena        arena;
	struct err          err;
	struct csp_account *accounts;
	size_t              count;
};

static void set_up(struct fixture *f, const char *path)
{
	*f = (struct fixture){ .count = 0 };
	log_setup(LOG_ERROR, LOG_TEXT);
	f->server = fake_server_open(answer, &f->vendor);
	f->csp = csp_http_open(&(struct csp_http_options){ .base_url = fake_server_url(f->server, path),
	                                                   .token = "t0ken",
	                                                   .connect_timeout_ms = 2000,
	                                                   .total_timeout_ms = 2000 });
}

static void tear_down(struct fixture *f)
{
	csp_close(f->csp);
	fake_server_close(f->server);
	arena_fini(&f->arena);
}

TEST(a_listing_keeps_active_sandboxes_with_all_their_fields)
{
	static const char body[] =
	        "{\"results\": ["
	        "{\"account_type\": \"sandbox\", \"state\": \"active\", \"id\": \"identity/accounts/u-1\","
	        " \"csp_id\": 2016001, \"name\": \"One\", \"created_at\": \"2025-01-02T03:04:05.678Z\","
	        " \"sfdc_account_id\": \"sf-1\", \"more\": {\"deep\": []}},"
	        "{\"account_type\": \"trial\", \"state\": \"active\", \"id\": \"x\"},"
	        "{\"account_type\": \"sandbox\", \"state\": \"disabled\", \"id\": \"y\"},"
	        "{\"account_type\": \"sandbox\", \"state\": \"active\", \"id\": 77, \"created_at\": \"yesterday\"},"
	        "{\"account_type\": \"sandbox\", \"state\": \"active\", \"id\": \"a/b\", \"csp_id\": \"s-3\", "
	        "\"name\": null}"
	        "], \"total\": 5}";
	struct fixture f;

	set_up(&f, "/v2/");
	f.vendor.reply = (struct fake_reply){ .status = 200, .body = body };
	CHECK(csp_list(f.csp, &f.arena, &f.accounts, &f.count, &f.err) == RC_OK);
	CHECK(strcmp(f.vendor.seen, "GET /v2/current_user/accounts") == 0);
	CHECK(f.vendor.has_token);
	CHECK(f.count == 3);
	CHECK(str_eq(f.accounts[0].sandbox_id, STR("2016001")));
	CHECK(str_eq(f.accounts[0].external_id, STR("identity/accounts/u-1")));
	CHECK(str_eq(f.accounts[0].name, STR("One")));
	CHECK(str_eq(f.accounts[0].sfdc_account_id, STR("sf-1")));
	CHECK(f.accounts[0].created_at == 1735787045);
	CHECK(str_eq(f.accounts[1].sandbox_id, STR("77")));
	CHECK(str_eq(f.accounts[1].name, STR("sandbox-77")));
	CHECK(str_eq(f.accounts[1].sfdc_account_id, STR("")));
	CHECK(f.accounts[1].created_at == 0);
	CHECK(str_eq(f.accounts[2].sandbox_id, STR("s-3")));
	CHECK(str_eq(f.accounts[2].name, STR("sandbox-a/b")));
	tear_down(&f);
}

TEST(an_account_that_makes_no_sense_is_skipped_alone)
{
#define SANDBOX(rest) "{\"account_type\": \"sandbox\", \"state\": \"active\"" rest "}"
	static const struct {
		const char *label, *account;
		size_t      malformed;
	} cases[] = {
		{ "not an object", "17", 1 },
		{ "no id", SANDBOX(", \"csp_id\": 1"), 1 },
		{ "an id that is a list", SANDBOX(", \"id\": []"), 1 },
		{ "an id that ends with a slash", SANDBOX(", \"id\": \"a/\", \"csp_id\": 1"), 1 },
		{ "an id that is no sandbox id, without csp_id", SANDBOX(", \"id\": \"a b\""), 1 },
		{ "a csp_id with a blank", SANDBOX(", \"id\": \"a\", \"csp_id\": \"1 2\""), 1 },
		{ "a csp_id that is a fraction", SANDBOX(", \"id\": \"a\", \"csp_id\": 1.5"), 1 },
		{ "a csp_id that is true", SANDBOX(", \"id\": \"a\", \"csp_id\": true"), 1 },
		{ "a name that is a list", SANDBOX(", \"id\": \"a\", \"name\": [1]"), 1 },
		{ "another type, otherwise senseless", "{\"account_type\": \"trial\", \"id\": []}", 0 },
		{ "a type that is a number", "{\"account_type\": 1, \"id\": []}", 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena       a = { 0 };
		struct err         e = { 0 };
		struct csp_listing l;
		struct str         json = str_format(&a, "{\"results\": [%s, %s]}", cases[i].account,
		                                     SANDBOX(", \"id\": \"good\""));

		CASE(cases[i].label);
		CHECK(csp_read_accounts(json, &a, &l, &e) == RC_OK);
		CHECK(l.count == 1 && str_eq(l.accounts[0].sandbox_id, STR("good")));
		CHECK(l.malformed == cases[i].malformed);
		CHECK(str_starts_with(l.first_problem, STR("results[0]: ")) == (cases[i].malformed == 1));
		arena_fini(&a);
	}
}

TEST(sandbox_ids_of_129_characters_are_skipped)
{
	for (int length = 128; length <= 129; length++) {
		struct arena       a = { 0 };
		struct err         e = { 0 };
		struct csp_listing l;
		struct str json = str_format(&a, "{\"results\": [" SANDBOX(", \"id\": \"%0*d\"") "]}", length, 7);

		CHECK(csp_read_accounts(json, &a, &l, &e) == RC_OK);
		CHECK(l.count == (length == 128 ? 1 : 0));
		arena_fini(&a);
	}
}

TEST(of_two_accounts_with_one_sandbox_id_the_first_counts)
{
	struct arena       a = { 0 };
	struct err         e = { 0 };
	struct csp_listing l;
	struct str         json = STR("{\"results\": [" SANDBOX(", \"id\": \"first\", \"csp_id\": 5") "," SANDBOX(
	                ", \"id\": \"second\", \"csp_id\": \"5\"") "," SANDBOX(", \"id\": \"third\", \"csp_id\": 6") "]}");

	CHECK(csp_read_accounts(json, &a, &l, &e) == RC_OK);
	CHECK(l.count == 2 && l.duplicates == 1 && l.malformed == 0);
	CHECK(str_eq(l.accounts[0].external_id, STR("first")));
	CHECK(str_eq(l.accounts[1].external_id, STR("third")));
	arena_fini(&a);
}

/* It is lent and deleted by its external id: under two sandbox ids it would be lent to two tracks. */
TEST(an_account_that_is_listed_under_two_sandbox_ids_counts_once)
{
	struct arena       a = { 0 };
	struct err         e = { 0 };
	struct csp_listing l;
	struct str         json = STR("{\"results\": [" SANDBOX(", \"id\": \"A\", \"csp_id\": \"x\"") "," SANDBOX(
	                ", \"id\": \"A\", \"csp_id\": \"y\"") "," SANDBOX(", \"id\": \"B\", \"csp_id\": \"y\"") "]}");

	CHECK(csp_read_accounts(json, &a, &l, &e) == RC_OK);
	CHECK(l.count == 2 && l.duplicates == 1 && l.malformed == 0);
	CHECK(str_eq(l.accounts[0].external_id, STR("A")) && str_eq(l.accounts[0].sandbox_id, STR("x")));
	CHECK(str_eq(l.accounts[1].external_id, STR("B")) && str_eq(l.accounts[1].sandbox_id, STR("y")));
	arena_fini(&a);
}

TEST(a_document_that_makes_no_sense_is_corrupt)
{
	static const char *const documents[] = { "",
		                                 "<html>",
		                                 "[]",
		                                 "{}",
		                                 "{\"results\": {}}",
		                                 "{\"results\": null}",
		                                 "{\"results\": [}",
		                                 "{\"results\": [], \"results\": []}" };
	struct fixture           f;

	set_up(&f, "");
	for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
		CASE(documents[i]);
		err_clear(&f.err);
		f.vendor.reply = (struct fake_reply){ .status = 200, .body = documents[i] };
		CHECK(csp_list(f.csp, &f.arena, &f.accounts, &f.count, &f.err) == RC_CORRUPT);
		CHECK(f.err.rc == RC_CORRUPT && strstr(f.err.msg, "list of accounts"));
	}
	CASE("an empty list is a list");
	f.vendor.reply = (struct fake_reply){ .status = 200, .body = "{\"results\": []}" };
	CHECK(csp_list(f.csp, &f.arena, &f.accounts, &f.count, &f.err) == RC_OK && f.count == 0);
	tear_down(&f);
}

TEST(an_answer_over_the_limit_is_not_read)
{
	struct fixture f;

	set_up(&f, "");
	f.vendor.reply = (struct fake_reply){ .raw = "HTTP/1.1 200 OK\r\nContent-Length: 67108865\r\n\r\n{" };
	CHECK(csp_list(f.csp, &f.arena, &f.accounts, &f.count, &f.err) == RC_CORRUPT);
	CHECK(strstr(f.err.msg, "67108864 bytes"));
	err_clear(&f.err);
	CHECK(csp_delete(f.csp, STR("x"), &f.err) == RC_UNAVAILABLE);
	tear_down(&f);
}

TEST(each_status_means_what_the_caller_can_do)
{
	static const struct {
		int     status;
		enum rc list, delete;
	} cases[] = {
		{ 200, RC_OK, RC_OK },
		{ 202, RC_UNAVAILABLE, RC_UNAVAILABLE },
		{ 204, RC_UNAVAILABLE, RC_OK },
		{ 301, RC_UNAVAILABLE, RC_UNAVAILABLE },
		{ 400, RC_DENIED, RC_DENIED },
		{ 401, RC_DENIED, RC_DENIED },
		{ 403, RC_DENIED, RC_DENIED },
		{ 404, RC_DENIED, RC_OK },
		{ 408, RC_UNAVAILABLE, RC_UNAVAILABLE },
		{ 409, RC_DENIED, RC_DENIED },
		{ 429, RC_UNAVAILABLE, RC_UNAVAILABLE },
		{ 500, RC_UNAVAILABLE, RC_UNAVAILABLE },
		{ 503, RC_UNAVAILABLE, RC_UNAVAILABLE },
	};
	struct fixture f;
	char           label[32];

	set_up(&f, "");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		(void)snprintf(label, sizeof(label), "status %d", cases[i].status); /* fits */
		CASE(label);
		f.vendor.reply = (struct fake_reply){ .status = cases[i].status };
		if (cases[i].status != 204)
			f.vendor.reply.body = "{\"results\": []}";
		err_clear(&f.err);
		CHECK(csp_list(f.csp, &f.arena, &f.accounts, &f.count, &f.err) == cases[i].list);
		err_clear(&f.err);
		CHECK(csp_delete(f.csp, STR("x/u-1"), &f.err) == cases[i].delete);
		CHECK(f.err.rc == cases[i].delete);
		CHECK(!strstr(f.err.msg, "t0ken"));
	}
	tear_down(&f);
}

TEST(a_delete_names_the_last_part_of_the_external_id)
{
	static const struct {
		const char *external_id, *seen; /* NULL: refused, nothing sent */
	} cases[] = {
		{ "identity/accounts/u-1", "DELETE /v2/sandbox/accounts/u-1" },
		{ "u-2", "DELETE /v2/sandbox/accounts/u-2" },
		{ "a/b c?d%", "DELETE /v2/sandbox/accounts/b%20c%3Fd%25" },
		{ "a/", NULL },
		{ "", NULL },
		{ "a/..", NULL },
		{ ".", NULL },
	};
	struct fixture f;

	set_up(&f, "/v2");
	f.vendor.reply = (struct fake_reply){ .status = 204 };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CASE(cases[i].external_id);
		f.vendor.seen[0] = '\0';
		err_clear(&f.err);
		CHECK(csp_delete(f.csp, str_from(cases[i].external_id), &f.err) ==
		      (cases[i].seen ? RC_OK : RC_INVALID));
		CHECK(strcmp(f.vendor.seen, cases[i].seen ? cases[i].seen : "") == 0);
	}
	tear_down(&f);
}

TEST(no_connection_and_no_answer_are_told_apart)
{
	struct fixture f;
	char           url[64];
	struct csp    *csp;

	set_up(&f, "");
	f.vendor.reply = (struct fake_reply){ .is_silent = true };
	csp = csp_http_open(&(struct csp_http_options){ fake_server_url(f.server, ""), "t0ken", 1000, 50, NULL });
	CHECK(csp_delete(csp, STR("x"), &f.err) == RC_TIMEOUT);
	csp_close(csp);

	(void)snprintf(url, sizeof(url), "http://127.0.0.1:%d", fake_closed_port()); /* fits */
	csp = csp_http_open(&(struct csp_http_options){ url, "t0ken", 1000, 1000, NULL });
	err_clear(&f.err);
	CHECK(csp_list(csp, &f.arena, &f.accounts, &f.count, &f.err) == RC_UNAVAILABLE);
	CHECK(f.err.code == NULL);
	csp_close(csp);
	tear_down(&f);
}

/* A CSP that answers what the test wants, for the guard. */
struct scripted {
	struct csp       csp;
	_Atomic(enum rc) rc;
	atomic_int       calls;
	atomic_int       is_closed;
};

static enum rc scripted_answer(struct csp *c, struct err *e)
{
	struct scripted *s = CONTAINER_OF(c, struct scripted, csp);

	s->calls++;
	return s->rc ? err_set(e, s->rc, "scripted") : RC_OK;
}

static enum rc scripted_list(struct csp *c, struct arena *a, struct csp_account **ret, size_t *ret_count, struct err *e)
{
	(void)a;
	*ret = NULL;
	*ret_count = 0;
	return scripted_answer(c, e);
}

static enum rc scripted_delete(struct csp *c, struct str external_id, struct err *e)
{
	(void)external_id;
	return scripted_answer(c, e);
}

static void scripted_close(struct csp *c)
{
	CONTAINER_OF(c, struct scripted, csp)->is_closed = 1;
}

static const struct csp_ops scripted_ops = { "scripted", scripted_list, scripted_delete, scripted_close };

TEST(the_guard_counts_all_failures_but_refusals)
{
	static const struct {
		const char *label;
		enum rc     first, second, third;
		bool        is_open;
	} cases[] = {
		{ "three of a kind", RC_UNAVAILABLE, RC_UNAVAILABLE, RC_UNAVAILABLE, true },
		{ "three kinds", RC_TIMEOUT, RC_CORRUPT, RC_UNAVAILABLE, true },
		{ "a refusal is an answer", RC_UNAVAILABLE, RC_DENIED, RC_UNAVAILABLE, false },
		{ "only refusals", RC_DENIED, RC_DENIED, RC_DENIED, false },
		{ "a success between", RC_UNAVAILABLE, RC_OK, RC_UNAVAILABLE, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct scripted s = { .csp.ops = &scripted_ops };
		struct clock    clock = clock_test(1000000);
		struct csp     *guard = csp_breaker_open(&s.csp, &(struct csp_breaker_options){ 3, 60000, &clock });
		const enum rc   answers[] = { cases[i].first, cases[i].second, cases[i].third };
		struct wall     until;

		CASE(cases[i].label);
		for (size_t k = 0; k < ARRAY_LEN(answers); k++) {
			struct err e = { 0 };

			s.rc = answers[k];
			CHECK(csp_delete(guard, STR("x"), &e) == answers[k]);
		}
		CHECK(csp_breaker_is_open(guard, &until) == cases[i].is_open);
		CHECK(until.ms == (cases[i].is_open ? 1060000 : 0));
		csp_close(guard);
		CHECK(s.is_closed);
	}
}

TEST(an_open_circuit_answers_without_calling_until_a_probe_succeeds)
{
	struct scripted     s = { .csp.ops = &scripted_ops };
	struct clock        clock = clock_test(1000000);
	struct csp         *guard = csp_breaker_open(&s.csp, &(struct csp_breaker_options){ 2, 60000, &clock });
	struct arena        a = { 0 };
	struct csp_account *accounts;
	size_t              count;
	struct err          e = { 0 };

	s.rc = RC_UNAVAILABLE;
	CHECK(csp_delete(guard, STR("x"), &e) == RC_UNAVAILABLE && e.code == NULL);
	CHECK(csp_list(guard, &a, &accounts, &count, &e) == RC_UNAVAILABLE);
	CHECK(s.calls == 2);

	clock.test_ms += 30500;
	err_clear(&e);
	CHECK(csp_list(guard, &a, &accounts, &count, &e) == RC_UNAVAILABLE);
	CHECK(strcmp(err_code(&e), CSP_BREAKER_CODE) == 0);
	CHECK(strstr(e.msg, "next try in 30 s"));
	err_clear(&e);
	CHECK(csp_delete(guard, STR("x"), &e) == RC_UNAVAILABLE && strcmp(err_code(&e), CSP_BREAKER_CODE) == 0);
	CHECK(s.calls == 2);

	clock.test_ms += 29500;
	err_clear(&e);
	CHECK(csp_delete(guard, STR("x"), &e) == RC_UNAVAILABLE && e.code == NULL);
	CHECK(s.calls == 3 && csp_breaker_is_open(guard, NULL));

	clock.test_ms += 60000;
	s.rc = RC_OK;
	CHECK(csp_delete(guard, STR("x"), &e) == RC_OK);
	CHECK(!csp_breaker_is_open(guard, NULL));
	CHECK(csp_list(guard, &a, &accounts, &count, &e) == RC_OK && s.calls == 5);
	csp_close(guard);
	arena_fini(&a);
}

static void *delete_many(void *guard)
{
	for (int i = 0; i < 200; i++) {
		struct err e = { 0 };

		if (csp_delete(guard, STR("x"), &e) != RC_UNAVAILABLE)
			return guard;
	}
	return NULL;
}

TEST(many_threads_make_no_more_calls_than_the_threshold_allows)
{
	struct scripted s = { .csp.ops = &scripted_ops, .rc = RC_UNAVAILABLE };
	struct clock    clock = clock_test(1000000);
	struct csp     *guard = csp_breaker_open(&s.csp, &(struct csp_breaker_options){ 5, 60000, &clock });
	pthread_t       threads[4];

	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		CHECK(pthread_create(&threads[i], NULL, delete_many, guard) == 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		void *wrong;

		pthread_join(threads[i], &wrong);
		CHECK(!wrong);
	}
	CHECK(csp_breaker_is_open(guard, NULL));
	CHECK(s.calls >= 5 && s.calls <= 5 + (int)ARRAY_LEN(threads) - 1);
	csp_close(guard);
}

/* --- the simulated vendor --- */

static uint64_t count_up(void *arg)
{
	uint64_t *last = arg;

	return ++*last * 0x9e3779b97f4a7c15ull;
}

struct sim_fixture {
	struct clock       clock;
	uint64_t           chance;
	struct store      *store;
	struct sim_faults *faults;
	struct csp        *csp;
	struct arena       arena;
	struct err         err;
};

static void open_sim(struct sim_fixture *f, int64_t stock)
{
	CHECK(csp_sim_open(&(struct csp_sim_options){ f->store, f->faults, stock }, &f->csp, &f->err) == RC_OK);
}

static void set_up_sim(struct sim_fixture *f)
{
	*f = (struct sim_fixture){ .clock = clock_test(1700000000000) };
	f->store = store_memory_open(sim_types, sim_type_count, &f->clock);
	f->faults = sim_faults_new(&(struct sim_faults_options){ &f->clock, count_up, &f->chance, false });
}

static void tear_down_sim(struct sim_fixture *f)
{
	csp_close(f->csp);
	sim_faults_free(f->faults);
	store_close(f->store);
	arena_fini(&f->arena);
}

TEST(the_simulated_vendor_keeps_its_stock_and_replaces_what_is_deleted)
{
	struct sim_fixture  f;
	struct csp_account *before, *after;
	size_t              count;

	set_up_sim(&f);
	open_sim(&f, 200);
	CHECK(csp_list(f.csp, &f.arena, &before, &count, &f.err) == RC_OK && count == 200);
	CHECK(str_eq(before[0].name, STR("sandbox-000001")) && before[0].created_at == 1700000000);
	CHECK(csp_delete(f.csp, before[0].external_id, &f.err) == RC_OK);
	CHECK(csp_delete(f.csp, before[0].external_id, &f.err) == RC_OK); /* already gone */
	CHECK(csp_list(f.csp, &f.arena, &after, &count, &f.err) == RC_OK && count == 200);
	CHECK(str_eq(after[0].external_id, before[1].external_id) && str_eq(after[199].name, STR("sandbox-000201")));
	csp_close(f.csp);
	open_sim(&f, 100); /* the store has them all */
	CHECK(csp_list(f.csp, &f.arena, &before, &count, &f.err) == RC_OK && count == 200);
	CHECK(str_eq(after[199].external_id, before[199].external_id));
	tear_down_sim(&f);
}

TEST(the_switches_of_the_simulated_world_disturb_the_vendor_too)
{
	static const struct {
		const char      *label;
		enum world_fault fault;
		enum rc          rc;
		bool             happens;
	} rows[] = {
		{ "throttled is not served", WORLD_THROTTLE, RC_UNAVAILABLE, false },
		{ "an outage", WORLD_OUTAGE, RC_UNAVAILABLE, false },
		{ "timed out but it happened", WORLD_TIMEOUT_AFTER, RC_TIMEOUT, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct sim_fixture  f;
		struct csp_account *before, *after;
		struct world_rules  rules = { .rules = { { rows[i].fault, WORLD_CSP_DELETE, 1000, 1, 0, 0 } },
			                      .count = 1 };
		size_t              count;

		CASE(rows[i].label);
		set_up_sim(&f);
		open_sim(&f, 3);
		CHECK(csp_list(f.csp, &f.arena, &before, &count, &f.err) == RC_OK);
		sim_faults_set(f.faults, &rules);
		CHECK(csp_delete(f.csp, before[0].external_id, &f.err) == rows[i].rc);
		CHECK(csp_list(f.csp, &f.arena, &after, &count, &f.err) == RC_OK && count == 3);
		CHECK(str_eq(after[0].external_id, before[rows[i].happens ? 1 : 0].external_id));
		tear_down_sim(&f);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* test_users.c - people of a users file and their passwords; programs with keys: what they may, and for how long. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/password.h"
#include "domain/lease.h"
#include "domain/ports/caller.h"
#include "kernel/event.h"
#include "kernel_rig.h"
#include "providers/identity/users_file.h"
#include "service/people/people.h"
#include "service/service_accounts.h"

#define PASSWORD "correct horse"

static char folder[64], path[96];

/* The file with this text, where nobody else can read it. */
static void write_users(const char *text)
{
	FILE *f;

	if (!folder[0]) {
		snprintf(folder, sizeof(folder), "/tmp/leasehold-users-XXXXXX");
		CHECK(mkdtemp(folder) != NULL);
		snprintf(path, sizeof(path), "%s/users", folder);
	}
	(void)unlink(path); /* a new file each time: what a careful editor makes */
	f = fopen(path, "w");
	CHECK(f && fchmod(fileno(f), 0600) == 0 && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void remove_users(void)
{
	(void)unlink(path);
	(void)rmdir(folder);
	folder[0] = 0;
}

/* Two people, made with a hash of PASSWORD. */
static void write_two(struct arena *a)
{
	char hash[PASSWORD_HASH_SIZE];

	CHECK(password_hash(STR(PASSWORD), hash, NULL) == RC_OK);
	write_users(
	        str_format(
	                a,
	                "# people\n\n{\"email\":\"Ann@Example.com\",\"displayName\":\"Ann\",\"roles\":[\"Admin\",\"User\"],"
	                "\"password\":\"%s\"}\n{\"email\":\"bob@example.com\",\"roles\":[\"Manager\"]}\n",
	                hash)
	                .p);
}

static enum rc check(struct users_file *f, const char *email, const char *password, struct arena *a, struct caller *ret,
                     struct err *e)
{
	struct password_book *book = users_file_passwords(f);

	return book->ops->check(book, str_from(email), str_from(password), a, ret, e);
}

TEST(people_are_found_whatever_the_case)
{
	struct arena           a = { 0 };
	struct users_file     *f = NULL;
	struct identity       *i;
	struct caller          c;
	struct directory_entry found[4];

	write_two(&a);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	i = users_file_identity(f);
	CHECK(i->ops->find(i, STR("ANN@example.COM"), &a, &c, NULL) == RC_OK);
	CHECK(str_eq(c.email, STR("Ann@Example.com")) && str_eq(c.display_name, STR("Ann")));
	CHECK(c.roles == (ROLE_ADMIN | ROLE_USER));
	CHECK(i->ops->find(i, STR("eve@example.com"), &a, &c, NULL) == RC_NOT_FOUND);
	CHECK(i->ops->list(i, ROLE_ADMIN | ROLE_MANAGER, STR(""), &a, found, ARRAY_LEN(found)) == 2);
	CHECK(i->ops->list(i, ROLE_ADMIN | ROLE_MANAGER, STR(""), &a, found, 1) == 1);
	CHECK(i->ops->list(i, ROLE_ADMIN | ROLE_MANAGER, STR("ann@example.com"), &a, found, ARRAY_LEN(found)) == 1);
	CHECK(i->ops->list(i, ROLE_MANAGER, STR(""), &a, found, ARRAY_LEN(found)) == 1);
	CHECK(str_eq(found[0].caller.email, STR("bob@example.com")) && str_eq(found[0].source, STR("users file")));
	users_file_close(f);
	remove_users();
	arena_fini(&a);
}

TEST(only_the_right_password_opens)
{
	struct arena       a = { 0 };
	struct users_file *f = NULL;
	struct caller      c;
	struct err         wrong = { 0 }, unknown = { 0 }, without = { 0 };

	write_two(&a);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	CHECK(check(f, "ann@example.com", PASSWORD, &a, &c, NULL) == RC_OK);
	CHECK(str_eq(c.email, STR("Ann@Example.com")));
	CHECK(check(f, "ann@example.com", "correct horsf", &a, &c, &wrong) == RC_UNKNOWN);
	CHECK(check(f, "eve@example.com", PASSWORD, &a, &c, &unknown) == RC_UNKNOWN);
	CHECK(check(f, "bob@example.com", PASSWORD, &a, &c, &without) == RC_UNKNOWN);
	CHECK(strcmp(wrong.msg, unknown.msg) == 0 && strcmp(wrong.msg, without.msg) == 0);
	users_file_close(f);
	remove_users();
	arena_fini(&a);
}

/* The shortest of a few: what else the machine does only makes it longer. */
static int64_t cost_of(struct users_file *f, const char *email, struct arena *a)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < 5; i++) {
		int64_t       start = mono_ns(), took;
		struct caller c;

		CHECK(check(f, email, "wrong password", a, &c, NULL) == RC_UNKNOWN);
		took = mono_ns() - start;
		best = took < best ? took : best;
	}
	return best;
}

TEST(an_unknown_person_costs_as_much_as_a_wrong_password)
{
	struct arena       a = { 0 };
	struct users_file *f = NULL;
	int64_t            known, unknown;

	write_two(&a);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	known = cost_of(f, "ann@example.com", &a);
	unknown = cost_of(f, "eve@example.com", &a);
	CHECK(unknown > known / 2 && unknown < known * 2);
	users_file_close(f);
	remove_users();
	arena_fini(&a);
}

static const struct {
	const char *label, *text;
} bad_files[] = {
	{ "not JSON", "ann@example.com Admin" },
	{ "not an object", "[1]" },
	{ "no email", "{\"roles\":[\"User\"]}" },
	{ "no such email", "{\"email\":\"ann\",\"roles\":[\"User\"]}" },
	{ "no roles", "{\"email\":\"ann@example.com\"}" },
	{ "an empty list of roles", "{\"email\":\"ann@example.com\",\"roles\":[]}" },
	{ "no such role", "{\"email\":\"ann@example.com\",\"roles\":[\"admin\"]}" },
	{ "a password instead of a hash",
	  "{\"email\":\"ann@example.com\",\"roles\":[\"User\"],\"password\":\"secret\"}" },
	{ "a hash of another kind",
	  "{\"email\":\"ann@example.com\",\"roles\":[\"User\"],\"password\":\"$2y$10$abcdefghijklmnop\"}" },
	{ "a hash that costs a gigabyte",
	  "{\"email\":\"ann@example.com\",\"roles\":[\"User\"],\"password\":"
	  "\"$argon2id$v=19$m=1048576,t=2,p=1$qGGDFf/SDq0q+cg0qEX5sw$zgdSAOe00GS+z3yXIDWGFCcBnnH3gHwYIVo9/LcixO8\"}" },
	{ "an unknown member", "{\"email\":\"ann@example.com\",\"roles\":[\"User\"],\"rolse\":[]}" },
	{ "somebody twice",
	  "{\"email\":\"ann@example.com\",\"roles\":[\"User\"]}\n{\"email\":\"ANN@example.com\",\"roles\":[\"Admin\"]}" },
};

TEST(a_file_with_a_mistake_is_refused_and_the_line_named)
{
	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		struct users_file *f = NULL;
		struct err         e = { 0 };

		CASE(bad_files[i].label);
		write_users(bad_files[i].text);
		CHECK(identity_users_file_open(path, &f, &e) == RC_INVALID);
		CHECK(strstr(e.msg, path) && (strstr(e.msg, "line 1") || strstr(e.msg, "twice")));
		remove_users();
	}
}

TEST(a_file_that_others_can_read_is_refused)
{
	struct users_file *f = NULL;
	struct err         e = { 0 };

	write_users("");
	CHECK(chmod(path, 0640) == 0);
	CHECK(identity_users_file_open(path, &f, &e) == RC_INVALID);
	CHECK(strstr(e.msg, "chmod 600"));
	CHECK(chmod(path, 0600) == 0);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	users_file_close(f);
	remove_users();
	CHECK(identity_users_file_open("/nonexistent/users", &f, NULL) == RC_UNAVAILABLE);
}

TEST(a_changed_file_is_read_again_and_a_bad_one_changes_nothing)
{
	struct arena       a = { 0 };
	struct users_file *f = NULL;
	struct identity   *i;
	struct caller      c;

	write_two(&a);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	i = users_file_identity(f);
	write_users("{\"email\":\"cid@example.com\",\"roles\":[\"User\"]}\n");
	CHECK(i->ops->find(i, STR("cid@example.com"), &a, &c, NULL) == RC_NOT_FOUND);
	CHECK(users_file_refresh(f, false, NULL) == RC_OK);
	CHECK(i->ops->find(i, STR("cid@example.com"), &a, &c, NULL) == RC_OK);
	CHECK(i->ops->find(i, STR("ann@example.com"), &a, &c, NULL) == RC_NOT_FOUND);
	write_users("nonsense");
	CHECK(users_file_refresh(f, false, NULL) == RC_INVALID);
	CHECK(users_file_refresh(f, false, NULL) == RC_OK); /* told once */
	CHECK(users_file_refresh(f, true, NULL) == RC_INVALID);
	CHECK(i->ops->find(i, STR("cid@example.com"), &a, &c, NULL) == RC_OK);
	users_file_close(f);
	remove_users();
	arena_fini(&a);
}

TEST(an_emptied_file_is_refused_and_everybody_stays)
{
	static const char *const empties[] = { "", "\n\n", "# ann was here\n" };
	struct arena             a = { 0 };
	struct users_file       *f = NULL;
	struct identity         *i;
	struct caller            c;
	struct err               e = { 0 };

	write_two(&a);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK);
	i = users_file_identity(f);
	for (size_t n = 0; n < ARRAY_LEN(empties); n++) {
		write_users(empties[n]);
		err_clear(&e);
		CHECK(users_file_refresh(f, true, &e) == RC_INVALID);
		CHECK(strstr(e.msg, "it is empty") && strstr(e.msg, "2 "));
		CHECK(i->ops->find(i, STR("ann@example.com"), &a, &c, NULL) == RC_OK);
	}
	users_file_close(f);
	CHECK(identity_users_file_open(path, &f, NULL) == RC_OK); /* a start may be with nobody */
	users_file_close(f);
	remove_users();
	arena_fini(&a);
}

TEST(without_a_file_there_is_nobody)
{
	struct arena       a = { 0 };
	struct users_file *f = NULL;
	struct identity   *i;
	struct caller      c;

	CHECK(identity_users_file_open(NULL, &f, NULL) == RC_OK);
	i = users_file_identity(f);
	CHECK(i->ops->find(i, STR("ann@example.com"), &a, &c, NULL) == RC_NOT_FOUND);
	CHECK(users_file_refresh(f, true, NULL) == RC_OK);
	users_file_close(f);
	arena_fini(&a);
}

TEST(passwords_have_limits)
{
	char       hash[PASSWORD_HASH_SIZE], long_one[PASSWORD_MAX + 2] = { 0 };
	struct err e = { 0 };

	memset(long_one, 'x', PASSWORD_MAX + 1);
	CHECK(password_hash(STR("1234567"), hash, &e) == RC_INVALID && e.msg[0]);
	CHECK(password_hash(str_from(long_one), hash, NULL) == RC_INVALID);
	CHECK(password_hash(STR(PASSWORD), hash, NULL) == RC_OK);
	CHECK(password_is_hash(str_from(hash)));
	CHECK(password_verify(STR(PASSWORD), hash) && !password_verify(STR(""), hash));
}

/* --- service accounts --- */

static const struct {
	const char *label, *scopes, *method, *path;
	unsigned    roles;
} rights[] = {
	{ "read sees leases", "read", "GET", "/api/leases", ROLE_MANAGER },
	{ "read sees one lease", "read", "GET", "/api/leases/abc=", ROLE_MANAGER },
	{ "read sees accounts", "read", "GET", "/api/accounts/unregistered", ROLE_ADMIN },
	{ "read changes nothing", "read", "POST", "/api/accounts", 0 },
	{ "read does not review", "read", "POST", "/api/leases/x/review", 0 },
	{ "read does not see reports", "read", "GET", "/api/reports/costs", 0 },
	{ "approve reviews", "approve", "POST", "/api/leases/x/review", ROLE_MANAGER },
	{ "approve reviews in the seed's way", "approve", "PATCH", "/api/leases/x/review", ROLE_MANAGER },
	{ "approve does not end leases", "approve", "POST", "/api/leases/x/terminate", 0 },
	{ "approve does not request leases", "approve", "POST", "/api/leases", 0 },
	{ "approve does not edit leases", "approve", "PATCH", "/api/leases/x", 0 },
	{ "approve reaches no deeper", "approve", "POST", "/api/leases/x/review/y", 0 },
	{ "approve needs a lease", "approve", "POST", "/api/leases//review", 0 },
	{ "approve does not see accounts", "approve", "GET", "/api/accounts", 0 },
	{ "pool-admin registers accounts", "pool-admin", "POST", "/api/accounts", ROLE_ADMIN },
	{ "pool-admin ejects accounts", "pool-admin", "POST", "/api/accounts/1/eject", ROLE_ADMIN },
	{ "pool-admin does not see leases", "pool-admin", "GET", "/api/leases", 0 },
	{ "cost sees reports", "cost", "GET", "/api/reports/costs", ROLE_ADMIN },
	{ "cost changes nothing", "cost", "POST", "/api/reports/costs", 0 },
	{ "scopes add up", "read,approve", "POST", "/api/leases/x/review", ROLE_MANAGER },
	{ "no scope reaches the rest", "read,approve,pool-admin,cost", "POST", "/api/configurations", 0 },
	{ "a path that only begins alike", "read", "GET", "/api/leasesX", 0 },
	{ "the operators' API is not reached", "read,approve,pool-admin,cost", "GET", "/v1/admin/stats", 0 },
};

TEST(scopes_are_worth_what_the_table_says)
{
	for (size_t i = 0; i < ARRAY_LEN(rights); i++) {
		int64_t scopes = 0;

		CASE(rights[i].label);
		CHECK(service_scopes_parse(str_from(rights[i].scopes), &scopes));
		CHECK(service_scope_roles(scopes, str_from(rights[i].method), str_from(rights[i].path)) ==
		      rights[i].roles);
	}
}

TEST(scopes_are_read_and_written)
{
	struct arena a = { 0 };
	int64_t      scopes = 0;

	CHECK(service_scopes_parse(STR(" cost , read"), &scopes) && scopes == (SERVICE_READ | SERVICE_COST));
	CHECK(str_eq(service_scopes_text(scopes, &a), STR("read,cost")));
	CHECK(!service_scopes_parse(STR(""), &scopes) && !service_scopes_parse(STR("read,admin"), &scopes));
	CHECK(!service_scopes_parse(STR("read,,cost"), &scopes));
	arena_fini(&a);
}

/* --- people who have signed in --- */

static enum rc find_nobody(struct identity *i, struct str email, struct arena *a, struct caller *ret, struct err *e)
{
	(void)i, (void)a, (void)ret;
	return err_set(e, RC_NOT_FOUND, "there is no user %.*s", STR_ARG(email));
}

static size_t list_nobody(struct identity *i, unsigned roles, struct str after, struct arena *a,
                          struct directory_entry *ret, size_t max)
{
	(void)i, (void)roles, (void)after, (void)a, (void)ret, (void)max;
	return 0;
}

static const struct identity_ops nobody_ops = { find_nobody, list_nobody };
static struct identity           nobody = { &nobody_ops };

static bool knows(struct people *p, const char *email)
{
	struct identity *i = people_identity(p);
	struct arena     a = { 0 };
	struct caller    c;
	enum rc          rc = i->ops->find(i, str_from(email), &a, &c, NULL);

	arena_fini(&a);
	CHECK(rc == RC_OK || rc == RC_NOT_FOUND);
	return rc == RC_OK;
}

static const struct caller cyd = { .email = STR_INIT("Cyd@Example.com"),
	                           .display_name = STR_INIT("Cyd"),
	                           .roles = ROLE_USER };

TEST(whom_a_provider_vouched_for_is_known_on_every_node)
{
	struct kernel_rig      r = { .seed = 1 };
	struct people         *here, *there;
	struct directory_entry found[2];
	struct identity       *i;

	rig_open(&r);
	here = people_new(r.store, &nobody);
	there = people_new(r.store, &nobody);
	CHECK(!knows(here, "cyd@example.com"));
	CHECK(people_sign_in(here, &cyd, true, NULL) == RC_OK);
	CHECK(knows(here, "CYD@example.com") && !knows(there, "cyd@example.com"));
	CHECK(people_load(there, NULL) == RC_OK);
	CHECK(knows(there, "cyd@example.com"));
	i = people_identity(there);
	CHECK(i->ops->list(i, ROLE_MANAGER, STR(""), &r.arena, found, 2) == 0);
	CHECK(i->ops->list(i, ROLE_USER, STR(""), &r.arena, found, 2) == 1);
	CHECK(str_eq(found[0].caller.email, STR("Cyd@Example.com")) && str_eq(found[0].source, STR("provider")));
	CHECK(found[0].signed_in_ms == r.clock.test_ms);
	CHECK(i->ops->list(i, ROLE_USER, STR("cyd@example.com"), &r.arena, found, 2) == 0);
	people_free(here);
	people_free(there);
	rig_close(&r);
}

/* An email may be longer than what an event has room for as its actor, or in its subject. */
TEST(who_has_the_longest_email_is_known_too_and_can_be_removed)
{
	struct kernel_rig     r = { .seed = 1 };
	struct person_removal removal = { .actor = { STR("admin"), STR("") } };
	struct caller         dee = { .display_name = STR("Dee"), .roles = ROLE_USER };
	char                  email[EMAIL_MAX + 1];

	memset(email, 'd', EMAIL_MAX);
	memcpy(email + EMAIL_MAX - 12, "@example.com", 13);
	dee.email = removal.email = str_from(email);
	rig_open(&r);
	removal.people = people_new(r.store, &nobody);
	CHECK(people_sign_in(removal.people, &dee, true, NULL) == RC_OK && knows(removal.people, email));
	rig_run(&r, person_remove, &removal);
	people_note(removal.people, &removal.person);
	CHECK(!knows(removal.people, email));
	people_free(removal.people);
	rig_close(&r);
}

TEST(a_password_alone_makes_nobody_known)
{
	struct kernel_rig r = { .seed = 1 };
	struct people    *p;

	rig_open(&r);
	p = people_new(r.store, &nobody);
	CHECK(people_sign_in(p, &cyd, false, NULL) == RC_OK);
	CHECK(!knows(p, "cyd@example.com"));
	people_free(p);
	rig_close(&r);
}

TEST(who_is_removed_is_forgotten_on_every_node_until_the_next_sign_in)
{
	struct kernel_rig     r = { .seed = 1 };
	struct people        *here, *there;
	struct person_removal removal = { .email = STR("CYD@example.com"), .actor = { STR("admin"), STR("") } };

	rig_open(&r);
	here = removal.people = people_new(r.store, &nobody);
	there = people_new(r.store, &nobody);
	CHECK(rig_try(&r, person_remove, &removal, NULL) == RC_NOT_FOUND);
	CHECK(people_sign_in(here, &cyd, true, NULL) == RC_OK && people_load(there, NULL) == RC_OK);
	rig_pass(&r, 1000);
	rig_run(&r, person_remove, &removal);
	people_note(here, &removal.person);
	CHECK(people_load(there, NULL) == RC_OK);
	CHECK(!knows(here, "cyd@example.com") && !knows(there, "cyd@example.com"));
	CHECK(rig_try(&r, person_remove, &removal, NULL) == RC_NOT_FOUND);
	CHECK(people_sign_in(there, &cyd, true, NULL) == RC_OK && knows(there, "cyd@example.com"));
	people_free(here);
	people_free(there);
	rig_close(&r);
}

TEST(a_sign_in_by_a_clock_that_was_ahead_hides_no_later_removal_from_other_nodes)
{
	static const struct caller dan = { .email = STR_INIT("dan@example.com"), .roles = ROLE_USER };
	struct kernel_rig          r = { .seed = 1 };
	struct people             *here, *there;
	struct person_removal      removal = { .email = STR("cyd@example.com"), .actor = { STR("admin"), STR("") } };

	rig_open(&r);
	here = removal.people = people_new(r.store, &nobody);
	there = people_new(r.store, &nobody);
	CHECK(people_sign_in(here, &cyd, true, NULL) == RC_OK);
	r.clock.test_ms += 86400000;
	CHECK(people_sign_in(here, &dan, true, NULL) == RC_OK && people_load(there, NULL) == RC_OK);
	CHECK(knows(there, "cyd@example.com") && knows(there, "dan@example.com"));
	r.clock.test_ms -= 86400000 - 1000; /* it is set right */
	rig_run(&r, person_remove, &removal);
	CHECK(people_load(there, NULL) == RC_OK && !knows(there, "cyd@example.com"));
	people_free(here);
	people_free(there);
	rig_close(&r);
}

static struct service_account_call new_call(const char *name)
{
	return (struct service_account_call){ .name = str_from(name), .scopes = SERVICE_READ, .actor = STR("admin") };
}

/* Does the key open? */
static bool opens(struct keyring *k, struct str key, int64_t now_ms)
{
	struct arena           a = { 0 };
	struct service_account account;
	enum rc                rc = keyring_find(k, key, now_ms, &a, &account, NULL);

	CHECK(rc == RC_OK || rc == RC_UNKNOWN);
	arena_fini(&a);
	return rc == RC_OK;
}

TEST(a_key_opens_until_it_is_rotated_and_the_overlap_is_over)
{
	struct kernel_rig           r = { .seed = 1 };
	struct keyring             *k = keyring_new();
	struct service_account_call call = new_call("portal");
	struct str                  first, second;
	int64_t                     now;

	rig_open(&r);
	rig_run(&r, service_account_create, &call);
	CHECK(str_starts_with(call.key, STR("lsk_portal_")) && call.key.n == strlen("lsk_portal_") + 43);
	CHECK(!str_has(call.account.hash, str_of(call.key.p + 11, 43)));
	first = call.key;
	now = r.clock.test_ms;
	CHECK(!opens(k, first, now));
	keyring_note(k, &call.account);
	CHECK(opens(k, first, now));

	call = new_call("portal");
	call.overlap_ms = 1000;
	rig_run(&r, service_account_rotate, &call);
	second = call.key;
	CHECK(!str_eq(first, second));
	CHECK(keyring_load(k, r.store, NULL) == RC_OK);
	CHECK(opens(k, second, now) && opens(k, first, now + 999) && !opens(k, first, now + 1000));

	call = new_call("portal");
	rig_run(&r, service_account_rotate, &call);
	keyring_note(k, &call.account);
	CHECK(!opens(k, first, now) && !opens(k, second, now) && opens(k, call.key, now));
	keyring_free(k);
	rig_close(&r);
}

TEST(a_revoked_account_is_closed_at_once_and_can_be_made_again)
{
	struct kernel_rig           r = { .seed = 1 };
	struct keyring             *k = keyring_new();
	struct service_account_call made = new_call("portal"), ended = new_call("portal"), again = new_call("portal");
	struct err                  e = { 0 };

	rig_open(&r);
	rig_run(&r, service_account_create, &made);
	CHECK(rig_try(&r, service_account_create, &again, &e) == RC_CONFLICT);
	rig_run(&r, service_account_revoke, &ended);
	keyring_note(k, &ended.account);
	keyring_note(k, &made.account); /* late: the older version does not win */
	CHECK(!opens(k, made.key, 0));
	CHECK(rig_try(&r, service_account_rotate, &ended, NULL) == RC_CONFLICT);
	CHECK(rig_try(&r, service_account_revoke, &ended, NULL) == RC_CONFLICT);
	again = new_call("portal");
	rig_run(&r, service_account_create, &again);
	keyring_note(k, &again.account);
	CHECK(opens(k, again.key, 0) && !opens(k, made.key, 0));
	keyring_free(k);
	rig_close(&r);
}

TEST(keys_that_are_none_open_nothing)
{
	static const char *const    keys[] = { "",       "lsk",   "lsk_", "lsk_portal", "lsk_portal_", "lsk_other_x",
		                               "lsk__x", "portal" };
	struct kernel_rig           r = { .seed = 1 };
	struct keyring             *k = keyring_new();
	struct service_account_call call = new_call("portal");

	rig_open(&r);
	rig_run(&r, service_account_create, &call);
	keyring_note(k, &call.account);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		CASE(keys[i]);
		CHECK(!opens(k, str_from(keys[i]), 0));
	}
	CHECK(!opens(k, str_of(call.key.p, call.key.n - 1), 0));
	CHECK(opens(k, call.key, 0));
	keyring_free(k);
	rig_close(&r);
}

TEST(names_and_scopes_of_accounts_are_checked)
{
	static const char *const names[] = {
		"", "Portal", "a_b", "1a", "a b", "-a", "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddx"
	};
	struct kernel_rig           r = { .seed = 1 };
	struct service_account_call call;

	rig_open(&r);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		CASE(names[i]);
		call = new_call(names[i]);
		CHECK(rig_try(&r, service_account_create, &call, NULL) == RC_INVALID);
	}
	call = new_call("portal");
	call.scopes = 0;
	CHECK(rig_try(&r, service_account_create, &call, NULL) == RC_INVALID);
	CHECK(rig_try(&r, service_account_rotate, &call, NULL) == RC_NOT_FOUND);
	rig_close(&r);
}

TEST(what_is_done_with_accounts_is_audited_without_the_key)
{
	struct kernel_rig           r = { .seed = 1 };
	struct service_account_call call = new_call("portal");
	struct event_list           list = { .subject = STR("service-account/portal"), .limit = 10 };

	rig_open(&r);
	rig_run(&r, service_account_create, &call);
	rig_run(&r, event_list, &list);
	CHECK(list.count == 1 && str_eq(list.events[0].type, STR("ServiceAccountCreated")));
	CHECK(str_eq(list.events[0].actor, STR("admin")));
	CHECK(!str_has(list.events[0].detail, str_of(call.key.p + 11, 43)));
	CHECK(!str_has(list.events[0].detail, call.account.hash));
	rig_close(&r);
}

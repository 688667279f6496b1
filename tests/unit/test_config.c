/* SPDX-License-Identifier: Apache-2.0 */
/* test_config.c - where settings come from, what is refused, and what is never shown. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config.h"
#include "app/dev.h"
#include "app/preflight.h"
#include "app/signin.h"
#include "http/api/api.h"

#define TRACK_TOKEN "track-token-0123456789"
#define ADMIN_TOKEN "admin-token-0123456789"

/* One load and what it said. */
struct loaded {
	struct config c;
	struct buf    problems;
	enum rc       rc;
};

static char folder[64], path[96];

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "/tmp/leasehold-test-XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/config", folder);
}

static void remove_folder(void)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	CHECK(system(command) == 0);
}

static void write_file(struct str content)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(content.p, 1, content.n, f) == content.n && fclose(f) == 0);
	CHECK(chmod(path, 0600) == 0);
}

static void load(struct loaded *l, const char *const *environment, const char *file)
{
	buf_init(&l->problems, 65536);
	l->rc = config_load(&l->c, environment, file, &l->problems);
	CHECK((l->rc == RC_OK) == (l->problems.n == 0));
}

static void unload(struct loaded *l)
{
	config_fini(&l->c);
	buf_fini(&l->problems);
}

static bool says(const struct loaded *l, const char *text)
{
	return l->problems.n && strstr(l->problems.p, text) != NULL;
}

static int lines(const struct buf *b)
{
	int count = 0;

	for (size_t i = 0; i < b->n; i++)
		count += b->p[i] == '\n';
	return count;
}

/* What a single variable leads to. */
static enum rc load_variable(const char *variable, struct loaded *l)
{
	load(l, (const char *const[]){ variable, NULL }, NULL);
	return l->rc;
}

/* --- sources --- */

TEST(without_anything_the_defaults_hold)
{
	struct loaded l;

	load(&l, (const char *const[]){ "PATH=/bin", "HOME=/", NULL }, NULL);
	CHECK(l.rc == RC_OK && config_number(&l.c, CONFIG_LAB_HOURS) == 4);
	CHECK(config_number(&l.c, CONFIG_CLEANUP_BATCH_DELAY) == 2000 && config_number(&l.c, CONFIG_REQUEST_ID) == 1);
	CHECK(str_eq(config_str(&l.c, CONFIG_BASE_PATH), STR("/v1")) && !config_text(&l.c, CONFIG_CSP_URL));
	CHECK(l.c.values[CONFIG_LAB_HOURS].origin == FROM_DEFAULT);
	unload(&l);
}

TEST(the_environment_wins_over_the_file_and_the_file_over_the_default)
{
	struct loaded l;
	char          file_variable[128];

	make_folder();
	write_file(STR("LAB_DURATION_HOURS=7\nGRACE_PERIOD_MINUTES=8\n"));
	snprintf(file_variable, sizeof(file_variable), "LEASEHOLD_CONFIG_FILE=%s", path);
	for (int round = 0; round < 2; round++) {
		const char *const environment[] = { "LAB_DURATION_HOURS=9", round ? file_variable : "X=y", NULL };

		CASE(round ? "named by the environment" : "named by the caller");
		load(&l, environment, round ? NULL : path);
		CHECK(l.rc == RC_OK && config_number(&l.c, CONFIG_LAB_HOURS) == 9);
		CHECK(config_number(&l.c, CONFIG_GRACE_MINUTES) == 8);
		CHECK(config_number(&l.c, CONFIG_SYNC_INTERVAL) == 600);
		CHECK(l.c.values[CONFIG_LAB_HOURS].origin == FROM_ENVIRONMENT);
		CHECK(l.c.values[CONFIG_GRACE_MINUTES].origin == FROM_FILE);
		config_set(&l.c, CONFIG_LAB_HOURS, STR("10"), FROM_COMMAND_LINE);
		config_check(&l.c, &l.problems);
		CHECK(!l.problems.n && config_number(&l.c, CONFIG_LAB_HOURS) == 10);
		unload(&l);
	}
	remove_folder();
}

TEST(a_file_may_have_comments_quotes_exports_and_foreign_line_ends)
{
	struct loaded l;

	make_folder();
	write_file(STR("# comment\r\n\r\n  \t\nexport LAB_DURATION_HOURS = 5 \r\nCSP_API_TOKEN='a # b'\n"
	               "LEASEHOLD_DATA=\"/var/x y\"\nCORS_ALLOWED_ORIGINS=\"\nLEASEHOLD_LISTEN='a:1\"\n"
	               "API_BASE_PATH=/a=b\nLOG_FORMAT=text"));
	load(&l, (const char *const[]){ NULL }, path);
	CHECK(config_number(&l.c, CONFIG_LAB_HOURS) == 5 && config_number(&l.c, CONFIG_LOG_FORMAT) == 1);
	CHECK(strcmp(config_text(&l.c, CONFIG_CSP_TOKEN), "a # b") == 0);
	CHECK(strcmp(config_text(&l.c, CONFIG_DATA), "/var/x y") == 0);
	CHECK(strcmp(config_text(&l.c, CONFIG_CORS), "\"") == 0);
	CHECK(strcmp(config_text(&l.c, CONFIG_LISTEN), "'a:1\"") == 0);
	CHECK(strcmp(config_text(&l.c, CONFIG_BASE_PATH), "/a=b") == 0);
	CHECK(l.rc == RC_INVALID && lines(&l.problems) == 1 && says(&l, "API_BASE_PATH"));
	unload(&l);
	remove_folder();
}

TEST(problems_of_the_file_name_its_line)
{
	struct loaded l;
	char          place[128];

	make_folder();
	write_file(STR("LAB_DURATION_HOURS=5\nnonsense\nLAB_DURATION_HOURS=6\nNOT_OURS=1\n=3\n"));
	load(&l, (const char *const[]){ NULL }, path);
	CHECK(l.rc == RC_INVALID && lines(&l.problems) == 4 && config_number(&l.c, CONFIG_LAB_HOURS) == 5);
	for (int line = 2; line <= 5; line++) {
		snprintf(place, sizeof(place), "%s:%d: ", path, line);
		CHECK(says(&l, place));
	}
	CHECK(says(&l, "set twice") && says(&l, "KEY=VALUE") && says(&l, "'NOT_OURS'"));
	unload(&l);
	remove_folder();
}

TEST(a_file_that_cannot_be_read_is_a_problem)
{
	struct loaded l;
	char         *large = malloc(300 * 1024);

	make_folder();
	load(&l, (const char *const[]){ NULL }, "/nowhere/at/all");
	CHECK(l.rc == RC_INVALID && says(&l, "/nowhere/at/all: cannot be opened"));
	unload(&l);
	load(&l, (const char *const[]){ NULL }, folder);
	CHECK(l.rc == RC_INVALID && says(&l, "cannot be read"));
	unload(&l);
	memset(large, '\n', 300 * 1024);
	write_file(str_of(large, 300 * 1024));
	load(&l, (const char *const[]){ NULL }, path);
	CHECK(l.rc == RC_INVALID && says(&l, "larger than"));
	unload(&l);
	free(large);
	remove_folder();
}

TEST(unknown_keys_are_a_problem_when_they_look_like_ours)
{
	struct loaded l;

	load(&l,
	     (const char *const[]){ "LEASEHOLD_RATE_LIMT=3", "LEASEHOLD_TOKEN=x", "LEASEHOLD_ADDRESS=y",
	                            "LEASEHOLD_TRACK=z", "SOMETHING_ELSE=1", "NOEQUALS", NULL },
	     NULL);
	CHECK(l.rc == RC_INVALID && lines(&l.problems) == 1 && says(&l, "LEASEHOLD_RATE_LIMT: there is no such"));
	unload(&l);
}

TEST(a_slip_of_the_pen_is_answered_with_the_name_that_was_meant)
{
	static const struct {
		const char *name, *meant;
	} rows[] = {
		{ "LAB_DURATION_HOUR", "LAB_DURATION_HOURS" },
		{ "LAB_DURATOIN_HOURS", "LAB_DURATION_HOURS" },
		{ "XLAB_DURATION_HOURSX", "LAB_DURATION_HOURS" },
		{ "LAB_DURATION", NULL },
		{ "LAB_DURATION_HOURS", NULL },
		{ "LOG", NULL },
		{ "", NULL },
		{ "CSP_BASE_URI", "CSP_BASE_URL" },
		{ "DDB_GSI4_NAME", "DDB_GSI1_NAME" },
		{ "CONNECTIONS_PER_CLIENT_MAXIMUM_AND_SOMETHING_MUCH_TOO_LONG_FOR_A_NAME", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_fini) struct buf notes = BUF(1000);
		char                         variable[128], expected[128] = "";

		CASE(rows[i].name);
		snprintf(variable, sizeof(variable), "%s=1", rows[i].name);
		config_near_misses((const char *const[]){ variable, NULL }, &notes);
		if (rows[i].meant)
			snprintf(expected, sizeof(expected), "%s: there is no such setting; did you mean %s?\n",
			         rows[i].name, rows[i].meant);
		CHECK(str_eq(buf_str(&notes), str_from(expected)));
	}
}

TEST(near_misses_are_notes_unless_they_are_ours)
{
	static const char *const environment[] = { "LAB_DURATION_HOUR=3", "LEASEHOLD_WAIT_MAX_SECS=3",
		                                   "PATH=/bin",           "LAB_DURATION_HOURS=5",
		                                   "HOSTNAME=x",          NULL };
	struct loaded            l;
	struct buf               notes;

	buf_init(&notes, 65536);
	config_near_misses(environment, &notes);
	CHECK(lines(&notes) == 1);
	CHECK(str_eq(buf_str(&notes),
	             STR("LAB_DURATION_HOUR: there is no such setting; did you mean LAB_DURATION_HOURS?\n")));
	load(&l, environment, NULL);
	CHECK(lines(&l.problems) == 1 && says(&l, "LEASEHOLD_WAIT_MAX_SECS: there is no such setting; did you mean "
	                                          "LEASEHOLD_WAIT_MAX_SEC?"));
	unload(&l);
	buf_fini(&notes);
}

/* --- outside the settings --- */

static void preflight(struct loaded *l, const char *listen, enum config_origin origin, bool is_dev)
{
	config_set(&l->c, CONFIG_LISTEN, str_from(listen), origin);
	buf_reset(&l->problems);
	preflight_check(&l->c, is_dev, &l->problems);
}

TEST(listen_addresses_are_numeric_and_named_as_they_were_given)
{
	static const char *const good[] = { "127.0.0.1:8080", "[::1]:0", "::1:8080", "0.0.0.0:65535" };
	static const char *const bad[] = {
		"", "8080", ":8080", "localhost:8080", "127.0.0.1:", "127.0.0.1:65536", "[]:1", "127.0.0.1:x"
	};
	struct loaded l;

	load(&l, (const char *const[]){ NULL }, NULL);
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		CASE(good[i]);
		preflight(&l, good[i], FROM_COMMAND_LINE, false);
		CHECK(l.problems.n == 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		CASE(bad[i]);
		preflight(&l, bad[i], FROM_COMMAND_LINE, false);
		CHECK(lines(&l.problems) == 1 && says(&l, "--listen: must be ADDRESS:PORT"));
	}
	preflight(&l, "8080", FROM_FILE, false);
	CHECK(says(&l, "LEASEHOLD_LISTEN: must be ADDRESS:PORT"));
	unload(&l);
}

TEST(a_preflight_names_every_file_and_the_vendor_beside_dev)
{
	struct loaded l;

	load(&l,
	     (const char *const[]){ "LEASEHOLD_TLS_CERT_FILE=/none/c", "LEASEHOLD_TLS_KEY_FILE=/none/k",
	                            "LEASEHOLD_CSP_CA_FILE=/none/a", "CSP_BASE_URL=http://x", "CSP_API_TOKEN=x", NULL },
	     NULL);
	CHECK(l.rc == RC_OK);
	preflight(&l, "here", FROM_COMMAND_LINE, true);
	CHECK(lines(&l.problems) == 5 && says(&l, "/none/c cannot be read: No such file"));
	CHECK(says(&l, "/none/k cannot") && says(&l, "/none/a cannot") && says(&l, "--listen"));
	CHECK(says(&l, "--dev uses the simulated vendor, but CSP_BASE_URL is set (environment); unset it"));
	preflight(&l, "127.0.0.1:1", FROM_COMMAND_LINE, false);
	CHECK(lines(&l.problems) == 3);
	unload(&l);
}

TEST(the_settings_are_shown_and_described_with_their_limits)
{
	struct loaded l;
	struct buf    out;

	make_folder();
	write_file(STR("LAB_DURATION_HOURS=7\n"));
	load(&l, (const char *const[]){ NULL }, path);
	buf_init(&out, 1 << 20);
	config_print(&l.c, &out);
	CHECK(strstr(out.p, "1 to 8760") && strstr(out.p, "json, text") && strstr(out.p, "0.1 to 300, decimals"));
	CHECK(strstr(out.p, CONFIG_FILE_NAME) && strstr(out.p, path) && strstr(out.p, "command line"));
	CHECK(!strstr(out.p, "e+0"));
	buf_reset(&out);
	config_write_doc(&out);
	for (int id = 0; id < CONFIG_COUNT; id++)
		CHECK(strstr(out.p, config_name((enum setting)id)) != NULL);
	CHECK(strstr(out.p, "| `LAB_DURATION_HOURS` | `4` | 1 to 8760 | How long a track may hold a sandbox |\n"));
	buf_fini(&out);
	unload(&l);
	remove_folder();
}

/* --- values --- */

TEST(values_that_their_kind_does_not_allow_are_refused)
{
	static const char *const bad[] = {
		"LAB_DURATION_HOURS=0",
		"LAB_DURATION_HOURS=8761",
		"LAB_DURATION_HOURS=",
		"LAB_DURATION_HOURS=4h",
		"LAB_DURATION_HOURS=4.5",
		"LAB_DURATION_HOURS=+4",
		"LAB_DURATION_HOURS=0x4",
		"LAB_DURATION_HOURS=99999999999999999999",
		"CLEANUP_BATCH_DELAY_SEC=-1",
		"CLEANUP_BATCH_DELAY_SEC=",
		"CLEANUP_BATCH_DELAY_SEC=2s",
		"CLEANUP_BATCH_DELAY_SEC=nan",
		"CLEANUP_BATCH_DELAY_SEC=inf",
		"CLEANUP_BATCH_DELAY_SEC=86400.1",
		"CLEANUP_BATCH_DELAY_SEC=1,5",
		"CSP_TIMEOUT_CONNECT_SEC=0.05",
		"ENABLE_REQUEST_ID=yes",
		"ENABLE_REQUEST_ID=1",
		"ENABLE_REQUEST_ID=",
		"LOG_LEVEL=LOUD",
		"LOG_LEVEL=INFO ",
		"LOG_FORMAT=xml",
		"LEASEHOLD_LISTEN=",
		"API_BASE_PATH=/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
		"BROKER_API_TOKEN=short",
		"BROKER_API_TOKEN=" TRACK_TOKEN ",short",
		"BROKER_API_TOKEN=,",
		"BROKER_API_TOKEN=" TRACK_TOKEN ",,",
		"BROKER_API_TOKEN=with blank 0123456789",
		"BROKER_ADMIN_TOKEN=not-ascii-\xc3\xbc-0123456789",
		"METRICS_PORT=65536",
		"CSP_BASE_URL=ftp://x",
		"LEASEHOLD_TLS_CERT_FILE=only-one",
		"LEASEHOLD_TLS_KEY_FILE=only-one",
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct loaded l;
		char          name[64];

		CASE(bad[i]);
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(bad[i], "="), bad[i]);
		CHECK(load_variable(bad[i], &l) == RC_INVALID);
		CHECK(says(&l, name));
		unload(&l);
	}
}

TEST(values_at_their_limits_are_taken)
{
	static const struct {
		const char  *variable;
		enum setting id;
		int64_t      number;
	} good[] = {
		{ "LAB_DURATION_HOURS=1", CONFIG_LAB_HOURS, 1 },
		{ "LAB_DURATION_HOURS= 8760 ", CONFIG_LAB_HOURS, 8760 },
		{ "CLEANUP_BATCH_DELAY_SEC=0", CONFIG_CLEANUP_BATCH_DELAY, 0 },
		{ "CLEANUP_BATCH_DELAY_SEC=0.0015", CONFIG_CLEANUP_BATCH_DELAY, 2 },
		{ "CLEANUP_BATCH_DELAY_SEC=86400", CONFIG_CLEANUP_BATCH_DELAY, 86400000 },
		{ "CSP_TIMEOUT_CONNECT_SEC=0.1", CONFIG_CSP_CONNECT, 100 },
		{ "ENABLE_REQUEST_ID=FALSE", CONFIG_REQUEST_ID, 0 },
		{ "LOG_LEVEL=warning", CONFIG_LOG_LEVEL, 2 },
		{ "LOG_FORMAT=Text", CONFIG_LOG_FORMAT, 1 },
		{ "METRICS_PORT=65535", CONFIG_METRICS_PORT, 65535 },
		{ "BROKER_API_TOKEN=0123456789abcdef", CONFIG_API_TOKEN, 0 },
		{ "BROKER_API_TOKEN= " TRACK_TOKEN " , 0123456789abcdef,", CONFIG_API_TOKEN, 0 },
		{ "DDB_TABLE_NAME=anything", CONFIG_DDB_TABLE, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct loaded l;

		CASE(good[i].variable);
		CHECK(load_variable(good[i].variable, &l) == RC_OK);
		CHECK(config_number(&l.c, good[i].id) == good[i].number);
		CHECK(l.c.values[good[i].id].origin == FROM_ENVIRONMENT);
		unload(&l);
	}
}

TEST(base_paths_have_up_to_three_plain_parts)
{
	static const struct {
		const char *variable;
		bool        is_good;
	} rows[] = {
		{ "LEASEHOLD_ADMIN_ACCOUNTS=", true },
		{ "LEASEHOLD_ADMIN_ACCOUNTS=111122223333, 444455556666", true },
		{ "LEASEHOLD_ADMIN_ACCOUNTS=11112222333", false },
		{ "LEASEHOLD_ADMIN_ACCOUNTS=111122223333 444455556666", false },
		{ "LEASEHOLD_ADMIN_ACCOUNTS=111122223333,,444455556666", false },
		{ "API_BASE_PATH=", true },
		{ "API_BASE_PATH=/v1", true },
		{ "API_BASE_PATH=/a/b-c/d_e.f", true },
		{ "API_BASE_PATH=/a/b/c/d", false },
		{ "API_BASE_PATH=v1", false },
		{ "API_BASE_PATH=/", false },
		{ "API_BASE_PATH=/v1/", false },
		{ "API_BASE_PATH=//v1", false },
		{ "API_BASE_PATH=/a//b", false },
		{ "API_BASE_PATH=/a b", false },
		{ "API_BASE_PATH=/{id}", false },
		{ "API_BASE_PATH=/%41", false },
		{ "API_BASE_PATH=/v1?x", false },
		{ "API_BASE_PATH=/\xc3\xbc", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct loaded l;

		CASE(rows[i].variable);
		CHECK((load_variable(rows[i].variable, &l) == RC_OK) == rows[i].is_good);
		unload(&l);
	}
}

TEST(values_with_a_nul_byte_are_refused)
{
	static const struct str contents[] = { STR_INIT("API_BASE_PATH=/v\0001\n"),
		                               STR_INIT("LAB_DURATION_HOURS=4\0\n"),
		                               STR_INIT("CLEANUP_BATCH_DELAY_SEC=2\0x\n"),
		                               STR_INIT("LEASEHOLD_DATA=da\0ta\n") };

	make_folder();
	for (size_t i = 0; i < ARRAY_LEN(contents); i++) {
		struct loaded l;

		CASE(contents[i].p);
		write_file(contents[i]);
		load(&l, (const char *const[]){ NULL }, path);
		CHECK(l.rc == RC_INVALID);
		unload(&l);
	}
	remove_folder();
}

TEST(the_vendors_address_needs_its_token)
{
	struct loaded l;

	CHECK(load_variable("CSP_BASE_URL=https://vendor.example", &l) == RC_INVALID && says(&l, "CSP_API_TOKEN"));
	unload(&l);
	load(&l, (const char *const[]){ "CSP_BASE_URL=https://vendor.example", "CSP_API_TOKEN=x", NULL }, NULL);
	CHECK(l.rc == RC_OK);
	unload(&l);
}

TEST(all_problems_are_named_at_once)
{
	struct loaded l;

	make_folder();
	write_file(STR("NOT_OURS=1\nLAB_DURATION_HOURS=x\n"));
	load(&l,
	     (const char *const[]){ "LOG_LEVEL=LOUD", "LEASEHOLD_NOT_OURS=2", "BROKER_API_TOKEN=short",
	                            "API_BASE_PATH=/v1/", "LEASEHOLD_TLS_KEY_FILE=k", NULL },
	     path);
	CHECK(l.rc == RC_INVALID && lines(&l.problems) == 7);
	unload(&l);
	remove_folder();
}

TEST(secrets_are_never_printed)
{
	struct loaded l;
	struct buf    out;

	load(&l,
	     (const char *const[]){ "BROKER_API_TOKEN=" TRACK_TOKEN, "BROKER_ADMIN_TOKEN=" ADMIN_TOKEN,
	                            "CSP_API_TOKEN=vendor-secret", "CSP_BASE_URL=http://x", "LAB_DURATION_HOURS=17",
	                            NULL },
	     NULL);
	buf_init(&out, 1 << 20);
	config_print(&l.c, &out);
	CHECK(l.rc == RC_OK && strstr(out.p, "********") && strstr(out.p, "17") && strstr(out.p, "environment"));
	CHECK(!strstr(out.p, TRACK_TOKEN) && !strstr(out.p, ADMIN_TOKEN) && !strstr(out.p, "vendor-secret"));
	for (int id = 0; id < CONFIG_COUNT; id++)
		CHECK(strstr(out.p, config_name((enum setting)id)) != NULL);
	buf_fini(&out);
	unload(&l);
	load(&l, (const char *const[]){ "BROKER_API_TOKEN=sh0rt", "BROKER_ADMIN_TOKEN=sh0rt2", NULL }, NULL);
	CHECK(l.rc == RC_INVALID && !says(&l, "sh0rt"));
	unload(&l);
}

/* --- tokens --- */

static enum rc read_tokens(const char *track, const char *admin, struct api_tokens *ret, struct err *e)
{
	static struct config c;
	struct buf           problems;

	config_fini(&c);
	buf_init(&problems, 65536);
	rc_ignore(config_load(&c, (const char *const[]){ NULL }, NULL, &problems)); /* what is put over it is tested */
	config_set(&c, CONFIG_API_TOKEN, str_from(track), FROM_COMMAND_LINE);
	config_set(&c, CONFIG_ADMIN_TOKEN, str_from(admin), FROM_COMMAND_LINE);
	buf_fini(&problems);
	return ret ? tokens_read(&c, ret, e) : (config_fini(&c), RC_OK);
}

TEST(tokens_are_split_at_commas_and_trimmed)
{
	struct api_tokens t;

	CHECK(read_tokens(" one , two,three,", "four", &t, NULL) == RC_OK);
	CHECK(t.track.count == 3 && t.admin.count == 1);
	CHECK(str_eq(t.track.items[0], STR("one")) && str_eq(t.track.items[1], STR("two")) &&
	      str_eq(t.track.items[2], STR("three")));
	CHECK(str_eq(t.admin.items[0], STR("four")));
	CHECK(read_tokens("", "", NULL, NULL) == RC_OK);
}

TEST(both_lists_of_tokens_must_be_there_and_apart)
{
	struct api_tokens t;
	struct err        e = { 0 };

	CHECK(read_tokens("", "a", &t, &e) == RC_INVALID && strstr(e.msg, "must be set"));
	CHECK(read_tokens("a", "", &t, NULL) == RC_INVALID && read_tokens(" , ,", "a", &t, NULL) == RC_INVALID);
	err_clear(&e);
	CHECK(read_tokens("a,b,shared", "c,shared", &t, &e) == RC_INVALID && strstr(e.msg, "must not share"));
	CHECK(!strstr(e.msg, "shared"));
	CHECK(read_tokens("a,b", "ab,c", &t, NULL) == RC_OK);
	CHECK(read_tokens("", "", NULL, NULL) == RC_OK);
}

TEST(tokens_of_the_inbox_are_apart_from_all_others)
{
	static const struct {
		const char *inbox;
		enum rc     rc;
	} cases[] = { { "", RC_OK },
		      { "inbox-1, inbox-2", RC_OK },
		      { "inbox-1,track", RC_INVALID },
		      { "admin", RC_INVALID },
		      { "1,2,3,4,5,6,7,8,9", RC_INVALID } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct config     c;
		struct api_tokens t;
		struct buf        problems;

		CASE(cases[i].inbox);
		buf_init(&problems, 65536);
		CHECK(config_load(&c, (const char *const[]){ NULL }, NULL, &problems) == RC_OK);
		config_set(&c, CONFIG_API_TOKEN, STR("track"), FROM_COMMAND_LINE);
		config_set(&c, CONFIG_ADMIN_TOKEN, STR("admin"), FROM_COMMAND_LINE);
		config_set(&c, CONFIG_INBOX_TOKENS, str_from(cases[i].inbox), FROM_COMMAND_LINE);
		CHECK(tokens_read(&c, &t, NULL) == cases[i].rc);
		CHECK(i != 1 || (t.inbox.count == 2 && str_eq(t.inbox.items[1], STR("inbox-2"))));
		buf_fini(&problems);
		config_fini(&c);
	}
}

TEST(at_most_eight_tokens_are_taken)
{
	struct api_tokens t;
	struct err        e = { 0 };

	CHECK(read_tokens("1,2,3,4,5,6,7,8", "9", &t, NULL) == RC_OK && t.track.count == API_TOKENS_MAX);
	CHECK(read_tokens("1,2,3,4,5,6,7,8,9", "a", &t, &e) == RC_INVALID && strstr(e.msg, "BROKER_API_TOKEN"));
	CHECK(read_tokens("1", "2,3,4,5,6,7,8,9,a", &t, NULL) == RC_INVALID);
	CHECK(read_tokens("", "", NULL, NULL) == RC_OK);
}

#define SECRET "LEASEHOLD_JWT_SECRET=a secret for sessions of 32 bytes"
#define USERS  "LEASEHOLD_USERS_FILE=/dev/null"

TEST(development_mode_invents_tokens_once_and_keeps_them_private)
{
	struct loaded     l;
	struct api_tokens first, again;
	struct stat       st;
	char              data[128], kept[128];

	make_folder();
	snprintf(data, sizeof(data), "LEASEHOLD_DATA=%s", folder);
	load(&l, (const char *const[]){ data, SECRET, USERS, NULL }, NULL);
	CHECK(l.rc == RC_OK);
	CHECK(dev_prepare(&l.c, NULL) == RC_OK && tokens_read(&l.c, &first, NULL) == RC_OK);
	config_check(&l.c, &l.problems);
	CHECK(!l.problems.n && l.c.values[CONFIG_API_TOKEN].origin == FROM_DEV_MODE);
	CHECK(first.track.count == 1 && first.admin.count == 1 && !str_eq(first.track.items[0], first.admin.items[0]));
	snprintf(kept, sizeof(kept), "%.*s", STR_ARG(first.track.items[0]));
	unload(&l);
	snprintf(path, sizeof(path), "%s/tokens", folder);
	CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
	load(&l, (const char *const[]){ data, SECRET, USERS, "BROKER_ADMIN_TOKEN=" ADMIN_TOKEN, NULL }, NULL);
	CHECK(dev_prepare(&l.c, NULL) == RC_OK && tokens_read(&l.c, &again, NULL) == RC_OK);
	CHECK(str_eq(again.track.items[0], str_from(kept)) && str_eq(again.admin.items[0], STR(ADMIN_TOKEN)));
	unload(&l);
	remove_folder();
}

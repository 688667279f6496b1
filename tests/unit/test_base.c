/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include <math.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/metrics.h"
#include "base/process.h"
#include "base/steady.h"
#include "base/str.h"
#include "base/utf8.h"

TEST(numbers_outside_their_range_are_refused)
{
	static const struct {
		const char *label, *text;
		bool        is_ok;
		int64_t     value;
	} cases[] = {
		{ "plain", "42", true, 42 },
		{ "negative", "-7", true, -7 },
		{ "largest", "9223372036854775807", true, INT64_MAX },
		{ "smallest", "-9223372036854775808", true, INT64_MIN },
		{ "one over the largest", "9223372036854775808", false, 0 },
		{ "far over", "99999999999999999999999", false, 0 },
		{ "empty", "", false, 0 },
		{ "only a sign", "-", false, 0 },
		{ "plus sign", "+1", false, 0 },
		{ "blank before", " 1", false, 0 },
		{ "junk behind", "1x", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t value = 0;

		CASE(cases[i].label);
		CHECK(str_to_int(str_from(cases[i].text), INT64_MIN, INT64_MAX, &value) == cases[i].is_ok);
		CHECK(value == cases[i].value);
	}
	int64_t value;

	CHECK(!str_to_int(STR("11"), 0, 10, &value));
}

TEST(secrets_are_equal_only_when_every_byte_is)
{
	CHECK(str_eq_secret(STR("token"), STR("token")));
	CHECK(!str_eq_secret(STR("token"), STR("tokem")));
	CHECK(!str_eq_secret(STR("token"), STR("token1")));
	CHECK(!str_eq_secret(STR("token"), STR("")));
	CHECK(!str_eq_secret(STR(""), str_of("\0", 1)));
}

TEST(a_buffer_stops_at_its_maximum)
{
	struct buf b;

	buf_init(&b, 10);
	buf_add_text(&b, "12345678");
	CHECK(!b.is_full);
	buf_add_text(&b, "abc");
	CHECK(b.is_full);
	buf_add_text(&b, "d");
	CHECK(str_eq(buf_str(&b), STR("12345678")));
	buf_reset(&b);
	buf_add_int(&b, INT64_MIN / 1000000000000);
	CHECK(str_eq(buf_str(&b), STR("-9223372")));
	buf_add_int(&b, 12);
	CHECK(!b.is_full && str_eq(buf_str(&b), STR("-922337212")));
	buf_reset(&b);
	buf_add_int(&b, 12345678901);
	CHECK(b.is_full && b.n == 0);
	buf_fini(&b);
}

TEST(an_arena_survives_large_and_many_requests)
{
	struct arena a = { 0 };

	for (int round = 0; round < 3; round++) {
		for (size_t size = 1; size < 40000; size = size * 3 + 1) {
			char *memory = arena_alloc(&a, size);

			CHECK(((uintptr_t)memory & 15) == 0);
			CHECK(memory[0] == 0 && memory[size - 1] == 0);
			memory[0] = memory[size - 1] = 1;
		}
		arena_reset(&a);
	}
	arena_fini(&a);
}

/* What a process says on standard error that asks an arena for so much. */
static struct str last_words(size_t size, struct arena *a)
{
	struct str said;
	int        ends[2];
	pid_t      pid;

	CHECK(pipe(ends) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDERR_FILENO);
		(void)arena_alloc(a, size);
		_exit(0);
	}
	close(ends[1]);
	CHECK(file_read_all(ends[0], 65536, a, &said) == RC_OK);
	close(ends[0]);
	CHECK(process_wait(pid) != 0);
	return said;
}

TEST(a_size_that_no_memory_has_ends_the_program_with_the_reason)
{
	const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 64, SIZE_MAX / 2 };
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct str said = last_words(sizes[i], &a);

		/* The second is how sanitizers put it. */
		CHECK(strstr(said.p, "out of memory") || strstr(said.p, "exceeds maximum supported size"));
	}
	arena_fini(&a);
}

TEST(the_first_cause_of_a_failure_wins)
{
	struct err e = { 0 };

	CHECK(err_set(&e, RC_CONFLICT, "lease %d", 7) == RC_CONFLICT);
	CHECK(err_set(&e, RC_INVALID, "later") == RC_INVALID);
	CHECK(err_wrap(&e, RC_CONFLICT, "route") == RC_CONFLICT);
	CHECK(strcmp(e.msg, "route: lease 7") == 0);
	CHECK(strcmp(err_code(&e), "CONFLICT") == 0);
	CHECK(rc_http_status(e.rc) == 409);
}

/* Is it nothing but whole characters? */
static bool is_utf8(struct str s)
{
	size_t length;

	for (; s.n && (length = utf8_length(s)); s = str_skip(s, length))
		;
	return s.n == 0;
}

/* A byte that is no UTF-8 is stored as three on some stores, so that a text of the greatest length could no longer be
 * read there. */
TEST(a_message_is_made_of_whole_characters_wherever_it_is_cut)
{
	struct err e = { 0 };
	char       text[300];

	for (size_t first = 0; first < 4; first++) {
		memset(text, 'x', sizeof(text));
		for (size_t i = first; i + 4 < sizeof(text); i += 4)
			memcpy(text + i, "\xf0\x9f\x8c\x8d", 4);
		text[sizeof(text) - 1] = 0;
		err_clear(&e);
		(void)err_set(&e, RC_INVALID, "%s", text);
		CHECK(is_utf8(str_from(e.msg)) && strlen(e.msg) >= sizeof(e.msg) - 4);
		CHECK(strncmp(e.msg, text, strlen(e.msg)) == 0);
		(void)err_wrap(&e, RC_INVALID, "%.*s", (int)first, "wrapped");
		CHECK(is_utf8(str_from(e.msg)) && strlen(e.msg) >= sizeof(e.msg) - 4);
	}
	CASE("inside, a question mark stands for each byte that belongs to no character");
	err_clear(&e);
	(void)err_set(&e, RC_INVALID, "it says '%.4s', %s", "abc\xc3\xa9", "\xff");
	CHECK(strcmp(e.msg, "it says 'abc?', ?") == 0);
	CASE("one that fits stays as it is");
	err_clear(&e);
	(void)err_set(&e, RC_INVALID, "caf\xc3\xa9");
	CHECK(strcmp(e.msg, "caf\xc3\xa9") == 0);
}

TEST(a_failure_is_forgiven_or_passed_on_with_its_cause)
{
	struct err cause = { 0 }, e = { 0 };

	(void)err_set_code(&cause, RC_NOT_FOUND, "NoSuchThing", "lease %d", 7);
	CHECK(err_pass(&e, RC_OK, &cause) == RC_OK && !e.rc);
	CHECK(err_pass(&e, RC_TIMEOUT, &cause) == RC_TIMEOUT && e.rc == RC_TIMEOUT);
	CHECK(strcmp(e.msg, "lease 7") == 0 && strcmp(err_code(&e), "NoSuchThing") == 0);
	CHECK(err_forgive(&e, RC_TIMEOUT, RC_NOT_FOUND) == RC_TIMEOUT && e.rc == RC_TIMEOUT);
	CHECK(err_forgive(&e, RC_TIMEOUT, RC_TIMEOUT) == RC_OK && !e.rc && !e.msg[0]);
	CHECK(err_forgive(NULL, RC_NOT_FOUND, RC_NOT_FOUND) == RC_OK);
}

TEST(times_are_read_and_written_as_iso_8601)
{
	static const struct {
		const char *text;
		bool        is_ok;
		int64_t     sec;
	} cases[] = {
		{ "2026-11-15T18:03:43Z", true, 1794765823 },
		{ "2026-11-15T18:03:43.123456Z", true, 1794765823 },
		{ "2026-11-15T20:03:43+02:00", true, 1794765823 },
		{ "1970-01-01T00:00:00Z", true, 0 },
		{ "2024-02-29T00:00:00Z", true, 1709164800 },
		{ "2023-02-29T00:00:00Z", false, 0 },
		{ "2026-04-31T00:00:00Z", false, 0 },
		{ "2026-02-31T18:03:43Z", false, 0 },
		{ "2026-11-00T18:03:43Z", false, 0 },
		{ "2026-13-15T18:03:43Z", false, 0 },
		{ "2026-11-15 18:03:43Z", false, 0 },
		{ "2026-11-15T18:03:43", false, 0 },
		{ "2026-11-15T18:03:43+2:00", false, 0 },
		{ "", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int64_t sec = 0;

		CASE(cases[i].text);
		CHECK(iso_time_parse(str_from(cases[i].text), &sec) == cases[i].is_ok);
		CHECK(sec == cases[i].sec);
	}
	char text[ISO_TIME_SIZE];

	CHECK(str_eq(iso_time(1794765823, text), STR("2026-11-15T18:03:43Z")));
	CHECK(str_eq(iso_time(-61319138177, text), STR("0026-11-15T18:03:43Z")));
	CHECK(str_eq(iso_time(INT64_MAX, text), STR("")));
}

TEST(json_that_is_deep_doubled_or_broken_is_refused)
{
	static const char *const bad[] = {
		"",         "{",
		"{}x",      "{\"a\":1,\"a\":2}",
		"[1,]",     "{\"a\":NaN}",
		"\"\xff\"", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		json_t    *value = NULL;
		struct err e = { 0 };

		CASE(bad[i]);
		CHECK(json_parse(str_from(bad[i]), &value, &e) == RC_INVALID);
		CHECK(!value && e.msg[0]);
	}
}

TEST(a_small_object_has_the_members_that_are_there)
{
	struct arena a = { 0 };
	struct str   long_text = str_of(arena_alloc(&a, JSON_OF_MAX), JSON_OF_MAX);
	struct str   got = JSON_OF(&a, member_str("a", STR("x\"y")), member_if_any(member_str("b", STR(""))),
	                           member_int("c", -1), member_if_any(member_int("d", 0)), member_bool("e", false),
	                           member_time("f", 1763287200000), member_raw("g", JSON_OF(&a, member_word("h", "i"))),
	                           member_micro("j", 12500000), member_if(false, member_bool("k", true)));

	CHECK(str_eq(got,
	             STR("{\"a\":\"x\\\"y\",\"c\":-1,\"e\":false,\"f\":\"2025-11-16T10:00:00Z\",\"g\":{\"h\":\"i\"},"
	                 "\"j\":12.5}")));
	CHECK(JSON_OF(&a, member_str("a", long_text)).n == JSON_OF_MAX); /* refused by whatever takes such a text */
	arena_fini(&a);
}

TEST(what_is_written_as_json_reads_back_the_same)
{
	struct buf      b;
	struct json_out o;
	json_t         *value;
	struct str      text;

	buf_init(&b, 4096);
	o = JSON_OUT(&b);
	json_open_object(&o);
	json_put_str(&o, "text", STR("quote \" slash \\ line \n bell \a umlaut \xc3\xbc smile \xf0\x9f\x98\x80"));
	json_put_str(&o, "broken", STR("a\xff\xc3(b"));
	json_put_array(&o, "list");
	json_add_str(&o, STR("-5"));
	json_open_object(&o);
	json_close_object(&o);
	json_close_array(&o);
	json_put_real(&o, "real", 0.1);
	json_put_null(&o, "none");
	json_close_object(&o);
	assert_int_equal(json_parse(buf_str(&b), &value, NULL), RC_OK);
	CHECK(json_get_text(value, "text", &text));
	CHECK(str_eq(text, STR("quote \" slash \\ line \n bell \a umlaut \xc3\xbc smile \xf0\x9f\x98\x80")));
	CHECK(json_get_text(value, "broken", &text));
	CHECK(str_eq(text, STR("a\xef\xbf\xbd\xef\xbf\xbd(b")));
	CHECK(strstr(b.p, "\"list\":[\"-5\",{}],\"real\":0.1,\"none\":null}") != NULL);
	json_decref(value);
	buf_fini(&b);
}

static void write_slowly(struct buf *b, struct str s)
{
	buf_add_char(b, '"');
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];

		if (c == '"' || c == '\\')
			buf_addf(b, "\\%c", c);
		else if (c == '\n' || c == '\r' || c == '\t')
			buf_addf(b, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
		else if (c < ' ')
			buf_addf(b, "\\u%04x", c);
		else if (c >= 0x80)
			buf_add_text(b, "\xef\xbf\xbd");
		else
			buf_add_char(b, (char)c);
	}
	buf_add_char(b, '"');
}

/* Letters and this byte among them, as a value and as a name, in memory of just their size. */
static void check_written(size_t n, size_t at, int c)
{
	CLEANUP(buf_fini) struct buf ours = BUF(1000);
	CLEANUP(buf_fini) struct buf theirs = BUF(1000);
	struct json_out              o = JSON_OUT(&ours);
	char                        *text = mem_alloc(n), *name;

	memset(text, 'a', n);
	text[at] = (char)c;
	name = mem_alloc(n + 1);
	memcpy(name, text, n);
	json_open_object(&o);
	JSON_PUT(&o, member_str(c ? name : "a", str_of(text, n)));
	json_close_object(&o);
	buf_add_char(&theirs, '{');
	write_slowly(&theirs, c ? str_of(text, n) : STR("a"));
	buf_add_char(&theirs, ':');
	write_slowly(&theirs, str_of(text, n));
	buf_add_char(&theirs, '}');
	CHECK(str_eq(buf_str(&ours), buf_str(&theirs)));
	CHECK(str_is_visible(str_of(text, n)) == (c > ' ' && c < 0x7f));
	free(name);
	free(text);
}

/* Several bytes are looked at in one step, so that a place in it, and how many there are, could matter. */
TEST(every_byte_is_written_as_json_the_same_at_every_place)
{
	for (size_t n = 1; n <= 40; n++)
		for (size_t at = 0; at < n; at++)
			for (int c = 0; c < 256; c++)
				check_written(n, at, c);
}

TEST(numbers_are_written_in_the_shortest_form_that_reads_back)
{
	static const struct {
		double      value;
		const char *text;
	} cases[] = {
		{ 0, "0" },
		{ 0.1, "0.1" },
		{ -3, "-3" },
		{ 12345.678, "12345.678" },
		{ 999999999999999.0, "999999999999999" },
		{ 1e15, "1e+15" },
		{ 9223372036854775808.0, "9.223372036854776e+18" },
		{ 1e300, "1e+300" },
		{ -1e300, "-1e+300" },
		{ INFINITY, "null" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_fini) struct buf b = BUF(4096);
		struct json_out              o = JSON_OUT(&b);

		CASE(cases[i].text);
		json_open_object(&o);
		json_put_real(&o, "n", cases[i].value);
		json_close_object(&o);
		CHECK(str_starts_with(buf_str(&b), STR("{\"n\":")) && buf_str(&b).n == strlen(cases[i].text) + 6);
		CHECK(memcmp(b.p + 5, cases[i].text, strlen(cases[i].text)) == 0);
	}
}

TEST(a_scaled_clock_goes_faster_by_its_scale_and_from_its_start_on)
{
	struct wall  start = { 1700000000000 };
	struct clock fast = clock_scaled(start, 3600), slow = clock_scaled(start, 1);
	int64_t      before_us = mono_ns() / 1000, least_ms, most_ms;
	struct wall  shown;
	struct mono  mono;

	CHECK(clock_now(&slow).ms >= start.ms && clock_now(&slow).ms < start.ms + 60000);
	while (mono_ns() / 1000 < before_us + 2000)
		; /* two milliseconds: too short to be worth a sleep */
	least_ms = (mono_ns() / 1000 - fast.start_us) * 3600 / 1000;
	shown = clock_now(&fast);
	mono = clock_mono(&fast);
	most_ms = (mono_ns() / 1000 - fast.start_us) * 3600 / 1000;
	CHECK(least_ms >= 7200);
	CHECK(shown.ms >= start.ms + least_ms && shown.ms <= start.ms + most_ms);
	CHECK(mono.ms >= fast.start_us / 1000 + least_ms && mono.ms <= fast.start_us / 1000 + most_ms);
	CHECK(!clock_is_real(&fast) && clock_is_real(&clock_real));
}

TEST(spans_of_a_scaled_clock_and_waits_of_the_machine_belong_together)
{
	struct clock fast = clock_scaled((struct wall){ 0 }, 3600);

	CHECK(clock_span_ms(&fast, 120000) == 432000000);
	CHECK(clock_wait_ms(&fast, 259200000) == 72000);
	CHECK(clock_wait_ms(&fast, 1) == 1); /* who waits too short looks again and again */
	CHECK(clock_wait_ms(&fast, 3601) == 2);
	CHECK(clock_wait_ms(&fast, 0) == 0);
	CHECK(clock_wait_ms(&fast, -5000) <= 0);
	CHECK(clock_span_ms(&clock_real, 120000) == 120000 && clock_wait_ms(&clock_real, 120000) == 120000);
}

TEST(metrics_are_shown_in_prometheus_text)
{
	struct metrics *m = metrics_new();
	struct buf      b;

	buf_init(&b, 1 << 20);
	metrics_add(m, METRIC_ALLOCATE, "success", 3);
	metrics_set(m, METRIC_POOL_TOTAL, 200);
	metrics_observe(m, METRIC_REQUEST_LATENCY, "POST,/v1/allocate,201", 0.03);
	metrics_write(m, &b);
	CHECK(strstr(b.p, "broker_allocate_total{outcome=\"success\"} 3\n") != NULL);
	CHECK(strstr(b.p, "\nbroker_pool_total 200\n") != NULL);
	CHECK(strstr(b.p, "_bucket{method=\"POST\",endpoint=\"/v1/allocate\",status=\"201\",le=\"0.025\"} 0\n") !=
	      NULL);
	CHECK(strstr(b.p, "_bucket{method=\"POST\",endpoint=\"/v1/allocate\",status=\"201\",le=\"0.05\"} 1\n") != NULL);
	buf_fini(&b);
	metrics_free(m);
}

TEST(uuids_have_their_version_and_differ)
{
	char a[ID_UUID_SIZE], b[ID_UUID_SIZE];

	id_uuid(a);
	id_uuid(b);
	CHECK(strlen(a) == 36 && a[14] == '4' && strchr("89ab", a[19]));
	CHECK(strcmp(a, b) != 0);
}

TEST(an_amount_is_rounded_as_the_browser_rounds_it)
{
	static const struct {
		double      dollars;
		const char *text;
	} rows[] = { { 55.645, "55.65" }, { 1.005, "1.01" }, { 55.644999, "55.64" }, { 0, "0.00" },
		     { -0.004, "0.00" },  { -2.5, "-2.50" }, { 1339.42, "1339.42" }, { 0.29, "0.29" } };
	struct arena a = { 0 };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		CASE(rows[i].text);
		CHECK(str_eq(json_dollars(&a, rows[i].dollars), str_from(rows[i].text)));
	}
	arena_fini(&a);
}

TEST(json_with_too_many_values_is_refused_and_strings_do_not_count)
{
	json_t    *value = NULL;
	struct err e = { 0 };

	CHECK(json_parse_limited(STR("[1,2,{\"a\":3}]"), 5, &value, &e) == RC_OK);
	json_decref(value);
	CHECK(json_parse_limited(STR("[\"[[[[,,,,::::{{{{\\\",,,,\"]"), 1, &value, &e) == RC_OK);
	json_decref(value);
	CHECK(json_parse_limited(STR("[1,2,{\"a\":3}]"), 4, &value, &e) == RC_INVALID);
	CHECK(strstr(e.msg, "more than 4"));
}

#define DAY_MS 86400000ll

TEST(a_line_is_cut_off_whatever_ends_it)
{
	struct str rest = STR("a\r\n\r\nb\nc");

	CHECK(str_eq(str_cut_line(&rest), STR("a")) && str_eq(str_cut_line(&rest), STR("")));
	CHECK(str_eq(str_cut_line(&rest), STR("b")) && str_eq(str_cut_line(&rest), STR("c")) && rest.n == 0);
	CHECK(str_cut_line(&rest).n == 0);
}

TEST(a_sleep_that_should_be_over_already_ends_at_once)
{
	int64_t began_ns = mono_ns();

	mono_sleep(-1);
	mono_sleep(-3600000);
	mono_sleep(0);
	CHECK(mono_ns() - began_ns < 60 * (int64_t)1000000000);
}

TEST(a_date_that_jumps_is_not_followed_until_it_is_set_back_accepted_or_confirmed)
{
	static const struct {
		const char *label;
		int64_t     jump_ms; /* of the machine's date, after an hour */
		bool        is_followed;
	} rows[] = {
		{ "no jump", 0, true },
		{ "a small correction", 30000, true },
		{ "a small correction back", -60000, true },
		{ "a day forward", DAY_MS, false },
		{ "ten days forward", 10 * DAY_MS, false },
		{ "an hour back", -3600000, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct steady_reading now = { 1000 * DAY_MS, 5000 };
		struct steady         s;
		int64_t               ours_ms;

		CASE(rows[i].label);
		steady_init(&s);
		CHECK(steady_time(&s, now) == now.machine_ms);
		now.boot_ms += 3600000;
		ours_ms = now.machine_ms += 3600000;
		now.machine_ms += rows[i].jump_ms;
		CHECK(steady_time(&s, now) == (rows[i].is_followed ? now.machine_ms : ours_ms));
		CHECK(steady_differs_ms(&s) == (rows[i].is_followed ? 0 : rows[i].jump_ms));
		if (rows[i].is_followed)
			continue;
		now.boot_ms += 8000; /* and back after 8 s */
		now.machine_ms += 8000 - rows[i].jump_ms;
		CHECK(steady_time(&s, now) == ours_ms + 8000 && steady_differs_ms(&s) == 0);
		now.machine_ms += rows[i].jump_ms;
		CHECK(steady_time(&s, now) == ours_ms + 8000);
		CHECK(!steady_hear(&s, now, ours_ms + 8000 + 1500) && steady_differs_ms(&s) == rows[i].jump_ms);
		CHECK(!steady_hear(&s, now, now.machine_ms + 21000));
		CHECK(steady_hear(&s, now, now.machine_ms - 1500) && steady_time(&s, now) == now.machine_ms);
		now.machine_ms -= rows[i].jump_ms;
		CHECK(steady_time(&s, now) != now.machine_ms);
		steady_accept(&s, now);
		CHECK(steady_time(&s, now) == now.machine_ms && steady_differs_ms(&s) == 0);
	}
}

TEST(a_machine_that_slept_is_believed)
{
	struct steady_reading now = { 1000 * DAY_MS, 5000 };
	struct steady         s;

	steady_init(&s);
	(void)steady_time(&s, now);
	now.machine_ms += 3 * DAY_MS;
	now.boot_ms += 3 * DAY_MS;
	CHECK(steady_time(&s, now) == now.machine_ms && steady_differs_ms(&s) == 0);
}

TEST(after_a_restart_a_date_that_was_not_followed_is_still_not)
{
	static const struct {
		const char *label;
		int64_t     differs_ms, machine_ms; /* the latter since it was told */
		bool        is_followed;
	} rows[] = {
		{ "nothing was wrong", 0, 60000, true },
		{ "still ten days ahead", 10 * DAY_MS, 10 * DAY_MS + 60000, false },
		{ "set right", 10 * DAY_MS, 60000, true },
		{ "still a day behind", -DAY_MS, -DAY_MS + 60000, false },
		{ "set right again", -DAY_MS, 60000, true },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t               told_ms = 1000 * DAY_MS;
		struct steady_reading now = { told_ms + rows[i].machine_ms, 7000 };
		struct steady         s;

		CASE(rows[i].label);
		steady_init(&s);
		steady_resume(&s, now, rows[i].differs_ms, told_ms);
		CHECK(steady_time(&s, now) == told_ms + 60000);
		CHECK((steady_differs_ms(&s) == 0) == rows[i].is_followed);
	}
}

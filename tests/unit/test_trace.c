/* SPDX-License-Identifier: Apache-2.0 */
/* test_trace.c - which trace contexts are taken, and how they are handed on. */
#include "test.h"

#include "base/trace.h"

#define ID     "5759e988bd862e3fe1be46a994272793"
#define PARENT "53995c3f42cd8ad8"
#define ZEROS  "00000000000000000000000000000000"
#define ROOT   "Root=1-5759e988-bd862e3fe1be46a994272793"

static const struct {
	const char *standard, *amazon, *taken;
} cases[] = {
	{ "00-" ID "-" PARENT "-01", "", "00-" ID "-" PARENT "-01" },
	{ "00-" ID "-" PARENT "-00", ROOT, "00-" ID "-" PARENT "-00" },
	{ "01-" ID "-" PARENT "-01-more", "", "00-" ID "-" PARENT "-01" },
	{ "01-" ID "-" PARENT "-01more", "", "" },
	{ "00-" ID "-" PARENT "-01-more", "", "" },
	{ "ff-" ID "-" PARENT "-01", "", "" },
	{ "00-" ZEROS "-" PARENT "-01", "", "" },
	{ "00-" ID "-0000000000000000-01", "", "" },
	{ "00-" ID "-" PARENT "-0", "", "" },
	{ "00-5759E988bd862e3fe1be46a994272793-" PARENT "-01", "", "" },
	{ "00_" ID "-" PARENT "-01", "", "" },
	{ "", "", "" },
	{ "", ROOT ";Parent=" PARENT ";Sampled=1", "00-" ID "-" PARENT "-01" },
	{ "nonsense", ROOT "; Sampled=0; Parent=" PARENT, "00-" ID "-" PARENT "-00" },
	{ "", "Self=1-67891234-12456789abcdef012345678;" ROOT, "00-" ID "-e1be46a994272793-00" },
	{ "", "Root=1-5759e988-bd862e3fe1be46a99427279", "" },
	{ "", "Root=2-5759e988-bd862e3fe1be46a994272793", "" },
	{ "", "Root=1-5759e988-bd862e3fe1be46a99427279g", "" },
	{ "", ROOT ";Parent=53995c3f", "" },
	{ "", ";;=;Root", "" },
};

TEST(only_what_the_standard_allows_is_taken)
{
	struct trace got;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_taken = trace_read(str_from(cases[i].standard), str_from(cases[i].amazon), &got);

		CASE(cases[i].standard[0] ? cases[i].standard : cases[i].amazon);
		CHECK(is_taken == (cases[i].taken[0] != '\0'));
		CHECK(str_eq(str_from(got.text), str_from(cases[i].taken)));
	}
}

TEST(both_spellings_name_the_same_trace)
{
	char buf[TRACE_AMAZON_SIZE];

	CHECK(str_eq(trace_id(STR("00-" ID "-" PARENT "-01")), str_from(ID)));
	CHECK(str_eq(trace_id(STR("")), str_from("")));
	CHECK(str_eq(str_from(trace_to_amazon(STR("00-" ID "-" PARENT "-0b"), buf)),
	             str_from(ROOT ";Parent=" PARENT ";Sampled=1")));
	CHECK(str_eq(str_from(trace_to_amazon(STR("00-" ID "-" PARENT "-02"), buf)),
	             str_from(ROOT ";Parent=" PARENT ";Sampled=0")));
}

TEST(a_thread_returns_to_what_it_did_before)
{
	struct trace outer = trace_enter(STR("00-" ID "-" PARENT "-01")), inner;

	inner = trace_enter(STR("of another length"));
	CHECK(!trace_current().n);
	trace_return(&inner);
	CHECK(str_eq(trace_current(), str_from("00-" ID "-" PARENT "-01")));
	trace_return(&outer);
	CHECK(!trace_current().n);
}

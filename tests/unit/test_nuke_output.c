/* SPDX-License-Identifier: Apache-2.0 */
/* What aws-nuke 2.16 writes, and what follows from it. The texts are its own. */
#include "providers/nuke/output.h"

#include <string.h>

#include "test.h"

#define QUEUE "us-east-1 - SQSQueue - https://sqs.us-east-1.amazonaws.com/111111111111/"

static const char head[] =
        "aws-nuke version unknown - unknown - unknown\n"
        "\n"
        "Do you really want to nuke the account with the ID 111111111111 and the alias 'sandbox-1'?\n"
        "Waiting 3s before continuing.\n";

static const char dry[] = QUEUE
        "a - would remove\n" QUEUE "stays - filtered by config\n"
        "Scan complete: 2 total, 1 nukeable, 1 filtered.\n"
        "\n"
        "The above resources would be deleted with the supplied configuration. Provide --no-dry-run to actually "
        "destroy resources.\n";

static const char good[] = QUEUE "a - would remove\n" QUEUE "stays - filtered by config\n"
                                 "Scan complete: 2 total, 1 nukeable, 1 filtered.\n"
                                 "\n" QUEUE "a - triggered remove\n"
                                 "\n"
                                 "Removal requested: 1 waiting, 0 failed, 1 skipped, 0 finished\n"
                                 "\n" QUEUE "a - waiting\n" QUEUE "a - removed\n"
                                 "\n"
                                 "Removal requested: 0 waiting, 0 failed, 1 skipped, 1 finished\n"
                                 "\n"
                                 "Nuke complete: 0 failed, 1 skipped, 1 finished.\n";

static const char bad[] = QUEUE
        "a - would remove\n" QUEUE "keep - would remove\n"
        "Scan complete: 2 total, 2 nukeable, 0 filtered.\n"
        "\n" QUEUE "a - failed\n" QUEUE "keep - failed\n"
        "Removal requested: 0 waiting, 2 failed, 0 skipped, 0 finished\n"
        "\n" QUEUE "keep - failed\n" QUEUE "a - triggered remove\n" QUEUE "a - removed\n"
        "Removal requested: 0 waiting, 1 failed, 0 skipped, 1 finished\n"
        "time=\"2026-11-16T00:15:50Z\" level=error msg=\"There are resources in failed state, but none are ready for deletion, "
        "anymore.\"\n"
        "\n" QUEUE "keep - failed\n"
        "time=\"2026-11-16T00:15:50Z\" level=error msg=\"AccessDenied: explicit deny\\n\\tstatus code: 403, request id: r-1\"\n"
        "Error: failed\n";

static const char unlisted[] =
        "time=\"2026-11-16T00:15:53Z\" level=error msg=\"Listing SQSQueue failed:\\n    AccessDenied: no "
        "list\\n    \\tstatus code: 403, request id: r-1\"\n"
        "Scan complete: 0 total, 0 nukeable, 0 filtered.\n"
        "\n"
        "No resource to delete.\n";

static const char empty[] = "Scan complete: 0 total, 0 nukeable, 0 filtered.\n\nNo resource to delete.\n";

static void read_text(struct nuke_output *o, const char *text)
{
	nuke_output_init(o);
	nuke_output_feed(o, str_from(head));
	nuke_output_feed(o, str_from(text));
	nuke_output_end(o);
}

static bool is_text(const struct buf *b, const char *text)
{
	return str_eq(buf_str(b), str_from(text));
}

TEST(a_run_is_read_with_what_it_removed_and_what_it_left)
{
	struct nuke_output o;

	read_text(&o, good);
	CHECK(o.total == 2 && o.nukeable == 1 && o.filtered == 1);
	CHECK(o.failed == 0 && o.skipped == 1 && o.finished == 1 && o.is_complete);
	CHECK(o.removed_count == 1 && is_text(&o.removed, QUEUE "a\n"));
	CHECK(is_text(&o.kept, QUEUE "stays - filtered by config\n"));
	nuke_output_fini(&o);
}

TEST(a_resource_that_failed_is_kept_once_and_not_when_it_went_later)
{
	struct nuke_output o;

	read_text(&o, bad);
	CHECK(o.failed == 1 && o.finished == 1 && !o.is_complete);
	CHECK(is_text(&o.removed, QUEUE "a\n"));
	CHECK(is_text(&o.kept, QUEUE "keep - failed\n"));
	CHECK(str_eq(str_from(o.cause), STR("AccessDenied: explicit deny status code: 403, request id: r-1")));
	CHECK(str_eq(str_from(o.error), STR("failed")));
	nuke_output_fini(&o);
}

TEST(output_cut_anywhere_reads_the_same)
{
	struct nuke_output whole;
	size_t             n = strlen(bad);

	read_text(&whole, bad);
	for (size_t cut = 0; cut <= n; cut++) {
		struct nuke_output o;

		nuke_output_init(&o);
		nuke_output_feed(&o, str_of(bad, cut));
		nuke_output_feed(&o, str_of(bad + cut, n - cut));
		nuke_output_end(&o);
		CHECK(o.failed == whole.failed && o.removed_count == whole.removed_count &&
		      o.nukeable == whole.nukeable);
		CHECK(str_eq(buf_str(&o.kept), buf_str(&whole.kept)));
		CHECK(strcmp(o.cause, whole.cause) == 0);
		nuke_output_fini(&o);
	}
	nuke_output_fini(&whole);
}

TEST(the_last_line_needs_no_end)
{
	struct nuke_output o;

	read_text(&o, "Scan complete: 3 total, 2 nukeable, 1 filtered.");
	CHECK(o.nukeable == 2);
	nuke_output_fini(&o);
}

/* clang-format off */
static const struct {
	const char       *label;
	const char       *text;
	bool              is_dry;
	int               exit_code;
	enum nuke_verdict verdict;
	const char       *why; /* part of it */
} cases[] = {
	{ "an empty account is clean after the dry run",     empty,    true,  0,   NUKE_CLEAN,  ""                                    },
	{ "what would be removed needs a run",               dry,      true,  0,   NUKE_DIRTY,  ""                                    },
	{ "a dry run that was refused failed",               "Error: Your account is blocklisted.\n",
	                                                               true,  255, NUKE_FAILED, "exit code 255: Your account is"      },
	{ "a dry run that says nothing failed",              "",       true,  0,   NUKE_FAILED, "did not say what it found"           },
	{ "what could not be listed is not clean",           unlisted, true,  0,   NUKE_FAILED, "could not list 1 kind of resources"  },
	{ "a run that removed everything is clean",          good,     false, 0,   NUKE_CLEAN,  ""                                    },
	{ "an exit code is believed when it complains",      good,     false, 1,   NUKE_FAILED, "exit code 1"                         },
	{ "a run that left something names it, and why",     bad,      false, 255, NUKE_FAILED, "1 resource could not be removed, first " QUEUE "keep: AccessDenied: explicit deny" },
	{ "no exit code hides what is left",                 bad,      false, 0,   NUKE_FAILED, "1 resource could not be removed"     },
	{ "a run that broke off failed",                     dry,      false, 0,   NUKE_FAILED, "did not say that it is through"      },
	{ "others may have removed it all in between",       empty,    false, 0,   NUKE_CLEAN,  ""                                    },
	{ "a run that could not list is not clean either",   unlisted, false, 0,   NUKE_FAILED, "could not list 1 kind of resources"  },
};
/* clang-format on */

TEST(a_verdict_follows_from_the_exit_code_and_the_words)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct nuke_output o;
		struct buf         why;
		enum nuke_verdict  verdict;

		CASE(cases[i].label);
		buf_init(&why, 4096);
		read_text(&o, cases[i].text);
		verdict = cases[i].is_dry ? nuke_judge_scan(&o, cases[i].exit_code, &why)
		                          : nuke_judge_run(&o, cases[i].exit_code, &why);
		CHECK(verdict == cases[i].verdict);
		CHECK(verdict == NUKE_FAILED ? strstr(why.p, cases[i].why) != NULL : why.n == 0);
		nuke_output_fini(&o);
		buf_fini(&why);
	}
}

TEST(lists_have_limits_and_counts_go_on)
{
	struct nuke_output o;
	const int          many = 5000;

	nuke_output_init(&o);
	for (int i = 0; i < many; i++) {
		char line[128];
		int  n = snprintf(line, sizeof(line), "us-east-1 - SQSQueue - queue-%d - removed\n", i);

		nuke_output_feed(&o, str_of(line, (size_t)n));
	}
	nuke_output_end(&o);
	CHECK(o.removed_count == many);
	CHECK(o.removed.n <= CLOUD_REMOVED_MAX && o.removed.n > CLOUD_REMOVED_MAX - 128);
	CHECK(o.removed.p[o.removed.n - 1] == '\n');
	nuke_output_fini(&o);
}

TEST(a_line_without_end_is_read_up_to_its_limit)
{
	struct nuke_output o;

	nuke_output_init(&o);
	for (int i = 0; i < 3 * NUKE_LINE_MAX; i++)
		nuke_output_feed(&o, STR("x"));
	nuke_output_feed(&o, STR("\nScan complete: 1 total, 1 nukeable, 0 filtered.\n"));
	CHECK(o.nukeable == 1 && o.line.n == 0);
	nuke_output_fini(&o);
}

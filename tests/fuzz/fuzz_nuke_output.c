/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_nuke_output.c - whatever aws-nuke writes, and wherever it is cut, lists keep their limits, lines are whole, and
 * the verdict is the same. */
#include "fuzz.h"

#include <string.h>

#include "providers/nuke/output.h"

static void check_list(const struct buf *list, size_t max)
{
	must(list->n <= max);
	must(list->n == 0 || list->p[list->n - 1] == '\n');
}

static enum nuke_verdict read_in_two(const uint8_t *data, size_t size, size_t cut, struct buf *why)
{
	struct nuke_output o;
	enum nuke_verdict  verdict;

	nuke_output_init(&o);
	nuke_output_feed(&o, str_of((const char *)data, cut));
	nuke_output_feed(&o, str_of((const char *)data + cut, size - cut));
	nuke_output_end(&o);
	check_list(&o.removed, CLOUD_REMOVED_MAX);
	check_list(&o.kept, CLOUD_KEPT_MAX);
	must(o.removed_count >= 0 && o.nukeable >= -1 && o.failed >= -1);
	verdict = nuke_judge_scan(&o, 0, why);
	must(verdict == NUKE_FAILED ? why->n > 0 : why->n == 0);
	(void)nuke_judge_run(&o, 0, why);
	nuke_output_fini(&o);
	return verdict;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf        whole, parts;
	enum nuke_verdict verdict;

	buf_init(&whole, 16384);
	buf_init(&parts, 16384);
	verdict = read_in_two(data, size, size, &whole);
	must(read_in_two(data, size, size / 2, &parts) == verdict);
	must(str_eq(buf_str(&whole), buf_str(&parts)));
	buf_fini(&whole);
	buf_fini(&parts);
	return 0;
}

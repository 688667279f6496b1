/* SPDX-License-Identifier: Apache-2.0 */
/* test.c - runs the registered tests. With an argument, only those whose name contains it. */
#include "test.h"

#include <stdio.h>
#include <string.h>

enum { TESTS_MAX = 512 };

static struct CMUnitTest tests[TESTS_MAX];
static size_t            test_count;
static const char       *current_case = "";

void test_register(const char *name, void (*run)(void **state))
{
	if (test_count < TESTS_MAX)
		tests[test_count++] = (struct CMUnitTest){ .name = name, .test_func = run };
}

void test_case(const char *label)
{
	current_case = label;
}

void test_check(bool is_true, const char *condition, const char *file, int line)
{
	if (is_true)
		return;
	if (current_case[0])
		print_error("case: %s\n", current_case);
	_assert_true(0, condition, file, line);
}

static int forget_case(void **state)
{
	(void)state;
	current_case = "";
	return 0;
}

int main(int argc, char **argv)
{
	size_t kept = 0;

	for (size_t i = 0; i < test_count; i++) {
		if (argc > 1 && !strstr(tests[i].name, argv[1]))
			continue;
		tests[i].setup_func = forget_case;
		tests[kept++] = tests[i];
	}
	if (kept == 0) {
		fprintf(stderr, "no test matches '%s'\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	return _cmocka_run_group_tests("leasehold", tests, kept, NULL, NULL);
}

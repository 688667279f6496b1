/* test.h - a thin layer over cmocka: TEST() registers itself, CASE() names the row that a failing CHECK() belongs
 * to. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/str.h"

/* A test's name is a sentence that is true. */
#define TEST(name)                                                     \
	static void                              name(void **state_);  \
	__attribute__((constructor)) static void register_##name(void) \
	{                                                              \
		test_register(#name, name);                            \
	}                                                              \
	static void name(void **state_ __attribute__((unused)))

#define CASE(label)      test_case(label)
#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)

void test_register(const char *name, void (*run)(void **state));
void test_case(const char *label);
void test_check(bool is_true, const char *condition, const char *file, int line);

static inline bool text_has(struct str text, const char *part)
{
	return str_has(text, str_from(part));
}

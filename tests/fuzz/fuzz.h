/* fuzz.h - what every fuzz target needs: a promise that ends the program when it is broken. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(bool is_true)
{
	if (!is_true)
		abort();
}

/* bar.h - counts as a bar of characters with a legend, and numbers over time as a line of small columns. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { BAR_PARTS_MAX = 12 };

struct bar_part {
	const char *member; /* of the counts, a JSON object */
	const char *label;
	const char *colour; /* with colour all parts are blocks, */
	char        mark;   /* without, each has a character of its own */
};

/* One line of `width` characters; a part that is not empty has at least one of them. Nothing at all is dots. */
void bar_print(FILE *out, const json_t *counts, const struct bar_part *parts, size_t count, size_t width,
               bool is_coloured);

/* "# free 180  = claimed 20": the parts that are not empty, in lines of `width` characters; all but the first begin behind `indent`. */
void bar_legend(FILE *out, const json_t *counts, const struct bar_part *parts, size_t count, size_t indent,
                size_t width, bool is_coloured);

/* The last `width` numbers, as eighths of the greatest. */
void bar_series(FILE *out, const json_t *series, const char *member, size_t width);

/* The sum of the parts. */
int64_t bar_total(const json_t *counts, const struct bar_part *parts, size_t count);

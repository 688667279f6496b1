/* SPDX-License-Identifier: Apache-2.0 */
/* bar.c - small pictures of numbers. What they say is said in numbers too: nobody has to read colours. */
#include "cli/bar.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"

static int64_t count_of(const json_t *counts, const struct bar_part *part)
{
	int64_t n;

	return json_get_number(counts, part->member, 0, &n) && n > 0 ? n : 0;
}

int64_t bar_total(const json_t *counts, const struct bar_part *parts, size_t count)
{
	int64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += count_of(counts, &parts[i]);
	return total;
}

/* How many characters each part gets: its share, but one at least; the longest gives or takes what is left. */
static void share(const json_t *counts, const struct bar_part *parts, size_t count, int64_t total, size_t width,
                  size_t *ret)
{
	size_t longest = 0;
	size_t used = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t n = count_of(counts, &parts[i]);

		ret[i] = (size_t)((double)n / (double)total * (double)width);
		if (n && !ret[i])
			ret[i] = 1;
		used += ret[i];
		if (ret[i] > ret[longest])
			longest = i;
	}
	ret[longest] += width - used; /* wraps and comes back when too many were used */
}

void bar_print(FILE *out, const json_t *counts, const struct bar_part *parts, size_t count, size_t width,
               bool is_coloured)
{
	size_t  cells[BAR_PARTS_MAX];
	int64_t total = bar_total(counts, parts, count);

	assert(count <= BAR_PARTS_MAX);
	if (!total) {
		for (size_t k = 0; k < width; k++)
			fputc('.', out);
		return;
	}
	share(counts, parts, count, total, width, cells);
	for (size_t i = 0; i < count; i++) {
		if (is_coloured && cells[i])
			fputs(parts[i].colour, out);
		for (size_t k = 0; k < cells[i]; k++)
			if (is_coloured)
				fputs("\xe2\x96\x88", out);
			else
				fputc(parts[i].mark, out);
		if (is_coloured && cells[i])
			fputs("\033[0m", out);
	}
}

void bar_legend(FILE *out, const json_t *counts, const struct bar_part *parts, size_t count, size_t indent,
                size_t width, bool is_coloured)
{
	size_t at = indent;

	for (size_t i = 0; i < count; i++) {
		int64_t n = count_of(counts, &parts[i]);
		char    text[64];
		size_t  length;

		if (!n)
			continue;
		length = (size_t)snprintf(text, sizeof(text), "%s %" PRId64, parts[i].label, n) + 2;
		if (at > indent && at + 2 + length > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
		}
		if (at > indent)
			at += (size_t)fprintf(out, "  ");
		if (is_coloured)
			fprintf(out, "%s\xe2\x96\x88\033[0m %s", parts[i].colour, text);
		else
			fprintf(out, "%c %s", parts[i].mark, text);
		at += length;
	}
	fputc('\n', out);
}

void bar_series(FILE *out, const json_t *series, const char *member, size_t width)
{
	size_t  n = json_array_size(series), from = n > width ? n - width : 0;
	int64_t most = 1, value;

	for (size_t i = from; i < n; i++)
		if (json_get_number(json_array_get(series, i), member, 0, &value) && value > most)
			most = value;
	for (size_t i = from; i < n; i++) {
		if (!json_get_number(json_array_get(series, i), member, 0, &value) || value < 0)
			value = 0;
		/* U+2581 to U+2588: one to eight eighths */
		fprintf(out, "\xe2\x96%c", (int)(0x81 + (value * 7 + most - 1) / most));
	}
}

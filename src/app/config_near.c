/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_near.c - which setting was meant by a name that is none.
 *
 * The distance is the number of characters to add, drop or change. Short names are left out on both sides: everything is
 * near to them.
 */
#include "app/config_table.h"

enum { NAME_MIN = 8, NAME_MAX = 64, DISTANCE_MAX = 2 };

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Row by row through the table of all beginnings of a against all of b; only the last row is kept. */
static size_t distance(struct str a, struct str b)
{
	size_t row[NAME_MAX + 1];

	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 1; i <= a.n; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t change = diagonal + (a.p[i - 1] != b.p[j - 1]);

			diagonal = row[j];
			row[j] = least(change, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[b.n];
}

const char *config_nearest(struct str name)
{
	const char *found = NULL;
	size_t      nearest = DISTANCE_MAX + 1;

	if (name.n + DISTANCE_MAX < NAME_MIN || name.n > NAME_MAX)
		return NULL;
	for (int id = 0; id < CONFIG_COUNT; id++) {
		struct str known = str_from(config_table[id].name);
		size_t     far = known.n < NAME_MIN || known.n > NAME_MAX ? nearest : distance(name, known);

		if (far > 0 && far < nearest) {
			nearest = far;
			found = known.p;
		}
	}
	return found;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_row.c - whatever stands in a row of events is taken apart into records and damaged places, and what is left of
 * it when one of them goes says the same of the others.
 *
 * The first byte says where the value ends and the column of details begins; the value of a sandbox is read as well.
 */
#include "fuzz.h"

#include "base/mem.h"
#include "domain/sandbox.h"
#include "kernel/records.h"
#include "service/broker/records.h"
#include "store/sqlite/sqlite_row.h"
#include "store/sqlite/sqlite_segment.h"

static void read_sandbox(const uint8_t *data, size_t size)
{
	char          *room = mem_alloc(size + ROW_SLACK);
	struct sandbox ignored = { 0 };

	memcpy(room, data, size);
	(void)row_unpack(&sandbox_type, ~0ull, room, size, &ignored);
	free(room);
}

/* The row again, without one of its places. */
static void cut(const struct segment *whole, size_t gone, struct segment_row *row)
{
	struct segment rest = { 0 };
	struct str     value;
	size_t         k = 0;

	segment_begin(row, &event_type, whole->seq);
	for (size_t i = 0; i < whole->count; i++)
		if (i != gone)
			segment_add_place(row, &whole->places[i]);
	must(segment_end(row, &value));
	segment_read(&rest, whole->seq, value, buf_str(&row->text));
	for (size_t i = 0; i < whole->count; i++) {
		if (i == gone)
			continue;
		must(k < rest.count);
		if (!whole->places[i].is_damaged)
			must(!rest.places[k].is_damaged && rest.places[k].seq == whole->places[i].seq &&
			     str_eq(rest.places[k].text, whole->places[i].text));
		k++;
	}
	must(k == rest.count);
	segment_fini(&rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct segment_row row;
	struct segment            g = { 0 };
	size_t                    end;

	if (!size)
		return 0;
	end = 1 + (size - 1) * data[0] / 255;
	read_sandbox(data, size);
	segment_read(&g, 4096, str_of((const char *)data + 1, end - 1), str_of((const char *)data + end, size - end));
	must(g.count > 0);
	for (size_t i = 1; i < g.count; i++)
		must(g.places[i - 1].seq <= g.places[i].seq);
	if (g.has_many && g.count > 1)
		cut(&g, data[0] % g.count, &row);
	for (size_t i = 0; i < g.count; i++) {
		struct event ignored = { 0 };

		(void)!segment_unpack(&event_type, &g.places[i], &ignored);
	}
	segment_fini(&g);
	return 0;
}

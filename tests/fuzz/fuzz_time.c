/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_time.c - a time that is read is within the years that can be written, and is written back as the same second. */
#include "fuzz.h"

#include <string.h>

#include "base/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = str_of((const char *)data, size);
	char       room[ISO_TIME_SIZE];
	int64_t    sec = -7, again;

	if (!iso_time_parse(text, &sec)) {
		must(sec == -7);
		return 0;
	}
	must(size >= 20);
	must(sec >= -62167305600 && sec <= 253402387200); /* years 0 to 9999, and a day for the zone */
	if (sec < -62167219200 || sec > 253402300799)
		return 0; /* its zone carries it out of the years that have four digits */
	must(iso_time_parse(iso_time(sec, room), &again) && again == sec);
	if (data[size - 1] == 'Z' && memcmp(data + 17, "60", 2) != 0)
		must(memcmp(data, room, 19) == 0);
	return 0;
}

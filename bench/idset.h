/* idset.h - ids noted quickly while measuring, checked for repeats afterwards. */
#pragma once

#include <stddef.h>

#include "base/str.h"

enum { IDSET_ID_MAX = 63 };

/* Zero is a valid, empty one. */
struct idset {
	struct idset_id {
		unsigned char size;
		char          text[IDSET_ID_MAX];
	} * ids;
	size_t count, room;
};

/* Note one id. False, and nothing noted, when it is empty or longer than IDSET_ID_MAX. */
bool idset_add(struct idset *s, struct str id);

/* How many of the noted ids had been noted before. */
size_t idset_repeats(const struct idset *s);

void idset_fini(struct idset *s);

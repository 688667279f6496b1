/* instance_table.h - instances as the document's table {env}-tenant-resources has them. */
#pragma once

#include "store/record.h"

/* Of a struct instance. */
size_t instance_items(const void *before, const void *after, struct arena *a, struct record_item ret[RECORD_ITEMS_MAX]);

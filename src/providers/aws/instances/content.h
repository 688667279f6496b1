/* content.h - WordPress itself and a tenant's data. */
#pragma once

#include "providers/aws/instances/instances_private.h"

MUST_CHECK enum rc content_configure(struct site *s, struct err *e);
MUST_CHECK enum rc content_archive(struct site *s, struct str name, struct str *ret_outputs, struct err *e);
MUST_CHECK enum rc content_restore(struct site *s, struct str name, struct err *e);
MUST_CHECK enum rc content_drop(struct site *s, struct str name, struct err *e);
MUST_CHECK enum rc content_rotate(struct site *s, struct err *e);

/* The newest lines of the tasks, or of one stream, oldest first. */
MUST_CHECK enum rc logs_read(struct site *s, struct str stream, int64_t from_ms, int64_t to_ms, size_t max,
                             struct instance_log_line **ret, size_t *ret_count, struct err *e);
MUST_CHECK enum rc scan(struct site *s, struct instance_thing **ret, size_t *ret_count, struct err *e);

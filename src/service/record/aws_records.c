/* SPDX-License-Identifier: Apache-2.0 */
/* aws_records.c - see aws_records.h. */
#include "service/record/aws_records.h"

#include "store/record_rows.h"

enum { BUCKET_NAME_MAX = 32 };

static const struct record_field bucket_fields[] = {
	{ TEXT(aws_bucket, name, BUCKET_NAME_MAX) },
	{ INT(aws_bucket, next_ms) },
	{ INT(aws_bucket, slow_ms) },
	{ TEXT_OR_NONE(aws_bucket, throttles, AWS_THROTTLES_TEXT_MAX) },
};
const struct record_type aws_bucket_type = { RECORD_TYPE("aws_bucket", aws_bucket, bucket_fields) };

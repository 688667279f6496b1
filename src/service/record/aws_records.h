/* aws_records.h - what the AWS providers keep in the store, for all nodes. */
#pragma once

#include "base/str.h"
#include "store/record.h"

enum { AWS_THROTTLES_MAX = 10, AWS_THROTTLES_TEXT_MAX = AWS_THROTTLES_MAX * 16 };

/* The pace of one class of calls. */
struct aws_bucket {
	struct str name;      /* of the class: "org-read" */
	int64_t    next_ms;   /* when a caller without any burst may call next */
	int64_t    slow_ms;   /* at half the rate until then */
	struct str throttles; /* moments of the last AWS_THROTTLES_MAX, oldest first, separated by commas */
	uint64_t   version;
};
extern const struct record_type aws_bucket_type;

/* In the list of all types. */
#define AWS_TYPES &aws_bucket_type

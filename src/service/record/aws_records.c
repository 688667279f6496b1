/* SPDX-License-Identifier: Apache-2.0 */
/* aws_records.c - see aws_records.h. */
#include "service/record/aws_records.h"

#include "domain/lease.h"
#include "domain/ports/cloud.h"
#include "store/record_rows.h"

enum { ACCOUNT_DIGITS = 12, WORD_MAX = 32, PERSON_NAME_MAX = 1024, MISSING_MAX = 400, MOMENT_MAX = 16 };

/* clang-format off */
static const struct record_field bucket_fields[] = {
	{ TEXT(aws_bucket, name, WORD_MAX) },
	{ INT(aws_bucket, next_ms) },
	{ INT(aws_bucket, slow_ms) },
	{ TEXT_OR_NONE(aws_bucket, throttles, AWS_THROTTLES_MAX * MOMENT_MAX) },
};
static const struct record_field cost_account_fields[] = {
	{ TEXT(aws_cost_account, account_id, ACCOUNT_DIGITS) },
	{ INT(aws_cost_account, from_ms) },
	{ INT(aws_cost_account, first_ms) },
	{ INT(aws_cost_account, recent_ms) },
	{ INT(aws_cost_account, whole_ms) },
	{ INT(aws_cost_account, asked_ms) },
	{ INT_OR_NONE(aws_cost_account, complete_ms) },
};
static const struct record_field cost_day_fields[] = {
	{ TEXT(aws_cost_day, key, WORD_MAX) },
	{ TEXT(aws_cost_day, account_id, ACCOUNT_DIGITS) },
	{ INT(aws_cost_day, day_ms) },
	{ INT(aws_cost_day, units) },
	{ TEXT(aws_cost_day, items, AWS_COST_ITEMS_MAX) },
	{ INT(aws_cost_day, seen_ms) },
	{ INT(aws_cost_day, is_settled) },
};
static const struct record_index cost_day_indexes[] = {
	[AWS_COST_DAY_BY_ACCOUNT] = { INDEX("ByAccount", 1, 2, 1) },
};
static const struct record_field cost_book_fields[] = {
	{ TEXT(aws_cost_book, name, WORD_MAX) },
	{ INT_OR_NONE(aws_cost_book, refreshed_ms) },
	{ TEXT_OR_NONE(aws_cost_book, month, WORD_MAX) },
	{ INT_OR_NONE(aws_cost_book, pages) },
	{ INT_OR_NONE(aws_cost_book, accounts) },
	{ INT_OR_NONE(aws_cost_book, last_page_ms) },
	{ INT_OR_NONE(aws_cost_book, hour_pages) },
	{ INT_OR_NONE(aws_cost_book, rate) },
};
static const struct record_field person_fields[] = {
	{ TEXT(aws_person, id, AWS_USER_ID_MAX) },
	{ TEXT_OR_NONE(aws_person, email, EMAIL_MAX) },
	{ TEXT_OR_NONE(aws_person, display_name, PERSON_NAME_MAX) },
	{ TEXT_OR_NONE(aws_person, user_name, PERSON_NAME_MAX) },
	{ INT(aws_person, roles) },
	{ INT(aws_person, is_disabled) },
	{ INT_OR_NONE(aws_person, left_ms) },
};
static const struct record_field directory_fields[] = {
	{ TEXT(aws_directory_record, name, WORD_MAX) },
	{ INT_OR_NONE(aws_directory_record, read_ms) },
	{ INT_OR_NONE(aws_directory_record, whole_ms) },
	{ INT(aws_directory_record, members) },
	{ INT(aws_directory_record, disabled) },
	{ INT(aws_directory_record, without_email) },
	{ TEXT_OR_NONE(aws_directory_record, missing, MISSING_MAX) },
};
static const struct record_field build_fields[] = {
	{ TEXT(aws_build, key, CLOUD_KEY_MAX) },
	{ TEXT(aws_build, account_id, ACCOUNT_DIGITS) },
	{ TEXT_OR_NONE(aws_build, build_id, AWS_BUILD_ID_MAX) },
	{ INT(aws_build, lot) },
	{ INT(aws_build, asked_ms) },
};
static const struct record_index build_indexes[] = {
	[AWS_BUILD_BY_AGE] = { INDEX("ByAge", 3, 4, 1) },
};
static const struct record_field secret_fields[] = {
	{ TEXT(aws_secret, account_id, ACCOUNT_DIGITS) },
	{ TEXT(aws_secret, name, CLOUD_NAME_MAX) },
	{ TEXT_OR_NONE(aws_secret, principal, EMAIL_MAX) },
	{ INT(aws_secret, number) },
	{ INT_OR_NONE(aws_secret, expires_ms) },
};
const struct record_type aws_bucket_type       = { RECORD_TYPE("aws_bucket", aws_bucket, bucket_fields) };
const struct record_type aws_cost_account_type = { RECORD_TYPE("aws_cost_account", aws_cost_account, cost_account_fields) };
const struct record_type aws_cost_day_type     = { RECORD_TYPE("aws_cost_day", aws_cost_day, cost_day_fields), INDEXES(cost_day_indexes) };
const struct record_type aws_cost_book_type    = { RECORD_TYPE("aws_cost_book", aws_cost_book, cost_book_fields) };
const struct record_type aws_person_type       = { RECORD_TYPE("aws_person", aws_person, person_fields) };
const struct record_type aws_directory_type    = { RECORD_TYPE("aws_directory", aws_directory_record, directory_fields) };
const struct record_type aws_build_type        = { RECORD_TYPE("aws_build", aws_build, build_fields), INDEXES(build_indexes) };
const struct record_type aws_secret_type       = { RECORD_TYPE("aws_secret", aws_secret, secret_fields) };
/* clang-format on */

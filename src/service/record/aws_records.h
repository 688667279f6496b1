/* aws_records.h - what the AWS providers keep in the store, for all nodes: pace, costs, people, builds, secrets. */
#pragma once

#include "base/str.h"
#include "store/record.h"

enum {
	AWS_COST_ITEMS_MAX = 32768,
	AWS_USER_ID_MAX = 47,
	AWS_BUILD_ID_MAX = 300, /* the name of a project and 37 more */
	AWS_THROTTLES_MAX = 10,
};

/* The pace of one class of calls. */
struct aws_bucket {
	struct str name;      /* of the class: "org-read" */
	int64_t    next_ms;   /* when a caller without any burst may call next */
	int64_t    slow_ms;   /* at half the rate until then */
	struct str throttles; /* moments of the last AWS_THROTTLES_MAX, oldest first, separated by commas */
	uint64_t   version;
};
extern const struct record_type aws_bucket_type;

/* --- costs --- */

/* An account whose costs are stored. */
struct aws_cost_account {
	struct str account_id;
	int64_t    from_ms;     /* the first day that is stored */
	int64_t    first_ms;    /* asked for the first time */
	int64_t    recent_ms;   /* the last question about its last days */
	int64_t    whole_ms;    /* and about its last weeks */
	int64_t    asked_ms;    /* by somebody who wants to know, to the day */
	int64_t    complete_ms; /* at the last refresh */
	uint64_t   version;
};
extern const struct record_type aws_cost_account_type;

/* What an account cost on one day. */
struct aws_cost_day {
	struct str key; /* account#2026-11-15 */
	struct str account_id;
	int64_t    day_ms;
	int64_t    units;   /* of 1e-10 USD, of all services */
	struct str items;   /* JSON: units by service, in the order of their names */
	int64_t    seen_ms; /* when the sum became what it is */
	int64_t    is_settled;
	uint64_t   version;
};
extern const struct record_type aws_cost_day_type;
enum { AWS_COST_DAY_BY_ACCOUNT }; /* by day */

#define AWS_COST_BOOK "costs" /* the only one */
struct aws_cost_book {
	struct str name;
	int64_t    refreshed_ms;                             /* all of them */
	struct str month;                                    /* "2026-11" */
	int64_t    pages;                                    /* of that month: each costs a cent */
	int64_t    accounts, last_page_ms, hour_pages, rate; /* struct cost_budget */
	uint64_t   version;
};
extern const struct record_type aws_cost_book_type;

/* --- people --- */

/* Somebody of the identity store. Those who have left stay for a while, without roles: their id is needed to take away
 * what they were given. */
struct aws_person {
	struct str id;
	struct str email; /* as the directory writes it; empty: none */
	struct str display_name, user_name;
	int64_t    roles; /* enum role; 0: none any more, or disabled */
	int64_t    is_disabled;
	int64_t    left_ms; /* in no group since; 0: in one */
	uint64_t   version;
};
extern const struct record_type aws_person_type;

#define AWS_DIRECTORY "directory" /* the only one */
struct aws_directory_record {
	struct str name;
	int64_t    read_ms;  /* when all that is stored was read: it changes with each refresh */
	int64_t    whole_ms; /* when everybody was described, not only those who are new */
	int64_t    members, disabled, without_email;
	struct str missing; /* groups that are not there, separated by commas */
	uint64_t   version;
};
extern const struct record_type aws_directory_type;

/* --- cleaning, credentials --- */

/* The build of one key. */
struct aws_build {
	struct str key, account_id;
	struct str build_id; /* empty: asked for, and not known yet */
	int64_t    lot;      /* always 1: one index of all, by age */
	int64_t    asked_ms;
	uint64_t   version;
};
extern const struct record_type aws_build_type;
enum { AWS_BUILD_BY_AGE };

/* Temporary credentials that are in the secret store. */
struct aws_secret {
	struct str account_id, name;
	struct str principal;  /* empty: the secret has to go, and the record after it */
	int64_t    number;     /* another for each person and each withdrawal; never that of an earlier record */
	int64_t    expires_ms; /* 0: none was put there yet */
	uint64_t   version;
};
extern const struct record_type aws_secret_type;

/* In the list of all types. */
#define AWS_TYPES                                                                                            \
	&aws_bucket_type, &aws_cost_account_type, &aws_cost_day_type, &aws_cost_book_type, &aws_person_type, \
	        &aws_directory_type, &aws_build_type, &aws_secret_type

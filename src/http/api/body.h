/* body.h - reads the JSON body of a call under /api strictly, and collects everything that is wrong with it. Loop
 * thread only. */
#pragma once

#include "base/json.h"
#include "base/str.h"
#include "domain/policy.h"

enum { API_BODY_MAX = 32768 };

/* An object in the body, and where it is: "" for the whole, "budgetThresholds.0." for an element. */
struct part {
	struct body *body;
	json_t      *object;
	const char  *path;
};

struct body {
	struct request *request;
	struct part     whole;
	struct problems problems;
};

/* What a member may be. */
enum need { OPTIONAL, REQUIRED, NULLABLE };

/* What it was. A wrong one is a problem, and ABSENT. */
enum given { ABSENT, GIVEN, CLEARED };

/* Read the body; members that are not among these words are problems. False: there is none, or it is not JSON (answered
 * with 415), or not an object (400). */
bool body_open(struct request *r, const char *words, struct body *ret);

/* For CLEANUP(); also after body_open() has failed. */
void body_close(struct body *b);

/* Nothing wrong? Otherwise everything has been answered with 400. */
bool body_is_good(struct body *b);

/* Members that are not among these words are problems of the object. */
void part_expect(const struct part *at, const char *words);

/* The members. Texts have limits in characters, are copied and live as long as the request. What is not given leaves
 * *ret alone. */
enum given part_text(const struct part *at, const char *name, enum need need, size_t least, size_t most,
                     struct str *ret);

/* A text that a rule accepts; what: "must be ..." */
enum given part_checked(const struct part *at, const char *name, enum need need, bool (*is_ok)(struct str s),
                        const char *what, struct str *ret);
enum given part_choice(const struct part *at, const char *name, enum need need, const char *const *names, int count,
                       int *ret);
enum given part_bool(const struct part *at, const char *name, enum need need, int64_t *ret);
enum given part_int(const struct part *at, const char *name, enum need need, int64_t least, int64_t most, int64_t *ret);

/* A number above 0 and up to most, in units of which it has so many: 50.5 with scale 1,000,000 is 50,500,000. */
enum given part_amount(const struct part *at, const char *name, enum need need, double scale, double most,
                       int64_t *ret);

/* ISO 8601 with Z, in milliseconds since 1970. */
enum given part_time(const struct part *at, const char *name, enum need need, int64_t *ret_ms);

/* A list of at most so many; borrowed. */
enum given part_list(const struct part *at, const char *name, enum need need, size_t most, const json_t **ret);

/* Any object: clients send back what they were given. */
void part_any_object(const struct part *at, const char *name, json_t **ret);

/* A problem of this member, which is ABSENT. */
enum given part_problem(const struct part *at, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* people.h - who somebody is, by the directory of people. Loop thread only. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/caller.h"

struct request;

/* The person with this email, in any case. RC_NOT_FOUND; RC_UNAVAILABLE: there is no directory. */
MUST_CHECK enum rc people_find(struct request *r, struct str email, struct caller *ret, struct err *e);

/* caller.h - who is calling, and what they may do. Pure. */
#pragma once

#include "base/str.h"

enum role { ROLE_USER = 1, ROLE_MANAGER = 2, ROLE_ADMIN = 4 };

/* A person, or a service account (then `name` is its name and `email` that of its audit entries). */
struct caller {
	struct str email, display_name, user_name;
	unsigned   roles; /* enum role, or-ed */
	struct str request_id;
};

/* Only a user: sees and does only what is their own. */
static inline bool caller_is_only_user(const struct caller *c)
{
	return c->roles == ROLE_USER;
}

/* Who did it. Texts must live as long as the session's arena. */
struct actor {
	struct str name;       /* "track/student-1", "admin", "job/expiry" */
	struct str request_id; /* empty: no request */
};

/* Is this the caller? Emails compare without regard to case. */
static inline bool caller_is(const struct caller *c, struct str email)
{
	return str_eq_nocase(c->email, email);
}

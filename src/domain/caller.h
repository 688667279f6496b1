/* caller.h - who asks, and what he may. Pure. */
#pragma once

#include <stdbool.h>

#include "base/str.h"

enum role { ROLE_USER = 1, ROLE_MANAGER = 2, ROLE_ADMIN = 4 };

/* A person, or a service account (then `name` is its name and `email` that of its audit entries). */
struct caller {
	struct str email;
	struct str display_name, user_name;
	unsigned   roles; /* enum role, or-ed */
	struct str request_id;
};

/* Exactly a user: sees and does only what is his own. */
static inline bool caller_is_only_user(const struct caller *c)
{
	return c->roles == ROLE_USER;
}

/* centre.h - which Identity Center we use: its instance and its identity store. Found once, any thread. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct aws_caller;

struct aws_instance {
	struct str arn, store_id; /* valid as long as the centre */
};

/* Both given: no call is made. Neither: the only one of ListInstances. Texts are copied, the caller is borrowed. */
struct aws_centre *aws_centre_new(struct aws_caller *caller, struct str instance_arn, struct str store_id);
void               aws_centre_free(struct aws_centre *c);
struct aws_caller *aws_centre_caller(const struct aws_centre *c);

/* Blocks at its first use. RC_INVALID: there is none, or several, and the settings do not say which. */
MUST_CHECK enum rc aws_centre_get(struct aws_centre *c, struct aws_instance *ret, struct err *e);

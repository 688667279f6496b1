/* organisation.h - the organisation port on AWS Organizations. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/cloud.h"
#include "providers/aws/call.h"

struct aws_organisation_options {
	struct aws_caller  *management; /* for the organisation, */
	struct aws_caller  *own;        /* and for the parameter */
	const struct clock *clock;
	struct str          sandbox_ou;        /* the OUs of the pool are right below it */
	struct str          pool_config_param; /* ARN of the SSM parameter that names them; empty: they are listed */
	long                stale_ms;          /* pause before a stale answer is asked for again; 0: 1 s; for tests */
};

/* Texts are copied. */
struct aws_organisation *aws_organisation_new(const struct aws_organisation_options *o);
void                     aws_organisation_free(struct aws_organisation *o);
struct organisation     *aws_organisation_port(struct aws_organisation *o);

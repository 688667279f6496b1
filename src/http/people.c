/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - asks the directory of people; what it says goes into answers, so its own codes do not. */
#include "http/people.h"

#include "domain/identity.h"
#include "http/api.h"

enum rc people_find(struct request *r, struct str email, struct caller *ret, struct err *e)
{
	struct identity *people = api_options(r->api)->identity;
	struct err       cause = { 0 };
	enum rc          rc;

	if (!people)
		return err_set(e, RC_UNAVAILABLE, "no directory of people is set up");
	rc = people->ops->find(people, email, &r->call->arena, ret, &cause);
	if (rc == RC_NOT_FOUND)
		return err_set(e, rc, "%.*s is not in the directory of people", STR_ARG(email));
	return rc ? err_set(e, rc, "%s", cause.msg) : RC_OK;
}

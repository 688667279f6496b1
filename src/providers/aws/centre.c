/* SPDX-License-Identifier: Apache-2.0 */
/* centre.c - see centre.h. An organisation has one Identity Center; a delegated account may see one of its own beside
 * it, and then the settings must say which. */
#include "providers/aws/centre.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "providers/aws/call.h"

static const struct aws_op list_instances = { .service = &aws_services[AWS_SSO_ADMIN],
	                                      .name = "ListInstances",
	                                      .permission = "sso:ListInstances",
	                                      .pace = AWS_PACE_IDC_READ };

struct aws_centre {
	struct aws_caller  *caller;
	pthread_mutex_t     lock; /* of what is below */
	struct arena        arena;
	struct aws_instance instance; /* as far as it is known */
};

struct aws_centre *aws_centre_new(struct aws_caller *caller, struct str instance_arn, struct str store_id)
{
	struct aws_centre *c = mem_new(struct aws_centre);

	c->caller = caller;
	pthread_mutex_init(&c->lock, NULL);
	c->instance = (struct aws_instance){ str_dup(&c->arena, instance_arn), str_dup(&c->arena, store_id) };
	return c;
}

void aws_centre_free(struct aws_centre *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	arena_fini(&c->arena);
	free(c);
}

struct aws_caller *aws_centre_caller(const struct aws_centre *c)
{
	return c->caller;
}

struct search {
	struct aws_centre  *centre;
	struct arena        arena;
	struct aws_instance found;
	size_t              count;
};

/* Counts those that fit the settings. */
static enum rc take_instance(void *arg, const json_t *item, struct err *e)
{
	struct search             *s = arg;
	const struct aws_instance *known = &s->centre->instance;
	struct aws_instance        x;

	if (!json_take_text(item, "InstanceArn", &s->arena, &x.arn) ||
	    !json_take_text(item, "IdentityStoreId", &s->arena, &x.store_id) || !x.arn.n || !x.store_id.n)
		return err_set(e, RC_CORRUPT, "ListInstances: an instance without its ARN or store");
	if ((known->arn.n && !str_eq(known->arn, x.arn)) || (known->store_id.n && !str_eq(known->store_id, x.store_id)))
		return RC_OK;
	s->found = x;
	s->count++;
	return RC_OK;
}

/* With the lock held: whoever else needs it waits for the same answer. */
static enum rc search(struct aws_centre *c, struct err *e)
{
	struct search     s = { .centre = c };
	struct aws_paging paging = { .call = { .op = &list_instances, .body = STR("{\"MaxResults\":100}") },
		                     .token = "NextToken",
		                     .list = "Instances",
		                     .each = take_instance,
		                     .arg = &s };
	enum rc           rc = aws_pages(c->caller, &paging, e);

	if (!rc && s.count != 1)
		rc = err_set(e, RC_INVALID,
		             "there %s of Identity Center for these settings; set "
		             "LEASEHOLD_IDC_INSTANCE_ARN and LEASEHOLD_IDC_STORE_ID%s",
		             s.count ? "are several instances" : "is no instance",
		             s.count ? "" : ", or enable Identity Center in LEASEHOLD_IDC_REGION");
	if (!rc)
		c->instance = (struct aws_instance){ str_dup(&c->arena, s.found.arn),
			                             str_dup(&c->arena, s.found.store_id) };
	arena_fini(&s.arena);
	return rc;
}

enum rc aws_centre_get(struct aws_centre *c, struct aws_instance *ret, struct err *e)
{
	enum rc rc = RC_OK;

	LOCKED(&c->lock);
	if (!c->instance.arn.n || !c->instance.store_id.n)
		rc = search(c, e);
	if (!rc)
		*ret = c->instance;
	return err_wrap(e, rc, "Identity Center");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * growth_fill.c - what a large installation has beside its leases: instances, and a long log of events.
 *
 * Nine events of ten are of the broker's pool, which are in no index; the tenth is about a lease or an instance, and is
 * in both. So each of them has as many in a large folder as in a small one: about eight when there are a hundred events
 * for each lease. Nothing is delivered: that is measured elsewhere.
 */
#include <assert.h>

#include "base/arena.h"
#include "domain/instance.h"
#include "kernel/records.h"
#include "lease_fill.h"
#include "providers/sim/records.h"
#include "service/instance/instance_records.h"
#include "store/session.h"

enum {
	INSTANCES_PER_TXN = 10, /* a record of nine items, and a slot */
	EVENTS_PER_TXN = 100,
	NOTABLE_EVERY = 10,
	SUSPENDED_EVERY = 20,
	TASKS = 2,
	HOUR_MS = 3600000,
};

static const int64_t day_ms = (int64_t)24 * HOUR_MS;

/* --- instances --- */

static struct str tenant_of(struct arena *a, int64_t number)
{
	return str_format(a, "tenant-%06lld", (long long)number);
}

static struct str instance_of(struct arena *a, int64_t number)
{
	return str_format(a, "inst-%.*s", STR_ARG(fill_uuid(a, number)));
}

static bool is_suspended(int64_t number)
{
	return number % SUSPENDED_EVERY == 0;
}

static struct str outputs_of(struct arena *a, int64_t number, int kind)
{
	return str_format(a, "{\"id\":\"%s-%016llx\",\"name\":\"tenant-%06lld\"}", instance_resource_names[kind],
	                  (unsigned long long)number, (long long)number);
}

static enum rc add_instances(struct session *s, void *arg, struct err *e)
{
	const struct fill_some *some = arg;
	struct arena           *a = session_arena(s);

	(void)e;
	for (int64_t n = some->first; n < some->first + some->count; n++) {
		int64_t         at_ms = session_now(s).ms - (some->all - n) * FILL_EVENT_DAYS * day_ms / some->all;
		struct instance i = { .id = instance_of(a, n),
			              .tenant = tenant_of(a, n),
			              .organization = STR("Organisation"),
			              .contact_email = STR("it@example.com"),
			              .wordpress_version = STR("6.5"),
			              .state = is_suspended(n) ? INSTANCE_SUSPENDED : INSTANCE_ACTIVE,
			              .desired_count = TASKS,
			              .running_count = is_suspended(n) ? 0 : TASKS,
			              .deployment = DEPLOYMENT_COMPLETED,
			              .created_ms = at_ms,
			              .updated_ms = at_ms,
			              .activated_ms = at_ms,
			              .has_data = 1 };

		for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
			i.outputs[kind] = outputs_of(a, n, kind);
		assert(instance_ok(&i));
		session_add(s, &instance_type, &i);
		session_add(s, &tenant_slot_type, &(struct tenant_slot){ .tenant = i.tenant, .instance = i.id });
	}
	return RC_OK;
}

/* In the cloud. */
static enum rc add_parts(struct session *s, void *arg, struct err *e)
{
	const struct fill_some *some = arg;
	struct arena           *a = session_arena(s);

	(void)e;
	for (int64_t n = some->first; n < some->first + some->count; n++)
		for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++) {
			struct sim_resource part = { .tenant = tenant_of(a, n),
				                     .kind = kind,
				                     .key = instance_of(a, n),
				                     .outputs = outputs_of(a, n, kind),
				                     .started_ms = session_now(s).ms };

			part.id = str_format(a, "%.*s#%d", STR_ARG(part.tenant), kind);
			part.desired = kind == INSTANCE_WORKERS && !is_suspended(n) ? TASKS : 0;
			part.content = kind == INSTANCE_STORAGE;
			session_add(s, &sim_resource_type, &part);
		}
	return RC_OK;
}

/* --- events --- */

/* From then until now, and about whom. */
struct log {
	const struct fill *fill;
	int64_t            span_ms;
};

/* UUID version 7: its time, and the number where others have a counter and chance. */
static struct str event_id(struct arena *a, int64_t at_ms, int64_t number)
{
	return str_format(a, "%08llx-%04llx-7%03llx-8000-%012llx", (unsigned long long)(at_ms >> 16),
	                  (unsigned long long)(at_ms & 0xffff), (unsigned long long)(number & 0xfff),
	                  (unsigned long long)number);
}

static void claim_event(struct arena *a, int64_t number, struct event *ret)
{
	struct str sandbox = fill_uuid(a, number / 2);

	ret->type = number % 2 ? STR("SandboxMarkedForDeletion") : STR("SandboxAllocated");
	ret->subject = str_format(a, "sandbox/%.*s", STR_ARG(sandbox));
	ret->actor = str_format(a, "track/student-%lld", (long long)(number % 1000));
	ret->detail = str_format(a,
	                         "{\"sandboxId\":\"%.*s\",\"name\":\"sandbox-%06lld\",\"externalId\":\"%lld\","
	                         "\"track\":\"student-%lld\",\"expiresAt\":1800000000}",
	                         STR_ARG(sandbox), (long long)(number / 2), (long long)number,
	                         (long long)(number % 1000));
	ret->volume = EVENT_ROUTINE;
	ret->reach = EVENT_CHAINED;
}

static void notable_event(struct arena *a, const struct fill *f, int64_t number, struct event *ret)
{
	static const char *const lease_types[] = { "LeaseRequested", "LeaseApproved", "LeaseBudgetThresholdAlert",
		                                   "LeaseTerminated" };
	int64_t                  leases = f->ended + f->in_use + f->pending, who = number % (leases + f->instances);
	bool                     is_lease = who < leases;
	struct str               id = is_lease ? fill_uuid(a, who) : instance_of(a, who - leases);

	ret->type = is_lease ? str_from(lease_types[number % 4]) : STR("InstanceOperationStarted");
	ret->subject = str_format(a, "%s/%.*s", is_lease ? "lease" : "instance", STR_ARG(id));
	ret->actor = fill_person(a, who);
	ret->detail = STR("{\"userEmail\":\"person-00042@example.com\",\"approvedBy\":\"manager@example.com\","
	                  "\"operation\":\"scale\",\"totalSpend\":12,\"budgetThresholdTriggered\":10}");
}

static enum rc add_events(struct session *s, void *arg, struct err *e)
{
	const struct fill_some *some = arg;
	const struct log       *log = some->arg;
	struct arena           *a = session_arena(s);
	int64_t                 begun_ms = session_now(s).ms - log->span_ms;

	(void)e;
	for (int64_t n = some->first; n < some->first + some->count; n++) {
		struct event event = { .time_ms = begun_ms + n * log->span_ms / some->all, .schema = 1 };

		event.id = event_id(a, event.time_ms, n);
		if (n % NOTABLE_EVERY)
			claim_event(a, n, &event);
		else
			notable_event(a, log->fill, n / NOTABLE_EVERY, &event);
		session_add(s, &event_type, &event);
	}
	return RC_OK;
}

enum rc fill_growth(const struct fill *f, struct err *e)
{
	struct log log = { f, FILL_EVENT_DAYS * day_ms };
	enum rc    rc;

	if ((rc = fill_many(f->store, add_instances, NULL, f->instances, INSTANCES_PER_TXN, e)) ||
	    (rc = fill_many(f->sim_store, add_parts, NULL, f->instances, INSTANCES_PER_TXN, e)))
		return rc;
	return fill_many(f->store, add_events, &log, f->events, EVENTS_PER_TXN, e);
}

enum rc fill_new_events(const struct fill *f, int64_t count, struct err *e)
{
	struct log log = { f, HOUR_MS };

	return fill_many(f->store, add_events, &log, count, EVENTS_PER_TXN, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance.c - the life of a tenant's WordPress.
 *
 * The table below is the contract's, row by row. A state is either one of rest (ACTIVE, SUSPENDED, PARKED, FAILED,
 * DEPROVISIONED), or something is under way in it, and then no command is taken but the one that cancels what was not
 * begun.
 *
 * Always true:
 *   1. state changes only in instance_apply(), only along the table.
 *   2. DEPROVISIONED is the end of an instance: a tenant that wants another gets one with a new id.
 *   3. An ACTIVE instance has all its resources.                                     [instance_ok()]
 *
 * Not here: who may ask (http/), what is done outside (service/instance/).
 */
#include "domain/instance.h"

#include <stdio.h>

#define BIT(name) (UINT32_C(1) << INSTANCE_##name)
#define PROVISIONING                                                                                    \
	(BIT(PROVISIONING_EFS) | BIT(PROVISIONING_RDS) | BIT(PROVISIONING_ECS) | BIT(CONFIGURING_ALB) | \
	 BIT(PROVISIONING_COGNITO) | BIT(CONFIGURING_WORDPRESS))

/* clang-format off */
const struct instance_step instance_steps[INSTANCE_STEPS] = {
	/* from                                  on                          to                        guard */
	{ BIT(NONE) | BIT(DEPROVISIONED),          INSTANCE_ON_CREATE,         INSTANCE_PENDING_PROVISIONING,   "the tenant has no live instance" },
	{ BIT(PENDING_PROVISIONING),               INSTANCE_ON_BEGIN,          INSTANCE_PROVISIONING_EFS,       "" },
	{ BIT(PROVISIONING_EFS),                   INSTANCE_ON_STORAGE_READY,  INSTANCE_PROVISIONING_RDS,       "" },
	{ BIT(PROVISIONING_RDS),                   INSTANCE_ON_DATABASE_READY, INSTANCE_PROVISIONING_ECS,       "" },
	{ BIT(PROVISIONING_ECS),                   INSTANCE_ON_STABLE,         INSTANCE_CONFIGURING_ALB,        "running equals desired, above 0" },
	{ BIT(CONFIGURING_ALB),                    INSTANCE_ON_ROUTED,         INSTANCE_PROVISIONING_COGNITO,   "" },
	{ BIT(PROVISIONING_COGNITO),               INSTANCE_ON_IDENTITY_READY, INSTANCE_CONFIGURING_WORDPRESS,  "" },
	{ BIT(CONFIGURING_WORDPRESS),              INSTANCE_ON_CONFIGURED,     INSTANCE_ACTIVE,                 "all resources present" },
	{ BIT(PENDING_PROVISIONING) | PROVISIONING, INSTANCE_ON_ROLLED_BACK,   INSTANCE_FAILED,                 "" },
	{ BIT(FAILED),                             INSTANCE_ON_RETRY,          INSTANCE_PENDING_PROVISIONING,   "never was active; leftovers are adopted" },
	{ BIT(FAILED),                             INSTANCE_ON_DELETE,         INSTANCE_PENDING_DEPROVISIONING, "" },
	{ BIT(ACTIVE),                             INSTANCE_ON_SCALE,          INSTANCE_SCALING,                "2 to 10, differs from the current one" },
	{ BIT(SCALING),                            INSTANCE_ON_SCALED,         INSTANCE_ACTIVE,                 "" },
	{ BIT(SCALING),                            INSTANCE_ON_SCALE_FAILED,   INSTANCE_FAILED,                 "nothing answers; else back to ACTIVE, with lastError" },
	{ BIT(ACTIVE),                             INSTANCE_ON_SUSPEND,        INSTANCE_SUSPENDING,             "" },
	{ BIT(SUSPENDING),                         INSTANCE_ON_DRAINED,        INSTANCE_SUSPENDED,              "" },
	{ BIT(SUSPENDING),                         INSTANCE_ON_DRAIN_FAILED,   INSTANCE_ACTIVE,                 "" },
	{ BIT(SUSPENDED),                          INSTANCE_ON_RESUME,         INSTANCE_RESUMING,               "" },
	{ BIT(RESUMING),                           INSTANCE_ON_RESUMED,        INSTANCE_ACTIVE,                 "" },
	{ BIT(RESUMING),                           INSTANCE_ON_RESUME_FAILED,  INSTANCE_SUSPENDED,              "lastError is set" },
	{ BIT(ACTIVE),                             INSTANCE_ON_PARK,           INSTANCE_PARKING,                "" },
	{ BIT(PARKING),                            INSTANCE_ON_RELEASED,       INSTANCE_PARKED,                 "" },
	{ BIT(PARKED),                             INSTANCE_ON_UNPARK,         INSTANCE_UNPARKING,              "" },
	{ BIT(UNPARKING),                          INSTANCE_ON_REBUILT,        INSTANCE_ACTIVE,                 "up to 15 minutes" },
	{ BIT(UNPARKING),                          INSTANCE_ON_REBUILD_FAILED, INSTANCE_PARKED,                 "" },
	{ BIT(PARKING),                            INSTANCE_ON_RELEASE_FAILED, INSTANCE_ACTIVE,                 "" },
	{ BIT(ACTIVE) | BIT(SUSPENDED) | BIT(PARKED), INSTANCE_ON_DELETE,      INSTANCE_PENDING_DEPROVISIONING, "" },
	{ BIT(PENDING_DEPROVISIONING),             INSTANCE_ON_REMOVE,         INSTANCE_DEPROVISIONING,         "" },
	{ BIT(DEPROVISIONING),                     INSTANCE_ON_REMOVED,        INSTANCE_DEPROVISIONED,          "" },
	{ BIT(DEPROVISIONING),                     INSTANCE_ON_REMOVE_FAILED,  INSTANCE_PENDING_DEPROVISIONING, "" },
	{ BIT(ACTIVE),                             INSTANCE_ON_BREAK,          INSTANCE_FAILED,                 "nothing answers" },
	{ BIT(FAILED),                             INSTANCE_ON_RECOVER,        INSTANCE_ACTIVE,                 "was active, all resources present" },
	{ BIT(PENDING_PROVISIONING),               INSTANCE_ON_DELETE,         INSTANCE_PENDING_DEPROVISIONING, "before the saga took it" },
};

#define NAME(name, is_rest) #name,
const char *const instance_state_names[INSTANCE_STATE_COUNT] = { INSTANCE_STATES(NAME) };
const char *const instance_tier_names[TIER_COUNT] = { "STANDARD", "PROFESSIONAL", "ENTERPRISE" };
const char *const instance_deployment_names[DEPLOYMENT_COUNT] = { "NONE", "IN_PROGRESS", "COMPLETED", "FAILED" };
const char *const instance_resource_names[INSTANCE_RESOURCE_COUNT] = { INSTANCE_RESOURCES(ROW_TEXT) };
/* clang-format on */

const char *const instance_trigger_texts[INSTANCE_TRIGGER_COUNT] = { INSTANCE_TRIGGERS(ROW_TEXT) };
const char *const instance_trigger_words[INSTANCE_TRIGGER_COUNT] = { INSTANCE_TRIGGERS(ROW_THIRD) };

const char *instance_state_name(enum instance_state state)
{
	return state == INSTANCE_NONE ? "(none)" : instance_state_names[state];
}

bool instance_state_parse(struct str name, enum instance_state *ret)
{
	int found = str_word(name, instance_state_names, INSTANCE_STATE_COUNT);

	if (found < INSTANCE_STATE_COUNT)
		*ret = (enum instance_state)found;
	return found < INSTANCE_STATE_COUNT;
}

const char *instance_status(enum instance_state state)
{
	return state <= INSTANCE_CONFIGURING_WORDPRESS ? "PROVISIONING" : instance_state_name(state);
}

bool instance_state_is_rest(enum instance_state state)
{
	static const bool is_rest[INSTANCE_STATE_COUNT] = { INSTANCE_STATES(ROW_TEXT) };

	return state == INSTANCE_NONE || is_rest[state];
}

bool instance_state_is_live(enum instance_state state)
{
	return state != INSTANCE_NONE && state != INSTANCE_DEPROVISIONED;
}

const struct instance_step *instance_step(enum instance_state from, enum instance_trigger on)
{
	for (size_t i = 0; i < INSTANCE_STEPS; i++)
		if (instance_steps[i].on == on && instance_steps[i].from & UINT32_C(1) << from)
			return &instance_steps[i];
	return NULL;
}

void instance_put_allowed(struct json_out *o, const char *name, enum instance_state from)
{
	json_put_array(o, name);
	for (int on = 0; on < INSTANCE_TRIGGER_COUNT; on++)
		if (instance_trigger_words[on][0] && instance_step(from, (enum instance_trigger)on))
			json_add_str(o, str_from(instance_trigger_words[on]));
	json_close_array(o);
}

void instance_print_table(struct buf *b)
{
	buf_addf(b, "%2s  %-22s  %-22s  %s\n", "#", "FROM", "TO", "WHEN");
	for (size_t i = 0; i < INSTANCE_STEPS; i++) {
		const struct instance_step *s = &instance_steps[i];

		for (int from = 0; from <= INSTANCE_NONE; from++)
			if (s->from & UINT32_C(1) << from)
				buf_addf(b, "%2zu  %-22s  %-22s  %s%s%s\n", i + 1,
				         instance_state_name((enum instance_state)from), instance_state_name(s->to),
				         instance_trigger_texts[s->on], s->guard[0] ? "; " : "", s->guard);
	}
}

static bool has_all(const struct instance *i)
{
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (!i->outputs[kind].n)
			return false;
	return true;
}

bool instance_ok(const struct instance *i)
{
	if (!i->id.n || !tenant_id_is_ok(i->tenant) || i->desired_count < INSTANCE_COUNT_MIN ||
	    i->desired_count > INSTANCE_COUNT_MAX)
		return false;
	if (i->state == INSTANCE_ACTIVE)
		return has_all(i) && i->has_data;
	return i->state != INSTANCE_DEPROVISIONED || i->removed_ms > 0;
}

enum rc instance_apply(struct instance *i, enum instance_trigger on, int64_t now_ms, struct err *e)
{
	const struct instance_step *step = instance_step(i->state, on);
	const char                 *word = instance_trigger_words[on];

	if (!step && instance_state_is_rest(i->state))
		return err_set_code(e, RC_UNFIT, "INVALID_STATUS_TRANSITION", "instance %.*s is %s: %s is not possible",
		                    STR_ARG(i->id), instance_state_name(i->state),
		                    word[0] ? word : instance_trigger_texts[on]);
	if (!step)
		return err_set_code(e, RC_UNFIT, "OPERATION_IN_PROGRESS",
		                    "instance %.*s is %s: wait until that has ended, then try again", STR_ARG(i->id),
		                    instance_state_name(i->state));
	i->state = step->to;
	i->reason = i->state == INSTANCE_ACTIVE ? STR("") : i->reason;
	i->updated_ms = now_ms;
	return RC_OK;
}

/* --- tiers and versions --- */

void instance_tier_size(enum instance_tier tier, int64_t *ret_cpu_units, int64_t *ret_memory_mb)
{
	*ret_cpu_units = 512 << tier;
	*ret_memory_mb = 1024 << tier;
}

struct str instance_version(struct str wanted, const char *versions)
{
	struct str rest = str_from(versions);

	if (!wanted.n || str_eq(wanted, STR("latest")))
		return str_cut(&rest, ' ');
	return str_is_word_of(wanted, versions) ? wanted : STR("");
}

/* --- names --- */

bool tenant_id_is_ok(struct str id)
{
	return id.n >= TENANT_ID_MIN && id.n <= TENANT_ID_MAX && id.p[0] != '-' && str_is_of(id, "a-z0-9-");
}

/* An id without the prefix would have the name of the one with it; so would a long one that begins as another does. */
void instance_short_name(struct str tenant, char ret[INSTANCE_NAME_SIZE])
{
	enum { HASH = 8, KEPT = INSTANCE_NAME_SIZE - 1 - 1 - HASH };
	static const struct str prefix = STR_INIT("tenant-");
	bool                    has_prefix = str_starts_with(tenant, prefix) && tenant.n > prefix.n;
	struct str              name = has_prefix ? str_skip(tenant, prefix.n) : tenant;

	if (has_prefix && name.n < INSTANCE_NAME_SIZE)
		snprintf(ret, INSTANCE_NAME_SIZE, "%.*s", STR_ARG(name));
	else
		snprintf(ret, INSTANCE_NAME_SIZE, "%.*s-%08x", (int)(name.n < KEPT ? name.n : KEPT), name.p,
		         (unsigned)str_hash(tenant, 0));
}

struct str instance_resource_name(struct str tenant, enum instance_resource kind, struct arena *a)
{
	static const struct {
		const char *before, *after;
		char        dash;
	} forms[INSTANCE_RESOURCE_COUNT] = {
		[INSTANCE_STORAGE] = { "/tenant-", "", '-' },
		[INSTANCE_DATABASE] = { "tenant_", "_db", '_' },
		[INSTANCE_SECRET] = { "leasehold/tenant-", "/db", '-' },
		[INSTANCE_ROUTE] = { "tenant-", "-tg", '-' },
		[INSTANCE_WORKERS] = { "tenant-", "-wordpress", '-' },
		[INSTANCE_IDENTITY] = { "tenant-", "-users", '-' },
	};
	char name[INSTANCE_NAME_SIZE];

	instance_short_name(tenant, name);
	for (char *c = name; *c; c++)
		*c = *c == '-' ? forms[kind].dash : *c;
	return str_format(a, "%s%s%s", forms[kind].before, name, forms[kind].after);
}

struct str instance_granted_name(struct str name, struct arena *a)
{
	struct str all = str_cut(&name, '_');

	while (name.n) {
		struct str part = str_cut(&name, '_');

		all = str_format(a, "%.*s\\_%.*s", STR_ARG(all), STR_ARG(part));
	}
	return all;
}

/* --- failures --- */

const char *instance_step_code(struct str step)
{
	static const struct {
		const char *step, *code;
	} codes[] = {
		{ "storage", "PROV-001" },   { "database", "PROV-002" }, { "secret", "PROV-007" },
		{ "workers", "PROV-008" },   { "stable", "PROV-003" },   { "route", "PROV-004" },
		{ "health", "PROV-004" },    { "open", "PROV-004" },     { "identity", "PROV-005" },
		{ "configure", "PROV-009" },
	};

	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (str_eq(step, str_from(codes[i].step)))
			return codes[i].code;
	return "OPERATION_FAILED";
}

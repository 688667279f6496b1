/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_table.c - instances as the document's table {env}-tenant-resources has them, for other programs to read.
 *
 * One item for each tenant, TENANT#{id} / INSTANCE, with the attributes of the document, followed by those that it
 * lacks; and one for each resource, TENANT#{id}#INSTANCE / RESOURCE#{type}. The document's index is keyed by the
 * tenant, so it cannot list by state; here its keys are STATE#{state} and {updatedAt}#{tenant}.
 *
 * A tenant's item is about the last instance. A removed one still changes (its archives expire) when the tenant may
 * have a new one: so it is written when it is removed, and never later. [is_shown()]
 */
#include "service/instance/instance_records.h"

#include <assert.h>

#include "base/clock.h"
#include "base/json.h"
#include "domain/instance.h"

/* What the document calls the kinds of resources. */
static const char *const type_names[INSTANCE_RESOURCE_COUNT] = {
	[INSTANCE_STORAGE] = "EFS", [INSTANCE_DATABASE] = "RDS", [INSTANCE_SECRET] = "SECRET",
	[INSTANCE_ROUTE] = "ALB",   [INSTANCE_WORKERS] = "ECS",  [INSTANCE_IDENTITY] = "COGNITO",
};

/* Which member of a resource's outputs is which attribute of the instance. */
static const struct {
	enum instance_resource kind;
	const char            *member, *attribute;
} from_outputs[] = {
	{ INSTANCE_STORAGE, "id", "efsAccessPointId" },
	{ INSTANCE_STORAGE, "arn", "efsAccessPointArn" },
	{ INSTANCE_DATABASE, "name", "databaseName" },
	{ INSTANCE_DATABASE, "user", "databaseUser" },
	{ INSTANCE_SECRET, "id", "databaseSecretArn" },
	{ INSTANCE_ROUTE, "id", "albListenerRuleArn" },
	{ INSTANCE_ROUTE, "targetGroup", "albTargetGroupArn" },
	{ INSTANCE_WORKERS, "id", "ecsServiceArn" },
	{ INSTANCE_WORKERS, "taskDefinition", "ecsTaskDefinitionArn" },
	{ INSTANCE_IDENTITY, "id", "cognitoUserPoolId" },
	{ INSTANCE_IDENTITY, "client", "cognitoAppClientId" },
	{ INSTANCE_IDENTITY, "domain", "cognitoDomain" },
};

static void add(struct record_item *item, const char *name, enum item_kind kind, struct str text)
{
	if (!text.n)
		return;
	assert(item->count < ITEM_ATTRIBUTES_MAX); /* the outputs' members are counted */
	item->attributes[item->count++] = (struct item_attribute){ name, kind, text };
}

static void add_number(struct record_item *item, const char *name, int64_t number, struct arena *a)
{
	add(item, name, ITEM_NUMBER, str_format(a, "%lld", (long long)number));
}

static struct str time_of(int64_t ms, struct arena *a)
{
	char text[ISO_TIME_SIZE];

	return ms ? str_dup(a, iso_time_ms(ms, text)) : STR("");
}

/* A text of a JSON object; empty: it has none. */
static struct str member_of(struct str object, const char *name, struct arena *a)
{
	CLEANUP(json_freep) json_t *read = NULL;
	struct err                  e = { 0 };
	struct str                  text = STR("");

	if (!object.n || json_parse(object, &read, &e) || !json_get_text(read, name, &text))
		return STR("");
	return str_dup(a, text);
}

static struct str error_of(const struct instance *i, struct arena *a)
{
	struct str code = member_of(i->last_error, "code", a), message = member_of(i->last_error, "message", a);

	return code.n ? str_format(a, "%.*s: %.*s", STR_ARG(code), STR_ARG(message)) : message;
}

static void fill_instance(struct record_item *item, const struct instance *i, struct arena *a)
{
	const char *state = instance_state_name(i->state);

	item->pk = str_format(a, "TENANT#%.*s", STR_ARG(i->tenant));
	item->sk = STR("INSTANCE");
	add(item, "tenantId", ITEM_TEXT, i->tenant);
	add(item, "provisioningState", ITEM_TEXT, str_from(state));
	for (size_t n = 0; n < ARRAY_LEN(from_outputs); n++)
		add(item, from_outputs[n].attribute, ITEM_TEXT,
		    member_of(i->outputs[from_outputs[n].kind], from_outputs[n].member, a));
	add_number(item, "desiredCount", i->desired_count, a);
	add(item, "provisioningStartedAt", ITEM_TEXT, time_of(i->started_ms, a));
	add(item, "provisioningCompletedAt", ITEM_TEXT, time_of(i->activated_ms, a));
	add(item, "lastError", ITEM_TEXT, error_of(i, a));
	add(item, "createdAt", ITEM_TEXT, time_of(i->created_ms, a));
	add(item, "updatedAt", ITEM_TEXT, time_of(i->updated_ms, a));
	add_number(item, "version", (int64_t)i->version, a);
	add(item, "lastEcsEvent", ITEM_MAP, i->last_ecs_event);

	add(item, "instanceId", ITEM_TEXT, i->id);
	add(item, "organizationName", ITEM_TEXT, i->organization);
	add(item, "contactEmail", ITEM_TEXT, i->contact_email);
	add(item, "tier", ITEM_TEXT, str_from(instance_tier_names[i->tier]));
	add(item, "wordpressVersion", ITEM_TEXT, i->wordpress_version);
	add(item, "statusReason", ITEM_TEXT, i->reason);
	add(item, "correlationId", ITEM_TEXT, i->correlation_id);
	add(item, "operationId", ITEM_TEXT, i->operation);
	if (i->previous_count)
		add_number(item, "previousDesiredCount", i->previous_count, a);
	add(item, "GSI1PK", ITEM_TEXT, str_format(a, "STATE#%s", state));
	add(item, "GSI1SK", ITEM_TEXT,
	    str_format(a, "%.*s#%.*s", STR_ARG(time_of(i->updated_ms, a)), STR_ARG(i->tenant)));
}

/* What was made, as far as it is text; at most so many members as fit beside tenant and type. */
static void fill_resource(struct record_item *item, const struct instance *i, enum instance_resource kind,
                          struct arena *a)
{
	CLEANUP(json_freep) json_t *outputs = NULL;
	const char                 *key;
	json_t                     *value;
	struct err                  e = { 0 };

	item->pk = str_format(a, "TENANT#%.*s#INSTANCE", STR_ARG(i->tenant));
	item->sk = str_format(a, "RESOURCE#%s", type_names[kind]);
	if (!i->outputs[kind].n || json_parse(i->outputs[kind], &outputs, &e))
		return;
	add(item, "tenantId", ITEM_TEXT, i->tenant);
	add(item, "resourceType", ITEM_TEXT, str_from(type_names[kind]));
	json_object_foreach(outputs, key, value) if (json_is_string(value) && item->count < ITEM_ATTRIBUTES_MAX)
	        add(item, str_dup(a, str_from(key)).p, ITEM_TEXT,
	            str_dup(a, str_of(json_string_value(value), json_string_length(value))));
}

size_t instance_items(const void *before, const void *after, struct arena *a, struct record_item ret[RECORD_ITEMS_MAX])
{
	const struct instance *was = before, *is = after;
	size_t                 count = 0;

	if (!is || !(instance_state_is_live(is->state) || (was && was->state != is->state)))
		return 0;
	fill_instance(&ret[count++], is, a);
	for (int kind = 0; kind < INSTANCE_RESOURCE_COUNT; kind++)
		if (was ? !str_eq(was->outputs[kind], is->outputs[kind]) : is->outputs[kind].n > 0)
			fill_resource(&ret[count++], is, (enum instance_resource)kind, a);
	assert(count <= RECORD_ITEMS_MAX);
	return count;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_tables.c - the tables themselves: make them, compare them, adopt what others wrote.
 *
 * The pool's table has the keys and secondary indexes of the source documents, so that an existing one is used as it is. Our own
 * table has two keys and nothing else. Tables are made on demand (no capacity to plan); nothing is ever deleted here.
 */
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "net/aws.h"
#include "store/ddb_ops.h"

enum { POLL_MS = 200, POLLS_MAX = 600, PAGE = 100, ACTIVE_SIZE = 16 };

/* The secondary indexes of the pool's table, in the order of ddb_options.gsi. */
static const struct {
	const char *hash, *sort;
} gsi_keys[DDB_GSI_MAX] = {
	{ "status", "allocated_at" },
	{ "allocated_to_track", "allocated_at" },
	{ "idempotency_key", "allocated_at" },
};

/* --- describing --- */

static void put_attribute(struct json_out *o, const char *name, const char *kind)
{
	json_open_object(o);
	json_put_str(o, "AttributeName", str_from(name));
	json_put_str(o, "AttributeType", str_from(kind));
	json_close_object(o);
}

static void put_schema(struct json_out *o, const char *hash, const char *sort)
{
	json_put_array(o, "KeySchema");
	json_open_object(o);
	json_put_str(o, "AttributeName", str_from(hash));
	json_put_str(o, "KeyType", STR("HASH"));
	json_close_object(o);
	json_open_object(o);
	json_put_str(o, "AttributeName", str_from(sort));
	json_put_str(o, "KeyType", STR("RANGE"));
	json_close_object(o);
	json_close_array(o);
}

static void put_indexes(struct json_out *o, const struct ddb_options *options)
{
	json_put_array(o, "GlobalSecondaryIndexes");
	for (int i = 0; i < DDB_GSI_MAX; i++) {
		json_open_object(o);
		json_put_str(o, "IndexName", str_from(options->gsi[i]));
		put_schema(o, gsi_keys[i].hash, gsi_keys[i].sort);
		json_put_object(o, "Projection");
		json_put_str(o, "ProjectionType", STR("ALL"));
		json_close_object(o);
		json_close_object(o);
	}
	json_close_array(o);
}

static void write_table(struct buf *b, const struct ddb_options *options, bool is_pool)
{
	struct json_out o;

	json_out_init(&o, b);
	json_open_object(&o);
	json_put_str(&o, "TableName", str_from(is_pool ? options->pool_table : options->kernel_table));
	json_put_str(&o, "BillingMode", STR("PAY_PER_REQUEST"));
	json_put_array(&o, "AttributeDefinitions");
	put_attribute(&o, "PK", "S");
	put_attribute(&o, "SK", "S");
	for (int i = 0; is_pool && i < DDB_GSI_MAX; i++)
		put_attribute(&o, gsi_keys[i].hash, "S");
	if (is_pool)
		put_attribute(&o, "allocated_at", "N");
	json_close_array(&o);
	put_schema(&o, "PK", "SK");
	if (is_pool)
		put_indexes(&o, options);
	json_close_object(&o);
}

/* --- calls without a store --- */

static enum rc call(const struct ddb_options *o, const char *operation, const struct buf *body, struct arena *a,
                    json_t **ret, struct str *ret_error, struct err *e)
{
	struct aws_reply answer;
	char             target[64];
	enum rc          rc;

	(void)snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation); /* fits */
	*ret_error = STR("");
	rc = aws_call(o->client, target, buf_str(body), a, &answer, e);
	if (rc)
		return rc;
	if (answer.status != 200) {
		*ret_error = answer.error_type;
		return err_set(e, RC_UNAVAILABLE, "%s: %.*s: %.*s", operation, STR_ARG(answer.error_type),
		               STR_ARG(answer.error_message));
	}
	return json_parse(answer.body, ret, e);
}

/* RC_NOT_FOUND when there is no such table. */
static enum rc describe(const struct ddb_options *o, const char *table, struct arena *a, json_t **ret, struct err *e)
{
	struct json_out out;
	struct buf      body;
	struct str      error;
	struct err      why = { 0 };
	json_t         *reply = NULL;
	enum rc         rc;

	buf_init(&body, 4096);
	json_out_init(&out, &body);
	json_open_object(&out);
	json_put_str(&out, "TableName", str_from(table));
	json_close_object(&out);
	rc = call(o, "DescribeTable", &body, a, &reply, &error, &why);
	buf_fini(&body);
	if (rc && str_eq(error, STR("ResourceNotFoundException")))
		return RC_NOT_FOUND;
	if (rc)
		return err_set(e, rc, "table %s: %s", table, why.msg);
	*ret = json_incref(json_object_get(reply, "Table"));
	json_decref(reply);
	return *ret ? RC_OK : err_set(e, RC_CORRUPT, "table %s: DescribeTable answered without a Table", table);
}

/* --- making --- */

static bool is_active(const json_t *table)
{
	const json_t *indexes = json_object_get(table, "GlobalSecondaryIndexes");
	json_t       *index;
	struct str    status;
	size_t        i;

	if (!json_get_text(table, "TableStatus", &status) || !str_eq(status, STR("ACTIVE")))
		return false;
	json_array_foreach(indexes, i, index) if (json_get_text(index, "IndexStatus", &status) && status.n &&
	                                          !str_eq(status, STR("ACTIVE"))) return false;
	return true;
}

static enum rc wait_until_active(const struct ddb_options *o, const char *table, struct arena *a, struct err *e)
{
	for (int i = 0; i < POLLS_MAX; i++) {
		CLEANUP(json_freep) json_t *description = NULL;
		struct timespec             pause = { .tv_nsec = POLL_MS * 1000000l };
		enum rc                     rc = describe(o, table, a, &description, e);

		if (rc && rc != RC_NOT_FOUND)
			return rc;
		if (!rc && is_active(description))
			return RC_OK;
		nanosleep(&pause, NULL);
	}
	return err_set(e, RC_TIMEOUT, "table %s is still not ready", table);
}

static enum rc set_ttl(const struct ddb_options *o, const char *table, struct arena *a, struct err *e)
{
	struct json_out out;
	struct buf      body;
	struct str      error;
	json_t         *reply = NULL;
	enum rc         rc;

	buf_init(&body, 4096);
	json_out_init(&out, &body);
	json_open_object(&out);
	json_put_str(&out, "TableName", str_from(table));
	json_put_object(&out, "TimeToLiveSpecification");
	json_put_bool(&out, "Enabled", true);
	json_put_str(&out, "AttributeName", STR("ttl"));
	json_close_object(&out);
	json_close_object(&out);
	rc = call(o, "UpdateTimeToLive", &body, a, &reply, &error, e);
	json_decref(reply);
	buf_fini(&body);
	return rc;
}

static enum rc create_if_missing(const struct ddb_options *o, bool is_pool, struct err *e)
{
	CLEANUP(json_freep) json_t *description = NULL, *reply = NULL;
	const char                 *table = is_pool ? o->pool_table : o->kernel_table;
	struct arena                a = { 0 };
	struct buf                  body;
	struct str                  error;
	enum rc                     rc = describe(o, table, &a, &description, e);

	if (rc == RC_NOT_FOUND) {
		buf_init(&body, 16384);
		write_table(&body, o, is_pool);
		rc = call(o, "CreateTable", &body, &a, &reply, &error, e);
		buf_fini(&body);
		if (rc && str_eq(error, STR("ResourceInUseException"))) {
			err_clear(e); /* somebody else makes it at this moment */
			rc = RC_OK;
		}
		if (!rc)
			rc = wait_until_active(o, table, &a, e);
		if (!rc)
			rc = set_ttl(o, table, &a, e);
	}
	arena_fini(&a);
	return rc;
}

enum rc ddb_create_tables(const struct ddb_options *o, struct err *e)
{
	enum rc rc = create_if_missing(o, true, e);

	return rc ? rc : create_if_missing(o, false, e);
}

/* --- comparing --- */

static struct str schema_name(const json_t *described, const char *key_type)
{
	const json_t *schema = json_object_get(described, "KeySchema");
	json_t       *key;
	struct str    type, name;
	size_t        i;

	json_array_foreach(schema, i, key) if (json_get_text(key, "KeyType", &type) &&
	                                       str_eq(type, str_from(key_type)) &&
	                                       json_get_text(key, "AttributeName", &name)) return name;
	return STR("(none)");
}

static void compare_schema(struct buf *ret, const char *what, const json_t *described, const char *hash,
                           const char *sort)
{
	struct str is_hash = schema_name(described, "HASH"), is_sort = schema_name(described, "RANGE");

	if (!str_eq(is_hash, str_from(hash)) || !str_eq(is_sort, str_from(sort)))
		buf_addf(ret, "%s: its key is %.*s and %.*s, it must be %s and %s\n", what, STR_ARG(is_hash),
		         STR_ARG(is_sort), hash, sort);
}

static const json_t *find_index(const json_t *table, const char *name)
{
	const json_t *indexes = json_object_get(table, "GlobalSecondaryIndexes");
	json_t       *index;
	struct str    is_name;
	size_t        i;

	json_array_foreach(indexes, i, index) if (json_get_text(index, "IndexName", &is_name) &&
	                                          str_eq(is_name, str_from(name))) return index;
	return NULL;
}

/* Only the index that we read is needed; the others are the documents', and missed by those who use them. */
static void compare_indexes(const struct ddb_options *o, const json_t *table, struct buf *ret)
{
	for (int i = 0; i < DDB_GSI_MAX; i++) {
		const json_t *index = find_index(table, o->gsi[i]);
		struct str    projection = STR("");
		char          what[600];

		(void)snprintf(what, sizeof(what), "table %s, index %s", o->pool_table,
		               o->gsi[i]); /* a cut name is a name */
		if (!index) {
			buf_addf(ret, "%s: is missing\n", what);
			continue;
		}
		compare_schema(ret, what, index, gsi_keys[i].hash, gsi_keys[i].sort);
		if (!json_get_text(json_object_get(index, "Projection"), "ProjectionType", &projection) ||
		    !str_eq(projection, STR("ALL")))
			buf_addf(ret, "%s: projects %.*s, it must project ALL\n", what, STR_ARG(projection));
	}
}

static enum rc check_table(const struct ddb_options *o, bool is_pool, struct buf *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *table = NULL;
	const char                 *name = is_pool ? o->pool_table : o->kernel_table;
	struct arena                a = { 0 };
	char                        what[300];
	enum rc                     rc = describe(o, name, &a, &table, e);

	(void)snprintf(what, sizeof(what), "table %s", name); /* a cut name is a name */
	if (rc == RC_NOT_FOUND) {
		buf_addf(ret, "%s: is missing\n", what);
		rc = RC_OK;
	} else if (!rc) {
		compare_schema(ret, what, table, "PK", "SK");
		if (is_pool)
			compare_indexes(o, table, ret);
	}
	arena_fini(&a);
	return rc;
}

enum rc ddb_check_tables(const struct ddb_options *o, struct buf *ret, struct err *e)
{
	enum rc rc = check_table(o, true, ret, e);

	if (!rc)
		rc = check_table(o, false, ret, e);
	if (rc)
		return rc;
	return ret->n ? err_set(e, RC_CORRUPT, "the tables differ from what is needed") : RC_OK;
}

/* --- adopting --- */

struct adoption {
	const struct record_type *type;
	int                       index;   /* the unique one */
	int                       through; /* the one that lists them */
	struct str                cursor;
	struct stored_page        page;
};

static enum rc read_page(struct session *s, void *arg, struct err *e)
{
	struct adoption *a = arg;
	struct query     q = { .type = a->type,
		               .index = a->through,
		               .hash = value_int(a->type->indexes[a->index].only_value),
		               .limit = PAGE,
		               .cursor = a->cursor };

	a->page = (struct stored_page){ 0 };
	return ddb_query(s, &q, &a->page, e);
}

static enum rc put_missing_marker(struct ddb_store *d, const struct adoption *a, const void *record,
                                  struct arena *arena, struct err *e)
{
	int             field = a->type->indexes[a->index].hash;
	struct json_out o;
	struct buf      body;
	json_t         *reply = NULL;
	enum rc         rc;

	buf_init(&body, 8192);
	json_out_init(&o, &body);
	json_open_object(&o);
	json_put_str(&o, "TableName", str_from(d->options.kernel_table));
	json_put_object(&o, "Item");
	ddb_put_marker_key(&o, a->type, a->index, record_value(a->type, field, record));
	ddb_put_text(&o, "record_key", record_key(a->type, record));
	json_close_object(&o);
	json_put_str(&o, "ConditionExpression", STR("attribute_not_exists(PK)"));
	json_close_object(&o);
	rc = ddb_call(d, "PutItem", &body, arena, &reply, e);
	json_decref(reply);
	buf_fini(&body);
	if (rc == RC_CONFLICT) { /* it is there */
		err_clear(e);
		rc = RC_OK;
	}
	return rc;
}

static enum rc adopt_page(struct ddb_store *d, struct adoption *a, struct arena *arena, struct err *e)
{
	enum rc rc = store_read(&d->base, read_page, a, arena, e);

	for (size_t i = 0; !rc && i < a->page.count; i++)
		if (record_is_in_index(a->type, &a->type->indexes[a->index], a->page.items[i].record))
			rc = put_missing_marker(d, a, a->page.items[i].record, arena, e);
	return rc;
}

static enum rc adopt_index(struct ddb_store *d, struct adoption *a, struct err *e)
{
	struct arena now = { 0 }, next = { 0 };
	enum rc      rc;

	do {
		struct arena spare = now;

		now = next; /* the cursor lives in the arena of the page before */
		next = spare;
		arena_reset(&now);
		rc = adopt_page(d, a, &now, e);
		a->cursor = a->page.next;
	} while (!rc && a->cursor.n);
	arena_fini(&now);
	arena_fini(&next);
	return rc;
}

enum rc ddb_adopt(struct store *base, struct err *e)
{
	struct ddb_store *d = CONTAINER_OF(base, struct ddb_store, base);
	enum rc           rc = RC_OK;

	for (size_t t = 0; !rc && t < d->options.type_count; t++) {
		const struct record_type *type = d->options.types[t];

		for (int i = 0; !rc && type->key_prefix && i < type->index_count; i++) {
			struct adoption a = { .type = type, .index = i };

			if (!type->indexes[i].is_unique || type->indexes[i].only_field == NO_FIELD)
				continue;
			while (!(type->indexes[a.through].gsi &&
			         type->indexes[a.through].hash == type->indexes[i].only_field))
				a.through++;
			rc = adopt_index(d, &a, e);
		}
	}
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_tables.c - the tables themselves: make them, compare them, adopt what others wrote.
 *
 * The pool's table has the keys and secondary indexes of the source documents, so that an existing one is used as it is. Our own
 * table has secondary indexes that any of our types may use; one that was made before they existed gets those that are missing.
 * Tables are made on demand (no capacity to plan); nothing is ever deleted here.
 */
#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "net/aws.h"
#include "store/ddb_ops.h"

enum { POLL_MS = 200, TABLE_WAIT_S = 120, INDEX_WAIT_S = 3600, PAGE = 100, INDEXES_MAX = DDB_GSI_MAX };

/* One of the two tables, as it must be. */
struct table {
	const char          *name;
	const char          *sort_kind; /* of the attributes that order the indexes */
	struct ddb_own_index indexes[INDEXES_MAX];
};

static struct table pool_table(const struct ddb_options *o)
{
	return (struct table){ o->pool_table,
		               "N",
		               { { o->gsi[0], "status", "allocated_at" },
		                 { o->gsi[1], "allocated_to_track", "allocated_at" },
		                 { o->gsi[2], "idempotency_key", "allocated_at" } } };
}

static struct table kernel_table(const struct ddb_options *o)
{
	struct table t = { .name = o->kernel_table, .sort_kind = "S" };

	memcpy(t.indexes, ddb_own_indexes, sizeof(t.indexes));
	return t;
}

static_assert((int)DDB_KERNEL_GSI_MAX == (int)INDEXES_MAX, "both tables have as many");

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

static void put_index(struct json_out *o, const struct ddb_own_index *index)
{
	json_put_str(o, "IndexName", str_from(index->name));
	put_schema(o, index->hash, index->sort);
	json_put_object(o, "Projection");
	json_put_str(o, "ProjectionType", STR("ALL"));
	json_close_object(o);
}

static void put_attributes(struct json_out *o, const struct table *t)
{
	json_put_array(o, "AttributeDefinitions");
	put_attribute(o, "PK", "S");
	put_attribute(o, "SK", "S");
	for (int i = 0; i < INDEXES_MAX; i++) {
		put_attribute(o, t->indexes[i].hash, "S");
		if (i == 0 || strcmp(t->indexes[i].sort, t->indexes[0].sort) != 0) /* the documents have one for all */
			put_attribute(o, t->indexes[i].sort, t->sort_kind);
	}
	json_close_array(o);
}

static void write_table(struct buf *b, const struct table *t)
{
	struct json_out o;

	json_out_init(&o, b);
	json_open_object(&o);
	json_put_str(&o, "TableName", str_from(t->name));
	json_put_str(&o, "BillingMode", STR("PAY_PER_REQUEST"));
	put_attributes(&o, t);
	put_schema(&o, "PK", "SK");
	json_put_array(&o, "GlobalSecondaryIndexes");
	for (int i = 0; i < INDEXES_MAX; i++) {
		json_open_object(&o);
		put_index(&o, &t->indexes[i]);
		json_close_object(&o);
	}
	json_close_array(&o);
	json_close_object(&o);
}

static void write_new_index(struct buf *b, const struct table *t, const struct ddb_own_index *index)
{
	struct json_out o;

	json_out_init(&o, b);
	json_open_object(&o);
	json_put_str(&o, "TableName", str_from(t->name));
	json_put_array(&o, "AttributeDefinitions");
	put_attribute(&o, index->hash, "S");
	put_attribute(&o, index->sort, t->sort_kind);
	json_close_array(&o);
	json_put_array(&o, "GlobalSecondaryIndexUpdates");
	json_open_object(&o);
	json_put_object(&o, "Create");
	put_index(&o, index);
	json_close_object(&o);
	json_close_object(&o);
	json_close_array(&o);
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

static enum rc wait_until_active(const struct ddb_options *o, const char *table, int seconds, struct err *e)
{
	for (int i = 0; i < seconds * 1000 / POLL_MS; i++) {
		CLEANUP(json_freep) json_t *description = NULL;
		struct timespec             pause = { .tv_nsec = POLL_MS * 1000000l };
		struct arena                a = { 0 };
		enum rc                     rc = describe(o, table, &a, &description, e);

		arena_fini(&a);
		if (rc && rc != RC_NOT_FOUND)
			return rc;
		if (!rc && is_active(description))
			return RC_OK;
		nanosleep(&pause, NULL);
	}
	return err_set(e, RC_TIMEOUT, "table %s is still not ready after %d s; run this again to go on waiting", table,
	               seconds);
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

/* Somebody else does the same at this moment: then it is enough to wait. */
static enum rc forgive_others(enum rc rc, struct str error, struct err *e)
{
	if (!rc || (!str_eq(error, STR("ResourceInUseException")) && !str_eq(error, STR("LimitExceededException"))))
		return rc;
	err_clear(e);
	return RC_OK;
}

static enum rc create_if_missing(const struct ddb_options *o, const struct table *t, struct err *e)
{
	CLEANUP(json_freep) json_t *description = NULL, *reply = NULL;
	struct arena                a = { 0 };
	struct buf                  body;
	struct str                  error;
	enum rc                     rc = describe(o, t->name, &a, &description, e);

	if (rc == RC_NOT_FOUND) {
		buf_init(&body, 16384);
		write_table(&body, t);
		rc = call(o, "CreateTable", &body, &a, &reply, &error, e);
		rc = forgive_others(rc, error, e);
		buf_fini(&body);
		if (!rc)
			rc = wait_until_active(o, t->name, TABLE_WAIT_S, e);
		if (!rc)
			rc = set_ttl(o, t->name, &a, e);
	}
	arena_fini(&a);
	return rc;
}

/* Index n of a table that is there. */
static enum rc add_if_missing(const struct ddb_options *o, const struct table *t, int n, struct err *e)
{
	CLEANUP(json_freep) json_t *description = NULL, *reply = NULL;
	struct arena                a = { 0 };
	struct buf                  body;
	struct str                  error;
	enum rc                     rc = describe(o, t->name, &a, &description, e);

	if (!rc && !find_index(description, t->indexes[n].name)) {
		buf_init(&body, 16384);
		write_new_index(&body, t, &t->indexes[n]);
		rc = call(o, "UpdateTable", &body, &a, &reply, &error, e);
		rc = forgive_others(rc, error, e);
		buf_fini(&body);
		if (!rc) /* one at a time is all that DynamoDB does */
			rc = wait_until_active(o, t->name, INDEX_WAIT_S, e);
	}
	arena_fini(&a);
	return rc;
}

enum rc ddb_create_tables(const struct ddb_options *o, struct err *e)
{
	struct table pool = pool_table(o), kernel = kernel_table(o);
	enum rc      rc = create_if_missing(o, &pool, e);

	if (!rc)
		rc = create_if_missing(o, &kernel, e);
	for (int i = 0; !rc && i < DDB_KERNEL_GSI_MAX; i++)
		rc = add_if_missing(o, &kernel, i, e);
	return rc;
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

static void compare_indexes(const struct table *t, const json_t *described, struct buf *ret)
{
	for (int i = 0; i < INDEXES_MAX; i++) {
		const struct ddb_own_index *wanted = &t->indexes[i];
		const json_t               *index = find_index(described, wanted->name);
		struct str                  projection = STR("");
		char                        what[600];

		(void)snprintf(what, sizeof(what), "table %s, index %s", t->name,
		               wanted->name); /* a cut name is a name */
		if (!index) {
			buf_addf(ret, "%s: is missing\n", what);
			continue;
		}
		compare_schema(ret, what, index, wanted->hash, wanted->sort);
		if (!json_get_text(json_object_get(index, "Projection"), "ProjectionType", &projection) ||
		    !str_eq(projection, STR("ALL")))
			buf_addf(ret, "%s: projects %.*s, it must project ALL\n", what, STR_ARG(projection));
	}
}

static enum rc check_table(const struct ddb_options *o, const struct table *t, struct buf *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *described = NULL;
	struct arena                a = { 0 };
	char                        what[300];
	enum rc                     rc = describe(o, t->name, &a, &described, e);

	(void)snprintf(what, sizeof(what), "table %s", t->name); /* a cut name is a name */
	if (rc == RC_NOT_FOUND) {
		buf_addf(ret, "%s: is missing\n", what);
		rc = RC_OK;
	} else if (!rc) {
		compare_schema(ret, what, described, "PK", "SK");
		compare_indexes(t, described, ret);
	}
	arena_fini(&a);
	return rc;
}

enum rc ddb_check_tables(const struct ddb_options *o, struct buf *ret, struct err *e)
{
	struct table pool = pool_table(o), kernel = kernel_table(o);
	enum rc      rc = check_table(o, &pool, ret, e);

	if (!rc)
		rc = check_table(o, &kernel, ret, e);
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

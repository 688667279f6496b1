/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_tables.c - the tables themselves: make them, compare them, adopt what others wrote.
 *
 * The pool's table has the keys and secondary indexes of the source documents, so that an existing one is used as it
 * is. Our own table has secondary indexes that any of our types may use; one that was made before they existed gets
 * those that are missing. A third is for others to read: instances, as their document has them. Tables are billed per
 * request, so there is no capacity to plan. Nothing is ever deleted here.
 */
#include <assert.h>

#include "net/aws.h"
#include "store/dynamodb/ddb_private.h"
#include "store/walk.h"

enum { POLL_MS = 200, TABLE_WAIT_S = 120, INDEX_WAIT_S = 3600, PAGE = 100, INDEXES_MAX = DDB_GSI_MAX };

/* One of the tables, as it must be. */
struct table {
	const char          *name;
	const char          *sort_kind; /* of the attributes that order the indexes */
	bool                 is_fixed;  /* an existing one is used as it is: it gets no index */
	int                  index_count;
	struct ddb_own_index indexes[INDEXES_MAX];
};

enum { TABLES_MAX = 3 };
static_assert((int)DDB_KERNEL_GSI_MAX == (int)INDEXES_MAX, "both tables have as many");

/* The pool's, our own, and that of instances by tenant, if it is kept. */
static size_t list_tables(const struct ddb_options *o, struct table ret[TABLES_MAX])
{
	ret[0] = (struct table){ o->pool_table,
		                 "N",
		                 true,
		                 INDEXES_MAX,
		                 { { o->gsi[0], "status", "allocated_at" },
		                   { o->gsi[1], "allocated_to_track", "allocated_at" },
		                   { o->gsi[2], "idempotency_key", "allocated_at" } } };
	ret[1] = (struct table){ o->kernel_table, "S", false, INDEXES_MAX, { { 0 } } };
	memcpy(ret[1].indexes, ddb_own_indexes, sizeof(ret[1].indexes));
	/* The index lists all of a state, which the document's own keys cannot. */
	ret[2] = (struct table){ o->tenant_table, "S", false, 1, { { "GSI1", "GSI1PK", "GSI1SK" } } };
	return o->tenant_table ? 3 : 2;
}

/* --- describing --- */

static void put_attribute(struct json_out *o, const char *name, const char *what, const char *kind)
{
	JSON_PUT(o, member_object(NULL), member_word("AttributeName", name), member_word(what, kind), member_end());
}

static void put_schema(struct json_out *o, const char *hash, const char *sort)
{
	json_put_array(o, "KeySchema");
	put_attribute(o, hash, "KeyType", "HASH");
	put_attribute(o, sort, "KeyType", "RANGE");
	json_close_array(o);
}

/* Under a name, or as an element of a list: NULL. */
static void put_index(struct json_out *o, const char *name, const struct ddb_own_index *index)
{
	JSON_PUT(o, member_object(name), member_word("IndexName", index->name));
	put_schema(o, index->hash, index->sort);
	JSON_PUT(o, member_object("Projection"), member_word("ProjectionType", "ALL"), member_end(), member_end());
}

static void put_table(struct json_out *o, const struct table *t)
{
	JSON_PUT(o, member_word("BillingMode", "PAY_PER_REQUEST"), member_list("AttributeDefinitions"));
	put_attribute(o, "PK", "AttributeType", "S");
	put_attribute(o, "SK", "AttributeType", "S");
	for (int i = 0; i < t->index_count; i++) {
		put_attribute(o, t->indexes[i].hash, "AttributeType", "S");
		if (i == 0 || strcmp(t->indexes[i].sort, t->indexes[0].sort) != 0) /* the documents have one for all */
			put_attribute(o, t->indexes[i].sort, "AttributeType", t->sort_kind);
	}
	json_close_array(o);
	put_schema(o, "PK", "SK");
	json_put_array(o, "GlobalSecondaryIndexes");
	for (int i = 0; i < t->index_count; i++)
		put_index(o, NULL, &t->indexes[i]);
	json_close_array(o);
}

static void put_new_index(struct json_out *o, const struct table *t, const struct ddb_own_index *index)
{
	json_put_array(o, "AttributeDefinitions");
	put_attribute(o, index->hash, "AttributeType", "S");
	put_attribute(o, index->sort, "AttributeType", t->sort_kind);
	JSON_PUT(o, member_list_end(), member_list("GlobalSecondaryIndexUpdates"), member_object(NULL));
	put_index(o, "Create", index);
	JSON_PUT(o, member_end(), member_list_end());
}

/* --- calls without a store --- */

/* Ends the request that ddb_begin() has begun. The reply is yours; *ret_error is the service's name for a failure. */
static enum rc call(const struct ddb_options *o, const char *operation, struct buf *body, struct json_out *out,
                    struct arena *a, json_t **ret, struct str *ret_error, struct err *e)
{
	struct aws_reply answer;
	char             target[64];
	enum rc          rc;

	(void)snprintf(target, sizeof(target), "DynamoDB_20120810.%s", operation); /* fits */
	*ret_error = STR("");
	json_close_object(out);
	rc = aws_call(o->client, target, buf_str(body), a, &answer, e);
	buf_fini(body);
	if (rc)
		return rc;
	if (answer.status == 200)
		return json_parse(answer.body, ret, e);
	*ret_error = answer.error_type;
	return err_set(e, RC_UNAVAILABLE, "%s: %.*s: %.*s", operation, STR_ARG(answer.error_type),
	               STR_ARG(answer.error_message));
}

/* RC_NOT_FOUND when there is no such table. */
static enum rc describe(const struct ddb_options *o, const char *table, struct arena *a, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct json_out             out;
	struct buf                  body;
	struct str                  error;
	struct err                  why = { 0 };
	enum rc                     rc;

	ddb_begin(&body, &out, table);
	rc = call(o, "DescribeTable", &body, &out, a, &reply, &error, &why);
	if (rc && str_eq(error, STR("ResourceNotFoundException")))
		return RC_NOT_FOUND;
	if (rc)
		return err_set(e, rc, "table %s: %s", table, why.msg);
	*ret = json_incref(json_object_get(reply, "Table"));
	return *ret ? RC_OK : err_set(e, RC_CORRUPT, "table %s: DescribeTable answered without a Table", table);
}

/* --- making --- */

static const json_t *find_index(const json_t *table, const char *name)
{
	const json_t *indexes = json_object_get(table, "GlobalSecondaryIndexes"), *index;
	struct str    is_name;

	for (size_t i = 0; (index = json_array_get(indexes, i)); i++)
		if (json_get_text(index, "IndexName", &is_name) && str_eq(is_name, str_from(name)))
			break;
	return index;
}

static bool is_active(const json_t *table)
{
	const json_t *indexes = json_object_get(table, "GlobalSecondaryIndexes"), *index;
	struct str    status;

	if (!json_get_text(table, "TableStatus", &status) || !str_eq(status, STR("ACTIVE")))
		return false;
	for (size_t i = 0; (index = json_array_get(indexes, i)); i++)
		if (json_get_text(index, "IndexStatus", &status) && status.n && !str_eq(status, STR("ACTIVE")))
			return false;
	return true;
}

static enum rc wait_until_active(const struct ddb_options *o, const char *table, int seconds, struct err *e)
{
	for (int i = 0; i < seconds * 1000 / POLL_MS; i++) {
		CLEANUP(json_freep) json_t      *description = NULL;
		CLEANUP(arena_fini) struct arena a = { 0 };
		enum rc                          rc = describe(o, table, &a, &description, e);

		if (rc && rc != RC_NOT_FOUND)
			return rc;
		if (!rc && is_active(description))
			return RC_OK;
		mono_sleep(POLL_MS);
	}
	return err_set(e, RC_TIMEOUT, "table %s is still not ready after %d s; run this again to go on waiting", table,
	               seconds);
}

enum { WHOLE_TABLE = -1 };

/* The table, or index n of a table that is there. */
static enum rc make(const struct ddb_options *o, const struct table *t, int n, struct arena *a, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct json_out             out;
	struct buf                  body;
	struct str                  error;
	enum rc                     rc;

	ddb_begin(&body, &out, t->name);
	if (n == WHOLE_TABLE)
		put_table(&out, t);
	else
		put_new_index(&out, t, &t->indexes[n]);
	rc = call(o, n == WHOLE_TABLE ? "CreateTable" : "UpdateTable", &body, &out, a, &reply, &error, e);
	if (rc && (str_eq(error, STR("ResourceInUseException")) || str_eq(error, STR("LimitExceededException")))) {
		err_clear(e); /* somebody else is doing the same: waiting is enough */
		rc = RC_OK;
	}
	if (rc) /* DynamoDB makes one index at a time, so wait for that too */
		return rc;
	return wait_until_active(o, t->name, n == WHOLE_TABLE ? TABLE_WAIT_S : INDEX_WAIT_S, e);
}

static enum rc make_if_missing(const struct ddb_options *o, const struct table *t, int n, struct err *e)
{
	CLEANUP(json_freep) json_t      *description = NULL;
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = describe(o, t->name, &a, &description, e);
	bool                             is_missing = rc == RC_NOT_FOUND;

	if (n != WHOLE_TABLE)
		is_missing = !rc && !find_index(description, t->indexes[n].name);
	return is_missing ? make(o, t, n, &a, e) : rc;
}

enum rc ddb_create_tables(const struct ddb_options *o, struct err *e)
{
	struct table tables[TABLES_MAX];
	size_t       count = list_tables(o, tables);
	enum rc      rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++) {
		rc = make_if_missing(o, &tables[i], WHOLE_TABLE, e);
		for (int n = 0; !rc && !tables[i].is_fixed && n < tables[i].index_count; n++)
			rc = make_if_missing(o, &tables[i], n, e);
	}
	return rc;
}

/* --- comparing --- */

static struct str schema_name(const json_t *described, const char *key_type)
{
	const json_t *schema = json_object_get(described, "KeySchema"), *key;
	struct str    type, name;

	for (size_t i = 0; (key = json_array_get(schema, i)); i++)
		if (json_get_text(key, "KeyType", &type) && str_eq(type, str_from(key_type)) &&
		    json_get_text(key, "AttributeName", &name))
			return name;
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
	for (int i = 0; i < t->index_count; i++) {
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
	CLEANUP(json_freep) json_t      *described = NULL;
	CLEANUP(arena_fini) struct arena a = { 0 };
	char                             what[300];
	enum rc                          rc = describe(o, t->name, &a, &described, e);

	(void)snprintf(what, sizeof(what), "table %s", t->name); /* a cut name is a name */
	if (rc == RC_NOT_FOUND) {
		buf_addf(ret, "%s: is missing\n", what);
		rc = RC_OK;
	} else if (!rc) {
		compare_schema(ret, what, described, "PK", "SK");
		compare_indexes(t, described, ret);
	}
	return rc;
}

enum rc ddb_check_tables(const struct ddb_options *o, struct buf *ret, struct err *e)
{
	struct table tables[TABLES_MAX];
	size_t       count = list_tables(o, tables);
	enum rc      rc = RC_OK;

	for (size_t i = 0; !rc && i < count; i++)
		rc = check_table(o, &tables[i], ret, e);
	if (rc)
		return rc;
	return ret->n ? err_set(e, RC_CORRUPT, "the tables differ from what is needed") : RC_OK;
}

/* --- adopting --- */

struct adoption {
	struct ddb_store         *store;
	const struct record_type *type;
	int                       index; /* the unique one */
};

/* RC_CONFLICT: another record is named there than `instead_of` (empty: than none); *ret is it. */
static enum rc put_marker(const struct adoption *a, const void *record, struct str instead_of, struct arena *arena,
                          struct str *ret, struct err *e)
{
	CLEANUP(json_freep) json_t  *reply = NULL;
	CLEANUP(buf_fini) struct buf body;
	struct json_out              o;
	enum rc                      rc;

	ddb_begin(&body, &o, a->store->options.kernel_table);
	json_put_object(&o, "Item");
	ddb_put_marker_key(&o, a->type, a->index, record_value(a->type, a->type->indexes[a->index].hash, record));
	ddb_put_text(&o, "record_key", record_key(a->type, record));
	JSON_PUT(&o, member_end(), member_word("ReturnValuesOnConditionCheckFailure", "ALL_OLD"),
	         member_word("ConditionExpression", instead_of.n ? "record_key = :old" : "attribute_not_exists(PK)"));
	if (instead_of.n) {
		json_put_object(&o, "ExpressionAttributeValues");
		ddb_put_text(&o, ":old", instead_of);
		json_close_object(&o);
	}
	json_close_object(&o);
	rc = ddb_call(&(struct ddb_session){ .store = a->store }, "PutItem", &body, arena, &reply, e);
	if (rc == RC_CONFLICT)
		(void)json_take_text(json_object_get(json_object_get(reply, "Item"), "record_key"), "S", arena,
		                     ret); /* else it stays empty */
	return rc;
}

/* Does the record with this key have the value? */
struct holding {
	const struct adoption *adoption;
	struct str             key;
	struct value           value;
	bool                   is_so;
};

static enum rc look_at_holder(struct session *s, void *arg, struct err *e)
{
	struct holding            *h = arg;
	const struct record_type  *type = h->adoption->type;
	const struct record_index *index = &type->indexes[h->adoption->index];
	void                      *record = arena_alloc(session_arena(s), type->size);
	enum rc                    rc = session_find(s, type, h->key, record, &h->is_so, e);

	h->is_so = h->is_so && record_is_in_index(type, index, record) &&
	           value_cmp(type->fields[index->hash].kind, record_value(type, index->hash, record), h->value) == 0;
	return rc;
}

/* A marker that names another record was left when another program took the value from it. */
static enum rc adopt_record(const struct adoption *a, const void *record, struct arena *arena, struct err *e)
{
	struct holding h = { .adoption = a };
	struct str     ignored = STR("");
	enum rc        rc = put_marker(a, record, STR(""), arena, &h.key, e);

	h.value = record_value(a->type, a->type->indexes[a->index].hash, record);
	if (rc == RC_CONFLICT && h.key.n && !str_eq(h.key, record_key(a->type, record))) {
		err_clear(e);
		if ((rc = store_read(&a->store->base, look_at_holder, &h, arena, e)) || h.is_so)
			return rc;
		rc = put_marker(a, record, h.key, arena, &ignored, e);
	}
	return err_forgive(e, rc, RC_CONFLICT); /* it is there */
}

static enum rc adopt_page(const struct page *page, struct arena *arena, void *arg, struct err *e)
{
	const struct adoption *a = arg;
	enum rc                rc = RC_OK;

	for (size_t i = 0; !rc && i < page->count; i++) {
		const void *record = page_record(page, a->type, i);

		if (record_is_in_index(a->type, &a->type->indexes[a->index], record))
			rc = adopt_record(a, record, arena, e);
	}
	return rc;
}

enum rc ddb_adopt(struct store *base, struct err *e)
{
	struct ddb_store *d = CONTAINER_OF(base, struct ddb_store, base);
	enum rc           rc = RC_OK;

	for (size_t t = 0; !rc && t < d->options.type_count; t++) {
		const struct record_type *type = d->options.types[t];

		for (int i = 0; !rc && type->key_prefix && i < type->index_count; i++) {
			const struct record_index *index = &type->indexes[i];
			struct adoption            a = { .store = d, .type = type, .index = i };
			struct query q = { .type = type, .hash = value_int(index->only_value), .limit = PAGE };

			if (!index->is_unique || index->only_field == NO_FIELD)
				continue;
			while (!(type->indexes[q.index].gsi && type->indexes[q.index].hash == index->only_field))
				q.index++; /* the one that lists them */
			rc = store_read_pages(base, &q, adopt_page, &a, e);
		}
	}
	return rc;
}

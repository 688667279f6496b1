/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_write.c - a session's changes as one conditional write.
 *
 * Each changed record is one action with a condition: that it still has the version that was read, and, in the
 * documents' table, that the attributes about to change have the values that were read (another program does not keep
 * our version). Each record that was read by key and stays as it is, is checked the same way. Each unique value that is
 * taken, given up or passed on is a marker item with a condition of its own. All of it is one TransactWriteItems, also
 * when it is one action: only that has a token, by which DynamoDB knows a request that is sent again because its answer
 * was lost. A single UpdateItem would find its own write and take it for somebody else's.
 *
 * A record that is certainly new is put without a look before, if it is not there. When it is, running the function
 * again would only meet it again, so that is the answer. [note_taken()]
 *
 * Existing items are updated, never replaced: attributes that we do not know stay. The exception is the documents'
 * table of tenants, which other programs only read: its items are rewritten whenever the record changes.
 * [write_items()]
 */
#include <assert.h>

#include "base/id.h"
#include "store/dynamodb/ddb_private.h"

enum { MARKERS_MAX = SESSION_ACTIONS_MAX };

/* A marker that changes hands. */
struct handover {
	const struct record_type *type;
	int                       index;
	struct value              value;
	struct str                from, to; /* keys of records; empty: nobody */
};

struct writer {
	struct session *s;
	struct buf      body;
	struct json_out o;
	struct handover handovers[MARKERS_MAX];
	size_t          handover_count;
	unsigned        slices; /* of a sliced type */
	char            name[16];
};

/* "#n3", ":n3", ":o3": short names for fields, because attribute names may be reserved words. */
static const char *short_name(struct writer *w, const char *kind, int field)
{
	(void)snprintf(w->name, sizeof(w->name), "%s%d", kind, field); /* fits */
	return w->name;
}

/* --- actions --- */

static void open_action(struct writer *w, const char *kind, const char *table)
{
	JSON_PUT(&w->o, member_object(NULL), member_object(kind), member_word("TableName", table));
}

static void close_action(struct writer *w)
{
	JSON_PUT(&w->o, member_end(), member_end());
}

static bool is_write(const struct session_entry *entry)
{
	if (!entry->is_changed)
		return false;
	if (entry->before && entry->after)
		return entry->changes != 0;
	return entry->before || entry->after;
}

static bool is_foreign(const struct session_entry *entry)
{
	return entry->before && entry->handle == 0;
}

/* Which fields must be as they were, beside the version: other programs change items of the documents' table without
 * it. Those that we change; of a record that goes or is only checked, its enums. */
static uint64_t guarded_fields(const struct session_entry *entry)
{
	uint64_t fields = 0;

	if (!entry->before || !entry->type->key_prefix)
		return 0;
	if (entry->is_changed && entry->after)
		return entry->changes;
	for (int f = 0; f < entry->type->field_count; f++)
		if (entry->type->fields[f].kind == FIELD_ENUM)
			fields |= 1ull << f;
	return fields;
}

static void add_guard(struct buf *text, const struct session_entry *entry, int f)
{
	bool is_zero = entry->type->fields[f].kind == FIELD_INT &&
	               record_value(entry->type, f, entry->before).number == 0;

	if (is_zero) /* a number that is not there is read as 0 */
		buf_addf(text, " AND (attribute_not_exists(#n%d) OR #n%d = :o%d)", f, f, f);
	else if (!record_is_absent(entry->type, f, entry->before))
		buf_addf(text, " AND #n%d = :o%d", f, f);
	else
		buf_addf(text, " AND attribute_not_exists(#n%d)", f);
}

static void put_condition(struct writer *w, const struct session_entry *entry)
{
	uint64_t                     guarded = guarded_fields(entry);
	CLEANUP(buf_fini) struct buf text = BUF(8192);

	if (!entry->before)
		buf_add_text(&text, "attribute_not_exists(PK)");
	else if (is_foreign(entry))
		buf_add_text(&text, "attribute_exists(PK) AND attribute_not_exists(#v)");
	else
		buf_add_text(&text, "#v = :ov");
	for (int f = 0; f < entry->type->field_count; f++)
		if (guarded >> f & 1)
			add_guard(&text, entry, f);
	assert(!text.is_full);
	json_put_str(&w->o, "ConditionExpression", buf_str(&text));
}

static bool is_written(const struct session_entry *entry, int f)
{
	return !record_is_absent(entry->type, f, entry->after) || ddb_is_kept(entry->type, f);
}

/* Where it is; what is new goes where its key belongs. */
static unsigned slice_of(const struct writer *w, const struct session_entry *entry)
{
	if (!entry->type->is_sliced)
		return 0;
	return entry->before ? (unsigned)entry->handle - 1 : ddb_slice_of(entry->key, w->slices);
}

/* Names and values that condition and update use. */
static void put_names_and_values(struct writer *w, const struct session_entry *entry, uint64_t changed)
{
	const struct record_type *type = entry->type;
	uint64_t                  guarded = guarded_fields(entry);

	JSON_PUT(&w->o, member_object("ExpressionAttributeNames"), member_word("#v", "version"));
	for (int f = 0; f < type->field_count; f++)
		if ((changed | guarded) >> f & 1)
			json_put_str(&w->o, short_name(w, "#n", f), str_from(type->fields[f].name));
	JSON_PUT(&w->o, member_end(), member_object("ExpressionAttributeValues"));
	if (!is_foreign(entry))
		ddb_put_number(&w->o, ":ov", (int64_t)record_version(type, entry->before));
	if (changed)
		ddb_put_number(&w->o, ":nv", (int64_t)record_version(type, entry->after));
	for (int f = 0; f < type->field_count; f++) {
		if (guarded >> f & 1 &&
		    (!record_is_absent(type, f, entry->before) || type->fields[f].kind == FIELD_INT))
			ddb_put_value(&w->o, short_name(w, ":o", f), &type->fields[f],
			              record_value(type, f, entry->before));
		if (changed >> f & 1 && is_written(entry, f))
			ddb_put_value(&w->o, short_name(w, ":n", f), &type->fields[f],
			              record_value(type, f, entry->after));
	}
	if (changed) /* ":g1h" and ":g1s": where it will be in the secondary indexes of our own table */
		ddb_put_places(&w->o, type, slice_of(w, entry), entry->after, ":");
	json_close_object(&w->o);
}

/* What has a value is set, what has none any more is removed: fields, and places in our table's secondary indexes. */
static void put_update_expression(struct writer *w, const struct session_entry *entry, uint64_t changed)
{
	const struct record_type    *type = entry->type;
	CLEANUP(buf_fini) struct buf text = BUF(8192), removed = BUF(8192);

	buf_add_text(&text, "SET #v = :nv");
	for (int f = 0; f < type->field_count; f++)
		if (changed >> f & 1 && is_written(entry, f))
			buf_addf(&text, ", #n%d = :n%d", f, f);
		else if (changed >> f & 1)
			buf_addf(&removed, "%s#n%d", removed.n ? ", " : " REMOVE ", f);
	for (int i = 0; i < type->index_count; i++) {
		const struct ddb_own_index *own = ddb_own_index(type, &type->indexes[i]);

		if (own && record_is_in_index(type, &type->indexes[i], entry->after))
			buf_addf(&text, ", %s = :%s, %s = :%s", own->hash, own->hash, own->sort, own->sort);
		else if (own)
			buf_addf(&removed, "%s%s, %s", removed.n ? ", " : " REMOVE ", own->hash, own->sort);
	}
	buf_add_str(&text, buf_str(&removed));
	assert(!text.is_full && !removed.is_full);
	json_put_str(&w->o, "UpdateExpression", buf_str(&text));
}

/* Put, Update or Delete it, or look whether it is as it was: ConditionCheck. */
static void write_entry(struct writer *w, const struct session_entry *entry)
{
	bool is_put = is_write(entry) && !entry->before, is_update = is_write(entry) && entry->before && entry->after;
	uint64_t    changed = is_update ? entry->changes : 0;
	const char *kind = is_put ? "Put" : is_update ? "Update" : is_write(entry) ? "Delete" : "ConditionCheck";

	open_action(w, kind, ddb_table(ddb_session(w->s)->store, entry->type));
	json_put_object(&w->o, is_put ? "Item" : "Key");
	if (is_put)
		ddb_put_item(&w->o, entry->type, slice_of(w, entry), entry->after);
	else
		ddb_put_key(&w->o, entry->type, slice_of(w, entry), entry->key);
	json_close_object(&w->o);
	if (is_update)
		put_update_expression(w, entry, changed);
	put_condition(w, entry);
	if (entry->before)
		put_names_and_values(w, entry, changed);
	close_action(w);
}

/* --- markers --- */

static struct handover *find_handover(struct writer *w, const struct record_type *type, int index, struct value v)
{
	struct handover *h = w->handovers;

	while (h < w->handovers + w->handover_count &&
	       !(h->type == type && h->index == index &&
	         value_cmp(type->fields[type->indexes[index].hash].kind, h->value, v) == 0))
		h++;
	assert(h < w->handovers + MARKERS_MAX); /* the session counts its actions */
	if (h == w->handovers + w->handover_count) {
		*h = (struct handover){ .type = type, .index = index, .value = v };
		w->handover_count++;
	}
	return h;
}

static void note_handovers(struct writer *w, const struct session_entry *entry)
{
	for (int i = 0; i < entry->type->index_count; i++) {
		const struct record_index *index = &entry->type->indexes[i];

		if (!index->is_unique)
			continue;
		if (entry->before && record_is_in_index(entry->type, index, entry->before))
			find_handover(w, entry->type, i, record_value(entry->type, index->hash, entry->before))->from =
			        entry->key;
		if (entry->after && record_is_in_index(entry->type, index, entry->after))
			find_handover(w, entry->type, i, record_value(entry->type, index->hash, entry->after))->to =
			        entry->key;
	}
}

/* Who gives a value up is mostly named by its marker, so that is assumed at first. When another program has allocated,
 * there may be none, or one that names another record. */
static enum rc read_markers(struct writer *w, struct err *e)
{
	enum rc rc = RC_OK;

	for (struct handover *h = w->handovers; !rc && h < w->handovers + w->handover_count; h++) {
		struct ddb_marker *known = ddb_known_marker(w->s, h->type, h->index, h->value);

		if (!known && h->from.n && !str_eq(h->from, h->to))
			rc = ddb_read_marker(w->s, h->type, h->index, h->value, &known, e);
	}
	return rc;
}

static void put_expected_holder(struct writer *w, const char *condition, struct str key)
{
	JSON_PUT(&w->o, member_word("ConditionExpression", condition), member_object("ExpressionAttributeValues"));
	ddb_put_text(&w->o, ":old", key);
	json_close_object(&w->o);
}

static void write_handover(struct writer *w, const struct handover *h)
{
	const struct ddb_marker *known = ddb_known_marker(w->s, h->type, h->index, h->value);
	struct str               expected = known ? known->key : h->from;

	if (str_eq(h->from, h->to))
		return; /* it keeps the value */
	if (!h->to.n && expected.n && !str_eq(expected, h->from))
		return; /* the marker is another's */
	open_action(w, h->to.n ? "Put" : "Delete", ddb_session(w->s)->store->options.kernel_table);
	json_put_object(&w->o, h->to.n ? "Item" : "Key");
	ddb_put_marker_key(&w->o, h->type, h->index, h->value);
	if (h->to.n)
		ddb_put_text(&w->o, "record_key", h->to);
	json_close_object(&w->o);
	if (!h->to.n) /* a record of another program has none */
		put_expected_holder(w, "attribute_not_exists(PK) OR record_key = :old", h->from);
	else if (expected.n)
		put_expected_holder(w, "record_key = :old", expected);
	else
		json_put_str(&w->o, "ConditionExpression", STR("attribute_not_exists(PK)"));
	close_action(w);
}

/* --- items for other programs --- */

/* A JSON object of texts as a map. */
static void put_map(struct json_out *o, const char *name, struct str text)
{
	CLEANUP(json_freep) json_t *members = NULL;
	const char                 *key;
	json_t                     *value;

	if (json_parse(text, &members, NULL))
		return; /* it was ours, and is only shown */
	JSON_PUT(o, member_object(name), member_object("M"));
	json_object_foreach(members, key, value) if (json_is_string(value))
	        ddb_put_text(o, key, str_of(json_string_value(value), json_string_length(value)));
	JSON_PUT(o, member_end(), member_end());
}

static void put_attribute(struct json_out *o, const struct item_attribute *a)
{
	switch (a->kind) {
	case ITEM_TEXT: ddb_put_text(o, a->name, a->text); break;
	case ITEM_NUMBER: JSON_PUT(o, member_object(a->name), member_str("N", a->text), member_end()); break;
	case ITEM_MAP: put_map(o, a->name, a->text); break;
	}
}

/* No condition of their own: that of the record stands for them. */
static void write_items(struct writer *w, const struct session_entry *entry, const char *table)
{
	struct record_item *items = arena_alloc(w->s->arena, RECORD_ITEMS_MAX * sizeof(*items));
	size_t              count = entry->type->items(entry->before, entry->after, w->s->arena, items);

	for (size_t i = 0; i < count; i++) {
		open_action(w, items[i].count ? "Put" : "Delete", table);
		json_put_object(&w->o, items[i].count ? "Item" : "Key");
		ddb_put_text(&w->o, "PK", items[i].pk);
		ddb_put_text(&w->o, "SK", items[i].sk);
		for (size_t n = 0; n < items[i].count; n++)
			put_attribute(&w->o, &items[i].attributes[n]);
		json_close_object(&w->o);
		close_action(w);
	}
}

/* --- all of it --- */

static void write_all(struct writer *w)
{
	const char *table = ddb_session(w->s)->store->options.tenant_table;

	for (const struct session_entry *entry = w->s->first; entry; entry = entry->next)
		if (is_write(entry) || entry->is_decisive)
			write_entry(w, entry);
	for (size_t i = 0; i < w->handover_count; i++)
		write_handover(w, &w->handovers[i]);
	for (const struct session_entry *entry = w->s->first; table && entry; entry = entry->next)
		if (entry->type->items && is_write(entry))
			write_items(w, entry, table);
}

/* Was it cancelled only because of records that had to be new? The reasons are in the order of write_all(). */
static void note_taken(struct writer *w, const json_t *reply, struct err *e)
{
	const json_t               *reasons = json_object_get(reply, "CancellationReasons");
	const struct session_entry *taken = NULL;
	const struct session_entry *entry = w->s->first;

	for (size_t i = 0; i < json_array_size(reasons); i++) {
		struct str code = STR("");

		while (entry && !is_write(entry) && !entry->is_decisive)
			entry = entry->next;
		(void)json_get_text(json_array_get(reasons, i), "Code", &code); /* none is no reason */
		if (code.n && !str_eq(code, STR("None"))) {
			/* Put by session_add(): nobody has looked whether it is there. */
			bool is_unseen = entry && is_write(entry) && !entry->before && !entry->is_decisive;

			if (!is_unseen || !str_eq(code, STR("ConditionalCheckFailed")))
				return;
			taken = entry;
		}
		entry = entry ? entry->next : NULL;
	}
	if (!taken)
		return;
	ddb_session(w->s)->is_taken = true;
	err_clear(e);
	(void)err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", taken->type->name, STR_ARG(taken->key));
}

enum rc ddb_apply(struct session *s, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct writer              *w = arena_alloc(s->arena, sizeof(*w));
	char                        token[ID_UUID_SIZE];
	bool                        has_writes = false;
	enum rc                     rc = RC_OK;

	w->s = s;
	for (const struct session_entry *entry = s->first; entry && !rc; entry = entry->next) {
		if (is_write(entry)) {
			note_handovers(w, entry);
			has_writes = true;
		}
		if (entry->type->is_sliced)
			rc = ddb_slices(ddb_session(s), entry->type, &w->slices, e);
	}
	if (rc)
		return rc;
	if (!has_writes)
		return RC_OK; /* everything is as it was */
	if (!ddb_session(s)->may_assume && (rc = read_markers(w, e)))
		return rc;
	w->body = BUF(DDB_BODY_MAX);
	w->o = JSON_OUT(&w->body);
	id_uuid(token); /* makes a repeated request harmless */
	JSON_PUT(&w->o, member_object(NULL), member_word("ClientRequestToken", token), member_list("TransactItems"));
	write_all(w);
	JSON_PUT(&w->o, member_list_end(), member_end());
	if (w->body.is_full)
		rc = err_set(e, RC_TOO_LARGE, "a transaction of more than %d bytes", DDB_BODY_MAX);
	else
		rc = ddb_call(ddb_session(s), "TransactWriteItems", &w->body, s->arena, &reply, e);
	buf_fini(&w->body);
	if (rc == RC_CONFLICT)
		note_taken(w, reply, e);
	return rc;
}

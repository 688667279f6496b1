/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_write.c - a session's changes as one conditional write.
 *
 * Each changed record is one action with a condition: that it still has the version that was read, and, in the documents' table,
 * that the attributes about to change have the values that were read (another program does not keep our version). Each record that was read by key and
 * stays as it is, is checked the same way. Each unique value that is taken, given up or passed on is a marker item with a
 * condition of its own. One action alone is a PutItem, UpdateItem or DeleteItem; several are one TransactWriteItems.
 *
 * A record that is certainly new is put without a look before, if it is not there. When it is, running the function again would
 * only meet it again, so that is the answer. To be sure that it was not put by a first try of the same request whose answer was
 * lost, such a record always travels in a transaction, which has a token.                          [note_taken()]
 *
 * Existing items are updated, never replaced: attributes that we do not know stay.
 */
#include <assert.h>

#include "base/id.h"
#include "store/ddb_ops.h"

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
	bool            is_transaction;
	const char     *operation; /* of the only action */
	struct handover handovers[MARKERS_MAX];
	size_t          handover_count;
	char            name[16];
};

static struct ddb_session *of(struct session *s)
{
	return s->connection;
}

/* "#n3", ":n3", ":o3": short names for fields, because attribute names may be reserved words. */
static const char *short_name(struct writer *w, const char *kind, int field)
{
	(void)snprintf(w->name, sizeof(w->name), "%s%d", kind, field); /* fits */
	return w->name;
}

/* --- actions --- */

static void open_action(struct writer *w, const char *kind, const char *operation, const char *table)
{
	w->operation = operation;
	if (w->is_transaction) {
		json_open_object(&w->o);
		json_put_object(&w->o, kind);
	}
	json_put_str(&w->o, "TableName", str_from(table));
}

static void close_action(struct writer *w)
{
	if (w->is_transaction) {
		json_close_object(&w->o);
		json_close_object(&w->o);
	}
}

static bool is_foreign(const struct session_entry *entry)
{
	return entry->before && entry->handle == 0;
}

/* Which fields must be as they were, beside the version: other programs change items of the documents' table without it. Those
 * that we change; of a record that goes or is only checked, its enums. */
static uint64_t guarded_fields(const struct session_entry *entry)
{
	uint64_t fields = 0;

	if (!entry->before || !entry->type->key_prefix)
		return 0;
	if (entry->is_changed && entry->after)
		return record_changes(entry->type, entry->before, entry->after);
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
	uint64_t   guarded = guarded_fields(entry);
	struct buf text;

	buf_init(&text, 8192);
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
	buf_fini(&text);
}

/* Names and values that condition and update use. */
static void put_names(struct writer *w, const struct session_entry *entry, uint64_t changed)
{
	uint64_t guarded = guarded_fields(entry);

	json_put_object(&w->o, "ExpressionAttributeNames");
	json_put_str(&w->o, "#v", STR("version"));
	for (int f = 0; f < entry->type->field_count; f++)
		if ((changed | guarded) >> f & 1)
			json_put_str(&w->o, short_name(w, "#n", f), str_from(entry->type->fields[f].name));
	json_close_object(&w->o);
}

static bool is_written(const struct session_entry *entry, int f)
{
	return !record_is_absent(entry->type, f, entry->after) || ddb_is_kept(entry->type, f);
}

/* ":g1h" and ":g1s": where the record will be in the secondary indexes of our own table. */
static void put_places(struct writer *w, const struct session_entry *entry)
{
	const struct record_type *type = entry->type;

	for (int i = 0; i < type->index_count; i++) {
		const struct record_index  *index = &type->indexes[i];
		const struct ddb_own_index *own = ddb_own_index(type, index);

		if (!own || !record_is_in_index(type, index, entry->after))
			continue;
		(void)snprintf(w->name, sizeof(w->name), ":%s", own->hash); /* fits */
		ddb_put_own_hash(&w->o, w->name, type, index, record_value(type, index->hash, entry->after));
		(void)snprintf(w->name, sizeof(w->name), ":%s", own->sort); /* fits */
		ddb_put_own_sort(&w->o, w->name, type, index, entry->after);
	}
}

static void put_values(struct writer *w, const struct session_entry *entry, uint64_t changed)
{
	const struct record_type *type = entry->type;
	uint64_t                  guarded = guarded_fields(entry);

	json_put_object(&w->o, "ExpressionAttributeValues");
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
	if (changed)
		put_places(w, entry);
	json_close_object(&w->o);
}

static void add_settings(struct buf *text, const struct session_entry *entry, uint64_t changed)
{
	const struct record_type *type = entry->type;

	buf_add_text(text, "SET #v = :nv");
	for (int f = 0; f < type->field_count; f++)
		if (changed >> f & 1 && is_written(entry, f))
			buf_addf(text, ", #n%d = :n%d", f, f);
	for (int i = 0; i < type->index_count; i++) {
		const struct ddb_own_index *own = ddb_own_index(type, &type->indexes[i]);

		if (own && record_is_in_index(type, &type->indexes[i], entry->after))
			buf_addf(text, ", %s = :%s, %s = :%s", own->hash, own->hash, own->sort, own->sort);
	}
}

static void add_removals(struct buf *text, const struct session_entry *entry, uint64_t changed)
{
	const struct record_type *type = entry->type;
	const char               *word = " REMOVE ";

	for (int f = 0; f < type->field_count; f++)
		if (changed >> f & 1 && !is_written(entry, f)) {
			buf_addf(text, "%s#n%d", word, f);
			word = ", ";
		}
	for (int i = 0; i < type->index_count; i++) {
		const struct ddb_own_index *own = ddb_own_index(type, &type->indexes[i]);

		if (own && !record_is_in_index(type, &type->indexes[i], entry->after)) {
			buf_addf(text, "%s%s, %s", word, own->hash, own->sort);
			word = ", ";
		}
	}
}

static void put_update_expression(struct writer *w, const struct session_entry *entry, uint64_t changed)
{
	struct buf text;

	buf_init(&text, 8192);
	add_settings(&text, entry, changed);
	add_removals(&text, entry, changed);
	assert(!text.is_full);
	json_put_str(&w->o, "UpdateExpression", buf_str(&text));
	buf_fini(&text);
}

static void put_record_key(struct writer *w, const struct session_entry *entry)
{
	json_put_object(&w->o, "Key");
	ddb_put_key(&w->o, entry->type, entry->key);
	json_close_object(&w->o);
}

static void write_put(struct writer *w, const struct session_entry *entry)
{
	open_action(w, "Put", "PutItem", ddb_table(of(w->s)->store, entry->type));
	json_put_object(&w->o, "Item");
	ddb_put_item(&w->o, entry->type, entry->after);
	json_close_object(&w->o);
	put_condition(w, entry);
	close_action(w);
}

static void write_update(struct writer *w, const struct session_entry *entry)
{
	uint64_t changed = record_changes(entry->type, entry->before, entry->after);

	open_action(w, "Update", "UpdateItem", ddb_table(of(w->s)->store, entry->type));
	put_record_key(w, entry);
	put_update_expression(w, entry, changed);
	put_condition(w, entry);
	put_names(w, entry, changed);
	put_values(w, entry, changed);
	close_action(w);
}

/* Delete it, or look whether it is as it was. */
static void write_guarded(struct writer *w, const struct session_entry *entry, const char *kind)
{
	open_action(w, kind, "DeleteItem", ddb_table(of(w->s)->store, entry->type));
	put_record_key(w, entry);
	put_condition(w, entry);
	if (entry->before) {
		put_names(w, entry, 0);
		put_values(w, entry, 0);
	}
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

static void put_marker(struct writer *w, const struct handover *h, struct str expected)
{
	open_action(w, "Put", "PutItem", of(w->s)->store->options.kernel_table);
	json_put_object(&w->o, "Item");
	ddb_put_marker_key(&w->o, h->type, h->index, h->value);
	ddb_put_text(&w->o, "record_key", h->to);
	json_close_object(&w->o);
	if (expected.n) {
		json_put_str(&w->o, "ConditionExpression", STR("record_key = :old"));
		json_put_object(&w->o, "ExpressionAttributeValues");
		ddb_put_text(&w->o, ":old", expected);
		json_close_object(&w->o);
	} else {
		json_put_str(&w->o, "ConditionExpression", STR("attribute_not_exists(PK)"));
	}
	close_action(w);
}

static void drop_marker(struct writer *w, const struct handover *h)
{
	open_action(w, "Delete", "DeleteItem", of(w->s)->store->options.kernel_table);
	json_put_object(&w->o, "Key");
	ddb_put_marker_key(&w->o, h->type, h->index, h->value);
	json_close_object(&w->o);
	/* A record of another program has none. */
	json_put_str(&w->o, "ConditionExpression", STR("attribute_not_exists(PK) OR record_key = :old"));
	json_put_object(&w->o, "ExpressionAttributeValues");
	ddb_put_text(&w->o, ":old", h->from);
	json_close_object(&w->o);
	close_action(w);
}

static void write_handover(struct writer *w, const struct handover *h)
{
	const struct ddb_marker *known = ddb_known_marker(w->s, h->type, h->index, h->value);

	if (str_eq(h->from, h->to))
		return; /* it keeps the value */
	if (!h->to.n)
		drop_marker(w, h);
	else
		put_marker(w, h, h->from.n ? h->from : known ? known->key : STR(""));
}

/* --- all of it --- */

static bool is_write(const struct session_entry *entry)
{
	if (!entry->is_changed)
		return false;
	if (entry->before && entry->after)
		return record_changes(entry->type, entry->before, entry->after) != 0;
	return entry->before || entry->after;
}

static void write_entry(struct writer *w, const struct session_entry *entry)
{
	if (!entry->before)
		write_put(w, entry);
	else if (!entry->after)
		write_guarded(w, entry, "Delete");
	else
		write_update(w, entry);
}

/* Put by session_add(): nobody has looked whether it is there. */
static bool is_unseen(const struct session_entry *entry)
{
	return is_write(entry) && !entry->before && !entry->is_decisive;
}

/* Gathers the handovers on the way. */
static void count_actions(struct writer *w, size_t *ret_writes, size_t *ret_checks)
{
	*ret_writes = *ret_checks = 0;
	for (const struct session_entry *entry = w->s->first; entry; entry = entry->next) {
		if (is_write(entry))
			note_handovers(w, entry);
		*ret_writes += is_write(entry);
		*ret_checks += !is_write(entry) && entry->is_decisive;
	}
	for (size_t i = 0; i < w->handover_count; i++)
		*ret_writes += !str_eq(w->handovers[i].from, w->handovers[i].to);
}

static void write_all(struct writer *w)
{
	for (const struct session_entry *entry = w->s->first; entry; entry = entry->next) {
		if (is_write(entry))
			write_entry(w, entry);
		else if (entry->is_decisive)
			write_guarded(w, entry, "ConditionCheck");
	}
	for (size_t i = 0; i < w->handover_count; i++)
		write_handover(w, &w->handovers[i]);
}

static bool has_unseen(const struct writer *w)
{
	for (const struct session_entry *entry = w->s->first; entry; entry = entry->next)
		if (is_unseen(entry))
			return true;
	return false;
}

/* Was the transaction cancelled because of records that had to be new, and of nothing else? Reasons are in the order of
 * write_all(). */
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
			if (!entry || !is_unseen(entry) || !str_eq(code, STR("ConditionalCheckFailed")))
				return;
			taken = entry;
		}
		entry = entry ? entry->next : NULL;
	}
	if (!taken)
		return;
	of(w->s)->is_taken = true;
	err_clear(e);
	(void)err_set(e, RC_CONFLICT, "there is a %s '%.*s' already", taken->type->name, STR_ARG(taken->key));
}

enum rc ddb_apply(struct session *s, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct writer              *w = arena_alloc(s->arena, sizeof(*w));
	char                        token[ID_UUID_SIZE];
	size_t                      writes, checks;
	enum rc                     rc;

	w->s = s;
	count_actions(w, &writes, &checks);
	if (!writes)
		return RC_OK; /* everything is as it was */
	w->is_transaction = writes + checks > 1 || has_unseen(w);
	buf_init(&w->body, DDB_BODY_MAX);
	json_out_init(&w->o, &w->body);
	json_open_object(&w->o);
	if (w->is_transaction) {
		id_uuid(token); /* makes a repeated request harmless */
		json_put_str(&w->o, "ClientRequestToken", str_from(token));
		json_put_array(&w->o, "TransactItems");
	}
	write_all(w);
	if (w->is_transaction)
		json_close_array(&w->o);
	json_close_object(&w->o);
	if (w->body.is_full)
		rc = err_set(e, RC_TOO_LARGE, "a transaction of more than %d bytes", DDB_BODY_MAX);
	else
		rc = ddb_call(of(s)->store, w->is_transaction ? "TransactWriteItems" : w->operation, &w->body, s->arena,
		              &reply, e);
	buf_fini(&w->body);
	if (rc == RC_CONFLICT)
		note_taken(w, reply, e);
	return rc;
}

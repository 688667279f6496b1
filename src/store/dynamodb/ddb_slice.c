/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ddb_slice.c - over how many partition keys a sliced type is spread.
 *
 * One partition key takes about 1,000 write units a second, and what is always appended cannot be split by DynamoDB. So
 * the log of events has several: a record is in the slice that its key's hash says.
 *
 * Invariants:
 *   1. The number is kept in the table, is a power of two, and never gets smaller. Whoever wants more writes it there
 *      before using it.
 *   2. With twice as many slices a key is where it was or in the new half. A record that is older than the number is
 *      found where it would have been with half as many, and so on.                               [ddb_read.c]
 *   3. A node that knows a smaller number looks again before it says that a record is not there; its lists miss what is
 *      in new slices for at most LOOK_AGAIN_MS.
 */
#include "store/dynamodb/ddb_private.h"

enum { LOOK_AGAIN_MS = 5000 };

unsigned ddb_slice_of(struct str key, unsigned slices)
{
	uint64_t hash = 14695981039346656037ull; /* FNV-1a: the same in every version of the program */

	for (size_t i = 0; i < key.n; i++)
		hash = (hash ^ (unsigned char)key.p[i]) * 1099511628211ull;
	return (unsigned)((hash ^ hash >> 32) & (slices - 1));
}

static void put_place(struct json_out *o)
{
	json_put_object(o, "Key");
	ddb_put_text(o, "PK", STR("slices"));
	ddb_put_text(o, "SK", STR("META"));
	json_close_object(o);
}

static enum rc read_number(struct ddb_session *session, struct arena *a, unsigned *ret, struct err *e)
{
	CLEANUP(json_freep) json_t  *reply = NULL;
	CLEANUP(buf_fini) struct buf body;
	struct json_out              o;
	struct str                   text = STR("");
	int64_t                      number = 0;
	enum rc                      rc;

	ddb_begin(&body, &o, session->store->options.kernel_table);
	put_place(&o);
	JSON_PUT(&o, member_bool("ConsistentRead", true), member_end());
	if ((rc = ddb_call(session, "GetItem", &body, a, &reply, e)))
		return rc;
	(void)json_get_text(json_object_get(json_object_get(reply, "Item"), "count"), "N", &text); /* none is 0 */
	if (text.n && (!str_to_int(text, 1, DDB_SLICES_MAX, &number) || (number & (number - 1))))
		return err_set(e, RC_CORRUPT,
		               "the number of slices in table %s is %.*s; a power of two up to %d is right",
		               session->store->options.kernel_table, STR_ARG(text), DDB_SLICES_MAX);
	*ret = (unsigned)number;
	return RC_OK;
}

/* RC_CONFLICT: it is as large already. */
static enum rc write_number(struct ddb_session *session, struct arena *a, unsigned number, struct err *e)
{
	CLEANUP(json_freep) json_t  *reply = NULL;
	CLEANUP(buf_fini) struct buf body;
	struct json_out              o;

	ddb_begin(&body, &o, session->store->options.kernel_table);
	put_place(&o);
	JSON_PUT(&o, member_word("UpdateExpression", "SET #count = :number"),
	         member_word("ConditionExpression", "attribute_not_exists(#count) OR #count < :number"),
	         member_object("ExpressionAttributeNames"), member_word("#count", "count"), member_end(),
	         member_object("ExpressionAttributeValues"));
	ddb_put_number(&o, ":number", number);
	JSON_PUT(&o, member_end(), member_end());
	return ddb_call(session, "UpdateItem", &body, a, &reply, e);
}

enum rc ddb_learn_slices(struct ddb_session *session, bool *ret_is_news, struct err *e)
{
	struct ddb_store                *d = session->store;
	CLEANUP(arena_fini) struct arena a = { 0 };
	unsigned                         number, known = atomic_load(&d->slices);
	enum rc                          rc;

	atomic_store(&d->looked_at, mono_now().ms); /* the others need not look meanwhile */
	rc = read_number(session, &a, &number, e);
	if (!rc && number < d->options.slices) {
		rc = write_number(session, &a, d->options.slices, e);
		if (rc == RC_CONFLICT)
			rc = read_number(session, &a, &number, e);
		else
			number = d->options.slices;
	}
	if (rc)
		return rc;
	*ret_is_news = number > known;
	while (number > known && !atomic_compare_exchange_weak(&d->slices, &known, number))
		;
	return RC_OK;
}

enum rc ddb_slices(struct ddb_session *session, const struct record_type *type, unsigned *ret, struct err *e)
{
	struct ddb_store *d = session->store;
	bool              is_news;
	enum rc           rc = RC_OK;

	*ret = 1;
	if (!type->is_sliced)
		return RC_OK;
	if (!atomic_load(&d->slices) || mono_now().ms - atomic_load(&d->looked_at) >= LOOK_AGAIN_MS)
		rc = ddb_learn_slices(session, &is_news, e);
	*ret = atomic_load(&d->slices);
	return rc;
}

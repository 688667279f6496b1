/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_table.c - reads and changes the account table of an Innovation Sandbox.
 *
 * An item has the key awsAccountId and, among others, status and name. We read strongly consistent, and write with a
 * condition on the status: an UpdateItem of that one attribute, or a DeleteItem. We ask only for those three
 * attributes: a policy may allow no others. So nothing that the other system keeps there is lost, no attribute is
 * added, and a change that it made after our look is not overwritten.
 *
 * The other system itself writes whole items without a condition; what it writes after us wins. The guard has to
 * correct that.
 */
#include "providers/isb/account_table.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/mem.h"
#include "net/aws.h"

enum { HTTP_OK = 200 };

struct isb_table {
	struct account_table port;
	struct aws_client   *client;
	char                *name;
};

/* --- requests --- */

/* {"S": text}, as a member of something else. */
static struct json_member value(const char *name, struct str text, struct arena *a)
{
	return member_raw(name, JSON_OF(a, member_str("S", text)));
}

static enum rc judge(const struct isb_table *t, struct str account, const struct aws_reply *reply, struct err *e)
{
	if (reply->status == HTTP_OK)
		return RC_OK;
	if (str_eq(reply->error_type, STR("ConditionalCheckFailedException")))
		return err_set_code(e, RC_CONFLICT, "ConditionalCheckFailedException",
		                    "account %.*s has another status by now in table %s", STR_ARG(account), t->name);
	/* A table that is not there, or rights that are missing, are put right by people, and then it works. */
	return err_set(e, RC_UNAVAILABLE, "table %s: %.*s: %.*s", t->name, STR_ARG(reply->error_type),
	               STR_ARG(reply->error_message));
}

static enum rc call(struct isb_table *t, const char *target, struct str account, struct str body, struct arena *a,
                    struct str *ret_reply, struct err *e)
{
	struct aws_reply reply = { 0 };
	enum rc          rc = aws_call(t->client, target, body, a, &reply, e);

	if (rc)
		return err_wrap(e, rc, "table %s", t->name);
	*ret_reply = reply.body;
	return judge(t, account, &reply, e);
}

/* --- the port --- */

static enum rc get(struct account_table *port, struct str account, struct arena *a, struct table_account *ret,
                   struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct isb_table           *t = CONTAINER_OF(port, struct isb_table, port);
	struct str    names = STR("{\"#status\":\"status\",\"#name\":\"name\"}"); /* reserved words there */
	struct str    body = JSON_OF(a, member_word("TableName", t->name),
	                             member_raw("Key", JSON_OF(a, value("awsAccountId", account, a))),
	                             member_word("ProjectionExpression", "awsAccountId,#status,#name"),
	                             member_raw("ExpressionAttributeNames", names), member_bool("ConsistentRead", true));
	struct str    text, status, name;
	const json_t *item;
	enum rc       rc;

	if ((rc = call(t, "DynamoDB_20120810.GetItem", account, body, a, &text, e)) ||
	    (rc = json_parse(text, &reply, e)))
		return rc;
	item = json_object_get(reply, "Item");
	if (!item)
		return err_set(e, RC_NOT_FOUND, "table %s has no account %.*s", t->name, STR_ARG(account));
	if (!json_get_text(json_object_get(item, "status"), "S", &status) || !status.n || status.n > TABLE_STATUS_MAX)
		return err_set(e, RC_CORRUPT, "account %.*s has no readable status in table %s", STR_ARG(account),
		               t->name);
	if (!json_get_text(json_object_get(item, "name"), "S", &name) || name.n > TABLE_NAME_MAX)
		name = STR("");
	*ret = (struct table_account){ str_dup(a, status), str_dup(a, name) };
	return RC_OK;
}

/* Without a new status (NULL) it is deleted. "status" is a reserved word there. */
static enum rc change(struct account_table *port, struct str account, struct str expected, const struct str *status,
                      struct err *e)
{
	struct isb_table                *t = CONTAINER_OF(port, struct isb_table, port);
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       names = STR("{\"#status\":\"status\"}"), reply;
	struct str values = JSON_OF(&a, member_if(status, value(":new", status ? *status : STR(""), &a)),
	                            value(":old", expected, &a));
	struct str body = JSON_OF(&a, member_word("TableName", t->name),
	                          member_raw("Key", JSON_OF(&a, value("awsAccountId", account, &a))),
	                          member_if(status, member_word("UpdateExpression", "SET #status = :new")),
	                          member_word("ConditionExpression", "#status = :old"),
	                          member_raw("ExpressionAttributeNames", names),
	                          member_raw("ExpressionAttributeValues", values));

	return call(t, status ? "DynamoDB_20120810.UpdateItem" : "DynamoDB_20120810.DeleteItem", account, body, &a,
	            &reply, e);
}

static enum rc set_status(struct account_table *port, struct str account, struct str expected, struct str status,
                          struct err *e)
{
	return change(port, account, expected, &status, e);
}

static enum rc delete_account(struct account_table *port, struct str account, struct str expected, struct err *e)
{
	return change(port, account, expected, NULL, e);
}

static const struct account_table_ops ops = { get, set_status, delete_account };

struct isb_table *isb_table_new(struct aws_client *client, struct str name)
{
	struct isb_table *t = mem_new(struct isb_table);

	t->port.ops = &ops;
	t->client = client;
	t->name = mem_alloc(name.n + 1);
	if (name.n)
		memcpy(t->name, name.p, name.n);
	return t;
}

void isb_table_free(struct isb_table *t)
{
	if (!t)
		return;
	free(t->name);
	free(t);
}

struct account_table *isb_table_port(struct isb_table *t)
{
	return &t->port;
}

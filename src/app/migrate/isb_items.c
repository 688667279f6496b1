/* SPDX-License-Identifier: Apache-2.0 */
/*
 * isb_items.c - reads the account and the lease table of an Innovation Sandbox, and makes records of ours of them.
 *
 * Only what stands still is taken over. An account that is being cleaned, and a lease that is being set up, are left
 * for the next run: half of what is going on with them is in state machines over there. An account counts as lent only
 * where both tables say so; where they differ, both are left, with the reason. Nothing is written to these tables.
 *
 * Not here: what is done with the records (migrate_command.c).
 */
#include "app/migrate/isb_items.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "net/aws.h"

enum { KEPT_DAYS = 30, DAY_SEC = 86400, DEPTH_MAX = 32 };

/* --- the tables --- */

/* {"S": …}, {"N": …}, {"M": …} and so on as what they stand for; NULL: null, or of no use here. */
static json_t *plain(const json_t *value, int depth)
{
	json_t     *inner = json_object_iter_value(json_object_iter((json_t *)(uintptr_t)value)), *made, *item;
	const char *kind = json_object_iter_key(json_object_iter((json_t *)(uintptr_t)value)), *name;
	size_t      i;

	if (!kind || depth > DEPTH_MAX)
		return NULL;
	if (strcmp(kind, "S") == 0 || strcmp(kind, "BOOL") == 0)
		return json_incref(inner);
	if (strcmp(kind, "N") == 0 && json_is_string(inner))
		return json_real(strtod(json_string_value(inner), NULL));
	if (strcmp(kind, "L") == 0) {
		made = json_array();
		json_array_foreach(inner, i, item) if (json_array_append_new(made, plain(item, depth + 1))) break;
		return made;
	}
	if (strcmp(kind, "M") != 0)
		return NULL;
	made = json_object();
	json_object_foreach(
	        inner, name,
	        item) if (json_object_set_new(made, name,
	                                      plain(item, depth + 1))) continue; /* a null is as good as nothing */
	return made;
}

/* What is done with an item. */
typedef void item_fn(const json_t *item, void *arg);

static enum rc scan_page(struct aws_client *client, const char *table, struct str from, struct arena *a, json_t **ret,
                         struct err *e)
{
	struct str       body = JSON_OF(a, member_word("TableName", table), member_bool("ConsistentRead", true),
	                                member_if(from.n > 0, member_raw("ExclusiveStartKey", from)));
	struct aws_reply reply = { 0 };
	enum rc          rc = aws_call(client, "DynamoDB_20120810.Scan", body, a, &reply, e);

	if (rc)
		return err_wrap(e, rc, "table %s", table);
	if (reply.status != 200)
		return err_set(e,
		               str_eq(reply.error_type, STR("ResourceNotFoundException")) ? RC_NOT_FOUND
		                                                                          : RC_UNAVAILABLE,
		               "table %s: %.*s: %.*s", table, STR_ARG(reply.error_type), STR_ARG(reply.error_message));
	return json_parse(reply.body, ret, e);
}

static enum rc scan(struct aws_client *client, const char *table, struct arena *a, item_fn *visit, void *arg,
                    struct err *e)
{
	struct str from = STR("");
	size_t     count = 0;

	do {
		CLEANUP(json_freep) json_t *page = NULL;
		const json_t               *items, *last;
		enum rc                     rc = scan_page(client, table, from, a, &page, e);

		if (rc)
			return rc;
		items = json_object_get(page, "Items");
		count += json_array_size(items);
		if (count > ISB_ITEMS_MAX)
			return err_set(e, RC_TOO_LARGE, "table %s has more than %d items", table, ISB_ITEMS_MAX);
		for (size_t i = 0; i < json_array_size(items); i++) {
			CLEANUP(json_freep)
			json_t *whole = json_pack("{s:O}", "M", json_array_get(items, i)), *item = plain(whole, 0);

			visit(item, arg);
		}
		last = json_object_get(page, "LastEvaluatedKey");
		from = last ? json_dump(a, last) : STR("");
	} while (from.n);
	return RC_OK;
}

/* --- one item --- */

static struct str text(const json_t *item, const char *name, struct arena *a)
{
	struct str found = STR("");

	return json_get_text(item, name, &found) ? str_dup(a, found) : STR("");
}

static double number(const json_t *item, const char *name)
{
	double found = json_number_value(json_object_get(item, name));

	return isfinite(found) && fabs(found) < 1e12 ? found : 0;
}

static int64_t moment(const json_t *item, const char *name)
{
	struct str found = STR("");
	int64_t    sec;

	return json_get_text(item, name, &found) && iso_time_parse(found, &sec) ? sec * 1000 : 0;
}

static struct str thresholds(const json_t *item, const char *name, struct arena *a)
{
	const json_t *list = json_object_get(item, name);

	return json_array_size(list) ? json_dump(a, list) : STR("");
}

/* --- both --- */

struct reading {
	struct isb_tables *t;
	size_t             room;
	int64_t            now_ms;
	struct arena      *arena;
};

static void take_account(const json_t *item, void *arg)
{
	struct reading     *r = arg;
	struct arena       *a = r->arena;
	const json_t       *meta = json_object_get(item, "meta");
	struct isb_account *made;
	struct account     *to;
	struct str          status = text(item, "status", a);
	int                 known = str_word(status, account_status_names, ACCOUNT_STATUS_COUNT);

	r->t->accounts = arena_grow(a, r->t->accounts, r->t->account_count, &r->room, sizeof(*made));
	made = &r->t->accounts[r->t->account_count++];
	*made = (struct isb_account){ .account = { .id = text(item, "awsAccountId", a),
		                                   .name = text(item, "name", a),
		                                   .email = text(item, "email", a),
		                                   .placed_ou = status,
		                                   .created_ms = moment(meta, "createdTime"),
		                                   .edited_ms = moment(meta, "lastEditTime") } };
	to = &made->account;
	to->cleaned_ms = to->rested_ms = to->edited_ms;
	if (!str_is_digits(to->id, ACCOUNT_ID_MAX))
		made->why = STR("awsAccountId must be 12 digits");
	else if (known > ACCOUNT_FROZEN)
		made->why = str_format(a, "its status '%.*s' is not known here", STR_ARG(status));
	else if (known == ACCOUNT_CLEANUP)
		made->why = STR("it is being cleaned: run this again when it is Available or in Quarantine");
	to->status = known < ACCOUNT_STATUS_COUNT ? (enum account_status)known : ACCOUNT_QUARANTINE;
	if (to->status == ACCOUNT_QUARANTINE)
		to->reason = STR("was in quarantine at Innovation Sandbox");
}

static void take_lease(const json_t *item, void *arg)
{
	struct reading   *r = arg;
	struct arena     *a = r->arena;
	const json_t     *meta = json_object_get(item, "meta");
	struct isb_lease *made;
	struct lease     *to;
	struct str        status = text(item, "status", a);
	int               known = str_word(status, lease_status_names, LEASE_STATUS_COUNT);

	r->t->leases = arena_grow(a, r->t->leases, r->t->lease_count, &r->room, sizeof(*made));
	made = &r->t->leases[r->t->lease_count++];
	*made = (struct isb_lease){ .lease = { .uuid = text(item, "uuid", a),
		                               .user_email = text(item, "userEmail", a),
		                               .template_uuid = text(item, "originalLeaseTemplateUuid", a),
		                               .template_name = text(item, "originalLeaseTemplateName", a),
		                               .comments = text(item, "comments", a),
		                               .created_by = text(item, "createdBy", a),
		                               .max_spend = (int64_t)(number(item, "maxSpend") * LEASE_USD),
		                               .budget_thresholds = thresholds(item, "budgetThresholds", a),
		                               .duration_ms = (int64_t)(number(item, "leaseDurationInHours") *
		                                                        LEASE_HOUR_MS),
		                               .duration_thresholds = thresholds(item, "durationThresholds", a),
		                               .cost_group = text(item, "costReportGroup", a),
		                               .account_id = text(item, "awsAccountId", a),
		                               .approved_by = text(item, "approvedBy", a),
		                               .start_ms = moment(item, "startDate"),
		                               .last_checked_ms = moment(item, "lastCheckedDate"),
		                               .expires_ms = moment(item, "expirationDate"),
		                               .cost = (int64_t)(number(item, "totalCostAccrued") * LEASE_USD),
		                               .end_ms = moment(item, "endDate"),
		                               .ttl_sec = (int64_t)number(item, "ttl"),
		                               .created_ms = moment(meta, "createdTime"),
		                               .edited_ms = moment(meta, "lastEditTime") } };
	to = &made->lease;
	to->user_key = str_lower(a, to->user_email);
	if (known == LEASE_STATUS_COUNT) {
		made->why = str_format(a, "its status '%.*s' is not known here", STR_ARG(status));
		return;
	}
	to->status = (enum lease_status)known;
	if (lease_group(to->status) == LEASE_GROUP_DENIED || lease_group(to->status) == LEASE_GROUP_ENDED)
		to->ttl_sec = to->ttl_sec ? to->ttl_sec : r->now_ms / 1000 + KEPT_DAYS * DAY_SEC;
	if (to->status == LEASE_PROVISIONING)
		made->why = STR("it is being set up: run this again when it is Active");
	else if (!lease_ok(to))
		made->why = str_format(a, "it lacks what a lease that is %.*s has", STR_ARG(status));
}

/* The account of a lease that is in use, or NULL. */
static struct isb_account *account_of(const struct isb_tables *t, const struct lease *l)
{
	for (size_t i = 0; i < t->account_count; i++)
		if (str_eq(t->accounts[i].account.id, l->account_id))
			return &t->accounts[i];
	return NULL;
}

/* A lease in use and its account belong together. */
static void join(struct isb_tables *t, struct isb_lease *from)
{
	struct lease       *l = &from->lease;
	struct isb_account *found = account_of(t, l);
	enum account_status wanted = l->status == LEASE_FROZEN ? ACCOUNT_FROZEN : ACCOUNT_ACTIVE;

	if (!found || found->why.n || found->account.status != wanted) {
		from->why = STR("its account is not there, or not in use");
	} else if (found->account.lease_uuid.n) {
		from->why = STR("another lease has the same account");
	} else {
		found->account.lease_uuid = l->uuid;
		found->account.granted = wanted == ACCOUNT_ACTIVE ? l->user_email : STR("");
		found->account.holder = found->account.granted;
	}
}

enum rc isb_tables_read(struct aws_client *client, const char *account_table, const char *lease_table, int64_t now_ms,
                        struct arena *a, struct isb_tables *ret, struct err *e)
{
	struct reading r = { .t = ret, .now_ms = now_ms, .arena = a };
	enum rc        rc;

	*ret = (struct isb_tables){ 0 };
	if ((rc = scan(client, account_table, a, take_account, &r, e)))
		return rc;
	r.room = 0;
	if ((rc = scan(client, lease_table, a, take_lease, &r, e)))
		return rc;
	for (size_t i = 0; i < ret->lease_count; i++)
		if (!ret->leases[i].why.n && lease_group(ret->leases[i].lease.status) == LEASE_GROUP_MONITORED)
			join(ret, &ret->leases[i]);
	for (size_t i = 0; i < ret->account_count; i++)
		if (!ret->accounts[i].why.n && !account_ok(&ret->accounts[i].account))
			ret->accounts[i].why = STR("it is in use, and no lease says by whom");
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * instance_api.c - the routes of tenants' instances: commands, details, lists. Without a driver there is nothing at
 * these paths.
 *
 * A command is answered with 202 when it is stored: what it does outside follows by a saga, and the answer names the
 * operation to look at. What the state does not allow is 422, with what it would allow. The tenant "-" is any: so an
 * operator who knows an instance, or only a tenant, need not know the other.
 *
 * Not here: what asks the driver itself (instance_look.c).
 */
#include "base/json.h"
#include "http/api/urlform.h"
#include "http/routes/instance_form.h"

enum { PAGE_DEFAULT = 20, PAGE_MOST = 100 };

/* --- in --- */

static bool is_on(struct request *r)
{
	if (r->api->options.instances)
		return true;
	request_refuse(
	        r, RC_NOT_FOUND,
	        "there are no instances here: LEASEHOLD_INSTANCE_DRIVER says what they are made with, and it is empty");
	return false;
}

struct instance_call *instance_enter(struct request *r, bool needs_id)
{
	struct instance_call *c = arena_alloc(&r->call->arena, sizeof(*c));
	bool                  is_any = str_eq(r->params[0], STR("-")) && needs_id;

	if (!is_on(r)) /* it has been answered: the request is gone */
		return NULL;
	c->world = r->api->options.instances;
	c->actor = r->actor.n ? r->actor : STR("admin");
	c->request_id = str_from(r->id);
	c->tenant = is_any ? STR("") : r->params[0];
	c->id = needs_id ? r->params[1] : STR("");
	c->want.tier = -1;
	if (is_any && !str_starts_with(c->id, STR("inst-"))) {
		c->tenant = c->id;
		c->id = STR("");
	}
	if (c->tenant.n && !tenant_id_is_ok(c->tenant))
		rc_ignore(err_set(&r->e, RC_INVALID,
		                  "the tenant must be 3 to %d of a to z, 0 to 9 and -, the first not -",
		                  TENANT_ID_MAX));
	else if (c->id.n > INSTANCE_ID_MAX)
		rc_ignore(err_set(&r->e, RC_NOT_FOUND, "no instance has an id of %zu bytes", c->id.n));
	return request_is_good(r, r->e.rc) ? c : NULL;
}

/* For all that is wrong with a body or a query. */
static void refuse(struct request *r, const struct instance_problems *p)
{
	CLEANUP(buf_fini) struct buf b = BUF(8192);
	struct json_out              o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_list("errors"));
	for (size_t i = 0; i < p->count; i++)
		JSON_PUT(&o, member_object(NULL), member_word("field", p->items[i].field),
		         member_word("code", p->items[i].code), member_str("message", p->items[i].message),
		         member_end());
	JSON_PUT(&o, member_list_end(), member_end());
	r->details = b.is_full ? STR("") : str_dup(&r->call->arena, buf_str(&b));
	if (p->count == 1 && strcmp(p->items[0].code, "SCALE_LIMIT_EXCEEDED") == 0)
		rc_ignore(err_set_code(&r->e, RC_UNFIT, "SCALE_LIMIT_EXCEEDED", "%.*s", STR_ARG(p->items[0].message)));
	else
		rc_ignore(err_set(&r->e, RC_INVALID, "%.*s%s", STR_ARG(p->items[0].message),
		                  p->count > 1 ? "; details.errors has more" : ""));
	request_fail(r, &r->e);
}

bool instance_read_body(struct request *r, struct instance_call *c, enum instance_body kind)
{
	CLEANUP(json_freep) json_t *body = NULL;
	struct instance_problems    p = { .arena = &r->call->arena };

	if (r->call->req.body.n && request_json(r, &body, &r->e)) {
		r->e.code = r->e.rc == RC_INVALID ? "INVALID_JSON" : r->e.code;
		return request_is_good(r, true);
	}
	if (!body && kind == BODY_DELETE)
		return true;
	instance_want_read(body, kind, &c->want, &p);
	if (!p.count)
		return true;
	refuse(r, &p);
	return false;
}

/* --- commands --- */

static void explain_refusal(struct request *r, const struct instance_call *c)
{
	CLEANUP(buf_fini) struct buf b = BUF(2048);
	struct json_out              o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_word("currentStatus", instance_status(c->refused)),
	         member_word("provisioningState", instance_state_name(c->refused)),
	         member_word("requestedTransition", instance_op_names[c->requested]));
	instance_put_allowed(&o, "allowedTransitions", c->refused);
	json_close_object(&o);
	r->details = str_dup(&r->call->arena, buf_str(&b));
}

static void on_done(struct request *r)
{
	if (r->txn.rc == RC_UNFIT)
		explain_refusal(r, r->arg);
	if (!request_failed(r))
		view_reply(r, 202, instance_put_accepted, r->arg);
}

static void submit(struct request *r, struct instance_call *c, txn_fn *run)
{
	r->arg = c;
	request_submit(r, run, c, false, on_done);
}

static void command(struct request *r, int body, txn_fn *run)
{
	struct instance_call *c = instance_enter(r, true);

	if (c && (body < 0 || instance_read_body(r, c, (enum instance_body)body)))
		submit(r, c, run);
}

HANDLER(instance_change, command(r, BODY_CHANGE, instance_update))
HANDLER(instance_delete, command(r, BODY_DELETE, instance_delete))
HANDLER(instance_size, command(r, BODY_SIZE, instance_scale))
HANDLER(instance_backup, command(r, -1, instance_backup))
HANDLER(instance_restore, command(r, BODY_RESTORE, instance_restore))
HANDLER(instance_rotate, command(r, -1, instance_rotate))

void handle_instance_status_set(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);

	if (c && instance_read_body(r, c, BODY_STATUS))
		submit(r, c, instance_action(c->want.action));
}

void handle_instance_create(struct request *r)
{
	struct instance_call *c = instance_enter(r, false);

	if (!c || !instance_read_body(r, c, BODY_CREATE))
		return;
	c->once = request_header_value(r, STR("Idempotency-Key"));
	c->body = (int64_t)(str_hash(r->call->req.body, 1) >> 1);
	if (c->once.n > INSTANCE_KEY_MAX || str_has_control(c->once))
		request_refuse(r, RC_INVALID, "Idempotency-Key must be at most %d bytes without control characters",
		               INSTANCE_KEY_MAX);
	else
		submit(r, c, instance_create);
}

/* --- looking --- */

void handle_instance_show(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);

	if (c)
		view_submit(r, instance_get, c, READS, 200, instance_put_details);
}

void handle_instance_operation(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);
	struct operation_get *g;

	if (!c)
		return;
	g = NEW_OF(r, struct operation_get);
	*g = (struct operation_get){ .tenant = c->tenant, .instance = c->id, .id = r->params[2] };
	if (g->id.n > INSTANCE_OPERATION_MAX)
		request_refuse(r, RC_NOT_FOUND, "no operation has an id of %zu bytes", g->id.n);
	else
		view_submit(r, operation_get, g, READS, 200, instance_put_operation);
}

/* --- lists: items, count, moreAvailable, nextToken --- */

struct paging {
	const char               *name;
	const char               *query; /* of the links: the filters */
	int64_t                   size;
	struct str                start; /* startAt as it was given */
	struct page              *page;
	const struct record_type *type;
	put_fn                   *put;
};

static void put_href(struct request *r, struct json_out *o, const struct paging *p, const char *name, struct str start)
{
	JSON_PUT(o, member_object(name),
	         member_str("href",
	                    str_format(&r->call->arena, "%.*s?pageSize=%lld%s%s%.*s", STR_ARG(r->call->req.path),
	                               (long long)p->size, p->query, start.n ? "&startAt=" : "", STR_ARG(start))),
	         member_end());
}

static void reply_page(struct request *r)
{
	const struct paging *p = r->arg;
	struct json_out      o;
	struct str           next;

	if (request_failed(r))
		return;
	next = p->page->next.n ? cursor_wrap(&r->call->arena, p->name, p->page->next) : STR("");
	o = reply_begin(r);
	view_put_all(r, &o, "items", p->page->records, p->type->size, p->page->count, p->put);
	JSON_PUT(&o, member_int("count", (int64_t)p->page->count), member_bool("moreAvailable", next.n > 0),
	         member_text("nextToken", next), member_object("_links"));
	put_href(r, &o, p, "self", p->start);
	if (next.n)
		put_href(r, &o, p, "next", next);
	if (p->start.n)
		put_href(r, &o, p, "prev", STR("")); /* pages only go forward: back is the first one */
	json_close_object(&o);
	reply_send(r, 200);
}

/* Read which page is wanted, into the list's own limit and cursor; then the list. */
static void submit_page(struct request *r, const struct paging *row, txn_fn *run, void *list, size_t *limit,
                        struct str *cursor)
{
	struct paging *p = NEW_OF(r, struct paging);

	*p = *row;
	r->arg = p;
	if (!request_is_good(r, request_query_int(r, "pageSize", 1, PAGE_MOST, PAGE_DEFAULT, &p->size, &r->e) ||
	                                request_query(r, "startAt", &p->start, &r->e) ||
	                                (p->start.n && !cursor_unwrap(&r->call->arena, p->name, p->start, cursor) &&
	                                 err_set(&r->e, RC_INVALID,
	                                         "startAt was not made by this list, or with other filters"))))
		return;
	*limit = (size_t)p->size;
	request_submit_page(r, run, list, reply_page);
}

static enum rc read_status(struct request *r, struct str *ret, struct err *e)
{
	enum rc rc = request_query(r, "status", ret, e);

	if (rc || !ret->n)
		return rc;
	for (int i = 0; i < INSTANCE_STATE_COUNT; i++)
		if (str_eq(*ret, str_from(instance_status((enum instance_state)i))))
			return RC_OK;
	return err_set(
	        e, RC_INVALID,
	        "status must be PROVISIONING, ACTIVE, SUSPENDED, PARKED, FAILED or another of docs/instances.md");
}

void handle_instance_list(struct request *r)
{
	struct instance_list *l = NEW_OF(r, struct instance_list);
	struct paging         p = { .type = &instance_type, .put = instance_put_listed, .query = "", .page = &l->page };
	struct instance_call *c = instance_enter(r, false);

	if (!c || !request_is_good(r, read_status(r, &l->status, &r->e)))
		return;
	l->tenant = c->tenant;
	p.name = ops_list_name(r, "instances", (struct str[]){ l->tenant, l->status }, 2);
	if (l->status.n)
		p.query = str_format(&r->call->arena, "&status=%.*s", STR_ARG(l->status)).p;
	submit_page(r, &p, instance_list, l, &l->limit, &l->cursor);
}

static void list_backups(struct request *r)
{
	const struct instance_call *c = r->arg;
	struct paging               p = { .type = &backup_type, .put = instance_put_backup, .query = "" };
	struct backup_list         *l;

	if (request_failed(r))
		return;
	l = NEW_OF(r, struct backup_list);
	l->instance = c->instance.id;
	p.page = &l->page;
	p.name = ops_list_name(r, "backups", &l->instance, 1);
	submit_page(r, &p, backup_list, l, &l->limit, &l->cursor);
}

/* The instance is read first: a tenant sees the archives of its own only. */
void handle_instance_backups(struct request *r)
{
	struct instance_call *c = instance_enter(r, true);

	if (!c)
		return;
	r->arg = c;
	request_submit(r, instance_get, c, true, list_backups);
}

/* --- for operators --- */

static enum rc read_filters(struct request *r, struct listing *v, struct err *e)
{
	struct instance_list *l = v->list;
	enum rc               rc = ops_read_text(r, "tenant", TENANT_ID_MAX, &l->tenant, e);

	if (!rc)
		rc = read_status(r, &l->status, e);
	v->name = ops_list_name(r, "all-instances", (struct str[]){ l->tenant, l->status }, 2);
	return rc;
}

static const struct listing all_instances = { "instances",         NULL,          &instance_type,
	                                      instance_put_listed, instance_list, LIST_OF(struct instance_list),
	                                      read_filters };

void handle_instance_ops_list(struct request *r)
{
	if (is_on(r))
		view_list(r, &all_instances);
}

static void put_transition(struct json_out *o, size_t row, enum instance_state from)
{
	const struct instance_step *s = &instance_steps[row];

	JSON_PUT(o, member_object(NULL), member_int("number", (int64_t)row + 1),
	         member_word("from", instance_state_name(from)), member_word("to", instance_state_name(s->to)),
	         member_word("trigger", instance_trigger_texts[s->on]),
	         member_text("command", str_from(instance_trigger_words[s->on])),
	         member_text("guard", str_from(s->guard)), member_end());
}

/* The table itself: it is the same whether there are instances or not. */
void handle_instance_states(struct request *r)
{
	struct json_out o = reply_begin(r);

	json_put_array(&o, "states");
	for (int i = 0; i < INSTANCE_STATE_COUNT; i++)
		JSON_PUT(&o, member_object(NULL), member_word("state", instance_state_names[i]),
		         member_word("status", instance_status((enum instance_state)i)),
		         member_bool("rest", instance_state_is_rest((enum instance_state)i)), member_end());
	JSON_PUT(&o, member_list_end(), member_list("transitions"));
	for (size_t row = 0; row < INSTANCE_STEPS; row++)
		for (int from = 0; from <= INSTANCE_NONE; from++)
			if (instance_steps[row].from & UINT32_C(1) << from)
				put_transition(&o, row, (enum instance_state)from);
	json_close_array(&o);
	reply_send(r, 200);
}

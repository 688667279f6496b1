/* SPDX-License-Identifier: Apache-2.0 */
/*
 * access.c - assignments of Identity Center: grant, revoke, list.
 *
 * AWS changes an assignment in the background: we request a change, then poll its status until it has ended. Meanwhile
 * AWS refuses a second change of the same thing, so each account has one change at a time here, and there are at most
 * OUTSTANDING_MAX in all.
 *
 * Always true:
 *   1. A grant looks first: an assignment that exists is not made again. If the answer was lost, or the change did not
 *      end in time, it looks again; so does the next try.                                                [grant_here()]
 *   2. Revoking what is not there succeeds. It does not look first: a grant that is under way is not in the list yet.
 *      [revoke_here()]
 *   3. Permission sets that are not ours are never read, shown or changed.
 *
 * Open sessions go on for up to twelve hours after a revoke; where they must end, a policy of the OU ends them.
 */
#include "providers/aws/access.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/ports/cloud.h"
#include "providers/aws/call.h"
#include "providers/aws/centre.h"
#include "providers/aws/directory.h"

enum {
	OUTSTANDING_MAX = 5,
	POLL_MS = 120000, /* in all */
	NAMES_MS = 3600000,
	NAMES_AGAIN_MS = 60000, /* a missing set is looked for again after this */
	SETS_MAX = 2000,
	REASON_MAX = 200,
};
static const long poll_waits_ms[] = { 1000, 2000, 3000, 5000 };

/* clang-format off */
static const struct aws_error_row errors[] = {
	{ "ResourceNotFoundException",     RC_NOT_FOUND },
	{ "ConflictException",             RC_LIMITED },
	{ "ServiceQuotaExceededException", RC_CONFLICT },
	{ NULL, RC_OK },
};
#define SSO_OP(operation, writing, rate) \
	{ .service = &aws_services[AWS_SSO_ADMIN], .name = operation, .permission = "sso:" operation, .writes = writing, .errors = errors, .pace = rate }
static const struct aws_op
	create_assignment = SSO_OP("CreateAccountAssignment", true, AWS_PACE_IDC_WRITE),
	delete_assignment = SSO_OP("DeleteAccountAssignment", true, AWS_PACE_IDC_WRITE),
	describe_creation = SSO_OP("DescribeAccountAssignmentCreationStatus", false, AWS_PACE_IDC_READ),
	describe_deletion = SSO_OP("DescribeAccountAssignmentDeletionStatus", false, AWS_PACE_IDC_READ),
	list_assignments  = SSO_OP("ListAccountAssignments", false, AWS_PACE_IDC_READ),
	list_sets         = SSO_OP("ListPermissionSets", false, AWS_PACE_IDC_READ),
	describe_set      = SSO_OP("DescribePermissionSet", false, AWS_PACE_IDC_READ);

/* The two ways to change an assignment. */
struct change { const struct aws_op *ask, *look; const char *status, *request; };
static const struct change
	creation = { &create_assignment, &describe_creation, "AccountAssignmentCreationStatus", "AccountAssignmentCreationRequestId" },
	deletion = { &delete_assignment, &describe_deletion, "AccountAssignmentDeletionStatus", "AccountAssignmentDeletionRequestId" };
/* clang-format on */
static const char *const kinds[CLOUD_PRINCIPAL_COUNT] = { [CLOUD_USER] = "USER", [CLOUD_GROUP] = "GROUP" };

struct aws_access {
	struct access             base;
	struct aws_access_options o;
	struct aws_caller        *caller;

	pthread_mutex_t naming; /* of the next three, held while they are read */
	struct arena    names;
	struct str      arns[AWS_PERMISSION_SETS]; /* empty: there is no such set */
	int64_t         named_ms;

	pthread_mutex_t lock; /* of all below */
	pthread_cond_t  is_changed;
	struct str      busy[OUTSTANDING_MAX]; /* accounts */
	bool            is_stopped;
};

/* An assignment as AWS calls it. */
struct ids {
	struct str  instance, account, set, principal;
	const char *kind;
};

/* --- names --- */

struct set_list {
	struct arena arena;
	struct str   instance;
	struct str  *arns;
	size_t       count;
};

static enum rc take_set(void *arg, const json_t *item, struct err *e)
{
	struct set_list *l = arg;

	if (l->count == SETS_MAX)
		return err_set(e, RC_TOO_LARGE, "Identity Center has more than %d permission sets", SETS_MAX);
	if (json_is_string(item))
		l->arns[l->count++] = str_dup(&l->arena, str_from(json_string_value(item)));
	return RC_OK;
}

/* Which of ours it is; AWS_PERMISSION_SETS: none. */
static int set_number(const struct aws_access *x, struct str name)
{
	int i = 0;

	while (i < AWS_PERMISSION_SETS && !(name.n && str_eq(x->o.sets[i], name)))
		i++;
	return i;
}

/* There is no look-up by name: each is described until ours are found. With the naming held. */
static enum rc find_sets(struct aws_access *x, struct set_list *l, struct err *e)
{
	int found = 0, wanted = 0;

	for (int i = 0; i < AWS_PERMISSION_SETS; i++)
		wanted += x->o.sets[i].n > 0;
	for (size_t i = 0; i < l->count && found < wanted; i++) {
		CLEANUP(json_freep) json_t *reply = NULL;
		struct str                  body = JSON_OF(&l->arena, member_str("InstanceArn", l->instance),
		                                           member_str("PermissionSetArn", l->arns[i]));
		struct str                  name = STR("");
		struct err                  why = { 0 };
		enum rc                     rc = aws_do(x->caller, &describe_set, body, &l->arena, &reply, &why);
		int                         number;

		if (rc == RC_NOT_FOUND) /* deleted meanwhile */
			continue;
		if (rc)
			return err_pass(e, rc, &why);
		(void)json_get_text(json_object_get(reply, "PermissionSet"), "Name", &name);
		number = set_number(x, name);
		if (number == AWS_PERMISSION_SETS || x->arns[number].n)
			continue;
		x->arns[number] = str_dup(&x->names, l->arns[i]);
		found++;
	}
	return RC_OK;
}

static enum rc read_names(struct aws_access *x, struct str instance, struct err *e)
{
	struct set_list   l = { .instance = instance, .arns = mem_new_array(struct str, SETS_MAX) };
	struct str        body = JSON_OF(&l.arena, member_str("InstanceArn", instance), member_int("MaxResults", 100));
	struct aws_paging paging = { .call = { .op = &list_sets, .body = body },
		                     .token = "NextToken",
		                     .list = "PermissionSets",
		                     .each = take_set,
		                     .arg = &l };
	enum rc           rc;

	arena_reset(&x->names);
	memset(x->arns, 0, sizeof(x->arns));
	x->named_ms = 0;
	rc = aws_pages(x->caller, &paging, e);
	if (!rc && !(rc = find_sets(x, &l, e)))
		x->named_ms = clock_now(x->o.clock).ms;
	free(l.arns);
	arena_fini(&l.arena);
	return err_wrap(e, rc, "permission sets");
}

/* The ARN of one of ours; empty: there is no such set. */
static enum rc find_set(struct aws_access *x, int number, struct str instance, struct arena *a, struct str *ret,
                        struct err *e)
{
	int64_t age_ms;
	enum rc rc = RC_OK;

	LOCKED(&x->naming);
	age_ms = clock_now(x->o.clock).ms - x->named_ms;
	if (!x->named_ms || age_ms > NAMES_MS || (!x->arns[number].n && age_ms > NAMES_AGAIN_MS))
		rc = read_names(x, instance, e);
	if (!rc)
		*ret = str_dup(a, x->arns[number]);
	return rc;
}

static void forget_names(struct aws_access *x)
{
	aws_directory_forget_groups(x->o.directory);
	LOCKED(&x->naming);
	x->named_ms = 0;
}

static enum rc name_ids(struct aws_access *x, const struct cloud_assignment *as, struct arena *a, struct ids *ret,
                        struct err *e)
{
	int                 number = set_number(x, as->permission_set);
	struct str          who = as->principal;
	struct aws_instance instance;
	enum rc             rc;

	if (!str_is_digits(as->account_id, 12))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(as->account_id));
	if (number == AWS_PERMISSION_SETS)
		return err_set(e, RC_INVALID, "'%.*s' is not one of our permission sets", STR_ARG(as->permission_set));
	if (as->kind >= CLOUD_PRINCIPAL_COUNT || !as->principal.n || as->principal.n > CLOUD_NAME_MAX * 2)
		return err_set(e, RC_INVALID, "a principal must have 1 to %d bytes", CLOUD_NAME_MAX * 2);
	*ret = (struct ids){ .account = as->account_id, .kind = kinds[as->kind], .principal = as->principal };
	if ((rc = aws_centre_get(x->o.centre, &instance, e)) ||
	    (rc = find_set(x, number, instance.arn, a, &ret->set, e)))
		return rc;
	ret->instance = instance.arn;
	if (!ret->set.n)
		return err_set(e, RC_NOT_FOUND, "Identity Center has no permission set %.*s",
		               STR_ARG(as->permission_set));
	if (who.n >= 36 && who.n <= 47 && str_is_of(who, "0-9a-fA-F-"))
		return RC_OK; /* an id instead of a name, as list() shows whom the directory does not know */
	return as->kind == CLOUD_USER ? aws_directory_user_id(x->o.directory, who, a, &ret->principal, e)
	                              : aws_directory_group_id(x->o.directory, who, a, &ret->principal, e);
}

/* --- the list of one set in one account --- */

struct listing {
	struct ids               ids; /* its account and set */
	struct aws_access       *x;
	struct arena            *arena;
	struct str               set_name;
	bool                     has_principal; /* of the ids */
	struct cloud_assignment *items;         /* NULL: only that is wanted */
	size_t                   count, room;
};

static struct str name_of(struct aws_access *x, enum cloud_principal kind, struct str id, struct arena *a)
{
	struct str name;
	bool       is_known = kind == CLOUD_USER ? aws_directory_email(x->o.directory, id, a, &name)
	                                         : aws_directory_group_name(x->o.directory, id, a, &name);

	return is_known ? name : str_dup(a, id);
}

static void add_assignment(struct listing *l, enum cloud_principal kind, struct str id)
{
	l->items = arena_grow(l->arena, l->items, l->count, &l->room, sizeof(*l->items));
	l->items[l->count++] = (struct cloud_assignment){ str_dup(l->arena, l->ids.account), kind,
		                                          name_of(l->x, kind, id, l->arena), l->set_name };
}

static enum rc take_assignment(void *arg, const json_t *item, struct err *e)
{
	struct listing *l = arg;
	struct str      id, kind;

	if (!json_get_text(item, "PrincipalId", &id) || !json_get_text(item, "PrincipalType", &kind) || !id.n)
		return err_set(e, RC_CORRUPT, "ListAccountAssignments: an assignment without a principal");
	if (l->ids.principal.n)
		l->has_principal = l->has_principal || str_eq(l->ids.principal, id);
	else
		add_assignment(l, str_eq(kind, STR("GROUP")) ? CLOUD_GROUP : CLOUD_USER, id);
	return RC_OK;
}

static enum rc list_set(struct listing *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       body = JSON_OF(&a, member_str("InstanceArn", l->ids.instance),
	                                                member_str("AccountId", l->ids.account), member_str("PermissionSetArn", l->ids.set),
	                                                member_int("MaxResults", 100));
	struct aws_paging                paging = { .call = { .op = &list_assignments, .body = body },
		                                    .token = "NextToken",
		                                    .list = "AccountAssignments",
		                                    .each = take_assignment,
		                                    .arg = l };

	return aws_pages(l->x->caller, &paging, e);
}

/* Is it there? */
static enum rc look(struct aws_access *x, const struct ids *ids, bool *ret, struct err *e)
{
	struct listing l = { .ids = *ids, .x = x };
	enum rc        rc = list_set(&l, e);

	*ret = l.has_principal;
	return rc;
}

/* --- one change at a time for an account --- */

static bool is_busy(const struct aws_access *x, struct str account, int *ret_free)
{
	bool is_same_account = false;

	*ret_free = -1;
	for (int i = 0; i < OUTSTANDING_MAX; i++) {
		if (!x->busy[i].n)
			*ret_free = i;
		is_same_account = is_same_account || str_eq(x->busy[i], account);
	}
	return is_same_account || *ret_free < 0;
}

static enum rc enter(struct aws_access *x, struct str account, int *ret, struct err *e)
{
	enum rc rc = RC_OK;

	LOCKED(&x->lock);
	while (!x->is_stopped && is_busy(x, account, ret))
		pthread_cond_wait(&x->is_changed, &x->lock);
	if (x->is_stopped)
		rc = err_set(e, RC_UNAVAILABLE, "the server is stopping");
	else
		x->busy[*ret] = account;
	return rc;
}

static void leave(struct aws_access *x, int place)
{
	LOCKED(&x->lock);
	x->busy[place] = STR("");
	pthread_cond_broadcast(&x->is_changed);
}

void aws_access_stop(struct aws_access *x)
{
	LOCKED(&x->lock);
	x->is_stopped = true;
	pthread_cond_broadcast(&x->is_changed);
}

/* False: it was stopped. */
static bool wait_ms(struct aws_access *x, long ms)
{
	int64_t until_ms = mono_now().ms + ms;

	if (x->o.wait)
		x->o.wait(x->o.wait_arg, ms);
	LOCKED(&x->lock);
	while (!x->o.wait && !x->is_stopped && cond_wait_until(&x->is_changed, &x->lock, until_ms))
		;
	return !x->is_stopped;
}

/* --- changes --- */

/* *ret_is_over is set with RC_OK; RC_CONFLICT: it failed, and why. */
static enum rc read_status(const json_t *reply, const struct change *ch, struct arena *a, struct str *request,
                           bool *ret_is_over, struct err *e)
{
	const json_t *object = json_object_get(reply, ch->status);
	struct str    status = STR(""), reason = STR(""), id = STR("");

	if (json_get_text(object, "RequestId", &id) && id.n)
		*request = str_dup(a, id);
	if (!json_get_text(object, "Status", &status) || !json_get_text(object, "FailureReason", &reason))
		return err_set(e, RC_CORRUPT, "%s: a status that cannot be read", ch->look->name);
	*ret_is_over = str_eq(status, STR("SUCCEEDED"));
	if (!str_eq(status, STR("FAILED")))
		return RC_OK;
	reason = utf8_line(a, reason, REASON_MAX);
	return err_set(e, RC_CONFLICT, "%s failed: %.*s", ch->ask->name, STR_ARG(reason));
}

/* Polls until it is over. A poll that fails for a passing reason is repeated. */
static enum rc follow(struct aws_access *x, const struct ids *ids, const struct change *ch, struct str request,
                      struct arena *a, struct err *e)
{
	struct str body = JSON_OF(a, member_str("InstanceArn", ids->instance), member_str(ch->request, request));
	long       waited_ms = 0;

	for (size_t i = 0; waited_ms < POLL_MS; i++) {
		CLEANUP(json_freep) json_t *reply = NULL;
		long       pause_ms = poll_waits_ms[i < ARRAY_LEN(poll_waits_ms) ? i : ARRAY_LEN(poll_waits_ms) - 1];
		struct err why = { 0 };
		bool       is_over = false;
		enum rc    rc;

		if (!wait_ms(x, pause_ms))
			break;
		waited_ms += pause_ms;
		rc = aws_do(x->caller, ch->look, body, a, &reply, &why);
		if (!rc && ((rc = read_status(reply, ch, a, &request, &is_over, e)) || is_over))
			return rc;
		if (rc && rc != RC_UNAVAILABLE && rc != RC_LIMITED)
			return err_pass(e, rc == RC_NOT_FOUND ? RC_TIMEOUT : rc, &why);
	}
	return err_set(e, RC_TIMEOUT, "%s has not ended after %ld s", ch->ask->name, waited_ms / 1000);
}

static enum rc ask(struct aws_access *x, const struct ids *ids, const struct change *ch, struct arena *a, struct err *e)
{
	CLEANUP(json_freep) json_t *reply = NULL;
	struct str                  request = STR("");
	struct str body = JSON_OF(a, member_str("InstanceArn", ids->instance), member_str("TargetId", ids->account),
	                          member_word("TargetType", "AWS_ACCOUNT"), member_str("PermissionSetArn", ids->set),
	                          member_word("PrincipalType", ids->kind), member_str("PrincipalId", ids->principal));
	bool       is_over = false;
	enum rc    rc = aws_do(x->caller, ch->ask, body, a, &reply, e);

	if (rc || (rc = read_status(reply, ch, a, &request, &is_over, e)) || is_over)
		return rc;
	if (!request.n)
		return err_set(e, RC_TIMEOUT, "%s: the answer has no request id", ch->ask->name);
	return follow(x, ids, ch, request, a, e);
}

/* With the account to ourselves. Cached ids may be stale: if AWS does not know one of them, all are read again,
 * once. */
static enum rc apply(struct aws_access *x, const struct cloud_assignment *as, const struct change *ch, struct ids *ids,
                     struct arena *a, struct err *e)
{
	struct ids fresh;
	struct err why = { 0 };
	enum rc    rc = ask(x, ids, ch, a, &why);

	if (rc == RC_NOT_FOUND) {
		forget_names(x);
		if (!name_ids(x, as, a, &fresh, NULL) &&
		    !(str_eq(fresh.set, ids->set) && str_eq(fresh.principal, ids->principal))) {
			*ids = fresh;
			err_clear(&why);
			rc = ask(x, ids, ch, a, &why);
		}
	}
	return err_pass(e, rc, &why);
}

static enum rc grant_here(struct aws_access *x, const struct cloud_assignment *as, struct ids *ids, struct arena *a,
                          struct err *e)
{
	struct err why = { 0 };
	bool       is_there;
	enum rc    rc = err_forgive(e, look(x, ids, &is_there, e), RC_NOT_FOUND);

	if (rc || is_there) /* not found is an old id of the set: apply() sees it */
		return rc;
	rc = apply(x, as, &creation, ids, a, &why);
	if (rc == RC_TIMEOUT && look(x, ids, &is_there, NULL) == RC_OK && is_there)
		return RC_OK;
	return err_pass(e, rc, &why);
}

static enum rc revoke_here(struct aws_access *x, const struct cloud_assignment *as, struct ids *ids, struct arena *a,
                           struct err *e)
{
	struct err why = { 0 };
	bool       is_there;
	enum rc    rc = apply(x, as, &deletion, ids, a, &why);

	if ((rc == RC_NOT_FOUND || rc == RC_TIMEOUT || rc == RC_CONFLICT) && look(x, ids, &is_there, NULL) == RC_OK &&
	    !is_there)
		return RC_OK;
	return err_pass(e, rc, &why);
}

static enum rc set(struct access *base, const struct cloud_assignment *as, bool is_granted, struct err *e)
{
	struct aws_access               *x = CONTAINER_OF(base, struct aws_access, base);
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct ids                       ids;
	int                              place = 0;
	enum rc                          rc = name_ids(x, as, &a, &ids, e);

	if (rc == RC_NOT_FOUND && !is_granted) /* neither a set nor a person that is not there has anything */
		return err_forgive(e, rc, RC_NOT_FOUND);
	if (rc || (rc = enter(x, as->account_id, &place, e)))
		return rc;
	rc = is_granted ? grant_here(x, as, &ids, &a, e) : revoke_here(x, as, &ids, &a, e);
	leave(x, place);
	return rc;
}

/* --- the list --- */

static enum rc list(struct access *base, struct str account_id, struct arena *a, struct cloud_assignment **ret,
                    size_t *ret_count, struct err *e)
{
	struct aws_access  *x = CONTAINER_OF(base, struct aws_access, base);
	struct listing      l = { .x = x, .arena = a };
	struct aws_instance instance;
	enum rc             rc;

	if (!str_is_digits(account_id, 12))
		return err_set(e, RC_INVALID, "an account id must have 12 digits, not '%.*s'", STR_ARG(account_id));
	if ((rc = aws_centre_get(x->o.centre, &instance, e)))
		return rc;
	l.ids = (struct ids){ .instance = instance.arn, .account = account_id };
	for (int i = 0; !rc && i < AWS_PERMISSION_SETS; i++) {
		if (!x->o.sets[i].n || (rc = find_set(x, i, instance.arn, a, &l.ids.set, e)) || !l.ids.set.n)
			continue;
		l.set_name = x->o.sets[i];
		rc = list_set(&l, e);
	}
	if (rc == RC_NOT_FOUND) /* a set that was deleted since its name was read: the next try reads them again */
		forget_names(x);
	if (rc)
		return rc == RC_NOT_FOUND ? RC_UNAVAILABLE : rc;
	*ret = l.items;
	*ret_count = l.count;
	return RC_OK;
}

static const struct access_ops ops = { set, list };

/* --- life --- */

struct aws_access *aws_access_new(const struct aws_access_options *o)
{
	struct aws_access *x = mem_new(struct aws_access);

	x->base.ops = &ops;
	x->o = *o;
	x->caller = aws_centre_caller(o->centre);
	pthread_mutex_init(&x->naming, NULL);
	pthread_mutex_init(&x->lock, NULL);
	cond_init(&x->is_changed);
	return x;
}

void aws_access_free(struct aws_access *x)
{
	if (!x)
		return;
	arena_fini(&x->names);
	pthread_cond_destroy(&x->is_changed);
	pthread_mutex_destroy(&x->lock);
	pthread_mutex_destroy(&x->naming);
	free(x);
}

struct access *aws_access_port(struct aws_access *x)
{
	return &x->base;
}

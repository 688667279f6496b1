/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_follow.c - when the saga that follows an account starts, and what follows from its end.
 *
 * An account's record says where it should be and who should have access; placed_ou and granted say what is certain.
 * While they differ, a saga is under way, with the target as it was at its start. If the target has changed when it
 * ends, the next one starts in the same commit.
 *
 * Always true:
 *   1. One saga at a time follows an account, the one with follow_number. The end of any other changes nothing.
 *      [on_end()]
 *   2. placed_ou and granted change only at the end of a saga that is done, or when a scan has seen where it is.
 *   3. A saga that fails leads to quarantine, which is reached from anywhere; if the one to Quarantine or Exit fails,
 *      it stays parked, and nothing starts after it. So there is no loop. [note_failure()]
 *
 * is_following with a saga that is over (parked, or unknown to this program) does not prevent the next one.
 *
 * Not here: what the steps do (account_steps.c), who sets which target (accounts.c).
 */
#include "service/account/account_follow.h"

#include <assert.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/timer.h"
#include "service/account/account_ous.h"
#include "service/account/account_steps.h"
#include "service/record/lease_records.h"

static saga_end_fn on_end;

struct account_world *account_world_new(const struct account_world_options *o)
{
	struct account_world *w = mem_new(struct account_world);

	w->options = *o;
	w->ous = account_ous_new(o->cloud.organisation, STR(""), o->store);
	account_steps_init(w->steps, o->access_ms);
	return w;
}

void account_world_free(struct account_world *w)
{
	if (!w)
		return;
	account_ous_free(w->ous);
	free(w);
}

struct account_ous *account_world_ous(struct account_world *w)
{
	return w->ous;
}

struct saga_kind account_follow_kind(struct account_world *w)
{
	return (struct saga_kind){ .name = ACCOUNT_FOLLOW,
		                   .steps = w->steps,
		                   .step_count = ACCOUNT_STEP_COUNT,
		                   .on_end = on_end,
		                   .world = w };
}

const struct account_hooks *account_hooks(const struct session *s)
{
	return kernel_hook(kernel_of(s), ACCOUNT_HOOKS);
}

struct str account_subject(struct session *s, struct str id)
{
	return str_format(session_arena(s), "account/%.*s", STR_ARG(id));
}

enum rc account_emit(struct session *s, const char *type, struct str account, struct str actor, struct str request_id,
                     struct str detail, struct err *e)
{
	return session_tell(s, type, account_subject(s, account), utf8_line(session_arena(s), actor, ACTOR_MAX),
	                    request_id, detail, e);
}

enum rc account_arm(struct session *s, struct str name, int64_t due_ms, const char *type, struct str account,
                    struct str detail, struct err *e)
{
	struct timer timer = { .name = name,
		               .due_ms = due_ms,
		               .type = str_from(type),
		               .subject = account_subject(s, account),
		               .detail = detail };

	return session_arm(s, &timer, e);
}

/* --- start --- */

static struct str saga_id(struct session *s, const struct account *a)
{
	return str_format(session_arena(s), ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(a->id), (long long)a->follow_number);
}

static enum rc start(struct session *s, struct account *a, struct str actor, struct err *e)
{
	struct account_target target;

	a->follow_number++;
	a->is_following = 1;
	target = account_target_of(a);
	session_put(s, &account_type, a);
	return session_start(s, ACCOUNT_FOLLOW, saga_id(s, a), account_subject(s, a->id),
	                     account_target_write(&target, session_arena(s)),
	                     utf8_line(session_arena(s), actor, ACTOR_MAX), e);
}

/* The world is where the record wants it. */
static enum rc arrive(struct session *s, struct account *a, struct str actor, struct err *e)
{
	struct str detail = JSON_OF(session_arena(s), member_str("accountId", a->id),
	                            member_if(a->status == ACCOUNT_CLEANUP, member_str("reason", a->clean_reason)));

	a->is_following = 0;
	session_put(s, &account_type, a);
	switch (a->status) {
	case ACCOUNT_ACTIVE: return account_hooks(s)->ready(s, a, e);
	case ACCOUNT_CLEANUP: return account_emit(s, EVENT_CLEAN_REQUEST, a->id, actor, STR(""), detail, e);
	case ACCOUNT_AVAILABLE: return account_hooks(s)->freed(s, e);
	case ACCOUNT_EXIT:
		session_delete(s, &account_type, a->id);
		return account_emit(s, "AccountRemoved", a->id, actor, STR(""), detail, e);
	case ACCOUNT_FROZEN:
	case ACCOUNT_QUARANTINE:
	case ACCOUNT_COOLDOWN:
	case ACCOUNT_STATUS_COUNT: break;
	}
	return RC_OK;
}

enum rc account_save(struct session *s, struct account *a, struct str actor, struct err *e)
{
	bool    follows;
	enum rc rc = saga_is_under_way(s, a->is_following ? saga_id(s, a) : STR(""), &follows, e);

	if (rc)
		return rc;
	assert(account_ok(a));
	if (follows) {
		session_put(s, &account_type, a);
		return RC_OK;
	}
	return account_must_follow(a) ? start(s, a, actor, e) : arrive(s, a, actor, e);
}

/* --- end --- */

static enum rc note_failure(struct session *s, const struct saga *saga, const struct account_target *target,
                            struct account *a, struct str actor, struct err *e)
{
	struct account_target now = account_target_of(a);
	struct str            why = saga->reason.n ? saga->reason : saga->last_error;
	enum rc               rc;

	a->is_following = 0;
	if (account_target_is_final(&now) && str_eq(now.to, target->to)) {
		session_put(s, &account_type, a); /* parked: the alarm tells of it */
		return RC_OK;
	}
	if (account_target_is_final(&now))
		return account_save(s, a, actor, e);
	if ((rc = account_hooks(s)->failed(s, a, why, e))) /* one that waits for it; any other hears that it is lost */
		return rc;
	return account_hooks(s)->lock_away(s, a, HOLD_DRIFT, why, actor, STR(""), e);
}

static enum rc on_end(struct session *s, const struct saga *saga, struct err *e)
{
	struct account_target target;
	struct account        a;
	struct str            actor = str_format(session_arena(s), "saga/%.*s", STR_ARG(saga->id));
	bool                  is_there;
	enum rc               rc = account_target_read(saga->input, session_arena(s), &target, e);

	if (rc || (rc = session_find(s, &account_type, target.account, &a, &is_there, e)) || !is_there ||
	    a.follow_number != target.number)
		return rc;
	if (saga->state != SAGA_DONE && !HAS_DEFECT(FAILED_IS_DONE))
		return note_failure(s, saga, &target, &a, actor, e);
	a.placed_ou = target.to;
	a.granted = target.holder;
	a.is_following = a.has_drifted = 0;
	a.edited_ms = session_now(s).ms;
	return account_save(s, &a, actor, e);
}

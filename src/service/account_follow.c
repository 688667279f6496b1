/* SPDX-License-Identifier: Apache-2.0 */
/*
 * account_follow.c - when the saga that follows an account starts, and what follows from its end.
 *
 * An account's record says where it should be and who should have access; placed_ou and granted say what is so for certain. While they
 * differ, a saga is under way. It takes the wish with it as it was at its start; when the wish has changed at its end, the next one starts
 * in the same commit.
 *
 * Always true:
 *   1. One saga at a time follows an account, the one with follow_number. The end of any other changes nothing.   [on_end()]
 *   2. placed_ou and granted change only at the end of a saga that is done. (And when a scan has seen where it really is.)
 *   3. A saga that fails leads to quarantine, which is reached from anywhere; the one to Quarantine or Exit that fails stays parked,
 *      and nothing starts by itself after it. So there is no loop.                                           [note_failure()]
 *
 * is_following with a saga that is over (parked because its end was refused, or unknown to this program) does not keep the next one
 * from starting.
 *
 * Not here: what the steps do (account_steps.c), who wishes what (accounts.c).
 */
#include "service/account_follow.h"

#include <assert.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "kernel/defect.h"
#include "kernel/event.h"
#include "service/account_clean.h"
#include "service/account_ous.h"
#include "service/account_steps.h"
#include "service/lease_flow.h"
#include "service/lease_records.h"

static saga_end_fn on_end;

struct account_world *account_world_new(const struct account_world_options *o)
{
	struct account_world *w = mem_new(struct account_world);

	w->options = *o;
	w->ous = account_ous_new(o->cloud.organisation);
	return w;
}

void account_world_free(struct account_world *w)
{
	if (!w)
		return;
	account_ous_free(w->ous);
	free(w);
}

struct saga_kind account_follow_kind(struct account_world *w)
{
	return (struct saga_kind){ .name = ACCOUNT_FOLLOW,
		                   .steps = account_steps,
		                   .step_count = ACCOUNT_STEP_COUNT,
		                   .on_end = on_end,
		                   .world = w };
}

struct str account_subject(struct session *s, struct str id)
{
	return str_format(session_arena(s), "account/%.*s", STR_ARG(id));
}

/* --- start --- */

static struct str saga_id(struct session *s, const struct account *a)
{
	return str_format(session_arena(s), ACCOUNT_FOLLOW "/%.*s/%lld", STR_ARG(a->id), (long long)a->follow_number);
}

static enum rc is_under_way(struct session *s, const struct account *a, bool *ret, struct err *e)
{
	struct saga saga;
	enum rc     rc;

	*ret = false;
	if (!a->is_following)
		return RC_OK;
	rc = session_get(s, &saga_type, saga_id(s, a), &saga, NULL);
	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "the saga that follows account %.*s cannot be read", STR_ARG(a->id));
	*ret = !rc && (saga.state == SAGA_RUNNING || saga.state == SAGA_UNDOING);
	return RC_OK;
}

static enum rc start(struct session *s, struct account *a, struct str actor, struct err *e)
{
	struct account_wish wish;

	a->follow_number++;
	a->is_following = 1;
	wish = account_wish_of(a);
	session_put(s, &account_type, a);
	return session_start(s, ACCOUNT_FOLLOW, saga_id(s, a), account_subject(s, a->id),
	                     account_wish_write(&wish, session_arena(s)), utf8_line(session_arena(s), actor, ACTOR_MAX),
	                     e);
}

static enum rc leave_pool(struct session *s, const struct account *a, struct str actor, struct err *e)
{
	struct str detail = str_format(session_arena(s), "{\"accountId\":\"%.*s\"}", STR_ARG(a->id));

	session_delete(s, &account_type, a->id);
	return account_emit(s, "AccountRemoved", a, actor, STR(""), detail, e);
}

/* The world is where the record wants it. */
static enum rc arrive(struct session *s, struct account *a, struct str actor, struct err *e)
{
	a->is_following = 0;
	session_put(s, &account_type, a);
	switch (a->status) {
	case ACCOUNT_ACTIVE: return lease_on_ready(s, a, e);
	case ACCOUNT_CLEANUP: return account_clean_ask(s, a, actor, e);
	case ACCOUNT_AVAILABLE: return line_poke(s, e);
	case ACCOUNT_EXIT: return leave_pool(s, a, actor, e);
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
	enum rc rc = is_under_way(s, a, &follows, e);

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

static enum rc note_failure(struct session *s, const struct saga *saga, const struct account_wish *wish,
                            struct account *a, struct str actor, struct err *e)
{
	struct account_wish now = account_wish_of(a);
	struct str          why = saga->reason.n ? saga->reason : saga->last_error;
	enum rc             rc;

	a->is_following = 0;
	if (account_wish_is_final(&now) && str_eq(now.to, wish->to)) {
		session_put(s, &account_type, a); /* parked: the alarm tells of it */
		return RC_OK;
	}
	if (account_wish_is_final(&now))
		return account_save(s, a, actor, e);
	if ((rc = lease_on_failed(s, a, why, e))) /* one that waits for it; any other hears that the account is lost */
		return rc;
	return account_lock_away(s, a, HOLD_DRIFT, why, actor, STR(""), e);
}

static enum rc on_end(struct session *s, const struct saga *saga, struct err *e)
{
	struct account_wish wish;
	struct account      a;
	struct str          actor = str_format(session_arena(s), "saga/%.*s", STR_ARG(saga->id));
	enum rc             rc = account_wish_read(saga->input, session_arena(s), &wish, e);

	if (rc)
		return rc;
	rc = session_get(s, &account_type, wish.account, &a, NULL);
	if (rc == RC_NOT_FOUND || (!rc && a.follow_number != wish.number))
		return RC_OK;
	if (rc)
		return err_set(e, rc, "account %.*s cannot be read", STR_ARG(wish.account));
	if (saga->state != SAGA_DONE && !HAS_DEFECT(FAILED_IS_DONE))
		return note_failure(s, saga, &wish, &a, actor, e);
	a.placed_ou = wish.to;
	a.granted = wish.holder;
	a.is_following = a.has_drifted = 0;
	a.edited_ms = session_now(s).ms;
	return account_save(s, &a, actor, e);
}

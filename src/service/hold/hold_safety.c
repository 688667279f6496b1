/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold_safety.c - whether this program can be removed safely.
 *
 * Counts what somebody else would have to finish: accounts in cooldown, moves under way, events that were not handled.
 * It is counted from what is stored, so every node gives the same answer. Beyond PAGES_MAX pages of open holds, only
 * their number is counted, not their kinds.
 */
#include "service/hold/holds.h"

#include "base/attr.h"
#include "kernel/kernel.h"
#include "kernel/records.h"
#include "kernel/saga.h"

enum { PAGES_MAX = 20 };

/* Where what comes from outside waits, and what is due. Those that this server does not have are passed over. */
static const char *const queues[] = { "cloudtrail", "guard", HOLD_QUEUE };

static enum rc count_holds(struct session *s, struct hold_safety *ret, struct err *e)
{
	struct records     all = { .query = query_of(&hold_type, HOLD_OPEN_ONES, value_int(1), QUERY_LIMIT_MAX),
		                   .pages_max = PAGES_MAX };
	const struct hold *h;
	enum rc            rc = session_count(s, &hold_type, HOLD_OPEN_ONES, value_int(1), &ret->open, e);

	while (!rc && (h = session_next(s, &all, &rc, e))) {
		bool is_timed = !h->locks && h->due_ms;

		ret->moving += str_eq(h->placement, STR("intended")) || str_eq(h->placement, STR("releasing"));
		ret->locked += h->locks != 0;
		ret->by_person += !h->locks && !h->due_ms;
		ret->timed += is_timed;
		if (is_timed && (!ret->next_due_ms || h->due_ms < ret->next_due_ms))
			ret->next_due_ms = h->due_ms;
		if (is_timed && h->due_ms > ret->last_due_ms)
			ret->last_due_ms = h->due_ms;
	}
	return rc;
}

static enum rc count_deliveries(struct session *s, struct hold_safety *ret, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(queues); i++) {
		struct str name = str_from(queues[i]);
		int64_t    lanes, dead;
		enum rc    rc;

		if (!kernel_queue(kernel_of(s), name))
			continue;
		if ((rc = session_count(s, &lane_type, LANE_DUE, value_text(name), &lanes, e)) ||
		    (rc = session_count(s, &dead_type, DEAD_BY_QUEUE, value_text(name), &dead, e)))
			return rc;
		ret->waiting += lanes;
		ret->dead += dead;
	}
	return RC_OK;
}

enum rc hold_safety(struct session *s, void *arg, struct err *e)
{
	struct hold_safety *ret = arg;
	int64_t             sagas[SAGA_OPEN_STATES];
	enum rc             rc;

	*ret = (struct hold_safety){ 0 };
	if ((rc = count_holds(s, ret, e)) || (rc = count_deliveries(s, ret, e)) || (rc = saga_count(s, sagas, e)))
		return rc;
	for (int i = 0; i < SAGA_OPEN_STATES; i++)
		ret->sagas += sagas[i];
	ret->is_safe = !ret->open && !ret->sagas && !ret->waiting && !ret->dead;
	return RC_OK;
}

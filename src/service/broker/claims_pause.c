/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claims_pause.c - the switch that stops lending sandboxes.
 *
 * After a backup was restored, or a damaged log was cut off, sandboxes that are in use look free. So both set the
 * switch, and nothing is lent until an operator has set those aside. It is a fact of the kernel. A track that holds a
 * sandbox still gets its own, and giving back works: only new claims are refused. [broker_claim()]
 *
 * Other nodes notice a change some seconds later.
 */
#include "service/broker/claims_pause.h"

#include "base/json.h"
#include "kernel/event.h"

#define FACT_PAUSED "claims/paused"

static void save(struct session *s, struct fact *fact, bool is_paused, struct str reason)
{
	fact->value = is_paused;
	fact->text = reason;
	fact->since_ms = fact->at_ms = session_now(s).ms;
	session_put(s, &fact_type, fact);
}

enum rc claims_pause_get(struct session *s, void *arg, struct err *e)
{
	struct claims_pause *p = arg;
	struct fact          fact;
	enum rc              rc = session_find_or_new(s, &fact_type, STR(FACT_PAUSED), &fact, e);

	if (rc)
		return rc;
	p->is_paused = fact.value != 0;
	p->reason = fact.text;
	p->since_ms = fact.since_ms;
	p->version = fact.version;
	return RC_OK;
}

enum rc claims_pause_set(struct session *s, void *arg, struct err *e)
{
	struct claims_pause *p = arg;
	struct fact          fact;
	enum rc              rc = session_find_or_new(s, &fact_type, STR(FACT_PAUSED), &fact, e);

	if (rc)
		return rc;
	p->version = fact.version;
	if ((fact.value != 0) != p->is_paused) {
		p->version++; /* as the commit will */
		save(s, &fact, p->is_paused, p->reason);
		rc = session_tell(s, p->is_paused ? "ClaimsPaused" : "ClaimsResumed", STR("pool/sandboxes"), p->by.name,
		                  p->by.request_id, JSON_OF(session_arena(s), member_str("reason", p->reason)), e);
	}
	p->reason = fact.text;
	p->since_ms = fact.since_ms;
	return rc;
}

enum rc claims_pause_mark(struct session *s, void *arg, struct err *e)
{
	const struct str *reason = arg;
	struct fact       fact;
	enum rc           rc = session_find_or_new(s, &fact_type, STR(FACT_PAUSED), &fact, e);

	if (!rc)
		save(s, &fact, true, *reason);
	return rc;
}

bool claims_switch_is_paused(const struct claims_switch *w)
{
	return atomic_load(&w->state) & 1;
}

void claims_switch_note(struct claims_switch *w, const struct claims_pause *p)
{
	uint_fast64_t fresh = p->version << 1 | p->is_paused, known = atomic_load(&w->state);

	while (fresh > known && !atomic_compare_exchange_weak(&w->state, &known, fresh))
		;
}

enum rc claims_switch_refresh(struct claims_switch *w, struct store *store, struct err *e)
{
	struct claims_pause p = { 0 };
	enum rc             rc = store_read(store, claims_pause_get, &p, NULL, e);

	if (!rc)
		claims_switch_note(w, &p);
	return rc;
}

enum rc alarm_claims_paused(struct session *s, void *arg, struct findings *ret, struct err *e)
{
	struct fact fact;
	struct str  why;
	enum rc     rc = session_find_or_new(s, &fact_type, STR(FACT_PAUSED), &fact, e);

	(void)arg;
	if (rc)
		return rc;
	why = fact.text.n ? fact.text : STR("paused by an operator");
	if (fact.value)
		findings_add(ret, STR(""), ALARM_PAGE, fact.since_ms, "no sandbox is lent: %.*s", STR_ARG(why));
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_sandbox.c - a sandbox of the broker in words: who has it and until when, or how its deletion goes.
 *
 * Sandboxes keep seconds; everything here is in milliseconds. In every state but available a job does what happens
 * next, so "next" is its next run; a deletion may also wait for its own time, or for the circuit to the vendor.
 */
#include "domain/sandbox.h"
#include "kernel/kernel.h"
#include "kernel/alarm/node.h"
#include "service/explain/explain_private.h"
#include "service/broker/records.h"

/* Nothing is deleted while calls to the vendor are held back. A process that ended with an open circuit is not believed
 * for ever. */
static void tell_circuit(struct situation *x)
{
	struct fact fact;

	if (explain_find(x, &fact_type, STR("circuit/csp"), &fact) && fact.value == 1 &&
	    fact.at_ms >= x->now_ms - kernel_span_ms(kernel_of(x->s), NODE_SILENT_MS))
		explain_say(
		        x, PROBLEM,
		        "Calls to the vendor are held back since %s: nothing can be deleted until it answers again.",
		        explain_time(x, fact.since_ms));
}

static void describe_allocated(struct situation *x, const struct sandbox *s)
{
	int64_t expires_ms = sandbox_expires_at(s) * 1000;
	bool    is_live = sandbox_is_live(s, session_now(x->s));

	x->since_ms = s->allocated_at * 1000;
	explain_say(x, SUMMARY, "%s belongs to track %.*s, %s %s.", x->who, STR_ARG(s->allocated_to_track),
	            is_live ? "until" : "whose time has been over since", explain_time(x, expires_ms));
	if (s->track_name.n)
		explain_say(x, WHY, "It was claimed for the lab %.*s, for %lld h.", STR_ARG(s->track_name),
		            (long long)s->lab_duration_hours);
	explain_say(x, WHY,
	            "The track gives it back itself; otherwise the job expiry takes it back some time after the end.");
	if (is_live)
		explain_next(x, expires_ms, STR("the track's time is over"), STR("its claim"));
	explain_can(x, CAN_SET_ASIDE, x->id);
	explain_job(x, "expiry", "sandboxes that nobody gave back in time are marked for deletion");
}

static void describe_pending(struct situation *x, const struct sandbox *s)
{
	x->since_ms = s->deletion_requested_at * 1000;
	explain_say(x, SUMMARY, "%s was used by track %.*s and is to be deleted%s.", x->who,
	            STR_ARG(s->allocated_to_track), s->deletion_retry_count ? ", which has not worked yet" : "");
	if (s->deletion_retry_count) {
		explain_say(x, WHY, "%lld attempts to delete it have failed; the last error: %.*s",
		            (long long)s->deletion_retry_count, STR_ARG(s->last_error));
		explain_say(x, PROBLEM, "Its deletion fails: %.*s", STR_ARG(s->last_error));
	}
	if (s->next_deletion_at * 1000 > x->now_ms)
		explain_next(x, s->next_deletion_at * 1000, STR("its deletion may be tried again"), STR("job cleanup"));
	explain_job(x, "cleanup", "what is pending is deleted at the vendor");
	tell_circuit(x);
}

static void describe_failed(struct situation *x, const struct sandbox *s)
{
	x->since_ms = s->updated_at * 1000;
	explain_say(
	        x, SUMMARY,
	        "%s could not be deleted: %lld attempts failed, and it is not tried again until someone asks for it.",
	        x->who, (long long)s->deletion_retry_count);
	explain_say(x, PROBLEM, "The last error of its deletion: %.*s", STR_ARG(s->last_error));
	explain_can(x, CAN_RETRY_DELETION, x->id);
	tell_circuit(x);
}

static void describe_stale(struct situation *x, const struct sandbox *s)
{
	x->since_ms = s->updated_at * 1000;
	if (s->quarantine_reason.n) {
		explain_say(x, SUMMARY, "%s is stale: an operator put it in quarantine: %.*s.", x->who,
		            STR_ARG(s->quarantine_reason));
		explain_can(x, CAN_RELEASE, x->id);
		return;
	}
	explain_say(x, SUMMARY, "%s is stale: the vendor did not list it at the last sync.", x->who);
	if (s->last_synced)
		explain_say(x, WHY, "The vendor listed it last at %s.", explain_time(x, s->last_synced * 1000));
	explain_job(x, "sync", "when the vendor lists it again, it comes back");
}

void explain_sandbox(struct situation *x)
{
	struct sandbox s;

	if (!sandbox_is_id(x->id)) {
		x->rc = err_set(x->e, RC_INVALID, "'%.*s' is not a sandbox id", STR_ARG(x->id));
		return;
	}
	x->is_gone = !explain_find(x, &sandbox_type, x->id, &s);
	if (x->is_gone)
		return;
	x->who = str_format(x->a, "Sandbox %.*s (%.*s)", STR_ARG(x->id), STR_ARG(s.name)).p;
	x->where = str_from(sandbox_state_name(s.status));
	switch (s.status) {
	case SANDBOX_AVAILABLE:
		x->since_ms = s.created_at * 1000;
		explain_say(x, SUMMARY, "%s is free: the next track that asks may get it.", x->who);
		explain_can(x, CAN_SET_ASIDE, x->id);
		break;
	case SANDBOX_ALLOCATED: describe_allocated(x, &s); break;
	case SANDBOX_PENDING_DELETION: describe_pending(x, &s); break;
	case SANDBOX_STALE: describe_stale(x, &s); break;
	case SANDBOX_DELETION_FAILED: describe_failed(x, &s); break;
	case SANDBOX_GONE: break;
	}
}

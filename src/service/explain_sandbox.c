/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain_sandbox.c - a sandbox of the broker in words: who has it and until when, or how its deletion goes.
 *
 * Sandboxes keep seconds; everything here is told in milliseconds. What happens next is a job's doing in every state but available, so the
 * job's next run is what "next" says; a deletion that is held back waits for its own time or for the circuit to the vendor, too.
 */
#include "base/arena.h"
#include "domain/sandbox.h"
#include "kernel/kernel.h"
#include "kernel/node.h"
#include "service/explain_ops.h"
#include "service/records.h"

static int64_t ms_of(int64_t sec)
{
	return sec * 1000;
}

/* Nothing is deleted while calls to the vendor are held back. A process that ended with an open circuit is not believed for ever. */
static enum rc tell_circuit(struct situation *x, struct err *e)
{
	struct fact fact;
	bool        is_there;
	enum rc     rc = explain_find(x, &fact_type, STR("circuit/csp"), &fact, &is_there, e);

	if (!rc && is_there && fact.value == 1 &&
	    fact.at_ms >= x->now_ms - kernel_span_ms(kernel_of(x->s), NODE_SILENT_MS))
		explain_problem(
		        x,
		        str_format(
		                x->a,
		                "Calls to the vendor are held back since %s: nothing can be deleted until it answers "
		                "again.",
		                explain_time(x, fact.since_ms)));
	return rc;
}

static void describe_available(struct situation *x, const struct sandbox *s)
{
	x->since_ms = ms_of(s->created_at);
	x->summary = str_format(x->a, "Sandbox %.*s (%.*s) is free: the next track that asks may get it.",
	                        STR_ARG(x->id), STR_ARG(s->name));
	explain_can(x, CAN_SET_ASIDE, x->id);
}

static enum rc describe_allocated(struct situation *x, const struct sandbox *s, struct err *e)
{
	int64_t expires_ms = ms_of(sandbox_expires_at(s));
	bool    is_live = sandbox_is_live(s, session_now(x->s));

	x->since_ms = ms_of(s->allocated_at);
	x->summary = str_format(x->a, "Sandbox %.*s (%.*s) belongs to track %.*s, %s %s.", STR_ARG(x->id),
	                        STR_ARG(s->name), STR_ARG(s->allocated_to_track),
	                        is_live ? "until" : "whose time has been over since", explain_time(x, expires_ms));
	if (s->track_name.n)
		explain_why(x, str_format(x->a, "It was claimed for the lab %.*s, for %lld h.", STR_ARG(s->track_name),
		                          (long long)s->lab_duration_hours));
	explain_why(
	        x,
	        STR("The track gives it back itself; who does not is found by the job expiry, some time after the end."));
	if (is_live)
		explain_next(x, expires_ms, STR("the track's time is over"), STR("its claim"));
	explain_can(x, CAN_SET_ASIDE, x->id);
	return explain_job(x, "expiry", STR("sandboxes that nobody gave back in time are marked for deletion"), e);
}

static enum rc describe_pending(struct situation *x, const struct sandbox *s, struct err *e)
{
	x->since_ms = ms_of(s->deletion_requested_at);
	x->summary = str_format(x->a, "Sandbox %.*s (%.*s) was used by track %.*s and is to be deleted%s.",
	                        STR_ARG(x->id), STR_ARG(s->name), STR_ARG(s->allocated_to_track),
	                        s->deletion_retry_count ? ", which has not worked yet" : "");
	if (s->deletion_retry_count) {
		explain_why(x, str_format(x->a, "%lld attempts to delete it have failed; the last error: %.*s",
		                          (long long)s->deletion_retry_count, STR_ARG(s->last_error)));
		explain_problem(x, str_format(x->a, "Its deletion fails: %.*s", STR_ARG(s->last_error)));
	}
	if (ms_of(s->next_deletion_at) > x->now_ms)
		explain_next(x, ms_of(s->next_deletion_at), STR("its deletion may be tried again"), STR("job cleanup"));
	return explain_job(x, "cleanup", STR("what is pending is deleted at the vendor"), e);
}

static void describe_failed(struct situation *x, const struct sandbox *s)
{
	x->since_ms = ms_of(s->updated_at);
	x->summary = str_format(
	        x->a,
	        "Sandbox %.*s (%.*s) could not be deleted: %lld attempts failed, and nobody tries again until "
	        "somebody says so.",
	        STR_ARG(x->id), STR_ARG(s->name), (long long)s->deletion_retry_count);
	explain_problem(x, str_format(x->a, "The last error of its deletion: %.*s", STR_ARG(s->last_error)));
	explain_can(x, CAN_RETRY_DELETION, x->id);
}

static enum rc describe_stale(struct situation *x, const struct sandbox *s, struct err *e)
{
	x->since_ms = ms_of(s->updated_at);
	if (s->quarantine_reason.n) {
		x->summary = str_format(x->a, "Sandbox %.*s (%.*s) was set aside by an operator: %.*s.", STR_ARG(x->id),
		                        STR_ARG(s->name), STR_ARG(s->quarantine_reason));
		explain_can(x, CAN_RELEASE, x->id);
		return RC_OK;
	}
	x->summary = str_format(x->a, "Sandbox %.*s (%.*s) is not lent: the vendor did not list it at the last sync.",
	                        STR_ARG(x->id), STR_ARG(s->name));
	if (s->last_synced)
		explain_why(x, str_format(x->a, "The vendor listed it last at %s.",
		                          explain_time(x, ms_of(s->last_synced))));
	return explain_job(x, "sync", STR("when the vendor lists it again, it comes back"), e);
}

static enum rc describe(struct situation *x, const struct sandbox *s, struct err *e)
{
	switch (s->status) {
	case SANDBOX_AVAILABLE: describe_available(x, s); break;
	case SANDBOX_ALLOCATED: return describe_allocated(x, s, e);
	case SANDBOX_PENDING_DELETION: return describe_pending(x, s, e);
	case SANDBOX_STALE: return describe_stale(x, s, e);
	case SANDBOX_DELETION_FAILED: describe_failed(x, s); break;
	case SANDBOX_GONE: break;
	}
	return RC_OK;
}

enum rc explain_sandbox(struct situation *x, struct err *e)
{
	struct sandbox s;
	bool           is_there;
	enum rc        rc;

	if (!sandbox_is_id(x->id))
		return err_set(e, RC_INVALID, "'%.*s' is not a sandbox id", STR_ARG(x->id));
	if ((rc = explain_find(x, &sandbox_type, x->id, &s, &is_there, e)))
		return rc;
	x->is_gone = !is_there;
	if (x->is_gone)
		return RC_OK;
	x->where = str_from(sandbox_state_name(s.status));
	if ((rc = describe(x, &s, e)))
		return rc;
	return s.status == SANDBOX_PENDING_DELETION || s.status == SANDBOX_DELETION_FAILED ? tell_circuit(x, e) : RC_OK;
}

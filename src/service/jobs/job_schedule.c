/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_schedule.c - when jobs are due: their timers, requests and pauses.
 *
 * A scheduled job has a timer "job/NAME". When it fires, the event JobDue goes into the queue of the jobs; a request
 * goes there too, as JobRequested. Both have the subject "job/NAME", so all of one job share a lane: one pass at a time
 * on all nodes, in order. The next timer is armed by the transaction that removes the delivery of the last pass
 * (settle()), or by a resume. It is one-shot, so it catches up once, however long nothing ran.
 *
 * Always true: a job that is not paused has an armed timer, or something in its lane. [jobs_arm(), job_pause(),
 * settle()]
 */
#include "service/jobs/job_schedule.h"

#include <stdio.h>

#include "base/json.h"
#include "kernel/event.h"
#include "kernel/timer.h"

enum {
	FAILED_RETRY_SEC = 10,
	DOUBLINGS_MAX = 10,
	JITTER_PART = 10,     /* a tenth, to both sides */
	REAL_PAUSE_MS = 5000, /* between two passes of a job, by the machine's clock */
	WAITING_MAX = 100,
};

bool job_of_subject(struct str subject, enum job_id *ret)
{
	int id = 0;

	while (id < JOB_COUNT && !str_eq(subject, jobs_subject((enum job_id)id)))
		id++;
	*ret = (enum job_id)id;
	return id < JOB_COUNT;
}

/* --- records --- */

static enum rc find_lane(struct session *s, enum job_id id, struct lane *ret, bool *ret_is_there, struct err *e)
{
	struct str key = str_format(session_arena(s), JOBS_QUEUE "#job/%s", jobs_name(id));

	return session_find(s, &lane_type, key, ret, ret_is_there, e);
}

/* --- timers --- */

static enum rc arm(struct session *s, enum job_id id, int64_t due_ms, struct err *e)
{
	struct timer timer = { .name = jobs_subject(id),
		               .type = STR(EVENT_JOB_DUE),
		               .subject = jobs_subject(id),
		               .detail = str_format(session_arena(s), "{\"job\":\"%s\"}", jobs_name(id)),
		               .due_ms = due_ms };

	return session_arm(s, &timer, e);
}

/* So that nodes and jobs that started together drift apart. */
static int64_t with_jitter(struct session *s, int64_t ms)
{
	int64_t part = ms / JITTER_PART;

	return ms - part + kernel_backoff(kernel_of(s), 2 * part, 2 * part, 0);
}

/* Where time is scaled, a pass every few milliseconds would only be noise. */
static int64_t at_least_real(struct session *s, int64_t ms)
{
	int64_t least_ms = kernel_span_ms(kernel_of(s), ms < REAL_PAUSE_MS ? ms : REAL_PAUSE_MS);

	return ms > least_ms ? ms : least_ms;
}

enum rc job_arm_next(struct session *s, enum job_id id, const struct job_record *record, struct err *e)
{
	int64_t doublings = record->failures < DOUBLINGS_MAX ? record->failures - 1 : DOUBLINGS_MAX;
	int64_t pause_sec = record->interval_sec;

	if (record->is_paused || !record->interval_sec)
		return RC_OK;
	/* Sooner after a failure: the wait doubles each time, up to the interval. */
	if (record->failures && (int64_t)FAILED_RETRY_SEC << doublings < pause_sec)
		pause_sec = (int64_t)FAILED_RETRY_SEC << doublings;
	return arm(s, id, session_now(s).ms + with_jitter(s, at_least_real(s, pause_sec * 1000)), e);
}

/* When a job without a timer is due: an interval after its last pass; at once when that is past or it never ran. */
static int64_t overdue_ms(struct session *s, const struct job_record *record)
{
	int64_t due_ms = record->last_finished_at ? (record->last_finished_at + record->interval_sec) * 1000 : 0;

	return due_ms > session_now(s).ms ? due_ms : session_now(s).ms;
}

static enum rc arm_if_missing(struct session *s, enum job_id id, const struct job_record *record, struct err *e)
{
	int64_t      interval_ms = at_least_real(s, record->interval_sec * 1000);
	struct timer timer;
	struct lane  lane;
	bool         is_armed, is_in_lane;
	enum rc      rc = session_find(s, &timer_type, jobs_subject(id), &timer, &is_armed, e);

	if (rc)
		return rc;
	if (is_armed && timer.due_ms > session_now(s).ms + interval_ms + interval_ms / JITTER_PART)
		return arm(s, id, session_now(s).ms + with_jitter(s, interval_ms), e); /* the interval was longer */
	if (is_armed)
		return RC_OK;
	rc = find_lane(s, id, &lane, &is_in_lane, e);
	return rc || is_in_lane ? rc : arm(s, id, overdue_ms(s, record), e);
}

/* It is scheduled no longer: its record must not look like that of a job that fails or is silent. */
static enum rc retire(struct session *s, enum job_id id, struct err *e)
{
	struct job_record record;
	bool              is_there;
	enum rc           rc = session_find(s, &job_type, str_from(jobs_name(id)), &record, &is_there, e);

	if (rc)
		return rc;
	if (is_there && record.interval_sec) {
		record.interval_sec = record.failures = 0;
		session_put(s, &job_type, &record);
	}
	return session_disarm(s, jobs_subject(id), e);
}

static enum rc start_one(struct session *s, const struct jobs *j, enum job_id id, struct err *e)
{
	struct job_record record;
	int64_t           interval_sec = jobs_interval_sec(j, id);
	enum rc           rc;

	if (!interval_sec)
		return retire(s, id, e);
	if ((rc = session_find_or_new(s, &job_type, str_from(jobs_name(id)), &record, e)))
		return rc;
	if (record.interval_sec != interval_sec) {
		record.interval_sec = interval_sec;
		session_put(s, &job_type, &record);
	}
	return record.is_paused ? RC_OK : arm_if_missing(s, id, &record, e);
}

enum rc jobs_arm(struct session *s, void *arg, struct err *e)
{
	enum rc rc = RC_OK;

	for (int id = 0; !rc && id < JOB_SCHEDULED; id++)
		rc = start_one(s, arg, (enum job_id)id, e);
	return rc;
}

/* --- requests --- */

static struct str terms_to_detail(struct session *s, const struct job_request *r)
{
	bool is_own = r->has_own_terms;

	return JSON_OF(session_arena(s), member_word("job", jobs_name(r->id)),
	               member_if(is_own, member_bool("ownTerms", true)),
	               member_if(is_own, member_bool("force", r->is_forced)),
	               member_if(is_own, member_int("staleHours", r->stale_hours)),
	               member_if(is_own, member_word("status", sandbox_state_name(r->status))));
}

enum rc job_terms(const struct event *event, struct job_request *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  status;
	int64_t                     hours;

	if (json_parse(event->detail, &detail, e) || !json_is_object(detail))
		return err_set(e, RC_CORRUPT, "event %.*s: its detail is not a JSON object", STR_ARG(event->id));
	ret->has_own_terms = json_is_true(json_object_get(detail, "ownTerms"));
	if (!ret->has_own_terms)
		return RC_OK;
	ret->is_forced = json_is_true(json_object_get(detail, "force"));
	if (!json_get_number(detail, "staleHours", 0, &hours) || hours < 0 || hours > SANDBOX_HOURS_MAX ||
	    !json_get_text(detail, "status", &status) || !sandbox_state_parse(status, &ret->status))
		return err_set(e, RC_CORRUPT, "event %.*s: staleHours or status cannot be right", STR_ARG(event->id));
	ret->stale_hours = hours;
	return RC_OK;
}

/* Does the pass at the head of the lane serve a request without terms of its own? */
static enum rc is_joinable(struct session *s, const struct job_request *r, const struct lane *lane, bool *ret,
                           struct err *e)
{
	struct event       head;
	struct job_record  record;
	struct job_request terms = { 0 };
	enum rc            rc;

	*ret = false;
	if (r->has_own_terms)
		return RC_OK;
	if ((rc = session_find(s, &event_type, lane->event_id, &head, ret, e)) || !*ret)
		return rc;
	if (str_eq(head.type, STR(EVENT_JOB_REQUESTED))) {
		*ret = !job_terms(&head, &terms, NULL) && !terms.has_own_terms;
		return RC_OK;
	}
	rc = session_find_or_new(s, &job_type, str_from(jobs_name(r->id)), &record, e);
	*ret = !rc && !record.is_paused; /* a paused job skips it */
	return rc;
}

static void note_event(struct job_request *r, struct str id)
{
	(void)snprintf(r->event_id, sizeof(r->event_id), "%.*s", STR_ARG(id)); /* ids are shorter */
}

static enum rc emit_request(struct session *s, struct job_request *r, struct err *e)
{
	struct event event = { .type = STR(EVENT_JOB_REQUESTED),
		               .subject = jobs_subject(r->id),
		               .actor = r->actor,
		               .request_id = r->request_id,
		               .detail = terms_to_detail(s, r) };
	enum rc      rc = session_emit(s, &event, e);

	note_event(r, event.id);
	return rc;
}

enum rc job_request(struct session *s, void *arg, struct err *e)
{
	struct job_request *r = arg;
	struct lane         lane;
	bool                is_there;
	enum rc             rc = find_lane(s, r->id, &lane, &is_there, e);

	r->is_joined = false;
	if (rc)
		return rc;
	if (is_there && (rc = is_joinable(s, r, &lane, &r->is_joined, e)))
		return rc;
	if (r->is_joined) {
		note_event(r, lane.event_id);
		return RC_OK;
	}
	if (is_there && lane.tail - lane.head >= WAITING_MAX)
		return err_set(e, RC_UNAVAILABLE, "%d requests for %s are already waiting; try again later",
		               WAITING_MAX, jobs_name(r->id));
	return emit_request(s, r, e);
}

/* --- look, pause --- */

static enum rc look(struct session *s, const struct jobs *j, enum job_id id, struct job_status *ret, struct err *e)
{
	struct timer timer;
	struct lane  lane;
	int64_t      now_ms = session_now(s).ms;
	bool         is_armed, is_in_lane;
	enum rc      rc = session_find_or_new(s, &job_type, str_from(jobs_name(id)), &ret->record, e);

	if (rc || (rc = find_lane(s, id, &lane, &is_in_lane, e)) ||
	    (rc = session_find(s, &timer_type, jobs_subject(id), &timer, &is_armed, e)))
		return rc;
	ret->interval_sec = jobs_interval_sec(j, id);
	ret->is_running = is_in_lane && (lane.owner.n || lane.due_ms <= now_ms);
	ret->next_run_at = 0;
	if (!ret->is_running && !ret->record.is_paused && (is_in_lane || is_armed))
		ret->next_run_at = (is_in_lane ? lane.due_ms : timer.due_ms) / 1000;
	return RC_OK;
}

enum rc job_list(struct session *s, void *arg, struct err *e)
{
	struct job_list *l = arg;
	enum rc          rc = RC_OK;

	l->count = 0;
	for (int id = 0; !rc && id < JOB_SCHEDULED; id++)
		if (jobs_has(l->jobs, (enum job_id)id))
			rc = look(s, l->jobs, (enum job_id)id, &l->items[l->count++], e);
	return rc;
}

static enum rc change_pause(struct session *s, const struct job_pause *p, struct job_record *record, struct err *e)
{
	struct str subject = jobs_subject(p->id);
	enum rc    rc;

	record->is_paused = p->is_paused;
	record->interval_sec = jobs_interval_sec(p->jobs, p->id);
	session_put(s, &job_type, record);
	if (p->is_paused)
		rc = session_disarm(s, subject, e);
	else
		rc = record->interval_sec ? arm(s, p->id, overdue_ms(s, record), e) : RC_OK; /* not scheduled here */
	if (rc)
		return rc;
	return session_tell(s, p->is_paused ? EVENT_JOB_PAUSED : EVENT_JOB_RESUMED, subject, p->actor, p->request_id,
	                    str_format(session_arena(s), "{\"job\":\"%s\"}", jobs_name(p->id)), e);
}

enum rc job_pause(struct session *s, void *arg, struct err *e)
{
	struct job_pause *p = arg;
	struct job_record record;
	enum rc           rc = session_find_or_new(s, &job_type, str_from(jobs_name(p->id)), &record, e);

	if (!rc && !!record.is_paused != p->is_paused)
		rc = change_pause(s, p, &record, e);
	return rc ? rc : look(s, p->jobs, p->id, &p->status, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_schedule.c - when jobs are due: their timers, requests and pauses.
 *
 * A scheduled job has a timer "job/NAME". When it fires, the event JobDue goes into the queue of the jobs; a request
 * goes there too, as JobRequested. Both have the subject "job/NAME", so all of one job stand in one lane: one pass at
 * a time on all nodes, in turn. The next timer is armed by the transaction that takes the delivery of the last pass
 * away (jobs_settle()), or by a resume; being one-shot it catches up once, however long nobody was there.
 *
 * Always true: a job that is not paused has an armed timer, or something in its lane.   [jobs_arm(), job_pause(),
 * jobs_settle()]
 */
#include "service/job_schedule.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/timer.h"

enum {
	FAILED_RETRY_SEC = 10,
	DOUBLINGS_MAX = 10,
	JITTER_PART = 10,     /* a tenth, to both sides */
	REAL_PAUSE_MS = 5000, /* between two passes of a job, by the machine's clock */
	WAITING_MAX = 100,
	TERMS_MAX = 512,
};

/* --- names --- */

static struct str subject_of(struct session *s, enum job_id id)
{
	return str_format(session_arena(s), "job/%s", jobs_name(id));
}

bool job_of_subject(struct str subject, enum job_id *ret)
{
	if (!str_starts_with(subject, STR("job/")))
		return false;
	subject = str_of(subject.p + 4, subject.n - 4);
	for (int id = 0; id < JOB_COUNT; id++)
		if (str_eq(subject, str_from(jobs_name((enum job_id)id)))) {
			*ret = (enum job_id)id;
			return true;
		}
	return false;
}

/* --- records --- */

/* RC_OK also when there is none. */
static enum rc find(struct session *s, const struct record_type *type, struct str key, void *ret, bool *ret_is_there,
                    struct err *e)
{
	enum rc rc = session_get(s, type, key, ret, NULL);

	*ret_is_there = rc == RC_OK;
	return rc && rc != RC_NOT_FOUND ? err_set(e, rc, "%s %.*s cannot be read", type->name, STR_ARG(key)) : RC_OK;
}

enum rc job_load(struct session *s, struct str name, struct job_record *ret, struct err *e)
{
	bool    is_there;
	enum rc rc = find(s, &job_type, name, ret, &is_there, e);

	if (!rc && !is_there)
		*ret = (struct job_record){ .name = name };
	return rc;
}

static enum rc find_lane(struct session *s, enum job_id id, struct lane *ret, bool *ret_is_there, struct err *e)
{
	return find(s, &lane_type, str_format(session_arena(s), JOBS_QUEUE "#job/%s", jobs_name(id)), ret, ret_is_there,
	            e);
}

/* --- timers --- */

static enum rc arm(struct session *s, enum job_id id, int64_t due_ms, struct err *e)
{
	struct str   subject = subject_of(s, id);
	struct timer timer = { .name = subject,
		               .type = STR(EVENT_JOB_DUE),
		               .subject = subject,
		               .detail = str_format(session_arena(s), "{\"job\":\"%s\"}", jobs_name(id)),
		               .due_ms = due_ms };

	return session_arm(s, &timer, e);
}

/* After a failure sooner, twice as late each time, up to the interval. */
static int64_t pause_sec(int64_t interval_sec, int64_t failures)
{
	int64_t sooner;

	if (!failures)
		return interval_sec;
	sooner = (int64_t)FAILED_RETRY_SEC << (failures < DOUBLINGS_MAX ? failures - 1 : DOUBLINGS_MAX);
	return sooner < interval_sec ? sooner : interval_sec;
}

/* So many nodes and jobs that began together do not stay together. */
static int64_t with_jitter(struct session *s, int64_t ms)
{
	int64_t part = ms / JITTER_PART;

	return ms - part + kernel_backoff(kernel_of(s), 2 * part, 2 * part, 0);
}

/* Where time is scaled, a pass every few milliseconds would be nothing but noise. */
static int64_t at_least_real(struct session *s, int64_t ms)
{
	int64_t least_ms = kernel_span_ms(kernel_of(s), ms < REAL_PAUSE_MS ? ms : REAL_PAUSE_MS);

	return ms > least_ms ? ms : least_ms;
}

enum rc job_arm_next(struct session *s, enum job_id id, const struct job_record *record, struct err *e)
{
	int64_t pause_ms = pause_sec(record->interval_sec, record->failures) * 1000;

	if (record->is_paused || !record->interval_sec)
		return RC_OK;
	return arm(s, id, session_now(s).ms + with_jitter(s, at_least_real(s, pause_ms)), e);
}

/* When a job without a timer is due: an interval after its last pass; at once when that is over, or when it has never
 * run. */
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
	enum rc      rc = find(s, &timer_type, subject_of(s, id), &timer, &is_armed, e);

	if (rc)
		return rc;
	if (is_armed && timer.due_ms > session_now(s).ms + interval_ms + interval_ms / JITTER_PART)
		return arm(s, id, session_now(s).ms + with_jitter(s, interval_ms), e); /* the interval was longer */
	if (is_armed)
		return RC_OK;
	rc = find_lane(s, id, &lane, &is_in_lane, e);
	return rc || is_in_lane ? rc : arm(s, id, overdue_ms(s, record), e);
}

static enum rc start_one(struct session *s, const struct jobs *j, enum job_id id, struct err *e)
{
	struct job_record record;
	int64_t           interval_sec = jobs_interval_sec(j, id);
	enum rc           rc;

	if (!interval_sec)
		return session_disarm(s, subject_of(s, id), e);
	if ((rc = job_load(s, str_from(jobs_name(id)), &record, e)))
		return rc;
	if (record.interval_sec != interval_sec) {
		record.interval_sec = interval_sec;
		session_put(s, &job_type, &record);
	}
	return record.is_paused ? RC_OK : arm_if_missing(s, id, &record, e);
}

enum rc jobs_arm(struct session *s, void *arg, struct err *e)
{
	for (int id = 0; id < JOB_SCHEDULED; id++) {
		enum rc rc = start_one(s, arg, (enum job_id)id, e);

		if (rc)
			return rc;
	}
	return RC_OK;
}

/* --- requests --- */

static struct str terms_to_detail(struct session *s, const struct job_request *r)
{
	char            room[TERMS_MAX + 1];
	struct buf      b = { .p = room, .room = sizeof(room), .max = TERMS_MAX };
	struct json_out o;

	json_out_init(&o, &b);
	json_open_object(&o);
	json_put_str(&o, "job", str_from(jobs_name(r->id)));
	if (r->has_own_terms) {
		json_put_bool(&o, "ownTerms", true);
		json_put_bool(&o, "force", r->is_forced);
		json_put_int(&o, "staleHours", r->stale_hours);
		json_put_str(&o, "status", str_from(sandbox_state_name(r->status)));
	}
	json_close_object(&o);
	return str_dup(session_arena(s), buf_str(&b));
}

enum rc job_terms(const struct event *event, struct job_request *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *detail = NULL;
	struct str                  status;
	int64_t                     hours;

	if (json_parse(event->detail, &detail, e) || !json_is_object(detail))
		return err_set(e, RC_CORRUPT, "event %.*s: its detail is no JSON object", STR_ARG(event->id));
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

/* Would the pass at the head of the lane serve somebody without terms of his own? */
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
	if ((rc = find(s, &event_type, lane->event_id, &head, ret, e)) || !*ret)
		return rc;
	if (str_eq(head.type, STR(EVENT_JOB_REQUESTED))) {
		*ret = !job_terms(&head, &terms, NULL) && !terms.has_own_terms;
		return RC_OK;
	}
	rc = job_load(s, str_from(jobs_name(r->id)), &record, e);
	*ret = !rc && !record.is_paused; /* a paused one passes it over */
	return rc;
}

static void note_event(struct job_request *r, struct str id)
{
	(void)snprintf(r->event_id, sizeof(r->event_id), "%.*s", STR_ARG(id)); /* ids are shorter */
}

static enum rc emit_request(struct session *s, struct job_request *r, struct err *e)
{
	struct event event = { .type = STR(EVENT_JOB_REQUESTED),
		               .subject = subject_of(s, r->id),
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
		return err_set(e, RC_UNAVAILABLE, "%d requests for %s wait already; try again later", WAITING_MAX,
		               jobs_name(r->id));
	return emit_request(s, r, e);
}

/* --- look, pause --- */

static enum rc look(struct session *s, const struct jobs *j, enum job_id id, struct job_status *ret, struct err *e)
{
	struct timer timer;
	struct lane  lane;
	int64_t      now_ms = session_now(s).ms;
	bool         is_armed, is_in_lane;
	enum rc      rc = job_load(s, str_from(jobs_name(id)), &ret->record, e);

	if (rc || (rc = find_lane(s, id, &lane, &is_in_lane, e)) ||
	    (rc = find(s, &timer_type, subject_of(s, id), &timer, &is_armed, e)))
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

	l->count = 0;
	for (int id = 0; id < JOB_SCHEDULED; id++) {
		enum rc rc;

		if (!jobs_has(l->jobs, (enum job_id)id))
			continue;
		if ((rc = look(s, l->jobs, (enum job_id)id, &l->items[l->count++], e)))
			return rc;
	}
	return RC_OK;
}

static enum rc change_pause(struct session *s, const struct job_pause *p, struct job_record *record, struct err *e)
{
	struct event event = { .type = p->is_paused ? STR(EVENT_JOB_PAUSED) : STR(EVENT_JOB_RESUMED),
		               .subject = subject_of(s, p->id),
		               .actor = p->actor,
		               .request_id = p->request_id,
		               .detail = str_format(session_arena(s), "{\"job\":\"%s\"}", jobs_name(p->id)) };
	enum rc      rc;

	record->is_paused = p->is_paused;
	record->interval_sec = jobs_interval_sec(p->jobs, p->id);
	session_put(s, &job_type, record);
	rc = p->is_paused ? session_disarm(s, event.subject, e) : arm(s, p->id, overdue_ms(s, record), e);
	return rc ? rc : session_emit(s, &event, e);
}

enum rc job_pause(struct session *s, void *arg, struct err *e)
{
	struct job_pause *p = arg;
	struct job_record record;
	enum rc           rc = job_load(s, str_from(jobs_name(p->id)), &record, e);

	if (!rc && !!record.is_paused != p->is_paused)
		rc = change_pause(s, p, &record, e);
	return rc ? rc : look(s, p->jobs, p->id, &p->status, e);
}

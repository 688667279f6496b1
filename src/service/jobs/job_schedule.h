/* job_schedule.h - what is stored about a job; shared by jobs.c and job_schedule.c, nobody else includes this. */
#pragma once

#include "service/jobs/jobs.h"
#include "store/session.h"

/* Seconds between two passes; 0: only when asked. */
int64_t jobs_interval_sec(const struct jobs *j, enum job_id id);

/* "job/" and its name: the subject of its events and the name of its timer. */
struct str jobs_subject(enum job_id id);

/* Which job an event's subject names. */
bool job_of_subject(struct str subject, enum job_id *ret);

/* Set the job's timer to when its next pass is due, from how the last one went. Nothing when it is paused or not
 * scheduled. */
MUST_CHECK enum rc job_arm_next(struct session *s, enum job_id id, const struct job_record *record, struct err *e);

/* The terms of a request's event. RC_CORRUPT: it makes no sense. */
MUST_CHECK enum rc job_terms(const struct event *event, struct job_request *ret, struct err *e);

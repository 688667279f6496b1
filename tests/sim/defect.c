/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defect.c - the deliberate mistakes of kernel/defect.h that need memory: they put something off to a later
 * transaction.
 *
 * What is put off is kept in this process only: a crash loses it, and it stays when its transaction fails.
 */
#include "kernel/defect.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/mem.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"
#include "kernel/timer.h"

enum defect defect_on;

struct put_off {
	struct put_off *next;
	struct kernel  *kernel;
	struct arena    arena;
	bool            is_timer;
	struct event    event;
	struct timer    timer;
};

static struct put_off *first;

static struct put_off *put_off(struct session *s)
{
	struct put_off  *p = mem_new(struct put_off);
	struct put_off **last = &first;

	p->kernel = kernel_of(s);
	while (*last)
		last = &(*last)->next;
	*last = p;
	return p;
}

enum rc defect_emit_later(struct session *s, const struct event *event)
{
	struct put_off *p = put_off(s);

	record_copy(&event_type, &p->event, event, &p->arena);
	return RC_OK;
}

enum rc defect_arm_later(struct session *s, const struct timer *timer)
{
	struct put_off *p = put_off(s);

	p->is_timer = true;
	record_copy(&timer_type, &p->timer, timer, &p->arena);
	return RC_OK;
}

static enum rc do_late(struct session *s, void *arg, struct err *e)
{
	struct put_off *p = arg;
	enum defect     was = defect_on;
	enum rc         rc;

	defect_on = DEFECT_NONE; /* now in earnest */
	rc = p->is_timer ? session_arm(s, &p->timer, e) : session_emit(s, &p->event, e);
	defect_on = was;
	return rc;
}

static void end_all(struct kernel *k, bool does_it)
{
	struct put_off **at = &first;

	while (*at) {
		struct put_off *p = *at;

		if (p->kernel != k) {
			at = &p->next;
			continue;
		}
		if (does_it) /* or loses it: that is the point */
			rc_ignore(store_run(kernel_options(k)->store, do_late, p, NULL, NULL));
		*at = p->next;
		arena_fini(&p->arena);
		free(p);
	}
}

void defect_catch_up(struct kernel *k)
{
	end_all(k, true);
}

void defect_forget(struct kernel *k)
{
	end_all(k, false);
}

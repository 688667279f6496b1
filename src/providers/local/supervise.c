/* SPDX-License-Identifier: Apache-2.0 */
/*
 * supervise.c - the thread that brings all children to where they should be: started, ended, started anew when they
 * died or do not answer.
 *
 * It knows what should be (is_wanted, a generation) and what is (the child's state), and closes the gap; so it does the
 * same after a scaling, a death, or a start with children of the process before. It never waits for one child while
 * another needs it.
 *
 * Always true:
 *   1. Only this thread starts and ends children, with the mutex held.
 *   2. A task whose socket nginx knows serves all who came before it goes: the socket gets another name, a question of
 *      ours is put behind the last
 *      that waits there, and when it is answered the task is told to end.                                [begin_stop()]
 *   3. Of a site whose tasks are replaced at most one is away.                                          [may_replace()]
 */
#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/mem.h"
#include "providers/local/local_private.h"

enum {
	ASK_EVERY_MS = 5000, /* one that is up */
	ASK_SOON_MS = 20,    /* one that starts */
	ANSWER_MS = 5000,
	UNHEALTHY_AFTER = 2, /* answers that did not come */
	KILLED_AFTER = 12,   /* by then nginx has given up every request that it may be busy with */
	DRAIN_MS = 10000,
	STOP_MS = 12000, /* php-fpm gives requests 10 s */
	CLOSE_MS = 3000, /* the same when all end */
	LOCK_LOOK_MS = 3,
	PAUSE_MAX_MS = 30000, /* between starts that come to nothing */
	LONG_LIFE_MS = 10000, /* after which a death is the first again */
	IDLE_MS = 1000,
	WANT_MS = 60000,
	LOG_EVERY_MS = 10000,
	LOG_BYTES_MAX = 4 << 20, /* then it becomes the old log, in place of the one before */
};

static void note(const struct child *c, const char *what)
{
	log_write(LOG_WARNING, "instances.local",
	          (struct log_field[]){ LOG_STR("lock", c->plan.lock), LOG_NUM("pid", c->pid) }, 2, "%s", what);
}

/* --- one child --- */

static struct str drain_name(const struct child *c, struct arena *a)
{
	return str_format(a, "%.*s-", STR_ARG(c->plan.socket));
}

static void tell_to_end(struct child *c, int64_t now, bool is_closing)
{
	child_hang_up(c);
	child_signal(c, c->plan.stop_signal);
	c->state = CHILD_STOPPING;
	c->until_ms = now + (is_closing ? CLOSE_MS : STOP_MS);
}

static void begin_stop(struct child *c, int64_t now, bool is_closing)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       name = drain_name(c, &a);

	child_hang_up(c);
	if (c->plan.drains && c->state == CHILD_UP && !is_closing && rename(c->plan.socket.p, name.p) == 0 &&
	    child_ask(c, name)) {
		c->state = CHILD_DRAINING;
		c->until_ms = now + DRAIN_MS;
	} else {
		tell_to_end(c, now, is_closing);
	}
}

static bool has_ended(struct child *c)
{
	struct pollfd look = { .fd = c->pidfd, .events = POLLIN };

	return c->pidfd < 0 || poll(&look, 1, 0) > 0;
}

/* Its first process is gone: so shall be the others. */
static void bury(struct child *c, int64_t now)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	bool                             was_wanted = c->state == CHILD_STARTING || c->state == CHILD_UP;
	int64_t                          age = clock_now(&clock_real).ms - c->started_ms;

	child_kill(c);
	if (c->pidfd >= 0)
		close(c->pidfd);
	c->pidfd = -1;
	if (child_is_locked(c)) {
		c->until_ms = c->next_ms = now + LOCK_LOOK_MS;
		return;
	}
	if (was_wanted)
		note(c, "a child died and is started anew");
	if (c->plan.drains)
		(void)unlink(drain_name(c, &a).p); /* it is there only when it drained */
	child_forget(c);
	c->failures = was_wanted && age < LONG_LIFE_MS ? c->failures + 1 : 0;
	c->next_ms = now + (c->failures > 1 ? (c->failures < 8 ? 100LL << c->failures : PAUSE_MAX_MS) : 0);
}

static void start(struct child *c, int64_t generation, int64_t now)
{
	struct err e = { 0 };
	enum rc    rc = child_start(c, generation, &e);

	c->until_ms = now + CHILD_GRACE_MS;
	c->next_ms = now + ASK_SOON_MS;
	if (rc == RC_CONFLICT) {
		child_adopt(c); /* of the process before; or its last breath */
	} else if (rc) {
		log_write(LOG_ERROR, "instances.local", NULL, 0, "%s", e.msg);
		c->next_ms = now + IDLE_MS;
	}
}

static void missed(struct child *c, int64_t now)
{
	child_hang_up(c);
	c->next_ms = now + (c->state == CHILD_UP ? IDLE_MS : ASK_SOON_MS);
	if (c->state != CHILD_UP)
		return;
	if (++c->failures >= UNHEALTHY_AFTER)
		c->is_healthy = false;
	if (c->failures >= KILLED_AFTER ||
	    child_is_stopped(c)) { /* else it is busy, and those it serves would lose their answers */
		note(c, "a child does not answer and is killed");
		child_kill(c);
	}
}

static void answered(struct child *c, int64_t now)
{
	child_hang_up(c);
	c->state = CHILD_UP;
	c->is_healthy = true;
	c->failures = 0;
	c->next_ms = now + ASK_EVERY_MS;
}

/* The question: put it, hear the answer, or give it up. */
static void converse(struct child *c, int64_t now)
{
	int heard;

	if (!c->asking) {
		if (now < c->next_ms)
			return;
		if (!child_ask(c, c->plan.socket)) {
			missed(c, now);
			return;
		}
		c->until_ms = now + ANSWER_MS;
	}
	heard = child_hear(c);
	if (heard > 0)
		answered(c, now);
	else if (heard < 0 || now >= c->until_ms)
		missed(c, now);
}

static void turn_log(struct child *c, int64_t now)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct stat                      about;

	if (!c->plan.log_signal || now < c->log_ms)
		return;
	c->log_ms = now + LOG_EVERY_MS;
	if (stat(c->plan.log.p, &about) == 0 && about.st_size > LOG_BYTES_MAX &&
	    rename(c->plan.log.p, str_format(&a, "%.*s.1", STR_ARG(c->plan.log)).p) == 0)
		child_signal(c, c->plan.log_signal);
}

static void step_running(struct child *c, int64_t generation, bool may_replace, int64_t now, bool is_closing)
{
	converse(c, now);
	turn_log(c, now);
	if (c->state == CHILD_STARTING && now > c->grace_ms) {
		note(c, "a child did not answer in time and is killed");
		child_kill(c);
	}
	if (!c->is_wanted || (c->generation != generation && may_replace && !c->asking && c->state == CHILD_UP))
		begin_stop(c, now, is_closing);
}

static void step(struct child *c, int64_t generation, bool may_replace, int64_t now, bool is_closing)
{
	if (c->state != CHILD_NONE && has_ended(c))
		bury(c, now);
	switch (c->state) {
	case CHILD_NONE:
		if (c->is_wanted && now >= c->next_ms)
			start(c, generation, now);
		break;
	case CHILD_STARTING:
	case CHILD_UP: step_running(c, generation, may_replace, now, is_closing); break;
	case CHILD_DRAINING:
		if (child_hear(c) || now >= c->until_ms || is_closing)
			tell_to_end(c, now, is_closing);
		break;
	case CHILD_STOPPING:
		if (now >= c->until_ms) {
			child_kill(c);
			c->until_ms = now + LOCK_LOOK_MS;
		}
		break;
	}
}

static int64_t due(const struct child *c)
{
	switch (c->state) {
	case CHILD_NONE: return c->is_wanted ? c->next_ms : INT64_MAX;
	case CHILD_STARTING:
	case CHILD_UP: return c->asking ? c->until_ms : c->next_ms;
	default: return c->until_ms;
	}
}

/* --- all of them --- */

static bool may_replace(const struct site *s, unsigned slot)
{
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
		if (i != slot && s->tasks[i].is_wanted && (s->tasks[i].state != CHILD_UP || !s->tasks[i].is_healthy))
			return false;
	return true;
}

static bool step_site(struct local *l, struct site *s, int64_t now)
{
	bool is_quiet = true;

	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++) {
		struct child *c = &s->tasks[i];

		c->is_wanted = !l->is_closing && s->instance[INSTANCE_WORKERS][0] && (int64_t)i < s->desired;
		step(c, s->generation, may_replace(s, i), now, l->is_closing);
		is_quiet = is_quiet && c->state == CHILD_NONE;
	}
	return is_quiet;
}

/* The database ends last. True: everything has. */
static bool step_all(struct local *l, int64_t now)
{
	bool is_quiet = true;

	for (struct site *s = l->sites; s; s = s->next)
		is_quiet = step_site(l, s, now) && is_quiet;
	if (l->is_closing) {
		l->router_child.is_wanted = l->identity.is_wanted = false;
		l->database.is_wanted = l->database.is_wanted && !is_quiet;
	}
	step(&l->router_child, 0, false, now, l->is_closing);
	step(&l->identity, 0, false, now, l->is_closing);
	step(&l->database, 0, false, now, false);
	return is_quiet && l->router_child.state == CHILD_NONE && l->database.state == CHILD_NONE &&
	       l->identity.state == CHILD_NONE;
}

/* What the thread waits for, in memory that grows. */
struct watch {
	struct pollfd *fds;
	size_t         count, room;
	int64_t        due_ms;
};

static void watch_fd(struct watch *w, int fd)
{
	if (fd <= 0)
		return;
	if (w->count == w->room) {
		w->room = w->room ? 2 * w->room : 64;
		w->fds = mem_resize(w->fds, w->room * sizeof(*w->fds));
	}
	w->fds[w->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void watch_child(struct watch *w, const struct child *c)
{
	int64_t at = due(c);

	if (c->state != CHILD_NONE)
		watch_fd(w, c->pidfd);
	watch_fd(w, c->asking);
	if (at < w->due_ms)
		w->due_ms = at;
}

static void watch_all(struct local *l, struct watch *w, int64_t now)
{
	w->count = 0;
	w->due_ms = now + IDLE_MS;
	watch_fd(w, l->kick);
	for (struct site *s = l->sites; s; s = s->next)
		for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
			watch_child(w, &s->tasks[i]);
	watch_child(w, &l->router_child);
	watch_child(w, &l->identity);
	watch_child(w, &l->database);
}

static void *supervise(void *arg)
{
	struct local *l = arg;
	struct watch  w = { 0 };
	bool          is_over = false;

	while (!is_over) {
		uint64_t kicks;
		int64_t  now = mono_now().ms;

		pthread_mutex_lock(&l->mutex);
		is_over = step_all(l, now) && l->is_closing;
		watch_all(l, &w, now);
		pthread_cond_broadcast(&l->changed);
		pthread_mutex_unlock(&l->mutex);
		now = mono_now().ms;
		if (!is_over)
			poll(w.fds, w.count, w.due_ms > now ? (int)(w.due_ms - now) : 0);
		(void)!read(l->kick, &kicks, sizeof(kicks));
	}
	free(w.fds);
	return NULL;
}

/* --- for the others --- */

enum rc supervise_start(struct local *l, struct err *e)
{
	l->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->kick < 0 || pthread_create(&l->thread, NULL, supervise, l) != 0)
		return err_set(e, RC_UNAVAILABLE, "no thread to look after WordPress: %s", strerror(errno));
	l->has_thread = true;
	return RC_OK;
}

void supervise_kick(struct local *l)
{
	(void)!write(l->kick, &(uint64_t){ 1 }, sizeof(uint64_t));
}

void supervise_stop(struct local *l)
{
	if (!l->has_thread)
		return;
	pthread_mutex_lock(&l->mutex);
	l->is_closing = true;
	pthread_mutex_unlock(&l->mutex);
	supervise_kick(l);
	pthread_join(l->thread, NULL);
	close(l->kick);
}

bool supervise_wait(struct local *l, int64_t until_ms)
{
	if (mono_now().ms >= until_ms)
		return false;
	(void)cond_wait_until(&l->changed, &l->mutex, until_ms); /* the caller looks again in any case */
	return true;
}

enum rc supervise_want(struct local *l, struct child *c, struct err *e)
{
	int64_t until = mono_now().ms + WANT_MS;
	enum rc rc = RC_OK;

	LOCKED(&l->mutex);
	c->is_wanted = true;
	supervise_kick(l);
	while (!rc && !(c->state == CHILD_UP && c->is_healthy))
		if (l->is_closing || !supervise_wait(l, until))
			rc = err_set(e, RC_UNAVAILABLE, "%s does not come up; see %s", c->plan.args[0], c->plan.log.p);
	return rc;
}

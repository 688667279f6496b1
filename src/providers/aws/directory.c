/* SPDX-License-Identifier: Apache-2.0 */
/*
 * directory.c - people and their roles from memory: the copy that this node has of what one of them has read.
 *
 * The stored people are many records, and one that says when they were read; it is written last. A node whose copy is
 * from another time loads all of them. The copy in memory is replaced as a whole, under a lock that is held for a
 * look-up, never during a call.
 *
 * Always true:
 *   1. find and list never wait for AWS or the store.
 *   2. Emails are compared without case.
 *   3. Somebody who is disabled, or no longer in any of the groups, is not found; but the id stays known, so that
 *      access can be revoked.
 *   4. A directory that cannot be read leaves the last copy in force. Before the first one nobody is unknown: who is
 *      looked for might be in it.
 *
 * Not here: how it is read (directory_read.c).
 */
#include "providers/aws/directory.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/lease.h"
#include "domain/ports/identity.h"
#include "providers/aws/directory_private.h"
#include "store/session.h"
#include "store/walk.h"

enum { PAGE = 500, UNKNOWN_MS = 60000 };

/* --- the copy --- */

static int by_email(const void *a, const void *b)
{
	const struct directory_entry_key *x = a, *y = b;
	int                               order = str_cmp(x->text, y->text);

	/* of two with the same email, the one who has a role is first */
	return order ? order : (x->person->roles == 0) - (y->person->roles == 0);
}

static int by_id(const void *a, const void *b)
{
	const struct directory_entry_key *x = a, *y = b;

	return str_cmp(x->text, y->text);
}

/* The first place that is not before this text. */
static size_t place_of(const struct directory_entry_key *keys, size_t count, struct str text)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (str_cmp(keys[middle].text, text) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct aws_person *directory_copy_find(const struct directory_copy *c, struct str user_id)
{
	size_t at = c ? place_of(c->by_id, c->count, user_id) : 0;

	return c && at < c->count && str_eq(c->by_id[at].text, user_id) ? c->by_id[at].person : NULL;
}

static const struct aws_person *find_email(const struct directory_copy *c, struct str key)
{
	size_t at = c ? place_of(c->by_email, c->email_count, key) : 0;

	return c && at < c->email_count && str_eq(c->by_email[at].text, key) ? c->by_email[at].person : NULL;
}

void directory_copy_freep(struct directory_copy **c)
{
	if (!*c)
		return;
	arena_fini(&(*c)->arena);
	free((*c)->people);
	free(*c);
	*c = NULL;
}

/* The indexes, made once everybody is there. */
static void copy_sort(struct directory_copy *c)
{
	size_t size = (c->count + 1) * sizeof(struct directory_entry_key);

	c->by_email = arena_alloc(&c->arena, size);
	c->by_id = arena_alloc(&c->arena, size);
	for (size_t i = 0; i < c->count; i++) {
		const struct aws_person *p = &c->people[i];

		c->by_id[i] = (struct directory_entry_key){ p->id, p };
		if (p->email.n)
			c->by_email[c->email_count++] = (struct directory_entry_key){ email_key(p->email, &c->arena),
				                                                      p };
	}
	qsort(c->by_id, c->count, sizeof(*c->by_id), by_id);
	qsort(c->by_email, c->email_count, sizeof(*c->by_email), by_email);
}

static enum rc take_people(const struct page *page, struct arena *ignored UNUSED, void *arg, struct err *e)
{
	struct directory_copy *c = arg;

	if (c->count + page->count > DIRECTORY_PEOPLE_MAX)
		return err_set(e, RC_TOO_LARGE, "more than %d people are stored", DIRECTORY_PEOPLE_MAX);
	c->people = mem_resize(c->people, (c->count + page->count + 1) * sizeof(*c->people));
	for (size_t i = 0; i < page->count; i++)
		record_copy(&aws_person_type, &c->people[c->count++], page_record(page, &aws_person_type, i),
		            &c->arena);
	return RC_OK;
}

enum rc directory_copy_read(struct store *store, struct directory_copy **ret, struct err *e)
{
	struct query           q = query_of(&aws_person_type, QUERY_ALL, value_int(0), PAGE);
	struct directory_copy *fresh = mem_new(struct directory_copy);
	enum rc                rc = store_read_pages(store, &q, take_people, fresh, e);

	if (rc) {
		directory_copy_freep(&fresh);
		return err_wrap(e, rc, "the stored directory of people");
	}
	copy_sort(fresh);
	*ret = fresh;
	return RC_OK;
}

enum rc directory_reload(struct aws_directory *d, int64_t read_ms, struct err *e)
{
	struct directory_copy *fresh, *old = NULL;
	enum rc                rc;

	pthread_mutex_lock(&d->loading);
	rc = directory_copy_read(d->o.store, &fresh, e);
	if (!rc) {
		fresh->read_ms = read_ms;
		pthread_mutex_lock(&d->lock);
		old = d->copy;
		d->copy = fresh;
		pthread_mutex_unlock(&d->lock);
	}
	pthread_mutex_unlock(&d->loading);
	directory_copy_freep(&old);
	return rc;
}

enum rc aws_directory_load(struct aws_directory *d, struct err *e)
{
	struct aws_directory_record      head = { 0 };
	CLEANUP(arena_fini) struct arena a = { 0 };
	bool                             is_there;
	enum rc rc = store_find(d->o.store, &aws_directory_type, STR(AWS_DIRECTORY), &a, &head, &is_there, e);

	return rc || !is_there || head.read_ms == aws_directory_read_ms(d) ? rc : directory_reload(d, head.read_ms, e);
}

enum rc aws_directory_look(struct aws_directory *d, struct arena *a, struct aws_directory_state *ret, struct err *e)
{
	struct aws_directory_record head = { 0 };
	bool                        is_there;
	enum rc rc = store_find(d->o.store, &aws_directory_type, STR(AWS_DIRECTORY), a, &head, &is_there, e);

	*ret = (struct aws_directory_state){ head.read_ms, head.members, head.disabled, head.without_email,
		                             head.missing };
	return rc;
}

int64_t aws_directory_read_ms(struct aws_directory *d)
{
	LOCKED(&d->lock);
	return d->copy ? d->copy->read_ms : 0;
}

/* --- the port --- */

static struct caller caller_of(const struct aws_person *p, struct arena *a)
{
	return (struct caller){ .email = str_dup(a, p->email),
		                .display_name = str_dup(a, p->display_name),
		                .user_name = str_dup(a, p->user_name),
		                .roles = (unsigned)p->roles };
}

static bool find_here(struct aws_directory *d, struct str email, struct arena *a, struct caller *ret)
{
	struct str               key = email_key(email, a);
	const struct aws_person *p;

	LOCKED(&d->lock);
	p = find_email(d->copy, key);
	if (p && p->roles)
		*ret = caller_of(p, a);
	return p && p->roles;
}

static enum rc find(struct identity *i, struct str email, struct arena *a, struct caller *ret, struct err *e)
{
	struct aws_directory *d = CONTAINER_OF(i, struct aws_directory, identity);
	struct err            cause = { 0 };
	enum rc               rc = d->next ? d->next->ops->find(d->next, email, a, ret, &cause) : RC_NOT_FOUND;

	if (rc != RC_NOT_FOUND)
		return rc ? err_set(e, rc, "%s", cause.msg) : RC_OK;
	if (find_here(d, email, a, ret))
		return RC_OK;
	if (!aws_directory_read_ms(d))
		return err_set(e, RC_UNAVAILABLE,
		               "Identity Center has not been read yet, so nobody knows who %.*s is; try again in a "
		               "moment ('leasehold job list' shows why it takes long)",
		               STR_ARG(email));
	return err_set(e, RC_NOT_FOUND, "there is no user %.*s", STR_ARG(email));
}

/* Merges two lists in the order of emails; of those in both, the source that goes first counts. */
static size_t list(struct identity *i, unsigned roles, struct str after, struct arena *a, struct directory_entry *ret,
                   size_t max)
{
	struct aws_directory   *d = CONTAINER_OF(i, struct aws_directory, identity);
	struct directory_entry *others = arena_alloc(a, (max + 1) * sizeof(*others));
	size_t                  other_count = d->next ? d->next->ops->list(d->next, roles, after, a, others, max) : 0;
	size_t                  other = 0, count = 0, at;
	struct str              from = email_key(after, a);

	LOCKED(&d->lock);
	at = d->copy ? place_of(d->copy->by_email, d->copy->email_count, from) : 0;
	while (count < max) {
		const struct directory_entry_key *mine = d->copy && at < d->copy->email_count ? &d->copy->by_email[at]
		                                                                              : NULL;
		struct str next = other < other_count ? email_key(others[other].caller.email, a) : STR("");
		int        order = !mine ? 1 : !next.n ? -1 : str_cmp(mine->text, next);

		if (!mine && !next.n)
			break;
		if (order < 0) {
			bool is_repeated = count && str_eq_nocase(ret[count - 1].caller.email, mine->person->email);

			if (((unsigned)mine->person->roles & roles) && str_cmp(mine->text, from) > 0 && !is_repeated)
				ret[count++] = (struct directory_entry){ .caller = caller_of(mine->person, a),
					                                 .source = STR("identity center") };
			at++;
		} else {
			ret[count++] = others[other++];
			at += order == 0;
		}
	}
	return count;
}

/* --- somebody signs in --- */

static bool was_just_unknown(struct aws_directory *d, struct str key, int64_t now_ms)
{
	uint64_t hash = str_hash(key, d->seed);
	bool     is_known = false;

	LOCKED(&d->lock);
	for (size_t i = 0; i < DIRECTORY_UNKNOWN_MAX; i++)
		is_known = is_known || (d->unknown[i].hash == hash && now_ms < d->unknown[i].until_ms);
	return is_known;
}

static void note_unknown(struct aws_directory *d, struct str key, int64_t now_ms)
{
	LOCKED(&d->lock);
	d->unknown[d->unknown_count++ % DIRECTORY_UNKNOWN_MAX] = (struct directory_unknown){ str_hash(key, d->seed),
		                                                                             now_ms + UNKNOWN_MS };
}

static enum rc look_outside(struct aws_directory *d, struct str email, int64_t now_ms, struct arena *a,
                            struct caller *ret, struct err *e)
{
	struct str key = email_key(email, a);
	struct err cause = { 0 };
	enum rc    rc = RC_NOT_FOUND;

	if (!was_just_unknown(d, key, now_ms)) {
		rc = directory_look_up(d, email, &cause);
		if (!rc && find_here(d, email, a, ret))
			return RC_OK;
		if (rc && rc != RC_NOT_FOUND)
			return err_set(e, rc, "%s", cause.msg);
		note_unknown(d, key, now_ms);
	}
	return err_set(e, RC_NOT_FOUND, "%.*s is in none of the groups of Identity Center that may sign in",
	               STR_ARG(email));
}

enum rc aws_directory_sign_in(struct aws_directory *d, struct str email, struct arena *a, struct caller *ret,
                              struct err *e)
{
	int64_t now_ms = clock_now(d->o.clock).ms, read_ms = aws_directory_read_ms(d);

	if (d->next && d->next->ops->find(d->next, email, a, ret, NULL) == RC_OK)
		return RC_OK;
	if (read_ms && now_ms - read_ms > AWS_DIRECTORY_STALE_MS)
		return err_set(
		        e, RC_UNAVAILABLE,
		        "Identity Center could not be read for more than a day; nobody can sign in until it can be");
	return find_here(d, email, a, ret) ? RC_OK : look_outside(d, email, now_ms, a, ret, e);
}

/* --- names and ids --- */

static bool id_here(struct aws_directory *d, struct str email, struct arena *a, struct str *ret)
{
	struct str               key = email_key(email, a);
	const struct aws_person *p;

	LOCKED(&d->lock);
	if ((p = find_email(d->copy, key)))
		*ret = str_dup(a, p->id);
	return p != NULL;
}

enum rc aws_directory_user_id(struct aws_directory *d, struct str email, struct arena *a, struct str *ret,
                              struct err *e)
{
	enum rc rc;

	if (id_here(d, email, a, ret))
		return RC_OK;
	if ((rc = directory_look_up(d, email, e)))
		return rc;
	return id_here(d, email, a, ret)
	               ? RC_OK
	               : err_set(e, RC_NOT_FOUND, "Identity Center has no user with the email %.*s", STR_ARG(email));
}

bool aws_directory_email(struct aws_directory *d, struct str user_id, struct arena *a, struct str *ret)
{
	const struct aws_person *p;

	LOCKED(&d->lock);
	p = directory_copy_find(d->copy, user_id);
	if (p && p->email.n)
		*ret = str_dup(a, p->email);
	return p && p->email.n;
}

/* --- life --- */

struct aws_directory *aws_directory_new(const struct aws_directory_options *o)
{
	static const struct identity_ops ops = { .find = find, .list = list };
	struct aws_directory            *d = mem_new(struct aws_directory);

	d->identity.ops = &ops;
	d->o = *o;
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->refreshing, NULL);
	pthread_mutex_init(&d->loading, NULL);
	d->seed = id_draw(NULL);
	return d;
}

void aws_directory_free(struct aws_directory *d)
{
	if (!d)
		return;
	directory_copy_freep(&d->copy);
	arena_fini(&d->group_arena);
	pthread_mutex_destroy(&d->loading);
	pthread_mutex_destroy(&d->refreshing);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

struct identity *aws_directory_identity(struct aws_directory *d)
{
	return &d->identity;
}

void aws_directory_set_next(struct aws_directory *d, struct identity *next)
{
	d->next = next;
}

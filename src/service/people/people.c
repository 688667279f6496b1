/* SPDX-License-Identifier: Apache-2.0 */
/*
 * people.c - the directory learns from sign-ins.
 *
 * A sign-in provider says who somebody is only during the sign-in. What it said is kept, so that the person can be lent
 * something, be assigned to and be notified later, and on other nodes: one record a person, all of them also in memory,
 * from which the directory answers.
 *
 * Always true:
 *   1. The first source wins: people in the users file have the roles that are written there. [find()]
 *   2. Nobody is in the directory by password alone: whoever is removed from the users file is gone. [is_vouched()]
 *   3. Of two versions of a person the newer is in memory, in whatever order they come. [people_note()]
 *
 * Other nodes read what has changed since their last look, with some overlap, because clocks differ. A removed person
 * stays as a record without roles, so that they learn of it.
 *
 * Not here: what a token is worth (providers/identity/), who may do what (http/api/rights.c).
 */
#include "service/people/people.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "domain/lease.h"
#include "kernel/event.h"
#include "kernel/records.h"
#include "store/record_rows.h"
#include "store/walk.h"

enum { NAME_MAX_BYTES = 1024, SOURCE_MAX = 16, PAGE = 500, PEOPLE_MAX = 100000, OVERLAP_MS = 5 * 60 * 1000 };

#define VOUCHED "provider"
#define IN_FILE "users file"

#define PERSON_FIELDS(X)                                                      \
	X(F_EMAIL, TEXT(person, email, EMAIL_MAX))                            \
	X(F_SHOWN, TEXT(person, shown, EMAIL_MAX))                            \
	X(F_SOURCE, TEXT(person, source, SOURCE_MAX))                         \
	X(F_DISPLAY_NAME, TEXT_OR_NONE(person, display_name, NAME_MAX_BYTES)) \
	X(F_USER_NAME, TEXT_OR_NONE(person, user_name, NAME_MAX_BYTES))       \
	X(F_ROLES, INT(person, roles))                                        \
	X(F_FIRST, INT(person, first_ms))                                     \
	X(F_SIGNED_IN, INT(person, signed_in_ms))                             \
	X(F_CHANGED, INT(person, changed_ms))
FIELDS(person, PERSON_FIELDS);
enum { BY_CHANGE };
static const struct record_index indexes[] = {
	[BY_CHANGE] = { "ByChange", F_SOURCE, F_CHANGED, false, NO_FIELD, 0, 1 },
};

const struct record_type person_type = {
	RECORD_TYPE("person", person, person_fields),
	INDEXES(indexes),
};

struct entry {
	struct arena  arena; /* of the person's texts */
	struct person person;
};

struct people {
	struct identity  identity;
	struct identity *next;
	bool             believes_next; /* alone: nobody is here by what a provider said */
	struct store    *store;
	pthread_mutex_t  lock;    /* of all below */
	struct entry   **entries; /* by email */
	size_t           count, room;
	int64_t          loaded_ms; /* the latest change that was read, of any source */
};

/* --- memory --- */

/* The place of this email, or where it would be. */
static size_t place_of(const struct people *p, struct str email, bool *ret_is_there)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (str_cmp(p->entries[middle]->person.email, email) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_is_there = low < p->count && str_eq(p->entries[low]->person.email, email);
	return low;
}

static struct entry *add_entry(struct people *p, size_t at)
{
	if (p->count == p->room) {
		p->room = p->room ? 2 * p->room : 64;
		p->entries = mem_resize(p->entries, p->room * sizeof(struct entry *));
	}
	memmove(&p->entries[at + 1], &p->entries[at], (p->count++ - at) * sizeof(struct entry *));
	return p->entries[at] = mem_new(struct entry);
}

void people_note(struct people *p, const struct person *person)
{
	struct entry *entry;
	bool          is_there;
	size_t        at;

	LOCKED(&p->lock);
	at = place_of(p, person->email, &is_there);
	entry = is_there ? p->entries[at] : p->count < PEOPLE_MAX ? add_entry(p, at) : NULL;
	if (entry && entry->person.version < person->version) {
		struct arena fresh = { 0 };

		record_copy(&person_type, &entry->person, person, &fresh);
		arena_fini(&entry->arena);
		entry->arena = fresh;
	}
}

/* --- the directory --- */

static struct directory_entry entry_of(const struct person *p, struct arena *a)
{
	return (struct directory_entry){ .caller = { .email = str_dup(a, p->shown),
		                                     .display_name = str_dup(a, p->display_name),
		                                     .user_name = str_dup(a, p->user_name),
		                                     .roles = (unsigned)p->roles },
		                         .source = str_dup(a, p->source),
		                         .first_ms = p->first_ms,
		                         .signed_in_ms = p->signed_in_ms };
}

static bool is_vouched(const struct people *people, const struct person *p)
{
	return !people->believes_next && p->roles && str_eq(p->source, STR(VOUCHED));
}

static enum rc find(struct identity *i, struct str email, struct arena *a, struct caller *ret, struct err *e)
{
	struct people *p = CONTAINER_OF(i, struct people, identity);
	struct err     cause = { 0 };
	enum rc        rc = p->next->ops->find(p->next, email, a, ret, &cause);
	bool           is_there;
	size_t         at;

	if (!rc)
		return RC_OK;
	LOCKED(&p->lock);
	at = place_of(p, email_key(email, a), &is_there);
	is_there = is_there && is_vouched(p, &p->entries[at]->person);
	if (is_there)
		*ret = entry_of(&p->entries[at]->person, a).caller;
	return is_there ? RC_OK : err_set(e, rc, "%s", cause.msg);
}

/* When the person of another source has signed in: known only from here. */
static void add_sign_in(const struct people *p, struct directory_entry *entry, struct arena *a)
{
	bool   is_there;
	size_t at = place_of(p, email_key(entry->caller.email, a), &is_there);

	if (is_there) {
		entry->first_ms = p->entries[at]->person.first_ms;
		entry->signed_in_ms = p->entries[at]->person.signed_in_ms;
	}
}

/* Merges two lists in the order of emails; the first source describes whoever is in both. */
static size_t list(struct identity *i, unsigned roles, struct str after, struct arena *a, struct directory_entry *ret,
                   size_t max)
{
	struct people          *p = CONTAINER_OF(i, struct people, identity);
	struct directory_entry *others = arena_alloc(a, (max ? max : 1) * sizeof(*others));
	size_t                  other_count = p->next->ops->list(p->next, roles, after, a, others, max);
	size_t                  at, other = 0, count = 0;
	bool                    is_there;

	LOCKED(&p->lock);
	at = place_of(p, email_key(after, a), &is_there);
	at += is_there;
	while (count < max && (at < p->count || other < other_count)) {
		struct str next = other < other_count ? email_key(others[other].caller.email, a) : STR("");

		for (; at < p->count && count < max; at++) { /* mine that come before the others' next */
			const struct person *mine = &p->entries[at]->person;

			if (next.n && str_cmp(mine->email, next) >= 0)
				break;
			if (is_vouched(p, mine) && ((unsigned)mine->roles & roles))
				ret[count++] = entry_of(mine, a);
		}
		if (next.n && count < max) {
			at += at < p->count && str_eq(p->entries[at]->person.email, next);
			add_sign_in(p, &others[other], a);
			ret[count++] = others[other++];
		}
	}
	return count;
}

/* --- life --- */

struct people *people_new(struct store *store, struct identity *next)
{
	static const struct identity_ops ops = { .find = find, .list = list };
	struct people                   *p = mem_new(struct people);

	*p = (struct people){ .identity = { &ops }, .next = next, .store = store };
	pthread_mutex_init(&p->lock, NULL);
	return p;
}

void people_free(struct people *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->count; i++) {
		arena_fini(&p->entries[i]->arena);
		free(p->entries[i]);
	}
	free(p->entries);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void people_believe_next(struct people *p)
{
	p->believes_next = true;
}

struct identity *people_identity(struct people *p)
{
	return &p->identity;
}

/* --- the store --- */

struct catch_up {
	struct people *people;
	int64_t        from_ms, latest_ms;
};

/* RC_EXHAUSTED ends the walk: everything behind has been read before. */
static enum rc note_page(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e)
{
	struct catch_up *c = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct person *person = page_record(page, &person_type, i);

		if (person->changed_ms < c->from_ms)
			return err_set(e, RC_EXHAUSTED, "caught up");
		if (person->changed_ms > c->latest_ms)
			c->latest_ms = person->changed_ms;
		people_note(c->people, person);
	}
	return RC_OK;
}

static enum rc read_now(struct session *s, void *arg, struct err *e UNUSED)
{
	*(int64_t *)arg = session_now(s).ms;
	return RC_OK;
}

enum rc people_load(struct people *p, struct err *e)
{
	static const char *const sources[] = { VOUCHED, IN_FILE };
	struct catch_up          c = { .people = p, .latest_ms = p->loaded_ms };
	int64_t                  now_ms;
	enum rc                  read = store_read(p->store, read_now, &now_ms, NULL, e);

	if (read)
		return read;
	/* A change may have been made by a clock that was ahead: those of now are not before it. */
	c.from_ms = (p->loaded_ms < now_ms ? p->loaded_ms : now_ms) - OVERLAP_MS;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++) {
		struct query q = query_of(&person_type, BY_CHANGE, value_text(str_from(sources[i])), PAGE);
		struct err   cause = { 0 };
		enum rc      rc;

		q.is_descending = true;
		rc = store_read_pages(p->store, &q, note_page, &c, &cause);
		if (rc && rc != RC_EXHAUSTED)
			return err_set(e, rc, "the people who have signed in cannot be read: %s", cause.msg);
	}
	p->loaded_ms = c.latest_ms;
	return RC_OK;
}

static enum rc tell(struct session *s, const char *type, const struct person *p, const struct actor *actor,
                    struct err *e)
{
	struct arena *a = session_arena(s);
	struct str    roles = str_format(a, "%s%s%s", p->roles & ROLE_ADMIN ? "Admin " : "",
                                      p->roles & ROLE_MANAGER ? "Manager " : "", p->roles & ROLE_USER ? "User " : "");

	/* An email may be longer than both; the detail has all of it. */
	return session_tell(s, type, utf8_clip(str_format(a, "person/%.*s", STR_ARG(p->email)), SUBJECT_MAX),
	                    utf8_line(a, actor->name, ACTOR_MAX), actor->request_id,
	                    JSON_OF(a, member_str("email", p->shown), member_str("displayName", p->display_name),
	                            member_str("roles", str_trim(roles)), member_str("source", p->source)),
	                    e);
}

static enum rc sign_in(struct session *s, void *arg, struct err *e)
{
	struct person *fresh = arg;
	struct person  known = { 0 };
	struct actor   actor = { .name = fresh->shown };
	bool           is_there;
	enum rc        rc = session_find(s, &person_type, fresh->email, &known, &is_there, e);

	if (rc)
		return rc;
	fresh->first_ms = is_there ? known.first_ms : session_now(s).ms;
	fresh->signed_in_ms = fresh->changed_ms = session_now(s).ms;
	fresh->version = known.version;
	session_put(s, &person_type, fresh);
	if (is_there && known.roles == fresh->roles && str_eq(known.source, fresh->source))
		return RC_OK;
	return tell(s, is_there && known.roles ? "PersonChanged" : "PersonAdded", fresh, &actor, e);
}

enum rc people_sign_in(struct people *p, const struct caller *c, bool is_vouched_for, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct person                    person = { .email = email_key(c->email, &a),
		                                    .shown = c->email,
		                                    .source = is_vouched_for ? STR(VOUCHED) : STR(IN_FILE),
		                                    .display_name = c->display_name,
		                                    .user_name = c->user_name,
		                                    .roles = c->roles };
	enum rc                          rc = store_run(p->store, sign_in, &person, &a, e);

	if (!rc)
		people_note(p, &person);
	return rc;
}

enum rc person_remove(struct session *s, void *arg, struct err *e)
{
	struct person_removal *r = arg;
	struct identity       *next = r->people->next;
	struct arena          *a = session_arena(s);
	struct caller          caller;
	struct person          person;
	bool                   is_there;
	enum rc                rc = session_find(s, &person_type, email_key(r->email, a), &person, &is_there, e);

	if (rc)
		return rc;
	if (next->ops->find(next, r->email, a, &caller, NULL) == RC_OK)
		return err_set(e, RC_CONFLICT, "%.*s is in the users file; remove the line there", STR_ARG(r->email));
	if (!is_there || !person.roles)
		return err_set(e, RC_NOT_FOUND, "nobody with the email %.*s has signed in here", STR_ARG(r->email));
	if ((rc = tell(s, "PersonRemoved", &person, &r->actor, e)))
		return rc;
	person.roles = 0;
	person.changed_ms = session_now(s).ms;
	session_put(s, &person_type, &person);
	r->person = person;
	return RC_OK;
}

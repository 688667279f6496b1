/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users_file.c - people from a file of JSON lines, one person a line; empty lines and those that begin with '#' are
 * skipped.
 *
 *   {"email": "ann@example.com", "displayName": "Ann", "roles": ["Manager"], "password": "$argon2id$..."}
 *
 * The file is read as a whole or not at all: people live in a snapshot, which is exchanged under the lock.
 *
 * Always true:
 *   1. Nobody but its owner can read or write the file. [check_mode()]
 *   2. An email is in the file once, whatever its case. [read_people()]
 *   3. A check of a password costs one hash, whether there is such a person or not, and has one answer. [check()]
 *
 * For an unknown person the first one's hash is computed, because hashes can have different prices; an empty file has a
 * hash made for that. A person without a password cannot sign in here, but has roles (for notices, or to sign in
 * elsewhere).
 */
#include "providers/identity/users_file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/id.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/password.h"
#include "net/jwt.h"

enum { LINE_MAX_BYTES = 4096 };

struct person {
	struct caller caller;
	struct str    hash; /* NUL-terminated; may be empty */
};

struct people {
	struct arena   arena;
	struct person *list; /* by email, without case */
	size_t         count;
};

/* What tells one state of the file from another. */
struct file_mark {
	struct timespec changed;
	off_t           size;
	ino_t           inode;
};

struct users_file {
	struct identity      identity;
	struct password_book book;
	char                *path; /* NULL: nobody */
	char                 nobody[PASSWORD_HASH_SIZE];
	pthread_mutex_t      reading; /* one thread reads; others wait for it and see the same people */
	struct file_mark     mark;    /* of the last look, good or not; the reader's */
	pthread_mutex_t      lock;    /* of what follows */
	struct people       *people;
};

/* --- reading --- */

static int compare_people(const void *a, const void *b)
{
	struct str x = ((const struct person *)a)->caller.email, y = ((const struct person *)b)->caller.email;
	size_t     n = x.n < y.n ? x.n : y.n;
	int        diff = n ? strncasecmp(x.p, y.p, n) : 0;

	return diff ? diff : (x.n > y.n) - (x.n < y.n);
}

static enum rc check_members(json_t *line, struct err *e)
{
	const char *name;
	json_t     *value;

	json_object_foreach(line, name, value)
	{
		if (!str_is_word_of(str_from(name), "email displayName userName roles password"))
			return err_set(
			        e, RC_INVALID,
			        "there is no '%.40s'; a person has email, displayName, userName, roles and password",
			        name);
	}
	return RC_OK;
}

static enum rc read_person(struct str text, struct arena *a, struct person *ret, struct err *e)
{
	CLEANUP(json_freep) json_t *line = NULL;
	struct str                  email, display_name, user_name, hash;
	enum rc                     rc = json_parse(text, &line, e);

	if (rc)
		return rc;
	if (!json_is_object(line))
		return err_set(e, RC_INVALID, "a line must be a JSON object");
	if ((rc = check_members(line, e)))
		return rc;
	if (!json_get_text(line, "email", &email) || !jwt_is_email(email))
		return err_set(e, RC_INVALID, "email must be an address such as ann@example.com");
	if (!json_get_text(line, "displayName", &display_name) || display_name.n > JWT_NAME_MAX ||
	    !json_get_text(line, "userName", &user_name) || user_name.n > JWT_NAME_MAX)
		return err_set(e, RC_INVALID, "displayName and userName must be texts of at most %d bytes",
		               JWT_NAME_MAX);
	if (!jwt_read_roles(json_object_get(line, "roles"), &ret->caller.roles) || !ret->caller.roles)
		return err_set(e, RC_INVALID,
		               "roles must be a list of User, Manager, Admin, with at least one of them");
	if (!json_get_text(line, "password", &hash) || (hash.n && !password_is_hash(hash)))
		return err_set(e, RC_INVALID, "password must be what 'leasehold token hash-password' prints");
	ret->caller.email = str_dup(a, email);
	ret->caller.display_name = str_dup(a, display_name);
	ret->caller.user_name = str_dup(a, user_name);
	ret->hash = str_dup(a, hash);
	return RC_OK;
}

static enum rc read_people(struct str rest, struct people *p, struct err *e)
{
	enum rc rc;

	p->list = arena_alloc(&p->arena, sizeof(*p->list) * USERS_MAX);
	for (int number = 1; rest.n; number++) {
		struct str line = str_trim(str_cut(&rest, '\n'));

		if (line.n == 0 || line.p[0] == '#')
			continue;
		if (p->count == USERS_MAX)
			return err_set(e, RC_INVALID, "more than %d people", USERS_MAX);
		if (line.n > LINE_MAX_BYTES)
			return err_set(e, RC_INVALID, "line %d: longer than %d bytes", number, LINE_MAX_BYTES);
		if ((rc = read_person(line, &p->arena, &p->list[p->count++], e)))
			return err_wrap(e, rc, "line %d", number);
	}
	qsort(p->list, p->count, sizeof(*p->list), compare_people);
	for (size_t i = 1; i < p->count; i++)
		if (compare_people(&p->list[i - 1], &p->list[i]) == 0)
			return err_set(e, RC_INVALID, "%.*s is there twice", STR_ARG(p->list[i].caller.email));
	return RC_OK;
}

static void people_free(struct people *p)
{
	if (!p)
		return;
	arena_fini(&p->arena);
	free(p);
}

static enum rc check_mode(int fd, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_set(e, RC_UNAVAILABLE, "cannot be read: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, RC_INVALID, "must be a file");
	if (st.st_mode & 077)
		return err_set(e, RC_INVALID, "has passwords, so only its owner may read or write it: chmod 600 it");
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return err_set(e, RC_INVALID, "must belong to the user that runs the server, or to root");
	return RC_OK;
}

static enum rc read_file(const char *path, struct people **ret, struct err *e)
{
	struct people                   *p = mem_new(struct people);
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(fd_closep) int           fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct str                       text;
	enum rc                          rc;

	if (fd < 0)
		rc = err_set(e, RC_UNAVAILABLE, "cannot be opened: %s", strerror(errno));
	else if (!(rc = check_mode(fd, e)) && (rc = file_read_all(fd, USERS_FILE_MAX, &a, &text)) == RC_TOO_LARGE)
		rc = err_set(e, RC_INVALID, "larger than %d bytes", USERS_FILE_MAX);
	else if (rc)
		rc = err_set(e, rc, "cannot be read: %s", strerror(errno)); /* unless check_mode() has said why */
	else
		rc = read_people(text, p, e);
	if (rc)
		people_free(p);
	else
		*ret = p;
	return err_wrap(e, rc, "users file %s", path);
}

/* --- finding --- */

static const struct person *find_person(const struct people *p, struct str email)
{
	struct person key = { .caller = { .email = email } };

	return p->count ? bsearch(&key, p->list, p->count, sizeof(*p->list), compare_people) : NULL;
}

static struct caller copy_caller(const struct caller *c, struct arena *a)
{
	return (struct caller){ .email = str_dup(a, c->email),
		                .display_name = str_dup(a, c->display_name),
		                .user_name = str_dup(a, c->user_name),
		                .roles = c->roles };
}

static enum rc find(struct identity *i, struct str email, struct arena *a, struct caller *ret, struct err *e)
{
	struct users_file   *f = CONTAINER_OF(i, struct users_file, identity);
	const struct person *p;

	LOCKED(&f->lock);
	p = find_person(f->people, email);
	if (p)
		*ret = copy_caller(&p->caller, a);
	return p ? RC_OK : err_set(e, RC_NOT_FOUND, "there is no user %.*s", STR_ARG(email));
}

static size_t list(struct identity *i, unsigned roles, struct str after, struct arena *a, struct directory_entry *ret,
                   size_t max)
{
	struct users_file *f = CONTAINER_OF(i, struct users_file, identity);
	struct person      behind = { .caller = { .email = after } };
	size_t             count = 0;

	LOCKED(&f->lock);
	for (size_t at = 0; at < f->people->count && count < max; at++) {
		const struct person *p = &f->people->list[at];

		if ((p->caller.roles & roles) && compare_people(p, &behind) > 0)
			ret[count++] = (struct directory_entry){ copy_caller(&p->caller, a), STR("users file"), 0, 0 };
	}
	return count;
}

/* The hash to compute for somebody without one: as expensive as the others'. */
static struct str stand_in(const struct users_file *f)
{
	for (size_t i = 0; i < f->people->count; i++)
		if (f->people->list[i].hash.n)
			return f->people->list[i].hash;
	return str_from(f->nobody);
}

static enum rc check(struct password_book *b, struct str email, struct str password, struct arena *a,
                     struct caller *ret, struct err *e)
{
	struct users_file   *f = CONTAINER_OF(b, struct users_file, book);
	const struct person *p;
	struct caller        caller = { .roles = 0 };
	struct str           hash;
	bool                 is_known, is_right;

	rc_ignore(users_file_refresh(f, false, NULL)); /* else those of before; the pulse tells of it */
	pthread_mutex_lock(&f->lock);
	p = find_person(f->people, email);
	is_known = p && p->hash.n;
	hash = str_dup(a, is_known ? p->hash : stand_in(f));
	if (is_known)
		caller = copy_caller(&p->caller, a);
	pthread_mutex_unlock(&f->lock);
	is_right = password_verify(password, hash.p);
	if (!is_known || !is_right)
		return err_set(e, RC_UNKNOWN, "wrong email or password");
	*ret = caller;
	return RC_OK;
}

/* --- life --- */

/* Note how the file looks now. False: as at the last look. */
static bool take_mark(struct users_file *f)
{
	struct file_mark before = f->mark;
	struct stat      st = { 0 };

	if (stat(f->path, &st))
		st = (struct stat){ .st_size = -1 };
	f->mark = (struct file_mark){ st.st_ctim, st.st_size, st.st_ino };
	return before.size != st.st_size || before.inode != st.st_ino || before.changed.tv_sec != st.st_ctim.tv_sec ||
	       before.changed.tv_nsec != st.st_ctim.tv_nsec;
}

enum rc users_file_refresh(struct users_file *f, bool always, struct err *e)
{
	struct people *fresh = NULL, *before; /* the one that is not needed is freed */
	enum rc        rc = RC_OK;

	if (!f->path)
		return RC_OK;
	pthread_mutex_lock(&f->reading);
	if (take_mark(f) || always)
		rc = read_file(f->path, &fresh, e);
	if (fresh && !fresh->count && f->people->count) { /* more likely an accident than intended */
		rc = err_set(
		        e, RC_INVALID,
		        "users file %s: it is empty, but had %zu people before; restart the server if that is intended",
		        f->path, f->people->count);
	} else if (fresh) {
		pthread_mutex_lock(&f->lock);
		before = f->people;
		f->people = fresh;
		pthread_mutex_unlock(&f->lock);
		fresh = before;
	}
	people_free(fresh);
	pthread_mutex_unlock(&f->reading);
	return rc;
}

enum rc identity_users_file_open(const char *path, struct users_file **ret, struct err *e)
{
	static const struct identity_ops      identity_ops = { .find = find, .list = list };
	static const struct password_book_ops book_ops = { .check = check };
	struct users_file                    *f = mem_new(struct users_file);
	char                                  random[ID_TOKEN_SIZE];
	enum rc                               rc;

	f->identity.ops = &identity_ops;
	f->book.ops = &book_ops;
	f->path = path ? mem_strdup(path) : NULL;
	f->people = mem_new(struct people);
	pthread_mutex_init(&f->reading, NULL);
	pthread_mutex_init(&f->lock, NULL);
	id_token(random);
	rc = path ? password_hash(str_from(random), f->nobody, e) : RC_OK;
	if (!rc)
		rc = users_file_refresh(f, true, e);
	if (rc) {
		users_file_close(f);
		return rc;
	}
	*ret = f;
	return RC_OK;
}

void users_file_close(struct users_file *f)
{
	if (!f)
		return;
	people_free(f->people);
	pthread_mutex_destroy(&f->lock);
	pthread_mutex_destroy(&f->reading);
	free(f->path);
	free(f);
}

struct identity *users_file_identity(struct users_file *f)
{
	return &f->identity;
}

struct password_book *users_file_passwords(struct users_file *f)
{
	return &f->book;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * users_file.c - people from a file of JSON lines, one person a line; empty lines and lines that begin with '#' are passed over.
 *
 *   {"email": "ann@example.com", "displayName": "Ann", "roles": ["Manager"], "password": "$argon2id$..."}
 *
 * The whole file is read or none of it: people live in a snapshot with an arena of its own, which is exchanged under the lock.
 *
 * Always true:
 *   1. Nobody but its owner can read or write the file.                                                       [check_mode()]
 *   2. An email is in the file once, whatever its case.                                                        [check_unique()]
 *   3. A check of a password costs one hash, whether there is such a person or not, and has one answer.        [check()]
 *
 * Without a person of that name the first one's hash is computed, because hashes can have different prices; a file without
 * anybody has a hash that was made for the purpose. A person without a password cannot sign in here: his roles are known
 * (for notices, or because he signs in elsewhere).
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
#include "base/buf.h"
#include "base/id.h"
#include "base/json.h"
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
	pthread_mutex_t      reading; /* one reads; who comes meanwhile waits for it and sees the same people */
	struct file_mark     mark;    /* of the last look, good or not; the reader's */
	pthread_mutex_t      lock;    /* of what follows */
	struct people       *people;
};

/* --- reading --- */

static int compare_nocase(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int    diff = n ? strncasecmp(a.p, b.p, n) : 0;

	return diff ? diff : (a.n > b.n) - (a.n < b.n);
}

static int compare_people(const void *a, const void *b)
{
	const struct person *x = a, *y = b;

	return compare_nocase(x->caller.email, y->caller.email);
}

static bool read_roles(const json_t *list, unsigned *ret)
{
	*ret = 0;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));
		unsigned    role = name ? jwt_role_parse(str_from(name)) : 0;

		if (!role)
			return false;
		*ret |= role;
	}
	return *ret != 0;
}

static enum rc check_members(json_t *line, struct err *e)
{
	static const char *const known[] = { "email", "displayName", "userName", "roles", "password" };
	const char              *name;
	json_t                  *value;

	json_object_foreach(line, name, value)
	{
		bool is_known = false;

		for (size_t i = 0; i < ARRAY_LEN(known); i++)
			is_known = is_known || strcmp(name, known[i]) == 0;
		if (!is_known)
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
	if (!read_roles(json_object_get(line, "roles"), &ret->caller.roles))
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

static enum rc check_unique(const struct people *p, struct err *e)
{
	for (size_t i = 1; i < p->count; i++)
		if (compare_people(&p->list[i - 1], &p->list[i]) == 0)
			return err_set(e, RC_INVALID, "%.*s is there twice", STR_ARG(p->list[i].caller.email));
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
	return check_unique(p, e);
}

static void people_free(struct people *p)
{
	if (!p)
		return;
	arena_fini(&p->arena);
	free(p);
}

static enum rc check_mode(const struct stat *st, struct err *e)
{
	if (!S_ISREG(st->st_mode))
		return err_set(e, RC_INVALID, "must be a file");
	if (st->st_mode & 077)
		return err_set(e, RC_INVALID, "has passwords, so only its owner may read or write it: chmod 600 it");
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return err_set(e, RC_INVALID, "must belong to the user that runs the server, or to root");
	return RC_OK;
}

static enum rc read_content(int fd, struct buf *b, struct err *e)
{
	ssize_t got = 0;
	char   *room;

	while ((room = buf_room(b, 65536)) && (got = read(fd, room, 65536)) > 0)
		buf_added(b, (size_t)got);
	if (!room || b->n > USERS_FILE_MAX)
		return err_set(e, RC_INVALID, "larger than %d bytes", USERS_FILE_MAX);
	return got < 0 ? err_set(e, RC_UNAVAILABLE, "cannot be read: %s", strerror(errno)) : RC_OK;
}

static enum rc read_open_file(int fd, struct people **ret, struct err *e)
{
	struct people *p = mem_new(struct people);
	struct stat    st;
	struct buf     b;
	enum rc        rc;

	buf_init(&b, USERS_FILE_MAX + 131072);
	rc = fstat(fd, &st) ? err_set(e, RC_UNAVAILABLE, "cannot be read: %s", strerror(errno)) : check_mode(&st, e);
	if (!rc)
		rc = read_content(fd, &b, e);
	if (!rc)
		rc = read_people(buf_str(&b), p, e);
	buf_fini(&b);
	if (rc)
		people_free(p);
	else
		*ret = p;
	return rc;
}

static enum rc read_file(const char *path, struct people **ret, struct err *e)
{
	int     fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	enum rc rc;

	if (fd < 0)
		return err_set(e, RC_UNAVAILABLE, "users file %s: cannot be opened: %s", path, strerror(errno));
	rc = read_open_file(fd, ret, e);
	close(fd);
	return rc ? err_wrap(e, rc, "users file %s", path) : RC_OK;
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

	pthread_mutex_lock(&f->lock);
	p = find_person(f->people, email);
	if (p)
		*ret = copy_caller(&p->caller, a);
	pthread_mutex_unlock(&f->lock);
	return p ? RC_OK : err_set(e, RC_NOT_FOUND, "there is no user %.*s", STR_ARG(email));
}

static size_t list(struct identity *i, unsigned roles, struct arena *a, struct str *ret, size_t max)
{
	struct users_file *f = CONTAINER_OF(i, struct users_file, identity);
	size_t             count = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t at = 0; at < f->people->count && count < max; at++)
		if (f->people->list[at].caller.roles & roles)
			ret[count++] = str_dup(a, f->people->list[at].caller.email);
	pthread_mutex_unlock(&f->lock);
	return count;
}

/* The hash to compute when the person has none: at the same price as the others'. */
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
		return err_set(e, RC_UNKNOWN, "email or password is not right");
	*ret = caller;
	return RC_OK;
}

/* --- life --- */

static bool is_marked(const struct users_file *f, const struct stat *st)
{
	return f->mark.size == st->st_size && f->mark.inode == st->st_ino &&
	       f->mark.changed.tv_sec == st->st_ctim.tv_sec && f->mark.changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* Note how the file looks now. False: as at the last look. */
static bool take_mark(struct users_file *f)
{
	struct stat st = { 0 };
	bool        is_new;

	if (stat(f->path, &st))
		st = (struct stat){ .st_size = -1 };
	is_new = !is_marked(f, &st);
	f->mark = (struct file_mark){ st.st_ctim, st.st_size, st.st_ino };
	return is_new;
}

static void exchange_people(struct users_file *f, struct people *fresh)
{
	struct people *before;

	pthread_mutex_lock(&f->lock);
	before = f->people;
	f->people = fresh;
	pthread_mutex_unlock(&f->lock);
	people_free(before);
}

enum rc users_file_refresh(struct users_file *f, bool always, struct err *e)
{
	struct people *fresh = NULL;
	enum rc        rc = RC_OK;

	if (!f->path)
		return RC_OK;
	pthread_mutex_lock(&f->reading);
	if (take_mark(f) || always)
		rc = read_file(f->path, &fresh, e);
	if (fresh)
		exchange_people(f, fresh);
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

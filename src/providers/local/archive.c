/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.c - both data sets of a tenant as two compressed files in archives/TENANT/NAME, and back. A list of the
 * people of its pool lies beside them, to be read by people.
 *
 * Always true:
 *   1. An archive that is there is whole: it is made under another name, read through once, and renamed.
 *      [local_archive()]
 *   2. What was archived is brought back by the tenant's own users, in the system and in the database: an archive can
 *      do no more than they.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"

#define DATABASE_PART "database.sql.gz"
#define FILES_PART    "files.tar.gz"
#define PEOPLE_PART   "people.json"
#define MANIFEST      "archive.json"
#define DRAFT         "..draft" /* no name of an archive ends so */

enum { MANIFEST_MAX = 4096 };

static enum rc check_name(struct str name, struct err *e)
{
	if (name.n && name.n <= ARCHIVE_NAME_MAX && name.p[0] != '.' && str_is_of(name, "a-zA-Z0-9._-"))
		return RC_OK;
	return err_set(e, RC_INVALID,
	               "an archive's name must have 1 to %d of A-Z, a-z, 0-9, ., _ and -, and not begin with .",
	               ARCHIVE_NAME_MAX);
}

/* --- making one --- */

static int create(const char *folder, const char *part, struct arena *a)
{
	return open(str_format(a, "%s/%s", folder, part).p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

/* Runs it with its output compressed into the part, flushed; then reads the part through. */
static enum rc pack(const struct run *from, const char *folder, const char *part, int64_t *ret_bytes, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *const                gzip[] = { "gzip", "-c", "-n", "-6", NULL };
	const char *const                test[] = { "gzip", "-t", str_format(&a, "%s/%s", folder, part).p, NULL };
	CLEANUP(fd_closep) int           fd = create(folder, part, &a);
	struct run                       into = { .args = gzip, .out_fd = fd }, whole = *from;
	struct stat                      about = { 0 };
	enum rc rc = fd < 0 ? err_set(e, RC_UNAVAILABLE, "cannot write %s/%s: %s", folder, part, strerror(errno))
	                    : RC_OK;

	whole.into = &into;
	whole.limit_ms = DATA_MS;
	if (!rc)
		rc = run_program(&whole, &a, NULL, e);
	if (!rc && (fsync(fd) != 0 || fstat(fd, &about) != 0))
		rc = err_set(e, RC_UNAVAILABLE, "cannot write %s/%s: %s", folder, part, strerror(errno));
	if (!rc)
		rc = run_program(&(struct run){ .args = test, .limit_ms = DATA_MS }, &a, NULL, e);
	*ret_bytes += about.st_size;
	return rc;
}

static enum rc pack_database(struct local *l, struct site *s, const char *folder, int64_t *bytes, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *const                args[] = { "mariadb-dump",
		                                    "--no-defaults",
		                                    str_format(&a, "--socket=%s", database_socket(l, &a).p).p,
		                                    "--single-transaction",
		                                    "--quick",
		                                    "--hex-blob",
		                                    "--skip-comments",
		                                    "--no-tablespaces",
		                                    "--default-character-set=utf8mb4",
		                                    site_database(s, &a).p,
		                                    NULL };
	enum rc                          rc = database_start(l, e);

	if (!rc)
		rc = pack(&(struct run){ .args = args }, folder, DATABASE_PART, bytes, e);
	return rc;
}

static enum rc pack_files(struct local *l, struct site *s, const char *folder, int64_t *bytes, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *const                args[] = {
		               "tar", "--create", "--file=-", "--numeric-owner", "--warning=no-file-changed", "wp-content", NULL
	};
	struct run from = { .args = args, .folder = site_root(l, s, &a).p, .uid = s->uid, .gid = site_gid(l, s) };

	return pack(&from, folder, FILES_PART, bytes, e);
}

/* Who was in the identity pool, for whoever makes another: without passwords, which nobody has. */
static enum rc list_people(struct local *l, struct site *s, const char *folder, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       out;
	enum rc                          rc = RC_OK;

	if (s->instance[INSTANCE_IDENTITY][0] &&
	    !(rc = pool_run(l, JSON_OF(&a, member_word("do", "people"), member_str("folder", pool_folder(l, s, &a))),
	                    &a, &out, e)))
		rc = file_write(str_format(&a, "%s/" PEOPLE_PART, folder).p, out, FILE_OURS, true, e);
	return rc;
}

static struct str archive_folder(const struct local *l, struct str tenant, struct str name, const char *end,
                                 struct arena *a)
{
	return local_path(l, a, "archives/%.*s/%.*s%s", STR_ARG(tenant), STR_ARG(name), end);
}

static enum rc make(struct local *l, struct site *s, struct str name, struct str folder, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       draft = archive_folder(l, str_from(s->tenant), name, DRAFT, &a), outputs;
	int64_t                          bytes = 0;
	enum rc                          rc;

	if ((rc = folder_make(local_path(l, &a, "archives/%s", s->tenant).p, FILE_OF_US(0700), e)) ||
	    (rc = tree_remove(draft.p, e)) || (rc = folder_make(draft.p, FILE_OF_US(0700), e)) ||
	    (rc = pack_database(l, s, draft.p, &bytes, e)) || (rc = pack_files(l, s, draft.p, &bytes, e)) ||
	    (rc = list_people(l, s, draft.p, e)))
		return rc;
	outputs = JSON_OF(&a, member_str("id", name), member_int("bytes", bytes),
	                  member_raw("parts", STR("[\"database\",\"files\"]")),
	                  member_word("instance", s->instance[INSTANCE_STORAGE]),
	                  member_time("at", clock_now(&clock_real).ms));
	if (!(rc = file_write(str_format(&a, "%s/" MANIFEST, draft.p).p, outputs, FILE_OURS, true, e)) &&
	    (rename(draft.p, folder.p) != 0 || !name_sync(folder.p) ||
	     !name_sync(local_path(l, &a, "archives/%s", s->tenant).p)))
		rc = err_set(e, RC_UNAVAILABLE, "cannot name the archive %s: %s", folder.p, strerror(errno));
	return rc;
}

enum rc local_archive(struct instance_driver *d, struct str tenant, struct str name, struct arena *a,
                      struct str *ret_outputs, struct err *e)
{
	struct local *l = local_of(d);
	struct str folder = archive_folder(l, tenant, name, "", a), manifest = str_format(a, "%s/" MANIFEST, folder.p);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = check_name(name, e);

	if (rc || (rc = site_enter(l, tenant, false, &s, e)))
		return rc;
	if (access(manifest.p, F_OK) != 0 && !(rc = site_needs(s, INSTANCE_DATABASE, e)) &&
	    !(rc = site_needs(s, INSTANCE_STORAGE, e)))
		rc = make(l, s, name, folder, e);
	if (!rc)
		rc = file_read(manifest.p, MANIFEST_MAX, a, ret_outputs, e);
	return err_wrap(e, rc, "archive of tenant %s", s->tenant);
}

/* --- bringing it back --- */

static enum rc unpack(const char *folder, const char *part, const struct run *into, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *const                gzip[] = { "gzip", "-dc", NULL };
	CLEANUP(fd_closep) int           fd = open(str_format(&a, "%s/%s", folder, part).p, O_RDONLY | O_CLOEXEC);
	struct run                       from = { .args = gzip, .in_fd = fd, .into = into, .limit_ms = DATA_MS };

	if (fd < 0)
		return err_set(e, RC_CORRUPT, "the archive %s has no %s: %s", folder, part, strerror(errno));
	return run_program(&from, &a, NULL, e);
}

/* A dump is the tenant's, and can make the client program run others ("\!"). The tenant's processes can read the
 * environment of this one: the password in it is in their wp-config.php too. */
static enum rc unpack_database(struct local *l, struct site *s, const char *folder, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct database_client           c;
	struct run                       into = { .args = c.args, .env = c.env, .uid = s->uid, .gid = site_gid(l, s) };
	enum rc                          rc = database_client(l, s, &a, &c, e);

	if (rc || (rc = database_empty(l, s, e)))
		return rc;
	return unpack(folder, DATABASE_PART, &into, e);
}

/* Into a folder beside, then in place of what is there. */
static enum rc unpack_files(struct local *l, struct site *s, const char *folder, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str temp = local_path(l, &a, "tmp/%s.restore", s->key), inner = str_format(&a, "%s/wp-content", temp.p);
	struct str content = str_format(&a, "%s/wp-content", site_root(l, s, &a).p),
	           old = str_format(&a, "%s.old", content.p);
	const char *const args[] = { "tar", "--extract", "--file=-", "--no-same-owner", "--same-permissions", NULL };
	struct run        into = { .args = args, .folder = temp.p, .uid = s->uid, .gid = site_gid(l, s) };
	enum rc           rc;

	if ((rc = tree_remove(temp.p, e)) || (rc = folder_make(temp.p, site_owner(l, s, 0700), e)) ||
	    (rc = unpack(folder, FILES_PART, &into, e)) || (rc = tree_remove(old.p, e)))
		return rc;
	if ((rename(content.p, old.p) != 0 && errno != ENOENT) || rename(inner.p, content.p) != 0)
		rc = err_set(e, RC_INTERNAL, "cannot put the files of tenant %s in place: %s", s->tenant,
		             strerror(errno));
	else if (!(rc = tree_remove(old.p, e)))
		rc = tree_remove(temp.p, e);
	return rc;
}

enum rc local_restore(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(arena_fini) struct arena  a = { 0 };
	CLEANUP(site_leavep) struct site *s = NULL;
	struct str                        folder = archive_folder(l, tenant, name, "", &a);
	enum rc                           rc = check_name(name, e);

	if (rc || (rc = site_enter(l, tenant, false, &s, e)))
		return rc;
	if (access(str_format(&a, "%s/" MANIFEST, folder.p).p, F_OK) != 0)
		return err_set(e, RC_NOT_FOUND, "tenant %.*s has no archive %.*s", STR_ARG(tenant), STR_ARG(name));
	if ((rc = site_needs(s, INSTANCE_DATABASE, e)) || (rc = site_needs(s, INSTANCE_STORAGE, e)) ||
	    (rc = site_needs(s, INSTANCE_SECRET, e)) || (rc = unpack_database(l, s, folder.p, e)) ||
	    (rc = unpack_files(l, s, folder.p, e)) || (rc = site_set_installed(l, s, true, e)) ||
	    !s->instance[INSTANCE_WORKERS][0])
		return rc;
	return site_install(l, s, &(struct instance_spec){ .organization = tenant }, true, e);
}

enum rc local_drop_archive(struct instance_driver *d, struct str tenant, struct str name, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(arena_fini) struct arena  a = { 0 };
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = check_name(name, e);

	if (rc || (rc = site_enter(l, tenant, true, &s, e)) || /* archives outlive the site */
	    (rc = tree_remove(archive_folder(l, tenant, name, "", &a).p, e)) ||
	    (rc = tree_remove(archive_folder(l, tenant, name, DRAFT, &a).p, e)))
		return rc;
	(void)rmdir(local_path(l, &a, "archives/%s", s->tenant).p); /* while there are others it stays */
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage.c - a tenant's files: wp-content, in the code tree of the tenant's site.
 *
 * The tree belongs to nginx's user and the tenant's group, mode 550: these two may enter it, no other tenant; and the
 * tenant's own code may change nothing in it but wp-content, which is the tenant's. What works inside wp-content works
 * as the tenant, never as root.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "providers/local/files.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"

static struct str content_folder(const struct local *l, const struct site *s, struct arena *a)
{
	return str_format(a, "%s/wp-content", site_root(l, s, a).p);
}

enum rc storage_make(struct local *l, struct site *s, const struct instance_spec *spec UNUSED, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       root = site_root(l, s, &a), content = content_folder(l, s, &a);
	struct file_owner gate = l->is_root ? (struct file_owner){ l->web_uid, (gid_t)s->uid, 0550 } : FILE_OF_US(0700);
	const char *const folders[] = {
		"mkdir", "-p", "themes", "plugins", "mu-plugins", "uploads", "languages", NULL
	};
	const char *const theme[] = { "cp",      "-rL", "--no-clobber", WORDPRESS_CODE "/wp-content/themes/.",
		                      "themes/", NULL };
	struct run        inside = { .folder = content.p, .uid = s->uid, .gid = (gid_t)s->uid, .limit_ms = PROGRAM_MS };
	struct run        makes = inside, copies = inside;
	enum rc           rc;

	makes.args = folders;
	copies.args = theme;
	if ((rc = folder_make(root.p, gate, e)) || (rc = folder_make(content.p, site_owner(l, s, 0755), e)) ||
	    (rc = folder_make(local_path(l, &a, "tmp/%s", s->key).p, site_owner(l, s, 0700), e)) ||
	    (rc = run_program(&makes, &a, NULL, e)) || (rc = run_program(&copies, &a, NULL, e)))
		rc = err_wrap(e, rc, "storage of tenant %s", s->tenant);
	return rc;
}

enum rc storage_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = tree_remove(content_folder(l, s, &a).p, e);

	if (!rc)
		rc = tree_remove(local_path(l, &a, "tmp/%s", s->key).p, e);
	if (!rc)
		rc = tree_remove(local_path(l, &a, "tmp/%s.cache", s->key).p, e);
	if (!rc && rmdir(site_root(l, s, &a).p) != 0 && errno != ENOENT &&
	    errno != ENOTEMPTY) /* the code may be there yet */
		rc = err_set(e, RC_INTERNAL, "cannot remove the site's folder: %s", strerror(errno));
	return rc;
}

enum rc storage_check(struct local *l, struct site *s, bool *ret, struct err *e UNUSED)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct stat                      about, uploads;

	*ret = lstat(content_folder(l, s, &a).p, &about) == 0 && S_ISDIR(about.st_mode) &&
	       about.st_uid == (l->is_root ? s->uid : geteuid()) && (about.st_mode & 07777) == 0755 &&
	       lstat(str_format(&a, "%s/uploads", content_folder(l, s, &a).p).p, &uploads) == 0 &&
	       uploads.st_uid == about.st_uid;
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * php.c - our programs in PHP: written into php/ at every start, run with what they need on their input, as JSON.
 *
 * And WordPress, compiled once for all: a page of a task that has just started costs a third with it. The folder is
 * ours, so tenants' code reads it and cannot change it; it is named after the times of PHP and WordPress, so an update
 * makes another.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/lock.h"
#include "base/log.h"
#include "providers/local/php_files.h"

#include "providers/local/files.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"

enum rc php_write(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = RC_OK;

	for (size_t i = 0; !rc && i < php_file_count; i++)
		rc = file_write(local_path(l, &a, "php/%s", php_files[i].name).p, str_from(php_files[i].text),
		                FILE_OF_US(0644), false, e);
	return rc;
}

enum rc php_run(struct local *l, const char *program, uid_t uid, gid_t gid, const char *temp, const char *cache,
                struct str in, struct arena *a, struct str *ret, struct err *e)
{
	const char *const args[] = { "php",
		                     "-d",
		                     "display_errors=stderr",
		                     "-d",
		                     "log_errors=0",
		                     "-d",
		                     "sendmail_path=/bin/true",
		                     "-d",
		                     "disable_functions=" PHP_NO_PROGRAMS,
		                     "-d",
		                     "ffi.enable=0",
		                     "-d",
		                     "memory_limit=512M",
		                     "-d",
		                     cache ? "opcache.enable_cli=1" : "opcache.enable_cli=0",
		                     "-d",
		                     cache ? "opcache.file_cache_only=1" : "opcache.file_cache_only=0",
		                     "-d",
		                     str_format(a, "opcache.file_cache=%s", cache ? cache : "").p,
		                     "-d",
		                     str_format(a, "sys_temp_dir=%s", temp).p,
		                     "-d",
		                     str_format(a, "session.save_path=%s", temp).p,
		                     local_path(l, a, "php/%s", program).p,
		                     NULL };

	return run_program(&(struct run){ .args = args, .uid = uid, .gid = gid, .in = in, .limit_ms = 2 * PROGRAM_MS },
	                   a, ret, e);
}

/* --- WordPress, compiled --- */

enum rc code_cache_open(struct local *l, struct err *e)
{
	struct stat php, code;

	if (stat(l->php_fpm.p, &php) != 0 || stat(WORDPRESS_CODE "/wp-includes/version.php", &code) != 0)
		return err_set(e, RC_INVALID, "PHP or WordPress has gone: %s", strerror(errno));
	l->code_cache = local_path(l, &l->arena, "cache/%llx-%llx", (unsigned long long)php.st_mtim.tv_sec,
	                           (unsigned long long)code.st_mtim.tv_sec);
	return folder_make(l->code_cache.p, FILE_OF_US(0755), e); /* php-fpm does not start without it */
}

static enum rc compile(struct local *l, const char *draft, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *const                open_up[] = { "chmod", "-R", "a+rX", draft, NULL };
	struct str                       cache = l->code_cache, out;
	enum rc                          rc = tree_remove(draft, e);

	if (!rc && !(rc = folder_make(draft, FILE_OF_US(0755), e)))
		rc = php_run(l, "compile.php", 0, 0, local_path(l, &a, "tmp").p, draft,
		             JSON_OF(&a, member_word("code", WORDPRESS_CODE)), &a, &out, e);
	if (!rc) /* it makes them for itself alone */
		rc = run_program(&(struct run){ .args = open_up, .limit_ms = PROGRAM_MS }, &a, NULL, e);
	if (!rc)
		rc = file_write(str_format(&a, "%s/built", draft).p, STR(""), FILE_OURS, false, e);
	if (!rc && rename(draft, cache.p) != 0)
		rc = err_set(e, RC_INTERNAL, "cannot name %s: %s", cache.p, strerror(errno));
	return rc;
}

/* PHP wants to be able to write into its folder; so the tenant gets one, in which the compiled code is by a link. */
enum rc code_cache_lend(struct local *l, const struct site *s, struct arena *a, struct str *ret, struct err *e)
{
	DIR           *from = opendir(l->code_cache.p);
	struct dirent *entry;
	enum rc        rc;

	*ret = local_path(l, a, "tmp/%s.cache", s->key);
	if (!(rc = tree_remove(ret->p, e)))
		rc = folder_make(ret->p, FILE_OF_US(0755), e);
	while (!rc && from && (entry = readdir(from)))
		if (entry->d_name[0] != '.' && symlink(str_format(a, "%s/%s", l->code_cache.p, entry->d_name).p,
		                                       str_format(a, "%s/%s", ret->p, entry->d_name).p) != 0)
			rc = err_set(e, RC_INTERNAL, "cannot link into %s: %s", ret->p, strerror(errno));
	if (from)
		closedir(from);
	if (!rc && l->is_root)
		rc = folder_make(ret->p, site_owner(l, s, 0700), e);
	return rc;
}

/* Sites do without it: slower. */
void code_cache_make(struct local *l)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct err                       e = { 0 };

	LOCKED(&l->uid_mutex);
	if (access(str_format(&a, "%s/built", l->code_cache.p).p, F_OK) != 0 &&
	    compile(l, local_path(l, &a, "cache/draft").p, &e))
		log_write(LOG_WARNING, "instances.local", NULL, 0, "WordPress cannot be compiled ahead: %s", e.msg);
}

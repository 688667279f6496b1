/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers.c - a tenant's tasks: the code tree, wp-config.php, and php-fpm masters with a socket each.
 *
 * The code is the package's, by links. They resolve to the package's folder, so a file that is put before every script
 * says where WordPress is (ABSPATH); without it WordPress would read the package's own settings.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/password.h"
#include "providers/local/fastcgi.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum {
	CONFIG_MAX = 32768,
	CPU_UNITS_OF_WORKER = 256,
	WORKERS_MIN = 2,
	WORKERS_MAX = 16,
	SCRIPT_MB_MAX = 512,
	ROLL_MS = 120000
};

/* --- one task --- */

static struct str pool_file(const struct local *l, const struct site *s, unsigned slot, struct arena *a)
{
	return local_path(l, a, "pools/%s.%u.conf", s->key, slot);
}

struct str task_log(const struct local *l, const struct site *s, unsigned slot, struct arena *a)
{
	return local_path(l, a, "log/%s.%u.log", s->key, slot);
}

void workers_plan(struct local *l, struct site *s, unsigned slot)
{
	struct arena *a = &l->arena;

	s->tasks[slot].plan = (struct child_plan){
		.lock = local_path(l, a, "run/%s.%u.lock", s->key, slot),
		.log = task_log(l, s, slot, a),
		.socket = site_socket(l, s, slot, a),
		.question = fastcgi_ping(),
		.answer = STR("pong"),
		.stop_signal = SIGQUIT,
		.log_signal = SIGUSR1,
		.drains = true,
		.mask = 022,
		.args = { l->php_fpm.p, "--nodaemonize", "--fpm-config", pool_file(l, s, slot, a).p, "-d",
		          "opcache.memory_consumption=32", "-d", "opcache.interned_strings_buffer=4", "-d",
		          "opcache.max_accelerated_files=4000", "-d", "opcache.jit=off", "-d",
		          "opcache.jit_buffer_size=0", "-d", "expose_php=off", "-d",
		          str_format(a, "opcache.file_cache=%s", l->code_cache.p).p },
	};
}

static int64_t worker_count(const struct site *s)
{
	int64_t n = s->cpu / CPU_UNITS_OF_WORKER;

	return n < WORKERS_MIN ? WORKERS_MIN : n > WORKERS_MAX ? WORKERS_MAX : n;
}

static struct str pool_text(const struct local *l, const struct site *s, unsigned slot, struct arena *a)
{
	int64_t    mb = s->memory / worker_count(s);
	struct str users =
	        l->is_root
	                ? str_format(
	                          a,
	                          "user = %u\ngroup = %u\nlisten.owner = %u\nlisten.group = %u\nlisten.mode = 0600\n",
	                          (unsigned)s->uid, (unsigned)s->uid, (unsigned)l->web_uid, (unsigned)l->web_gid)
	                : STR("listen.mode = 0600\n");

	return str_format(
	        a,
	        "[global]\nerror_log = %s\nprocess_control_timeout = 10s\nlog_limit = 8192\ndaemonize = no\n"
	        "[%s]\nlisten = %s\nlisten.backlog = 511\n%s"
	        "pm = static\npm.max_children = %lld\npm.max_requests = 2000\nping.path = " FASTCGI_PING_PATH "\n"
	        "access.suppress_path[] = " FASTCGI_PING_PATH "\n"
	        "access.log = %s\naccess.format = \"[%%{%%d-%%b-%%Y %%H:%%M:%%S}t] %%m %%r %%s %%{mili}d ms\"\n"
	        "request_terminate_timeout = 65s\ncatch_workers_output = yes\ndecorate_workers_output = no\nclear_env = yes\n"
	        "php_admin_value[auto_prepend_file] = %s\nphp_admin_value[memory_limit] = %lldM\n"
	        "php_admin_value[sys_temp_dir] = %s\nphp_admin_value[upload_tmp_dir] = %s\nphp_admin_value[session.save_path] = %s\n"
	        "php_admin_value[upload_max_filesize] = 16M\nphp_admin_value[post_max_size] = 17M\n"
	        "php_admin_value[sendmail_path] = /bin/true\nphp_admin_flag[display_errors] = off\nphp_admin_flag[log_errors] = on\n"
	        "php_admin_value[error_log] = \n"
	        "php_admin_value[disable_functions] = " PHP_NO_PROGRAMS "\n",
	        task_log(l, s, slot, a).p, s->key, site_socket(l, s, slot, a).p, users.p, (long long)worker_count(s),
	        task_log(l, s, slot, a).p, local_path(l, a, "pools/%s.php", s->key).p,
	        (long long)(mb < 64              ? 64
	                    : mb > SCRIPT_MB_MAX ? SCRIPT_MB_MAX
	                                         : mb),
	        local_path(l, a, "tmp/%s", s->key).p, local_path(l, a, "tmp/%s", s->key).p,
	        local_path(l, a, "tmp/%s", s->key).p);
}

/* --- the code tree --- */

static enum rc link_code(struct local *l, const struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       root = site_root(l, s, &a);
	DIR                             *code = opendir(WORDPRESS_CODE);
	struct dirent                   *entry;
	enum rc                          rc = code ? RC_OK
	                                           : err_set(e, RC_UNAVAILABLE,
	                                                     "there is no " WORDPRESS_CODE "; scripts/setup instances installs it");

	while (!rc && (entry = readdir(code))) {
		const char *name = entry->d_name;

		if (name[0] == '.' || strcmp(name, "wp-content") == 0 || strcmp(name, "wp-config.php") == 0 ||
		    strcmp(name, "wp-config-sample.php") == 0)
			continue;
		if (symlink(str_format(&a, WORDPRESS_CODE "/%s", name).p, str_format(&a, "%s/%s", root.p, name).p) !=
		            0 &&
		    errno != EEXIST)
			rc = err_set(e, RC_INTERNAL, "cannot link the code of tenant %s: %s", s->tenant,
			             strerror(errno));
	}
	if (code)
		closedir(code);
	return rc;
}

static enum rc unlink_code(struct local *l, const struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       root = site_root(l, s, &a);
	DIR                             *tree = opendir(root.p);
	struct dirent                   *entry;
	enum rc                          rc = RC_OK;

	while (!rc && tree && (entry = readdir(tree)))
		if (strncmp(entry->d_name, ".", 2) != 0 && strncmp(entry->d_name, "..", 3) != 0 &&
		    strncmp(entry->d_name, "wp-content", 10) != 0)
			rc = file_remove(str_format(&a, "%s/%s", root.p, entry->d_name).p, e);
	if (tree)
		closedir(tree);
	(void)rmdir(root.p); /* the storage may be there yet */
	return rc;
}

static void put_define(struct buf *b, const char *name, struct str value)
{
	buf_addf(b, "define('%s', '%.*s');\n", name, STR_ARG(value));
}

/* Nothing in it comes from people: names that we made, and random text without quotes. */
static void put_config(struct local *l, struct site *s, const struct site_secret *secret, struct arena *a,
                       struct buf *b)
{
	static const char *const keys[] = { "AUTH_KEY",  "SECURE_AUTH_KEY",  "LOGGED_IN_KEY",  "NONCE_KEY",
		                            "AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT" };
	struct str               url = site_url(l, s, a), root = site_root(l, s, a);

	buf_add_text(b, "<?php\n");
	put_define(b, "DB_NAME", site_database(s, a));
	put_define(b, "DB_USER", site_user(s, a));
	put_define(b, "DB_PASSWORD", secret->database_password);
	put_define(b, "DB_HOST", str_format(a, "localhost:%s", database_socket(l, a).p));
	put_define(b, "DB_CHARSET", STR("utf8mb4"));
	put_define(b, "DB_COLLATE", STR("utf8mb4_unicode_ci"));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		put_define(b, keys[i], secret->keys[i]);
	put_define(b, "WP_HOME", url);
	put_define(b, "WP_SITEURL", url);
	put_define(b, "WP_CONTENT_DIR", str_format(a, "%s/wp-content", root.p));
	put_define(b, "WP_CONTENT_URL", str_format(a, "%s/wp-content", url.p));
	put_define(b, "FS_METHOD", STR("direct"));
	buf_add_text(b, "define('WP_HTTP_BLOCK_EXTERNAL', true);\ndefine('DISABLE_WP_CRON', true);\n"
	                "define('AUTOMATIC_UPDATER_DISABLED', true);\ndefine('WP_AUTO_UPDATE_CORE', false);\n"
	                "define('DISALLOW_FILE_MODS', true);\ndefine('WP_DEBUG', false);\n$table_prefix = 'wp_';\n"
	                "require_once ABSPATH . 'wp-settings.php';\n");
}

enum rc site_write_config(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	CLEANUP(buf_fini) struct buf     b = BUF(CONFIG_MAX);
	struct site_secret               secret;
	struct str                       root = site_root(l, s, &a);
	enum rc                          rc = secret_read(l, s, &a, &secret, e);

	if (!rc) {
		put_config(l, s, &secret, &a, &b);
		rc = file_write(str_format(&a, "%s/wp-config.php", root.p).p, buf_str(&b),
		                (struct file_owner){ (uid_t)-1, site_gid(l, s), 0640 }, false, e);
	}
	if (!rc)
		rc = file_write(local_path(l, &a, "pools/%s.php", s->key).p,
		                str_format(&a, "<?php\ndefine('ABSPATH', '%s/');\n", root.p), FILE_OF_US(0644), false,
		                e);
	for (unsigned i = 0; !rc && i < INSTANCE_TASKS_MAX; i++)
		rc = file_write(pool_file(l, s, i, &a).p, pool_text(l, s, i, &a), FILE_OF_US(0644), false, e);
	return rc;
}

/* --- the resource --- */

enum rc workers_make(struct local *l, struct site *s, const struct instance_spec *spec UNUSED, struct err *e)
{
	enum rc rc;

	if ((rc = site_needs(s, INSTANCE_STORAGE, e)) || (rc = site_needs(s, INSTANCE_DATABASE, e)) ||
	    (rc = site_needs(s, INSTANCE_SECRET, e)) || (rc = link_code(l, s, e)) || (rc = site_write_config(l, s, e)))
		return rc;
	code_cache_make(l);
	supervise_kick(l);
	return RC_OK;
}

static bool is_quiet(const struct site *s)
{
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
		if (s->tasks[i].state != CHILD_NONE)
			return false;
	return true;
}

enum rc workers_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          until = mono_now().ms + PROGRAM_MS;
	enum rc                          rc = RC_OK;

	pthread_mutex_lock(&l->mutex);
	s->desired = 0;
	supervise_kick(l);
	while (!rc && !is_quiet(s))
		if (!supervise_wait(l, until))
			rc = err_set(e, RC_TIMEOUT, "tasks of tenant %s do not end", s->tenant);
	pthread_mutex_unlock(&l->mutex);
	if (!rc)
		rc = unlink_code(l, s, e);
	for (unsigned i = 0; !rc && i < INSTANCE_TASKS_MAX; i++)
		if (!(rc = file_remove(pool_file(l, s, i, &a).p, e)) &&
		    !(rc = file_remove(task_log(l, s, i, &a).p, e)) &&
		    !(rc = file_remove(str_format(&a, "%s.1", task_log(l, s, i, &a).p).p, e)))
			rc = file_remove(s->tasks[i].plan.lock.p, e);
	if (!rc)
		rc = file_remove(local_path(l, &a, "pools/%s.php", s->key).p, e);
	return rc;
}

enum rc workers_check(struct local *l, struct site *s, bool *ret, struct err *e UNUSED)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct stat                      about;

	*ret = stat(str_format(&a, "%s/wp-config.php", site_root(l, s, &a).p).p, &about) == 0 &&
	       stat(pool_file(l, s, 0, &a).p, &about) == 0 &&
	       stat(str_format(&a, "%s/wp-load.php", site_root(l, s, &a).p).p, &about) == 0;
	return RC_OK;
}

/* --- how many, and how they are --- */

enum rc site_scale(struct local *l, struct site *s, int64_t desired, struct err *e)
{
	enum rc rc;

	if (s->desired == desired)
		return RC_OK;
	pthread_mutex_lock(&l->mutex);
	s->desired = desired;
	pthread_mutex_unlock(&l->mutex);
	rc = site_save(l, s, e);
	supervise_kick(l);
	return rc;
}

enum rc local_scale(struct instance_driver *d, struct str tenant, int64_t desired, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc;

	if (desired < 0 || desired > INSTANCE_TASKS_MAX)
		return err_set(e, RC_INVALID, "%lld tasks are too many or too few: 0 to %d", (long long)desired,
		               INSTANCE_TASKS_MAX);
	if ((rc = site_enter(l, tenant, false, &s, e)) || (rc = site_needs(s, INSTANCE_WORKERS, e)))
		return rc;
	return site_scale(l, s, desired, e);
}

static void show_task(const struct site *s, unsigned slot, struct arena *a, struct instance_tasks *ret)
{
	const struct child *c = &s->tasks[slot];
	bool is_up = c->state == CHILD_UP, is_leaving = c->state == CHILD_DRAINING || c->state == CHILD_STOPPING;

	if (c->state == CHILD_NONE && !c->is_wanted)
		return;
	ret->running += is_up || is_leaving; /* until nothing of it is left */
	ret->pending += !is_up && c->is_wanted;
	ret->is_healthy = ret->is_healthy && (!is_up || c->is_healthy);
	ret->items[ret->count++] = (struct instance_task){ .id = str_format(a, "%s-%u-%d", s->key, slot, (int)c->pid),
		                                           .is_running = is_up || is_leaving,
		                                           .is_healthy = c->is_healthy,
		                                           .started_ms = c->started_ms };
}

/* Of one without workers: none. */
enum rc local_tasks(struct instance_driver *d, struct str tenant, struct arena *a, struct instance_tasks *ret,
                    struct err *e)
{
	struct local *l = local_of(d);
	struct site  *s;
	enum rc       rc;

	*ret = (struct instance_tasks){ .is_healthy = true };
	if ((rc = site_find(l, tenant, &s, e)) || !s)
		return rc;
	LOCKED(&l->mutex);
	ret->desired = s->instance[INSTANCE_WORKERS][0] ? s->desired : 0;
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
		show_task(s, i, a, ret);
	return RC_OK;
}

static bool is_rolled(const struct site *s)
{
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++) {
		const struct child *c = &s->tasks[i];
		bool                is_wanted = (int64_t)i < s->desired;

		if (is_wanted ? c->state != CHILD_UP || c->generation != s->generation : c->state != CHILD_NONE)
			return false;
	}
	return true;
}

enum rc site_roll(struct local *l, struct site *s, struct err *e)
{
	int64_t until = mono_now().ms + ROLL_MS;
	enum rc rc;

	pthread_mutex_lock(&l->mutex);
	s->generation++;
	pthread_mutex_unlock(&l->mutex);
	if ((rc = site_save(l, s, e)))
		return rc;
	supervise_kick(l);
	pthread_mutex_lock(&l->mutex);
	while (!rc && !is_rolled(s))
		if (!supervise_wait(l, until))
			rc = err_set(e, RC_TIMEOUT, "not all tasks of tenant %s are replaced yet", s->tenant);
	pthread_mutex_unlock(&l->mutex);
	return rc;
}

/* Both passwords are good while tasks are replaced, so no request fails. */
enum rc local_rotate(struct instance_driver *d, struct str tenant, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(arena_fini) struct arena  a = { 0 };
	CLEANUP(site_leavep) struct site *s = NULL;
	struct site_secret                secret;
	struct str                        old;
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc || (rc = site_needs(s, INSTANCE_WORKERS, e)) || (rc = secret_read(l, s, &a, &secret, e)))
		return rc;
	old = secret.database_password;
	secret.database_password = password_new(&a);
	if ((rc = database_set_password(l, s, old, secret.database_password, e)) ||
	    (rc = secret_write(l, s, &secret, e)) || (rc = site_write_config(l, s, e)) || (rc = site_roll(l, s, e)))
		return rc;
	return database_set_password(l, s, STR(""), secret.database_password, e);
}

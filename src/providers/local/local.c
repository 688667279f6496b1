/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local.c - opens and closes the driver; the port's calls that are the same for all resources.
 *
 * The folder:
 *   tenants/     what there is of each tenant (sites.c)          secrets/    encrypted by master.key (secret.c)
 *   www/tenant/  the sites: code by links, wp-content (storage.c, workers.c)
 *   mariadb/     the database (database.c)                        nginx/, routes/   the router (route.c)
 *   pools/       php-fpm's settings (workers.c)                   identity/   pools of people (identity.c)
 *   run/         locks of the children (child.c)                  s/          sockets, with short names
 *   archives/    (archive.c)                                      cache/     WordPress, compiled (php.c)
 *   log/, tmp/, php/
 */
#include "providers/local/local.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum { VERSION_FILE_MAX = 65536 };

/* --- create, check, delete: a row each --- */

static const struct {
	resource_make_fn  *make;
	resource_fn       *remove;
	resource_check_fn *check;
} resources[INSTANCE_RESOURCE_COUNT] = {
	[INSTANCE_STORAGE] = { storage_make, storage_remove, storage_check },
	[INSTANCE_DATABASE] = { database_make, database_remove, database_check },
	[INSTANCE_SECRET] = { secret_make, secret_remove, secret_check },
	[INSTANCE_ROUTE] = { route_make, route_remove, route_check },
	[INSTANCE_WORKERS] = { workers_make, workers_remove, workers_check },
	[INSTANCE_IDENTITY] = { identity_make, identity_remove, identity_check },
};

static struct str outputs_of(struct local *l, struct site *s, enum instance_resource kind, struct arena *a)
{
	struct str id = str_format(a, "%s/%s", instance_resource_names[kind], s->tenant), name = str_from(s->tenant);
	struct str endpoint = STR("");

	switch (kind) {
	case INSTANCE_STORAGE: name = local_path(l, a, "www/tenant/%s/wp-content", s->tenant); break;
	case INSTANCE_DATABASE: name = site_database(s, a); break;
	case INSTANCE_ROUTE:
		name = str_format(a, "/tenant/%s/", s->tenant);
		endpoint = str_format(a, "%s/", site_url(l, s, a).p);
		break;
	case INSTANCE_IDENTITY: endpoint = identity_issuer(l, s, a); break;
	default: break;
	}
	return JSON_OF(a, member_str("id", id), member_str("name", name), member_word("instance", s->instance[kind]),
	               member_if_any(member_str("endpoint", endpoint)),
	               member_if(kind == INSTANCE_DATABASE, member_str("user", site_user(s, a))));
}

static enum rc check_spec(const struct local *l, const struct instance_spec *spec, struct err *e)
{
	struct str v = spec->wordpress_version, rest = l->wordpress, major = str_cut(&rest, '.'),
	           minor = str_cut(&rest, '.');
	struct str short_version = str_of(major.p, (size_t)(minor.p + minor.n - major.p));

	if (spec->instance.n == 0 || spec->instance.n > TENANT_MAX || str_has_control(spec->instance))
		return err_set(e, RC_INVALID, "an instance's id has 1 to %d bytes", TENANT_MAX);
	if (v.n && !str_eq(v, STR("latest")) && !str_eq(v, l->wordpress) && !str_eq(v, short_version))
		return err_set_code(e, RC_INVALID, "VERSION_NOT_OFFERED",
		                    "WordPress %.*s is not installed; this machine has %.*s",
		                    (int)(v.n < 20 ? v.n : 20), v.p, STR_ARG(l->wordpress));
	if (spec->desired_count < 0 || spec->desired_count > INSTANCE_TASKS_MAX)
		return err_set(e, RC_INVALID, "%lld tasks are too many or too few: 0 to %d",
		               (long long)spec->desired_count, INSTANCE_TASKS_MAX);
	return RC_OK;
}

/* Removes all of it, then strikes it out. */
static enum rc unmake(struct local *l, struct site *s, enum instance_resource kind, struct err *e)
{
	enum rc rc = kind == INSTANCE_DATABASE ? site_set_installed(l, s, false, e) : RC_OK;

	if (rc || (rc = resources[kind].remove(l, s, e)))
		return rc;
	pthread_mutex_lock(&l->mutex);
	s->instance[kind][0] = '\0';
	pthread_mutex_unlock(&l->mutex);
	return site_save(l, s, e);
}

/* A complete resource stays with its instance; one that was begun for another instance and never completed makes
 * room. */
static enum rc make_room(struct local *l, struct site *s, enum instance_resource kind, struct err *e)
{
	bool    exists = false;
	enum rc rc = resources[kind].check(l, s, &exists, e);

	if (!rc && exists)
		return err_set(e, RC_CONFLICT, "tenant %s has the %s of another instance, %s", s->tenant,
		               instance_resource_names[kind], s->instance[kind]);
	return rc ? rc : unmake(l, s, kind, e);
}

/* Writes down that it is to be: before anything of it is made. */
static enum rc claim(struct local *l, struct site *s, const struct instance_spec *spec, enum instance_resource kind,
                     struct err *e)
{
	char   *owner = s->instance[kind];
	enum rc rc;

	if (str_eq(str_from(owner), spec->instance))
		return RC_OK;
	if (owner[0] && (rc = make_room(l, s, kind, e)))
		return rc;
	if (!s->uid && l->is_root && (rc = site_take_uid(l, s, e)))
		return rc;
	pthread_mutex_lock(&l->mutex);
	snprintf(owner, sizeof(s->instance[kind]), "%.*s", STR_ARG(spec->instance));
	if (kind == INSTANCE_WORKERS) {
		s->desired = 0; /* until the code is there */
		s->cpu = spec->cpu_units > 0 ? spec->cpu_units : s->cpu;
		s->memory = spec->memory_mb > 0 ? spec->memory_mb : s->memory;
	}
	pthread_mutex_unlock(&l->mutex);
	return site_save(l, s, e);
}

static enum rc local_create(struct instance_driver *d, const struct instance_spec *spec, enum instance_resource kind,
                            struct arena *a, struct str *ret_outputs, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	bool                              is_new;
	enum rc                           rc = check_spec(l, spec, e);

	if (rc || (rc = site_enter(l, spec->tenant, true, &s, e)))
		return rc;
	is_new = !s->instance[kind][0];
	if (!(rc = claim(l, s, spec, kind, e)) && (rc = resources[kind].make(l, s, spec, e)) && is_new)
		rc_ignore(unmake(l, s, kind, NULL)); /* what stays is in the list */
	if (!rc && kind == INSTANCE_WORKERS)
		rc = site_scale(l, s, spec->desired_count, e);
	if (!rc)
		*ret_outputs = outputs_of(l, s, kind, a);
	return rc;
}

static enum rc local_check(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct arena *a,
                           bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	*ret_exists = false;
	*ret_outputs = STR("");
	if (rc)
		return err_forgive(e, rc, RC_NOT_FOUND);
	if (s->instance[kind][0] && !(rc = resources[kind].check(l, s, ret_exists, e)) && *ret_exists)
		*ret_outputs = outputs_of(l, s, kind, a);
	return rc;
}

static enum rc local_delete(struct instance_driver *d, struct str tenant, enum instance_resource kind, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc)
		return err_forgive(e, rc, RC_NOT_FOUND);
	if (s->instance[kind][0])
		rc = unmake(l, s, kind, e);
	return err_wrap(e, rc, "%s of tenant %.*s", instance_resource_names[kind], STR_ARG(tenant));
}

static enum rc local_set_route(struct instance_driver *d, struct str tenant, enum instance_route to, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc || (rc = site_needs(s, INSTANCE_ROUTE, e)))
		return rc;
	return s->route == to ? router_start(l, e) : route_set(l, s, to, e);
}

static enum rc local_get_secret(struct instance_driver *d, struct str tenant, struct arena *a, struct str *ret_user,
                                struct str *ret_password, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	struct site_secret                secret;
	enum rc                           rc = site_enter(l, tenant, false, &s, e);

	if (rc || (rc = secret_read(l, s, a, &secret, e)))
		return rc;
	*ret_user = secret.admin_user;
	*ret_password = secret.admin_password;
	return RC_OK;
}

static enum rc local_list(struct instance_driver *d, struct arena *a, struct instance_thing **ret, size_t *ret_count,
                          struct err *e UNUSED)
{
	struct local *l = local_of(d);
	size_t        count = 0, n = 0;

	LOCKED(&l->mutex);
	for (struct site *s = l->sites; s; s = s->next)
		count++;
	*ret = arena_alloc(a, (count * INSTANCE_RESOURCE_COUNT + 1) * sizeof(**ret));
	for (struct site *s = l->sites; s; s = s->next)
		for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++)
			if (s->instance[i][0])
				(*ret)[n++] = (struct instance_thing){ .tenant = str_dup(a, str_from(s->tenant)),
					                               .instance = str_dup(a, str_from(s->instance[i])),
					                               .kind = (enum instance_resource)i };
	*ret_count = n;
	return RC_OK;
}

static const struct instance_driver_ops local_ops = {
	.name = "local",
	.create = local_create,
	.check = local_check,
	.delete = local_delete,
	.scale = local_scale,
	.tasks = local_tasks,
	.set_route = local_set_route,
	.configure = local_configure,
	.archive = local_archive,
	.restore = local_restore,
	.drop_archive = local_drop_archive,
	.rotate = local_rotate,
	.get_secret = local_get_secret,
	.add_person = local_add_person,
	.people = local_people,
	.remove_person = local_remove_person,
	.logs = local_logs,
	.list = local_list,
};

/* --- opening --- */

/* What Debian's packages bring. */
static enum rc find_programs(struct local *l, struct err *e)
{
	static const char *const needed[] = {
		"/usr/sbin/mariadbd", "/usr/bin/mariadb", "/usr/bin/mariadb-dump",      "/usr/bin/mariadb-install-db",
		"/usr/sbin/nginx",    "/usr/bin/php",     WORDPRESS_CODE "/wp-load.php"
	};
	glob_t found;

	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (access(needed[i], R_OK) != 0)
			return err_set(e, RC_INVALID, "%s is not there; do: scripts/setup instances", needed[i]);
	if (glob("/usr/sbin/php-fpm[0-9]*", 0, NULL, &found) != 0)
		return err_set(e, RC_INVALID, "there is no /usr/sbin/php-fpm; do: scripts/setup instances");
	l->php_fpm = str_dup(&l->arena, str_from(found.gl_pathv[found.gl_pathc - 1]));
	l->ops.php = l->php_fpm.p + sizeof("/usr/sbin/php-fpm") - 1;
	globfree(&found);
	return RC_OK;
}

static enum rc find_version(struct local *l, struct err *e)
{
	static const char                mark[] = "$wp_version = '";
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       text = STR(""), version = STR(""), rest, major;
	enum rc     rc = file_read(WORDPRESS_CODE "/wp-includes/version.php", VERSION_FILE_MAX, &a, &text, e);
	const char *at = rc ? NULL : strstr(text.p, mark);

	if (at) {
		rest = str_from(at + sizeof(mark) - 1);
		version = str_cut(&rest, '\'');
	}
	if (!rc && (version.n == 0 || version.n > 20))
		rc = err_set(e, RC_INVALID, "the version of WordPress in " WORDPRESS_CODE " cannot be found");
	if (!rc) {
		l->wordpress = str_dup(&l->arena, version);
		rest = l->wordpress;
		major = str_cut(&rest, '.');
		l->ops.versions = str_format(&l->arena, "%.*s.%.*s %.*s", STR_ARG(major), (int)strcspn(rest.p, "."),
		                             rest.p, STR_ARG(l->wordpress))
		                          .p;
	}
	return rc;
}

static enum rc find_users(struct local *l, struct err *e)
{
	struct passwd *self = getpwuid(geteuid()), *web, *database;

	if (!self)
		return err_set(e, RC_INVALID, "the user that runs this has no name, which the database needs");
	l->user = str_dup(&l->arena, str_from(self->pw_name));
	l->is_root = geteuid() == 0;
	if (!l->is_root)
		return RC_OK;
	web = getpwnam("www-data");
	if (!web)
		return err_set(e, RC_INVALID, "there is no user www-data");
	l->web_uid = web->pw_uid;
	l->web_gid = web->pw_gid;
	database = getpwnam("mysql");
	if (!database)
		return err_set(e, RC_INVALID, "there is no user mysql; do: scripts/setup instances");
	l->database_uid = database->pw_uid;
	l->database_gid = database->pw_gid;
	return RC_OK;
}

/* As root, the users of nginx, of the database and of the tenants must be able to get there. */
static enum rc check_reach(const struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = RC_OK;

	for (size_t i = 1; l->is_root && !rc && i < l->folder.n; i++) {
		struct str  parent = str_format(&a, "%.*s", (int)i, l->folder.p);
		struct stat about;

		if (l->folder.p[i] == '/' && (stat(parent.p, &about) != 0 || !(about.st_mode & S_IXOTH)))
			rc = err_set(
			        e, RC_INVALID,
			        "tenants' users cannot reach %s, since %s is closed to them; do: chmod o+x %s, or name another folder",
			        l->folder.p, parent.p, parent.p);
	}
	return rc;
}

static enum rc make_folders(struct local *l, struct err *e)
{
	static const struct {
		const char *name;
		mode_t      mode;
	} rows[] = { { "", 0711 },           { "tenants", 0700 }, { "secrets", 0700 }, { "www", 0711 },
		     { "www/tenant", 0711 }, { "nginx", 0711 },   { "routes", 0700 },  { "pools", 0711 },
		     { "identity", 0711 },   { "run", 0700 },     { "cache", 0711 },   { "s", 0711 },
		     { "archives", 0700 },   { "log", 0700 },     { "tmp", 0711 },     { "php", 0711 } };
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc = RC_OK;

	for (size_t i = 0; !rc && i < ARRAY_LEN(rows); i++)
		rc = folder_make(local_path(l, &a, "%s", rows[i].name).p, FILE_OF_US(rows[i].mode), e);
	return rc;
}

static enum rc take_folder(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct flock                     whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	struct str                       path = local_path(l, &a, "lock");
	enum rc                          rc = RC_OK;

	l->lock = open(path.p, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (l->lock < 0)
		rc = err_set(e, RC_UNAVAILABLE, "cannot open %s: %s", path.p, strerror(errno));
	else if (fcntl(l->lock, F_OFD_SETLK, &whole) != 0)
		rc = err_set(e, RC_CONFLICT, "another process has the folder %s", l->folder.p);
	return rc;
}

/* Is it the lock of a child that we know? */
static bool is_ours(struct local *l, struct str path)
{
	if (str_eq(path, l->router_child.plan.lock) || str_eq(path, l->database.plan.lock) ||
	    str_eq(path, l->identity.plan.lock))
		return true;
	for (struct site *s = l->sites; s; s = s->next)
		for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
			if (str_eq(path, s->tasks[i].plan.lock))
				return true;
	return false;
}

static bool has_any(const struct local *l, enum instance_resource kind)
{
	for (const struct site *s = l->sites; s; s = s->next)
		if (s->instance[kind][0])
			return true;
	return false;
}

/* Takes over children of the process before; kills those whose sites no longer exist. */
static void adopt(struct local *l)
{
	const struct {
		struct child          *child;
		enum instance_resource serves;
	} servers[] = { { &l->router_child, INSTANCE_ROUTE },
		        { &l->identity, INSTANCE_IDENTITY },
		        { &l->database, INSTANCE_DATABASE } };
	CLEANUP(arena_fini) struct arena a = { 0 };
	DIR                             *locks = opendir(local_path(l, &a, "run").p);
	struct dirent                   *entry;

	while (locks && (entry = readdir(locks))) {
		struct str path = local_path(l, &a, "run/%s", entry->d_name);

		if (entry->d_name[0] != '.' && !is_ours(l, path)) {
			child_kill_stranger(path.p);
			(void)unlink(path.p); /* looked at again at the next start */
		}
	}
	if (locks)
		closedir(locks);
	for (struct site *s = l->sites; s; s = s->next)
		for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
			child_adopt(&s->tasks[i]);
	for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
		child_adopt(servers[i].child);
		servers[i].child->is_wanted = has_any(l, servers[i].serves);
	}
}

/* The servers that the sites need. */
static enum rc start_servers(struct local *l, struct err *e)
{
	enum rc rc = RC_OK;

	if (has_any(l, INSTANCE_DATABASE))
		rc = database_start(l, e);
	if (!rc && has_any(l, INSTANCE_ROUTE))
		rc = routes_restore(l, e);
	if (!rc && has_any(l, INSTANCE_IDENTITY))
		rc = identity_start(l, e);
	return rc;
}

/* It becomes a line of nginx's settings. */
static bool is_address(const char *text)
{
	const char *port = text ? strrchr(text, ':') : NULL;
	int64_t     number;

	return port && port != text && strlen(text) < 128 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:[]") == strlen(text) &&
	       str_to_int(str_from(port + 1), 1, 65535, &number);
}

static enum rc start(struct local *l, const struct local_options *o, struct err *e)
{
	enum rc rc;

	if (!is_address(o->router))
		return err_set(e, RC_INVALID, "the router of instances must be ADDRESS:PORT, such as 127.0.0.1:8081");
	if (!o->folder || o->folder[0] != '/' || strlen(o->folder) > LOCAL_FOLDER_MAX ||
	    strpbrk(o->folder, " \t\n'\"\\;{}$*?#"))
		return err_set(
		        e, RC_INVALID,
		        "the folder of instances must be an absolute path of at most %d bytes, without blanks and quotes",
		        LOCAL_FOLDER_MAX);
	l->folder = str_dup(&l->arena, str_from(o->folder));
	l->router = str_dup(&l->arena, str_from(o->router));
	l->origin = o->origin ? str_dup(&l->arena, str_from(o->origin)) : str_format(&l->arena, "http://%s", o->router);
	if ((rc = find_programs(l, e)) || (rc = find_version(l, e)) || (rc = find_users(l, e)) ||
	    (rc = make_folders(l, e)) || (rc = check_reach(l, e)) || (rc = take_folder(l, e)) ||
	    (rc = secrets_open(l, e)) || (rc = php_write(l, e)) || (rc = code_cache_open(l, e)) ||
	    (rc = router_write(l, e)) || (rc = identity_write(l, e)) || (rc = sites_load(l, e)))
		return rc;
	database_plan(l);
	adopt(l);
	if ((rc = supervise_start(l, e)))
		return rc;
	return start_servers(l, e);
}

enum rc local_open(const struct local_options *o, struct local **ret, struct err *e)
{
	struct local *l = mem_new(struct local);
	enum rc       rc;

	l->ops = local_ops;
	l->driver.ops = &l->ops;
	l->lock = -1;
	l->database.pidfd = l->router_child.pidfd = l->identity.pidfd = -1;
	cond_init(&l->changed);
	pthread_mutex_init(&l->mutex, NULL);
	pthread_mutex_init(&l->route_mutex, NULL);
	pthread_mutex_init(&l->uid_mutex, NULL);
	rc = start(l, o, e);
	if (rc) {
		local_close(l);
		return rc;
	}
	*ret = l;
	return RC_OK;
}

void local_close(struct local *l)
{
	if (!l)
		return;
	supervise_stop(l);
	for (struct site *s = l->sites, *next; s; s = next) {
		next = s->next;
		pthread_mutex_destroy(&s->busy);
		free(s);
	}
	if (l->lock >= 0)
		close(l->lock);
	pthread_mutex_destroy(&l->mutex);
	pthread_mutex_destroy(&l->route_mutex);
	pthread_mutex_destroy(&l->uid_mutex);
	pthread_cond_destroy(&l->changed);
	arena_fini(&l->arena);
	free(l);
}

void local_close_driver(struct instance_driver *d)
{
	local_close(local_of(d));
}

struct instance_driver *local_driver(struct local *l)
{
	return &l->driver;
}

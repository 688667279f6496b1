/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sites.c - the list of tenants' sites, in memory and as files; names made of a tenant's id.
 *
 * Always true: a resource is written down before anything of it is made, and struck out when nothing of it is left. So
 * the files name everything that there may be.
 */
#include <dirent.h>
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/mem.h"
#include "domain/instance.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum { SITE_FILE_MAX = 16384, NAME_PART_MAX = 16, HASH_PART = 8 };

/* --- names --- */

struct str local_path(const struct local *l, struct arena *a, const char *fmt, ...)
{
	struct str below;
	va_list    args;

	va_start(args, fmt);
	below = str_vformat(a, fmt, args);
	va_end(args);
	return str_format(a, "%.*s/%.*s", STR_ARG(l->folder), STR_ARG(below));
}

struct str site_root(const struct local *l, const struct site *s, struct arena *a)
{
	return local_path(l, a, "www/tenant/%s", s->tenant);
}

struct str site_socket(const struct local *l, const struct site *s, unsigned slot, struct arena *a)
{
	return local_path(l, a, "s/%s.%u", s->key, slot);
}

struct str database_socket(const struct local *l, struct arena *a)
{
	return local_path(l, a, "mariadb/sock");
}

struct str site_url(const struct local *l, const struct site *s, struct arena *a)
{
	return str_format(a, "%.*s/tenant/%s", STR_ARG(l->origin), s->tenant);
}

/* tenant_PART_HASH: of ids that begin alike, or differ only in the prefix, each has its own; MySQL's 32 bytes are
 * enough. */
struct str site_user(const struct site *s, struct arena *a)
{
	struct str id = str_from(s->tenant);
	char       part[NAME_PART_MAX + 1];
	size_t     n = 0;

	(void)str_cut_prefix(&id, STR("tenant-"));
	for (; n < id.n && n < NAME_PART_MAX; n++)
		part[n] = id.p[n] == '-' ? '_' : id.p[n];
	part[n] = '\0';
	return str_format(a, "tenant_%s_%.*s", part, HASH_PART, s->key);
}

struct str site_database(const struct site *s, struct arena *a)
{
	struct str user = site_user(s, a);

	return str_format(a, "%.*s_db", STR_ARG(user));
}

gid_t site_gid(const struct local *l, const struct site *s)
{
	return l->is_root ? (gid_t)s->uid : getegid();
}

struct file_owner site_owner(const struct local *l, const struct site *s, mode_t mode)
{
	return l->is_root ? (struct file_owner){ s->uid, (gid_t)s->uid, mode } : FILE_OF_US(mode);
}

/* --- the file --- */

static struct str site_file(const struct local *l, const struct site *s, struct arena *a)
{
	return local_path(l, a, "tenants/%s.json", s->tenant);
}

static struct str site_json(const struct site *s, struct arena *a)
{
	struct json_member owners[INSTANCE_RESOURCE_COUNT];

	for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++)
		owners[i] = member_if_any(member_word(instance_resource_names[i], s->instance[i]));
	return JSON_OF(a, member_word("tenant", s->tenant), member_int("uid", s->uid),
	               member_int("desired", s->desired), member_int("cpu", s->cpu), member_int("memory", s->memory),
	               member_int("generation", s->generation), member_int("route", s->route),
	               member_int("installed", s->is_installed),
	               member_raw("resources", json_of(a, owners, ARRAY_LEN(owners))));
}

static bool is_empty(const struct site *s)
{
	for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++)
		if (s->instance[i][0])
			return false;
	return true;
}

enum rc site_save(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       path = site_file(l, s, &a);
	enum rc rc = is_empty(s) ? file_remove(path.p, e) : file_write(path.p, site_json(s, &a), FILE_OURS, true, e);

	if (is_empty(s) && !rc)
		s->uid = 0; /* another, should the tenant come back */
	return rc;
}

enum rc site_set_installed(struct local *l, struct site *s, bool is_installed, struct err *e)
{
	bool    before = s->is_installed;
	enum rc rc = RC_OK;

	s->is_installed = is_installed;
	if (before != is_installed && (rc = site_save(l, s, e)))
		s->is_installed = before; /* never more than what the file says */
	return rc;
}

static bool read_site(struct site *s, const json_t *o)
{
	const json_t *owners = json_object_get(o, "resources");
	int64_t       uid, route, installed;
	struct str    text;

	if (!json_get_number(o, "uid", 0, &uid) || !json_get_number(o, "desired", 0, &s->desired) ||
	    !json_get_number(o, "cpu", 512, &s->cpu) || !json_get_number(o, "memory", 1024, &s->memory) ||
	    !json_get_number(o, "generation", 1, &s->generation) || !json_get_number(o, "route", 0, &route) ||
	    !json_get_number(o, "installed", 1, &installed) || /* what was made before we kept it is not emptied */
	    uid < 0 || uid > UID_LAST || route < 0 || route > ROUTE_PARKED || s->desired < 0 ||
	    s->desired > INSTANCE_TASKS_MAX)
		return false;
	s->uid = (uid_t)uid;
	s->route = (enum instance_route)route;
	s->is_installed = installed;
	for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++) {
		if (!json_get_text(owners, instance_resource_names[i], &text) || text.n > TENANT_MAX)
			return false;
		snprintf(s->instance[i], sizeof(s->instance[i]), "%.*s", STR_ARG(text));
	}
	return true;
}

/* --- the list --- */

static struct site *find(struct local *l, struct str tenant)
{
	for (struct site *s = l->sites; s; s = s->next)
		if (str_eq(str_from(s->tenant), tenant))
			return s;
	return NULL;
}

static struct site *add(struct local *l, struct str tenant)
{
	struct site *s = mem_new(struct site);

	snprintf(s->tenant, sizeof(s->tenant), "%.*s", STR_ARG(tenant));
	snprintf(s->key, sizeof(s->key), "%.*s", KEY_SIZE - 1, hash_sha256_hex(&l->arena, tenant).p);
	pthread_mutex_init(&s->busy, NULL);
	s->generation = 1;
	s->cpu = 512;
	s->memory = 1024;
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++) {
		s->tasks[i].pidfd = -1;
		workers_plan(l, s, i);
	}
	s->next = l->sites;
	l->sites = s;
	return s;
}

static enum rc load_site(struct local *l, struct str tenant, struct err *e)
{
	CLEANUP(json_freep) json_t      *o = NULL;
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site                     *s = add(l, tenant);
	struct str                       text;
	enum rc                          rc = file_read(site_file(l, s, &a).p, SITE_FILE_MAX, &a, &text, e);

	if (!rc && (json_parse(text, &o, NULL) || !read_site(s, o)))
		rc = err_set(e, RC_CORRUPT, "the file of tenant %s makes no sense: %s", s->tenant,
		             site_file(l, s, &a).p);
	return rc;
}

enum rc sites_load(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	DIR                             *files = opendir(local_path(l, &a, "tenants").p);
	struct dirent                   *file;
	enum rc                          rc = RC_OK;

	if (!files)
		return err_set(e, RC_UNAVAILABLE, "the folder of tenants cannot be read: %s", strerror(errno));
	while (!rc && (file = readdir(files))) {
		struct str name = str_from(file->d_name);

		if (str_ends_with(name, STR(".json")) && tenant_id_is_ok(str_of(name.p, name.n - 5)))
			rc = load_site(l, str_of(name.p, name.n - 5), e);
	}
	closedir(files);
	return rc;
}

/* The next free one, never one that a tenant had before. */
enum rc site_take_uid(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       path = local_path(l, &a, "next-uid"), text = STR("");
	int64_t                          uid = UID_FIRST;
	enum rc                          rc = RC_OK;

	LOCKED(&l->uid_mutex);
	if (!file_read(path.p, 32, &a, &text, NULL) && !str_to_int(text, UID_FIRST, UID_LAST + 1, &uid))
		rc = err_set(e, RC_CORRUPT, "%s has no user id in it", path.p);
	while (!rc && uid <= UID_LAST && getpwuid((uid_t)uid))
		uid++;
	if (!rc && uid > UID_LAST)
		rc = err_set(e, RC_UNAVAILABLE, "all user ids up to %d are used", UID_LAST);
	if (!rc && !(rc = file_write(path.p, str_format(&a, "%lld", (long long)uid + 1), FILE_OURS, true, e)))
		s->uid = (uid_t)uid;
	return rc;
}

static enum rc check_tenant(struct str tenant, struct err *e)
{
	if (tenant_id_is_ok(tenant))
		return RC_OK;
	return err_set(e, RC_INVALID,
	               "'%.*s' is no id of a tenant: it must have 3 to %d of a-z, 0-9 and -, and not begin with -",
	               (int)(tenant.n < 80 ? tenant.n : 80), tenant.p ? tenant.p : "", TENANT_MAX);
}

enum rc site_find(struct local *l, struct str tenant, struct site **ret, struct err *e)
{
	LOCKED(&l->mutex);
	*ret = find(l, tenant);
	return check_tenant(tenant, e);
}

enum rc site_enter(struct local *l, struct str tenant, bool makes, struct site **ret, struct err *e)
{
	struct site *s;
	enum rc      rc = check_tenant(tenant, e);

	if (rc)
		return rc;
	pthread_mutex_lock(&l->mutex);
	s = find(l, tenant);
	if (!s && makes)
		s = add(l, tenant);
	pthread_mutex_unlock(&l->mutex);
	if (!s)
		return err_set(e, RC_NOT_FOUND, "there is nothing of tenant %.*s", STR_ARG(tenant));
	pthread_mutex_lock(&s->busy);
	if (!makes && is_empty(s)) {
		pthread_mutex_unlock(&s->busy);
		return err_set(e, RC_NOT_FOUND, "there is nothing of tenant %.*s", STR_ARG(tenant));
	}
	*ret = s;
	return RC_OK;
}

void site_leavep(struct site **s)
{
	if (*s)
		pthread_mutex_unlock(&(*s)->busy);
}

enum rc site_needs(const struct site *s, enum instance_resource kind, struct err *e)
{
	return s->instance[kind][0]
	               ? RC_OK
	               : err_set(e, RC_NOT_FOUND, "tenant %s has no %s", s->tenant, instance_resource_names[kind]);
}

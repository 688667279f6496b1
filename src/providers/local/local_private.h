/* local_private.h - what the files of the local driver share. */
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "domain/ports/instance.h"
#include "providers/local/child.h"
#include "providers/local/local.h"

enum {
	TENANT_MAX = 63,
	KEY_SIZE = 13, /* 12 hexadecimal digits of the tenant's hash, and a NUL */
	ARCHIVE_NAME_MAX = 127,
	UID_FIRST = 40000, /* of tenants; below 65536, so that user namespaces have them */
	UID_LAST = 59999,
	PROGRAM_MS = 60000, /* of a program that is waited for */
	DATA_MS = 600000,   /* of one that goes through all of a tenant's data */
};

#define WORDPRESS_CODE "/usr/share/wordpress"

/* A tenant's site: what of it there is, or is to be. Stored in tenants/TENANT.json before anything of it is made, and
 * until nothing of it is left. */
struct site {
	struct site    *next;
	pthread_mutex_t busy; /* one operation at a time */
	char            tenant[TENANT_MAX + 1], key[KEY_SIZE];
	char    instance[INSTANCE_RESOURCE_COUNT][TENANT_MAX + 1]; /* whose each resource is; empty: there is none */
	uid_t   uid;
	bool    is_installed; /* its database holds all of WordPress, not what a killed attempt left */
	int64_t desired, cpu, memory;
	int64_t generation; /* of the tasks' settings; tasks of an older one are replaced */
	enum instance_route route;
	struct child        tasks[INSTANCE_TASKS_MAX];
};

struct local {
	struct instance_driver     driver;
	struct instance_driver_ops ops;
	struct arena               arena; /* of the texts below */
	struct str                 folder, router, origin;
	struct str                 user;                  /* who we are: the database's administrator */
	struct str                 code_cache;            /* folder of compiled code */
	struct str                 php_fpm, wordpress;    /* a path; a version such as 6.1.9 */
	bool                       is_root, has_database; /* its folder was made */
	uid_t                      web_uid, database_uid;
	gid_t                      web_gid, database_gid;
	int                        lock; /* of the folder */
	unsigned char              master_key[32];

	pthread_mutex_t mutex; /* of the sites' list and of all children */
	pthread_cond_t  changed;
	struct site    *sites; /* none leaves before the end */
	struct child    database, router_child, identity;
	pthread_t       thread;
	int             kick; /* wakes the thread */
	bool            is_closing, has_thread;

	pthread_mutex_t route_mutex, uid_mutex;
	int64_t         route_generation; /* of nginx's settings */
};

static inline struct local *local_of(struct instance_driver *d)
{
	return CONTAINER_OF(d, struct local, driver);
}

/* --- paths: below the folder, in the arena --- */

struct str local_path(const struct local *l, struct arena *a, const char *fmt, ...) PRINTF_LIKE(3, 4);
struct str site_root(const struct local *l, const struct site *s,
                     struct arena *a); /* the code tree; wp-content is in it */
struct str site_socket(const struct local *l, const struct site *s, unsigned slot, struct arena *a);
struct str database_socket(const struct local *l, struct arena *a);
struct str site_database(const struct site *s, struct arena *a); /* names of at most 35 and 32 bytes */
struct str site_user(const struct site *s, struct arena *a);
struct str site_url(const struct local *l, const struct site *s, struct arena *a); /* without a slash at its end */

/* --- sites.c --- */

/* RC_INVALID: no id of a tenant. RC_NOT_FOUND: none of it. Locked for as long as the
 * variable lives: CLEANUP(site_leavep), NULL at first. */
MUST_CHECK enum rc site_enter(struct local *l, struct str tenant, bool makes, struct site **ret, struct err *e);
void               site_leavep(struct site **s);
/* To look at, not locked; NULL: there is none. */
MUST_CHECK enum rc site_find(struct local *l, struct str tenant, struct site **ret, struct err *e);
MUST_CHECK enum rc site_save(struct local *l, struct site *s, struct err *e); /* removes it when it has no resource */
MUST_CHECK enum rc site_set_installed(struct local *l, struct site *s, bool is_installed, struct err *e);
MUST_CHECK enum rc sites_load(struct local *l, struct err *e);
MUST_CHECK enum rc site_needs(const struct site *s, enum instance_resource kind, struct err *e);
MUST_CHECK enum rc site_take_uid(struct local *l, struct site *s, struct err *e);
gid_t              site_gid(const struct local *l, const struct site *s);
/* As the tenant's own; where we are not root, as ours. */
struct file_owner  site_owner(const struct local *l, const struct site *s, mode_t mode);
MUST_CHECK enum rc site_scale(struct local *l, struct site *s, int64_t desired, struct err *e);

/* --- the resources --- */

typedef enum rc   resource_make_fn(struct local *l, struct site *s, const struct instance_spec *spec, struct err *e);
typedef enum rc   resource_fn(struct local *l, struct site *s, struct err *e);
typedef enum rc   resource_check_fn(struct local *l, struct site *s, bool *ret, struct err *e);
resource_make_fn  storage_make, database_make, secret_make, route_make, workers_make, identity_make;
resource_fn       database_empty;
resource_fn       storage_remove, database_remove, secret_remove, route_remove, workers_remove, identity_remove;
resource_check_fn storage_check, database_check, secret_check, route_check, workers_check, identity_check;

/* --- database.c --- */

/* Runs statements in the site's database, as the site's user, who can do no more than the tenant. */
MUST_CHECK enum rc database_run_as(struct local *l, const struct site *s, struct str sql, struct arena *a,
                                   struct err *e);

/* The client program for that, with its password in the environment; texts are in the arena. Starts the server. */
struct database_client {
	const char *args[8], *env[3];
};
MUST_CHECK enum rc database_client(struct local *l, const struct site *s, struct arena *a, struct database_client *ret,
                                   struct err *e);
/* The password of the site's user from now on; both of them while `old` is not empty. */
MUST_CHECK enum rc database_set_password(struct local *l, struct site *s, struct str old, struct str password,
                                         struct err *e);
MUST_CHECK enum rc database_start(struct local *l, struct err *e);
void               database_plan(struct local *l);

/* --- secret.c --- */

struct site_secret {
	struct str database_password, admin_user, admin_password, client_id, client_secret;
	struct str keys[8];
};
MUST_CHECK enum rc secrets_open(struct local *l, struct err *e);
MUST_CHECK enum rc secret_read(struct local *l, const struct site *s, struct arena *a, struct site_secret *ret,
                               struct err *e);
MUST_CHECK enum rc secret_write(struct local *l, const struct site *s, const struct site_secret *from, struct err *e);

/* --- workers.c --- */

void               workers_plan(struct local *l, struct site *s, unsigned slot); /* how the task is started */
MUST_CHECK enum rc site_write_config(struct local *l, struct site *s,
                                     struct err *e); /* wp-config.php and the tasks' settings */
/* Tasks of an older generation are replaced from now on; waits until they are. */
MUST_CHECK enum rc site_roll(struct local *l, struct site *s, struct err *e);
struct str         task_log(const struct local *l, const struct site *s, unsigned slot, struct arena *a);

/* --- configure.c --- */

/* WordPress where it is not, and its settings; of what was restored, the administrator gets the password of the
 * secret. */
MUST_CHECK enum rc site_install(struct local *l, struct site *s, const struct instance_spec *spec, bool is_restored,
                                struct err *e);

/* --- route.c --- */

MUST_CHECK enum rc router_start(struct local *l, struct err *e);
MUST_CHECK enum rc router_write(struct local *l, struct err *e);   /* nginx.conf */
MUST_CHECK enum rc routes_restore(struct local *l, struct err *e); /* all rules as they are written down */
MUST_CHECK enum rc route_set(struct local *l, struct site *s, enum instance_route to, struct err *e);

/* --- identity.c --- */

MUST_CHECK enum rc identity_start(struct local *l, struct err *e);
MUST_CHECK enum rc identity_write(struct local *l, struct err *e);
struct str         identity_issuer(const struct local *l, const struct site *s, struct arena *a);
struct str         pool_folder(const struct local *l, const struct site *s, struct arena *a);
/* What php/pool.php is told, as JSON, and what it says; ret may be NULL. */
MUST_CHECK enum rc pool_run(struct local *l, struct str what, struct arena *a, struct str *ret, struct err *e);

/* --- php.c: a program of ours in PHP, as the tenant --- */

/* What PHP may not call, in a request and on the command line: a process that a tenant's plugin starts would be no
 * child of ours, and outlive its site. */
#define PHP_NO_PROGRAMS "exec,passthru,shell_exec,system,proc_open,popen,pcntl_exec,pcntl_fork,dl"

MUST_CHECK enum rc php_write(struct local *l, struct err *e); /* puts the programs into php/ */
MUST_CHECK enum rc php_run(struct local *l, const char *program, uid_t uid, gid_t gid, const char *temp,
                           const char *cache, struct str in, struct arena *a, struct str *ret, struct err *e);

MUST_CHECK enum rc code_cache_open(struct local *l, struct err *e);
MUST_CHECK enum rc code_cache_lend(struct local *l, const struct site *s, struct arena *a, struct str *ret,
                                   struct err *e);
void               code_cache_make(struct local *l); /* takes a second, the first time */

/* --- supervise.c --- */

MUST_CHECK enum rc supervise_start(struct local *l, struct err *e);
void               supervise_stop(struct local *l); /* and every child */
void               supervise_kick(struct local *l);
/* Waits for it, at most so long, with the mutex held. False: time is over. */
bool               supervise_wait(struct local *l, int64_t until_ms);
MUST_CHECK enum rc supervise_want(struct local *l, struct child *c,
                                  struct err *e); /* from now on; waits until it answers */

/* --- logs.c --- */

/* Of a line that begins with "[16-Nov-2026 13:36:22", in UTC: milliseconds since 1970; else -1. */
int64_t log_stamp(struct str line);

/* --- the rest of the port --- */

instance_configure_fn     local_configure;
instance_archive_fn       local_archive;
instance_restore_fn       local_restore;
instance_drop_archive_fn  local_drop_archive;
instance_logs_fn          local_logs;
instance_rotate_fn        local_rotate;
instance_scale_fn         local_scale;
instance_tasks_fn         local_tasks;
instance_add_person_fn    local_add_person;
instance_people_fn        local_people;
instance_remove_person_fn local_remove_person;

/* instance.h - what a tenant's WordPress is made of, and what can be done with it: the port of the instance drivers,
 * implemented in providers/.
 *
 * All calls block: worker threads only. All are safe to repeat: RC_OK also when it is so already. What any of them may
 * answer: RC_UNAVAILABLE (outage) and RC_LIMITED (throttled): it did not happen, try later; RC_TIMEOUT: it may have
 * happened, look before repeating; RC_INVALID: never works; RC_NOT_FOUND: what it needs is not there. err.code is the
 * driver's own name for the failure, if it has one. Only get_secret and add_person return secrets. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct instance_driver;

enum {
	INSTANCE_OUTPUTS_MAX = 1024, /* bytes of a resource's outputs */
	INSTANCE_TASKS_MAX = 10,
	INSTANCE_LOGS_MAX = 1000,   /* lines of one answer */
	INSTANCE_PEOPLE_MAX = 1000, /* of an identity pool */
};

/* In the order in which they are made. */
#define INSTANCE_RESOURCES(X)   \
	X(STORAGE, "storage")   \
	X(DATABASE, "database") \
	X(SECRET, "secret")     \
	X(ROUTE, "route")       \
	X(WORKERS, "workers")   \
	X(IDENTITY, "identity")

enum instance_resource {
#define X(name, text) INSTANCE_##name,
	INSTANCE_RESOURCES(X)
#undef X
	        INSTANCE_RESOURCE_COUNT
};
extern const char *const instance_resource_names[INSTANCE_RESOURCE_COUNT];

/* Whose it is, and what it should be. */
struct instance_spec {
	struct str tenant, instance; /* ids; the instance's is the key of everything that is made for it */
	struct str organization, contact_email, wordpress_version;
	int64_t    cpu_units, memory_mb; /* of a task */
	int64_t    desired_count;
};

/* What the route answers with. */
enum instance_route { ROUTE_CLOSED, ROUTE_OPEN, ROUTE_SUSPENDED, ROUTE_PARKED };

struct instance_task {
	struct str id;
	bool       is_running, is_healthy;
	int64_t    started_ms;
};

struct instance_tasks {
	int64_t              desired, running, pending;
	bool                 is_healthy; /* all that run answer */
	size_t               count;
	struct instance_task items[INSTANCE_TASKS_MAX];
};

/* Something a driver holds, whether or not anybody knows of it. */
struct instance_thing {
	struct str             tenant, instance; /* instance: may be unknown, then empty */
	enum instance_resource kind;
};

/* Of an identity pool. */
struct instance_person {
	struct str email, name;
	int64_t    added_ms;
};

struct instance_log_line {
	int64_t    at_ms;
	struct str task, text;
};

/* Make it, or find the one this instance has. Outputs are a JSON object with at least "id" and "name", of the route
 * also "endpoint". WORKERS starts desired_count tasks and does not wait for them. RC_CONFLICT: another instance's. */
typedef enum rc instance_create_fn(struct instance_driver *d, const struct instance_spec *spec,
                                   enum instance_resource kind, struct arena *a, struct str *ret_outputs,
                                   struct err *e);

/* Is it there, and as it should be (the right owner, readable, answering)? Outputs are empty when there is none; with
 * an "instance" in them, whose it is, a part of it counts too. */
typedef enum rc instance_check_fn(struct instance_driver *d, struct str tenant, enum instance_resource kind,
                                  struct arena *a, bool *ret_exists, struct str *ret_outputs, struct err *e);
typedef enum rc instance_delete_fn(struct instance_driver *d, struct str tenant, enum instance_resource kind,
                                   struct err *e);

/* How many tasks to run from now on; 0 stops them gracefully. Does not wait: see tasks. */
typedef enum rc instance_scale_fn(struct instance_driver *d, struct str tenant, int64_t desired, struct err *e);
typedef enum rc instance_tasks_fn(struct instance_driver *d, struct str tenant, struct arena *a,
                                  struct instance_tasks *ret, struct err *e);
typedef enum rc instance_set_route_fn(struct instance_driver *d, struct str tenant, enum instance_route to,
                                      struct err *e);

/* Install WordPress unless it is there, and offer the identity pool on its sign-in page. Also applies a change of spec
 * (version, tier), task by task. */
typedef enum rc instance_configure_fn(struct instance_driver *d, const struct instance_spec *spec, struct err *e);

/* Both data sets as they are now, into one archive of this name; RC_OK also when the name is there already. Outputs:
 * JSON with "id", "bytes", "parts". */
typedef enum rc instance_archive_fn(struct instance_driver *d, struct str tenant, struct str name, struct arena *a,
                                    struct str *ret_outputs, struct err *e);
typedef enum rc instance_restore_fn(struct instance_driver *d, struct str tenant, struct str name, struct err *e);

/* Also what archiving it has left that did not come to its end. */
typedef enum rc instance_drop_archive_fn(struct instance_driver *d, struct str tenant, struct str name, struct err *e);

/* A new database password, in the secret and in the database; tasks take it one after the other. */
typedef enum rc instance_rotate_fn(struct instance_driver *d, struct str tenant, struct err *e);

/* The site administrator's name and password. */
typedef enum rc instance_get_secret_fn(struct instance_driver *d, struct str tenant, struct arena *a,
                                       struct str *ret_user, struct str *ret_password, struct err *e);

/* Add a person to the tenant's identity pool, or give one who is there a new password; addresses compare without regard
 * to case. The password is for the first sign-in and is returned only here. RC_NOT_FOUND: no pool; RC_CONFLICT: it has
 * INSTANCE_PEOPLE_MAX; RC_INVALID: the driver does not accept the address. */
typedef enum rc instance_add_person_fn(struct instance_driver *d, struct str tenant, struct str email, struct str name,
                                       struct arena *a, bool *ret_is_new, struct str *ret_password, struct err *e);

/* All of them, by address. */
typedef enum rc instance_people_fn(struct instance_driver *d, struct str tenant, struct arena *a,
                                   struct instance_person **ret, size_t *ret_count, struct err *e);

/* From then on the person cannot sign in to the site, and is signed out of it. *ret_was_there, which is false before,
 * is set with a failure too: the person was there and is out of the pool, but may still be signed in. */
typedef enum rc instance_remove_person_fn(struct instance_driver *d, struct str tenant, struct str email,
                                          bool *ret_was_there, struct err *e);

/* The newest lines of [from, to), oldest first; lines of the same time always in the same order. */
typedef enum rc instance_logs_fn(struct instance_driver *d, struct str tenant, int64_t from_ms, int64_t to_ms,
                                 size_t max, struct arena *a, struct instance_log_line **ret, size_t *ret_count,
                                 struct err *e);

/* Everything that the driver holds, for the orphan scan. */
typedef enum rc instance_list_fn(struct instance_driver *d, struct arena *a, struct instance_thing **ret,
                                 size_t *ret_count, struct err *e);

struct instance_driver_ops {
	const char         *name;     /* "sim", "local", "aws" */
	const char         *versions; /* of WordPress that it can run, with blanks between them */
	const char         *php;      /* the version of PHP under it, such as 8.2 */
	instance_create_fn *create;
	instance_check_fn  *check;
	instance_delete_fn *delete;
	instance_scale_fn         *scale;
	instance_tasks_fn         *tasks;
	instance_set_route_fn     *set_route;
	instance_configure_fn     *configure;
	instance_archive_fn       *archive;
	instance_restore_fn       *restore;
	instance_drop_archive_fn  *drop_archive;
	instance_rotate_fn        *rotate;
	instance_get_secret_fn    *get_secret;
	instance_add_person_fn    *add_person;
	instance_people_fn        *people;
	instance_remove_person_fn *remove_person;
	instance_logs_fn          *logs;
	instance_list_fn          *list;
};

struct instance_driver { /* first member of every implementation */
	const struct instance_driver_ops *ops;
};

/* instances_private.h - what the files of this driver share. */
#pragma once

#include <jansson.h>
#include <pthread.h>

#include "base/arena.h"
#include "base/json.h"
#include "domain/instance.h"
#include "domain/ports/instance.h"
#include "providers/aws/call.h"
#include "providers/aws/instances/instances.h"

enum {
	SITE_HASH_SIZE = 11,  /* ten hexadecimal digits and a NUL */
	SITE_TOKEN_SIZE = 33, /* 32 and a NUL: ECS takes 36 at most, Secrets Manager 32 at least */
	SITE_CALL_MS = 12000, /* for one call with its attempts: a step of a saga has 30 s */
	SITE_WAIT_MS = 18000, /* for something to get ready within one step */
	SITE_POLL_MS = 500,
};

#define TAG_TENANT      "bbws:tenant-id"
#define TAG_MANAGED_BY  "bbws:managed-by"
#define TAG_ENVIRONMENT "bbws:environment"
#define TAG_KEY         "leasehold:key"
#define TAG_DIGEST      "leasehold:digest"
#define MANAGED_BY      "instance-management"

struct aws_instances {
	struct instance_driver       driver;
	struct instance_driver_ops   ops;
	struct aws_instances_options o;
	struct aws_caller           *caller;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t  changed;
	bool            is_stopped;
};

/* One call of the port about one tenant. */
struct site {
	struct aws_instances       *x;
	struct arena               *a;
	struct str                  tenant;
	const struct instance_spec *spec; /* NULL: the call has none */
	char                        t[INSTANCE_NAME_SIZE], h[SITE_HASH_SIZE];
};

/* A resource of a tenant, if it is there. Texts are in the site's arena. */
struct found {
	bool       is_there;
	struct str id, arn, state;
	struct str key; /* the instance it was made for */
};

typedef enum rc site_fn(struct site *s, struct err *e);
typedef enum rc site_find_fn(struct site *s, struct found *ret, struct err *e);
typedef enum rc site_make_fn(struct site *s, struct str *ret_outputs, struct err *e);
typedef enum rc site_check_fn(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e);

/* --- driver.c --- */

/* The same for each try of making the same thing for the same instance. */
struct str site_token(const struct site *s, const char *what);

/* One call within SITE_CALL_MS; ret may be NULL. */
MUST_CHECK enum rc site_do(struct site *s, const struct aws_op *op, struct str body, json_t **ret, struct err *e);

/* The four tags, in the two ways in which JSON services want them; more: one more tag, or NULL. */
struct str site_tag_list(const struct site *s, const char *name, const char *value, const char *more, struct str text);
struct str site_tag_map(const struct site *s);

/* Find it, else make it. If the reply to that was lost, or said that it is there (RC_CONFLICT), it is looked for again.
 * RC_CONFLICT: it belongs to another instance. */
MUST_CHECK enum rc site_make_once(struct site *s, enum instance_resource kind, site_find_fn *find, site_find_fn *make,
                                  struct found *ret, struct err *e);

/* False: it was stopped. */
bool site_wait(struct site *s, long ms);

/* Asks until it says so, for at most SITE_WAIT_MS; then RC_UNAVAILABLE, with what is waited for. */
MUST_CHECK enum rc site_wait_for(struct site *s, enum rc (*is_done)(struct site *s, bool *ret, struct err *e),
                                 const char *what, struct err *e);

/* --- the resources --- */

site_make_fn  efs_make, rds_make, vault_make, alb_make, ecs_make, cognito_make;
site_check_fn efs_check, rds_check, vault_check, alb_check, ecs_check, cognito_check;
site_fn       efs_remove, rds_remove, vault_remove, alb_remove, ecs_remove, cognito_remove;

/* efs.c */
MUST_CHECK enum rc efs_find(struct site *s, struct found *ret, struct err *e);

/* rds.c: names, and the user's password. */
struct str         rds_name(const struct site *s);
struct str         rds_user(const struct site *s);
MUST_CHECK enum rc rds_set_password(struct site *s, struct str password, struct str other, struct err *e);

/* Does the user have this password first, and still another one? Then somebody has begun to change it. */
MUST_CHECK enum rc rds_is_changing(struct site *s, struct str password, bool *ret, struct err *e);

/* rds.c: all there are, for the scan. */
MUST_CHECK enum rc rds_list(struct site *s, void (*each)(void *arg, struct str tenant, struct str key), void *arg,
                            struct err *e);

/* vault.c */
enum site_secret { SECRET_DATABASE, SECRET_ADMIN, SECRET_SIGNIN, SECRET_COUNT };
MUST_CHECK enum rc vault_find(struct site *s, enum site_secret which, struct found *ret, struct err *e);
/* RC_NOT_FOUND: there is none. */
MUST_CHECK enum rc vault_read(struct site *s, struct str name, struct str *ret_user, struct str *ret_password,
                              struct err *e);
struct str         vault_name(const struct site *s, enum site_secret which);
MUST_CHECK enum rc vault_put(struct site *s, enum site_secret which, struct str value, struct err *e);

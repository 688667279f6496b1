/* tasks.h - task definitions, and tasks that do one thing for a tenant and end. */
#pragma once

#include "providers/aws/instances/instances_private.h"

/* WORDPRESS serves; INSTALL has the same files and all secrets, for what is done once; FILES has the files only; DROP
 * has nothing of the tenant. */
enum family { FAMILY_WORDPRESS, FAMILY_INSTALL, FAMILY_FILES, FAMILY_DROP, FAMILY_COUNT };

#define SITE_CONTAINER "wordpress"

extern const struct aws_error_row ecs_errors[];
#define ECS_OP(operation, writing)                                                                    \
	{                                                                                             \
		.service = &aws_services[AWS_ECS], .name = operation, .permission = "ecs:" operation, \
		.writes = writing, .errors = ecs_errors                                               \
	}

/* "tenant-NAME-wordpress", also of the service */
struct str family_name(const struct site *s, enum family family);

/* Subnets and security groups, as ECS wants them. */
struct str site_network(const struct site *s);

/* The newest revision, if it says what is wanted, else a new one. */
MUST_CHECK enum rc definition_make(struct site *s, enum family family, struct str *ret_arn, struct err *e);
/* The newest revision that is active, and whose it is. */
MUST_CHECK enum rc definition_find(struct site *s, enum family family, bool *ret_is_there, struct str *ret_key,
                                   struct err *e);
MUST_CHECK enum rc definitions_remove(struct site *s, enum family family, struct err *e);

struct str         log_group_name(const struct site *s);
MUST_CHECK enum rc log_group_make(struct site *s, struct err *e);
MUST_CHECK enum rc log_group_remove(struct site *s, struct err *e);

/* The newest page of the tasks for which both members hold. NULL: there are none. Yours. */
MUST_CHECK enum rc tasks_read(struct site *s, struct json_member whose, struct json_member state, json_t **ret,
                              struct err *e);

enum { ORDER_TEXTS = 4 };
struct task_order {
	enum family family;
	const char *what;       /* the word that the program in the image takes */
	struct str  name;       /* of what it is about; empty: nothing */
	bool        is_once;    /* one of the same name that ended well is enough */
	bool        is_started; /* that it starts is enough */
	long        wait_ms;
	struct {
		const char *name;
		struct str  value;
	} texts[ORDER_TEXTS]; /* of its environment; no secrets */
};

/* One such task runs at a time; RC_UNAVAILABLE: it did not start, still runs or ended badly: asked again, one that runs
 * is waited for. */
MUST_CHECK enum rc task_run(struct site *s, const struct task_order *o, struct str *ret_id, struct err *e);

/* Deletes what an access point shows. */
MUST_CHECK enum rc task_empty_files(struct site *s, const struct found *point, struct err *e);

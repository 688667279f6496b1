/* instances.h - tenants' instances on AWS: EFS, a shared MariaDB, Secrets Manager, ECS on Fargate, a shared load
 * balancer, Cognito. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct instance_driver;

/* Borrowed for as long as the driver lives. Lists have commas between their items. */
struct aws_instances_options {
	struct aws_callers *callers;
	struct str          env; /* "prod": in names and tags, so that several can share an account */
	struct str          cluster, file_system, vpc, subnets, security_groups, listener;
	struct str          execution_role, task_role; /* ARNs */
	struct str          image;                     /* {version} stands for WordPress's */
	const char         *versions;   /* that there are images of, blanks between them; the first is the newest */
	struct str          domain;     /* whose /tenant/NAME/ the sites are */
	struct str          bucket;     /* of archives */
	struct str          db_host;    /* HOST[:PORT] */
	struct str          db_admin;   /* name or ARN of a secret: {"username": ..., "password": ...} */
	const char         *db_ca_file; /* NULL: the system's */
};

/* Nothing is called yet. */
MUST_CHECK enum rc aws_instances_open(const struct aws_instances_options *o, struct instance_driver **ret,
                                      struct err *e);
void               aws_instances_close(struct instance_driver *d);

/* Ends every wait for AWS. Call it before the calling threads are joined. */
void aws_instances_stop(struct instance_driver *d);

/* What it must be allowed to do, for the probe. The argument of their functions is a struct aws_instances_options. */
const struct aws_probe_item *aws_instances_permissions(size_t *ret_count);

/* aws.h - the cloud of LEASEHOLD_CLOUD=aws: its ports, each where its file exists. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/cloud.h"

enum aws_people { AWS_PEOPLE_USER, AWS_PEOPLE_MANAGER, AWS_PEOPLE_ADMIN, AWS_PEOPLE_COUNT };

/* All borrowed for as long as the cloud lives. */
struct aws_cloud_options {
	struct aws_callers *callers;
	struct store       *store; /* of records that the providers keep */
	const struct clock *clock;
	bool                is_guard;                      /* then only the organisation is needed */
	struct str          sandbox_ou, pool_config_param; /* the second: ARN of the SSM parameter; empty: none */

	struct str idc_instance, idc_store; /* empty: the only one there is */
	struct str groups[AWS_PEOPLE_COUNT], permission_sets[AWS_PEOPLE_COUNT];

	struct str costs_leave_out; /* record types, separated by commas */
	int64_t    costs_refresh_ms;
	/* The accounts of the pool, in the arena: their costs are asked for together. NULL: only those that somebody
	 * asks for. */
	enum rc (*pool)(void *arg, struct arena *a, struct str **ret, size_t *ret_count, struct err *e);
	void *pool_arg;

	struct str codebuild_project; /* empty: accounts are emptied by others */
	struct str appconfig_application, appconfig_environment, appconfig_nuke_profile;
	struct str admin_accounts; /* never emptied; separated by commas */
	struct str tenant_role;    /* whose credentials tenants get; empty: none */
	struct str tenant_key;     /* what they are encrypted with */
};

/* Nothing is called yet. */
struct aws_cloud *aws_cloud_new(const struct aws_cloud_options *o);
void              aws_cloud_free(struct aws_cloud *c);

/* Ports that are not there are NULL. */
struct cloud aws_cloud_ports(struct aws_cloud *c);

/* What one node has to refresh, see their headers; NULL: not there. */
struct aws_directory        *aws_cloud_directory(struct aws_cloud *c);
struct aws_costs            *aws_cloud_costs(struct aws_cloud *c);
struct aws_credential_store *aws_cloud_credentials(struct aws_cloud *c);

/* Ends every wait for AWS. Call it before the calling threads are joined. NULL is fine. */
void aws_cloud_stop(struct aws_cloud *c);

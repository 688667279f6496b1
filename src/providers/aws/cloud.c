/* SPDX-License-Identifier: Apache-2.0 */
/* cloud.c - the ports of the cloud, put together. The guard beside another system needs the organisation alone. */
#include <stdlib.h>

#include "base/mem.h"
#include "providers/aws/access.h"
#include "providers/aws/aws.h"
#include "providers/aws/call.h"
#include "providers/aws/centre.h"
#include "providers/aws/codebuild.h"
#include "providers/aws/costs.h"
#include "providers/aws/credentials.h"
#include "providers/aws/directory.h"
#include "providers/aws/organisation.h"

struct aws_cloud {
	struct aws_organisation     *organisation;
	struct aws_centre           *centre; /* this and what follows: NULL where nothing is lent */
	struct aws_directory        *directory;
	struct aws_access           *access;
	struct aws_costs            *costs;
	struct aws_codebuild        *codebuild;   /* NULL: others empty the accounts */
	struct aws_credential_store *credentials; /* NULL: tenants get none */
};

static void open_people(struct aws_cloud *c, const struct aws_cloud_options *o)
{
	struct aws_directory_options directory = { .store = o->store, .clock = o->clock };
	struct aws_access_options    access = { .clock = o->clock };

	c->centre = aws_centre_new(aws_caller_of(o->callers, AWS_IDENTITY_CENTRE), o->idc_instance, o->idc_store);
	directory.centre = access.centre = c->centre;
	for (size_t i = 0; i < AWS_PEOPLE_COUNT; i++) {
		directory.groups[i] = o->groups[i];
		access.sets[i] = o->permission_sets[i];
	}
	c->directory = access.directory = aws_directory_new(&directory);
	c->access = aws_access_new(&access);
}

static void open_lending(struct aws_cloud *c, const struct aws_cloud_options *o)
{
	open_people(c, o);
	c->costs = aws_costs_new(&(struct aws_costs_options){ .caller = aws_caller_of(o->callers, AWS_MANAGEMENT),
	                                                      .store = o->store,
	                                                      .clock = o->clock,
	                                                      .leave_out = o->costs_leave_out,
	                                                      .list = o->pool,
	                                                      .list_arg = o->pool_arg,
	                                                      .refresh_ms = o->costs_refresh_ms });
	if (o->codebuild_project.n)
		c->codebuild = aws_codebuild_new(
		        &(struct aws_codebuild_options){ .caller = aws_caller_of(o->callers, AWS_OWN),
		                                         .store = o->store,
		                                         .clock = o->clock,
		                                         .project = o->codebuild_project,
		                                         .application_id = o->appconfig_application,
		                                         .environment_id = o->appconfig_environment,
		                                         .nuke_profile_id = o->appconfig_nuke_profile,
		                                         .protected = o->admin_accounts });
	if (o->tenant_role.n)
		c->credentials = aws_credentials_new(
		        &(struct aws_credentials_options){ .callers = o->callers,
		                                           .store = o->store,
		                                           .clock = o->clock,
		                                           .role = o->tenant_role,
		                                           .key = o->tenant_key,
		                                           .permission_set = o->permission_sets[AWS_PEOPLE_USER] });
}

struct aws_cloud *aws_cloud_new(const struct aws_cloud_options *o)
{
	struct aws_cloud               *c = mem_new(struct aws_cloud);
	struct aws_organisation_options organisation = { .management = aws_caller_of(o->callers, AWS_MANAGEMENT),
		                                         .own = aws_caller_of(o->callers, AWS_OWN),
		                                         .clock = o->clock,
		                                         .sandbox_ou = o->sandbox_ou,
		                                         .pool_config_param = o->pool_config_param };

	c->organisation = aws_organisation_new(&organisation);
	if (!o->is_guard)
		open_lending(c, o);
	return c;
}

void aws_cloud_free(struct aws_cloud *c)
{
	if (!c)
		return;
	aws_credentials_free(c->credentials);
	aws_codebuild_free(c->codebuild);
	aws_costs_free(c->costs);
	aws_access_free(c->access);
	aws_directory_free(c->directory);
	aws_centre_free(c->centre);
	aws_organisation_free(c->organisation);
	free(c);
}

struct cloud aws_cloud_ports(struct aws_cloud *c)
{
	return (struct cloud){ .organisation = aws_organisation_port(c->organisation),
		               .access = c->access ? aws_access_port(c->access) : NULL,
		               .costs = c->costs ? aws_costs_port(c->costs) : NULL,
		               .cleaner = c->codebuild ? aws_codebuild_cleaner(c->codebuild) : NULL,
		               .credentials = c->credentials ? aws_credentials_port(c->credentials) : NULL };
}

struct aws_directory *aws_cloud_directory(struct aws_cloud *c)
{
	return c->directory;
}

struct aws_costs *aws_cloud_costs(struct aws_cloud *c)
{
	return c->costs;
}

struct aws_credential_store *aws_cloud_credentials(struct aws_cloud *c)
{
	return c->credentials;
}

void aws_cloud_stop(struct aws_cloud *c)
{
	if (c && c->access)
		aws_access_stop(c->access);
}

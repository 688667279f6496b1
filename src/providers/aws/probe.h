/* probe.h - the probe port on AWS: each permission that the settings need, asked for by a call that changes nothing. */
#pragma once

#include "base/str.h"
#include "domain/ports/cloud_probe.h"
#include "providers/aws/aws.h"
#include "providers/aws/call.h"

enum { AWS_PROBE_QUEUES = 5 };

/* A permission that another room's calls need, of our own role. */
struct aws_probe_item {
	const char         *permission;
	enum aws_service_id service;
	bool                is_needed;
	bool                is_secret; /* its answer may not be shown, not even in part */
	/* What is asked; NULL, and no path: it cannot be asked for without doing it. */
	struct str (*body)(const void *arg, struct arena *a);
	struct str (*query)(const void *arg, struct arena *a);
	const char *fine; /* codes that mean: allowed; blanks between them */
	const char *method, *path;
};

/* What is used; texts that are empty are not. All borrowed. */
struct aws_probe_options {
	struct aws_callers             *callers;
	const struct aws_cloud_options *cloud; /* NULL: the cloud is another one */
	struct organisation            *organisation;
	struct str                      table;  /* of accounts; the guard's */
	bool                            ejects; /* deletes from it */
	struct str                      queues[AWS_PROBE_QUEUES], tenant_queue;
	struct str                      bus, topic, scheduler_group;
	bool                            sends_mail, makes_credentials, has_nuke;
	struct str                      secrets; /* names of our own secrets, separated by commas */
	/* What is known of them is told beside; NULL: not there. */
	struct aws_costs     *costs;
	struct aws_directory *directory;
	/* Further permissions, the argument of their functions, and the policy that has them. */
	const struct aws_probe_item *more;
	size_t                       more_count;
	const void                  *more_arg;
	const char                  *more_policy;
	/* The region of a queue's URL, in the arena. */
	const char *(*region_of)(struct str url, struct arena *a);
};

struct aws_probe   *aws_probe_new(const struct aws_probe_options *o);
void                aws_probe_free(struct aws_probe *p);
struct cloud_probe *aws_probe_port(struct aws_probe *p);

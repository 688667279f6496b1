/* codebuild.h - the cleaner port by a CodeBuild project, such as that of an Innovation Sandbox: a run is a build. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Copied; what it points to is borrowed. */
struct aws_codebuild_options {
	struct aws_caller  *caller; /* of the account that has the project */
	struct store       *store;
	const struct clock *clock;
	struct str          project;
	struct str          application_id, environment_id,
	        nuke_profile_id; /* of AppConfig, passed on; empty: the project's own */
	struct str protected;    /* accounts that are never emptied, separated by commas */
};
struct aws_codebuild *aws_codebuild_new(const struct aws_codebuild_options *o);
void                  aws_codebuild_free(struct aws_codebuild *b);
struct cleaner       *aws_codebuild_cleaner(struct aws_codebuild *b);

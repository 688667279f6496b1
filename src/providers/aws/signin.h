/* signin.h - sign-in by a provider that says who somebody is, with the roles that Identity Center's groups give. */
#pragma once

struct aws_directory;

/* Both are borrowed. */
struct signin_provider *aws_signin_new(struct signin_provider *provider, struct aws_directory *directory);
void                    aws_signin_free(struct signin_provider *p);

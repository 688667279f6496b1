/* call_private.h - what the files behind call.h share. */
#pragma once

#include "providers/aws/call.h"

/* Rows for all services; ends with code NULL. */
extern const struct aws_error_row aws_common_errors[];

/* Codes after which this service is asked again in a while; NULL: no other than all services have. */
const char *const *aws_slow_codes(const struct aws_service *service);

/* The caller's client for a service in a region, made at the first use. */
struct aws_client *aws_caller_client(struct aws_caller *c, const struct aws_service *service, const char *region);

const struct aws_settings *aws_caller_settings(const struct aws_caller *c);
const char                *aws_caller_hop(const struct aws_caller *c); /* "management" */

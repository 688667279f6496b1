/* account_table.h - the account table of an Innovation Sandbox on AWS: a DynamoDB table that belongs to it. */
#pragma once

#include "domain/ports/account_table.h"

struct aws_client;

/* The client (service "dynamodb") stays the caller's; the name is copied. Nothing is asked of the service yet. */
struct isb_table     *isb_table_new(struct aws_client *client, struct str name);
void                  isb_table_free(struct isb_table *t);
struct account_table *isb_table_port(struct isb_table *t);

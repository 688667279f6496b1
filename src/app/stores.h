/* stores.h - opens the store that the settings name, with everything it needs. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "store/dynamodb.h"

struct aws_client;
struct aws_identity;
struct clock;
struct config;
struct store;

enum app_store_kind { APP_SQLITE, APP_DYNAMODB }; /* in the order of LEASEHOLD_STORE's words */

struct app_store {
	enum app_store_kind  kind;
	struct store        *store;
	struct aws_identity *identity;
	struct aws_client   *client;
};

/* Take the data folder for this process alone; made when it is not there. RC_UNAVAILABLE when another one has it. */
MUST_CHECK enum rc app_take_folder(const char *folder, int *ret_fd, struct err *e);

/* The store in a data folder, or the one on DynamoDB. */
MUST_CHECK enum rc app_open_sqlite(const struct config *c, const char *folder, const struct clock *clock,
                                   struct app_store *ret, struct err *e);
void               app_open_dynamodb(const struct config *c, struct app_store *ret);
void               app_store_close(struct app_store *s);

/* What the dynamodb back end is opened with. The client lives in *s. */
struct ddb_options app_ddb_options(const struct config *c, struct app_store *s);

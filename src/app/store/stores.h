/* stores.h - opens the store that the settings name, with everything it needs. */
#pragma once

#include "base/err.h"
#include "store/dynamodb/dynamodb.h"
#include "store/sqlite/sqlite.h"

struct config;

enum app_store_kind { APP_SQLITE, APP_DYNAMODB }; /* in the order of LEASEHOLD_STORE's words */

struct app_store {
	enum app_store_kind  kind;
	struct store        *store;
	struct aws_identity *identity;
	struct aws_client   *client;
	char                 tenant_table[256]; /* its name, when it has one by the settings */
};

/* Is there a store in the folder? Before it is taken. RC_NOT_FOUND: no, and may_init is false; RC_CORRUPT: a part of
 * one, whatever may_init says. */
MUST_CHECK enum rc app_look_for_store(const char *folder, bool may_init, struct err *e);

/* Take the data folder for this process alone, creating it if needed. RC_UNAVAILABLE: another one has it; RC_DENIED:
 * everybody may write there. */
MUST_CHECK enum rc app_take_folder(const char *folder, int *ret_fd, struct err *e);

/* The store in a data folder, or the one on DynamoDB. */
struct app_sqlite {
	const char         *folder;
	const struct clock *clock;
	bool                is_shared;    /* only read, while a server may use it */
	bool                may_init;     /* make it when there is none */
	bool                accepts_loss; /* of commits that the log cannot give any more */

	bool has_lost; /* the answer: that happened */
};
MUST_CHECK enum rc app_open_sqlite(const struct config *c, struct app_sqlite *how, struct app_store *ret,
                                   struct err *e);

/* What the embedded back end is opened with. The path lives in the arena. */
struct sqlite_options app_sqlite_options(const struct config *c, const char *folder, const struct clock *clock,
                                         struct arena *a);
void                  app_open_dynamodb(const struct config *c, const struct clock *clock, struct app_store *ret);
void                  app_store_close(struct app_store *s);

/* The one of the settings, of which an embedded one is taken for this process alone, and made when there is none. */
MUST_CHECK enum rc app_open_alone(const struct config *c, const struct clock *clock, struct app_store *ret,
                                  struct err *e);

/* What the dynamodb back end is opened with. The client lives in *s. */
struct ddb_options app_ddb_options(const struct config *c, struct app_store *s);

/* Another address of DynamoDB: the setting, else AWS's own variables. NULL: the region's. RC_INVALID: a variable makes
 * no sense. */
MUST_CHECK enum rc app_ddb_endpoint(const struct config *c, struct arena *a, const char **ret, struct err *e);

/* Our own credentials at AWS, from the environment; and a variable of it. */
struct aws_identity *app_identity(void);
const char          *app_env(const char *name);

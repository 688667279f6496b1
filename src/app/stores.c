/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stores.c - from settings to a store.
 *
 * The embedded store belongs to one process that writes: app_take_folder() sees to that. DynamoDB belongs to everybody who has the
 * credentials; its time limits are cut from the one deadline that a transaction has.
 */
#include "app/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config.h"
#include "net/aws.h"
#include "net/fetch.h"
#include "service/records.h"
#include "store/sqlite.h"
#include "store/store.h"

enum { ATTEMPTS_MAX = 4 };

enum rc app_take_folder(const char *folder, int *ret_fd, struct err *e)
{
	struct arena a = { 0 };
	enum rc      rc = RC_OK;

	*ret_fd = -1;
	if (mkdir(folder, 0700) != 0 && errno != EEXIST)
		return err_set(e, RC_UNAVAILABLE, "the data folder %s cannot be made: %s", folder, strerror(errno));
	*ret_fd = open(str_format(&a, "%s/lock", folder).p, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (*ret_fd < 0)
		rc = err_set(e, RC_UNAVAILABLE, "the data folder %s cannot be written: %s", folder, strerror(errno));
	else if (flock(*ret_fd, LOCK_EX | LOCK_NB) != 0)
		rc = err_set(e, RC_UNAVAILABLE,
		             "another leasehold uses the data folder %s; stop it or use another --data", folder);
	arena_fini(&a);
	return rc;
}

enum rc app_open_sqlite(const struct config *c, const char *folder, const struct clock *clock, struct app_store *ret,
                        struct err *e)
{
	struct arena          a = { 0 };
	struct sqlite_options options = {
		.path = str_format(&a, "%s/leasehold.db", folder).p,
		.types = service_types,
		.type_count = service_type_count,
		.clock = clock,
		.cache_mb = (int)config_number(c, CONFIG_SQLITE_CACHE),
	};
	enum rc rc;

	*ret = (struct app_store){ .kind = APP_SQLITE };
	rc = store_sqlite_open(&options, &ret->store, e);
	arena_fini(&a);
	return rc;
}

static const char *read_env(const char *name)
{
	return getenv(name);
}

struct ddb_options app_ddb_options(const struct config *c, struct app_store *s)
{
	return (struct ddb_options){
		.client = s->client,
		.pool_table = config_text(c, CONFIG_DDB_TABLE),
		.kernel_table = config_text(c, CONFIG_DDB_KERNEL),
		.gsi = { config_text(c, CONFIG_DDB_GSI1), config_text(c, CONFIG_DDB_GSI2),
		         config_text(c, CONFIG_DDB_GSI3) },
		.types = service_types,
		.type_count = service_type_count,
		.clock = &clock_real,
		.workers = (unsigned)config_number(c, CONFIG_STORE_WORKERS),
		.candidates = (size_t)config_number(c, CONFIG_K_CANDIDATES),
		.backoff_base_ms = (int)config_number(c, CONFIG_BACKOFF_BASE),
		.backoff_max_ms = (int)config_number(c, CONFIG_BACKOFF_MAX),
		.deadline_ms = (int)config_number(c, CONFIG_STORE_DEADLINE),
	};
}

void app_open_dynamodb(const struct config *c, struct app_store *ret)
{
	long                        deadline_ms = (long)config_number(c, CONFIG_STORE_DEADLINE);
	struct aws_identity_options identity = { .env = read_env, .clock = &clock_real };
	struct aws_client_options   client = {
		  .endpoint = config_text(c, CONFIG_DDB_ENDPOINT),
		  .region = config_text(c, CONFIG_AWS_REGION),
		  .service = "dynamodb",
		  .json_version = "1.0",
		  .clock = &clock_real,
		  .connect_timeout_ms = deadline_ms / 3,
		  .attempt_timeout_ms = deadline_ms / 2,
		  .total_timeout_ms = deadline_ms - deadline_ms / 10,
		  .attempts_max = ATTEMPTS_MAX,
	};
	struct ddb_options options;

	*ret = (struct app_store){ .kind = APP_DYNAMODB };
	ret->identity = aws_identity_new(&identity);
	client.identity = ret->identity;
	ret->client = aws_client_new(&client);
	options = app_ddb_options(c, ret);
	ret->store = store_dynamodb_open(&options);
}

void app_store_close(struct app_store *s)
{
	store_close(s->store);
	aws_client_free(s->client);
	aws_identity_free(s->identity);
}

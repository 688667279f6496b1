/* SPDX-License-Identifier: Apache-2.0 */
/* store_command.c - backup, check, create-tables, copy: from the command line to the store and back to a person. */
#include "app/store_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config.h"
#include "app/store_copy.h"
#include "app/stores.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "net/fetch.h"
#include "service/records.h"
#include "store/sqlite.h"

enum { PATIENCE_MS = 30000 };

static int report(const struct err *e)
{
	fprintf(stderr, "leasehold: %s\n", e->msg);
	switch (e->rc) {
	case RC_NOT_FOUND: return CLI_EXIT_NOT_FOUND;
	case RC_INVALID: return CLI_EXIT_USAGE;
	case RC_UNAVAILABLE:
	case RC_TIMEOUT: return CLI_EXIT_UNREACHABLE;
	default: return CLI_EXIT_REFUSED;
	}
}

static const char *database(struct config *c)
{
	return str_format(&c->arena, "%s/leasehold.db", config_text(c, CONFIG_DATA)).p;
}

static int finish(enum rc rc, const struct err *e)
{
	if (rc)
		return report(e);
	printf("ok\n");
	return CLI_EXIT_OK;
}

static int run_backup(const struct cli_args *args, struct config *c)
{
	struct err e = { 0 };

	if (!args->values[CLI_OPTION_TO]) {
		fprintf(stderr, "leasehold: store backup: --to FILE must be given\n");
		return CLI_EXIT_USAGE;
	}
	if (config_number(c, CONFIG_STORE) == APP_DYNAMODB) {
		fprintf(stderr,
		        "leasehold: store backup copies the embedded store, but LEASEHOLD_STORE is dynamodb: use "
		        "DynamoDB's own backups, or 'leasehold store copy --from dynamodb: --to sqlite:DIR'\n");
		return CLI_EXIT_USAGE;
	}
	return finish(sqlite_backup(database(c), args->values[CLI_OPTION_TO], &e), &e);
}

static int check_tables(struct config *c)
{
	struct app_store   s;
	struct ddb_options options;
	struct buf         differences;
	struct err         e = { 0 };
	enum rc            rc;

	app_open_dynamodb(c, &s);
	options = app_ddb_options(c, &s);
	buf_init(&differences, 65536);
	rc = ddb_check_tables(&options, &differences, &e);
	fprintf(stderr, "%.*s", (int)differences.n, differences.n ? differences.p : "");
	buf_fini(&differences);
	app_store_close(&s);
	return finish(rc, &e);
}

static int run_check(struct config *c)
{
	struct err e = { 0 };

	if (config_number(c, CONFIG_STORE) == APP_DYNAMODB)
		return check_tables(c);
	return finish(sqlite_check(database(c), &e), &e);
}

static int run_create_tables(struct config *c)
{
	struct app_store   s;
	struct ddb_options options;
	struct err         e = { 0 };
	enum rc            rc;

	app_open_dynamodb(c, &s);
	options = app_ddb_options(c, &s);
	rc = ddb_create_tables(&options, &e);
	app_store_close(&s);
	return finish(rc, &e);
}

/* --- copy --- */

/* "sqlite:DIR" or "dynamodb:". A target folder must be ours alone; a source may be in use. */
static enum rc open_named(struct config *c, const char *name, bool is_target, struct app_store *ret, struct err *e)
{
	struct str rest = str_from(name);
	struct str kind = str_cut(&rest, ':');
	int        lock_fd; /* kept until the process ends */
	enum rc    rc;

	if (str_eq(kind, STR("dynamodb"))) {
		app_open_dynamodb(c, ret);
		return RC_OK;
	}
	if (!str_eq(kind, STR("sqlite")) || !rest.n)
		return err_set(e, RC_INVALID, "a store is sqlite:DIR or dynamodb:, not '%s'", name);
	if (is_target && (rc = app_take_folder(rest.p, &lock_fd, e)))
		return rc;
	if (!is_target && access(str_format(&c->arena, "%s/leasehold.db", rest.p).p, R_OK) != 0)
		return err_set(e, RC_NOT_FOUND, "there is no store in %s", rest.p);
	return app_open_sqlite(c, rest.p, &clock_real, ret, e);
}

static enum rc copy_type(struct app_store *from, struct app_store *to, const struct record_type *type, struct err *e)
{
	struct store_sum source = { 0 }, target = { 0 };
	int64_t          written = 0;
	enum rc          rc = store_copy(from->store, to->store, type, &written, e);

	if (!rc)
		rc = store_sum(from->store, type, &source, e);
	if (!rc)
		rc = store_sum(to->store, type, &target, e);
	if (rc)
		return err_wrap(e, rc, "%s", type->name);
	printf("%-12s source %8" PRId64 " records %016" PRIx64 "   target %8" PRId64 " records %016" PRIx64
	       "   written %8" PRId64 "\n",
	       type->name, source.count, source.checksum, target.count, target.checksum, written);
	fflush(stdout);
	if (source.count != target.count || source.checksum != target.checksum)
		return err_set(e, RC_CONFLICT,
		               "%s: source and target differ; is a server still writing? Stop it and run this again",
		               type->name);
	return RC_OK;
}

static int run_copy(const struct cli_args *args, struct config *c)
{
	const char      *names[] = { args->values[CLI_OPTION_FROM], args->values[CLI_OPTION_TO] };
	struct app_store from = { 0 }, to = { 0 };
	struct err       e = { 0 };
	enum rc          rc;

	if (!names[0] || !names[1]) {
		fprintf(stderr, "leasehold: store copy: --from STORE and --to STORE must be given\n");
		return CLI_EXIT_USAGE;
	}
	rc = open_named(c, names[0], false, &from, &e);
	if (!rc)
		rc = open_named(c, names[1], true, &to, &e);
	for (size_t i = 0; !rc && i < service_type_count; i++)
		rc = copy_type(&from, &to, service_types[i], &e);
	app_store_close(&to);
	app_store_close(&from);
	return finish(rc, &e);
}

int store_command(const struct cli_args *args, struct config *c)
{
	umask(077); /* what is written here holds other people's names */
	fetch_global_init();
	c->values[CONFIG_STORE_DEADLINE].number = PATIENCE_MS; /* nobody waits on the other end of a connection */
	switch ((enum cli_command_id)(args->command - cli_commands)) {
	case CLI_COMMAND_STORE_BACKUP: return run_backup(args, c);
	case CLI_COMMAND_STORE_CREATE_TABLES: return run_create_tables(c);
	case CLI_COMMAND_STORE_COPY: return run_copy(args, c);
	default: return run_check(c);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* store_command.c - init, backup, check, restore, compact, create-tables, copy: the commands that look after a store.
 * */
#include "app/store/store_command.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config/config.h"
#include "app/store/store_copy.h"
#include "app/store/stores.h"
#include "cli/term/args.h"
#include "cli/term/io.h"
#include "domain/sandbox.h"
#include "net/fetch.h"
#include "service/broker/claims_pause.h"
#include "service/broker/records.h"
#include "service/services.h"
#include "store/sqlite/sqlite.h"
#include "store/sqlite/sqlite_file.h"
#include "store/walk.h"

enum { PATIENCE_MS = 30000, PAGE = 100 };

#define RESTORED                                                                                  \
	"restored; claims are paused. Start the server, let it sync, quarantine what is in use\n" \
	"('leasehold sandbox quarantine --from FILE', or --all), then 'leasehold claims resume'.\n"

int store_report(const struct err *e)
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

static int misused(const char *why)
{
	fprintf(stderr, "leasehold: %s\n", why);
	return CLI_EXIT_USAGE;
}

static const char *database(struct config *c)
{
	return str_format(&c->arena, "%s/leasehold.db", config_text(c, CONFIG_DATA)).p;
}

static int finish(enum rc rc, const struct err *e)
{
	if (rc)
		return store_report(e);
	printf("ok\n");
	return CLI_EXIT_OK;
}

static int run_backup(const char *to, struct config *c)
{
	struct err e = { 0 };

	if (!to)
		return misused("store backup: --to FILE must be given");
	if (config_number(c, CONFIG_STORE) == APP_DYNAMODB)
		return misused("store backup copies the embedded store, but LEASEHOLD_STORE is dynamodb: use "
		               "DynamoDB's own backups, or 'leasehold store copy --from dynamodb: --to sqlite:DIR'");
	return finish(sqlite_backup(database(c), to, &e), &e);
}

/* The tables on DynamoDB: made where they are missing, or only compared with what is needed. */
static enum rc look_after_tables(struct config *c, bool is_check, struct err *e)
{
	struct app_store             s;
	struct ddb_options           options;
	CLEANUP(buf_fini) struct buf differences = BUF(65536);
	enum rc                      rc;

	app_open_dynamodb(c, &clock_real, &s);
	options = app_ddb_options(c, &s);
	rc = is_check ? ddb_check_tables(&options, &differences, e) : ddb_create_tables(&options, e);
	fprintf(stderr, "%.*s", (int)differences.n, differences.n ? differences.p : "");
	app_store_close(&s);
	return rc;
}

static int run_tables(struct config *c, bool is_check)
{
	struct err e = { 0 };

	return finish(look_after_tables(c, is_check, &e), &e);
}

static int run_check(struct config *c)
{
	struct err e = { 0 };
	enum rc    rc;

	if (config_number(c, CONFIG_STORE) == APP_DYNAMODB)
		return run_tables(c, true);
	rc = app_look_for_store(config_text(c, CONFIG_DATA), false, &e);
	return finish(rc ? rc : sqlite_check(database(c), &e), &e);
}

/* --- what is done to a store that nobody uses --- */

/* Look and take: in this order, because taking leaves a file behind. */
static enum rc take(struct config *c, bool may_init, struct err *e)
{
	const char *folder = config_text(c, CONFIG_DATA);
	int         lock_fd; /* kept until the process ends */
	enum rc     rc = app_look_for_store(folder, may_init, e);

	return rc ? rc : app_take_folder(folder, &lock_fd, e);
}

static int run_init(struct config *c)
{
	struct sqlite_options options = app_sqlite_options(c, config_text(c, CONFIG_DATA), &clock_real, &c->arena);
	struct err            e = { 0 };
	enum rc               rc = take(c, true, &e);

	return finish(rc ? rc : sqlite_make(&options, &e), &e);
}

static enum rc pause_claims(struct store *store, struct err *e)
{
	struct str reason = STR("a backup was restored: what was claimed after it is in use and looks free");

	return store_run(store, claims_pause_mark, &reason, NULL, e);
}

/* The store that is there may be damaged or gone: that is why somebody restores. But nobody may use it. */
static int run_restore(const char *backup, struct config *c)
{
	struct sqlite_options options = app_sqlite_options(c, config_text(c, CONFIG_DATA), &clock_real, &c->arena);
	struct err            e = { 0 };
	int                   lock_fd; /* kept until the process ends */
	enum rc               rc;

	if (!backup)
		return misused("store restore: --from FILE must be given");
	rc = app_take_folder(config_text(c, CONFIG_DATA), &lock_fd, &e);
	if (!rc && sqlite_file_is_taken(options.path))
		rc = err_set(&e, RC_UNAVAILABLE, "another leasehold uses %s; stop it first", options.path);
	if (rc || sqlite_replace(&options, backup, pause_claims, &e))
		return store_report(&e);
	printf("%s", RESTORED);
	return CLI_EXIT_OK;
}

/* --- tables that DynamoDB has restored --- */

struct unknown {
	struct store *here;
	int64_t       count;
};

/* Of the table that was replaced: what is in use there, and free or not known here. */
static enum rc print_unknown(const struct page *page, struct arena *a, void *arg, struct err *e)
{
	struct unknown *u = arg;

	for (size_t i = 0; i < page->count; i++) {
		const struct sandbox *there = page_record(page, &sandbox_type, i);
		struct sandbox        here;
		bool                  is_known;
		enum rc               rc;

		if (there->status == SANDBOX_AVAILABLE)
			continue;
		if ((rc = store_find(u->here, &sandbox_type, there->sandbox_id, a, &here, &is_known, e)))
			return rc;
		if (is_known && here.status != SANDBOX_AVAILABLE)
			continue;
		printf("%.*s\n", STR_ARG(there->sandbox_id));
		u->count++;
	}
	return RC_OK;
}

static enum rc compare_with(const char *table, struct config *c, struct unknown *u, struct err *e)
{
	struct query     all = { .type = &sandbox_type, .index = QUERY_ALL, .limit = PAGE };
	struct app_store old;
	enum rc          rc;

	config_set(c, CONFIG_DDB_TABLE, str_from(table), FROM_COMMAND_LINE);
	app_open_dynamodb(c, &clock_real, &old);
	rc = store_read_pages(old.store, &all, print_unknown, u, e);
	app_store_close(&old);
	return rc ? err_wrap(e, rc, "%s", table) : RC_OK;
}

/* DynamoDB has made them, from a backup or as of a moment: what is missing is that nothing may be lent. */
static int run_restored(const char *old_table, struct config *c)
{
	struct app_store s;
	struct unknown   u = { 0 };
	struct err       e = { 0 };
	enum rc          rc = look_after_tables(c, true, &e);

	if (rc)
		return store_report(&e);
	app_open_dynamodb(c, &clock_real, &s);
	u.here = s.store;
	rc = pause_claims(s.store, &e);
	if (!rc && old_table)
		rc = compare_with(old_table, c, &u, &e);
	app_store_close(&s);
	if (rc)
		return store_report(&e);
	if (old_table)
		fprintf(stderr, "in use in %s and free here: %" PRId64 "\n", old_table, u.count);
	fprintf(stderr, "%s", RESTORED);
	return CLI_EXIT_OK;
}

static int64_t file_size(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
}

static int run_compact(struct config *c)
{
	struct err  e = { 0 };
	const char *path = database(c);
	int64_t     before = file_size(path);

	if (take(c, false, &e) || sqlite_compact(path, &e))
		return store_report(&e);
	printf("%" PRId64 " bytes, before %" PRId64 "\n", file_size(path), before);
	return CLI_EXIT_OK;
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
		app_open_dynamodb(c, &clock_real, ret);
		return RC_OK;
	}
	if (!str_eq(kind, STR("sqlite")) || !rest.n)
		return err_set(e, RC_INVALID, "a store is sqlite:DIR or dynamodb:, not '%s'", name);
	if (is_target && (rc = app_take_folder(rest.p, &lock_fd, e)))
		return rc;
	if (!is_target && access(str_format(&c->arena, "%s/leasehold.db", rest.p).p, R_OK) != 0)
		return err_set(e, RC_NOT_FOUND, "there is no store in %s", rest.p);
	return app_open_sqlite(c,
	                       &(struct app_sqlite){ .folder = rest.p,
	                                             .clock = &clock_real,
	                                             .is_shared = !is_target,
	                                             .may_init = is_target },
	                       ret, e);
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

static int run_copy(const char *from_name, const char *to_name, struct config *c)
{
	struct app_store from = { 0 }, to = { 0 };
	struct err       e = { 0 };
	enum rc          rc;

	if (!from_name || !to_name)
		return misused("store copy: --from STORE and --to STORE must be given");
	if (!(rc = open_named(c, from_name, false, &from, &e)))
		rc = open_named(c, to_name, true, &to, &e);
	for (size_t i = 0; !rc && i < service_type_count; i++)
		rc = copy_type(&from, &to, service_types[i], &e);
	app_store_close(&to);
	app_store_close(&from);
	return finish(rc, &e);
}

int store_command(const struct cli_args *args, struct config *c)
{
	const char         *from = args->values[CLI_OPTION_FROM], *to = args->values[CLI_OPTION_TO];
	enum cli_command_id id = (enum cli_command_id)(args->command - cli_commands);
	bool                is_embedded = id == CLI_COMMAND_INIT || id == CLI_COMMAND_STORE_COMPACT;

	umask(077); /* what is written here holds other people's names */
	fetch_global_init();
	c->values[CONFIG_STORE_DEADLINE].number = PATIENCE_MS; /* nobody waits on the other end of a connection */
	if (is_embedded && config_number(c, CONFIG_STORE) == APP_DYNAMODB)
		return misused(str_format(&c->arena, "%s is for the embedded store, but LEASEHOLD_STORE is dynamodb",
		                          args->command->name)
		                       .p);
	switch (id) {
	case CLI_COMMAND_STORE_BACKUP: return run_backup(to, c);
	case CLI_COMMAND_INIT: return run_init(c);
	case CLI_COMMAND_STORE_RESTORE:
		return config_number(c, CONFIG_STORE) == APP_DYNAMODB ? run_restored(from, c) : run_restore(from, c);
	case CLI_COMMAND_STORE_COMPACT: return run_compact(c);
	case CLI_COMMAND_STORE_CREATE_TABLES: return run_tables(c, false);
	case CLI_COMMAND_STORE_COPY: return run_copy(from, to, c);
	default: return run_check(c);
	}
}

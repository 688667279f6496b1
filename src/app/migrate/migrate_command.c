/* SPDX-License-Identifier: Apache-2.0 */
/*
 * migrate_command.c - takes over what another system keeps: says what it would do, does it, and takes it back.
 *
 * Always true:
 *   1. The other system's tables are only read.
 *   2. Without --fix nothing is written at all. What is here already is never changed.              [take()]
 *   3. What was taken over is noted in a file before it is written, one key a line. The way back removes exactly that,
 *      and nothing whose status is another by now: that is in use here.                               [give_back()]
 *
 * It can be run again at any time: what is there already is passed over.
 */
#include "app/migrate/migrate_command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "app/config/config.h"
#include "app/migrate/isb_items.h"
#include "app/store/store_command.h"
#include "app/store/stores.h"
#include "base/arena.h"
#include "base/clock.h"
#include "cli/term/args.h"
#include "cli/term/io.h"
#include "domain/sandbox.h"
#include "net/fetch.h"
#include "service/broker/records.h"
#include "service/record/lease_records.h"
#include "store/session.h"
#include "store/walk.h"

enum { PATIENCE_MS = 30000, PAGE = 100, LINE_MAX_BYTES = 512 };

struct migration {
	struct app_store to;
	bool             is_done; /* else it is only told */
	FILE            *notes;   /* of what was taken over */
	int64_t          taken, there, left;
};

static const struct record_type *const kinds[] = { &account_type, &lease_type, &sandbox_type };

/* --- one record --- */

struct taking {
	const struct record_type *type;
	const void               *record;
	bool                      is_new;
};

static enum rc count_lessee(struct session *s, const struct taking *t, int by, struct err *e)
{
	const struct lease *l = t->record;
	struct lessee       lessee;
	enum rc             rc;

	if (t->type != &lease_type || !lease_is_live(l->status))
		return RC_OK;
	if ((rc = session_find_or_new(s, &lessee_type, l->user_key, &lessee, e)))
		return rc;
	lessee.live += by;
	session_put(s, &lessee_type, &lessee);
	return RC_OK;
}

static enum rc look(struct session *s, void *arg, struct err *e)
{
	struct taking *t = arg;
	void          *other = arena_alloc(session_arena(s), t->type->size);
	enum rc        rc = session_find(s, t->type, record_key(t->type, t->record), other, &t->is_new, e);

	t->is_new = !t->is_new;
	return rc;
}

static enum rc add(struct session *s, void *arg, struct err *e)
{
	struct taking *t = arg;
	enum rc        rc = look(s, t, e);

	if (rc || !t->is_new)
		return rc;
	session_put(s, t->type, arena_copy(session_arena(s), t->record, t->type->size)); /* it counts its version up */
	return count_lessee(s, t, 1, e);
}

static struct str status_of(const struct record_type *type, const void *record)
{
	if (type == &lease_type)
		return str_from(lease_status_names[((const struct lease *)record)->status]);
	if (type == &account_type)
		return str_from(account_status_names[((const struct account *)record)->status]);
	return str_from(sandbox_state_names[((const struct sandbox *)record)->status]);
}

static void say(const struct record_type *type, struct str key, struct str status, const char *what, struct str why)
{
	printf("%-8s %-40.*s %-20.*s %s%s%.*s\n", type->name, STR_ARG(key), STR_ARG(status), what, why.n ? ": " : "",
	       STR_ARG(why));
}

/* why: it is left, and why. */
static enum rc take(struct migration *m, const struct record_type *type, const void *record, struct str why,
                    struct err *e)
{
	struct taking t = { .type = type, .record = record };
	struct str    key = record_key(type, record), status = status_of(type, record);
	struct err    bad = { 0 };
	enum rc       rc;

	if (!why.n && record_check(type, record, &bad))
		why = str_from(bad.msg);
	if (why.n) {
		m->left++;
		say(type, key, status, "left", why);
		return RC_OK;
	}
	if ((rc = store_read(m->to.store, look, &t, NULL, e)))
		return rc;
	if (t.is_new && m->is_done) {
		if (fprintf(m->notes, "%s %.*s %.*s\n", type->name, STR_ARG(key), STR_ARG(status)) < 0 ||
		    fflush(m->notes))
			return err_set(e, RC_UNAVAILABLE, "the file of what was taken over: %s", strerror(errno));
		if ((rc = store_run(m->to.store, add, &t, NULL, e)))
			return err_wrap(e, rc, "%s %.*s", type->name, STR_ARG(key));
	}
	m->taken += t.is_new;
	m->there += !t.is_new;
	say(type, key, status,
	    !t.is_new    ? "is here already"
	    : m->is_done ? "taken over"
	                 : "would be taken over",
	    STR(""));
	return RC_OK;
}

/* --- from an Innovation Sandbox --- */

static enum rc from_isb(struct migration *m, struct config *c, const char *accounts, const char *leases, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct app_store                 from = { 0 };
	struct isb_tables                t;
	enum rc                          rc;

	app_open_dynamodb(c, &clock_real, &from);
	rc = isb_tables_read(from.client, accounts, leases, clock_now(&clock_real).ms, &a, &t, e);
	/* The lease first: an account in use whose lease is missing here would have nobody to end it. */
	for (size_t i = 0; !rc && i < t.lease_count; i++)
		rc = take(m, &lease_type, &t.leases[i].lease, t.leases[i].why, e);
	for (size_t i = 0; !rc && i < t.account_count; i++)
		rc = take(m, &account_type, &t.accounts[i].account, t.accounts[i].why, e);
	app_store_close(&from);
	return rc;
}

/* --- from the upstream broker --- */

static enum rc take_sandboxes(const struct page *page, struct arena *a UNUSED, void *arg, struct err *e)
{
	struct migration *m = arg;
	enum rc           rc = RC_OK;

	for (size_t i = 0; !rc && i < page->count; i++) {
		struct sandbox box = *(struct sandbox *)page_record(page, &sandbox_type, i);

		box.version = 0; /* it is new here */
		rc = take(m, &sandbox_type, &box, STR(""), e);
	}
	return rc;
}

/* Its table has the form of ours: it is read as ours is. */
static enum rc from_broker(struct migration *m, struct config *c, const char *table, struct err *e)
{
	struct app_store from = { 0 };
	struct query     q = { .type = &sandbox_type, .index = QUERY_ALL, .limit = PAGE };
	enum rc          rc;

	if (m->to.kind == APP_DYNAMODB && str_eq(config_str(c, CONFIG_DDB_TABLE), str_from(table)))
		return err_set(
		        e, RC_INVALID,
		        "%s is the pool's table of the settings: it is used as it is, and nothing is to be taken over",
		        table);
	c->values[CONFIG_DDB_TABLE].text = str_from(table);
	app_open_dynamodb(c, &clock_real, &from);
	rc = store_read_pages(from.store, &q, take_sandboxes, m, e);
	app_store_close(&from);
	return rc;
}

/* --- back --- */

struct giving {
	const struct record_type *type;
	struct str                key, status; /* as it was taken over */
	const char               *what;        /* the answer */
};

static enum rc give_back(struct session *s, void *arg, struct err *e)
{
	struct giving *g = arg;
	void          *record = arena_alloc(session_arena(s), g->type->size);
	struct taking  t = { .type = g->type, .record = record };
	bool           is_there;
	enum rc        rc = session_find(s, g->type, g->key, record, &is_there, e);

	g->what = "is gone already";
	if (rc || !is_there)
		return rc;
	g->what = "has another status by now, and stays";
	if (!str_eq(g->status, status_of(g->type, record)))
		return RC_OK;
	g->what = "removed";
	session_delete(s, g->type, g->key);
	return count_lessee(s, &t, -1, e);
}

static enum rc undo_line(struct migration *m, char *line, struct err *e)
{
	struct str    rest = str_from(line), whole = str_cut(&rest, '\n'), status = whole;
	struct str    kind = str_cut(&status, ' '), key = str_cut(&status, ' ');
	struct giving g = { .key = key, .status = status };
	enum rc       rc;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (str_eq(kind, str_from(kinds[i]->name)))
			g.type = kinds[i];
	if (!g.type || !key.n || !status.n)
		return err_set(e, RC_INVALID,
		               "a line must be 'account ID STATUS', or of a lease or a sandbox, not '%.*s'",
		               STR_ARG(whole));
	if (!m->is_done) {
		say(g.type, g.key, g.status, "would be removed, unless it has another status by now", STR(""));
		return RC_OK;
	}
	if ((rc = store_run(m->to.store, give_back, &g, NULL, e)))
		return err_wrap(e, rc, "%s %.*s", g.type->name, STR_ARG(g.key));
	say(g.type, g.key, g.status, g.what, STR(""));
	return RC_OK;
}

static enum rc undo(struct migration *m, const char *path, struct err *e)
{
	FILE   *f = fopen(path, "r");
	char    line[LINE_MAX_BYTES];
	enum rc rc = RC_OK;

	if (!f)
		return err_set(e, RC_NOT_FOUND, "%s: %s", path, strerror(errno));
	while (!rc && fgets(line, sizeof(line), f))
		rc = undo_line(m, line, e);
	fclose(f);
	return rc;
}

/* --- the command --- */

static enum rc open_notes(struct migration *m, const char *path, struct err *e)
{
	if (!path)
		return err_set(
		        e, RC_INVALID,
		        "--to FILE must be given with --fix: what is taken over is noted there, for the way back");
	m->notes = fopen(path, "a");
	return m->notes ? RC_OK : err_set(e, RC_INVALID, "%s: %s", path, strerror(errno));
}

int migrate_command(const struct cli_args *args, struct config *c)
{
	enum cli_command_id id = (enum cli_command_id)(args->command - cli_commands);
	struct migration    m = { .is_done = args->values[CLI_OPTION_FIX] != NULL };
	struct err          e = { 0 };
	bool                is_undo = id == CLI_COMMAND_MIGRATE_UNDO;
	enum rc             rc = m.is_done && !is_undo ? open_notes(&m, args->values[CLI_OPTION_TO], &e) : RC_OK;

	umask(077); /* what is written here holds other people's names */
	fetch_global_init();
	c->values[CONFIG_STORE_DEADLINE].number = PATIENCE_MS; /* nobody waits on the other end of a connection */
	if (!rc)
		rc = app_open_alone(c, &clock_real, &m.to, &e);
	if (!rc)
		rc = is_undo                            ? undo(&m, args->operands[0], &e)
		     : id == CLI_COMMAND_MIGRATE_BROKER ? from_broker(&m, c, args->operands[0], &e)
		                                        : from_isb(&m, c, args->operands[0], args->operands[1], &e);
	app_store_close(&m.to);
	if (m.notes && fclose(m.notes) && !rc)
		rc = err_set(&e, RC_UNAVAILABLE, "the file of what was taken over: %s", strerror(errno));
	if (rc)
		return store_report(&e);
	if (!is_undo)
		printf("%" PRId64 " %s, %" PRId64 " here already, %" PRId64 " left\n", m.taken,
		       m.is_done ? "taken over" : "would be taken over", m.there, m.left);
	return CLI_EXIT_OK;
}

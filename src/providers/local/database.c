/* SPDX-License-Identifier: Apache-2.0 */
/*
 * database.c - one private mariadbd on a Unix socket, and a database with a user of its own for each tenant.
 *
 * We talk to it with the client program, by its input: see docs/decisions/0035. The administrator is whoever we are,
 * known by the socket; the tenants' users have passwords. The server is given hashes of these only, so neither it nor
 * any log of it has seen one.
 */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/id.h"
#include "base/password.h"
#include "domain/instance.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"

/* --- the server --- */

/* Each attempt has its own: a program that the last one has started may still write into its. */
#define DRAFT "tmp/mariadb-"

static void remove_drafts(struct local *l)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	glob_t                           found;

	if (glob(local_path(l, &a, DRAFT "*").p, 0, NULL, &found) == 0) {
		for (size_t i = 0; i < found.gl_pathc; i++)
			rc_ignore(tree_remove(found.gl_pathv[i], NULL)); /* the next one tries again */
		globfree(&found);
	}
}

static enum rc install(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	char                             id[ID_UUID_SIZE];
	struct str                       data = local_path(l, &a, "mariadb/data"), draft;
	struct file_owner owner = { l->is_root ? l->database_uid : (uid_t)-1, l->is_root ? l->database_gid : (gid_t)-1,
		                    0755 };
	const char *args[] = { "mariadb-install-db",
		               "--no-defaults",
		               "--auth-root-authentication-method=socket",
		               str_format(&a, "--auth-root-socket-user=%s", l->user.p).p,
		               "--skip-test-db",
		               "--skip-name-resolve",
		               l->is_root ? "--user=mysql" : "--skip-test-db",
		               NULL, /* the draft */
		               NULL };
	struct stat about;
	enum rc     rc;

	if (stat(data.p, &about) == 0)
		return RC_OK;
	remove_drafts(l);
	id_uuid(id);
	draft = local_path(l, &a, DRAFT "%s", id);
	args[ARRAY_LEN(args) - 2] = str_format(&a, "--datadir=%s", draft.p).p;
	if (!(rc = folder_make(local_path(l, &a, "mariadb").p, owner, e)) &&
	    !(rc = run_program(&(struct run){ .args = args, .limit_ms = PROGRAM_MS }, &a, NULL, e)) &&
	    rename(draft.p, data.p) != 0)
		rc = err_set(e, RC_UNAVAILABLE, "cannot name the database's folder %s: %s", data.p, strerror(errno));
	return rc;
}

void database_plan(struct local *l)
{
	struct arena     *a = &l->arena;
	struct child_plan p = {
		.lock = local_path(l, a, "run/mariadb.lock"),
		.log = local_path(l, a, "log/mariadb.log"),
		.socket = database_socket(l, a),
		.stop_signal = SIGTERM,
		.args = { "/usr/sbin/mariadbd", "--no-defaults", l->is_root ? "--user=mysql" : "--skip-name-resolve",
		          str_format(a, "--datadir=%s", local_path(l, a, "mariadb/data").p).p,
		          str_format(a, "--socket=%s", database_socket(l, a).p).p,
		          str_format(a, "--pid-file=%s", local_path(l, a, "mariadb/pid").p).p, "--skip-networking",
		          "--performance-schema=OFF", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=32M",
		          "--skip-name-resolve", "--max-connections=500", "--character-set-server=utf8mb4",
		          "--collation-server=utf8mb4_unicode_ci", "--local-infile=0", "--skip-log-bin",
		          "--symbolic-links=0" },
	};

	l->database.plan = p;
}

enum rc database_start(struct local *l, struct err *e)
{
	enum rc rc = RC_OK;

	pthread_mutex_lock(&l->uid_mutex); /* one installs */
	if (!l->has_database && !(rc = install(l, e)))
		l->has_database = true;
	pthread_mutex_unlock(&l->uid_mutex);
	return rc ? rc : supervise_want(l, &l->database, e);
}

/* Runs statements as the administrator; ret may be NULL. RC_UNAVAILABLE: no server. */
static enum rc database_run(struct local *l, struct str sql, struct arena *a, struct str *ret, struct err *e)
{
	const char *const args[] = { "mariadb",
		                     "--no-defaults",
		                     "--batch",
		                     "--skip-column-names",
		                     str_format(a, "--socket=%s", database_socket(l, a).p).p,
		                     NULL };
	enum rc           rc = database_start(l, e);

	return rc ? rc : run_program(&(struct run){ .args = args, .in = sql, .limit_ms = PROGRAM_MS }, a, ret, e);
}

enum rc database_client(struct local *l, const struct site *s, struct arena *a, struct database_client *ret,
                        struct err *e)
{
	struct site_secret secret;
	enum rc            rc = secret_read(l, s, a, &secret, e);

	if (rc || (rc = database_start(l, e)))
		return rc;
	*ret = (struct database_client){
		.args = { "mariadb", "--no-defaults", "--batch",
		          str_format(a, "--socket=%s", database_socket(l, a).p).p,
		          str_format(a, "--user=%s", site_user(s, a).p).p, "--default-character-set=utf8mb4",
		          site_database(s, a).p },
		.env = { run_environment[0], str_format(a, "MYSQL_PWD=%.*s", STR_ARG(secret.database_password)).p },
	};
	return RC_OK;
}

enum rc database_run_as(struct local *l, const struct site *s, struct str sql, struct arena *a, struct err *e)
{
	struct database_client c;
	enum rc                rc = database_client(l, s, a, &c, e);
	struct run             run = { .args = c.args, .env = c.env, .in = sql, .limit_ms = PROGRAM_MS };

	return rc ? rc : run_program(&run, a, NULL, e);
}

/* --- a tenant's --- */

#define CREATE_DATABASE "CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;\n"

/* A user without a password that anybody knows; secret_make() gives it one. */
enum rc database_make(struct local *l, struct site *s, const struct instance_spec *spec UNUSED, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str name = site_database(s, &a), user = site_user(s, &a), hash = hash_mysql(&a, password_new(&a));
	struct str sql =
	        str_format(&a,
	                   CREATE_DATABASE
	                   "CREATE USER IF NOT EXISTS `%s`@localhost IDENTIFIED VIA mysql_native_password USING '%s';\n"
	                   "GRANT ALL PRIVILEGES ON `%s`.* TO `%s`@localhost;\n",
	                   name.p, user.p, hash.p, instance_granted_name(name, &a).p, user.p);

	return database_run(l, sql, &a, NULL, e);
}

/* Its user keeps the right to it. */
enum rc database_empty(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       name = site_database(s, &a);

	return database_run(l, str_format(&a, "DROP DATABASE IF EXISTS `%s`;\n" CREATE_DATABASE, name.p, name.p), &a,
	                    NULL, e);
}

enum rc database_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str sql = str_format(&a, "DROP USER IF EXISTS `%s`@localhost;\nDROP DATABASE IF EXISTS `%s`;\n",
	                            site_user(s, &a).p, site_database(s, &a).p);

	return database_run(l, sql, &a, NULL, e);
}

enum rc database_check(struct local *l, struct site *s, bool *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       name = site_database(s, &a), user = site_user(s, &a), out = STR("");
	struct str                       sql = str_format(&a,
	                                                  "SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME='%s' AND "
	                                                                        "DEFAULT_COLLATION_NAME='utf8mb4_unicode_ci';\n"
	                                                                        "SELECT COUNT(*) FROM mysql.db WHERE User='%s' AND Db='%s' AND Host='localhost';\n"
	                                                                        "SELECT COUNT(*) FROM mysql.db WHERE User='%s';\n",
	                                                  name.p, user.p, instance_granted_name(name, &a).p, user.p);
	enum rc                          rc = database_run(l, sql, &a, &out, e);

	if (!rc)
		*ret = str_eq(out, STR("1\n1\n1\n"));
	return rc;
}

enum rc database_set_password(struct local *l, struct site *s, struct str old, struct str password, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str user = site_user(s, &a), hash = hash_mysql(&a, password), other = hash_mysql(&a, old);
	struct str sql =
	        str_format(&a, "ALTER USER `%s`@localhost IDENTIFIED VIA mysql_native_password USING '%s'%s%s%s;\n",
	                   user.p, hash.p, old.n ? " OR mysql_native_password USING '" : "", old.n ? other.p : "",
	                   old.n ? "'" : "");

	return database_run(l, sql, &a, NULL, e);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rds.c - a tenant's database and its user, on the shared MariaDB.
 *
 * A database's comment says whose it is: "leasehold ENVIRONMENT TENANT INSTANCE". The user is locked until it has the
 * secret's password. The server gets only hashes of passwords, so that none of its logs can show one.
 *
 * Names are made from the tenant's short name, which has only letters, digits and dashes, and are checked again before
 * they go into a statement; nothing else that a tenant chose does. In a GRANT, '_' would stand for any character: it is
 * escaped.
 */
#include "base/hash.h"
#include "base/password.h"
#include "providers/aws/instances/instances_private.h"
#include "providers/aws/instances/sql.h"

#define MARK "leasehold"

struct str rds_name(const struct site *s)
{
	return instance_resource_name(s->tenant, INSTANCE_DATABASE, s->a);
}

struct str rds_user(const struct site *s)
{
	struct str name = rds_name(s);

	return str_format(s->a, "%.*suser", (int)(name.n - 2), name.p); /* _db becomes _user */
}

static enum rc connect_to(struct site *s, struct sql **ret, struct err *e)
{
	struct sql_options o = { .host = s->x->o.db_host, .ca_file = s->x->o.db_ca_file };
	enum rc            rc;

	if (!sql_name_is_ok(rds_name(s)) || !sql_name_is_ok(rds_user(s)))
		return err_set(e, RC_INVALID, "'%s' cannot be part of a database's name", s->t);
	rc = vault_read(s, s->x->o.db_admin, &o.user, &o.password, e);
	if (rc)
		return err_wrap(e, rc == RC_NOT_FOUND ? RC_DENIED : rc, "the database's administrator");
	return sql_open(&o, ret, e);
}

/* --- what there is --- */

/* The instance's id, of a comment of ours; empty: it is not ours. */
static struct str key_in(struct str comment, struct str env, struct str tenant)
{
	struct str mark = str_cut(&comment, ' '), where = str_cut(&comment, ' '), who = str_cut(&comment, ' ');

	return str_eq(mark, STR(MARK)) && str_eq(where, env) && str_eq(who, tenant) ? comment : STR("");
}

struct database {
	struct str comment;
	bool       has_database, has_user, has_right;
};

static enum rc look(struct site *s, struct sql *c, struct database *ret, struct err *e)
{
	struct str name = rds_name(s), user = rds_user(s), *rows;
	size_t     count;
	enum rc    rc;

	*ret = (struct database){ 0 };
	if ((rc = sql_ask(c, "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?", name, s->a,
	                  &rows, &count, e)))
		return rc;
	ret->has_database = count > 0;
	ret->comment = count ? rows[0] : STR("");
	if ((rc = sql_ask(c, "SELECT Host FROM mysql.user WHERE User = ?", user, s->a, &rows, &count, e)))
		return rc;
	ret->has_user = count > 0;
	if ((rc = sql_ask(c, "SELECT Db FROM mysql.db WHERE User = ?", user, s->a, &rows, &count, e)))
		return rc;
	ret->has_right = count == 1 && str_eq(rows[0], instance_granted_name(rds_name(s), s->a));
	return RC_OK;
}

static struct str outputs_of(const struct site *s, struct str key)
{
	return JSON_OF(s->a, member_if_any(member_str("instance", key)), member_str("id", rds_name(s)),
	               member_str("name", rds_name(s)), member_str("user", rds_user(s)),
	               member_str("host", s->x->o.db_host));
}

enum rc rds_check(struct site *s, bool *ret_exists, struct str *ret_outputs, struct err *e)
{
	CLEANUP(sql_closep) struct sql *c = NULL;
	struct database                 d;
	enum rc                         rc = connect_to(s, &c, e);

	if (rc || (rc = look(s, c, &d, e)))
		return rc;
	*ret_exists = d.has_database || d.has_user;
	*ret_outputs = outputs_of(s, key_in(d.comment, s->x->o.env, s->tenant));
	return RC_OK;
}

/* --- made and removed --- */

static enum rc make_all(struct site *s, struct sql *c, struct err *e)
{
	struct str name = rds_name(s), user = rds_user(s), hash = hash_mysql(s->a, password_new(s->a));
	struct str key = s->spec->instance, env = s->x->o.env;
	enum rc    rc;

	rc = sql_do(c,
	            str_format(s->a,
	                       "CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci "
	                       "COMMENT '" MARK " %.*s %.*s %.*s'",
	                       name.p, STR_ARG(env), STR_ARG(s->tenant), STR_ARG(key)),
	            e);
	if (!rc)
		rc = sql_do(c,
		            str_format(s->a,
		                       "CREATE USER IF NOT EXISTS `%s`@'%%' IDENTIFIED VIA mysql_native_password USING "
		                       "'%.*s' REQUIRE SSL ACCOUNT LOCK",
		                       user.p, STR_ARG(hash)),
		            e);
	if (!rc)
		rc = sql_do(c,
		            str_format(s->a, "GRANT ALL PRIVILEGES ON `%s`.* TO `%s`@'%%'",
		                       instance_granted_name(name, s->a).p, user.p),
		            e);
	return rc;
}

enum rc rds_make(struct site *s, struct str *ret_outputs, struct err *e)
{
	CLEANUP(sql_closep) struct sql *c = NULL;
	struct database                 d;
	struct str                      key;
	enum rc                         rc = connect_to(s, &c, e);

	if (rc || (rc = look(s, c, &d, e)))
		return rc;
	key = key_in(d.comment, s->x->o.env, s->tenant);
	if (d.has_database && !str_eq(key, s->spec->instance))
		return err_set(e, RC_CONFLICT, "tenant %.*s has the database of %s%.*s", STR_ARG(s->tenant),
		               key.n ? "another instance, " : "somebody else", STR_ARG(key));
	if ((rc = make_all(s, c, e)) || (rc = look(s, c, &d, e)))
		return rc;
	if (!d.has_right)
		return err_set(e, RC_UNAVAILABLE, "the user %s has other rights than to its own database",
		               rds_user(s).p);
	*ret_outputs = outputs_of(s, s->spec->instance);
	return RC_OK;
}

enum rc rds_remove(struct site *s, struct err *e)
{
	CLEANUP(sql_closep) struct sql *c = NULL;
	enum rc                         rc = connect_to(s, &c, e);

	if (rc || (rc = sql_do(c, str_format(s->a, "DROP USER IF EXISTS `%s`@'%%'", rds_user(s).p), e)))
		return rc;
	return sql_do(c, str_format(s->a, "DROP DATABASE IF EXISTS `%s`", rds_name(s).p), e);
}

/* The server keeps the first way to log in by itself, and all of them as "auth_or" once there is another. */
enum rc rds_is_changing(struct site *s, struct str password, bool *ret, struct err *e)
{
	CLEANUP(json_freep) json_t     *kept = NULL;
	CLEANUP(sql_closep) struct sql *c = NULL;
	struct str                      user = rds_user(s), first = STR(""), *rows;
	size_t                          count;
	enum rc                         rc = connect_to(s, &c, e);

	if (rc)
		return rc;
	rc = sql_ask(c, "SELECT Priv FROM mysql.global_priv WHERE User = ? AND Host = '%'", user, s->a, &rows, &count,
	             e);
	if (!rc && count && !json_parse(rows[0], &kept, NULL))
		json_get_text(kept, "authentication_string", &first);
	*ret = str_eq(first, hash_mysql(s->a, password)) && json_array_size(json_object_get(kept, "auth_or")) > 1;
	return rc;
}

/* Then the user can log in, with it or, while tasks still have the one before, with the other. */
enum rc rds_set_password(struct site *s, struct str password, struct str other, struct err *e)
{
	CLEANUP(sql_closep) struct sql *c = NULL, *its = NULL;
	struct str         first = hash_mysql(s->a, password), second = hash_mysql(s->a, other), user = rds_user(s);
	struct sql_options own = { s->x->o.db_host, user, password, s->x->o.db_ca_file };
	enum rc            rc = connect_to(s, &c, e);

	if (rc)
		return rc;
	rc = sql_do(c,
	            str_format(s->a,
	                       "ALTER USER `%s`@'%%' IDENTIFIED VIA mysql_native_password USING '%.*s'%s%.*s%s "
	                       "REQUIRE SSL ACCOUNT UNLOCK",
	                       user.p, STR_ARG(first), other.n ? " OR mysql_native_password USING '" : "",
	                       other.n ? (int)second.n : 0, second.p, other.n ? "'" : ""),
	            e);
	return rc ? rc : sql_open(&own, &its, e);
}

enum rc rds_list(struct site *s, void (*each)(void *arg, struct str tenant, struct str key), void *arg, struct err *e)
{
	CLEANUP(sql_closep) struct sql *c = NULL;
	struct str                     *rows, begin = str_format(s->a, MARK " %.*s %%", STR_ARG(s->x->o.env));
	size_t                          count;
	enum rc                         rc = connect_to(s, &c, e);

	if (rc)
		return rc;
	rc = sql_ask(c, "SELECT SCHEMA_COMMENT FROM information_schema.SCHEMATA WHERE SCHEMA_COMMENT LIKE ?", begin,
	             s->a, &rows, &count, e);
	for (size_t i = 0; !rc && i < count; i++) {
		struct str key = rows[i], tenant;

		str_cut(&key, ' ');
		str_cut(&key, ' ');
		tenant = str_cut(&key, ' ');
		each(arg, tenant, key);
	}
	return rc;
}

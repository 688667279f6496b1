/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sql.c - see sql.h. By Debian's MariaDB client library.
 *
 * A connection is made for each call of the driver and lives as long as that: the calls are few, and the server's
 * administrator may be given a new password at any time.
 */
#include "providers/aws/instances/sql.h"

#include <mysql.h>
#include <stdlib.h>

#include "base/grow.h"
#include "base/mem.h"

enum { CONNECT_SEC = 5, ANSWER_SEC = 20, PORT = 3306, TEXT_MAX = 4096 };

struct sql {
	MYSQL *my;
};

/* clang-format off */
static const struct {
	unsigned number;
	enum rc  rc;
} meanings[] = {
	{ 1044, RC_DENIED },      { 1045, RC_DENIED },      { 1142, RC_DENIED },      { 1227, RC_DENIED },      { 1698, RC_DENIED },
	{ 1021, RC_INVALID },     { 1114, RC_INVALID }, /* it is full */
	{ 1040, RC_UNAVAILABLE }, { 1053, RC_UNAVAILABLE }, { 1203, RC_UNAVAILABLE }, { 1205, RC_UNAVAILABLE }, { 1213, RC_UNAVAILABLE },
	{ 1290, RC_UNAVAILABLE }, /* read-only, while another takes over */
	{ 2002, RC_UNAVAILABLE }, { 2003, RC_UNAVAILABLE }, { 2005, RC_UNAVAILABLE },
	/* the connection was lost, whoever has noticed it, and whatever was done by then */
	{ 1158, RC_TIMEOUT },     { 1159, RC_TIMEOUT },     { 1160, RC_TIMEOUT },     { 1161, RC_TIMEOUT },     { 1927, RC_TIMEOUT },
	{ 2006, RC_TIMEOUT },     { 2012, RC_TIMEOUT },     { 2013, RC_TIMEOUT },     { 2026, RC_TIMEOUT },     { 2027, RC_TIMEOUT },     { 2055, RC_TIMEOUT },
};
/* clang-format on */

enum { TLS_FAILED = 2026 };

/* The server quotes what it did not understand, which may be a hash: that text stays here. Most failures of TLS are a
 * connection that was lost; a certificate, or a server without TLS, is for a person to put right. */
static enum rc judge(unsigned number, const char *text, struct err *e)
{
	enum rc rc = RC_INTERNAL;

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
		if (meanings[i].number == number)
			rc = meanings[i].rc;
	if (number == TLS_FAILED && (strstr(text, "ertificate") || strstr(text, "required")))
		rc = RC_DENIED;
	return err_set(e, rc, "the database server: error %u%s%s", number, rc == RC_INTERNAL ? "" : ": ",
	               rc == RC_INTERNAL ? "" : text);
}

static enum rc split_host(struct str from, struct arena *a, const char **ret_host, unsigned *ret_port, struct err *e)
{
	struct str port = from, host = str_cut(&port, ':');
	int64_t    number = PORT;

	if (!host.n || (port.n && !str_to_int(port, 1, 65535, &number)))
		return err_set(e, RC_INVALID, "the database server must be HOST or HOST:PORT, not '%.*s'",
		               STR_ARG(from));
	*ret_host = str_dup(a, host).p;
	*ret_port = (unsigned)number;
	return RC_OK;
}

static enum rc connect_to(MYSQL *my, const struct sql_options *o, struct arena *a, struct err *e)
{
	unsigned    connect_sec = CONNECT_SEC, answer_sec = ANSWER_SEC, tcp = MYSQL_PROTOCOL_TCP, port = 0, never = 0;
	my_bool     yes = 1, no = 0;
	const char *host = NULL;
	enum rc     rc = split_host(o->host, a, &host, &port, e);

	if (rc)
		return rc;
	mysql_options(my, MYSQL_OPT_CONNECT_TIMEOUT, &connect_sec);
	mysql_options(my, MYSQL_OPT_READ_TIMEOUT, &answer_sec);
	mysql_options(my, MYSQL_OPT_WRITE_TIMEOUT, &answer_sec);
	mysql_options(my, MYSQL_OPT_PROTOCOL, &tcp);
	mysql_options(my, MYSQL_OPT_RECONNECT, &no);
	mysql_options(my, MYSQL_OPT_LOCAL_INFILE, &never); /* NULL would mean yes */
	mysql_options(my, MYSQL_OPT_SSL_ENFORCE, &yes);
	mysql_options(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &yes);
	if (o->ca_file)
		mysql_options(my, MYSQL_OPT_SSL_CA, o->ca_file);
	mysql_options(my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (!mysql_real_connect(my, host, str_dup(a, o->user).p, str_dup(a, o->password).p, NULL, port, NULL, 0))
		return err_wrap(e, judge(mysql_errno(my), mysql_error(my), e), "%s", host);
	return RC_OK;
}

enum rc sql_begin(struct err *e)
{
	return mysql_library_init(0, NULL, NULL) ? err_set(e, RC_INTERNAL, "MariaDB's client library cannot be used")
	                                         : RC_OK;
}

enum rc sql_open(const struct sql_options *o, struct sql **ret, struct err *e)
{
	struct arena a = { 0 };
	MYSQL       *my = mysql_init(NULL);
	enum rc      rc;

	if (!my)
		mem_out("a connection");
	rc = connect_to(my, o, &a, e);
	arena_fini(&a);
	if (rc) {
		mysql_close(my);
		return rc;
	}
	*ret = mem_new(struct sql);
	(*ret)->my = my;
	return RC_OK;
}

void sql_closep(struct sql **c)
{
	if (*c)
		mysql_close((*c)->my);
	free(*c);
}

enum rc sql_do(struct sql *c, struct str statement, struct err *e)
{
	if (mysql_real_query(c->my, statement.p, statement.n))
		return judge(mysql_errno(c->my), mysql_error(c->my), e);
	return RC_OK;
}

/* --- prepared --- */

static enum rc read_rows(MYSQL_STMT *st, struct arena *a, struct str **ret, size_t *ret_count, struct err *e)
{
	char          text[TEXT_MAX];
	unsigned long length;
	my_bool       is_null, is_cut;
	MYSQL_BIND    bind = { .buffer_type = MYSQL_TYPE_STRING,
		               .buffer = text,
		               .buffer_length = TEXT_MAX,
		               .length = &length,
		               .is_null = &is_null,
		               .error = &is_cut };
	size_t        room = 0;
	int           got;

	if (mysql_stmt_field_count(st) != 1)
		return err_set(e, RC_INTERNAL, "a question of %u columns", mysql_stmt_field_count(st));
	if (mysql_stmt_bind_result(st, &bind))
		return judge(mysql_stmt_errno(st), mysql_stmt_error(st), e);
	while ((got = mysql_stmt_fetch(st)) == 0) {
		*ret = arena_grow(a, *ret, *ret_count, &room, sizeof(**ret));
		(*ret)[(*ret_count)++] = is_null ? STR("") : str_dup(a, str_of(text, length));
		if (*ret_count > SQL_ROWS_MAX)
			return err_set(e, RC_TOO_LARGE, "the database server answers with more than %d texts",
			               SQL_ROWS_MAX);
	}
	if (got == MYSQL_DATA_TRUNCATED)
		return err_set(e, RC_TOO_LARGE, "the database server answers with a text of more than %d bytes",
		               TEXT_MAX);
	return got == MYSQL_NO_DATA ? RC_OK : judge(mysql_stmt_errno(st), mysql_stmt_error(st), e);
}

enum rc sql_ask(struct sql *c, const char *statement, struct str text, struct arena *a, struct str **ret,
                size_t *ret_count, struct err *e)
{
	MYSQL_STMT *st = mysql_stmt_init(c->my);
	MYSQL_BIND  bind = { .buffer_type = MYSQL_TYPE_STRING,
		             .buffer = arena_copy(a, text.p, text.n),
		             .buffer_length = text.n };
	enum rc     rc;

	if (!st)
		mem_out("a statement");
	*ret = NULL;
	*ret_count = 0;
	if (mysql_stmt_prepare(st, statement, strlen(statement)) || mysql_stmt_bind_param(st, &bind) ||
	    mysql_stmt_execute(st))
		rc = judge(mysql_stmt_errno(st), mysql_stmt_error(st), e);
	else
		rc = read_rows(st, a, ret, ret_count, e);
	mysql_stmt_close(st);
	return rc;
}

bool sql_name_is_ok(struct str name)
{
	return name.n && name.n <= 64 && str_is_of(name, "a-z0-9_");
}

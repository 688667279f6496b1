/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity.c - tenants' identity pools: php/identity.php, an OpenID provider in a php-fpm of its own, below
 * /identity/TENANT/ on the router.
 *
 * It has a user of its own, so no tenant's code gets at a pool, and the provider at no tenant's site. See
 * docs/decisions/0037 for why it is ours.
 */
#include <signal.h>
#include <sys/stat.h>

#include "base/json.h"
#include "providers/local/fastcgi.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum { IDENTITY_UID = UID_FIRST - 1 };

static uid_t identity_uid(const struct local *l)
{
	return l->is_root ? IDENTITY_UID : 0;
}

struct str identity_issuer(const struct local *l, const struct site *s, struct arena *a)
{
	return str_format(a, "%.*s/identity/%s", STR_ARG(l->origin), s->tenant);
}

struct str pool_folder(const struct local *l, const struct site *s, struct arena *a)
{
	return local_path(l, a, "identity/pools/%s", s->tenant);
}

/* --- the server --- */

static const char rule[] =
        "location ^~ /identity/ {\nfastcgi_pass unix:%s/s/identity;\nfastcgi_param SCRIPT_FILENAME %s/php/identity.php;\n"
        "fastcgi_param LEASEHOLD_POOLS %s/identity/pools;\nfastcgi_param QUERY_STRING $query_string;\n"
        "fastcgi_param REQUEST_METHOD $request_method;\nfastcgi_param CONTENT_TYPE $content_type;\n"
        "fastcgi_param CONTENT_LENGTH $content_length;\nfastcgi_param REQUEST_URI $request_uri;\n"
        "fastcgi_param SCRIPT_NAME /identity.php;\nfastcgi_param SERVER_PROTOCOL $server_protocol;\n"
        "fastcgi_param REMOTE_ADDR $remote_addr;\nfastcgi_param HTTP_PROXY \"\";\nclient_max_body_size 16k;\n}\n";

static const char pool[] =
        "[global]\nerror_log = %s/log/identity.log\nprocess_control_timeout = 5s\ndaemonize = no\n"
        "[identity]\nlisten = %s/s/identity\n%slisten.mode = 0600\nping.path = " FASTCGI_PING_PATH "\n"
        "pm = ondemand\npm.max_children = 8\npm.process_idle_timeout = 10s\npm.max_requests = 1000\n"
        "catch_workers_output = yes\nclear_env = yes\nphp_admin_value[memory_limit] = 64M\n"
        "php_admin_value[sys_temp_dir] = %s/identity/tmp\nphp_admin_flag[display_errors] = off\n"
        "php_admin_flag[log_errors] = on\nphp_admin_value[error_log] = \n"
        "php_admin_value[open_basedir] = %s/identity:%s/php\nphp_admin_value[disable_functions] = %s\n";

static void plan(struct local *l)
{
	struct arena *a = &l->arena;

	l->identity.plan = (struct child_plan){
		.lock = local_path(l, a, "run/identity.lock"),
		.log = local_path(l, a, "log/identity.log"),
		.socket = local_path(l, a, "s/identity"),
		.question = fastcgi_ping(),
		.answer = STR("pong"),
		.stop_signal = SIGQUIT,
		.log_signal = SIGUSR1,
		.mask = 077,
		.args = { l->php_fpm.p, "--nodaemonize", "--fpm-config", local_path(l, a, "identity/fpm.conf").p, "-d",
		          "opcache.memory_consumption=8", "-d", "opcache.interned_strings_buffer=2", "-d",
		          "opcache.jit=off", "-d", "opcache.jit_buffer_size=0", "-d", "expose_php=off" },
	};
}

enum rc identity_write(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char                      *f = l->folder.p;
	struct file_owner own = l->is_root ? (struct file_owner){ IDENTITY_UID, IDENTITY_UID, 0700 } : FILE_OF_US(0700);
	struct str        users = l->is_root
	                                  ? str_format(&a, "user = %d\ngroup = %d\nlisten.owner = %u\nlisten.group = %u\n",
	                                               IDENTITY_UID, IDENTITY_UID, (unsigned)l->web_uid, (unsigned)l->web_gid)
	                                  : STR("");
	enum rc           rc;

	plan(l);
	if (!(rc = folder_make(local_path(l, &a, "identity/pools").p, own, e)) &&
	    !(rc = folder_make(local_path(l, &a, "identity/tmp").p, own, e)) &&
	    !(rc = file_write(local_path(l, &a, "nginx/identity.rule").p, str_format(&a, rule, f, f, f), FILE_OURS,
	                      false, e)))
		rc = file_write(local_path(l, &a, "identity/fpm.conf").p,
		                str_format(&a, pool, f, f, users.p, f, f, f, PHP_NO_PROGRAMS), FILE_OURS, false, e);
	return rc;
}

enum rc identity_start(struct local *l, struct err *e)
{
	return supervise_want(l, &l->identity, e);
}

/* --- a tenant's pool --- */

enum rc pool_run(struct local *l, struct str what, struct arena *a, struct str *ret, struct err *e)
{
	return php_run(l, "pool.php", identity_uid(l), identity_uid(l), local_path(l, a, "identity/tmp").p, NULL, what,
	               a, ret, e);
}

/* Its first person is the contact, with the password of the site's administrator. */
enum rc identity_make(struct local *l, struct site *s, const struct instance_spec *spec, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site_secret               secret;
	struct str callback = str_format(&a, "%s/wp-login.php?leasehold=callback", site_url(l, s, &a).p);
	enum rc    rc = site_needs(s, INSTANCE_SECRET, e);

	if (!rc && !(rc = secret_read(l, s, &a, &secret, e)) &&
	    !(rc = pool_run(l,
	                    JSON_OF(&a, member_word("do", "make"), member_str("folder", pool_folder(l, s, &a)),
	                            member_str("issuer", identity_issuer(l, s, &a)),
	                            member_str("client", secret.client_id), member_str("secret", secret.client_secret),
	                            member_str("redirect", callback),
	                            member_str("title",
	                                       spec->organization.n ? spec->organization : str_from(s->tenant)),
	                            member_str("email", spec->contact_email), member_str("name", spec->contact_email),
	                            member_str("password", secret.admin_password)),
	                    &a, NULL, e)))
		rc = identity_start(l, e);
	return rc;
}

enum rc identity_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };

	return tree_remove(pool_folder(l, s, &a).p, e);
}

enum rc identity_check(struct local *l, struct site *s, bool *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct stat                      about;
	enum rc                          rc = identity_start(l, e);

	*ret = !rc && stat(str_format(&a, "%s/pool.json", pool_folder(l, s, &a).p).p, &about) == 0;
	return rc;
}

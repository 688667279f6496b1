/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - one private nginx; a tenant's route is two files: where its tasks are, which never changes, and the rule.
 *
 * Ten sockets are named for each tenant, whatever the number of tasks: nginx passes over those that are not there, so
 * scaling needs no reload. It counts no failures of them; supervise.c decides who serves. Buffers take whole pages, so
 * that a reload cuts none short.
 *
 * nginx may read the files of all tenants, but a tenant's link cannot lead it to those of another: it follows a link
 * only to files of the link's owner.
 *
 * A reload is over when nginx answers with the number of the new settings, on a socket of its own that nobody else can
 * reach.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/lock.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum { RELOAD_MS = 15000, LOOK_MS = 3, PROC_MAX = 1024 };

#define READABLE FILE_OF_US(0644)

/* --- the server --- */

static const char settings[] =
        "daemon off;\nworker_processes 2;\nworker_rlimit_nofile 8192;\nerror_log %s/log/nginx.log alert;\npid %s/nginx/pid;\n%s"
        "events { worker_connections 2048; }\n"
        "http {\n"
        "include /etc/nginx/mime.types;\ndefault_type application/octet-stream;\naccess_log off;\nserver_tokens off;\nsendfile on;\n"
        "client_body_temp_path %s/nginx/body;\nfastcgi_temp_path %s/nginx/fastcgi;\nproxy_temp_path %s/nginx/proxy;\n"
        "uwsgi_temp_path %s/nginx/uwsgi;\nscgi_temp_path %s/nginx/scgi;\n"
        "client_max_body_size 17m;\nclient_body_timeout 60s;\nclient_header_timeout 30s;\nkeepalive_timeout 15s;\nsend_timeout 60s;\n"
        "%sabsolute_redirect off;\nserver_names_hash_bucket_size 128;\ntypes_hash_max_size 4096;\n"
        /* Larger than a page: nothing of an answer waits in php-fpm while old processes of nginx go. */
        "fastcgi_buffer_size 64k;\nfastcgi_buffers 32 32k;\nfastcgi_busy_buffers_size 96k;\nfastcgi_max_temp_file_size 0;\n"
        "fastcgi_connect_timeout 5s;\nfastcgi_read_timeout 60s;\nfastcgi_send_timeout 60s;\nfastcgi_next_upstream error timeout;\n"
        "fastcgi_param QUERY_STRING $query_string;\nfastcgi_param REQUEST_METHOD $request_method;\n"
        "fastcgi_param CONTENT_TYPE $content_type;\nfastcgi_param CONTENT_LENGTH $content_length;\n"
        "fastcgi_param SCRIPT_NAME $fastcgi_script_name;\nfastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;\n"
        "fastcgi_param REQUEST_URI $request_uri;\nfastcgi_param DOCUMENT_URI $document_uri;\n"
        "fastcgi_param DOCUMENT_ROOT $document_root;\nfastcgi_param SERVER_PROTOCOL $server_protocol;\n"
        "fastcgi_param REQUEST_SCHEME $scheme;\nfastcgi_param GATEWAY_INTERFACE CGI/1.1;\nfastcgi_param SERVER_SOFTWARE nginx;\n"
        "fastcgi_param REMOTE_ADDR $remote_addr;\nfastcgi_param REMOTE_PORT $remote_port;\nfastcgi_param SERVER_ADDR $server_addr;\n"
        "fastcgi_param SERVER_PORT $server_port;\nfastcgi_param SERVER_NAME $host;\nfastcgi_param REDIRECT_STATUS 200;\n"
        "fastcgi_param HTTP_PROXY \"\";\nfastcgi_param REMOTE_USER \"\";\nfastcgi_param HTTP_HOST $http_host;\n"
        "include %s/routes/*.targets;\n"
        "server { listen unix:%s/s/nginx; include %s/nginx/generation; }\n"
        "server {\nlisten %s;\nroot %s/www;\nindex index.php;\n"
        "location / { return 404; }\n"
        "include %s/nginx/identity.rule*;\n"
        "include %s/routes/*.rule;\n}\n}\n";

static void plan(struct local *l)
{
	struct arena *a = &l->arena;

	l->router_child.plan = (struct child_plan){
		.lock = local_path(l, a, "run/nginx.lock"),
		.log = local_path(l, a, "log/nginx.log"),
		.socket = local_path(l, a, "s/nginx"),
		.question = STR("GET / HTTP/1.0\r\n\r\n"),
		.answer = STR("generation"),
		.stop_signal = SIGQUIT,
		.log_signal = SIGUSR1,
		.mask = 077,
		.args = { "/usr/sbin/nginx", "-p", local_path(l, a, "nginx").p, "-c",
		          local_path(l, a, "nginx/nginx.conf").p },
	};
}

static enum rc write_generation(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       text = str_format(&a, "location / { return 200 \"generation %lld;\"; }\n",
	                                                   (long long)l->route_generation);

	return file_write(local_path(l, &a, "nginx/generation").p, text, READABLE, false, e);
}

enum rc router_write(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	const char *f = l->folder.p, *links = l->is_root ? "disable_symlinks if_not_owner from=$document_root;\n" : "";
	struct str  text = str_format(&a, settings, f, f, l->is_root ? "user www-data;\n" : "", f, f, f, f, f, links, f,
	                              f, f, l->router.p, f, f, f);
	enum rc     rc = file_write(local_path(l, &a, "nginx/nginx.conf").p, text, READABLE, false, e);

	l->route_generation = clock_now(&clock_real).ms; /* more than any before it */
	if (!rc)
		rc = write_generation(l, e);
	plan(l);
	return rc;
}

enum rc router_start(struct local *l, struct err *e)
{
	return supervise_want(l, &l->router_child, e);
}

/* A file of /proc, whose size nobody knows before; false when it is not there. */
static bool proc_read(const char *path, struct arena *a, struct str *ret)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char                  *text = arena_alloc(a, PROC_MAX);
	ssize_t                got = fd < 0 ? -1 : read(fd, text, PROC_MAX - 1);

	*ret = str_of(text, got > 0 ? (size_t)got : 0);
	return got >= 0;
}

/* Does it answer with this generation? */
static bool has_generation(struct local *l)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct sockaddr_un               to = { .sun_family = AF_UNIX };
	struct str                       wanted = str_format(&a, "generation %lld;", (long long)l->route_generation);
	CLEANUP(fd_closep) int           fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char                             reply[CHILD_REPLY_MAX];
	ssize_t                          got = 0, n = 0;

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", l->router_child.plan.socket.p);
	if (fd >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ .tv_sec = 2 }, sizeof(struct timeval)) == 0 &&
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0 &&
	    send(fd, l->router_child.plan.question.p, l->router_child.plan.question.n, MSG_NOSIGNAL) > 0)
		while (n < (ssize_t)sizeof(reply) && (got = recv(fd, reply + n, sizeof(reply) - (size_t)n, 0)) > 0)
			n += got;
	return str_has(str_of(reply, (size_t)n), wanted);
}

/* The processes that serve now. */
static struct str workers_of(struct local *l, struct arena *a)
{
	struct str text = STR("");
	pid_t      pid;

	pthread_mutex_lock(&l->mutex);
	pid = l->router_child.pid;
	pthread_mutex_unlock(&l->mutex);
	(void)proc_read(str_format(a, "/proc/%d/task/%d/children", (int)pid, (int)pid).p, a,
	                &text); /* none: nobody to wait for */
	return text;
}

/* Has each of them stopped taking connections? Those that still answer one say so in their title. */
static bool are_leaving(struct str workers, struct arena *a)
{
	while (workers.n) {
		struct str pid = str_cut(&workers, ' '), title = STR("");

		if (pid.n && proc_read(str_format(a, "/proc/%.*s/cmdline", STR_ARG(pid)).p, a, &title) && title.n &&
		    !str_has(title, STR("shutting down")))
			return false;
	}
	return true;
}

/* Over when new processes answer and, where it matters, the old ones accept no connections: nginx tells them a tenth of
 * a second later. */
static enum rc reload(struct local *l, bool waits_for_old, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	int64_t                          until = mono_now().ms + RELOAD_MS;
	struct str                       workers = STR("");
	enum rc                          rc;

	l->route_generation++;
	if (!(rc = write_generation(l, e)) && !(rc = router_start(l, e))) {
		workers = workers_of(l, &a);
		pthread_mutex_lock(&l->mutex);
		child_signal(&l->router_child, SIGHUP);
		pthread_mutex_unlock(&l->mutex);
	}
	while (!rc && !(has_generation(l) && (!waits_for_old || are_leaving(workers, &a)))) {
		if (mono_now().ms > until)
			rc = err_set(e, RC_UNAVAILABLE, "nginx does not take its new settings; see %s",
			             l->router_child.plan.log.p);
		usleep(LOOK_MS * 1000);
	}
	return rc;
}

/* --- a tenant's rule --- */

static const char open_rule[] =
        "location = /tenant/%s { return 301 /tenant/%s/$is_args$args; }\n"
        "location ^~ /tenant/%s/ {\n"
        "try_files $uri $uri/ /tenant/%s/index.php$is_args$args;\n"
        "location ~ /(\\.|wp-config\\.php|wp-content/mu-plugins/) { return 404; }\n"
        "location ~ /wp-content/(uploads|languages)/.*\\.php { return 403; }\n"
        "location ~ \\.php$ {\ntry_files $uri =404;\nfastcgi_pass t_%s;\n"
        "error_page 502 504 =503 @down_%s;\n}\n}\n"
        "location @down_%s { default_type text/html; add_header Retry-After 5 always; return 503 \"%s\"; }\n";

static const char closed_rule[] =
        "location = /tenant/%s { default_type text/html; add_header Retry-After %d always; return 503 \"%s\"; }\n"
        "location ^~ /tenant/%s/ { default_type text/html; add_header Retry-After %d always; return 503 \"%s\"; }\n";

#define PAGE(title, text)                                                                                     \
	"<!doctype html><html lang=en><meta charset=utf-8><title>" title "</title><h1>" title "</h1><p>" text \
	"</p></html>\\n"
#define DOWN_PAGE PAGE("Just a moment", "This site does not answer at the moment. Please try again.")

static const struct {
	int         retry_sec;
	const char *page;
} closed[] = {
	[ROUTE_CLOSED] = { 30, PAGE("Not open yet", "This site is being set up.") },
	[ROUTE_SUSPENDED] = { 3600, PAGE("Suspended", "This site is suspended. Please ask its owner.") },
	[ROUTE_PARKED] = { 86400,
	                   PAGE("Parked", "This site is parked: its data is kept, and it can be brought back.") },
};

static struct str rule_file(const struct local *l, const struct site *s, const char *kind, struct arena *a)
{
	return local_path(l, a, "routes/%s.%s", s->tenant, kind);
}

static struct str rule_text(const struct site *s, enum instance_route to, struct arena *a)
{
	const char *t = s->tenant, *k = s->key;

	if (to == ROUTE_OPEN)
		return str_format(a, open_rule, t, t, t, t, k, k, k, DOWN_PAGE);
	return str_format(a, closed_rule, t, closed[to].retry_sec, closed[to].page, t, closed[to].retry_sec,
	                  closed[to].page);
}

static struct str targets_text(const struct local *l, const struct site *s, struct arena *a)
{
	struct str text = str_format(a, "upstream t_%s {\n", s->key);

	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++)
		text = str_format(a, "%sserver unix:%s max_fails=0;\n", text.p, site_socket(l, s, i, a).p);
	return str_format(a, "%s}\n", text.p);
}

static enum rc write_rule(struct local *l, const struct site *s, enum instance_route to, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc rc = file_write(rule_file(l, s, "targets", &a).p, targets_text(l, s, &a), READABLE, false, e);

	if (!rc)
		rc = file_write(rule_file(l, s, "rule", &a).p, rule_text(s, to, &a), READABLE, false, e);
	return rc;
}

/* One at a time: each waits for its own reload. */
static enum rc change_rule(struct local *l, struct site *s, enum instance_route to, bool is_new, struct err *e)
{
	enum rc rc;

	pthread_mutex_lock(&l->route_mutex);
	if (!(rc = write_rule(l, s, to, e)))
		rc = reload(l, !is_new, e);
	pthread_mutex_unlock(&l->route_mutex);
	if (rc)
		return rc;
	s->route = to;
	return site_save(l, s, e);
}

enum rc route_set(struct local *l, struct site *s, enum instance_route to, struct err *e)
{
	return change_rule(l, s, to, false, e);
}

enum rc routes_restore(struct local *l, struct err *e)
{
	enum rc rc = RC_OK;

	for (struct site *s = l->sites; s && !rc; s = s->next)
		if (s->instance[INSTANCE_ROUTE][0])
			rc = write_rule(l, s, s->route, e);
	return rc ? rc : reload(l, true, e);
}

enum rc route_make(struct local *l, struct site *s, const struct instance_spec *spec UNUSED, struct err *e)
{
	return change_rule(l, s, s->route, s->route == ROUTE_CLOSED, e); /* closed, or not known yet: as good */
}

enum rc route_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	enum rc                          rc;

	LOCKED(&l->route_mutex);
	if (!(rc = file_remove(rule_file(l, s, "rule", &a).p, e)) &&
	    !(rc = file_remove(rule_file(l, s, "targets", &a).p, e)))
		rc = reload(l, true, e);
	s->route = ROUTE_CLOSED;
	return rc;
}

enum rc route_check(struct local *l, struct site *s, bool *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct stat                      about;
	enum rc                          rc = router_start(l, e);

	*ret = !rc && stat(rule_file(l, s, "rule", &a).p, &about) == 0 &&
	       stat(rule_file(l, s, "targets", &a).p, &about) == 0;
	return rc;
}

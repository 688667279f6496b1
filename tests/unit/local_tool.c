/* SPDX-License-Identifier: Apache-2.0 */
/* local_tool.c - opens the local instance driver and does what it is told, a line of JSON each: for tests/local.
 * Several at once with "id". */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "domain/ports/instance.h"
#include "providers/local/local.h"

enum { LINE = 1 << 16, REPLY_MAX = 8 << 20 };

static struct local           *local;
static struct instance_driver *driver;
static pthread_mutex_t         out = PTHREAD_MUTEX_INITIALIZER;

struct call {
	json_t         *in;
	struct arena    arena;
	struct str      tenant, name;
	struct buf      b;
	struct json_out o;
	struct err      e;
};

static enum instance_resource resource_of(const struct call *c)
{
	struct str text = STR("");

	(void)json_get_text(c->in, "resource", &text);
	for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++)
		if (str_eq(text, str_from(instance_resource_names[i])))
			return (enum instance_resource)i;
	return INSTANCE_STORAGE;
}

static struct instance_spec spec_of(const struct call *c)
{
	struct instance_spec s = { .tenant = c->tenant };

	(void)json_get_text(c->in, "instance", &s.instance);
	(void)json_get_text(c->in, "organization", &s.organization);
	(void)json_get_text(c->in, "email", &s.contact_email);
	(void)json_get_text(c->in, "version", &s.wordpress_version);
	(void)json_get_number(c->in, "cpu", 512, &s.cpu_units);
	(void)json_get_number(c->in, "memory", 1024, &s.memory_mb);
	(void)json_get_number(c->in, "desired", 2, &s.desired_count);
	return s;
}

static enum rc do_create(struct call *c)
{
	struct instance_spec spec = spec_of(c);
	struct str           outputs = STR("");
	enum rc              rc = driver->ops->create(driver, &spec, resource_of(c), &c->arena, &outputs, &c->e);

	json_put_raw(&c->o, "outputs", outputs.n ? outputs : STR("null"));
	return rc;
}

static enum rc do_check(struct call *c)
{
	struct str outputs = STR("");
	bool       exists = false;
	enum rc    rc = driver->ops->check(driver, c->tenant, resource_of(c), &c->arena, &exists, &outputs, &c->e);

	json_put_bool(&c->o, "exists", exists);
	json_put_raw(&c->o, "outputs", outputs.n ? outputs : STR("null"));
	return rc;
}

static enum rc do_delete(struct call *c)
{
	return driver->ops->delete (driver, c->tenant, resource_of(c), &c->e);
}

static enum rc do_scale(struct call *c)
{
	int64_t n = 0;

	(void)json_get_number(c->in, "desired", 0, &n);
	return driver->ops->scale(driver, c->tenant, n, &c->e);
}

static enum rc do_tasks(struct call *c)
{
	struct instance_tasks t = { 0 };
	enum rc               rc = driver->ops->tasks(driver, c->tenant, &c->arena, &t, &c->e);

	json_put_int(&c->o, "desired", t.desired);
	json_put_int(&c->o, "running", t.running);
	json_put_int(&c->o, "pending", t.pending);
	json_put_bool(&c->o, "healthy", t.is_healthy);
	json_put_array(&c->o, "tasks");
	for (size_t i = 0; i < t.count; i++) {
		json_open_object(&c->o);
		json_put_str(&c->o, "id", t.items[i].id);
		json_put_bool(&c->o, "running", t.items[i].is_running);
		json_put_bool(&c->o, "healthy", t.items[i].is_healthy);
		json_close_object(&c->o);
	}
	json_close_array(&c->o);
	return rc;
}

static enum rc do_route(struct call *c)
{
	int64_t to = 0;

	(void)json_get_number(c->in, "to", 0, &to);
	return driver->ops->set_route(driver, c->tenant, (enum instance_route)to, &c->e);
}

static enum rc do_configure(struct call *c)
{
	struct instance_spec spec = spec_of(c);

	return driver->ops->configure(driver, &spec, &c->e);
}

static enum rc do_archive(struct call *c)
{
	struct str outputs = STR("");
	enum rc    rc = driver->ops->archive(driver, c->tenant, c->name, &c->arena, &outputs, &c->e);

	json_put_raw(&c->o, "outputs", outputs.n ? outputs : STR("null"));
	return rc;
}

static enum rc do_restore(struct call *c)
{
	return driver->ops->restore(driver, c->tenant, c->name, &c->e);
}

static enum rc do_drop_archive(struct call *c)
{
	return driver->ops->drop_archive(driver, c->tenant, c->name, &c->e);
}

static enum rc do_rotate(struct call *c)
{
	return driver->ops->rotate(driver, c->tenant, &c->e);
}

static enum rc do_secret(struct call *c)
{
	struct str user = STR(""), password = STR("");
	enum rc    rc = driver->ops->get_secret(driver, c->tenant, &c->arena, &user, &password, &c->e);

	json_put_str(&c->o, "user", user);
	json_put_str(&c->o, "password", password);
	return rc;
}

static enum rc do_logs(struct call *c)
{
	struct instance_log_line *lines = NULL;
	size_t                    count = 0;
	int64_t                   max = 100;
	enum rc                   rc;

	(void)json_get_number(c->in, "max", 100, &max);
	rc = driver->ops->logs(driver, c->tenant, 0, INT64_MAX, (size_t)max, &c->arena, &lines, &count, &c->e);
	json_put_array(&c->o, "lines");
	for (size_t i = 0; i < count; i++)
		json_add_str(&c->o, lines[i].text);
	json_close_array(&c->o);
	return rc;
}

static enum rc do_list(struct call *c)
{
	struct instance_thing *things = NULL;
	size_t                 count = 0;
	enum rc                rc = driver->ops->list(driver, &c->arena, &things, &count, &c->e);

	json_put_array(&c->o, "things");
	for (size_t i = 0; i < count; i++)
		json_add_str(&c->o, str_format(&c->arena, "%.*s %s %.*s", STR_ARG(things[i].tenant),
		                               instance_resource_names[things[i].kind], STR_ARG(things[i].instance)));
	json_close_array(&c->o);
	return rc;
}

static enum rc do_person(struct call *c)
{
	struct str email = STR(""), password = STR("");
	bool       is_new = false;
	enum rc    rc;

	(void)json_get_text(c->in, "email", &email);
	rc = driver->ops->add_person(driver, c->tenant, email, c->name, &c->arena, &is_new, &password, &c->e);
	json_put_bool(&c->o, "new", is_new);
	json_put_str(&c->o, "password", password);
	return rc;
}

static enum rc do_people(struct call *c)
{
	struct instance_person *people = NULL;
	size_t                  count = 0;
	enum rc                 rc = driver->ops->people(driver, c->tenant, &c->arena, &people, &count, &c->e);

	json_put_array(&c->o, "people");
	for (size_t i = 0; i < count; i++)
		json_add_str(&c->o,
		             str_format(&c->arena, "%.*s %.*s", STR_ARG(people[i].email), STR_ARG(people[i].name)));
	json_close_array(&c->o);
	return rc;
}

static enum rc do_remove_person(struct call *c)
{
	struct str email = STR("");
	bool       was_there = false;
	enum rc    rc;

	(void)json_get_text(c->in, "email", &email);
	rc = driver->ops->remove_person(driver, c->tenant, email, &was_there, &c->e);
	json_put_bool(&c->o, "was", was_there);
	return rc;
}

static const struct {
	const char *name;
	enum rc (*run)(struct call *c);
} calls[] = {
	{ "create", do_create },
	{ "check", do_check },
	{ "delete", do_delete },
	{ "scale", do_scale },
	{ "tasks", do_tasks },
	{ "route", do_route },
	{ "configure", do_configure },
	{ "archive", do_archive },
	{ "restore", do_restore },
	{ "drop_archive", do_drop_archive },
	{ "rotate", do_rotate },
	{ "secret", do_secret },
	{ "logs", do_logs },
	{ "list", do_list },
	{ "person", do_person },
	{ "people", do_people },
	{ "remove_person", do_remove_person },
};

static void *serve(void *arg)
{
	struct call *c = arg;
	struct str   what = STR("");
	enum rc      rc = RC_INVALID;

	(void)json_get_text(c->in, "do", &what);
	(void)json_get_text(c->in, "tenant", &c->tenant);
	(void)json_get_text(c->in, "name", &c->name);
	buf_init(&c->b, REPLY_MAX);
	c->o = JSON_OUT(&c->b);
	json_open_object(&c->o);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (str_eq(what, str_from(calls[i].name)))
			rc = calls[i].run(c);
	json_put_int(&c->o, "id", json_integer_value(json_object_get(c->in, "id")));
	json_put_str(&c->o, "rc", str_from(rc_text(rc)));
	json_put_int(&c->o, "status", rc_http_status(rc));
	json_put_str(&c->o, "error", str_from(rc ? c->e.msg : ""));
	json_close_object(&c->o);
	pthread_mutex_lock(&out);
	printf("%s\n", c->b.p);
	fflush(stdout);
	pthread_mutex_unlock(&out);
	buf_fini(&c->b);
	arena_fini(&c->arena);
	json_decref(c->in);
	free(c);
	return NULL;
}

static void serve_all(void)
{
	static char line[LINE];
	pthread_t   threads[4096];
	size_t      count = 0;

	while (count < ARRAY_LEN(threads) && fgets(line, sizeof(line), stdin)) {
		struct call *c = mem_new(struct call);

		if (json_parse(str_trim(str_of(line, strcspn(line, "\n"))), &c->in, &c->e)) {
			fprintf(stderr, "local_tool: %s\n", c->e.msg);
			free(c);
			continue;
		}
		if (pthread_create(&threads[count], NULL, serve, c) == 0)
			count++;
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	struct local_options o = { .folder = argc > 1 ? argv[1] : NULL, .router = argc > 2 ? argv[2] : NULL };
	struct err           e = { 0 };

	signal(SIGPIPE, SIG_IGN);
	if (argc < 3 || local_open(&o, &local, &e)) {
		printf("{\"opened\":false,\"error\":\"%s\"}\n", e.msg);
		return 1;
	}
	driver = local_driver(local);
	printf("{\"opened\":true,\"versions\":\"%s\"}\n", driver->ops->versions);
	fflush(stdout);
	serve_all();
	local_close(local);
	return 0;
}

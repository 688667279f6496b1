/* SPDX-License-Identifier: Apache-2.0 */
/* local_tool.c - opens the local instance driver and does what it is told: for tests/local. Its settings are "folder"
 * and "router". */
#include "domain/ports/instance.h"
#include "lines_tool.h"
#include "providers/local/local.h"

static struct local           *local;
static struct instance_driver *driver;

static struct str tenant_of(const struct call *c)
{
	return text_of(c->in, "tenant");
}

static struct str name_of(const struct call *c)
{
	return text_of(c->in, "name");
}

static enum instance_resource resource_of(const struct call *c)
{
	struct str text = text_of(c->in, "resource");

	for (int i = 0; i < INSTANCE_RESOURCE_COUNT; i++)
		if (str_eq(text, str_from(instance_resource_names[i])))
			return (enum instance_resource)i;
	return INSTANCE_STORAGE;
}

static struct instance_spec spec_of(const struct call *c)
{
	return (struct instance_spec){ .tenant = tenant_of(c),
		                       .instance = text_of(c->in, "instance"),
		                       .organization = text_of(c->in, "organization"),
		                       .contact_email = text_of(c->in, "email"),
		                       .wordpress_version = text_of(c->in, "version"),
		                       .cpu_units = number_of(c->in, "cpu", 512),
		                       .memory_mb = number_of(c->in, "memory", 1024),
		                       .desired_count = number_of(c->in, "desired", 2) };
}

static enum rc do_versions(struct call *c)
{
	json_put_text(&c->o, "versions", str_from(driver->ops->versions));
	return RC_OK;
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
	enum rc    rc = driver->ops->check(driver, tenant_of(c), resource_of(c), &c->arena, &exists, &outputs, &c->e);

	json_put_bool(&c->o, "exists", exists);
	json_put_raw(&c->o, "outputs", outputs.n ? outputs : STR("null"));
	return rc;
}

static enum rc do_delete(struct call *c)
{
	return driver->ops->delete (driver, tenant_of(c), resource_of(c), &c->e);
}

static enum rc do_scale(struct call *c)
{
	return driver->ops->scale(driver, tenant_of(c), number_of(c->in, "desired", 0), &c->e);
}

static enum rc do_tasks(struct call *c)
{
	struct instance_tasks t = { 0 };
	enum rc               rc = driver->ops->tasks(driver, tenant_of(c), &c->arena, &t, &c->e);

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
	enum instance_route to = (enum instance_route)number_of(c->in, "to", 0);

	return driver->ops->set_route(driver, tenant_of(c), to, &c->e);
}

static enum rc do_configure(struct call *c)
{
	struct instance_spec spec = spec_of(c);

	return driver->ops->configure(driver, &spec, &c->e);
}

static enum rc do_archive(struct call *c)
{
	struct str outputs = STR("");
	enum rc    rc = driver->ops->archive(driver, tenant_of(c), name_of(c), &c->arena, &outputs, &c->e);

	json_put_raw(&c->o, "outputs", outputs.n ? outputs : STR("null"));
	return rc;
}

static enum rc do_restore(struct call *c)
{
	return driver->ops->restore(driver, tenant_of(c), name_of(c), &c->e);
}

static enum rc do_drop_archive(struct call *c)
{
	return driver->ops->drop_archive(driver, tenant_of(c), name_of(c), &c->e);
}

static enum rc do_rotate(struct call *c)
{
	return driver->ops->rotate(driver, tenant_of(c), &c->e);
}

static enum rc do_secret(struct call *c)
{
	struct str user = STR(""), password = STR("");
	enum rc    rc = driver->ops->get_secret(driver, tenant_of(c), &c->arena, &user, &password, &c->e);

	json_put_str(&c->o, "user", user);
	json_put_str(&c->o, "password", password);
	return rc;
}

static enum rc do_logs(struct call *c)
{
	struct instance_log_line *lines = NULL;
	size_t                    count = 0;
	size_t                    max = (size_t)number_of(c->in, "max", 100);
	enum rc rc = driver->ops->logs(driver, tenant_of(c), 0, INT64_MAX, max, &c->arena, &lines, &count, &c->e);

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
	struct str password = STR("");
	bool       is_new = false;
	enum rc    rc = driver->ops->add_person(driver, tenant_of(c), text_of(c->in, "email"), name_of(c), &c->arena,
	                                        &is_new, &password, &c->e);

	json_put_bool(&c->o, "new", is_new);
	json_put_str(&c->o, "password", password);
	return rc;
}

static enum rc do_people(struct call *c)
{
	struct instance_person *people = NULL;
	size_t                  count = 0;
	enum rc                 rc = driver->ops->people(driver, tenant_of(c), &c->arena, &people, &count, &c->e);

	json_put_array(&c->o, "people");
	for (size_t i = 0; i < count; i++)
		json_add_str(&c->o,
		             str_format(&c->arena, "%.*s %.*s", STR_ARG(people[i].email), STR_ARG(people[i].name)));
	json_close_array(&c->o);
	return rc;
}

static enum rc do_remove_person(struct call *c)
{
	bool    was_there = false;
	enum rc rc = driver->ops->remove_person(driver, tenant_of(c), text_of(c->in, "email"), &was_there, &c->e);

	json_put_bool(&c->o, "was", was_there);
	return rc;
}

static const struct command commands[] = {
	{ "versions", do_versions },
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

static enum rc open_driver(json_t *settings, struct err *e)
{
	struct arena         a = { 0 };
	struct local_options o = { .folder = str_dup(&a, text_of(settings, "folder")).p,
		                   .router = str_dup(&a, text_of(settings, "router")).p };
	enum rc              rc = local_open(&o, &local, e);

	if (!rc)
		driver = local_driver(local);
	arena_fini(&a);
	return rc;
}

static void close_driver(void)
{
	local_close(local);
}

int main(void)
{
	return lines_serve(commands, ARRAY_LEN(commands), open_driver, close_driver);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* lines_tool.c - lines of JSON in, lines of JSON out: what the tools of tests/aws and tests/local have in common. */
#include "lines_tool.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/fetch.h"

enum { LINE = 1 << 20, REPLY_MAX = 8 << 20, CALLS_MAX = 8192 };

static const struct command *commands;
static size_t                command_count;
static pthread_mutex_t       out = PTHREAD_MUTEX_INITIALIZER;

struct str text_of(const json_t *in, const char *name)
{
	struct str text = STR("");

	(void)json_get_text(in, name, &text);
	return text;
}

int64_t number_of(const json_t *in, const char *name, int64_t fallback)
{
	int64_t number = fallback;

	(void)json_get_number(in, name, fallback, &number);
	return number;
}

static void *serve(void *arg)
{
	struct call *c = arg;
	struct str   what = text_of(c->in, "do");
	enum rc      rc = RC_INVALID;

	buf_init(&c->b, REPLY_MAX);
	c->o = JSON_OUT(&c->b);
	json_open_object(&c->o);
	for (size_t i = 0; i < command_count; i++)
		if (str_eq(what, str_from(commands[i].name)))
			rc = commands[i].run(c);
	json_put_int(&c->o, "id", number_of(c->in, "id", 0));
	json_put_int(&c->o, "rc_number", rc);
	json_put_str(&c->o, "rc", str_from(rc_text(rc)));
	json_put_int(&c->o, "status", rc_http_status(rc));
	json_put_text(&c->o, "code", rc ? str_from(c->e.code) : STR(""));
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

static json_t *read_line(void)
{
	static char line[LINE];
	json_t     *in = NULL;
	struct err  e = { 0 };

	if (!fgets(line, sizeof(line), stdin))
		return NULL;
	if (json_parse(str_of(line, strcspn(line, "\n")), &in, &e)) {
		fprintf(stderr, "not a line of JSON: %s\n", e.msg);
		return json_object();
	}
	return in;
}

static void serve_all(void)
{
	static pthread_t threads[CALLS_MAX];
	size_t           count = 0;
	json_t          *in;

	while (count < CALLS_MAX && (in = read_line())) {
		struct call *c = mem_new(struct call);

		c->in = in;
		if (pthread_create(&threads[count], NULL, serve, c) == 0)
			count++;
	}
	for (size_t i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
}

static void say_opened(bool is_open, const char *why)
{
	struct arena a = { 0 };
	struct str   hello = is_open ? JSON_OF(&a, member_bool("opened", true))
	                             : JSON_OF(&a, member_bool("opened", false), member_word("error", why));

	printf("%.*s\n", STR_ARG(hello));
	fflush(stdout);
	arena_fini(&a);
}

int lines_serve(const struct command *all, size_t count, enum rc (*open)(json_t *settings, struct err *e),
                void (*close)(void))
{
	struct err e = { 0 };
	json_t    *settings;
	bool       is_open;

	commands = all;
	command_count = count;
	signal(SIGPIPE, SIG_IGN);
	fetch_global_init();
	settings = read_line();
	is_open = settings && open(settings, &e) == RC_OK;
	say_opened(is_open, e.msg);
	if (is_open)
		serve_all();
	close();
	json_decref(settings);
	return !is_open;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reload.c - what may change while the server runs: tokens, session secrets, people, certificates.
 *
 * SIGHUP reads all of it again, from where it came. What Secrets Manager keeps is read again every few minutes besides,
 * because whoever changes a secret there does not know who reads it. Reading may have to wait for AWS or a disk, and to
 * check what was read takes a tenth of a second: a thread of its own does both, and the loop takes over.
 *
 * Always true:
 *   1. All or none: what cannot be read, or makes no sense, changes nothing.                           [read_all()]
 *   2. There is one such thread at most. A signal that comes meanwhile is followed by one more reading.  [on_read()]
 *   3. Readings by themselves take over nothing but secrets, and are told of only when one is new or cannot be had.
 *   4. The loop opens no file and computes no hash.                                                    [take_over()]
 *
 * Secrets that are handed to others at the start (the vendor's token, the password at the mail server, that of the
 * identity provider) stay until the next one; the log says so when they have changed.
 */
#include "app/reload.h"

#include <stdlib.h>
#include <unistd.h>

#include "app/dev.h"
#include "app/parts.h"
#include "app/preflight.h"
#include "app/secrets.h"
#include "app/signin.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "http/api/api.h"
#include "http/api/loop_watch.h"
#include "http/api/ops_stream.h"
#include "http/server/server.h"
#include "net/tls.h"
#include "providers/identity/users_file.h"

enum { TEXT_MAX = 65536 };

/* Those that are in force as soon as they are taken over. */
static const enum setting taken[] = { CONFIG_API_TOKEN,      CONFIG_ADMIN_TOKEN, CONFIG_INBOX_TOKENS,
	                              CONFIG_METRICS_TOKENS, CONFIG_JWT_SECRET,  CONFIG_JWT_SECRET_OLD };

/* --- the thread --- */

static bool is_new(const struct reload *r, enum setting id)
{
	return r->fresh.values[id].reference.n && !str_eq(config_str(&r->fresh, id), config_str(&r->held, id));
}

static bool has_news(const struct reload *r)
{
	for (int id = 0; id < CONFIG_COUNT; id++)
		if (is_new(r, (enum setting)id))
			return true;
	return false;
}

static bool is_worth_a_word(const struct reload *r)
{
	return r->is_whole || r->problems.n || has_news(r);
}

static void read_settings(struct reload *r)
{
	const struct config *first = r->parts->config;
	const char          *file = first->file_origin == FROM_COMMAND_LINE ? first->file : NULL;

	if (!r->is_whole)
		config_copy(&r->fresh, &r->held);
	else
		rc_ignore(config_load(&r->fresh, (const char *const *)environ, file, &r->problems)); /* told below */
	if (!r->problems.n)
		secrets_read(&r->fresh, &r->problems);
}

/* Also behind problems, so that all of them are told together. */
static void check_fresh(struct reload *r)
{
	struct err e = { 0 };
	bool       is_read = !r->problems.n;
	enum rc    rc = RC_OK;

	if (is_read && r->is_whole && r->parts->is_dev) {
		config_set(&r->fresh, CONFIG_DATA, config_str(r->parts->config, CONFIG_DATA), FROM_COMMAND_LINE);
		rc = dev_prepare(&r->fresh, &e);
	}
	if (is_read && !rc)
		rc = tokens_read(&r->fresh, &r->tokens, &e);
	if (rc)
		buf_addf(&r->problems, "%s\n", e.msg);
	if (r->is_whole)
		preflight_tls(r->parts->config, &r->problems);
	if (is_read || !secrets_any(&r->fresh)) /* else it would judge what is not there */
		signin_check(&r->fresh, &r->problems);
}

/* Both servers have the same files. Users come last: they are in force at once, and nothing can fail after them. */
static void read_files(struct reload *r)
{
	const char *cert = config_text(r->parts->config, CONFIG_TLS_CERT);
	const char *key = config_text(r->parts->config, CONFIG_TLS_KEY);
	struct err  e = { 0 };
	enum rc     rc = cert ? tls_identity_open(cert, key, &r->tls[0], &e) : RC_OK;

	if (!rc && cert && r->probe)
		rc = tls_identity_open(cert, key, &r->tls[1], &e);
	if (!rc)
		rc = users_file_refresh(r->parts->signin->users, true, &e);
	if (rc)
		buf_addf(&r->problems, "%s\n", e.msg);
}

static void *read_all(void *arg)
{
	struct reload *r = arg;

	read_settings(r);
	if (is_worth_a_word(r))
		check_fresh(r);
	if (r->is_whole && !r->problems.n)
		read_files(r);
	uv_async_send(&r->is_read);
	return NULL;
}

static void start_reading(struct reload *r, bool is_whole)
{
	r->is_reading = true;
	r->is_whole = is_whole;
	buf_init(&r->problems, TEXT_MAX);
	mem_must(!pthread_create(&r->thread, NULL, read_all, r), "a thread");
}

/* --- taking over --- */

static bool is_taken(enum setting id)
{
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (taken[i] == id)
			return true;
	return false;
}

static void tell_news(const struct reload *r)
{
	for (int id = 0; id < CONFIG_COUNT; id++)
		if (!is_new(r, (enum setting)id))
			continue;
		else if (is_taken((enum setting)id))
			log_write(LOG_INFO, "serve", NULL, 0, "%s has a new value", config_name((enum setting)id));
		else
			log_write(LOG_WARNING, "serve", NULL, 0, "%s has a new value, which needs a restart",
			          config_name((enum setting)id));
}

/* What the environment said at the start is all this process will ever see of it. */
static void warn_of_fixed_tokens(const struct config *c)
{
	for (size_t i = 0; i < ARRAY_LEN(taken); i++)
		if (c->values[taken[i]].origin == FROM_ENVIRONMENT && !c->values[taken[i]].reference.n &&
		    taken[i] != CONFIG_JWT_SECRET_OLD)
			log_write(LOG_WARNING, "serve", NULL, 0,
			          "%s comes from the environment, which a running program cannot read again; put it "
			          "in %s",
			          config_name(taken[i]), CONFIG_FILE_NAME);
}

/* None of it can fail or takes long. */
static void take_over(struct reload *r)
{
	struct http_server *servers[] = { r->http, r->probe };

	for (size_t i = 0; i < ARRAY_LEN(servers); i++)
		if (r->tls[i])
			http_server_set_tls(servers[i], r->tls[i]);
	r->tls[0] = r->tls[1] = NULL;
	api_set_tokens(r->api, &r->tokens);
	signin_set_secrets(r->parts->signin, &r->fresh);
	streams_check(r->api->streams);
}

static void tell_problems(struct reload *r)
{
	struct str rest = buf_str(&r->problems), all = str_cut(&rest, '\n');

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		all = str_format(&r->fresh.arena, "%.*s; %.*s", STR_ARG(all), STR_ARG(line));
	}
	log_write(LOG_ERROR, "serve", NULL, 0, "reload failed, the old settings stay: %.*s", STR_ARG(all));
}

static void finish(struct reload *r)
{
	if (!is_worth_a_word(r))
		return;
	if (r->problems.n)
		tell_problems(r);
	else
		take_over(r);
	if (!r->problems.n && r->is_whole)
		log_write(LOG_INFO, "serve", NULL, 0, "tokens, users and certificates are read again");
	if (r->is_whole)
		warn_of_fixed_tokens(&r->fresh);
	if (r->problems.n)
		return;
	tell_news(r);
	config_fini(&r->held);
	config_copy(&r->held, &r->fresh);
}

/* With what was not taken over. */
static void drop_fresh(struct reload *r)
{
	for (size_t i = 0; i < ARRAY_LEN(r->tls); i++) {
		tls_identity_close(r->tls[i]);
		r->tls[i] = NULL;
	}
	buf_fini(&r->problems);
	config_fini(&r->fresh);
}

static void on_read(uv_async_t *async)
{
	struct reload *r = async->data;

	pthread_join(r->thread, NULL);
	r->is_reading = false;
	if (!r->is_stopped) {
		struct loop_span span = loop_span_begin(&r->api->watch, mono_ns());

		finish(r);
		(void)loop_span_end(&r->api->watch, &span, "reload");
	}
	drop_fresh(r);
	if (r->is_wanted && !r->is_stopped) {
		r->is_wanted = false;
		start_reading(r, true);
	}
}

/* --- when --- */

static void on_timer(uv_timer_t *timer)
{
	struct reload *r = timer->data;

	if (!r->is_reading && secrets_any(&r->held))
		start_reading(r, false);
}

void reload_start(struct reload *r)
{
	uint64_t every_ms = (uint64_t)config_number(r->parts->config, CONFIG_SECRETS_REFRESH) * 1000;

	config_copy(&r->held, r->parts->config);
	r->timer.data = r->is_read.data = r;
	if (uv_timer_init(r->loop, &r->timer) || uv_async_init(r->loop, &r->is_read, on_read) ||
	    (every_ms && uv_timer_start(&r->timer, on_timer, every_ms, every_ms)))
		abort(); /* never fails for these */
	uv_unref((uv_handle_t *)&r->timer);
	uv_unref((uv_handle_t *)&r->is_read);
}

void reload_begin(struct reload *r)
{
	if (r->is_reading)
		r->is_wanted = true;
	else if (!r->is_stopped)
		start_reading(r, true);
}

void reload_stop(struct reload *r)
{
	r->is_stopped = true;
	uv_timer_stop(&r->timer);
}

void reload_end(struct reload *r)
{
	if (!r->is_reading)
		return;
	pthread_join(r->thread, NULL);
	drop_fresh(r);
}

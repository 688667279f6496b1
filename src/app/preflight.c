/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preflight.c - looks at everything a start depends on, so that all problems can be named together.
 *
 * Nothing is opened for good and nothing is made: a start that is refused here leaves no trace. Passing is no promise,
 * because a file may go away between the look and the use; whoever uses it reports that again.
 */
#include "app/preflight.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "app/cleaning.h"
#include "app/config.h"
#include "app/guarding.h"
#include "app/signin.h"
#include "app/stores.h"
#include "net/tls.h"

/* By what name the person who set it knows it. */
static const char *known_as(const struct config *c, enum setting id, const char *option)
{
	return c->values[id].origin == FROM_COMMAND_LINE ? option : config_name(id);
}

static bool is_address(const char *host)
{
	struct sockaddr_in  v4;
	struct sockaddr_in6 v6;

	return uv_ip4_addr(host, 0, &v4) == 0 || uv_ip6_addr(host, 0, &v6) == 0;
}

enum rc preflight_listen(struct config *c, char **ret_host, int *ret_port, struct err *e)
{
	struct str  listen = config_str(c, CONFIG_LISTEN);
	const char *colon = listen.n ? memrchr(listen.p, ':', listen.n) : NULL;
	struct str  host = colon ? str_of(listen.p, (size_t)(colon - listen.p)) : STR("");
	int64_t     port = 0;

	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
		host = str_of(host.p + 1, host.n - 2);
	*ret_host = host.n ? arena_copy(&c->arena, host.p, host.n) : NULL;
	if (!host.n || !is_address(*ret_host) ||
	    !str_to_int(str_of(colon + 1, listen.n - (size_t)(colon + 1 - listen.p)), 0, 65535, &port))
		return err_set(e, RC_INVALID,
		               "%s: must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080, not '%.*s'",
		               known_as(c, CONFIG_LISTEN, "--listen"), STR_ARG(listen));
	*ret_port = (int)port;
	return RC_OK;
}

static void check_listen(struct config *c, struct buf *problems)
{
	bool is_reported = !config_str(c, CONFIG_LISTEN).n && c->values[CONFIG_LISTEN].origin != FROM_COMMAND_LINE;
	struct err e = { 0 };
	char      *host;
	int        port;

	if (!is_reported && preflight_listen(c, &host, &port, &e))
		buf_addf(problems, "%s\n", e.msg);
}

static bool check_readable(const struct config *c, enum setting id, struct buf *problems)
{
	const char *file = config_text(c, id);

	if (!file || access(file, R_OK) == 0)
		return true;
	buf_addf(problems, "%s: %s cannot be read: %s\n", config_name(id), file, strerror(errno));
	return false;
}

void preflight_tls(const struct config *c, struct buf *problems)
{
	bool                 has_cert = check_readable(c, CONFIG_TLS_CERT, problems);
	bool                 has_key = check_readable(c, CONFIG_TLS_KEY, problems);
	struct tls_identity *identity;
	struct err           e = { 0 };

	if (!has_cert || !has_key || !config_text(c, CONFIG_TLS_CERT) || !config_text(c, CONFIG_TLS_KEY))
		return;
	if (tls_identity_open(config_text(c, CONFIG_TLS_CERT), config_text(c, CONFIG_TLS_KEY), &identity, &e))
		buf_addf(problems, "%s\n", e.msg);
	else
		tls_identity_close(identity);
}

/* Only a simulated world has a time of its own, and only one process can keep it. */
static void check_scale(const struct config *c, bool is_dev, struct buf *problems)
{
	if (config_number(c, CONFIG_TIME_SCALE) == 1)
		return;
	if (!is_dev)
		buf_addf(problems,
		         "%s: scales the time of a simulated world, so it needs --dev; right is 1, or unset\n",
		         config_name(CONFIG_TIME_SCALE));
	if (config_number(c, CONFIG_STORE) != APP_SQLITE)
		buf_addf(problems, "%s: nodes would not agree about the time; right is %s=sqlite, or 1\n",
		         config_name(CONFIG_TIME_SCALE), config_name(CONFIG_STORE));
}

void preflight_check(struct config *c, bool is_dev, struct buf *problems)
{
	if (is_dev && config_str(c, CONFIG_CSP_URL).n)
		buf_addf(problems,
		         "--dev uses the simulated vendor, but %s is set (%s); unset it, or start without --dev\n",
		         config_name(CONFIG_CSP_URL), config_origin_name(c->values[CONFIG_CSP_URL].origin));
	check_scale(c, is_dev, problems);
	check_listen(c, problems);
	if (!config_str(c, CONFIG_DATA).n && c->values[CONFIG_DATA].origin == FROM_COMMAND_LINE)
		buf_addf(problems, "--data: must name a folder\n");
	preflight_tls(c, problems);
	check_readable(c, CONFIG_CSP_CA, problems);
	check_readable(c, CONFIG_USERS_FILE, problems);
	check_readable(c, CONFIG_OIDC_CA, problems);
	signin_check(c, problems);
	cleaning_check(c, problems);
	guarding_check(c, problems);
}

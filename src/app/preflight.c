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

#include "app/aws_parts.h"
#include "app/instance_parts.h"
#include "app/messages.h"
#include "app/parts.h"
#include "app/config/config.h"
#include "app/signin.h"
#include "app/subscriptions.h"
#include "net/tls.h"

enum rc preflight_listen(struct config *c, char **ret_host, int *ret_port, struct err *e)
{
	struct str          listen = config_str(c, CONFIG_LISTEN);
	const char         *colon = listen.n ? memrchr(listen.p, ':', listen.n) : NULL;
	struct str          host = colon ? str_of(listen.p, (size_t)(colon - listen.p)) : STR("");
	bool                is_option = c->values[CONFIG_LISTEN].origin == FROM_COMMAND_LINE;
	struct sockaddr_in  v4;
	struct sockaddr_in6 v6;
	int64_t             port = 0;

	if (host.n > 2 && host.p[0] == '[' && host.p[host.n - 1] == ']')
		host = str_of(host.p + 1, host.n - 2);
	*ret_host = host.n ? arena_copy(&c->arena, host.p, host.n) : NULL;
	if (!host.n || (uv_ip4_addr(*ret_host, 0, &v4) && uv_ip6_addr(*ret_host, 0, &v6)) ||
	    !str_to_int(str_of(colon + 1, listen.n - (size_t)(colon + 1 - listen.p)), 0, 65535, &port))
		return err_set(e, RC_INVALID,
		               "%s: must be ADDRESS:PORT such as 127.0.0.1:8080 or [::1]:8080, not '%.*s'",
		               is_option ? "--listen" : config_name(CONFIG_LISTEN), STR_ARG(listen));
	*ret_port = (int)port;
	return RC_OK;
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

void preflight_check(struct config *c, bool is_dev, struct buf *problems)
{
	bool       is_scaled = config_number(c, CONFIG_TIME_SCALE) != 1;
	bool       has_listen = config_str(c, CONFIG_LISTEN).n || c->values[CONFIG_LISTEN].origin == FROM_COMMAND_LINE;
	int64_t    slices = config_number(c, CONFIG_DDB_SLICES);
	struct err e = { 0 };
	char      *host;
	int        port;

	if (is_dev && config_str(c, CONFIG_CSP_URL).n)
		buf_addf(problems,
		         "--dev uses the simulated vendor, but %s is set (%s); unset it, or start without --dev\n",
		         config_name(CONFIG_CSP_URL), config_origin_name(c->values[CONFIG_CSP_URL].origin));
	if (is_scaled && !is_dev) /* only a simulated world has a time of its own, */
		buf_addf(problems,
		         "%s: scales the time of a simulated world, so it needs --dev; right is 1, or unset\n",
		         config_name(CONFIG_TIME_SCALE));
	if (is_scaled && config_number(c, CONFIG_STORE) != APP_SQLITE) /* and only one process can keep it */
		buf_addf(problems, "%s: nodes would not agree about the time; right is %s=sqlite, or 1\n",
		         config_name(CONFIG_TIME_SCALE), config_name(CONFIG_STORE));
	if (slices & (slices - 1))
		buf_addf(problems, "%s: must be a power of two such as 4 or 8, not %lld\n",
		         config_name(CONFIG_DDB_SLICES), (long long)slices);
	if (has_listen && preflight_listen(c, &host, &port, &e)) /* that there is none, config_check() has said */
		buf_addf(problems, "%s\n", e.msg);
	if (!config_str(c, CONFIG_DATA).n && c->values[CONFIG_DATA].origin == FROM_COMMAND_LINE)
		buf_addf(problems, "--data: must name a folder\n");
	preflight_tls(c, problems);
	check_readable(c, CONFIG_CSP_CA, problems);
	check_readable(c, CONFIG_OIDC_CA, problems);
	signin_check(c, problems);
	aws_parts_check(c, is_dev, problems);
	cleaner_check(c, problems);
	guard_parts_check(c, problems);
	instance_parts_check(c, problems);
	messages_check(c, is_dev, problems);
	subscriptions_check(c, problems);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_endpoint.c - other addresses of AWS services, as its own tools take them from the environment.
 *
 * A variable that is set but makes no sense is refused, never ignored: whoever set it does not want the real service to
 * be called instead.
 */
#include "net/aws_endpoint.h"

#include "base/addr.h"
#include "base/str.h"

/* The host of an http URL. Empty when it has a user, or anything that readers of URLs may understand differently. */
static struct str http_host(struct str url)
{
	struct str rest = str_skip(url, strlen("http://")), host;
	size_t     n = 0;

	while (n < rest.n && !memchr("/?#", rest.p[n], 3))
		n++;
	rest.n = n;
	if (rest.n && rest.p[0] == '[') {
		rest = str_skip(rest, 1);
		host = memchr(rest.p, ']', rest.n) ? str_cut(&rest, ']') : STR("");
		return !rest.n || (rest.p[0] == ':' && str_is_of(rest, ":0-9")) ? host : STR("");
	}
	return str_is_of(rest, "0-9.:localhst") ? str_cut(&rest, ':') : STR("");
}

static bool is_near(struct str host, enum aws_reach reach)
{
	static const struct {
		const char    *network;
		unsigned       bits;
		enum aws_reach reach;
	} rows[] = { { "127.0.0.0", IP_MAPPED_BITS + 8, AWS_LOOPBACK },
		     { "::1", IP_BITS, AWS_LOOPBACK },
		     { "169.254.0.0", IP_MAPPED_BITS + 16, AWS_LINK_LOCAL },
		     { "fe80::", 10, AWS_LINK_LOCAL },
		     { "fd00:ec2::23", IP_BITS, AWS_LINK_LOCAL } }; /* where EKS has its endpoint */
	struct ip address, network;

	if (str_eq(host, STR("localhost")))
		return true;
	for (size_t i = 0; ip_of_text(host, &address) && i < ARRAY_LEN(rows); i++)
		if (rows[i].reach <= reach && ip_of_text(str_from(rows[i].network), &network) &&
		    ip_is_within(&address, &network, rows[i].bits))
			return true;
	return false;
}

bool aws_url_is_safe(const char *url, enum aws_reach http_reach)
{
	struct str text = str_from(url);

	if (str_starts_with(text, STR("https://")))
		return text.n > strlen("https://");
	return str_starts_with(text, STR("http://")) && is_near(http_host(text), http_reach);
}

enum rc aws_endpoint(const char *(*env)(const char *name), const char *id, struct arena *a, const char **ret,
                     struct err *e)
{
	struct str  own = str_format(a, "AWS_ENDPOINT_URL_%s", id);
	const char *names[] = { own.p, "AWS_ENDPOINT_URL" };
	struct str  url = STR("");
	size_t      i = 0;

	*ret = NULL;
	if (str_eq_nocase(str_from(env("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")), STR("true")))
		return RC_OK;
	for (; i < ARRAY_LEN(names) && !url.n; i++)
		url = str_from(env(names[i]));
	if (!url.n)
		return RC_OK;
	if (!aws_url_is_safe(url.p, AWS_LOOPBACK) || strpbrk(url.p, "?#@ ") || str_has_control(url))
		return err_set(
		        e, RC_INVALID,
		        "%s: must be https://HOST[:PORT], or http:// to this machine (127.0.0.1, [::1], localhost)",
		        names[i - 1]);
	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	*ret = str_dup(a, url).p;
	return RC_OK;
}

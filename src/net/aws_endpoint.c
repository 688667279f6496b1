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
	if (!url_is_safe(url, ADDR_LOOPBACK) || strpbrk(url.p, "?#@ ") || str_has_control(url))
		return err_set(
		        e, RC_INVALID,
		        "%s: must be https://HOST[:PORT], or http:// to this machine (127.0.0.1, [::1], localhost)",
		        names[i - 1]);
	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	*ret = str_dup(a, url).p;
	return RC_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * webhook_url.c - a narrow reading of URLs: what is not plainly http(s)://host[:port][/path][?query] is refused.
 *
 * Narrow, because the one who sends (libcurl) reads the URL again: a form that two readers can understand differently
 * must not get that far. So no user part, no backslash, no escapes in the host, and numbers as hosts only as a.b.c.d or
 * [IPv6].
 */
#include "kernel/edge/webhook.h"

#include "base/addr.h"

enum { HOST_MAX = 253, PORT_MAX = 65535 };

/* Where the first of these characters is, or the end. */
static size_t span_until(struct str s, const char *ends)
{
	size_t n = 0;

	while (n < s.n && !strchr(ends, s.p[n]))
		n++;
	return n;
}

/* Whether a resolver may take it for a number: 127.1, 0x7f000001, 2130706433. */
static bool ends_in_number(struct str host)
{
	size_t from = host.n;

	while (from > 0 && host.p[from - 1] != '.')
		from--;
	return from < host.n && char_is_of(host.p[from], "0-9");
}

static bool is_name(struct str host)
{
	return host.n > 0 && host.n <= HOST_MAX && host.p[0] != '.' && host.p[0] != '-' && host.p[host.n - 1] != '.' &&
	       str_is_of(host, "a-zA-Z0-9._-") && !str_has(host, STR("..")) && !ends_in_number(host);
}

/* True when it names this machine by one of its customary names. */
static bool is_localhost(struct str host)
{
	static const struct str suffix = STR_INIT(".localhost");

	return str_eq_nocase(host, STR("localhost")) ||
	       (host.n > suffix.n && str_eq_nocase(str_of(host.p + host.n - suffix.n, suffix.n), suffix));
}

static enum rc check_place(struct str host, enum addr_place place, bool allows_private, struct err *e)
{
	if (place == ADDR_FORBIDDEN)
		return err_set(e, RC_INVALID, "url: %.*s is an address that no webhook may call", STR_ARG(host));
	if (place == ADDR_PRIVATE && !allows_private)
		return err_set(
		        e, RC_INVALID,
		        "url: %.*s is on this machine or in a private network, and the settings do not allow that",
		        STR_ARG(host));
	return RC_OK;
}

static enum rc check_host(struct str host, bool is_bracketed, bool allows_private, struct err *e)
{
	enum addr_place place = ADDR_PUBLIC;

	if (is_localhost(host))
		return check_place(host, ADDR_PRIVATE, allows_private, e);
	if (addr_place_of_text(host, &place) && is_bracketed == (memchr(host.p, ':', host.n) != NULL))
		return check_place(host, place, allows_private, e);
	if (is_bracketed || !is_name(host))
		return err_set(e, RC_INVALID, "url: the host must be a name, an address a.b.c.d or [an IPv6 address]");
	return RC_OK;
}

/* "host", "host:port", "[v6]:port" */
static enum rc check_authority(struct str authority, bool allows_private, struct err *e)
{
	bool       is_bracketed = authority.n && authority.p[0] == '[';
	size_t     host_end = span_until(authority, is_bracketed ? "]" : ":");
	size_t     used = host_end + (is_bracketed && host_end < authority.n);
	struct str host = str_of(authority.p + is_bracketed, host_end - is_bracketed);
	struct str port = str_of(authority.p + used, authority.n - used);
	int64_t    number;

	if (memchr(authority.p, '@', authority.n))
		return err_set(e, RC_INVALID, "url: must have no user or password; the body is signed with the secret");
	if (is_bracketed && host_end == authority.n)
		return err_set(e, RC_INVALID, "url: the IPv6 address must end with ]");
	if (port.n && (port.p[0] != ':' || !str_to_int(str_of(port.p + 1, port.n - 1), 1, PORT_MAX, &number)))
		return err_set(e, RC_INVALID, "url: the port must be a number from 1 to %d", PORT_MAX);
	return check_host(host, is_bracketed, allows_private, e);
}

enum rc webhook_url_check(struct str url, bool allows_private, struct err *e)
{
	struct str rest = url;
	size_t     scheme = str_starts_with(url, STR("https://")) ? 8 : str_starts_with(url, STR("http://")) ? 7 : 0;

	if (url.n > WEBHOOK_URL_MAX)
		return err_set(e, RC_INVALID, "url: must be at most %d bytes long", WEBHOOK_URL_MAX);
	if (!scheme)
		return err_set(e, RC_INVALID, "url: must begin with https:// or http://");
	if (!str_is_of(url, "!#-;=?-[]_a-z~")) /* all that can be seen but \"<>^`{|} */
		return err_set(e, RC_INVALID,
		               "url: must have no blanks, controls, quotes, backslashes or letters beyond ASCII");
	rest = str_of(url.p + scheme, url.n - scheme);
	rest.n = span_until(rest, "/?#");
	return check_authority(rest, allows_private, e);
}

struct str webhook_url_shown(struct str url)
{
	return str_of(url.p, span_until(url, "?#"));
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forwarded.c - X-Forwarded-For and Forwarded (RFC 7239), read from their end.
 *
 * Each proxy adds, at the end, the address that it was called from. So the last entry is what the peer says, the one
 * before it what the proxy in that entry says, and so on: an entry is believed as long as all behind it are trusted
 * proxies. The first that is none is the client; whatever stands before it, the client may have made up.
 *
 * A proxy usually maintains one of the two headers and hands the other on as the client sent it. When both are there
 * and differ, one of them may be the client's invention, and the peer itself counts as the client: nobody can pass for
 * somebody else.
 */
#include "http/server/forwarded.h"

#include "net/http1.h"

enum { HOPS_MAX = 16 };

static enum rc parse_network(struct str text, struct proxies *ret, struct err *e)
{
	struct str rest = text, address = str_cut(&rest, '/');
	bool       has_bits = address.n < text.n;
	struct ip  ip;
	int64_t    bits, most;

	if (!ip_of_text(address, &ip))
		return err_set(e, RC_INVALID,
		               "'%.*s' is not an address such as 192.0.2.1, or a network such as 10.0.0.0/8",
		               STR_ARG(text));
	most = ip_is_v4(&ip) ? IP_BITS - IP_MAPPED_BITS : IP_BITS;
	bits = most;
	if (has_bits && !str_to_int(rest, 0, most, &bits))
		return err_set(e, RC_INVALID, "'%.*s': a network has 0 to %d bits", STR_ARG(text), (int)most);
	if (ret->count == PROXIES_MAX)
		return err_set(e, RC_INVALID, "more than %d networks", PROXIES_MAX);
	ret->networks[ret->count].address = ip;
	ret->networks[ret->count++].bits = (unsigned)(bits + IP_BITS - most);
	return RC_OK;
}

enum rc proxies_parse(struct str text, struct proxies *ret, struct err *e)
{
	struct proxies p = { .count = 0 };

	while (text.n) {
		enum rc rc = parse_network(str_trim(str_cut(&text, ',')), &p, e);

		if (rc)
			return rc;
	}
	*ret = p;
	return RC_OK;
}

bool proxies_trust(const struct proxies *p, const struct ip *address)
{
	for (size_t i = 0; i < p->count; i++)
		if (ip_is_within(address, &p->networks[i].address, p->networks[i].bits))
			return true;
	return false;
}

/* 192.0.2.1, 192.0.2.1:80, 2001:db8::1, [2001:db8::1], "[2001:db8::1]:80" */
static bool read_node(struct str text, struct ip *ret)
{
	const char *end;

	if (text.n >= 2 && text.p[0] == '"' && text.p[text.n - 1] == '"')
		text = str_of(text.p + 1, text.n - 2);
	if (text.n && text.p[0] == '[') {
		end = memchr(text.p, ']', text.n);
		return end && ip_of_text(str_of(text.p + 1, (size_t)(end - text.p) - 1), ret);
	}
	end = memchr(text.p ? text.p : "", ':', text.n);
	if (end && !memchr(end + 1, ':', text.n - (size_t)(end - text.p) - 1))
		text.n = (size_t)(end - text.p); /* one colon: a port */
	return ip_of_text(text, ret);
}

/* for=192.0.2.1;proto=https: the value of "for". Empty: there is none. */
static struct str find_for(struct str element)
{
	while (element.n) {
		struct str value = str_trim(str_cut(&element, ';')), name = str_cut(&value, '=');

		if (str_eq_nocase(name, STR("for")))
			return value;
	}
	return STR("");
}

static struct str cut_last(struct str *rest)
{
	size_t     at = rest->n;
	struct str last;

	while (at > 0 && rest->p[at - 1] != ',')
		at--;
	last = str_trim(str_of(rest->p + at, rest->n - at));
	rest->n = at ? at - 1 : 0;
	return last;
}

struct walk {
	const struct proxies *proxies;
	struct ip             client; /* the last one that is sure */
	bool                  is_over;
};

static void walk_value(struct walk *w, struct str value, bool is_forwarded)
{
	for (int hops = 0; value.n && !w->is_over; hops++) {
		struct str entry = cut_last(&value);
		struct ip  ip;

		if (hops == HOPS_MAX || !read_node(is_forwarded ? find_for(entry) : entry, &ip)) {
			w->is_over = true;
			return;
		}
		w->client = ip;
		w->is_over = !proxies_trust(w->proxies, &ip);
	}
}

/* The header may have come in several lines, which are one list. False: it is not there. */
static bool walk_header(struct walk *w, const struct http_request *req, struct str name, bool is_forwarded)
{
	bool is_there = false;

	for (size_t i = req->header_count; i-- > 0 && !w->is_over;)
		if (str_eq_nocase(req->headers[i].name, name)) {
			is_there = true;
			walk_value(w, req->headers[i].value, is_forwarded);
		}
	return is_there;
}

struct ip forwarded_client(const struct proxies *p, const struct ip *peer, const struct http_request *req)
{
	struct walk one = { p, *peer, false }, other = { p, *peer, false };
	bool        has_one = walk_header(&one, req, STR("X-Forwarded-For"), false);
	bool        has_other = walk_header(&other, req, STR("Forwarded"), true);

	if (has_one && has_other)
		return memcmp(&one.client, &other.client, sizeof(one.client)) == 0 ? one.client : *peer;
	return has_one ? one.client : other.client;
}

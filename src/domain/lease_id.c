/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_id.c - the names of things: lease ids, emails, uuids, account ids.
 *
 * The id of a lease is padded base64 of {"userEmail":"...","uuid":"..."}; clients build it themselves from the two.
 * Reading accepts what they make of it on the way: the URL-safe alphabet, no padding, blanks in the JSON, the other
 * order of its members.
 *
 * Always true: an id that is read has nothing but a good email and a good uuid in it.
 */
#include "base/arena.h"
#include "base/base64.h"
#include "base/json.h"
#include "domain/lease.h"

enum { LOCAL_PART_MAX = 64, HOST_LABEL_MAX = 63 };

static bool is_local_part(struct str s)
{
	return s.n > 0 && s.n <= LOCAL_PART_MAX && s.p[0] != '.' && s.p[s.n - 1] != '.' && !str_has(s, STR("..")) &&
	       str_is_of(s, "a-zA-Z0-9_'+.-");
}

static bool is_host_label(struct str s)
{
	return s.n > 0 && s.n <= HOST_LABEL_MAX && s.p[0] != '-' && s.p[s.n - 1] != '-' && str_is_of(s, "a-zA-Z0-9-");
}

static bool is_host(struct str s)
{
	struct str rest = s, label = str_cut(&rest, '.');

	if (!rest.p)
		return false; /* without a dot */
	while (rest.p) {
		if (!is_host_label(label))
			return false;
		label = str_cut(&rest, '.');
	}
	/* A top-level domain has letters only, or begins as one of another script does ("xn--"). */
	return label.n >= 2 && is_host_label(label) &&
	       (str_starts_with(label, STR("xn--")) || str_is_of(label, "a-zA-Z"));
}

bool email_is_ok(struct str s)
{
	struct str host = s, local = str_cut(&host, '@');

	return s.n <= EMAIL_MAX && local.n < s.n && is_local_part(local) && is_host(host);
}

struct str email_key(struct str s, struct arena *a)
{
	return str_lower(a, s);
}

bool uuid_is_ok(struct str s)
{
	if (s.n != LEASE_UUID_MAX)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		bool is_dash_place = i == 8 || i == 13 || i == 18 || i == 23;

		if (is_dash_place ? s.p[i] != '-' : char_hex(s.p[i]) < 0)
			return false;
	}
	return true;
}

bool account_id_is_ok(struct str s)
{
	return str_is_digits(s, ACCOUNT_ID_MAX);
}

static void replace(char *text, size_t n, char from, char to)
{
	for (size_t i = 0; i < n; i++)
		if (text[i] == from)
			text[i] = to;
}

/* From the URL-safe alphabet to the other, and padded. */
static struct str to_standard(struct str urlsafe, struct arena *a)
{
	char  *text = arena_alloc(a, urlsafe.n + 4);
	size_t n = urlsafe.n;

	if (n > 0)
		memcpy(text, urlsafe.p, n);
	replace(text, n, '-', '+');
	replace(text, n, '_', '/');
	while (n % 4 != 0)
		text[n++] = '=';
	return str_of(text, n);
}

/* False when padding is there but not as much as it should be. */
static bool to_urlsafe(struct str any, struct arena *a, struct str *ret)
{
	size_t n = any.n;
	char  *text;

	while (n > 0 && any.n - n < 2 && any.p[n - 1] == '=')
		n--;
	if (n < any.n && any.n % 4 != 0)
		return false;
	text = arena_copy(a, any.p ? any.p : "", n);
	replace(text, n, '+', '-');
	replace(text, n, '/', '_');
	*ret = str_of(text, n);
	return true;
}

struct str lease_id(const struct lease *l, struct arena *a)
{
	struct str key = JSON_OF(a, member_str("userEmail", l->user_email), member_str("uuid", l->uuid));

	return to_standard(base64url_encode(a, key), a);
}

static enum rc read_key(struct str text, struct arena *a, struct str *ret_email, struct str *ret_uuid, struct err *e)
{
	CLEANUP(json_freep) json_t *key = NULL;
	struct str                  email, uuid;
	struct err                  ignored = { 0 }; /* where in the decoded text says nothing to whoever sent the id */

	if (json_parse(text, &key, &ignored))
		return err_set(e, RC_INVALID, "lease id: is not base64 of {\"userEmail\":\"...\",\"uuid\":\"...\"}");
	if (!json_is_object(key) || json_object_size(key) != 2 || !json_get_text(key, "userEmail", &email) ||
	    !json_get_text(key, "uuid", &uuid))
		return err_set(e, RC_INVALID, "lease id: must hold userEmail and uuid, two texts, and nothing else");
	if (!email_is_ok(email))
		return err_set(e, RC_INVALID, "lease id: its userEmail is not an email address");
	if (!uuid_is_ok(uuid))
		return err_set(e, RC_INVALID, "lease id: its uuid is not of the form 8-4-4-4-12 hexadecimal digits");
	*ret_email = str_dup(a, email);
	*ret_uuid = str_dup(a, uuid);
	return RC_OK;
}

enum rc lease_id_parse(struct str id, struct arena *a, struct str *ret_email, struct str *ret_uuid, struct err *e)
{
	struct str urlsafe, text;

	if (id.n == 0 || id.n > LEASE_ID_MAX)
		return err_set(e, RC_INVALID, "lease id: has %zu characters, must have 1 to %d", id.n, LEASE_ID_MAX);
	if (!to_urlsafe(id, a, &urlsafe) || !base64url_decode(a, urlsafe, &text))
		return err_set(e, RC_INVALID, "lease id: is not base64 of {\"userEmail\":\"...\",\"uuid\":\"...\"}");
	return read_key(text, a, ret_email, ret_uuid, e);
}

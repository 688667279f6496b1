/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret.c - a tenant's passwords and keys, encrypted in secrets/TENANT.
 *
 * XChaCha20-Poly1305 of libsodium under the key in master.key (mode 600); the tenant's id is authenticated with it, so
 * a file under another tenant's name does not open. A file: 24 bytes of nonce, then what was encrypted.
 */
#include <sodium.h>
#include <sys/stat.h>

#include "base/id.h"
#include "base/json.h"
#include "base/file.h"
#include "base/password.h"
#include "providers/local/files.h"
#include "providers/local/local_private.h"

enum {
	NONCE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
	TAG = crypto_aead_xchacha20poly1305_ietf_ABYTES,
	SECRET_MAX = 8192,
};

enum rc secrets_open(struct local *l, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       path = local_path(l, &a, "master.key"), text;
	struct stat                      about;
	enum rc                          rc;

	if (sodium_init() < 0)
		return err_set(e, RC_INTERNAL, "libsodium cannot be used");
	rc = file_read(path.p, sizeof(l->master_key), &a, &text, e);
	if (rc == RC_NOT_FOUND) {
		err_clear(e);
		id_random(l->master_key, sizeof(l->master_key));
		rc = file_write(path.p, str_of((const char *)l->master_key, sizeof(l->master_key)), FILE_OURS, true, e);
	} else if (!rc && (text.n != sizeof(l->master_key) || stat(path.p, &about) != 0)) {
		rc = err_set(e, RC_CORRUPT, "%s is no key of %zu bytes; put the right one there", path.p,
		             sizeof(l->master_key));
	} else if (!rc && !(rc = secret_file_check(path.p, &about, e))) {
		memcpy(l->master_key, text.p, text.n);
	}
	return rc;
}

static struct str secret_path(const struct local *l, const struct site *s, struct arena *a)
{
	return local_path(l, a, "secrets/%s", s->tenant);
}

/* --- the file --- */

enum rc secret_write(struct local *l, const struct site *s, const struct site_secret *from, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       keys = STR(""), text;
	unsigned char                   *box;
	unsigned long long               n;

	for (size_t i = 0; i < ARRAY_LEN(from->keys); i++)
		keys = str_format(&a, "%.*s%s%.*s", STR_ARG(keys), i ? " " : "", STR_ARG(from->keys[i]));
	text = JSON_OF(&a, member_str("database", from->database_password), member_str("user", from->admin_user),
	               member_str("password", from->admin_password), member_str("client", from->client_id),
	               member_str("client_secret", from->client_secret), member_str("keys", keys));
	box = arena_alloc(&a, NONCE + text.n + TAG);
	id_random(box, NONCE);
	crypto_aead_xchacha20poly1305_ietf_encrypt(box + NONCE, &n, (const unsigned char *)text.p, text.n,
	                                           (const unsigned char *)s->tenant, strlen(s->tenant), NULL, box,
	                                           l->master_key);
	return file_write(secret_path(l, s, &a).p, str_of((const char *)box, NONCE + n), FILE_OURS, true, e);
}

static bool parse(struct str text, struct arena *a, struct site_secret *ret)
{
	CLEANUP(json_freep) json_t *o = NULL;
	struct str                  keys;

	if (json_parse(text, &o, NULL) || !json_take_text(o, "database", a, &ret->database_password) ||
	    !json_take_text(o, "user", a, &ret->admin_user) ||
	    !json_take_text(o, "password", a, &ret->admin_password) ||
	    !json_take_text(o, "client", a, &ret->client_id) ||
	    !json_take_text(o, "client_secret", a, &ret->client_secret) || !json_take_text(o, "keys", a, &keys))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(ret->keys); i++)
		ret->keys[i] = str_cut(&keys, ' ');
	return ret->database_password.n && ret->admin_password.n && ret->keys[7].n;
}

enum rc secret_read(struct local *l, const struct site *s, struct arena *a, struct site_secret *ret, struct err *e)
{
	struct str         path = secret_path(l, s, a), box;
	unsigned char     *text;
	unsigned long long n;
	enum rc            rc = file_read(path.p, SECRET_MAX, a, &box, e);

	if (rc == RC_NOT_FOUND)
		err_clear(e);
	if (rc)
		return rc == RC_NOT_FOUND ? err_set(e, rc, "tenant %s has no secret", s->tenant) : rc;
	if (box.n < NONCE + TAG)
		return err_set(e, RC_CORRUPT, "%s is not a secret", path.p);
	text = arena_alloc(a, box.n);
	if (crypto_aead_xchacha20poly1305_ietf_decrypt(text, &n, NULL, (const unsigned char *)box.p + NONCE,
	                                               box.n - NONCE, (const unsigned char *)s->tenant,
	                                               strlen(s->tenant), (const unsigned char *)box.p,
	                                               l->master_key) != 0 ||
	    !parse(str_of((const char *)text, n), a, ret))
		return err_set(
		        e, RC_CORRUPT,
		        "%s does not open with this master.key: it was changed, or belongs to another tenant or key",
		        path.p);
	return RC_OK;
}

/* --- the resource --- */

static struct str new_token(struct arena *a)
{
	char *token = arena_alloc(a, ID_TOKEN_SIZE);

	id_token(token);
	return str_from(token);
}

/* Stored first, then set in the database: no password is ever in force that is not stored. */
enum rc secret_make(struct local *l, struct site *s, const struct instance_spec *spec UNUSED, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site_secret               secret;
	enum rc                          rc = site_needs(s, INSTANCE_DATABASE, e);

	if (!rc && (rc = secret_read(l, s, &a, &secret, e)) == RC_NOT_FOUND) {
		err_clear(e);
		secret = (struct site_secret){ .database_password = password_new(&a),
			                       .admin_user = STR("admin"),
			                       .admin_password = password_new(&a),
			                       .client_id = new_token(&a),
			                       .client_secret = new_token(&a) };
		for (size_t i = 0; i < ARRAY_LEN(secret.keys); i++)
			secret.keys[i] = new_token(&a);
		rc = secret_write(l, s, &secret, e);
	}
	if (!rc)
		rc = database_set_password(l, s, STR(""), secret.database_password, e);
	return rc;
}

enum rc secret_remove(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };

	return file_remove(secret_path(l, s, &a).p, e);
}

/* It opens, and its password lets the tenant into the tenant's database. */
enum rc secret_check(struct local *l, struct site *s, bool *ret, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site_secret               secret;
	enum rc                          rc = secret_read(l, s, &a, &secret, e);

	if (rc)
		return err_forgive(e, rc, RC_NOT_FOUND);
	*ret = !s->instance[INSTANCE_DATABASE][0];
	if (!*ret && !(rc = database_start(l, e)))
		*ret = database_run_as(l, s, STR("SELECT 1;\n"), &a, NULL) == RC_OK;
	return rc;
}

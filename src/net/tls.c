/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.c - OpenSSL between two memory buffers.
 *
 * The caller owns the socket: what it receives goes in with tls_receive(), what OpenSSL wants to send is fetched with
 * tls_outgoing(). Handshake, alerts and data all go this way, so after every call that may have produced something the
 * caller looks for outgoing bytes.
 *
 * Always true:
 *   1. TLS 1.2 with forward secrecy, or newer; no compression, no renegotiation, no early data.
 *   2. No prompt for a pass phrase: a protected key is an error.                               [no_passphrase()]
 *   3. A client that offers protocols (ALPN) gets http/1.1 or is refused.
 *   4. A peer keeps us at work for as long as it sends data, not with records without any.            [tls_read()]
 *   5. OpenSSL's error queue is empty when a function returns, so that one connection's trouble is not another's.
 *
 * Not here: client certificates, choosing a certificate by name.
 */
#include "net/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/file.h"

/* Of what came at once: new keys and the like. Each takes as long as a small request, nobody needs more than a few. */
enum { SILENT_MAX = 32 };

struct tls_identity {
	SSL_CTX *ctx;
};

struct tls {
	SSL *ssl;
	BIO *in; /* both belong to ssl */
	BIO *out;
	int  silent; /* records without data since something came */
	bool has_met_http;
};

static int no_passphrase(char *to UNUSED, int size UNUSED, int is_writing UNUSED, void *arg UNUSED)
{
	return 0;
}

static int choose_protocol(SSL *ssl UNUSED, const unsigned char **ret, unsigned char *ret_n,
                           const unsigned char *offered, unsigned int offered_n, void *arg UNUSED)
{
	static const unsigned char spoken[] = "\x08http/1.1";

	for (unsigned at = 0; at < offered_n; at += 1u + offered[at]) {
		if (offered_n - at < sizeof(spoken) - 1 || memcmp(offered + at, spoken, sizeof(spoken) - 1) != 0)
			continue;
		*ret = offered + at + 1;
		*ret_n = offered[at];
		return SSL_TLSEXT_ERR_OK;
	}
	return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Of TLS 1.2 only what keeps what was said secret when the key becomes known later; TLS 1.3 has nothing else. */
#define TLS12_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

static SSL_CTX *new_context(void)
{
	static const unsigned char session_scope[] = "leasehold";
	SSL_CTX                   *ctx = SSL_CTX_new(TLS_server_method());

	if (!ctx)
		return NULL;
	(void)SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION); /* cannot fail for a version OpenSSL 3 knows */
	if (SSL_CTX_set_cipher_list(ctx, TLS12_CIPHERS) != 1) {
		SSL_CTX_free(ctx);
		return NULL;
	}
	SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);            /* so that tls_read() can count */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); /* tickets need no memory here */
	(void)SSL_CTX_set_session_id_context(ctx, session_scope, sizeof(session_scope) - 1);
	SSL_CTX_set_default_passwd_cb(ctx, no_passphrase);
	SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
	return ctx;
}

/* The newest entry of OpenSSL's queue as the reason, where it tells a person something. */
static enum rc fail(struct err *e, const char *what, const char *file, const char *needed)
{
	unsigned long newest = ERR_peek_last_error();
	const char   *reason = ERR_reason_error_string(newest);
	int           code = ERR_GET_REASON(newest);

	if (!reason || code == ERR_R_PEM_LIB || code == PEM_R_NO_START_LINE || code == ERR_R_UNSUPPORTED)
		err_set(e, RC_INVALID, "%s %s is not %s", what, file, needed);
	else
		err_set(e, RC_INVALID, "%s %s: %s", what, file, reason);
	ERR_clear_error();
	return RC_INVALID;
}

static enum rc check_readable(const char *what, const char *file, struct err *e)
{
	if (access(file, R_OK) != 0)
		return err_set(e, RC_INVALID, "%s %s: %s; a readable PEM file is needed", what, file, strerror(errno));
	return RC_OK;
}

static enum rc load(SSL_CTX *ctx, const char *cert_file, const char *key_file, struct err *e)
{
	struct stat st;
	enum rc     rc;

	if ((rc = check_readable("TLS certificate", cert_file, e)) || (rc = check_readable("TLS key", key_file, e)))
		return rc;
	if (SSL_CTX_use_certificate_chain_file(ctx, cert_file) != 1)
		return fail(e, "TLS certificate", cert_file, "a PEM certificate");
	if (stat(key_file, &st) == 0 && (rc = secret_file_check(key_file, &st, e))) /* otherwise it cannot be read */
		return err_wrap(e, rc, "TLS key");
	if (SSL_CTX_use_PrivateKey_file(ctx, key_file, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return fail(e, "TLS key", key_file, "a PEM private key without a pass phrase");
	return RC_OK;
}

enum rc tls_identity_open(const char *cert_file, const char *key_file, struct tls_identity **ret, struct err *e)
{
	SSL_CTX *ctx = new_context();
	enum rc  rc;

	if (!ctx)
		return err_set(e, RC_INTERNAL, "TLS: OpenSSL cannot make a server context");
	if ((rc = load(ctx, cert_file, key_file, e))) {
		SSL_CTX_free(ctx);
		return rc;
	}
	*ret = mem_new(struct tls_identity);
	(*ret)->ctx = ctx;
	return RC_OK;
}

void tls_identity_close(struct tls_identity *id)
{
	if (!id)
		return;
	SSL_CTX_free(id->ctx);
	free(id);
}

struct tls *tls_new(struct tls_identity *id)
{
	struct tls *t = mem_new(struct tls);

	t->ssl = SSL_new(id->ctx);
	t->in = BIO_new(BIO_s_mem());
	t->out = BIO_new(BIO_s_mem());
	mem_must(t->ssl && t->in && t->out, "a TLS connection");
	SSL_set_bio(t->ssl, t->in, t->out);
	SSL_set_accept_state(t->ssl);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	SSL_free(t->ssl);
	free(t);
}

void tls_receive(struct tls *t, const char *bytes, size_t n)
{
	size_t taken;

	t->silent = 0;
	/* A memory buffer takes all. */
	mem_must(BIO_write_ex(t->in, bytes, n, &taken) && taken == n, "what came over TLS");
}

static enum tls_result why_not_read(struct tls *t, int result)
{
	int why = SSL_get_error(t->ssl, result);

	if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST)
		t->has_met_http = true;
	ERR_clear_error();
	if (why == SSL_ERROR_WANT_READ)
		return TLS_WAIT;
	return why == SSL_ERROR_ZERO_RETURN ? TLS_CLOSED : TLS_FAILED;
}

enum tls_result tls_read(struct tls *t, char *to, size_t room, size_t *ret_n)
{
	while (t->silent < SILENT_MAX) {
		int             result = SSL_read(t->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
		enum tls_result why = result > 0 ? TLS_OK : why_not_read(t, result);

		if (why == TLS_OK)
			*ret_n = (size_t)result;
		if (why != TLS_WAIT || BIO_ctrl_pending(t->in) == 0)
			return why;
		t->silent++;
	}
	return TLS_FAILED;
}

bool tls_met_http(const struct tls *t)
{
	return t->has_met_http;
}

bool tls_write(struct tls *t, struct str bytes)
{
	size_t written;

	if (bytes.n == 0)
		return true;
	if (SSL_write_ex(t->ssl, bytes.p, bytes.n, &written) == 1)
		return true; /* all of it: partial writes are off and memory does not block */
	ERR_clear_error();
	return false;
}

void tls_goodbye(struct tls *t)
{
	(void)SSL_shutdown(t->ssl); /* an unfinished handshake has no good-bye; the socket closes anyway */
	ERR_clear_error();
}

struct str tls_outgoing(struct tls *t)
{
	char *bytes = NULL;
	long  n = BIO_get_mem_data(t->out, &bytes);

	return str_of(bytes, n > 0 ? (size_t)n : 0);
}

void tls_sent(struct tls *t)
{
	(void)BIO_reset(t->out);
}

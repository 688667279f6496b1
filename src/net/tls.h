/* tls.h - the server's side of TLS, without sockets: ciphertext in and out, plain bytes out and in. */
#pragma once

#include "base/err.h"
#include "base/str.h"

/* Certificate and key, ready for connections. */
struct tls_identity;

/* One connection. */

/* RC_INVALID, naming the file, when one of them is missing, unreadable, not PEM, or when they do not match. */
MUST_CHECK enum rc tls_identity_open(const char *cert_file, const char *key_file, struct tls_identity **ret,
                                     struct err *e);

/* Connections that were made from it go on. */
void tls_identity_close(struct tls_identity *id);

struct tls *tls_new(struct tls_identity *id);
void        tls_free(struct tls *t);

/* Ciphertext that came from the peer. */
void tls_receive(struct tls *t, const char *bytes, size_t n);

enum tls_result {
	TLS_OK,
	TLS_WAIT,   /* nothing to read until more ciphertext comes */
	TLS_CLOSED, /* the peer closed the connection */
	TLS_FAILED, /* not TLS, or broken: flush what tls_outgoing() has, then close */
};

/* Plain bytes from the peer; does the handshake on the way. TLS_OK: *ret_n of at most room bytes, at least one. */
enum tls_result tls_read(struct tls *t, char *to, size_t room, size_t *ret_n);

/* After TLS_FAILED: what came was a plain HTTP request. */
bool tls_met_http(const struct tls *t);

/* Encrypt plain bytes for the peer. Only after something was read. False when the connection is broken. */
bool tls_write(struct tls *t, struct str bytes);

/* Tell the peer that we close the connection. */
void tls_goodbye(struct tls *t);

/* Ciphertext for the peer; valid until the next call. tls_sent() takes all of it away. */
struct str tls_outgoing(struct tls *t);
void       tls_sent(struct tls *t);

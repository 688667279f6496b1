/* http.h - the vendor's real API behind domain/ports/csp.h. */
#pragma once

#include <stdint.h>

struct csp_http_options {
	const char *base_url; /* CSP_BASE_URL; a slash at its end does not matter */
	const char *token;    /* CSP_API_TOKEN */
	long        connect_timeout_ms, total_timeout_ms;
	const char *ca_file; /* NULL: the system's */

	/* Called with the Date of each answer, in seconds since 1970, when it has one. NULL: not called. On the
	 * caller's thread. */
	void (*on_date)(int64_t sec, void *arg);
	void *on_date_arg;
};

/* Copies the options. Any number of threads may call it at once. End it with csp_close(). */
struct csp *csp_http_open(const struct csp_http_options *options);

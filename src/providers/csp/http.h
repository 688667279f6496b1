/* http.h - the vendor's real API behind domain/csp.h. */
#pragma once

struct csp;

struct csp_http_options {
	const char *base_url; /* CSP_BASE_URL; a slash at its end does not matter */
	const char *token;    /* CSP_API_TOKEN */
	long        connect_timeout_ms;
	long        total_timeout_ms;
	const char *ca_file; /* NULL: the system's */
};

/* Copies the options. Any number of threads may call it at once. End it with csp_close(). */
struct csp *csp_http_open(const struct csp_http_options *options);

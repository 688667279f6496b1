/* api.h - one conversation of the client with a server: address, token, requests, and what refusals mean. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/settings.h"
#include "net/fetch.h"

struct cli_args;
struct cli_io;

enum api_scope { API_TRACK, API_ADMIN };

enum { API_HEADERS_MAX = 8, API_WAIT_MAX_SEC = 86400 };

struct api {
	const struct cli_io   *io;
	const struct cli_args *args;
	struct arena           arena; /* everything a run needs */
	struct settings        settings;
	struct str             base; /* such as "http://127.0.0.1:8080/v1" */
	bool                   is_json;
	bool                   is_coloured;
};

struct api_request {
	const char    *method;
	struct str     path; /* behind the base, with its query */
	enum api_scope scope;
	const char    *headers[API_HEADERS_MAX];
	struct str     body;        /* JSON; none when empty */
	int64_t        wait_sec;    /* how long the server was asked to hold the request */
	const char    *waiting_for; /* shown while it takes long */
};

/* RC_INVALID when address or client file are wrong. The api must be closed in any case. */
MUST_CHECK enum rc api_open(struct api *api, const struct cli_io *io, const struct cli_args *args, struct err *e);
void               api_close(struct api *api);

/* The token for this scope, from wherever it is. RC_UNKNOWN with what to do when there is none. */
MUST_CHECK enum rc api_token(struct api *api, enum api_scope scope, struct str *ret, struct err *e);

/* The track: --track, else LEASEHOLD_TRACK. RC_INVALID when neither is there. */
MUST_CHECK enum rc api_track(const struct api *api, struct str *ret, struct err *e);

/* RC_OK means that an answer came, whatever its status. */
MUST_CHECK enum rc api_send(struct api *api, const struct api_request *req, struct fetch_reply *ret, struct err *e);

/* The JSON of an answer; yours. RC_CORRUPT when it is none. */
MUST_CHECK enum rc api_json(const struct fetch_reply *reply, json_t **ret, struct err *e);

/* Explain a failure before any answer; returns the exit code. */
int api_fail(const struct api *api, const struct err *e);

/* Explain an answer that is not a success; returns the exit code. */
int api_refused(struct api *api, const struct fetch_reply *reply);

/* Print a success: with --json as it came, else as a record. Explain anything else. Returns the exit code. */
int api_show(struct api *api, const struct fetch_reply *reply);

/* api_send() and api_show(). */
int api_run(struct api *api, const struct api_request *req);

/* Print the JSON of an answer as it came, on a line of its own. */
void api_print_json(const struct api *api, const struct fetch_reply *reply);

bool api_is_success(const struct fetch_reply *reply);

/* The exit code that belongs to an error answer. */
int api_exit_code(int status, struct str error_code);

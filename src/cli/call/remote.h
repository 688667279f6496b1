/* remote.h - one conversation of the client with a server: address, token, requests, and what refusals mean. */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/call/settings.h"
#include "cli/term/args.h"
#include "cli/term/io.h"
#include "net/fetch.h"

/* Whose token. A person's, or a program's that stands for one, is for the paths under /api; an
 * admin's also for those of tenants, which are beside the base. */
enum remote_scope { REMOTE_TRACK, REMOTE_ADMIN, REMOTE_PERSON, REMOTE_TENANT };

enum { REMOTE_HEADERS_MAX = 8, REMOTE_WAIT_MAX_SEC = 86400 };

struct remote {
	const struct cli_io   *io; /* with the server's time, where that is not the machine's */
	const struct cli_args *args;
	struct arena           arena; /* everything a run needs */
	struct settings        settings;
	struct str             base;    /* such as "http://127.0.0.1:8080/v1" */
	struct str             api;     /* such as "http://127.0.0.1:8080/api": the base of requests of people */
	struct str             tenants; /* such as "http://127.0.0.1:8080/v1.0/tenants" */
	bool                   is_json, is_coloured, has_address; /* or the default is taken */
	struct clock           clock;                             /* of the server, and */
	struct cli_io          clock_io;                          /* what it was given with that */
};

struct remote_request {
	const char       *method;
	struct str        path; /* behind the base, with its query */
	enum remote_scope scope;
	struct str        token; /* instead of the one for the scope; empty: that one */
	const char       *headers[REMOTE_HEADERS_MAX];
	const char       *accept;      /* header line; NULL: JSON */
	struct str        body;        /* JSON; none when empty */
	int64_t           wait_sec;    /* how long the server was asked to hold the request */
	const char       *waiting_for; /* shown while it takes long */
};

/* RC_INVALID when address or client file are wrong. The remote must be closed in any case. */
MUST_CHECK enum rc remote_open(struct remote *remote, const struct cli_io *io, const struct cli_args *args,
                               struct err *e);
void               remote_close(struct remote *remote);

/* The token for this scope, from wherever it is. RC_UNKNOWN with what to do when there is none. */
MUST_CHECK enum rc remote_token(struct remote *remote, enum remote_scope scope, struct str *ret, struct err *e);

/* A session token of this person for the next hour, signed with the server's own secret. */
struct str remote_session(struct remote *remote, struct str email, unsigned roles, struct str secret);

/* The track: --track, else LEASEHOLD_TRACK. RC_INVALID when neither is there. */
MUST_CHECK enum rc remote_track(const struct remote *remote, struct str *ret, struct err *e);

/* RC_OK means that an answer came, whatever its status. */
MUST_CHECK enum rc remote_send(struct remote *remote, const struct remote_request *req, struct fetch_reply *ret,
                               struct err *e);

/* The same, but the body of a success is given to take() as it comes, however long it is; false: that is enough. */
typedef bool       remote_take_fn(struct str bytes, void *arg);
MUST_CHECK enum rc remote_stream(struct remote *remote, const struct remote_request *req, remote_take_fn *take,
                                 void *arg, struct fetch_reply *ret, struct err *e);

/* The JSON of an answer; yours. RC_CORRUPT when it is none. */
MUST_CHECK enum rc remote_json(const struct fetch_reply *reply, json_t **ret, struct err *e);

/* Explain what is wrong with the command line; returns the exit code. */
int remote_misused(const struct remote *remote, const char *why);

/* Explain a failure before any answer; returns the exit code. */
int remote_fail(const struct remote *remote, const struct err *e);
int remote_failed(const struct remote *remote, enum rc rc, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* Explain an answer that is not a success; returns the exit code. */
int remote_refused(struct remote *remote, const struct fetch_reply *reply);

/* Why an answer is not a success, in its own words, as one line. */
struct str remote_message(struct remote *remote, const struct fetch_reply *reply);

/* The answer of a success. */
struct answer {
	struct fetch_reply reply;
	json_t            *json; /* all of it; yours, answer_free() */
	json_t            *data; /* what it is about: under /api its member "data", else all of it */
	struct str         id;   /* of what was asked for, when a row of calls.c has it in its path */
};

/* For CLEANUP(). */
void answer_free(struct answer *answer);

/* Send and read the answer; nothing is printed unless it is no success. Returns the exit code. */
int remote_call(struct remote *remote, const struct remote_request *req, struct answer *ret);
int remote_get(struct remote *remote, enum remote_scope scope, struct str path, struct answer *ret);

/* The second half of it, of the answer's reply. */
int remote_read(struct remote *remote, enum remote_scope scope, struct answer *ret);

/* Print the JSON of an answer as it came, on a line of its own. */
void remote_print_json(const struct remote *remote, const struct fetch_reply *reply);

/* Send and print the body of a success as it comes. Returns the exit code. */
int remote_print_stream(struct remote *remote, const struct remote_request *req);

bool remote_is_success(const struct fetch_reply *reply);

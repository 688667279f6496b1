/* call.h - a command as a row of a table: the route it calls, with what, and what is shown of the answer. */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "cli/call/cells.h"
#include "cli/term/commands.h"
#include "cli/call/remote.h"
#include "cli/call/compose.h"

/* Each returns the exit code, and has said why when it is not 0. */
typedef int call_run_fn(struct remote *remote);

struct call {
	call_run_fn *run; /* does it instead of the rest of the row */

	/* The request. */
	enum remote_scope           scope;
	const char                 *method;
	const char                 *path; /* "{}": the first operand; "{lease}": the id of the lease that it means */
	const struct compose_field *query, *body;
	const char                 *header, *accept, *waiting_for; /* as of struct remote_request */
	const char *(*check)(const struct cli_args *args);         /* what is wrong with it; NULL: nothing */

	/* A list. */
	const char *items;                      /* the answer's member that has them; of a list only */
	bool        has_pages;                  /* --limit and --all are for these; under /api all have */
	bool        takes_empty_page;           /* as an answer, although more may follow */
	bool (*is_routine)(const json_t *item); /* left out of a table, unless --all or a filter is given */
	int64_t page_most;                      /* what the server takes as a limit; 0: 100 */

	bool is_stream; /* the body is printed as it comes, and nothing else */

	/* What people see of the answer. With --json it is printed as it came. */
	const struct column *columns;                       /* of the table, or lines of details; NULL: all members */
	void (*print)(struct remote *remote, json_t *data); /* below the details, or instead of all members */
	const char *note;     /* printed afterwards on standard error; "{}" is the first operand */
	const char *result;   /* printed instead of all members, in the same way */
	int         shown_by; /* a command that is run to show it; 0: none */
	int (*finish)(struct remote *remote, const struct answer *answer); /* does all that instead */
	int (*exit_code)(const json_t *data);                              /* NULL: 0 */
};

/* By command; rows of commands that call no server are empty. In calls.c. */
extern const struct call calls[CLI_COMMAND__COUNT];

/* Run a row. */
int call_run(struct remote *remote, const struct call *c);

/* The row of the present command without its own function, for that to vary and run. */
struct call call_row(const struct remote *remote);

/* Print an answer as this command does. Returns CLI_EXIT_OK. */
int call_print(struct remote *remote, enum cli_command_id command, const struct answer *answer);

/* A list, page by page. Set the first three, leave the rest zero; CLEANUP(answer_free) is for its answer. */
struct call_pages {
	const struct call *list;
	struct str         path;
	int64_t            limit; /* of each page */

	struct answer answer; /* the page */
	struct str    cursor; /* where the next one begins; empty at the end */
	int           count;  /* pages so far */
	int           code;   /* not 0: what went wrong, which was told */
};

/* The next page; the one before is gone. False: there is none, or it failed. *ret has the items. */
bool call_next(struct remote *remote, struct call_pages *p, json_t **ret);
void call_pages_end(struct call_pages *p);

/* --- leases (lease_find.c) --- */

/* Whose token it is. */
struct lease_caller {
	struct str email;
	bool       is_only_user; /* sees only their own leases */
	bool       is_admin;
};

/* Ask the server. When it cannot tell, the email is empty: the next call says why. */
int lease_caller(struct remote *remote, struct lease_caller *ret);

/* Is there no operator's token, and no admin's, but somebody else's? They are told less, on other routes. */
bool lease_is_mere_person(struct remote *remote);

/* All leases that the caller may see, or those of one person. */
struct call_pages lease_pages(struct remote *remote, struct str user);

/* The API's id of the lease that was typed as an id, or as the beginning of a uuid. */
int lease_find(struct remote *remote, struct str typed, struct str *ret_id);

/* call.h - a command as a row of a table: the route it calls, with what, and what is shown of the answer. */
#pragma once

#include <jansson.h>

#include "base/str.h"
#include "cli/call/cells.h"
#include "cli/term/commands.h"
#include "cli/call/remote.h"
#include "cli/call/compose.h"

/* Those that return an int return the exit code; call_run_fn and call_finish_fn have said why when it is not 0. */
typedef int  call_run_fn(struct remote *remote);
typedef void call_print_fn(struct remote *remote, json_t *data);
typedef int  call_finish_fn(struct remote *remote, const struct answer *answer);
typedef int  call_exit_fn(const json_t *data);

struct call {
	call_run_fn *run; /* does it instead of the rest of the row */

	/* The request. */
	enum remote_scope scope;
	const char       *method;
	const char       *path; /* "{}": the first operand; "{lease}", "{sandbox}", "{webhook}": the id it is part of */
	const struct compose_field *query, *body, *headers;
	const char                 *accept, *waiting_for;  /* as in struct remote_request */
	const char *(*check)(const struct cli_args *args); /* what is wrong with the command line; NULL: nothing */

	/* A list. */
	const char *items;            /* the answer's member that has them; of a list only */
	bool        has_pages;        /* it takes --limit and --all; under /api all lists do */
	bool        takes_empty_page; /* an empty page is an answer, although more may follow */
	const char *plain_query;      /* of a table, unless --all or a filter is given */
	int64_t     page_most;        /* the largest limit that the server accepts; 0: 100 */

	bool is_stream; /* the body is printed as it comes, and nothing else; with --csv always */

	/* What people see of the answer. With --json it is printed as it came. */
	const struct column *columns;   /* of the table, or lines of details; NULL: all members */
	call_print_fn       *print;     /* below the details, or instead of all members */
	const char          *note;      /* printed afterwards on standard error; "{}" is the first operand */
	const char          *result;    /* printed instead of all members, in the same way */
	int                  shown_by;  /* a command that is run to show it; 0: none */
	call_finish_fn      *finish;    /* does all that instead */
	const char          *verdict;   /* a member: the exit code is CLI_EXIT_FOUND unless it is true */
	call_exit_fn        *exit_code; /* where it depends on more than that */
};

/* By command; rows of commands that call no server are empty. In calls.c. */
extern const struct call calls[CLI_COMMAND__COUNT];

/* Run a row. */
int call_run(struct remote *remote, const struct call *c);

/* The row of the present command without its own function, for that to vary and run. */
struct call call_row(const struct remote *remote);

/* Print an answer as this row does. Returns CLI_EXIT_OK. */
int call_print(struct remote *remote, const struct call *c, const struct answer *answer);

/* A list, page by page. Set the first four, leave the rest zero; for CLEANUP(call_pages_end). */
struct call_pages {
	const struct call *list;
	struct str         path;
	int64_t            limit; /* of each page */
	struct str         body;  /* of each request; empty: none */

	struct answer answer; /* the page */
	struct str    cursor; /* where the next one begins; empty at the end */
	int           count;  /* pages so far */
	int           code;   /* not 0: it failed, and the reason was printed */
};

/* The next page; the one before is gone. False: there is none, or it failed. *ret has the items. */
bool call_next(struct remote *remote, struct call_pages *p, json_t **ret);
void call_pages_end(struct call_pages *p);

/* --- ids by their beginning or end (id_find.c) --- */

enum { UUID_LENGTH = 36, ID_PART_MIN = 4 };

/* Can this be a uuid or a part of one; only a part? */
bool id_may_be_uuid(struct str typed);
bool id_may_be_part(struct str typed);

/* Does the id begin or end with this part? */
bool id_fits(struct str id, struct str part);

/* The id that the operand of a row with this path means: where the path has "{lease}" and so on, a part of it is
 * enough. When nothing fits it is what was typed, so that the server reports it; only a lease is reported here. */
int id_find(struct remote *remote, const char *path, struct str typed, struct str *ret_id);

/* The id of the sandbox that was typed as its id, a part of that, a name, an external id or the track that holds it.
 * When nothing fits it is what was typed. For operators. */
int sandbox_find(struct remote *remote, struct str typed, struct str *ret_id);

/* --- leases (lease_find.c) --- */

/* Whose token it is. */
struct lease_caller {
	struct str email;
	bool       is_only_user; /* sees only their own leases */
	bool       is_admin;
	bool       sees_accounts;
};

/* Ask the server. When it cannot tell, the email is empty: the next call says why. */
int lease_caller(struct remote *remote, struct lease_caller *ret);

/* Is the only token that of someone who is neither an operator nor an admin? They see less, on other routes. */
bool lease_is_mere_person(struct remote *remote);

/* All leases that the caller may see, or those of one person. */
struct call_pages lease_pages(struct remote *remote, struct str user);

/* The API's id of the lease that was typed as an id, or as the beginning or end of a uuid. */
int lease_find(struct remote *remote, struct str typed, struct str *ret_id);

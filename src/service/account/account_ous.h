/* account_ous.h - the OUs of the pool by name, where an account is, and the one way to move it. Names are asked for
 * once, and again when the organisation seems to have others. Any thread; blocks when it has to ask. */
#pragma once

#include "base/err.h"
#include "base/str.h"

struct organisation;
struct store;

/* The OU where accounts wait to be registered. All others of the pool have the name of a status. */
#define OU_ENTRY "Entry"

/* A fact: how many moves the organisation has refused as too many, without an hour's peace between two of them. */
#define FACT_MOVES_THROTTLED "moves/throttled"

/* Only OUs right below this one count. Empty: all do. Copied. The store is for the fact. */
struct account_ous *account_ous_new(struct organisation *o, struct str below, struct store *store);
void                account_ous_free(struct account_ous *o);

/* The id of the pool's OU with this name. RC_NOT_FOUND: the organisation has none, or what list_ous answers. */
MUST_CHECK enum rc account_ous_find(struct account_ous *o, struct str name, struct arena *a, struct str *ret_id,
                                    struct err *e);

/* For messages: the name of the pool's OU with this id, or the id. Never asks. */
struct str account_ous_name(struct account_ous *o, struct str id, struct arena *a);

/* What is known may be wrong: ask again next time. */
void account_ous_forget(struct account_ous *o);

/* The id of the OU where the account is. */
MUST_CHECK enum rc account_ous_locate(struct account_ous *o, struct str account, struct arena *a, struct str *ret_id,
                                      struct err *e);

/* The ids of the OUs with these names, asked for again when an account that should be in one of them is in neither. */
struct ou_pair {
	struct str from, to;
};
MUST_CHECK enum rc account_ous_route(struct account_ous *o, struct str here, struct ou_pair names, struct arena *a,
                                     struct ou_pair *ret_ids, struct err *e);

/* From one OU to another, by id. RC_UNAVAILABLE also when things are not as they were seen: look again. */
MUST_CHECK enum rc account_ous_move(struct account_ous *o, struct str account, struct ou_pair ids, struct err *e);

/* When refused because things are not as we saw them (RC_CONFLICT, RC_NOT_FOUND): RC_UNAVAILABLE, to be tried again. */
enum rc account_look_again(enum rc rc, struct err *e);

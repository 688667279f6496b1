/* account_ous.h - the OUs of the pool by name: asked for once, and again when the organisation seems to have others. Any thread. */
#pragma once

#include "base/attr.h"
#include "base/err.h"
#include "base/str.h"

struct account_ous;
struct arena;
struct organisation;

/* The OU where accounts wait to be registered. All others of the pool have the name of a status. */
#define OU_ENTRY "Entry"

struct account_ous *account_ous_new(struct organisation *o);

/* The same, but only OUs right below this one count. Empty: all do. Copied. */
void account_ous_below(struct account_ous *o, struct str parent_id);

void account_ous_free(struct account_ous *o);

/* The id of the pool's OU with this name. Blocks when it has to ask. RC_NOT_FOUND: the organisation has none, or what list_ous answers. */
MUST_CHECK enum rc account_ous_find(struct account_ous *o, struct str name, struct arena *a, struct str *ret_id,
                                    struct err *e);

/* For messages: the name of the pool's OU with this id, or the id. Never asks. */
struct str account_ous_name(struct account_ous *o, struct str id, struct arena *a);

/* What is known may be wrong: ask again next time. */
void account_ous_forget(struct account_ous *o);

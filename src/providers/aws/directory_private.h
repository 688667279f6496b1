/* directory_private.h - what the two files of the directory share. */
#pragma once

#include <pthread.h>

#include "base/arena.h"
#include "base/err.h"
#include "domain/ports/identity.h"
#include "providers/aws/directory.h"
#include "service/record/aws_records.h"

enum { DIRECTORY_PEOPLE_MAX = 100000, DIRECTORY_UNKNOWN_MAX = 256 };

struct directory_entry_key {
	struct str               text;
	const struct aws_person *person;
};

/* Everybody, as they were read at one time. */
struct directory_copy {
	struct arena                arena; /* of their texts */
	struct aws_person          *people;
	size_t                      count, email_count;
	struct directory_entry_key *by_email, *by_id;
	int64_t                     read_ms;
};

/* Somebody who was not in the identity store a moment ago. */
struct directory_unknown {
	uint64_t hash;
	int64_t  until_ms;
};

struct directory_group {
	struct str name, id;
};

struct aws_directory {
	struct identity              identity;
	struct aws_directory_options o;
	struct identity             *next; /* goes first; NULL: none */
	uint64_t                     seed;
	pthread_mutex_t              refreshing; /* held while AWS is read */
	pthread_mutex_t              loading;    /* held while the store is: one at a time replaces the copy */
	pthread_mutex_t              lock;       /* of all below; held for moments */
	struct directory_copy       *copy;       /* NULL: nothing was loaded yet */
	struct directory_unknown     unknown[DIRECTORY_UNKNOWN_MAX];
	size_t                       unknown_count; /* ever */
	struct arena                 group_arena;
	struct directory_group       groups[AWS_GROUPS]; /* those whose ids are known */
	size_t                       group_count;
	int64_t                      groups_ms; /* since */
};

/* All that is stored. */
MUST_CHECK enum rc directory_copy_read(struct store *store, struct directory_copy **ret, struct err *e);
void               directory_copy_freep(struct directory_copy **c);

/* NULL: there is none. */
const struct aws_person *directory_copy_find(const struct directory_copy *c, struct str user_id);

/* All that is stored becomes the copy in memory, as of this time. */
MUST_CHECK enum rc directory_reload(struct aws_directory *d, int64_t read_ms, struct err *e);

/* The user with this email, read from the identity store with all groups, and stored. RC_NOT_FOUND: there is none.
 * Blocks. */
MUST_CHECK enum rc directory_look_up(struct aws_directory *d, struct str email, struct err *e);

/* output.h - what aws-nuke says, read line by line, and what follows from it. Pure. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "domain/ports/cloud.h"

enum { NUKE_LINE_MAX = 4096, NUKE_WORDS_MAX = 600 };

/* One run of the program. Numbers are -1 until it has said them. */
struct nuke_output {
	int64_t    total, nukeable, filtered; /* of the scan */
	int64_t    failed, skipped, finished; /* of the removal, so far */
	bool       is_complete;               /* it said that it is through */
	int64_t    removed_count;             /* also those that did not fit */
	struct buf removed, kept;             /* a resource a line; kept ones with the reason behind " - " */
	int64_t    unlisted;                  /* kinds of resources that it could not list */
	char       listing[NUKE_WORDS_MAX];   /* the first of these, in its words */
	char       error[NUKE_WORDS_MAX];     /* "Error: ..." */
	char       cause[NUKE_WORDS_MAX];     /* the first error of a resource */

	struct buf line;
	bool       is_skipping; /* the rest of a line that is too long */
};

void nuke_output_init(struct nuke_output *o);
void nuke_output_fini(struct nuke_output *o);

/* The next bytes, cut anywhere. */
void nuke_output_feed(struct nuke_output *o, struct str bytes);

/* There are no more: the last line may have no end. */
void nuke_output_end(struct nuke_output *o);

enum nuke_verdict { NUKE_CLEAN, NUKE_DIRTY, NUKE_FAILED };

/* After a dry run, or a real one, that ended with this exit code. NUKE_DIRTY, after a dry run only: there is something
 * to remove. Why it failed is added to `why`. While a kind of resource could not be listed, nothing is clean. */
enum nuke_verdict nuke_judge_scan(const struct nuke_output *o, int exit_code, struct buf *why);
enum nuke_verdict nuke_judge_run(const struct nuke_output *o, int exit_code, struct buf *why);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output.c - reads what aws-nuke 2.16 writes without a terminal: plain lines, of which these matter:
 *
 *     us-east-1 - SQSQueue - https://... - [Name: "x"] - removed      region, kind, name, maybe properties, state
 *     Scan complete: 4 total, 3 nukeable, 1 filtered.
 *     Removal requested: 1 waiting, 1 failed, 0 skipped, 2 finished
 *     Nuke complete: 0 failed, 1 skipped, 3 finished.
 *     time="..." level=error msg="Listing SQSQueue failed:\n    AccessDenied: ..."
 *     Error: failed
 *
 * The exit code alone cannot be trusted: if it may not list a kind of resource, it counts none of them, and the code is
 * 0.
 *
 * A resource that failed is named in every round: it is kept once, and dropped when a later round removes it. Lists are
 * limited; counts are not. A line longer than NUKE_LINE_MAX is cut there.
 */
#include "providers/nuke/output.h"

#include <string.h>

#define SEPARATOR " - "

void nuke_output_init(struct nuke_output *o)
{
	*o = (struct nuke_output){
		.total = -1, .nukeable = -1, .filtered = -1, .failed = -1, .skipped = -1, .finished = -1
	};
	buf_init(&o->removed, CLOUD_REMOVED_MAX);
	buf_init(&o->kept, CLOUD_KEPT_MAX);
	buf_init(&o->line, NUKE_LINE_MAX);
}

void nuke_output_fini(struct nuke_output *o)
{
	buf_fini(&o->removed);
	buf_fini(&o->kept);
	buf_fini(&o->line);
}

/* --- numbers --- */

/* "4 total, 3 nukeable, 1 filtered.": the numbers with these words, in this order; others between them do not matter.
 * */
static bool read_counts(struct str text, const char *const words[3], int64_t *const ret[3])
{
	int64_t got[3];
	size_t  n = 0;

	while (text.n && n < 3) {
		struct str part = str_trim(str_cut(&text, ','));
		struct str number = str_cut(&part, ' ');

		if (part.n && part.p[part.n - 1] == '.')
			part.n--;
		if (!str_eq(part, str_from(words[n])))
			continue;
		if (!str_to_int(number, 0, INT32_MAX, &got[n]))
			return false;
		n++;
	}
	for (size_t i = 0; n == 3 && i < 3; i++)
		*ret[i] = got[i];
	return n == 3;
}

static bool read_removal(struct nuke_output *o, struct str line)
{
	return read_counts(line, (const char *[]){ "failed", "skipped", "finished" },
	                   (int64_t *[]){ &o->failed, &o->skipped, &o->finished });
}

/* --- resources --- */

/* What is before the first separator; the rest stays. */
static bool cut_part(struct str *rest, struct str *ret)
{
	const char *at = rest->n ? memmem(rest->p, rest->n, SEPARATOR, strlen(SEPARATOR)) : NULL;

	if (!at)
		return false;
	*ret = str_of(rest->p, (size_t)(at - rest->p));
	*rest = str_of(at + strlen(SEPARATOR), rest->n - ret->n - strlen(SEPARATOR));
	return true;
}

/* Where the last separator of the line is; NULL when it names no resource: "us-east-1" or "global", then "SQSQueue". */
static const char *find_state(struct str line)
{
	struct str  rest = line, region, kind;
	const char *last = NULL;

	if (!cut_part(&rest, &region) || !region.n || region.n >= 40 || !str_is_of(region, "a-z0-9-") ||
	    !cut_part(&rest, &kind) || !kind.n || !char_is_of(kind.p[0], "A-Z") || !str_is_of(kind, "a-zA-Z0-9"))
		return NULL;
	for (size_t i = 0; i + strlen(SEPARATOR) <= rest.n; i++)
		if (memcmp(rest.p + i, SEPARATOR, strlen(SEPARATOR)) == 0)
			last = rest.p + i;
	return last;
}

/* A line of the list that begins with these words; NULL when there is none. */
static char *find_listed(const struct buf *list, struct str words)
{
	char *from = list->p, *end = list->n ? list->p + list->n : from;

	while (from < end) {
		char *to = memchr(from, '\n', (size_t)(end - from));

		if (!to)
			return NULL;
		if ((size_t)(to - from) >= words.n && memcmp(from, words.p, words.n) == 0)
			return from;
		from = to + 1;
	}
	return NULL;
}

static void add_line(struct buf *list, struct str line)
{
	if (list->n + line.n + 1 > list->max)
		return; /* the count tells that there were more */
	buf_add_str(list, line);
	buf_add_char(list, '\n');
}

static void unkeep(struct nuke_output *o, struct str resource)
{
	char        words[NUKE_LINE_MAX + 16];
	struct buf *list = &o->kept;
	char       *at, *to;

	memcpy(words, resource.p, resource.n);
	memcpy(words + resource.n, SEPARATOR "failed", strlen(SEPARATOR "failed"));
	at = find_listed(list, str_of(words, resource.n + strlen(SEPARATOR "failed")));
	if (!at)
		return;
	to = memchr(at, '\n', (size_t)(list->p + list->n - at));
	memmove(at, to + 1, (size_t)(list->p + list->n - (to + 1)));
	list->n -= (size_t)(to + 1 - at);
	list->p[list->n] = '\0';
}

static void read_resource(struct nuke_output *o, struct str line, const char *last)
{
	struct str resource = str_of(line.p, (size_t)(last - line.p));
	struct str state = str_skip(line, resource.n + strlen(SEPARATOR));

	if (str_eq(state, STR("would remove")) || str_eq(state, STR("triggered remove")) ||
	    str_eq(state, STR("waiting")))
		return; /* under way */
	if (str_eq(state, STR("removed"))) {
		unkeep(o, resource);
		o->removed_count++;
		add_line(&o->removed, resource);
	} else if (!find_listed(&o->kept, line)) {
		add_line(&o->kept, line);
	}
}

/* --- errors --- */

/* As one line, without what a quoted text escapes. */
static void note_words(char ret[NUKE_WORDS_MAX], struct str text)
{
	size_t n = 0;

	for (size_t i = 0; i < text.n && n < NUKE_WORDS_MAX - 1; i++) {
		char c = text.p[i];

		if (c == '\\' && i + 1 < text.n) {
			c = text.p[++i];
			c = c == 'n' || c == 't' ? ' ' : c;
		}
		if ((unsigned char)c < ' ')
			c = ' ';
		if (c != ' ' || (n && ret[n - 1] != ' '))
			ret[n++] = c;
	}
	while (n && ret[n - 1] == ' ')
		n--;
	ret[n] = '\0';
}

static void read_error(struct nuke_output *o, struct str text)
{
	if (text.n && text.p[text.n - 1] == '"')
		text.n--;
	if (str_starts_with(text, STR("Listing "))) {
		if (o->unlisted++ == 0)
			note_words(o->listing, text);
	} else if (!o->cause[0] && !str_starts_with(text, STR("There are resources in failed state"))) {
		note_words(o->cause, text);
	}
}

static void read_line(struct nuke_output *o, struct str line)
{
	static const char logged[] = " level=error msg=\"";
	const char       *last, *at;

	if (str_cut_prefix(&line, STR("Scan complete: "))) {
		(void)read_counts(line, (const char *[]){ "total", "nukeable", "filtered" },
		                  (int64_t *[]){ &o->total, &o->nukeable, &o->filtered }); /* else they stay -1 */
	} else if (str_cut_prefix(&line, STR("Removal requested: "))) {
		(void)read_removal(o, line); /* the last one counts */
	} else if (str_cut_prefix(&line, STR("Nuke complete: "))) {
		o->is_complete = read_removal(o, line) || o->is_complete;
	} else if (str_cut_prefix(&line, STR("Error: "))) {
		note_words(o->error, line);
	} else if (str_starts_with(line, STR("time=\"")) && (at = memmem(line.p, line.n, logged, strlen(logged)))) {
		at += strlen(logged);
		read_error(o, str_of(at, line.n - (size_t)(at - line.p)));
	} else if ((last = find_state(line))) {
		read_resource(o, line, last);
	}
}

/* --- bytes --- */

static void end_line(struct nuke_output *o)
{
	struct str line = buf_str(&o->line);

	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n)
		read_line(o, line);
	buf_reset(&o->line);
	o->is_skipping = false;
}

void nuke_output_feed(struct nuke_output *o, struct str bytes)
{
	for (size_t i = 0; i < bytes.n; i++) {
		if (bytes.p[i] == '\n')
			end_line(o);
		else if (o->line.n + 1 >= NUKE_LINE_MAX)
			o->is_skipping = true;
		else if (bytes.p[i] && !o->is_skipping)
			buf_add_char(&o->line, bytes.p[i]);
	}
}

void nuke_output_end(struct nuke_output *o)
{
	end_line(o);
}

/* --- what follows --- */

static enum nuke_verdict fail(struct buf *why, const char *what, const char *words)
{
	buf_addf(why, "%s%s%s", what, words[0] ? ": " : "", words);
	return NUKE_FAILED;
}

static enum nuke_verdict fail_unlisted(const struct nuke_output *o, struct buf *why)
{
	buf_addf(
	        why,
	        "aws-nuke could not list %lld kind%s of resources, so nobody knows whether they are gone; allow it, or "
	        "exclude them in its configuration. It says: %s",
	        (long long)o->unlisted, o->unlisted == 1 ? "" : "s", o->listing);
	return NUKE_FAILED;
}

/* Who failed, and why: the first of them. */
static enum nuke_verdict fail_left(const struct nuke_output *o, struct buf *why)
{
	struct str rest = buf_str(&o->kept), line = STR("");

	while (rest.n) {
		line = str_cut(&rest, '\n');
		if (str_ends_with(line, STR(SEPARATOR "failed")))
			break;
		line = STR("");
	}
	buf_addf(why, "%lld resource%s could not be removed", (long long)o->failed, o->failed == 1 ? "" : "s");
	if (line.n)
		buf_addf(why, ", first %.*s", (int)(line.n - 9 < NUKE_WORDS_MAX ? line.n - 9 : NUKE_WORDS_MAX), line.p);
	return fail(why, "", o->cause);
}

enum nuke_verdict nuke_judge_scan(const struct nuke_output *o, int exit_code, struct buf *why)
{
	if (exit_code) {
		buf_addf(why, "the dry run of aws-nuke ended with exit code %d", exit_code);
		return fail(why, "", o->error[0] ? o->error : o->cause);
	}
	if (o->nukeable < 0)
		return fail(why, "the dry run of aws-nuke did not say what it found", o->error);
	if (o->nukeable > 0)
		return NUKE_DIRTY;
	return o->unlisted ? fail_unlisted(o, why) : NUKE_CLEAN;
}

enum nuke_verdict nuke_judge_run(const struct nuke_output *o, int exit_code, struct buf *why)
{
	if (o->failed > 0)
		return fail_left(o, why);
	if (exit_code) {
		buf_addf(why, "aws-nuke ended with exit code %d", exit_code);
		return fail(why, "", o->error[0] ? o->error : o->cause);
	}
	if (!o->is_complete && o->nukeable != 0)
		return fail(why, "aws-nuke did not say that it is through", o->error);
	return o->unlisted ? fail_unlisted(o, why) : NUKE_CLEAN;
}

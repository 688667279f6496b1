/* SPDX-License-Identifier: Apache-2.0 */
/*
 * logs.c - what a tenant's tasks wrote: php-fpm's own words, PHP's errors, and a line for each request, without its
 * query.
 *
 * Every line begins with "[16-Nov-2026 13:36:22" in UTC; one that does not belongs to the line before.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/grow.h"
#include "providers/local/local_private.h"

enum { TAIL_MAX = 1 << 20, LINE_MAX_BYTES = 2000, STAMP = 21 };

/* The end of the file: at most TAIL_MAX bytes. */
static struct str read_tail(const char *path, struct arena *a)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat            about;
	char                  *text;
	ssize_t                got;
	off_t                  from;

	if (fd < 0 || fstat(fd, &about) != 0)
		return STR("");
	from = about.st_size > TAIL_MAX ? about.st_size - TAIL_MAX : 0;
	text = arena_alloc(a, TAIL_MAX + 1);
	got = pread(fd, text, TAIL_MAX, from);
	return str_of(text, got > 0 ? (size_t)got : 0);
}

/* sscanf() looks for the end of all it is given, and a line is in a megabyte: it gets a copy. */
int64_t log_stamp(struct str line)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	struct tm         t = { 0 };
	char              stamp[STAMP + 1] = "", month[4];
	const char       *at;

	if (line.n < STAMP || line.p[0] != '[')
		return -1;
	memcpy(stamp, line.p, STAMP);
	if (sscanf(stamp, "[%2d-%3[A-Za-z]-%4d %2d:%2d:%2d", &t.tm_mday, month, &t.tm_year, &t.tm_hour, &t.tm_min,
	           &t.tm_sec) != 6 ||
	    !(at = strstr(months, month)))
		return -1;
	t.tm_year -= 1900;
	t.tm_mon = (int)(at - months) / 3;
	return (int64_t)timegm(&t) * 1000;
}

struct numbered {
	struct instance_log_line line;
	size_t                   number; /* as they were read, which is the same each time */
};

struct lines {
	struct numbered *items;
	size_t           count, room;
};

static void add_file(struct lines *to, const char *path, struct str task, int64_t from_ms, int64_t to_ms,
                     struct arena *a)
{
	struct str rest = read_tail(path, a);
	int64_t    at = -1;

	while (rest.n) {
		struct str  line = str_cut(&rest, '\n');
		int64_t     stamp = log_stamp(line);
		const char *end;

		if (stamp >= 0) {
			at = stamp;
			end = memchr(line.p, ']', line.n);
			if (end)
				line = str_trim(str_of(end + 1, line.n - (size_t)(end + 1 - line.p)));
		}
		if (line.n > LINE_MAX_BYTES)
			line.n = LINE_MAX_BYTES;
		if (at < from_ms || at >= to_ms || !line.n)
			continue;
		to->items = arena_grow(a, to->items, to->count, &to->room, sizeof(*to->items));
		to->items[to->count] = (struct numbered){ { at, task, line }, to->count };
		to->count++;
	}
}

static int by_time(const void *x, const void *y)
{
	const struct numbered *p = x, *q = y;

	if (p->line.at_ms != q->line.at_ms)
		return p->line.at_ms < q->line.at_ms ? -1 : 1;
	return p->number < q->number ? -1 : 1;
}

enum rc local_logs(struct instance_driver *d, struct str tenant, int64_t from_ms, int64_t to_ms, size_t max,
                   struct arena *a, struct instance_log_line **ret, size_t *ret_count, struct err *e)
{
	struct local *l = local_of(d);
	struct lines  found = { 0 };
	struct site  *s;
	enum rc       rc = site_find(l, tenant, &s, e);

	*ret_count = 0;
	if (rc || !s)
		return rc;
	for (unsigned i = 0; i < INSTANCE_TASKS_MAX; i++) {
		struct str task = str_format(a, "%s-%u", s->key, i), path = task_log(l, s, i, a);

		add_file(&found, str_format(a, "%s.1", path.p).p, task, from_ms, to_ms, a);
		add_file(&found, path.p, task, from_ms, to_ms, a);
	}
	if (found.count)
		qsort(found.items, found.count, sizeof(*found.items), by_time);
	*ret_count = found.count < max ? found.count : max;
	*ret = arena_alloc(a, (*ret_count + 1) * sizeof(**ret));
	for (size_t i = 0; i < *ret_count; i++)
		(*ret)[i] = found.items[found.count - *ret_count + i].line;
	return RC_OK;
}

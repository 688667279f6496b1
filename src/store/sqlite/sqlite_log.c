/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite_log.c - notices a write-ahead log that was damaged in the middle.
 *
 * SQLite reads its log up to the first frame whose checksum is wrong and takes that for the end. After a crash that is
 * right: what is behind was not finished, and nobody was told of it. After a flipped bit it is a loss: commits behind
 * it were acknowledged. The two are told apart by what is left of them. Commits are lost for certain when
 *
 *   1. the log's index (-shm), which outlives a killed process, says for the same log that more frames were committed;
 *      or
 *   2. two commits or more follow the broken frame, each frame fitting the one before it. A commit is begun only when
 *      the one before it is on the disk, so the first of them was acknowledged. (What a failed commit leaves behind is
 *      one commit at most: the next one is written over it. So is what a power failure tears.)
 *
 * A single commit behind a broken frame, without an index that knows it, is taken for one that was not finished.
 *
 * Words: a frame is a page with a head of 24 bytes; its checksum continues that of the frame before. A commit ends with
 * a frame that has the size of the database in its head. The salts, two numbers in the head of the log and of each
 * frame, are others each time the log begins anew: frames with other salts are remains of an older log.
 */
#include "store/sqlite/sqlite_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

enum {
	HEAD_SIZE = 32,
	FRAME_HEAD_SIZE = 24,
	PAGE_MAX = 65536,
	INDEX_HEAD_SIZE = 48,
	INDEX_FRAMES_AT = 16,
	INDEX_SALTS_AT = 32,
	INDEX_SUMS_AT = 40,
};
static const uint32_t magic = 0x377f0682; /* and 1 when the checksums are of big-endian words */

struct sums {
	uint32_t a, b;
};

struct reader {
	int           fd;
	bool          is_big_endian;
	size_t        page_size;
	uint32_t      salts[2];
	struct sums   sums; /* of the frame before */
	unsigned char frame[FRAME_HEAD_SIZE + PAGE_MAX];
};

static uint32_t big_endian(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint32_t word(const unsigned char *p, bool is_big_endian)
{
	return is_big_endian ? big_endian(p) : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static struct sums add_up(struct sums s, const unsigned char *p, size_t size, bool is_big_endian)
{
	for (size_t i = 0; i < size; i += 8) {
		s.a += word(p + i, is_big_endian) + s.b;
		s.b += word(p + i + 4, is_big_endian) + s.a;
	}
	return s;
}

static bool has_sums(struct sums s, const unsigned char *p)
{
	return s.a == big_endian(p) && s.b == big_endian(p + 4);
}

static bool read_at(int fd, void *ret, size_t size, int64_t at)
{
	return pread(fd, ret, size, (off_t)at) == (ssize_t)size;
}

/* False: the file ends before it, or it belongs to an older log. */
static bool read_frame(struct reader *r, int64_t number)
{
	int64_t size = FRAME_HEAD_SIZE + (int64_t)r->page_size;

	return read_at(r->fd, r->frame, (size_t)size, HEAD_SIZE + (number - 1) * size) &&
	       big_endian(r->frame + 8) == r->salts[0] && big_endian(r->frame + 12) == r->salts[1];
}

/* Does the frame that was read fit the one before? From now on it is the one before, as its own head says. */
static bool fits(struct reader *r)
{
	struct sums s = add_up(r->sums, r->frame, 8, r->is_big_endian);
	bool        is_right;

	s = add_up(s, r->frame + FRAME_HEAD_SIZE, r->page_size, r->is_big_endian);
	is_right = has_sums(s, r->frame + 16);
	r->sums = (struct sums){ big_endian(r->frame + 16), big_endian(r->frame + 20) };
	return is_right;
}

static bool ends_commit(const struct reader *r)
{
	return big_endian(r->frame + 4) != 0;
}

/* The head of the log. A damaged one hides the whole log from SQLite; what it should say is in the first frame. */
static bool read_head(struct reader *r)
{
	unsigned char head[HEAD_SIZE], first[FRAME_HEAD_SIZE];

	if (!read_at(r->fd, head, sizeof(head), 0))
		return false;
	r->is_big_endian = big_endian(head) & 1;
	r->page_size = big_endian(head + 8);
	r->salts[0] = big_endian(head + 16);
	r->salts[1] = big_endian(head + 20);
	r->sums = add_up((struct sums){ 0 }, head, HEAD_SIZE - 8, r->is_big_endian);
	if ((big_endian(head) & ~1u) == magic && r->page_size >= 512 && r->page_size <= PAGE_MAX &&
	    has_sums(r->sums, head + HEAD_SIZE - 8))
		return true;
	if (r->page_size < 512 || r->page_size > PAGE_MAX || (r->page_size & (r->page_size - 1)))
		r->page_size = 4096;
	if (read_at(r->fd, first, sizeof(first), HEAD_SIZE)) {
		r->salts[0] = big_endian(first + 8);
		r->salts[1] = big_endian(first + 12);
	}
	return false;
}

/* How many frames were committed, says the index; 0: there is none of this log. It is written with the machine's own
 * byte order, twice; a copy that is not whole is not believed. */
static int64_t read_index(const char *path, const struct reader *r)
{
	static const uint32_t one = 1;
	bool                  is_big_endian = *(const unsigned char *)&one == 0;
	char                  name[PATH_MAX];
	unsigned char         head[2 * INDEX_HEAD_SIZE];
	struct sums           s;
	bool                  is_read;
	int                   fd;

	if (snprintf(name, sizeof(name), "%s-shm", path) >= PATH_MAX || (fd = open(name, O_RDONLY | O_CLOEXEC)) < 0)
		return 0;
	is_read = read_at(fd, head, sizeof(head), 0);
	close(fd);
	if (!is_read || memcmp(head, head + INDEX_HEAD_SIZE, INDEX_HEAD_SIZE) != 0)
		return 0;
	s = add_up((struct sums){ 0 }, head, INDEX_SUMS_AT, is_big_endian);
	if (s.a != word(head + INDEX_SUMS_AT, is_big_endian) || s.b != word(head + INDEX_SUMS_AT + 4, is_big_endian) ||
	    big_endian(head + INDEX_SALTS_AT) != r->salts[0] || big_endian(head + INDEX_SALTS_AT + 4) != r->salts[1])
		return 0;
	return word(head + INDEX_FRAMES_AT, is_big_endian);
}

/* Commits from the broken frame on that fit each other, up to *ret_end. What the next has to fit is what the broken
 * one's head says, or, when the head is broken, what its page adds up to. `before` are the sums in front of it. */
static int64_t count_commits(struct reader *r, int64_t broken_at, struct sums before, int64_t *ret_end)
{
	bool        is_recognised = read_frame(r, broken_at); /* read all the same when it is not */
	int64_t     commits = is_recognised && ends_commit(r), number = broken_at + 1;
	struct sums added_up = add_up(before, r->frame, 8, r->is_big_endian), said;

	added_up = add_up(added_up, r->frame + FRAME_HEAD_SIZE, r->page_size, r->is_big_endian);
	said = (struct sums){ big_endian(r->frame + 16), big_endian(r->frame + 20) };
	for (; read_frame(r, number); number++) {
		bool is_next = number == broken_at + 1;

		r->sums = is_next ? said : r->sums;
		if (!fits(r)) {
			r->sums = added_up;
			if (!is_next || !fits(r))
				break;
		}
		commits += ends_commit(r);
	}
	*ret_end = number - 1;
	return commits;
}

static enum rc judge(const char *path, struct reader *r, struct sqlite_log *ret, struct err *e)
{
	bool        has_head = read_head(r);
	struct sums before = r->sums;
	int64_t     known = read_index(path, r), number = 1, end;
	char        when[ISO_TIME_SIZE];

	for (; has_head && read_frame(r, number) && fits(r); number++) {
		before = r->sums;
		if (ends_commit(r))
			ret->frames = number;
	}
	ret->commits = count_commits(r, number, before, &end);
	if (known <= ret->frames && ret->commits < 2) {
		ret->commits = 0;
		return RC_OK;
	}
	ret->broken_at = number;
	ret->lost = (known > end ? known : end) - ret->frames;
	return err_set(
	        e, RC_CORRUPT,
	        "%s-wal is damaged at frame %lld: %lld pages, at least %lld commits until %s, are lost; restore a "
	        "backup or start with --accept-loss (docs/runbook.md)",
	        path, (long long)number, (long long)ret->lost, (long long)(ret->commits ? ret->commits : 1),
	        iso_time(ret->changed_at, when).p);
}

enum rc sqlite_log_check(const char *path, struct sqlite_log *ret, struct err *e)
{
	struct reader *r = mem_new(struct reader);
	char           name[PATH_MAX];
	struct stat    st;
	enum rc        rc = RC_OK;

	*ret = (struct sqlite_log){ 0 };
	(void)snprintf(name, sizeof(name), "%s-wal", path); /* a longer path could not have been opened */
	r->fd = open(name, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0 && errno != ENOENT) {
		rc = err_set(e, RC_UNAVAILABLE, "%s cannot be opened: %s", name, strerror(errno));
	} else if (r->fd >= 0 && fstat(r->fd, &st) == 0 && st.st_size > 0) {
		ret->changed_at = st.st_mtime;
		rc = judge(path, r, ret, e);
	}
	if (r->fd >= 0)
		close(r->fd);
	free(r);
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.c - what changes on the terminal while a command runs.
 *
 * A thread counts the seconds, because the request it speaks of blocks. Only it writes to the terminal between start
 * and stop, so lines do not mix.
 *
 * Rounds of one command: each writes into memory and reaches the terminal in one piece, line over line, each cleared
 * behind its end: nothing blinks, and what was on the screen before stays above, because the alternate screen is not
 * used. That works only while the whole picture fits: lines are cut at the right edge, and as many are shown as there
 * are rows. Ctrl-C ends the process where it stands: a round changes nothing, so there is nothing to put in order.
 */
#include "cli/term/progress.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/lock.h"
#include "base/mem.h"
#include "cli/term/args.h"
#include "cli/term/io.h"

enum { SECONDS_DEFAULT = 2, SECONDS_MAX = 3600, ROWS = 24, COLUMNS = 80, PICTURE_MAX = 1 << 20 };

static void *count_seconds(void *arg)
{
	struct progress *p = arg;
	int64_t          next_ms = mono_now().ms;
	bool             is_drawn = false;

	pthread_mutex_lock(&p->lock);
	for (int seconds = 1; !p->is_over; seconds++) {
		next_ms += 1000;
		while (!p->is_over && cond_wait_until(&p->ended, &p->lock, next_ms))
			;
		if (p->is_over)
			break;
		fprintf(p->io->err, "\r%s ... %d s", p->text, seconds);
		fflush(p->io->err);
		is_drawn = true;
	}
	pthread_mutex_unlock(&p->lock);
	if (is_drawn)
		fprintf(p->io->err, "\r\033[K");
	fflush(p->io->err);
	return NULL;
}

void progress_start(struct progress *p, const struct cli_io *io, const char *text)
{
	*p = (struct progress){ .io = io, .text = text };
	if (!io->is_err_terminal)
		return;
	pthread_mutex_init(&p->lock, NULL);
	cond_init(&p->ended);
	p->is_shown = pthread_create(&p->thread, NULL, count_seconds, p) == 0;
}

void progress_stop(struct progress *p)
{
	if (p->is_shown) {
		pthread_mutex_lock(&p->lock);
		p->is_over = true;
		pthread_cond_signal(&p->ended);
		pthread_mutex_unlock(&p->lock);
		pthread_join(p->thread, NULL);
	}
	if (p->io->is_err_terminal) {
		pthread_mutex_destroy(&p->lock);
		pthread_cond_destroy(&p->ended);
	}
}

/* --- over and over --- */

struct round {
	char  *out, *err;
	size_t out_size, err_size;
	int    code;
};

static void run_round(struct round *r, const struct cli_io *io, const struct cli_args *args, refresh_fn *once)
{
	struct cli_io inner = *io;

	*r = (struct round){ .code = CLI_EXIT_REFUSED };
	inner.out = open_memstream(&r->out, &r->out_size);
	inner.err = open_memstream(&r->err, &r->err_size);
	mem_must(inner.out && inner.err, "what a command prints");
	inner.is_err_terminal = inner.is_in_terminal = false;
	r->code = once(&inner, args);
	fclose(inner.out);
	fclose(inner.err);
}

/* Every escape sequence of ours ends with a letter. */
static size_t escape_length(struct str text)
{
	size_t n = 2;

	if (text.n < 2 || text.p[0] != '\033' || text.p[1] != '[')
		return 0;
	while (n < text.n && !(text.p[n] >= '@' && text.p[n] <= '~'))
		n++;
	return n < text.n ? n + 1 : n;
}

/* As many characters as there are columns. */
static void add_line(struct buf *b, struct str line, size_t columns)
{
	size_t shown = 0;

	for (size_t i = 0; i < line.n;) {
		size_t n = escape_length(str_of(line.p + i, line.n - i));

		if (!n) {
			n = 1;
			shown += ((unsigned char)line.p[i] & 0xc0) != 0x80;
		}
		if (shown > columns) {
			buf_add_text(b, "\033[0m");
			break;
		}
		buf_add(b, line.p + i, n);
		i += n;
	}
	buf_add_text(b, "\033[K\n");
}

/* Lines of a text, as long as there are rows left. Returns how many. */
static int add_lines(struct buf *b, struct str text, int rows, size_t columns)
{
	int lines = 0;

	while (text.n && lines < rows) {
		add_line(b, str_cut(&text, '\n'), columns);
		lines++;
	}
	return lines;
}

/* Over the last picture, which had that many lines. Returns how many there are now. */
static int draw(const struct cli_io *io, const struct round *r, int64_t seconds, int before)
{
	struct winsize               size = { .ws_row = 0 };
	CLEANUP(buf_fini) struct buf b = BUF(PICTURE_MAX);
	int                          rows, lines;

	(void)ioctl(fileno(io->out), TIOCGWINSZ, &size); /* stays 0 when it is not known */
	rows = (size.ws_row ? size.ws_row : ROWS) - 1;
	if (before)
		buf_addf(&b, "\033[%dF", before < rows ? before : rows);
	lines = add_lines(&b, str_of(r->out, r->out_size), rows - 1, size.ws_col ? size.ws_col : COLUMNS);
	lines += add_lines(&b, str_of(r->err, r->err_size), rows - 1 - lines, size.ws_col ? size.ws_col : COLUMNS);
	buf_addf(&b, "every %" PRId64 " s; Ctrl-C ends\033[K\n\033[J", seconds);
	fwrite(b.p, 1, b.n, io->out);
	fflush(io->out);
	return lines + 1;
}

static void leave(int number UNUSED)
{
	_exit(CLI_EXIT_OK);
}

int refresh_run(const struct cli_io *io, const struct cli_args *args, refresh_fn *once)
{
	const char      *typed = args->values[CLI_OPTION_WATCH];
	struct sigaction on_stop = { .sa_handler = leave };
	int64_t          seconds = SECONDS_DEFAULT;
	int              lines = 0;

	if (typed[0] && !str_to_int(str_from(typed), 1, SECONDS_MAX, &seconds)) {
		fprintf(io->err, "leasehold: %s: --watch takes a number of seconds from 1 to %d, or none\n",
		        args->command->name, SECONDS_MAX);
		return CLI_EXIT_USAGE;
	}
	sigaction(SIGINT, &on_stop, NULL);
	for (bool is_first = true;; is_first = false) {
		struct round r;
		bool         is_over;

		run_round(&r, io, args, once);
		is_over = r.code != CLI_EXIT_OK && (is_first || r.code != CLI_EXIT_UNREACHABLE);
		if (io->is_out_terminal && !is_over) {
			lines = draw(io, &r, seconds, lines);
		} else {
			fwrite(r.out, 1, r.out_size, io->out);
			fwrite(r.err, 1, r.err_size, io->err);
			fflush(io->out);
			fflush(io->err);
		}
		free(r.out);
		free(r.err);
		if (is_over)
			return r.code;
		mono_sleep(seconds * 1000);
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c - log lines.
 *
 * The level and format are the program's only mutable globals, with the buffer that lines wait in. Lines are whole:
 * a mutex keeps those of different threads apart. Secrets never get here; callers log ids, not tokens.
 */
#include "base/log.h"

#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/lock.h"
#include "base/trace.h"

enum { MESSAGE_MAX = 1024, BUFFER_MAX = 1 << 20, FLUSH_AT = 32768, ABORT_TRIES = 100 };

static const char *const level_names[] = { "DEBUG", "INFO", "WARNING", "ERROR" };

static atomic_int      level_wanted = LOG_INFO;
static atomic_int      format_wanted = LOG_JSON;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buf      pending = { .max = BUFFER_MAX };
static unsigned long   lines_lost; /* and not told yet */
static atomic_ulong    lines_lost_ever;

void log_setup(enum log_level level, enum log_format format)
{
	level_wanted = level;
	format_wanted = format;
}

bool log_wants(enum log_level level)
{
	return (int)level >= level_wanted;
}

static void add_json(struct buf *b, enum log_level level, const char *logger, const char *message,
                     const struct log_field *fields, size_t count)
{
	char            time[ISO_TIME_SIZE];
	struct json_out out = JSON_OUT(b);

	json_open_object(&out);
	json_put_str(&out, "timestamp", iso_time_ms(clock_now(&clock_real).ms, time));
	json_put_str(&out, "level", str_from(level_names[level]));
	json_put_str(&out, "logger", str_from(logger));
	json_put_str(&out, "message", str_from(message));
	for (size_t i = 0; i < count; i++)
		if (fields[i].is_number)
			json_put_real(&out, fields[i].name, fields[i].number);
		else if (fields[i].text.n)
			json_put_str(&out, fields[i].name, fields[i].text);
	if (trace_current().n)
		json_put_str(&out, "trace_id", trace_id(trace_current()));
	json_close_object(&out);
	buf_add_char(b, '\n');
}

/* One word as it is; anything else quoted and escaped: what comes from outside can make neither a line nor a field. */
static void add_value(struct buf *b, struct str value, const char *special)
{
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < ' ' || (unsigned char)value.p[i] >= 0x7f ||
		    strchr(special, value.p[i])) {
			json_add_str(&JSON_OUT(b), value);
			return;
		}
	buf_add_str(b, value);
}

static void add_text(struct buf *b, enum log_level level, const char *logger, const char *message,
                     const struct log_field *fields, size_t count)
{
	char       text[ISO_TIME_SIZE];
	struct str time = iso_time_ms(clock_now(&clock_real).ms, text);

	buf_addf(b, "%.*s %-7s %s: ", STR_ARG(time), level_names[level], logger);
	add_value(b, str_from(message), "\"\\=");
	for (size_t i = 0; i < count; i++)
		if (fields[i].is_number) {
			buf_addf(b, " %s=%g", fields[i].name, fields[i].number);
		} else if (fields[i].text.n) {
			buf_addf(b, " %s=", fields[i].name);
			add_value(b, fields[i].text, " \"\\=");
		}
	if (trace_current().n)
		buf_addf(b, " trace_id=%.*s", STR_ARG(trace_id(trace_current())));
	buf_add_char(b, '\n');
}

/* Only what fits without waiting: whoever reads our log slowly, or not at all, must not stop the service. */
static void flush_locked(void)
{
	size_t done = 0;

	while (done < pending.n) {
		struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };
		size_t        left = pending.n - done;
		ssize_t       wrote;

		if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
			break;
		wrote = write(STDOUT_FILENO, pending.p + done, left < PIPE_BUF ? left : PIPE_BUF);
		if (wrote <= 0)
			break;
		done += (size_t)wrote;
	}
	buf_consume(&pending, done);
}

/* Half a line is none. */
static void lose_line(size_t before)
{
	pending.n = before;
	pending.is_full = false;
	lines_lost++;
	lines_lost_ever++;
}

static void add_line(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *message)
{
	size_t before = pending.n;

	if (format_wanted == LOG_JSON)
		add_json(&pending, level, logger, message, fields, count);
	else
		add_text(&pending, level, logger, message, fields, count);
	if (pending.is_full)
		lose_line(before);
}

static PRINTF_LIKE(6, 0) void write_line(bool is_urgent, enum log_level level, const char *logger,
                                         const struct log_field *fields, size_t count, const char *fmt, va_list args)
{
	char message[MESSAGE_MAX], note[80];

	if (!log_wants(level))
		return;
	(void)vsnprintf(message, sizeof(message), fmt, args); /* a cut message is still a message */
	LOCKED(&lock);
	if (lines_lost && pending.n < BUFFER_MAX / 2) {
		(void)snprintf(note, sizeof(note), "%lu lines were lost: nobody read the log", lines_lost); /* fits */
		lines_lost = 0;
		add_line(LOG_WARNING, "log", NULL, 0, note);
	}
	add_line(level, logger, fields, count, message);
	if (is_urgent || pending.n > FLUSH_AT)
		flush_locked();
}

void log_write(enum log_level level, const char *logger, const struct log_field *fields, size_t count, const char *fmt,
               ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(true, level, logger, fields, count, fmt, args);
	va_end(args);
}

void log_write_later(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	write_line(false, level, logger, fields, count, fmt, args);
	va_end(args);
}

void log_raw(struct str line)
{
	size_t before;

	LOCKED(&lock);
	before = pending.n;
	buf_add_str(&pending, line);
	buf_add_char(&pending, '\n');
	if (pending.is_full)
		lose_line(before);
	flush_locked();
}

void log_flush(void)
{
	LOCKED(&lock);
	flush_locked();
}

unsigned long log_lost(void)
{
	return lines_lost_ever;
}

/* Another thread may be inside a line, so wait a moment; not for ever, because it may have been this thread. */
static void on_abort(int number)
{
	static const char last_words[] =
	        "leasehold: aborted; when nothing before this says why, memory or threads are used up\n";
	const struct timespec moment = { .tv_nsec = 1000000 };
	ssize_t               said;

	for (int i = 0; i < ABORT_TRIES; i++) {
		if (pthread_mutex_trylock(&lock) == 0) {
			flush_locked();
			pthread_mutex_unlock(&lock);
			break;
		}
		nanosleep(&moment, NULL);
	}
	said = write(STDERR_FILENO, last_words, sizeof(last_words) - 1);
	(void)said;    /* then nobody hears it */
	raise(number); /* its default now, when this returns */
}

void log_flush_before_abort(void)
{
	struct sigaction action = { .sa_handler = on_abort, .sa_flags = (int)SA_RESETHAND };

	(void)sigaction(SIGABRT, &action, NULL); /* cannot fail for this signal */
}

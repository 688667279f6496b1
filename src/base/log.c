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
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json.h"

enum { MESSAGE_MAX = 1024, BUFFER_MAX = 1 << 20, FLUSH_AT = 32768 };

static const char *const level_names[] = { "DEBUG", "INFO", "WARNING", "ERROR" };

static atomic_int      level_wanted = LOG_INFO;
static atomic_int      format_wanted = LOG_JSON;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct buf      pending = { .max = BUFFER_MAX };
static unsigned long   lines_lost;

void log_setup(enum log_level level, enum log_format format)
{
	level_wanted = level;
	format_wanted = format;
}

bool log_wants(enum log_level level)
{
	return (int)level >= level_wanted;
}

const char *log_level_name(enum log_level level)
{
	return level_names[level];
}

/* "2026-11-15T18:03:43.123Z" */
static struct str timestamp(char text[ISO_TIME_SIZE])
{
	struct wall now = clock_now(&clock_real);
	struct str  iso = iso_time(wall_sec(now), text);

	if (iso.n == 0)
		return STR("");
	(void)snprintf(text + iso.n - 1, ISO_TIME_SIZE - iso.n + 1, ".%03dZ", (int)(now.ms % 1000)); /* fits */
	return str_from(text);
}

static bool is_left_out(const struct log_field *f)
{
	return !f->is_number && f->text.n == 0;
}

static void add_json(struct buf *b, enum log_level level, const char *logger, const char *message,
                     const struct log_field *fields, size_t count)
{
	char            time_text[ISO_TIME_SIZE];
	struct json_out out;

	json_out_init(&out, b);
	json_open_object(&out);
	json_put_str(&out, "timestamp", timestamp(time_text));
	json_put_str(&out, "level", str_from(level_names[level]));
	json_put_str(&out, "logger", str_from(logger));
	json_put_str(&out, "message", str_from(message));
	for (size_t i = 0; i < count; i++) {
		if (is_left_out(&fields[i]))
			continue;
		if (!fields[i].is_number)
			json_put_str(&out, fields[i].name, fields[i].text);
		else
			json_put_real(&out, fields[i].name, fields[i].number);
	}
	json_close_object(&out);
	buf_add_char(b, '\n');
}

static void add_text(struct buf *b, enum log_level level, const char *logger, const char *message,
                     const struct log_field *fields, size_t count)
{
	char       time_text[ISO_TIME_SIZE];
	struct str time = timestamp(time_text);

	buf_addf(b, "%.*s %-7s %s: %s", STR_ARG(time), level_names[level], logger, message);
	for (size_t i = 0; i < count; i++) {
		if (is_left_out(&fields[i]))
			continue;
		if (!fields[i].is_number)
			buf_addf(b, " %s=%.*s", fields[i].name, STR_ARG(fields[i].text));
		else
			buf_addf(b, " %s=%g", fields[i].name, fields[i].number);
	}
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

static void add_line(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *message)
{
	size_t before = pending.n;

	if (format_wanted == LOG_JSON)
		add_json(&pending, level, logger, message, fields, count);
	else
		add_text(&pending, level, logger, message, fields, count);
	if (!pending.is_full)
		return;
	pending.n = before; /* half a line is none */
	pending.is_full = false;
	lines_lost++;
}

static void write_line(bool is_urgent, enum log_level level, const char *logger, const struct log_field *fields,
                       size_t count, const char *message)
{
	char note[80];

	pthread_mutex_lock(&lock);
	if (lines_lost && pending.n < BUFFER_MAX / 2) {
		(void)snprintf(note, sizeof(note), "%lu lines were lost: nobody read the log", lines_lost); /* fits */
		lines_lost = 0;
		add_line(LOG_WARNING, "log", NULL, 0, note);
	}
	add_line(level, logger, fields, count, message);
	if (is_urgent || pending.n > FLUSH_AT)
		flush_locked();
	pthread_mutex_unlock(&lock);
}

void log_write(enum log_level level, const char *logger, const struct log_field *fields, size_t count, const char *fmt,
               ...)
{
	char    message[MESSAGE_MAX];
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args); /* a cut message is still a message */
	va_end(args);
	write_line(true, level, logger, fields, count, message);
}

void log_write_later(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *fmt, ...)
{
	char    message[MESSAGE_MAX];
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args); /* a cut message is still a message */
	va_end(args);
	write_line(false, level, logger, fields, count, message);
}

void log_flush(void)
{
	pthread_mutex_lock(&lock);
	flush_locked();
	pthread_mutex_unlock(&lock);
}

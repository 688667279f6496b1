/* log.h - one line per thing that happened, as JSON (or text for people), to standard output. */
#pragma once

#include "base/str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERROR };
enum log_format { LOG_JSON, LOG_TEXT };

/* A named value of a line. */
struct log_field {
	const char *name;
	bool        is_number;
	struct str  text;
	double      number;
};

#define LOG_STR(name, value) ((struct log_field){ (name), false, (value), 0 })
#define LOG_NUM(name, value) ((struct log_field){ (name), true, { NULL, 0 }, (double)(value) })

void log_setup(enum log_level level, enum log_format format);
bool log_wants(enum log_level level);

/* Write a line now. fields may be NULL when count is 0. Text fields that are empty are left out. */
void log_write(enum log_level level, const char *logger, const struct log_field *fields, size_t count, const char *fmt,
               ...) PRINTF_LIKE(5, 6);

/* The same, but the line may stay in memory until log_flush() or the next log_write(): for lines that come by the
 * thousand. Whoever uses it sees to it that it is flushed soon. */
void log_write_later(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *fmt, ...) PRINTF_LIKE(5, 6);
void log_flush(void);

/* One line of the caller's own, as it is and whole, whatever level and format are: for what others read from our
 * standard output by its form. Without its line end. */
void log_raw(struct str line);

/* Lines that were dropped because nobody took what was written; since the start. */
unsigned long log_lost(void);

/* From now on an abort (a failed assertion, no memory) flushes first: its last lines say how it came to that. */
void log_flush_before_abort(void);

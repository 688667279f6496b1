/* log.h - one line per thing that happened, as JSON (or text for people), to standard output. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
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
 * thousand. Whoever uses it flushes once per loop turn. */
void log_write_later(enum log_level level, const char *logger, const struct log_field *fields, size_t count,
                     const char *fmt, ...) PRINTF_LIKE(5, 6);
void log_flush(void);

/* "DEBUG", "INFO", "WARNING", "ERROR". */
const char *log_level_name(enum log_level level);

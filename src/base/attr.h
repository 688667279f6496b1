/* attr.h - the GNU extensions we allow ourselves, under readable names. */
#pragma once

#include <stddef.h>

#define MUST_CHECK                   __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_at, args) __attribute__((format(printf, format_at, args)))
#define NO_RETURN                    __attribute__((noreturn))
#define UNUSED                       __attribute__((unused)) /* behind a parameter that only the type demands */

/* Call fn(&variable) when the variable goes out of scope. */
#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Move an owned pointer out of a CLEANUP variable. */
#define TAKE(variable)                                    \
	__extension__({                                   \
		__typeof__(variable) taken_ = (variable); \
		(variable) = NULL;                        \
		taken_;                                   \
	})

/* For tables of rows X(name, text, ...): their texts, as in names[COUNT] = { TABLE(ROW_TEXT) }; the third of three. */
#define ROW_TEXT(name, ...)          ROW_TEXT_ONLY(__VA_ARGS__, )
#define ROW_TEXT_ONLY(text, ...)     text,
#define ROW_THIRD(name, text, third) third,

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

/* From a pointer to a member back to the struct that holds it. */
#define CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* banned.h - functions that have a safer replacement here. The build includes this file first, everywhere. */
#pragma once

/* Headers that mention the names must come before the poison. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef LEASEHOLD_SPEAKS_SQL /* one file: see meson.build */
#include <mysql.h>
#endif

/* With _FORTIFY_SOURCE the C library makes macros of two of them for clang, and a macro cannot be poisoned. */
#undef sprintf
#undef vsprintf

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atof gets gmtime localtime strncpy strncat srand

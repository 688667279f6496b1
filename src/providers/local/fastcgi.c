/* SPDX-License-Identifier: Apache-2.0 */
/* fastcgi.c - a FastCGI request as constant bytes: records of version 1, request 1, for a responder that closes the
 * connection. */
#include "providers/local/fastcgi.h"

#define RECORD(type, length) "\1" type "\0\1\0" length "\0\0"
#define PATH                 FASTCGI_PING_PATH
#define PARAM_METHOD         "\16\3REQUEST_METHODGET"
#define PARAM_NAME           "\13\17SCRIPT_NAME" PATH
#define PARAM_FILE           "\17\17SCRIPT_FILENAME" PATH
enum { PARAMS_SIZE = sizeof(PARAM_METHOD PARAM_NAME PARAM_FILE) - 1 };

_Static_assert(sizeof(PATH) - 1 == 017 && PARAMS_SIZE == 0117, "the lengths below are those of the parameters");

static const char ping[] = RECORD("\1", "\10") "\0\1\0\0\0\0\0\0"                  /* begin: a responder */
        RECORD("\4", "\117") PARAM_METHOD PARAM_NAME PARAM_FILE RECORD("\4", "\0") /* parameters, and their end */
        RECORD("\5", "\0");                                                        /* no body */

struct str fastcgi_ping(void)
{
	return str_of(ping, sizeof(ping) - 1);
}

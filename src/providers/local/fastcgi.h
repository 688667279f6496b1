/* fastcgi.h - the question whether a php-fpm answers. */
#pragma once

#include "base/str.h"

#define FASTCGI_PING_PATH "/leasehold-ping"

/* The bytes of a request for FASTCGI_PING_PATH, which no request through nginx can have. php-fpm answers "pong". */
struct str fastcgi_ping(void);

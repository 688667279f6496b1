/* message.h - an event as a mail that a person can read. Pure: the same input gives the same bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct arena;
struct event;

enum { MAIL_ADDRESS_MAX = 254 };

/* local@domain of ASCII letters, digits and the usual signs; nothing that could mean something to a header or to SMTP. */
bool message_is_address(struct str text);

/* RFC 5322, lines ending in CRLF, ASCII only (quoted-printable). Both addresses must be addresses. */
struct str message_write(const struct event *event, struct str from, struct str to, int64_t now_sec, struct arena *a);

/* message.h - an event as a mail that a person can read. Pure: the same input gives the same bytes. */
#pragma once

#include <jansson.h>

#include "base/str.h"

struct event;

enum { MAIL_ADDRESS_MAX = 254 };

/* local@domain of ASCII letters, digits and the usual signs; nothing that means something to a header or to SMTP. */
bool message_is_address(struct str text);

/* Whom such an event is for, for its parsed detail (NULL: none). */
enum {
	TO_OWNER = 1,    /* of the lease */
	TO_MANAGERS = 2, /* and admins */
	TO_ADMINS = 4,
	TO_FORMER_OWNER = 8, /* if there is one: not every account that is cleaned had a lease */
};
unsigned message_whom(const struct event *event, const json_t *detail);

/* Its parts, for those who make a message of their own of them: one line, and the text with plain line ends. UTF-8. */
struct str message_subject(const struct event *event, struct arena *a);
struct str message_text(const struct event *event, struct arena *a);

/* RFC 5322, lines ending in CRLF, ASCII only (quoted-printable). Both addresses must be addresses. */
struct str message_write(const struct event *event, struct str from, struct str to, int64_t now_sec, struct arena *a);

/* signin_page.h - the sign-in page of the server itself. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

/* message may be empty; form is the token against forged forms. */
void signin_page_write(struct buf *b, struct str message, struct str email, struct str form);

/* Its Content-Security-Policy: nothing but its own style, and forms that go to us and end at the web app. */
struct str signin_page_policy(struct str web_app_url, struct arena *a);

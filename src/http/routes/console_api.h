/* console_api.h - the web console's files, for browsers. Loop thread only. */
#pragma once

#include "http/api/api.h"

/* Is this for the console: one of its files, or a page of it (a path that no route has, without an extension, asked
 * for by a browser)? Then it has been answered. */
bool console_answer(struct request *r);

/* At "/", where programs get JSON: does a person with a browser ask? */
bool console_is_wanted(const struct request *r);
void console_answer_page(struct request *r);

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signin_page.c - the sign-in page of the server itself: one document, no script, nothing from elsewhere.
 *
 * Its policy allows the one style that is in it, by that style's hash, and nothing else; so a text that found its way
 * into the page could do nothing even if it were not escaped, and everything is escaped.
 */
#include "http/routes/signin_page.h"

#include <openssl/evp.h>

#include "base/arena.h"
#include "base/hash.h"

enum { HASH_TEXT = 45 };

static const char style[] =
        "body{font:16px/1.5 system-ui,sans-serif;background:#f4f5f7;color:#16191f;margin:0}"
        "main{max-width:22rem;margin:12vh auto;padding:2rem;background:#fff;border:1px solid #d5dbdb;"
        "border-radius:8px}h1{font-size:1.25rem;margin:0 0 1rem}label{display:block;margin:1rem 0 .25rem}"
        "input{width:100%;box-sizing:border-box;font:inherit;padding:.5rem;border:1px solid #687078;"
        "border-radius:4px}button{margin-top:1.5rem;width:100%;font:inherit;padding:.6rem;border:0;"
        "border-radius:4px;background:#0b5cad;color:#fff;cursor:pointer}"
        "p{margin:0;padding:.5rem .75rem;border-left:4px solid #b3261e;background:#fdf1f0}"
        "@media(prefers-color-scheme:dark){body{background:#16191f;color:#eee}"
        "main{background:#21252c;border-color:#414750}input{background:#16191f;color:#eee}"
        "p{background:#3a2020}}";

static void add_escaped(struct buf *b, struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		switch (text.p[i]) {
		case '&': buf_add_text(b, "&amp;"); break;
		case '<': buf_add_text(b, "&lt;"); break;
		case '>': buf_add_text(b, "&gt;"); break;
		case '"': buf_add_text(b, "&quot;"); break;
		case '\'': buf_add_text(b, "&#39;"); break;
		default: buf_add_char(b, text.p[i]);
		}
}

void signin_page_write(struct buf *b, struct str message, struct str email, struct str form)
{
	buf_addf(b,
	         "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sign in - Leasehold</title>"
	         "<meta name=\"viewport\" content=\"width=device-width\"><style>%s</style></head>\n<body><main>"
	         "<h1>Sign in</h1>\n",
	         style);
	if (message.n) {
		buf_add_text(b, "<p role=\"alert\">");
		add_escaped(b, message);
		buf_add_text(b, "</p>\n");
	}
	buf_add_text(b,
	             "<form method=\"post\" action=\"/api/auth/signin\"><input type=\"hidden\" name=\"form\" value=\"");
	add_escaped(b, form);
	buf_addf(b,
	         "\">\n<label for=\"email\">Email</label><input id=\"email\" name=\"email\" type=\"email\" "
	         "autocomplete=\"username\" maxlength=\"254\" required%s value=\"",
	         email.n ? "" : " autofocus");
	add_escaped(b, email);
	buf_addf(b,
	         "\">\n<label for=\"password\">Password</label><input id=\"password\" name=\"password\" "
	         "type=\"password\" autocomplete=\"current-password\" maxlength=\"256\" required%s>\n"
	         "<button>Sign in</button></form></main></body></html>\n",
	         email.n ? " autofocus" : "");
}

struct str signin_page_policy(struct str web_app_url, struct arena *a)
{
	unsigned char text[HASH_TEXT];
	struct hash   hash;
	struct str    origin = web_app_url; /* "https://host:port" of it */
	const char   *end = origin.n > 8 ? memchr(origin.p + 8, '/', origin.n - 8) : NULL;

	if (end)
		origin.n = (size_t)(end - origin.p);
	hash_sha256(STR(style), &hash);
	EVP_EncodeBlock(text, hash.bytes, sizeof(hash.bytes));
	return str_format(a,
	                  "default-src 'none'; style-src 'sha256-%s'; form-action 'self'%s%.*s; base-uri 'none'; "
	                  "frame-ancestors 'none'",
	                  (const char *)text, origin.n ? " " : "", STR_ARG(origin));
}

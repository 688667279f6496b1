/* signin.h - how people prove who they are: the ports of the sign-in pages. Implemented in providers/identity/. All
 * calls may take long: for worker threads, any of them. */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "domain/ports/caller.h"

struct password_book;
struct signin_provider;

struct password_book_ops {
	/* The person with this email and this password. RC_UNKNOWN: there is none; the same answer, after the same
	 * time, for an unknown email and a wrong password. */
	enum rc (*check)(struct password_book *b, struct str email, struct str password, struct arena *a,
	                 struct caller *ret, struct err *e);
};

struct password_book {
	const struct password_book_ops *ops;
};

/* One way to the pages of a provider and back: three secrets of this browser, made by us. */
struct signin_trip {
	struct str state, nonce, verifier;
};

struct signin_provider_ops {
	/* Where to send the browser. */
	enum rc (*begin)(struct signin_provider *p, const struct signin_trip *trip, struct arena *a,
	                 struct str *ret_url, struct err *e);

	/* The browser is back with this code: who is it? RC_UNKNOWN: a person that we do not know, or without any role.
	 * RC_INVALID: what the provider says cannot be trusted. */
	enum rc (*finish)(struct signin_provider *p, const struct signin_trip *trip, struct str code, struct arena *a,
	                  struct caller *ret, struct err *e);

	/* Where to send a browser that signs out; empty: the provider has no such page. */
	enum rc (*sign_out)(struct signin_provider *p, struct arena *a, struct str *ret_url, struct err *e);
};

struct signin_provider {
	const struct signin_provider_ops *ops;
};

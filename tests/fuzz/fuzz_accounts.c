/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_accounts.c - whatever the vendor sends, a returned account can be kept, lent and deleted, and none is there
 * twice. */
#include "fuzz.h"

#include <stdio.h>

#include "base/arena.h"
#include "domain/ports/csp.h"
#include "domain/sandbox.h"
#include "providers/csp/accounts.h"
#include "service/broker/records.h"

enum { COMPARED_MAX = 200 };

static void check_account(const struct csp_account *account)
{
	struct sandbox s = sandbox_from_account(account, 4, (struct wall){ 1000 });

	must(sandbox_is_id(account->sandbox_id) && sandbox_ok(&s));
	must(account->external_id.p[account->external_id.n - 1] != '/');
	must(record_check(&sandbox_type, &s, NULL) == RC_OK);
}

static void check_listing(struct str json)
{
	struct csp_listing listing = { 0 };
	struct arena       a = { 0 };
	struct err         e = { 0 };

	if (csp_read_accounts(json, &a, &listing, &e)) {
		must(e.rc != RC_OK && e.msg[0]);
		listing.count = 0;
	}
	must((listing.malformed > 0) == (listing.first_problem.n > 0));
	for (size_t i = 0; i < listing.count; i++) {
		check_account(&listing.accounts[i]);
		for (size_t j = 0; j < i && i < COMPARED_MAX; j++)
			must(!str_eq(listing.accounts[i].sandbox_id, listing.accounts[j].sandbox_id));
	}
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   bytes = str_of((const char *)data, size);

	check_listing(bytes);
	/* The same as the members of one account that may be lent, so that more inputs come that far. */
	check_listing(str_format(&a, "{\"results\": [{\"account_type\": \"sandbox\", \"state\": \"active\", %.*s}]}",
	                         STR_ARG(bytes)));
	arena_fini(&a);
	return 0;
}

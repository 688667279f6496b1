/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_lease_id.c - whatever is read as a lease id holds a good email and a good uuid, and the id made of them is read
 * as the same. */
#include "fuzz.h"

#include "base/arena.h"
#include "base/base64.h"
#include "domain/lease.h"

static void check(struct str id, struct arena *a)
{
	struct lease l = { 0 };
	struct str   email, uuid;
	struct err   e = { 0 };
	enum rc      rc = lease_id_parse(id, a, &l.user_email, &l.uuid, &e);

	must(rc == RC_OK || (rc == RC_INVALID && e.msg[0]));
	if (rc)
		return;
	must(email_is_ok(l.user_email) && uuid_is_ok(l.uuid));
	must(lease_id_parse(lease_id(&l, a), a, &email, &uuid, NULL) == RC_OK);
	must(str_eq(email, l.user_email) && str_eq(uuid, l.uuid));
	must(email_is_ok(email_key(email, a)));
}

/* Once as an id, once as what is inside of one: few random bytes are base64 of JSON. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = { 0 };
	struct str   text = str_of((const char *)data, size);

	check(text, &a);
	if (size <= LEASE_ID_MAX)
		check(base64url_encode(&a, text), &a);
	arena_fini(&a);
	return 0;
}

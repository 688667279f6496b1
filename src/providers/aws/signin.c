/* SPDX-License-Identifier: Apache-2.0 */
/* signin.c - see signin.h. The provider's own groups are ignored: rights have one source. */
#include "providers/aws/signin.h"

#include <stdlib.h>

#include "base/attr.h"
#include "base/mem.h"
#include "domain/signin.h"
#include "providers/aws/directory.h"

struct aws_signin {
	struct signin_provider  base;
	struct signin_provider *provider;
	struct aws_directory   *directory;
};

static enum rc begin(struct signin_provider *base, const struct signin_trip *trip, struct arena *a, struct str *ret_url,
                     struct err *e)
{
	struct signin_provider *p = CONTAINER_OF(base, struct aws_signin, base)->provider;

	return p->ops->begin(p, trip, a, ret_url, e);
}

static enum rc finish(struct signin_provider *base, const struct signin_trip *trip, struct str code, struct arena *a,
                      struct caller *ret, struct err *e)
{
	struct aws_signin *s = CONTAINER_OF(base, struct aws_signin, base);
	struct caller      said, known;
	struct err         why = { 0 };
	enum rc            rc = s->provider->ops->finish(s->provider, trip, code, a, &said, e);

	if (rc)
		return rc;
	rc = aws_directory_sign_in(s->directory, said.email, a, &known, &why);
	if (rc)
		return err_set(e, rc == RC_NOT_FOUND ? RC_UNKNOWN : rc, "%s", why.msg);
	*ret = known;
	return RC_OK;
}

static enum rc sign_out(struct signin_provider *base, struct arena *a, struct str *ret_url, struct err *e)
{
	struct signin_provider *p = CONTAINER_OF(base, struct aws_signin, base)->provider;

	return p->ops->sign_out(p, a, ret_url, e);
}

struct signin_provider *aws_signin_new(struct signin_provider *provider, struct aws_directory *directory)
{
	static const struct signin_provider_ops ops = { begin, finish, sign_out };
	struct aws_signin                      *s = mem_new(struct aws_signin);

	*s = (struct aws_signin){ { &ops }, provider, directory };
	return &s->base;
}

void aws_signin_free(struct signin_provider *p)
{
	free(p ? CONTAINER_OF(p, struct aws_signin, base) : NULL);
}

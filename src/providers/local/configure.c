/* SPDX-License-Identifier: Apache-2.0 */
/* configure.c - installs WordPress by php/configure.php, tells it of the identity pool, and brings a change of its size
 * to the tasks. */

#include "base/json.h"
#include "providers/local/local_private.h"
#include "providers/local/run.h"

enum { OUT_SHOWN = 500 };

/* What the plugin in php/signin.php reads; empty while there is no pool. */
static struct str signin_json(struct local *l, struct site *s, const struct site_secret *secret, struct arena *a)
{
	struct str issuer = identity_issuer(l, s, a);

	if (!s->instance[INSTANCE_IDENTITY][0])
		return STR("{}");
	return JSON_OF(a, member_str("issuer", issuer), member_str("client", secret->client_id),
	               member_str("secret", secret->client_secret));
}

/*
 * The installer is many statements, and may be killed between any two of them; WordPress calls itself installed after
 * the first few. So we remember whether it ever came to its end, and until then each attempt begins with an empty
 * database.
 */
enum rc site_install(struct local *l, struct site *s, const struct instance_spec *spec, bool is_restored, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct site_secret               secret;
	struct str                       in, out, cache;
	enum rc                          rc = secret_read(l, s, &a, &secret, e);

	if (!rc && !s->is_installed)
		rc = database_empty(l, s, e);
	if (!rc) {
		in = JSON_OF(&a, member_str("root", site_root(l, s, &a)), member_str("url", site_url(l, s, &a)),
		             member_str("title", spec->organization), member_str("user", secret.admin_user),
		             member_str("password", secret.admin_password), member_str("email", spec->contact_email),
		             member_raw("signin", signin_json(l, s, &secret, &a)),
		             member_bool("restored", is_restored));
		if (!(rc = code_cache_lend(l, s, &a, &cache, e)))
			rc = php_run(l, "configure.php", s->uid, site_gid(l, s), local_path(l, &a, "tmp/%s", s->key).p,
			             cache.p, in, &a, &out, e);
	}
	/* It prints this last; what a tenant's own plugins say may stand before it. */
	if (!rc && !str_has(out, STR("\n{\"installed\":")) && !str_starts_with(out, STR("{\"installed\":")))
		rc = err_set(e, RC_UNAVAILABLE, "WordPress gave up: %.*s", (int)(out.n < OUT_SHOWN ? out.n : OUT_SHOWN),
		             out.n ? out.p : "");
	if (!rc)
		rc = site_set_installed(l, s, true, e);
	return err_wrap(e, rc, "WordPress of tenant %s cannot be installed", s->tenant);
}

/* The plugin lies in the tenant's storage, where WordPress loads it without being told; written as the tenant. */
static enum rc offer_pool(struct local *l, struct site *s, struct err *e)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       to = str_format(&a, "%s/wp-content/mu-plugins", site_root(l, s, &a).p);
	const char *const                args[] = { "cp", "--remove-destination", local_path(l, &a, "php/signin.php").p,
		                                    "leasehold-signin.php", NULL };

	return run_program(&(struct run){ .args = args,
	                                  .folder = to.p,
	                                  .uid = s->uid,
	                                  .gid = site_gid(l, s),
	                                  .limit_ms = PROGRAM_MS },
	                   &a, NULL, e);
}

static enum rc resize(struct local *l, struct site *s, const struct instance_spec *spec, struct err *e)
{
	enum rc rc;

	if ((spec->cpu_units <= 0 || spec->cpu_units == s->cpu) &&
	    (spec->memory_mb <= 0 || spec->memory_mb == s->memory))
		return RC_OK;
	s->cpu = spec->cpu_units > 0 ? spec->cpu_units : s->cpu;
	s->memory = spec->memory_mb > 0 ? spec->memory_mb : s->memory;
	if ((rc = site_write_config(l, s, e)))
		return rc;
	return site_roll(l, s, e);
}

enum rc local_configure(struct instance_driver *d, const struct instance_spec *spec, struct err *e)
{
	struct local                     *l = local_of(d);
	CLEANUP(site_leavep) struct site *s = NULL;
	enum rc                           rc = site_enter(l, spec->tenant, false, &s, e);

	if (rc || (rc = site_needs(s, INSTANCE_WORKERS, e)) || (rc = database_start(l, e)) ||
	    (rc = offer_pool(l, s, e)) || (rc = site_install(l, s, spec, false, e)))
		return rc;
	return resize(l, s, spec, e);
}

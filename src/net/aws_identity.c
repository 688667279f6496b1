/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aws_identity.c - one set of credentials for many threads, renewed in time.
 *
 * Held credentials are in one of these conditions, decided from the clock at each use:
 *   fresh     used as they are
 *   aging     near their end (RENEW_BEFORE_MS; a fifth of a role's time): the next one who needs them renews them,
 *             everybody else goes on with the old ones meanwhile
 *   unusable  none yet, ended, or refused by the service: one thread looks for new ones, the others wait for it
 *
 * Always true:
 *   1. At most one thread looks for credentials, and without the lock.                            [is_renewing]
 *   2. A renewal that fails takes nothing away: what is held is used until it ends. The next try is RENEW_PAUSE_MS
 *      later, so that a source that is down is not asked by every call.
 *   3. Who waited for a renewal that failed gets its error and does not start another one.        [round]
 *   4. Replaced secrets are wiped. No message has one; keys with characters that no header takes are refused.
 *
 * Credentials without an end are never looked for again unless the service refuses them.
 */
#include <openssl/crypto.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/lock.h"
#include "base/mem.h"
#include "net/aws.h"
#include "net/aws_source.h"

enum { RENEW_BEFORE_MS = 5 * 60 * 1000, RENEW_PAUSE_MS = 60 * 1000, KEY_MAX = 16 * 1024 };

struct aws_identity {
	struct aws_identity_options o;
	int64_t                     renew_before_ms;
	pthread_mutex_t             lock; /* everything below */
	pthread_cond_t              renewed;
	bool                        is_renewing;
	uint64_t                    round; /* +1 for every renewal that ended */
	enum rc                     last_rc;
	struct err                  last_err; /* of the last renewal */
	struct wall                 next_try; /* no early renewal before */
	struct aws_found            held;     /* its texts are ours */
	bool                        is_refused;
};

struct aws_identity *aws_identity_new(const struct aws_identity_options *o)
{
	struct aws_identity *i = mem_new(struct aws_identity);

	i->o = *o;
	i->renew_before_ms = o->role ? (int64_t)o->role->seconds * 1000 / 5 : RENEW_BEFORE_MS;
	pthread_mutex_init(&i->lock, NULL);
	pthread_cond_init(&i->renewed, NULL);
	return i;
}

static void wipe(struct str *text)
{
	char *owned = (char *)(uintptr_t)text->p;

	if (owned)
		OPENSSL_cleanse(owned, text->n);
	free(owned);
	*text = (struct str){ 0 };
}

static void wipe_held(struct aws_identity *i)
{
	wipe(&i->held.credentials.access_key);
	wipe(&i->held.credentials.secret_key);
	wipe(&i->held.credentials.session_token);
}

void aws_identity_free(struct aws_identity *i)
{
	if (!i)
		return;
	wipe_held(i);
	pthread_cond_destroy(&i->renewed);
	pthread_mutex_destroy(&i->lock);
	free(i);
}

static struct str keep(struct str text)
{
	return str_of(text.n ? mem_copy(text.p, text.n) : NULL, text.n);
}

/* Each goes into a header. */
static bool is_plain(struct str text)
{
	return text.n <= KEY_MAX && str_is_of(text, "!-~");
}

static bool is_usable(const struct aws_identity *i, struct wall now)
{
	const struct aws_found *held = &i->held;

	return held->credentials.access_key.n && !i->is_refused && (held->expires.ms == 0 || now.ms < held->expires.ms);
}

static bool is_due(const struct aws_identity *i, struct wall now)
{
	if (!is_usable(i, now))
		return true;
	return i->held.expires.ms && now.ms >= i->held.expires.ms - i->renew_before_ms && now.ms >= i->next_try.ms;
}

/* Asks the places in turn, without the lock. */
static enum rc look_around(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret, struct err *e)
{
	/* clang-format off */
	static const struct {
		const char    *name;
		aws_source_fn *look;
	} places[] = {
		{ "environment",       aws_source_environment  },
		{ "web identity",      aws_source_web_identity },
		{ "shared file",       aws_source_shared_file  },
		{ "container",         aws_source_container    },
		{ "instance metadata", aws_source_instance     },
	};
	/* clang-format on */
	struct str looked = STR("");

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		struct err why = { 0 };
		enum rc    rc = places[i].look(o, a, ret, &why);

		if (rc == RC_OK)
			return RC_OK;
		if (rc != RC_NOT_FOUND)
			return err_set(e, rc, "AWS credentials from %s: %s", places[i].name, why.msg);
		looked = str_format(a, "%.*s%s%s", STR_ARG(looked), i ? "; " : "", why.msg);
	}
	return err_set(e, RC_DENIED, "no AWS credentials: %.*s", STR_ARG(looked));
}

static enum rc look(const struct aws_identity_options *o, struct arena *a, struct aws_found *ret, struct err *e)
{
	const struct aws_credentials *c = &ret->credentials;
	enum rc                       rc = o->role ? aws_source_role(o, a, ret, e) : look_around(o, a, ret, e);

	if (rc || (is_plain(c->access_key) && is_plain(c->secret_key) && is_plain(c->session_token)))
		return rc;
	return err_set(e, RC_INVALID, "AWS credentials must be of at most %d printable characters without blanks",
	               KEY_MAX);
}

struct aws_credentials aws_credentials_dup(const struct aws_credentials *c, struct arena *a)
{
	return (struct aws_credentials){ str_dup(a, c->access_key), str_dup(a, c->secret_key),
		                         str_dup(a, c->session_token) };
}

/* Called and left with the lock held, which is free while the sources are asked. */
static void renew(struct aws_identity *i)
{
	struct aws_found                 found = { 0 };
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct err                       why = { 0 };
	enum rc                          rc;

	i->is_renewing = true;
	pthread_mutex_unlock(&i->lock);
	rc = look(&i->o, &a, &found, &why);
	pthread_mutex_lock(&i->lock);
	if (rc == RC_OK) {
		wipe_held(i);
		i->held = (struct aws_found){ { keep(found.credentials.access_key), keep(found.credentials.secret_key),
			                        keep(found.credentials.session_token) },
			                      found.expires };
	}
	i->is_refused = false; /* those that stay are better than none, while they last */
	i->last_rc = rc;
	i->last_err = why;
	i->next_try.ms = clock_now(i->o.clock).ms + RENEW_PAUSE_MS;
	i->is_renewing = false;
	i->round++;
	pthread_cond_broadcast(&i->renewed);
}

enum rc aws_identity_get(struct aws_identity *i, struct arena *a, struct aws_credentials *ret, struct err *e)
{
	struct wall now = clock_now(i->o.clock);
	uint64_t    round;
	enum rc     rc = RC_OK;

	LOCKED(&i->lock);
	round = i->round;
	while (!is_usable(i, now) && i->is_renewing && round == i->round)
		pthread_cond_wait(&i->renewed, &i->lock);
	if (round == i->round && is_due(i, now) && !i->is_renewing)
		renew(i);
	if (is_usable(i, now))
		*ret = aws_credentials_dup(&i->held.credentials, a);
	else
		rc = i->last_rc ? err_set(e, i->last_rc, "%s", i->last_err.msg)
		                : err_set(e, RC_DENIED, "AWS credentials have already ended when they were handed out");
	return rc;
}

void aws_identity_refuse(struct aws_identity *i, const struct aws_credentials *refused)
{
	LOCKED(&i->lock);
	if (str_eq(i->held.credentials.access_key, refused->access_key) &&
	    str_eq_secret(i->held.credentials.session_token, refused->session_token))
		i->is_refused = true;
}

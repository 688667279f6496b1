/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleaning.c - from the settings to the cleaner.
 *
 * Runs of aws-nuke are processes and files of one machine: with several nodes a run would be looked for where it is not. So it goes with the
 * embedded store only.
 */
#include "app/cleaning.h"

#include <stdlib.h>

#include "app/config.h"
#include "app/stores.h"
#include "base/arena.h"
#include "base/mem.h"
#include "net/aws.h"
#include "providers/nuke/nuke.h"

struct cleaning {
	struct aws_identity *identity;
	struct arena         arena;
	struct nuke         *nuke;
};

static const char *read_env(const char *name)
{
	return getenv(name);
}

static bool is_nuke(const struct config *c)
{
	return config_number(c, CONFIG_CLEANER) == CLEANING_NUKE;
}

/* Adds the accounts of a list that commas separate. */
static enum rc add_accounts(struct str list, struct str *ret, size_t *count, struct err *e)
{
	while (list.n) {
		struct str id = str_trim(str_cut(&list, ','));

		if (!id.n)
			continue;
		if (!nuke_is_account(id))
			return err_set(e, RC_INVALID,
			               "must be account ids of 12 digits, separated by commas, not '%.*s'",
			               STR_ARG(id));
		if (*count == NUKE_PROTECTED_MAX)
			return err_set(e, RC_INVALID, "there may be %d accounts at most", NUKE_PROTECTED_MAX);
		ret[(*count)++] = id;
	}
	return RC_OK;
}

static enum rc make_template(const struct config *c, struct str admin_accounts, struct arena *a,
                             struct nuke_template *ret, struct err *e)
{
	struct str *accounts = arena_alloc(a, NUKE_PROTECTED_MAX * sizeof(*accounts));
	size_t      count = 0;
	enum rc     rc;

	*ret = (struct nuke_template){ .role_name = nuke_role_name(config_str(c, CONFIG_NUKE_ROLE)),
		                       .protected = accounts };
	if ((rc = add_accounts(config_str(c, CONFIG_NUKE_PROTECTED), accounts, &count, e)))
		return err_wrap(e, rc, "%s", config_name(CONFIG_NUKE_PROTECTED));
	if ((rc = add_accounts(admin_accounts, accounts, &count, e)))
		return err_wrap(e, rc, "%s", config_name(CONFIG_ADMIN_ACCOUNTS));
	ret->protected_count = count;
	if ((rc = nuke_template_read(config_text(c, CONFIG_NUKE_CONFIG), a, &ret->text, e)) ||
	    (rc = nuke_template_check(ret, e)))
		return err_wrap(e, rc, "%s", config_name(CONFIG_NUKE_CONFIG));
	return RC_OK;
}

void cleaning_check(const struct config *c, struct buf *problems)
{
	struct str   role = config_str(c, CONFIG_NUKE_ROLE);
	struct arena a = { 0 };
	struct nuke_template template;
	struct err e = { 0 };

	if (!is_nuke(c))
		return;
	if (!nuke_is_role(role))
		buf_addf(problems, "%s: must be the name of a role, such as LeaseholdCleanup, not '%.*s'\n",
		         config_name(CONFIG_NUKE_ROLE), STR_ARG(role));
	if (config_number(c, CONFIG_STORE) != APP_SQLITE)
		buf_addf(problems, "%s: runs of aws-nuke belong to one machine; right is %s=sqlite, or sim\n",
		         config_name(CONFIG_CLEANER), config_name(CONFIG_STORE));
	if (!config_text(c, CONFIG_NUKE_CONFIG))
		buf_addf(problems, "%s: must name the file with the configuration of aws-nuke, since %s is nuke\n",
		         config_name(CONFIG_NUKE_CONFIG), config_name(CONFIG_CLEANER));
	else if (make_template(c, config_str(c, CONFIG_ADMIN_ACCOUNTS), &a, &template, &e))
		buf_addf(problems, "%s\n", e.msg);
	arena_fini(&a);
}

static const char *run_folder(const struct config *c, struct arena *a)
{
	const char *folder = config_text(c, CONFIG_NUKE_FOLDER);

	return folder ? folder : str_format(a, "%s/nuke", config_text(c, CONFIG_DATA)).p;
}

static enum rc open_nuke(struct cleaning *k, const struct config *c, struct str admin_accounts, struct err *e)
{
	struct nuke_options o = { .folder = run_folder(c, &k->arena),
		                  .self = "/proc/self/exe",
		                  .program = config_text(c, CONFIG_NUKE_PROGRAM),
		                  .role = config_str(c, CONFIG_NUKE_ROLE),
		                  .sts = { .identity = k->identity,
		                           .clock = &clock_real,
		                           .region = config_text(c, CONFIG_AWS_REGION),
		                           .endpoint = config_text(c, CONFIG_NUKE_STS) },
		                  .limit_ms = config_number(c, CONFIG_NUKE_LIMIT) * 1000,
		                  .wait_retries = config_number(c, CONFIG_NUKE_RETRIES),
		                  .env = read_env };
	enum rc             rc = make_template(c, admin_accounts, &k->arena, &o.template, e);

	return rc ? rc : nuke_open(&o, &k->nuke, e);
}

enum rc cleaning_open(const struct config *c, struct str admin_accounts, struct cleaning **ret, struct err *e)
{
	struct cleaning *k;
	enum rc          rc;

	*ret = NULL;
	if (!is_nuke(c))
		return RC_OK;
	k = mem_new(struct cleaning);
	k->identity = aws_identity_new(&(struct aws_identity_options){ .env = read_env, .clock = &clock_real });
	rc = open_nuke(k, c, admin_accounts, e);
	if (rc) {
		cleaning_close(k);
		return err_wrap(e, rc, "%s", config_name(CONFIG_CLEANER));
	}
	*ret = k;
	return RC_OK;
}

void cleaning_close(struct cleaning *k)
{
	if (!k)
		return;
	nuke_close(k->nuke);
	aws_identity_free(k->identity);
	arena_fini(&k->arena);
	free(k);
}

struct cleaner *cleaning_cleaner(struct cleaning *k)
{
	return nuke_cleaner(k->nuke);
}

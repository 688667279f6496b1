/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleaner.c - from the settings to the cleaner.
 *
 * Runs of aws-nuke are processes and files of one machine: another node could not find them. So this needs the embedded
 * store.
 */
#include "app/parts.h"

#include "app/aws_parts.h"
#include "app/config/config.h"
#include "base/arena.h"
#include "net/aws.h"
#include "providers/nuke/nuke.h"

static bool is_nuke(const struct config *c)
{
	return config_number(c, CONFIG_CLEANER) == CLEANING_NUKE;
}

/* Of the role that empties an account. */
static struct str role_of(const struct config *c)
{
	struct str role = config_str(c, CONFIG_SANDBOX_ROLE);

	return aws_parts_is_wanted(c) && role.n ? role : config_str(c, CONFIG_NUKE_ROLE);
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

	*ret = (struct nuke_template){ .role_name = nuke_role_name(role_of(c)), .protected = accounts };
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

void cleaner_check(const struct config *c, struct buf *problems)
{
	struct str                       role = role_of(c);
	CLEANUP(arena_fini) struct arena a = { 0 };
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
}

/* By the chain of roles: our own, the intermediate one, the one in the account. */
static enum rc assume_by_chain(void *arg, struct str account_id, struct arena *a, struct aws_credentials *ret,
                               struct err *e)
{
	struct aws_parts  *aws = arg;
	struct aws_caller *sandbox = aws_caller_sandbox(aws->callers, account_id, role_of(aws->p->config), "nuke",
	                                                AWS_SESSION_MAX_SEC);
	enum rc            rc = aws_identity_get(aws_caller_identity(sandbox), a, ret, e);

	aws_caller_free(sandbox);
	return rc;
}

enum rc cleaner_open(struct lease_parts *l, const struct config *c, struct aws_parts *aws, struct err *e)
{
	const char         *folder = config_text(c, CONFIG_NUKE_FOLDER), *data = config_text(c, CONFIG_DATA);
	struct nuke_options o = { .self = "/proc/self/exe",
		                  .program = config_text(c, CONFIG_NUKE_PROGRAM),
		                  .role = role_of(c),
		                  .sts = { .clock = &clock_real,
		                           .region = config_text(c, CONFIG_AWS_REGION),
		                           .endpoint = config_text(c, CONFIG_NUKE_STS) },
		                  .limit_ms = config_number(c, CONFIG_NUKE_LIMIT) * 1000,
		                  .wait_retries = config_number(c, CONFIG_NUKE_RETRIES),
		                  .env = app_env };
	enum rc             rc;

	if (!is_nuke(c))
		return RC_OK;
	if (aws->cloud) {
		o.assume = assume_by_chain;
		o.assume_arg = aws;
	}
	l->identity = o.sts.identity = app_identity();
	o.folder = folder ? folder : str_format(&l->arena, "%s/nuke", data).p;
	if ((rc = make_template(c, l->admin_accounts, &l->arena, &o.template, e)) || (rc = nuke_open(&o, &l->nuke, e)))
		return err_wrap(e, rc, "%s", config_name(CONFIG_CLEANER));
	l->cloud.cleaner = l->clean.cleaner = nuke_cleaner(l->nuke);
	return RC_OK;
}

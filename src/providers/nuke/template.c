/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.c - from the operator's file to a configuration that empties exactly one account.
 *
 * aws-nuke refuses an account that its configuration does not list or that is in its blocklist. So what we write has:
 *   1. one account, the one that is to be emptied; [check_accounts()]
 *   2. a blocklist that is not empty, has every protected account, and not that one. [build(), check_blocklist()]
 *
 * Placeholders are replaced before the text is read as YAML: their values have no character that is special there.
 * Anything between two % that looks like a placeholder must be one.
 */
#include "providers/nuke/template.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/json.h"
#include "base/yaml.h"

#define SOME_ACCOUNT "000000000000" /* stands for any account while the template is checked */

enum { ACCOUNT_DIGITS = 12, FILLED_MAX = 2 * NUKE_TEMPLATE_MAX };

bool nuke_is_account(struct str text)
{
	return str_is_digits(text, ACCOUNT_DIGITS);
}

enum rc nuke_template_read(const char *path, struct arena *a, struct str *ret, struct err *e)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum rc                rc;

	if (fd < 0)
		return err_set(e, RC_INVALID, "%s cannot be read: %s", path, strerror(errno));
	rc = file_read_all(fd, NUKE_TEMPLATE_MAX, a, ret);
	if (rc == RC_TOO_LARGE)
		return err_set(e, RC_INVALID, "%s has more than %d bytes", path, NUKE_TEMPLATE_MAX);
	return rc ? err_set(e, RC_INVALID, "%s cannot be read", path) : RC_OK;
}

/* --- placeholders --- */

/* The length of "NAME%" after a %; 0 when that is no placeholder. */
static size_t placeholder_size(struct str rest)
{
	size_t n = 0;

	while (n < rest.n && ((rest.p[n] >= 'A' && rest.p[n] <= 'Z') || rest.p[n] == '_'))
		n++;
	return n && n < rest.n && rest.p[n] == '%' ? n + 1 : 0;
}

static enum rc substitute(const struct nuke_template *t, struct str account_id, struct buf *ret, struct err *e)
{
	struct str rest = t->text;

	while (rest.n) {
		struct str before = str_cut(&rest, '%'), name;
		size_t     size = placeholder_size(rest);

		buf_add_str(ret, before);
		if (before.p + before.n == t->text.p + t->text.n)
			break; /* there was no % any more */
		if (!size) {
			buf_add_char(ret, '%');
			continue;
		}
		name = str_of(rest.p, size - 1);
		rest = str_of(rest.p + size, rest.n - size);
		if (str_eq(name, STR("CLEANUP_ACCOUNT_ID")))
			buf_add_str(ret, account_id);
		else if (str_eq(name, STR("CLEANUP_ROLE_NAME")))
			buf_add_str(ret, t->role_name);
		else
			return err_set(e, RC_INVALID,
			               "there is no placeholder %%%.*s%%; known are %%CLEANUP_ACCOUNT_ID%% and "
			               "%%CLEANUP_ROLE_NAME%%",
			               STR_ARG(name));
	}
	return ret->is_full ? err_set(e, RC_INVALID, "it is too large when it is filled in") : RC_OK;
}

/* --- parts --- */

static enum rc check_names(const json_t *root, struct err *e)
{
	static const char known[] = "regions account-blocklist accounts resource-types presets feature-flags endpoints";
	const char       *name;
	json_t           *value;

	if (!json_is_object(root))
		return err_set(e, RC_INVALID, "it must have regions, account-blocklist and accounts");
	json_object_foreach((json_t *)(uintptr_t)root, name, value)
	{
		if (!str_is_word_of(str_from(name), known))
			return err_set(e, RC_INVALID,
			               "aws-nuke has no '%s'; it has regions, account-blocklist, accounts, "
			               "resource-types, presets, feature-flags and endpoints",
			               name);
	}
	return RC_OK;
}

static enum rc check_regions(const json_t *root, struct err *e)
{
	const json_t *regions = json_object_get(root, "regions");

	for (size_t i = 0; i < json_array_size(regions); i++)
		if (!json_string_length(json_array_get(regions, i)))
			return err_set(e, RC_INVALID, "regions: must be names such as us-east-1 and global");
	return json_array_size(regions)
	               ? RC_OK
	               : err_set(e, RC_INVALID, "regions: must list what is emptied, such as us-east-1 and global");
}

/* Without quotes an id is a number, and its zeros in front are lost. */
static enum rc check_blocklist(const json_t *root, struct str account_id, struct err *e)
{
	const json_t *list = json_object_get(root, "account-blocklist");

	if (!json_array_size(list))
		return err_set(e, RC_INVALID, "account-blocklist: must name the accounts that are never emptied");
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct str id = str_from(json_string_value(json_array_get(list, i)));

		if (!nuke_is_account(id))
			return err_set(e, RC_INVALID,
			               "account-blocklist: must have account ids of 12 digits, in quotes");
		if (str_eq(id, account_id))
			return err_set(e, RC_DENIED, "account %.*s must not be emptied: it is in the account-blocklist",
			               STR_ARG(account_id));
	}
	return RC_OK;
}

static enum rc check_accounts(const json_t *root, struct str account_id, struct err *e)
{
	json_t     *accounts = json_object_get(root, "accounts");
	const char *only = json_object_iter_key(json_object_iter(accounts));

	if (json_object_size(accounts) == 1 && str_eq(str_from(only), account_id))
		return RC_OK;
	return err_set(e, RC_INVALID, "accounts: must have \"%%CLEANUP_ACCOUNT_ID%%\" and nothing else");
}

/* The result is yours. */
static enum rc build(const struct nuke_template *t, struct str account_id, json_t **ret, struct err *e)
{
	CLEANUP(json_freep) json_t  *root = NULL;
	CLEANUP(buf_fini) struct buf text = BUF(FILLED_MAX);
	enum rc                      rc;

	if (!(rc = substitute(t, account_id, &text, e)))
		rc = yaml_parse(buf_str(&text), &root, e);
	if (rc || (rc = check_names(root, e)) || (rc = check_regions(root, e)) ||
	    (rc = check_accounts(root, account_id, e)) || (rc = check_blocklist(root, account_id, e)))
		return rc;
	for (size_t i = 0; i < t->protected_count; i++)
		json_array_append_new(json_object_get(root, "account-blocklist"),
		                      json_stringn(t->protected[i].p, t->protected[i].n));
	*ret = TAKE(root);
	return RC_OK;
}

enum rc nuke_template_check(const struct nuke_template *t, struct err *e)
{
	CLEANUP(json_freep) json_t *root = NULL;
	enum rc                     rc = build(t, STR(SOME_ACCOUNT), &root, e);

	return rc == RC_DENIED ? RC_INVALID : rc;
}

enum rc nuke_template_fill(const struct nuke_template *t, struct str account_id, struct arena *a, struct str *ret,
                           struct err *e)
{
	CLEANUP(json_freep) json_t *root = NULL;
	char                       *text;
	enum rc                     rc;

	if (!nuke_is_account(account_id))
		return err_set(e, RC_INVALID, "an account id must have 12 digits");
	for (size_t i = 0; i < t->protected_count; i++)
		if (str_eq(t->protected[i], account_id))
			return err_set(e, RC_DENIED,
			               "account %.*s must not be emptied: it is one of those that are protected",
			               STR_ARG(account_id));
	if ((rc = build(t, account_id, &root, e)))
		return rc;
	text = json_dumps(root, JSON_INDENT(1));
	*ret = str_dup(a, str_from(text));
	free(text);
	return RC_OK;
}

/* --- kinds of resources --- */

static enum rc check_kind(const char *kind, const char *where, struct str known, struct err *e)
{
	while (kind && known.n)
		if (str_eq(str_trim(str_cut(&known, '\n')), str_from(kind)))
			return RC_OK;
	return err_set(e, RC_INVALID,
	               "%s: this aws-nuke knows no kind of resources '%s'; see 'aws-nuke resource-types'", where,
	               kind ? kind : "");
}

static enum rc check_list(const json_t *list, const char *where, struct str known, struct err *e)
{
	enum rc rc = RC_OK;

	for (size_t i = 0; !rc && i < json_array_size(list); i++)
		rc = check_kind(json_string_value(json_array_get(list, i)), where, known, e);
	return rc;
}

/* Of one account, or of all of them: both may choose kinds and filter them. */
static enum rc check_kinds(json_t *part, struct str known, struct err *e)
{
	const json_t *types = json_object_get(part, "resource-types");
	const char   *kind;
	json_t       *value;
	enum rc       rc;

	if ((rc = check_list(json_object_get(types, "targets"), "resource-types targets", known, e)) ||
	    (rc = check_list(json_object_get(types, "excludes"), "resource-types excludes", known, e)))
		return rc;
	json_object_foreach(json_object_get(part, "filters"), kind, value)
	{
		if (strcmp(kind, "__global__") != 0 && (rc = check_kind(kind, "filters", known, e)))
			return rc;
	}
	return RC_OK;
}

enum rc nuke_template_check_kinds(const struct nuke_template *t, struct str known, struct err *e)
{
	CLEANUP(json_freep) json_t *root = NULL;
	enum rc                     rc = build(t, STR(SOME_ACCOUNT), &root, e);
	const char                 *name;
	json_t                     *preset;

	if (rc || (rc = check_kinds(root, known, e)) ||
	    (rc = check_kinds(json_object_get(json_object_get(root, "accounts"), SOME_ACCOUNT), known, e)))
		return rc;
	json_object_foreach(json_object_get(root, "presets"), name, preset)
	{
		if ((rc = check_kinds(preset, known, e)))
			return err_wrap(e, rc, "preset %s", name);
	}
	return RC_OK;
}

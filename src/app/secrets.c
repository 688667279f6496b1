/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets.c - settings whose values are kept by Secrets Manager.
 *
 * They are read by our own credentials: the chain of roles is for what others own. Where a value came from is kept
 * beside it, so that it can be read again: when is up to reload.c.
 */
#include "app/secrets.h"

#include "app/config/config.h"
#include "app/config/config_table.h"
#include "app/store/stores.h"
#include "base/arena.h"
#include "providers/aws/call.h"
#include "providers/aws/secret.h"

static bool is_reference(const struct config *c, enum setting id)
{
	enum config_kind kind = config_table[id].kind;

	return (kind == SECRET || kind == TOKENS) && str_starts_with(config_str(c, id), STR(AWS_SECRET_PREFIX));
}

static void read_one(struct config *c, enum setting id, struct aws_caller *own, struct buf *problems)
{
	CLEANUP(arena_fini) struct arena a = { 0 };
	struct str                       value;
	struct err                       e = { 0 };

	if (aws_secret_read(own, str_skip(c->values[id].reference, strlen(AWS_SECRET_PREFIX)), &a, &value, &e))
		buf_addf(problems, "%s: %s\n", config_name(id), e.msg);
	else
		config_set(c, id, value, c->values[id].origin);
}

void secrets_read(struct config *c, struct buf *problems)
{
	struct aws_settings s = {
		.env = app_env, .clock = &clock_real, .region = config_text(c, CONFIG_AWS_REGION), .node = "start"
	};
	struct aws_callers *callers = NULL;
	struct err          e = { 0 };

	for (int id = 0; id < CONFIG_COUNT; id++) {
		if (is_reference(c, (enum setting)id))
			c->values[id].reference = c->values[id].text;
		if (!c->values[id].reference.n)
			continue;
		if (!callers && aws_callers_new(&s, &callers, &e)) {
			buf_addf(problems, "%s\n", e.msg);
			return;
		}
		read_one(c, (enum setting)id, aws_caller_of(callers, AWS_OWN), problems);
	}
	if (callers && !problems->n) /* else they were checked, and what is wrong is told already */
		config_check(c, problems);
	aws_callers_free(callers);
}

bool secrets_any(const struct config *c)
{
	for (int id = 0; id < CONFIG_COUNT; id++)
		if (c->values[id].reference.n)
			return true;
	return false;
}

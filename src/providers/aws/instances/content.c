/* SPDX-License-Identifier: Apache-2.0 */
/*
 * content.c - WordPress is installed, archived and restored by tasks of its own image (deploy/aws/site), which have the
 * files, the database's password and the rights to the bucket; we have none of them.
 *
 * An archive's task compares what came into the bucket with what it sent, and says so in the last line of its log:
 * {"archive":NAME,"bytes":N}.
 */
#include "providers/aws/instances/content.h"

#include "base/clock.h"
#include "base/password.h"
#include "providers/aws/instances/cognito.h"
#include "providers/aws/instances/tasks.h"
#include "providers/aws/instances/ecs.h"

enum { LONG_MS = 95000, LINES = 50, NAME_MAX_BYTES = 128 };

enum rc content_configure(struct site *s, struct err *e)
{
	struct task_order order = { .family = FAMILY_INSTALL,
		                    .what = "install",
		                    .wait_ms = LONG_MS,
		                    .texts = { { "LEASEHOLD_SITE_TITLE", s->spec->organization },
		                               { "LEASEHOLD_SITE_EMAIL", s->spec->contact_email } } };
	struct str        signin, id;
	enum rc           rc;

	if ((rc = cognito_signin(s, &signin, e)) || (rc = vault_put(s, SECRET_SIGNIN, signin, e)) ||
	    (rc = task_run(s, &order, &id, e)))
		return rc;
	return ecs_redefine(s, e);
}

/* --- archives --- */

static enum rc run(struct site *s, struct task_order order, struct str name, struct str *ret_id, struct err *e)
{
	if (!name.n || name.n > NAME_MAX_BYTES || !str_is_of(name, "a-zA-Z0-9._-"))
		return err_set(e, RC_INVALID, "'%.*s' is not the name of an archive", STR_ARG(name));
	order.name = name;
	order.wait_ms = LONG_MS;
	order.texts[0].name = "LEASEHOLD_ARCHIVE_NAME";
	order.texts[0].value = name;
	return task_run(s, &order, ret_id, e);
}

/* What its task says of the archive's size; -1: nothing yet. */
static enum rc read_size(struct site *s, struct str id, struct str name, int64_t *ret, struct err *e)
{
	struct instance_log_line *lines;
	size_t                    count;
	enum rc rc = logs_read(s, str_format(s->a, "install/" SITE_CONTAINER "/%.*s", STR_ARG(id)), 0, INT64_MAX, LINES,
	                       &lines, &count, e);

	*ret = -1;
	for (size_t i = 0; !rc && i < count; i++) {
		CLEANUP(json_freep) json_t *said = NULL;
		struct str                  of;

		if (lines[i].text.n && lines[i].text.p[0] == '{' && !json_parse(lines[i].text, &said, NULL) &&
		    json_get_text(said, "archive", &of) && str_eq(of, name) && !json_get_number(said, "bytes", -1, ret))
			*ret = -1;
	}
	return rc;
}

enum rc content_archive(struct site *s, struct str name, struct str *ret_outputs, struct err *e)
{
	struct mono began = mono_now();
	struct str  id;
	int64_t     bytes = -1;
	enum rc rc = run(s, (struct task_order){ .family = FAMILY_INSTALL, .what = "archive", .is_once = true }, name,
	                 &id, e);

	while (!rc && !(rc = read_size(s, id, name, &bytes, e)) && bytes <= 0)
		if (mono_now().ms - began.ms > LONG_MS + SITE_WAIT_MS || !site_wait(s, SITE_POLL_MS))
			return err_set(e, RC_UNAVAILABLE, "archive %.*s: its task has not said how large it is",
			               STR_ARG(name));
	if (!rc)
		*ret_outputs = JSON_OF(s->a, member_str("id", name), member_int("bytes", bytes),
		                       member_raw("parts", STR("[\"database\",\"files\"]")),
		                       member_str("bucket", s->x->o.bucket));
	return rc;
}

enum rc content_restore(struct site *s, struct str name, struct err *e)
{
	struct str id;

	return run(s, (struct task_order){ .family = FAMILY_INSTALL, .what = "restore" }, name, &id, e);
}

/* The instance may be long gone. */
enum rc content_drop(struct site *s, struct str name, struct err *e)
{
	struct str id;
	enum rc    rc = run(s, (struct task_order){ .family = FAMILY_DROP, .what = "drop", .is_once = true }, name, &id,
	                    e);

	return rc ? rc : definitions_remove(s, FAMILY_DROP, e);
}

/* --- a new password --- */

static enum rc is_settled(struct site *s, bool *ret, struct err *e)
{
	struct instance_tasks tasks;
	enum rc               rc = ecs_count(s, &tasks, e);

	*ret = tasks.is_healthy && tasks.running == tasks.desired;
	return rc;
}

/* Into the database, beside the old one, then into the secret. If an earlier try came this far, we go on from there:
 * tasks still have the password before it, and the database would forget that one if it got yet another. */
static enum rc begin_rotation(struct site *s, struct str *ret_fresh, struct err *e)
{
	struct str user, old, fresh = password_new(s->a);
	bool       is_begun = false;
	enum rc    rc = vault_read(s, vault_name(s, SECRET_DATABASE), &user, &old, e);

	if (rc || (rc = rds_is_changing(s, old, &is_begun, e)))
		return rc;
	*ret_fresh = is_begun ? old : fresh;
	if (is_begun || (rc = rds_set_password(s, fresh, old, e)))
		return rc;
	return vault_put(s, SECRET_DATABASE, JSON_OF(s->a, member_str("username", user), member_str("password", fresh)),
	                 e);
}

/* Tasks have the old one until each was replaced: until then the database takes both. */
enum rc content_rotate(struct site *s, struct err *e)
{
	struct mono began = mono_now();
	struct str  fresh;
	bool        is_done = false;
	enum rc     rc = begin_rotation(s, &fresh, e);

	if (rc || (rc = ecs_restart(s, e)))
		return rc;
	while (!(rc = is_settled(s, &is_done, e)) && !is_done)
		if (mono_now().ms - began.ms > LONG_MS || !site_wait(s, SITE_POLL_MS))
			return err_set(e, RC_UNAVAILABLE,
			               "not all tasks have the new password yet; the database takes the old one too");
	return rc ? rc : rds_set_password(s, fresh, STR(""), e);
}

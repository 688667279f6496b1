/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cleaner.c - runs that empty an account, in time, and not always.
 *
 * The fate of a run is decided when it starts: how long it takes follows from its key, whether it fails or lies from
 * the switches. So nothing runs in the background: a run is over when its time has passed, and an account is clean once
 * the earliest run that cleans it is over. A run that lies claims success and leaves everything where it is.
 */
#include "providers/sim/cloud_private.h"

struct start {
	const struct sim_cloud_options *options;
	struct str                      account_id, key;
	enum sim_outcome                outcome;

	struct str run_id; /* the answer */
};

/* A second call with the same key finds the first one's run. */
static enum rc start_run(struct session *s, void *arg, struct err *e)
{
	struct start                   *st = arg;
	const struct sim_cloud_options *o = st->options;
	uint64_t                        hash = str_hash(st->key, 0);
	int64_t                         now_ms = session_now(s).ms;
	struct sim_run                  run;
	struct sim_member               member;
	bool                            found;
	enum rc                         rc;

	st->run_id = str_format(session_arena(s), "clean-%016llx", (unsigned long long)hash);
	rc = session_find(s, &sim_run_type, st->run_id, &run, &found, e);
	if (!rc && found && !(str_eq(run.account_id, st->account_id) && str_eq(run.key, st->key)))
		return err_set_code(e, RC_CONFLICT, "IdempotentParameterMismatchException",
		                    "the key %.*s belongs to a run of account %.*s", STR_ARG(st->key),
		                    STR_ARG(run.account_id));
	if (rc || found || (rc = sim_get_member(s, st->account_id, &member, e)))
		return rc;
	run = (struct sim_run){ .id = st->run_id,
		                .key = st->key,
		                .account_id = st->account_id,
		                .started_ms = now_ms,
		                .outcome = st->outcome };
	run.ends_ms = now_ms + o->clean_min_ms + (int64_t)(hash % (uint64_t)(o->clean_max_ms - o->clean_min_ms + 1));
	session_put(s, &sim_run_type, &run);
	if (run.outcome == SIM_CLEANS && (!member.clean_at_ms || member.clean_at_ms > run.ends_ms)) {
		member.clean_at_ms = run.ends_ms;
		session_put(s, &sim_member_type, &member);
	}
	return RC_OK;
}

static enum rc start(struct cleaner *base, struct str account_id, struct str key, struct arena *a,
                     struct str *ret_run_id, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, cleaner);
	struct start      st = { .options = &c->options, .account_id = account_id, .key = key };
	enum rc           rc;

	if ((rc = sim_check_account(account_id, e)) || (rc = sim_check_text("key", key, CLOUD_KEY_MAX, e)) ||
	    (rc = sim_faults_before(c->faults, WORLD_CLEAN, e)))
		return rc;
	if (sim_faults_hit(c->faults, WORLD_CLEAN_FAILS))
		st.outcome = SIM_FAILS;
	else if (sim_faults_hit(c->faults, WORLD_CLEAN_LIES))
		st.outcome = SIM_LIES;
	rc = store_run(c->options.store, start_run, &st, a, e);
	if ((rc = sim_faults_after(c->faults, WORLD_CLEAN, rc, e)))
		return rc;
	*ret_run_id = st.run_id;
	return RC_OK;
}

struct check {
	struct str       run_id;
	struct cloud_run run;
};

static enum rc check_run(struct session *s, void *arg, struct err *e)
{
	struct check  *ch = arg;
	struct sim_run run;
	bool           found;
	enum rc        rc = session_find(s, &sim_run_type, ch->run_id, &run, &found, e);

	if (rc || !found)
		return rc ? rc : err_set(e, RC_NOT_FOUND, "there is no cleaner run %.*s", STR_ARG(ch->run_id));
	ch->run = (struct cloud_run){ .state = CLOUD_SUCCEEDED };
	if (session_now(s).ms < run.ends_ms)
		ch->run.state = CLOUD_RUNNING;
	else if (run.outcome == SIM_FAILS)
		ch->run = (struct cloud_run){ CLOUD_FAILED, STR("3 resources could not be deleted") };
	return RC_OK;
}

static enum rc check(struct cleaner *base, struct str run_id, struct arena *a, struct cloud_run *ret, struct err *e)
{
	struct sim_cloud *c = CONTAINER_OF(base, struct sim_cloud, cleaner);
	struct check      ch = { .run_id = run_id };
	enum rc           rc = sim_call(c, WORLD_CHECK_RUN, check_run, &ch, a, e);

	if (!rc)
		*ret = ch.run;
	return rc;
}

const struct cleaner_ops sim_cleaner_ops = { start, check };

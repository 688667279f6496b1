/* SPDX-License-Identifier: Apache-2.0 */
/*
 * world.c - the simulated cloud from above: its switches, what outsiders do in it, and how it really is.
 *
 * No fault disturbs anything here: the switches must keep working whatever they are set to.
 */
#include "base/buf.h"
#include "base/json.h"
#include "providers/sim/cloud_private.h"

enum { SHOWN_MAX = 1000 }; /* accounts of one OU */

static struct sim_cloud *cloud_of(struct world *w)
{
	return CONTAINER_OF(w, struct sim_cloud, world);
}

static void set_rules(struct world *w, const struct world_rules *rules)
{
	sim_faults_set(cloud_of(w)->faults, rules);
}

static enum rc add_accounts(struct world *w, int64_t count, struct err *e)
{
	if (count < 1 || count > WORLD_ADD_MAX)
		return err_set(e, RC_INVALID, "count must be a whole number from 1 to %d", WORLD_ADD_MAX);
	return sim_add_accounts(cloud_of(w), count, e);
}

/* An OU by its id or its name; what is neither stays as it is, and the move is refused. */
static struct str ou_id(const struct sim_cloud *c, struct str text)
{
	for (int i = 0; i < SIM_OU_COUNT; i++)
		if (str_eq(str_from(sim_ou_names[i]), text))
			return c->ou_ids[i];
	return text;
}

static enum rc move(struct world *w, struct str account_id, struct str from, struct str to, struct err *e)
{
	struct sim_cloud *c = cloud_of(w);
	enum rc           rc;

	if ((rc = sim_check_account(account_id, e)) || (rc = sim_check_text("from", from, CLOUD_ID_MAX, e)) ||
	    (rc = sim_check_text("to", to, CLOUD_ID_MAX, e)))
		return rc;
	return sim_move(c, account_id, ou_id(c, from), ou_id(c, to), true, e);
}

struct rating {
	const struct sim_cloud *cloud;
	struct str              account_id;
	int64_t                 rate;
};

static enum rc set_rate_run(struct session *s, void *arg, struct err *e)
{
	const struct rating *r = arg;
	struct sim_member    member;
	enum rc              rc = sim_get_member(s, r->account_id, &member, e);

	if (rc)
		return rc;
	member.rate = r->rate;
	session_put(s, &sim_member_type, &member);
	return sim_is_billed(sim_find_ou(r->cloud, member.ou_id)) ? sim_note_rate(s, member.id, r->rate, e) : RC_OK;
}

static enum rc set_rate(struct world *w, struct str account_id, int64_t micro_usd, struct err *e)
{
	struct rating r = { cloud_of(w), account_id, micro_usd };
	enum rc       rc = sim_check_account(account_id, e);

	if (!rc && (micro_usd < 0 || micro_usd > WORLD_RATE_MAX_USD * 1000000ll))
		rc = err_set(e, RC_INVALID, "the rate must be from 0 to %d dollars an hour", WORLD_RATE_MAX_USD);
	return rc ? rc : store_run(cloud_of(w)->options.store, set_rate_run, &r, NULL, e);
}

/* --- showing it --- */

struct show {
	const struct sim_cloud *cloud;
	struct world_rules      rules;
	struct world_counts     counts;
	struct json_out         o;
	struct buf             *b;
};

static enum rc put_ou(struct session *s, struct show *sh, enum sim_ou_name ou, struct err *e)
{
	struct value hash = value_text(sh->cloud->ou_ids[ou]);
	struct query q = query_of(&sim_member_type, SIM_MEMBER_BY_OU, hash, SHOWN_MAX);
	struct page  page;
	int64_t      count;
	enum rc      rc;

	if ((rc = session_query(s, &q, &page, e)) ||
	    (rc = session_count(s, &sim_member_type, SIM_MEMBER_BY_OU, hash, &count, e)))
		return rc;
	JSON_PUT(&sh->o, member_object(NULL), member_str("id", sh->cloud->ou_ids[ou]),
	         member_word("name", sim_ou_names[ou]), member_int("count", count), member_list("accounts"));
	for (size_t i = 0; i < page.count; i++) {
		const struct sim_member *m = page_record(&page, &sim_member_type, i);
		bool                     is_clean = m->clean_at_ms && m->clean_at_ms <= session_now(s).ms;

		JSON_PUT(&sh->o, member_object(NULL), member_str("id", m->id), member_str("name", m->name),
		         member_int("dirty", is_clean ? 0 : m->dirty), member_micro("usd_per_hour", m->rate),
		         member_int("moves", m->moves), member_end());
	}
	JSON_PUT(&sh->o, member_list_end(), member_end());
	return RC_OK;
}

static void put_rules(struct json_out *o, const struct world_rules *rules)
{
	json_put_array(o, "faults");
	for (size_t i = 0; i < rules->count; i++) {
		const struct world_rule *r = &rules->rules[i];

		JSON_PUT(o, member_object(NULL), member_word("fault", world_fault_names[r->fault]),
		         member_word("call", r->call == WORLD_ANY_CALL ? "any" : world_call_names[r->call]),
		         member_if_any(
		                 member_word("resource", r->resource ? instance_resource_names[r->resource - 1] : "")),
		         member_int("per_mille", r->per_mille), member_if_any(member_int("count", r->count)),
		         member_if_any(member_time("until", r->until_ms)),
		         member_if(r->fault == WORLD_LATENCY, member_int("latency_ms", r->latency_ms)), member_end());
	}
	json_close_array(o);
}

static void put_figures(struct json_out *o, const char *name, const uint64_t *figures, const char *const *names,
                        int count)
{
	json_put_object(o, name);
	for (int i = 0; i < count; i++)
		if (figures[i])
			json_put_int(o, names[i], (int64_t)figures[i]);
	json_close_object(o);
}

static enum rc write_world(struct session *s, void *arg, struct err *e)
{
	struct show *sh = arg;
	int64_t      events;
	enum rc      rc = session_count(s, &sim_event_type, SIM_EVENT_DUE, value_int(1), &events, e);

	buf_reset(sh->b); /* from scratch, also the second time */
	sh->o = JSON_OUT(sh->b);
	JSON_PUT(&sh->o, member_object(NULL), member_str("root", sh->cloud->ou_ids[SIM_ROOT]), member_list("ous"));
	for (int i = SIM_ROOT + 1; !rc && i < SIM_OU_COUNT; i++)
		rc = put_ou(s, sh, (enum sim_ou_name)i, e);
	if (rc)
		return rc;
	json_close_array(&sh->o);
	if ((rc = sim_put_tenants(s, &sh->o, e)))
		return rc;
	put_rules(&sh->o, &sh->rules);
	put_figures(&sh->o, "calls", sh->counts.calls, world_call_names, WORLD_CALL_COUNT);
	put_figures(&sh->o, "refused", sh->counts.refused, world_call_names, WORLD_CALL_COUNT);
	put_figures(&sh->o, "injected", sh->counts.faults, world_fault_names, WORLD_FAULT_COUNT);
	JSON_PUT(&sh->o, member_int("latency_ms", (int64_t)sh->counts.latency_ms), member_int("events_waiting", events),
	         member_end());
	return sh->b->is_full ? err_set(e, RC_TOO_LARGE, "the world does not fit into %zu bytes", sh->b->max) : RC_OK;
}

static enum rc show(struct world *w, struct buf *ret, struct err *e)
{
	struct sim_cloud *c = cloud_of(w);
	struct show       sh = {
		      .cloud = c, .b = ret, .rules = sim_faults_get(c->faults), .counts = sim_faults_counts(c->faults)
	};

	return store_read(c->options.store, write_world, &sh, NULL, e);
}

const struct world_ops sim_world_ops = { show, set_rules, add_accounts, move, set_rate };

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leases_model.c - what must be so of leases and accounts, by what was seen to be committed and by the cloud's own
 * truth.
 *
 * Promises checked here, at every commit:
 *   no account has two live leases; a lease in use and its account name each other               [check_pair()]
 *   nobody has more leases than he may, and the counter says how many he has                     [check_owner()]
 *   no lease ends without its account going to CleanUp, Quarantine or out, in the same commit    [check_left()]
 *   no account leaves CleanUp unless enough cleanups in a row succeeded after its last lease     [check_cleaned()]
 *   a lease becomes Active only when its owner really has access                                 [check_begun()]
 *   a crossing is told at most once                                                              [count_told()]
 *   and exactly once before an end that nobody has changed                                       [check_ended()]
 *   who is first in line is served first                                                         [check_line()]
 *   a status changes only as the domain's tables say, and with its event           [check_step(), check_news()]
 * Now and then: each account is in one status, the counts add up.                   [leases_check_counts()]
 * When all is quiet: the organisation and the grants are as the records say, nobody is on the way, no lease is
 * overdue, nobody waits while an account is free.                                    [leases_check_quiet()]
 *
 * An index may be some seconds behind where the seed says so: who has just joined the line may then be overlooked.
 */
#include "leases.h"

#include "base/arena.h"
#include "kernel/event.h"
#include "kernel/records.h"
#include "model.h"
#include "truth/sim_truth.h"
#include "service/hold/holds.h"
#include "service/record/lease_records.h"
#include "service/pool/accounts.h"
#include "sim.h"
#include "store/session.h"

struct lent_account *lent_account(struct leases *l, struct str id)
{
	for (int i = 0; i < LENT_ACCOUNTS; i++)
		if (str_eq(l->accounts[i].id, id))
			return &l->accounts[i];
	return NULL;
}

static struct known_person *person_of(struct leases *l, struct str key)
{
	for (int i = 0; i < PEOPLE; i++)
		if (str_eq(l->people[i].key, key))
			return &l->people[i];
	return NULL;
}

static struct known_lease *lease_of(struct sim *sim, struct str uuid)
{
	struct leases      *l = sim->leases;
	struct known_lease *k = names_find(&l->leases, uuid);

	if (k)
		return k;
	k = arena_alloc(&sim->arena, sizeof(*k));
	k->uuid = str_dup(&sim->arena, uuid);
	k->next = l->first;
	l->first = k;
	names_add(&l->leases, k->uuid, k);
	return k;
}

static bool is_in_use(enum lease_status status)
{
	return lease_group(status) == LEASE_GROUP_MONITORED;
}

static const struct session_entry *change_of(const struct session *s, const struct record_type *type, struct str key)
{
	const struct session_entry *entry = NULL;

	while ((entry = session_next_change(s, entry)) && !(entry->type == type && str_eq(entry->key, key)))
		;
	return entry;
}

static bool has_news(const struct session *s, const char *type, const char *kind, struct str key)
{
	return commit_event(s, str_from(type), str_format(s->arena, "%s/%.*s", kind, STR_ARG(key)), STR("")) != NULL;
}

/* --- a lease --- */

/* What may be told of a change to this status. */
static const char *const news[LEASE_STATUS_COUNT][3] = {
	[LEASE_PENDING_APPROVAL] = { "LeaseRequested", "LeaseQueued", "LeaseProvisioningFailed" },
	[LEASE_APPROVAL_DENIED] = { "LeaseDenied", "LeaseWithdrawn" },
	[LEASE_PROVISIONING] = { "LeaseProvisioningStarted" },
	[LEASE_ACTIVE] = { "LeaseApproved", "LeaseUnfrozen" },
	[LEASE_FROZEN] = { "LeaseFrozen" },
	[LEASE_EXPIRED] = { "LeaseTerminated" },
	[LEASE_BUDGET_EXCEEDED] = { "LeaseTerminated" },
	[LEASE_MANUALLY_TERMINATED] = { "LeaseTerminated" },
	[LEASE_ACCOUNT_QUARANTINED] = { "LeaseTerminated" },
	[LEASE_EJECTED] = { "LeaseTerminated" },
	[LEASE_PROVISIONING_FAILED] = { "LeaseTerminated" },
};

static void check_news(struct sim *sim, struct session *s, const struct lease *after)
{
	int told = 0;

	for (size_t i = 0; i < ARRAY_LEN(news[0]) && news[after->status][i]; i++)
		told += has_news(s, news[after->status][i], "lease", after->uuid);
	if (told != 1)
		sim_broken(sim, "no event is lost", "lease %.*s becomes %s with %d events of it in the commit",
		           STR_ARG(after->uuid), lease_status_names[after->status], told);
}

static void check_step(struct sim *sim, const struct known_lease *k, enum lease_status to)
{
	for (int on = 0; on < LEASE_EVENT_COUNT; on++) {
		const struct lease_step *step = lease_step(k->status, (enum lease_event)on);

		if (step && step->to == to)
			return;
	}
	sim_broken(sim, "a lease changes only as its table says", "lease %.*s goes from %s to %s", STR_ARG(k->uuid),
	           lease_status_names[k->status], lease_status_names[to]);
}

/* The account that a lease in use leaves behind. */
static void check_left(struct sim *sim, const struct session *s, const struct known_lease *k)
{
	const struct session_entry *entry = change_of(s, &account_type, k->account->id);
	const struct account       *after = entry ? entry->after : NULL;

	if (entry && !after)
		return; /* gone from the pool */
	if (!after || after->lease_uuid.n ||
	    (after->status != ACCOUNT_CLEANUP && after->status != ACCOUNT_QUARANTINE && after->status != ACCOUNT_EXIT))
		sim_broken(sim, "no lease ends without its account being cleaned or set aside",
		           "lease %.*s has ended, its account %.*s is %s", STR_ARG(k->uuid), STR_ARG(k->account->id),
		           after ? account_status_names[after->status] : "left as it was");
}

static int count_users(struct sim *sim, const struct lent_account *k, struct str email)
{
	struct access           *x = sim->leases->real.access;
	struct cloud_assignment *list;
	struct arena             a = { 0 };
	size_t                   count = 0;
	int                      users = 0;

	while (x->ops->list(x, k->id, &a, &list, &count, NULL))
		; /* the cloud may be out of order: ask until it is not */
	for (size_t i = 0; i < count; i++)
		users += list[i].kind == CLOUD_USER && (!email.n || str_eq_nocase(list[i].principal, email));
	arena_fini(&a);
	return users;
}

static struct sim_truth truth_of(struct sim *sim, const struct lent_account *k)
{
	struct sim_truth truth = { 0 };

	if (sim_cloud_inspect(sim->leases->cloud, k->id, &truth, NULL))
		abort(); /* the truth is not disturbed */
	return truth;
}

static void check_begun(struct sim *sim, const struct known_lease *k)
{
	if (!count_users(sim, k->account, k->owner->email))
		sim_broken(sim, "nobody is Active before access works", "lease %.*s is Active, its owner has no access",
		           STR_ARG(k->uuid));
	if (!k->account->is_moved && truth_of(sim, k->account).ou != SIM_OU_ACTIVE)
		sim_broken(sim, "nobody is Active before access works",
		           "lease %.*s is Active, its account is elsewhere", STR_ARG(k->uuid));
}

/* Where clocks jump, a crossing may come together with the end. */
static void check_ended(struct sim *sim, const struct known_lease *k)
{
	if (k->status == LEASE_EXPIRED && k->has_warning && !sim->profile.jump && !k->told_duration)
		sim_broken(sim, "each crossing of a threshold is told",
		           "lease %.*s has expired, and nobody was told before", STR_ARG(k->uuid));
}

/* Does this commit take it out of the line? Records of one commit are seen in no order that means anything. */
static bool is_served_too(const struct session *s, const struct known_lease *k)
{
	const struct session_entry *entry = change_of(s, &lease_type, k->uuid);
	const struct lease         *after = entry ? entry->after : NULL;

	return after && !after->queued_ms;
}

/* An earlier one in line, who could be known of when this one joined, and waits on. */
static const struct known_lease *earlier_in_line(const struct sim *sim, const struct session *s,
                                                 const struct known_lease *than)
{
	int64_t place = than->place ? than->place : sim->leases->commits;
	int64_t known_ms = (than->place ? than->joined_ms : sim->lived_ms) - (sim->profile.lag ? 2 * LAG_MS : 0);

	for (const struct known_lease *k = sim->leases->first; k; k = k->next)
		if (k != than && k->is_there && k->place && k->place < place && k->joined_ms <= known_ms &&
		    !is_served_too(s, k))
			return k;
	return NULL;
}

static void check_line(struct sim *sim, const struct session *s, const struct known_lease *k)
{
	const struct known_lease *other = earlier_in_line(sim, s, k);

	if (other)
		sim_broken(sim, "who is first in line is served first", "lease %.*s gets an account before %.*s",
		           STR_ARG(k->uuid), STR_ARG(other->uuid));
}

static void note_place(struct sim *sim, struct known_lease *k, const struct lease *after)
{
	if (!after->queued_ms) {
		k->place = 0;
	} else if (!k->place) {
		k->place = sim->leases->commits;
		k->joined_ms = sim->lived_ms;
	}
}

static void note_status(struct sim *sim, struct session *s, struct known_lease *k, const struct lease *after)
{
	struct leases       *l = sim->leases;
	struct lent_account *left = k->account;

	if (k->is_there)
		check_step(sim, k, after->status);
	check_news(sim, s, after);
	if (k->is_there && is_in_use(k->status) && !is_in_use(after->status)) {
		check_left(sim, s, k);
		left->live--;
		left->era++;
		left->good_runs = 0;
		k->account = NULL;
	}
	if (is_in_use(after->status) && !k->account) {
		k->account = lent_account(l, after->account_id);
		k->account->live++;
		k->account->is_moved = false;
		check_line(sim, s, k);
	}
	if (after->status == LEASE_ACTIVE && k->is_there && k->status == LEASE_PROVISIONING)
		check_begun(sim, k);
	k->owner->live += lease_is_live(after->status) - (k->is_there && lease_is_live(k->status));
	k->status = after->status;
	sim_trace(sim, NULL, "lease %.*s is %s", STR_ARG(k->uuid), lease_status_names[k->status]);
	check_ended(sim, k);
}

static void observe_lease(struct sim *sim, struct session *s, const struct session_entry *entry)
{
	struct known_lease *k = lease_of(sim, entry->key);
	const struct lease *after = entry->after;

	if (!after) {
		if (lease_is_live(k->status))
			sim_broken(sim, "no lease is removed before its end", "lease %.*s is removed while it is %s",
			           STR_ARG(k->uuid), lease_status_names[k->status]);
		k->is_there = false;
		return;
	}
	if (!k->owner)
		k->owner = person_of(sim->leases, after->user_key);
	if (!k->is_there)
		k->has_warning = after->duration_thresholds.n > 0;
	if (!k->is_there || k->status != after->status)
		note_status(sim, s, k, after);
	note_place(sim, k, after);
	k->expires_ms = after->expires_ms;
	k->is_there = true;
}

/* --- what is told --- */

static void count_told(struct sim *sim, const struct event *event)
{
	struct str          uuid = event->subject;
	struct known_lease *k;
	int                *told = NULL;

	if (!str_eq(str_cut(&uuid, '/'), STR("lease")) || !(k = names_find(&sim->leases->leases, uuid)))
		return;
	if (str_eq(event->type, STR("LeaseEdited"))) { /* what was crossed may be crossed again */
		k->told_budget = k->told_duration = k->told_freeze = 0;
		k->has_warning = false;
	}
	if (str_eq(event->type, STR("LeaseBudgetThresholdAlert")))
		told = &k->told_budget;
	if (str_eq(event->type, STR("LeaseDurationThresholdAlert")))
		told = &k->told_duration;
	if (str_eq(event->type, STR("LeaseFreezingThresholdAlert")))
		told = &k->told_freeze;
	if (told)
		sim_trace(sim, NULL, "%.*s of lease %.*s", STR_ARG(event->type), STR_ARG(uuid));
	if (told && ++*told > 1)
		sim_broken(sim, "each crossing of a threshold is told once", "lease %.*s: %.*s is told again",
		           STR_ARG(uuid), STR_ARG(event->type));
}

/* --- an account --- */

/* Free for no longer than the commit: an outsider has moved a resting account to where free ones are, a scan has seen
 * it there, and the saga that should have moved it back was aborted. When its last hold closes nothing is left to move,
 * and the line takes it at once. */
static bool is_freed_and_lent(const struct lent_account *k, const struct account *after)
{
	return k->is_there && k->status == ACCOUNT_COOLDOWN && after->status == ACCOUNT_ACTIVE && k->is_placed_free;
}

static void check_account_step(struct sim *sim, const struct lent_account *k, const struct account *after)
{
	for (int on = 0; on < ACCOUNT_EVENT_COUNT; on++) {
		const struct account_step *step = account_step(k->status, (enum account_event)on);

		if (step && step->to == after->status)
			return;
	}
	if (k->status == ACCOUNT_CLEANUP && (after->status == ACCOUNT_AVAILABLE || after->status == ACCOUNT_EXIT))
		return; /* Cooldown lasted no longer than the commit */
	if (is_freed_and_lent(k, after))
		return;
	if (after->status != k->status)
		sim_broken(sim, "an account changes only as its table says", "account %.*s goes from %s to %s",
		           STR_ARG(k->id), account_status_names[k->status], account_status_names[after->status]);
}

static void check_cleaned(struct sim *sim, const struct session *s, const struct lent_account *k)
{
	const struct leases *l = sim->leases;

	if (!has_news(s, "AccountCleanupSucceeded", "account", k->id) || k->good_runs < l->policy.clean_successes)
		sim_broken(sim, "no account is free before it was cleaned after its last lease",
		           "account %.*s rests after %lld successful runs", STR_ARG(k->id), (long long)k->good_runs);
	if (!l->lies && !sim->profile.jump && !k->is_moved && truth_of(sim, k).dirty)
		sim_broken(sim, "no account is free before it was cleaned after its last lease",
		           "account %.*s rests, and something is left in it", STR_ARG(k->id));
}

static bool is_freed(const struct lent_account *k, const struct account *after)
{
	return (after->status == ACCOUNT_AVAILABLE && !(k->is_there && k->status == ACCOUNT_AVAILABLE)) ||
	       is_freed_and_lent(k, after);
}

static void observe_account(struct sim *sim, const struct session *s, const struct session_entry *entry)
{
	struct lent_account  *k = lent_account(sim->leases, entry->key);
	const struct account *after = entry->after;

	if (after && k->is_there)
		check_account_step(sim, k, after);
	if (after && k->is_there && k->status == ACCOUNT_CLEANUP &&
	    (after->status == ACCOUNT_COOLDOWN || after->status == ACCOUNT_AVAILABLE))
		check_cleaned(sim, s, k);
	if (after && !sim->leases->is_seeding && is_freed(k, after))
		holds_check_freed(sim, k);
	if (after && after->status == ACCOUNT_CLEANUP && !(k->is_there && k->status == ACCOUNT_CLEANUP)) {
		k->good_runs = 0;
		k->era++;
		k->hold_records = 0;
	}
	k->is_there = after != NULL;
	if (!after) {
		k->lease_uuid = k->holder = STR("");
		k->is_following = false;
		return;
	}
	if (k->status != after->status)
		sim_trace(sim, NULL, "account %.*s is %s", STR_ARG(k->id), account_status_names[after->status]);
	k->status = after->status;
	k->is_following = after->is_following;
	k->is_placed_free = str_eq(after->placed_ou, str_from(account_ou_names[ACCOUNT_AVAILABLE]));
	if (!str_eq(k->lease_uuid, after->lease_uuid))
		k->lease_uuid = str_dup(&sim->arena, after->lease_uuid);
	if (!str_eq(k->holder, after->holder))
		k->holder = str_dup(&sim->arena, after->holder);
}

/* --- together --- */

static enum account_status wanted_status(enum lease_status status)
{
	return status == LEASE_FROZEN ? ACCOUNT_FROZEN : ACCOUNT_ACTIVE;
}

static void check_pair(struct sim *sim, const struct lent_account *k)
{
	const struct known_lease *lease = k->lease_uuid.n ? names_find(&sim->leases->leases, k->lease_uuid) : NULL;

	if (k->live > 1)
		sim_broken(sim, "no account has two live leases", "account %.*s has %d", STR_ARG(k->id), k->live);
	if (k->live != (lease && lease->account == k) || (k->lease_uuid.n && !k->live))
		sim_broken(sim, "a lease in use and its account name each other",
		           "account %.*s names lease \"%.*s\", %d leases name it", STR_ARG(k->id),
		           STR_ARG(k->lease_uuid), k->live);
	else if (k->live && k->status != wanted_status(lease->status))
		sim_broken(sim, "an account is as its lease wants it", "account %.*s is %s, its lease is %s",
		           STR_ARG(k->id), account_status_names[k->status], lease_status_names[lease->status]);
}

static void check_owner(struct sim *sim, const struct known_person *p)
{
	if (p->live > LEASES_EACH)
		sim_broken(sim, "nobody has more leases than he may", "%.*s has %lld", STR_ARG(p->email),
		           (long long)p->live);
	if (p->live != p->counted)
		sim_broken(sim, "the counter says how many leases somebody has", "%.*s has %lld, it says %lld",
		           STR_ARG(p->email), (long long)p->live, (long long)p->counted);
}

void leases_observe(struct sim *sim, struct session *s)
{
	struct leases *l = sim->leases;
	bool           is_ours = false;

	l->commits++;
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &hold_type)
			holds_observe(sim, s, entry);
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));) {
		if (entry->type == &lease_type)
			observe_lease(sim, s, entry);
		else if (entry->type == &account_type)
			observe_account(sim, s, entry);
		else if (entry->type == &lessee_type)
			person_of(l, entry->key)->counted = entry->after ? ((const struct lessee *)entry->after)->live
			                                                 : 0;
		is_ours |= entry->type == &lease_type || entry->type == &account_type || entry->type == &lessee_type;
	}
	for (const struct session_entry *entry = NULL; (entry = session_next_change(s, entry));)
		if (entry->type == &event_type && entry->after && !entry->before)
			count_told(sim, entry->after);
	if (!is_ours)
		return;
	for (int i = 0; i < LENT_ACCOUNTS; i++) {
		check_pair(sim, &l->accounts[i]);
		holds_check_rest(sim, &l->accounts[i]);
	}
	for (int i = 0; i < PEOPLE; i++)
		check_owner(sim, &l->people[i]);
}

/* --- now and then --- */

void leases_check_counts(struct sim_node *n)
{
	struct sim  *sim = n->sim;
	int64_t      counted[ACCOUNT_STATUS_COUNT] = { 0 }, known[ACCOUNT_STATUS_COUNT] = { 0 };
	struct arena a = { 0 };

	if (!sim->leases)
		return;
	if (!node_read(n, account_counts, counted, &a, NULL)) {
		for (int i = 0; i < LENT_ACCOUNTS; i++)
			if (sim->leases->accounts[i].is_there)
				known[sim->leases->accounts[i].status]++;
		for (int i = 0; i < ACCOUNT_STATUS_COUNT; i++)
			if (known[i] != counted[i])
				sim_broken(sim, "units are conserved",
				           "%lld accounts are counted as %s, there are %lld", (long long)counted[i],
				           account_status_names[i], (long long)known[i]);
	}
	arena_fini(&a);
}

static void check_lease_at_rest(struct sim *sim, const struct known_lease *k)
{
	if (!k->is_there)
		return;
	if (k->status == LEASE_PROVISIONING)
		sim_broken(sim, "no lease stays in Provisioning", "lease %.*s does", STR_ARG(k->uuid));
	if (is_in_use(k->status) && k->expires_ms && k->expires_ms < sim_now(sim) - HOUR_MS)
		sim_broken(sim, "a lease ends in time", "lease %.*s is overdue and still %s", STR_ARG(k->uuid),
		           lease_status_names[k->status]);
}

static const enum sim_ou_name ous[ACCOUNT_STATUS_COUNT] = {
	[ACCOUNT_AVAILABLE] = SIM_OU_AVAILABLE,   [ACCOUNT_ACTIVE] = SIM_OU_ACTIVE, [ACCOUNT_CLEANUP] = SIM_OU_CLEANUP,
	[ACCOUNT_QUARANTINE] = SIM_OU_QUARANTINE, [ACCOUNT_FROZEN] = SIM_OU_FROZEN, [ACCOUNT_EXIT] = SIM_OU_EXIT,
	[ACCOUNT_COOLDOWN] = SIM_OU_QUARANTINE,
};

static void check_account_at_rest(struct sim *sim, const struct lent_account *k)
{
	enum sim_ou_name ou = truth_of(sim, k).ou;
	int              users = count_users(sim, k, STR("")), wanted = k->status == ACCOUNT_ACTIVE;

	if (!k->is_there) {
		if (ou != SIM_OU_ENTRY && ou != SIM_OU_EXIT)
			sim_broken(sim, "the organisation is as the records say",
			           "account %.*s is in the pool's OU %d, and not known", STR_ARG(k->id), (int)ou);
		return;
	}
	if (k->is_following || k->status == ACCOUNT_CLEANUP || k->status == ACCOUNT_EXIT)
		sim_broken(sim, "every account arrives", "account %.*s is still %s%s", STR_ARG(k->id),
		           account_status_names[k->status], k->is_following ? ", and followed" : "");
	if (ou != ous[k->status])
		sim_broken(sim, "the organisation is as the records say", "account %.*s is %s, and in OU %d",
		           STR_ARG(k->id), account_status_names[k->status], (int)ou);
	if (users != wanted || (wanted && !count_users(sim, k, k->holder)))
		sim_broken(sim, "the grants are as the records say", "account %.*s is %s, and %d people have access",
		           STR_ARG(k->id), account_status_names[k->status], users);
}

void leases_check_quiet(struct sim_node *n)
{
	struct sim *sim = n->sim;
	bool        has_free = false;

	if (!sim->leases)
		return;
	leases_check_counts(n);
	holds_check_quiet(sim);
	for (int i = 0; i < LENT_ACCOUNTS; i++) {
		const struct lent_account *k = &sim->leases->accounts[i];

		check_account_at_rest(sim, k);
		has_free |= k->is_there && k->status == ACCOUNT_AVAILABLE;
	}
	for (const struct known_lease *k = sim->leases->first; k; k = k->next) {
		check_lease_at_rest(sim, k);
		if (has_free && k->is_there && k->place)
			sim_broken(sim, "nobody waits while an account is free", "lease %.*s does", STR_ARG(k->uuid));
	}
}

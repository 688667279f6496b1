/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bank.c - operations on accounts, and the two queues that carry their events.
 *
 * One operation is one transaction: it changes an account, emits an event, arms or cancels the account's timer and
 * may start a saga. The ledger handles events inside the store and notes each one; the courier calls a receiver that
 * is the model itself. One account is poisoned: its deliveries always fail, until it is healed at the end.
 */
#include "bank.h"

#include "base/arena.h"
#include "kernel/event.h"
#include "kernel/saga.h"
#include "kernel/timer.h"
#include "model.h"
#include "sagas.h"
#include "service/jobs/jobs.h"
#include "sim.h"
#include "store/record_rows.h"
#include "store/session.h"

enum { DETAIL_HEAD = sizeof("{\"due\":") - 1, DEAD_PAGE = 5 };

/* clang-format off */
static const struct record_field account_fields[] = {
	[ACCOUNT_F_ID]       = { TEXT(bank_account, id, SUBJECT_MAX) },
	[ACCOUNT_F_BALANCE]  = { INT(bank_account, balance) },
	[ACCOUNT_F_CHANGES]  = { INT(bank_account, changes) },
	[ACCOUNT_F_DEADLINE] = { INT(bank_account, deadline_ms) },
	[ACCOUNT_F_LAST_OP]  = { INT(bank_account, last_op) },
};
static const struct record_field effect_fields[] = {
	[EFFECT_F_ID]      = { TEXT(bank_effect, id, KERNEL_ID_SIZE) },
	[EFFECT_F_SUBJECT] = { TEXT(bank_effect, subject, SUBJECT_MAX) },
	[EFFECT_F_COUNT]   = { INT(bank_effect, count) },
};

const struct record_type bank_account_type = {
	.name = "bank_account", .size = sizeof(struct bank_account),
	.fields = account_fields, .field_count = ARRAY_LEN(account_fields),
	.key = ACCOUNT_F_ID, .version_offset = offsetof(struct bank_account, version),
};
const struct record_type bank_effect_type = {
	.name = "effect", .size = sizeof(struct bank_effect),
	.fields = effect_fields, .field_count = ARRAY_LEN(effect_fields),
	.key = EFFECT_F_ID, .version_offset = offsetof(struct bank_effect, version),
};

const struct route bank_routes[] = {
	{ "Balance*",  "ledger"  },
	{ "Deadline*", "ledger"  },
	{ "world:*",   "ledger"  },
	{ "Balance*",  "courier" },
	{ "Deadline*", "courier" },
	{ "Saga*",     "courier" },
	{ "world:*",   "courier" },
	{ "cloudtrail:*", "ledger" },
	{ EVENT_JOB_DUE, JOBS_QUEUE },
	{ EVENT_JOB_REQUESTED, JOBS_QUEUE },
};
/* clang-format on */
const size_t bank_route_count = ARRAY_LEN(bank_routes);

static struct str poisoned_subject(void)
{
	return STR("account/0");
}

/* --- the ledger: handles inside the store --- */

static enum rc note_effect(struct session *s, const struct event *event, struct err *e)
{
	struct bank_effect effect = { .id = event->id, .subject = event->subject };
	enum rc            rc = session_get(s, &bank_effect_type, event->id, &effect, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "effect cannot be read");
	effect.count++;
	session_put(s, &bank_effect_type, &effect);
	return RC_OK;
}

/* The account's time is up, unless it was given another deadline meanwhile. */
static enum rc end_deadline(struct session *s, const struct event *event, struct err *e)
{
	struct bank_account account;
	int64_t             due_ms;
	enum rc             rc = session_get(s, &bank_account_type, event->subject, &account, e);

	if (rc)
		return rc;
	if (!str_to_int(str_of(event->detail.p + DETAIL_HEAD, event->detail.n - DETAIL_HEAD - 1), 0, INT64_MAX,
	                &due_ms))
		return err_set(e, RC_CORRUPT, "the deadline is no number");
	if (account.deadline_ms != due_ms)
		return RC_OK;
	account.deadline_ms = 0;
	session_put(s, &bank_account_type, &account);
	return sagas_start(s, event->id, event->subject, due_ms, e);
}

static enum rc enter_in_ledger(struct session *s, const struct delivery *d, void *arg, struct err *e)
{
	struct sim *sim = arg;
	enum rc     rc = note_effect(s, &d->event, e);

	if (!rc && str_eq(d->event.type, STR("DeadlineReached")))
		rc = end_deadline(s, &d->event, e);
	if (rc)
		return rc;
	if (!sim->bank->is_healed && str_eq(d->event.subject, poisoned_subject()))
		return err_set(e, RC_INTERNAL, "simulated: poison");
	if (sim_fault(sim, SIM_HANDLER_FAILED, sim->profile.call))
		return err_set(e, RC_INTERNAL, "simulated: the handler failed");
	return RC_OK;
}

/* --- the courier: calls --- */

static enum rc call_receiver(struct call *c, struct err *e)
{
	struct sim *sim = c->arg;
	struct str  id = c->delivery->event.id;

	sim_call_takes(sim, chance_below(&sim->chance, chance_is(&sim->chance, 10) ? 200000 : 2000));
	if (chance_is(&sim->chance, 50) && !c->go_on(c))
		return err_set(e, RC_UNAVAILABLE, "simulated: told to stop");
	if (!sim->bank->is_healed && str_eq(c->delivery->event.subject, poisoned_subject()))
		return err_set(e, RC_UNAVAILABLE, "simulated: poison");
	if (sim_fault(sim, SIM_CALL_FAILED, sim->profile.call))
		return err_set(e, RC_UNAVAILABLE, "simulated: the receiver is not there");
	model_seen(sim, BANK_COURIER, id);
	if (sim_fault(sim, SIM_CALL_ANSWER_LOST, sim->profile.call))
		return err_set(e, RC_TIMEOUT, "simulated: received, but the answer was lost");
	return RC_OK;
}

void bank_open(struct sim *sim)
{
	struct bank *b = arena_alloc(&sim->arena, sizeof(*b));

	b->queues[BANK_LEDGER] = (struct queue){ .name = "ledger", .handle = enter_in_ledger, .arg = sim };
	b->queues[BANK_COURIER] = (struct queue){ .name = "courier", .call = call_receiver, .arg = sim };
	sim->bank = b;
}

/* --- operations --- */

struct operation {
	int64_t    number;
	struct str id;
	int64_t    amount;
	int64_t    arm_ms;    /* from now; 0: not */
	bool       is_disarm; /* cancel the timer */
	bool       is_start;  /* start a saga */
};

static enum rc set_deadline(struct session *s, const struct operation *op, struct bank_account *account, struct err *e)
{
	struct timer timer = { .name = op->id, .type = STR("DeadlineReached"), .subject = op->id };

	if (op->is_disarm) {
		account->deadline_ms = 0;
		return session_disarm(s, op->id, e);
	}
	if (!op->arm_ms)
		return RC_OK;
	timer.due_ms = account->deadline_ms = session_now(s).ms + op->arm_ms;
	timer.detail = str_format(session_arena(s), "{\"due\":%lld}", (long long)timer.due_ms);
	return session_arm(s, &timer, e);
}

static enum rc operate(struct session *s, void *arg, struct err *e)
{
	const struct operation *op = arg;
	struct bank_account     account = { .id = op->id };
	struct event            event = { .type = STR("BalanceChanged"), .subject = op->id, .actor = STR("teller") };
	enum rc                 rc = session_get(s, &bank_account_type, op->id, &account, NULL);

	if (rc && rc != RC_NOT_FOUND)
		return err_set(e, rc, "account cannot be read");
	account.balance += op->amount;
	account.changes++;
	account.last_op = op->number;
	if ((rc = set_deadline(s, op, &account, e)))
		return rc;
	session_put(s, &bank_account_type, &account);
	event.detail = str_format(session_arena(s), "{\"changes\":%lld}", (long long)account.changes);
	if ((rc = session_emit(s, &event, e)))
		return rc;
	if (op->is_start)
		return sagas_start(s, str_format(session_arena(s), "op-%lld", (long long)op->number), op->id,
		                   op->number, e);
	return RC_OK;
}

void bank_operate(struct sim_node *n)
{
	struct sim      *sim = n->sim;
	struct arena     a = { 0 };
	int              which = (int)chance_below(&sim->chance, BANK_ACCOUNTS);
	struct operation op = { .number = ++sim->bank->last_op, .id = str_format(&a, "account/%d", which) };
	struct err       e = { 0 };
	enum rc          rc;

	op.amount = chance_from_to(&sim->chance, -50, 100);
	if (chance_is(&sim->chance, 300))
		op.arm_ms = chance_from_to(&sim->chance, 1000, sim_paced(sim, 20 * HOUR_MS));
	else
		op.is_disarm = chance_is(&sim->chance, 100);
	op.is_start = chance_is(&sim->chance, 200);
	rc = node_run(n, operate, &op, &a, &e);
	sim_trace(sim, n, "operation %lld on %.*s%s%s%s: %s", (long long)op.number, STR_ARG(op.id),
	          op.arm_ms ? ", timer armed" : "", op.is_disarm ? ", timer cancelled" : "",
	          op.is_start ? ", saga started" : "", rc ? e.msg : "ok");
	if (!rc && sim->model->accounts[which].last_op != op.number)
		sim_broken(sim, "what was answered is stored", "operation %lld was answered, but not stored",
		           (long long)op.number);
	arena_fini(&a);
}

/* --- operators --- */

static void treat_dead_letter(struct sim_node *n, const struct dead *dead, bool is_dropped, struct arena *a)
{
	struct sim      *sim = n->sim;
	struct dead_call c = { .id = dead->id, .actor = STR("operator"), .reason = STR("simulated") };
	struct err       e = { 0 };
	struct str       outer = sim->model->dropping; /* of a step that this one came in between of */
	enum rc          rc;

	sim->model->dropping = is_dropped ? dead->id : STR("");
	rc = node_run(n, is_dropped ? dead_drop : dead_replay, &c, a, &e);
	if (rc == RC_CONFLICT) { /* its event has left the log: all that can be done */
		sim->model->dropping = dead->id;
		rc = node_run(n, dead_drop, &c, a, &e);
	}
	sim->model->dropping = outer;
	sim_trace(sim, n, "operator %s dead letter of %.*s in %.*s: %s", is_dropped ? "drops" : "replays",
	          STR_ARG(dead->subject), STR_ARG(dead->queue), rc ? e.msg : "ok");
}

static void hurry_timer(struct sim_node *n, struct arena *a)
{
	struct sim       *sim = n->sim;
	struct timer_list l = { .prefix = STR("account/"), .limit = DEAD_PAGE };
	struct timer_call c = { .actor = STR("operator") };
	bool              is_cancel = chance_is(&sim->chance, 300);
	struct err        e = { 0 };
	enum rc           rc;

	if (node_read(n, timer_list, &l, a, NULL) || !l.page.count)
		return;
	c.name = ((struct timer *)page_record(&l.page, &timer_type,
	                                      (size_t)chance_below(&sim->chance, (int64_t)l.page.count)))
	                 ->name;
	rc = node_run(n, is_cancel ? timer_cancel : timer_fire_now, &c, a, &e);
	sim_trace(sim, n, "operator %s timer %.*s: %s", is_cancel ? "cancels" : "fires", STR_ARG(c.name),
	          rc ? e.msg : "ok");
}

void bank_operator(struct sim_node *n)
{
	struct sim      *sim = n->sim;
	struct dead_list l = { .limit = DEAD_PAGE };
	struct arena     a = { 0 };

	if (chance_is(&sim->chance, 200))
		hurry_timer(n, &a);
	else if (!node_read(n, dead_list, &l, &a, NULL) && l.page.count)
		treat_dead_letter(n,
		                  page_record(&l.page, &dead_type,
		                              (size_t)chance_below(&sim->chance, (int64_t)l.page.count)),
		                  chance_is(&sim->chance, 300), &a);
	arena_fini(&a);
}

bool bank_replay_all(struct sim_node *n)
{
	struct dead_list l = { .limit = QUERY_LIMIT_MAX };
	struct arena     a = { 0 };
	size_t           count = 0;

	if (!node_read(n, dead_list, &l, &a, NULL))
		for (count = 0; count < l.page.count; count++)
			treat_dead_letter(n, page_record(&l.page, &dead_type, count), false, &a);
	arena_fini(&a);
	return count > 0;
}

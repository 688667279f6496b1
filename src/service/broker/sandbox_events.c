/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox_events.c - the events of the pool.
 *
 * Type names and what each detail says are rows of SANDBOX_NEWS_TABLE; the rest is the same for all. This is on the
 * way of every claim, so the detail is written on the stack and copied once into the session's arena.
 */
#include "service/broker/sandbox_events.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "service/broker/records.h"
#include "store/session.h"

/* Every text of the detail, should each byte need six ("\u001f"), the names of the members and the figures. */
enum {
	TEXTS_MAX = SANDBOX_ID_MAX + SANDBOX_NAME_MAX + SANDBOX_EXTERNAL_ID_MAX + SANDBOX_OWNER_MAX + SANDBOX_TEXT_MAX,
	NEWS_DETAIL_MAX = 6 * TEXTS_MAX + 512,
};

static const struct {
	struct str type;
	unsigned   more;
} table[SANDBOX_NEWS_COUNT] = {
#define X(name, text, what) [NEWS_SANDBOX_##name] = { STR_INIT(text), what },
	SANDBOX_NEWS_TABLE(X)
#undef X
};

static void put_more(struct json_out *o, unsigned more, const struct sandbox *s)
{
	if (more & NEWS_EXPIRY)
		json_put_int(o, "expiresAt", sandbox_expires_at(s));
	if (more & NEWS_REASON)
		json_put_str(o, "reason", s->quarantine_reason);
	if (more & NEWS_STATUS)
		json_put_str(o, "status", str_from(sandbox_state_name(s->status)));
	if (more & NEWS_FAILURE) {
		JSON_PUT(o, member_str("error", s->last_error), member_int("attempts", s->deletion_retry_count));
		if (s->next_deletion_at)
			json_put_int(o, "nextAttemptAt", s->next_deletion_at);
	}
}

static struct str detail_of(struct arena *a, unsigned more, const struct sandbox *s)
{
	char            room[NEWS_DETAIL_MAX + 1];
	struct buf      b = { .p = room, .room = sizeof(room), .max = NEWS_DETAIL_MAX };
	struct json_out o = JSON_OUT(&b);

	JSON_PUT(&o, member_object(NULL), member_str("sandboxId", s->sandbox_id), member_str("name", s->name),
	         member_str("externalId", s->external_id));
	if (s->allocated_to_track.n)
		json_put_str(&o, "track", s->allocated_to_track);
	put_more(&o, more, s);
	json_close_object(&o);
	return event_detail(&b, a);
}

/* Two texts in a row: what str_format("%s%.*s") does, on the way of every claim. */
static struct str joined(struct arena *a, struct str prefix, struct str rest)
{
	char *text = arena_alloc(a, prefix.n + rest.n + 1);

	memcpy(text, prefix.p, prefix.n);
	if (rest.n)
		memcpy(text + prefix.n, rest.p, rest.n);
	return str_of(text, prefix.n + rest.n);
}

struct actor actor_of_track(struct session *s, struct str owner, struct str request_id)
{
	return (struct actor){ joined(session_arena(s), STR("track/"), owner), request_id };
}

static enum rc tell(struct session *s, enum sandbox_news news, const struct sandbox *sandbox, const struct actor *by,
                    enum event_reach reach, struct str *ret_id, struct err *e)
{
	struct event event = { .type = table[news].type,
		               .subject = joined(session_arena(s), STR(SANDBOX_SUBJECTS), sandbox->sandbox_id),
		               .actor = by->name,
		               .request_id = by->request_id,
		               .detail = detail_of(session_arena(s), table[news].more, sandbox),
		               .previous = sandbox->last_event,
		               .reach = reach };
	enum rc      rc;

	assert(kernel_of(s)); /* who changes the pool tells of it */
	rc = session_emit(s, &event, e);
	*ret_id = event.id;
	return rc;
}

enum rc sandbox_save(struct session *s, enum sandbox_news news, struct sandbox *sandbox, const struct actor *by,
                     struct err *e)
{
	enum event_reach reach = table[news].more & NEWS_CHAINED ? EVENT_CHAINED : EVENT_INDEXED;
	enum rc          rc = tell(s, news, sandbox, by, reach, &sandbox->last_event, e);

	if (rc)
		return rc;
	session_put(s, &sandbox_type, sandbox);
	return RC_OK;
}

enum rc sandbox_remove(struct session *s, enum sandbox_news news, const struct sandbox *sandbox, const struct actor *by,
                       struct err *e)
{
	struct tombstone t = { 0 };
	struct str       id;
	bool             is_there;
	enum rc          rc;

	if (sandbox_was_used(sandbox)) {
		if ((rc = session_find(s, &tombstone_type, sandbox->sandbox_id, &t, &is_there, e)))
			return rc;
		t.sandbox_id = sandbox->sandbox_id;
		t.external_id = sandbox->external_id;
		t.removed_at = wall_sec(session_now(s));
		t.missed_since = 0;
		session_put(s, &tombstone_type, &t);
	}
	session_delete(s, &sandbox_type, sandbox->sandbox_id);
	return tell(s, news, sandbox, by, EVENT_INDEXED, &id, e);
}

enum rc sandbox_last_event(struct session *s, struct str subject, struct str *ret, struct err *e)
{
	struct str id = str_of(subject.p + sizeof(SANDBOX_SUBJECTS) - 1, subject.n - (sizeof(SANDBOX_SUBJECTS) - 1));
	struct sandbox sandbox = { 0 };
	bool           is_there;
	enum rc        rc = id.n ? session_find(s, &sandbox_type, id, &sandbox, &is_there, e) : RC_OK;

	*ret = sandbox.last_event;
	return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_chain.c - the events of a subject whose record names the last of them.
 *
 * An index by subject makes every claim write a page of its own (docs/decisions/0012-event-indexes.md). So what comes
 * all the time is not in it: the subject's record names its last event, and each event names the one before it. What is
 * rare, and the last event of all, is in the index as well, and so is all that was written before there were chains.
 *
 * A list is made by walking down: through the events of the index, newest first, and from each towards the next one
 * along the chain. An event that is in both is met by both and kept once. Always true: an event's id is greater than
 * that of its `previous`, on any node [kernel_id_after()], so the chain is in the order of ids too, and a cursor is the
 * id of the last event that was given.
 *
 * A chain ends at an event that names none, or at one that is too old to be kept; the index may lead on from there.
 */

#include "base/arena.h"
#include "kernel/event.h"
#include "kernel/kernel.h"
#include "kernel/kernel_private.h"

enum { ANCHOR_PAGE = 16 };

struct link {
	const struct event *event;
	struct link        *next;
};

struct walk {
	struct session *s;
	struct str      subject;
	struct str      from, to; /* ids that are wanted: from here on, and before this; empty: no limit */
	struct str      at;       /* where the chain goes on; empty: it has ended, or nothing is known of it */
	bool            is_newest_first;
	struct link    *first, *last; /* what was found, in the order of the list */
	size_t          looks;
};

bool event_is_chained(const struct kernel *k, struct str subject)
{
	struct str chained = kernel_options(k)->chained;

	return chained.n && str_starts_with(subject, chained);
}

static void keep(struct walk *w, const struct event *event)
{
	struct link *link;

	if ((w->to.n && str_cmp(event->id, w->to) >= 0) || str_cmp(event->id, w->from) < 0)
		return;
	link = arena_alloc(session_arena(w->s), sizeof(*link));
	link->event = event;
	if (!w->first) {
		w->first = w->last = link;
	} else if (w->is_newest_first) {
		w->last->next = link;
		w->last = link;
	} else {
		link->next = w->first;
		w->first = link;
	}
}

/* Along the chain as far as ids are greater than this one. */
static enum rc walk_down(struct walk *w, struct str floor, struct err *e)
{
	while (w->at.n && str_cmp(w->at, floor) > 0 && str_cmp(w->at, w->from) >= 0 && w->looks++ < EVENT_CHAIN_MAX) {
		struct event *event = arena_alloc(session_arena(w->s), sizeof(*event));
		bool          is_there;
		enum rc       rc = session_find(w->s, &event_type, w->at, event, &is_there, e);

		if (rc)
			return rc;
		w->at = STR("");
		if (!is_there || !str_eq(event->subject, w->subject))
			break;
		keep(w, event);
		w->at = event->previous;
	}
	return RC_OK;
}

/* The next event of the index, and what the chain has above it. */
static enum rc walk_to(struct walk *w, const struct event *event, struct err *e)
{
	enum rc rc = walk_down(w, event->id, e);

	if (rc)
		return rc;
	if (!w->at.n || str_eq(w->at, event->id))
		w->at = event->previous;
	keep(w, event);
	return RC_OK;
}

static struct query query_index(const struct walk *w, size_t limit)
{
	return (struct query)query_of(&event_type, EVENT_BY_SUBJECT, value_text(w->subject), limit);
}

/* Where to enter the chain for what is before `id`: the first indexed event from there on that is in it, or its
 * head. */
static enum rc enter_chain(struct walk *w, struct str id, struct err *e)
{
	struct records      all = { .query = query_index(w, ANCHOR_PAGE), .pages_max = EVENT_LOOKS_MAX };
	const struct event *event;
	enum rc             rc = RC_OK;

	all.query.sort_from = id;
	while (id.n && (event = session_next(w->s, &all, &rc, e))) {
		w->at = event->previous;
		if (w->at.n)
			return RC_OK;
	}
	return rc ? rc : kernel_options(kernel_of(w->s))->last_event(w->s, w->subject, &w->at, e);
}

/* All ids have one length, so this is just behind it. */
static struct str behind(struct session *s, struct str id)
{
	return str_format(session_arena(s), "%.*s0", STR_ARG(id));
}

static enum rc look_newest_first(struct walk *w, size_t limit, bool *ret_has_more, struct err *e)
{
	struct query q = query_index(w, limit);
	struct page  page;
	enum rc      rc = enter_chain(w, w->to, e);

	q.is_descending = true;
	q.sort_from = w->from;
	q.sort_to = w->to;
	if (!rc)
		rc = session_query(w->s, &q, &page, e);
	for (size_t i = 0; !rc && i < page.count; i++)
		rc = walk_to(w, page_record(&page, &event_type, i), e);
	if (rc)
		return rc;
	*ret_has_more = page.next.n > 0;
	return *ret_has_more ? RC_OK : walk_down(w, STR(""), e);
}

/* The events of the index are read up to some way above; the walk goes down from there. */
static enum rc look_oldest_first(struct walk *w, size_t limit, bool *ret_has_more, struct err *e)
{
	struct query q = query_index(w, limit);
	struct page  page;
	struct str   end = { 0 }; /* nothing is known of what is from here on */
	enum rc      rc;

	q.sort_from = w->from;
	if ((rc = session_query(w->s, &q, &page, e)))
		return rc;
	if (page.next.n && page.count)
		end = behind(w->s, ((struct event *)page_record(&page, &event_type, page.count - 1))->id);
	*ret_has_more = end.n && (!w->to.n || str_cmp(end, w->to) < 0);
	if (*ret_has_more)
		w->to = end;
	rc = enter_chain(w, end, e);
	for (size_t i = page.count; !rc && i-- > 0;)
		rc = walk_to(w, page_record(&page, &event_type, i), e);
	return rc ? rc : walk_down(w, STR(""), e);
}

static enum rc limit_walk(struct walk *w, const struct event_list *l, struct err *e)
{
	struct arena *a = session_arena(w->s);

	if (l->cursor.n && l->cursor.n != KERNEL_ID_SIZE - 1)
		return err_set(e, RC_INVALID, "the cursor does not belong to this list");
	if (l->since_ms)
		w->from = kernel_time_prefix(a, l->since_ms);
	if (l->until_ms)
		w->to = kernel_time_prefix(a, l->until_ms);
	if (l->after_id.n)
		w->from = behind(w->s, l->after_id);
	if (l->cursor.n && l->is_newest_first)
		w->to = l->cursor;
	else if (l->cursor.n)
		w->from = behind(w->s, l->cursor);
	return RC_OK;
}

/* Take what is wanted, in order, until the page is full. True when something is left. */
static bool take(struct walk *w, struct event_list *l, size_t *seen)
{
	struct link *link = w->first;

	for (; link && l->count < l->limit; link = link->next) {
		++*seen;
		l->next = link->event->id;
		if (event_is_wanted(link->event, l))
			l->events[l->count++] = *link->event;
	}
	return link != NULL;
}

enum rc event_list_chained(struct session *s, struct event_list *l, struct err *e)
{
	struct event_list rest = *l; /* with the cursor of each look */
	size_t            seen = 0;
	bool              has_more = true;

	for (int look = 0; has_more && look < EVENT_LOOKS_MAX && seen < EVENT_CHAIN_MAX && l->count < l->limit;
	     look++) {
		struct walk w = { .s = s, .subject = l->subject, .is_newest_first = l->is_newest_first };
		size_t      wanted = l->limit - l->count;
		enum rc     rc = limit_walk(&w, &rest, e);

		if (!rc)
			rc = l->is_newest_first ? look_newest_first(&w, wanted, &has_more, e)
			                        : look_oldest_first(&w, wanted, &has_more, e);
		if (rc)
			return rc;
		has_more = take(&w, l, &seen) || has_more;
		rest.cursor = l->next;
	}
	if (!has_more)
		l->next = STR("");
	return RC_OK;
}

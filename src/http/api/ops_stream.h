/* ops_stream.h - replies that last: the live stream of events and their export. Loop thread only, but for
 * streams_poke_later(). */
#pragma once

#include "base/str.h"

struct api_options;
struct event_list;
struct request;

/* Freed with free(). The options stay where they are. */
struct streams *streams_new(const struct api_options *o);

/* Before the loop ends, when no transaction of a request is with the store. */
void streams_close_handles(struct streams *all);

/* Answer with every event that the filter allows, as JSON lines. The filter's texts live as long as the request. */
void streams_export(struct request *r, const struct event_list *filter);

/* Answer with the events that come after this one, as server-sent events; empty: from now on. */
void streams_follow(struct request *r, const struct event_list *filter, struct str after_id);

/* There may be new events; for kernel_on_events(). From any thread. */
void streams_poke_later(void *streams);

/* Tokens or secrets have changed: end those whose sender may no longer ask for them. */
void streams_check(struct streams *all);

/* End all of them and begin no more. */
void streams_stop(struct streams *all);

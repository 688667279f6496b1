/* defect.h - deliberate mistakes, so that the simulator can be seen to catch them. Only in a build of its own: without
 * LEASEHOLD_DEFECTS every one of these is a constant false. */
#pragma once

#define DEFECTS(X)                                                                                  \
	X(EVENT_IN_SECOND_TXN, "an event is saved after the change it tells of, in its own commit") \
	X(TIMER_AFTER_COMMIT, "a timer is armed after the commit")                                  \
	X(REMOVE_BEFORE_EFFECT, "a delivery is removed before its effect")                          \
	X(KEEP_REFUSED, "what a handler wrote before it refused stays")                             \
	X(NO_CHECK_AFTER_CRASH, "a step is repeated after a crash without a check")                 \
	X(IGNORE_FENCE, "an outcome is stored although somebody else has taken over")               \
	X(UNDO_IN_ORDER, "steps are undone in the order in which they were done")                   \
	X(NO_INTENT, "a step is done without storing the intent before")                            \
	X(TIMER_EARLY, "a timer fires a little before its time")                                    \
	X(SKIP_LANE_ORDER, "a delivery overtakes the one before it after a failure")                \
	X(DROP_AFTER_TRIES, "a delivery that failed too often is dropped")                          \
	X(NO_DEDUP, "an outside event is taken in as often as it comes")                            \
	X(FORGET_LEFTOVERS, "a parked saga does not list what is left over")                        \
	X(PASS_THE_LINE, "a lease gets an account although others wait for one")                    \
	X(NO_TAKE_BACK, "a lease ends, and its account is left as it was")                          \
	X(FAILED_IS_DONE, "an account counts as arrived although the way there failed")             \
	X(TELL_AGAIN, "what was told of a lease is not noted")                                      \
	X(NO_REST, "an account is free as soon as it is clean")                                     \
	X(FREE_AT_FIRST, "an account is free when the first of its holds is closed")                \
	X(FORGET_PART, "a creation that goes back leaves its database")                             \
	X(NO_ARCHIVE, "an instance is removed without an archive of its data")                      \
	X(GONE_UNSEEN, "a removal goes on although a part could not be deleted")                    \
	X(SECOND_INSTANCE, "a tenant gets a second instance beside a live one")

enum defect {
	DEFECT_NONE,
#define X(name, text) DEFECT_##name,
	DEFECTS(X)
#undef X
	        DEFECT_COUNT
};

#ifdef LEASEHOLD_DEFECTS
extern enum defect defect_on; /* set by the simulator, before anything runs */
#define HAS_DEFECT(name) (defect_on == DEFECT_##name)
#else
#define HAS_DEFECT(name) false
#endif

/* process.h - waiting for a child process. */
#pragma once

#include <sys/types.h>

#include "base/clock.h"

/* Has it ended by then? Waits no longer. It is not collected: process_wait() does that. */
bool process_ends_by(pid_t pid, struct mono end);

/* Waits for its end, however long, and collects it: the status as waitpid() has it. */
int process_wait(pid_t pid);

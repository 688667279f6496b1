/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process.c - waiting for a child process, with a limit.
 *
 * A pidfd wakes us at its end. Where a sandbox forbids that, or the kernel is too old, we look again and again.
 */
#include "base/process.h"

#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

enum { LOOK_MS = 5 };

bool process_ends_by(pid_t pid, struct mono end)
{
	CLEANUP(fd_closep) int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* glibc names it from 2.36 on only */
	siginfo_t              about = { 0 };

	while (waitid(P_PID, (id_t)pid, &about, WEXITED | WNOHANG | WNOWAIT) == 0 && !about.si_pid) {
		struct pollfd watched = { .fd = fd, .events = POLLIN };
		int64_t       left = end.ms - mono_now().ms;

		if (left <= 0)
			return false;
		poll(&watched, 1, fd >= 0 && left < INT32_MAX ? (int)left : LOOK_MS); /* -1 is passed over */
	}
	return true;
}

int process_wait(pid_t pid)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

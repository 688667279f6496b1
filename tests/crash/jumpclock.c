/* SPDX-License-Identifier: Apache-2.0 */
/* jumpclock.c - a date that jumps: loaded before libc (LD_PRELOAD), it adds the seconds in $JUMPCLOCK_FILE (eight
 * bytes, as the machine has them) to the machine's date. The times since boot stay as they are. Safe in any thread. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *jump(void)
{
	static const volatile int64_t *at;
	static const int64_t           none;
	const char                    *path = getenv("JUMPCLOCK_FILE");
	int                            fd;
	void                          *map;

	if (at)
		return at;
	fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	map = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return at = map == MAP_FAILED ? &none : map;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	if (rc == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		t->tv_sec += *jump();
	return rc;
}

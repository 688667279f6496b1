/* SPDX-License-Identifier: Apache-2.0 */
/* arc4random_buf() for programs that shall also run on a glibc without it: libexpat wants it, which glibc has only since 2.36. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/random.h>

void arc4random_buf(void *buf, size_t size);

void arc4random_buf(void *buf, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t got = getrandom((char *)buf + done, size - done, 0);

		if (got < 0 && errno != EINTR)
			abort(); /* no randomness is no reason to go on without */
		if (got > 0)
			done += (size_t)got;
	}
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A wall clock that a test can turn: preloaded into a program, it adds what stands in the file
 * SHIFTED_CLOCK_FILE (seconds, read at each look) to CLOCK_REALTIME. Nothing else is changed:
 * timers go by the monotonic clock, and certificates are judged by time(). */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
    const char *path = getenv("SHIFTED_CLOCK_FILE");
    char text[32] = "";
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;

    if (fd >= 0)
        close(fd);
    return n > 0 ? strtol(text, NULL, 10) : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, clock, ts);

    if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        ts->tv_sec += shift();
    return rc;
}

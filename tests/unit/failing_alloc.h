/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of a test program, which fails when it is told to. To be included once, by the
 * file with main(): it replaces malloc, calloc and realloc of the whole program. With
 * FAILING_ALLOC_SPARES_REALLOC defined before, realloc stays (libev ends the process without it).
 */
#ifndef UNIT_FAILING_ALLOC_H
#define UNIT_FAILING_ALLOC_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

/* AddressSanitizer itself allocates before its shadow memory is there. */
#define EARLY __attribute__((no_sanitize("address", "undefined")))

/* volatile: the compiler thinks that it knows what malloc does. */
static volatile long allocs_left = -1; /* until one fails; below 0: none does */
static volatile bool alloc_failed;
static volatile int alloc_spared; /* not 0: none fails or counts */

EARLY static bool alloc_must_fail(void)
{
    if (allocs_left < 0 || alloc_spared != 0 || allocs_left-- > 0)
        return false;
    alloc_failed = true;
    return true;
}

EARLY void *malloc(size_t n)
{
    static void *(*real)(size_t);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "malloc");
    return alloc_must_fail() ? NULL : real(n);
}

EARLY void *calloc(size_t n, size_t size)
{
    static void *(*real)(size_t, size_t);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "calloc");
    return alloc_must_fail() ? NULL : real(n, size);
}

#ifndef FAILING_ALLOC_SPARES_REALLOC
EARLY void *realloc(void *p, size_t n)
{
    static void *(*real)(void *, size_t);

    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "realloc");
    return alloc_must_fail() ? NULL : real(p, n);
}
#endif

#endif

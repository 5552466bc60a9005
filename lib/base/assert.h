/* SPDX-License-Identifier: Apache-2.0 */
/* assert: checks for our own bugs, alive in every build. Never for what a peer sent. */
#ifndef KR_BASE_ASSERT_H
#define KR_BASE_ASSERT_H

#include <stddef.h>

#define KR_ASSERT(cond)                                                                            \
    do {                                                                                           \
        if (__builtin_expect(!(cond), 0))                                                          \
            kr_assert_failed(#cond, __FILE__, __LINE__);                                           \
    } while (0)

/* The struct that holds `member` at `ptr`. */
#define KR_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

_Noreturn void kr_assert_failed(const char *what, const char *file, int line);

#endif

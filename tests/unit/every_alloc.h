/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of work with one allocation after the other failing. After cmocka.h. */
#ifndef UNIT_EVERY_ALLOC_H
#define UNIT_EVERY_ALLOC_H

#include "base/err.h"
#include "failing_alloc.h"

/* Runs `work` with the 1st, 2nd, ... allocation failing until one run meets no failure; that run
 * must succeed, each other one must fail with KR_ENOMEM (or not mind). */
static void for_every_allocation(int (*work)(void))
{
    int runs = 0;

    for (long n = 0;; n++) {
        int rc;

        alloc_failed = false;
        allocs_left = n;
        rc = work();
        allocs_left = -1;
        if (!alloc_failed) {
            assert_int_equal(rc, 0);
            break;
        }
        assert_true(rc == KR_ENOMEM || rc == 0);
        runs++;
    }
    assert_true(runs > 0);
}

#endif

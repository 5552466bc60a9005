/* SPDX-License-Identifier: Apache-2.0 */
/* rotate_check: whether a step of `ca rotate` would cut agents off, as far as the hub that is asked
 * knows: also those that are away. It lists some of them on `err` by name.
 * Memory: nothing is kept. Errors: KR_EDENIED, with how many there are; those of registry.h. */
#ifndef CTL_ROTATE_CHECK_H
#define CTL_ROTATE_CHECK_H

#include "ctl/command.h"

/* `next_pem`: the root that the hub must tell agents of. `keys`: the old root is about to go, so
 * that certificates count, too. */
int ctl_rotate_check(const struct ctl_call *call, struct kr_bytes next_pem, bool keys,
                     struct kr_note *why);

#endif

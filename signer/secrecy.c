/* SPDX-License-Identifier: Apache-2.0 */
#include "signer/secrecy.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/err.h"

int signer_close_memory(struct kr_note *why)
{
    const struct rlimit none = {0, 0};

    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0) != 0)
        return kr_note_set(why, KR_EIO, "cannot close the memory to others: %s", strerror(errno));
    return 0;
}

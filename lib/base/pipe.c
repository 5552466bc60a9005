/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pipe.h"

#include "base/assert.h"

void kr_pipe_attach(struct kr_pipe *p, const struct kr_pipe_user *ops, void *user)
{
    KR_ASSERT(p->user_ops == NULL);
    p->user_ops = ops;
    p->user = user;
    kr_pipe_set_reading(p, true);
}

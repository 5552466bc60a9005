/* SPDX-License-Identifier: Apache-2.0 */
/* registry: what the commands about tokens and clusters share: one call over the admin socket. */
#ifndef CTL_REGISTRY_H
#define CTL_REGISTRY_H

#include "base/buf.h"
#include "ctl/command.h"

#define CTL_SOCKET_OPTION                                                                          \
    {                                                                                              \
        "socket", CTL_ONE, "PATH", "the hub's adminSocket (/run/kuberelay/admin.sock)"             \
    }

/* Any answer but 200 and 201 is a failure, with the hub's own words. The body is appended. */
int ctl_registry_call(const struct ctl_call *call, const char *method, const char *path,
                      struct kr_buf *body, struct kr_note *why);
/* A string member of a JSON object, printable ASCII only; "-" if it is not there. */
void ctl_registry_text(struct kr_bytes object, const char *name, char *out, size_t size);
/* A number; 0 if it is not there. */
uint64_t ctl_registry_number(struct kr_bytes object, const char *name);
bool ctl_registry_true(struct kr_bytes object, const char *name);

#endif

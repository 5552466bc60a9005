/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/registry.h"

#include "base/err.h"
#include "ctl/admin_call.h"
#include "kube/json_scan.h"

int ctl_registry_call(const struct ctl_call *call, const char *method, const char *path,
                      struct kr_buf *body, struct kr_note *why)
{
    const char *socket = ctl_get(call, "socket");
    int status = 0;
    int rc = ctl_admin_call(socket != NULL ? socket : CTL_ADMIN_SOCKET, method, path, body, &status,
                            why);

    if (rc != 0)
        return rc;
    if (status != 200 && status != 201)
        return kr_note_set(why, status == 404 ? KR_ENOENT : KR_EIO, "the hub answered %d: %.*s",
                           status, body->n < 120 ? (int)body->n : 120, (const char *)body->p);
    if (body->n != 0 && body->p[0] == '{')
        return kr_scan_check(kr_buf_bytes(body), 16, why);
    return 0;
}

void ctl_registry_text(struct kr_bytes object, const char *name, char *out, size_t size)
{
    struct kr_buf text = {.max = 4096};
    struct kr_bytes value;
    size_t n = 0;

    if (kr_scan_find(object, name, &value))
        kr_scan_string(value, &text);
    for (; n < text.n && n + 1 < size; n++)
        out[n] = text.p[n] > ' ' && text.p[n] < 0x7f ? (char)text.p[n] : '?';
    out[n] = '\0';
    if (n == 0)
        snprintf(out, size, "-");
    kr_buf_deinit(&text);
}

uint64_t ctl_registry_number(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;
    uint64_t n = 0;

    if (kr_scan_find(object, name, &value))
        kr_bytes_to_u64(value, INT64_MAX, &n);
    return n;
}

bool ctl_registry_true(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;

    return kr_scan_find(object, name, &value) && kr_bytes_is(value, "true");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a query, a newline, an Accept value (also read as a time and as two versions). */
#include "base/assert.h"
#include "base/err.h"
#include "kube/list_options.h"

static void check_options(struct kr_bytes query, bool watch)
{
    struct kr_list_options o;
    struct kr_arena arena;
    struct kr_note why = {""};
    int rc;

    kr_arena_init(&arena, 4096, 4 * 1024 * 1024);
    rc = kr_list_options_read(query, watch, &arena, &o, &why);
    KR_ASSERT(rc == 0 || rc == KR_EINVAL || rc == KR_ENOMEM);
    KR_ASSERT(rc != KR_EINVAL || why.text[0] != '\0');
    if (rc == 0) {
        KR_ASSERT(o.limit >= 0 && o.timeout_s >= 0 && !o.invalid);
        KR_ASSERT(o.has_version || (o.version == 0 && !o.version_zero));
        KR_ASSERT(o.has_send_initial || !o.send_initial);
        KR_ASSERT(watch || !o.has_send_initial);
    }
    kr_arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t line = kr_bytes_find(kr_bytes_of(data, n), '\n');
    struct kr_bytes query = kr_bytes_of(data, line);
    struct kr_bytes accept = kr_bytes_skip(kr_bytes_of(data, n), line < n ? line + 1 : n);
    enum kr_form form;
    int64_t seconds;

    check_options(query, true);
    check_options(query, false);
    KR_ASSERT(kr_accept_form(accept, &form) == KR_EUNSUPPORTED || form <= KR_FORM_METADATA_V1BETA1);
    KR_ASSERT(kr_accept_discovery(accept) <= 2);
    KR_ASSERT(kr_version_compare(query, accept) == 0 ||
              (kr_version_compare(query, accept) < 0) == (kr_version_compare(accept, query) > 0));
    if (kr_time_parse(accept, &seconds)) {
        struct kr_buf out = {.max = 64};

        KR_ASSERT(kr_human_duration(seconds, &out) == 0 && out.n != 0);
        kr_buf_deinit(&out);
    }
    return 0;
}

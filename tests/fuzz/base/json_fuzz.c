/* SPDX-License-Identifier: Apache-2.0 */
/* What the checker accepts json-c must build, unless a key stands twice; and every string that
 * comes out is written and read again unchanged. */
#include "base/json.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(struct kr_bytes text)
{
    struct kr_json *doc = NULL;
    struct kr_json_out w;
    struct kr_bytes back;
    struct kr_buf buf;

    kr_buf_init(&buf, 8 * text.n + 64);
    kr_json_out_init(&w, &buf);
    kr_json_out_array(&w, NULL);
    kr_json_out_string(&w, NULL, text);
    kr_json_out_end(&w);
    KR_ASSERT(w.rc == 0);
    if (buf.n <= KR_JSON_MAX) {
        KR_ASSERT(kr_json_parse(kr_buf_bytes(&buf), &doc, NULL) == 0);
        KR_ASSERT(kr_json_string(kr_json_at(doc, 0), &back));
        KR_ASSERT(!kr_bytes_is_utf8(text) || kr_bytes_eq(back, text));
    }
    kr_json_destroy(doc);
    kr_buf_deinit(&buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_bytes text = {data, size};
    struct kr_json *doc = NULL;
    size_t members = 0;
    int checked = kr_json_check(text, &members, NULL);

    KR_ASSERT(kr_json_parse(text, &doc, NULL) != 0 || checked == 0);
    kr_json_destroy(doc);
    round_trip(text);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an object. Whatever is put behind one of its openings, it stays well-formed and the rest
 * of its facts stay as they were. */
#include "base/assert.h"
#include "base/err.h"
#include "kube/object_facts.h"

static void check_opening(struct kr_bytes in, struct kr_opening at,
                          const struct kr_object_facts *before)
{
    struct kr_object_facts after;
    struct kr_buf out;

    if (at.at == 0)
        return;
    KR_ASSERT(at.at <= in.n && in.p[at.at - 1] == '{');
    kr_buf_init(&out, in.n + 100);
    kr_buf_append(&out, kr_bytes_of(in.p, at.at));
    kr_buf_append_str(&out,
                      at.empty ? "\"kuberelay.io/new\":\"v\"" : "\"kuberelay.io/new\":\"v\",");
    kr_buf_append(&out, kr_bytes_skip(in, at.at));
    KR_ASSERT(kr_object_facts(kr_buf_bytes(&out), &after, NULL) == 0);
    KR_ASSERT(kr_bytes_eq(before->name, after.name) && kr_bytes_eq(before->ns, after.ns));
    KR_ASSERT(kr_bytes_eq(before->uid, after.uid) && kr_bytes_eq(before->version, after.version));
    KR_ASSERT(kr_bytes_eq(before->kind, after.kind) && kr_bytes_eq(before->owners, after.owners));
    KR_ASSERT(before->in_labels.at == 0 || after.in_labels.at != 0);
    kr_buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const struct kr_bytes in = {data, n};
    struct kr_object_facts facts;
    struct kr_note why;
    int rc = kr_object_facts(in, &facts, &why);

    KR_ASSERT(rc == 0 || rc == KR_EPROTO || rc == KR_ETOOBIG);
    if (rc != 0)
        return 0;
    KR_ASSERT(facts.top.at != 0 && kr_scan_check(in, KR_SCAN_DEPTH_MAX, NULL) == 0);
    KR_ASSERT((facts.labels.n != 0) == (facts.in_labels.at != 0));
    KR_ASSERT((facts.annotations.n != 0) == (facts.in_annotations.at != 0));
    check_opening(in, facts.top, &facts);
    check_opening(in, facts.in_metadata, &facts);
    check_opening(in, facts.in_labels, &facts);
    check_opening(in, facts.in_annotations, &facts);
    return 0;
}

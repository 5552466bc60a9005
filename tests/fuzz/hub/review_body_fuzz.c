/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the body of a SelfSubjectAccessReview in protobuf. What is read is JSON, unless a field
 * came twice, which the reader of JSON refuses. */
#include "base/assert.h"
#include "base/err.h"
#include "hub/review_body.h"
#include "kube/json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_buf out = {.max = 1u << 20};
    struct kr_note why = {""};
    int rc = hub_review_body_to_json(kr_bytes_of(data, n), &out);

    KR_ASSERT(rc != 0 || kr_scan_check(kr_buf_bytes(&out), 4, &why) == 0);
    kr_buf_deinit(&out);
    rc = hub_rules_body_to_json(kr_bytes_of(data, n), &out);
    KR_ASSERT(rc != 0 || kr_scan_check(kr_buf_bytes(&out), 4, &why) == 0);
    kr_buf_deinit(&out);
    return 0;
}

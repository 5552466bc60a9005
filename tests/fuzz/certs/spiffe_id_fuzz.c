/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is accepted must be written back exactly, and nothing of it may escape the grammar. */
#include "certs/spiffe_id.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_bytes in = {data, size};
    char text[KR_SPIFFE_ID_MAX + 1];
    struct kr_spiffe_id id;
    struct kr_note why;

    if (kr_spiffe_id_parse(&id, in, &why) == 0) {
        KR_ASSERT(kr_spiffe_id_format(&id, text, &why) == 0);
        KR_ASSERT(kr_bytes_is(in, text));
        KR_ASSERT(kr_spiffe_is_domain(kr_bytes_str(id.domain)));
        KR_ASSERT(kr_spiffe_is_segment(kr_bytes_str(id.name)));
        KR_ASSERT((id.role == KR_ROLE_AGENT) == (id.instance[0] != 0));
    } else {
        KR_ASSERT(id.domain[0] == 0 && id.name[0] == 0 && id.instance[0] == 0);
    }
    if (kr_spiffe_domain_parse(text, in, &why) == 0)
        KR_ASSERT(strlen(text) + 9 == size); /* "spiffe://" and nothing lost */
    return 0;
}

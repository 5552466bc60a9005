/* SPDX-License-Identifier: Apache-2.0 */
/* Requests for certificates from strangers: taken or refused, never more than that. */
#include "certs/csr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t spki[32];
    struct kr_note why;

    (void)kr_csr_check(kr_bytes_of(data, size), spki, &why);
    return 0;
}

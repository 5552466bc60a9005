/* SPDX-License-Identifier: Apache-2.0 */
/* host:port and address texts: what is accepted comes out again as it went in. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "net/addr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_addr(const char *text)
{
    char printed[KR_ADDR_TEXT];
    struct kr_addr again;
    struct kr_addr a;

    if (!kr_addr_parse(text, 1, &a))
        return;
    kr_addr_ip_text(&a, printed);
    KR_ASSERT(kr_addr_parse(printed, 1, &again));
    KR_ASSERT(kr_addr_in(&a, text));
    KR_ASSERT(kr_addr_in(&a, printed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kr_bytes_dup(kr_bytes_of(data, size));
    char printed[KR_HOST_MAX + 16];
    struct kr_hostport again;
    struct kr_hostport hp;
    struct kr_addr any;

    if (text == NULL)
        return 0;
    check_addr(text);
    kr_addr_parse("10.1.2.3", 0, &any);
    kr_addr_in(&any, text);
    if (kr_hostport_parse(text, 0, &hp, NULL) == 0) {
        if (text[0] == '[')
            snprintf(printed, sizeof printed, "[%s]:%u", hp.host, hp.port);
        else
            snprintf(printed, sizeof printed, "%s:%u", hp.host, hp.port);
        KR_ASSERT(strcmp(printed, text) == 0);
        KR_ASSERT(kr_hostport_parse(printed, 7, &again, NULL) == 0);
        KR_ASSERT(again.port == hp.port);
    }
    free(text);
    return 0;
}

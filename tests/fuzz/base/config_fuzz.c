/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is either refused with a note that names the file, or comes as entries that keep the
 * reader's promises. */
#include "base/config.h"

#include "base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_entry(void *owner, const struct kr_config_entry *e, struct kr_note *why)
{
    int *last_line = owner;

    (void)why;
    KR_ASSERT(e->line >= *last_line && e->n <= KR_CONFIG_ITEMS_MAX);
    KR_ASSERT(e->is_list || e->n == 1);
    *last_line = e->line;
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kr_note why = {.text = ""};
    int line = 0;
    int rc = kr_config_parse("FILE", (struct kr_bytes){data, size}, on_entry, &line, &why);

    KR_ASSERT((rc == 0) == (strncmp(why.text, "FILE:", 5) != 0));
    return 0;
}

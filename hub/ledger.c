/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/ledger.h"

#include <stdlib.h>

void *hub_ledger_alloc(struct hub_ledger *l, size_t n)
{
    void *p = malloc(n);

    if (p != NULL)
        l->bytes += hub_footprint(n);
    return p;
}

void hub_ledger_free(struct hub_ledger *l, void *p, size_t n)
{
    if (p == NULL)
        return;
    l->bytes -= hub_footprint(n);
    free(p);
}

void *hub_ledger_resize(struct hub_ledger *l, void *p, size_t old, size_t n)
{
    void *moved = realloc(p, n);

    if (moved == NULL)
        return NULL;
    l->bytes += hub_footprint(n) - (p != NULL ? hub_footprint(old) : 0);
    return moved;
}

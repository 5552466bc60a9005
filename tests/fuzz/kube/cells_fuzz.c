/* SPDX-License-Identifier: Apache-2.0 */
/* Input: column definitions, a newline, cells: what counts is never more than there was, and the
 * same text gives the same. */
#include "base/assert.h"
#include "kube/cells.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t line = kr_bytes_find(kr_bytes_of(data, n), '\n');
    struct kr_bytes cells = kr_bytes_skip(kr_bytes_of(data, n), line < n ? line + 1 : n);
    struct kr_columns columns;
    struct kr_buf out = {.max = 1024 * 1024};

    if (kr_columns_read(kr_bytes_of(data, line), &columns) != 0)
        columns.n = 0;
    for (size_t i = 0; i < columns.n; i++)
        KR_ASSERT(columns.all[i].timely || !columns.all[i].age);
    if (kr_cells_steady(&columns, cells, &out) == 0)
        KR_ASSERT(out.n <= 2 * cells.n + 1);
    else
        KR_ASSERT(out.n == 0);
    kr_buf_deinit(&out);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/err.h"

int kr_file_read(const char *path, struct kr_buf *out, struct kr_note *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = 0;
    int rc = 0;

    if (fd < 0)
        return kr_note_set(why, KR_EIO, "%s: %s", path, strerror(errno));
    kr_buf_deinit(out);
    kr_buf_init(out, KR_FILE_MAX);
    do {
        rc = kr_buf_reserve(out, 4096);
        if (rc == 0 && (n = read(fd, out->p + out->n, 4096)) > 0)
            out->n += (size_t)n;
    } while (rc == 0 && n > 0);
    if (rc != 0)
        kr_note_set(why, rc, "%s: %s", path, kr_err_text(rc));
    else if (n < 0)
        rc = kr_note_set(why, KR_EIO, "%s: %s", path, strerror(errno));
    close(fd);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "hub/revision.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "certs/store_file.h"

#define STEP 16u
#define REPLICA_MASK 15u
#define MINUTE (UINT64_C(60) * 1000000 * STEP) /* in revisions */
/* The mark is written so far ahead that fsync is rare, and well before it is reached. */
#define RESERVE (10 * MINUTE)
#define RENEW_BEFORE (5 * MINUTE)
#define RETRY (MINUTE / 6)
#define MARK_MAX (UINT64_MAX >> 1)

static int fail(struct kr_note *why, const char *what, const char *path)
{
    return kr_note_set(why, KR_EIO, "cannot %s %.150s: %s", what, path, strerror(errno));
}

static int read_mark(const char *file, uint64_t *mark, struct kr_note *why)
{
    struct kr_buf buf;
    struct kr_bytes text;
    int rc;

    kr_buf_init(&buf, 64);
    *mark = 0;
    rc = kr_file_read(&buf, file, 32, why);
    if (rc == KR_ENOENT)
        return 0;
    if (rc != 0)
        return rc;
    text = kr_buf_bytes(&buf);
    if (text.n != 0 && text.p[text.n - 1] == '\n')
        text.n--;
    /* Guessing would risk that a client takes an old revision for a new one. */
    if (!kr_bytes_to_u64(text, MARK_MAX, mark))
        rc = kr_note_set(why, KR_EINVAL,
                         "%.150s is no mark of revisions; remove it if the clock is right", file);
    kr_buf_deinit(&buf);
    return rc;
}

static int write_whole(const char *temp, uint64_t mark, struct kr_note *why)
{
    char text[32];
    size_t n = (size_t)snprintf(text, sizeof text, "%" PRIu64 "\n", mark);
    int fd = open(temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = 0;

    if (fd < 0)
        return fail(why, "create", temp);
    errno = ENOSPC; /* a short write leaves errno alone */
    if (write(fd, text, n) != (ssize_t)n || fsync(fd) != 0)
        rc = fail(why, "write", temp);
    if (close(fd) != 0 && rc == 0)
        rc = fail(why, "write", temp);
    return rc;
}

static int write_mark(const char *file, uint64_t mark, struct kr_note *why)
{
    char temp[PATH_MAX];
    int n = snprintf(temp, sizeof temp, "%s.new", file);
    int rc;

    if (n < 0 || (size_t)n >= sizeof temp)
        return kr_note_set(why, KR_EINVAL, "the path %.80s... is too long", file);
    rc = write_whole(temp, mark, why);
    if (rc == 0 && rename(temp, file) != 0)
        rc = fail(why, "replace", file);
    if (rc != 0)
        unlink(temp);
    return rc;
}

static void tell(const struct hub_revision *r, bool failed_before)
{
    if (r->log == NULL || r->failed == failed_before)
        return;
    if (r->failed)
        KR_LOG_AT(r->log, KR_LOG_ERROR, "revision-unsaved", KR_S("reason", r->why.text));
    else
        KR_LOG_AT(r->log, KR_LOG_INFO, "revision-saved", KR_S("file", r->file));
}

static void reserve(struct hub_revision *r)
{
    uint64_t mark = r->last + RESERVE;
    bool failed_before = r->failed;

    r->failed = write_mark(r->file, mark, &r->why) != 0;
    tell(r, failed_before);
    if (r->failed)
        r->retry_at = r->last + RETRY;
    else
        r->reserved = mark;
}

static uint64_t after(uint64_t last, unsigned replica, int64_t now_wall_us)
{
    uint64_t now = now_wall_us > 0 ? (uint64_t)now_wall_us * STEP : 0;
    uint64_t next = (last & ~(uint64_t)REPLICA_MASK) + STEP;

    return (now > next ? now : next) | replica;
}

int hub_revision_init(struct hub_revision *r, const char *file, unsigned replica,
                      int64_t now_wall_us, struct kr_note *why)
{
    uint64_t mark = 0;
    int rc;

    *r = (struct hub_revision){.replica = replica & REPLICA_MASK};
    if (file != NULL) {
        rc = read_mark(file, &mark, why);
        if (rc != 0)
            return rc;
        r->file = strdup(file);
        if (r->file == NULL)
            return kr_note_set(why, KR_ENOMEM, "out of memory");
    }
    r->first = r->last = after(mark, r->replica, now_wall_us);
    if (file == NULL)
        return 0;
    reserve(r);
    if (!r->failed)
        return 0;
    rc = kr_note_set(why, KR_EIO, "%s", r->why.text);
    hub_revision_deinit(r);
    return rc;
}

void hub_revision_deinit(struct hub_revision *r)
{
    free(r->file);
    *r = (struct hub_revision){0};
}

uint64_t hub_revision_next(struct hub_revision *r, int64_t now_wall_us)
{
    r->last = after(r->last, r->replica, now_wall_us);
    if (r->file != NULL && r->last + RENEW_BEFORE >= r->reserved &&
        (!r->failed || r->last >= r->retry_at))
        reserve(r);
    return r->last;
}

bool hub_revision_failed(const struct hub_revision *r, struct kr_note *why)
{
    if (r->failed && why != NULL)
        *why = r->why;
    return r->failed;
}

bool hub_revision_is_ours(const struct hub_revision *r, uint64_t revision)
{
    return revision >= r->first && revision <= r->last && (revision & REPLICA_MASK) == r->replica;
}

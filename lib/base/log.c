/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* What every line keeps free for its end: ` cut=true` and the newline. */
#define TAIL " cut=true"
#define TAIL_ROOM sizeof(TAIL)

struct line {
    char text[KR_LOG_LINE_MAX];
    size_t n;
    bool cut;
};

const char *const kr_log_level_names[] = {"error", "warn", "info", "debug", NULL};

static int64_t system_wall_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void kr_log_init(struct kr_log *log, int fd, enum kr_log_level level)
{
    *log = (struct kr_log){.level = level, .fd = fd, .now_wall_ms = system_wall_ms};
}

/* All of `in` or nothing, so that a cut never falls into an escape; after a cut nothing more. */
static void put(struct line *l, const char *in, size_t n)
{
    if (l->cut || n > sizeof l->text - TAIL_ROOM - l->n) {
        l->cut = true;
        return;
    }
    memcpy(l->text + l->n, in, n);
    l->n += n;
}

static void put_text(struct line *l, const char *s)
{
    put(l, s, strlen(s));
}

__attribute__((format(printf, 2, 3))) static void put_short(struct line *l, const char *fmt, ...)
{
    char small[64];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n > 0)
        put(l, small, (size_t)n < sizeof small ? (size_t)n : sizeof small - 1);
}

static bool is_plain(uint8_t c)
{
    return c > ' ' && c < 0x7F && c != '"' && c != '\\' && c != '=';
}

static void put_escaped(struct line *l, uint8_t c)
{
    char plain = (char)c;

    if (c == '"' || c == '\\')
        put_short(l, "\\%c", c);
    else if (c == '\n')
        put_text(l, "\\n");
    else if (c == '\r')
        put_text(l, "\\r");
    else if (c == '\t')
        put_text(l, "\\t");
    else if (c < ' ' || c >= 0x7F)
        put_short(l, "\\x%02x", c);
    else
        put(l, &plain, 1);
}

/* One quote's room is kept back, so that a value that is cut is still closed. */
static void put_value(struct line *l, struct kr_bytes v)
{
    bool plain = v.n != 0;

    for (size_t i = 0; i < v.n && plain; i++)
        plain = is_plain(v.p[i]);
    if (plain && v.n <= sizeof l->text - TAIL_ROOM - l->n) {
        put(l, (const char *)v.p, v.n);
        return;
    }
    put_text(l, "\"");
    for (size_t i = 0; i < v.n && !l->cut; i++) {
        if (l->n + 6 > sizeof l->text - TAIL_ROOM)
            l->cut = true;
        else
            put_escaped(l, v.p[i]);
    }
    if (l->cut && l->n < sizeof l->text - TAIL_ROOM)
        l->text[l->n++] = '"';
    else
        put_text(l, "\"");
}

static void put_kv(struct line *l, const struct kr_kv *kv)
{
    size_t before = l->n;

    put_text(l, " ");
    put_text(l, kv->key);
    put_text(l, "=");
    if (l->cut || l->n + 8 > sizeof l->text - TAIL_ROOM) {
        l->n = before; /* no half a field */
        l->cut = true;
        return;
    }
    switch (kv->type) {
    case KR_KV_TEXT:
        put_value(l, kr_bytes_str(kv->text));
        break;
    case KR_KV_BYTES:
        put_value(l, kv->bytes);
        break;
    case KR_KV_INT:
        put_short(l, "%" PRId64, kv->i);
        break;
    case KR_KV_UINT:
        put_short(l, "%" PRIu64, kv->u);
        break;
    case KR_KV_BOOL:
        put_text(l, kv->flag ? "true" : "false");
        break;
    }
}

static void put_time(struct line *l, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;

    gmtime_r(&seconds, &tm);
    put_short(l, "time=%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900, tm.tm_mon + 1,
              tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(wall_ms % 1000));
}

void kr_log_write(const struct kr_log *log, enum kr_log_level level, const char *event,
                  const struct kr_kv *kv, size_t n)
{
    int saved_errno = errno;
    struct line l;
    ssize_t sent;

    l.n = 0;
    l.cut = false;
    put_time(&l, log->now_wall_ms());
    put_text(&l, " level=");
    put_text(&l, kr_log_level_names[level]);
    put_text(&l, " event=");
    put_text(&l, event);
    for (size_t i = 0; i < n && !l.cut; i++)
        put_kv(&l, &kv[i]);
    if (l.cut) {
        memcpy(l.text + l.n, TAIL, sizeof TAIL - 1);
        l.n += sizeof TAIL - 1;
    }
    l.text[l.n++] = '\n';
    sent = write(log->fd, l.text, l.n);
    (void)sent; /* a lost line must not stop the program */
    errno = saved_errno;
}

bool kr_log_allow(struct kr_log_limit *l, int64_t now_ms, uint32_t burst, int64_t per_ms,
                  uint64_t *held)
{
    if (held != NULL)
        *held = 0;
    if (l->used == 0 || now_ms - l->window_ms >= per_ms) {
        l->window_ms = now_ms;
        l->used = 0;
    }
    if (l->used >= burst) {
        l->held++;
        return false;
    }
    l->used++;
    if (held != NULL)
        *held = l->held;
    l->held = 0;
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* log: structured lines for people and machines, one event each:
 *   time=2026-11-30T15:00:00.123Z level=info event=tunnel-up cluster=c1 streams=5
 * Values are quoted when they are empty or hold a space, '=', '"', '\' or anything beyond printable
 * ASCII; inside quotes those are escaped, so that a value from a peer can neither forge a field nor
 * reach a terminal. Event names and keys are the caller's constants: lower-case words with '-'.
 * Limits:  a line is at most KR_LOG_LINE_MAX bytes; a longer one is cut and ends in ` cut=true`.
 * Memory:  none; the line is built on the stack and goes out in one write(). A line that cannot be
 *          written is lost. Errors: none are reported; logging never changes what a program does.
 * Threads: a kr_log does not change after kr_log_init (but for level), so threads may share it.
 * Library code never logs above debug; who handles an error logs it, once. NULL log: silence. */
#ifndef KR_BASE_LOG_H
#define KR_BASE_LOG_H

#include "base/bytes.h"

#define KR_LOG_LINE_MAX 4096

enum kr_log_level { KR_LOG_ERROR, KR_LOG_WARN, KR_LOG_INFO, KR_LOG_DEBUG };

struct kr_log {
    enum kr_log_level level;      /* what is noisier than this is left out */
    int fd;                       /* not owned */
    int64_t (*now_wall_ms)(void); /* replaced by tests; the system's clock otherwise */
};

enum kr_kv_type { KR_KV_TEXT, KR_KV_BYTES, KR_KV_INT, KR_KV_UINT, KR_KV_BOOL };

struct kr_kv {
    const char *key;
    enum kr_kv_type type;
    union {
        const char *text; /* NULL shows as an empty value */
        struct kr_bytes bytes;
        int64_t i;
        uint64_t u;
        bool flag;
    };
};

#define KR_S(k, v)                                                                                 \
    {                                                                                              \
        .key = (k), .type = KR_KV_TEXT, .text = (v)                                                \
    }
#define KR_B(k, v)                                                                                 \
    {                                                                                              \
        .key = (k), .type = KR_KV_BYTES, .bytes = (v)                                              \
    }
#define KR_I(k, v)                                                                                 \
    {                                                                                              \
        .key = (k), .type = KR_KV_INT, .i = (v)                                                    \
    }
#define KR_U(k, v)                                                                                 \
    {                                                                                              \
        .key = (k), .type = KR_KV_UINT, .u = (v)                                                   \
    }
#define KR_T(k, v)                                                                                 \
    {                                                                                              \
        .key = (k), .type = KR_KV_BOOL, .flag = (v)                                                \
    }

void kr_log_init(struct kr_log *log, int fd, enum kr_log_level level);

static inline bool kr_log_on(const struct kr_log *log, enum kr_log_level level)
{
    return log != NULL && level <= log->level;
}

/* Writes the line whatever the level is; use KR_LOG_AT. */
void kr_log_write(const struct kr_log *log, enum kr_log_level level, const char *event,
                  const struct kr_kv *kv, size_t n);

/* KR_LOG_AT(log, KR_LOG_INFO, "tunnel-up", KR_S("cluster", name), KR_U("streams", 5));
 * Values are not evaluated when the level is off. */
#define KR_LOG_AT(log_, level_, event_, ...)                                                       \
    do {                                                                                           \
        if (kr_log_on((log_), (level_))) {                                                         \
            const struct kr_kv kr_kv_list_[] = {__VA_ARGS__};                                      \
            kr_log_write((log_), (level_), (event_), kr_kv_list_,                                  \
                         sizeof kr_kv_list_ / sizeof(struct kr_kv));                               \
        }                                                                                          \
    } while (0)

/* "error", "warn", "info", "debug", then NULL: for an option of type enum. */
extern const char *const kr_log_level_names[];

/* For an event that a peer can repeat: embed one zeroed per place and peer. */
struct kr_log_limit { /* the fields belong to log.c */
    int64_t window_ms;
    uint32_t used;
    uint64_t held;
};

/* Whether the event may be logged now: at most `burst` lines in each `per_ms`. When true,
 * *held (may be NULL) is how many were held back since the last line that was let through. */
bool kr_log_allow(struct kr_log_limit *l, int64_t now_ms, uint32_t burst, int64_t per_ms,
                  uint64_t *held);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options_value.h"

#include <inttypes.h>

#include "base/err.h"
#include "base/json.h"

#define STRING_MAX 4096

struct unit {
    const char *suffix;
    int64_t factor;
};

static const struct unit durations[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
static const struct unit sizes[] = {
    {"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}};

static void *field(const struct kr_option *opt, void *config)
{
    return (char *)config + opt->offset;
}

static const void *const_field(const struct kr_option *opt, const void *config)
{
    return (const char *)config + opt->offset;
}

static bool bounded(const struct kr_option *opt)
{
    return opt->min != 0 || opt->max != 0;
}

static int set_number(const struct kr_option *opt, void *config, int64_t v, struct kr_note *why)
{
    if (bounded(opt) && (v < opt->min || v > opt->max))
        return kr_note_set(why, KR_EINVAL, "%s: out of range (%" PRId64 " to %" PRId64 "%s)",
                           opt->name, opt->min, opt->max,
                           opt->type == KR_OPT_DURATION ? " ms"
                           : opt->type == KR_OPT_SIZE   ? " bytes"
                                                        : "");
    *(int64_t *)field(opt, config) = v;
    return 0;
}

static int set_int(const struct kr_option *opt, void *config, struct kr_bytes text,
                   struct kr_note *why)
{
    bool negative = text.n != 0 && text.p[0] == '-';
    uint64_t v;

    if (!kr_bytes_to_u64(negative ? kr_bytes_skip(text, 1) : text, INT64_MAX, &v))
        return kr_note_set(why, KR_EINVAL, "%s: expected a whole number", opt->name);
    return set_number(opt, config, negative ? -(int64_t)v : (int64_t)v, why);
}

static int set_with_unit(const struct kr_option *opt, void *config, struct kr_bytes text,
                         const struct unit *units, size_t n_units, struct kr_note *why)
{
    size_t digits = 0;
    uint64_t v = 0;
    bool fine;

    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    fine = kr_bytes_to_u64(kr_bytes_of(text.p, digits), INT64_MAX, &v);
    if (fine && v == 0 && digits == text.n)
        return set_number(opt, config, 0, why);
    for (size_t i = 0; fine && i < n_units; i++) {
        int64_t product;

        if (!kr_bytes_is(kr_bytes_skip(text, digits), units[i].suffix))
            continue;
        if (__builtin_mul_overflow((int64_t)v, units[i].factor, &product))
            break;
        return set_number(opt, config, product, why);
    }
    return kr_note_set(why, KR_EINVAL, "%s: expected a %s", opt->name,
                       opt->type == KR_OPT_DURATION ? "duration such as 500ms, 30s, 5m or 1h"
                                                    : "size such as 512, 64KiB, 4MiB or 1GiB");
}

static int set_bool(const struct kr_option *opt, void *config, struct kr_bytes text,
                    struct kr_note *why)
{
    bool yes = kr_bytes_is(text, "true");

    if (!yes && !kr_bytes_is(text, "false"))
        return kr_note_set(why, KR_EINVAL, "%s: expected true or false", opt->name);
    *(bool *)field(opt, config) = yes;
    return 0;
}

static int set_enum(const struct kr_option *opt, void *config, struct kr_bytes text,
                    struct kr_note *why)
{
    char all[128] = "";
    size_t used = 0;

    for (int i = 0; opt->choices[i] != NULL; i++) {
        size_t room = sizeof all - used;
        int n;

        if (kr_bytes_is(text, opt->choices[i])) {
            *(int *)field(opt, config) = i;
            return 0;
        }
        n = snprintf(all + used, room, "%s%s", i != 0 ? ", " : "", opt->choices[i]);
        used += n > 0 && (size_t)n < room ? (size_t)n : 0;
    }
    return kr_note_set(why, KR_EINVAL, "%s: expected one of %s", opt->name, all);
}

/* A copy with NUL behind it, once the text is known to be printable and not too long. */
static int copy_string(const struct kr_option *opt, struct kr_arena *arena, struct kr_bytes text,
                       const char **out, struct kr_note *why)
{
    if (text.n > STRING_MAX)
        return kr_note_set(why, KR_EINVAL, "%s: longer than %d bytes", opt->name, STRING_MAX);
    if (!kr_bytes_is_utf8(text))
        return kr_note_set(why, KR_EINVAL, "%s: not valid UTF-8", opt->name);
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] < ' ' || text.p[i] == 0x7F)
            return kr_note_set(why, KR_EINVAL, "%s: control characters are not allowed", opt->name);
    }
    *out = (const char *)kr_arena_copy(arena, text).p;
    return *out != NULL ? 0 : kr_note_set(why, KR_ENOMEM, "%s: out of memory", opt->name);
}

static int set_string(const struct kr_option *opt, void *config, struct kr_arena *arena,
                      struct kr_bytes text, struct kr_note *why)
{
    if (bounded(opt) && ((int64_t)text.n < opt->min || (int64_t)text.n > opt->max))
        return kr_note_set(why, KR_EINVAL, "%s: expected %" PRId64 " to %" PRId64 " bytes",
                           opt->name, opt->min, opt->max);
    return copy_string(opt, arena, text, (const char **)field(opt, config), why);
}

static int set_strings(const struct kr_option *opt, void *config, struct kr_arena *arena,
                       const struct kr_bytes *items, size_t n, struct kr_note *why)
{
    int64_t max = bounded(opt) && opt->max < KR_OPTION_ITEMS_MAX ? opt->max : KR_OPTION_ITEMS_MAX;
    struct kr_strings *out = field(opt, config);
    const char **v;

    if ((int64_t)n < opt->min || (int64_t)n > max)
        return kr_note_set(why, KR_EINVAL, "%s: expected %" PRId64 " to %" PRId64 " items",
                           opt->name, opt->min, max);
    v = kr_arena_alloc(arena, (n + 1) * sizeof *v);
    if (v == NULL)
        return kr_note_set(why, KR_ENOMEM, "%s: out of memory", opt->name);
    for (size_t i = 0; i < n; i++) {
        int rc = copy_string(opt, arena, items[i], &v[i], why);

        if (rc != 0)
            return rc;
        if (items[i].n == 0)
            return kr_note_set(why, KR_EINVAL, "%s: an item is empty", opt->name);
    }
    v[n] = NULL;
    *out = (struct kr_strings){.v = v, .n = n};
    return 0;
}

int kr_option_set(const struct kr_option *opt, void *config, struct kr_arena *arena,
                  const struct kr_bytes *items, size_t n, struct kr_note *why)
{
    if (opt->type != KR_OPT_STRINGS && n != 1)
        return kr_note_set(why, KR_EINVAL, "%s: expected one value, not a list", opt->name);
    switch (opt->type) {
    case KR_OPT_STRING:
        return set_string(opt, config, arena, items[0], why);
    case KR_OPT_STRINGS:
        return set_strings(opt, config, arena, items, n, why);
    case KR_OPT_INT:
        return set_int(opt, config, items[0], why);
    case KR_OPT_DURATION:
        return set_with_unit(opt, config, items[0], durations,
                             sizeof durations / sizeof durations[0], why);
    case KR_OPT_SIZE:
        return set_with_unit(opt, config, items[0], sizes, sizeof sizes / sizeof sizes[0], why);
    case KR_OPT_BOOL:
        return set_bool(opt, config, items[0], why);
    case KR_OPT_ENUM:
        return set_enum(opt, config, items[0], why);
    }
    return KR_EINVAL;
}

size_t kr_option_split(struct kr_bytes text, struct kr_bytes *items, size_t max)
{
    size_t n = 0;

    while (text.n != 0) {
        size_t len = kr_bytes_find(text, ',');

        if (n < max)
            items[n] = kr_bytes_of(text.p, len);
        n++;
        if (len == text.n)
            break;
        text = kr_bytes_skip(text, len + 1);
        if (text.n == 0 && n++ < max)
            items[n - 1] = text; /* "a," has an empty last item, which is refused later */
    }
    return n;
}

static int print_string(const struct kr_option *opt, const char *s, struct kr_buf *out)
{
    int rc = kr_buf_append_str(out, "\"");

    if (rc == 0)
        rc = kr_json_escape(out, kr_bytes_str(opt->secret ? "***" : s));
    return rc == 0 ? kr_buf_append_str(out, "\"") : rc;
}

static int print_strings(const struct kr_option *opt, const struct kr_strings *list,
                         struct kr_buf *out)
{
    int rc = kr_buf_append_str(out, "[");

    for (size_t i = 0; i < list->n && rc == 0; i++) {
        if (i != 0)
            rc = kr_buf_append_str(out, ", ");
        if (rc == 0)
            rc = print_string(opt, list->v[i], out);
    }
    return rc == 0 ? kr_buf_append_str(out, "]") : rc;
}

/* The largest unit that divides the value. */
static int print_with_unit(int64_t v, const struct unit *units, size_t n_units, struct kr_buf *out)
{
    for (size_t i = n_units; i-- != 0;) {
        if (v != 0 && v % units[i].factor == 0)
            return kr_buf_printf(out, "%" PRId64 "%s", v / units[i].factor, units[i].suffix);
    }
    return kr_buf_append_str(out, "0");
}

int kr_option_print(const struct kr_option *opt, const void *config, struct kr_buf *out)
{
    const void *at = const_field(opt, config);

    switch (opt->type) {
    case KR_OPT_STRING:
        return print_string(opt, *(const char *const *)at, out);
    case KR_OPT_STRINGS:
        return print_strings(opt, at, out);
    case KR_OPT_INT:
        return kr_buf_printf(out, "%" PRId64, *(const int64_t *)at);
    case KR_OPT_DURATION:
        return print_with_unit(*(const int64_t *)at, durations,
                               sizeof durations / sizeof durations[0], out);
    case KR_OPT_SIZE:
        return print_with_unit(*(const int64_t *)at, sizes, sizeof sizes / sizeof sizes[0], out);
    case KR_OPT_BOOL:
        return kr_buf_append_str(out, *(const bool *)at ? "true" : "false");
    case KR_OPT_ENUM:
        return kr_buf_append_str(out, opt->choices[*(const int *)at]);
    }
    return 0;
}

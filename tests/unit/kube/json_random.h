/* SPDX-License-Identifier: Apache-2.0 */
/* json_random: random JSON text for the tests of the scanners. Keys of one object mean different
 * names; some are spelled with escapes. */
#ifndef TESTS_JSON_RANDOM_H
#define TESTS_JSON_RANDOM_H

#include "base/buf.h"
#include "base/rand.h"

#include <stdlib.h>

#define RANDOM_NAMES 8

struct json_random {
    struct kr_rand *r;
    struct kr_buf *out;
    const char *const (*names)[2]; /* RANDOM_NAMES pairs: plain, and the same with escapes */
    bool spaces;
};

static const char *const json_random_names[RANDOM_NAMES][2] = {
    {"a", "\\u0061"},
    {"bee", "b\\u0065e"},
    {"spec", "sp\\u0065c"},
    {"c.d", "c\\u002ed"},
    {"", ""},
    {"e\\\"f", "e\\u0022f"},
    {"caf\xc3\xa9", "caf\\u00e9"},
    {"\xf0\x9f\x9a\x80", "\\ud83d\\ude80"},
};

static inline void json_random_put(struct json_random *m, const char *text)
{
    if (kr_buf_append_str(m->out, text) != 0)
        abort();
}

static inline void json_random_space(struct json_random *m)
{
    static const char *const all[] = {" ", "\n", "\t", "\r\n", "  ", "\n    "};

    if (m->spaces && kr_rand_below(m->r, 4) == 0)
        json_random_put(m, all[kr_rand_below(m->r, sizeof all / sizeof all[0])]);
}

static inline void json_random_scalar(struct json_random *m)
{
    static const char *const all[] = {
        "null",
        "true",
        "false",
        "0",
        "-0",
        "1",
        "1.0",
        "1e3",
        "1E+2",
        "-12.50e-7",
        "9007199254740993",
        "18446744073709551615",
        "\"\"",
        "\"x\"",
        "\"]}{[,:\"",
        "\"\\\"\"",
        "\"\\\\\"",
        "\"\\\\\\\"\\\\\"",
        "\"\\u0000\"",
        "\"a\\u0000b\"",
        "\"\\ud83d\\ude80\"",
        "\"\xe2\x82\xac\xf0\x9f\x9a\x80\"",
        "\"\\b\\f\\n\\r\\t\\/\"",
        "\"a text that is longer than a block of sixty-four bytes, with a \\\" in it and a \\\\ "
        "too\"",
    };

    json_random_put(m, all[kr_rand_below(m->r, sizeof all / sizeof all[0])]);
}

static inline void json_random_value(struct json_random *m, unsigned depth);

static inline void json_random_members(struct json_random *m, unsigned depth)
{
    bool first = true;

    json_random_put(m, "{");
    for (size_t i = 0; i < RANDOM_NAMES; i++) {
        if (kr_rand_below(m->r, 2) == 0)
            continue;
        json_random_space(m);
        json_random_put(m, first ? "\"" : ",\"");
        json_random_put(m, m->names[i][kr_rand_below(m->r, 4) == 0]);
        json_random_put(m, "\"");
        json_random_space(m);
        json_random_put(m, ":");
        json_random_space(m);
        json_random_value(m, depth - 1);
        first = false;
    }
    json_random_space(m);
    json_random_put(m, "}");
}

static inline void json_random_elements(struct json_random *m, unsigned depth)
{
    const uint64_t count = kr_rand_below(m->r, 4);

    json_random_put(m, "[");
    for (uint64_t i = 0; i < count; i++) {
        json_random_space(m);
        json_random_put(m, i != 0 ? "," : "");
        json_random_value(m, depth - 1);
    }
    json_random_space(m);
    json_random_put(m, "]");
}

/* Objects and arrays down to `depth` levels. */
static inline void json_random_value(struct json_random *m, unsigned depth)
{
    const uint64_t dice = kr_rand_below(m->r, 10);

    json_random_space(m);
    if (depth != 0 && dice < 4)
        json_random_members(m, depth);
    else if (depth != 0 && dice < 7)
        json_random_elements(m, depth);
    else
        json_random_scalar(m);
    json_random_space(m);
}

#endif

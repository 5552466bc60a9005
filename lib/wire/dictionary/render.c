/* SPDX-License-Identifier: Apache-2.0 */
#include "render.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUES_MAX 64
#define VALUE_MAX 96
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static void die(const char *what, const char *about)
{
    fprintf(stderr, "make_dictionary: %s: %s\n", what, about);
    exit(1);
}

void text_add(struct text *t, const char *p, size_t n)
{
    if (t->n + n > t->cap) {
        t->cap = 2 * (t->n + n);
        t->p = realloc(t->p, t->cap);
        if (t->p == NULL)
            die("out of memory", "text");
    }
    memcpy(t->p + t->n, p, n);
    t->n += n;
}

void text_read_file(struct text *t, const char *path)
{
    char buf[4096];
    FILE *f = fopen(path, "r");
    size_t n;

    if (f == NULL)
        die("cannot read", path);
    while ((n = fread(buf, 1, sizeof buf, f)) != 0)
        text_add(t, buf, n);
    if (ferror(f))
        die("cannot read", path);
    fclose(f);
    text_add(t, "\n---\n", 5);
}

/* --- values -------------------------------------------------------------------------------- */

struct draw { /* what one object has drawn so far */
    bool blank;
    uint64_t state;
    int year;
    int64_t time; /* seconds since its beginning */
    size_t n;
    struct {
        char name[24];
        char text[VALUE_MAX];
    } values[VALUES_MAX];
};

static const char hex[] = "0123456789abcdef";
static const char *const names[] = {"web",    "api",    "frontend", "backend", "gateway", "worker",
                                    "cache",  "auth",   "orders",   "billing", "catalog", "search",
                                    "report", "sensor", "ingest",   "router"};
static const char *const spaces[] = {"default",    "production", "monitoring", "apps",
                                     "ingress",    "shop",       "edge",       "logging",
                                     "data-plane", "staging"};

/* splitmix64 (public domain, S. Vigna) */
static uint64_t next(struct draw *d)
{
    uint64_t x = d->state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static unsigned below(struct draw *d, unsigned n)
{
    return (unsigned)(next(d) % n);
}

static void letters(struct draw *d, size_t n, const char *alphabet, char *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = alphabet[below(d, (unsigned)strlen(alphabet))];
    out[n] = '\0';
}

__attribute__((format(printf, 2, 3))) static void say(char *out, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(out, VALUE_MAX, fmt, ap);
    va_end(ap);
}

/* Years are all as 2023 was: that is near enough for a corpus. */
static void say_time(struct draw *d, char *out)
{
    static const int months[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int day;
    int month = 0;

    d->time += below(d, 20);
    for (day = (int)(d->time / 86400) % 365; day >= months[month]; month++)
        day -= months[month];
    say(out, "%d-%02d-%02dT%02d:%02d:%02dZ", d->year, month + 1, day + 1,
        (int)(d->time / 3600 % 24), (int)(d->time / 60 % 60), (int)(d->time % 60));
}

/* In statements of their own: the order in which arguments are computed is the compiler's choice,
 * and the dictionary must not depend on that. */
static void say_age(struct draw *d, char *out)
{
    unsigned how = below(d, 4);
    unsigned x = below(d, 200);
    unsigned y = below(d, 23);

    if (how == 0)
        say(out, "%uh", x % 38 + 10);
    else if (how == 1)
        say(out, "%ud%uh", x % 6 + 2, y + 1);
    else
        say(out, "%ud", x + 8);
}

static void say_address(struct draw *d, bool host, char *out)
{
    unsigned a = below(d, 250);
    unsigned b = below(d, 250);
    unsigned c = below(d, 250);

    if (host)
        say(out, "192.168.%u.%u", b, c);
    else
        say(out, "10.%u.%u.%u", a, b, c);
}

static void say_uid(struct draw *d, char *out)
{
    char a[36];

    letters(d, 35, hex, a);
    say(out, "%.8s-%.4s-4%.3s-%c%.3s-%.12s", a, a + 8, a + 12, "89ab"[below(d, 4)], a + 15, a + 18);
}

/* Kinds of values: a prefix of the name in a template, how one is drawn, and the blank for it, or
 * NULL where parts of any value are worth having (a year, a network). */
enum draw_kind { UID, HEX, SAFE, NAME, SPACE, NODE, TIME, AGE, IP, HOST, NUMBER };

static const struct kind {
    const char *prefix;
    enum draw_kind draw;
    unsigned size;
    const char *blank;
} kinds[] = {
    {"uid", UID, 36, "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
    {"sha", HEX, 64, "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~"},
    {"git", HEX, 40, "~"},
    {"md5", HEX, 32, "~"},
    {"hex", HEX, 14, "~"},
    {"hash", SAFE, 9, "~~~~~~~~~"},
    {"tail", SAFE, 5, "~~~~~"},
    {"id", SAFE, 5, "~~~~~"},
    {"name", NAME, 0, NULL},
    {"ns", SPACE, 0, NULL},
    {"node", NODE, 0, NULL},
    {"time", TIME, 0, NULL},
    {"age", AGE, 0, NULL},
    {"ip", IP, 0, NULL},
    {"host", HOST, 0, NULL},
    {"num8", NUMBER, 29000000, NULL},
    {"num", NUMBER, 1, NULL},
};

static void make(struct draw *d, const struct kind *k, char *out)
{
    switch (k->draw) {
    case UID:
        say_uid(d, out);
        break;
    case HEX:
        letters(d, k->size, hex, out);
        break;
    case SAFE:
        letters(d, k->size, "bcdfghjklmnpqrstvwxz2456789", out);
        break;
    case NAME:
        say(out, "%s", names[below(d, COUNT(names))]);
        break;
    case SPACE:
        say(out, "%s", spaces[below(d, COUNT(spaces))]);
        break;
    case NODE:
        say(out, "node-%u", below(d, 90) + 10);
        break;
    case TIME:
        say_time(d, out);
        break;
    case AGE:
        say_age(d, out);
        break;
    case IP:
        say_address(d, false, out);
        break;
    case HOST:
        say_address(d, true, out);
        break;
    case NUMBER:
        say(out, "%u", k->size + below(d, 9 * k->size));
        break;
    }
}

static const struct kind *kind_of(const char *name)
{
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return &kinds[i];
    }
    die("unknown value", name);
    return NULL;
}

static const char *value(struct draw *d, const char *name)
{
    const struct kind *k = kind_of(name);
    bool fresh = strcmp(name, "uid") == 0 || strcmp(name, "sha") == 0;
    size_t i = 0;

    if (d->blank && k->blank != NULL)
        return k->blank;
    while (i < d->n && strcmp(d->values[i].name, name) != 0)
        i++;
    if (i == d->n) {
        if (d->n++ == VALUES_MAX)
            die("too many values", name);
        say(d->values[i].name, "%s", name);
        fresh = true;
    }
    if (fresh)
        make(d, k, d->values[i].text);
    return d->values[i].text;
}

/* --- rendering ----------------------------------------------------------------------------- */

/* @word@ at p, or @@ for the sign itself; returns what follows it. */
static const char *put_value(struct draw *d, const char *p, const char *end, struct text *out)
{
    const char *stop = memchr(p + 1, '@', (size_t)(end - p - 1));
    char name[24];
    const char *v;

    if (stop == NULL || (size_t)(stop - p) > sizeof name)
        die("no end of a value", p);
    if (stop == p + 1) {
        text_add(out, "@", 1);
        return stop + 1;
    }
    memcpy(name, p + 1, (size_t)(stop - p - 1));
    name[stop - p - 1] = '\0';
    v = value(d, name);
    text_add(out, v, strlen(v));
    return stop + 1;
}

static void render(struct draw *d, const char *p, const char *end, struct text *out)
{
    int in_string = 0;
    int depth = 0;

    while (p < end) {
        char c = *p;

        if (!in_string && c == '#') {
            p = memchr(p, '\n', (size_t)(end - p));
            continue;
        }
        if (in_string && c == '@') {
            p = put_value(d, p, end, out);
            continue;
        }
        if (c == '"' && p[-1] != '\\')
            in_string = !in_string;
        if (in_string || !strchr(" \n", c))
            text_add(out, p, 1);
        depth += !in_string && strchr("[{", c) ? 1 : 0;
        depth -= !in_string && strchr("]}", c) ? 1 : 0;
        if (!in_string && depth == 0 && c == ']')
            text_add(out, "\n", 1); /* between the cells and the object */
        p++;
    }
    if (depth != 0 || in_string)
        die("unbalanced template", out->p);
}

int render_next(const struct text *templates, size_t *at, uint64_t seed, bool blank,
                struct text *out)
{
    struct draw d = {.state = seed, .blank = blank};
    const char *from = templates->p + *at;
    const char *stop;

    if (*at >= templates->n)
        return 0;
    stop = memmem(from, templates->n - *at, "\n---", 4);
    if (stop == NULL)
        die("no end of a template", "");
    d.year = 2024 + (int)below(&d, 4);
    d.time = (int64_t)(next(&d) % (300u * 86400));
    render(&d, from, stop + 1, out);
    stop = memchr(stop + 1, '\n', (size_t)(templates->p + templates->n - stop - 1));
    *at = (size_t)(stop + 1 - templates->p);
    return 1;
}

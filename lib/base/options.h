/* SPDX-License-Identifier: Apache-2.0 */
/* options: everything that can be configured of a program stands in one table, which drives the
 * configuration file (flat YAML, keys are the names), the command line (flags are the names in
 * kebab-case: apiListen is --api-listen), --help, --check-config and --print-config.
 * Order: default, then file, then flags; a list that is given replaces the list before it.
 * Values as text:
 *   int       -?[0-9]+                     field int64_t
 *   duration  100ms, 30s, 5m, 1h, or 0     field int64_t, milliseconds
 *   size      512, 64KiB, 4MiB, 1GiB       field int64_t, bytes
 *   bool      true or false                field bool      (flags: --x is --x=true)
 *   enum      one of `choices`             field int, the position in `choices`
 *   string    UTF-8 without control chars  field const char *, NULL when neither given nor default
 *   strings   list, or a,b,c as a flag     field struct kr_strings
 * Memory: all strings belong to struct kr_options and live until kr_options_deinit.
 * Errors: one line on `err`, `FILE:LINE: message` for the file; exit code 2. */
#ifndef KR_BASE_OPTIONS_H
#define KR_BASE_OPTIONS_H

#include <stdio.h>

#include "base/arena.h"
#include "base/note.h"

enum kr_option_type {
    KR_OPT_STRING,
    KR_OPT_STRINGS,
    KR_OPT_INT,
    KR_OPT_DURATION,
    KR_OPT_SIZE,
    KR_OPT_BOOL,
    KR_OPT_ENUM,
};

struct kr_strings {
    const char **v; /* v[0..n-1], then a NULL */
    size_t n;
};

struct kr_option {
    const char *name; /* camelCase */
    enum kr_option_type type;
    size_t offset;     /* of the field in the configuration struct */
    const char *value; /* the default as text (lists: a,b,c); NULL: none, the field is zeroed */
    int64_t min;       /* of numbers; of lists: items */
    int64_t max; /* 0 with min 0: no bound of its own (strings: 4096 bytes, lists: 64 items) */
    const char *const *choices; /* enum: ends in NULL */
    bool required;
    bool secret;      /* --print-config shows *** */
    const char *unit; /* shown in --help for VALUE: "HOST:PORT", "FILE", ... */
    const char *text; /* one sentence for --help and the manual */
};

struct kr_program {
    const char *name;
    const char *summary; /* one sentence */
    const char *args;    /* how --help shows positional arguments, or NULL */
    size_t max_args;     /* positional arguments accepted */
    bool no_file;        /* without --config, --check-config, --print-config */
    const struct kr_option *options;
    size_t n_options;
    /* What one option alone cannot know; non-zero with a note refuses. May be NULL. */
    int (*check)(const void *config, struct kr_note *why);
};

struct kr_options { /* embed it; read args, n_args, file; the rest belongs to options.c */
    const struct kr_program *program;
    void *config;
    struct kr_arena arena;
    const char *file; /* what --config named, or NULL */
    const char **args;
    size_t n_args;
    int *given; /* per option: 0, the file's line, or -1 for the command line */
    bool check_only;
    bool print_only;
    FILE *out;
    FILE *err;
};

#define KR_OPTIONS_RUN (-1)

/* Fills `config` (zeroed first). KR_OPTIONS_RUN: go on; else the program exits with what is
 * returned: 0 after --help, --version, --check-config and --print-config, 2 after a fault.
 * `out` and `err` are usually stdout and stderr. kr_options_deinit is due in every case. */
int kr_options_parse(struct kr_options *o, const struct kr_program *program, void *config, int argc,
                     char *const *argv, FILE *out, FILE *err);
void kr_options_deinit(struct kr_options *o); /* zeroed is fine */

#endif

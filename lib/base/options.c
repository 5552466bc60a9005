/* SPDX-License-Identifier: Apache-2.0 */
/* The command line is walked twice: first for --help, --version, --config and mistakes, then, after
 * the defaults and the file, for the values. */
#include "base/options.h"

#include "base/assert.h"
#include "base/config.h"
#include "base/err.h"
#include "base/options_value.h"

#define ARENA_MAX ((size_t)16 * 1024 * 1024)
#define ON_COMMAND_LINE (-1)

struct flag {                    /* one argument (or two) taken apart */
    const struct kr_option *opt; /* NULL: built in, or positional */
    struct kr_bytes name;        /* without the dashes; .p NULL: positional */
    struct kr_bytes value;       /* .p NULL: none */
};

/* Prints the fault in one line, whatever is in it. */
static int fault(struct kr_options *o, const char *prefix, const struct kr_note *why)
{
    fprintf(o->err, "%s%s", prefix != NULL ? prefix : "", prefix != NULL ? ": " : "");
    for (const char *c = why->text; *c != '\0'; c++)
        fputc((unsigned char)*c < ' ' || *c == 0x7F ? '?' : *c, o->err);
    fputc('\n', o->err);
    return 2;
}

/* Whether "api-listen" is the flag of "apiListen". */
static bool is_flag_of(struct kr_bytes flag, const char *name)
{
    size_t i = 0;

    for (; *name != '\0'; name++) {
        bool upper = *name >= 'A' && *name <= 'Z';

        if (upper && (i >= flag.n || flag.p[i++] != '-'))
            return false;
        if (i >= flag.n || flag.p[i++] != (upper ? *name + 32 : *name))
            return false;
    }
    return i == flag.n;
}

static void print_flag(FILE *out, const char *name)
{
    fputs("--", out);
    for (; *name != '\0'; name++) {
        if (*name >= 'A' && *name <= 'Z')
            fprintf(out, "-%c", *name + 32);
        else
            fputc(*name, out);
    }
}

static const struct kr_option *find(const struct kr_program *p, struct kr_bytes name, bool flag)
{
    for (size_t i = 0; i < p->n_options; i++) {
        const struct kr_option *opt = &p->options[i];

        if (flag ? is_flag_of(name, opt->name) : kr_bytes_is(name, opt->name))
            return opt;
    }
    return NULL;
}

static bool is_builtin(const struct kr_program *p, struct kr_bytes name)
{
    if (kr_bytes_is(name, "help") || kr_bytes_is(name, "version"))
        return true;
    return !p->no_file && (kr_bytes_is(name, "config") || kr_bytes_is(name, "check-config") ||
                           kr_bytes_is(name, "print-config"));
}

static bool takes_value(const struct flag *f)
{
    return f->opt != NULL ? f->opt->type != KR_OPT_BOOL : kr_bytes_is(f->name, "config");
}

/* Takes argv[*i] apart, and argv[*i + 1] where it is the value; moves *i behind. */
static int next_flag(struct kr_options *o, int argc, char *const *argv, int *i, struct flag *f,
                     struct kr_note *why)
{
    struct kr_bytes arg = kr_bytes_str(argv[(*i)++]);
    size_t name_len;

    *f = (struct flag){.opt = NULL};
    if (kr_bytes_is(arg, "-h"))
        arg = KR_LIT("--help");
    if (arg.n < 2 || arg.p[0] != '-') {
        f->value = arg;
        return 0;
    }
    f->name = kr_bytes_skip(arg, arg.p[1] == '-' ? 2 : 1);
    name_len = kr_bytes_find(f->name, '=');
    if (name_len != f->name.n)
        f->value = kr_bytes_skip(f->name, name_len + 1);
    f->name.n = name_len;
    f->opt = find(o->program, f->name, true);
    if (arg.p[1] != '-' || (f->opt == NULL && !is_builtin(o->program, f->name)))
        return kr_note_set(why, KR_EINVAL, "unknown option %.*s (see --help)",
                           (int)(arg.n < 100 ? arg.n : 100), (const char *)arg.p);
    if (!takes_value(f) && f->opt == NULL && f->value.p != NULL)
        return kr_note_set(why, KR_EINVAL, "--%.*s takes no value", (int)name_len, f->name.p);
    if (takes_value(f) && f->value.p == NULL) {
        if (*i == argc || strncmp(argv[*i], "--", 2) == 0)
            return kr_note_set(why, KR_EINVAL, "--%.*s needs a value", (int)name_len, f->name.p);
        f->value = kr_bytes_str(argv[(*i)++]);
    }
    return 0;
}

static void print_default(FILE *out, const struct kr_option *opt)
{
    if (opt->required)
        fputs(" (required)", out);
    else if (opt->value != NULL && opt->value[0] != '\0')
        fprintf(out, " (default %s)", opt->value);
}

static const char *value_word(const struct kr_option *opt)
{
    static const char *const words[] = {"TEXT", "LIST", "N", "DURATION", "SIZE", "", "WORD"};

    return opt->unit != NULL ? opt->unit : words[opt->type];
}

static void print_help(const struct kr_options *o)
{
    const struct kr_program *p = o->program;

    fprintf(o->out, "Usage: %s [OPTION]...%s%s\n%s\n\n", p->name, p->args != NULL ? " " : "",
            p->args != NULL ? p->args : "", p->summary);
    for (size_t i = 0; i < p->n_options; i++) {
        const struct kr_option *opt = &p->options[i];

        fputs("  ", o->out);
        print_flag(o->out, opt->name);
        if (opt->type != KR_OPT_BOOL)
            fprintf(o->out, " %s", value_word(opt));
        fprintf(o->out, "\n      %s", opt->text);
        for (int k = 0; opt->choices != NULL && opt->choices[k] != NULL; k++)
            fprintf(o->out, "%s%s", k == 0 ? ": " : ", ", opt->choices[k]);
        print_default(o->out, opt);
        fputc('\n', o->out);
    }
    if (!p->no_file)
        fputs("  --config FILE\n      Read options from this YAML file (keys in camelCase, such as "
              "`apiListen`); flags override it\n"
              "  --check-config\n      Say whether the configuration is valid, and exit\n"
              "  --print-config\n      Show the configuration in effect, and exit\n",
              o->out);
    fputs("  --help\n      Show this text, and exit\n  --version\n      Show the version, and "
          "exit\n",
          o->out);
}

/* First walk. KR_OPTIONS_RUN, or the exit code. */
static int scan_line(struct kr_options *o, int argc, char *const *argv)
{
    struct kr_note why = {.text = ""};
    bool only_args = false;

    for (int i = 1; i < argc;) {
        struct flag f = {.opt = NULL};

        if (!only_args && strcmp(argv[i], "--") == 0) {
            only_args = true;
            i++;
            continue;
        }
        if (only_args)
            f.value = kr_bytes_str(argv[i++]);
        else if (next_flag(o, argc, argv, &i, &f, &why) != 0)
            return fault(o, o->program->name, &why);
        if (f.name.p == NULL) {
            if (o->n_args == o->program->max_args) {
                kr_note_set(&why, KR_EINVAL, "unexpected argument `%.100s` (see --help)",
                            (const char *)f.value.p);
                return fault(o, o->program->name, &why);
            }
            o->args[o->n_args++] = (const char *)f.value.p;
        } else if (f.opt == NULL && kr_bytes_is(f.name, "help")) {
            print_help(o);
            return 0;
        } else if (f.opt == NULL && kr_bytes_is(f.name, "version")) {
            fprintf(o->out, "%s %s\n", o->program->name, KR_VERSION);
            return 0;
        } else if (f.opt == NULL && kr_bytes_is(f.name, "config")) {
            o->file = (const char *)f.value.p;
        } else if (f.opt == NULL) {
            o->check_only = o->check_only || kr_bytes_is(f.name, "check-config");
            o->print_only = o->print_only || kr_bytes_is(f.name, "print-config");
        }
    }
    return KR_OPTIONS_RUN;
}

/* A list that comes again on the command line goes on where it was. */
static int set_from_line(struct kr_options *o, const struct flag *f, struct kr_note *why)
{
    struct kr_bytes items[KR_OPTION_ITEMS_MAX];
    int *given = &o->given[f->opt - o->program->options];
    bool again = *given == ON_COMMAND_LINE;
    size_t n = 0;

    *given = ON_COMMAND_LINE;
    if (f->opt->type != KR_OPT_STRINGS) {
        items[0] = f->value.p != NULL ? f->value : KR_LIT("true");
        return kr_option_set(f->opt, o->config, &o->arena, items, 1, why);
    }
    if (again) {
        const struct kr_strings *old =
            (const struct kr_strings *)(const void *)((char *)o->config + f->opt->offset);

        for (; n < old->n; n++)
            items[n] = kr_bytes_str(old->v[n]);
    }
    n += kr_option_split(f->value, items + n, KR_OPTION_ITEMS_MAX - n);
    return kr_option_set(f->opt, o->config, &o->arena, items, n, why);
}

/* Second walk. */
static int apply_line(struct kr_options *o, int argc, char *const *argv, struct kr_note *why)
{
    int rc = 0;

    for (int i = 1; i < argc && rc == 0 && strcmp(argv[i], "--") != 0;) {
        struct flag f;

        rc = next_flag(o, argc, argv, &i, &f, why);
        if (rc == 0 && f.opt != NULL)
            rc = set_from_line(o, &f, why);
    }
    return rc;
}

/* A default that is not valid is our own mistake. */
static void apply_defaults(struct kr_options *o)
{
    for (size_t i = 0; i < o->program->n_options; i++) {
        const struct kr_option *opt = &o->program->options[i];
        struct kr_bytes items[KR_OPTION_ITEMS_MAX];
        size_t n = 1;

        if (opt->value == NULL)
            continue;
        items[0] = kr_bytes_str(opt->value);
        if (opt->type == KR_OPT_STRINGS)
            n = kr_option_split(items[0], items, KR_OPTION_ITEMS_MAX);
        KR_ASSERT(kr_option_set(opt, o->config, &o->arena, items, n, NULL) == 0);
    }
}

static int on_entry(void *owner, const struct kr_config_entry *e, struct kr_note *why)
{
    struct kr_options *o = owner;
    const struct kr_option *opt = find(o->program, e->key, false);
    int shown = (int)(e->key.n < 100 ? e->key.n : 100);
    int *given;

    if (opt == NULL)
        return kr_note_set(why, KR_EINVAL, "unknown key `%.*s`", shown, (const char *)e->key.p);
    given = &o->given[opt - o->program->options];
    if (*given != 0)
        return kr_note_set(why, KR_EINVAL, "key `%s` stands twice (first in line %d)", opt->name,
                           *given);
    *given = e->line;
    if (e->is_list != (opt->type == KR_OPT_STRINGS))
        return kr_note_set(why, KR_EINVAL, "%s: expected %s", opt->name,
                           e->is_list ? "one value, not a list" : "a list");
    return kr_option_set(opt, o->config, &o->arena, e->items, e->n, why);
}

static int check_required(struct kr_options *o, struct kr_note *why)
{
    for (size_t i = 0; i < o->program->n_options; i++) {
        const struct kr_option *opt = &o->program->options[i];

        if (opt->required && o->given[i] == 0)
            return kr_note_set(why, KR_EINVAL, "option `%s` is required (see --help)", opt->name);
    }
    return 0;
}

static int print_config(struct kr_options *o)
{
    struct kr_buf text;
    int rc = 0;

    kr_buf_init(&text, ARENA_MAX);
    for (size_t i = 0; i < o->program->n_options && rc == 0; i++) {
        const struct kr_option *opt = &o->program->options[i];
        const void *at = (const char *)o->config + opt->offset;

        if (opt->type == KR_OPT_STRING && *(const char *const *)at == NULL) {
            rc = kr_buf_printf(&text, "# %s:\n", opt->name);
            continue;
        }
        rc = kr_buf_printf(&text, "%s: ", opt->name);
        if (rc == 0)
            rc = kr_option_print(opt, o->config, &text);
        if (rc == 0)
            rc = kr_buf_append_str(&text, "\n");
    }
    if (rc == 0 && text.n != 0)
        fwrite(text.p, 1, text.n, o->out);
    kr_buf_deinit(&text);
    return rc == 0 ? 0 : 2;
}

static int load(struct kr_options *o, int argc, char *const *argv)
{
    struct kr_note why = {.text = ""};

    apply_defaults(o);
    if (o->file != NULL && kr_config_read(o->file, on_entry, o, &why) != 0)
        return fault(o, NULL, &why);
    if (apply_line(o, argc, argv, &why) != 0 || check_required(o, &why) != 0 ||
        (o->program->check != NULL && o->program->check(o->config, &why) != 0))
        return fault(o, o->program->name, &why);
    return KR_OPTIONS_RUN;
}

int kr_options_parse(struct kr_options *o, const struct kr_program *program, void *config, int argc,
                     char *const *argv, FILE *out, FILE *err)
{
    struct kr_note why = {.text = "out of memory"};
    int rc;

    *o = (struct kr_options){.program = program, .config = config, .out = out, .err = err};
    kr_arena_init(&o->arena, 1024, ARENA_MAX);
    o->args = kr_arena_alloc(&o->arena, (program->max_args + 1) * sizeof *o->args);
    o->given = kr_arena_alloc(&o->arena, (program->n_options + 1) * sizeof *o->given);
    if (o->args == NULL || o->given == NULL)
        return fault(o, program->name, &why);
    memset(o->given, 0, program->n_options * sizeof *o->given);
    rc = scan_line(o, argc, argv);
    if (rc == KR_OPTIONS_RUN)
        rc = load(o, argc, argv);
    if (rc != KR_OPTIONS_RUN)
        return rc;
    if (o->print_only)
        return print_config(o);
    if (!o->check_only)
        return KR_OPTIONS_RUN;
    fputs("the configuration is valid\n", o->out);
    return 0;
}

void kr_options_deinit(struct kr_options *o)
{
    kr_arena_deinit(&o->arena);
    o->args = NULL;
    o->given = NULL;
}

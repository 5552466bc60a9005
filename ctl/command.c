/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/command.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

static int usage(const struct ctl_call *call, struct kr_note *why, const char *fault,
                 const char *what)
{
    return kr_note_set(why, KR_EINVAL, "%s%.80s (see kuberelayctl %s --help)", fault, what,
                       call->command->words);
}

static size_t index_of(const struct ctl_command *command, struct kr_bytes name)
{
    size_t i = 0;

    while (i < command->n_options && !kr_bytes_is(name, command->options[i].name))
        i++;
    return i;
}

static size_t must_find(const struct ctl_call *call, const char *name)
{
    size_t i = index_of(call->command, kr_bytes_str(name));

    KR_ASSERT(i < call->command->n_options);
    return i;
}

/* Which option "--name", "--name=VALUE" or "-x" is, and where VALUE begins (or NULL). */
static size_t recognize(const struct ctl_call *call, const char *word, const char **value)
{
    struct kr_bytes name = kr_bytes_str(word + 2);
    size_t i = 0;

    *value = NULL;
    if (word[1] == '-') {
        name.n = kr_bytes_find(name, '=');
        if (word[2 + name.n] == '=')
            *value = word + 2 + name.n + 1;
        return index_of(call->command, name);
    }
    while (i < call->command->n_options &&
           (word[2] != 0 || call->command->options[i].letter != word[1]))
        i++;
    return i;
}

/* Reads an option, with its value, at argv[*at] and steps over it. */
static int take_option(struct ctl_call *call, int argc, char *const *argv, int *at,
                       struct kr_note *why)
{
    const char *word = argv[*at];
    const struct ctl_option *option;
    const char *value;
    size_t i = recognize(call, word, &value);

    if (i == call->command->n_options)
        return usage(call, why, "unknown option ", word);
    option = &call->command->options[i];
    if (option->kind == CTL_SWITCH && value != NULL)
        return usage(call, why, "this option takes no value: ", word);
    if (option->kind != CTL_SWITCH && value == NULL) {
        if (*at + 1 == argc)
            return usage(call, why, "a value is missing behind ", word);
        value = argv[++*at];
    }
    if (value != NULL && value[0] == 0)
        return usage(call, why, "an empty value for ", word);
    if (call->counts[i] == 1 && option->kind != CTL_MANY && option->kind != CTL_SOME)
        return usage(call, why, "given twice: ", word);
    call->slots[i * call->room + call->counts[i]++] = value;
    ++*at;
    return 0;
}

static int take_word(struct ctl_call *call, int argc, char *const *argv, int *at,
                     struct kr_note *why)
{
    const char *word = argv[*at];

    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        call->help = true;
        ++*at;
        return 0;
    }
    if (word[0] == '-' && word[1] != 0 && strcmp(word, "--") != 0)
        return take_option(call, argc, argv, at, why);
    if (strcmp(word, "--") == 0)
        return usage(call, why, "unknown option ", word);
    if (call->command->arg != NULL && call->arg == NULL)
        call->arg = word;
    else if (call->command->arg2 != NULL && call->arg2 == NULL)
        call->arg2 = word;
    else
        return usage(call, why, "unexpected argument ", word);
    ++*at;
    return 0;
}

static int check_complete(const struct ctl_call *call, struct kr_note *why)
{
    for (size_t i = 0; i < call->command->n_options; i++) {
        const struct ctl_option *option = &call->command->options[i];

        if ((option->kind == CTL_REQUIRED || option->kind == CTL_SOME) && call->counts[i] == 0)
            return usage(call, why, "missing option --", option->name);
    }
    if (call->command->arg != NULL && call->arg == NULL)
        return usage(call, why, "missing argument ", call->command->arg);
    if (call->command->arg2 != NULL && call->arg2 == NULL)
        return usage(call, why, "missing argument ", call->command->arg2);
    return 0;
}

int ctl_call_init(struct ctl_call *call, const struct ctl_command *command, int argc,
                  char *const *argv, struct kr_note *why)
{
    int at = 0;
    int rc = 0;

    *call = (struct ctl_call){.command = command};
    KR_ASSERT(command->n_options <= CTL_OPTIONS_MAX);
    if (argc > CTL_ARGS_MAX)
        return usage(call, why, "too many words", "");
    call->room = (size_t)argc + 1;
    call->slots = calloc((command->n_options + 1) * call->room, sizeof *call->slots);
    if (call->slots == NULL)
        return kr_note_set(why, KR_ENOMEM, "out of memory");
    while (rc == 0 && at < argc && !call->help)
        rc = take_word(call, argc, argv, &at, why);
    if (rc == 0 && !call->help)
        rc = check_complete(call, why);
    return rc;
}

void ctl_call_deinit(struct ctl_call *call)
{
    free(call->slots);
    call->slots = NULL;
}

const char *ctl_get(const struct ctl_call *call, const char *name)
{
    return call->slots[must_find(call, name) * call->room];
}

bool ctl_knows(const struct ctl_call *call, const char *name)
{
    return index_of(call->command, kr_bytes_str(name)) < call->command->n_options;
}

bool ctl_has(const struct ctl_call *call, const char *name)
{
    return call->counts[must_find(call, name)] != 0;
}

const char *const *ctl_get_all(const struct ctl_call *call, const char *name, size_t *n)
{
    size_t i = must_find(call, name);

    *n = call->counts[i];
    return call->slots + i * call->room;
}

int ctl_get_number(const struct ctl_call *call, const char *name, uint64_t min, uint64_t max,
                   uint64_t fallback, uint64_t *out, struct kr_note *why)
{
    const char *text = ctl_get(call, name);

    *out = fallback;
    if (text == NULL)
        return 0;
    if (!kr_bytes_to_u64(kr_bytes_str(text), max, out) || *out < min)
        return kr_note_set(why, KR_EINVAL,
                           "--%s takes a number from %" PRIu64 " to %" PRIu64 ", not \"%.40s\"",
                           name, min, max, text);
    return 0;
}

static void print_synopsis(FILE *out, const struct ctl_command *command)
{
    fprintf(out, "Usage: kuberelayctl %s", command->words);
    for (size_t i = 0; i < command->n_options; i++) {
        const struct ctl_option *o = &command->options[i];

        switch (o->kind) {
        case CTL_ONE:
            fprintf(out, " [--%s %s]", o->name, o->value);
            break;
        case CTL_REQUIRED:
            fprintf(out, " --%s %s", o->name, o->value);
            break;
        case CTL_MANY:
            fprintf(out, " [--%s %s]...", o->name, o->value);
            break;
        case CTL_SOME:
            fprintf(out, " --%s %s [--%s %s]...", o->name, o->value, o->name, o->value);
            break;
        case CTL_SWITCH:
            fprintf(out, " [--%s]", o->name);
            break;
        }
    }
    fprintf(out, "%s%s%s%s\n", command->arg != NULL ? " " : "",
            command->arg != NULL ? command->arg : "", command->arg2 != NULL ? " " : "",
            command->arg2 != NULL ? command->arg2 : "");
}

void ctl_print_command_help(FILE *out, const struct ctl_command *command)
{
    print_synopsis(out, command);
    fprintf(out, "%s\n\nOptions:\n", command->summary);
    for (size_t i = 0; i < command->n_options; i++) {
        const struct ctl_option *o = &command->options[i];
        char left[64];

        snprintf(left, sizeof left, "%s%.1s%s--%s%s%s", o->letter != 0 ? "-" : "",
                 (const char[]){o->letter, 0}, o->letter != 0 ? ", " : "", o->name,
                 o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
        fprintf(out, "  %-24s %s\n", left, o->text);
    }
    fprintf(out, "  %-24s %s\n", "--help", "print this text");
}

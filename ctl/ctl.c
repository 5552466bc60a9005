/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/ctl.h"

#include <time.h>

#include "base/err.h"
#include "ctl/command.h"

static const struct ctl_command *const commands[] = {
    &ctl_ca_init,
    &ctl_ca_issue_hub,
    &ctl_ca_issue_agent,
    &ctl_ca_issue_user,
    &ctl_ca_show,
    &ctl_kubeconfig,
    &ctl_clusters_forget,
    &ctl_clusters, /* the longer words first */
    &ctl_token_create,
    &ctl_token_list,
    &ctl_token_revoke,
    &ctl_cluster_list,
    &ctl_cluster_accept,
    &ctl_cluster_deny,
    &ctl_can_i,
    &ctl_explain,
    &ctl_ca_revoke,
    &ctl_ca_crl,
    &ctl_ca_rotate_start,
    &ctl_ca_rotate_issue,
    &ctl_ca_rotate_servers,
    &ctl_ca_rotate_finish,
    &ctl_ca_rotate_rollback,
    &ctl_cluster_remove,
    &ctl_cluster_unlock,
};

#define N_COMMANDS (sizeof commands / sizeof commands[0])

static void print_help(FILE *out)
{
    fprintf(out, "Usage: kuberelayctl COMMAND [OPTION]...\n"
                 "The operator's command of kuberelay.\n\nCommands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(out, "  %-16s %s\n", commands[i]->words, commands[i]->summary);
    fprintf(out, "\nkuberelayctl COMMAND --help tells the options of a command.\n"
                 "Exit codes: 0 done, 1 failed, 2 wrong use.\n");
}

/* How many words of argv spell the command's name; 0 if they do not spell all of it. */
static int match(const struct ctl_command *command, int argc, char *const *argv)
{
    struct kr_bytes rest = kr_bytes_str(command->words);
    int words = 0;

    while (rest.n != 0) {
        size_t n = kr_bytes_find(rest, ' ');

        if (words == argc || !kr_bytes_is((struct kr_bytes){rest.p, n}, argv[words]))
            return 0;
        words++;
        rest = kr_bytes_skip(rest, n < rest.n ? n + 1 : n);
    }
    return words;
}

/* One line, whatever was quoted in it: argv may hold line breaks and escape sequences. */
static int report(FILE *err, int rc, const struct kr_note *why)
{
    const char *text = why->text[0] != 0 ? why->text : kr_err_text(rc);

    if (rc == 0)
        return 0;
    fputs("kuberelayctl: ", err);
    for (; *text != 0; text++)
        fputc((unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text, err);
    fputc('\n', err);
    return rc == KR_EINVAL ? 2 : 1;
}

static int64_t wall_ms(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int run_command(const struct ctl_command *command, int argc, char *const *argv, FILE *out,
                       FILE *err, struct kr_note *why)
{
    struct ctl_call call;
    int rc = ctl_call_init(&call, command, argc, argv, why);

    call.out = out;
    call.err = err;
    call.now_wall_ms = wall_ms();
    if (rc == 0 && call.help)
        ctl_print_command_help(out, command);
    else if (rc == 0)
        rc = command->run(&call, why);
    ctl_call_deinit(&call);
    return rc;
}

/* No command: help, version, or a fault. */
static int run_bare(int argc, char *const *argv, FILE *out, struct kr_note *why)
{
    const char *last = argc > 0 ? argv[argc - 1] : "";

    if (argc == 0)
        return kr_note_set(why, KR_EINVAL, "no command (see kuberelayctl --help)");
    if (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0) {
        print_help(out);
        return 0;
    }
    if (argc == 1 && strcmp(last, "--version") == 0) {
        fprintf(out, "kuberelayctl %s\n", KR_VERSION);
        return 0;
    }
    return kr_note_set(why, KR_EINVAL, "unknown command \"%.40s%s%.40s\" (see kuberelayctl --help)",
                       argv[0], argc > 1 ? " " : "", argc > 1 ? argv[1] : "");
}

static int dispatch(int argc, char *const *argv, FILE *out, FILE *err, struct kr_note *why)
{
    for (size_t i = 0; i < N_COMMANDS; i++) {
        int words = match(commands[i], argc, argv);

        if (words != 0)
            return run_command(commands[i], argc - words, argv + words, out, err, why);
    }
    return run_bare(argc, argv, out, why);
}

int ctl_run(int argc, char *const *argv, FILE *out, FILE *err)
{
    int skip = argc > 0 ? 1 : 0; /* the program's name */
    struct kr_note why = {""};
    int rc = dispatch(argc - skip, argv + skip, out, err, &why);

    if (rc == 0 && (fflush(out) != 0 || ferror(out) != 0))
        rc = kr_note_set(&why, KR_EIO, "cannot write to the standard output");
    return report(err, rc, &why);
}

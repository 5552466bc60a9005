/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "signer/signer.h"

int main(int argc, char **argv)
{
    struct kr_options parser = {0};
    struct signer_options options;
    struct kr_log log;
    int rc = kr_options_parse(&parser, &signer_program, &options, argc, argv, stdout, stderr);

    if (rc == KR_OPTIONS_RUN) {
        kr_log_init(&log, STDERR_FILENO, (enum kr_log_level)options.log_level);
        rc = signer_run(&options, &log);
    }
    kr_options_deinit(&parser);
    return rc;
}

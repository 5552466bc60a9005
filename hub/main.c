/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "hub/hub.h"

int main(int argc, char **argv)
{
    struct kr_options parser = {0};
    struct hub_options options;
    struct kr_log log;
    int rc = kr_options_parse(&parser, &hub_program, &options, argc, argv, stdout, stderr);

    if (rc == KR_OPTIONS_RUN) {
        kr_log_init(&log, STDERR_FILENO, (enum kr_log_level)options.log_level);
        rc = hub_run(&options, &log);
    }
    kr_options_deinit(&parser);
    return rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* world [--calm] [--seeds N] [--first N] | [--calm] --seed N [--trace] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

int main(int argc, char **argv)
{
    unsigned long long first = 1;
    unsigned long long seeds = 100;
    bool calm = false;
    bool trace = false;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--calm") == 0) {
            calm = true;
        } else if (strcmp(argv[i], "--trace") == 0) {
            trace = true;
        } else if (strcmp(argv[i], "--seed") == 0) {
            first = strtoull(value, NULL, 10);
            seeds = 1;
            i++;
        } else if (strcmp(argv[i], "--first") == 0) {
            first = strtoull(value, NULL, 10);
            i++;
        } else if (strcmp(argv[i], "--seeds") == 0) {
            seeds = strtoull(value, NULL, 10);
            i++;
        } else {
            fprintf(stderr, "usage: world [--calm] [--first N] [--seeds N | --seed N] [--trace]\n");
            return 2;
        }
    }
    for (unsigned long long s = first; s < first + seeds; s++)
        world_run(s, calm, trace);
    printf("%llu worlds, none broke a promise\n", seeds);
    return 0;
}

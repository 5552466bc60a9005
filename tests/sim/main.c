/* SPDX-License-Identifier: Apache-2.0 */
/* world [--calm] [--seeds N] [--first N] | [--calm] --seed N [--trace] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

/* A world in which some outcome never comes would prove little about it. */
static bool told_enough(const struct tally *t)
{
    static const int wanted[] = {200, 201, 413, 429, 503, 504};
    bool enough = t->cut != 0 && t->left != 0;

    printf("gave up %zu, cut %zu;", t->left, t->cut);
    for (size_t i = 0; i < sizeof t->statuses / sizeof t->statuses[0]; i++) {
        if (t->statuses[i] != 0)
            printf(" %zu x %zu", i, t->statuses[i]);
    }
    printf("\n");
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        enough = enough && t->statuses[wanted[i]] != 0;
    return enough;
}

int main(int argc, char **argv)
{
    unsigned long long first = 1;
    unsigned long long seeds = 100;
    bool calm = false;
    bool trace = false;
    static struct tally tally;

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
        world_run(s, calm, trace, &tally);
    printf("%llu worlds, none broke a promise\n", seeds);
    if (!told_enough(&tally) && !calm && seeds >= 20) {
        fprintf(stderr, "an outcome is missing\n");
        return 1;
    }
    return 0;
}

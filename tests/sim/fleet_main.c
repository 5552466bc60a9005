/* SPDX-License-Identifier: Apache-2.0 */
/* fleet [--seeds N] [--first N] | --seed N [--trace] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"

/* Worlds in which some of it never comes would prove little about it. */
static bool told_enough(const struct fleet_tally *t)
{
    const struct {
        const char *name;
        uint64_t n;
    } all[] = {
        {"events", t->events},
        {"bookmarks", t->bookmarks},
        {"lists", t->lists},
        {"pages", t->pages},
        {"watches from nothing", t->initials},
        {"from a version", t->resumed},
        {"410", t->expired},
        {"refused", t->refused},
        {"cut", t->cut},
        {"starts of hubs", t->hub_starts},
        {"of agents", t->agent_starts},
        {"other profiles", t->reloads},
        {"compactions", t->compactions},
        {"restores", t->restores},
        {"quiet points", t->quiet},
    };
    bool enough = true;

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        printf("%s%llu %s", i != 0 ? ", " : "", (unsigned long long)all[i].n, all[i].name);
        enough = enough && all[i].n != 0;
    }
    printf("\n");
    return enough;
}

int main(int argc, char **argv)
{
    unsigned long long first = 1;
    unsigned long long seeds = 100;
    bool trace = false;
    static struct fleet_tally tally;

    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";

        if (strcmp(argv[i], "--trace") == 0) {
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
            fprintf(stderr, "usage: fleet [--first N] [--seeds N | --seed N] [--trace]\n");
            return 2;
        }
    }
    for (unsigned long long s = first; s < first + seeds; s++)
        fleet_run(s, trace, &tally);
    printf("%llu worlds, none broke a promise\n", seeds);
    if (!told_enough(&tally) && seeds >= 20) {
        fprintf(stderr, "something never came\n");
        return 1;
    }
    return 0;
}

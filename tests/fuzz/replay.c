/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzzer's entry on every file of the folders given, where libFuzzer is not linked: so a
 * corpus is a plain test under every preset. A folder that does not exist is an empty corpus. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat st;
    uint8_t *data;
    size_t n;

    if (f == NULL)
        return 1;
    if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode)) {
        fclose(f);
        return 0;
    }
    /* Exactly as large as the input, so that a sanitizer sees one byte too far. */
    data = malloc(st.st_size > 0 ? (size_t)st.st_size : 1);
    if (data == NULL) {
        fclose(f);
        return 1;
    }
    n = fread(data, 1, (size_t)st.st_size, f);
    fclose(f);
    LLVMFuzzerTestOneInput(data, n);
    free(data);
    return n != (size_t)st.st_size;
}

static int replay_folder(const char *folder, int *count)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    int failed = 0;

    if (dir == NULL)
        return 0;
    while ((entry = readdir(dir)) != NULL) {
        char path[4096];

        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        failed |= replay(path);
        ++*count;
    }
    closedir(dir);
    return failed;
}

int main(int argc, char **argv)
{
    static const uint8_t nothing[1];
    int count = 0;
    int failed = 0;

    LLVMFuzzerTestOneInput(nothing, 0);
    for (int i = 1; i < argc; i++)
        failed |= replay_folder(argv[i], &count);
    printf("%d inputs\n", count);
    return failed;
}

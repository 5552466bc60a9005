/* SPDX-License-Identifier: Apache-2.0 */
/* Input: lines of paths, '+' before those that keep and '-' before those that drop, an empty line,
 * then an object. What comes out is well-formed, taken from the input, and slimming it again
 * changes nothing. */
#include "base/assert.h"
#include "base/err.h"
#include "kube/slim.h"

#define PATHS_MAX 80

static struct kr_bytes take_line(struct kr_bytes *in)
{
    const size_t at = kr_bytes_find(*in, '\n');
    const struct kr_bytes line = kr_bytes_of(in->p, at);

    *in = kr_bytes_skip(*in, at < in->n ? at + 1 : at);
    return line;
}

static struct kr_profile *take_profile(struct kr_bytes *in)
{
    struct kr_bytes keep[PATHS_MAX];
    struct kr_bytes drop[PATHS_MAX];
    struct kr_profile_paths paths = {.keep = keep, .drop = drop};
    struct kr_bytes line;
    struct kr_note why;

    while ((line = take_line(in)).n != 0) {
        const struct kr_bytes path = kr_bytes_skip(line, 1);

        if (paths.keep_count == PATHS_MAX || paths.drop_count == PATHS_MAX)
            return NULL;
        if (line.p[0] == '+')
            keep[paths.keep_count++] = path;
        else if (line.p[0] == '-')
            drop[paths.drop_count++] = path;
        else
            paths.metadata_only = true;
    }
    return kr_profile_create(&paths, &why);
}

static void check_subsequence(struct kr_bytes part, struct kr_bytes whole)
{
    size_t at = 0;

    for (size_t i = 0; i < whole.n && at < part.n; i++)
        at += whole.p[i] == part.p[at];
    KR_ASSERT(at == part.n);
}

/* What is known of the input is known of the output, too. */
static void check_facts(struct kr_bytes in, struct kr_bytes out, const struct kr_slim *seen)
{
    struct kr_object_facts before;
    struct kr_object_facts after;

    if (kr_object_facts(in, &before, NULL) != 0)
        return;
    KR_ASSERT(kr_object_facts(out, &after, NULL) == 0);
    KR_ASSERT(kr_bytes_eq(before.name, after.name) && kr_bytes_eq(before.name, seen->name));
    KR_ASSERT(kr_bytes_eq(before.ns, after.ns) && kr_bytes_eq(before.ns, seen->ns));
    KR_ASSERT(kr_bytes_eq(before.uid, after.uid) && kr_bytes_eq(before.uid, seen->uid));
    KR_ASSERT(kr_bytes_eq(before.version, seen->version) && after.version.n == 0);
    KR_ASSERT(kr_bytes_eq(before.labels, after.labels) && after.kind.n == 0);
}

static void check_slim(const struct kr_profile *p, struct kr_bytes in)
{
    struct kr_object_facts facts;
    struct kr_slim seen;
    struct kr_slim again;
    struct kr_note why;
    struct kr_buf out;
    struct kr_buf twice;
    int rc;

    kr_buf_init(&out, in.n + 1);
    kr_buf_init(&twice, in.n);
    kr_buf_append_str(&out, "x");
    rc = kr_slim(p, in, &out, &seen, &why);
    KR_ASSERT(rc == 0 || ((rc == KR_EPROTO || rc == KR_ETOOBIG) && out.n == 1));
    if (rc == 0) {
        const struct kr_bytes slim = kr_bytes_skip(kr_buf_bytes(&out), 1);

        KR_ASSERT(kr_scan_check(slim, KR_SCAN_DEPTH_MAX, NULL) == 0 && slim.p[0] == '{');
        check_subsequence(slim, in);
        check_facts(in, slim, &seen);
        KR_ASSERT(kr_slim(p, slim, &twice, &again, NULL) == 0 && !again.lossy);
        KR_ASSERT(kr_bytes_eq(slim, kr_buf_bytes(&twice)));
    } else {
        KR_ASSERT(kr_object_facts(in, &facts, NULL) != 0);
    }
    kr_buf_deinit(&out);
    kr_buf_deinit(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct kr_bytes in = {data, n};
    struct kr_profile *p = n != 0 ? take_profile(&in) : NULL;

    if (p != NULL)
        check_slim(p, in);
    kr_profile_destroy(p);
    return 0;
}

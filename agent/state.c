/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/state.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "certs/csr.h"
#include "certs/store_file.h"

#define FILE_MAX (256u * 1024)

static const char mark[] = "# generation ";

static int path_of(char out[PATH_MAX], const char *dir, const char *name, struct kr_note *why)
{
    if (snprintf(out, PATH_MAX, "%s/%s", dir, name) >= PATH_MAX)
        return kr_note_set(why, KR_EINVAL, "stateDir: the path is too long");
    return 0;
}

static int load(const char *dir, const char *name, struct kr_buf *out, struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = path_of(path, dir, name, why);

    return rc == 0 ? kr_file_read_private(out, path, FILE_MAX, why) : rc;
}

static int save(const char *dir, const char *name, struct kr_bytes content, struct kr_note *why)
{
    char path[PATH_MAX];
    int rc = kr_dir_ensure(dir, why);

    if (rc == 0)
        rc = path_of(path, dir, name, why);
    return rc == 0 ? kr_file_replace(path, content, why) : rc;
}

/* What stays is looked at again at the next start. */
static bool drop(const char *dir, const char *name)
{
    char path[PATH_MAX];

    return path_of(path, dir, name, NULL) == 0 && unlink(path) == 0;
}

int agent_state_load_pair(const char *dir, struct kr_buf *pem, struct kr_note *why)
{
    return load(dir, "pair.pem", pem, why);
}

int agent_state_save_pair(const char *dir, struct kr_bytes key_pem, struct kr_bytes chain_pem,
                          struct kr_note *why)
{
    struct kr_buf old = {0};
    struct kr_buf both = {0};
    int rc = load(dir, "pair.pem", &old, why);

    if (rc == 0)
        rc = save(dir, "previous.pem", kr_buf_bytes(&old), why);
    kr_buf_cleanse(&old);
    if (rc != 0 && rc != KR_ENOENT)
        return rc;
    kr_buf_init(&both, key_pem.n + chain_pem.n);
    rc = kr_buf_reserve(&both, key_pem.n + chain_pem.n); /* at once: no copies of a key */
    if (rc == 0)
        rc = kr_buf_append(&both, key_pem);
    if (rc == 0)
        rc = kr_buf_append(&both, chain_pem);
    if (rc == 0)
        rc = save(dir, "pair.pem", kr_buf_bytes(&both), why);
    kr_buf_cleanse(&both);
    if (rc == 0)
        drop(dir, "pending.key");
    return rc;
}

bool agent_state_accept_pair(const char *dir)
{
    return drop(dir, "previous.pem");
}

int agent_state_load_previous(const char *dir, struct kr_buf *pem, struct kr_note *why)
{
    return load(dir, "previous.pem", pem, why);
}

bool agent_state_has_previous(const char *dir)
{
    char path[PATH_MAX];

    return path_of(path, dir, "previous.pem", NULL) == 0 && access(path, F_OK) == 0;
}

int agent_state_go_back(const char *dir, struct kr_note *why)
{
    char from[PATH_MAX];
    char to[PATH_MAX];
    int rc = path_of(from, dir, "previous.pem", why);

    if (rc == 0)
        rc = path_of(to, dir, "pair.pem", why);
    if (rc == 0 && rename(from, to) != 0)
        rc =
            kr_note_set(why, errno == ENOENT ? KR_ENOENT : KR_EIO, "stateDir: %s", strerror(errno));
    if (rc == 0)
        drop(dir, "pending.key"); /* a hub may have certified it: a new try is a new key */
    return rc;
}

/* The request was answered, and the answer kept. */
static bool is_in_use(const char *dir, const struct kr_buf *key_pem)
{
    struct kr_buf pair = {0};
    bool same = load(dir, "pair.pem", &pair, NULL) == 0 &&
                kr_bytes_starts(kr_buf_bytes(&pair), kr_buf_bytes(key_pem));

    kr_buf_cleanse(&pair);
    return same;
}

int agent_state_pending_key(const char *dir, struct kr_buf *key_pem, struct kr_note *why)
{
    int rc = load(dir, "pending.key", key_pem, why);

    if (rc == 0 && !is_in_use(dir, key_pem))
        return 0;
    kr_buf_cleanse(key_pem);
    if (rc != 0 && rc != KR_ENOENT)
        return rc;
    rc = kr_key_make(key_pem, why);
    return rc == 0 ? save(dir, "pending.key", kr_buf_bytes(key_pem), why) : rc;
}

int agent_state_load_token_id(const char *dir, struct kr_buf *id, struct kr_note *why)
{
    return load(dir, "token.id", id, why);
}

int agent_state_save_token_id(const char *dir, const char *id, struct kr_note *why)
{
    return save(dir, "token.id", kr_bytes_str(id), why);
}

int agent_state_load_bundle(const char *dir, struct kr_buf *pem, uint64_t *generation,
                            struct kr_note *why)
{
    int rc = load(dir, "bundle.pem", pem, why);
    struct kr_bytes in = kr_buf_bytes(pem);

    if (rc != 0)
        return rc;
    if (!kr_bytes_starts(in, kr_bytes_str(mark)))
        return kr_note_set(why, KR_EPROTO, "bundle.pem begins with no generation");
    in = kr_bytes_skip(in, sizeof mark - 1);
    in.n = kr_bytes_find(in, '\n');
    if (!kr_bytes_to_u64(in, INT64_MAX, generation))
        return kr_note_set(why, KR_EPROTO, "bundle.pem begins with no generation");
    return 0;
}

int agent_state_save_bundle(const char *dir, struct kr_bytes pem, uint64_t generation,
                            struct kr_note *why)
{
    struct kr_buf text = {.max = FILE_MAX};
    int rc = kr_buf_printf(&text, "%s%" PRIu64 "\n", mark, generation);

    if (rc == 0)
        rc = kr_buf_append(&text, pem);
    if (rc == 0)
        rc = save(dir, "bundle.pem", kr_buf_bytes(&text), why);
    kr_buf_deinit(&text);
    return rc;
}

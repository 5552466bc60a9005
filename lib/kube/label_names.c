/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/label_names.h"

#include "base/err.h"

#define NAME_MAX_BYTES 63
#define PREFIX_MAX_BYTES 253

static const char name_rule[] =
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character";

static bool is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* ([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9] */
static bool is_name(struct kr_bytes b)
{
    if (b.n == 0 || !is_alphanumeric(b.p[0]) || !is_alphanumeric(b.p[b.n - 1]))
        return false;
    for (size_t i = 0; i < b.n; i++) {
        if (!is_alphanumeric(b.p[i]) && b.p[i] != '-' && b.p[i] != '_' && b.p[i] != '.')
            return false;
    }
    return true;
}

/* RFC 1123 labels of any length, joined by dots. */
static bool is_subdomain(struct kr_bytes b)
{
    uint8_t before = '.';

    for (size_t i = 0; i < b.n; i++) {
        uint8_t c = b.p[i];
        bool plain = is_alphanumeric(c) && !(c >= 'A' && c <= 'Z');

        if (!plain && !(c == '-' && before != '.') && !(c == '.' && before != '.' && before != '-'))
            return false;
        before = c;
    }
    return before != '.' && before != '-';
}

static int check_prefix(struct kr_bytes prefix, struct kr_note *why)
{
    if (prefix.n == 0)
        return kr_note_set(why, KR_EINVAL, "prefix part must be non-empty");
    if (prefix.n > PREFIX_MAX_BYTES)
        return kr_note_set(why, KR_EINVAL, "prefix part must be no more than %d bytes",
                           PREFIX_MAX_BYTES);
    if (!is_subdomain(prefix))
        return kr_note_set(why, KR_EINVAL,
                           "prefix part a lowercase RFC 1123 subdomain must consist of lower case "
                           "alphanumeric characters, '-' or '.', and must start and end with an "
                           "alphanumeric character (e.g. 'example.com')");
    return 0;
}

int kr_label_key_check(struct kr_bytes key, struct kr_note *why)
{
    size_t slash = kr_bytes_find(key, '/');
    struct kr_bytes name = key;
    int rc = 0;

    if (slash < key.n) {
        name = kr_bytes_skip(key, slash + 1);
        if (kr_bytes_find(name, '/') < name.n)
            return kr_note_set(why, KR_EINVAL,
                               "a qualified name must %s (e.g. 'MyName') with an optional DNS "
                               "subdomain prefix and '/' (e.g. 'example.com/MyName')",
                               name_rule);
        rc = check_prefix(kr_bytes_of(key.p, slash), why);
    }
    if (rc != 0)
        return rc;
    if (name.n == 0)
        return kr_note_set(why, KR_EINVAL, "name part must be non-empty");
    if (name.n > NAME_MAX_BYTES)
        return kr_note_set(why, KR_EINVAL, "name part must be no more than %d bytes",
                           NAME_MAX_BYTES);
    if (!is_name(name))
        return kr_note_set(why, KR_EINVAL,
                           "name part must %s (e.g. 'MyName',  or 'my.name',  or '123-abc')",
                           name_rule);
    return 0;
}

int kr_label_value_check(struct kr_bytes value, struct kr_note *why)
{
    if (value.n > NAME_MAX_BYTES)
        return kr_note_set(why, KR_EINVAL, "must be no more than %d bytes", NAME_MAX_BYTES);
    if (value.n != 0 && !is_name(value))
        return kr_note_set(why, KR_EINVAL,
                           "a valid label must be an empty string or %s (e.g. 'MyValue',  or "
                           "'my_value',  or '12345')",
                           name_rule);
    return 0;
}

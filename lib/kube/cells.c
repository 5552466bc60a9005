/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/cells.h"

#include "base/err.h"

/* Columns of built-in kinds that tell how long ago something was, beside Age. */
static const char *const timely_names[] = {"Last Seen", "First Seen", "Last Schedule", "Duration"};

static bool contains(struct kr_bytes text, struct kr_bytes what)
{
    return what.n <= text.n && memmem(text.p, text.n, what.p, what.n) != NULL;
}

static struct kr_bytes plain_member(struct kr_bytes object, const char *name)
{
    struct kr_bytes value;
    struct kr_bytes plain;

    if (!kr_scan_find(object, name, &value) || !kr_scan_plain(value, &plain))
        return kr_bytes_of(NULL, 0);
    return plain;
}

/* Built-in printers say so by the name; columns of a custom resource by a description that either
 * quotes the documentation of creationTimestamp or has its path. */
static bool is_age(struct kr_bytes name, struct kr_bytes type, struct kr_bytes definition)
{
    struct kr_bytes about;

    if (!kr_bytes_is(type, "string") && !kr_bytes_is(type, "date"))
        return false;
    if (kr_bytes_is(name, "Age"))
        return true;
    return kr_bytes_is(type, "date") && kr_scan_find(definition, "description", &about) &&
           (contains(about, KR_LIT("): .metadata.creationTimestamp\"")) ||
            contains(about, KR_LIT("\"CreationTimestamp is a timestamp")));
}

/* A date of a custom resource is shown as the time since (apiextensions tableconvertor). */
static bool is_timely(struct kr_bytes name, struct kr_bytes type)
{
    if (kr_bytes_is(type, "date"))
        return true;
    for (size_t i = 0; i < sizeof timely_names / sizeof timely_names[0]; i++) {
        if (kr_bytes_is(name, timely_names[i]))
            return true;
    }
    return false;
}

int kr_columns_read(struct kr_bytes json, struct kr_columns *out)
{
    struct kr_scan it;
    struct kr_bytes definition;

    out->n = 0;
    if (!kr_scan_array(json, &it))
        return KR_EPROTO;
    while (kr_scan_element(&it, &definition)) {
        struct kr_column *c = &out->all[out->n];
        struct kr_bytes type = plain_member(definition, "type");
        struct kr_bytes name;

        if (!kr_scan_find(definition, "name", &name) || !kr_scan_is_string(name) ||
            out->n == KR_COLUMNS_MAX) {
            out->n = 0;
            return KR_EPROTO;
        }
        name = kr_bytes_of(name.p + 1, name.n - 2);
        c->name = name;
        c->text = definition;
        c->age = is_age(name, type, definition);
        c->timely = c->age || is_timely(name, type);
        out->n++;
    }
    return 0;
}

/* "2 (3h ago)" without what is in brackets, and without its quotes; else the whole cell. */
static struct kr_bytes without_ago(struct kr_bytes cell)
{
    static const char end[] = " ago)\"";
    size_t end_n = sizeof end - 1;

    if (!kr_scan_is_string(cell) || cell.n < end_n + 1 ||
        memcmp(cell.p + cell.n - end_n, end, end_n) != 0)
        return cell;
    for (size_t i = cell.n - end_n; i > 2; i--) {
        uint8_t c = cell.p[i - 1];

        if (c == '(')
            return cell.p[i - 2] == ' ' ? kr_bytes_of(cell.p, i - 2) : cell;
        if (!(c >= '0' && c <= '9') && !(c >= 'a' && c <= 'z') && c != '<' && c != '>')
            return cell;
    }
    return cell;
}

int kr_cells_steady(const struct kr_columns *columns, struct kr_bytes cells, struct kr_buf *out)
{
    struct kr_scan it;
    struct kr_bytes cell;
    size_t before = out->n;
    int rc = 0;

    if (!kr_scan_array(cells, &it))
        return KR_EPROTO;
    for (size_t i = 0; rc == 0 && kr_scan_element(&it, &cell); i++) {
        if (i < columns->n && columns->all[i].timely)
            cell = kr_bytes_of(NULL, 0);
        rc = kr_buf_append(out, without_ago(cell));
        if (rc == 0)
            rc = kr_buf_append(out, KR_LIT("\n"));
    }
    if (rc != 0)
        out->n = before;
    return rc;
}

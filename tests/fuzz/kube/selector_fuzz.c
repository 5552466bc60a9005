/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a selector, a newline, an object. What parses, spelled anew, parses to the same; and every
 * requirement holds exactly where its contrary does not. */
#include <stdlib.h>

#include "base/assert.h"
#include "kube/json_scan.h"
#include "kube/selector.h"

#define LABELS_MAX 64

static void spell(const struct kr_requirement *r, struct kr_buf *out)
{
    static const char *const ops[] = {" in (", " notin (", "", "", ">", "<"};
    bool set = r->op == KR_OP_IN || r->op == KR_OP_NOT_IN;

    kr_buf_append_str(out, out->n != 0 ? "," : "");
    kr_buf_append_str(out, r->op == KR_OP_NOT_EXISTS ? "!" : "");
    kr_buf_append(out, r->key);
    kr_buf_append_str(out, ops[r->op]);
    for (size_t i = 0; i < r->value_count; i++) {
        kr_buf_append_str(out, i != 0 ? "," : "");
        kr_buf_append(out, r->values[i]);
    }
    kr_buf_append_str(out, set ? ")" : "");
}

static bool same(const struct kr_requirement *a, const struct kr_requirement *b)
{
    if (!kr_bytes_eq(a->key, b->key) || a->op != b->op || a->value_count != b->value_count ||
        a->bound != b->bound)
        return false;
    for (size_t i = 0; i < a->value_count; i++) {
        if (!kr_bytes_eq(a->values[i], b->values[i]))
            return false;
    }
    return true;
}

static void check_spelling(const struct kr_label_selector *s, struct kr_arena *arena)
{
    struct kr_buf text = {.max = 1024 * 1024};
    struct kr_label_selector again;

    for (size_t i = 0; i < s->n; i++)
        spell(&s->all[i], &text);
    KR_ASSERT(kr_label_selector_parse(kr_buf_bytes(&text), arena, &again, NULL) == 0);
    KR_ASSERT(again.n == s->n);
    for (size_t i = 0; i < s->n; i++)
        KR_ASSERT(same(&s->all[i], &again.all[i]));
    kr_buf_deinit(&text);
}

static void check_match(const struct kr_label_selector *s, const struct kr_label *labels, size_t n)
{
    bool all = true;

    for (size_t i = 0; i < s->n; i++) {
        struct kr_requirement contrary = s->all[i];
        const struct kr_bytes *value = NULL;
        bool matches;

        for (size_t k = 0; k < n; k++) {
            if (kr_bytes_eq(labels[k].key, contrary.key))
                value = &labels[k].value;
        }
        matches = kr_requirement_matches(&s->all[i], value);
        all = all && matches;
        if (contrary.op > KR_OP_NOT_EXISTS)
            continue;
        contrary.op ^= 1; /* IN and NOT_IN, EXISTS and NOT_EXISTS */
        KR_ASSERT(kr_requirement_matches(&contrary, value) == !matches);
    }
    KR_ASSERT(kr_label_selector_matches(s, labels, n) == all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t line = kr_bytes_find(kr_bytes_of(data, n), '\n');
    struct kr_bytes object = kr_bytes_skip(kr_bytes_of(data, n), line < n ? line + 1 : n);
    struct kr_arena arena;
    struct kr_label labels[LABELS_MAX];
    struct kr_label_selector s;
    struct kr_field_selector f;
    struct kr_note why;
    size_t count = 0;

    kr_arena_init(&arena, 4096, 4 * 1024 * 1024);
    if (kr_scan_check(object, 32, NULL) != 0)
        object.n = 0;
    if (kr_labels_read(object, &arena, labels, LABELS_MAX, &count, &why) != 0)
        count = 0;
    for (size_t i = 1; i < count; i++)
        KR_ASSERT(!kr_bytes_eq(labels[i - 1].key, labels[i].key));
    if (kr_label_selector_parse(kr_bytes_of(data, line), &arena, &s, &why) == 0) {
        check_spelling(&s, &arena);
        check_match(&s, labels, count);
    }
    if (kr_field_selector_parse(kr_bytes_of(data, line), &arena, &f, &why) == 0) {
        kr_field_selector_matches(&f, KR_LIT("ns"), KR_LIT("name"), object);
        kr_field_selector_allowed(&f, KR_LIT(""), KR_LIT("pods"), &why);
    }
    kr_arena_deinit(&arena);
    return 0;
}

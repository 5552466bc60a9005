/* SPDX-License-Identifier: Apache-2.0 */
#include "base/note.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"

static void test_set_returns_the_code_and_wrap_puts_in_front(void **state)
{
    struct kr_note note;

    (void)state;
    assert_int_equal(kr_note_set(&note, KR_EIO, "disk %d", 3), KR_EIO);
    assert_int_equal(kr_note_wrap(&note, KR_EIO, "store"), KR_EIO);
    assert_string_equal(note.text, "store: disk 3");
    assert_int_equal(kr_note_set(NULL, KR_EIO, "nobody"), KR_EIO);
    assert_int_equal(kr_note_wrap(NULL, KR_EIO, "nobody"), KR_EIO);
}

static void test_long_texts_are_cut(void **state)
{
    char big[400];
    struct kr_note note;

    (void)state;
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    kr_note_set(&note, 0, "%s", big);
    assert_int_equal(strlen(note.text), sizeof note.text - 1);
    kr_note_wrap(&note, 0, "outer");
    assert_int_equal(strncmp(note.text, "outer: xxx", 10), 0);
    assert_int_equal(strlen(note.text), sizeof note.text - 1);
    kr_note_wrap(&note, 0, "%s", big);
    assert_int_equal(strlen(note.text), sizeof note.text - 1);
}

static void test_every_code_has_text_and_statuses(void **state)
{
    (void)state;
    assert_string_equal(kr_err_text(0), "ok");
    assert_string_equal(kr_err_text(-9999), "unknown error");
    assert_string_equal(kr_err_text(KR_ETLS), "TLS failure");
    assert_int_equal(kr_err_http_status(KR_ENOENT), 404);
    assert_int_equal(kr_err_grpc_status(KR_EUNSUPPORTED), 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_returns_the_code_and_wrap_puts_in_front),
        cmocka_unit_test(test_long_texts_are_cut),
        cmocka_unit_test(test_every_code_has_text_and_statuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

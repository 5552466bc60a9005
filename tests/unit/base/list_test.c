/* SPDX-License-Identifier: Apache-2.0 */
#include "base/list.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/assert.h"

struct item {
    int n;
    struct kr_list link;
};

static int number(const struct kr_list *node)
{
    return KR_CONTAINER_OF(node, struct item, link)->n;
}

static void test_pop_gives_items_in_order_of_append(void **state)
{
    struct kr_list head;
    struct item items[3] = {{.n = 0}, {.n = 1}, {.n = 2}};

    (void)state;
    kr_list_init(&head);
    assert_true(kr_list_empty(&head));
    for (int i = 0; i < 3; i++)
        kr_list_append(&head, &items[i].link);
    for (int i = 0; i < 3; i++)
        assert_int_equal(number(kr_list_pop(&head)), i);
    assert_null(kr_list_pop(&head));
}

static void test_remove_when_not_linked_does_nothing(void **state)
{
    struct item item = {.n = 1};

    (void)state;
    assert_false(kr_list_linked(&item.link));
    kr_list_remove(&item.link);
    assert_false(kr_list_linked(&item.link));
}

static void test_foreach_safe_allows_removal(void **state)
{
    struct kr_list head;
    struct item items[4] = {{.n = 0}, {.n = 1}, {.n = 2}, {.n = 3}};
    int sum = 0;

    (void)state;
    kr_list_init(&head);
    for (int i = 0; i < 4; i++)
        kr_list_append(&head, &items[i].link);
    KR_LIST_FOREACH_SAFE(node, &head)
    {
        if (number(node) % 2 == 0)
            kr_list_remove(node);
    }
    KR_LIST_FOREACH(node, &head)
    {
        sum = sum * 10 + number(node);
    }
    assert_int_equal(sum, 13);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pop_gives_items_in_order_of_append),
        cmocka_unit_test(test_remove_when_not_linked_does_nothing),
        cmocka_unit_test(test_foreach_safe_allows_removal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* list: intrusive, doubly linked, circular. A head's comment names the member it links.
 * Memory: nodes live in their structs; a zeroed node is "not in a list". */
#ifndef KR_BASE_LIST_H
#define KR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct kr_list {
    struct kr_list *next;
    struct kr_list *prev;
};

static inline void kr_list_init(struct kr_list *head)
{
    head->next = head->prev = head;
}

static inline bool kr_list_empty(const struct kr_list *head)
{
    return head->next == head;
}

static inline bool kr_list_linked(const struct kr_list *node)
{
    return node->next != NULL;
}

static inline void kr_list_append(struct kr_list *head, struct kr_list *node)
{
    node->prev = head->prev;
    node->next = head;
    head->prev->next = node;
    head->prev = node;
}

/* A node that is in no list may be removed too. */
static inline void kr_list_remove(struct kr_list *node)
{
    if (node->next == NULL)
        return;
    node->prev->next = node->next;
    node->next->prev = node->prev;
    node->next = node->prev = NULL;
}

/* The first node, taken out; NULL if there is none. */
static inline struct kr_list *kr_list_pop(struct kr_list *head)
{
    struct kr_list *node = head->next;

    if (node == head)
        return NULL;
    kr_list_remove(node);
    return node;
}

#define KR_LIST_FOREACH(node, head)                                                                \
    for (struct kr_list *node = (head)->next; node != (head); node = node->next)
/* The loop's node may be removed (and freed) in the body. */
#define KR_LIST_FOREACH_SAFE(node, head)                                                           \
    for (struct kr_list *node = (head)->next, *node##_next = node->next; node != (head);           \
         node = node##_next, node##_next = node->next)

#endif

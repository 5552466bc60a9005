/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sched.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

void kr_sched_init(struct kr_sched *s, int64_t now_ms, int64_t now_wall_ms)
{
    *s = (struct kr_sched){.now_ms = now_ms, .now_wall_ms = now_wall_ms};
    kr_list_init(&s->tasks);
    kr_list_init(&s->idle);
}

void kr_sched_deinit(struct kr_sched *s)
{
    for (size_t i = 1; i <= s->count; i++)
        s->heap[i]->slot = 0;
    while (kr_list_pop(&s->tasks) != NULL || kr_list_pop(&s->idle) != NULL)
        ;
    free(s->heap);
    *s = (struct kr_sched){0};
}

static void put(struct kr_sched *s, size_t slot, struct kr_timer *t)
{
    s->heap[slot] = t;
    t->slot = slot;
}

static void sift_up(struct kr_sched *s, struct kr_timer *t, size_t slot)
{
    while (slot > 1 && s->heap[slot / 2]->due_ms > t->due_ms) {
        put(s, slot, s->heap[slot / 2]);
        slot /= 2;
    }
    put(s, slot, t);
}

static void sift_down(struct kr_sched *s, struct kr_timer *t, size_t slot)
{
    for (;;) {
        size_t child = slot * 2;

        if (child > s->count)
            break;
        if (child < s->count && s->heap[child + 1]->due_ms < s->heap[child]->due_ms)
            child++;
        if (s->heap[child]->due_ms >= t->due_ms)
            break;
        put(s, slot, s->heap[child]);
        slot = child;
    }
    put(s, slot, t);
}

static int grow(struct kr_sched *s)
{
    size_t cap = s->cap != 0 ? s->cap * 2 : 64;
    struct kr_timer **heap = realloc(s->heap, cap * sizeof *heap);

    if (heap == NULL)
        return KR_ENOMEM;
    s->heap = heap;
    s->cap = cap;
    return 0;
}

void kr_timer_init(struct kr_timer *t, void (*fire)(struct kr_timer *t))
{
    *t = (struct kr_timer){.fire = fire};
}

int kr_timer_start(struct kr_sched *s, struct kr_timer *t, int64_t after_ms)
{
    int64_t due = s->now_ms + (after_ms > 0 ? after_ms : 0);
    int later = due > t->due_ms;

    if (t->slot == 0) {
        if (s->count + 2 > s->cap && grow(s) != 0)
            return KR_ENOMEM;
        t->due_ms = due;
        s->count++;
        sift_up(s, t, s->count);
        return 0;
    }
    t->due_ms = due;
    if (later)
        sift_down(s, t, t->slot);
    else
        sift_up(s, t, t->slot);
    return 0;
}

void kr_timer_stop(struct kr_sched *s, struct kr_timer *t)
{
    struct kr_timer *last;
    size_t slot = t->slot;

    if (slot == 0)
        return;
    t->slot = 0;
    last = s->heap[s->count--];
    if (last == t)
        return;
    if (slot > 1 && s->heap[slot / 2]->due_ms > last->due_ms)
        sift_up(s, last, slot);
    else
        sift_down(s, last, slot);
}

void kr_task_init(struct kr_task *t, void (*run)(struct kr_task *t))
{
    *t = (struct kr_task){.run = run};
}

void kr_task_post(struct kr_sched *s, struct kr_task *t)
{
    if (!kr_list_linked(&t->link))
        kr_list_append(&s->tasks, &t->link);
}

void kr_task_post_last(struct kr_sched *s, struct kr_task *t)
{
    if (!kr_list_linked(&t->link))
        kr_list_append(&s->idle, &t->link);
}

void kr_task_cancel(struct kr_task *t)
{
    kr_list_remove(&t->link);
}

static struct kr_list *next_task(struct kr_sched *s)
{
    struct kr_list *node = kr_list_pop(&s->tasks);

    return node != NULL ? node : kr_list_pop(&s->idle);
}

int64_t kr_sched_run(struct kr_sched *s, int64_t now_ms, int64_t now_wall_ms)
{
    struct kr_list *node;

    s->now_ms = now_ms;
    s->now_wall_ms = now_wall_ms;
    while (s->count != 0 && s->heap[1]->due_ms <= now_ms) {
        struct kr_timer *t = s->heap[1];

        kr_timer_stop(s, t);
        t->fire(t);
    }
    while ((node = next_task(s)) != NULL) {
        struct kr_task *t = KR_CONTAINER_OF(node, struct kr_task, link);

        t->run(t);
    }
    if (s->count == 0)
        return -1;
    return s->heap[1]->due_ms > now_ms ? s->heap[1]->due_ms - now_ms : 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of clients to the hub. */
#include <stdio.h>

#include "base/assert.h"
#include "http/h1_conn.h"
#include "hub/request.h"
#include "world.h"

static void on_request(void *owner, struct kr_exchange *ex)
{
    struct user *u = owner;

    hub_request_start(&u->w->hub, &u->peer, ex);
}

static void on_client_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc, (void)why;
    ((struct user *)owner)->client = NULL;
}

static void on_server_close(void *owner, int rc, const struct kr_note *why)
{
    (void)rc, (void)why;
    ((struct user *)owner)->server = NULL;
}

static const struct kr_conn_user client_user = {NULL, NULL, NULL, on_client_close};
static const struct kr_conn_user server_user = {on_request, NULL, NULL, on_server_close};

void user_start(struct user *u, struct world *w, bool h1)
{
    struct kr_h2_config client = {
        .sched = &w->sched, .user_ops = &client_user, .owner = u, .shared = &w->client_h2};
    struct kr_h2_config server = {.server = true,
                                  .sched = &w->sched,
                                  .user_ops = &server_user,
                                  .owner = u,
                                  .shared = &w->hub.h2,
                                  .abuse = true};
    struct kr_h1_config client1 = {.sched = &w->sched, .user_ops = &client_user, .owner = u};
    struct kr_h1_config server1 = {.sched = &w->sched, .user_ops = &server_user, .owner = u};

    *u = (struct user){.w = w, .peer.known = true};
    snprintf(u->peer.id.name, sizeof u->peer.id.name, "alice");
    snprintf(u->peer.address, sizeof u->peer.address, "198.51.100.7:50000");
    u->pair = kr_mem_pair_create(&w->sched);
    for (int end = 0; end < 2; end++)
        kr_mem_pair_step(u->pair, end, world_one_in(w, 2) ? 1 + kr_rand_below(&w->rand, 2000) : 0);
    u->client = h1 ? kr_h1_client_create(&client1, kr_mem_pair_end(u->pair, 0))
                   : kr_h2_create(&client, kr_mem_pair_end(u->pair, 0));
    u->server = h1 ? kr_h1_server_create(&server1, kr_mem_pair_end(u->pair, 1))
                   : kr_h2_create(&server, kr_mem_pair_end(u->pair, 1));
    KR_ASSERT(u->client != NULL && u->server != NULL);
}

void user_close(struct user *u)
{
    if (u->client != NULL)
        kr_conn_close(u->client);
    if (u->server != NULL)
        kr_conn_close(u->server);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* links: all lanes to all hubs. When the agent's certificate changes, tunnels with the new one come
 * first; once one is accepted, those with the old one take nothing new and end: when they are idle,
 * at the latest after 50 s. So they do when the policy has changed, but after 5 s, whatever hubs
 * do: what runs over them was judged by the policy before. Limits: 512 links. Threads: the agent's.
 */
#ifndef AGENT_LINKS_H
#define AGENT_LINKS_H

#include "agent/link.h"

#define AGENT_LINKS_MAX 512

struct agent_links { /* embed it; the fields belong to links.c */
    struct agent_core *c;
    const struct kr_proxy *proxy; /* NULL: direct */
    struct agent_link *links[AGENT_LINKS_MAX];
    size_t count;
    struct agent_link *old[AGENT_LINKS_MAX]; /* with the certificate before; NULL: gone */
    size_t old_count;
    int64_t old_until_ms; /* 0: the new certificate is not accepted yet */
    int64_t old_cut_ms;   /* when they end all the same; 0: never */
    struct kr_timer change;
};

/* Makes one for each lane to each hub of the options. */
int agent_links_init(struct agent_links *ls, struct agent_core *c, const struct kr_proxy *proxy,
                     struct kr_note *why);
void agent_links_start(struct agent_links *ls);
/* Another certificate is in use. */
void agent_links_change(struct agent_links *ls);
/* Another policy is in force: what runs has to ask again. */
void agent_links_replace(struct agent_links *ls);
bool agent_links_attached(const struct agent_links *ls);
void agent_links_tell(struct agent_links *ls);
void agent_links_retry(struct agent_links *ls);
void agent_links_drain(struct agent_links *ls);
void agent_links_close(struct agent_links *ls);  /* zeroed is fine */
void agent_links_deinit(struct agent_links *ls); /* after the I/O has ended */

#endif

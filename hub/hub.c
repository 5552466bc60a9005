/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: SIGTERM -> not ready for drainDelay, still serving (load balancers notice) -> no new
 * connections, clients get GOAWAY or Connection: close, agents are told, watches end cleanly at
 * random within half of drainTimeout -> nothing is left, or drainTimeout has passed -> the rest is
 * cut -> exit. A second SIGTERM cuts at once. */
#include "hub/hub.h"

#include <signal.h>

#include "base/assert.h"
#include "hub/access_parts.h"
#include "hub/admin.h"
#include "hub/admin_socket.h"
#include "hub/audit.h"
#include "hub/expect.h"
#include "hub/fleet.h"
#include "hub/fleet_parts.h"
#include "hub/request.h"
#include "hub/trust_parts.h"

enum drain_phase {
    SERVING,
    NOT_READY,
    DRAINING,
    CUT,
};

struct hub {
    struct hub_worker w;
    struct hub_front *front;
    struct hub_gate *gate;
    struct hub_trust_parts trust;
    struct kr_admin admin;
    struct kr_page_port socket;    /* zeroed: none is asked for */
    struct hub_fleet_parts *fleet; /* NULL: no fleet view */
    enum drain_phase phase;
    struct kr_timer phase_timer;
};

static void enter(struct hub *h, enum drain_phase phase);

static void on_phase_end(struct kr_timer *t)
{
    struct hub *h = KR_CONTAINER_OF(t, struct hub, phase_timer);

    if (h->phase == CUT)
        kr_loop_stop(h->w.loop);
    else
        enter(h, h->phase + 1);
}

static void start_draining(struct hub *h)
{
    h->w.draining = true;
    hub_front_stop_accepting(h->front);
    hub_gate_drain(h->gate);
    hub_front_drain(h->front);
    hub_requests_end_watches(&h->w, h->w.options->drain_timeout_ms / 2);
    if (h->w.fleet != NULL)
        hub_fleet_end_watches(h->w.fleet, h->w.options->drain_timeout_ms / 2);
}

static bool is_quiet(const struct hub *h)
{
    return hub_front_connections(h->front) == 0;
}

static void cut(struct hub *h)
{
    h->w.draining = true;
    hub_front_close(h->front);
    hub_gate_close(h->gate);
    kr_admin_close(&h->admin);
    kr_page_port_close(&h->socket);
}

static void enter(struct hub *h, enum drain_phase phase)
{
    static const char *const names[] = {"serving", "not-ready", "draining", "closing"};
    const struct hub_options *o = h->w.options;
    int64_t stay_ms = 0;

    h->phase = phase;
    KR_LOG_AT(h->w.log, KR_LOG_INFO, "phase", KR_S("phase", names[phase]),
              KR_U("requests", h->w.requests), KR_U("connections", h->w.connections));
    switch (phase) {
    case SERVING:
        return;
    case NOT_READY:
        h->w.unready = true;
        stay_ms = o->drain_delay_ms;
        break;
    case DRAINING:
        start_draining(h);
        stay_ms = is_quiet(h) ? 0 : o->drain_timeout_ms;
        break;
    case CUT:
        stay_ms = 200; /* for the last bytes */
        cut(h);
        break;
    }
    kr_timer_start(h->w.sched, &h->phase_timer, stay_ms);
}

/* The last client connection is gone. */
static void on_quiet(void *owner)
{
    struct hub *h = owner;

    if (h->phase == DRAINING)
        kr_timer_start(h->w.sched, &h->phase_timer, 0);
}

static void on_term(void *owner, int signum)
{
    struct hub *h = owner;

    (void)signum;
    if (h->phase == SERVING)
        enter(h, NOT_READY);
    else if (h->phase != CUT)
        enter(h, CUT);
}

static void on_hup(void *owner, int signum)
{
    struct hub *h = owner;

    (void)signum;
    hub_trust_parts_reload(&h->trust);
    hub_access_parts_reload(&h->w);
    hub_fleet_parts_reload(h->fleet);
    kr_audit_log_reopen(h->w.audit);
}

static void log_listening(struct hub *h)
{
    KR_LOG_AT(h->w.log, KR_LOG_INFO, "listening", KR_S("port", "api"),
              KR_S("address", hub_front_address(h->front)));
    KR_LOG_AT(h->w.log, KR_LOG_INFO, "listening", KR_S("port", "agent"),
              KR_S("address", hub_gate_address(h->gate)));
    KR_LOG_AT(h->w.log, KR_LOG_INFO, "listening", KR_S("port", "admin"),
              KR_S("address", kr_admin_address(&h->admin)));
    if (h->w.options->admin_socket != NULL)
        KR_LOG_AT(h->w.log, KR_LOG_INFO, "listening", KR_S("port", "admin-socket"),
                  KR_S("address", h->w.options->admin_socket));
}

static int start(struct hub *h, const struct hub_options *options, struct kr_log *log,
                 struct kr_note *why)
{
    int rc = hub_worker_init(&h->w, options, log, why);

    if (rc != 0)
        return rc;
    h->w.on_quiet = on_quiet;
    h->w.owner = h;
    kr_timer_init(&h->phase_timer, on_phase_end);
    rc = hub_audit_open(&h->w, why);
    if (rc == 0)
        rc = hub_access_parts_create(&h->w, why);
    if (rc == 0)
        rc = hub_fleet_parts_create(&h->w, &h->fleet, why);
    if (rc == 0)
        rc = hub_trust_parts_create(&h->trust, &h->w, why);
    if (rc == 0)
        rc = hub_expect_registered(&h->w, why);
    if (rc == 0)
        rc = hub_admin_socket_open(&h->socket, &h->w, why);
    if (rc != 0)
        return rc;
    h->front = hub_front_create(&h->w, why);
    if (h->front != NULL)
        h->gate = hub_gate_create(&h->w, h->trust.enroll, why);
    if (h->gate == NULL)
        return -1;
    rc = hub_admin_open(&h->admin, &h->w, why);
    if (rc == 0)
        rc = hub_trust_parts_start(&h->trust, h->front, h->gate, why);
    if (rc != 0)
        return rc;
    kr_loop_on_signal(h->w.loop, SIGTERM, on_term, h);
    kr_loop_on_signal(h->w.loop, SIGINT, on_term, h);
    kr_loop_on_signal(h->w.loop, SIGHUP, on_hup, h);
    return 0;
}

static void stop(struct hub *h)
{
    kr_tls_io_destroy(h->w.io); /* what is left ends now */
    h->w.io = NULL;
    hub_front_destroy(h->front);
    hub_gate_destroy(h->gate);
    hub_trust_parts_destroy(&h->trust);
    kr_admin_deinit(&h->admin);
    kr_page_port_deinit(&h->socket);
    hub_fleet_parts_destroy(h->fleet);
    hub_access_parts_destroy(&h->w);
    kr_audit_log_close(h->w.audit);
    if (h->w.sched != NULL)
        kr_timer_stop(h->w.sched, &h->phase_timer);
    hub_worker_deinit(&h->w);
}

int hub_run(const struct hub_options *options, struct kr_log *log)
{
    struct hub h = {0};
    struct kr_note why = {""};
    int rc;

    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a limit of file sizes is an error of write() */
    rc = start(&h, options, log, &why);
    if (rc != 0) {
        KR_LOG_AT(log, KR_LOG_ERROR, "start-failed", KR_S("reason", why.text));
    } else {
        KR_LOG_AT(log, KR_LOG_INFO, "started", KR_S("version", KR_VERSION),
                  KR_S("replica", h.w.self.name), KR_S("trust-domain", h.w.self.domain));
        log_listening(&h);
        kr_loop_run(h.w.loop);
        KR_LOG_AT(log, KR_LOG_INFO, "stopped", KR_S("replica", h.w.self.name));
    }
    if (h.w.io != NULL)
        stop(&h);
    else
        hub_worker_deinit(&h.w);
    return rc == 0 ? 0 : 1;
}

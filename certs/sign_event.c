/* SPDX-License-Identifier: Apache-2.0 */
#include "certs/sign_event.h"

#include <stdio.h>
#include <time.h>

#include "base/json.h"
#include "base/rand.h"
#include "base/uuid.h"

static void put_id(struct kr_json_out *w)
{
    uint8_t id[KR_UUID_SIZE];
    char text[KR_UUID_TEXT];

    kr_rand_secret(id, sizeof id);
    id[6] = (uint8_t)((id[6] & 0x0f) | 0x40); /* version 4 (RFC 9562 section 5.4) */
    id[8] = (uint8_t)((id[8] & 0x3f) | 0x80);
    kr_uuid_write(id, text);
    kr_json_out_text(w, "auditID", text);
}

static void put_time(struct kr_json_out *w, const char *key, int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm = {0};
    char text[40];

    gmtime_r(&seconds, &tm);
    snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03d000Z",
             (tm.tm_year + 1900) % 10000, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
             tm.tm_sec, (int)(wall_ms % 1000));
    kr_json_out_text(w, key, text);
}

static void put_key(struct kr_json_out *w, const uint8_t spki[32])
{
    char text[65];

    for (size_t i = 0; i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", spki[i]);
    kr_json_out_text(w, "kuberelay.io/key", text);
}

int kr_sign_event_write(struct kr_buf *line, const struct kr_identity *made, struct kr_bytes uri,
                        const char *caller, int64_t now_wall_ms)
{
    struct kr_json_out w;

    kr_json_out_init(&w, line);
    kr_json_out_object(&w, NULL);
    kr_json_out_text(&w, "kind", "Event");
    kr_json_out_text(&w, "apiVersion", "audit.k8s.io/v1");
    kr_json_out_text(&w, "level", "Metadata");
    put_id(&w);
    kr_json_out_text(&w, "stage", "ResponseComplete");
    kr_json_out_text(&w, "requestURI", "/kuberelay.v1.Signer/Sign");
    kr_json_out_text(&w, "verb", "create");
    kr_json_out_object(&w, "user");
    kr_json_out_text(&w, "username", caller);
    kr_json_out_end(&w);
    kr_json_out_object(&w, "responseStatus");
    kr_json_out_int(&w, "code", 201);
    kr_json_out_end(&w);
    put_time(&w, "requestReceivedTimestamp", now_wall_ms);
    put_time(&w, "stageTimestamp", now_wall_ms);
    kr_json_out_object(&w, "annotations"); /* stays open, and so does the event */
    kr_json_out_text(&w, "kuberelay.io/cluster", made->name);
    kr_json_out_text(&w, "kuberelay.io/agent-instance", made->instance);
    kr_json_out_string(&w, "kuberelay.io/uri", uri);
    kr_json_out_text(&w, "kuberelay.io/serial", made->serial);
    put_key(&w, made->spki_sha256);
    put_time(&w, "kuberelay.io/not-after", made->not_after_wall_ms);
    return w.rc;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* list_options: the query of a list or watch, checked as kube-apiserver checks it (apimachinery
 * meta/v1 ListOptions, apiserver meta/internalversion/validation, endpoints/handlers/get.go), and
 * the form of answer that its Accept field asks for (endpoints/handlers/negotiation).
 * Memory: text lives in the arena or borrows the query. Errors: KR_EINVAL (answer 400; `invalid`
 * says 422), KR_EUNSUPPORTED (answer 406), KR_ENOMEM. Pure. */
#ifndef KR_KUBE_LIST_OPTIONS_H
#define KR_KUBE_LIST_OPTIONS_H

#include "base/buf.h"
#include "kube/selector.h"

enum kr_version_match { KR_MATCH_UNSET, KR_MATCH_NOT_OLDER_THAN, KR_MATCH_EXACT };
enum kr_include_object { KR_INCLUDE_METADATA, KR_INCLUDE_NONE, KR_INCLUDE_OBJECT };
enum kr_form {
    KR_FORM_JSON,
    KR_FORM_TABLE_V1,
    KR_FORM_TABLE_V1BETA1,
    KR_FORM_METADATA_V1, /* PartialObjectMetadata, or its List */
    KR_FORM_METADATA_V1BETA1,
};

struct kr_list_options {
    struct kr_label_selector labels;
    struct kr_field_selector fields;
    struct kr_bytes label_text; /* decoded, as asked */
    struct kr_bytes field_text;
    bool watch;
    bool bookmarks;    /* allowWatchBookmarks */
    bool send_initial; /* sendInitialEvents=true */
    bool has_send_initial;
    bool has_version;  /* resourceVersion is there and not "" */
    bool version_zero; /* it is "0" */
    uint64_t version;  /* it is a number; else KR_EINVAL */
    enum kr_version_match match;
    int64_t limit; /* 0: none */
    struct kr_bytes cont;
    int64_t timeout_s; /* timeoutSeconds; 0: none */
    enum kr_include_object include;
    struct kr_bytes clusters; /* ours: clusters=a,b as a short form of the label; empty: none */
    bool invalid;             /* with KR_EINVAL: kube-apiserver answers 422 Invalid */
};

int kr_list_options_read(struct kr_bytes query, bool is_watch, struct kr_arena *arena,
                         struct kr_list_options *out, struct kr_note *why);

/* The best form that an Accept value allows; "" and the wildcards mean JSON. application/json only:
 * a client that takes nothing but protobuf or YAML gets KR_EUNSUPPORTED. */
int kr_accept_form(struct kr_bytes accept, enum kr_form *out);
/* Whether an Accept-Encoding value takes gzip: by its name, as for kube-apiserver. */
bool kr_accept_gzip(struct kr_bytes accept_encoding);
/* What a discovery request wants: 0 plain (APIVersions, APIGroupList), 1 aggregated v2, 2
 * aggregated v2beta1; KR_EUNSUPPORTED. */
int kr_accept_discovery(struct kr_bytes accept);

/* resourceVersions of one cluster: decimal strings of any length, compared by length, then bytes
 * (apimachinery util/resourceversion). <0, 0, >0. */
int kr_version_compare(struct kr_bytes a, struct kr_bytes b);

/* "5d3h", "42s": apimachinery util/duration HumanDuration. Appends to out. */
int kr_human_duration(int64_t seconds, struct kr_buf *out);
/* RFC 3339 in UTC ("2026-01-02T03:04:05Z") to seconds since 1970. */
bool kr_time_parse(struct kr_bytes text, int64_t *seconds);

#endif

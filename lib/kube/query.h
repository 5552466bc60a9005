/* SPDX-License-Identifier: Apache-2.0 */
/* query: the query of a request target, read as Go's net/url does: pairs split at '&', a pair with
 * ';' or an invalid escape is left out, '+' is a space, the first value of a name counts.
 * Memory: values borrow the query, or the arena where something was decoded. Pure. */
#ifndef KR_KUBE_QUERY_H
#define KR_KUBE_QUERY_H

#include "base/arena.h"
#include "base/bytes.h"

/* Go (net/url, urlmaxqueryparams) drops the whole query beyond this many pairs: such a request is
 * refused, or what was classified is not what the API server would see. */
#define KR_QUERY_PAIRS_MAX 10000
/* False beyond the maximum. */
bool kr_query_count_ok(struct kr_bytes query);

/* Steps through the pairs; `rest` starts as the whole query. A pair whose text is escaped is
 * decoded into the arena. 1: a pair; 0: the end; KR_ENOMEM. */
int kr_query_next(struct kr_bytes *rest, struct kr_arena *arena, struct kr_bytes *name,
                  struct kr_bytes *value);

/* A boolean parameter (apimachinery runtime/conversion.go Convert_Slice_string_To_bool): only "0"
 * and "false" in any case are false once it is there. Go folds 'ſ' (U+017F) to 's' in it. */
bool kr_query_bool(struct kr_bytes value);

/* strconv.ParseInt(s, 10, 64). */
bool kr_query_int(struct kr_bytes value, int64_t *out);

/* time.ParseDuration: "1h2m", "1.5s", "-3ms", "0"; nanoseconds. False if it is none. */
bool kr_query_duration(struct kr_bytes value, int64_t *out_ns);

#endif

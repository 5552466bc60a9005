/* SPDX-License-Identifier: Apache-2.0 */
/* json_diff: what somebody changed in an object that was served with parts of it left out, as a
 * JSON Patch (RFC 6902) for the whole object: what was left out stays as it is.
 *   - Values are copied byte for byte.
 *   - null means absent. metadata.resourceVersion, managedFields, apiVersion and kind do not count,
 *     nor does it when what the API server sets itself (uid, creationTimestamp, ...) is missing.
 *   - An empty object or array that was served and is missing, where something may have been left
 *     out below it, is no change: a program that has a type for it does not write it back. Nor is a
 *     zero value (null, "", 0, false, {} and what is made of them) where nothing was served of what
 *     may be there: such a program writes it for each field that it knows.
 *   - Lists that are served as they are: element by element, or as a whole. Others: item by item,
 *     each with the one that it was (kube/list_match.h).
 * Refused, because what was left out would be lost or would go to the wrong item: an object or list
 * for a place of which nothing was served; items that cannot be told apart; items that go while
 * others come, in a list whose items were not served whole.
 * The first operation replaces /metadata/resourceVersion by "", at *version.
 * Limits: KR_DIFF_DEPTH levels, 16 MiB of memory, those of patch_out.h and list_match.h.
 * Errors: KR_EDENIED (refused, with the place and the reason), KR_ETOOBIG, KR_EPROTO, KR_ENOMEM.
 * Pure. */
#ifndef KR_KUBE_JSON_DIFF_H
#define KR_KUBE_JSON_DIFF_H

#include "base/buf.h"
#include "base/note.h"
#include "kube/slim_reach.h"

#define KR_DIFF_DEPTH 64

/* Both are checked JSON objects: as it was served, and as it shall be. `reach` NULL: it is not
 * known what was left out. *version: offset in `out` at which the live version can be put in. */
int kr_json_diff(const struct kr_reach *reach, struct kr_bytes served, struct kr_bytes wanted,
                 struct kr_buf *out, uint32_t *version, struct kr_note *why);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* options_value: one option's value, from text into its field and back; belongs to options.
 * Memory: strings are copied into the arena. Errors: KR_EINVAL, KR_ENOMEM, with a note. */
#ifndef KR_BASE_OPTIONS_VALUE_H
#define KR_BASE_OPTIONS_VALUE_H

#include "base/buf.h"
#include "base/options.h"

#define KR_OPTION_ITEMS_MAX 64

/* Sets the field from one scalar, or a list's field from n items. */
int kr_option_set(const struct kr_option *opt, void *config, struct kr_arena *arena,
                  const struct kr_bytes *items, size_t n, struct kr_note *why);
/* Cuts "a,b,c" into at most `max` items; returns how many there are, even if more. "" is none. */
size_t kr_option_split(struct kr_bytes text, struct kr_bytes *items, size_t max);
/* Appends the value as YAML; secrets as "***". */
int kr_option_print(const struct kr_option *opt, const void *config, struct kr_buf *out);

#endif

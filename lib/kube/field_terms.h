/* SPDX-License-Identifier: Apache-2.0 */
/* field_terms: the text of a field selector, term by term (apimachinery fields/selector.go
 * splitTerms, splitTerm, UnescapeValue).
 * Memory: spans borrow the text; an escaped value is unescaped into the arena. Pure. */
#ifndef KR_KUBE_FIELD_TERMS_H
#define KR_KUBE_FIELD_TERMS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/note.h"

/* The first term, cut off the front of `rest`; an escaped comma does not end it. */
struct kr_bytes kr_field_term_next(struct kr_bytes *rest);
/* Splits at the first of "!=", "==", "="; false if there is none. */
bool kr_field_term_split(struct kr_bytes term, struct kr_bytes *field, struct kr_bytes *value,
                         bool *equal);
/* KR_EINVAL for a special character that is not escaped, or an escape of any other; KR_ENOMEM. */
int kr_field_value_unescape(struct kr_bytes value, struct kr_arena *arena, struct kr_bytes *out,
                            struct kr_note *why);

#endif

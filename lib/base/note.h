/* SPDX-License-Identifier: Apache-2.0 */
/* note: the human cause of a failure, filled where it is known and wrapped outward.
 * Memory: a fixed buffer in the caller's struct; long texts are cut, never overrun.
 * Every function takes NULL for "nobody wants to know". */
#ifndef KR_BASE_NOTE_H
#define KR_BASE_NOTE_H

struct kr_note {
    char text[256];
};

/* Replaces the text and gives `code`, so that a failure is one line: return kr_note_set(...).
 * Macros, so that a compiler and an analyzer see which code it is. */
#define kr_note_set(note, code, ...) (kr_note_text((note), __VA_ARGS__), kr_note_code(code))
/* Puts "prefix: " before what is there and gives `code`. */
#define kr_note_wrap(note, code, ...) (kr_note_prefix((note), __VA_ARGS__), kr_note_code(code))

/* What the macros stand on. */
__attribute__((format(printf, 2, 3))) void kr_note_text(struct kr_note *note, const char *fmt, ...);
__attribute__((format(printf, 2, 3))) void kr_note_prefix(struct kr_note *note, const char *fmt,
                                                          ...);
static inline int kr_note_code(int code)
{
    return code;
}

#endif

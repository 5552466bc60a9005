/* SPDX-License-Identifier: Apache-2.0 */
/* note: the human cause of a failure, filled where it is known and wrapped outward.
 * Memory: a fixed buffer in the caller's struct; long texts are cut, never overrun.
 * Every function takes NULL for "nobody wants to know". */
#ifndef KR_BASE_NOTE_H
#define KR_BASE_NOTE_H

struct kr_note {
    char text[256];
};

/* Replaces the text and returns `code`, so that a failure is one line: return kr_note_set(...). */
__attribute__((format(printf, 3, 4))) int kr_note_set(struct kr_note *note, int code,
                                                      const char *fmt, ...);
/* Puts "prefix: " before what is there and returns `code`. */
__attribute__((format(printf, 3, 4))) int kr_note_wrap(struct kr_note *note, int code,
                                                       const char *fmt, ...);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "base/note.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void kr_note_text(struct kr_note *note, const char *fmt, ...)
{
    va_list ap;

    if (note == NULL)
        return;
    va_start(ap, fmt);
    vsnprintf(note->text, sizeof note->text, fmt, ap);
    va_end(ap);
}

void kr_note_prefix(struct kr_note *note, const char *fmt, ...)
{
    char inner[sizeof note->text];
    va_list ap;
    int n;

    if (note == NULL)
        return;
    memcpy(inner, note->text, sizeof inner);
    va_start(ap, fmt);
    n = vsnprintf(note->text, sizeof note->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof note->text)
        snprintf(note->text + n, sizeof note->text - (size_t)n, ": %s", inner);
}

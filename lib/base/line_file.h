/* SPDX-License-Identifier: Apache-2.0 */
/* line_file: a file that lines are put behind: one that must not lose lines silently and must not
 * hold the loop up. A line that was taken is written whole, or waits; what cannot be taken is said.
 * A regular file is rotated by size: FILE becomes FILE.1, that FILE.2, and so on. Of a pipe, a
 * terminal or stdout only what fits now is written.
 * Failing: the last write failed (no space), or nothing could be written for KR_LINE_STALL_MS
 *         (nobody reads), or KR_LINE_WAIT_MAX bytes wait. It is well again when a write succeeds.
 * Memory: up to KR_LINE_WAIT_MAX bytes of lines that wait.
 * Threads: one owner. A signal SIGXFSZ or SIGPIPE must be ignored by the program. */
#ifndef KR_BASE_LINE_FILE_H
#define KR_BASE_LINE_FILE_H

#include "base/buf.h"
#include "base/note.h"

#define KR_LINE_WAIT_MAX (1u << 20)
#define KR_LINE_STALL_MS 2000

struct kr_line_file;

struct kr_line_file_config {
    const char *path; /* borrowed; "-": stdout */
    int64_t max_size; /* 0: is never rotated here */
    int64_t keep;     /* of FILE.1, FILE.2, ...; at least 1 */
};

/* NULL with a note when the file cannot be opened. What is in it stays. */
struct kr_line_file *kr_line_file_open(const struct kr_line_file_config *cfg, struct kr_note *why);
/* What waits is lost, but for what can be written now. NULL is fine. */
void kr_line_file_close(struct kr_line_file *f);
/* `line` without its newline. 0: it is written or waits; KR_EFULL: there is no room, it is lost. */
int kr_line_file_put(struct kr_line_file *f, struct kr_bytes line, int64_t now_ms);
/* Writes what waits, as far as it goes; to be called now and then while something waits. */
void kr_line_file_flush(struct kr_line_file *f, int64_t now_ms);
bool kr_line_file_ok(const struct kr_line_file *f);
size_t kr_line_file_waiting(const struct kr_line_file *f); /* bytes */
/* The errno of the last write; 0: it was well, or nothing could be written at all. */
int kr_line_file_errno(const struct kr_line_file *f);
/* Opens the path anew: somebody has renamed the file. On failure the old one stays. */
int kr_line_file_reopen(struct kr_line_file *f, struct kr_note *why);
/* Appends the last line that is in the file, without its newline; nothing if there is none. One
 * that was not ended is ended by the next put. */
int kr_line_file_last(struct kr_line_file *f, struct kr_buf *out);

#endif

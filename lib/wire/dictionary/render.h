/* SPDX-License-Identifier: Apache-2.0 */
/* render: text of Kubernetes objects from templates, with everything that is unique in a cluster
 * made up anew for each (names, uids, addresses, hashes, times).
 * A template file holds objects, each as its Table cells (a JSON array) followed by the slim
 * object, laid out for people: white space outside of strings is dropped, and a newline is put
 * between the two. A line that begins with "---" parts objects, one that begins with "#" is a
 * comment. Within strings @word@ stands for a value, which stays the same within one object unless
 * the word is one of those that are new each time:
 *   @uid@ @sha@             new each time: a UUID, 64 hexadecimal digits
 *   @sha2@ @git@ @md5@ @hex14@ @id@   the same text each time: 64, 40, 32, 14 such digits, five
 *                           letters
 *   @name@ @ns@ @node@      one of a list; @name2@ is a second one, and so on
 *   @time@ @time2@ ...      points in time, each a little later than the one before
 *   @age@                   how long ago something was, as in a Table
 *   @hash@ @tail@           the two random parts of a pod's name
 *   @ip@ @host@ @num@ @num8@   addresses, numbers
 *   @@                      the sign itself
 * For a tool that runs while the program is built: it ends the program when something is wrong. */
#ifndef KR_WIRE_DICTIONARY_RENDER_H
#define KR_WIRE_DICTIONARY_RENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *p;
    size_t n;
    size_t cap;
};

void text_add(struct text *t, const char *p, size_t n);
void text_read_file(struct text *t, const char *path);

/* Renders the object that begins at *at (an offset in `templates`) with values drawn from `seed`,
 * and moves *at behind it. 0: there is no further one.
 * `blank`: a sign that no object has there stands in the place of what is unique. So what stands
 * before and behind it is found as a whole, and nothing is made up that no real object repeats. */
int render_next(const struct text *templates, size_t *at, uint64_t seed, bool blank,
                struct text *out);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* dictionary: the bytes of the zstd dictionaries that ship with the program. They are written while
 * it is built (lib/wire/dictionary), and each number stands for the same bytes for ever. Pure. */
#ifndef KR_WIRE_DICTIONARY_H
#define KR_WIRE_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t kr_dictionary_1[];
extern const size_t kr_dictionary_1_size;

#endif

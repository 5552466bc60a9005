/* SPDX-License-Identifier: Apache-2.0 */
/* secrecy: no core files, no debugger of the same user: either would show the key.
 * Errors: KR_EIO. For the start of the program. */
#ifndef SIGNER_SECRECY_H
#define SIGNER_SECRECY_H

#include "base/note.h"

int signer_close_memory(struct kr_note *why);

#endif

/* Checks of the recorded calls (verify.c). The calls after the replay (verify_end.c) use them. */
#pragma once

#include "cmtreplay/worker/calls.h"

/* Adds a finding, and returns it: the caller may name blocks in it. `other` depends on the fault (protocol.h). Any
 * thread may call it. */
struct finding* verify_report(enum fault fault, const struct block_request* request, const void* address,
                              uint64_t other);

/* Whether cmtreplay emulates this call, so that it does not keep the allocator's promises. */
int verify_is_stand_in(enum call call);

/* Notes the call that is made next, after the replay: an allocator may end the process there. trying_nothing: no more
 * calls follow. */
void verify_announce(const struct block_request* request, enum trying trying);

/* The replay has ended: checks the blocks that were never freed. Returns the calls that are not checked. */
const struct calls* verify_live_blocks(struct control* control);

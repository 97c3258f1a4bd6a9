/// Hands a recording over to the launcher's shared collector (preload/hand_over.h). A process that cannot do so starts
/// a collector of its own.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// `descriptors`: as of HandOver; they remain the caller's. Returns whether the shared collector has the recording.
/// False: it is refused, there is none, or it does not answer in a fifth of a second.
bool hand_over(struct Control* control, const int* descriptors, int count);

/// The memory that the rings are in: made, mapped, and backed before it is used.
#pragma once

#include <stdbool.h>

#include "preload/protocol.h"

/// Makes it. Returns 0 or -errno. Its descriptor is open until rings_close_descriptor(), which the collector needs.
long rings_map(struct Control** control);
/// In a forked child: the parent's are not ours. Puts memory that nobody shares in their place, because a signal
/// handler that forked may have interrupted a thread that writes there.
void rings_forget(const struct Control* control);
int rings_descriptor(void);
/// Where no collector was ever at them: removes their file, if they are in one.
void rings_discard(const struct Control* control);
void rings_close_descriptor(void);

/// Makes ring `number` usable, for a thread of the kernel's id `owner`. False where there is no memory for it.
bool rings_open(struct Control* control, uint32_t number, uint32_t owner);
